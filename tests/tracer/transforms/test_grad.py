"""Reverse and forward mode as users call them: grad, value_and_grad, vjp, jvp, check_grads.

Every gradient is held against central differences in float64, against the analytic result where there
is one, and eager against jitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradients import A, B, Point, V, interpreted, numerical_gradient
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def normalise(x: Any) -> Any:
    mean = np.mean(x, axis=0, keepdims=True)
    variance = np.var(x, axis=0, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-3)


def in_place_smoothing(x: Any) -> Any:
    u = x * 1.0
    for _ in range(3):
        u[1:-1] = 0.5 * u[1:-1] + 0.25 * (u[:-2] + u[2:])
    u[0] *= u[1]
    return np.sum(u * u)


def through_views(x: Any) -> Any:
    y = x + 0.0
    view = y.T[1:, ::-1]
    view *= 3.0
    y[0] += view[0, 0]
    return np.sum(np.sin(y))


COMPOSED: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "polynomial": (lambda x: np.sum(3 * x**3 - 2 * x**2 + x - 7), V),
    "quotient": (lambda x: np.sum((x + 3) / (x * x + 1)), V),
    "power": (lambda x: np.sum(np.power(np.abs(x) + 1, x)), V),
    "exp_log": (lambda x: np.sum(np.log(1 + np.exp(x)) * np.log1p(x * x)), V),
    "trigonometric": (lambda x: np.sum(np.sin(x) * np.cos(2 * x) + np.tan(x / 4)), V),
    "hyperbolic": (lambda x: np.sum(np.tanh(x) + np.sinh(x) / np.cosh(x) ** 2), V),
    "inverse": (lambda x: np.sum(np.arctan(x) + np.arcsinh(x) + np.arctan2(x, 2 + x * x)), V),
    "softmax": (lambda x: np.sum(softmax(x) * A), A),
    "logsumexp": (lambda x: np.sum(np.log(np.sum(np.exp(x), axis=1))), A),
    "normalise": (lambda x: np.sum(normalise(x) ** 3), A),
    "matmul": (lambda x: np.sum(np.tanh(x @ B) ** 2), A),
    "quadratic_form": (lambda x: x @ (A.T @ A) @ x, V),
    "einsum": (lambda x: np.sum(np.einsum("ij,jk->ik", x, B) ** 2), A),
    "outer_broadcast": (lambda x: np.sum(np.exp(x[:, None] - x[None, :])), V),
    "row_plus_matrix": (lambda x: np.sum((A + x) ** 2), V),
    "reductions": (lambda x: np.prod(x) + np.sum(np.cumsum(x, axis=1) ** 2) + x.std(), A),
    "extrema": (lambda x: np.max(x) * np.min(x) + np.sum(np.maximum(x, 0.1)), A),
    "clip": (lambda x: np.sum(np.clip(x, -0.5, 0.5) ** 2), A),
    "where": (lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x) + 1), x**2)), A),
    "sort": (lambda x: np.sum(np.sort(x) * np.arange(4.0)), V),
    "movement": (
        lambda x: np.sum(np.concatenate([x.T.reshape(-1), x[::-1, 1::2].ravel()]) ** 2 * 0.5),
        A,
    ),
    "fancy_index": (lambda x: np.sum(x[[0, 2, 2], [1, 1, 3]] ** 2), A),
    "stack_roll": (lambda x: np.sum(np.stack([x, np.roll(x, 1)]) ** 3), V),
    "pad": (lambda x: np.sum(np.pad(x, 1)[:-1, 2:] ** 2), A),
    "in_place": (in_place_smoothing, V),
    "views": (through_views, A),
    "distances": (lambda x: np.sum(np.hypot(x[:, None] - x + 1.5, 1.0)), V),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_function_against_central_differences(name: str) -> None:
    f, x = COMPOSED[name]
    expected = numerical_gradient(f, x)
    eager = jt.grad(f)(x)
    assert type(eager) is np.ndarray and eager.dtype == np.float64 and eager.shape == x.shape
    np.testing.assert_allclose(eager, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_function_jitted_equals_eager(name: str) -> None:
    f, x = COMPOSED[name]
    for backend in ("interpreter", "native"):
        inside = jt.jit(jt.grad(f), backend=backend)(x)
        np.testing.assert_allclose(inside, jt.grad(f)(x), rtol=1e-12, atol=1e-13)
    through = jt.grad(interpreted(f))(x)
    np.testing.assert_allclose(through, jt.grad(f)(x), rtol=1e-12, atol=1e-13)


CLOSES_OVER_FLOAT64 = {"softmax", "matmul", "quadratic_form", "einsum", "row_plus_matrix", "sort"}


@pytest.mark.parametrize("name", [name for name in COMPOSED if name not in CLOSES_OVER_FLOAT64])
def test_composed_function_in_float32(name: str) -> None:
    f, x = COMPOSED[name]
    expected = jt.grad(f)(x)
    result = jt.grad(f)(x.astype(np.float32))
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", COMPOSED)
def test_forward_equals_reverse(name: str) -> None:
    f, x = COMPOSED[name]
    direction = np.random.default_rng(7).normal(size=x.shape)
    value, tangent = jt.jvp(f, (x,), (direction,))
    assert np.isclose(value, f(x))
    assert np.isclose(tangent, np.sum(jt.grad(f)(x) * direction), rtol=1e-10)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.sampled_from(["sin", "tanh", "exp", "square", "add", "mul", "mean", "T", "cumsum"]),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 1000),
)
def test_random_chains_against_central_differences(names: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    constant = rng.normal(size=(3, 3))
    steps: dict[str, Callable[[Any], Any]] = {
        "sin": np.sin,
        "tanh": np.tanh,
        "exp": lambda v: np.exp(np.tanh(v)),
        "square": lambda v: v * v / 4,
        "add": lambda v: v + constant,
        "mul": lambda v: v * constant,
        "mean": lambda v: v - np.mean(v, axis=0),
        "T": lambda v: v.T,
        "cumsum": lambda v: np.cumsum(v, axis=0) / 2,
    }

    def f(x: Any) -> Any:
        for name in names:
            x = steps[name](x)
        return np.sum(x)

    x = rng.normal(size=(3, 3))
    np.testing.assert_allclose(jt.grad(f)(x), numerical_gradient(f, x), rtol=1e-5, atol=1e-6)


# Analytic results.


@pytest.mark.parametrize(
    ("f", "derivative"),
    [
        (np.sin, np.cos),
        (np.exp, np.exp),
        (np.tanh, lambda x: 1 / np.cosh(x) ** 2),
        (np.log, lambda x: 1 / x),
        (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
        (lambda x: x**3, lambda x: 3 * x**2),
        (lambda x: 1 / x, lambda x: -1 / x**2),
        (np.arctan, lambda x: 1 / (1 + x**2)),
        (lambda x: 2.0**x, lambda x: math.log(2) * 2.0**x),
    ],
)
def test_scalar_derivatives(f: Any, derivative: Any) -> None:
    result = jt.grad(f)(0.7)
    assert type(result) is float
    assert math.isclose(result, derivative(0.7), rel_tol=1e-13)
    strong = jt.grad(f)(np.float64(0.7))
    assert isinstance(strong, np.float64) and np.isclose(strong, derivative(0.7), rtol=1e-13)
    single = jt.grad(f)(np.float32(0.7))
    assert isinstance(single, np.float32) and np.isclose(single, derivative(0.7), rtol=1e-5)


def test_higher_derivatives_of_sin() -> None:
    f = np.sin
    for expected in (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin):
        f = jt.grad(f)
        assert np.isclose(f(0.3), expected(0.3), rtol=1e-12)
        assert np.isclose(interpreted(f)(0.3), expected(0.3), rtol=1e-12)


def test_grad_of_grad_vector() -> None:
    def f(x: Any) -> Any:
        return np.sum(x**4)

    def second(x: Any) -> Any:
        return np.sum(jt.grad(f)(x) ** 2)  # sum 16 x^6

    np.testing.assert_allclose(jt.grad(second)(V), 96 * V**5, rtol=1e-12)
    np.testing.assert_allclose(interpreted(jt.grad(second))(V), 96 * V**5, rtol=1e-12)
    np.testing.assert_allclose(
        jt.grad(lambda x: np.sum(interpreted(jt.grad(f))(x)))(V), 12 * V**2, rtol=1e-12
    )


def test_ties_share_the_gradient_of_max() -> None:
    x = np.array([1.0, 3.0, 3.0, 2.0])
    g = jt.grad(np.max)(x)
    assert np.isclose(g.sum(), 1) and g[0] == g[3] == 0
    assert g[1] == g[2] == 0.5
    both = jt.grad(lambda a, b: np.sum(np.maximum(a, b)), argnums=(0, 1))
    ga, gb = both(np.array([1.0, 2.0]), np.array([1.0, 5.0]))
    np.testing.assert_array_equal(ga, [0.5, 0.0])
    np.testing.assert_array_equal(gb, [0.5, 1.0])


def test_where_masks_the_gradient_of_the_branch_not_taken() -> None:
    x = np.array([-1.0, 0.0, 4.0])
    with np.errstate(all="ignore"):
        g = jt.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))(x)
        np.testing.assert_array_equal(g, [0.0, 0.0, 0.25])
        g = jt.grad(lambda x: np.sum(np.where(x > 0, np.log(x), x)))(x)
        np.testing.assert_array_equal(g, [1.0, 1.0, 0.25])


def test_values_at_the_edge_of_the_domain() -> None:
    assert jt.grad(np.abs)(0.0) == 0.0
    with np.errstate(all="ignore"):
        assert jt.grad(np.sqrt)(0.0) == np.inf
    assert jt.grad(lambda x: x**2)(0.0) == 0.0
    assert jt.grad(lambda x: x**0)(0.0) == 0.0
    assert jt.grad(lambda x: x**1.0)(0.0) == 1.0


# Structure: argnums, keywords, pytrees, aux.


def test_argnums() -> None:
    def f(a: Any, b: Any, c: float = 2.0) -> Any:
        return np.sum(a * b**2) * c

    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    np.testing.assert_allclose(jt.grad(f)(a, b), 2 * b**2)
    np.testing.assert_allclose(jt.grad(f, argnums=1)(a, b), 4 * a * b)
    np.testing.assert_allclose(jt.grad(f, argnums=-1)(a, b), 4 * a * b)
    ga, gb = jt.grad(f, argnums=(0, 1))(a, b)
    np.testing.assert_allclose(ga, 2 * b**2)
    np.testing.assert_allclose(gb, 4 * a * b)
    (only,) = jt.grad(f, argnums=(1,))(a, b)
    np.testing.assert_allclose(only, 4 * a * b)
    np.testing.assert_allclose(jt.grad(f)(a, b, c=5.0), 5 * b**2)
    np.testing.assert_allclose(interpreted(jt.grad(f))(a, b, c=5.0), 5 * b**2)


def test_argnums_out_of_range_and_of_wrong_type() -> None:
    with pytest.raises(TypeError, match=r"argnums=3.*2 positional arguments"):
        jt.grad(lambda a, b: a, argnums=3)(1.0, 2.0)
    with pytest.raises(TypeError, match="argnums"):
        jt.grad(lambda a: a, argnums="a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="callable"):
        jt.grad(3.0)  # type: ignore[arg-type]


def test_pytrees_in_and_out() -> None:
    def loss(p: dict[str, Any], scale: Any) -> Any:
        point = p["point"]
        return np.sum(p["w"] @ p["layers"][0]) * scale + point.x * point.y

    params = {
        "w": A,
        "layers": [V, None],
        "point": Point(2.0, np.float32(3.0)),
    }
    for g in (jt.grad(loss)(params, 2.0), interpreted(jt.grad(loss))(params, 2.0)):
        assert set(g) == {"w", "layers", "point"} and isinstance(g["point"], Point)
        np.testing.assert_allclose(g["w"], 2 * np.broadcast_to(V, A.shape))
        np.testing.assert_allclose(g["layers"][0], 2 * A.sum(0))
        assert g["layers"][1] is None
        assert g["point"].x == 3.0 and g["point"].y == 2.0
    assert type(jt.grad(loss)(params, 2.0)["point"].x) is float
    assert isinstance(jt.grad(loss)(params, 2.0)["point"].y, np.float32)


def test_value_and_grad_with_aux() -> None:
    def f(x: Any) -> Any:
        y = np.sin(x)
        return np.sum(y), {"y": y, "n": x.shape[0], "nothing": None}

    for g in (jt.value_and_grad(f, has_aux=True), interpreted(jt.value_and_grad(f, has_aux=True))):
        (value, aux), gradient = g(V)
        assert np.isclose(value, np.sin(V).sum())
        assert type(aux["y"]) is np.ndarray and aux["n"] == 4 and aux["nothing"] is None
        np.testing.assert_allclose(aux["y"], np.sin(V))
        np.testing.assert_allclose(gradient, np.cos(V))
    gradient, aux = jt.grad(f, has_aux=True)(V)
    np.testing.assert_allclose(gradient, np.cos(V))
    np.testing.assert_allclose(aux["y"], np.sin(V))


def test_aux_missing() -> None:
    with pytest.raises(TypeError, match=r"has_aux.*\(value, aux\)"):
        jt.grad(lambda x: x * 2, has_aux=True)(1.0)


def test_value_and_grad_value_types() -> None:
    value, g = jt.value_and_grad(lambda x: x * x)(3.0)
    assert (type(value), value, type(g), g) == (float, 9.0, float, 6.0)
    value, g = jt.value_and_grad(np.sum)(V.astype(np.float32))
    assert isinstance(value, np.float32) and g.dtype == np.float32


def test_constant_function_has_zero_gradient() -> None:
    np.testing.assert_array_equal(jt.grad(lambda x: 3.0)(V), np.zeros(4))
    np.testing.assert_array_equal(jt.grad(lambda x: np.float32(3.0))(V), np.zeros(4))
    np.testing.assert_array_equal(interpreted(jt.grad(lambda x: 3.0))(V), np.zeros(4))


def test_unused_argument_has_zero_gradient() -> None:
    a, b = jt.grad(lambda x, y: np.sum(x), argnums=(0, 1))(V, A)
    np.testing.assert_array_equal(a, np.ones(4))
    np.testing.assert_array_equal(b, np.zeros((3, 4)))


def test_identity_returns_a_fresh_array() -> None:
    out, vjp_fn = jt.vjp(lambda x: x, V)
    ct = np.arange(4.0)
    (g,) = vjp_fn(ct)
    np.testing.assert_array_equal(g, ct)
    assert not np.shares_memory(g, ct) and not np.shares_memory(out, V)


# Errors.


@pytest.mark.parametrize("value", [np.arange(3), np.ones(3, np.uint8)])
def test_integer_argument(value: np.ndarray) -> None:
    with pytest.raises(TypeError, match=rf"(?s){value.dtype}.*float64|astype") as info:
        jt.grad(lambda x: np.sum(x * 1.0))(value)
    assert str(value.dtype) in str(info.value)


def test_python_int_and_bool_arguments() -> None:
    with pytest.raises(TypeError, match=r"(?s)x is int.*pass 2\.0"):
        jt.grad(lambda x: x * 1.0)(2)
    with pytest.raises(TypeError, match="bool"):
        jt.grad(lambda x: x * 1.0)(True)
    with pytest.raises(TypeError, match=r"\['n'\].*int64|int64.*\['n'\]"):
        jt.grad(lambda p: p["x"] * 1.0)({"x": 1.0, "n": np.arange(2)})
    with pytest.raises(TypeError, match="str"):
        jt.grad(lambda p: p)("text")


def test_non_scalar_output() -> None:
    with pytest.raises(TypeError, match=r"shape \(4,\)") as info:
        jt.grad(lambda x: x * 2)(V)
    assert "jacrev" in str(info.value) and "vjp" in str(info.value)
    with pytest.raises(TypeError, match="tuple"):
        jt.grad(lambda x: (x, x))(1.0)
    with pytest.raises(TypeError, match="int64"):
        jt.grad(lambda x: np.argmax(x))(V)
    with pytest.raises(TypeError, match="None"):
        jt.grad(lambda x: None)(V)


def test_gradient_descent_learns() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(64, 3)).astype(np.float32)
    target = x @ np.array([1.0, -2.0, 0.5], np.float32) + np.float32(0.25)

    def loss(p: dict[str, Any]) -> Any:
        return np.mean((x @ p["w"] + p["b"] - target) ** 2)

    p = {"w": np.zeros(3, np.float32), "b": np.float32(0)}
    step = interpreted(jt.value_and_grad(loss))
    for _ in range(100):
        value, g = step(p)
        p = {k: p[k] - np.float32(0.2) * g[k] for k in p}
    assert value < 1e-6 and p["w"].dtype == np.float32
    np.testing.assert_allclose(p["w"], [1.0, -2.0, 0.5], atol=1e-3)
