"""What a function asks the world, or tells it, happens at each call, or is refused."""

from __future__ import annotations

import datetime
import logging
import os
import pathlib
import sys
import time
import warnings
from time import perf_counter

import numpy as np
import pytest

import jitney as jt


@pytest.mark.parametrize("clock", [time.time, perf_counter, time.monotonic_ns, time.process_time])
def test_clocks_go_on(clock):
    def f(x):
        first = clock()
        return first, clock(), x

    compiled = jt.jit(f)
    before = clock()
    times = [t for _ in range(3) for t in compiled(1.0)[:2]]
    assert before <= times[0] and times == sorted(times) and times[-1] <= clock()
    assert all(type(t) is type(before) for t in times)


def test_a_clock_in_a_loop_and_in_a_branch():
    @jt.jit
    def f(n):
        last, steps = 0.0, 0
        while steps < n:
            now = perf_counter()
            if now < last:
                return -1
            last = now
            steps += 1
        return steps

    assert f(50) == 50


def test_a_clock_in_a_gradient():
    def f(x):
        start = time.time()
        y = x * x
        return y + 0.0 * (time.time() - start)

    assert jt.jit(jt.grad(f))(3.0) == 6.0


def test_the_environment_is_compared(monkeypatch):
    @jt.jit
    def f(x):
        if os.getenv("JITNEY_TEST_MODE") == "minus":
            return -x
        return x * float(os.environ.get("JITNEY_TEST_FACTOR", "1"))

    assert f(2.0) == 2.0
    monkeypatch.setenv("JITNEY_TEST_FACTOR", "3")
    assert f(2.0) == 6.0
    monkeypatch.setenv("JITNEY_TEST_MODE", "minus")
    assert f(2.0) == -2.0


def test_logs_warnings_and_writes_happen_at_each_call(caplog, capsys):
    log = logging.getLogger("jitney.test")

    @jt.jit
    def f(x):
        log.warning("sum %.1f", x.sum())
        logging.error(f"first {x[0]}")
        warnings.warn(f"mean {x.mean()}", RuntimeWarning)  # noqa: B028
        sys.stdout.write("written\n")
        return x

    for scale in (1.0, 2.0):
        with pytest.warns(RuntimeWarning, match=f"mean {scale}") as warned:
            f(np.full(2, scale))
        assert warned[0].filename == __file__
    assert [r.getMessage() for r in caplog.records] == [
        "sum 2.0",
        "first 1.0",
        "sum 4.0",
        "first 2.0",
    ]
    assert capsys.readouterr().out == "written\n" * 2


ASKED = [
    lambda x: x + datetime.datetime.now().timestamp(),
    lambda x: (x, datetime.date.today()),
    lambda x: (x, time.ctime()),
    lambda x: x + float(open(__file__).read()),  # noqa: SIM115
    lambda x: x + float(input()),
    lambda x: x + len(sys.stdin.readline()),
    lambda x: x + os.path.exists(__file__),
    lambda x: x + len(os.listdir(".")),
    lambda x: x + np.loadtxt(__file__),
    lambda x: x + len(pathlib.Path(__file__).read_text()),
]


@pytest.mark.parametrize("f", ASKED)
def test_what_cannot_be_asked_at_each_call_is_refused(f):
    with pytest.raises(jt.errors.ImpureFunctionError, match="outside of the program") as caught:
        jt.jit(f)(1.0)
    assert "test_world.py" in str(caught.value)


def test_times_and_paths_that_are_given_are_values():
    @jt.jit
    def f(x):
        year = int(time.strftime("%Y", time.gmtime(0)))
        return x + year + len(pathlib.Path("a/b").parts)

    assert f(1.0) == 1973.0
