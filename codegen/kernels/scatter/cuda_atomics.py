"""Atomic updates of one element: whatever the order of those that meet, the result is the same.

That holds for integers, and for the least and largest of floats: where NaN is among them it is NaN, and
0 is larger than -0. Sums of floats depend on the order by their rounding.
"""

from __future__ import annotations

from ...cuda.emitter import GLOBAL, ThreadBuilder
from ...llvm.builder import Value
from ...llvm.instructions import SCALAR_TYPES
from ...scalar import DType

_NAN_BITS = {16: 0x7E00, 32: 0x7FC00000, 64: 0x7FF8000000000000}


def combine(b: ThreadBuilder, op: str, dtype: DType, address: Value, value: Value) -> None:
    """Set, add to, multiply, min or max the element at an address, in global or shared memory."""
    if op == "set":
        b.store_elements(dtype, value, address)
    elif op == "add":
        _atomic(b, "fadd" if dtype.kind == "f" else "add", address, value)
    elif op == "multiply":
        _multiply(b, dtype, address, value)
    elif dtype.kind == "f":
        _extreme(b, op, dtype, address, value)
    else:
        _atomic(b, op if dtype.kind == "i" else f"u{op}", address, value)


def _scope(address: Value) -> str:
    return f'syncscope("{"device" if address.type == GLOBAL else "block"}")'


def _atomic(b: ThreadBuilder, op: str, address: Value, value: Value) -> None:
    b.update_atomic(op, address, value, f"{_scope(address)} monotonic")


def _extreme(b: ThreadBuilder, op: str, dtype: DType, address: Value, value: Value) -> None:
    """The bits of floats are in order as integers: upwards where the sign is 0, downwards where it is 1.

    A NaN gets the sign with which it beats all numbers. One that is there already, with any sign, stays.
    """
    ty, bits = SCALAR_TYPES[dtype], 8 * dtype.itemsize
    whole = f"i{bits}"
    nan = _NAN_BITS[bits] - (1 << (bits - 1) if op == "min" else 0)
    own = value.to("bitcast", whole)
    is_nan = b.compare_floats("uno", value, value)
    own = b.select(is_nan, nan, own)
    old = b.load_atomic(whole, address, f"{_scope(address)} monotonic")
    before = old.to("bitcast", ty)
    better = b.compare_floats("uge" if op == "max" else "ule", value, before)
    number = b.compare_floats("ord", before, before)
    with b.when(better & number):
        positive = own >= 0
        negative = ~positive
        with b.when(positive):
            _atomic(b, op, address, own)
        with b.when(negative):
            _atomic(b, "umin" if op == "max" else "umax", address, own)


def _multiply(b: ThreadBuilder, dtype: DType, address: Value, value: Value) -> None:
    """Swapped in as long as somebody else was there first."""
    ty = SCALAR_TYPES[dtype]
    scope = _scope(address)
    first = b.load_atomic(ty, address, f"{scope} monotonic")
    again, done = b.later("again"), b.later("done")
    (old,) = b.parameters(again, ty)
    b.jump(again, first)
    b.at(again)
    with b.scope():
        new = old * value
        seen, swapped = b.swap_atomic(address, old, new, f"{scope} monotonic monotonic")
    b.fork(swapped, done, (), again, (seen,))
    b.at(done)
