"""Numbers of several classes, arrays of several shapes and dtypes; by branch, by loop."""

from __future__ import annotations

import numpy as np
import pytest
from alike import UP, compare

import jitney as jt
from jitney.tracer.autograph.calls import eigenvalues


def test_numbers_of_several_classes() -> None:
    def assigned(x):
        if x < 1:
            y = 2**53 + 1
        else:
            y = x * 0.5
        return y, int(y), isinstance(y, int), type(y) is float

    def arithmetic(x):
        y = 1 if x < 1 else x
        return y * 2, y + 1.5, y / 2, -y, y // 2, y**2, round(y), y < 2, abs(y)

    def three(x):
        if x < 0:
            return None
        if x < 1:
            return True
        return 3 if x < 2 else x

    def of_numpy(x):
        return 0 if x[0] < 2 else x[0] if x[0] < 3.5 else 0.5

    def updated(x):
        t = 0
        if x > 0:
            t += x
        if x > 2:
            t *= 2
        return t

    def caught(x, i):
        try:
            return x[i]
        except IndexError:
            return -1.0

    def extreme(x):
        return max(0, x), min(x, 1), [x if x < 0 else 3]

    def halved(n):
        return n // 2 if n % 2 == 0 else n / 2

    for f in (assigned, arithmetic, three, updated, extreme):
        compare(f, (0.5,), (-2.0,), (1.5,), (4.0,))
    compare(of_numpy, (UP,), (UP + 1,), (UP + 3,))
    compare(caught, (UP, 1), (UP, -1), (UP, 7))
    compare(halved, (4,), (5,), backend="native")

    def inside(x):  # where the class does not matter there is nothing of it
        total = 0.0
        for i in range(len(x)):
            w = 1 if x[i] < 2 else 0.5
            total += w * x[i]
        return total

    compare(inside, (UP,), backend="native")
    assert jt.grad(inside)(UP).tolist() == [1.0, 0.5, 0.5, 0.5]
    assert jt.vmap(lambda x: 1 if x < 2 else x)(UP).tolist() == [1.0, 2.0, 3.0, 4.0]


def _wider(x, k):
    y = x
    if k > 2:
        y = np.concatenate([x, [1.0]])
    return y.sum(), y * 2, len(y), y.shape, [v + 1 for v in y[:2]]


def _typed(x, k):
    y = np.zeros(3) if k > 2 else np.zeros(3, dtype=int)
    y[0] = 2.7
    y += 1 if k < 3 else 2
    return y, y.dtype == int


def _changed_in_place(x, k):
    y = x
    if k > 2:
        y = np.zeros((3, 3))
    z = y
    z[0] = 5
    for i in range(len(y)):
        y[i] += i
    return x, y, z is y


def _views_of_two_lengths(x, k):
    i = 0
    y = x
    while i < k:
        y = x[:2] if i % 2 else x[:1]
        y[0] += 1
        i += 1
    x[0] *= 2
    return y, x


def _settled_by_rank(x, k):
    if k > 2:
        x = x[:, None] * x
    if x.ndim == 2:
        x = x.sum(axis=0)
    return x @ x


def _swapped(x, k):
    w, v = (x, x * 1j) if k > 2 else (x * 1j, x)
    order = np.abs(w[::-1]).argsort()
    return w[order], v[order][:1], sum(w), [z + 1 for z in v]


@pytest.mark.parametrize(
    "f", [_wider, _typed, _changed_in_place, _views_of_two_lengths, _settled_by_rank, _swapped]
)
def test_arrays_of_other_shapes_and_dtypes(f) -> None:
    x = np.array([1.0, 2.0, 3.0])
    compare(lambda x, k: (f(x, k), x), (x, 1), (x, 4), backend="native")


def test_eigenvalues_are_real_where_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x):
        w, v = np.linalg.eig(x)
        order = w.argsort()[::-1]
        return w[order][:1], v[:, order], w, np.iscomplexobj(w), np.abs(w).max()

    def roots(x):
        return np.roots(x[0] + 1), np.linalg.eigvals(x), np.linalg.eigvals(x + 0j)

    symmetric, turn = np.array([[2.0, 1], [1, 3]]), np.array([[0.0, 1], [-1, 0]])
    calls = [(symmetric,), (turn,), (symmetric.astype(int),), (turn.astype(np.float32),)]
    compare(f, *calls, backend="native")
    compare(roots, *calls, backend="native")
    both = np.stack([symmetric, turn])
    np.testing.assert_array_equal(jt.vmap(np.linalg.eigvals)(both), np.linalg.eigvals(both))
    monkeypatch.setattr(eigenvalues, "_always_complex", lambda: True)  # since NumPy 2.5
    for function in (np.linalg.eigvals, lambda x: np.linalg.eig(x).eigenvalues):
        assert jt.jit(function, backend="interpreter")(symmetric).dtype == np.complex128
    gradient = jt.jit(jt.grad(lambda x: np.abs(np.linalg.eigvals(x)).max()))(symmetric)
    np.testing.assert_allclose(gradient, [[0.27639320, 0.4472136], [0.4472136, 0.7236068]])


def test_ints_that_loops_hand_on_beside_floats() -> None:
    def bezout(a, b):
        s, t = (1, 0), (0, 1)
        r, rest = a, b
        (s, u), (t, v) = s, t
        while rest != 0:
            q = r / rest
            r, rest = rest, r - q * rest
            s, u = u, s - q * u
            t, v = v, t - q * v
        return s, t, r

    def shifted(n):
        x, y, z = 1, 2, 3
        for _ in range(n):
            x, y, z = y, z, x / 2
        return x, y, z

    def before_last(values):
        before, last = 0.5, 0
        for x in values:
            before, last = last, x
        return before, last

    def least(values):
        best = np.inf
        for x in values:
            if x < best:
                best = x
        return best

    def reset(values):
        run = total = 0.0
        for i in range(len(values)):
            if values[i] > 1:
                run += values[i]
            else:
                run = 0
            total += run
        return run, total

    def restarted(values):
        run, best = 0, -np.inf
        for x in values:
            run = max(0, run + x)
            best = max(best, run)
        return run, best

    compare(bezout, (8160, 462), (17, 5), (5, 1), (3, 0))
    compare(shifted, *((n,) for n in range(5)))
    many = np.arange(90) % 7
    arrays = [np.array([3, 2**60 + 1]), np.arange(0), UP, np.array([3, 1]), -UP, many, many - 3.0]
    for f in (before_last, least, reset, restarted):
        compare(f, *((x,) for x in arrays))
