"""Native containers that leave: Python's own of every class, with the very classes of what they hold."""

from __future__ import annotations

import tracemalloc
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitney as jt

Pair = namedtuple("Pair", "a b")


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any


def every_class(x):
    items, found, seen, last, ordered = [], {}, set(), deque(maxlen=3), OrderedDict()
    counts, groups, nested, pairs, points = Counter(), defaultdict(list), [], [], []
    for i in range(len(x)):
        v = x[i]
        items.append((i, (v, i > 2)))
        found[v] = i, v * 2
        seen.add(i // 2)
        last.append(i * 0.5)
        ordered[i] = v
        counts[i % 3] += 1
        groups[i % 4].append(v)
        nested.append([i])
        nested[i].append(i + 1)
        pairs.append(Pair(i, v > 2))
        points.append(Point(i, v))
    if len(x):
        del found[x[1]]
    seen.discard(0)
    return items, found, seen, last, ordered, counts, groups, nested, pairs, points, items


def classes(x: Any) -> Any:
    """A value with the classes of all that is in it."""
    if isinstance(x, dict):
        return type(x), [(classes(k), classes(v)) for k, v in x.items()]
    if isinstance(x, (list, tuple, set, deque)):
        return type(x), [classes(v) for v in x], getattr(x, "maxlen", None)
    return (Point, classes((x.x, x.y))) if isinstance(x, Point) else (type(x), x)


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8])
def test_every_class(backend: str, dtype: Any) -> None:
    x = np.array([1, 5, 2, 8, 4, 3], dtype)
    compiled = jt.jit(every_class, backend=backend)
    for _ in range(3):
        found = compiled(x)
        assert classes(found) == classes(every_class(x))
        assert found[0] is found[-1]
    assert found[6].default_factory is list
    assert classes(compiled(x[:0])) == classes(every_class(x[:0]))


@jt.jit
def chain(n):
    items = []
    for _ in range(n):
        outer = []
        outer.append(items)
        items = outer
    return items


def test_deep_ones_are_an_error() -> None:
    assert chain(3) == [[[[]]]]
    with pytest.raises(RecursionError, match="while containers leave"):
        chain(200_000)
    assert chain(4) == [[[[[]]]]]


@jt.jit
def taken_out(keys, last):
    found, kept = {}, []
    for i in range(len(keys)):
        if keys[i] in found:
            kept.append(found.pop(keys[i]))
        else:
            found[keys[i]] = i
        if last and len(found) > 3:
            kept.append(found.popitem()[1])
    return found, kept


@pytest.mark.parametrize("last", [True, False])
def test_places_of_keys_that_are_gone_are_free(last: bool) -> None:
    keys = np.random.default_rng(0).integers(0, 200, 5000)
    assert taken_out(keys, last) == taken_out.__wrapped__(keys, last)


def test_containers_that_do_not_leave_are_given_back():
    @jt.jit
    def steps(n):
        stack, k = [n], 0
        while stack:
            n = stack.pop()
            k += 1
            if n > 1:
                stack.append(n // 2)
        return k

    def taken():
        for _ in range(300):
            assert steps(40) == 6
        return tracemalloc.get_traced_memory()[0]

    steps(40)
    tracemalloc.start()
    try:
        before = taken()
        assert taken() - before < 300 * 96  # the header of a container
    finally:
        tracemalloc.stop()


def test_lists_in_a_dict_of_known_keys_have_elements_of_their_own() -> None:
    """They were taken for lists of one kind, and counts became floats."""

    def descend(x: Any) -> Any:
        history: dict[str, Any] = {"loss": [], "step": [], "all": ([], {"even": []})}
        w = 0.0
        for i in range(100):
            g = 2 * (w - x[0])
            w -= 0.1 * g
            history["loss"].append((w - x[0]) ** 2)
            history["step"].append(i)
            if i % 2 == 0:
                history["all"][1]["even"].append(w > 1)
            history["all"][0].append((i, float(w)))
            if abs(g) < 1e-3:
                break
        return w, history

    x = np.array([3.0])
    (w, history), (wanted, wanted_history) = jt.jit(descend)(x), descend(x)
    assert w == wanted and history == wanted_history
    parts = history["loss"], history["step"], history["all"][1]["even"], *zip(*history["all"][0])  # noqa: B905
    assert [type(part[3]) for part in parts] == [np.float64, int, np.bool_, int, float]
