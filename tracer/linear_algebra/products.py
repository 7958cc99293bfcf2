"""Products of matrices and vectors, batched: matmul, matvec, vecmat, vecdot, which are ufuncs in NumPy.

What all contractions share is here, too: the dot op, and the dtype that sums are computed in.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import BOOL, F32, I32, I64, is_complex, is_float
from ..arrays.common import array, axis_index, build, common_dtype, finish, finish_ufunc, ints
from ..arrays.float_errors import checked, raising
from ..arrays.movement import moveaxis
from ..arrays.table import eagerly, function, numpy_function, refuse_option
from ..core.tracers import Tracer, as_value, wrap
from ..data.promotion import DType, can_cast, canonical, finfo
from ..messages import errors
from ..messages.errors import complain

Axes = tuple[int, ...]


def contract(
    a: Value, b: Value, axes: tuple[Axes, Axes], batch: tuple[Axes, Axes] = ((), ())
) -> Value:
    """The dot op. Products of booleans are "and", their sums "or": computed by counting.

    Numbers that were bool or had 8 bits are multiplied in float32, for which machines are built,
    where every sum is an integer that float32 holds: the results are the same.
    """
    build_ = build()
    small = _small(a), _small(b)
    length = math.prod(a.shape[axis] for axis in axes[0])
    if all(small) and length * _largest(small[0]) * _largest(small[1]) <= 2**24:
        x, y = (build_.convert(source, dtype=F32) for source in small if source is not None)
        return build_.convert(build_.dot(x, y, contract=axes, batch=batch), dtype=a.dtype)
    if a.dtype != BOOL:
        product = build_.dot(a, b, contract=axes, batch=batch)
        if raising() and 0 not in (*a.shape, *b.shape):
            checked("matmul", [as_value(abs(wrap(x)).max()) for x in (a, b)], product)
        return product
    a, b = (build_.convert(x, dtype=I32) for x in (a, b))
    return build_.convert(build_.dot(a, b, contract=axes, batch=batch), dtype=BOOL)


def _small(x: Value) -> Value | None:
    """`x` itself if it is boolean; what it was before it was widened, if that was bool or had 8 bits."""
    if x.dtype == BOOL:
        return x
    if x.dtype not in (I32, I64) or x.op is None or x.op.name != "convert":
        return None
    (source,) = x.op.operands
    return source if source.dtype.kind in "biu" and source.dtype.itemsize == 1 else None


def _largest(x: Value | None) -> int:
    """The largest magnitude of such a number."""
    assert x is not None
    return 1 if x.dtype == BOOL else 255 if x.dtype.kind == "u" else 128


def mismatch(name: str, a: Tracer, b: Tracer, m: int, n: int) -> Any:
    complain(
        errors.ShapeError,
        f"{name}: the contracted axes have different sizes, {m} and {n}, in shapes "
        f"{a.shape} and {b.shape}",
        "the last axis of the first operand must match the axis of the second that it is summed "
        "with; transpose one of them (x.T).",
        operands={"a": a, "b": b},
    )


def accumulator(name: str, dtype: DType, preferred: Any) -> DType:
    """The dtype in which products are made and summed, which the result has: that of the operands, or
    the one that the caller prefers, which must hold all values of theirs."""
    if preferred is None:
        return dtype
    wanted = canonical(preferred)
    if not _holds(wanted, dtype):
        complain(
            errors.CastingError,
            f"{name}: preferred_element_type={wanted} does not hold all values of {dtype}, the "
            "dtype of the operands",
            f"prefer a wider dtype, or convert the result: {name}(...).astype({wanted.name!r}).",
        )
    return wanted


def _holds(wanted: DType, dtype: DType) -> bool:
    """Whether all values of `dtype` are values of `wanted`. NumPy does not know that of ml_dtypes."""
    if not (is_float(wanted) and is_float(dtype)):
        return can_cast(dtype, wanted, "safe")
    a, b = finfo(wanted), finfo(dtype)
    fine = a.nmant >= b.nmant and float(a.max) >= float(b.max)
    return fine and float(a.smallest_subnormal) <= float(b.smallest_subnormal)


def values(name: str, a: Tracer, b: Tracer, preferred: Any = None) -> tuple[Value, Value]:
    """The operands of a product in the dtype that it is computed in."""
    dtype = accumulator(name, common_dtype(a, b), preferred)
    return as_value(a, dtype), as_value(b, dtype)


def accumulating(*names: str) -> Callable[[Any], Any]:
    """`function` for contractions that take `preferred_element_type` too, eagerly as well."""

    def enter(traced: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            plain = numpy_function(name)
            assert plain is not None
            function(name, reference=_with_preference(plain, traced))(traced)
        return traced

    return enter


def _with_preference(plain: Callable[..., Any], traced: Callable[..., Any]) -> Callable[..., Any]:
    own = eagerly(traced)

    def reference(*args: Any, preferred_element_type: Any = None, **options: Any) -> Any:
        if preferred_element_type is None:
            return plain(*args, **options)
        return own(*args, preferred_element_type=preferred_element_type, **options)

    reference.__doc__ = (plain.__doc__ or "") + _PREFERENCE
    functools.update_wrapper(reference, traced, assigned=("__name__",), updated=())
    return reference


_PREFERENCE = """

