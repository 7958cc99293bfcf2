"""Schedules: their values, and that none compiles anything from step to step."""

import numpy as np
import pytest

import jitney as jt
from jitney import optim

CASES = [
    (optim.constant_schedule(2.0), {0: 2.0, 9: 2.0}),
    (optim.piecewise_constant_schedule(1.0, {5: 0.5, 2: 0.1}), {1: 1.0, 2: 0.1, 4: 0.1, 5: 0.05}),
    (optim.linear_schedule(1.0, 3.0, 4, transition_begin=1), {0: 1.0, 1: 1.0, 3: 2.0, 9: 3.0}),
    (optim.polynomial_schedule(1.0, 0.0, 2, 10), {0: 1.0, 5: 0.25, 10: 0.0, 11: 0.0}),
    (optim.exponential_decay(1.0, 2, 0.25), {0: 1.0, 1: 0.5, 2: 0.25}),
    (optim.exponential_decay(1.0, 2, 0.25, staircase=True), {1: 1.0, 2: 0.25, 3: 0.25}),
    (optim.exponential_decay(1.0, 1, 0.5, 2, end_value=0.25), {2: 1.0, 3: 0.5, 9: 0.25}),
    (optim.exponential_decay(1.0, 1, 2.0, end_value=3.0), {1: 2.0, 9: 3.0}),
    (optim.inverse_time_decay(1.0, 2, 0.5), {0: 1.0, 2: 1 / 1.5, 3: 1 / 1.75}),
    (optim.inverse_time_decay(1.0, 2, 0.5, staircase=True), {3: 1 / 1.5}),
    (optim.cosine_decay_schedule(2.0, 10, 0.5), {0: 2.0, 5: 1.5, 10: 1.0, 99: 1.0}),
    (optim.cosine_decay_schedule(2.0, 10, exponent=2.0), {5: 0.5}),
    (optim.warmup_cosine_decay_schedule(0.0, 2.0, 4, 14, 1.0), {2: 1.0, 4: 2.0, 9: 1.5, 14: 1.0}),
    (optim.join_schedules([lambda n: 1.0 * n, lambda n: 10.0 + n], [3]), {2: 2.0, 3: 10.0, 5: 12.0}),
    (optim.cosine_onecycle_schedule(100, 1.0, 0.3, 4, 10), {0: 0.25, 15: 0.625, 30: 1.0, 100: 0.025}),
    (optim.one_cycle(1.0, 11, 0.5, "linear", 4, 10), {0: 0.25, 4.5: 1.0, 10: 0.025, 12: 0.025}),
]  # fmt: skip


def test_values():
    for schedule, points in CASES:
        for step, value in points.items():
            assert float(schedule(step)) == pytest.approx(value, rel=1e-12), (step, value)


def test_counts_are_traced():
    compiled = jt.jit(lambda n: [schedule(n) for schedule, _ in CASES])
    for step in (0, 1, 3, 7, 50):
        wanted = [float(schedule(step)) for schedule, _ in CASES]
        np.testing.assert_allclose(compiled(np.int64(step)), wanted, rtol=1e-12)
    assert compiled.cache_info().misses == 1


def test_an_optimiser_asks_for_0_first_and_compiles_once():
    w = np.zeros(1)
    opt = optim.SGD(w, optim.piecewise_constant_schedule(1.0, {1: 0.1, 2: 0.1}))
    step = jt.jit(lambda: opt.step(np.ones(1)))
    seen = []
    for _ in range(4):
        step()
        seen.append(float(w[0]))
    np.testing.assert_allclose(seen, [-1.0, -1.1, -1.11, -1.12])
    assert step.cache_info().misses == 1


def test_rates_that_are_numbers_change_without_compiling():
    params = {"w": np.zeros(1), "b": np.zeros(1)}
    opt = optim.SGD(params, 1.0, groups=[({"w": False, "b": True}, {"lr": 10.0})])
    step = jt.jit(lambda: opt.step({"w": np.ones(1), "b": np.ones(1)}))
    step()
    opt.lr = 0.5
    opt.rates[1][...] = 1.0
    step()
    assert (params["w"], params["b"], opt.lr) == (-1.5, -11.0, 0.5)
    assert step.cache_info().misses == 1
