"""Generator expressions over traced values: who takes all gets a list, a `for` statement a loop."""

import heapq
from collections import Counter, OrderedDict, deque

import numpy as np
import pytest

import jitney as jt

X = np.array([1.5, -2.0, 3.0, 0.5, 3.0])


def into_deques(x):
    return deque(v * 2 for v in x if v > 0), deque((v * 2 for v in x if v > 0), maxlen=2)


def into_dicts(x):
    made = dict((i, v) for i, v in enumerate(x) if v > 0)  # noqa: C402
    return made, OrderedDict((int(v), v) for v in x if v > 0), Counter(int(v) for v in x if v > 0)


def into_methods(x):
    a, s, d, q = [], {7}, {}, deque()
    a.extend(v for v in x if v > 0)
    s.update(int(v) for v in x if v > 0)
    d.update((i, v) for i, v in enumerate(x) if v > 0)
    q.extendleft(v for v in x if v > 0)
    return a, s, d, q


def into_starred(x):
    return [x[0], *(v for v in x if v > 0), x[1]]


def largest(x):
    return heapq.nlargest(2, (v for v in x if v > 0)), heapq.nsmallest(1, (-v for v in x if v > 0))


def of_several(x):
    return deque((v, w) for v in x if v > 0 for w in x if w < v)


def held(x):
    positive = (v for v in x if v > 0)
    doubled = (v * 2 for v in positive)
    return sum(doubled), sum(positive)


def looped(x):
    total = 0.0
    for v in (w * 2 for w in x if w > 0):
        if v > 5:
            break
        total += v
    return total


def looped_over_several(x):
    found = []
    for v, w in ((a, b) for a in x if a > 0 for b in x if b > a):
        found.append(v * w)
    return found


def sieve(n):
    marks = np.ones(n, dtype=bool)
    for p in (p for p in range(2, n) if marks[p]):
        for q in range(p * p, n, p):
            marks[q] = False
    return [p for p in range(2, n) if marks[p]]


PROGRAMS = (into_deques, into_dicts, into_methods, into_starred, largest, of_several, held, looped)


@pytest.mark.parametrize("f", [*PROGRAMS, looped_over_several], ids=lambda f: f.__name__)
def test_generators_of_conditions_on_traced_values(f):
    jitted = jt.jit(f)
    for x in (X, -X, [1.5, -2.0, 3.0]):
        assert repr(jitted(x)) == repr(f(x))


def test_a_loop_sees_what_its_body_changes():
    assert jt.jit(sieve)(30) == sieve(30)
