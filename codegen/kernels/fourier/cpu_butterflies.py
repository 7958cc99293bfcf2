"""Transforms of a few complex numbers, each a pair of vectors: without twiddles, forwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...llvm.builder import Value

Number = tuple[Value, Value]  # the parts of a complex number in all lanes
Constant = Callable[[float], Value]  # a real number in all lanes


def butterfly(x: Sequence[Number], constant: Constant) -> list[Number]:
    """y[k] = sum over m of x[m] exp(-2 pi i k m / r), for r of 2, 4, 8 or odd."""
    match len(x):
        case 2:
            return [_plus(*x), _minus(*x)]
        case 4:
            return _four(*x)
        case 8:
            return _eight(x, constant(math.sqrt(0.5)))
    return _odd(x, constant)


def _plus(a: Number, b: Number) -> Number:
    return a[0] + b[0], a[1] + b[1]


def _minus(a: Number, b: Number) -> Number:
    return a[0] - b[0], a[1] - b[1]


def _minus_turned(a: Number, b: Number) -> Number:
    """a - i b"""
    return a[0] + b[1], a[1] - b[0]


def _plus_turned(a: Number, b: Number) -> Number:
    """a + i b"""
    return a[0] - b[1], a[1] + b[0]


def _four(x0: Number, x1: Number, x2: Number, x3: Number) -> list[Number]:
    a, b = _plus(x0, x2), _minus(x0, x2)
    c, d = _plus(x1, x3), _minus(x1, x3)
    return [_plus(a, c), _minus_turned(b, d), _minus(a, c), _plus_turned(b, d)]


def _eight(x: Sequence[Number], root: Value) -> list[Number]:
    even = _four(*x[::2])
    odd = _four(*x[1::2])
    re, im = odd[1]
    first = (re + im) * root, (im - re) * root
    re, im = odd[3]
    third = (im - re) * root, (re + im) * root  # its imaginary part with the other sign
    low = [
        _plus(even[0], odd[0]),
        _plus(even[1], first),
        _minus_turned(even[2], odd[2]),
        (even[3][0] + third[0], even[3][1] - third[1]),
    ]
    high = [
        _minus(even[0], odd[0]),
        _minus(even[1], first),
        _plus_turned(even[2], odd[2]),
        (even[3][0] - third[0], even[3][1] + third[1]),
    ]
    return low + high


def _odd(x: Sequence[Number], constant: Constant) -> list[Number]:
    """Elements k and r - k together: sums go with cosines, differences with sines."""
    r = len(x)
    half = range(1, r // 2 + 1)
    sums = [_plus(x[m], x[r - m]) for m in half]
    differences = [_minus(x[m], x[r - m]) for m in half]
    first = x[0]
    for term in sums:
        first = _plus(first, term)
    y: list[Number] = [first] * r
    for k in half:
        even, odd = x[0], None
        for m, s, d in zip(half, sums, differences, strict=True):
            angle = 2 * math.pi * (k * m % r) / r
            cosine, sine = constant(math.cos(angle)), constant(math.sin(angle))
            even = even[0] + s[0] * cosine, even[1] + s[1] * cosine
            part = d[0] * sine, d[1] * sine
            odd = part if odd is None else _plus(odd, part)
        assert odd is not None
        y[k], y[r - k] = _minus_turned(even, odd), _plus_turned(even, odd)
    return y
