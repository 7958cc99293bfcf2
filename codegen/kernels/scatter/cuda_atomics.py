"""Atomic updates of one element: whatever the order of those that meet, the result is the same.

That holds for integers, and for the least and largest of floats: where NaN is among them it is NaN, and
0 is larger than -0. Sums of floats depend on the order by their rounding.
"""

from __future__ import annotations

from ...cuda.emitter import GLOBAL, ThreadEmitter
from ...llvm.instructions import SCALAR_TYPES
from ...scalar import DType

_NAN_BITS = {16: 0x7E00, 32: 0x7FC00000, 64: 0x7FF8000000000000}


def combine(e: ThreadEmitter, op: str, dtype: DType, place: str, text: str) -> None:
    """Set, add to, multiply, min or max the element at a place, whose text names its address space."""
    ty = SCALAR_TYPES[dtype]
    if op == "set":
        e.store_elements(dtype, text, place, 1)
    elif op == "add":
        _atomic(e, "fadd" if dtype.kind == "f" else "add", place, f"{ty} {text}")
    elif op == "multiply":
        _multiply(e, dtype, place, text)
    elif dtype.kind == "f":
        _extreme(e, op, dtype, place, text)
    else:
        _atomic(e, op if dtype.kind == "i" else f"u{op}", place, f"{ty} {text}")


def _scope(place: str) -> str:
    return f'syncscope("{"device" if place.startswith(GLOBAL) else "block"}")'


def _atomic(e: ThreadEmitter, op: str, place: str, value: str) -> None:
    e.fresh_of(f"atomicrmw {op} ptr {place}, {value} {_scope(place)} monotonic")


def _extreme(e: ThreadEmitter, op: str, dtype: DType, place: str, text: str) -> None:
    """The bits of floats are in order as integers: upwards where the sign is 0, downwards where it is 1.

    A NaN gets the sign with which it beats all numbers. One that is there already, with any sign, stays.
    """
    ty, bits = SCALAR_TYPES[dtype], 8 * dtype.itemsize
    whole = f"i{bits}"
    nan = _NAN_BITS[bits] - (1 << (bits - 1) if op == "min" else 0)
    own = e.value_of(f"bitcast {ty} {text} to {whole}")
    is_nan = e.value_of(f"fcmp uno {ty} {text}, {text}")
    own = e.value_of(f"select i1 {is_nan}, {whole} {nan}, {whole} {own}")
    align = dtype.itemsize
    old = e.fresh_of(f"load atomic {whole}, ptr {place} {_scope(place)} monotonic, align {align}")
    before = e.value_of(f"bitcast {whole} {old} to {ty}")
    better = e.value_of(f"fcmp {'uge' if op == 'max' else 'ule'} {ty} {text}, {before}")
    number = e.value_of(f"fcmp ord {ty} {before}, {before}")
    with e.only_if(e.value_of(f"and i1 {better}, {number}")):
        positive = e.value_of(f"icmp sge {whole} {own}, 0")
        negative = e.value_of(f"xor i1 {positive}, true")
        with e.only_if(positive):
            _atomic(e, op, place, f"{whole} {own}")
        with e.only_if(negative):
            _atomic(e, "umin" if op == "max" else "umax", place, f"{whole} {own}")


def _multiply(e: ThreadEmitter, dtype: DType, place: str, text: str) -> None:
    """Swapped in as long as somebody else was there first."""
    ty = SCALAR_TYPES[dtype]
    scope, align = _scope(place), dtype.itemsize
    first = e.fresh_of(f"load atomic {ty}, ptr {place} {scope} monotonic, align {align}")
    again, done = e.later("again"), e.later("done")
    (old,) = e.parameters(again, ty)
    e.jump(again, first)
    e.at(again)
    with e.scope():
        new = e.fresh_of(f"mul {ty} {old}, {text}")
        order = f"{scope} monotonic monotonic"
        pair = e.fresh_of(f"cmpxchg ptr {place}, {ty} {old}, {ty} {new} {order}")
        seen = e.fresh_of(f"extractvalue {{ {ty}, i1 }} {pair}, 0")
        swapped = e.fresh_of(f"extractvalue {{ {ty}, i1 }} {pair}, 1")
    e.fork(swapped, done, (), again, (seen,))
    e.at(done)
