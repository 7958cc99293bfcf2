"""Programs with loops, for test_autograph.py; as users write them."""

# ruff: noqa: B007, B905

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from autograph_support import X, entering

import jitney as jt

LOOPS: list[tuple[Callable[..., Any], list[Any]]] = []
program = entering(LOOPS)


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
