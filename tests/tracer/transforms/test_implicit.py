"""`jt.implicit`: derivatives of what solves an equation, against those through the iterations."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt


def dense(matvec, b):
    return np.linalg.solve(jt.vmap(matvec, out_axes=-1)(np.eye(b.size)), b)


def equation(x, a):
    return np.stack([x[0] ** 2 + a * x[1] - 3, x[1] ** 3 - x[0] * a])


def newton(fun, steps):
    x = np.ones(2)
    for _ in range(steps):
        x = x - np.linalg.solve(jt.jacfwd(fun)(x), fun(x))
    return x


def cut(a):
    def fun(x):
        return equation(x, a)

    def body(carry):
        x, k = carry
        return x - np.linalg.solve(jt.jacfwd(fun)(x), fun(x)), k + 1

    found = jt.while_loop(lambda carry: carry[1] < 9, body, (np.ones(2), 0))[0]
    return np.sum(jt.implicit(fun, found, dense) * np.array([1.0, 2.0]))


def through(a):
    return np.sum(newton(lambda x: equation(x, a), 9) * np.array([1.0, 2.0]))


def derivatives(f):
    def all_of_them(a):
        return [
            f(a),
            jt.grad(f)(a),
            jt.jvp(f, (a,), (1.0,))[1],
            jt.grad(jt.grad(f))(a),
            jt.jacfwd(jt.grad(f))(a),
            jt.grad(jt.jacfwd(f))(a),
            jt.jacfwd(jt.jacfwd(f))(a),
            *jt.vmap(jt.grad(f))(np.stack([a, a + 0.1])),
        ]

    return all_of_them


def test_derivatives_of_any_order_are_those_through_the_iterations() -> None:
    expected = jt.jit(derivatives(through))(1.3)
    np.testing.assert_allclose(jt.jit(derivatives(cut))(1.3), expected, rtol=1e-12)
    assert np.isclose(jt.grad(cut)(1.3), expected[1], rtol=1e-12)
    assert cut(1.3) == expected[0]  # where nothing is differentiated it is what was found


def test_what_is_not_differentiated_costs_nothing() -> None:
    assert "= implicit" not in str(jt.jit(cut).trace(1.3))
    graph = str(jt.jit(jt.grad(cut)).trace(1.3))
    assert graph.count(" while ") == 1 and "tape" not in graph  # forward, and not back


def test_trees_float32_and_numbers() -> None:
    def solve(matvec, b):  # of {"u": u + v, "v": v} it is the inverse
        step = matvec(b)
        return {"u": 2 * b["u"] - step["u"], "v": b["v"]}

    def transposed(matvec, b):
        step = matvec(b)
        return {"u": b["u"], "v": 2 * b["v"] - step["v"]}

    def f(c, d):
        def fun(x):
            return {"u": x["u"] + x["v"] - c, "v": x["v"] - d}

        x = jt.implicit(fun, {"u": c - d, "v": d}, solve, transposed)
        return np.sum(x["u"] * c) + x["v"][0]

    c, d = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    grads = jt.jit(jt.grad(f, argnums=(0, 1)))(c, d)
    np.testing.assert_allclose(grads[0], 2 * c - d)
    np.testing.assert_allclose(grads[1], -c + np.array([1, 0, 0]))
    assert grads[0].dtype == np.float32


def test_what_it_refuses() -> None:
    def of(x, fun, solve=lambda matvec, b: b):
        return lambda a: np.sum(jt.implicit(lambda y: fun(y, a), x, solve)) * 1.0

    with pytest.raises(jt.errors.TransformError, match="real floats, not for i64"):
        jt.grad(of(1, lambda y, a: y - a))(2.0)
    with pytest.raises(jt.errors.TransformError, match=r"gives f64\[3\], and x is f64\[2\]"):
        jt.grad(of(np.ones(2), lambda y, a: a * np.ones(3)))(2.0)
    with pytest.raises(jt.errors.TransformError, match="the solver of"):
        jt.grad(of(np.ones(2), lambda y, a: y - a, lambda matvec, b: (b, b)))(2.0)
    with pytest.raises(TypeError, match="callable"):
        jt.implicit(1.0, 1.0, dense)
