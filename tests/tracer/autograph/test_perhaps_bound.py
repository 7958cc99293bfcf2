"""Variables that are bound on some ways only; where they are not, reading them raises as in Python."""

from __future__ import annotations

import numpy as np
import pytest
from alike import DOWN, UP, Node, compare

import jitney as jt


def test_variables_that_are_bound_on_some_ways_only() -> None:
    def found(x, n):
        for j in range(n, -1, -1):
            if x[j] > 0:
                d = j
                break
        return d

    def found_by_while(x, n):
        while n >= 0:
            if x[n] > 0:
                d = n
                break
            n -= 1
        return d

    def or_else(x, n):
        for j in range(n):
            if x[j] > 2:
                d = x[j] * 2
                break
        else:
            d = -1.0
        return d

    def latest(x, n):
        for j in range(n):
            if x[j] > 0:
                best = (j, x[j])
        return best

    def last_number(x, n):
        for j in range(n):  # noqa: B007
            pass
        return j

    def in_nested_loops(x, n):
        for i in range(n):
            for j in range(i):
                if x[i] * x[j] < 0:
                    pair = [i, j]
                    break
            else:
                continue
            break
        return pair

    def from_an_iteration_to_the_next(x, n):
        for j in range(n):
            if j > 0 and before > x[j]:  # noqa: F821
                return j
            before = x[j]  # noqa: F841
        return None

    def read_too_early(x, n):
        for j in range(n):
            if x[j] < 0:
                total += x[j]  # noqa: F821
            else:
                total = x[j]
        return total

    def of_rows(x, n):
        for v in x[:n]:
            if v > 2:
                row = np.ones(3) * v
                row[0] = n
        row[1] += 1
        return row

    for f in (
        found,
        found_by_while,
        or_else,
        latest,
        last_number,
        in_nested_loops,
        from_an_iteration_to_the_next,
        read_too_early,
        of_rows,
    ):
        last = 0 if f is last_number else 3
        compare(f, (UP, last), (DOWN, last), (-UP, last), (DOWN, np.int64(0)))
    compare(found, (UP, 3), (-UP, 3), backend="native")
    compare(in_nested_loops, (DOWN, 4), (UP, 4), backend="native")


def test_branches_that_bind() -> None:
    def texts(x):
        if x > 0:
            y = "positive"
        elif x < -1:
            y = None
        return y

    def deleted(x):
        y = x
        if x > 0:
            del y
        return y

    def deleted_again(x):
        if x > 0:
            y = x
        del y
        return 1

    def guarded(x):
        if x > 0:
            y = x * 2
        z = 1.0
        if x > 0 and y > 2:
            z = y
        return z + (y if x > 1 else 0.0)

    def same_condition_later(x):
        if x > 0:
            y = np.arange(3.0)
        if x > -1:
            y[0] += x
        return y

    def updated(x):
        if x > 0:
            y = 1.0
        y += x
        return y

    def an_object(x):
        if x > 0:
            node = Node(x)
        return node.value, node.following

    def a_function(x):
        if x > 0:
            g = np.sin
        return float(g(x))

    def caught(x):
        if x > 0:
            y = 1
        try:
            return y
        except UnboundLocalError:
            return -1

    def tried(x):
        try:
            if x < 1:
                y = 1 / x
        except ZeroDivisionError:
            pass
        return y

    def managed(x):
        with np.errstate(divide="ignore"):
            if x > 0:
                y = 1 / x
        return y

    def closed_over(x):
        def bind():
            nonlocal y
            if x > 1:
                y = 5

        if x > 0:
            y = 3
        bind()
        return y

    for f in (
        texts,
        deleted,
        deleted_again,
        guarded,
        same_condition_later,
        updated,
        an_object,
        a_function,
        caught,
        tried,
        managed,
        closed_over,
    ):
        compare(f, (1.5,), (0.5,), (-0.5,), (-1.5,))


def test_unbound_variables_and_transformations() -> None:
    def f(x):
        for v in x:
            if v > 0:
                d = v * v
                break
        return d

    assert np.array_equal(jt.jit(jt.grad(f))(DOWN), [6.0, 0, 0, 0])
    assert np.array_equal(jt.vmap(f)(np.stack([UP, DOWN])), [1.0, 9.0])
    for g, x in ((jt.grad(f), -UP), (jt.vmap(f), np.stack([UP, -UP]))):
        with pytest.raises(UnboundLocalError, match="variable 'd' where it is not associated"):
            g(x)


def test_what_is_surely_bound_is_not_carried() -> None:
    def temporaries(x, n):
        total = 0.0
        for i in range(n):
            t = x[i] * 2
            if t > 1:
                u = t
            else:
                u = -t
            total += t * u
        with np.errstate(all="ignore"):
            for i in range(n):
                t = x[i]
                total += sum(t * k for k in (1, 2))
        try:
            for i in range(n):
                t = x[i]
                total += t
        finally:
            total += 1
        return total + sum([i * 2.0 for i in (1, 2)])

    def raises(x, n):
        total = 0.0
        for i in range(n):
            if x[i] > 0:
                t = x[i]
            else:
                raise ValueError("not positive")
            total += t
        return total

    def returns(x, n):
        total = 0.0
        for i in range(n):
            if x[i] > 0:
                t = x[i]
            else:
                if x[i] < -9:
                    return -1.0
                t = 1.0
            total += t
        return total

    for f, carried in ((temporaries, [2, 2, 2]), (raises, [3]), (returns, [4])):
        graph = jt.jit(f).trace(UP, np.int64(3))
        loops = [op for op in graph.ops if op.name in ("while", "scan")]
        assert [len(op.results) for op in loops] == carried, f.__name__
        compare(f, (UP, np.int64(3)), (DOWN, np.int64(3)))
