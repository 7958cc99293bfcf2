"""The memory plan: every temporary gets an offset in one arena, and shares it when lifetimes allow.

Steps are numbered in execution order, those of branches and loop bodies included. A temporary lives
from the first step that touches it to the last; one that a loop touches but that was there before the
loop lives until the loop ends. Offsets are given out best fit, largest first among equals.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from itertools import count
from typing import Any

from ..loop_ir.kernel import Array
from ..loop_ir.steps import Loop, Program, Scan, inner_programs, outside

ALIGN = 64

Lives = dict[Array, list[int]]  # first and last touch


def plan(program: Program) -> int:
    """Set `offset` of every temporary that needs memory; returns the arena's size in bytes."""
    lives = lifetimes(program)
    free = _FreeList()
    active: list[tuple[int, int, Array]] = []  # a heap: what dies next comes first
    order = count()
    for array, (first, last) in sorted(lives.items(), key=lambda i: (i[1][0], -i[0].nbytes)):
        while active and active[0][0] < first:
            old = heappop(active)[2]
            free.release(old.offset, _rounded(old))
        array.offset = free.take(_rounded(array))
        heappush(active, (last, next(order), array))
    return free.top


def lifetimes(program: Program) -> Lives:
    """Of each temporary the numbers of the first and of the last step that need it."""
    lives: Lives = {}
    _number(program, 0, lives, [])
    return lives


def _rounded(array: Array) -> int:
    return max(-(-array.nbytes // ALIGN) * ALIGN, ALIGN)


def _number(program: Program, time: int, lives: Lives, log: list[Array]) -> int:
    """Record the touches of each temporary in `program`, which starts at `time`; `log` lists them."""
    for step in program.steps:
        start, before = time, len(log)
        _touch(step, time, lives, log)
        time += 1
        for inner in inner_programs(step):
            time = _number(inner, time, lives, log)
        if isinstance(step, (Loop, Scan)):
            _touch(step, time, lives, log)
            for array in log[before:]:
                if lives[array][0] <= start:
                    lives[array][1] = time
                elif isinstance(step, Scan) and step.tiles is not None:
                    lives[array] = [start, time]  # iterations are out of order
        time += 1
    return time


def _touch(step: Any, time: int, lives: Lives, log: list[Array]) -> None:
    for array in (a for arrays in outside(step) for a in arrays):
        if array.kind == "temp":
            lives.setdefault(array, [time, time])[1] = time
            log.append(array)


class _FreeList:
    """Free intervals of the arena by offset, neighbours joined; `top` is its size so far."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []  # (start, length)
        self.top = 0

    def take(self, size: int) -> int:
        fits = [(length, start) for start, length in self.spans if length >= size]
        if fits:
            length, start = min(fits)
            k = bisect_left(self.spans, (start, length))
            self.spans[k : k + 1] = [(start + size, length - size)] if length > size else []
            return start
        start = self.top
        if self.spans and sum(self.spans[-1]) == self.top:
            start = self.spans.pop()[0]
        self.top = start + size
        return start

    def release(self, start: int, size: int) -> None:
        k = bisect_left(self.spans, (start, 0))
        stop = k
        if k and sum(self.spans[k - 1]) == start:
            k -= 1
            start, size = self.spans[k][0], self.spans[k][1] + size
        if stop < len(self.spans) and self.spans[stop][0] == start + size:
            size += self.spans[stop][1]
            stop += 1
        self.spans[k:stop] = [(start, size)]
