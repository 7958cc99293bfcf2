"""Reductions over broadcast pairs (distances, forces, nearest centres): no array of pairs is made."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt


def distances(p, q):
    d = p[:, None] - q[None]
    return np.sqrt((d * d).sum(-1))


def forces(p, m):
    d = p[None] - p[:, None]
    r2 = (d * d).sum(-1) + 0.01
    return ((m[None] / (r2 * np.sqrt(r2)))[:, :, None] * d).sum(1)


def nearest(p, q):
    return ((p[:, None] - q[None]) ** 2).sum(-1).argmin(1)


def spread(p, q):
    d = np.abs(p[:, None] - q[None])
    return d.max(-1).min(1), (d < 0.5).all(-1).any(1), d.prod(-1).sum(0)


def points(n, k, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(n, k)).astype(dtype)


def agree(f, *args):
    want = f(*args)
    got = jt.jit(f)(*args)
    for g, w in zip(jt.tree.leaves(got), jt.tree.leaves(want), strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=2e-5 if w.dtype == np.float32 else 1e-11, atol=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("n", [1, 7, 130])
def test_pairs_of_points(n, k):
    p, q = points(n, k), points(97, k, seed=1)
    for f in (distances, nearest, spread):
        agree(f, p, q)
    agree(forces, p, np.abs(points(n, 1))[:, 0])


def test_layouts_and_dtypes():
    p, q = points(80, 3, np.float32), points(70, 3, np.float32, seed=1)
    wide = points(80, 9)
    for x in (p, np.asfortranarray(p), p[::-1], wide[:, ::3].astype(np.float32), p[::2]):
        agree(distances, x, q)
    agree(nearest, (p * 10).astype(np.int64), (q * 10).astype(np.int64))
    q[3, 1], q[5, 2] = np.nan, np.inf
    agree(distances, p, q)


def test_a_table_that_was_turned_is_still_written_and_returned():
    def f(p):
        p = p.copy()
        d = distances(p, p)
        p[3] = d[0, :3]
        return p, d, p[:, None] + p[None]

    agree(f, points(40, 3))


def test_sums_of_nothing_but_negative_zeros():
    x = np.full((70, 3), -0.0)
    got = jt.jit(lambda x: (x * 1.0 * x.T[:, :1].T).sum(-1))(-x)
    assert not np.signbit(got).any()


def test_pairs_take_no_memory_and_one_kernel():
    p, m = points(300, 3), points(300, 1)[:, 0]
    for f, args in ((distances, (p, p)), (forces, (p, m))):
        explained = jt.jit(f).lower(*args).executable.module
        assert explained.arena_bytes < 100_000
        assert len(explained.kernels) == 2, "the table by columns, and all the rest"


def test_gradients():
    p, q = points(9, 3), points(80, 3, seed=1)
    jt.check_grads(lambda p: distances(p, q).sum(), (p,), order=1)
