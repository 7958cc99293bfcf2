"""linearize, linear_transpose, hvp and compute_gradient_error against jvp, vjp and hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

X = np.linspace(-1.0, 2.0, 5)


@pytest.fixture(params=[None, "interpreter", "native"])
def wrap(request: pytest.FixtureRequest) -> Callable[..., Any]:
    backend = request.param
    return (lambda f: f) if backend is None else lambda f: jt.jit(f, backend=backend)


def program(x: Any, y: Any) -> Any:
    """Branches, a loop whose trip count depends on values, reductions."""
    x = jt.cond(jt.sum(x) > 0, lambda x: jt.sin(x) * y, lambda x: x * y, x)
    n, x = jt.while_loop(
        lambda c: c[0] < jt.sum(x * 0) + 3, lambda c: (c[0] + 1, jt.cos(c[1])), (0, x)
    )
    return {"a": x * jt.sum(y), "n": n}


def test_linearize_is_jvp_with_the_function_run_once(wrap: Any) -> None:
    def both(x: Any, y: Any, tx: Any, ty: Any) -> Any:
        out, f_lin = jt.linearize(program, x, y)
        first = f_lin(tx, ty)
        again = f_lin(ty, tx)
        assert first["n"] is None
        want, tangent = jt.jvp(program, (x, y), (tx, ty))
        second = jt.jvp(program, (x, y), (ty, tx))[1]
        return (out["a"], first["a"], again["a"]), (want["a"], tangent["a"], second["a"])

    got, want = wrap(both)(X, X + 2, X * 3, X**2)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_linearize_computes_the_function_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return jt.sin(x)

    out, f_lin = jt.linearize(f, X)
    np.testing.assert_allclose(out, np.sin(X))
    for k in range(3):
        np.testing.assert_allclose(f_lin(X * k), np.cos(X) * X * k)
    assert len(calls) == 1
    x = X.copy()
    _, f_lin = jt.linearize(f, x)
    x[:] = 0  # the point was where it was
    np.testing.assert_allclose(f_lin(X), np.cos(X) * X)


def test_linearize_of_a_gradient_of_a_loop(wrap: Any) -> None:
    def f(x: Any) -> Any:
        return jt.while_loop(lambda c: c < 10, lambda c: c * 1.5 + jt.sin(c), x)

    def second(x: Any) -> Any:
        _, f_lin = jt.linearize(jt.grad(f), x)
        return f_lin(1.0), f_lin(2.0)

    a, b = wrap(second)(1.2)
    h = 1e-5
    want = (jt.grad(f)(1.2 + h) - jt.grad(f)(1.2 - h)) / (2 * h)
    assert a == pytest.approx(want, rel=1e-6) and b == pytest.approx(2 * a)


def test_linearize_refuses_what_would_happen_again() -> None:
    def f(x: Any) -> Any:
        def body(c: Any) -> Any:
            jt.io_callback(lambda: None, None)
            return c * 2

        return jt.while_loop(lambda c: c < 10, body, x)

    with pytest.raises(TypeError, match="effects"):
        jt.jit(lambda x: jt.linearize(f, x)[1](x))(1.0)


def test_wrong_tangents_are_refused() -> None:
    _, f_lin = jt.linearize(jt.sin, X)
    with pytest.raises(ValueError, match=r"\(2,\)"):
        f_lin(X[:2])
    with pytest.raises(TypeError, match="structure"):
        f_lin(X, X)


# linear_transpose


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1000), backend=st.sampled_from([None, "interpreter"]))
def test_the_transpose_is_the_adjoint(seed: int, backend: str | None) -> None:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(3, 4))
    shift = int(rng.integers(0, 4))

    def linear(t: Any) -> Any:
        x, y = t["x"], t["y"]
        return [jt.roll(a @ x, shift) + jt.sum(y, axis=0), jt.cumsum(x)[::2] * 3 - y[0, 0]]

    x = {"x": rng.normal(size=4), "y": rng.normal(size=(2, 3))}
    ct = [rng.normal(size=3), rng.normal(size=2)]
    transposed = jt.linear_transpose(linear, x)
    (back,) = (jt.jit(transposed, backend=backend) if backend else transposed)(ct)
    left = sum(np.sum(p * q) for p, q in zip(linear(x), ct, strict=True))
    right = sum(np.sum(back[k] * x[k]) for k in x)
    assert left == pytest.approx(right)


def test_transpose_takes_types_and_closures(wrap: Any) -> None:
    def f(scale: Any, ct: Any) -> Any:
        transposed = jt.linear_transpose(
            lambda x, y: x[1:] * scale - y, jt.ShapeDtype((5,), np.float64), X[:4]
        )
        return transposed(ct)

    a, b = wrap(f)(3.0, np.ones(4))
    np.testing.assert_allclose(a, [0, 3, 3, 3, 3])
    np.testing.assert_allclose(b, -np.ones(4))
    # ... and is differentiated itself
    got = wrap(jt.grad(lambda s: jt.sum(f(s, X[:4])[0])))(3.0)
    assert got == pytest.approx(X[:4].sum())


def test_what_is_not_linear_is_refused_with_its_line() -> None:
    with pytest.raises(TypeError, match="not linear") as caught:
        jt.linear_transpose(lambda x: x * x, X)
    assert "test_linear.py" in str(caught.value)
    with pytest.raises(TypeError, match="float"):
        jt.linear_transpose(lambda x: x, np.arange(3))
    with pytest.raises(TypeError, match="float results"):
        jt.linear_transpose(lambda x: x > 0, X)


# hvp


def test_hvp_is_a_row_of_the_hessian(wrap: Any) -> None:
    def f(x: Any) -> Any:
        return jt.sum(jt.sin(x) * x[::-1] ** 2) + jt.fori_loop(0, 3, lambda i, c: c * x[i], 1.0)

    v = X**2 + 1
    want = jt.hessian(f)(X) @ v
    np.testing.assert_allclose(wrap(lambda x, v: jt.hvp(f, (x,), (v,)))(X, v), want, rtol=1e-10)


def test_hvp_of_several_arguments_and_trees(wrap: Any) -> None:
    def f(p: Any, n: Any, y: Any) -> Any:
        return jt.sum(p["w"] ** 3 * y**2) * n

    def product(w: Any, y: Any) -> Any:
        return jt.hvp(f, ({"w": w}, 2, y), ({"w": w}, None, y))

    rows, none, last = wrap(product)(X, X + 1)
    y = X + 1
    assert none is None
    np.testing.assert_allclose(rows["w"], 2 * (6 * X * y**2 * X + 6 * X**2 * y * y))
    np.testing.assert_allclose(last, 2 * (6 * X**2 * y * X + 2 * X**3 * y))
    with pytest.raises(TypeError, match="as a tuple"):
        jt.hvp(f, X, X)


# compute_gradient_error


def test_gradient_error_is_the_largest_difference() -> None:
    assert jt.compute_gradient_error(jt.sin, X) < 1e-6
    assert jt.compute_gradient_error(lambda x: x @ x, X) < 1e-9
    assert jt.compute_gradient_error(lambda x, y: {"a": x * y, "n": 3}, [X, 2.0]) < 1e-9
    wrong = jt.custom_vjp(lambda x: 3 * x)
    wrong.defvjp(lambda x: (3 * x, None), lambda _, ct: (3.5 * ct,))
    error = jt.compute_gradient_error(wrong, X)
    assert isinstance(error, float) and error == pytest.approx(0.5)
    assert jt.compute_gradient_error(lambda x: jt.abs(x), np.array([0.0])) == 0.0
    assert jt.compute_gradient_error(jt.sin, X.astype(np.float32)) < 1e-3
    assert jt.compute_gradient_error(lambda x: x**3, np.array(1.0), delta=0.1) == pytest.approx(
        0.01
    )
    with pytest.raises(TypeError, match="float"):
        jt.compute_gradient_error(jt.sin, np.arange(3))


# One rule for integers


def test_integers_have_no_derivative_and_none_stands_for_it() -> None:
    n = np.arange(5)
    with pytest.raises(TypeError, match="float arguments; n is int64"):
        jt.grad(lambda n: jt.sum(n))(n)
    out, vjp_fn = jt.vjp(lambda x, n, b: x * n, X, n, True)
    assert vjp_fn(np.ones(5))[1:] == (None, None)
    out, f_lin = jt.linearize(lambda x, n: (x * n, n + 1), X, n)
    tangents = f_lin(np.ones(5), None)
    np.testing.assert_allclose(tangents[0], n)
    assert tangents[1] is None
    with pytest.raises(TypeError, match="None"):
        f_lin(np.ones(5), n)


def test_shapes_have_sizes() -> None:
    for shape in ((2.0, 3), 3.5):
        with pytest.raises(TypeError, match="sizes of a shape are integers"):
            jt.ShapeDtype(shape, np.float32)
    assert jt.ShapeDtype((2, 3)) == jt.ShapeDtype((2, 3), np.float64)
