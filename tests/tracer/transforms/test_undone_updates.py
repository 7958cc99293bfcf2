"""Arrays that loops update in place are taken back where backward loops read them whole."""

import numpy as np
import pytest
from gradients import check_compiled

import jitney as jt
from jitney.ir.passes import optimise

N = 20  # elements of an axis


def count(a):
    """N, as a number that only run time knows: loops so often stay loops."""
    return (a[0] > -9.0).sum()


def cholesky(a):
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j] + (2 * n if i == j else 0)
            for k in range(j):
                s -= low[i, k] * low[j, k]
            if i == j:
                low[i, j] = np.sqrt(s)
            else:
                low[i, j] = s / low[j, j]
    return (low**2 * np.arange(n)).sum()


def rows(a):
    """Rows are replaced, added to and scaled, then read by a loop."""
    x = a.copy()
    for i in range(1, count(a)):
        s = 0.0
        for j in range(i):
            s += np.sin(x[j, i] * x[i, j])
        x[i] = x[i - 1] * s
        x[i - 1] *= 0.5
        x[:, i] += s
    return (x**2).sum()


def settled(a):
    """A loop that ends when the values say so, and writes from both ends."""
    x = a[0] * 1.0
    k = 0
    while k < 30 and x[k % x.size] < 1.5:
        s = 0.0
        for j in range(count(a)):
            s += x[j] * np.cos(x[(j + k) % x.size])
        x[k % x.size] = 0.1 * s
        x[-1 - k % 3] += s * 0.01
        k += 1
    return (x**2).sum() + k


def several(a):
    """Elements at arrays of places, of which some are the same, set and combined."""
    x = a[0] * 1.0
    at = np.array([0, 3, 3, 7])
    for i in range(count(a) - 14):
        s = 0.0
        for j in range(count(a)):
            s += x[j] * x[j - 1]
        x[(at[0] + i) % 5] = s * 0.1
        x[i] *= s * 0.3
        x[i] = max(x[i], x[i + 1])
        x[i + 2] = min(x[i], 0.3)
    return (x**3).sum()


def chosen(a):
    """Which element is written, and whether, is the values' choice; one loop's array is another's."""
    x, y = a[0] * 1.0, a[1] * 1.0
    for i in range(count(a) - 8):
        s = 0.0
        for j in range(count(a)):
            if x[j] > y[j]:
                s += x[j] * y[j - i]
        if s > 2:
            x[i] = s * 0.1
            if s > 3:
                y[i] -= x[i]
        elif s > 1:
            y[i + 1] = np.sin(s)
        for k in range(i):
            y[k] = y[k] * 0.9 + x[i] * s * 0.01
    return (x * y).sum()


def permuted(a):
    """An array of integers is changed, and says backwards which elements were read."""
    order = np.arange(count(a))
    s = 0.0
    for i in range(count(a) - 1):
        t = 0.0
        for j in range(count(a)):
            t += a[order[j], i] * a[i, order[j]]
        k = i + int(a[0, i] > 0.5)
        order[i], order[k] = order[k], order[i]
        s += np.sin(t) * a[order[i], 0]
    return s


def stale(a):
    """What is read after a write is what was there before it."""
    x = a[0] * 1.0
    s = 0.0
    for i in range(count(a) - 12):
        old = x.copy()
        x[i] = np.sin(x[i] + x[i + 1])
        for j in range(count(a)):
            s += old[j] * x[j] * x[j]
        x[i + 1] += 0.1 * s
    return s


def both(a):
    """Two loops begin with the same array, and one of them leaves it alone."""
    x = a[0] * 1.0
    s = 0.0
    for i in range(count(a) - 14):
        y = x.copy()
        for j in range(count(a) - 15):
            t = 0.0
            for k in range(count(a)):
                t += y[k] * y[k - j] * 0.1
            y[j] = np.sin(t)
        for j in range(count(a) - 16):
            t = 0.0
            for k in range(count(a)):
                t += x[k] * y[k] * x[k - i] * 0.1
            x[j + i] = np.cos(t)
        s += (x * y).sum()
    return s


def swept(a):
    """Loops in three floors, all of which write, also in branches."""
    x = a.copy()
    for _ in range(count(a) - 17):
        for i in range(1, count(a) - 1):
            s = 0.0
            for j in range(count(a)):
                s += x[i, j] * x[j, i]
            x[i, i] = np.tanh(s * 0.1)
            if s > 5:
                x[i - 1, i] = s * 0.01
            else:
                x[i, i - 1] -= s * 0.02
    return (x**2).sum()


def broken(a):
    """Ways out of loops, before and after writes."""
    x = a[0] * 1.0
    t = 0.0
    for i in range(count(a)):
        s = 0.0
        for j in range(count(a)):
            if x[j] > 0.9:
                break
            s += x[j] * x[(i + j) % N]
        if s > 3:
            continue
        x[i] = s * 0.2
        if i > 15:
            break
        t += s
    else:
        t *= 2
    return t + (x * x).sum()


PROGRAMS = [cholesky, rows, settled, several, chosen, permuted, stale, both, swept, broken]


@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives(f):
    check_compiled(f, np.random.default_rng(1).random((N, N)))


@pytest.mark.parametrize(
    ("f", "shape"),
    [(cholesky, (N, N)), (rows, (N, N)), (settled, (N,)), (several, (N,)), (permuted, (N,))],
)
def test_arrays_are_not_kept_for_each_iteration(f, shape):
    graph = optimise(jt.jit(jt.grad(f)).trace(np.full((N, N), 0.1)))
    pushes = [op for op in graph.walk() if op.name == "tape_push"]
    assert pushes
    assert not [
        v for op in pushes for v in op.operands[1:] if getattr(v.type, "shape", ()) == shape
    ]


@pytest.mark.parametrize("f", [cholesky, rows, chosen])
def test_many_examples(f):
    x = np.random.default_rng(3).random((2, N, N))
    found = jt.jit(jt.vmap(jt.grad(f)))(x)
    np.testing.assert_allclose(found, [jt.jit(jt.grad(f))(one.copy()) for one in x], rtol=1e-9)


@pytest.mark.parametrize("f", [several, stale])
def test_second_derivatives(f):
    x = np.random.default_rng(4).random((2, N))
    jt.check_grads(jt.jit(lambda x: (jt.grad(f)(x) ** 2).sum()), (x,), order=1)


def test_no_iteration_copies_the_array():
    report = str(jt.jit(jt.grad(cholesky)).explain(np.eye(N)))
    copies = [line for line in report.splitlines() if line.strip().startswith("copies")]
    assert not copies, copies
