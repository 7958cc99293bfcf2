"""Python's own containers that are changed in compiled loops and branches: sets and Counters, whose
content no leaf shows, become native ones; keys that are written again under a loop stay."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

PROGRAMS: list[Callable[..., Any]] = []


def program(f: Any) -> Any:
    PROGRAMS.append(f)
    return f


@program
def set_of_constants(n):
    s, t, u = set(), {1.0}, {3}
    for _ in range(n):
        s.add(len(s))
        t.clear()
    if n > 2:
        u.clear()
    else:
        u.add(4)
    return s, t, len(u)


@program
def counters(n):
    c, d, e = Counter(), Counter([1, 1]), Counter()
    for _ in range(n):
        c[7] += 1
        d.update([1, 2])
    if n > 2:
        e[3] = 1
    return c, d, e[3], len(e)


@program
def order(n):
    c, d, q = OrderedDict(), {1: 1, 2: 2}, deque([1, 2, 3])
    c[1] = 1
    c[2] = 2
    for _ in range(n):
        d[1] = d.pop(1)
        q.rotate(1)
    if n > 2:
        c.move_to_end(1)
    return list(c), list(d), list(q)


class Holder:
    pass


@program
def inside_of_others(n):
    outer, held = [set()], Holder()
    held.s = set()

    def inner(k):
        if k > 1:
            outer[0].add(5)

    for k in range(n):
        outer[0].add(7)
        held.s.add(7)
        inner(k)
    return sorted(outer[0]), len(held.s)


@program
def written_again_while_run_over(n):
    d, s = {}, set()
    for i in range(n):
        d[i] = i
        s.add(i)
    for i in range(0, n, 2):
        del d[i]
    for _ in range(3):
        for k in d:
            d[k] += k
        s |= s
    return d, s


@program
def natives_into_pythons(n):
    s, t, d, e = [1], [], {1: 1}, {}
    for i in range(n):
        t.append(i)
        e[i] = i
    s.extend(t)
    s += t
    d.update(e)
    return s, d, [9] + t, sorted([]) + t


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_changes(f: Any) -> None:
    compiled = jt.jit(f)
    for n in (4, 0, 2, 37):
        assert repr(compiled(n)) == repr(f(n)), n


def test_what_cannot_be_native_is_refused() -> None:
    def f(n):
        c = Counter()
        while n > 0:
            c[1j] += 1
            n -= 1
        return c[1j]

    with pytest.raises(jt.errors.CarryError, match="Counter"):
        jt.jit(lambda x: f(x.sum()))(np.arange(3))
