"""How long calls take on a GPU: with a full queue, and each alone on the device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

TARGET_SECONDS = 0.02  # of one sample with a full queue
MOST_CALLS = 2000


class Clock:
    """Times calls by the host's clock, and by events on the stream of the one who calls."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self._events = [context.create_event(timing=True) for _ in range(2)]
        stream = context.create_stream()
        size = 4 * max(context.info.l2_bytes, 1 << 20) if not context.info.emulated else 1 << 10
        self._flush_bytes = size
        self._flush = context.allocate(size, stream)
        context.synchronize(stream)

    def queued(self, call: Any) -> float:
        """Seconds of a call when many are asked for at once: the host's part or the device's, whichever
        is longer. Large arrays come from memory, small ones from the cache."""
        start = time.perf_counter()
        call.wait(call())
        once = time.perf_counter() - start
        count = int(min(max(TARGET_SECONDS / max(once, 1e-7), 1), MOST_CALLS))
        start = time.perf_counter()
        for _ in range(count):
            result = call()
        call.wait(result)
        return (time.perf_counter() - start) / count

    def on_device(self, call: Any, stream: int, repeats: int = 5) -> float:
        """Seconds that the device is at a call, its caches emptied before: the median.

        Emptying them takes the device long enough that the call's kernels lie in the queue by then.
        """
        begin, end = self._events
        taken = []
        for _ in range(repeats):
            self.context.fill(self._flush, self._flush_bytes, 1, 0, stream)
            self.context.record_event(begin, stream)
            result = call()
            self.context.record_event(end, stream)
            self.context.synchronize_event(end)
            taken.append(self.context.elapsed(begin, end))
            del result
        return statistics.median(taken)

    def copy_rate(self, nbytes: int, repeats: int = 10) -> float:
        """Bytes read and written a second by the driver's own copy."""
        stream = self.context.create_stream()
        source, target = (self.context.allocate(nbytes, stream) for _ in range(2))
        self.context.fill(source, nbytes // 4, 4, 0x3F9D70A4, stream)
        taken = []
        for _ in range(repeats):
            self.context.record_event(self._events[0], stream)
            self.context.copy(target, source, nbytes, stream)
            self.context.record_event(self._events[1], stream)
            self.context.synchronize_event(self._events[1])
            taken.append(self.context.elapsed(*self._events))
        for address in (source, target):
            self.context.free(address, stream)
        self.context.synchronize(stream)
        return 2 * nbytes / max(min(taken), 1e-9)


def alternate(
    samples: dict[str, Callable[[], float]], seconds: float, rounds: int
) -> dict[str, list[float]]:
    """Samples of each in turn, at least one of each, until the rounds or the time are over."""
    found: dict[str, list[float]] = {name: [] for name in samples}
    end = time.perf_counter() + seconds
    for k in range(rounds):
        if k and time.perf_counter() > end:
            break
        for name, sample in samples.items():
            found[name].append(sample())
    return found
