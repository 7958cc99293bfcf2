"""NumPy's ufuncs over tracers: promotion, broadcasting, `out=`, `where=`, and the ufunc methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...ir.types import BOOL
from .. import errors
from ..core import Tracer, as_value, wrap, wrap_like
from ..errors import complain
from ..promotion import NoLoop, can_cast, can_hold, check_python_int, ufunc_dtypes
from .common import (
    NO_VALUE,
    array,
    axis_index,
    axis_tuple,
    broadcast_shape,
    broadcast_values,
    build,
    given,
    kind,
    operand,
    store,
)
from .lowerings import LOWERINGS
from .table import FUNCTIONS, ArrayFunction, function, refuse_option

COMPARISONS = frozenset("less less_equal greater greater_equal equal not_equal".split())


def apply(ufunc: np.ufunc, *operands: Any, dtype: Any = None, casting: str = "same_kind") -> Any:
    """`ufunc(*operands)`: a tracer with fresh storage, or a tuple of them."""
    operands = tuple(operand(x) for x in operands)
    name = ufunc.__name__
    if name in COMPARISONS:
        known = _compare_out_of_range(ufunc, operands)
        if known is not None:
            return known
    dtypes = loop_dtypes(ufunc, operands, dtype, casting)
    for x, d in zip(operands, dtypes, strict=False):
        if type(x) is int:
            check_python_int(x, d)
    if name == "power" and dtypes[0].kind in "iu":
        _check_exponent(operands[1])
    values = broadcast_values(operands, dtypes[: ufunc.nin], "operands")
    result = LOWERINGS[name](build(), *values)
    if isinstance(result, tuple):
        return tuple(wrap_like(v, operands) for v in result)
    return wrap_like(result, operands)


def loop_dtypes(
    ufunc: np.ufunc, operands: Sequence[Any], dtype: Any = None, casting: str = "same_kind"
) -> tuple[Any, ...]:
    """The loop's dtypes, or a TypeError that shows the operands."""
    kinds = tuple(kind(x) for x in operands)
    wanted = None if dtype is None else np.dtype(dtype)
    try:
        return ufunc_dtypes(ufunc, kinds, wanted, casting)
    except TypeError as error:
        what, remedy = str(error), "convert an operand with .astype(dtype)."
        if isinstance(error, NoLoop):
            remedy = error.remedy
        names = {f"operand {i}": x for i, x in enumerate(operands)}
        complain(errors.DTypeError, what, f"{remedy}", operands=names, cause=error)


def _check_exponent(exponent: Any) -> None:
    if isinstance(exponent, (int, np.generic, np.ndarray)) and np.any(np.asarray(exponent) < 0):
        raise ValueError(
            "Integers to negative integer powers are not allowed; convert the base to a float: "
            "x.astype(np.float64) ** n"
        )


def _compare_out_of_range(ufunc: np.ufunc, operands: Sequence[Any]) -> Tracer | None:
    """A comparison of integers with a Python int that their dtype cannot hold: known beforehand."""
    for i, x in enumerate(operands):
        if type(x) is int:
            other = kind(operands[1 - i])
            if not isinstance(other, np.dtype) or other.kind not in "iu" or can_hold(x, other):
                return None
            sides = (x, 0) if i == 0 else (0, x)
            shape = broadcast_shape(operands)
            return wrap(build().full(shape, bool(ufunc(*sides)), BOOL))
    return None


def call(
    ufunc: np.ufunc,
    *inputs: Any,
    out: Any = None,
    where: Any = True,
    dtype: Any = None,
    casting: str = "same_kind",
    order: str = "K",
    subok: bool = True,
    signature: Any = None,
) -> Any:
    """A ufunc called as NumPy calls it. Elements where `where` is false keep `out`'s, or are 0."""
    if signature is not None:
        if dtype is not None or not isinstance(signature, (str, tuple)):
            raise TypeError("cannot specify both 'signature' and 'dtype'")
        dtype = _signature_dtype(ufunc, signature)
    if len(inputs) > ufunc.nin:
        inputs, out = inputs[: ufunc.nin], inputs[ufunc.nin :]
    if len(inputs) != ufunc.nin:
        raise TypeError(
            f"{ufunc.__name__}() takes from {ufunc.nin} to {ufunc.nargs} positional arguments but "
            f"{len(inputs)} were given"
        )
    if dtype is not None and ufunc.nout == 1:
        dtype = np.dtype(dtype)
    result = apply(ufunc, *inputs, dtype=dtype, casting=casting)
    if ufunc.nout > 1:
        outs = (None,) * ufunc.nout if out is None else out
        if where is not True:
            refuse_option(ufunc.__name__, where=where)
        pairs = zip(result, outs, strict=True)
        return tuple(r if o is None else store(o, r, casting) for r, o in pairs)
    if isinstance(out, tuple):
        out = out[0] if out else None
    if out is not None:
        return store(out, result, casting, where)
    if where is not True:
        shape = broadcast_shape([result, where])
        b = build()
        new = b.broadcast_to(as_value(result), shape)
        mask = b.broadcast_to(as_value(operand(where), BOOL), shape)
        result = wrap(b.select(mask, new, b.full_like(new, 0)))
    return result


