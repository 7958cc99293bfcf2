"""jt.cond and jt.switch: which branch runs, and what the branches have to agree on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import X, both

import jitney as jt

# cond


@pytest.mark.parametrize("pred", [True, False, np.bool_(True), np.array(False)])
def test_cond_calls_one_branch(pred: Any) -> None:
    def f(p: Any, x: Any) -> Any:
        return jt.cond(p, lambda x: (x + 1, {"a": x}), lambda x: (x * 2, {"a": -x}), x)

    both(f, pred, X)


def test_cond_on_a_computed_predicate() -> None:
    def f(x: Any) -> Any:
        return jt.cond(np.sum(x) > 0, np.sin, np.cos, x)

    both(f, X)
    both(f, -X)


def test_cond_closures_and_no_operands() -> None:
    table = np.arange(5.0)

    def f(x: Any, y: Any) -> Any:
        z = x * 2
        return jt.cond(x[0] > 0, lambda: z + table, lambda: y - 1)

    both(f, X, X + 3)
    both(f, -X, X + 3)


def test_nested_cond() -> None:
    def f(x: Any) -> Any:
        return jt.cond(
            x > 0,
            lambda v: jt.cond(v > 1, lambda u: u * 10, lambda u: u + x, v),
            lambda v: -v,
            x,
        )

    for x in (2.0, 0.5, -3.0):
        both(f, np.float64(x))


def test_cond_with_a_concrete_predicate_calls_the_branch_under_jit(
    jit: Callable[..., Any],
) -> None:
    called = []

    def f(x: Any, flag: bool) -> Any:
        def no(v: Any) -> Any:
            called.append("no")
            return v.reshape(3, 3, 3)  # would raise

        return jt.cond(flag, lambda v: v + 1, no, x)

    static = jt.jit(f, backend="interpreter", static_argnums=1)
    np.testing.assert_array_equal(static(X, True), X + 1)
    assert called == []


def test_cond_promotes_python_scalars_of_a_branch() -> None:
    def f(x: Any) -> Any:
        return jt.cond(x[0] > 0, lambda: np.sum(x), lambda: 0.0)

    x = np.ones(3, np.float32)
    assert isinstance(jt.jit(f, backend="interpreter")(x), np.float32)
    assert jt.jit(f, backend="interpreter")(-x) == 0.0


def test_cond_branches_of_different_types(jit: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"(?s)true_fn: f64\[5\].*false_fn: f64\[4\]") as info:
        jit(lambda x: jt.cond(x[0] > 0, lambda: x, lambda: x[1:]))(X)
    assert "test_cond.py" in str(info.value)
    with pytest.raises(TypeError, match=r"(?s)true_fn: f64.*false_fn: f32"):
        jit(lambda x: jt.cond(x[0] > 0, lambda: x, lambda: x.astype(np.float32)))(X)
    with pytest.raises(TypeError, match=r"(?s)structure.*true_fn: \(\*, \*\)\n  false_fn: \*\n"):
        jit(lambda x: jt.cond(x[0] > 0, lambda: (x, x), lambda: x))(X)
    with pytest.raises(TypeError, match=r"(?s)\['b'\]"):
        jit(lambda x: jt.cond(x[0] > 0, lambda: {"a": x, "b": x}, lambda: {"a": x, "b": x[0]}))(X)


@pytest.mark.parametrize("pred", [np.array([True, False]), 1, 1.5, None, "yes"])
def test_cond_predicate_must_be_a_scalar_bool(pred: Any, jit: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="(?s)predicate.*bool"):
        jt.cond(pred, lambda: 1, lambda: 2)
    if isinstance(pred, np.ndarray):
        with pytest.raises(TypeError, match=r"(?s)predicate.*bool\[2\]"):
            jit(lambda p: jt.cond(p, lambda: 1, lambda: 2))(pred)
    with pytest.raises(TypeError, match=r"(?s)predicate.*int64"):
        jit(lambda p: jt.cond(p, lambda: 1, lambda: 2))(np.int64(1))


def test_cond_mutated_operand_changes_as_in_python() -> None:
    def f(x: Any, flag: Any) -> Any:
        y = x * 1

        def bump(u: Any) -> Any:
            u[0] = 100.0
            return np.sum(u)

        s = jt.cond(flag, bump, lambda u: np.sum(u), y)
        return s, y

    both(f, X, np.True_)
    both(f, X, np.False_)


# switch


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 3, 99])
def test_switch_clamps_its_index(index: int) -> None:
    def f(i: Any, x: Any) -> Any:
        return jt.switch(i, [lambda v: v + 1, lambda v: v * 10, lambda v: -v], x)

    both(f, index, X)
    both(f, np.int64(index), X)
    both(f, np.int8(index), X)


def test_switch_errors(jit: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="branch"):
        jt.switch(0, [])
    with pytest.raises(TypeError, match="(?s)index.*integer.*float64"):
        jit(lambda i: jt.switch(i, [lambda: 1, lambda: 2]))(np.float64(1))
    with pytest.raises(TypeError, match="index"):
        jt.switch(1.0, [lambda: 1, lambda: 2])


def test_branches_keep_the_order_in_memory():
    """A reshape of what lies in columns is a copy."""

    def f(x, p):
        y = jt.cond(p, lambda v: v * 2, lambda v: v - 1, x.T)
        flat = y.reshape(-1)
        flat[0] = 99
        return y, flat

    x = np.arange(6.0).reshape(2, 3)
    for p in (True, False):
        for got, want in zip(jt.jit(f)(x, p), f(x, p), strict=True):
            np.testing.assert_array_equal(got, want)


def test_an_if_keeps_the_order_in_memory():
    def f(x):
        y = x.copy("K")
        if x.sum() > 1:
            y[1:2] += 1
        else:
            y = y - 2
        flat = y.reshape(-1)
        y += 100
        return flat

    x = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    for argument in (x, -x):
        np.testing.assert_array_equal(jt.jit(f, autograph=True)(argument), f(argument))
