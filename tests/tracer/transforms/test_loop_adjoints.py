"""Adjoints of loops over elements: what an iteration did to few elements costs few backwards."""

import numpy as np
import pytest
from gradients import check_compiled

import jitney as jt
from jitney.ir.passes import optimise
from jitney.ir.types import TensorType


def stencil(a):
    out = np.zeros(a.shape)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            out[i, j] = a[i - 1, j] * a[i + 1, j] + a[i, j - 1] - a[i, j + 1]
    return (out**2).sum()


def filtered(a):
    x = a.ravel()
    y = np.zeros(x.size)
    y[0] = x[0]
    for i in range(1, x.size):
        y[i] = 0.9 * y[i - 1] + 0.1 * x[i]
    return (y * y).sum()


def branches(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 0.5:
                s += np.sin(a[i, j]) * a[i - 1, j]
            elif a[i, j] < 0.2:
                s -= a[i, j] * a[i, j]
    return s


def in_place(a):
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += 0.5 * a[i - 1, j] * a[i, j]
    return a.sum()


def pairs(a):
    e = 0.0
    for i in range(a.shape[0]):
        for j in range(i):
            d = a[i, 0] - a[j, 1]
            e += 1 / (d * d + 0.1)
    return e


def diffused(a):
    u = a.ravel().copy()
    for _ in range(5):
        v = u.copy()
        for i in range(1, u.size - 1):
            u[i] = v[i] + 0.2 * (v[i - 1] - 2 * v[i] + v[i + 1])
    return (u * u).sum()


def triangular(a):
    n = a.shape[0]
    x = np.zeros(n)
    for i in range(n):
        s = a[i, 9]
        for j in range(i):
            s -= 0.1 * a[i, j] * x[j]
        for j in range(n - 1, i, -2):
            s += a[j, i] ** 2
        x[i] = s / (1 + a[i, i])
    return (x * x).sum()


def until(a):
    s = 0.0
    for i in range(a.shape[0]):
        j = i
        while j > 0 and a[i, j] < 0.9:
            s += a[i, j] * a[j, i] * j
            j -= 1
        k = 3
        while k < i:
            s += np.sin(a[k, j])
            k += 1
    return s


def relaxed(a):
    d = a.copy()
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[0]):
                if d[i, k] + d[k, j] < d[i, j] + 0.5:
                    d[i, j] = d[i, k] + d[k, j]
    return (d * d).sum()


def maxima(a):
    out = np.zeros(a.shape)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            best = a[i, j]
            for p in range(-1, 2):
                for q in range(-1, 2):
                    if a[i + p, j + q] > best:
                        best = a[i + p, j + q]
                    elif a[i + p, j + q] < 0.1:
                        best += a[i - p, j - q] * best
            out[i, j] = best
    return (out**2).sum()


def branched(a):
    s = 0.0
    for i in range(1, a.shape[0]):
        if a[i, 0] > 0.5:
            s += a[i, 1] * a[i - 1, 2]
        for j in range(i):
            if a[j, 0] > 0.3:
                s += a[i, j] ** 2
        if a[i, 1] > 0.5:
            s -= a[i, 2] ** 2
        s += a[i, 1] ** 3
    return s


def knapsack(a):
    best = np.zeros(30)
    for k in range(a.shape[0]):
        for w in range(29, 0, -1):
            if k + 2 <= w:
                v = best[w - k - 2] + a[k, 0] * a[k, 1]
                if v > best[w]:
                    best[w] = v
                else:
                    best[w] *= np.cos(v)
    return best.sum()


KERNELS = [stencil, filtered, branches, in_place, pairs, diffused]
KERNELS += [triangular, until, relaxed, maxima, branched, knapsack]


@pytest.mark.parametrize("f", KERNELS)
def test_derivatives(f):
    check_compiled(f, np.random.default_rng(1).random((9, 10)))


@pytest.mark.parametrize("f", [stencil, filtered, in_place, pairs, branches, maxima, branched])
def test_an_iteration_backwards_does_nothing_to_whole_arrays(f):
    graph = optimise(jt.jit(jt.grad(f)).trace(np.ones((30, 31))))
    for op in graph.walk():
        for region in op.regions if op.name in ("scan", "while") else ():
            for inner in region.walk():
                if inner.definition.pointwise and isinstance(inner.result.type, TensorType):
                    assert not inner.result.shape, inner


