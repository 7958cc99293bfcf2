"""Limits of the machine: stored, raised by what was seen, interpolated."""

import pytest

from jitney.runtime import machine_limits as ml
from jitney.runtime.machine_limits import MachineLimits
from jitney.runtime.yardsticks import chain, product, reads, sort, stream

LIMITS = MachineLimits(
    ((1 << 10, 4e10), (1 << 20, 1e10)),
    ((4, 1e11), (8, 5e10)),
    ((4, 5e10), (8, 2e10)),
    ((1 << 15, 1e9), (1 << 25, 1e8)),
    3e9,
    4e9,
)


@pytest.fixture
def stored(monkeypatch):
    """Limits in the place of those of this machine, and what is written to the disk."""
    written = {}
    monkeypatch.setattr(ml, "_known", {ml._key(0): LIMITS})
    monkeypatch.setattr(ml, "_store", lambda key, limits: written.update({key: limits}))
    return written


def test_between_two_sizes_the_logarithm_counts():
    assert LIMITS.bandwidth(1 << 10) == pytest.approx(4e10)
    assert LIMITS.bandwidth(1 << 15) == pytest.approx(2e10)
    assert LIMITS.bandwidth(1 << 30) == pytest.approx(1e10)
    assert LIMITS.access_rate(1 << 20) == pytest.approx(10**8.5)
    assert LIMITS.peak_flops(2) == 1e11 and LIMITS.operation_rate(8) == 2e10


def test_who_beats_a_limit_raises_it_for_good(stored):
    raised = ml.machine_limits(moved={1 << 15: 3e10}, flops={8: 6e10})
    assert raised.bandwidth(1 << 15) == pytest.approx(3e10)
    assert raised.peak_flops(8) == 6e10 and raised.peak_flops(4) == 1e11
    assert list(stored.values()) == [raised] and ml.machine_limits() is raised
    assert ml.machine_limits(moved={1 << 15: 1e9}, flops={8: 1.0, 2: 1e20}) is not None
    assert ml.machine_limits() == raised


def test_what_is_stored_is_read_back():
    ml._store("limits of a test", LIMITS)
    assert ml._stored("limits of a test") == LIMITS
    ml.disk_cache().discard("limits of a test")


def test_yardsticks_are_programs():
    from jitney.runtime.compile import compile

    made = [stream(256), product("f64"), chain("f32"), reads(1 << 12), sort()]
    for yardstick in made[:1] + made[2:4]:
        compile(yardstick.graph).run(yardstick.arrays)
    assert all(yardstick.amount > 0 for yardstick in made)
    assert ml._slots(made[2].graph, ml.CompileOptions()) > 50
