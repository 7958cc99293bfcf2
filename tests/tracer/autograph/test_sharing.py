"""Which of several arrays a name stands for is a choice at run time: what is assigned into one is seen
by the others where Python would show it, and not elsewhere."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.autograph_support import agree, both

import jitney as jt


def choose(a, b, n):
    v = a if n > 0 else b
    v += 1
    v[1] = 7
    return v.sum()


def part(a, b, n):
    v = a[1:] if n > 0 else a[:-1]
    v[0] = 9
    a[2] = 5
    return v * 1, a


def hub(a, b, n):
    if n > 0:
        v, w = a[1:], a[:-1]
    else:
        v, w = b[1:], b[1:]
    v[0] = 9
    w[1] = v[0] + 1
    return v + 0, w + 0


def nested(a, b, n):
    v = a
    if n > 0 and a[0] > b[0]:
        v = b
    v[1] = 3
    b[0] += 10
    a[2] = v[0]
    return v + 0


def masked(a, b, n):
    v = np.zeros(3)
    if n > 0:
        w = a[a > 0]
        v = w
        w += 1
    return v.sum()


def inner(a, b, n):
    v = a
    w = b
    if n > 0:
        w = v = a * 2
    v[0] += 1
    w[1] += 1
    return v, w


def swap(a, b, n):
    if n > 0:
        a, b = b, a
    a[0] += 1
    b *= 2
    return a + 0, b - 1


def writein(a, b, n):
    v = a if n > 0 else b
    if a[1] > 0:
        v[0] = 3
        a[2] = 4
    return v + 0


def el(a, b, n):
    v = a if n > 0 else b
    for i in range(len(a)):
        v[i] = v[i - 1] + 1
        a[i] = a[i] * 2
    return v + 0


def early(a, b, n):
    v = a
    if n == 0:
        v = b
    if n > 5:
        return v
    v[0] = a[1] + 3
    return a


def pingpong(a, b, n):
    cur, nxt = a + 0, b + 0
    for _i in range(n + 3):
        nxt[1:-1] = (cur[:-2] + cur[2:]) / 2
        if nxt[1] > 0.5:
            cur, nxt = nxt, cur
        nxt[0] += 1
    return cur, nxt


def pingarg(a, b, n):
    for _i in range(n * 4):
        b[1:-1] = (a[:-2] + a[2:]) / 2
        a, b = b, a
    return a + 0


def best(a, b, n):
    x = a + 0
    top = x
    for i in range(n * 3):
        x[i] += i
        if x[i] > 2:
            top = x
        else:
            x = x * 2
    top[0] = 100
    return top, x


def whil(a, b, n):
    v = a
    k = 0
    while v.sum() < 40 and k < 20:
        v[k % 3] += 2
        if k % 3 == n:
            v = b
        k += 1
    return v + 0, k


def prev(a, b, n):
    prev = a
    cur = b
    for _i in range(5):
        new = cur + prev
        if n > 0:
            prev[0] += 1
        prev = cur
        cur = new
    cur[1] = 7
    return prev, cur


def element(a, b, n):
    v = a if n > 0 else b
    s = 0.0
    for i in range(len(a)):
        v[i] = v[i - 1] + 1
        if a[i] > 3:
            s += a[i]
            v = b
        b[i] *= 2
    return s


def views(a, b, n):
    v = a[1:]
    for i in range(3):
        v[i] += a[0]
        a[i + 1] *= 2
        if n > 0:
            v = b[1:]
    return v + 0


def n1(a, b, n):
    z = y = np.arange(3.0)
    if n > 0:
        y[0] = 1.0
    return y, z


def n2(a, b, n):
    c = np.linspace(0, 1, 3)
    d = c
    c[0] = a[0]
    return d


def n3(a, b, n):
    c = np.arange(4)[::-1]
    d = c[1:]
    for i in range(4):
        if a[i] > 2:
            d = c[:3]
        d[0] += 1
    return c, d * 1


def swapped_with_what_it_may_be(a, b, n):
    """After the loop v is b or a, and then each has the other's name."""
    v = a
    if n > 0:
        k = 0
        while k < n:
            v = b
            k += 1
        b, v = v, b
    v[2] += 1
    return v * 1, b * 1


def swapped_in_a_loop(a, b, n):
    v = a
    for i in range(3):
        if i % 2 == n:
            if n < 5:
                v = b
            b, v = v, b
        v[2] += 1
    return v * 1, b * 1


