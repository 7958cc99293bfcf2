"""Remainders and masks of Python's integers that pass 64 bits on the way."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

EDGES = (0, 1, -1, 2, -(1 << 63), (1 << 63) - 1, 1 << 62, 1 << 32, (1 << 32) - 1, 10**18 + 9)


def _reduced(x: Any) -> Any:
    a, b, c, m = int(x[0]), int(x[1]), int(x[2]), int(x[3])
    products = a * b % m, (a * b + c) % m, (c - a * b) % m, a * b % m * c % m, (a * b * c) % m
    masks = (a * b) & 0x7FFFFFFFFFFFFFFF, 0xFFFF & (a + b * c), (a << 3 ^ b * c) & 0xFFFFFFFF
    return *products, *masks, a * b % (1 << 63), (a * b + b * c) % 1000003, pow(a, 77, m)


def test_all_integers() -> None:
    compiled, pick = jt.jit(_reduced), random.Random(3)
    for _ in range(1500):
        numbers = [
            pick.choice(EDGES)
            if pick.random() < 0.4
            else pick.getrandbits(pick.randint(1, 63)) * pick.choice((1, -1))
            for _ in range(4)
        ]
        x = np.array([*numbers[:3], numbers[3] or 7])
        assert compiled(x) == _reduced(x), x


def test_the_interpreter_agrees() -> None:
    x = np.array([3**39, 5**26, -(7**22), 10**18 + 9])
    assert jt.jit(_reduced, backend="interpreter")(x) == _reduced(x)


def _power(a: int, e: int, m: int) -> int:
    r = 1
    a %= m
    while e > 0:
        if e & 1:
            r = r * a % m
        a = a * a % m
        e >>= 1
    return r


def _generator(s: int, n: int, m: int) -> Any:
    count = 0
    for _ in range(n):
        s = (s * 6364136223846793005 + 1442695040888963407) % m
        count += s % 3
    return s, count


def _xorshift(s: int, n: int, m: int) -> int:
    while n > 0:
        s ^= s << 13 & 0x7FFFFFFFFFFF
        s ^= s >> 17
        s = (s ^ s << 5) & 0xFFFFFFFF
        n -= 1
    return s


CASES: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
    (_power, (2, 10**15, 10**18 + 9)),
    (_generator, (12345, 500, (1 << 63) - 25)),
    (_xorshift, (123456789, 300, 0)),
    (lambda a, e, m: pow(a, e, m), (2, 10**15, 10**18 + 9)),
    (lambda a, b, m: a * b % m, (10**17 + 3, 10**17 - 7, -(10**18))),
    (lambda a, b, m: (a % m * b, a * 1.5 % m, a * b % m), (10, 3, 7)),
]


@pytest.mark.parametrize(("function", "args"), CASES)
def test_programs(function: Callable[..., Any], args: tuple[int, ...]) -> None:
    compiled = jt.jit(function)
    assert compiled(*args) == function(*args)
    assert all(isinstance(n, (int, float, tuple)) for n in (compiled(*args),))


def test_errors_are_pythons() -> None:
    with pytest.raises(ZeroDivisionError):
        jt.jit(lambda a, b, m: a * b % m)(10, 3, 0)
    with pytest.raises(ValueError, match="3rd argument"):
        jt.jit(lambda x, m: pow(int(x[0]), 3, m))(np.arange(3), 0)
    with pytest.raises(OverflowError):
        jt.jit(lambda a, b, m: a * b + m % 7)(10**17, 10**17, 5)


def test_inverses() -> None:
    def f(v: Any) -> Any:
        try:
            return pow(int(v[0]), int(v[1]), int(v[2]))
        except ValueError:
            return None

    compiled = jt.jit(f)
    some = np.random.default_rng(0).integers(-50, 50, (60, 3)).tolist()
    for numbers in [(4, -1, 1), (4, -1, -1), (6, -1, 0), (2**62, -5, 2**63 - 1), *some]:
        assert compiled(np.array(numbers)) == f(numbers)
    with pytest.raises(ValueError, match="base is not invertible for the given modulus"):
        jt.jit(lambda x, m: pow(int(x[0]), -1, m))(np.array([4]), 6)
    with pytest.raises(OverflowError):
        compiled(np.array([5, -1, -(2**63)]))


def test_numpys_integers_wrap_and_texts_are_formatted() -> None:
    x = np.array([1 << 40, 3])

    def f(x: Any, n: int) -> Any:
        name = "%s" * 2 % ("a", "b")
        return x[0] * x[0] % 1000, (x * x) & 0xFF, x[0] * n % 7, {name: n}

    with np.errstate(over="ignore"):
        got, want = jt.jit(f)(x, 5), f(x, 5)
    assert got[0] == want[0] and got[2:] == want[2:]
    np.testing.assert_array_equal(got[1], want[1])
