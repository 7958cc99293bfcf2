"""jt.vmap and jt.vectorize: the numbers of a Python loop, in any nesting with jit and grad."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import numpy as np
import pytest

import jitney as jt

RNG = np.random.default_rng(3)
X = RNG.normal(size=(4, 3))
Y = RNG.normal(size=(4, 3))
W = RNG.normal(size=(3, 2))


def close(got: Any, want: Any, rtol: float = 1e-10) -> None:
    """Equal structure, dtypes and shapes, and values within rounding."""
    got_leaves, got_tree = jt.tree.flatten(got)
    want_leaves, want_tree = jt.tree.flatten(want)
    assert got_tree == want_tree
    for g, w in zip(got_leaves, want_leaves, strict=True):
        assert np.asarray(g).dtype == np.asarray(w).dtype
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)
        assert np.shape(g) == np.shape(w)


def looped(f: Callable[..., Any], *args: Any) -> Any:
    """f over axis 0 of all arguments, by a Python loop."""
    rows = [f(*row) for row in zip(*args, strict=True)]
    return jt.tree.map(lambda *leaves: np.stack(leaves), *rows)


def model(x: Any, y: Any) -> Any:
    hidden = np.tanh(x @ W)
    return np.sum(hidden**2) * np.exp(-np.max(y)) + x[0]


ORDERS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda f: jt.vmap(f),
    "jit(vmap)": lambda f: jt.jit(jt.vmap(f)),
    "vmap(jit)": lambda f: jt.vmap(jt.jit(f)),
    "jit(vmap(jit))": lambda f: jt.jit(jt.vmap(jt.jit(f))),
    "interpreted": lambda f: jt.jit(jt.vmap(f), backend="interpreter"),
}


@pytest.mark.parametrize("order", ORDERS)
def test_every_nesting_with_jit(order: str) -> None:
    close(ORDERS[order](model)(X, Y), looped(model, X, Y))


@pytest.mark.parametrize("order", ORDERS)
def test_vmap_of_grad(order: str) -> None:
    gradient = jt.grad(model, argnums=(0, 1))
    close(ORDERS[order](gradient)(X, Y), looped(gradient, X, Y))


def test_grad_of_vmap() -> None:
    want = looped(jt.grad(model), X, Y)

    def total(x: Any, y: Any) -> Any:
        return np.sum(jt.vmap(model)(x, y))

    for f in (
        jt.grad(total),
        jt.jit(jt.grad(total)),
        jt.grad(jt.jit(total)),
        jt.jit(jt.grad(jt.jit(total))),
    ):
        close(f(X, Y), want)


def test_forward_mode_and_vmap() -> None:
    tangent = np.ones(3)

    def push(x: Any, y: Any) -> Any:
        return jt.jvp(model, (x, y), (tangent, tangent))

    close(jt.vmap(push)(X, Y), looped(push, X, Y))
    out, moved = jt.jvp(jt.vmap(model), (X, Y), (np.ones((4, 3)), np.ones((4, 3))))
    close((out, moved), looped(push, X, Y))


def test_second_derivatives() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x) ** 3)

    close(jt.vmap(jt.hessian(f))(X), looped(jt.hessian(f), X), rtol=1e-9)
    twice = jt.grad(lambda x: np.sum(jt.grad(f)(x) ** 2))
    close(jt.jit(jt.vmap(twice))(X), looped(twice, X))


def test_vmap_in_vmap() -> None:
    def distance(x: Any, y: Any) -> Any:
        return np.sqrt(np.sum((x - y) ** 2))

    want = np.sqrt(((X[:, None] - Y[None]) ** 2).sum(-1))
    pairwise = jt.vmap(jt.vmap(distance, (None, 0)), (0, None))
    close(pairwise(X, Y), want)
    close(jt.jit(pairwise)(X, Y), want)
    close(jt.vmap(jt.vmap(distance, (0, None)), (None, 0), out_axes=1)(X, Y), want)


# Axes


@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out_axis", [0, 1, -1, -2])
def test_axes(in_axis: int, out_axis: int) -> None:
    x = RNG.normal(size=(2, 3, 4))
    rows = [np.sin(row).sum(0) for row in np.moveaxis(x, in_axis, 0)]
    f = jt.vmap(lambda a: np.sin(a).sum(0), in_axis, out_axis)
    close(f(x), np.stack(rows, out_axis))
    close(jt.jit(f)(x), np.stack(rows, out_axis))


def test_trees_of_axes() -> None:
    def f(params: Any, x: Any, scale: Any) -> Any:
        return {"a": x @ params["w"] + params["b"], "b": (scale, params["b"])}

    params = {"w": W, "b": RNG.normal(size=(2, 4))}
    got = jt.vmap(f, ({"w": None, "b": 1}, 0, None), {"a": 0, "b": (None, -1)})(params, X, 2.0)
    close(got, {"a": X @ W + params["b"].T, "b": (2.0, params["b"])})
    got = jt.vmap(f, [{"w": None, "b": 1}, 0, None], {"a": 1, "b": 0})(params, X, np.float32(2))
    want = {
        "a": (X @ W + params["b"].T).T,
        "b": (np.full(4, 2, np.float32), params["b"].T),
    }
    close(got, want)


def test_keyword_arguments_go_along_axis_0() -> None:
    def f(x: Any, *, y: Any) -> Any:
        return x - y

    close(jt.vmap(f, 1)(X.T, y=Y), X - Y)


def test_dataclasses_and_namedtuples() -> None:
    @dataclass
    class Pair:
        a: Any
        b: Any

    got = jt.vmap(lambda p: Pair(p.b, p.a.sum()))(Pair(X, Y))
    assert isinstance(got, Pair)
    close((got.a, got.b), (Y, X.sum(1)))


def test_axis_size() -> None:
    close(jt.vmap(lambda: np.float32(2), axis_size=3)(), np.full(3, 2, np.float32))
    close(jt.vmap(lambda x: x, axis_size=4)(X), X)
    close(jt.vmap(lambda x: np.sum(x))(np.zeros((0, 3))), np.zeros(0))


def test_results_that_are_the_same_for_all() -> None:
    got = jt.vmap(lambda x: (x, 1.5, np.arange(2), True), out_axes=(0, None, None, 0))(X)
    close(got, (X, 1.5, np.arange(2), np.ones(4, bool)))
    assert type(got[1]) is float
    close(jt.vmap(lambda x: np.arange(2), out_axes=1)(X), np.tile(np.arange(2)[:, None], 4))


def test_results_share_no_memory_with_arguments() -> None:
    x = X.copy()
    same, flipped, captured = jt.vmap(lambda a: (a, a[::-1], W), out_axes=(0, 0, None))(x)
    for array in (same, flipped, captured):
        array[...] = 0
    np.testing.assert_array_equal(x, X)
    assert W.any()


def test_arguments_that_are_no_arrays_reach_the_function() -> None:
    def f(x: Any, n: int, kind: str) -> Any:
        assert type(n) is int and kind == "sum"
        return np.sum(x[:n])

    close(jt.vmap(f, (0, None, None))(X, 2, "sum"), X[:, :2].sum(1))


def test_what_the_function_closes_over_is_the_same_for_all() -> None:
    def outer(w: Any, x: Any) -> Any:
        return jt.vmap(lambda row: row @ w)(x)

    close(outer(W, X), X @ W)
    close(jt.jit(outer)(W, X), X @ W)
    close(jt.grad(lambda w: np.sum(outer(w, X)))(W), np.tile(X.sum(0)[:, None], 2))


def test_dtypes() -> None:
    for dtype in (np.bool_, np.int8, np.uint32, np.int64, np.float32):
        x = np.arange(6).reshape(2, 3).astype(dtype)
        close(
            jt.vmap(lambda a: (a.max(), np.argmax(a), a.astype(np.int16)))(x),
            looped(lambda a: (a.max(), np.argmax(a), a.astype(np.int16)), x),
        )
    close(jt.vmap(lambda a: a * 2)(np.arange(3, dtype=np.int8)), np.arange(3, dtype=np.int8) * 2)


def test_assignment_inside() -> None:
    def f(x: Any, i: Any) -> Any:
        out = np.zeros_like(x)
        out[i] = x.sum()
        out[0] += 1
        x[1] = 7
        return out, x

    x, i = X.copy(), np.array([0, 2, 1, 2])
    close(jt.vmap(f)(x, i), looped(f, X.copy(), i))
    np.testing.assert_array_equal(x, X)  # the assignment to the argument stays inside
    close(jt.jit(jt.vmap(f))(x, i), looped(f, X.copy(), i))


def test_strided_arguments() -> None:
    x = np.asfortranarray(RNG.normal(size=(4, 3, 2)))[::2, ::-1]
    f = jt.vmap(lambda a: (a.reshape(-1), a.T.ravel(), a.copy("K")), 1)
    rows = [x[:, k] for k in range(3)]
    want = tuple(np.stack(c) for c in zip(*[(r.reshape(-1), r.T.ravel(), r) for r in rows]))  # noqa: B905
    close(f(x), want)


def test_random_numpy_functions() -> None:
    def f(x: Any, i: Any) -> Any:
        order = np.argsort(x)
        return [
            np.sort(x)[i],
            np.take(x, order),
            np.cumsum(x),
            np.where(x > 0, x, -1.0),
            np.concatenate([x, x[::-1]]),
            np.linalg.norm(x),
            np.outer(x, x),
            np.einsum("i,ij->j", x, W),
            np.clip(x, -0.5, 0.5),
            np.pad(x, 1),
            np.roll(x, 1),
            np.var(x),
        ]

    i = np.array([0, 2, 1, -1])
    close(jt.vmap(f)(X, i), looped(f, X, i))
    close(jt.jit(jt.vmap(f))(X, i), looped(f, X, i))


# Control flow for each example


def newton(a: Any) -> Any:
    return jt.while_loop(
        lambda x: np.abs(x * x - a) > 1e-12 * a, lambda x: 0.5 * (x + a / x), a + 1.0
    )


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


A = np.linspace(0.1, 50, 37)
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


GRADIENT_ORDERS: dict[str, Callable[[Any], Any]] = {
    "vmap(grad)": lambda f: jt.vmap(jt.grad(f)),
    "jit(vmap(grad))": lambda f: jt.jit(jt.vmap(jt.grad(f))),
    "grad(vmap)": lambda f: jt.grad(lambda *a: np.sum(jt.vmap(f)(*a))),
    "jit(grad(vmap))": lambda f: jt.jit(jt.grad(lambda *a: np.sum(jt.vmap(f)(*a)))),
    "forward": lambda f: (
        lambda *a: jt.vmap(lambda x, *rest: jt.jvp(lambda x: f(x, *rest), (x,), (1.0,))[1])(*a)
    ),
}


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
    close(jt.vmap(jt.grad(f))(STARTS, COUNTS), want)
    close(jt.jit(jt.vmap(jt.grad(f)))(STARTS, COUNTS), want)
    close(jt.grad(lambda x: np.sum(jt.vmap(f)(x, COUNTS)))(STARTS), want)
    close(jt.jit(jt.grad(lambda x: np.sum(jt.vmap(f)(x, COUNTS))))(STARTS), want)
    same = jt.vmap(jt.grad(f), (0, None))
    close(jt.jit(same)(STARTS, 4), np.array([jt.grad(f)(x, 4) for x in STARTS]))


@pytest.mark.parametrize("program", PROGRAMS)
def test_second_derivatives_of_each_example_through_control_flow(program: str) -> None:
    f = PROGRAMS[program]
    twice = jt.grad(jt.grad(f))
    want = looped(twice, STARTS, COUNTS)
    close(jt.vmap(twice)(STARTS, COUNTS), want, rtol=1e-9)
    close(jt.jit(jt.vmap(twice))(STARTS, COUNTS), want, rtol=1e-9)
    push = lambda x, n: jt.jvp(lambda x: jt.grad(f)(x, n), (x,), (1.0,))[1]  # noqa: E731
    close(jt.jit(jt.vmap(push))(STARTS, COUNTS), want, rtol=1e-9)


# Errors


def message(
    f: Callable[..., Any], *args: Any, kind: type[Exception] = jt.errors.JitneyError, **kw: Any
) -> str:
    with pytest.raises(kind) as caught:
        f(*args, **kw)
    return str(caught.value)


def test_sizes_that_differ_are_named() -> None:
    text = message(jt.vmap(lambda a, b: a), X, np.ones(5), kind=ValueError)
    assert "a has 4 along axis 0" in text and "b has 5 along axis 0" in text
    assert "f64[4,3]" in text and "test_vmap.py" in text
    text = message(jt.vmap(lambda p: p["u"]), {"u": X, "v": X.T}, kind=ValueError)
    assert "p['u'] has 4" in text and "p['v'] has 3" in text
    assert "x has 4" in message(jt.vmap(lambda x: x, axis_size=3), X, kind=ValueError)


def test_scalars_have_no_axis() -> None:
    text = message(jt.vmap(lambda x, s: x * s), X, 2.0, kind=ValueError)
    assert "the axis 0 for s, a scalar" in text and "in_axes=(0, None)" in text
    text = message(jt.vmap(lambda x, s: x * s), X, s=2.0, kind=ValueError)
    assert "functools.partial" in text
    close(jt.vmap(partial(lambda x, s: x * s, s=2.0))(X), X * 2)


def test_axes_out_of_range() -> None:
    text = message(jt.vmap(lambda x: x, 2), X, kind=np.exceptions.AxisError)
    assert "axis 2 for x, which has 2 axes" in text
    text = message(jt.vmap(lambda x: x, 0, 2), X, kind=np.exceptions.AxisError)
    assert "axis 2" in text and "f64[3]" in text


def test_structures_that_do_not_fit() -> None:
    assert "3 entries" in message(jt.vmap(lambda x, y: x, (0, 0, 0)), X, Y)
    assert "no upper part" in message(jt.vmap(lambda p: p, ({"a": 0},)), {"b": X})
    assert "no upper part" in message(jt.vmap(lambda x: x, 0, (0, 1)), X)
    assert "an int, or None" in message(jt.vmap, lambda x: x, "rows", kind=TypeError)
    assert "an int, or None" in message(jt.vmap, lambda x: x, True, kind=TypeError)
    assert "axis_size" in message(jt.vmap(lambda x: x, None), X)
    assert "takes a callable" in message(jt.vmap, 3)
    assert "no array" in message(jt.vmap(lambda x, s: x), X, "text", kind=TypeError)
    assert "out_axes is None" in message(jt.vmap(lambda x: x, 0, None), X)


def test_branching_on_an_example_says_that_it_is_traced() -> None:
    for run in (jt.vmap, lambda f: jt.vmap(jt.jacrev(f))):
        mapped = jt.jit(run(lambda x: x[0] if x[0] > 0 else x[1]), autograph=False)
        text = message(mapped, X, kind=TypeError)
        assert "every example at once" in text and "jt.cond" in text
    mapped = jt.jit(jt.vmap(lambda x: float(x[0])), autograph=False)
    assert "every example at once" in message(mapped, X, kind=TypeError)
    assert "every example at once" in message(jt.vmap(lambda x: np.arange(x[0])), X, kind=TypeError)


def test_a_tracer_that_leaves_is_found() -> None:
    kept = []
    jt.vmap(lambda x: kept.append(x) or x)(X)
    assert "vmap" in message(lambda: kept[0] + 1, kind=jt.errors.LeakedTracerError)


# vectorize


def test_vectorize_broadcasts() -> None:
    def f(a: Any, b: Any) -> Any:
        return a * b + 1

    g = jt.vectorize(f)
    for shapes in [
        ((3,), ()),
        ((4, 1), (3,)),
        ((2, 1, 3), (4, 1)),
        ((1,), (1,)),
        ((0, 1), (3,)),
        ((), ()),
    ]:
        a, b = (RNG.normal(size=s) for s in shapes)
        close(np.asarray(g(a, b)), np.asarray(a * b + 1))
        close(np.asarray(jt.jit(g)(a, b)), np.asarray(a * b + 1))
    close(g(X, 2.0), X * 2 + 1)
    close(g([1.0, 2.0], 3), np.array([4.0, 7.0]))
    close(g(np.float32(2) * np.ones(2, np.float32), 2), np.full(2, 5, np.float32))


def test_vectorize_with_a_signature() -> None:
    matvec = jt.vectorize(lambda a, x: a @ x, signature="(m,n),(n)->(m)")
    a, x = RNG.normal(size=(5, 1, 2, 3)), RNG.normal(size=(4, 3))
    close(matvec(a, x), np.einsum("abij,bj->abi", np.broadcast_to(a, (5, 4, 2, 3)), x))
    close(matvec(a[0, 0], x[0]), a[0, 0] @ x[0])

    @jt.vectorize(signature="(n),()->(),(n)")
    def two(v: Any, s: Any) -> Any:
        return v.sum() * s, v + s

    v, s = RNG.normal(size=(2, 1, 3)), RNG.normal(size=(4,))
    got = two(v, s)
    close(got, (v.sum(-1) * s, v + s[:, None]))
    close(jt.vectorize(lambda: 1.0, signature="->()")(), 1.0)


def test_vectorize_excluded() -> None:
    def f(x: Any, n: int, *, power: Any) -> Any:
        return np.sum(x * np.arange(n)) ** power

    g = jt.vectorize(f, excluded={1})
    close(g(X, 3, power=2), (X * 3) ** 2)
    f_doc = jt.vectorize(f).__wrapped__
    assert f_doc is f


def test_vectorize_is_differentiable() -> None:
    g = jt.grad(lambda x: np.sum(jt.vectorize(newton)(x)))
    close(g(A.reshape(-1, 1)), 0.5 / np.sqrt(A.reshape(-1, 1)), rtol=1e-7)


def test_vectorize_errors() -> None:
    dot = jt.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")
    text = message(dot, np.ones(3), np.ones(4), kind=ValueError)
    assert "n of the signature" in text and "3" in text and "4" in text
    assert "needs 1 axes" in message(dot, 1.0, np.ones(3), kind=ValueError)
    assert "2 arguments" in message(dot, np.ones(3))
    assert "broadcast" in message(dot, np.ones((2, 3)), np.ones((5, 3)), kind=ValueError)
    assert "no signature" in message(jt.vectorize, lambda x: x, signature="n->n")
    grows = jt.vectorize(lambda x: np.zeros(3))
    assert "without a signature" in message(grows, X, kind=ValueError)
    wrong = jt.vectorize(lambda x: x[:2], signature="(n)->(n)")
    assert "(n=3)" in message(wrong, X, kind=ValueError)
    pair = jt.vectorize(lambda x: (x, x), signature="()->()")
    assert "1 results" in message(pair, X)


def test_what_wraps_a_jitted_function_is_not_that_function() -> None:
    square = jt.jit(lambda x: np.sum(x**2))
    close(jt.jit(jt.grad(square))(X[0]), 2 * X[0])
    close(jt.jit(jt.vmap(square))(X), (X**2).sum(1))

    @jt.jit
    @wraps(square)
    def negated(x: Any) -> Any:
        return -square(x)

    close(negated(X[0]), -np.sum(X[0] ** 2))
