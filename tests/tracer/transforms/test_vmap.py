"""jt.vmap and jt.vectorize: the numbers of a Python loop, in any nesting with jit and grad."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import numpy as np
import pytest
from batches import ORDERS, RNG, A, W, X, Y, close, looped, newton

import jitney as jt


def model(x: Any, y: Any) -> Any:
    hidden = np.tanh(x @ W)
    return np.sum(hidden**2) * np.exp(-np.max(y)) + x[0]


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
    kept: list[Any] = []
    text = message(lambda: jt.vmap(lambda x: kept.append(x) or x)(X))
    assert "gets another length inside of vmap" in text
    put = kept.append  # nobody sees what that changes
    jt.vmap(lambda x: put(x) or x)(X)
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
