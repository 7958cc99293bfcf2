"""Steps of stencils in loops: a carry that is read beside its update, part by part."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt


def inner(u):
    u[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] - 2 * u[1:-1, 1:-1])
    return u


def every_other(u):
    u[::2, 1:] = u[::2, :-1] * 0.5 + u[0, 0]
    return u


def two_parts(u):
    u[1:] = u[:-1] * 0.5 + u[1:]
    u[:, 0] = u[:, 1] + u[:, 2]
    return u


def whole(u):
    return np.roll(u, 1, 0) * 0.5 + u


def read_after(u):
    v = u.copy()
    v[2:-2] = u[:-4] + u[4:]
    return v + 0 * u


BODIES = [inner, every_other, two_parts, whole, read_after]


@pytest.mark.parametrize("body", BODIES)
def test_steps_agree_with_the_interpreter(body):
    u = np.random.default_rng(0).normal(size=(12, 17))

    def counted(u, n):
        return jt.fori_loop(0, n, lambda i, u: body(u), u)

    def pair(u, n):
        """The old value beside the new one."""
        return jt.fori_loop(0, n, lambda i, s: (body(s[0].copy()), s[0]), (u, u * 0))

    trips = (0, 1, 2, 3, 8)
    for f in (counted, pair):
        interpreted, native = jt.jit(f, backend="interpreter"), jt.jit(f)
        fixed = jt.jit(lambda u, f=f: [f(u, n) for n in trips])(u)
        for n, known in zip(trips, fixed, strict=True):
            want, got = interpreted(u, np.int64(n)), native(u, np.int64(n))
            for g, k, w in zip(*map(jt.tree.leaves, (got, known, want)), strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)
                np.testing.assert_allclose(k, w, rtol=1e-12, atol=1e-12)


def test_a_step_writes_the_other_buffer_and_copies_nothing():
    u = np.random.default_rng(0).normal(size=(60, 50))
    module = (
        jt.jit(lambda u: jt.fori_loop(0, 5, lambda i, u: inner(u), u)).lower(u).executable.module
    )
    assert module.arena_bytes <= u.nbytes + 64
    assert [k.extents for k in module.kernels] == [(58, 48)]


def test_steps_inside_of_an_outer_loop():
    u = np.random.default_rng(0).normal(size=(20, 9))

    def f(u):
        def outer(i, u):
            u = jt.fori_loop(0, 3, lambda k, u: inner(u), u)
            u[0] = u[-1] + i
            return u

        return jt.fori_loop(0, 4, outer, u)

    np.testing.assert_allclose(jt.jit(f)(u), jt.jit(f, backend="interpreter")(u), rtol=1e-12)


def test_what_a_step_leaves_alone_is_not_overwritten_by_its_other_updates():
    def f(u, s):
        def step(carry, _):
            u, s = carry
            v = u.copy()
            v[1:-1] = 0.5 * u[:-2] + 0.25 * u[2:]
            w = u.copy()
            w[0], w[-1] = s[0], 7.0
            return (v, np.sort(w)[:5]), None

        return jt.scan(step, (u, s), None, length=5)[0]

    u, s = np.random.default_rng(3).normal(size=100), np.arange(5.0) + 10
    for got, want in zip(jt.jit(f)(u, s), jt.jit(f, backend="interpreter")(u, s), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_what_one_update_leaves_alone_another_may_have_written():
    def step(u, _):
        u[1:] = u[:-1] * 0.5 + abs(u[1:]) * 0.25
        u[:-1] = u[1:] + u[:-1] * 0.5
        return u, None

    def f(u):
        return jt.scan(step, u, None, length=5)[0]

    u = np.random.default_rng(4).normal(size=16)
    np.testing.assert_allclose(jt.jit(f)(u), jt.jit(f, backend="interpreter")(u), rtol=1e-12)