PROGRAMS = [
    swapped_with_what_it_may_be,
    swapped_in_a_loop,
    choose,
    part,
    hub,
    nested,
    masked,
    inner,
    swap,
    writein,
    el,
    early,
    pingpong,
    pingarg,
    best,
    whil,
    prev,
    element,
    views,
    n1,
    n2,
    n3,
]


def arguments(n: int) -> tuple[Any, ...]:
    return np.array([4.0, 2.0, 3.0, -1.0]), np.array([1.0, 5.0, 6.0, 2.0]), n


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_arrays_that_are_chosen_at_run_time(f: Callable[..., Any]) -> None:
    both(f, arguments(0), arguments(1))


def test_derivatives_of_what_is_written_through_a_choice() -> None:
    def loss(p: Any, q: Any, n: int) -> Any:
        p, q = p * 1, q * 1
        for _ in range(4):
            q[1:-1] = p[:-2] * p[2:]
            if q[1] > n:
                p, q = q, p
            q[0] += 1
        return p.sum() + (q * q).sum()

    for n in (3, 300):
        p, q, _ = arguments(n)
        want = jt.grad(loss, argnums=(0, 1))(p, q, n)
        agree(jt.jit(jt.grad(loss, argnums=(0, 1)))(p, q, n), want)


def test_batches_of_what_is_written_through_a_choice() -> None:
    def f(p: Any, q: Any) -> Any:
        p, q = p * np.ones(3), q * np.ones(3)
        v = p
        if q[0] > p[0]:
            v = q
        v[1] = 9
        q[2] = 4
        return v * 1, p, q

    p, q, _ = arguments(0)
    got = jt.jit(jt.vmap(f))(p, q)
    for i in range(4):
        agree([x[i] for x in got], f(p[i], q[i]))


def test_branches_that_share_no_array_carry_no_choice() -> None:
    def f(x: Any, n: int) -> Any:
        y = x + 1
        for i in range(n):
            if x[i] > 1:
                y = y * 2
            y[i] += 1
        return y

    both(f, (np.arange(4.0), 3), (np.arange(4.0), 0))
    text = str(jt.jit(f).trace(np.arange(4.0), 3))
    assert "bool[]" not in text.split("while")[1].split("{")[0]  # nothing about arrays that are one


def test_what_the_program_cannot_tell_is_refused() -> None:
    def f(x: Any, n: int) -> Any:
        y = x * 2
        v, w = y[1:], y[:-1]
        if n > 0:
            y = x + 1
            v, w = y[1:], y[:-1]  # views of an array that nobody has any more
            del y
        w[1] = 5.0
        return v + 0

    try:
        got = jt.jit(f)(np.arange(4.0), 1)
    except jt.errors.OuterMutationError as error:
        assert "may be the same" in str(error)
    else:
        agree(got, f(np.arange(4.0), 1))


def test_numpys_own_arrays_under_two_names() -> None:
    def f(x: Any) -> Any:
        order = np.arange(len(x))
        other = order[:2]
        np.random.shuffle(order)
        return other, order

    np.random.seed(3)
    want = f(np.ones(5))
    np.random.seed(3)
    agree(jt.jit(f)(np.ones(5)), copy.deepcopy(want))


def test_arrays_that_a_branch_inside_of_a_loop_or_branch_makes_one() -> None:
    def loops(x: Any, n: int) -> Any:
        a, b = x + 1, x + 2
        for i in range(n):
            if x[i] > 0:
                b = a = x * 2
            else:
                b = x * 3
        a[0] = 99
        return a + 0, b + 0

    def branches(x: Any, n: int) -> Any:
        a, b = x + 1, x + 2
        if n > 1:
            if x[0] > 0:
                b = a = x * 2
            else:
                b = x * 3
        a[0] = 99
        return a + 0, b + 0

    arguments = [(x, n) for x in (np.ones(3), -np.ones(3), np.arange(-1.0, 2)) for n in (0, 1, 3)]
    both(loops, *arguments)
    both(branches, *arguments)


def test_a_row_at_a_traced_place_sees_later_assignments_in_a_branch():
    def f(g, i, t):
        s = 0.0
        if t > 0:
            row = g[i]
            g[i, 0] += 1
            s = row[0] + row.sum()
        return s, g

    g = np.arange(12.0).reshape(4, 3)
    for i, t in ((1, 1), (2, 1), (3, 0)):
        expected, got = f(g.copy(), i, t), jt.jit(f)(g.copy(), np.int64(i), np.int64(t))
        assert got[0] == expected[0]
        np.testing.assert_array_equal(got[1], expected[1])
