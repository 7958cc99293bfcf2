"""Loops over few numbers as scalar code: against the interpreter, and what must stay with kernels."""

from __future__ import annotations

import os
import signal
import threading
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.codegen.loop_ir.steps import Loop, ScalarCode, Scan, steps_within
from jitney.tracer.core.effects import check


def steps(f, *args) -> list[type]:
    """The kinds of loop that `f` becomes."""
    kinds = []
    from jitney.codegen.program import compile as compiling

    original = compiling.plan

    def spy(program):
        kinds.extend(type(s) for s in steps_within(program))
        return original(program)

    compiling.plan = spy
    try:
        jt.jit(f).lower(*args).llvm()
    finally:
        compiling.plan = original
    return [k for k in kinds if k in (Loop, Scan, ScalarCode)]


@lru_cache(maxsize=4)  # many arguments are given to one
def both(f):
    return jt.jit(f), jt.jit(f, backend="interpreter")


def same(f, *args) -> None:
    """Compiled code gives what the interpreter gives, or raises what it raises."""
    native, interpreted = both(f)
    try:
        want = interpreted(*args)
    except (IndexError, AssertionError, ValueError) as error:
        with pytest.raises(type(error)) as caught:
            native(*args)
        assert str(error) in str(caught.value) or str(caught.value) in str(error)
        return
    got = native(*args)
    for g, w in zip(jt.tree.leaves(got), jt.tree.leaves(want), strict=True):
        assert np.asarray(g).dtype == np.asarray(w).dtype
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-12)


# Programs: each takes a trip count and gives arrays; all of them are scalar code.


def fibonacci(n):
    return jt.fori_loop(0, n, lambda i, s: (s[1], s[0] + s[1]), (np.int32(0), np.int32(1)))


def table(n):
    """A recurrence through memory: what one trip writes, the next ones read."""
    x = np.zeros(101, np.int64)
    x[1] = 1

    def body(i, x):
        x[i] = x[i - 1] + x[i - 2]
        return x

    return jt.fori_loop(2, n, body, x)


def sieve(n):
    """Nested loops that write, behind a branch."""
    marks = np.ones(120, bool)

    def cross_out(i, marks):
        def step(s):
            k, marks = s
            marks[k] = False
            return k + i, marks

        return jt.while_loop(lambda s: s[0] < n, step, (i * i, marks))[1]

    def body(i, marks):
        return jt.cond(marks[i], lambda m: cross_out(i, m), lambda m: m, marks)

    return jt.fori_loop(2, n, body, marks)


def matrices(n):
    m = np.arange(9.0).reshape(3, 3) / 9

    def body(i, s):
        a, total = s
        a = np.tanh(m @ a) + np.flip(a, 0) * 0.1
        a[1] = a[0] * 2 - a[:, 2]
        return a, total + a.max() + np.cumsum(a[0])[1] + a.argmin()

    return jt.fori_loop(0, n, body, (np.eye(3), 0.0))


def counting(n):
    """Writes where the program computes, into a small array (in registers) and a large one."""

    def body(i, s):
        few, many = s
        few[i % 3] += i
        many[(i * 7) % 99] += 1
        few[i % 2] = few[2] - many[i % 50]
        return few, many

    return jt.fori_loop(0, n, body, (np.zeros(3, np.int64), np.zeros(99, np.int64)))


def stacked(n):
    """A scan over rows, from the end, that stacks small arrays; a nested scan over what it made."""
    xs = np.linspace(-1, 1, 24).reshape(8, 3)

    def step(c, x):
        c = c * 0.5 + x[::-1]
        inner, ys = jt.scan(lambda a, v: (a + v, a * v), 0.0, c)
        return c + inner, (c, ys, ys.any())

    return jt.scan(step, jt.full(3, n * 1.0), xs, reverse=True)


def swapping(n):
    def body(s):
        i, a, b, c = s
        return i + 1, b, jt.cond(i % 3 == 0, lambda: c * 1.5, lambda: a - 1), np.where(a > b, a, c)

    return jt.while_loop(lambda s: s[0] < n, body, (np.int64(0), 1.0, -2.0, 0.25))


