"""What functions do with arrays whose length is a value (`indexing.bounded`): element by element,
reductions, products, sorts, joins.

What is not there is masked: reductions take their identity for it, products and integer powers a zero,
and what meets it from other operands gets no derivative back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.types import BOOL, I64, is_complex, is_float
from ..arrays import reductions, ufuncs
from ..arrays.common import array, axis_index, build, given
from ..arrays.lowerings import LOWERINGS
from ..arrays.python_operators import BINARY, COMPARISONS, UNARY, check_in_place
from ..arrays.reductions import highest, lowest
from ..arrays.table import BY_NUMPY, FUNCTIONS, ArrayFunction, unsupported
from ..core.effects import check
from ..core.tracers import Tracer, as_value, wrap
from ..indexing.bounded import (
    RULES,
    Aligned,
    Bounded,
    bounded,
    bounded_method,
    filled,
    live,
    number,
    refuse,
    require_equal,
    resized,
    rule,
)
from ..indexing.bounded_index import store
from ..indexing.masked import Masked
from .operators import of_scipy

# By element

_BY_ELEMENT = (
    *("clip", "round", "around", "fix", "nan_to_num", "erf", "erfinv", "sinc", "real", "imag"),
    *("angle", "isposinf", "isneginf", "isreal", "iscomplex", "i0", "isclose", "astype"),
)


def elementwise(traced: Callable[..., Any], operands: Sequence[Any], fill: Any = 1) -> Any:
    """A function of elements, applied to operands that are broadcast against each other."""
    operands = [x.materialised() if isinstance(x, Masked) else x for x in operands]
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
def _by_element(entry: ArrayFunction, *args: Any, **options: Any) -> Any:
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


# Reductions


def _reduced_axes(x: Bounded, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(axis_index(a, x.ndim) for a in axes)


def _left(x: Bounded, axes: tuple[int, ...], keepdims: Any) -> dict[int, Any]:
    """The counts of what is left of x's axes."""
    keep = given(keepdims) and keepdims
    rest = {a: c for a, c in x.counts.items() if a not in axes}
    return rest if keep else {a - sum(r < a for r in axes): c for a, c in rest.items()}


def _count(x: Bounded, axes: Sequence[int]) -> Any:
    """How many elements are reduced to one: a number or a traced int."""
    total: Any = 1
    for axis in axes:
        total = x.shape[axis] * total
    return total


def _require_some(x: Bounded, axes: Sequence[int], text: str, error: str = "ValueError") -> None:
    """An error when the compiled function runs if an axis has no element."""
    for axis in axes:
        if axis in x.counts:
            some = wrap(build().gt(as_value(x.counts[axis], I64), build().const(0, I64)))
            check(some, text, error=error)


def _with_where(x: Bounded, axes: Sequence[int], where: Any) -> Any:
    where = where.materialised() if isinstance(where, Masked) else where
    there = live(x, axes) if any(a in x.counts for a in axes) else True
    if where is True or not given(where):
        return there
    mask = Aligned([x, where]).padded[1]
    return mask if there is True else there & mask


@rule("sum", "prod", "any", "all", "count_nonzero")
def _fold(
    entry: ArrayFunction,
    a: Any,
    axis: Any = None,
    *args: Any,
    keepdims: Any = False,
    where: Any = True,
    **options: Any,
) -> Any:
    names: tuple[str, ...] = ("dtype", "out", "keepdims", "initial", "where")
    if entry.name in ("any", "all"):
        names = ("out", "keepdims")
    options.update(zip(names, args, strict=False))
    keepdims = options.pop("keepdims", keepdims)
    x, out = _one(a), options.pop("out", None)
    if entry.name == "count_nonzero":
        x, entry = x != 0, FUNCTIONS["sum"]
    axes = _reduced_axes(x, axis)
    where = _with_where(x, axes, where)
    result = entry.traced(x.padded, axes, keepdims=keepdims, where=where, **options)
    return _finished(bounded(result, _left(x, axes, keepdims)), out)


def _one(a: Any) -> Bounded:
    """The array that a function is of."""
    if not isinstance(a, Bounded):
        raise TypeError("the array is of another kind than its options")
    return a


