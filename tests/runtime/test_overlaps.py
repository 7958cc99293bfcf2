"""Arguments that are assigned to and share memory with others: natively, in Python, in any number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.runtime.call.program import written_apart
from jitney.tracer.jit.native_call import write_program

ranges = st.tuples(st.integers(0, 40), st.integers(1, 9), st.booleans()).map(
    lambda r: (r[0], r[0] + r[1], r[2])
)


@given(st.lists(ranges, max_size=9))
def test_written_ranges_are_apart(found: list[tuple[int, int, bool]]) -> None:
    pairs = [(a, b) for i, a in enumerate(found) for b in found[:i]]
    shared = any((a[2] or b[2]) and a[0] < b[1] and b[0] < a[1] for a, b in pairs)
    assert written_apart(found) == (not shared)


def update(*xs: Any) -> Any:
    """Writes to every other argument, and reads all of them."""
    total = 0.0
    for k, x in enumerate(xs):
        if k % 2:
            x += total
        total = total + x.sum() * (k + 1)
    return total


def views(base: Any, places: list[tuple[int, int, int]]) -> list[Any]:
    """Slices of `base`, of four elements each, or of none."""
    found = []
    for start, step, count in places:
        x = base[start : start + 8 : step][:count]
        found.append(x[::-1] if start % 3 == 0 else x)
    return found


places = st.lists(
    st.tuples(st.integers(0, 100), st.integers(1, 2), st.sampled_from([4, 4, 4, 0])),
    min_size=2,
    max_size=5,
)
compiled = jt.jit(update)


@settings(max_examples=30)
@given(st.lists(places, min_size=1, max_size=4))
def test_random_views(calls: list[list[tuple[int, int, int]]]) -> None:
    """One function takes them all: a program for views that lie apart sees others that do not."""
    for places in calls:
        for _ in range(2):
            base, want = np.arange(120.0), np.arange(120.0)
            got = compiled(*views(base, places))
            assert got == update(*views(want, places))
            np.testing.assert_array_equal(base, want)


@pytest.mark.parametrize("n", [3, 40, 200])
def test_many_arguments(n: int, calls: str) -> None:
    f = jt.jit(lambda *xs: [x.__iadd__(k) for k, x in enumerate(xs)] and None)
    shuffled = np.random.default_rng(n).permutation(n)
    for order in (np.arange(n), np.arange(n)[::-1], shuffled):
        base = np.zeros(2 * n)
        apart = [base[2 * k : 2 * k + 2] for k in order]
        for _ in range(2):
            f(*apart)
        for k, x in enumerate(apart):
            assert (x == 2 * k).all()
    # The last reaches into another one, or is another one.
    for last in (base[1:3], apart[0]):
        base[:] = 0.0
        want = base.copy()
        arguments = [*apart[:-1], last]
        f(*arguments)
        for k, x in enumerate(arguments):
            start = (x.ctypes.data - base.ctypes.data) // 8
            want[start : start + 2] += k
        np.testing.assert_array_equal(base, want)


def test_programs_grow_with_the_number_of_arguments_alone() -> None:
    def words(n: int) -> int:
        f = jt.jit(lambda *xs: [x.__iadd__(1.0) for x in xs] and None)
        xs = [np.zeros(2) for _ in range(n)]
        f(*xs)
        (entry,) = next(iter(f._buckets.values())).entries
        return len(write_program(entry, xs, {}, f._leaves, f._signature)._words)

    assert words(100) < 12 * words(10)


def test_donated_arrays_that_share_memory(calls: str) -> None:
    f = jt.jit(lambda x, y: (x * 2 + y, y.sum()), donate_argnums=0)
    base = np.arange(9.0)
    for x, y in ((base[:6], base[3:]), (base[:6], base[:6]), (base[:3], base[6:])):
        for _ in range(3):
            base[:] = np.arange(9.0)
            want = x * 2 + y, y.sum()
            got = f(x, y)
            np.testing.assert_array_equal(got[0], want[0])
            assert got[1] == want[1]
