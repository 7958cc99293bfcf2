"""`jt.config.check` outside of jit: transformations that run op by op name the line that made NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.array([0.0, 1.0, 4.0])


def loss(x: Any) -> Any:
    y = np.sqrt(x) * 2.0
    return y.sum() + np.log(np.where(x > 0, x, 1.0)).sum()


def lost(x: Any) -> Any:
    return np.sum(x * (np.arccos(x) > 1))


LINE = loss.__code__.co_firstlineno + 1
CALLS: list[Any] = [
    (lambda: jt.grad(lambda x: loss(x * 0))(X), r"grad of mul \(mul\) made nan", LINE - 3),
    (lambda: jt.grad(lost)(X), "arccos made nan in 1 of 3", LINE + 5),
    (lambda: jt.value_and_grad(lost)(X), "arccos made nan", LINE + 5),
    (lambda: jt.vmap(lost)(X), "arccos made nan for example 2 of vmap", LINE + 5),
    (lambda: jt.jvp(loss, (X,), (X,)), r"jvp of sqrt \(div\) made nan in 1 of 3", LINE),
    (lambda: jt.vjp(lost, X), "arccos made nan", LINE + 5),
    (lambda: jt.vjp(loss, X)[1](0.0), r"grad of sqrt \(div\) made nan", LINE),
    (lambda: jt.linearize(lost, X), "arccos made nan", LINE + 5),
    (lambda: jt.jacrev(lost)(X), "arccos made nan", LINE + 5),
    (lambda: jt.jacfwd(lost)(X), "arccos made nan", LINE + 5),
    (lambda: jt.hvp(lost, (X,), (X,)), "arccos made nan", LINE + 5),
]


@pytest.mark.parametrize(("call", "says", "line"), CALLS)
def test_the_line_that_made_nan(call: Any, says: str, line: int) -> None:
    call()
    with jt.config(check="nan"):
        with pytest.raises(jt.errors.NonFiniteError, match=says) as caught:
            call()
        with jt.config(check="overflow"):
            call()
    assert caught.value.line is not None
    if "grad of mul" not in says:
        assert caught.value.line.line == line


def test_what_is_given_or_dropped_does_no_harm() -> None:
    nan = np.array([np.nan, 1.0])
    with jt.config(check={"nan", "inf"}):
        jt.grad(lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0).sum())(X)
        jt.vmap(lambda x: np.where(x > 0, np.log(x), 0.0))(X)
        jt.grad(lambda x: (x * 2).sum() + np.nan)(X)
        jt.vmap(lambda x: x + 1)(nan)
        jt.grad(lambda x: np.sum(x**3))(X)
    with jt.config(check="inf"), pytest.raises(FloatingPointError, match="log made inf"):
        jt.vmap(np.log)(X)
    with jt.config(check="overflow"), pytest.raises(jt.errors.IntegerOverflowError, match="mul"):
        jt.vmap(lambda n: n * n)(np.array([3, 2**40]))
