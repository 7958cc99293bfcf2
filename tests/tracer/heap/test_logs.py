"""Containers of outside to which compiled loops and branches only add: as Python leaves them."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

import jitney as jt

SEEN: list[Any] = []


class Walk:
    def __init__(self) -> None:
        self.history, self.seen, self.last, self.pairs = [1.5], {3}, deque([1]), []
        self.rows: list[Any] = []
        self.x = 0.0

    def loop(self, zs):
        for i in range(len(zs)):
            self.x += zs[i]
            if zs[i] > 0.5:
                self.history.append(self.x)
                self.pairs.append((i, (zs[i], True)))
            self.seen.add(i % 7)
            self.last.append(i)
            SEEN.append(i)
        return self.x

    def before_and_after(self, zs):
        self.history.append(zs[0])
        for z in zs:
            self.history.append(z)
        self.history.extend([zs[1], zs[2]])

    def nested(self, zs):
        for i in range(len(zs)):
            row = []
            row.append(i)
            self.rows.append(row)

    def helper(self, zs):
        for z in zs:
            self.note(z)

    def note(self, z):
        if z > 0.25:
            self.history.append(z)

    def fails(self, zs):
        for i in range(len(zs)):
            self.history.append(zs[i])
            if i == 300:
                raise ValueError("no")

    def replaced(self, zs):
        self.rows = []
        for z in zs:
            self.rows.append(z)


ZS = np.random.default_rng(0).random(400)


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize("name", ["loop", "before_and_after", "nested", "helper", "replaced"])
def test_loops_add(name: str, backend: str) -> None:
    if backend == "interpreter" and name in ("nested", "replaced"):
        return
    left = []
    for plain in (True, False):
        SEEN.clear()
        walk, method = Walk(), getattr(Walk, name)
        f = method if plain else jt.jit(method, backend=backend)
        held = walk.history
        results = [f(walk, ZS) for _ in range(3)]
        assert walk.history is held
        left.append(repr((results, vars(walk), SEEN)))
        if not plain:
            assert f.cache_info().misses <= 2  # self.x is a float, then NumPy's
    assert left[0] == left[1]


def test_branches_add() -> None:
    @jt.jit
    def f(walk, z):
        if z > 0:
            walk.history.append(z)
        return -z

    walk = Walk()
    assert [f(walk, z) for z in (0.5, -0.5, 0.25)] == [-0.5, 0.5, -0.25]
    assert walk.history == [1.5, 0.5, 0.25]


def test_what_raises_adds_nothing() -> None:
    walk = Walk()
    f = jt.jit(Walk.fails)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            f(walk, ZS)
        assert walk.history == [1.5]
    f(walk, ZS[:200])
    assert walk.history == [1.5, *ZS[:200]]
