"""Arrays of one shape among what containers hold, and NumPy's functions of lists of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

RNG = np.random.default_rng(3)
P = RNG.normal(size=(40, 2))
LARGE = RNG.normal(size=(6, 5, 9))

Program = tuple[Callable[..., Any], tuple[Any, ...]]
PROGRAMS: list[Program] = []


def program(*args: Any) -> Callable[[Any], Any]:
    def add(f: Any) -> Any:
        PROGRAMS.append((f, args))
        return f

    return add


@program(np.array([0.0, 0.0]), 100)
def path(start, n):
    here, found, i = np.array(start), [np.array(start)], 0
    while i < n and np.sum(here**2) < 50:
        here = here + np.array([0.5, 0.25]) * (i + 1)
        found.append(here)
        i += 1
    return np.array(found), found, found[-1], len(found), here


@program(P, 3, 3)
def means(x, k, steps):
    c = np.array([x[i] for i in range(3)])
    for _ in range(steps):
        clusters = [[] for _ in range(k)]
        for p in x:
            d = [np.sum((p - c[j]) ** 2) for j in range(k)]
            clusters[int(np.argmin(d))].append(p)
        for j in range(k):
            if len(clusters[j]) > 0:
                c[j] = np.mean(clusters[j], axis=0)
    return c


@program(P)
def hull(x):
    lower = []
    for p in x[np.argsort(x[:, 0])]:
        while len(lower) >= 2:
            a, b = lower[-2], lower[-1]
            if (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0:
                break
            lower.pop()
        lower.append(p)
    return np.array(lower)


@program(P)
def reduced(x):
    rows = [p * 2 for p in x if p[0] > 0]
    whole = np.array(rows)
    none = [p for p in x if p[0] > 99]
    return (
        *(np.stack(rows), np.vstack(rows), np.sum(rows, axis=0), whole.mean(axis=0)),
        *(whole.max(axis=0), np.std(rows, axis=0), np.sum(whole), np.mean(whole), whole.min()),
        *(whole[0], whole[-1], whole[1:3], whole[:, 1], whole[0, 1], len(whole), np.array(none)),
    )


@program(LARGE)
def larger(x):
    kept, queue, best = [], deque(), {}
    for k in range(len(x)):
        part = x[k] * (k + 1)
        if part.sum() > 0:
            kept.append(part)
            best[k % 2] = part
        elif kept:
            queue.append((k, kept[-1] + part))
    return kept, queue, best, np.array(kept).shape[0]


@program(P)
def perhaps(x):
    last, found = [None] * 4, []
    for p in x:
        k = int(abs(p[0]) * 4) % 4
        before = last[k]
        if before is not None:
            found.append(np.sum(before * p))
        last[k] = p
    return found


@program(P > 0)
def truths(x):
    rows = []
    for row in x:
        if row[0]:
            rows.append(row)
    return rows, np.any(rows, axis=0), np.array(rows)


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, (list, tuple, deque)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        same([*a.items()], [*b.items()])
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    else:
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("f,args", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_programs(f: Any, args: Any) -> None:
    same(jt.jit(f)(*args), f(*args))


@pytest.mark.parametrize("f", [path, larger, reduced])
def test_interpreter(f: Any) -> None:
    args = next(args for g, args in PROGRAMS if g is f)
    same(jt.jit(f, backend="interpreter")(*args), f(*args))


def one_array(x):
    here, found = np.zeros(2), []
    for p in x:
        here += p  # in Python all elements are this one array
        if p[0] > 0:
            found.append(here)
    return found


def changed_in_the_loop(x):
    found = []
    for p in x:
        q = p * 2
        if p[0] > 0:
            found.append(q)
        q += 1
    return found


def changed_after_the_loop(x):
    here, found = np.zeros(2), []
    for p in x:
        here = here + p
        if p[0] > 0:
            found.append(here)
    here += 1
    return found


def changed_element(x):
    found = []
    for p in x:
        if p[0] > 0:
            found.append(p * 2)
    found[0][1] = 7.0
    return found


def changed_source(x):
    y, found = x * 1.0, []
    for p in y:
        if p[0] > 0:
            found.append(p)
    y[0] = 100.0
    return found


def changed_row(x):
    found = []
    for p in x:
        if p[0] > 0:
            found.append(p * 2)
    for row in np.array(found):
        row += 1
    return found


def changed_in_another_branch(x):
    found, here = [], np.zeros(2)
    for p in x:
        if p[0] > 0:
            here = here + p
            found.append(here)
        else:
            here -= p
    return found


def changed_after_it_was_read(x):
    found = []
    for p in x:
        if p[0] > 0:
            found.append(p * 2)
    best = found[0]
    for row in found:
        if row[1] > best[1]:
            best = row
    best += 1
    return found, best


def put_by_a_helper(x):
    found, buffer = [], np.empty(2)

    def keep(v):
        if v[0] > 0:
            found.append(v)

    for p in x:
        buffer[:] = p * 2
        keep(buffer)
    return found


def changed_constant(x):
    zero, found = np.zeros(2), []
    for p in x:
        if p[0] > 0:
            found.append(zero)
    zero[0] = 1.0
    return found


@pytest.mark.parametrize(
    "f",
    [
        *(one_array, changed_in_the_loop, changed_after_the_loop, changed_element),
        *(changed_source, changed_row, changed_constant, changed_in_another_branch),
        *(changed_after_it_was_read, put_by_a_helper),
    ],
)
def test_what_a_container_holds_is_not_changed(f: Any) -> None:
    with pytest.raises(jt.errors.JitneyError):
        same(jt.jit(f)(P), f(P))
        raise jt.errors.ArgumentError("it is as in Python")


def test_copies_may_be_changed() -> None:
    def f(x):
        here, found = np.zeros(2), []
        for p in x:
            here += p
            if p[0] > 0:
                found.append(here.copy())
        first = found[0].copy()
        first[0] = 9.0
        return found, first

    same(jt.jit(f)(P), f(P))
