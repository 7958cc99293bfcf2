"""Loops over elements of arrays, which become functions for LLVM's loop passes: against Python itself.

Random nests are texts that autograph can read: loops that count up and down, triangles, places in and
out of bounds, branches, reductions, functions. All are small; with tiny limits they go the way of large
ones. Python tells results, what was written, and which error there is.
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nests import arguments, outcome, written

import jitney as jt
from jitney.codegen.limits import TINY, limited


def nest(function: Callable[..., Any], *args: Any) -> str:
    """The LLVM text of a function, which must have a nest for LLVM's passes."""
    text: str = jt.jit(function, autograph=True).lower(*args).llvm()
    assert '"loops"' in text
    return text


def test_sums_side_by_side_are_one_vector() -> None:
    """Rows added up in a loop go through LLVM's passes; states that wait for each other gain nothing."""

    def rows(x):
        total = np.zeros_like(x[0])
        for i in range(500):
            total = total + x[i]
        return total

    def chained(x):
        a, b, c, d = x[0], x[1], x[2], x[3]
        for i in range(500):
            a, b, c, d = a + b, b + c, c + d, d + x[i]
        return a

    x = np.random.default_rng(0).normal(size=(500, 10)).astype(np.float32)
    np.testing.assert_array_equal(jt.jit(rows)(x), rows(x))
    nest(rows, x)
    v = x[:, 0].copy()
    np.testing.assert_array_equal(jt.jit(chained)(v), chained(v))
    assert '"loops"' not in jt.jit(chained).lower(v).llvm()