def _finished(result: Any, out: Any) -> Any:
    if out is None or not given(out):
        return result
    store(out, result)
    return out


@rule("max", "min", "amax", "amin")
def _extremum(
    entry: ArrayFunction,
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    x = _one(a)
    axes = _reduced_axes(x, axis)
    name = "maximum" if entry.name.endswith("max") else "minimum"
    options = {"initial": initial} if given(initial) and initial is not None else {}
    if not options:
        _require_some(
            x, axes, f"zero-size array to reduction operation {name} which has no identity"
        )
    fill = lowest(x.dtype) if name == "maximum" else highest(x.dtype)
    padded = filled(x, fill, axes)
    if where is not True and given(where):
        options["where"] = Aligned([x, where]).padded[1]
    result = entry.traced(padded, axes, keepdims=keepdims, **options)
    return _finished(bounded(result, _left(x, axes, keepdims)), out)


@rule("argmax", "argmin")
def _place(
    entry: ArrayFunction, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False
) -> Any:
    x = _one(a)
    if axis is None and any(k > 0 for k in x.counts):
        refuse(x, f"np.{entry.name} over several axes")
    axes = _reduced_axes(x, axis)
    _require_some(x, axes, f"attempt to get {entry.name} of an empty sequence")
    fill = lowest(x.dtype) if entry.name == "argmax" else highest(x.dtype)
    result = entry.traced(filled(x, fill, axes), axis, keepdims=keepdims)
    return _finished(bounded(result, _left(x, axes, keepdims)), out)


@rule("mean")
def _mean(
    entry: ArrayFunction,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    x = _one(a)
    axes = _reduced_axes(x, axis)
    if where is not True and given(where):
        result = entry.traced(
            x.padded, axes, dtype, keepdims=keepdims, where=_with_where(x, axes, where)
        )
    else:
        real = dtype if dtype is not None else _float(x.dtype)
        total = FUNCTIONS["sum"].traced(
            x.padded, axes, dtype=real, keepdims=keepdims, where=_with_where(x, axes, True)
        )
        result = total / as_count(_count(x, axes), total.dtype)
    return _finished(bounded(result, _left(x, axes, keepdims)), out)


def _float(dtype: np.dtype[Any]) -> Any:
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def as_count(count: Any, dtype: np.dtype[Any]) -> Any:
    """A number of elements in the dtype of what is divided by it."""
    return wrap(as_value(count, dtype))


@rule("var", "std")
def _variance(
    entry: ArrayFunction,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    x = _one(a)
    axes = _reduced_axes(x, axis)
    ddof = correction if correction is not None and given(correction) else ddof
    if where is not True or dtype is not None or (mean is not None and given(mean)):
        refuse(x, f"np.{entry.name} with these options")
    centre = _mean(FUNCTIONS["mean"], x, axes, keepdims=True)
    deviation = x - centre
    squares = Bounded(reductions.absolute_square(deviation.padded), deviation.counts)
    total = _fold(FUNCTIONS["sum"], squares, axes, keepdims=keepdims)
    padded = total.padded if isinstance(total, Bounded) else total
    left = ufuncs.apply(np.maximum, as_count(_count(x, axes), padded.dtype) - ddof, 0)
    result = padded / left
    if entry.name == "std":
        result = ufuncs.apply(np.sqrt, result)
    return _finished(bounded(result, _left(x, axes, keepdims)), out)


_PLAIN = {"nansum": ("sum", 0), "nanprod": ("prod", 1)}


@rule("nansum", "nanprod")
def _without_nan(entry: ArrayFunction, a: Any, axis: Any = None, **options: Any) -> Any:
    x = _one(a)
    name, identity = _PLAIN[entry.name]
    if is_float(x.dtype) or is_complex(x.dtype):
        x = RULES["where"](FUNCTIONS["where"], apply(np.isnan, x), identity, x)
    return _fold(FUNCTIONS[name], x, axis, **options)


@rule("nanmean")
def _nanmean(entry: ArrayFunction, a: Any, axis: Any = None, **options: Any) -> Any:
    x = _one(a)
    total = _without_nan(FUNCTIONS["nansum"], x, axis, **options)
    return total / _fold(FUNCTIONS["sum"], ~apply(np.isnan, x), axis, **options)


@rule("nanmax", "nanmin")
def _nan_extremum(entry: ArrayFunction, a: Any, axis: Any = None, **options: Any) -> Any:
    x = _one(a)
    fill = lowest(x.dtype) if entry.name == "nanmax" else highest(x.dtype)
    x = RULES["where"](FUNCTIONS["where"], apply(np.isnan, x), fill, x)
    return _extremum(FUNCTIONS[entry.name[3:]], x, axis, **options)


@rule("ptp")
def _ptp(
    entry: ArrayFunction, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False
) -> Any:
    high, low = (_extremum(FUNCTIONS[name], a, axis, keepdims=keepdims) for name in ("max", "min"))
    return _finished(high - low, out)


@rule("linalg.norm")
def _norm(
    entry: ArrayFunction, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False
) -> Any:
    x = _one(x)
    if ord not in (None, 2, 1, math.inf) or (ord is not None and axis is None and x.ndim > 1):
        refuse(x, f"np.linalg.norm with ord={ord}")
    if isinstance(axis, (tuple, list)) and ord is not None:
        refuse(x, f"np.linalg.norm with axis={axis}")
    if ord == 1:
        return _fold(FUNCTIONS["sum"], abs(x), axis, keepdims=keepdims)
    if ord == math.inf:
        return _extremum(FUNCTIONS["max"], abs(x), axis, keepdims=keepdims)
    x = x if x.dtype.kind in "fc" else x.astype(np.float64)
    squares = Bounded(reductions.absolute_square(x.padded), x.counts)
    return _root(_fold(FUNCTIONS["sum"], squares, axis, keepdims=keepdims))


def _root(x: Any) -> Any:
    return apply(np.sqrt, x) if isinstance(x, Bounded) else ufuncs.apply(np.sqrt, x)


# Products


@rule("matmul", "dot", "inner", "vdot", "vecdot", "linalg.vecdot")
def _product(entry: ArrayFunction, a: Any, b: Any, *args: Any, **options: Any) -> Any:
    x, y = (z.materialised() if isinstance(z, Masked) else z for z in (a, b))
    x, y = (z if isinstance(z, (Bounded, Tracer)) else array(z) for z in (x, y))
    out = options.pop("out", args[0] if args else None)
    if not x.ndim or not y.ndim:
        if entry.name == "matmul":
            raise ValueError("matmul: Input operand does not have enough dimensions")
        return _finished(x * y, out)
    if entry.name == "vdot":
        x, y = _flat(x), _flat(y)
    ending = entry.name in ("inner", "vecdot", "linalg.vecdot", "vdot")
    i, j = x.ndim - 1, y.ndim - 1 if ending or y.ndim == 1 else y.ndim - 2
    x, y = _contracted(x, i, y, j)
    result = entry.traced(*(z.padded if isinstance(z, Bounded) else z for z in (x, y)))
    return _finished(bounded(result, _product_counts(entry, x, i, y, j)), out)


def _flat(x: Any) -> Any:
    if x.ndim == 1:
        return x
    if isinstance(x, Bounded):
        refuse(x, "np.vdot")
    return x.ravel()


def _contracted(x: Any, i: int, y: Any, j: int) -> tuple[Any, Any]:
    """Two operands with one size along the axes that are summed over, and zeros behind the count."""
    text = (
        "matmul: Input operand 1 has a mismatch in its core dimension 0 (size {1} is different "
        "from {0})"
    )
    counts = [z.counts.get(k) if isinstance(z, Bounded) else None for z, k in ((x, i), (y, j))]
    if counts == [None, None]:
        return x, y
    sizes = [(z.padded if isinstance(z, Bounded) else z).shape[k] for z, k in ((x, i), (y, j))]
    lengths = [n if c is None else c for n, c in zip(sizes, counts, strict=True)]
    require_equal(lengths[0], lengths[1], text)
    count = counts[0] if counts[0] is not None else counts[1]
    fixed = [n for n, c in zip(sizes, counts, strict=True) if c is None]
    size = fixed[0] if fixed else min(sizes)
    found: list[Any] = []
    for z, k in ((x, i), (y, j)):
        if isinstance(z, Bounded):
            others = {a: c for a, c in z.counts.items() if a != k}
            assert count is not None
            padded = filled(Bounded(z.padded, {k: count}), 0)
            z = Bounded(resized(padded, k, size), others)
        found.append(z)
    return found[0], found[1]


def _product_counts(entry: ArrayFunction, x: Any, i: int, y: Any, j: int) -> dict[int, Any]:
    """The counts of a product's axes: x's but the one summed over, then y's."""
    mine, theirs = (z.counts if isinstance(z, Bounded) else {} for z in (x, y))
    if not mine and not theirs:
        return {}
    if x.ndim > 2 or y.ndim > 2:
        refuse(x if isinstance(x, Bounded) and mine else y, f"np.{entry.name} of several matrices")
    if entry.name in ("vecdot", "linalg.vecdot"):
        kept = mine if 0 in mine and i else theirs
        return {0: kept[0]} if 0 in kept and x.ndim == 2 else {}
    others = [c for a, c in mine.items() if a != i], [c for a, c in theirs.items() if a != j]
    return {axis: c for axis, found in zip((0, x.ndim - 1), others, strict=True) for c in found}


@rule("outer")
def _outer(entry: ArrayFunction, a: Any, b: Any, out: Any = None) -> Any:
    x, y = (z if isinstance(z, Bounded) else array(z).ravel() for z in (a, b))
    if x.ndim != 1 or y.ndim != 1:
        refuse(x if isinstance(x, Bounded) else y, "np.outer")
    return _finished(apply(np.multiply, x[:, None], y[None, :]), out)


# Order


@rule("sort", "argsort")
def _sorted(entry: ArrayFunction, a: Any, axis: Any = -1, *args: Any, **options: Any) -> Any:
    x = _one(a)
    if axis is None:
        refuse(x, f"np.{entry.name} with axis=None") if x.ndim > 1 else None
        axis = 0
    axis = axis_index(axis, x.ndim)
    return Bounded(entry.traced(filled(x, _last(x.dtype), [axis]), axis), x.counts)


def _last(dtype: np.dtype[Any]) -> Any:
    """What is sorted behind all others, or beside its equals."""
    if is_complex(dtype):
        return complex(math.nan, math.nan)
    return math.nan if is_float(dtype) else highest(dtype)


@rule("median")
def _median(
    entry: ArrayFunction,
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = False,
    keepdims: Any = False,
) -> Any:
    x = _one(a)
    if x.ndim != 1 or axis not in (None, 0, -1) or (given(keepdims) and keepdims):
        refuse(x, "np.median over an axis")
    if not x.padded.shape[0]:
        return _finished(wrap(build().const(math.nan, _float(x.dtype))), out)
    n = x.counts[0]
    rows = _sorted(FUNCTIONS["sort"], x).padded
    low, high, end = (FUNCTIONS["maximum"].traced(k, 0) for k in ((n - 1) // 2, n // 2, n - 1))
    take = FUNCTIONS["take"].traced
    parts = [take(rows, k, mode="clip").astype(_float(x.dtype)) for k in (low, high, end)]
    middle = FUNCTIONS["mean"].traced(array(parts[:2]))
    nan = wrap(build().const(math.nan, middle.dtype))
    if is_float(x.dtype):
        middle = FUNCTIONS["where"].traced(FUNCTIONS["isnan"].traced(parts[2]), nan, middle)
    return _finished(wrap(as_value(FUNCTIONS["where"].traced(array(n) == 0, nan, middle))), out)


@rule("quantile", "percentile")
def _quantile(entry: ArrayFunction, a: Any, q: Any, axis: Any = None, **options: Any) -> Any:
    """By linear interpolation, of one number, as NumPy rounds it."""
    x = _one(a)
    plain = axis in (None, 0, -1) and not any(given(v) and v for v in options.values())
    if x.ndim != 1 or array(q).ndim or not plain or not x.padded.shape[0]:
        refuse(x, f"np.{entry.name} with these options")
    part = array(q).astype(np.float64) / (100 if entry.name == "percentile" else 1)
    check((part >= 0) & (part <= 1), "Quantiles must be in the range [0, 1]", error="ValueError")
    _require_some(x, [0], "index -1 is out of bounds for axis 0 with size 0", "IndexError")
    rows = _sorted(FUNCTIONS["sort"], x).padded.astype(_float(x.dtype))
    place = part * (x.counts[0] - 1)
    low = FUNCTIONS["floor"].traced(place)
    take, where = FUNCTIONS["take"].traced, FUNCTIONS["where"].traced
    below, above, last = (
        take(rows, k.astype(np.int64) if isinstance(k, Tracer) else k, mode="clip")
        for k in (low, FUNCTIONS["minimum"].traced(low + 1, x.counts[0] - 1), x.counts[0] - 1)
    )
    way = (place - low).astype(rows.dtype)
    found = where(way >= 0.5, above - (above - below) * (1 - way), below + (above - below) * way)
    return wrap(as_value(where(FUNCTIONS["isnan"].traced(last), last, found)))


@rule("allclose")
def _allclose(entry: ArrayFunction, a: Any, b: Any, *args: Any, **options: Any) -> Any:
    close = elementwise(lambda x, y: FUNCTIONS["isclose"].traced(x, y, *args, **options), (a, b))
    return _fold(FUNCTIONS["all"], close) if isinstance(close, Bounded) else reductions.all_(close)


@rule("cumsum", "cumprod", "cumulative_sum", "cumulative_prod")
def _running(entry: ArrayFunction, a: Any, axis: Any = None, *args: Any, **options: Any) -> Any:
    x = _one(a)
    if axis is None and x.ndim > 1:
        refuse(x, f"np.{entry.name} with axis=None")
    axis = axis_index(0 if axis is None else axis, x.ndim)
    fill = 0 if "sum" in entry.name else 1
    return Bounded(entry.traced(filled(x, fill, [axis]), axis, *args, **options), x.counts)


@rule("diff")
def _diff(entry: ArrayFunction, a: Any, n: Any = 1, axis: Any = -1) -> Any:
    x = _one(a)
    if n != 1:
        refuse(x, "np.diff with n > 1")
    axis = axis_index(axis, x.ndim)
    if axis not in x.counts:
        return Bounded(entry.traced(x.padded, n, axis), x.counts)
    left = FUNCTIONS["maximum"].traced(x.counts[axis] - 1, 0)
    return bounded(entry.traced(x.padded, n, axis), {**x.counts, axis: number(left)})


@rule("flip")
def _flip(entry: ArrayFunction, m: Any, axis: Any = None) -> Any:
    x = _one(m)
    axes = _reduced_axes(x, axis)
    return x[tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(x.ndim))]


# Shapes


@rule("ravel", "reshape")
def _flattened(entry: ArrayFunction, a: Any, *shape: Any, **options: Any) -> Any:
    x = _one(a)
    wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    if x.ndim == 1 and wanted in ((), (-1,), ("C",)):
        return x
    if x.ndim == 1 and wanted in ((-1, 1), (1, -1)):
        return x[:, None] if wanted == (-1, 1) else x[None, :]
    refuse(x, f"np.{entry.name}")


@bounded_method("reshape")
def _reshape(x: Bounded, *shape: Any, **options: Any) -> Any:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return _flattened(FUNCTIONS["reshape"], x, tuple(given))


@bounded_method("ravel", "flatten")
def _ravel(x: Bounded, order: str = "C") -> Any:
    return _flattened(FUNCTIONS["ravel"], x)


@rule("transpose", "swapaxes", "moveaxis", "matrix_transpose")
def _transposed(entry: ArrayFunction, a: Any, *args: Any, **options: Any) -> Any:
    x = _one(a)
    moved = entry.traced(x.padded, *args, **options)
    order = entry.numpy(np.empty(range(2, 2 + x.ndim)), *args, **options).shape  # type: ignore[misc]
    axes = [n - 2 for n in order]
    return Bounded(moved, {axes.index(axis): count for axis, count in x.counts.items()})


@bounded_method("transpose")
def _transpose(x: Bounded, *axes: Any) -> Any:
    chosen = axes[0] if len(axes) == 1 else axes or None
    return _transposed(FUNCTIONS["transpose"], x, chosen)


Bounded.T = property(lambda x: _transposed(FUNCTIONS["transpose"], x))  # type: ignore[attr-defined]


@rule("copy", "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
def _as_array(entry: ArrayFunction, a: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
    x = _one(a)
    if entry.name == "copy" or (entry.name == "array" and options.get("copy", True)):
        x = _copy(x)
    dtype = None if isinstance(dtype, str) and entry.name == "copy" else dtype
    return x if dtype is None else x.astype(dtype)


@rule("size")
def _size(entry: ArrayFunction, a: Any, axis: Any = None) -> Any:
    return _one(a).size if axis is None else _one(a).shape[axis]


@rule("shape")
def _shape(entry: ArrayFunction, a: Any) -> Any:
    return _one(a).shape


@rule("ndim")
def _ndim(entry: ArrayFunction, a: Any) -> int:
    return _one(a).ndim


@rule("zeros_like", "ones_like", "empty_like", "full_like")
def _like(entry: ArrayFunction, a: Any, *args: Any, **options: Any) -> Any:
    x = _one(a)
    return Bounded(entry.traced(x.padded, *args, **options), x.counts)


@rule("concatenate", "concat", "hstack", "append")
def _joined(entry: ArrayFunction, first: Any, *rest: Any, **options: Any) -> Any:
    parts = (first, rest[0]) if entry.name == "append" else first
    arrays = [p if isinstance(p, Bounded) else array(p) for p in parts]
    if any(p.ndim != 1 for p in arrays) or options.get("axis", 0) not in (0, -1, None):
        refuse(next(p for p in arrays if isinstance(p, Bounded)), f"np.{entry.name} of matrices")
    dtype = np.result_type(*(p.dtype for p in arrays))
    sizes = [(p.padded if isinstance(p, Bounded) else p).shape[0] for p in arrays]
    b, total, at = build(), sum(sizes), build().const(0, I64)
    whole = b.full((total,), 0, dtype)
    for part in arrays:
        count = as_value(part.shape[0], I64)
        padded = (part.padded if isinstance(part, Bounded) else part).astype(dtype)
        whole = b.bounded_update_slice(
            whole, as_value(resized(padded, 0, total)), at, count, axes=(0,), steps=(1,)
        )
        at = b.add(at, count)
    return bounded(wrap(whole, scalar=False), {0: number(wrap(at))})


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


def _install() -> None:
    for name, ufunc in COMPARISONS.items():
        setattr(Bounded, f"__{name}__", lambda x, y, u=ufunc: _located(u, x, y))
    for name, ufunc in UNARY.items():
        setattr(Bounded, f"__{name}__", lambda x, u=ufunc: _located(u, x))
    for name, ufunc in BINARY.items():
        setattr(Bounded, f"__{name}__", lambda x, y, u=ufunc: _located(u, x, y))
        setattr(Bounded, f"__r{name}__", lambda x, y, u=ufunc: _located(u, y, x))
        setattr(Bounded, f"__i{name}__", _in_place(ufunc))
    for name in ("matmul", "rmatmul"):
        setattr(Bounded, f"__{name}__", _method("matmul", reverse=name == "rmatmul"))
    Bounded.__hash__ = None  # type: ignore[assignment]
    for name in (
        "sum prod any all max min argmax argmin mean var std dot cumsum cumprod argsort clip round "
        "ptp nonzero swapaxes"
    ).split():
        setattr(Bounded, name, _method(name))


def _method(name: str, reverse: bool = False) -> Callable[..., Any]:
    def call(x: Bounded, *args: Any, **options: Any) -> Any:
        return FUNCTIONS[name].trace((*args, x) if reverse else (x, *args), options)

    return call


_install()


@bounded_method("sort")
def _sort_in_place(x: Bounded, axis: int = -1, kind: Any = None, **options: Any) -> None:
    store(x, _sorted(FUNCTIONS["sort"], x, axis))


@bounded_method("fill")
def _fill(x: Bounded, value: Any) -> None:
    store(x, value)


@bounded_method("tolist")
def _tolist(x: Bounded) -> Any:
    refuse(x, "x.tolist()")
