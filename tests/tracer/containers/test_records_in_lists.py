"""Lists of dicts of known keys, with values of several classes, that grow: the classes stay Python's."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt


def history(x: Any) -> Any:
    """What people write in loops: counts beside NumPy's numbers."""
    rows, w = [], 0.0
    for i in range(100):
        w += x[0] * 0.1
        rows.append({"epoch": i, "loss": w * x[0], "w": float(w)})
        if w > 2:
            break
    some = rows[0]["epoch"], rows[-1]["loss"], rows[-1]["w"]
    return rows, some, [r["epoch"] for r in rows], sum(r["loss"] for r in rows)


def of_all_classes(x: Any) -> Any:
    rows, v = [], float(x[0])
    for i in range(200):
        v = v * 0.5
        row = {"it": i, "v": v, "large": v > 1, "name": "big" if v > 1 else "small"}
        row["none"] = None if v > 2 else v
        row["either"] = i if v > 3 else v
        rows.append(row)
        if v < 1e-3:
            break
    last = rows[-1]
    names = [r["name"] for r in rows if r["large"]]
    return rows, names, last["large"], rows[0]["it"] + 1, sum(r["v"] for r in rows), last["none"]


def with_arrays(x: Any) -> Any:
    rows = []
    for i in range(50):
        x = x * 0.5
        rows.append({"it": i, "x": x.copy(), "norm": float(np.linalg.norm(x))})
        if rows[-1]["norm"] < 1e-2:
            break
    return rows, rows[0]["x"].sum()


def read_before_it_changes(x: Any) -> Any:
    """What a key has at first is not all that it has."""
    state = {"n": 0, "found": False, "at": None}
    for i in range(40):
        if state["found"]:
            state["n"] += 1
        if x[0] < i and not state["found"]:
            state["found"] = True
            state["at"] = i
        state["k" if x[0] > i else "n"] = i
    return state, state["at"], state["n"]


def among_floats(x: Any) -> Any:
    d = [0] * 30
    for i in range(30):
        if x[0] > i:
            d[i] = x[0] * i
        elif i > 25:
            d[i] = 0.5
    return d, max(d), sum(d), min(d), sorted(d), d.index(0), np.mean(d), np.array(d), d[::7]


def counted(x: Any) -> Any:
    d: dict[int, Any] = {}
    for i in range(30):
        d[i % 7] = d.get(i % 7, 0) + (x[0] if i > 20 else 1)
    return d, d[0], d.get(99, -1), list(d.values()), max(d.values()), d.pop(3), d.pop(50, 2)


def queued(x: Any) -> Any:
    heap, out = [(0, 1)], []
    for i in range(20):
        heapq.heappush(heap, (x[0] * (i % 5), i))
        if i % 3 == 0:
            out.append(heapq.heappop(heap))
    return heap, out


def bools_and_numbers(x: Any) -> Any:
    out: list[Any] = []
    for i in range(40):
        if x[0] > i:
            out.append(i)
        elif x[0] > i - 3:
            out.append(x[0] > 3)
        else:
            out.append((i, 2.0))
    return out


class Held:
    def __init__(self, x: Any) -> None:
        self.x = x


def of_objects(x: Any) -> Any:
    """Attributes that are numbers here and tuples there."""
    some = []
    for i in range(40):
        if x[0] > i - 9:
            some.append(Held(x[0] * i))
    some[0].x = (1, 2)
    return len(some), some[0].x, [s.x for s in some]


@pytest.mark.parametrize(
    "function",
    [history, of_all_classes, with_arrays, read_before_it_changes, among_floats, counted, queued]
    + [bools_and_numbers, of_objects],
)
def test_classes_are_pythons(function: Callable[..., Any]) -> None:
    compiled = jt.jit(function)
    for first in (3.0, 0.5, 40.0):
        x = np.array([first])
        assert repr(compiled(x.copy())) == repr(function(x))


def test_bools_among_numbers_are_not_searched() -> None:
    """True is 1."""

    def f(x: Any) -> Any:
        return bools_and_numbers(x).index(1)

    with pytest.raises(jt.errors.TransformError, match="some are bools and some numbers"):
        jt.jit(f)(np.array([4.0]))

    def key(x: Any) -> Any:
        seen = set()
        for i in range(20):
            seen.add(i if x[0] > i else x[0] > 3)
        return seen

    with pytest.raises(jt.errors.CarryError, match="of one type"):
        jt.jit(key)(np.array([4.0]))
