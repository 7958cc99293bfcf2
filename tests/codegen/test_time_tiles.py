"""Loops over stencils that run tile by tile: the same bits as trip by trip, for all shapes of body."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.codegen.limits import DEFAULT, limited
from jitney.ir.record import replace


@pytest.fixture(autouse=True)
def small_tiles():
    """Tiles of a few rows, worth sharing: what grids of megabytes get."""
    with limited(replace(DEFAULT, time_tile_bytes=1 << 16, chunk_ns=0.1)):
        yield


def heat(u):
    middle = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    u[1:-1, 1:-1] = middle + 0.125 * (around - 4 * middle)
    return u


def wide(u):
    """A reach of three rows, to one side more than to the other."""
    u[3:-2] = 0.5 * u[3:-2] + 0.25 * u[:-5] - 0.25 * u[5:]
    return u


def upwind(u):
    u[1:] -= 0.5 * (u[1:] - u[:-1])
    return u


def drawn(u):
    """New memory for all of it: rows at the ends are rows like others."""
    return np.where(u > 0, u * 0.75, u * 0.5 - 1)


def wave(state):
    u, before = state
    new = u.copy()
    new[1:-1, 1:-1] = (
        1.5 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.125 * (u[:-2, 1:-1] + u[2:, 1:-1])
    )
    return new, u


def fields(state):
    """Each of three arrays is updated in place from what the others are by then."""
    e, f, h = state
    e[1:] = e[1:] - 0.5 * (h[1:] - h[:-1])
    f[:, 1:] = f[:, 1:] + 0.5 * (h[:, 1:] - h[:, :-1])
    h[:-1, :-1] = h[:-1, :-1] - 0.25 * (e[1:, :-1] - e[:-1, :-1] - f[:-1, 1:] + f[:-1, :-1])
    return e, f, h


def ends(u):
    """The row at one end follows the row beside it."""
    u[0] = u[1]
    u[1:-1] = 0.5 * (u[:-2] + u[2:])
    return u


def smooth_twice(u):
    v = u.copy()
    v[2:-2] = np.tanh(u[1:-3] + u[3:-1])
    w = v.copy()
    w[1:-1] = np.exp(-abs(v[:-2] - v[2:]))
    return w


BODIES = {
    "heat": (heat, 1, True),
    "wide": (wide, 1, True),
    "upwind": (upwind, 1, True),
    "drawn": (drawn, 1, True),
    "ends": (ends, 1, True),
    "wave": (wave, 2, True),
    "fields": (fields, 3, True),
    "smooth_twice": (smooth_twice, 1, False),
}


def state(count, shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    arrays = tuple(random.normal(size=shape).astype(dtype) for _ in range(count))
    return arrays if count > 1 else arrays[0]


def loop(body, trips):
    return lambda u: jt.fori_loop(0, trips, lambda i, u: body(u), u)


def is_tiled(f, u):
    return "trips_" in jt.jit(f).lower(u).llvm()


def check(f, u, exact=True):
    want = jt.tree.leaves(jt.jit(f, backend="interpreter")(u))
    got = jt.jit(f)
    for threads in (1, 2, 3):
        with jt.threads(threads):
            for g, w in zip(jt.tree.leaves(got(u)), want, strict=True):
                if exact:
                    np.testing.assert_array_equal(g, w)
                else:
                    np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", BODIES)
def test_as_the_interpreter_for_any_number_of_threads(name, dtype):
    body, count, exact = BODIES[name]
    for shape, trips in (((331, 70), 23), ((400, 37), 8), ((194, 150), 50)):
        u = state(count, shape, dtype)
        f = loop(body, trips)
        assert is_tiled(f, u)
        check(f, u, exact)


def test_one_and_three_dimensions():
    def line(u):
        u[1:-1] = 0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:]
        return u

    def space(u):
        inside = (slice(1, -1),) * 3
        u[inside] = 0.5 * u[inside] + 0.25 * (u[:-2, 1:-1, 1:-1] + u[1:-1, 1:-1, 2:])
        return u

    for body, shape in ((line, (5003,)), (line, (120, 33)), (space, (90, 7, 11))):
        u = state(1, shape, "f4")
        assert is_tiled(loop(body, 21), u)
        check(loop(body, 21), u)


@settings(max_examples=25)
@given(
    rows=st.integers(40, 300),
    columns=st.integers(1, 90),
    trips=st.integers(4, 70),
    up=st.integers(0, 3),
    down=st.integers(0, 3),
)
def test_any_reach(rows, columns, trips, up, down):
    def body(u):
        v = u.copy()
        v[up : rows - down] = 0.5 * u[: rows - up - down] - 0.5 * u[up + down :]
        return v

    check(loop(body, trips), state(1, (rows, columns), "f4"))


def test_loops_within_loops_and_what_stands_around_them():
    def f(u, c):
        def outer(i, u):
            u = jt.fori_loop(0, 9, lambda k, u: heat(u) * c, u)
            return u - u.mean()

        return jt.fori_loop(0, 3, outer, u + 1) * 2

    u = np.random.default_rng(1).normal(size=(120, 40))
    c = np.float64(0.75)
    want = jt.jit(f, backend="interpreter")(u, c)
    np.testing.assert_allclose(jt.jit(f)(u, c), want, rtol=1e-12, atol=1e-12)


def test_what_is_read_row_by_row_beside_the_carry():
    def f(u, speed, source):
        def body(i, u):
            u[1:-1] = u[1:-1] + speed[1:-1, None] * (u[2:] - u[1:-1]) + source[2:]
            return u

        return jt.fori_loop(0, 30, body, u)

    u, source = state(2, (150, 60), "f4")
    speed, source = abs(source[:, 0]), source[:, ::-1]
    want = jt.jit(f, backend="interpreter")(u, speed, source)
    assert "trips_" in jt.jit(f).lower(u, speed, source).llvm()
    np.testing.assert_array_equal(jt.jit(f)(u, speed, source), want)


def test_bodies_that_do_not_go_by_rows_are_left_alone():
    def around(u):
        return np.roll(u, 1, 0) * 0.5 + u

    def turned(u):
        return u + u.T * 0.5

    def sums(u):
        return u - u.sum(axis=0)

    def upside_down(u):
        return u[::-1] * 0.5

    for body in (around, turned, sums, upside_down):
        u = state(1, (100, 100), "f8") * 0.01
        assert not is_tiled(loop(body, 7), u)
        check(loop(body, 7), u, exact=False)


def test_small_loops_are_left_alone():
    with limited(DEFAULT):
        u = state(1, (40, 40), "f4")
        assert not is_tiled(loop(heat, 50), u)
        assert not is_tiled(loop(heat, 3), state(1, (1000, 1000), "f4"))
        assert is_tiled(loop(heat, 50), state(1, (1000, 1000), "f4"))


def test_the_carry_may_be_the_callers_array():
    @jt.jit(donate_argnums=0)
    def f(u):
        return loop(heat, 20)(u)

    u = state(1, (300, 64), "f4")
    want = jt.jit(loop(heat, 20), backend="interpreter")(u)
    np.testing.assert_array_equal(f(u.copy()), want)
