"""`vectorize`: a function of arrays with given axes becomes a function over all axes in front."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...runtime.cuda.array import DeviceArray
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..data.callables import Function, check_callable, function_name
from ..messages import errors
from ..messages.errors import complain
from ..messages.tracebacks import shortened
from .example_loops import looped
from .vmap import vmap

Dims = tuple[str, ...]

_NAME = r"[A-Za-z_]\w*"
_GROUP = rf"\(\s*(?:{_NAME}(?:\s*,\s*{_NAME})*)?\s*\)"
_SIGNATURE = re.compile(
    rf"\s*({_GROUP}(?:\s*,\s*{_GROUP})*)?\s*->\s*({_GROUP}(?:\s*,\s*{_GROUP})*)\s*"
)


def vectorize(
    pyfunc: Function, *, excluded: Collection[int | str] = (), signature: str | None = None
) -> Function:
    """`pyfunc` broadcast over its arguments: see `kernels.vectorize`."""
    check_callable(pyfunc, "vectorize")
    left_out = frozenset(excluded)
    if any(type(e) not in (int, str) or (type(e) is int and e < 0) for e in left_out):
        complain(
            errors.TransformError,
            f"excluded={excluded!r} has an entry that is neither a position nor a name",
            "name arguments by position, counted from 0, or by keyword.",
        )
    dims = None if signature is None else parse_signature(signature)

    @shortened
    @functools.wraps(pyfunc, updated=())
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        positions = [i for i in range(len(args)) if i not in left_out]
        arrays = [_array(args[i], i) for i in positions]

        @functools.wraps(pyfunc, updated=())
        def of_one(*chosen: Any) -> Any:
            full = list(args)
            for i, x in zip(positions, chosen, strict=True):
                full[i] = x
            out = pyfunc(*full, **kwargs)
            _check_results(out, outs, sizes, pyfunc, signature)
            return out

        ins, outs = ([()] * len(arrays), None) if dims is None else dims
        if len(ins) != len(arrays):
            complain(
                errors.TransformError,
                f"the signature {signature!r} is of {len(ins)} arguments, and "
                f"{function_name(pyfunc)} was called with {len(arrays)}",
                "give one group per positional argument that is not excluded.",
            )
        sizes = _core_sizes(arrays, ins, signature)
        loops = [np.shape(x)[: np.ndim(x) - len(d)] for x, d in zip(arrays, ins, strict=True)]
        shape = _broadcast(loops, arrays)
        flat = [_without_ones(x, loop, shape) for x, loop in zip(arrays, loops, strict=True)]
        function: Function = of_one
        if shape and any(ins):
            axes = range(len(shape))
            follows = [tuple(d for d in axes if _follows(n, shape, d)) for n in loops]
            out = looped(function, flat, follows, shape)
            if out is not None:
                return out[0]
        for axis in reversed(range(len(shape))):
            in_axes = tuple(0 if _follows(loop, shape, axis) else None for loop in loops)
            function = vmap(function, in_axes)
        return function(*flat)

    return vectorized


def of_numpys(function: np.vectorize) -> Function:
    """What an object of np.vectorize computes, for all elements at once: arrays, never scalars.

    NumPy asks for `otypes` where there are no elements, and so do we.
    """
    excluded: Any = function.excluded
    mapped = vectorize(function.pyfunc, excluded=excluded, signature=function.signature)
    otypes = None if function.otypes is None else [np.dtype(t) for t in function.otypes]

    @functools.wraps(mapped, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        arrays = [x for i, x in enumerate(args) if i not in excluded]
        if otypes is None and any(np.size(x) == 0 for x in arrays):
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        out = mapped(*args, **kwargs)
        results = out if isinstance(out, tuple) else (out,)
        dtypes = otypes or [x.dtype for x in results]
        converted = tuple(_whole(x, dtype) for x, dtype in zip(results, dtypes, strict=True))
        return converted if isinstance(out, tuple) else converted[0]

    return call


def _whole(x: Any, dtype: np.dtype[Any]) -> Any:
    """An array of `dtype`, also where `x` is a scalar."""
    if isinstance(x, Tracer):
        return wrap(as_value(x, dtype), scalar=False)
    return np.asarray(x, dtype)


def parse_signature(signature: str) -> tuple[list[Dims], list[Dims]]:
    """`"(m,n),(n)->(m)"` as `[("m", "n"), ("n",)], [("m",)]`."""
    if not isinstance(signature, str) or not _SIGNATURE.fullmatch(signature):
        complain(
            errors.TransformError,
            f"{signature!r} is no signature",
            'write one group of names per argument and result, as in signature="(m,n),(n)->(m)".',
        )
    sides = signature.split("->")
    ins, outs = ([tuple(re.findall(_NAME, g)) for g in re.findall(_GROUP, side)] for side in sides)
    return ins, outs


def _array(x: Any, position: int) -> Any:
    """An argument as something with a shape; Python numbers stay what they are."""
    if isinstance(x, (Tracer, np.ndarray, DeviceArray, np.generic, bool, int, float, complex)):
        return x
    array = np.asarray(x)
    if array.dtype == object:
        complain(
            errors.ArgumentError,
            f"argument {position} of a vectorized function must be an array or a number",
            f"pass it as it is with excluded={{{position}}}.",
            operands={"value": x},
        )
    return array


def _core_sizes(
    arrays: Sequence[Any], ins: Sequence[Dims], signature: str | None
) -> dict[str, int]:
    """The size that each name of the signature has in the arguments."""
    sizes: dict[str, int] = {}
    for i, (x, names) in enumerate(zip(arrays, ins, strict=True)):
        core = np.shape(x)[np.ndim(x) - len(names) :] if names else ()
        if np.ndim(x) < len(names):
            complain(
                errors.ShapeError,
                f"argument {i} needs {len(names)} axes or more by the signature {signature!r}",
                f"give it the axes ({', '.join(names)}).",
                operands={f"argument {i}": x},
            )
        for name, n in zip(names, core, strict=True):
            if sizes.setdefault(name, n) != n:
                complain(
                    errors.ShapeError,
                    f"{name} of the signature {signature!r} is {sizes[name]} in one argument and {n} "
                    f"in argument {i}",
                    "pass arrays whose axes of one name have one size.",
                    operands={f"argument {k}": a for k, a in enumerate(arrays)},
                )
    return sizes


def _broadcast(loops: Sequence[tuple[int, ...]], arrays: Sequence[Any]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*loops)
    except ValueError:
        complain(
            errors.ShapeError,
            f"the axes in front do not broadcast: {', '.join(map(str, loops))}",
            "make them equal, or 1.",
            operands={f"argument {k}": a for k, a in enumerate(arrays)},
        )


def _follows(loop: tuple[int, ...], shape: tuple[int, ...], axis: int) -> bool:
    """Whether an array with the loop axes `loop` changes along `axis` of the broadcast `shape`."""
    own = axis - (len(shape) - len(loop))
    return own >= 0 and loop[own] == shape[axis]


def _without_ones(x: Any, loop: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """`x` without the loop axes of size 1 along which it repeats."""
    lead = len(shape) - len(loop)
    left = [n for d, n in enumerate(loop) if _follows(loop, shape, lead + d)]
    return x if len(left) == len(loop) else x.reshape(*left, *np.shape(x)[len(loop) :])


def _check_results(
    out: Any,
    outs: Sequence[Dims] | None,
    sizes: dict[str, int],
    pyfunc: Function,
    signature: str | None,
) -> None:
    leaves = pytree.flatten(out)[0]
    if outs is not None and len(leaves) != len(outs):
        complain(
            errors.TransformError,
            f"the signature {signature!r} is of {len(outs)} results, and {function_name(pyfunc)} "
            f"returned {len(leaves)}",
            "return one array per group behind the arrow.",
        )
    fixed = dict(sizes)
    for i, leaf in enumerate(leaves):
        shape = np.shape(leaf)
        names = () if outs is None else outs[i]
        fits = len(shape) == len(names)
        for name, n in zip(names, shape, strict=False):
            fits = fits and fixed.setdefault(name, n) == n
        if not fits:
            wanted = ", ".join(f"{name}={fixed[name]}" if name in fixed else name for name in names)
            complain(
                errors.ShapeError,
                f"{function_name(pyfunc)} returned an array of shape {shape} for result {i}, and "
                + (
                    f"the signature {signature!r} says ({wanted})"
                    if outs is not None
                    else "without a signature the results are scalars"
                ),
                'describe the axes: signature="(m,n),(n)->(m)".',
            )
