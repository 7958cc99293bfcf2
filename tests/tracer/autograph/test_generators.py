"""Generator expressions over traced values: who takes all gets a list, a `for` statement a loop."""

import heapq
import math
from collections import Counter, OrderedDict, deque
from functools import reduce
from itertools import (
    accumulate,
    chain,
    compress,
    dropwhile,
    filterfalse,
    islice,
    pairwise,
    takewhile,
)

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


# Iterators


def filtered(x):
    positive = list(filter(lambda v: v > 0, x))
    doubled = [v + 1 for v in filter(lambda v: v > 0, map(abs, x))]
    return positive, doubled, list(filter(None, x)), len(list(filterfalse(lambda v: v > 0, x)))


def filtered_by_number(x):
    total = 0.0
    for i in filter(lambda i: x[i] > 0, range(len(x))):
        total = 2 * total + x[i]
    return total, list(compress(x, x > 0))


def while_it_holds(x):
    total = 0.0
    for v in takewhile(lambda v: v > -1.9, x):
        if total > 3:
            break
        total += v
    return total, list(takewhile(lambda v: v > 0, x)), list(dropwhile(lambda v: v > 0, x))


def numbered(x):
    found = []
    for i, v in enumerate(v for v in x if v > 0):
        found.append((i, v))
    chained = list(chain((v for v in x if v > 0), (v for v in x if v < 0)))
    return found, list(islice((v for v in x if v > 0), 1, 3)), chained


def searched(x):
    over = filter(lambda v: v > 1, x)
    is_in = 3.0 in (v for v in x if v > 0)
    return (
        next(over, 7.0),
        is_in,
        any(filter(lambda v: v > 2.9, x)),
        next((v for v in x if v > 9), 1),
    )


def reduced(x):
    positive = reduce(lambda a, b: a * b, (v for v in x if v > 0), 1.0)
    return positive, math.prod(v for v in x if v > 0), math.fsum(v for v in x if v > 0)


def accumulated(x):
    return list(accumulate(v for v in x if v > 0)), list(accumulate(filter(None, x), max))


def extremes(x):
    nearest = min(x, key=lambda v: abs(v - 1))
    return nearest, max(x, key=lambda v: -v), max((v for v in x if v > 100), default=-1.0)


def from_iterator(x):
    return np.fromiter((v for v in x if v > 0), dtype=float), np.fromiter(
        (i for i in range(3)), int
    )


ITERATORS = (filtered, filtered_by_number, while_it_holds, numbered, searched, reduced)


@pytest.mark.parametrize(
    "f", [*ITERATORS, accumulated, extremes, from_iterator], ids=lambda f: f.__name__
)
def test_iterators_of_conditions_on_traced_values(f):
    jitted = jt.jit(f)
    for x in (X, X[::-1].copy()):
        assert repr(jitted(x)) == repr(f(x))


def test_what_next_has_taken_is_not_asked_again():
    def f(x):
        over = filter(lambda v: v > 1, x)
        return next(over), next(over)

    with pytest.raises(jt.errors.TransformError, match="make a list of it"):
        jt.jit(f)(X)


def test_an_iterator_of_plain_values_goes_on_where_it_was_left():
    def f(x):
        squares, numbers = (k * k for k in range(5)), iter([1, 2, 3])
        first = next(squares), next(squares), list(takewhile(lambda v: v < 2, numbers))
        return x + sum(squares), first, list(numbers)

    assert repr(jt.jit(f)(X)) == repr(f(X))


def test_points_are_ordered_by_a_key():
    def f(points):
        nearest = min(points, key=lambda p: p[0] ** 2 + p[1] ** 2)
        nearest[0] = 9.0
        return points

    points = np.array([[3.0, 1.0], [0.5, 0.5], [0.0, 2.0]])
    np.testing.assert_array_equal(jt.jit(f)(points.copy()), f(points.copy()))


def paired(x):
    positive = [v for v in x if v > 0]
    both = dict(zip((i for i, v in enumerate(x) if v > 0), (v for v in x if v > 0), strict=False))
    last = max(zip((v for v in x if v > 0), range(9), strict=False))
    return both, [b - a for a, b in pairwise(positive)], last


def keyed(x):
    made = dict.fromkeys(int(v) for v in x if v > 0)
    return made, dict.fromkeys([int(x[0]), int(x[1])], 0), min((abs(v - 1), v) for v in x)


def later(x):
    return next(islice((v for v in x if v > 0), 1, None), -1.0), next(chain(v for v in x if v > 2))


@pytest.mark.parametrize("f", [paired, keyed, later], ids=lambda f: f.__name__)
def test_pairs_and_keys_of_generators(f):
    assert repr(jt.jit(f)(X)) == repr(f(X))


def unpacked(x):
    least, *others = sorted(x)
    first, *between, last = [v for v in x if v > 0]
    between.append(x[0])
    *most, end = (v for v in x if v > 0)
    a, b = (v for v in x if v > 1.6)
    head, *tail = x
    return least, others, first, between, last, most, end, a, b, head, tail


def test_names_with_a_star_are_lists_that_grow():
    assert repr(jt.jit(unpacked)(X)) == repr(unpacked(X))

    def few(x):
        a, *b, c, d = [v for v in x if v > 2]
        return a

    with pytest.raises(ValueError, match=r"at least 3, got 2"):
        few(X)
    with pytest.raises(ValueError, match=r"at least 3, got 2"):
        jt.jit(few)(X)


def known_among_traced(x):
    seen = [int(x[0]), int(x[2]), None]
    left = [j for j in range(4) if j not in seen]
    return (
        3.0 in [x[0], x[2]],
        None in seen,
        "a" in seen,
        left,
        seen[:2].count(1),
        seen[:2].index(3),
    )


def test_known_values_are_looked_for_among_traced_ones():
    assert repr(jt.jit(known_among_traced)(X)) == repr(known_among_traced(X))
