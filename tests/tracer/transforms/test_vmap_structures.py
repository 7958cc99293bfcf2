"""jt.vmap over loops that stack, TensorArrays, custom derivatives, checkpoints and callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

RNG = np.random.default_rng(11)
X = RNG.normal(size=(4, 3))
N = np.array([0, 1, 5, 3])
W = RNG.normal(size=(3, 2))


@jt.custom_jvp
def tripled(x: Any) -> Any:
    """sin, with three times its tangent."""
    return np.sin(x)


@tripled.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return np.sin(primals[0]), 3 * np.cos(primals[0]) * tangents[0]


@jt.custom_vjp
def product(x: Any, y: Any) -> Any:
    return x * y


product.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, ct: (2 * ct * saved[1], ct * saved[0]))


@jt.custom_vjp
def picked(x: Any, i: Any) -> Any:
    """x[i], with a rule that reads x[i] again, so that a wrong i would show."""
    return x[i]


picked.defvjp(
    lambda x, i: (x[i], (x, i)),
    lambda saved, ct: (np.zeros_like(saved[0]) + ct * saved[0][saved[1]], None),
)


def written(x: Any, n: Any) -> Any:
    """A TensorArray that each example fills as far as it goes."""
    array = jt.fori_loop(
        0, n, lambda i, a: a.write(i, np.sin(x[0]) * i), jt.TensorArray(np.float64, 5)
    )
    return jt.cond(n > 0, lambda: array.read(n - 1), lambda: x[1])


def stacked(x: Any) -> Any:
    array = jt.TensorArray(np.float64, 3)
    return jt.fori_loop(0, 3, lambda i, a: a.write(i, np.sin(x[i])), array).stack()


def remembered(x: Any, n: Any) -> Any:
    loop = jt.checkpoint(lambda x: jt.fori_loop(0, n, lambda i, c: np.sin(c) * x, x))
    return loop(x)


def scanned(x: Any, n: Any) -> Any:
    """Each step loops as often as its example says."""

    def step(c: Any, a: Any) -> Any:
        c = jt.fori_loop(0, n, lambda i, c: np.sin(c) * a, c)
        return c, c + a

    last, ys = jt.scan(step, x[0], x, reverse=True)
    return ys * last


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scan": (lambda x: jt.scan(lambda c, a: (np.sin(c) * a, c + a), x[0], x)[1], (X,)),
    "scan of loops": (scanned, (X, N)),
    "map_fn": (lambda x: jt.map_fn(lambda a: np.exp(a) * x[1], x), (X,)),
    "foldl": (lambda x: jt.foldl(lambda c, a: c * a + 1, x, 1.0), (X,)),
    "associative_scan": (lambda x: jt.associative_scan(lambda a, b: a * b, x), (X,)),
    "TensorArray": (stacked, (X,)),
    "TensorArray, partly": (written, (X, N)),
    "custom_jvp": (lambda x: tripled(x), (X,)),
    "custom_vjp": (lambda x: product(x, x + 1), (X,)),
    "custom_vjp of a constant": (lambda x: product(x, W[:, 0]), (X,)),
    "custom rules in branches": (
        lambda x: jt.cond(x[0] > 0, lambda x: product(x, x), lambda x: tripled(x), x),
        (X,),
    ),
    "a rule that could fail": (
        lambda x, i: jt.cond(i < 3, lambda: picked(x, i), lambda: x[0]),
        (X, N),
    ),
    "checkpoint": (lambda x: jt.checkpoint(lambda x: np.tanh(x @ W) @ W.T)(x), (X,)),
    "checkpoint of a loop": (remembered, (X, N)),
}


def close(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_those_of_a_loop(name: str) -> None:
    f, arguments = PROGRAMS[name]
    rows = list(zip(*arguments, strict=True))

    def total(*args: Any) -> Any:
        return np.sum(f(*args))

    values = np.stack([f(*row) for row in rows])
    slopes = np.stack([jt.grad(total)(*row) for row in rows])
    over = jt.grad(lambda x, *rest: np.sum(jt.vmap(total)(x, *rest)))
    ways = jt.vmap(f), jt.vmap(jt.grad(total)), over
    compiled = jt.jit(lambda *args: [way(*args) for way in ways])(*arguments)
    for way, found, want in zip(ways, compiled, (values, slopes, slopes), strict=True):
        close(way(*arguments), want)
        close(found, want)


def test_the_derivative_of_what_is_shared_by_a_custom_rule() -> None:
    def f(w: Any) -> Any:
        return np.sum(jt.vmap(lambda x: product(x, w))(X))

    close(jt.grad(f)(W[:, 0]), X.sum(0))
    close(jt.jit(jt.grad(f))(W[:, 0]), X.sum(0))


def test_pure_callbacks_run_for_one_example_after_the_other() -> None:
    seen = []

    def host(row: Any) -> Any:
        seen.append(row.shape)
        return np.sort(row)

    def f(x: Any) -> Any:
        sort = lambda x: jt.pure_callback(host, jt.ShapeDtype((3,), np.float64), x)  # noqa: E731
        return jt.cond(x[0] > 0, sort, lambda x: x, x)

    want = np.where(X[:, :1] > 0, np.sort(X), X)
    for transformed in (jt.vmap(f), jt.jit(jt.vmap(f))):
        seen.clear()
        close(transformed(X), want)
        assert seen == [(3,)] * int(np.sum(X[:, 0] > 0))


def test_effects_are_refused_at_their_line() -> None:
    def f(x: Any) -> Any:
        return jt.io_callback(lambda a: a, jt.ShapeDtype((), np.float64), x[0])

    for transformed in (jt.vmap(f), jt.jit(jt.vmap(f))):
        with pytest.raises(TypeError, match="callback with effects") as caught:
            transformed(X)
        assert "jt.io_callback(lambda" in str(caught.value)


UNCHANGING: dict[str, Callable[[Any], Any]] = {
    "scan": lambda x: jt.scan(lambda c, y: ((c[0], c[1] + x), None), (1.0, 0.0), np.arange(3))[0],
    "fori_loop": lambda x: jt.fori_loop(0, 3, lambda i, c: (c[0], c[1] + x), (1.0, 0.0)),
    "trips for each": lambda x: jt.fori_loop(
        0, x.astype(int), lambda i, c: (c[0], c[1] + x), (1.0, 0.0)
    ),
    "while_loop": lambda x: jt.while_loop(
        lambda c: c[1] < 5, lambda c: (c[0], c[1] + x), (1.0, 0.0)
    ),
    "while_loop over arrays": lambda x: jt.while_loop(
        lambda c: c[1][0] < 5, lambda c: (c[0], c[1] + x), (np.arange(4.0), np.zeros(4))
    ),
    "a loop in a loop": lambda x: jt.while_loop(
        lambda c: c[1] < 5,
        lambda c: jt.fori_loop(0, 2, lambda j, d: (d[0], d[1] + x), c),
        (1.0, 0.0),
    ),
    "cond": lambda x: jt.cond(x > 1.5, lambda a: (a, x), lambda a: (a, -x), np.arange(3.0)),
    "a loop in a branch": lambda x: jt.cond(
        x > 1.5,
        lambda a: jt.while_loop(lambda c: c[1] < 5, lambda c: (c[0], c[1] + x), (a, 0.0)),
        lambda a: (a, -x),
        np.arange(3.0),
    ),
}


@pytest.mark.parametrize("name", UNCHANGING)
def test_what_never_changes_is_the_same_for_all_examples(name: str) -> None:
    f, x = UNCHANGING[name], np.array([1.0, 2.0, 3.0])
    many = jt.vmap(f, out_axes=(None, 0))
    each = [f(v) for v in x]
    for wrap in (lambda g: g, lambda g: jt.jit(g, backend="interpreter"), jt.jit):
        same, other = wrap(many)(x)
        np.testing.assert_array_equal(same, each[0][0])
        np.testing.assert_array_equal(other, [y for _, y in each])


def test_what_branches_exchange_differs() -> None:
    def f(x: Any) -> Any:
        return jt.cond(x > 1.5, lambda a, b: (a, b), lambda a, b: (b, a), 1.0, 2.0)

    x = np.array([1.0, 2.0])

    def g(x: Any) -> Any:
        return jt.cond(x > 1.5, lambda a: a, lambda a: 2 * a, 1.0)

    for function in (f, g):
        with pytest.raises(TypeError, match="differs from example to example"):
            jt.vmap(function, out_axes=None)(x)
    np.testing.assert_array_equal(jt.vmap(g)(x), [2.0, 1.0])
    np.testing.assert_array_equal(jt.vmap(f)(x), [[2.0, 1.0], [1.0, 2.0]])