def nothing_known(n):
    """Casts, integers that wrap, NaN in the condition."""

    def body(s):
        x, k, flag = s
        return x * x - n, (k * np.uint8(3) + np.uint8(7)), np.logical_not(flag)

    return jt.while_loop(lambda s: np.abs(s[0]) < 1e300, body, (np.float64(2.5), np.uint8(1), True))


PROGRAMS = [fibonacci, table, sieve, matrices, counting, stacked, swapping, nothing_known]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_are_scalar_code_and_agree_with_the_interpreter(program):
    assert set(steps(program, np.int64(3))) == {ScalarCode}
    for n in (0, 1, 2, 3, 5, 7, 40, 99):
        same(program, np.int64(n))


def test_static_trip_counts_of_all_remainders():
    for n in range(12):
        same(lambda x, n=n: jt.fori_loop(0, n, lambda i, x: x * 0.5 + i, x), 3.0)


def test_an_index_error_ends_the_loop_at_once():
    def f(x, n):
        def body(s):
            i, x = s
            x[i] = 1
            return i + 1, x

        return jt.while_loop(lambda s: s[0] < n, body, (np.int64(0), x))

    x = np.zeros(100)
    with pytest.raises(IndexError, match="index 100 is out of bounds for axis 0 with size 100"):
        jt.jit(f)(x, np.int64(2**60))
    assert not x.any()


def test_a_failed_check_ends_the_loop_at_once_and_shows_its_values():
    def f(n):
        def body(s):
            i, x = s
            check(x < 50.0, "x is {} at {}", x, i)
            return i + 1, x * 2

        return jt.while_loop(lambda s: s[0] < n, body, (np.int64(0), 1.0))

    with pytest.raises(AssertionError, match=r"x is 64.0 at 6"):
        jt.jit(f)(np.int64(2**60))
    same(f, np.int64(5))
    same(f, np.int64(9))


def test_what_a_later_trip_still_reads_is_not_overwritten():
    """The old version is read after the update: this loop copies, as kernels."""

    def f(x):
        def body(i, s):
            x, old = s
            y = x.copy()
            y[i] = 7.0
            return y, x[i] + old

        return jt.fori_loop(0, 5, body, (x, 0.0))

    same(f, np.arange(90.0))


def test_two_carries_from_one_array():
    def f(x):
        def body(i, s):
            a, b = s
            a[i] = b[i + 1]
            b[i] = a[i] + 1
            return a, b

        return jt.fori_loop(0, 80, body, (x, x))

    same(f, np.arange(90.0))


def test_long_arrays_stay_with_kernels():
    def f(x):
        return jt.fori_loop(0, 10, lambda i, x: np.tanh(x) * 2, x)

    assert steps(f, np.ones(60)) == [Scan]
    assert steps(f, np.ones(3)) == [ScalarCode]


def test_gradients_of_scalar_code():
    def f(x, y):
        def body(i, s):
            a, b = s
            return np.sin(a) * b + x, jt.cond(a > 0, lambda: b * a, lambda: b - a)

        a, b = jt.fori_loop(0, 37, body, (x, y))
        return a * b

    def g(x, y):
        m = np.stack([np.stack([x, y]), np.stack([y, -x])])
        _, ys = jt.scan(lambda c, k: (np.tanh(m @ c) * k, c.sum()), np.eye(2), np.arange(1.0, 6.0))
        return ys.sum()

    for function in (f, g):
        want = jt.jit(jt.grad(function, argnums=(0, 1)), backend="interpreter")(0.3, 0.7)
        got = jt.jit(jt.grad(function, argnums=(0, 1)))(0.3, 0.7)
        np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_ctrl_c_ends_scalar_code_and_leaves_memory_intact():
    def f(x, n):
        def body(s):
            i, x = s
            x[i % 100] += 1.0
            return i + 1, x

        return jt.while_loop(lambda s: s[0] < n, body, (np.int64(0), x))[1]

    f = jt.jit(f)
    x = np.zeros(100)
    assert f(x, np.int64(50)).sum() == 50
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(x, np.int64(2**60))
    timer.join()
    assert not x.any() and f(x, np.int64(50)).sum() == 50


# Random programs: a loop whose carries are scalars and small arrays of several dtypes.

