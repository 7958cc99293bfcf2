"""How long calls take: functions in turns, warmed up, in batches that a clock can tell apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitney as jt

_BATCH_SECONDS = 200e-6  # that a batch of calls takes at least: the clock itself takes some 50 ns
_LEAST = 5  # rounds
_MOST = 2000


class Timing(NamedTuple):
    """Seconds of one call: the median of the rounds, and the quartiles. `first`: of the first call."""

    median: float
    low: float
    high: float
    rounds: int
    first: float


class Call:
    """A call to be timed, again and again. One that changes its arguments gets new copies each time."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self.function = function
        self.arguments = tuple(arguments)
        self.count = 1  # calls in a batch
        kept = _copies(self.arguments)
        start = time.perf_counter()
        self.result = finished(function(*kept))
        self.first = time.perf_counter() - start
        self.changes = not _alike(kept, self.arguments)
        self.times: list[float] = []

    def warm(self) -> None:
        """Find how many calls make a batch."""
        self.batch()
        while not self.changes and (seconds := self.batch()) < _BATCH_SECONDS:
            self.count *= min(max(2, int(_BATCH_SECONDS / max(seconds, 1e-9))), 100)

    def batch(self) -> float:
        """Seconds of one batch."""
        function, arguments = self.function, self.arguments
        if self.changes:
            arguments = _copies(arguments)
        calls = range(self.count)
        start = time.perf_counter()
        for _ in calls:
            result = function(*arguments)
        finished(result)
        return time.perf_counter() - start

    def timing(self) -> Timing:
        low, median, high = np.quantile(self.times, (0.25, 0.5, 0.75))
        return Timing(float(median), float(low), float(high), len(self.times), self.first)


def in_turns(calls: Sequence[Call], seconds: float) -> None:
    """Time calls for so many seconds each, one after the other in every round, so that what else the
    machine does meanwhile is fair to all."""
    for call in calls:
        call.warm()
    end = time.perf_counter() + seconds * len(calls)
    for done in range(_MOST):
        if done >= _LEAST and time.perf_counter() > end:
            break
        for k in range(len(calls)):
            call = calls[(k + done) % len(calls)]  # nobody is always after the same one
            call.times.append(call.batch() / call.count)


def finished(result: Any) -> Any:
    """The result, when it is there: those of GPUs are waited for."""
    for leaf in jt.tree.leaves(result):
        if isinstance(leaf, jt.DeviceArray):
            leaf.block_until_ready()
    return result


def _copies(tree: Any) -> Any:
    return jt.tree.map(lambda x: x.copy(order="K") if type(x) is np.ndarray else x, tree)


def _alike(one: Any, other: Any) -> bool:
    """Whether arrays of equal trees hold the same bits."""
    leaves = zip(jt.tree.leaves(one), jt.tree.leaves(other), strict=False)
    return all(a.tobytes() == b.tobytes() for a, b in leaves if type(a) is type(b) is np.ndarray)
