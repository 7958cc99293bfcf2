"""jit(autograph=True): the same functions as plain Python and compiled, traced values or not."""

# The programs under test are written as users write them.
# ruff: noqa: SIM201, SIM300

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from autograph_loops import LOOPS
from autograph_support import X, agree, both, clipped, entering

import jitney as jt

pytestmark = pytest.mark.usefixtures("traced_numbers")

PROGRAMS = [*LOOPS]
program = entering(PROGRAMS)


# Branches


@program((2.0,), (-3.0,), (0.0,))
def absolute(x):
    if x > 0:
        y = x
    else:
        y = -x
    return y


@program((2.0,), (0.5,), (-3.0,), (-0.5,))
def nested_branches(x):
    y = 0.0
    if x > 0:
        if x > 1:
            y = x * 10
        else:
            y = x + 5
        y += 1
    elif x < -1:
        y = x * x
    return y


@program((X, 1), (X, 2), (X, 3))
def elif_chain(x, n):
    if n == 1:
        kind, y = 1.0, x + 1
    elif n == 2:
        kind, y = 2.0, x * 2
    else:
        kind, y = 3.0, -x
    return {"kind": kind, "y": y}


@program((1.0,), (-1.0,))
def variable_of_one_branch_unused_later(x):
    if x > 0:
        t = x * 2
        r = t + 1
    else:
        r = x
    t = r
    return t


@program((X, 0.5), (X, -0.5))
def assignment_into_an_array_in_a_branch(x, p):
    y = x * 1.0
    z = y[1:]
    if p > 0:
        y[0] = 100.0
        z[1] = -7.0
    else:
        y[-1] += p
    return y, z.sum()


@program((np.arange(4.0), 1.0), (np.arange(4.0), -1.0))
def argument_changed_in_a_branch(x, p):
    if p > 0:
        x[1:3] = p
    return x.sum()


@program((3.0, 4.0), (3.0, 2.0), (5.0, 1.0))
def early_returns(x, y):
    if x < y:
        return x
    if x > 4:
        if y > 2:
            return y
        return x * y
    z = x - y
    return z


@program((3,), (10,), (-3,))
def return_of_tuples(n):
    if n > 5:
        return n, {"big": n * 2.0}
    return -n, {"big": 0.0}


@program((1.0, True), (-1.0, False))
def return_nothing_on_every_path(x, flag):
    if x > 0:
        return None
    y = x * 2
    if y > 3:
        return


# Expressions


@program((1.0, 2.0), (2.0, 1.0), (2.0, 2.0), (-1.0, 0.0))
def chained_comparisons(x, y):
    a = 0 < x < y
    b = 0 <= x <= y <= 2
    c = x != y != 0
    return a, b, c


@program((1.0, 2), (-1.0, 2), (1.0, 0), (-1.0, 0))
def mixed_logic(x, n):
    k = 3
    a = x > 0 and n > 1
    b = x > 0 or n > 1 or k == 3
    c = not (x > 0 and k > 2) or not n
    d = k > 2 and x > 0 and (n > 1 or k < 0)
    return a, b, c, d


@program((5.0,), (0.5,), (-5.0,))
def ternaries(x):
    return (1.0 if x > 1 else 2.0) + (x if x > 0 else -x * 3 if x < -1 else 0.0)


@program((X, 2), (X, 7), (X, -9))
def short_circuit_keeps_an_index_in_range(x, i):
    if 0 <= i and i < 5 and x[i] > 0:
        return x[i]
    return -1.0


@program((3,), (4,), (0,))
def truth_of_numbers(n):
    if n:
        r = 1
    else:
        r = 2
    while not (n % 4 == 0):
        n += 1
    return r, n, not n


@program((3,), (8,))
def membership(n):
    return n in (1, 2, 3), n not in [4, 5], 7 if n in range(5, 10) else 0


@program((2.7, -3), (-2.2, 5))
def conversions(x, n):
    return (
        int(x),
        float(n),
        max(x, n, 1),
        min(n, x),
        abs(x),
        any([x > 2, n > 2]),
        all([x < 3, n < 3]),
    )