def stencil(u, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            out[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def triangle(a, x):
    for i in range(a.shape[0]):
        for j in range(i):
            x[i - j] = x[i - j - 1] + a[i, j]


def around(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i - 1] + x[-i - 1]


@pytest.mark.parametrize("function", [stencil, triangle])
def test_places_that_are_in_bounds_are_not_checked(function):
    args = np.ones((60, 60)), np.ones((60, 60)) if function is stencil else np.ones(60)
    lowered = jt.jit(function, autograph=True).lower(*args)
    assert not lowered.executable.module.errors
    assert "icmp uge" not in lowered.llvm()


def test_negative_places_that_are_in_bounds_cannot_fail():
    args = np.arange(3000.0), np.zeros(3000)
    assert not jt.jit(around, autograph=True).lower(*args).executable.module.errors
    wanted = np.zeros(3000)
    around(args[0], wanted)
    jt.jit(around, autograph=True)(*args)
    np.testing.assert_array_equal(args[1], wanted)


def test_vectors_are_made():
    text = jt.jit(stencil, autograph=True).lower(np.ones((300, 300)), np.ones((300, 300))).asm()
    assert ("mm" in text and "vaddpd" in text) or "fadd" in text


def one_too_far(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] + 1
        if x[i] > 0.5:
            out[i + 1] = 0.0


def test_an_error_names_the_line_and_leaves_arguments_alone():
    x = np.zeros(5000)
    x[-1] = 1.0
    out = np.full(5000, 7.0)
    with pytest.raises(IndexError, match=r"test_loop_nests\.py:\d+"):
        jt.jit(one_too_far, autograph=True)(x, out)
    assert (out == 7.0).all()


def shifted(x, y):
    for i in range(1, x.shape[0]):
        x[i] = y[i - 1] + 1.0


@pytest.mark.parametrize("first", [0, 1, 2, 5])
def test_views_of_one_array(first):
    """Two arguments that overlap: what is written through one is read through the other."""
    base = np.arange(4000.0)
    other = base.copy()
    shifted(other[first : first + 3000], other[1:3001])
    jt.jit(shifted, autograph=True)(base[first : first + 3000], base[1:3001])
    np.testing.assert_array_equal(base, other)


def running(n, x):
    s = np.int64(0)
    for i in range(n):
        for j in range(i, n):
            s += x[j] - i
    return s


@pytest.mark.parametrize("n", [-3, 0, 1, 2, 700])
def test_loops_whose_length_is_a_value(n):
    x = np.arange(700)
    assert jt.jit(running, autograph=True)(n, x) == running(n, x)


def wraps(x, out):
    h = np.int64(1)
    for i in range(x.shape[0]):
        h = h * np.int64(6364136223846793005) + x[i]
        out[i] = h // 7 + h % np.int64(13)


def test_integers_wrap_and_divide_as_numpys():
    x = np.arange(3000) - 1500
    out, wanted = np.zeros(3000, np.int64), np.zeros(3000, np.int64)
    with np.errstate(over="ignore"):
        wraps(x, wanted)
    jt.jit(wraps, autograph=True)(x, out)
    np.testing.assert_array_equal(out, wanted)


def clipped_log(x, out):
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            out[i] = np.log(x[i])
        else:
            out[i] = math.inf


def test_functions_under_a_condition_become_vectors():
    x = np.linspace(-2, 2, 3001)
    x[5] = np.nan
    out = np.zeros(3001)
    assert "vector-function-abi-variant" in nest(clipped_log, x, out)
    jt.jit(clipped_log, autograph=True)(x, out)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out, np.where(x > 0, np.log(x), np.inf), rtol=1e-15)


def histogram(x, counts):
    for i in range(x.shape[0]):
        counts[int(x[i] * 20)] += 1


def test_small_arrays_that_are_searched_stay_in_memory():
    x = np.random.default_rng(0).random(5000)
    counts = np.zeros(20, np.int64)
    text = nest(histogram, x, counts)
    assert text.count("select") < 20
    jt.jit(histogram, autograph=True)(x, counts)
    np.testing.assert_array_equal(counts, np.bincount((x * 20).astype(int), minlength=20))


def product(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for p in range(a.shape[1]):
                s += a[i, p] * b[p, j]
            c[i, j] = s
    return c


@pytest.mark.parametrize("n", [1, 7, 8, 32, 33, 50])
def test_lanes_add_in_the_order_of_the_program(n):
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((20, 30)), rng.standard_normal((30, n))
    np.testing.assert_array_equal(jt.jit(product, autograph=True)(a, b), product(a, b))


def iterated(x, out):
    for i in range(x.shape[0] - 1, -1, -1):
        v = x[i]
        for t in range(out.shape[1]):
            out[i, t] = v
            v = 3.2 * v * (1.0 - v)
        x[i] = v


@pytest.mark.parametrize("n", [33, 64, 100])
def test_lanes_that_go_down_and_touch_elements_far_apart(n):
    x, out = np.random.default_rng(n).random(n), np.zeros((n, 200))
    assert "side" in nest(iterated, x, out) or n == 33
    wanted = x.copy(), out.copy()
    iterated(*wanted)
    jt.jit(iterated)(x, out)
    np.testing.assert_array_equal(x, wanted[0])
    np.testing.assert_array_equal(out, wanted[1])


def smoothed(a):
    out = np.zeros(a.shape)
    for i in range(2, a.shape[0] - 2):
        for j in range(2, a.shape[1] - 2):
            total = 0.0
            for p in range(-2, 3):
                for q in range(-2, 3):
                    d = a[i + p, j + q] - a[i, j]
                    total += np.exp(-d * d) * a[i + q, j + p]
            out[i, j] = total
    return out


def test_what_a_short_loop_keeps_is_written_where_it_is_kept():
    """So trips of the loop around it have nothing to do with each other, and run in lanes."""
    a, way = np.random.default_rng(2).standard_normal((2, 12, 44))
    f = jt.jit(jt.value_and_grad(lambda a: jt.jit(smoothed)(a).sum()))
    with limited(TINY):
        assert "side" in nest(f, a)
        value, gradient = f(a)
    np.testing.assert_allclose(value, smoothed(a).sum())
    there, back = (smoothed(a + h * way).sum() for h in (1e-6, -1e-6))
    np.testing.assert_allclose((gradient * way).sum(), (there - back) / 2e-6, rtol=1e-5)


def steps_to_one(x, out):
    for i in range(x.shape[0]):
        v = x[i]
        n = 0
        while v != 1.0:
            v = v * 0.5 if v > 2.0 else 1.0
            n += 1
        out[i] = n


def test_lanes_that_end_at_different_times():
    x, out, wanted = np.linspace(1, 4000, 203), np.zeros(203), np.zeros(203)
    if "side" not in nest(steps_to_one, x, out):
        pytest.skip("no masks here")
    jt.jit(steps_to_one, autograph=True)(x, out)
    steps_to_one(x, wanted)
    np.testing.assert_array_equal(out, wanted)


def rows_in_place(y):
    for i in range(y.shape[0]):
        row = y[i]
        for j in range(1, y.shape[1]):
            row[j] = row[j - 1] * 0.5 + row[j]


def rows_and_elements(y):
    for i in range(1, y.shape[0]):
        row = y[i]
        before = y[i - 1]
        for j in range(1, y.shape[1]):
            y[i, j] = row[j - 1] + before[j]
            row[0] += 0.125 * y[i, j]


def rows_written_elsewhere(y):
    for i in range(1, y.shape[0]):
        row = y[i]
        for j in range(1, y.shape[1]):
            y[i - 1, j] = row[j] + 1.0
            if y[0, j] > 1.0:
                row[j - 1] = y[i - 1, j] * 0.5


def rows_chosen(y):
    for i in range(y.shape[0]):
        row = y[int(y[i, 0] * 7) % 5]
        for j in range(y.shape[1]):
            row[j] = row[j] * 0.5 + i


@pytest.mark.parametrize(
    "function", [rows_in_place, rows_and_elements, rows_written_elsewhere, rows_chosen]
)
@pytest.mark.parametrize("width", [9, 80, 300])
def test_rows_of_an_array(function, width):
    y = np.random.default_rng(2).random((40, width))
    wanted = y.copy()
    function(wanted)
    jt.jit(function, autograph=True)(y)
    np.testing.assert_allclose(y, wanted, rtol=1e-12)


def test_rows_stay_where_they_are():
    nest(rows_in_place, np.ones((40, 300)))


def long_loop(x):
    s = 0.0
    for _ in range(x.shape[0]):
        for j in range(x.shape[0]):
            s = s * 0.5 + x[j]
    return s


def test_long_loops_look_for_signals():
    assert "@poll" in nest(long_loop, np.ones(3000))


ROWS = """def f(a, v, k, h, m):
    b = np.zeros((40, 7))
    for i in range(40):
        s = 0.1
        for j in range(7):
            {body}
            b[i, j] = s + i
    return b
"""


@pytest.mark.parametrize(
    ("body", "shared"),
    [
        ("s = s * 0.5 + a[i % 7, j] * v[j]", True),
        ("s = max(s, np.sqrt(v[j] * v[j] * i))", True),
        ("b[i, 0] += v[j]", True),
        ("b[i - 1, j] = s", False),  # another trip's
        ("s += b[39 - i, j]", False),
        ("s += v[j] + a[k[j], j]", False),  # may fail
        ("v[j] += i", False),
        ("m = m + k[j]\n            s += m", False),  # waits for the trip before
    ],
)
def test_trips_of_an_outermost_loop_run_on_several_threads(
    body: str, shared: bool, threads: Callable[[int], None]
) -> None:
    function = written(ROWS.format(body=body))
    wanted = outcome(function, arguments())
    with limited(TINY):
        compiled = jt.jit(function)
        assert ("several threads" in str(compiled.explain(*arguments()))) == shared
        for number in (1, 3):
            threads(number)
            for found, right in zip(outcome(compiled, arguments()), wanted, strict=True):
                np.testing.assert_equal(found, right)


def _one_nest(a: Any, n: Any) -> Any:
    out = np.zeros_like(a)
    for r in range(n):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                out[i, j] = a[i - 1, j] + a[i + 1, j] + r
    return out


def _two_nests(a: Any, n: Any) -> Any:
    out = np.zeros_like(a)
    for r in range(n):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                out[i, j] = a[i, j] + r
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                out[i, j] = out[i, j] * 0.5 + a[j, i]
    return out


def _perhaps_none(a: Any, n: Any) -> Any:
    out = np.zeros_like(a)
    for r in range(n):
        for i in range(int(a[0, 0])):  # not one
            for j in range(a.shape[1]):
                out[i, j] = np.sin(a[i, j]) + r
        out[0, 0] += a[0, 1] * out[0, 0]
    return out


@pytest.mark.parametrize(
    ("nest", "size"), [(_one_nest, 300), (_two_nests, 300), (_one_nest, 40), (_perhaps_none, 600)]
)
def test_an_interrupt_ends_nests(nest: Any, size: int) -> None:
    """Whichever loop looks for signals, one does: those inside may be too short to, or not run."""
    compiled = jt.jit(nest)
    a = np.arange(size * size * 1.0).reshape(size, size) / 1e6
    trips = 10**10 if nest is _perhaps_none else 10**11 // size**2  # half a minute, without a look
    np.testing.assert_allclose(compiled(a, 2), nest(a[:, :], 2))
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            compiled(a, trips)
    finally:
        timer.join()


def test_rows_of_one_array_are_vectors_where_they_do_not_overlap() -> None:
    def eliminated(a):
        for k in range(a.shape[0]):
            for i in range(k + 1, a.shape[0]):
                a[i, k] /= a[k, k]
                for j in range(k + 1, a.shape[0]):
                    a[i, j] -= a[i, k] * a[k, j]

    def shifted(a, by):
        x = a.ravel()
        for k in range(3):
            for i in range(1000):
                x[i + by[k]] = x[i] * 0.5 + k

    a = np.random.default_rng(0).random((40, 40)) + 40 * np.eye(40)
    mine, theirs = a.copy(), a.copy()
    jt.jit(eliminated)(mine)
    eliminated(theirs)
    np.testing.assert_array_equal(mine, theirs)
    for by in ([0, 1, 2], [40, 7, 500], [3, 0, 0]):
        mine, theirs = a.copy(), a.copy()
        jt.jit(shifted)(mine, np.array(by))
        shifted(theirs, np.array(by))
        np.testing.assert_array_equal(mine, theirs)
