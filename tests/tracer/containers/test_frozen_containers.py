"""Tuples and frozen sets of as many elements as values say."""

import numpy as np
import pytest

import jitney as jt

X = np.array([1.5, -2.0, 3.0, 0.5])


def read(x):
    t = tuple(v for v in x if v > 0)
    total = x[0]
    for v in t:
        total += v
    return (
        t,
        len(t),
        t[0] if len(t) else None,
        t[1:],
        t + (x[0],),
        t * 2,
        total,
        3.0 in t,
        t.count(3.0),
    )


def compared(x):
    t = tuple([v for v in x if v > 0])
    return t == (1.5, 3.0, 0.5), t == (1.5,), sorted(t), max(t, default=0.0), np.array(t), list(t)


def held(x):
    found, best = [], ()
    for k in range(3):
        over = tuple(v for v in x if v > k)
        found.append(over)
        if len(over) > 1:
            best = over
    return found, best, {"pairs": tuple((i, v) for i, v in enumerate(x) if v > 0)}


def sets(x):
    s = frozenset(int(v) for v in x if v > 0)
    t = frozenset([v for v in x if v > 2])
    both = s | {9}, s - {1}, s & frozenset([1, 3]), s ^ {1, 7}
    return s, t, both, 3 in s, len(s), sorted(s), s == {0, 1, 3}, s == frozenset([5]), {8} | s


@pytest.mark.parametrize("backend", [None, "interpreter"])
@pytest.mark.parametrize("f", [read, compared, held, sets], ids=lambda f: f.__name__)
def test_what_is_frozen_is_as_in_python(f, backend):
    jitted = jt.jit(f, backend=backend) if backend else jt.jit(f)
    for x in (X, -X):
        assert repr(jitted(x)) == repr(f(x))


def appended(x):
    t = tuple(v for v in x if v > 0)
    t.append(1.0)
    return t


def assigned(x):
    t = tuple(v for v in x if v > 0)
    t[0] = 1.0
    return t


def added(x):
    s = frozenset(int(v) for v in x if v > 0)
    s.add(1)
    return s


@pytest.mark.parametrize("f", [appended, assigned, added], ids=lambda f: f.__name__)
def test_what_is_frozen_is_not_changed(f):
    with pytest.raises((AttributeError, TypeError)) as info:
        f(X)
    with pytest.raises(info.type, match=str(info.value)):
        jt.jit(f)(X)