@program((np.array([3.0]),), (np.array([-3.0]),))
def truth_of_an_array_of_one(x):
    if x:
        x = x + 1
    return x if x > 0 else -x


def square(x):
    return x * x


@program((2.0,), (-4.0,), (8.0,))
def functions_that_are_called(x):
    def local(v):
        if v > 3:
            return v - 1
        return v + 1

    return clipped(x) + clipped(x, -2.0) + clipped(high=4.0, x=x) + local(square(x))


@program((1.5,), (-1.5,))
def lambdas_and_closures(x):
    scale = 3.0
    f = lambda v: v * scale if v > 0 else -v  # noqa: E731
    if x > 0:
        scale = 5.0
    return f(x) + sum([g(x) for g in (f, lambda v: v + scale)])


@program((2.0, 3), (0.5, 0))
def recursion_on_static_values(x, n):
    def power(k):
        if k == 0:
            return 1.0
        half = power(k // 2)
        if k % 2:
            return half * half * x if x > 1 else half * half * -x
        return half * half

    return power(5) + n


class Clock:
    def __init__(self, limit):
        self.limit = limit
        self.__secret = 2

    def __call__(self, x):
        return x if x < self.limit else self.wrapped(x)

    def wrapped(self, x):
        while x >= self.limit:
            x = x - self.__secret
        return x

    @property
    def double(self):
        return self.limit * 2


class Precise(Clock):
    def wrapped(self, x):
        if x > 100:
            return -1.0
        return super().wrapped(x) + 0.0


@program((3.0,), (20.0,), (200.0,))
def objects_and_methods(x):
    return Precise(7)(x) + Clock(9).wrapped(x) + Clock(4).double


@program((3,), (-3,))
def attributes_assigned_in_branches(n):
    class Box:
        pass

    box = Box()
    box.value = 1
    if n > 0:
        box.value = n
    for i in range(n):
        box.value += i
    return box.value


@program((X,))
def passed_to_transforms(x):
    def loss(v):
        total = 0.0
        for a in v:
            if a > 0:
                total = total + a * a
            else:
                total = total - a
        return total

    return jt.grad(loss)(x), jt.value_and_grad(lambda v: v[0] if v[1] > 0 else v[2] * 3)(x)


@program((4.0,), (-4.0,))
def match_statement(x):
    kind = "square"
    match kind:
        case "cube":
            y = x**3
        case "square" if kind:
            y = x * x if x > 0 else 0.0
        case _:
            y = x
    return y


@pytest.mark.parametrize(("f", "calls"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_as_in_python(f: Callable[..., Any], calls: list[Any]) -> None:
    both(f, *calls)


@pytest.mark.parametrize(("f", "calls"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_transformed_code_on_ordinary_values(f: Callable[..., Any], calls: list[Any]) -> None:
    """With every argument a constant, nothing is traced but NumPy arrays made on the way."""
    from jitney.tracer.autograph import convert, twins

    convert(f)  # the helpers come with it

    for arguments in calls:
        mine, its = copy.deepcopy(arguments), copy.deepcopy(arguments)
        want = f(*mine)
        twin = twins._function(f)
        assert twin is not f and twin.__code__ is not f.__code__
        agree(twin(*its), want)
        agree(its, mine)


def test_arrays_that_numpy_makes_take_traced_values() -> None:
    def f(x):
        table = np.zeros((3, 4))
        table[1] = x
        table[2, 1:] += x[:3] * 2
        total = np.full(2, 0.5)
        for i in range(2):
            total[i] += table[i].sum()
        return (
            table,
            total,
            np.array([x[0], x[1] * 2]),
            np.asarray([[x[0], 1.0]]),
            np.eye(2) @ x[:2],
        )

    x = np.arange(4.0)
    for got, want in zip(jt.jit(f, autograph=True)(x), f(x), strict=True):
        np.testing.assert_array_equal(got, want)

    def static(x):
        order = np.array([2, 0, 1])
        return x[order] + np.asarray([1, 2, 3])[0]

    np.testing.assert_array_equal(jt.jit(static, autograph=True)(x), static(x))
