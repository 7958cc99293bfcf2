"""Arrays that NumPy made while tracing, written by functions that branches and loops call:
only where Python would."""

import copy

import numpy as np
import pytest

import jitney as jt

GLOBAL = np.zeros(3)


class Counter:
    def __init__(self, n):
        self.counts = np.zeros(n)
        self.parts = [np.zeros(2)]

    def first(self):
        self.counts[0] = 3.75

    def increase(self):
        self.counts[0] += 1

    def fill(self):
        self.counts.fill(5.0)

    def part(self):
        self.parts[0][1] = 3.0


def put(x):
    x[1] = 4


def by_method(a):
    o = Counter(3)
    if a > 0:
        o.first()
    return o.counts


def by_two_branches(a):
    o = Counter(3)
    if a > 2:
        o.first()
    elif a > 0:
        o.increase()
    else:
        o.fill()
    return o.counts, o.parts


def by_match(a):
    o = Counter(3)
    match a % 4:
        case 0:
            o.first()
        case 1:
            o.increase()
        case _:
            pass
    return o.counts


def by_another_name(a):
    z = np.array([0.125, 3.875, 5.5])
    if a > 0:
        b = z
        b[0] = 9.0
    return z


def by_closure(a):
    c = np.zeros(3)

    def inner():
        c[:2] = 1

    if a > 0:
        inner()
    else:
        c[2] = 7
    return c


def in_a_list_of_an_object(a):
    o = Counter(3)
    if a > 0:
        o.part()
    return o.parts


def in_a_dict(a):
    d = {"x": np.zeros(3)}

    def change(d):
        d["x"][1] = 4

    if a > 0:
        change(d)
    return d


def as_argument(a):
    z = np.zeros(3)
    if a > 0:
        put(z)
    return z


def by_out(a):
    z = np.zeros(3)

    def add(v):
        np.add(v, 1, out=v)

    if a > 0:
        add(z)
    return z


def sorted_view(a):
    z = np.arange(3.0)[::-1]

    def order(v):
        v.sort()

    if a > 0:
        order(z)
    return z


def of_a_global(a):
    def inner():
        GLOBAL[1] += 2

    if a > 0:
        inner()
    return GLOBAL.copy()


def in_a_loop(n):
    o = Counter(3)
    for _ in range(n):
        o.increase()
    return o.counts


def in_a_while_loop(n):
    c = np.zeros(3)

    def inner():
        c[0] += 1

    while n > 0:
        n -= 1
        inner()
    return c


def memo(a):
    seen = np.zeros(10, bool)

    def visit(k):
        if seen[k]:
            return 0
        seen[k] = True
        return 1

    total = 0
    for i in range(5):
        if a > i:
            total += visit(i % 2)
    return total, seen


def beside_numbers_that_stay_known(a):
    o, table = Counter(3), np.array([1, 2, 3])
    o.increase()
    n = int(table[1])
    if a > 0:
        o.increase()
    return o.counts[:n]


def made_in_the_branch(a):
    def local():
        t = np.zeros(4)
        t[1] = 2.0
        return t.sum()

    return local() if a > 0 else -1.0


FUNCTIONS = [
    *(by_method, by_two_branches, by_match, by_another_name, by_closure),
    *(in_a_list_of_an_object, in_a_dict, as_argument, by_out, sorted_view, of_a_global),
    *(in_a_loop, in_a_while_loop, memo, beside_numbers_that_stay_known, made_in_the_branch),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_only_where_python_writes(function):
    compiled = jt.jit(function)
    for a in (-1, 0, 1, 3, 4):
        GLOBAL[:] = 0
        want, state = copy.deepcopy(function(a)), GLOBAL.copy()
        GLOBAL[:] = 0
        assert repr(compiled(a)) == repr(want)
        np.testing.assert_array_equal(GLOBAL, state)


def test_derivatives_and_batches():
    def f(x):
        o = Counter(3)
        if x > 0:
            o.first()
        return (o.counts * x).sum()

    assert jt.jit(jt.grad(f))(2.0) == 3.75
    assert jt.jit(jt.grad(f))(-2.0) == 0.0
    batched = jt.jit(jt.vmap(f))(np.array([-1.0, 1.0, 2.0]))
    np.testing.assert_array_equal(batched, [0.0, 3.75, 7.5])
