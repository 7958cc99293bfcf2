"""Derivatives of ordinary Python: values that it sees, closures, levels, mutation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradients import V, interpreted, numerical_gradient

import jitney as jt

# Eager semantics.


def test_python_branches_and_prints_see_values(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print(x)
        total = 0.0
        while x > 1:
            x = x / 2
            total = total + x
        return total + (x if x > 0.6 else 3 * x)

    # 5 -> 2.5 -> 1.25 -> 0.625
    assert np.isclose(jt.grad(f)(5.0), 0.5 + 0.25 + 0.125 + 0.125)
    assert "5." in capsys.readouterr().out
    assert np.isclose(jt.grad(f)(np.float64(4.4)), 0.5 + 0.25 + 0.125 + 3 * 0.125)


def numpy_buffer(x: Any) -> Any:
    out = np.zeros(3)
    out[0] = x[0] ** 2
    for i in range(1, 3):
        out[i] = out[i - 1] * math.sin(x[1])
    return np.sum(out)


def converted(x: Any) -> Any:
    return np.sum(np.array([x[0], 2.0, x[1] ** 2])) * float(x[0]) + np.asarray(x).sum()


def by_helpers(x: Any) -> Any:
    return numpy_buffer(x) + converted(x * 2)


@pytest.mark.parametrize("function", [numpy_buffer, converted, by_helpers])
def test_values_become_numbers_and_elements_with_their_derivatives(function: Any) -> None:
    step = 1e-6
    wanted = [
        (function(V + step * e) - function(V - step * e)) / (2 * step) for e in np.eye(len(V))
    ]
    np.testing.assert_allclose(jt.grad(function)(V), wanted, rtol=1e-6, atol=1e-9)
    twice = jt.grad(lambda x: jt.grad(function)(x)[0])(V)
    for hessian in (
        jt.hessian,
        lambda f: jt.jacfwd(jt.jacfwd(f)),
        lambda f: jt.jacrev(jt.jacrev(f)),
    ):
        np.testing.assert_allclose(jt.jit(hessian(function))(V)[0], twice, rtol=1e-9)
        np.testing.assert_allclose(hessian(function)(V)[0], twice, rtol=1e-9)


def test_a_differentiated_value_does_not_become_a_constant_unnoticed() -> None:
    """Code without source runs as it is: math.sin(x) would have the gradient zero."""
    names: dict[str, Any] = {"np": np, "math": math}
    exec(
        "def buffer(x):\n    out = np.zeros(3)\n    out[0] = x[0]\n    return np.sum(out)\n"
        "def sine(x):\n    return math.sin(x[0])\n"
        "def stacked(x):\n    return np.sum(np.array([x[0], x[1]]))\n",
        names,
    )
    for name in ("buffer", "sine", "stacked"):
        with pytest.raises(TypeError, match="derivative would be lost") as info:
            jt.grad(names[name])(V)
        assert "jt.stop_gradient" in str(info.value)
    # What is not differentiated, and what was said to be a constant, are numbers.
    seen = []

    def f(x: Any, n: Any) -> Any:
        seen.append((float(jt.stop_gradient(x[0])), float(n[0]), int(x[1]), f"{x[0]:.2f}"))
        return np.sum(x) * float(n[0])

    np.testing.assert_array_equal(jt.grad(f)(np.array([1.5, 2.5]), V), [V[0], V[0]])
    assert seen == [(1.5, V[0], 2, "1.50")]
    # Constants of the inner derivative still are values of the outer one.
    assert jt.grad(lambda x: jt.grad(lambda y: y * float(x))(1.0))(2.0) == 1.0


def test_second_derivative_may_branch_on_values() -> None:
    def f(x: Any) -> Any:
        return x**3 if x > 0 else x**2

    assert np.isclose(jt.grad(jt.grad(f))(2.0), 12.0)
    assert np.isclose(jt.grad(jt.grad(f))(-2.0), 2.0)


def test_loops_over_elements() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for v in x:
            total = total * 0.5 + v * v
        return total

    np.testing.assert_allclose(jt.grad(f)(V), numerical_gradient(f, V), rtol=1e-6)


def test_branch_inside_jit_is_an_error_that_names_the_line() -> None:
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    with pytest.raises(TypeError, match="test_grad_eager.py"):
        jt.jit(jt.grad(f), autograph=False)(1.0)


# Perturbation confusion: an inner derivative sees outer values as constants, and only as constants
# of its own differentiation.


@pytest.mark.parametrize("wrap", [lambda f: f, interpreted], ids=["eager", "jit"])
def test_perturbation_confusion(wrap: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        return x * jt.grad(lambda y: x + y)(1.0)

    assert wrap(jt.grad(f))(3.0) == 1.0

    def g(x: Any) -> Any:
        return x * jt.grad(lambda y: x * y)(2.0)  # x * x

    assert wrap(jt.grad(g))(3.0) == 6.0

    def h(x: Any) -> Any:
        return jt.grad(lambda y: (x * y) ** 2)(x * x)  # 2 x^2 y at y = x^2: 2 x^4

    assert np.isclose(wrap(jt.grad(h))(1.5), 8 * 1.5**3)
    assert np.isclose(wrap(jt.grad(jt.grad(h)))(1.5), 24 * 1.5**2)

    def k(x: Any) -> Any:
        return jt.jvp(lambda y: x * y**2, (x,), (1.0,))[1]  # 2 x^2

    assert np.isclose(wrap(jt.grad(k))(3.0), 12.0)
    assert np.isclose(wrap(lambda x: jt.jvp(jt.grad(k), (x,), (1.0,))[1])(3.0), 4.0)


def test_three_levels_of_closure() -> None:
    def f(x: Any) -> Any:
        def g(y: Any) -> Any:
            def h(z: Any) -> Any:
                return x * y * z**2

            return jt.grad(h)(x * y)  # 2 x^2 y^2

        return jt.grad(g)(x)  # 4 x^3

    assert np.isclose(jt.grad(f)(2.0), 48.0)
    assert np.isclose(interpreted(jt.grad(f))(2.0), 48.0)


def test_closed_over_arrays_are_constants_and_read_at_call_time() -> None:
    weights = np.array([1.0, 2.0])
    g = jt.grad(lambda x: np.sum(x * weights))
    np.testing.assert_array_equal(g(np.ones(2)), [1.0, 2.0])
    weights[0] = 7.0
    np.testing.assert_array_equal(g(np.ones(2)), [7.0, 2.0])
    jitted = interpreted(g)
    np.testing.assert_array_equal(jitted(np.ones(2)), [7.0, 2.0])
    weights[1] = 9.0
    np.testing.assert_array_equal(jitted(np.ones(2)), [7.0, 9.0])


# Mutation.


def test_in_place_code_is_differentiated_and_the_argument_kept() -> None:
    def f(x: Any) -> Any:
        x[0] = x[1] * x[2]
        x *= 2
        x[1:] += x[:-1]
        return np.sum(x**2)

    def pure(x: Any) -> Any:
        x = x.copy()
        return f(x)

    x = np.array([1.0, 2.0, 3.0])
    kept = x.copy()
    for g in (jt.grad(f), interpreted(jt.grad(f))):
        np.testing.assert_allclose(g(x), numerical_gradient(pure, x), rtol=1e-7)
        np.testing.assert_array_equal(x, kept)


def test_in_place_fancy_and_augmented() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y[[0, 2]] = x[[1, 1]] ** 2
        y[y > 100] = 0.0
        np.add(y, x, out=y)
        y -= x[0]
        return np.sum(y**3)

    x = np.array([0.5, 1.5, -0.7, 0.2])
    np.testing.assert_allclose(jt.grad(f)(x), numerical_gradient(f, x), rtol=1e-6)


def test_numbers_of_elements_keep_their_derivative() -> None:
    """`x.item()` is a number of the trace where the value is differentiated, with and without jit."""
    x = np.array([3.0, 4.0])

    def f(x):
        first, second = x.tolist()
        return first * second + x.item(0) ** 2

    for g in (jt.grad(f), jt.jit(jt.grad(f))):
        np.testing.assert_array_equal(g(x), [10, 3])
