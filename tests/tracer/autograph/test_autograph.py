"""jit(autograph=True): the same functions as plain Python and compiled, traced values or not."""

# The programs under test are written as users write them.
# ruff: noqa: B007, B905, SIM201, SIM300

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from autograph_support import X, agree, both, clipped

import jitney as jt

pytestmark = pytest.mark.usefixtures("traced_numbers")

PROGRAMS: list[tuple[Callable[..., Any], list[Any]]] = []


def program(*calls: Any) -> Callable[[Any], Any]:
    """Enter a program, with the arguments of the calls to compare."""

    def enter(f: Any) -> Any:
        PROGRAMS.append((f, list(calls)))
        return f

    return enter


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


# Loops


@program((12, 18), (7, 13), (0, 5), (5, 0))
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@program((27,), (1,), (6,))
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@program((0.0, 2.0), (1.0, 1.0), (-3.0, 5.0))
def bisection(low, high):
    middle = low
    for _ in range(200):
        middle = 0.5 * (low + high)
        if high - low < 1e-9:
            break
        if middle * middle < 2 or middle < 0:
            low = middle
        else:
            high = middle
    return middle


@program((30, np.zeros(30, bool)), (7, np.zeros(30, bool)))
def sieve(n, composite):
    count = 0
    for i in range(2, n):
        if composite[i]:
            continue
        count += 1
        for j in range(i * i, n, i):
            composite[j] = True
    return count


@program((X, 0.1), (X, 10.0), (X, -10.0))
def return_from_a_loop(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return i
    return -1


@program((np.arange(12.0).reshape(3, 4), 5.5), (np.arange(12.0).reshape(3, 4), 99.0))
def return_from_nested_loops(m, limit):
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] > limit:
                return i * 10 + j
    return -1


@program((20,), (3,), (0,))
def branch_in_a_loop_in_a_loop(n):
    total = 0
    for i in range(n):
        k = i
        while k > 1:
            if k % 2:
                if k % 3 == 0:
                    total += k
                    break
                k = k - 1
            else:
                k = k // 2
        else:
            total += 100
    return total


@program((1.0,), (90.0,))
def endless_loop_with_a_break(x):
    while True:
        y = x * 2
        if y > 100:
            break
        x = x + y
    return x, y


@program((1.0,), (150.0,))
def endless_loop_with_a_return(x):
    n = 0
    while True:
        if x > 100:
            return x, n
        x = x * 3
        n += 1


@program((5,), (15,))
def while_else(n):
    i = 0
    while i < n:
        if i == 7:
            r = i * 10
            break
        i += 1
    else:
        r = -i
    return r


@program((X, 0.6), (X, 9.0))
def for_else(x, limit):
    for v in x:
        if v > limit:
            found = v
            break
    else:
        found = -100.0
    return found


@program((10, 2, -1), (0, 10, 3), (5, 5, 1), (3, -9, -4))
def range_with_a_traced_step(a, b, step):
    total = 0
    for i in range(a, b, step):
        total = (total * 3 + i) % 1009
    return total


@program((7,))
def ranges_backwards(n):
    total = 0
    for i in range(n, -3, -2):
        total = (total * 2 + i) % 1009
    for i in reversed(range(n)):
        total = total - i * i
    return total


@program((np.arange(12.0).reshape(3, 4),))
def rows(m):
    s, last = 0.0, m[0]
    for row in m:
        s = s + row.max() * row.sum()
        last = row * 2
    return s, last


@program((np.arange(12.0).reshape(3, 4),))
def rows_are_views(m):
    for i, row in enumerate(m):
        row[i] = -1.0
        row += 1
    return m.sum()


@program((X, X * 2))
def zipped(x, y):
    total = 0.0
    for i, (a, b) in enumerate(zip(x, y), 3):
        total = total + i * a * b
    return total


@program((4,), (0,), (12,))
def filling_an_array(n):
    out = jt.zeros(12)
    for i in range(n):
        out[i] = i * 0.5
        if i > 2:
            out[i] += out[i - 1]
    return out


@program((5,))
def filling_an_array_of_numpy(n):
    out = np.zeros(6)
    for i in range(n):
        out[i + 1] = out[i] * 2 + 1
    return out


@program((X, 3), (X, 0))
def shifting(x, n):
    y = x * 1.0
    for _ in range(n):
        y = np.roll(y, 1)
        y[0] = y.sum()
        y[1:] *= 0.5
    return y


@program((X, 3), (X, 0))
def updated_in_place_through_another_name(x, n):
    y = x + 0.0
    z = y
    half = y[:2]
    for i in range(n):
        y += 1
        half *= 2
    return y, z, half


@program((6,), (0,))
def lists_and_dicts_carried(n):
    fib = [0, 1]
    state = {"sum": 0.0, "pair": (1, 2)}
    for i in range(n):
        fib[0], fib[1] = fib[1], (fib[0] + fib[1]) % 1009
        state["sum"] += i
        a, b = state["pair"]
        state["pair"] = (b, (a + b) % 1009)
    return fib, state


@program((5, 1), (5, 9), (0, 0))
def continue_in_while(n, skip):
    i, total = 0, 0
    while i < n:
        i += 1
        if i == skip:
            continue
        if i > 3:
            total += 100
            continue
        total += i
    return total


@program((3.0,))
def walrus_in_a_condition(x):
    n = 0
    while (y := x * 0.5) > 0.1:
        x = y
        n += 1
    return x, n


@program((5,), (1,))
def two_loops_with_one_variable(n):
    t = 1.5
    for i in range(n):
        t = i
        if t > 2:
            break
    total = 0.0
    for i in range(3):
        total += i * t
    return total


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
    from jitney.tracer.autograph import twins

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
