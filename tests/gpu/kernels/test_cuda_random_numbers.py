"""`jt.random` on the emulated GPU: the bits of the CPU, in kernels that spill nothing."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import assembled, compiled, run

import jitney as jt
from jitney.ir.passes import optimise
from jitney.runtime.cuda.emulator.machine import ORDERS

R = jt.random
KEY = R.key(42)
ARCHITECTURES = ("sm_75", "sm_80", "sm_90")

DRAWS = {
    "bits": lambda k: R.bits(k, (777,)),
    "uniform": lambda k: R.uniform(k, (33, 31), np.float32),
    "normal": lambda k: R.normal(k, (600,)),
    "normal f4": lambda k: R.normal(k, (600,), np.float32, 1.0, 2.0),
    "split": lambda k: R.split(k, 5),
    "integers": lambda k: R.integers(k, 0, 2**40, (100,)),
    "gamma": lambda k: R.gamma(k, np.linspace(0.1, 5, 80)),
    "poisson": lambda k: R.poisson(k, np.linspace(0.1, 50, 80)),
    "permutation": lambda k: R.permutation(k, 100),
    "categorical": lambda k: R.categorical(k, np.zeros((5, 7))),
}


def program(draw):
    graph = optimise(jt.jit(draw).trace(KEY))
    return compiled(graph, [KEY])


@pytest.mark.parametrize("name", DRAWS)
def test_the_numbers_are_those_of_the_cpu(name):
    draw = DRAWS[name]
    (got,) = run(program(draw), [KEY])
    np.testing.assert_array_equal(got, draw(KEY))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_the_order_of_threads_does_not_matter(order):
    (got,) = run(program(DRAWS["gamma"]), [KEY], order)
    np.testing.assert_array_equal(got, DRAWS["gamma"](KEY))


@pytest.mark.parametrize(
    ("name", "arch"),
    [*((n, a) for n in ("uniform", "normal f4", "normal") for a in ARCHITECTURES),
     ("gamma", "sm_75"), ("poisson", "sm_90")],
)  # fmt: skip
def test_nothing_spills(name, arch):
    report = assembled(program(DRAWS[name]).ir, arch)
    if report is not None:
        assert all(k.registers <= 128 for k in report.kernels.values())


def test_a_generator_feeds_loops_on_the_device(gpu):
    """Where the emulated device is the one that programs run on."""
    rng = R.default_rng(3)

    def walk(x):
        return jt.fori_loop(0, 3, lambda i, c: c + rng.normal(size=4), x)

    start = rng.state
    want = walk(np.zeros(4))
    after, rng.state = rng.state, start
    got = np.asarray(jt.jit(walk, device="cuda")(np.zeros(4)))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(rng.state, after)
