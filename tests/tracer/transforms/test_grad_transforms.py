"""vjp, jvp, Jacobians, Hessians, stop_gradient, check_grads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradients import A, B, V, interpreted

import jitney as jt

# vjp and jvp.


@pytest.mark.parametrize("wrap", [lambda f: f, interpreted], ids=["eager", "jit"])
def test_vjp(wrap: Callable[[Any], Any]) -> None:
    def f(a: Any, b: Any) -> Any:
        return {"product": a @ b, "sum": np.sum(a)}

    def run(a: Any, b: Any, ct: Any) -> Any:
        out, vjp_fn = jt.vjp(f, a, b)
        first = vjp_fn({"product": ct, "sum": 2.0})
        second = vjp_fn({"product": 2 * ct, "sum": 0.0})
        return out, first, second

    ct = np.ones((3, 5))
    out, first, second = wrap(run)(A, B, ct)
    np.testing.assert_allclose(out["product"], A @ B)
    assert isinstance(first, tuple) and len(first) == 2
    np.testing.assert_allclose(first[0], ct @ B.T + 2.0)
    np.testing.assert_allclose(first[1], A.T @ ct)
    np.testing.assert_allclose(second[0], 2 * ct @ B.T)
    np.testing.assert_allclose(second[1], 2 * A.T @ ct)


def test_vjp_keeps_the_values_at_entry() -> None:
    x = np.array([1.0, 2.0])
    _, vjp_fn = jt.vjp(lambda x: x * x, x)
    x[:] = 100.0
    np.testing.assert_array_equal(vjp_fn(np.ones(2))[0], [2.0, 4.0])


def test_vjp_has_aux() -> None:
    out, vjp_fn, aux = jt.vjp(lambda x: (np.sin(x), x + 1), V, has_aux=True)
    np.testing.assert_allclose(out, np.sin(V))
    np.testing.assert_allclose(aux, V + 1)
    np.testing.assert_allclose(vjp_fn(np.ones(4))[0], np.cos(V))


def test_vjp_wrong_cotangent() -> None:
    _, vjp_fn = jt.vjp(lambda x: x * 2, V)
    with pytest.raises(ValueError, match=r"\(3,\).*\(4,\)|\(4,\).*\(3,\)"):
        vjp_fn(np.ones(3))
    with pytest.raises(TypeError, match="structure|tuple"):
        vjp_fn((V, V))
    with pytest.raises(TypeError, match="complex|bool"):
        vjp_fn(np.ones(4, bool))


def test_integer_leaves_have_no_cotangent() -> None:
    out, vjp_fn = jt.vjp(lambda x, n: (x * n, n + 1), V, np.arange(4))
    gx, gn = vjp_fn((np.ones(4), None))
    np.testing.assert_allclose(gx, np.arange(4.0))
    assert gn is None


@pytest.mark.parametrize("wrap", [lambda f: f, interpreted], ids=["eager", "jit"])
def test_jvp(wrap: Callable[[Any], Any]) -> None:
    def run(a: Any, b: Any, ta: Any, tb: Any) -> Any:
        return jt.jvp(lambda a, b: (a @ b, [a * 2]), (a, b), (ta, tb))

    ta, tb = np.ones((3, 4)), np.full((4, 5), 0.5)
    out, tangent = wrap(run)(A, B, ta, tb)
    np.testing.assert_allclose(out[0], A @ B)
    np.testing.assert_allclose(tangent[0], ta @ B + A @ tb)
    np.testing.assert_allclose(tangent[1][0], 2 * ta)


def test_jvp_errors() -> None:
    with pytest.raises(TypeError, match="tuple"):
        jt.jvp(np.sin, 1.0, 1.0)
    with pytest.raises((TypeError, ValueError), match="tangents"):
        jt.jvp(np.sin, (1.0,), (1.0, 2.0))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        jt.jvp(np.sin, (V,), (np.ones(3),))


def test_forward_over_reverse() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(x) * x)

    v = np.array([1.0, -1.0, 0.5, 2.0])
    _, hvp = jt.jvp(jt.grad(f), (V,), (v,))
    np.testing.assert_allclose(hvp, (V + 2) * np.exp(V) * v, rtol=1e-12)
    _, hvp = interpreted(lambda x, v: jt.jvp(jt.grad(f), (x,), (v,)))(V, v)
    np.testing.assert_allclose(hvp, (V + 2) * np.exp(V) * v, rtol=1e-12)
    _, hvp = jt.jvp(interpreted(jt.grad(f)), (V,), (v,))
    np.testing.assert_allclose(hvp, (V + 2) * np.exp(V) * v, rtol=1e-12)


JACOBIANS = [jt.jacfwd, jt.jacrev]


@pytest.mark.parametrize("wrap", [lambda f: f, interpreted, jt.jit], ids=["eager", "interp", "jit"])
@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_jacobian(jacobian: Callable[..., Any], wrap: Callable[[Any], Any]) -> None:
    result = wrap(jacobian(lambda x: np.tanh(x @ B)))(V)
    expected = (1 - np.tanh(V @ B) ** 2)[:, None] * B.T
    assert result.shape == (5, 4)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert np.isclose(wrap(jacobian(np.sin))(0.3), np.cos(0.3))
    assert wrap(jacobian(lambda x: x[1:1]))(V).shape == (0, 4)


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_jacobian_of_trees(jacobian: Callable[..., Any]) -> None:
    def f(p: dict[str, Any], q: Any) -> Any:
        return [p["a"] * p["b"], np.sum(p["a"]) * q]

    p = {"a": V, "b": 2.0}
    (first, second), (of_q,) = (
        jacobian(f)(p, 3.0),
        [jacobian(f, argnums=(1,))(p, 3.0)[1]],
    )
    np.testing.assert_allclose(first["a"], 2 * np.eye(4))
    np.testing.assert_allclose(first["b"], V)
    np.testing.assert_allclose(second["a"], np.full(4, 3.0))
    assert second["b"] == 0.0
    assert isinstance(of_q, tuple) and np.isclose(of_q[0], V.sum())


@pytest.mark.parametrize(
    "derivative", [jt.grad, jt.value_and_grad, jt.jacrev, jt.jacfwd, jt.hessian]
)
@pytest.mark.parametrize("argnums", [(0, 0), (0, 1, -2)])
def test_an_argument_named_twice(derivative: Callable[..., Any], argnums: Any) -> None:
    with pytest.raises(TypeError, match="twice"):
        derivative(lambda x, y: x * y, argnums=argnums)(2.0, 3.0)


@pytest.mark.parametrize("wrap", [lambda f: f, interpreted, jt.jit], ids=["eager", "interp", "jit"])
def test_hessian(wrap: Callable[[Any], Any]) -> None:
    quadratic = A.T @ A
    np.testing.assert_allclose(
        wrap(jt.hessian(lambda x: x @ quadratic @ x + np.sum(x**3)))(V),
        2 * quadratic + np.diag(6 * V),
        rtol=1e-10,
    )


def test_stop_gradient() -> None:
    assert jt.grad(lambda x: x * jt.stop_gradient(x))(3.0) == 3.0
    assert interpreted(jt.grad(lambda x: x * jt.stop_gradient(x)))(3.0) == 3.0
    # Outside of tracing it is the identity, on trees too.
    tree = {"a": V, "b": (1, None)}
    assert jt.stop_gradient(tree)["a"] is V
    # The straight-through trick.
    g = jt.grad(lambda x: np.sum(x + jt.stop_gradient(np.round(x) - x)))(V)
    np.testing.assert_array_equal(g, np.ones(4))


# check_grads.


def test_check_grads_accepts_right_derivatives() -> None:
    jt.check_grads(lambda x, y: np.sin(x) @ np.exp(y), (A, B), order=2)
    jt.check_grads(lambda p: p["x"] * p["y"], ({"x": 2.0, "y": np.float32(3.0)},))
    jt.check_grads(lambda x: np.tanh(x), (V.astype(np.float32),), modes=("fwd", "rev"))
    jt.check_grads(interpreted(lambda x: np.tanh(x)), (V,), modes=("rev",))


def test_check_grads_finds_wrong_derivatives() -> None:
    def wrong(x: Any) -> Any:
        return x * jt.stop_gradient(x)

    with pytest.raises(AssertionError, match="reverse|rev"):
        jt.check_grads(wrong, (V,), modes=("rev",))
    with pytest.raises(AssertionError, match="forward|fwd"):
        jt.check_grads(wrong, (V,), modes=("fwd",))
    with pytest.raises(ValueError, match="modes"):
        jt.check_grads(wrong, (V,), modes=("sideways",))
