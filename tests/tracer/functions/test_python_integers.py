"""Python's integers, which a traced function has in 64 bits: what would pass them raises."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jitney as jt

LEAST, MOST = -(2**63), 2**63 - 1
EDGES = (0, 1, -1, 2, 3, -3, 62, 63, 2**31, -(2**31), 2**32, 3037000499, 3037000500, -3037000500)
NUMBERS = st.one_of(
    st.sampled_from((*EDGES, LEAST, LEAST + 1, MOST, MOST - 1, MOST // 3, 2**62, -(2**62))),
    st.integers(LEAST, MOST),
    st.integers(-100, 100),
)


def added(a: int, b: int) -> int:
    a += b
    return a


def multiplied(a: int, b: int) -> int:
    a *= b
    return a


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "three times": lambda a, b: 3 * a,
    "add in place": added,
    "multiply in place": multiplied,
    "negative": lambda a, b: -a,
    "absolute": lambda a, b: abs(a),
    "square": lambda a, b: a**2,
    "shift": lambda a, b: a << (b % 70),
    "power": lambda a, b: (a % 50 - 25) ** (b % 20),
}
COMPILED = {name: jt.jit(function) for name, function in OPERATIONS.items()}


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except OverflowError:
        return OverflowError


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([*OPERATIONS]), NUMBERS, NUMBERS)
@example("multiply", -1, LEAST)
@example("multiply", 2**32, -(2**31))
@example("multiply", 2**32, 2**31)
@example("negative", LEAST, 0)
@example("shift", -1, 63)
def test_what_needs_more_than_64_bits_raises(name: str, a: int, b: int) -> None:
    wanted = OPERATIONS[name](a, b)
    found = outcome(COMPILED[name], a, b)
    if name == "three times" and abs(wanted) > MOST - 2**31:
        assert found is OverflowError or found == wanted
    else:
        assert found == (wanted if LEAST <= wanted <= MOST else OverflowError)


def triangle(n: int, k: int) -> int:
    total = 0
    for i in range(n):
        total += i * k
    return total


def collatz(n: int) -> int:
    most = n
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        most = max(most, n)
    return most


def halves(n: int) -> int:
    found = 0
    for i in range(n):
        if i < 3:
            found += i
        else:
            found = found * found * found + i
    return found


@pytest.mark.parametrize(
    ("function", "args", "fits"),
    [
        (triangle, (1000, 2**40), True),
        (triangle, (1000, 2**58), False),
        (collatz, (27,), True),
        (collatz, (2**62 - 1,), False),
        (halves, (5,), True),
    ],
)
def test_in_loops_and_branches(function: Callable[..., int], args: Any, fits: bool) -> None:
    assert outcome(jt.jit(function), *args) == (function(*args) if fits else OverflowError)


def test_the_line_and_the_remedy_are_named() -> None:
    def f(n: int) -> int:
        return n * n

    words = r"(?s)4294967296 \* 4294967296.*np\.int64.*test_python_integers.py:\d+, in "
    with pytest.raises(OverflowError, match=words):
        jt.jit(f)(2**32)


def test_integers_of_numpy_wrap() -> None:
    with np.errstate(over="ignore"):
        for function in (lambda n: np.int64(n) * n, lambda n: np.int64(n) + 2**62):
            assert jt.jit(function)(2**62) == function(2**62)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
@pytest.mark.parametrize("value", [0, -1, 127, 128, 255, -128, 2**40])
def test_what_an_array_cannot_hold_is_not_assigned(dtype: str, value: int) -> None:
    def f(x: Any, v: int) -> Any:
        x = x.copy()
        x[1] = v
        return x

    x = np.zeros(3, dtype)
    found, wanted = outcome(jt.jit(f), x, value), outcome(f, x, value)
    assert np.array_equal(found, wanted) if isinstance(wanted, np.ndarray) else found is wanted


def test_positions_and_counters_are_not_checked() -> None:
    @jt.jit
    def f(x: Any, out: Any) -> int:
        n, m = x.shape
        count = 0
        for i in range(n):
            for j in range(m):
                k = (i + j - 1) % n * m + (j * j + 3) % m
                if x[i, j] > 0:
                    count += 1
                    out[k] = count
        while count < 40:
            count += 2
        return count

    x = np.random.default_rng(0).standard_normal((50, 40))
    errors = f.lower(x, np.zeros(2000, int)).executable.module.errors
    assert not [site for site in errors if site.kind == "OverflowError"]


LARGE = 1 << 62
SUMS = {
    "of arguments": (lambda a, b: sum((a, b, a)), (LARGE, LARGE)),
    "of a short list": (lambda xs: sum(xs), ([LARGE] * 3,)),
    "of a long list": (lambda xs: sum(xs), ([LARGE] * 40,)),
    "of a table": (lambda rows: sum(map(sum, rows)), ([[LARGE] * 10] * 3,)),
    "of a generator": (lambda xs: sum(x for x in xs), ([LARGE] * 40,)),
    "of a comprehension": (lambda xs: sum([x * 2 for x in xs]), ([LARGE // 2] * 20,)),
    "from a start": (lambda xs, a: sum(xs, a), ([1, 2], (1 << 63) - 2)),
}


@pytest.mark.parametrize("case", SUMS)
def test_sums_of_pythons_integers_do_not_wrap(case):
    function, arguments = SUMS[case]
    with pytest.raises(OverflowError, match="64 bits"):
        jt.jit(function)(*arguments)
    small = [np.array(a) // (1 << 8) for a in arguments]
    small = [a.tolist() for a in small]
    assert jt.jit(function)(*small) == function(*small)


class Weight(enum.IntEnum):
    ONE = 1
    TWO = 2


def test_members_of_enums_are_pythons_integers() -> None:
    def f(x: Any, n: int) -> Any:
        total = 0
        for v in x:
            if v % 3 == Weight.ONE:
                total += Weight.TWO
        return total, n + Weight.TWO, Weight.ONE * n, x[0] * 0 + Weight.TWO

    x = np.arange(10)
    got, want = jt.jit(f)(x, 5), f(x, 5)
    assert got == want and [*map(type, got)] == [*map(type, want)]


def test_integers_are_stored_in_branches_of_loops() -> None:
    """Where the number comes from around the branch, and may not fit its element."""

    def places(a: Any, b: Any, n: int) -> tuple[Any, int, int]:
        found, i, j = np.zeros(len(a), np.int32), 0, 0
        while i < len(a):
            if a[i] < b[j]:
                found[i] = j
                i += 1
            else:
                j += n
        return found, i, j

    a, b = np.array([0.1, 0.5, 0.7, 2.0]), np.array([0.2, 0.6, 1.0, 1.5, 3.0])
    f = jt.jit(places)
    want, got = places(a, b, 1), f(a, b, 1)
    np.testing.assert_array_equal(got[0], want[0])
    assert got[1:] == want[1:]
    with pytest.raises(IndexError):
        f(a, b, 1 << 33)
    as_integers = jt.jit(lambda x, y: int(y) if x > 0 else 0)
    assert as_integers(1.0, np.uint64(7)) == 7
    with pytest.raises(OverflowError, match="64 bits"):
        as_integers(1.0, np.uint64(2**63))
