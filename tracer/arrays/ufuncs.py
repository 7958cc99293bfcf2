"""NumPy's ufuncs over tracers: promotion, broadcasting, `out=`, `where=`, and the ufunc methods."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ...ir.types import BOOL, F64
from ..core.trace import Cast, current_trace
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from ..data.promotion import NoLoop, can_hold, check_python_int, ufunc_dtypes
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .common import broadcast_shape, broadcast_values, build, kind, operand, store
from .float_errors import checked, raising
from .lowerings import LOWERINGS
from .table import FUNCTIONS, function

COMPARISONS = frozenset("less less_equal greater greater_equal equal not_equal".split())


def apply(
    ufunc: np.ufunc,
    *operands: Any,
    dtype: Any = None,
    casting: str = "same_kind",
    where: Any = True,
) -> Any:
    """`ufunc(*operands)`: a tracer with fresh storage, or a tuple of them. Errors count only of
    elements for which `where` holds."""
    operands = tuple(operand(x) for x in operands)
    name = ufunc.__name__
    if name in COMPARISONS:
        decided = _compare_out_of_range(ufunc, operands)
        if decided is not None:
            return decided
    dtypes = loop_dtypes(ufunc, operands, dtype, casting)
    for x, d in zip(operands, dtypes, strict=False):
        if type(x) is int:
            check_python_int(x, d)
    if name == "power" and dtypes[0].kind in "iu" and 0 not in broadcast_shape(operands):
        _check_exponent(operands[1])
    if name == "power" and _is_root(operands[1], dtypes[1]):
        name, operands, dtypes = "sqrt", operands[:1], dtypes[:1]
    values = broadcast_values(operands, dtypes[: len(operands)], "operands")
    result = LOWERINGS[name](build(), *values)
    if raising():
        counted = None if where is True else as_value(operand(where), BOOL)
        checked(ufunc.__name__, values, result[0] if isinstance(result, tuple) else result, counted)
    if isinstance(result, tuple):
        return tuple(wrap_like(v, operands) for v in result)
    return wrap_like(result, operands)


def loop_dtypes(
    ufunc: np.ufunc, operands: Sequence[Any], dtype: Any = None, casting: str = "same_kind"
) -> tuple[Any, ...]:
    """The loop's dtypes, or a TypeError that shows the operands."""
    kinds = tuple(kind(x) for x in operands)
    wanted = dtype if dtype is None or isinstance(dtype, tuple) else np.dtype(dtype)
    try:
        dtypes = ufunc_dtypes(ufunc, kinds, wanted, casting)
        if dtypes[0] == F64 and len(kinds) > 1 and dtype is None:
            _note_cast(operands, kinds)
        return dtypes
    except TypeError as error:
        what, remedy = str(error), "convert an operand with .astype(dtype)."
        if isinstance(error, NoLoop):
            remedy = error.remedy
        names = {f"operand {i}": x for i, x in enumerate(operands)}
        complain(errors.DTypeError, what, f"{remedy}", operands=names, cause=error)


def _note_cast(operands: Sequence[Any], kinds: Sequence[Any]) -> None:
    """Note that arrays of smaller dtypes become float64, if it is for a scalar's sake."""
    pairs = list(zip(operands, kinds, strict=True))
    arrays = [k for x, k in pairs if isinstance(x, Tracer) and x.shape]
    scalars = [(x, k) for x, k in pairs if not np.ndim(x) and k in (F64, float)]
    trace = current_trace()
    if trace and arrays and scalars and all(k.kind in "iuf" and k != F64 for k in arrays):
        x, kind = scalars[0]
        shown = "a scalar" if isinstance(x, Tracer) else repr(x)
        trace.casts.append(Cast(user_line(), str(arrays[0]), shown, kind is float))


def _check_exponent(exponent: Any) -> None:
    if isinstance(exponent, (int, np.generic, np.ndarray)) and np.any(np.asarray(exponent) < 0):
        raise ValueError(
            "Integers to negative integer powers are not allowed; convert the base to a float: "
            "x.astype(np.float64) ** n"
        )


def _is_root(exponent: Any, dtype: np.dtype[Any]) -> bool:
    """Whether NumPy's loop of `dtype` takes roots: they differ from powers at -0.0 and -inf."""
    if isinstance(exponent, Tracer) or np.ndim(exponent) or dtype.kind != "f" or exponent != 0.5:
        return False
    return _takes_roots(dtype)


@cache
def _takes_roots(dtype: np.dtype[Any]) -> bool:
    """Since NumPy 2.4, of float32 and float64."""
    with np.errstate(invalid="ignore"):
        return bool(np.isnan(np.power(dtype.type(-np.inf), dtype.type(0.5))))


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
        dtype = _signature(ufunc, signature)
    if len(inputs) > ufunc.nin:
        inputs, out = inputs[: ufunc.nin], inputs[ufunc.nin :]
    if len(inputs) != ufunc.nin:
        raise TypeError(
            f"{ufunc.__name__}() takes from {ufunc.nin} to {ufunc.nargs} positional arguments but "
            f"{len(inputs)} were given"
        )
    if signature is None and dtype is not None and ufunc.nout == 1:
        dtype = np.dtype(dtype)
    result = apply(ufunc, *inputs, dtype=dtype, casting=casting, where=where)
    if ufunc.nout > 1:
        outs = (None,) * ufunc.nout if out is None else out
        pairs = zip(result, outs, strict=True)
        return tuple(
            _chosen(r, where) if o is None else store(o, r, casting, where) for r, o in pairs
        )
    if isinstance(out, tuple):
        out = out[0] if out else None
    if out is not None:
        return store(out, result, casting, where)
    return _chosen(result, where)


def _chosen(result: Tracer, where: Any) -> Tracer:
    """The result where `where` holds, else 0."""
    if where is True:
        return result
    shape = broadcast_shape([result, where])
    b = build()
    new = b.broadcast_to(as_value(result), shape)
    mask = b.broadcast_to(as_value(operand(where), BOOL), shape)
    return wrap(b.select(mask, new, b.full_like(new, 0)))


def _signature(ufunc: np.ufunc, signature: str | tuple[Any, ...]) -> tuple[Any, ...]:
    """A dtype, or None, for each operand: of `(np.float64, None, None)` or "dd->d"."""
    if isinstance(signature, str) and "->" in signature:
        signature = tuple(signature.replace("->", ""))
    if len(signature) == 1 and ufunc.nargs > 1:
        raise TypeError("Use `dtype` or fill the tuple with more than one 'None'.")
    if len(signature) != ufunc.nargs:
        raise ValueError(
            f"a type-tuple must be specified of length 1 or {ufunc.nargs} for ufunc "
            f"{ufunc.__name__!r}"
        )
    return tuple(None if part is None else np.dtype(part) for part in signature)


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
