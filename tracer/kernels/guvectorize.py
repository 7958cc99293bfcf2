"""`guvectorize`: a function of small arrays, which may write its results, as a generalised ufunc."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import TensorType
from ..arrays.common import common_dtype
from ..core.trace import require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..data.callables import Function, check_callable, function_name
from ..data.promotion import canonical
from ..messages import errors
from ..messages.errors import complain
from ..messages.tracebacks import shortened
from ..transforms.vectorize import Dims, parse_signature, vectorize
from .calls import compiled_outside, stored


@shortened
def guvectorize(
    signature: str, pyfunc: Function | None = None, *, otypes: Sequence[Any] | None = None
) -> Any:
    """A generalised ufunc: `pyfunc` of the last axes of its arguments, broadcast over those in front.

        @jt.guvectorize("(n),()->(n)")
        def moving_sum(x, window, out):         # writes its results, as Numba's
            total = 0.0
            for i in range(x.size):
                total += x[i]
                if i >= window:
                    total -= x[i - window]
                out[i] = total

        @jt.guvectorize("(n),(n)->(),()")
        def errors(x, y):                       # or returns them
            return abs(x - y).max(), ((x - y) ** 2).mean()

    signature  which axes, the last ones, each argument and result has; equal names are equal sizes.
    pyfunc     takes the arguments and returns the results, or takes the results too and assigns to
               their elements, which are 0 before. A result without axes is then an array of one
               element: `res[0] = total`. Arguments without axes are scalars.
    otypes     dtypes of results that are assigned to. Without it they have the common dtype of
               the arguments.

    Called with arrays of any shapes whose axes in front broadcast, and with NumPy's `axis=`, `axes=`,
    `keepdims=` and `out=`. Compiled at the first call for the types of the arguments, as by `jt.jit`; in
    compiled functions a part of these. It has derivatives, and batches.

    Raises jt.errors.TransformError where signature, function and arguments do not fit each other,
    ShapeError for sizes that differ, and DTypeError where floats are assigned to a result of integers.

    >>> moving_sum = jt.guvectorize("(n)->(n)", lambda x: np.cumsum(x))
    >>> moving_sum(np.ones((2, 3)))
    array([[1., 2., 3.],
           [1., 2., 3.]])
    """
    if not isinstance(signature, str):
        complain(
            errors.TransformError,
            "guvectorize takes the signature first, and no list of types: dtypes are those of the "
            "arguments of each call",
            'write @jt.guvectorize("(n),(n)->()"), and otypes=[np.int64] where a result that is '
            "assigned to has another dtype than the arguments.",
        )
    if pyfunc is None:
        return functools.partial(guvectorize, signature, otypes=otypes)
    check_callable(pyfunc, "guvectorize")
    return _gufunc(pyfunc, signature, otypes)


def _gufunc(pyfunc: Function, signature: str, otypes: Sequence[Any] | None) -> Function:
    ins, outs = parse_signature(signature)
    if _takes_results(pyfunc, len(ins), len(outs)):
        core = _returning(pyfunc, ins, outs, otypes, signature)
    else:
        _refuse_otypes(otypes)
        core = pyfunc
    over_all = compiled_outside(vectorize(core, signature=signature))

    @shortened
    @functools.wraps(pyfunc, updated=())
    def gufunc(
        *args: Any, out: Any = None, axis: Any = None, axes: Any = None, keepdims: bool = False
    ) -> Any:
        if len(args) != len(ins):
            complain(
                errors.TransformError,
                f"the signature {signature!r} is of {len(ins)} arguments, and "
                f"{function_name(pyfunc)} was called with {len(args)}",
                "give one argument for each group; results go in by out=.",
            )
        places = _places(ins, outs, axis, axes, keepdims, signature)
        args = tuple(_to_the_end(x, p) for x, p in zip(args, places, strict=False))
        results = over_all(*args)
        many = tuple(results) if isinstance(results, (tuple, list)) else (results,)
        if keepdims:
            many = tuple(np.reshape(x, (*np.shape(x), *(1 for _ in ins[0]))) for x in many)
        many = tuple(_from_the_end(x, p) for x, p in zip(many, places[len(ins) :], strict=True))
        if out is not None:
            many = stored(many, out)
        return many if len(outs) > 1 else many[0]

    gufunc.signature, gufunc.nin, gufunc.nout = signature, len(ins), len(outs)  # type: ignore[attr-defined]
    return gufunc


# Results that are assigned to.


def _takes_results(pyfunc: Function, ins: int, outs: int) -> bool:
    """Whether a function takes its results as arguments, by the number of its parameters."""
    try:
        parameters = inspect.signature(pyfunc).parameters.values()
    except (TypeError, ValueError):
        return False
    own = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) or len(own) == ins:
        return False
    if len([p for p in own if p.default is p.empty]) == ins + outs or len(own) == ins + outs:
        return True
    complain(
        errors.TransformError,
        f"{function_name(pyfunc)} has {len(own)} parameters, and the signature {ins} arguments and "
        f"{outs} results",
        f"give it {ins}, and return the results, or {ins + outs}, and assign to the last {outs}.",
    )


def _refuse_otypes(otypes: Sequence[Any] | None) -> None:
    if otypes is not None:
        complain(
            errors.TransformError,
            "otypes are those of results that the function assigns to, and this one returns them",
            "convert what it returns: return x.astype(np.int64).",
        )


def _returning(
    pyfunc: Function,
    ins: Sequence[Dims],
    outs: Sequence[Dims],
    otypes: Sequence[Any] | None,
    signature: str,
) -> Function:
    """The function that makes the arrays which `pyfunc` assigns to, and returns them."""
    known = {name for dims in ins for name in dims}
    unknown = [name for dims in outs for name in dims if name not in known]
    if unknown:
        complain(
            errors.TransformError,
            f"{unknown[0]} of the signature {signature!r} is in no argument, so nobody knows how long "
            f"the result is that {function_name(pyfunc)} assigns to",
            "return the result, or pass an argument of that size.",
        )
    if otypes is not None and len(otypes) != len(outs):
        complain(
            errors.TransformError,
            f"otypes has {len(otypes)} dtypes for the {len(outs)} results of {signature!r}",
            "give one for each.",
        )
    given = None if otypes is None else [canonical(t) for t in otypes]

    @functools.wraps(pyfunc, updated=())
    def core(*args: Any) -> Any:
        sizes: dict[str, int] = {}
        for x, dims in zip(args, ins, strict=True):
            sizes.update(zip(dims, np.shape(x), strict=True))
        dtypes = given or [common_dtype(*args)] * len(outs)
        results = []
        for dims, dtype in zip(outs, dtypes, strict=True):
            shape = tuple(sizes[name] for name in dims) or (1,)
            zeros = require_trace().builder.zeros(TensorType(shape, dtype))
            results.append(wrap(zeros, scalar=False))
        returned = pyfunc(*args, *results)
        if returned is not None:
            complain(
                errors.TransformError,
                f"{function_name(pyfunc)} assigns to its results, and returns something, too",
                "do one of the two: its parameters tell which it is.",
            )
        if given is None:
            for x in results:
                _refuse_narrowing(x, pyfunc)
        whole = [x if dims else x[0] for x, dims in zip(results, outs, strict=True)]
        return tuple(whole) if len(whole) > 1 else whole[0]

    return core


def _refuse_narrowing(x: Tracer, pyfunc: Function) -> None:
    """DTypeError where what was assigned to a result lost its fraction, or its imaginary part."""
    pending, seen = [as_value(x)], set[Value]()
    while pending:
        value = pending.pop()
        op = value.op
        if op is None or value in seen:
            continue
        seen.add(value)
        if op.regions:
            pending += [r.outputs[value.index] for r in op.regions if len(r.outputs) > value.index]
            continue
        if op.name == "convert" and value.dtype == x.dtype:
            wide = op.operands[0].dtype
            if not np.can_cast(wide, x.dtype, "same_kind"):
                complain(
                    errors.DTypeError,
                    f"{function_name(pyfunc)} assigns {wide} to a result that has the dtype of the "
                    f"arguments, {x.dtype}",
                    f"name the dtype of each result: otypes=[np.{wide}].",
                    line=op.loc,
                )
        if op.definition.updates or op.definition.view or op.name == "select":
            pending += op.operands


# Where the axes are.


Places = Sequence[tuple[int, ...]]


def _places(
    ins: Sequence[Dims], outs: Sequence[Dims], axis: Any, axes: Any, keepdims: bool, signature: str
) -> Places:
    """Which axes of each argument, then of each result, are those of the signature."""
    kept = [() if dims or not keepdims else ins[0] for dims in outs]
    if keepdims and (any(outs) or len({len(dims) for dims in ins}) > 1):
        complain(
            errors.TransformError,
            f"keepdims does not go with the signature {signature!r}",
            "it needs arguments of equally many axes, and results without any.",
        )
    every = [*ins, *(dims or own for dims, own in zip(outs, kept, strict=True))]
    if axis is not None:
        if axes is not None or len({d for d in every if d}) != 1 or max(map(len, every)) != 1:
            complain(
                errors.TransformError,
                f"axis={axis!r} does not go with the signature {signature!r}",
                "axis= is for one shared axis; name those of each operand: axes=[(0,), (1,), ()].",
            )
        axes = [(axis,) if dims else () for dims in every]
    if axes is None:
        return [tuple(range(-len(dims), 0)) for dims in every]
    given = [a if isinstance(a, tuple) else (a,) for a in axes]
    if len(given) == len(ins) and not any(every[len(ins) :]):
        given += [() for _ in outs]
    if [len(a) for a in given] != [len(dims) for dims in every]:
        complain(
            errors.TransformError,
            f"axes={axes!r} does not fit the signature {signature!r}",
            "give a tuple of axes for each argument and result: axes=[(0, 1), (0,), (0,)].",
        )
    return given


def _to_the_end(x: Any, places: tuple[int, ...]) -> Any:
    last = tuple(range(-len(places), 0))
    return x if places == last else np.moveaxis(x, places, last)


def _from_the_end(x: Any, places: tuple[int, ...]) -> Any:
    last = tuple(range(-len(places), 0))
    return x if places == last else np.moveaxis(x, last, places)