OPS = [
    lambda a, b, i: a + b,
    lambda a, b, i: a * b - a,
    lambda a, b, i: np.where(a > b, a, b * 2),
    lambda a, b, i: np.minimum(a, b) + i.astype(a.dtype),
    lambda a, b, i: (a.sum() + b).astype(a.dtype),
    lambda a, b, i: np.broadcast_to(b.reshape(-1)[:1].sum().astype(a.dtype), a.shape) - a,
    lambda a, b, i: jt.cond(i % 2 == 0, lambda: a, lambda: -a),
    lambda a, b, i: np.flip(a.reshape(-1), 0).reshape(a.shape),
    lambda a, b, i: np.concatenate([a.reshape(-1)[1:], a.reshape(-1)[:1]]).reshape(a.shape),
    lambda a, b, i: jt.at(a)[0].set(b.max().astype(a.dtype)) if a.shape else a,
]
SHAPES = [(), (), (2,), (3,), (2, 2)]
DTYPES = [np.float64, np.float32, np.int32, np.int64]


@st.composite
def loops(draw):
    shape, dtype = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(DTYPES))
    count = draw(st.integers(1, 4))
    rules = draw(st.lists(st.sampled_from(OPS), min_size=count, max_size=count))
    others = draw(st.lists(st.integers(0, count - 1), min_size=count, max_size=count))
    trips = draw(st.sampled_from([0, 1, 2, 3, 4, 5, 9]))
    start = [
        np.asarray(draw(st.sampled_from([-2, -1, 0, 1, 3])) * np.ones(shape), dtype)
        for _ in range(count)
    ]
    form = draw(st.sampled_from(["fori", "while", "scan"]))
    return rules, others, trips, start, form


def random_loop(rules, others, trips, form):
    def body(i, s):
        return tuple(
            f(a, s[o], i).astype(a.dtype) for f, a, o in zip(rules, s, others, strict=True)
        )

    def program(n, s):
        if form == "fori":
            return jt.fori_loop(0, trips, body, s)
        if form == "while":
            step = lambda c: (c[0] + 1, body(c[0], c[1]))  # noqa: E731
            return jt.while_loop(lambda c: c[0] < n, step, (np.int64(0), s))
        return jt.scan(lambda c, x: (body(x, c), c[0]), s, np.arange(trips))

    return program


@settings(max_examples=20, deadline=None)
@given(loops())
def test_random_loops_agree_with_the_interpreter(case):
    rules, others, trips, start, form = case
    same(random_loop(rules, others, trips, form), np.int64(trips), tuple(start))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_sums_of_nothing(shape: tuple[int, int]) -> None:
    def program(x, n):
        first = np.zeros(shape[0]), np.zeros(shape[1])
        return jt.fori_loop(0, n, lambda i, c: (c[0] + x.sum(axis=1), c[1] + x.sum(axis=0)), first)

    for got, size in zip(jt.jit(program)(np.zeros(shape), 3), shape, strict=True):
        np.testing.assert_array_equal(got, np.zeros(size))


