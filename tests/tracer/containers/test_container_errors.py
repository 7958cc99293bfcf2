"""What native containers raise at run time, as Python's do, and what is refused while tracing."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

import numpy as np
import pytest

import jitney as jt


def popped(n, times):
    stack = []
    while n > 0:
        stack.append(n)
        n -= 1
    total = 0
    while times > 0:
        total += stack.pop()
        times -= 1
    return total


def looked_up(x, key):
    d = {}
    for v in x:
        d[v] = 2 * v
    return d[key]


def looked_up_pair(x, key):
    d = {}
    for v in x:
        d[(v, v + 1)] = v
    return d[(key, 5)]


def indexed(x, i):
    a = []
    for v in x:
        a.append(v)
    return a[i]


def removed(x, v):
    a = []
    for w in x:
        a.append(w)
    a.remove(v)
    return a


def shrinking(x, key):
    d = {}
    for v in x:
        d[v] = v
    total = 0
    for k in d:
        if k == key:
            del d[k]
        total += k
    return total


def from_heap(x, times):
    h = []
    for v in x:
        heapq.heappush(h, v)
    last = 0
    while times > 0:
        last = heapq.heappop(h)
        times -= 1
    return last


def from_queue(x, times):
    q = deque()
    for v in x:
        q.append(v)
    last = 0
    while times > 0:
        last = q.popleft()
        times -= 1
    return last


X = np.array([3, 1, 2])
CASES = [
    (popped, (2, 2), (2, 3)),
    (looked_up, (X, 1), (X, 7)),
    (looked_up_pair, (np.array([4]), 4), (X, 1)),
    (indexed, (X, -3), (X, 3)),
    (removed, (X, 1), (X, 9)),
    (shrinking, (X, 9), (X, 3)),
    (from_heap, (X, 3), (X, 4)),
    (from_queue, (X, 3), (X, 4)),
]


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize(("f", "good", "bad"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_errors_are_pythons(f: Any, good: Any, bad: Any, backend: str) -> None:
    compiled = jt.jit(f) if backend == "native" else jt.jit(f, backend="interpreter")
    assert compiled(*good) == f(*good)
    with pytest.raises(Exception) as want:
        f(*bad)
    with pytest.raises(type(want.value)) as got:
        compiled(*bad)
    first = want.value.args[0]
    if isinstance(first, str):
        assert str(got.value).startswith(
            first.replace("list.remove(x): x not in list", "list.remove")
        )
    else:
        assert got.value.args == want.value.args
    assert compiled(*good) == f(*good)


def test_no_derivative_goes_unseen() -> None:
    def f(x, n):
        a, i = [], 0
        while i < n[0]:
            a.append(x * i)
            i += 1
        return sum(a)

    for grad in (jt.grad(f), lambda x, n: jt.jvp(lambda x: f(x, n), (x,), (1.0,))):
        with pytest.raises(TypeError, match="no derivative"):
            jt.jit(grad)(2.0, np.array([3]))

    def written_out(x, n):
        a = []
        for i in range(n):
            a.append(x * i)
        return sum(a)

    assert jt.jit(jt.grad(written_out))(2.0, 3) == 3.0


def test_examples_do_not_share_a_container() -> None:
    def f(x):
        a, n = [], 0
        while n < x:
            a.append(n)
            n += 1
        return len(a)

    with pytest.raises(TypeError, match="one container"):
        jt.jit(jt.vmap(f))(np.arange(3))


def refused(f: Any, kind: Any, *words: str) -> None:
    with pytest.raises(kind) as error:
        jt.jit(lambda x, m: f(x, m.sum()))(np.arange(4.0), np.array([3]))
    assert all(word in str(error.value) for word in words), str(error.value)


def test_refusals_say_what_to_write() -> None:
    def mixed(x, n):
        a = []
        for i in range(n):
            a.append(x[i])
            if x[i] > 1:
                a.append(np.float32(x[i]))
        return a

    refused(mixed, jt.errors.CarryError, "one type", "float64 and float32")

    def as_text(x, n):
        a = []
        while n > 0:
            a.append(n)
            n -= 1
        return len(str(a))

    refused(as_text, jt.errors.TransformError, "text", "for")

    def computed(x, n):
        a = []
        while n > 0:
            a.append(x[n])
            n -= 1
        return np.array(a).reshape(2, -1)

    refused(computed, jt.errors.DynamicShapeError, "a list that grows", "for")

    def views(x, n):
        d = {}
        while n > 0:
            d[n] = x[n]
            n -= 1
        return d.keys()

    refused(views, jt.errors.ArgumentError, "list(d.keys())")


def test_arrays_are_indexed_by_what_grows() -> None:
    def nearest(x: Any, n: Any) -> Any:
        chosen = [0]
        for i in range(n):
            if x[chosen].min() > 0.5:
                chosen.append(i)
        return chosen

    for x in (np.array([1.0, 2.0, 0.1, 3.0]), np.array([0.2, 1.0, 1.0, 1.0])):
        assert jt.jit(nearest)(x, np.int64(4)) == nearest(x, 4)


def test_integers_that_floats_do_not_keep_are_errors() -> None:
    def values(x, n):
        found = {}
        for i in range(n):
            found[i] = n * 2**52 + 1 if x[i] > 0 else 0.5
        return found

    def elements(x, n):
        out = [0.5]
        for i in range(n):
            if x[i] > 0:
                out.append(2**53 + 1)
        return out

    for f in (values, elements):
        compiled = jt.jit(f)
        assert compiled(-np.ones(2), 2) == f(-np.ones(2), 2)
        with pytest.raises(OverflowError, match="among floats"):
            compiled(np.ones(3), 3)


def test_batched_functions_say_what_to_do_with_containers_that_grow() -> None:
    def positive(x):
        found = []
        for v in x:
            if v > 0:
                found.append(v)
        return len(found)

    x = np.ones((2, 3))
    for batched in (jt.vmap(positive), jt.jit(jt.vmap(positive))):
        with pytest.raises(jt.errors.JitneyError, match=r"out\[n\] = value.*for each example"):
            batched(x)


def test_structures_that_differ_are_shown_with_the_lists_in_them():
    @jt.jit
    def f(x):
        found = []
        for v in x:
            if v > 0:
                found.append(v)
        return jt.cond(x[0] > 0, lambda: (found, 1), lambda: 1)

    with pytest.raises(
        jt.errors.CarryError, match=r"true_fn: \(a list that grows, \*\)\n  false_fn"
    ):
        f(np.ones(3))
