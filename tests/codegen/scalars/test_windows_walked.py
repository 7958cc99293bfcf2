"""Loops over windows, `for v in x[a:b]`: elements are read where they are; nothing is as long as `x`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

RNG = np.random.default_rng(11)
N = 40
PTR = np.concatenate([[0], np.cumsum(RNG.integers(0, 7, N))])
SIZE = int(PTR[-1])
X = RNG.normal(size=SIZE)
A = RNG.normal(size=(SIZE, 3))
ADJ = np.concatenate([np.sort(RNG.integers(0, N, n)) for n in np.diff(PTR)])


def searched(adj, ptr, x, n):
    dist = np.full(n, -1)
    dist[0] = 0
    todo = deque([0])
    while todo:
        u = todo.popleft()
        for v in adj[ptr[u] : ptr[u + 1]]:
            if dist[v] < 0:
                dist[v] = dist[u] + 1
                todo.append(v)
    return dist


def stepped(adj, ptr, x, n):
    s = 0.0
    for u in range(n):
        for v in x[ptr[u] : ptr[u + 1] : 2]:
            s = s * 0.5 + v
        for v in x[ptr[u + 1] : ptr[u] : -1]:
            s = s * 0.5 + v
        for v in reversed(x[ptr[u] - 9 : ptr[u + 1]]):
            s = s * 0.5 - v
    return s


def together(adj, ptr, x, n):
    s = 0.0
    for u in range(n):
        a, b = ptr[u], ptr[u + 1]
        for k, (v, j) in enumerate(zip(x[a:b], adj[b - 1 :])):  # noqa: B905
            s = s * 0.5 + v * j + k
    return s


def computed(adj, ptr, x, n):
    s = 0.0
    for u in range(n):
        for v in abs(x[ptr[u] : ptr[u + 1]]) * 2 - u:
            s = s * 0.5 + v
    return s


def nested(adj, ptr, x, n):
    s = 0.0
    for u in range(n - 1):
        y = x[ptr[u] : ptr[u + 2]]
        for i in range(len(y)):
            for v in y[i::2]:
                s = s * 0.5 + v
            for v in y[1:][:i]:
                s = s * 0.5 - v * y[i]
    return s


def in_branches(adj, ptr, x, n):
    s = 0.0
    for u in range(n):
        y = x[ptr[u] : ptr[u + 1]]
        if u % 2:
            for v in y:
                if v > s:
                    s += y[0] * v
        elif len(y) > 2:
            s += y.sum() + y[-1]
        else:
            s -= len(y)
    return s


def merged(adj, ptr, x, n):
    common = 0
    for u in range(n):
        a = adj[ptr[u] : ptr[u + 1]]
        for w in a:
            b = adj[ptr[w] : ptr[w + 1]]
            i = j = 0
            while i < len(a) and j < len(b):
                if a[i] == b[j]:
                    common += 1
                i, j = i + (a[i] <= b[j]), j + (b[j] <= a[i])
    return common


READ_IN_PLACE = [searched, stepped, together, computed, nested, in_branches, merged]


def by_rows(a, ptr, x, n):
    s = 0.0
    for u in range(n):
        for row in a[ptr[u] : ptr[u + 1]]:
            s = s * 0.5 + row[1] + row.max()
            for v in row:
                s = s * 0.5 + v
        for v in a[ptr[u] :: -2, u % 3]:
            s = s * 0.5 + v
    return s


def overwritten_meanwhile(adj, ptr, x, n):
    """What a window shows changes while it is run over, and in between."""
    x = x.copy()
    s = 0.0
    for u in range(n):
        y = x[ptr[u] : ptr[u + 1]]
        x[u] = u
        for v in y:
            s = s * 0.5 + v
            x[(ptr[u] + 2) % len(x)] = s
        for v in y:
            s = s * 0.5 + v
    return x, s


def kept_from_before(adj, ptr, x, n):
    """Copies are of the time when they were made."""
    x = x.copy()
    s = 0.0
    for u in range(n):
        y, z = x[ptr[u] : ptr[u + 1]].copy(), x[ptr[u] : ptr[u + 1]] * 2
        for v in y:
            x[u] += v
        if u % 3 == 0:
            x[ptr[u] :] += 1.0
            for v in z:
                s = s * 0.5 + v
        for v in y:
            s = s * 0.5 + v
    return x, s


def handed_on(adj, ptr, x, n):
    """A branch hands out the window, or another; the loop after it runs over that."""
    s = 0.0
    for u in range(n):
        y = x[ptr[u] : ptr[u + 1]]
        if u % 3 == 0 and len(y):
            y = y * y[0]
        for v in y:
            s = s * 0.5 + v
    return s


def same(got: Any, want: Any) -> None:
    for g, w in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9)


ALL = [*READ_IN_PLACE, overwritten_meanwhile, kept_from_before, handed_on]


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_same_as_python(f: Callable[..., Any]) -> None:
    same(jt.jit(f)(ADJ, PTR, X, N), f(ADJ, PTR, X, N))


@pytest.mark.parametrize("f", [by_rows], ids=lambda f: f.__name__)
@pytest.mark.parametrize("columns", [3, 100])
def test_rows(f: Callable[..., Any], columns: int) -> None:
    a = np.tile(A, (1, columns))
    same(jt.jit(f)(a, PTR, X, N), f(a, PTR, X, N))


@pytest.mark.parametrize("f", READ_IN_PLACE, ids=lambda f: f.__name__)
def test_no_memory_for_windows(f: Callable[..., Any]) -> None:
    """A copy of the window would have room for all of the array, and be filled with zeros behind it."""
    lowered = jt.jit(f).lower(np.tile(ADJ, 9), PTR, np.tile(X, 9), N)
    assert lowered.executable.module.arena_bytes < 8 * SIZE


def test_every_access_is_in_bounds() -> None:
    with jt.config(sanitize=True):
        for f in (stepped, nested, merged):
            same(jt.jit(f)(ADJ, PTR, X, N), f(ADJ, PTR, X, N))
        same(jt.jit(by_rows)(A, PTR, X, N), by_rows(A, PTR, X, N))


def test_nothing_to_run_over() -> None:
    none, starts = np.zeros(0), np.zeros(4, np.int64)
    for f in (stepped, computed, nested, in_branches):
        same(jt.jit(f)(ADJ[:0], starts, none, 3), f(ADJ[:0], starts, none, 3))
