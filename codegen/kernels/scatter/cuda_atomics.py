"""Atomic updates of one element: whatever the order of those that meet, the result is the same.

That holds for integers, and for the least and largest of floats: where NaN is among them it is NaN, and
0 is larger than -0. Sums of floats depend on the order by their rounding.
"""

from __future__ import annotations

from ...cuda.emitter import GLOBAL, ThreadBuilder
from ...llvm.instructions import SCALAR_TYPES
from ...scalar import DType

_NAN_BITS = {16: 0x7E00, 32: 0x7FC00000, 64: 0x7FF8000000000000}


def combine(b: ThreadBuilder, op: str, dtype: DType, place: str, text: str) -> None:
    """Set, add to, multiply, min or max the element at a place, whose text names its address space."""
    ty = SCALAR_TYPES[dtype]
    if op == "set":
        b.store_elements(dtype, text, place, 1)
    elif op == "add":
        _atomic(b, "fadd" if dtype.kind == "f" else "add", place, f"{ty} {text}")
    elif op == "multiply":
        _multiply(b, dtype, place, text)
    elif dtype.kind == "f":
        _extreme(b, op, dtype, place, text)
    else:
        _atomic(b, op if dtype.kind == "i" else f"u{op}", place, f"{ty} {text}")


def _scope(place: str) -> str:
    return f'syncscope("{"device" if place.startswith(GLOBAL) else "block"}")'


def _atomic(b: ThreadBuilder, op: str, place: str, value: str) -> None:
    b.fresh_of(f"atomicrmw {op} ptr {place}, {value} {_scope(place)} monotonic")


def _extreme(b: ThreadBuilder, op: str, dtype: DType, place: str, text: str) -> None:
    """The bits of floats are in order as integers: upwards where the sign is 0, downwards where it is 1.

    A NaN gets the sign with which it beats all numbers. One that is there already, with any sign, stays.
    """
    ty, bits = SCALAR_TYPES[dtype], 8 * dtype.itemsize
    whole = f"i{bits}"
    nan = _NAN_BITS[bits] - (1 << (bits - 1) if op == "min" else 0)
    own = b.value_of(f"bitcast {ty} {text} to {whole}")
    is_nan = b.value_of(f"fcmp uno {ty} {text}, {text}")
    own = b.value_of(f"select i1 {is_nan}, {whole} {nan}, {whole} {own}")
    align = dtype.itemsize
    old = b.fresh_of(f"load atomic {whole}, ptr {place} {_scope(place)} monotonic, align {align}")
    before = b.value_of(f"bitcast {whole} {old} to {ty}")
    better = b.value_of(f"fcmp {'uge' if op == 'max' else 'ule'} {ty} {text}, {before}")
    number = b.value_of(f"fcmp ord {ty} {before}, {before}")
    with b.when(b.value_of(f"and i1 {better}, {number}")):
        positive = b.value_of(f"icmp sge {whole} {own}, 0")
        negative = b.value_of(f"xor i1 {positive}, true")
        with b.when(positive):
            _atomic(b, op, place, f"{whole} {own}")
        with b.when(negative):
            _atomic(b, "umin" if op == "max" else "umax", place, f"{whole} {own}")


def _multiply(b: ThreadBuilder, dtype: DType, place: str, text: str) -> None:
    """Swapped in as long as somebody else was there first."""
    ty = SCALAR_TYPES[dtype]
    scope, align = _scope(place), dtype.itemsize
    first = b.fresh_of(f"load atomic {ty}, ptr {place} {scope} monotonic, align {align}")
    again, done = b.later("again"), b.later("done")
    (old,) = b.parameters(again, ty)
    b.jump(again, first)
    b.at(again)
    with b.scope():
        new = b.fresh_of(f"mul {ty} {old}, {text}")
        order = f"{scope} monotonic monotonic"
        pair = b.fresh_of(f"cmpxchg ptr {place}, {ty} {old}, {ty} {new} {order}")
        seen = b.fresh_of(f"extractvalue {{ {ty}, i1 }} {pair}, 0")
        swapped = b.fresh_of(f"extractvalue {{ {ty}, i1 }} {pair}, 1")
    b.fork(swapped, done, (), again, (seen,))
    b.at(done)
