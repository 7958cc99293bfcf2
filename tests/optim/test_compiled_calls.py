"""Compiled calls: objects as arguments, rates in closures, and what another process recalls."""

import subprocess
import sys
import textwrap

import numpy as np

import jitney as jt
from jitney import nn, optim

PROGRAM = """
    import numpy as np
    import jitney as jt
    w = np.ones(3)
    opt = jt.optim.Adam(w, 1e-3)
    step = jt.jit(opt.step, inplace="require")
    step(np.ones(3))
    print(sorted(step.cache_info().entries[0].seconds), w.round(6))
"""


class Net(nn.Module):
    buffers = ("mean",)

    def __init__(self):
        r = np.random.default_rng(0)
        self.first, self.second = r.standard_normal((4, 4)), r.standard_normal(4)
        self.mean, self.tied = np.zeros(4), self.first

    def __call__(self, x):
        x = np.tanh(x @ self.first)
        self.mean *= 0.9
        self.mean += 0.1 * x.mean(axis=0)
        return x @ self.tied @ self.second


def loss(net, x, y):
    return ((net(x) - y) ** 2).mean()


def test_modules_with_state_ties_and_frozen_arrays():
    x, y = np.random.default_rng(1).standard_normal((8, 4)), np.arange(8.0)
    results = []
    for compiled in (False, True):
        net = Net()
        net.frozen = ("second",)
        first, second = net.first, net.second.copy()
        opt = optim.Adam(net, 0.01, weight_decay=0.1)
        step = lambda opt, x, y: opt.minimize(loss, x, y)  # noqa: E731
        step = jt.jit(step, inplace="require") if compiled else step
        values = [float(step(opt, x, y)) for _ in range(5)]
        assert net.first is first and net.tied is first and values[-1] < values[0]
        np.testing.assert_array_equal(net.second, second)
        assert opt.slots["mean"].first.shape == (4, 4)
        results.append((values, net.first, net.mean))
    for eager, mine in zip(*results, strict=True):
        np.testing.assert_allclose(mine, eager, rtol=1e-10)


def test_a_rate_in_a_closure_is_read_at_each_call():
    rate = np.array(1.0)
    opt = optim.sgd(rate)
    update = jt.jit(lambda g: opt.update(g, opt.init(g))[0])
    assert update(np.ones(1)) == -1
    rate[...] = 0.25
    assert update(np.ones(1)) == -0.25


def test_another_process_traces_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("JITNEY_CACHE_DIR", str(tmp_path))
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    printed = [subprocess.check_output(program, text=True) for _ in range(2)]
    assert printed == [
        "['compile', 'trace'] [0.999 0.999 0.999]\n",
        "['recall'] [0.999 0.999 0.999]\n",
    ]


MADE_ANEW = {
    "Adam": lambda w, k: optim.Adam(w, 0.1 * k),
    "options": lambda w, k: optim.AdamW(w, 0.1, weight_decay=0.1 * k),
    "SGD": lambda w, k: optim.SGD(w, 0.1 * k, momentum=0.9, dampening=0.1 * k),
    "schedule": lambda w, k: optim.RMSprop(w, optim.warmup_cosine_decay_schedule(0.1 * k, 1, 2, 9)),
    "chain": lambda w, k: optim.Optimizer(w, optim.chain(optim.clip(k), optim.lion(0.1))),
    "L-BFGS": lambda w, k: optim.LBFGS(w, optim.one_cycle(0.1 * k, 30), history_size=3),
}


def test_optimisers_of_equal_settings_that_are_made_anew_are_known():
    """Other rates are other numbers, other settings are compiled; each has its own state."""
    for name, make in MADE_ANEW.items():
        step = jt.jit(lambda opt, g: opt.step(g))
        for k in (1, 2, 1, 2):
            w, plain = np.arange(1.0, 4.0), np.arange(1.0, 4.0)
            mine, other = make(w, k), make(plain, k)
            for n in range(3):
                step(mine, n + w)
                other.step(n + plain)
            np.testing.assert_allclose(w, plain, rtol=1e-12, err_msg=name)
            if name == "Adam":
                mine.lr = other.lr = 0.5
                step(mine, w)
                other.step(plain)
                np.testing.assert_allclose(w, plain, rtol=1e-12)
        assert step.cache_info().misses == (1 if name == "Adam" else 2), name
