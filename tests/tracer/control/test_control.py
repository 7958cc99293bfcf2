"""Structured control flow: cond, switch, while_loop, fori_loop, against the same programs in Python."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, X, both
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

# while_loop


def test_while_loop_with_a_tree() -> None:
    def f(limit: Any, x: Any) -> Any:
        def cond(c: Any) -> Any:
            return c["n"] < limit

        def body(c: Any) -> Any:
            return {"n": c["n"] + 1, "x": (c["x"][0] * 0.5 + 1, c["x"][1] + c["x"][0])}

        return jt.while_loop(cond, body, {"n": 0, "x": (x, np.zeros_like(x))})

    both(f, 6, X)
    both(f, 0, X)


def test_while_loop_trip_count_depends_on_data() -> None:
    def newton(a: Any) -> Any:
        return jt.while_loop(
            lambda c: np.abs(c[0] * c[0] - a) > 1e-12 * a,
            lambda c: (0.5 * (c[0] + a / c[0]), c[1] + 1),
            (a, 0),
        )

    both(newton, np.float64(2.0))
    both(newton, np.float64(12345.0))
    root, steps = jt.jit(newton, backend="interpreter")(np.float64(2.0))
    assert np.isclose(root, np.sqrt(2)) and steps > 3


def test_while_loop_closures_in_cond_and_body() -> None:
    table = np.arange(10.0)

    def f(x: Any, limit: Any) -> Any:
        scale = x * 2
        return jt.while_loop(
            lambda c: (c[0] < 10) & (np.sum(c[1]) < limit),
            lambda c: (c[0] + 1, c[1] + scale * table[c[0]]),
            (0, np.zeros_like(x)),
        )

    both(f, np.ones(3), 30.0)
    both(f, np.ones(3), 1e9)


def test_nested_loops() -> None:
    def f(n: Any, x: Any) -> Any:
        def outer(i: Any, total: Any) -> Any:
            def inner(j: Any, t: Any) -> Any:
                return t + x[j] * (i + 1)

            return jt.fori_loop(0, i + 1, inner, total) + jt.cond(
                i % 2 == 0, lambda: 1.0, lambda: np.sum(x)
            )

        return jt.fori_loop(0, n, outer, 0.0)

    both(f, 4, X)
    both(f, np.int64(0), X)


def test_closure_through_two_levels() -> None:
    def f(x: Any) -> Any:
        a = np.sin(x)

        def body(i: Any, c: Any) -> Any:
            b = a * i
            return jt.cond(c[0] > 1, lambda: c - b, lambda: c + a + b)

        return jt.fori_loop(0, 7, body, x)

    both(f, X)


def test_in_place_assignment_to_the_carry() -> None:
    def sieve(flags: Any) -> Any:
        def body(i: Any, u: Any) -> Any:
            u[2:] = np.where(
                (np.arange(2, u.shape[0]) % i == 0) & (np.arange(2, 30) != i), False, u[2:]
            )
            return u

        return jt.fori_loop(2, 6, body, flags)

    flags = np.ones(30, bool)
    both(sieve, flags)
    assert flags.all(), "the loop owns its carry: the caller's array stays as it was"
    expected = [n for n in range(30) if n < 2 or all(n % d for d in range(2, n))]
    np.testing.assert_array_equal(np.flatnonzero(sieve(flags)), expected)


def test_in_place_assignment_at_a_traced_index() -> None:
    def fibonacci(n: Any) -> Any:
        def body(i: Any, table: Any) -> Any:
            table[i] = table[i - 1] + table[i - 2]
            return table

        init = np.zeros(20, np.int64)
        init[1] = 1
        return jt.fori_loop(2, n, body, init)

    both(fibonacci, 20)
    assert jt.jit(fibonacci, backend="interpreter")(20)[19] == 4181


def test_heat_stencil_in_a_loop() -> None:
    def f(u: Any, steps: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            u[1:-1, 1:-1] += 0.1 * (
                u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
            )
            return u

        return jt.fori_loop(0, steps, step, u)

    u = np.random.default_rng(0).normal(size=(6, 7))
    both(f, u, 10)


def test_python_scalar_init_becomes_what_the_body_makes_of_it(jit: Callable[..., Any]) -> None:
    def total(x: Any) -> Any:
        return jt.fori_loop(0, 4, lambda i, c: c + x[i], 0)

    for dtype in (np.float32, np.float64, np.int16):
        x = np.arange(4).astype(dtype)
        result = jit(total)(x)
        assert result.dtype == dtype and result == 6
    both(total, np.arange(4.0))


def test_python_scalar_carry_stays_python() -> None:
    result = jt.jit(lambda: jt.fori_loop(0, 5, lambda i, c: c + i, 0), backend="interpreter")()
    assert type(result) is int and result == 10
    result = jt.jit(lambda: jt.fori_loop(0, 5, lambda i, c: c * 0.5, 1), backend="interpreter")()
    assert type(result) is float and result == 1 / 32


def test_weak_result_of_the_body_fits_a_strong_carry(jit: Callable[..., Any]) -> None:
    f = jit(lambda x: jt.while_loop(lambda c: c > 0, lambda c: 0, x))
    result = f(np.float32(3))
    assert isinstance(result, np.float32) and result == 0


def test_carry_that_changes_shape(jit: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        return jt.while_loop(
            lambda c: c["n"] < 3,
            lambda c: {"n": c["n"] + 1, "history": np.concatenate([c["history"], x])},
            {"n": 0, "history": x},
        )

    with pytest.raises(TypeError, match=r"(?s)at c\['history'\].*f64\[5\].*f64\[10\]") as info:
        jit(f)(X)
    assert "test_control.py" in str(info.value)


def test_carry_that_changes_dtype(jit: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"(?s)at c\[1\].*f32\[5\].*f64\[5\]"):
        jit(lambda x, y: jt.fori_loop(0, 3, lambda i, c: (c[0], c[1] * y), (y, x)))(
            X.astype(np.float32), X
        )


def test_carry_that_changes_structure(jit: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"(?s)carry.*structure"):
        jit(lambda x: jt.while_loop(lambda c: c[0] > 0, lambda c: c[0], (x, x)))(1.0)


def test_loop_condition_must_be_a_scalar_bool(jit: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"(?s)condition.*bool\[5\]"):
        jit(lambda x: jt.while_loop(lambda c: c > 0, lambda c: c - 1, x))(X)
    with pytest.raises(TypeError, match=r"(?s)condition.*Python float"):
        jit(lambda x: jt.while_loop(lambda c: c, lambda c: c - 1, x))(1.0)
    with pytest.raises(TypeError, match=r"(?s)condition.*bool"):
        jt.while_loop(lambda c: c > 0, lambda c: c - 1, X)


def test_fori_loop_bounds(jit: Callable[..., Any]) -> None:
    def f(lower: Any, upper: Any) -> Any:
        return jt.fori_loop(lower, upper, lambda i, c: c * 3 + i, np.int64(1))

    for bounds in ((0, 5), (3, 3), (5, 0), (-4, -1), (np.int32(1), np.int32(4))):
        both(f, *bounds)
    with pytest.raises(TypeError, match="(?s)lower bound.*f64"):
        jit(f)(0.0, 3.0)
    with pytest.raises(TypeError, match="bound"):
        jt.fori_loop(0.0, 3.0, lambda i, c: c, 1)


def test_fori_loop_bounds_without_a_common_integer_dtype(jit: Callable[..., Any]) -> None:
    def f(lower: Any, upper: Any) -> Any:
        return jt.fori_loop(lower, upper, lambda i, c: c + i, 0)

    for g in (f, jit(f)):
        with pytest.raises(TypeError, match="(?s)float64.*astype"):
            g(np.uint64(0), np.int64(3))


def test_carry_without_arrays_and_with_what_is_no_array(jit: Callable[..., Any]) -> None:
    f = jit(lambda x: (jt.fori_loop(0, 3, lambda i, c: None, None), jt.cond(x > 0, id_, id_, ())))
    assert f(1.0) == (None, ())
    with pytest.raises(TypeError, match="a object in the carry of fori_loop"):
        jit(lambda x: jt.fori_loop(0, 3, lambda i, c: c, (x, object())))(1.0)


def id_(x: Any) -> Any:
    return x


def test_errors_in_a_body_leave_no_trace_behind(jit: Callable[..., Any]) -> None:
    with pytest.raises(ZeroDivisionError):
        jit(lambda x: jt.fori_loop(0, 3, lambda i, c: 1 // 0, x))(1.0)
    assert isinstance(jt.sin(1.0), float) and jit(lambda x: x + 1)(1.0) == 2.0


def test_gradient_steps_inside_of_a_loop() -> None:
    def descend(x: Any) -> Any:
        step = jt.grad(lambda v: np.sum((v - 2) ** 2))
        return jt.fori_loop(0, 40, lambda i, c: c - 0.1 * step(c), x)

    def newton(a: Any) -> Any:
        f = lambda x: x * x - a  # noqa: E731
        return jt.while_loop(
            lambda c: np.abs(f(c)) > 1e-12 * a, lambda c: c - f(c) / jt.grad(f)(c), a
        )

    both(descend, X)
    both(newton, 5.0)
    assert np.isclose(newton(5.0), np.sqrt(5.0))


def test_assignment_to_an_array_from_outside_the_body(jit: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        y = x * 2

        def body(i: Any, c: Any) -> Any:
            y[0] = c
            return c + 1.0

        return jt.fori_loop(0, 3, body, 0.0), y

    for got, want in zip(jit(f)(X), f(X), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_value_that_leaks_from_the_body(jit: Callable[..., Any]) -> None:
    kept: queue.Queue[Any] = queue.Queue()  # no container that is merged and carried

    def f(x: Any) -> Any:
        jt.fori_loop(0, 3, lambda i, c: (kept.put(c + 1), c)[1], x)
        return kept.get() + x

    with pytest.raises(Exception, match="test_control.py") as info:
        jit(f)(X)
    assert "Leaked" in type(info.value).__name__


def test_arguments_that_are_not_callable() -> None:
    with pytest.raises(TypeError, match="callable"):
        jt.cond(True, 1.0, 2.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="callable"):
        jt.while_loop(lambda c: True, None, 0)  # type: ignore[arg-type]


# Random programs: control structures in any nesting, with closures and assignments.


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda x, outer: np.sin(x),
    "closure": lambda x, outer: x * 0.5 + outer,
    "mean": lambda x, outer: x - np.mean(x),
    "flip": lambda x, outer: x[::-1] * 1.25,
}


def assign(x: Any) -> Any:
    y = x * 1.0
    y[1:] += 0.5 * y[:-1]
    y[0] = y[-1]
    return y


def run(program: Any, x: Any, outer: Any) -> Any:
    kind, *parts = program
    if kind in STEPS:
        return STEPS[kind](x, outer)
    if kind == "assign":
        return assign(x)
    if kind == "sequence":
        for part in parts:
            x = run(part, x, outer)
        return x
    if kind == "cond":
        return jt.cond(
            np.sum(x) > 0.3,
            lambda v: run(parts[0], v, outer),
            lambda v: run(parts[1], v, x * 0.1),
            x,
        )
    if kind == "switch":
        index = np.floor(x[0] * 2).astype(np.int64)
        return jt.switch(index, [lambda p=p: run(p, x, outer) for p in parts])
    if kind == "for":
        return jt.fori_loop(0, 3, lambda i, c: run(parts[0], c, outer) * 0.5 + i * 0.1, x)
    _, count = jt.while_loop(
        lambda c: (c[1] < 3) & (np.max(np.abs(c[0])) < 4.0),
        lambda c: (run(parts[0], c[0], x), c[1] + 1),
        (outer, 0),
    )
    return jt.while_loop(
        lambda c: c[1] > 0, lambda c: (run(parts[0], c[0], outer), c[1] - 1), (x, count)
    )[0]


PROGRAMS = st.recursive(
    st.sampled_from([(name,) for name in (*STEPS, "assign")]),
    lambda inner: st.one_of(
        st.tuples(st.just("sequence"), inner, inner),
        st.tuples(st.just("cond"), inner, inner),
        st.tuples(st.just("switch"), inner, inner, inner),
        st.tuples(st.just("for"), inner),
        st.tuples(st.just("while"), inner),
    ),
    max_leaves=5,
)


@settings(max_examples=8, deadline=None)
@given(PROGRAMS, st.integers(0, 100))
def test_random_programs(program: Any, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=4)
    direction = np.linspace(1.0, -1.0, 4)
    expected = run(program, x, x)
    value, tangent = jt.jvp(lambda x: run(program, x, x), (x,), (direction,))
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    gradient = jt.grad(lambda x: run(program, x, x) @ direction)(x)
    np.testing.assert_allclose(gradient @ direction, tangent @ direction, rtol=1e-9, atol=1e-12)
    for backend in BACKENDS:
        both_of = jt.jit(
            lambda x, t: jt.jvp(lambda x: run(program, x, x), (x,), (t,)), backend=backend
        )
        got = both_of(x, direction)
        np.testing.assert_allclose(got[0], expected, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(got[1], tangent, rtol=1e-9, atol=1e-12)


# Derivatives.


def test_eager_gradient_of_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        y = jt.fori_loop(0, 3, lambda i, c: c * np.sin(x) + i, x)
        return jt.cond(np.sum(y) > 0, lambda: np.sum(y**2), lambda: np.sum(y))

    jt.check_grads(f, (X,), modes=("rev", "fwd"))
    jt.check_grads(f, (-X,), modes=("rev", "fwd"))


def test_gradient_of_cond_under_jit(jit: Callable[..., Any]) -> None:
    table = np.arange(5.0)

    def f(x: Any, n: Any) -> Any:
        z = np.exp(x)
        picked = jt.switch(n, [lambda v: v * z, lambda v: np.sin(v) + table, lambda v: v**2], x)
        return jt.cond(x[-1] > 0, lambda: np.sum(picked * z), lambda: np.sum(picked))

    for x in (X, -X):
        for n in range(3):
            np.testing.assert_allclose(
                jit(jt.grad(f))(x, n), jt.grad(f)(x, n), rtol=1e-12, atol=1e-14
            )
            np.testing.assert_allclose(
                jit(lambda x, n: jt.jvp(lambda x: f(x, n), (x,), (x,))[1])(x, n),
                np.sum(jt.grad(f)(x, n) * x),
                rtol=1e-12,
            )


def test_second_derivative_of_cond_under_jit(jit: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        return jt.cond(x > 0, lambda v: v**3, lambda v: np.sin(v), x)

    g = jit(jt.grad(jt.grad(f)))
    assert np.isclose(g(2.0), 12.0)
    assert np.isclose(g(-2.0), -np.sin(-2.0))


def test_reverse_mode_through_a_traced_while(jit: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        return jt.while_loop(lambda c: c < 100, lambda c: c * x, x)

    assert np.isclose(jt.grad(f)(3.0), 5 * 3.0**4)
    assert np.isclose(jit(jt.grad(f))(3.0), 5 * 3.0**4)
    assert np.isclose(jit(jt.grad(jt.grad(f)))(3.0), 20 * 3.0**3)
    value, tangent = jit(lambda x: jt.jvp(f, (x,), (1.0,)))(3.0)
    assert (value, tangent) == (243.0, 405.0)
    inside_cond = jit(jt.grad(lambda x: jt.cond(x > 0, f, lambda v: v, x)))
    assert np.isclose(inside_cond(3.0), 5 * 3.0**4)
    assert inside_cond(-3.0) == 1.0


def test_pulling_back_twice_through_a_loop(jit: Callable[..., Any]) -> None:
    """What jt.vjp returns may be called again, though a tape is read once."""

    def f(x: Any) -> Any:
        return jt.while_loop(lambda c: c < 100, lambda c: c * x, x)

    def twice(x: Any) -> Any:
        out, pull = jt.vjp(f, x)
        return out, pull(1.0)[0], pull(2.0)[0]

    np.testing.assert_allclose(jit(twice)(3.0), (243.0, 405.0, 810.0))


def test_forward_mode_through_loops(jit: Callable[..., Any]) -> None:
    table = np.arange(1.0, 6.0)

    def f(x: Any, n: Any) -> Any:
        scale = np.exp(-x)

        def body(i: Any, c: Any) -> Any:
            u, count = c
            u[1:] += scale[:-1] * u[:-1] * table[i]
            return u, count + 1

        return jt.fori_loop(0, n, body, (x, 0))

    direction = np.cos(np.arange(5.0))
    expected = jt.jvp(lambda x: f(x, 4)[0], (X,), (direction,))
    result = jit(lambda x, t, n: jt.jvp(lambda x: f(x, n)[0], (x,), (t,)))(X, direction, 4)
    np.testing.assert_allclose(result[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(result[1], expected[1], rtol=1e-12)
    step = 1e-6
    numerical = (f(X + step * direction, 4)[0] - f(X - step * direction, 4)[0]) / (2 * step)
    np.testing.assert_allclose(result[1], numerical, rtol=1e-6, atol=1e-8)


def test_pullback_inside_of_loops_and_branches(wrap: Callable[..., Any]) -> None:
    """What jt.vjp returns closes over values of the function around; regions take them in."""

    def f(x: Any) -> Any:
        out, pull = jt.vjp(np.sin, x)
        summed = jt.fori_loop(0, 3, lambda i, c: c + pull(c)[0], out)
        return jt.cond(x[0] > 0, lambda: pull(summed)[0], lambda: summed)

    def by_hand(x: Any) -> Any:
        c = np.sin(x)
        for _ in range(3):
            c = c + c * np.cos(x)
        return c * np.cos(x) if x[0] > 0 else c

    for x in (X, -X):
        np.testing.assert_allclose(wrap(f)(x), by_hand(x), rtol=1e-12)


def test_closures_in_loops_see_changed_arrays() -> None:
    table = np.arange(3.0)
    f = jt.jit(lambda x: jt.fori_loop(0, 3, lambda i, c: c + table[i], x))
    assert f(0.0) == 3.0
    table[:] = 10.0
    assert f(0.0) == 30.0


LOOPS_WITH_BOOLS: dict[str, Callable[[Any], Any]] = {
    "while_loop": lambda x: jt.while_loop(
        lambda s: ~s[1], lambda s: (s[0] + x, s[0] > 3), (0.0, False)
    ),
    "while_loop, no trip": lambda x: jt.while_loop(lambda s: s, lambda s: ~s, False),
    "while_loop, Python's True": lambda x: jt.while_loop(lambda s: ~s, lambda s: True, False),
    "fori_loop": lambda x: jt.fori_loop(0, 3, lambda i, c: (~c[0], c[1] + x), (True, 0.0)),
    "fori_loop, no trip": lambda x: jt.fori_loop(0, 0, lambda i, c: ~c, True),
    "a traced number of trips": lambda x: jt.fori_loop(
        0, np.int64(3) * (x > 0), lambda i, c: ~c, x > 0
    ),
    "scan": lambda x: jt.scan(lambda c, y: (~c, y * x), False, np.arange(3.0)),
    "scan of nothing": lambda x: jt.scan(lambda c, y: (~c, y * x), False, np.arange(0.0)),
    "foldl": lambda x: jt.foldl(lambda a, y: {"k": ~a["k"]}, np.arange(3.0), {"k": True}),
    "foldr": lambda x: jt.foldr(lambda a, y: (a[1], ~a[0]), np.arange(3.0), (True, False)),
    "map_fn": lambda x: jt.map_fn(lambda b: ~b, np.array([True, False])),
}


@pytest.mark.parametrize("name", LOOPS_WITH_BOOLS)
def test_bools_enter_a_loop_as_arrays_do(name: str) -> None:
    function = LOOPS_WITH_BOOLS[name]
    want = function(2.0)
    for backend in BACKENDS:
        found = jt.jit(function, backend=backend)(2.0)
        assert jt.tree.structure(found) == jt.tree.structure(want)
        for a, b in zip(jt.tree.leaves(found), jt.tree.leaves(want), strict=True):
            assert type(a) is type(b) and type(a) is not bool
            np.testing.assert_array_equal(a, b)


def test_the_complement_of_a_python_bool_is_no_condition(wrap: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="jt.logical_not"):
        wrap(lambda x: jt.while_loop(lambda c: ~(c > 3), lambda c: c + x, 0.0))(1.0)


# arrays of outside

TABLE = np.zeros(2)


def changes_outside(t: Any, xs: Any) -> Any:
    def up() -> None:
        TABLE[...] += 1

    def down() -> None:
        TABLE[...] -= 1  # undoes the other one: both are traced, and only one may happen

    def body(i: Any, x: Any) -> Any:
        TABLE[1] += i * x
        return x + TABLE[0]

    def step(carry: Any, x: Any) -> Any:
        np.multiply(TABLE, x, out=TABLE)
        return carry, TABLE.sum()

    jt.cond(t > 0, up, down)
    jt.switch(np.int64(t), [down, up])
    jt.case([(t > 5, up)], down)
    return jt.scan(step, jt.fori_loop(0, 3, body, t), xs)


@pytest.mark.parametrize("autograph", [True, False])
def test_regions_assign_to_arrays_of_outside(autograph: bool) -> None:
    compiled = jt.jit(changes_outside, autograph=autograph)
    for t in (1.0, -1.0, 7.0):
        ends = []
        for f in (changes_outside, compiled):
            TABLE[:] = 0.25, -1
            last, sums = f(np.float64(t), np.array([2.0, 3.0]))
            ends.append([TABLE.tolist(), float(last), sums.tolist()])
        assert ends[0] == ends[1]


def test_changes_that_undo_each_other_while_tracing_are_not_lost() -> None:
    def up() -> None:
        TABLE[...] += 1

    def down() -> None:
        TABLE[...] -= 1

    def f(t: Any) -> Any:
        zeros = np.zeros(int(TABLE[0]))  # asks for the array itself, which then must stay
        jt.cond(t > 0, up, down)
        return zeros + t

    TABLE[:] = 2
    compiled = jt.jit(f)
    for t, table in ((1.0, 3), (1.0, 4), (-1.0, 3)):
        assert compiled(np.float64(t)).tolist() == [t] * int(TABLE[0] - (1 if t > 0 else -1))
        assert TABLE.tolist() == [table, table]
