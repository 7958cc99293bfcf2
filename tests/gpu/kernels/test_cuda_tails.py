"""Small kernels that follow others on the emulated GPU: the last block does them in the same launch."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import TARGET, assembled, compiled, run
from programs import build, expected, loop, same, sample
from test_cuda_kernels import check

from jitney.codegen.cuda.program import Launch
from jitney.codegen.device.compile import compile_device
from jitney.ir.passes import optimise
from jitney.ir.types import TensorType
from jitney.runtime.cuda.emulator.machine import ORDERS


def total(b, x):
    return b.op("sum", x, axes=tuple(range(len(x.shape))))


def extremes(b, x):
    return [b.op(name, x, axis=0) for name in ("argmax", "argmin")]


def variance(b, x):
    n = b.const(1 / x.tensor.size, x.dtype)
    mean = b.mul(total(b, x), n)
    d = b.sub(x, b.broadcast(mean, shape=x.shape, dims=()))
    return b.mul(total(b, b.mul(d, d)), n)


def logsumexp(b, x):
    most = b.op("max", x, axes=(0,))
    shifted = b.sub(x, b.broadcast(most, shape=x.shape, dims=()))
    return b.add(b.log(total(b, b.exp(shifted))), most)


def running(b, x):
    return b.op("cumsum", x, axis=0, reverse=False)


PROGRAMS = [total, extremes, variance, logsumexp, running]


def launches(program):
    return [s for s in program.steps if isinstance(s, Launch)]


@pytest.mark.parametrize("size", [17_000, 70_001])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_results(program, size):
    check(program, sample((size,), "f4"))


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("program", [total, extremes, running], ids=lambda p: p.__name__)
def test_any_block_may_be_the_last(program, order):
    check(program, sample((20_000,), "f8"), order=order)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_the_order_of_blocks_changes_no_bit(order):
    x = sample((40_000,), "f4")
    program = compiled(optimise(build(total, x)), [x])
    np.testing.assert_array_equal(run(program, [x], order), run(program, [x]))


@pytest.mark.parametrize(("program", "count"), [(total, 1), (variance, 1), (running, 2)])
def test_launches_of_one_block_are_saved(program, count):
    x = sample((70_001,), "f4")
    found = compiled(optimise(build(program, x)), [x])
    assert len(launches(found)) == count
    assert found.counter_words == 1, "blocks count themselves"


def test_small_kernels_in_a_row_are_one():
    """Without a count: there is one block only."""

    def norms(b, x):
        y = b.op("cumsum", x, axis=0, reverse=False)
        return b.op("cumsum", b.mul(y, y), axis=0, reverse=True)

    x = sample((100,), "f8")
    found = compiled(optimise(build(norms, x)), [x])
    assert len(launches(found)) == 1 and found.counter_words == 0
    check(norms, x)


def test_blocks_count_anew_in_each_trip_of_a_loop():
    def step(b, i, x):
        return b.mul(
            x, b.broadcast(b.div(b.const(1.0, x.dtype), total(b, x)), shape=x.shape, dims=())
        )

    def program(b, x):
        return loop(b, 3, lambda b, i, x: b.add(step(b, i, x), x), x)

    check(program, np.abs(sample((17_000,), "f8")) + 1)


def test_errors_are_reported_from_both_parts():
    def program(b, x, i):
        y = b.op("gather", x, i, axes=(0,), mode="check")
        return total(b, y)

    x = sample((50,), "f4")
    i = np.arange(20_000) % 50
    check(program, x, i)
    i[777] = 50
    check(program, x, i)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_kernels_fit_registers(arch):
    for program in PROGRAMS:
        graph = optimise(build(program, types=[TensorType((10_000_000,), np.dtype("f4"))]))
        report = assembled(compile_device(graph, TARGET).ir, arch)
        if report is None:
            pytest.skip("there is no ptxas")
        assert max(k.registers for k in report.kernels.values()) <= 64


def test_large_kernels_stay_apart():
    """One block would take long."""

    def program(b, x):
        y = b.op("cumsum", x, axis=1, reverse=False)
        return b.op("cumsum", y, axis=0, reverse=False)

    x = sample((300, 400), "f4")
    graph = optimise(build(program, x))
    found = compiled(graph, [x])
    assert len(launches(found)) > 1
    same(run(found, [x]), expected(graph, [x]))
