"""Sets run over their keys as CPython's do, after whatever was done to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.ir.ops.control import python_sets

# Numbers of which many have one place in a small table, or one hash.
NUMBERS = st.one_of(
    st.integers(-9, 40),
    st.integers(-4, 12).map(lambda k: 32 * k),
    st.integers(-3, 3).map(lambda k: k * ((1 << 61) - 1) - 1),
    st.integers(-(1 << 63), (1 << 63) - 1),
)


def machine(codes, values, more):
    s, t, log = {3, 1, 2, 65}, set(), []
    for i in range(len(codes)):
        code, x = codes[i], values[i]
        if code < 3:
            s.add(x)
        elif code < 6:
            t.add(x)
        elif code == 6:
            s.discard(x)
            t.discard(more[i])
        elif code == 7:
            if s:
                log.append(s.pop())
        elif code == 8:
            s |= t
        elif code == 9:
            s &= set(more)
        elif code == 10:
            s -= t
        elif code == 11:
            s ^= t
        elif code == 12:
            s = s.union(t, more)
        elif code == 13:
            t = t & s
        elif code == 14:
            t = s - t
        elif code == 15:
            t = t ^ s
        elif code == 16:
            t = {v for v in s if v % 3 != 0}
        elif code == 17:
            s.difference_update(more)
            s.intersection_update(more)
        elif code == 18:
            s.update({v: v for v in more})
            s.add(x)
        elif code == 19:
            t = s.copy()
            s.clear()
        elif code == 20:
            t = set(more)
            t.symmetric_difference_update(s)
        elif code == 21:
            s = s.difference(more)
            t = t.symmetric_difference(more)
        log += [*s, len(t)]
        for v in t:
            log.append(v)
    return log, s, t


COMPILED = jt.jit(machine)
INTERPRETED = jt.jit(machine, backend="interpreter")


def drawn(data: Any, n: int) -> Any:
    codes = data.draw(st.lists(st.integers(0, 21), min_size=n, max_size=n))
    values = data.draw(st.lists(NUMBERS, min_size=n, max_size=n))
    more = data.draw(st.lists(NUMBERS, min_size=n, max_size=n))
    return np.array(codes), np.array(values), np.array(more)


def same(found: Any, wanted: Any) -> None:
    (log, *sets), (wanted_log, *wanted_sets) = found, wanted
    assert log == wanted_log
    for one, other in zip(sets, wanted_sets, strict=True):
        assert python_sets.read(one) == python_sets.read(other)  # all that is to come, too


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_machine(data: Any) -> None:
    args = drawn(data, 24)
    same(COMPILED(*args), machine(*args))


@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_interpreter(data: Any) -> None:
    args = drawn(data, 12)
    same(INTERPRETED(*args), machine(*args))


def grown(values, removed):
    s = set()
    for v in values:
        s.add(v)
    for v in removed:
        s.discard(v)
    log = []
    for _ in range(min(3, len(s))):
        log.append(s.pop())
    for v in removed:
        s.add(v)
    return [*log, *s], s


KEYS = {
    "int": lambda rng, n: rng.integers(-500, 500, n),
    "large": lambda rng, n: rng.integers(-(1 << 62), 1 << 62, n),
    "uint": lambda rng, n: rng.integers(0, (1 << 64) - 1, n, np.uint64),
    "int8": lambda rng, n: rng.integers(-100, 100, n).astype(np.int8),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "float": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-320, 300, n),
    "half": lambda rng, n: rng.integers(-50, 50, n) / 4,
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "special": lambda rng, n: np.array([0.0, -0.0, np.inf, -np.inf, 1e308, 5e-324, -1.0, -2.0]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_hashes(kind: str) -> None:
    rng = np.random.default_rng(0)
    args = KEYS[kind](rng, 300), KEYS[kind](rng, 100)
    same(jt.jit(grown)(*args), grown(*args))


def pairs(a, b, x):
    s = set()
    for i in range(len(a)):
        s.add((a[i], (b[i], x[i]), a[i] > 3))
        if i % 4 == 0:
            s.discard((a[i // 2], (b[i // 2], x[i // 2]), a[i // 2] > 3))
    return [*s], s


def test_tuples() -> None:
    rng = np.random.default_rng(1)
    args = rng.integers(-4, 9, 400), rng.integers(0, 5, 400), rng.integers(0, 3, 400) / 2
    same(jt.jit(pairs)(*args), pairs(*args))
    same(jt.jit(pairs, backend="interpreter")(*args), pairs(*args))


def test_many_keys() -> None:
    values = np.random.default_rng(2).integers(0, 1 << 40, 60_000)
    same(jt.jit(grown)(values, values[:50]), grown(values, values[:50]))


def taken(s, xs):
    log = []
    for x in xs:
        if x in s:
            s.remove(x)
        else:
            s.add(x)
        if len(s) > 8:
            log.append(s.pop())
    return log, s


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_of_outside(backend: str) -> None:
    """A set that was there before is as it was, with what is gone from it, and stays the object."""
    xs = np.array([3, 9, 1000, 40, 72, 8, 136, 3, 11])

    def made() -> Any:
        s = set(range(0, 640, 8))
        for _ in range(60):
            s.pop()
        return s - {8, 16}

    one, other = made(), made()
    compiled = jt.jit(taken, backend=backend)
    found, wanted = compiled(one, xs.tolist()), taken(other, xs.tolist())
    assert found[1] is one
    same(found, wanted)
    compiled(one, xs.tolist())
    taken(other, xs.tolist())
    assert python_sets.read(one) == python_sets.read(other)


def test_emptied_of_outside() -> None:
    one, other = ({1, 2, 3, 4} for _ in range(2))
    for s in (one, other):
        for k in (1, 2, 3):
            s.remove(k)
    xs = [4, 9, 17, 4, 25, 1, 2, 33, 9, 41]
    same(jt.jit(taken)(one, xs), taken(other, xs))


def test_first_and_written_down() -> None:
    def f(x):
        s = {20, 4, 36, 8, 1}
        t = {x, 36, 4}
        if x > 0:
            s.add(x)
            t.add(52)
        u = {k + 1 for k in range(0, 90, 9)}
        return (
            next(iter(s)),
            [*s],
            list(t),
            min(t, key=lambda v: v % 4),
            [*u],
            [v + 1 for v in s | u],
        )

    for x in (100, 52, -1):
        assert jt.jit(f)(np.int64(x)) == f(x)
