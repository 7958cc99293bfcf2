"""Loops, tapes, callbacks and interrupts as native code, against the interpreter."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.program.compile import compile_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.ops.control.callbacks import PythonFunction
from jitney.ir.types import BOOL, F32, F64, I64, TAPE, TensorType
from jitney.runtime.executable import Executable
from jitney.runtime.native.host import current_target

INT = TensorType((), I64)


def region(types, rule) -> Graph:
    """A region whose outputs are `rule(builder, *params)`."""
    graph = Graph("region")
    params = [graph.add_param(t) for t in types]
    graph.outputs = list(rule(Builder(graph), *params))
    return graph


def native(graph: Graph, *arrays):
    return Executable(compile_graph(graph, current_target())).run(list(arrays))


def check(graph: Graph, *arrays) -> None:
    want = evaluate(graph, list(arrays))
    got = native(graph, *arrays)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)


def scan_graph(shape, length: int, reverse: bool) -> Graph:
    """c = c * k + x; gives c, c * c before it, and the old c: one carry, two stacked results."""
    type_ = TensorType(shape, F64)

    def body(b, k, c, x):
        y = b.op("add", b.mul(c, k), x)
        return y, b.mul(y, y), c

    graph = Graph("scan")
    k, c = graph.add_param(type_), graph.add_param(type_)
    xs = graph.add_param(TensorType((length, *shape), F64))
    inner = region([type_] * 3, body)
    graph.outputs = list(
        Builder(graph).op(
            "scan", k, c, xs, regions=(inner,), consts=1, carries=1, length=length, reverse=reverse
        )
    )
    return graph


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 9])
@pytest.mark.parametrize("shape", [(), (3,), (2, 100), (0, 4)])
def test_scan(shape, length, reverse):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in (shape, shape, (length, *shape))]
    check(scan_graph(shape, length, reverse), *arrays)


def test_scan_over_a_strided_array_copies_nothing():
    graph = scan_graph((4,), 5, False)
    wide = np.random.default_rng(1).standard_normal((10, 8))
    xs = wide[::2, ::2]
    k, c = np.ones(4), np.zeros(4)
    strides = [(1,), (1,), tuple(s // 8 for s in xs.strides)]
    got = Executable(compile_graph(graph, current_target(), strides)).run([k, c, xs])
    for g, w in zip(got, evaluate(graph, [k, c, xs]), strict=True):
        np.testing.assert_allclose(g, w)


def tape_graph(width: int) -> Graph:
    """Push x and i at each of n trips, then pop them all again, summing i * x."""
    value = TensorType((width,), F64)

    def push(b, n, i, x, t):
        return (
            b.op("add", i, b.const(1, I64)),
            b.mul(x, b.full_like(x, 1.0001)),
            b.op("tape_push", t, x, i),
        )

    def pop(b, i, total, t):
        t, x, k = b.op("tape_pop", t, types=(value, INT))
        weighted = b.mul(x, b.broadcast_to(b.convert(k, dtype=F64), (width,)))
        return b.sub(i, b.const(1, I64)), b.op("add", total, weighted), t

    graph = Graph("tape")
    n, x = graph.add_param(INT), graph.add_param(value)
    b = Builder(graph)
    forward = (
        region([INT, INT, value, TAPE], lambda b, n, i, x, t: [b.lt(i, n)]),
        region([INT, INT, value, TAPE], push),
    )
    i, y, t = b.op(
        "while", n, b.const(0, I64), x, b.tape_new(), regions=forward, consts=1, checkpoint="all"
    )
    backward = (
        region([INT, value, TAPE], lambda b, i, s, t: [b.gt(i, b.const(0, I64))]),
        region([INT, value, TAPE], pop),
    )
    j, total, t = b.op("while", i, b.zeros(value), t, regions=backward, consts=0, checkpoint="all")
    graph.outputs = [y, total, j]
    return graph


@pytest.mark.parametrize("trips", [0, 1, 2, 100, 5000])
@pytest.mark.parametrize("width", [1, 50, 3000])
def test_tape(trips, width):
    x = np.random.default_rng(2).standard_normal(width)
    check(tape_graph(width), np.array(trips), x)


def test_an_empty_tape_gives_zeros_and_empty_tapes():
    graph = Graph("empty")
    b = Builder(graph)
    x = graph.add_param(TensorType((3,), F64))
    outer, y, inner, z = b.op("tape_pop", b.tape_new(), types=(x.type, TAPE, INT))
    inner, w = b.op("tape_pop", inner, types=(x.type,))
    inner = b.op("tape_push", b.op("tape_push", inner, x), b.add(x, x))  # now it is a tape
    outer = b.op("tape_push", outer, inner)
    outer, inner = b.op("tape_pop", outer, types=(TAPE,))
    inner, twice = b.op("tape_pop", inner, types=(x.type,))
    inner, once = b.op("tape_pop", inner, types=(x.type,))
    inner, none = b.op("tape_pop", inner, types=(x.type,))
    graph.outputs = [y, z, w, twice, once, none]
    x = np.array([1.0, -2.0, 3.0])
    got = native(graph, x)
    for g, want in zip(got, [0 * x, np.array(0), 0 * x, 2 * x, x, 0 * x], strict=True):
        np.testing.assert_array_equal(g, want)


def test_memory_of_tapes_is_given_back():
    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4  # KiB

    executable = Executable(compile_graph(tape_graph(1000), current_target()))
    arrays = [np.array(2000), np.ones(1000)]
    executable.run(arrays)  # 16 MB of tape
    before = resident()
    for _ in range(20):
        executable.run(arrays)
    assert resident() - before < 100_000  # KiB; leaking would add 320 MB


def lanes_graph(shape, dtype) -> Graph:
    """Collatz-like: halve or reduce until below one, counting trips, for each element."""
    scalar, count = TensorType((), dtype), TensorType((), I64)

    def body(b, limit, x, n):
        return b.mul(x, b.const(0.5, dtype)), b.op("add", n, b.const(1, I64))

    graph = Graph("lanes")
    limit = graph.add_param(TensorType(shape, dtype))
    x = graph.add_param(TensorType(shape, dtype))
    b = Builder(graph)
    regions = (
        region([scalar, scalar, count], lambda b, limit, x, n: [b.gt(x, limit)]),
        region([scalar, scalar, count], body),
    )
    start = b.zeros(TensorType(shape, I64))
    graph.outputs = list(b.op("lanes_while", limit, x, start, regions=regions, consts=1))
    return graph


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (1000,), (33, 65), (0, 3)])
def test_each_lane_has_its_own_trip_count(shape, dtype):
    rng = np.random.default_rng(3)
    x = (10.0 ** rng.uniform(-3, 9, shape)).astype(dtype)
    x = np.asarray(x)
    x[...] = np.where(rng.random(shape) < 0.1, np.nan, x)
    check(lanes_graph(shape, dtype), np.ones(shape, dtype), x)


def test_callback_gets_copies_and_its_exception_comes_out_as_raised():
    type_ = TensorType((3,), F64)

    def function(x):
        if x[0] > 5:
            raise ZeroDivisionError("the user's own")
        x[...] = 7  # a copy: nobody else sees this
        return (np.arange(3.0),)

    graph = Graph("callback")
    x = graph.add_param(type_)
    b = Builder(graph)
    doubled = b.mul(x, b.full_like(x, 2.0))
    y = b.op("pure_callback", doubled, function=PythonFunction(function, (type_,)))
    graph.outputs = [b.op("add", y, doubled)]
    executable = Executable(compile_graph(graph, current_target()))
    np.testing.assert_array_equal(executable.run([np.ones(3)])[0], [2.0, 3.0, 4.0])
    with pytest.raises(ZeroDivisionError, match="the user's own"):
        executable.run([np.full(3, 9.0)])
    np.testing.assert_array_equal(executable.run([np.ones(3)])[0], [2.0, 3.0, 4.0])


def test_callback_result_of_another_type_is_an_error_that_shows_both():
    graph = Graph("callback")
    x = graph.add_param(TensorType((3,), F64))
    wrong = PythonFunction(lambda x: (x.astype(np.float32),), (TensorType((3,), F64),), "halve")
    graph.outputs = [Builder(graph).op("pure_callback", x, function=wrong)]
    with pytest.raises(TypeError, match=r"halve gave .*float32.*\(3,\).*float64"):
        native(graph, np.ones(3))


def test_callbacks_with_effects_run_once_each_in_order():
    seen = []
    graph = Graph("ordered")
    token = Builder(graph).create_token()
    note = PythonFunction(lambda i: (seen.append(int(i)), ())[1], ())

    def body(b, i, token):
        return b.op("add", i, b.const(1, I64)), b.op("io_callback", i, token, function=note)

    types = [INT, token.type]
    regions = (region(types, lambda b, i, t: [b.lt(i, b.const(5, I64))]), region(types, body))
    b = Builder(graph)
    i, _ = b.op("while", b.const(0, I64), token, regions=regions, consts=0, checkpoint="all")
    graph.outputs = [i]
    assert native(graph)[0] == 5
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_ctrl_c_ends_a_long_loop_and_leaves_everything_usable():
    forever = jt.jit(
        lambda n: jt.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1.0), (0, 1.0)
        )
    )
    assert forever(10)[0] == 10
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        forever(10**13)
    assert time.perf_counter() - start < 20
    timer.join()
    assert forever(10)[0] == 10


def test_a_flag_may_be_any_boolean_of_the_carry():
    graph = Graph("flag")
    on = graph.add_param(TensorType((), BOOL))
    types = [TensorType((), BOOL), INT]
    regions = (
        region(types, lambda b, go, n: [go]),
        region(types, lambda b, go, n: [b.lt(n, b.const(3, I64)), b.op("add", n, b.const(1, I64))]),
    )
    b = Builder(graph)
    graph.outputs = list(
        b.op("while", on, b.const(0, I64), regions=regions, consts=0, checkpoint="all")
    )
    check(graph, np.array(True))
    check(graph, np.array(False))