@pytest.mark.parametrize("unroll", [1, 2, 3])
def test_branches_that_an_unrolled_loop_repeats_see_their_own_arguments(unroll: int) -> None:
    def f(start, xs):
        def step(c, x):
            return jt.cond(x > 0, lambda: c * 0.5 + x, lambda: c * x), c.sum()

        return jt.scan(step, start, xs, unroll=unroll)

    start, xs = np.array([1.0, 2.0, 3.0]), np.array([1.0, -1.0, 2.0, -2.0, 3.0, 0.5])
    want = jt.jit(f, backend="interpreter")(start, xs)
    for got, expected in zip(jt.jit(f)(start, xs), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_a_scan_over_the_carry_of_an_unrolled_scan() -> None:
    def step(c, x):
        return jt.scan(lambda k, v: (k * v, k), c, c)[0] * 0.1 + x, c[::-1]

    def program(start, xs):
        return jt.scan(step, start, xs, unroll=2)

    start, xs = np.array([0.5, -1.0, 2.0]), np.array([0.1, 0.2, 0.3, 0.4])
    for got, want in zip(jt.jit(program)(start, xs), program(start, xs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_condition_that_changes_a_copy_of_a_large_carry() -> None:
    """The condition's copy is the condition's own: the body sees the carry as it was."""

    def program(x):
        def test(s):
            i, x, _ = s
            y = x.copy()
            y[i] = 100.0 + i
            return y[i] + y[i + 1] < 105.0

        def body(s):
            i, x, total = s
            x[i + 3] = total
            return i + 1, x, total + x[i]

        return jt.while_loop(test, body, (np.int64(0), x, 0.0))

    same(program, np.arange(100.0))


# Loops whose trips can be counted before the first of them.


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_counted_loops_of_every_integer_up_and_down(dtype: str) -> None:
    """Near both ends of the dtype: the distance between them may not fit its sign."""

    def up(start, stop):
        return jt.while_loop(
            lambda s: s[0] < stop, lambda s: (s[0] + 1, s[1] * 3 + s[0]), (start, start)
        )

    def down(start, stop):
        return jt.while_loop(
            lambda s: stop < s[0], lambda s: (s[0] - 1, s[1] * 3 + s[0]), (start, start)
        )

    info = np.iinfo(dtype)
    middle = int(info.max) // 2
    for low in (int(info.min), middle, int(info.max) - 9):
        for trips in (0, 1, 3, 4, 6, 9):
            for f, a, b in ((up, low, low + trips), (down, low + trips, low)):
                same(f, np.array(a, dtype)[()], np.array(b, dtype)[()])
        same(up, np.array(low + 5, dtype)[()], np.array(low, dtype)[()])
        same(down, np.array(low, dtype)[()], np.array(low + 5, dtype)[()])
    if info.bits == 8:
        same(up, np.array(info.min, dtype)[()], np.array(info.max, dtype)[()])
        same(down, np.array(info.max, dtype)[()], np.array(info.min, dtype)[()])


def test_loops_that_only_look_counted() -> None:
    """The limit is a carry, or an element that the body writes; the step is 2; two things count."""

    def moving(n):
        return jt.while_loop(
            lambda s: s[0] < s[1], lambda s: (s[0] + 1, s[1] - s[0] % 2), (np.int64(0), n)
        )

    def written(n):
        def body(s):
            i, x = s
            x[3] = n - i
            return i + 1, x

        return jt.while_loop(lambda s: s[0] < s[1][3], body, (np.int64(0), jt.full(70, n)))

    def by_two(n):
        return jt.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 2, s[1] + s[0]), (n * 0, n))

    def two(n):
        def test(s):
            return (s[0] < n) & (s[1] < 30)

        return jt.while_loop(test, lambda s: (s[0] + 1, s[1] + s[0]), (n * 0, n))

    def checked(n):
        x = jt.asarray(np.arange(5))
        return jt.while_loop(lambda s: s < x[np.minimum(n, s)], lambda s: s + 1, n * 0 - 3)

    for f in (moving, written, by_two, two, checked):
        for n in (0, 1, 2, 5, 8, 21):
            same(f, np.int64(n))


def test_a_counted_loop_of_many_chunks_can_be_ended_and_reaches_its_end() -> None:
    def f(n):
        return jt.fori_loop(0, n, lambda i, s: (s[0] + i, s[1] ^ i), (np.int64(0), np.int64(0)))

    n = (1 << 21) + 3
    total, parity = jt.jit(f)(np.int64(n))
    assert total == n * (n - 1) // 2 and parity == np.bitwise_xor.reduce(np.arange(n))
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        jt.jit(f)(np.int64(2**60))
    timer.join()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 3, 70])
@pytest.mark.parametrize("twice", [False, True])
def test_what_loops_inside_stack_is_stacked_where_it_will_be(reverse, n, twice):
    """Rows, and rows of rows, are written to their places; a row may be read, or be there twice."""

    def f(x, c):
        def middle(s, row):
            def inner(t, v):
                t = np.sin(t * v + 0.1)
                return t, (t, t * v)

            s, (ts, tvs) = jt.scan(inner, s, row, reverse=reverse)
            third = ts if twice else ts[::-1] + tvs.sum()
            return s, (ts, tvs, third)

        def outer(s, plane):
            return jt.scan(middle, s, plane, reverse=not reverse)

        return jt.scan(outer, c, x)

    x = np.random.default_rng(0).random((3, 2, n))
    found = jt.jit(f)(x, 0.3)
    wanted = jt.jit(f, backend="interpreter")(x, 0.3)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    for a, b in zip(found[1], wanted[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
