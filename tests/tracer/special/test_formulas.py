"""What formulas of special functions trace to is remembered, and nothing is mixed up by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.ir.text import print_graph
from jitney.tracer.special import formulas
from jitney.tracer.special.gammas import psi

S = jt.special
X = np.array([0.5, 1.5])


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One of each test's own."""
    monkeypatch.setattr(formulas, "_remembered", formulas._Memory())
    return formulas._remembered


def slope(f: Any) -> Any:
    return jt.grad(lambda x: np.sum(f(x)))


def test_each_is_traced_once_for_each_order(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []
    plain = psi.fun

    def counted(x: Any) -> Any:
        traced.append(x.shape)
        return plain(x)

    monkeypatch.setattr(psi, "fun", counted)
    second = slope(slope(S.gamma))
    first = second(X)
    assert traced == [(2,)]  # the value; rules of both orders call the formula itself
    np.testing.assert_array_equal(second(X), first)
    assert len(traced) == 1
    second(np.ones(3))
    assert traced == [(2,), (3,)]


def test_values_and_derivatives_do_not_depend_on_what_was_traced_before(memory: Any) -> None:
    def f(x: Any) -> Any:
        return S.entr(x) * S.expi(x)

    ways = [f, slope(f), slope(slope(f)), jt.vmap(jt.grad(f)), lambda x: jt.jvp(f, (x,), (x,))[1]]
    for x in (X, X.astype(np.float32)):
        wanted = []
        for way in ways:
            formulas._remembered = formulas._Memory()
            wanted.append(way(x))
        formulas._remembered = memory
        for _ in range(2):
            for way, want in zip(reversed(ways), reversed(wanted), strict=True):
                np.testing.assert_array_equal(way(x), want)


def test_ops_have_the_line_of_their_own_call() -> None:
    def f(x: Any) -> Any:
        y = S.gamma(x)
        return y + S.gamma(x)

    first = f.__code__.co_firstlineno
    for way in (f, slope(f)):
        lines = {op.loc.line for op in jt.jit(way).trace(X).walk() if op.loc is not None}
        assert {first + 1, first + 2} <= lines


def test_nothing_that_is_made_of_them_changes_them(memory: Any) -> None:
    f = slope(slope(lambda x: S.expi(x) * S.xlogy(x, x)))
    jt.jit(f).trace(X)
    before = {key: print_graph(made.graph) for key, made in memory._formulas.items()}
    assert len(before) > 5
    for way in (f, jt.vmap(lambda x: f(x * X))):
        jt.jit(way)(X)
        way(X)
    assert {key: print_graph(memory._formulas[key].graph) for key in before} == before


def test_many_are_not_kept(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "_MOST_OPS", 1500)
    for n in range(1, 9):
        assert np.isfinite(slope(S.gamma)(np.ones(n))).all()
        assert memory._ops <= 1500
    assert len(memory._formulas) < 9
    assert memory._ops == sum(made.ops for made in memory._formulas.values())