def _signature_dtype(ufunc: np.ufunc, signature: Any) -> Any:
    if isinstance(signature, tuple):
        return signature[-1] if len(signature) > 1 else signature[0]
    return np.dtype(signature.rpartition("->")[2])


for _name in sorted(set(LOWERINGS) - {"erf"}):
    function(_name)(partial(call, getattr(np, _name)))
for _name, _target in (
    ("abs", "absolute"),
    ("conj", "conjugate"),
    ("true_divide", "divide"),
    ("mod", "remainder"),
    ("pow", "power"),
    ("bitwise_not", "invert"),
    ("bitwise_invert", "invert"),
    ("bitwise_left_shift", "left_shift"),
    ("bitwise_right_shift", "right_shift"),
    ("acos", "arccos"),
    ("acosh", "arccosh"),
    ("asin", "arcsin"),
    ("asinh", "arcsinh"),
    ("atan", "arctan"),
    ("atan2", "arctan2"),
    ("atanh", "arctanh"),
):
    function(_name)(FUNCTIONS[_target].traced)


# The methods of ufuncs: reduce, accumulate, outer, at, reduceat.

_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
    "fmax": "nanmax",
    "fmin": "nanmin",
}
_SCANS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
_ASSOCIATIVE = frozenset(
    "bitwise_and bitwise_or bitwise_xor logical_xor gcd lcm hypot logaddexp logaddexp2".split()
)
_IDENTITIES = {"bitwise_and": -1, "logaddexp": -np.inf, "logaddexp2": -np.inf}
_AT = {
    "add": "add",
    "subtract": "add",
    "multiply": "multiply",
    "maximum": "max",
    "minimum": "min",
}


def method(ufunc: np.ufunc, name: str, *inputs: Any, **kwargs: Any) -> Any:
    """`getattr(ufunc, name)(*inputs, **kwargs)` over tracers."""
    if name == "__call__":
        return call(ufunc, *inputs, **kwargs)
    if name == "outer":
        return _outer(ufunc, *inputs, **kwargs)
    if name == "reduce":
        return _reduce(ufunc, *inputs, **kwargs)
    if name == "accumulate":
        return _accumulate(ufunc, *inputs, **kwargs)
    if name == "at":
        return _at(ufunc, *inputs)
    return _refuse_method(ufunc, name)


def _refuse_method(ufunc: np.ufunc, name: str) -> Any:
    complain(
        errors.UnsupportedFunctionError,
        f"np.{ufunc.__name__}.{name} cannot be traced yet",
        f"write np.{ufunc.__name__}.{name} as array expressions, or a jt.fori_loop over the axis.",
    )


def _outer(ufunc: np.ufunc, a: Any, b: Any, **kwargs: Any) -> Any:
    left, right = array(a), array(b)
    return call(ufunc, left.reshape(left.shape + (1,) * right.ndim), right, **kwargs)