@pytest.mark.parametrize("f", [pairs, triangular])
def test_what_counts_is_counted_back_and_not_kept(f):
    graph = optimise(jt.jit(jt.grad(f)).trace(np.ones((30, 31))))
    ints = [v for op in graph.walk() if op.name == "tape_push" for v in op.operands[1:]]
    stacks = [v for op in graph.ops if op.name == "scan" for v in op.results if v.type.shape]
    assert not [v for v in (*ints, *stacks) if str(v.type).startswith("i64")]


def test_branches_backwards_take_only_what_they_read():
    for f in (relaxed, knapsack):
        graph = optimise(jt.jit(jt.grad(f)).trace(np.ones((8, 9))))
        shapes = [getattr(v.type, "shape", ()) for op in graph.ops for v in op.results]
        assert not [shape for shape in shapes if len(shape) > 4 or 30 in shape[2:]]
    graph = optimise(jt.jit(jt.grad(relaxed)).trace(np.ones((8, 9))))
    (*_, last) = [op for op in graph.walk() if op.name == "cond"]
    for params in zip(*(region.params for region in last.regions), strict=True):
        pairs = zip(last.regions, params, strict=True)
        assert any(region.users()[param] or param in region.outputs for region, param in pairs)


@pytest.mark.parametrize("f", [triangular, until, relaxed])
@pytest.mark.parametrize("shape", [(0, 10), (1, 10), (7, 10)])
def test_many_examples_and_no_trips(f, shape):
    x = np.random.default_rng(3).random((2, *shape))
    found = jt.jit(jt.vmap(jt.grad(f)))(x)
    np.testing.assert_allclose(found, [jt.jit(jt.grad(f))(one.copy()) for one in x], rtol=1e-12)


def test_a_cotangent_that_two_values_share_is_added_to_neither_in_place():
    def loss(a, b, at):
        c = a + b
        s = 0.0
        for j in range(at.shape[0]):
            s += c[at[j]] ** 2
        return (a**3).sum() + (b**3).sum() + s

    rng = np.random.default_rng(5)
    a, b, at = rng.random(20), rng.random(20), rng.integers(0, 20, 600)
    both = 2 * (a + b) * np.bincount(at, minlength=20)
    found = jt.jit(jt.grad(loss, argnums=(0, 1)))(a, b, at)
    np.testing.assert_allclose(found, [3 * a**2 + both, 3 * b**2 + both])


def test_second_derivatives():
    x = np.random.default_rng(2).random((4, 5))

    def norm(x):
        return (jt.grad(stencil)(x) ** 2).sum() + (jt.grad(branches)(x) ** 2).sum()

    jt.check_grads(jt.jit(norm), (x,), order=1)


@pytest.mark.parametrize("f", [triangular, until])
def test_second_derivatives_of_loops_within_loops(f):
    x = np.random.default_rng(4).random((4, 10))
    jt.check_grads(jt.jit(lambda x: (jt.grad(f)(x) ** 2).sum()), (x,), order=1)


def settled(a):
    s = 0.0
    i = 0.0
    while i < 3.0 * a[0] + 1:
        y = 1.0 + a[1]
        while y * y > a[2] * (1 + i):
            y = y * 0.8 * (1.0 - 0.1 * a[2])
            s += y
        z = a[0]
        while z < 2.0 + i:
            z = z * 1.3 + a[1] * 0.1
            s += z * y
        i = i + 0.9
    return s


def test_loops_inside_share_the_tape_of_the_loop_around_them():
    """Also where examples make different numbers of iterations, and differentiated once more."""
    f = jt.jit(settled)
    points = np.random.default_rng(4).random((5, 3))
    gradient = jt.jit(jt.grad(f))
    assert str(gradient.trace(points[0])).count("tape_new") == 1
    jt.check_grads(f, (points[0],), order=2)
    each = np.stack([gradient(p) for p in points])
    np.testing.assert_allclose(jt.jit(jt.vmap(jt.grad(f)))(points), each)
    whole = jt.jit(jt.grad(lambda points: jt.vmap(f)(points).sum()))
    np.testing.assert_allclose(whole(points), each)
