"""Loops with a trip count of each lane's own: vectors under masks, against the interpreter."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import jitney as jt


def escape(x, y):
    """A count is read; the numbers of lanes that are done run on, to infinity and NaN."""

    def step(s):
        a, b, n = s
        return a * a - b * b + x, 2 * a * b + y, n + 1

    z = x * 0
    return jt.while_loop(
        lambda s: (s[2] < 60) & (s[0] * s[0] + s[1] * s[1] <= 4), step, (z, z, np.int32(0))
    )[2]


def collatz(n):
    """Integers only, division, a bool, all results read."""

    def step(s):
        n, trips, odd = s
        return (
            np.where(odd, 3 * n + 1, n // 2),
            trips + 1,
            (np.where(odd, 3 * n + 1, n // 2) % 2) == 1,
        )

    return jt.while_loop(lambda s: s[0] > 1, step, (n, n * 0, n % 2 == 1))


def root(x, y):
    """A float32 state with an int64 count, until it does not change; both are read. NaN ends at once."""

    def step(s):
        r, before, n = s
        return (r + x / r) * y, r, n + 1

    first = (x + 1, x * 0, np.int64(0))
    r, _, n = jt.while_loop(lambda s: (np.abs(s[0] - s[1]) > 1e-6) & (s[2] < 40), step, first)
    return r, n


def nested(x):
    """A loop inside the loop, and a function: lanes that are done must not run these again."""

    def inner(s):
        return s[0] * 0.5, s[1] + 1

    def step(s):
        v, n = s
        v, k = jt.while_loop(lambda t: t[0] > 1.0, inner, (v, n))
        return v + np.sin(v), k + 1

    return jt.while_loop(lambda s: (s[1] < 30) & (s[0] < 1.9), step, (x, np.int64(0)))


@pytest.mark.parametrize("size", [1, 3, 16, 63, 64, 65, 300])
def test_lanes_agree_with_the_interpreter(size):
    local = np.random.default_rng(size)
    x, y = local.normal(size=(2, size))
    x[::7] = np.nan
    x[3::11] = np.inf
    cases = [
        (escape, (x.astype(np.float32), y.astype(np.float32))),
        (escape, (x, y)),
        (collatz, (local.integers(-3, 90, size),)),
        (collatz, (local.integers(1, 60, size).astype(np.uint16),)),
        (root, (np.abs(x).astype(np.float32), np.full(size, 0.5, np.float32))),
        (nested, (np.abs(y) * 9,)),
    ]

    def mapped(operands):
        return [jt.vmap(f)(*args) for (f, _), args in zip(cases, operands, strict=True)]

    operands = [args for _, args in cases]
    want, got = jt.jit(mapped, backend="interpreter")(operands), jt.jit(mapped)(operands)
    for g, w in zip(jt.tree.leaves(got), jt.tree.leaves(want), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-5)


def test_one_of_several_results_and_all_of_them():
    x = np.linspace(0.1, 9, 100)

    def f(x):
        return jt.while_loop(
            lambda s: s[0] < 20,
            lambda s: (s[0] * s[1], s[1] + 0.1, s[2] + s[0]),
            (x, x * 0 + 1.1, x),
        )

    whole = jt.jit(jt.vmap(f), backend="interpreter")(x)
    for k in range(3):
        np.testing.assert_allclose(jt.jit(jt.vmap(lambda x, k=k: f(x)[k]))(x), whole[k], rtol=1e-12)
    np.testing.assert_allclose(jt.jit(jt.vmap(f))(x), whole, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 64, 100_000])
def test_an_interrupt_ends_a_loop_of_lanes(count: int) -> None:
    """Ctrl-C, in a kernel of one thread and in one of several; the function works afterwards."""

    @jt.jit
    def settle(x: Any, limit: Any) -> Any:
        def example(x: Any) -> Any:
            return jt.while_loop(lambda v: v < limit, lambda v: v * 0.5 + 1, x)

        return jt.vmap(example)(x)

    ones = np.ones(count)
    np.testing.assert_array_equal(settle(ones, 1.5), ones + 0.5)
    main = threading.get_ident()
    timer = threading.Timer(0.15, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            settle(ones, 1e9)
    finally:
        timer.join()
    np.testing.assert_array_equal(settle(ones, 1.5), ones + 0.5)


@pytest.mark.parametrize("late", [0, -1])
def test_an_interrupt_ends_lanes_that_only_another_thread_goes_on_with(late: int) -> None:
    """One lane of one chunk takes for ever: whichever thread has it, the other waits, and looks."""

    @jt.jit
    def settle(x: Any, limits: Any) -> Any:
        def example(x: Any, limit: Any) -> Any:
            return jt.while_loop(lambda v: v < limit, lambda v: v * 0.5 + 1, x)

        return jt.vmap(example)(x, limits)

    ones, limits = np.ones(100_000), np.full(100_000, 1.5)
    main = threading.get_ident()
    with jt.threads(2):
        np.testing.assert_array_equal(settle(ones, limits), ones + 0.5)
        limits[late] = 1e9
        for _ in range(2):
            timer = threading.Timer(0.15, lambda: signal.pthread_kill(main, signal.SIGINT))
            timer.start()
            try:
                with pytest.raises(KeyboardInterrupt):
                    settle(ones, limits)
            finally:
                timer.join()
        limits[late] = 1.5
        np.testing.assert_array_equal(settle(ones, limits), ones + 0.5)


ENDLESS = """
import numpy as np, jitney as jt

def plain(x):
    return jt.while_loop(lambda c: c < 5, lambda c: c + x, 0 * x)

def called(x):
    return jt.while_loop(lambda c: c < 5, lambda c: c + np.arctan(np.tanh(x)) * 2, 0 * x)

def nested(x):
    return jt.while_loop(
        lambda c: c < 5, lambda c: jt.while_loop(lambda d: d < c + 1, lambda d: d + x, c), 0 * x
    )

for f in (plain, called, nested):
    for dtype in (np.float64, np.float32):
        arrays = [np.arange(1, n + 1).astype(dtype) for n in (1, 2, 3, 5, 7, 9, 17, 33)]
        found = jt.jit(lambda arrays: [jt.vmap(f)(x) for x in arrays])(arrays)
        wanted = [f(v) for v in arrays[-1]]
        for values in found:
            np.testing.assert_allclose(values, wanted[: values.size], rtol=1e-5)
"""


def test_lanes_beyond_the_end_never_start() -> None:
    """What stands there, zeros, might never be done. In a process of its own, which can be ended."""
    done = subprocess.run([sys.executable, "-c", ENDLESS], timeout=300, check=False)
    assert done.returncode == 0
