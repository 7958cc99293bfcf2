"""What functions do with arrays whose length is a value (`indexing.bounded`): element by element,
shapes, joins, operators. (`bounded_reductions` has the others.)

What is not there is masked: reductions take their identity for it, products and integer powers a zero,
and what meets it from other operands gets no derivative back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.types import BOOL, I64
from ..arrays import ufuncs
from ..arrays.common import array, given
from ..arrays.lowerings import LOWERINGS
from ..arrays.python_operators import BINARY, COMPARISONS, UNARY, check_in_place
from ..arrays.table import BY_NUMPY, FUNCTIONS, ArrayFunction, unsupported
from ..containers.growing import list_of
from ..containers.kinds import current
from ..containers.walking import Numbered
from ..control.unions import one_value, only
from ..core.effects import check
from ..core.linear_forms import same_value
from ..core.tracers import Tracer, as_value
from ..indexing.bounded import (
    RULES,
    Aligned,
    Bounded,
    bounded,
    bounded_method,
    filled,
    refuse,
    rule,
)
from ..indexing.bounded_index import combine_at, store
from ..indexing.masked import Masked
from . import ufunc_methods
from .bounded_joins import finished, one_of, parts_of
from .operators import of_scipy

# By element

_BY_ELEMENT = (
    *("clip", "round", "around", "fix", "nan_to_num", "erf", "erfinv", "sinc", "real", "imag"),
    *("angle", "isposinf", "isneginf", "isreal", "iscomplex", "i0", "isclose", "astype"),
)


def elementwise(traced: Callable[..., Any], operands: Sequence[Any], fill: Any = 1) -> Any:
    """A function of elements, applied to operands that are broadcast against each other."""
    operands = [x.materialised() if isinstance(x, Masked) else one_value(only(x)) for x in operands]
    together = Aligned(operands)
    return together.result(traced(*together.guarded(operands, fill)))


def apply(ufunc: np.ufunc, *operands: Any, **options: Any) -> Any:
    """A ufunc of operands among which bounded arrays are."""
    operands = tuple(x.materialised() if isinstance(x, Masked) else x for x in operands)
    if ufunc is np.power and isinstance(operands[1], Bounded) and operands[1].dtype.kind in "iu":
        x = operands[1]  # an exponent that nobody sees must not be negative
        operands = operands[0], Bounded(filled(x, 0), x.counts)
    return elementwise(lambda *padded: ufuncs.apply(ufunc, *padded, **options), operands)


def _ufunc_rule(name: str) -> None:
    def traced(
        entry: ArrayFunction, *inputs: Any, out: Any = None, where: Any = True, **options: Any
    ) -> Any:
        ufunc = getattr(np, name)
        if len(inputs) > ufunc.nin:
            inputs, out = inputs[: ufunc.nin], inputs[ufunc.nin]
        out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        kept = {k: v for k, v in options.items() if k in ("dtype", "casting")}
        result = apply(ufunc, *inputs, **kept)
        if where is not True:
            result = elementwise(
                FUNCTIONS["where"].traced, (where, result, 0 if out is None else out)
            )
        if out is None:
            return result
        store(out, result)
        return out

    RULES[name] = traced


for _name in LOWERINGS:
    if hasattr(np, _name):
        _ufunc_rule(_name)
for _name, _entry in list(FUNCTIONS.items()):
    if isinstance(_entry.numpy, np.ufunc) and _entry.numpy.__name__ in RULES:
        RULES[_name] = RULES[_entry.numpy.__name__]


@rule(*_BY_ELEMENT)
def _by_element(entry: ArrayFunction, *args: Any, out: Any = None, **options: Any) -> Any:
    at = {"clip": 3, "round": 2, "around": 2}.get(entry.name, len(args))
    if len(args) > at:
        args, out = args[:at], args[at]
    if out is not None and given(out):
        return finished(_by_element(entry, *args, **options), out)
    operands = [x for x in args if x is not None]
    places = [k for k, x in enumerate(args) if x is not None]

    def traced(*padded: Any) -> Any:
        full: list[Any] = [None] * len(args)
        for place, x in zip(places, padded, strict=True):
            full[place] = x
        return entry.traced(*full, **options)

    if entry.name in ("round", "around", "nan_to_num", "angle"):  # beside the array stand options
        return elementwise(lambda x: entry.traced(x, *args[1:], **options), args[:1])
    return elementwise(traced, operands)


@rule("where")
def _where(entry: ArrayFunction, condition: Any, *branches: Any, **options: Any) -> Any:
    if len(branches) == 2:
        return elementwise(entry.traced, (condition, *branches))
    return _nonzero(entry, condition)


@bounded_method("astype")
def _astype(x: Bounded, dtype: Any, *args: Any, **options: Any) -> Any:
    return Bounded(x.padded.astype(dtype, *args, **options), x.counts)


@bounded_method("copy", "__copy__")
def _copy(x: Bounded, order: str = "C") -> Bounded:
    return Bounded(x.padded.copy(), x.counts)


@bounded_method("__deepcopy__")
def _deepcopy(x: Bounded, memo: Any) -> Bounded:
    return _copy(x)


# Shapes


@rule("ravel", "reshape")
def _flattened(entry: ArrayFunction, a: Any, *shape: Any, **options: Any) -> Any:
    x = one_of(a)
    wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    inner = _inner_shape(x, wanted) if entry.name == "reshape" and not options else None
    if inner is not None:  # rows of another shape
        padded = entry.traced(x.padded, (x.padded.shape[0], *inner))
        return Bounded(padded, x.counts)
    if isinstance(wanted, tuple) and any(isinstance(n, Tracer) for n in wanted):
        refuse(x, f"np.{entry.name}")
    if x.ndim == 1 and wanted in ((), (-1,), ("C",)):
        return x
    if x.ndim == 1 and wanted in ((-1, 1), (1, -1)):
        return x[:, None] if wanted == (-1, 1) else x[None, :]
    refuse(x, f"np.{entry.name}")


def _inner_shape(x: Bounded, wanted: Any) -> tuple[int, ...] | None:
    """The new shape of a row, if as many rows are wanted as there are: `(len, -1)`, `(-1, *sizes)`."""
    if set(x.counts) != {0} or not isinstance(wanted, tuple) or len(wanted) < 2:
        return None
    rows, *inner = wanted
    size = math.prod(x.padded.shape[1:])
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, Tracer) for n in inner):
        return None
    known = math.prod(n for n in inner if n != -1)
    if isinstance(rows, Tracer):
        if not same_value(as_value(rows, I64), as_value(x.counts[0], I64)) or inner.count(-1) > 1:
            return None
        whole = known == size if -1 not in inner else known > 0 and size % known == 0
        if whole and -1 in inner:
            check(
                rows > 0,
                "cannot reshape array of size 0 into shape (0,newaxis)",
                error="ValueError",
            )
    else:
        whole = rows == -1 and -1 not in inner and known == size > 0
    return tuple(size // known if n == -1 else int(n) for n in inner) if whole else None


@bounded_method("reshape")
def _reshape(x: Bounded, *shape: Any, **options: Any) -> Any:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return _flattened(FUNCTIONS["reshape"], x, tuple(given))


@bounded_method("ravel", "flatten")
def _ravel(x: Bounded, order: str = "C") -> Any:
    return _flattened(FUNCTIONS["ravel"], x)


@rule("transpose", "swapaxes", "moveaxis", "matrix_transpose")
def _transposed(entry: ArrayFunction, a: Any, *args: Any, **options: Any) -> Any:
    x = one_of(a)
    moved = entry.traced(x.padded, *args, **options)
    order = entry.numpy(np.empty(range(2, 2 + x.ndim)), *args, **options).shape  # type: ignore[misc]
    axes = [n - 2 for n in order]
    return Bounded(moved, {axes.index(axis): count for axis, count in x.counts.items()})


@bounded_method("transpose")
def _transpose(x: Bounded, *axes: Any) -> Any:
    chosen = axes[0] if len(axes) == 1 else axes or None
    return _transposed(FUNCTIONS["transpose"], x, chosen)


Bounded.T = property(lambda x: _transposed(FUNCTIONS["transpose"], x))  # type: ignore[attr-defined]
Bounded.real = property(lambda x: FUNCTIONS["real"].trace((x,), {}))  # type: ignore[attr-defined]
Bounded.imag = property(lambda x: FUNCTIONS["imag"].trace((x,), {}))  # type: ignore[attr-defined]


@rule("copy", "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
def _as_array(entry: ArrayFunction, a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    x = one_of(a)
    options.update(zip(("copy", "order", "subok", "ndmin"), args, strict=False))
    if int(options.get("ndmin", 0)) > x.ndim:
        refuse(x, "np.array with ndmin=")
    if entry.name == "copy" or (entry.name == "array" and options.get("copy", True)):
        x = _copy(x)
    dtype = None if isinstance(dtype, str) and entry.name == "copy" else dtype
    return x if dtype is None else x.astype(dtype)


@rule("size")
def _size(entry: ArrayFunction, a: Any, axis: Any = None) -> Any:
    return one_of(a).size if axis is None else one_of(a).shape[axis]


@rule("shape")
def _shape(entry: ArrayFunction, a: Any) -> Any:
    return one_of(a).shape


@rule("ndim")
def _ndim(entry: ArrayFunction, a: Any) -> int:
    return one_of(a).ndim


@rule("zeros_like", "ones_like", "empty_like", "full_like")
def _like(entry: ArrayFunction, a: Any, *args: Any, **options: Any) -> Any:
    x = one_of(a)
    return Bounded(entry.traced(x.padded, *args, **options), x.counts)


@rule("nonzero", "flatnonzero", "extract", "compress")
def _nonzero(entry: ArrayFunction, *args: Any, **options: Any) -> Any:
    x = args[0]
    if entry.name in ("extract", "compress"):
        return args[1][x]
    if x.ndim != 1:
        refuse(x, "np.nonzero")
    n = x.padded.shape[0]
    places = FUNCTIONS["arange"].traced(n)
    found = Bounded(places, x.counts)[x if x.dtype == BOOL else x != 0].materialised()
    return found if entry.name == "flatnonzero" else (found,)


@rule("unravel_index")
def _unravelled(entry: ArrayFunction, indices: Any, *args: Any, **options: Any) -> Any:
    x = one_of(indices)
    return tuple(bounded(part, x.counts) for part in entry.traced(filled(x, 0), *args, **options))


@rule("ravel_multi_index")
def _raveled(entry: ArrayFunction, multi_index: Any, *args: Any, **options: Any) -> Any:
    parts = parts_of(multi_index)
    parts = [Bounded(filled(x, 0), x.counts) if isinstance(x, Bounded) else x for x in parts]
    together = Aligned(parts)
    return together.result(entry.traced(tuple(together.padded), *args, **options))


# Operators, methods and NumPy's protocols


@rule("ufunc")
def _from_ufunc(
    ufunc: np.ufunc, how: str, inputs: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    inputs = [x.materialised() if isinstance(x, Masked) else x for x in inputs]
    if how == "__call__":
        entry = BY_NUMPY.get(ufunc) or of_scipy(ufunc.__name__)
        if ufunc.__name__ in LOWERINGS:
            return RULES[ufunc.__name__](entry, *inputs, **options)
        if ufunc in BY_NUMPY and BY_NUMPY[ufunc].name in RULES:
            return RULES[BY_NUMPY[ufunc].name](BY_NUMPY[ufunc], *inputs, **options)
        if entry is None:
            unsupported(ufunc)
        return elementwise(entry.traced, inputs)
    named = {
        np.add: "sum",
        np.multiply: "prod",
        np.maximum: "max",
        np.minimum: "min",
        np.logical_and: "all",
        np.logical_or: "any",
    }
    if how == "reduce" and ufunc in named:
        kept = {k: v for k, v in options.items() if v is not None and given(v)}
        kept.setdefault("axis", 0)
        return RULES[named[ufunc]](FUNCTIONS[named[ufunc]], *inputs, **kept)
    if how == "at" and ufunc.nin == 2:
        target, index, values = inputs
        values = values if isinstance(values, Bounded) else array(values)
        combined = ufunc_methods.scattered(ufunc, target, values)
        if combined is not None:
            combined = apply(np.negative, combined) if ufunc is np.subtract else combined
            combine_at(target, index, combined, ufunc_methods.COMBINES[ufunc.__name__])
            return None
    refuse(next(x for x in inputs if isinstance(x, Bounded)), f"np.{ufunc.__name__}.{how}")


@rule("function")
def _from_function(function: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    entry = BY_NUMPY.get(function)
    if entry is None:
        unsupported(function)
    return entry.trace(tuple(args), options)


def _located(ufunc: np.ufunc, *operands: Any) -> Any:
    return FUNCTIONS[ufunc.__name__].trace(operands, {})


def _in_place(ufunc: np.ufunc) -> Callable[[Bounded, Any], Bounded]:
    def rule(x: Bounded, y: Any) -> Bounded:
        result = _located(ufunc, x, y)
        check_in_place(ufunc, result.dtype, x.padded)
        store(x, result)
        if x.origin is not None:
            x.origin = (*x.origin[:2], x.padded._storage.version)
        return x

    return rule


def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    return _located(np.floor_divide, x, y), _located(np.remainder, x, y)


def _install() -> None:
    for name, ufunc in COMPARISONS.items():
        setattr(Bounded, f"__{name}__", lambda x, y, u=ufunc: _located(u, x, y))
    for name, ufunc in UNARY.items():
        setattr(Bounded, f"__{name}__", lambda x, u=ufunc: _located(u, x))
    for name, ufunc in BINARY.items():
        setattr(Bounded, f"__{name}__", lambda x, y, u=ufunc: _located(u, x, y))
        setattr(Bounded, f"__r{name}__", lambda x, y, u=ufunc: _located(u, y, x))
        setattr(Bounded, f"__i{name}__", _in_place(ufunc))
    for name, turn in (("divmod", 1), ("rdivmod", -1)):
        setattr(Bounded, f"__{name}__", lambda x, y, turn=turn: _divmod(*(x, y)[::turn]))
    for name in ("matmul", "rmatmul"):
        setattr(Bounded, f"__{name}__", _method("matmul", reverse=name == "rmatmul"))
    Bounded.__hash__ = None  # type: ignore[assignment]
    for name in (
        "sum prod any all max min argmax argmin mean var std dot cumsum cumprod argsort clip round "
        "ptp nonzero swapaxes conj conjugate take searchsorted repeat"
    ).split():
        setattr(Bounded, name, _method(name))


def _method(name: str, reverse: bool = False) -> Callable[..., Any]:
    def call(x: Bounded, *args: Any, **options: Any) -> Any:
        return FUNCTIONS[name].trace((*args, x) if reverse else (x, *args), options)

    return call


_install()


@bounded_method("fill")
def _fill(x: Bounded, value: Any) -> None:
    store(x, value)


@bounded_method("sort")
def _sort(x: Bounded, axis: Any = -1, *args: Any, **options: Any) -> None:
    store(x, FUNCTIONS["sort"].trace((x, axis, *args), options))


@bounded_method("tolist")
def _tolist(x: Bounded) -> Any:
    if current() is None or x.ndim > 1:
        refuse(x, "x.tolist()")
    length, item = x.walked()
    return list_of(Numbered(length, lambda i: item(i).item()), ("tolist", x._line))