def _reduce(
    ufunc: np.ufunc,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> Any:
    name = ufunc.__name__
    if isinstance(out, tuple):
        out = out[0]
    options: dict[str, Any] = {"axis": axis, "out": out, "keepdims": keepdims, "where": where}
    if given(initial) and initial is not None and name not in ("logical_and", "logical_or"):
        options["initial"] = initial
    if name in _REDUCTIONS:
        if name in ("add", "multiply"):
            options["dtype"] = dtype
        return FUNCTIONS[_REDUCTIONS[name]].traced(a, **options)
    if name not in _ASSOCIATIVE or where is not True:
        return _refuse_method(ufunc, "reduce")
    return _tree_reduce(ufunc, array(a), axis, keepdims, options.get("initial"), out)


def _tree_reduce(
    ufunc: np.ufunc, x: Tracer, axis: Any, keepdims: bool, initial: Any, out: Any
) -> Any:
    """Reduce with an associative ufunc by halving the axis: log2(n) elementwise ops."""
    if ufunc.__name__ == "logical_xor":
        x = x != 0
    for axis_ in reversed(axis_tuple(axis, x.ndim, x)):
        n = x.shape[axis_]
        lead: tuple[Any, ...] = (slice(None),) * axis_
        if n == 0:
            shape = x.shape[:axis_] + (1,) + x.shape[axis_ + 1 :]
            identity = _IDENTITIES.get(ufunc.__name__, 0)
            if ufunc.identity is None and ufunc.__name__ not in _IDENTITIES:
                raise ValueError(
                    f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
                )
            x, n = wrap(build().full(shape, identity, x.dtype)), 1
        while n > 1:
            half = n // 2
            pairs = apply(ufunc, x[(*lead, slice(0, half))], x[(*lead, slice(half, 2 * half))])
            rest = x[(*lead, slice(2 * half, n))]
            x = FUNCTIONS["concatenate"].traced([pairs, rest], axis=axis_) if n % 2 else pairs
            n = half + n % 2
        x = x if keepdims else x[(*lead, 0)]
    if initial is not None:
        x = apply(ufunc, x, initial)
    return x if out is None else store(out, x)


def _accumulate(ufunc: np.ufunc, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    name = ufunc.__name__
    if isinstance(out, tuple):
        out = out[0]
    x = array(a)
    axis = axis_index(axis, x.ndim, x)
    if name in _SCANS:
        if dtype is None and name in ("add", "multiply"):
            dtype = ufunc_dtypes(ufunc, (x.dtype,), reduction=True)[-1]
        op = _SCANS[name]
        if x.dtype == BOOL and dtype is None:
            result = _scan(op, x.astype(np.uint8), axis).astype(bool)
        else:
            result = _scan(op, x if dtype is None else x.astype(dtype), axis)
    elif name in ("logical_and", "logical_or"):
        op = "cummin" if name == "logical_and" else "cummax"
        result = _scan(op, (x != 0).astype(np.uint8), axis).astype(bool)
    elif name in _ASSOCIATIVE:
        result = _prefix(ufunc, x, axis)
    else:
        return _refuse_method(ufunc, "accumulate")
    return result if out is None else store(out, result)


def _scan(op: str, x: Tracer, axis: int) -> Tracer:
    return wrap(build().op(op, as_value(x), axis=axis, reverse=False))


def _prefix(ufunc: np.ufunc, x: Tracer, axis: int) -> Tracer:
    """All prefixes with an associative ufunc, by doubling the distance: log2(n) ops."""
    lead: tuple[Any, ...] = (slice(None),) * axis
    n, step = x.shape[axis], 1
    while step < n:
        later = apply(ufunc, x[(*lead, slice(0, n - step))], x[(*lead, slice(step, n))])
        x = FUNCTIONS["concatenate"].traced([x[(*lead, slice(0, step))], later], axis=axis)
        step *= 2
    return x


def _at(ufunc: np.ufunc, a: Any, indices: Any, values: Any = NO_VALUE) -> None:
    """`ufunc.at(a, indices, values)`: unbuffered, so repeated indices accumulate."""
    from ..indexing import update

    if not isinstance(a, Tracer):
        store(a, array(0))  # explains that out must be traced
    name = ufunc.__name__
    if ufunc.nin == 1:
        a[indices] = apply(ufunc, a[indices])
        return
    if name not in _AT:
        _refuse_method(ufunc, "at")
    dtypes = loop_dtypes(ufunc, (a, values))
    if not can_cast(dtypes[-1], a.dtype, "same_kind"):
        complain(
            errors.CastingError,
            f"Cannot cast ufunc '{name}' output from {dtypes[-1]!r} to {a.dtype!r} with casting "
            "rule 'same_kind'",
            f"convert the values with .astype(np.{a.dtype.name}).",
            operands={"destination": a, "values": values},
        )
    if name == "subtract":
        values = apply(np.negative, values)
    update(a, indices, values, _AT[name])


def attach_methods(public: Callable[..., Any], entry: ArrayFunction) -> None:
    """Give a public ufunc its methods: `jt.add.reduce(x)`, `jt.add.outer(x, y)`."""
    ufunc = entry.numpy
    assert isinstance(ufunc, np.ufunc)
    for name in ("reduce", "accumulate", "outer", "at", "reduceat"):
        made = ArrayFunction(
            f"{entry.name}.{name}", partial(method, ufunc, name), getattr(ufunc, name), None
        )
        setattr(public, name, made)
