"""What native containers are asked for may be a number of another kind: compared as Python does."""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

NAN, INF = float("nan"), float("inf")
ASKED = (2.0, 2.5, NAN, INF, -INF, 1e300, -0.0, 2.0**53, 2.0**53 + 2, -(2.0**63), 2.0**63)


def ints(n, t):
    s = []
    for i in range(n):
        s.append(i)
    s += [2**53 + 1, -(2**63), 2**63 - 1]
    found = t in s, s.count(t), 2.5 in s, s.count(1.0), True in s, "a" in s, (1,) in s
    return s, found, s.index(t) if t in s else -1


def floats(n, t):
    s = []
    for i in range(n):
        s.append(i + 2.0**53)
    m = int(t) if abs(t) < 2e18 else n
    return s, m in s, m + 1 in s, n + 2**53 in s, n + 2**53 - 1 in s, s.count(2**53 + 1), s.count(t)


def flags(n, t):
    s = []
    for i in range(n):
        s.append(i % 2 == 0)
    return s, 1 in s, 2 in s, 0.0 in s, t in s, n - 3 in s, s.count(1.0)


def pairs(n, t):
    s = []
    for i in range(n):
        s.append((i, i / 2))
    return s, (t, 0.5) in s, (1.0, 0.5) in s, (1, t) in s, s.count((t, t / 2)), (1, 0.5, 2) in s


def numpy_ints(n, t):
    s = []
    for i in range(n):
        s.append(np.int64(i) + 2**53)
    return s, t in s, s.count(t), n in s, np.int32(n) in s


def numpy_floats(n, t):
    s = []
    for i in range(n):
        s.append(np.float32(i) * np.float32(0.1))
    return s, 0.1 in s, np.float64(0.1) in s, t in s, s.count(0)


def keys(n, t):
    d = {}
    for i in range(n):
        d[i] = i * i
    d[2**53 + 1] = -5
    found = t in d, d.get(t, -1), d[1.0], d[True], d.pop(t, 5), d.pop(2.5, 6), 2.5 in d
    return d, found


def members(n, t):
    s = set()
    for i in range(n):
        s.add(i)
    s.discard(t)
    s.discard(1.0)
    s.discard(0.5)
    return sorted(s), t in s, True in s, False in s


def placed(n, t):
    s = []
    for i in range(n):
        s.append(2 * i)
    places = [bisect.bisect_left(s, t), bisect.bisect_right(s, t), bisect.bisect_left(s, 2.0)]
    return s, places, bisect.bisect(s, True), bisect.bisect_left(s, t, 1, 3)


def paired(n, t):
    s = []
    for i in range(n):
        s.append((i, i))
    return s, bisect.bisect_left(s, (t, 0)), bisect.bisect_right(s, (2, 2.5))


def moved(n, t):
    o = OrderedDict()
    for i in range(n):
        o[i] = i
    o.move_to_end(1.0)
    o.move_to_end(t)
    return o


PROGRAMS = [
    moved,
    ints,
    floats,
    flags,
    pairs,
    numpy_ints,
    numpy_floats,
    keys,
    members,
    placed,
    paired,
]


def outcome(f: Callable[..., Any], *args: Any) -> str:
    try:
        with np.errstate(over="ignore"):
            return repr(f(*args))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_questions_of_other_kinds(f: Any) -> None:
    compiled = jt.jit(f)
    for asked in ASKED:
        assert outcome(compiled, 6, asked) == outcome(f, 6, asked), asked


def test_what_is_not_there_is_in_the_message() -> None:
    def index(n, t):
        s = []
        for i in range(n):
            s.append((i, float(i)))
        return s.index((n, t))

    def remove(n, t):
        s = []
        for i in range(n):
            s.append(np.float64(i))
        s.remove(t)

    def key(n, t):
        d = {}
        for i in range(n):
            d[i] = i
        return d[t]

    def empty(n, t):
        d = {}
        if n > 100:
            d[n] = n
        return d[n]

    def always(n, t):
        raise ValueError(f"{n} and {t}")

    for f in (index, remove, key, empty, always):
        assert outcome(jt.jit(f), 3, 2.5) == outcome(f, 3, 2.5) != "", f
