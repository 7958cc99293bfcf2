"""Rules of `custom_jvp` and `custom_vjp`: they have the result; they ask which examples count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt


def test_a_rule_that_calls_its_function_again_gets_the_result() -> None:
    """It need not be computed again, and where a loop keeps it, that is once; with other arguments, also
    the same ones changed, the function runs."""

    @jt.custom_jvp
    def f(x: Any, power: int) -> Any:
        return jt.exp(x**power)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        x, power = primals
        y = f(x, power)
        y *= 1.0
        x *= 2.0
        return y, tangents[0] * power * (y - f(x, power) + f(0.5 * x, 1))

    def along(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            c = f(c, 1)
            return c * jt.sin(c), None

        return jt.scan(body, x, None, length=3)[0]

    x = np.array(0.3)
    derivative = jt.jit(jt.grad(f))
    assert derivative(x, 1) == pytest.approx(2 * np.exp(0.3) - np.exp(0.6)) and x == 0.3
    assert [op.name for op in derivative.trace(x, 1).ops].count("exp") == 3
    f.defjvps(lambda t, y, x, power: t * power * y, None)
    plain = jt.jit(jt.grad(lambda x: jt.sum(along(x))))
    assert plain(0.3) == pytest.approx(jt.grad(along)(0.3))
    backward = next(op for op in reversed(list(plain.lower(0.3).graph.walk())) if op.name == "scan")
    assert len(backward.operands) == 4  # a cotangent; what exp gave, and its sine and cosine


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_rules_that_ask_which_examples_count(kind: str) -> None:
    """Their regions take the mask beside what they close over."""
    table = np.arange(5.0)

    def slope(x: Any) -> Any:
        k = x.astype(int)
        return jt.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + jt.take(table, k)), (0, x)
        )[1]

    if kind == "jvp":
        f: Any = jt.custom_jvp(lambda x: x * x)
        f.defjvp(lambda primals, ts: (f(*primals), slope(*primals) * ts[0]))
    else:
        f = jt.custom_vjp(lambda x: x * x)
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * slope(x),))

    def one(x: Any) -> Any:
        return jt.cond(x > 1, f, lambda x: x, x)

    found = jt.jit(jt.vmap(jt.grad(one)))(np.array([-9.0, 2.0, 3.0]))
    np.testing.assert_array_equal(found, [1.0, 8.0, 12.0])
