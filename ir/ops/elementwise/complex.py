"""Complex numbers and their parts: `real`, `imag`, `conj`, and `complex`, which puts parts together.

Derivatives follow JAX. A tangent moves as the numbers do. A cotangent ct of z pairs with a tangent t
as Re(ct t), so transposes are not conjugated, and for a real function f the cotangent of z = x + iy is
df/dx - i df/dy: of |z|^2 it is 2 conj(z), and z - step * conj(gradient) goes downhill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...batching.transform import batch_elementwise
from ...build import Builder, Grads, Wanted
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import OpDef, register
from ...types import TensorType, complex_dtype, real_dtype
from ..families import (
    FLOAT,
    IDENTITY,
    Arg,
    Array,
    Example,
    check_arity,
    check_kind,
    check_same,
)

COMPLEX = "c"
_SHAPES = ((2, 3), (), (0, 2))


def _part(name: str, reference: Callable[[Array], Array], transpose: Any) -> None:
    """An op of one complex operand that is linear over the reals."""

    def infer(*types: TensorType) -> TensorType:
        check_arity(types, 1)
        check_kind(types[0], COMPLEX)
        return types[0] if name == "conj" else types[0].with_dtype(real_dtype(types[0].dtype))

    def jvp(b: Builder, op: Op, tangents: Sequence[Value]) -> list[Value | None]:
        (t,) = tangents
        return [b.op(name, t)]

    def vjp(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
        (ct,) = cotangents
        return [transpose(b, ct)]

    _register(name, infer, reference, jvp, vjp, COMPLEX, 1)


def _register(
    name: str, infer: Any, reference: Any, jvp: Any, vjp: Any, kinds: str, count: int
) -> None:
    examples = tuple(Example(tuple(Arg(shape) for _ in range(count))) for shape in _SHAPES)
    register(
        OpDef(
            name,
            "elementwise",
            infer,
            lambda *arrays: np.asarray(reference(*arrays)),
            jvp,
            vjp,
            cost=Cost.CHEAP,
            pointwise=True,
            batch=batch_elementwise,
            dtypes=kinds,
            extra={"partials": (IDENTITY,) * count, "domain": (-2.0, 2.0), "examples": examples},
        )
    )


def _imaginary(b: Builder, ct: Value) -> Value:
    """-i ct"""
    made: Value = b.op("complex", b.full_like(ct, 0), b.op("neg", ct))
    return made


_part("real", np.real, lambda b, ct: b.op("convert", ct, dtype=complex_dtype(ct.dtype)))
_part("imag", np.imag, _imaginary)
_part("conj", np.conjugate, lambda b, ct: b.op("conj", ct))


def _infer_complex(*types: TensorType) -> TensorType:
    check_arity(types, 2)
    for type in types:
        check_kind(type, FLOAT)
    check_same(types)
    return types[0].with_dtype(complex_dtype(types[0].dtype))


def _complex(x: Array, y: Array) -> Array:
    out = np.empty(x.shape, complex_dtype(x.dtype))
    out.real, out.imag = x, y  # x + 1j * y would spoil infinities and signed zeros
    return out


def _jvp_complex(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    if all(t is None for t in tangents):
        return [None]
    pairs = zip(tangents, op.operands, strict=True)
    return [b.op("complex", *(b.zeros(v.type) if t is None else t for t, v in pairs))]


def _vjp_complex(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    (ct,) = cotangents
    parts = [
        b.op("real", ct) if wanted[0] else None,
        b.op("neg", b.op("imag", ct)) if wanted[1] else None,
    ]
    own = op.operands[0].dtype  # smaller than the parts of the smallest complex numbers, perhaps
    return [p if p is None or p.dtype == own else b.op("convert", p, dtype=own) for p in parts]


_register("complex", _infer_complex, _complex, _jvp_complex, _vjp_complex, FLOAT, 2)
