"""Loops that change a container and bind its name anew: who else has it sees the first change."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitney as jt


@dataclass
class Particle:
    x: float
    v: float = 0.0


def of_a_dict(d: Any, n: Any) -> Any:
    for _ in range(n):
        d["a"] += 1.0
        d = {"a": d["a"] * 2}
    return d["a"]


def of_a_list(values: Any, n: Any) -> Any:
    k = 0
    while k < n:
        values[0] += 1.0
        values = [values[0] * 2]
        k += 1
    return values[0]


def of_an_object(p: Any, n: Any) -> Any:
    for _ in range(n):
        p.v += 1.0
        p = Particle(p.x + p.v, p.v)
    return p.x


def of_objects_in_a_list(particles: Any, n: Any) -> Any:
    for _ in range(n):
        for p in particles:
            p.v += p.x
        particles = [Particle(p.x + p.v, p.v) for p in particles]
    return particles[0].x, particles[1].v


def of_an_alias(start: Any, n: Any) -> Any:
    values = [start, 0.0]
    also = values
    for k in range(n):
        values[0] += k + 1
        values = [values[0], values[1] + 1]
    return also[0], also[1], values[0], values[1]


def of_rows(start: Any, x: Any) -> Any:
    values, kept = [start], []
    kept.append(values)
    for v in x:
        values[0] += v
        values = [values[0]]
    return kept[0][0], values[0]


def of_nobody_else(start: Any, n: Any) -> Any:
    values = [start]
    for _ in range(n):
        values[0] += 1
        values = [values[0] * 2]
    return values


CASES: list[tuple[Callable[..., Any], Callable[[], Any]]] = [
    (of_a_dict, lambda: {"a": 0.5}),
    (of_a_list, lambda: [0.5]),
    (of_an_object, lambda: Particle(1.0)),
    (of_objects_in_a_list, lambda: [Particle(1.0), Particle(2.0, 0.5)]),
    (of_an_alias, lambda: 1.5),
    (of_nobody_else, lambda: 1.5),
]


@pytest.mark.parametrize("n", [0, 1, 3, 30, np.int64(0), np.int64(7)])
@pytest.mark.parametrize(("function", "make"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_others_see_the_first_change(
    function: Callable[..., Any], make: Callable[[], Any], n: Any
) -> None:
    compiled, first, second = jt.jit(function), make(), make()
    for _ in range(2):
        assert compiled(first, n) == function(second, n)
        assert first == second


def test_in_a_loop_over_an_array() -> None:
    x = np.arange(5.0)
    assert jt.jit(of_rows)(1.0, x) == of_rows(1.0, x)
    assert jt.jit(of_rows)(1.0, x[:0]) == of_rows(1.0, x[:0])


def swapped(a: Any, b: Any, n: Any) -> Any:
    for k in range(n):
        b[0] = a[0] + k
        a, b = b, a
    return a[0]


def of_one_then_another(several: Any, n: Any) -> Any:
    d = several[0]
    for _ in range(n):
        d["a"] += 1.0
        d = several[1]
    return d["a"]


def of_the_same_again(values: Any, n: Any) -> Any:
    own = values
    for _ in range(n):
        own[0] += 1.0
        own = values
    return own[0]


@pytest.mark.parametrize("n", [2, 30, np.int64(5)])
@pytest.mark.parametrize(
    ("function", "args"),
    [
        (swapped, ([1.0], [2.0])),
        (of_one_then_another, ([{"a": 0.0}, {"a": 5.0}],)),
        (of_the_same_again, ([1.0],)),
    ],
)
def test_what_is_the_callers_in_each_iteration(
    function: Callable[..., Any], args: tuple[Any, ...], n: Any
) -> None:
    first, second = copy.deepcopy(args), copy.deepcopy(args)
    assert jt.jit(function)(*first, n) == function(*second, n)
    assert first == second


def sometimes(p: Any, x: Any) -> Any:
    for v in x:
        p.v += v
        if v > 2:
            p = Particle(p.x, p.v)
    return p.v


def test_what_may_be_the_callers_is_refused() -> None:
    particle = Particle(1.0)
    with pytest.raises(jt.errors.OuterMutationError, match="p is one of several Particles"):
        jt.jit(sometimes)(particle, np.arange(5.0))
    assert particle == Particle(1.0)


def chosen_or_new(p: Any, q: Any, x: Any) -> Any:
    if x > 0:
        p = Particle(p.x, p.v)
    p.v += 1
    return p.v


def chosen_of_two(p: Any, q: Any, x: Any) -> Any:
    one = p if x > 0 else q
    one.v += 1
    return one.v + p.v


def an_alias(p: Any, q: Any, x: Any) -> Any:
    one = p
    if x > 0:
        one = Particle(0.0, 5.0)
    one.v = 7.0
    return p.v + one.v


@pytest.mark.parametrize("x", [1.0, -1.0])
@pytest.mark.parametrize("function", [chosen_or_new, chosen_of_two, an_alias])
def test_a_dataclass_that_a_branch_chooses_is_that_one(
    function: Callable[..., Any], x: float
) -> None:
    first, second = ([Particle(1.0), Particle(2.0)] for _ in range(2))
    assert jt.jit(function)(*first, x) == function(*second, x)
    assert first == second
