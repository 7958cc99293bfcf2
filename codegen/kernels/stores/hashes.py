"""Hashes as CPython has them: of ints, bools, floats, and tuples of those.

A number is hashed as the fraction that it is, modulo the prime 2**61 - 1, so that equal numbers have one
hash whatever their classes. A tuple mixes the hashes of its elements as xxHash does its lanes.
A *form* tells where tuples are: `.` is a number, `(..)` a pair, `N` is None.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...llvm.builder import Value
from .layout import DTypes, Records, StoreFunction

_BITS = 61
_PRIME = (1 << _BITS) - 1
_INFINITE = 314159
_OF_NONE = 0xFCA86420  # from 3.12 on; before that it is an address, of which nothing follows
_MANTISSA, _BIAS = 52, 1075
_LANE_1, _LANE_2, _LANE_5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x27D4EB2F165667C5
_OF_LENGTH = _LANE_5 ^ 3527539
_INSTEAD = 1546275796  # of a tuple whose hash would be -1


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


@cache
def hash_like_python(key: DTypes, form: str) -> StoreFunction:
    """The hash of a key, which is never -1."""
    name = "".join({"(": "a", ")": "z", ".": "x", "N": "n"}.get(c, "u") for c in form)
    f = StoreFunction("i64", f"python_hash_{Records(key).name}_{name}", **Records(key).params("k"))
    words = iter(zip(f.args, key, strict=True))

    def part(text: str) -> tuple[Value, str]:
        """The hash of what begins here, and what comes after that."""
        head, text = text[0], text[1:]
        if head == ".":
            value, dtype = next(words)
            return _of_number(f, value, dtype), text
        if head != "(":
            return f.literal("i64", _OF_NONE), text
        lanes = []
        while text[0] != ")":
            lane, text = part(text)
            lanes.append(lane)
        return _of_tuple(f, lanes), text[1:]

    f.ret(part(form)[0])
    return f


def _of_tuple(f: StoreFunction, lanes: list[Value]) -> Value:
    total = f.literal("i64", _signed(_LANE_5))
    for lane in lanes:
        total = total + lane * _signed(_LANE_2)
        total = ((total << 31) | (total >> 33)) * _signed(_LANE_1)
    total = total + _signed(len(lanes) ^ _OF_LENGTH)
    return f.select(total.eq(-1), _INSTEAD, total)


def _of_number(f: StoreFunction, value: Value, dtype: np.dtype[np.generic]) -> Value:
    if dtype.kind == "f":
        value = value if dtype.itemsize == 8 else f.convert("fpext", value, "double")
        return f.run(_of_double(), value)
    if dtype.kind == "b":
        return f.convert("zext", value, "i64")
    if value.type != "i64":
        value = f.convert("sext" if dtype.kind == "i" else "zext", value, "i64")
    how = "srem" if dtype.kind == "i" else "urem"
    return _but_minus_one(f, f.binary(how, value, _PRIME))


def _but_minus_one(f: StoreFunction, h: Value) -> Value:
    return f.select(h.eq(-1), -2, h)


@cache
def _of_double() -> StoreFunction:
    """m * 2**e, of 53 bits m: m turned by e, as 2**61 is 1. NaNs get 0 (Python hashes addresses)."""
    f = StoreFunction("i64", "python_hash_of_double", x="double")
    bits = f.x.to("bitcast", "i64")
    exponent = (bits >> _MANTISSA) & 0x7FF
    fraction = bits & ((1 << _MANTISSA) - 1)
    finite, other = f.later("finite"), f.later("other")
    f.branch(exponent.eq(0x7FF), other, finite)
    f.at(other)
    infinite = f.select(bits < 0, -_INFINITE, f.literal("i64", _INFINITE))
    f.ret(f.select(fraction.eq(0), infinite, 0))
    f.at(finite)
    tiny = exponent.eq(0)
    mantissa = f.select(tiny, fraction, fraction | (1 << _MANTISSA))
    power = f.select(tiny, 1, exponent) - _BIAS
    turn = f.binary("urem", power + 18 * _BITS, _BITS)  # the least power is -1074
    turned = ((mantissa << turn) & _PRIME) | (mantissa >> (f.literal("i64", _BITS) - turn))
    f.ret(_but_minus_one(f, f.select(bits < 0, f.literal("i64", 0) - turned, turned)))
    return f
