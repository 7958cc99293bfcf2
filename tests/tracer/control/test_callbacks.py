"""Callbacks: Python functions as ops, exactly as often and in the order that their kind promises."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

X = np.linspace(-1.0, 2.0, 5)
F64 = jt.ShapeDtype((), np.float64)


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "jt.py_func is for prototyping")
        yield


KINDS = [jt.pure_callback, jt.io_callback, jt.py_func]


@pytest.mark.parametrize("call", KINDS)
def test_trees_scalars_and_statics(call: Any, wrap: Any) -> None:
    def host(d: Any, word: Any, *, n: Any) -> Any:
        assert word == "word" and isinstance(d["x"], np.ndarray) and isinstance(d["s"], np.float64)
        assert n == 3
        d["x"] += 1  # a copy of its own
        return [d["x"] * 2, (d["s"] + n,)]

    def f(x: Any) -> Any:
        like = [x, (F64,)]
        out = call(host, like, {"x": x, "s": jt.sum(x)}, "word", n=3)
        return out[0] + x, out[1][0]

    x = X.copy()
    first, second = wrap(f)(x)
    np.testing.assert_allclose(first, (X + 1) * 2 + X)
    assert second == pytest.approx(X.sum() + 3) and not isinstance(second, np.ndarray)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("call", KINDS)
def test_exceptions_come_out_as_they_were_raised(call: Any, wrap: Any) -> None:
    class Mine(Exception):
        pass

    error = Mine("text", 3)

    def host(x: Any) -> Any:
        if x > 2:
            raise error
        return x

    f = wrap(lambda x: jt.fori_loop(0, 5, lambda i, c: call(host, F64, c) + 1.0, x))
    with pytest.raises(Mine) as caught:
        f(0.0)
    assert caught.value is error
    assert f(-10.0) == -5.0  # everything still works


@pytest.mark.parametrize("call", KINDS)
@pytest.mark.parametrize(
    "result, message",
    [
        (lambda x: x.astype(np.float32), r"(?s)float32.*float64"),
        (lambda x: x[:2], r"(?s)\(2,\).*\(5,\)"),
        (lambda x: (x, x), r"\(\*, \*\)"),
        (lambda x: None, "None"),
    ],
)
def test_results_are_held_to_what_is_declared(
    call: Any, result: Any, message: str, wrap: Any
) -> None:
    with pytest.raises(TypeError, match=message):
        wrap(lambda x: call(result, x, x) * 2)(X)


def test_python_numbers_become_what_is_declared(wrap: Any) -> None:
    like = jt.ShapeDtype((), np.float32)
    got = wrap(lambda x: jt.pure_callback(lambda x: 3, like, x) * 2)(1.0)
    assert got == 6 and np.asarray(got).dtype == np.float32


def test_declarations_are_checked() -> None:
    with pytest.raises(TypeError, match="jt.ShapeDtype"):
        jt.pure_callback(np.sin, "x", X)
    with pytest.raises(TypeError, match="callable"):
        jt.pure_callback(3, X, X)


# How often


def test_pure_ones_are_dropped_and_merged(jit: Any) -> None:
    calls: list[int] = []

    def host(x: Any) -> Any:
        calls.append(1)
        return np.sin(x)

    def f(x: Any) -> Any:
        unused = jt.pure_callback(host, x, x + 1)
        assert unused is not None
        return jt.pure_callback(host, x, x) + jt.pure_callback(host, x, x)

    np.testing.assert_allclose(jt.jit(f)(X), 2 * np.sin(X))
    assert len(calls) == 1


def test_effects_are_neither_dropped_nor_merged(jit: Any) -> None:
    calls: list[float] = []

    def f(x: Any) -> Any:
        for _ in range(2):
            jt.io_callback(lambda x: calls.append(float(x)), None, x)
        jt.py_func(lambda x: calls.append(float(x) + 1), None, x)
        jt.io_callback(lambda: calls.append(-1), None, ordered=False)
        return x

    assert jit(f)(5.0) == 5.0
    assert sorted(calls) == [-1, 5, 5, 6]


statements = st.recursive(
    st.just("note"),
    lambda inner: st.one_of(
        st.tuples(st.just("seq"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("if"), st.booleans(), inner, inner),
        st.tuples(st.just("for"), st.integers(0, 3), inner),
        st.tuples(st.just("while"), st.integers(0, 2), inner),
        st.tuples(st.just("jit"), inner),
        st.tuples(st.just("switch"), st.integers(0, 2), st.lists(inner, min_size=3, max_size=3)),
    ),
    max_leaves=6,
)


@settings(max_examples=12, deadline=None)
@given(program=statements, backend=st.sampled_from(BACKENDS), differentiated=st.booleans())
def test_effects_happen_in_program_order(program: Any, backend: str, differentiated: bool) -> None:
    """Random nests of branches and loops: the log is that of plain Python."""
    log: list[float] = []

    def run(s: Any, x: Any) -> Any:
        if s == "note":
            jt.io_callback(lambda v: log.append(round(float(v), 9)), None, x)
            return jt.sin(x) + 1.0
        kind, *rest = s
        if kind == "seq":
            for part in rest[0]:
                x = run(part, x)
            return x
        if kind == "if":
            flag, a, b = rest
            return jt.cond((x > -100) == flag, lambda x: run(a, x), lambda x: run(b, x), x)
        if kind == "for":
            return jt.fori_loop(0, rest[0], lambda i, c: run(rest[1], c) + i, x)
        if kind == "while":

            def test(c: Any) -> Any:
                jt.io_callback(lambda v: log.append(float(v)), None, c[0])
                return c[0] < rest[0]

            return jt.while_loop(test, lambda c: (c[0] + 1, run(rest[1], c[1])), (0, x))[1]
        if kind == "switch":
            index = (x * 0).astype(np.int64) + rest[0]
            branches = [lambda x, b=b: run(b, x) for b in rest[1]]
            return jt.switch(index, branches, x)
        return jt.jit(lambda x: run(rest[0], x))(x)

    def f(x: Any) -> Any:
        return run(program, x)

    start = np.float64(0.25)
    want = (jt.value_and_grad(f) if differentiated else f)(start)
    expected, log[:] = list(log), []
    got = jt.jit(jt.value_and_grad(f) if differentiated else f, backend=backend)(start)
    assert log == expected
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_a_condition_may_have_effects_where_the_body_has_none(wrap: Any) -> None:
    log: list[int] = []

    def test(i: Any) -> Any:
        jt.io_callback(lambda i: log.append(int(i)), None, i)
        return i < 3

    assert wrap(lambda n: jt.while_loop(test, lambda i: i + 1, n))(0) == 3
    assert log == [0, 1, 2, 3]


def test_effects_happen_once_under_higher_derivatives(wrap: Any) -> None:
    log: list[float] = []

    def f(x: Any) -> Any:
        jt.io_callback(lambda v: log.append(float(v)), None, x * 10)
        return x**3

    for g, value in [
        (jt.grad(f), 12.0),
        (jt.grad(jt.grad(f)), 12.0),
        (lambda x: jt.jvp(jt.grad(f), (x,), (1.0,))[1], 12.0),
        (lambda x: jt.vjp(f, x)[1](1.0)[0], 12.0),
    ]:
        log.clear()
        assert wrap(g)(2.0) == pytest.approx(value)
        assert log == [20.0]


# Derivatives


def test_a_callback_has_no_derivative_and_says_what_gives_it_one(wrap: Any) -> None:
    for call in KINDS:
        with pytest.raises(TypeError, match="jt.custom_vjp or jt.custom_jvp"):
            wrap(jt.grad(lambda x, call=call: call(np.sin, F64, x)))(1.0)
        with pytest.raises(TypeError, match="jt.custom_vjp or jt.custom_jvp"):
            wrap(lambda x, call=call: jt.jvp(lambda x: call(np.sin, F64, x), (x,), (x,)))(1.0)
    assert wrap(jt.grad(lambda x: x * jt.pure_callback(np.sin, F64, jt.stop_gradient(x))))(
        1.0
    ) == pytest.approx(np.sin(1.0))


def host_sin() -> Any:
    """sin in Python, with a derivative in Python."""

    @jt.custom_vjp
    def f(x: Any) -> Any:
        return jt.py_func(lambda x: np.sin(x), x, x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * jt.py_func(lambda x: np.cos(x), x, x),))
    return f


def test_a_python_function_with_a_python_gradient(wrap: Any) -> None:
    f = host_sin()
    np.testing.assert_allclose(wrap(f)(X), np.sin(X))
    np.testing.assert_allclose(wrap(jt.grad(lambda x: jt.sum(f(x) ** 2)))(X), np.sin(2 * X))
    np.testing.assert_allclose(wrap(jt.vmap(f))(X), np.sin(X))
    np.testing.assert_allclose(wrap(jt.vmap(jt.grad(f)))(X), np.cos(X))
    jt.check_grads(f, (X,), modes=("rev",))

    def loop(x: Any) -> Any:
        return jt.sum(jt.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1])), (0, x))[1])

    def plain(x: Any) -> Any:
        return jt.sum(jt.sin(jt.sin(jt.sin(x))))

    np.testing.assert_allclose(wrap(jt.grad(loop))(X), jt.grad(plain)(X), rtol=1e-12)


def test_a_tangent_in_python_goes_to_second_order(wrap: Any) -> None:
    def trigonometric(phase: int) -> Any:
        def host(x: Any) -> Any:
            return np.sin(x + phase * np.pi / 2)

        f = jt.custom_jvp(lambda x: jt.pure_callback(host, x, x))
        f.defjvp(lambda p, t: (f(*p), trigonometric(phase + 1)(*p) * t[0]))
        return f

    f = trigonometric(0)
    np.testing.assert_allclose(wrap(jt.grad(lambda x: jt.sum(f(x))))(X), np.cos(X))
    second = jt.grad(lambda x: jt.sum(jt.grad(lambda x: jt.sum(f(x)))(x)))
    np.testing.assert_allclose(wrap(second)(X), -np.sin(X), atol=1e-15)


# Under vmap


def test_vmap_calls_once_per_example(wrap: Any) -> None:
    shapes: list[Any] = []

    def host(x: Any) -> Any:
        shapes.append(np.shape(x))
        return np.asarray(x * 2)

    x = np.arange(6.0).reshape(3, 2)
    for call in (jt.pure_callback, jt.py_func):
        shapes.clear()
        np.testing.assert_allclose(wrap(jt.vmap(lambda x, call=call: call(host, x, x)))(x), x * 2)
        assert shapes == [(2,)] * 3


# Around


def test_py_func_warns_once() -> None:
    from jitney.tracer.control import callbacks

    callbacks._warned = False
    with pytest.warns(UserWarning, match="prototyping") as record:
        jt.py_func(np.sin, X, X)
        jt.py_func(np.sin, X, X)
    assert len(record) == 1 and record[0].filename == __file__


def test_debug_print(capsys: Any, wrap: Any) -> None:
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            jt.debug_print("step {i}: {}", c, i=i)
            return c * 2

        return jt.fori_loop(0, 3, body, x)

    assert wrap(f)(1.0) == 8.0
    assert capsys.readouterr().out.split() == "step 0: 1.0 step 1: 2.0 step 2: 4.0".split()
    with pytest.raises((IndexError, KeyError)):
        jt.debug_print("{missing}")


def test_debug_print_formats_as_str_format(capsys: Any, wrap: Any) -> None:
    def f(x: Any) -> Any:
        jt.debug_print("{:.3f} {y:>4d} {z[1]:5.1f} {y!r}", x.sum(), y=x.size, z=[x[0], x[1]])
        return x

    wrap(f)(np.array([1.0, 2.0]))
    assert capsys.readouterr().out == "3.000    2   2.0 2\n"


def test_callbacks_may_use_jitney_themselves(wrap: Any) -> None:
    inner = jt.jit(lambda x: jt.sin(x) * 2)

    def host(x: Any) -> Any:
        return inner(x) + jt.grad(lambda x: jt.sum(x * x))(x)

    f = wrap(lambda x: jt.pure_callback(host, x, x) + 1)
    np.testing.assert_allclose(f(X), np.sin(X) * 2 + 2 * X + 1)


def test_callbacks_from_many_threads() -> None:
    f = jt.jit(lambda x: jt.io_callback(lambda x: x * 2, F64, x) + 1)
    f(0.0)
    wrong: list[Any] = []

    def work(k: int) -> None:
        for i in range(200):
            if f(float(k * i)) != 2 * k * i + 1:
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_each_ordered_effect_waits_for_the_one_before() -> None:
    def f(x: Any) -> Any:
        for ordered in (True, False, True):
            jt.io_callback(lambda v: None, None, x, ordered=ordered)
        return x

    first, apart, last = (op for op in jt.jit(f).trace(1.0).ops if op.name == "io_callback")
    assert last.operands[-1].op is first
    assert apart.operands[-1].op is not first


def test_graphs_with_callbacks_print() -> None:
    text = str(jt.jit(lambda x: jt.pure_callback(np.sin, x, x)).trace(X))
    assert "pure_callback" in text and "python sin" in text
