"""jt.vmap of branches and loops: each example takes its own branch and makes its own trips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from batches import GRADIENT_ORDERS, ORDERS, RNG, A, X, close, looped, newton

import jitney as jt


def newton_python(a: float) -> float:
    x = a + 1.0
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def collatz(n: Any) -> Any:
    def body(carry: Any) -> Any:
        n, steps = carry
        return np.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return jt.while_loop(lambda carry: carry[0] != 1, body, (n, 0))[1]


def collatz_cond(n: Any) -> Any:
    def body(carry: Any) -> Any:
        n, steps = carry
        return jt.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), steps + 1

    return jt.while_loop(lambda carry: carry[0] != 1, body, (n, 0))[1]


def collatz_python(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def mandelbrot(x: Any, y: Any) -> Any:
    def body(carry: Any) -> Any:
        k, a, b = carry
        return k + 1, a * a - b * b + x, 2 * a * b + y

    inside = jt.while_loop(
        lambda c: (c[1] * c[1] + c[2] * c[2] <= 4.0) & (c[0] < 50), body, (0, x * 0, y * 0)
    )
    return inside[0]


def mandelbrot_python(x: float, y: float) -> int:
    k, a, b = 0, 0.0, 0.0
    while a * a + b * b <= 4.0 and k < 50:
        k, a, b = k + 1, a * a - b * b + x, 2 * a * b + y
    return k


N = np.arange(1, 60)


@pytest.mark.parametrize("order", ORDERS)
def test_each_example_makes_its_own_trips(order: str) -> None:
    transform = ORDERS[order]
    np.testing.assert_array_equal(transform(newton)(A), [newton_python(a) for a in A])
    for f in (collatz, collatz_cond):
        np.testing.assert_array_equal(transform(f)(N), [collatz_python(int(n)) for n in N])


def test_mandelbrot() -> None:
    y, x = np.mgrid[-1.2:1.2:15j, -2:1:20j]
    want = [
        [mandelbrot_python(a, b) for a, b in zip(*r, strict=True)] for r in zip(x, y, strict=True)
    ]
    np.testing.assert_array_equal(jt.vmap(jt.vmap(mandelbrot))(x, y), want)
    np.testing.assert_array_equal(jt.jit(jt.vectorize(mandelbrot))(x, y), want)
    np.testing.assert_array_equal(jt.vectorize(mandelbrot)(x[0], y[:, :1]), want)


def test_loops_over_arrays() -> None:
    def power(matrix: Any) -> Any:
        """Power iteration until the vector settles."""
        start = np.ones(matrix.shape[0])

        def body(carry: Any) -> Any:
            v, _ = carry
            w = matrix @ v
            w = w / np.sqrt(np.sum(w * w))
            return w, np.sum(np.abs(w - v))

        return jt.while_loop(lambda c: c[1] > 1e-9, body, (start, 1.0))[0]

    m = RNG.normal(size=(5, 3, 3))
    m = np.einsum("kij,klj->kil", m, m) + np.diag([3.0, 1.0, 0.1])
    want = looped(power, m)
    close(jt.vmap(power)(m), want)
    close(jt.jit(jt.vmap(power))(m), want)


def branchy(x: Any) -> Any:
    return jt.cond(
        np.sum(x) > 0,
        lambda x: np.sum(np.sqrt(np.abs(x))),
        lambda x: jt.switch(np.argmax(x), [lambda x: x[0], lambda x: x[1] ** 2, np.max], x),
        x,
    )


@pytest.mark.parametrize("order", ORDERS)
def test_each_example_takes_its_own_branch(order: str) -> None:
    close(ORDERS[order](branchy)(X), looped(branchy, X))
    gradient = jt.grad(branchy)
    close(ORDERS[order](gradient)(X), looped(gradient, X))


def test_a_branch_not_taken_leaves_gradients_clean() -> None:
    def safe(x: Any) -> Any:
        return jt.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)

    x = np.array([4.0, 0.0, -1.0])
    close(jt.vmap(jt.grad(safe))(x), np.array([0.25, 0.0, 0.0]))
    close(jt.grad(lambda x: np.sum(jt.vmap(safe)(x)))(x), np.array([0.25, 0.0, 0.0]))


def test_reading_as_far_as_each_example_goes() -> None:
    def total(x: Any, n: Any) -> Any:
        return jt.fori_loop(0, n, lambda i, s: s + x[i], 0.0)

    x, n = RNG.normal(size=(4, 6)), np.array([0, 6, 3, 1])
    want = np.array([row[:k].sum() for row, k in zip(x, n, strict=True)])
    for f in (jt.vmap(total), jt.jit(jt.vmap(total))):
        close(f(x, n), want)
        with pytest.raises(IndexError, match="index 6 is out of bounds"):
            f(x, n + 1)


@pytest.mark.parametrize("order", GRADIENT_ORDERS)
def test_gradients_through_loops_of_different_lengths(order: str) -> None:
    transform = GRADIENT_ORDERS[order]
    close(transform(newton)(A), 0.5 / np.sqrt(A), rtol=1e-7)

    def power(x: Any, n: Any) -> Any:
        return jt.fori_loop(0, n, lambda i, p: p * x, 1.0)

    x, n = np.array([2.0, 3.0, -1.5, 0.5]), np.array([3, 0, 5, 1])
    close(transform(power)(x, n), n * x ** np.maximum(n - 1.0, 0), rtol=1e-9)
    close(transform(lambda x: power(x, 4))(x), 4 * x**3, rtol=1e-9)


def nested(x: Any, n: Any) -> Any:
    """A loop in a loop, of lengths that depend on the example."""

    def outer(i: Any, c: Any) -> Any:
        return jt.fori_loop(0, i + n % 2, lambda j, c: np.sin(c) * x + 0.1 * j, c) + np.cos(x * c)

    return jt.fori_loop(0, n, outer, x)


def branch_in_loop(x: Any, n: Any) -> Any:
    """The index of one branch counts, that of the other belongs to the example."""

    def body(i: Any, c: Any) -> Any:
        c = jt.cond(i % 2 == 0, lambda c: np.sin(c) * np.exp(c * x), lambda c: c * c - x, c)
        return jt.cond(c > 0.3, lambda c: np.tanh(c * x), lambda c: np.exp(c) - 0.5, c)

    return jt.fori_loop(0, n, body, x)


def loop_in_branch(x: Any, n: Any) -> Any:
    def loop(c: Any) -> Any:
        return jt.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, np.sin(c[1]) * x), (0, c))[1]

    return jt.cond(x > 0.6, loop, lambda c: jt.fori_loop(0, 3, lambda i, c: c * x, c), np.exp(x))


def loop_of_vectors(x: Any, n: Any) -> Any:
    matrix = np.array([[0.5, 0.2], [-0.3, 0.4]]) * x

    def body(c: Any) -> Any:
        v, k = c
        return np.tanh(matrix @ v) + v[::-1] * 0.3, k + 1

    start = np.stack([x, x * x])
    return np.sum(jt.while_loop(lambda c: c[1] < n, body, (start, 0))[0] ** 2)


def convergent(x: Any, n: Any) -> Any:
    """Trips that depend on the differentiated value itself."""
    return newton(x * x + n)


CHECKPOINTS = [
    lambda x, n, how=how: jt.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, np.sin(c[1]) * x), (0, x), checkpoint=how
    )[1]
    for how in ("all", "sqrt", 3)
]


PROGRAMS = {
    **{
        f.__name__: f for f in (nested, branch_in_loop, loop_in_branch, loop_of_vectors, convergent)
    },
    **dict(zip(("all", "sqrt", "slots"), CHECKPOINTS, strict=True)),
}


STARTS = np.array([0.5, 1.1, 0.9, 0.7])
COUNTS = np.array([3, 0, 7, 4])


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_of_each_example_through_control_flow(program: str) -> None:
    f = PROGRAMS[program]
    want = looped(jt.grad(f), STARTS, COUNTS)
    inside = jt.vmap(jt.grad(f))
    outside = jt.grad(lambda x, counts: np.sum(jt.vmap(f)(x, counts)))
    same = jt.vmap(jt.grad(f), (0, None))
    close(inside(STARTS, COUNTS), want)
    close(outside(STARTS, COUNTS), want)
    compiled = jt.jit(lambda x, counts, n: (inside(x, counts), outside(x, counts), same(x, n)))
    wanted = want, want, np.array([jt.grad(f)(x, 4) for x in STARTS])
    for got, expected in zip(compiled(STARTS, COUNTS, 4), wanted, strict=True):
        close(got, expected)


@pytest.mark.parametrize("program", PROGRAMS)
def test_second_derivatives_of_each_example_through_control_flow(program: str) -> None:
    f = PROGRAMS[program]
    twice = jt.grad(jt.grad(f))
    want = looped(twice, STARTS, COUNTS)
    close(jt.vmap(twice)(STARTS, COUNTS), want, rtol=1e-9)
    push = lambda x, n: jt.jvp(lambda x: jt.grad(f)(x, n), (x,), (1.0,))[1]  # noqa: E731
    compiled = jt.jit(lambda x, counts: (jt.vmap(twice)(x, counts), jt.vmap(push)(x, counts)))
    for got in compiled(STARTS, COUNTS):
        close(got, want, rtol=1e-9)