jitney: `preferred_element_type` is the dtype in which products are made and summed, and which the
result has: int32 for matrices of int8, float32 for those of float16, bfloat16 and floats of 8 bits.
"""


# NumPy's ufuncs with a signature


def matrix_product(x1: Any, x2: Any, preferred: Any = None) -> Tracer:
    """`x1 @ x2`."""
    a, b = array(x1), array(x2)
    for i, x in enumerate((a, b)):
        _check_rank("matmul", i, x, 1, "(n?,k),(k,m?)->(n?,m?)")
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        mismatch("matmul", a, b, a.shape[-1], b.shape[-2 if b.ndim > 1 else 0])
    u, v = values("matmul", a, b, preferred)
    if b.ndim <= 2:
        return wrap(contract(u, v, ((a.ndim - 1,), (max(b.ndim - 2, 0),))))
    if a.ndim == 1:
        return wrap(contract(v, u, ((b.ndim - 2,), (0,))))
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    lead = _lead("matmul", a, b, lead_a, lead_b)
    # Axes that only one side has, or that one side repeats, are free axes of the other.
    build_ = build()
    if all(n == 1 for n in lead_b) and len(lead_b) <= len(lead_a):
        v = build_.reshape(v, shape=b.shape[-2:])
        return wrap(contract(u, v, ((a.ndim - 1,), (0,))))
    u = build_.broadcast_to(u, (*lead, *a.shape[-2:]))
    v = build_.broadcast_to(v, (*lead, *b.shape[-2:]))
    rank = len(lead)
    same = tuple(range(rank))
    return wrap(contract(u, v, ((rank + 1,), (rank,)), (same, same)))


def _with_vector(name: str, cores: str, free_a: int, free_b: int) -> Callable[..., Tracer]:
    """A product of operands of which one is a vector; so many core dims of each are not summed over."""

    def compute(x1: Any, x2: Any, preferred: Any = None) -> Tracer:
        a, b = array(x1), array(x2)
        _check_rank(name, 0, a, 1 + free_a, cores)
        _check_rank(name, 1, b, 1 + free_b, cores)
        if a.shape[-1] != b.shape[-1 - free_b]:
            mismatch(name, a, b, a.shape[-1], b.shape[-1 - free_b])
        return _batched(name, a if free_a else _conjugate(a), b, free_a, free_b, preferred)

    return _product(name, (1 + free_a, 1 + free_b, free_a + free_b), compute)


def _conjugate(x: Tracer) -> Tracer:
    return wrap(build().conj(as_value(x))) if is_complex(x.dtype) else x


def _batched(name: str, a: Tracer, b: Tracer, free_a: int, free_b: int, preferred: Any) -> Tracer:
    """A sum over the last axis that is not free, for each of the leading axes, broadcast."""
    lead_a = a.shape[: a.ndim - 1 - free_a]
    lead_b = b.shape[: b.ndim - 1 - free_b]
    lead = _lead(name, a, b, lead_a, lead_b)
    u, v = values(name, a, b, preferred)
    build_ = build()
    u = build_.broadcast_to(u, (*lead, *a.shape[len(lead_a) :]))
    v = build_.broadcast_to(v, (*lead, *b.shape[len(lead_b) :]))
    rank = len(lead)
    same = tuple(range(rank))
    return wrap(contract(u, v, ((rank + free_a,), (rank,)), (same, same)))


def _lead(name: str, a: Tracer, b: Tracer, lead_a: Axes, lead_b: Axes) -> Axes:
    try:
        return np.broadcast_shapes(lead_a, lead_b)
    except ValueError as error:
        complain(
            errors.ShapeError,
            f"{name}: the leading axes {lead_a} and {lead_b} do not broadcast together",
            "leading axes must be equal or 1.",
            operands={"a": a, "b": b},
            cause=error,
        )


def _check_rank(name: str, i: int, x: Tracer, least: int, signature: str) -> None:
    if x.ndim < least:
        raise ValueError(
            f"{name}: Input operand {i} does not have enough dimensions (has {x.ndim}, gufunc core "
            f"with signature {signature} requires {least})"
        )


def _product(
    name: str, cores: tuple[int, int, int], compute: Callable[..., Tracer]
) -> Callable[..., Tracer]:
    """Enter a ufunc with a signature, of operands and a result with so many core dims."""

    def traced(
        x1: Any,
        x2: Any,
        /,
        out: Any = None,
        *,
        axes: Any = None,
        axis: Any = None,
        keepdims: bool = False,
        dtype: Any = None,
        casting: str = "same_kind",
        order: str = "K",
        subok: bool = True,
        signature: Any = None,
        preferred_element_type: Any = None,
    ) -> Tracer:
        if signature is not None:
            refuse_option(name, signature=signature)
        a, b = array(x1), array(x2)
        if dtype is not None:
            a, b = (_cast(name, x, dtype, casting) for x in (a, b))
        core_axes = _core_axes(name, cores, (a, b), axes, axis, keepdims)
        a, b = (moveaxis(x, p, range(-len(p), 0)) for x, p in zip((a, b), core_axes, strict=False))
        result = compute(a, b, preferred_element_type)
        if keepdims:
            result = result[..., None]
        if axes is not None or axis is not None:
            result = moveaxis(result, range(-len(core_axes[2]), 0), core_axes[2])
        (out,) = out if isinstance(out, tuple) else (out,)
        if isinstance(out, Tracer) and axes is axis is None and not keepdims:
            core = len(core_axes[2])  # these axes are not broadcast
            if name == "matmul":
                core -= (a.ndim == 1) + (b.ndim == 1)
            if out.shape[out.ndim - core :] == result.shape[result.ndim - core :]:
                return finish_ufunc(result, out, casting)
        return finish(result, out, casting)

    accumulating(name)(traced)
    return traced


def _cast(name: str, x: Tracer, dtype: Any, casting: str) -> Tracer:
    wanted = canonical(dtype)
    if x.weak is None and not can_cast(x.dtype, wanted, casting):
        complain(
            errors.CastingError,
            f"Cannot cast ufunc {name!r} input from {x.dtype!r} to {wanted!r} with casting rule "
            f"{casting!r}",
            "pass casting='unsafe', or convert the operand with .astype.",
            operands={"x": x},
        )
    return x.astype(wanted)


def _core_axes(
    name: str,
    cores: tuple[int, int, int],
    operands: Sequence[Tracer],
    axes: Any,
    axis: Any,
    keepdims: bool,
) -> list[Axes]:
    """Where the core dims of both operands and of the result are: their last ones, unless `axes` or
    `axis` says otherwise. An operand may have fewer (a vector in matmul)."""
    if (axis is not None or keepdims) and cores != (1, 1, 0):
        option = "axis" if axis is not None else "keepdims"
        raise TypeError(f"{name}: {option} can only be used with a single shared core dimension")
    if axes is not None and axis is not None:
        raise TypeError("cannot specify both 'axis' and 'axes'")
    if axis is not None:
        at = (operator.index(axis),)
        axes = [at, at, at if keepdims else ()]
    counts = (*cores[:2], 1 if keepdims else cores[2])
    if axes is None:
        core_axes: list[Axes] = [tuple(range(-n, 0)) for n in counts]
    else:
        if not isinstance(axes, list) or len(axes) not in (3, 3 - (not cores[2])):
            raise ValueError(f"{name}: axes should be a list with an entry for each operand")
        rest: list[Axes] = [tuple(range(-counts[2], 0))] * (3 - len(axes))
        core_axes = [ints(entry) for entry in axes] + rest
        if not cores[2] and len(core_axes[2]) != counts[2]:
            raise np.exceptions.AxisError(
                f"{name}: operand 2 has {counts[2]} core dimensions, but axes has {core_axes[2]} for it"
            )
    if axes is None:
        core_axes[:2] = [
            p[max(len(p) - x.ndim, 0) :] for p, x in zip(core_axes, operands, strict=False)
        ]
    return [
        tuple(axis_index(i, x.ndim, x) for i in p)
        for p, x in zip(core_axes[:2], operands, strict=True)
    ] + [core_axes[2]]


matmul = _product("matmul", (2, 2, 2), matrix_product)
matvec = _with_vector("matvec", "(m,n),(n)->(m)", 1, 0)
vecmat = _with_vector("vecmat", "(n),(n,m)->(m)", 0, 1)
vecdot = _with_vector("vecdot", "(n),(n)->()", 0, 0)


@accumulating("linalg.matmul")
def linalg_matmul(x1: Any, x2: Any, /, *, preferred_element_type: Any = None) -> Tracer:
    return matrix_product(x1, x2, preferred_element_type)


@accumulating("linalg.vecdot")
def linalg_vecdot(
    x1: Any, x2: Any, /, *, axis: int = -1, preferred_element_type: Any = None
) -> Tracer:
    return vecdot(x1, x2, axis=axis, preferred_element_type=preferred_element_type)
