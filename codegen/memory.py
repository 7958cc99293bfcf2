"""The memory plan: every temporary gets a place in one arena, and shares it when lifetimes allow.

Steps are numbered in execution order, those of branches and loop bodies included. A temporary lives
from the first step that touches it to the last; one that a loop touches but that was there before the
loop lives until the loop ends. Places are given out best fit, largest first among equals.
"""

from __future__ import annotations

from collections.abc import Iterator

from .kernel import (
    Array,
    Branch,
    Kernel,
    Loop,
    Program,
    Scan,
    direct,
    inner_programs,
    touched,
)

ALIGN = 64


def plan(program: Program) -> int:
    """Set `offset` of every temporary that needs memory; returns the arena's size in bytes."""
    lives: dict[Array, list[int]] = {}
    _number(program, 0, lives)
    ordered = sorted(lives.items(), key=lambda item: (item[1][0], -item[0].nbytes))
    free = _FreeList()
    active: list[tuple[int, Array]] = []
    for array, (first, last) in ordered:
        for end, old in [a for a in active if a[0] < first]:
            free.release(old.offset, _rounded(old))
            active.remove((end, old))
        array.offset = free.take(_rounded(array))
        active.append((last, array))
    return free.top


def _rounded(array: Array) -> int:
    return max(-(-array.nbytes // ALIGN) * ALIGN, ALIGN)


def _number(program: Program, time: int, lives: dict[Array, list[int]]) -> int:
    """Record first and last touch of each temporary in `program`, which starts at `time`."""
    for step in program.steps:
        start = time
        _touch(_visible(step), time, lives)
        time += 1
        for inner in inner_programs(step):
            time = _number(inner, time, lives)
        if isinstance(step, (Loop, Scan)):
            _touch(_visible(step), time, lives)
            for life in lives.values():
                if life[0] <= start and life[1] > start:
                    life[1] = time
        time += 1
    return time


def _visible(step: object) -> Iterator[Array]:
    """What a step itself reads and writes, kernel locals excluded; what a branch's programs write."""
    steps = [inner for p in step.branches for inner in p.steps] if isinstance(step, Branch) else []
    if isinstance(step, Branch):
        yield step.index
    for inner in steps or [step]:
        hidden = inner.local if isinstance(inner, Kernel) else ()
        reads, writes = direct(inner) if inner is step else ([], touched(inner)[1])
        yield from (a for a in (*reads, *writes) if a not in hidden)


def _touch(arrays: Iterator[Array], time: int, lives: dict[Array, list[int]]) -> None:
    for array in arrays:
        if array.kind == "temp":
            life = lives.setdefault(array, [time, time])
            life[1] = time


class _FreeList:
    """Free intervals of the arena, sorted by offset, neighbours joined; `top` is its size so far."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []
        self.top = 0

    def take(self, size: int) -> int:
        fits = [(length, start) for start, length in self.spans if length >= size]
        if fits:
            length, start = min(fits)
            self.spans.remove((start, length))
            if length > size:
                self._insert(start + size, length - size)
            return start
        start = self.top
        if self.spans and sum(self.spans[-1]) == self.top:
            start = self.spans.pop()[0]
        self.top = start + size
        return start

    def release(self, start: int, size: int) -> None:
        self._insert(start, size)

    def _insert(self, start: int, length: int) -> None:
        self.spans.append((start, length))
        self.spans.sort()
        joined: list[tuple[int, int]] = []
        for s, n in self.spans:
            if joined and sum(joined[-1]) == s:
                joined[-1] = (joined[-1][0], joined[-1][1] + n)
            else:
                joined.append((s, n))
        self.spans = joined
