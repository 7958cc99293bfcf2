"""What was recorded, as one list of named events."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...codegen.module import BlockReport, NativeModule, StepReport
from ...ir.graph import SourceLine
from ...ir.record import record
from ...runtime.recording import Recording
from ...runtime.threads.events import POOL
from ..explain.steps import place


@record
class Event:
    """One thing that took time.

    category  "trace", "compile", "call" (of compiled code), "kernel", "library", "callback", "device",
              "control" (a loop, a branch, one iteration) or "worker" (a pool thread's part of a kernel)
    name      of the function, kernel or step
    function  the jitted function that it belongs to
    scope     the name scopes that it stands in, "encoder/attention"
    line      of the user's source, "file.py:12"
    begin     seconds since the profile began
    seconds   how long it took
    thread    the name of the thread
    leaf      whether nothing else that is listed happens inside of it
    """

    category: str
    name: str
    function: str
    scope: str
    line: str
    begin: float
    seconds: float
    thread: str
    leaf: bool


@record
class _Step:
    """What the events of one slot have in common."""

    category: str
    name: str
    function: str
    scope: str
    line: str
    leaf: bool


def events_of(recording: Recording) -> list[Event]:
    """All events, by their begin; what contains others comes before these."""
    threads = _Threads(recording)
    found = [*_spans(recording, threads), *_native(recording, threads)]
    return sorted(found, key=lambda event: (event.begin, -event.seconds))


def _spans(recording: Recording, threads: _Threads) -> Iterator[Event]:
    for s in recording.spans:
        since, seconds, thread = s.begin - recording.begin, s.end - s.begin, threads.name(s.thread)
        where = s.function, _scope(s.loc), place(s.loc)
        yield Event(s.category, s.name, *where, since, seconds, thread, s.leaf)


def _native(recording: Recording, threads: _Threads) -> Iterator[Event]:
    rows = recording.events.rows
    begins = recording.events.seconds(rows[:, 3]) - recording.begin
    seconds = recording.events.seconds(rows[:, 4]) - recording.begin - begins
    known = {
        identity: dict(_steps(name, module))
        for identity, (name, module) in recording.programs.items()
    }
    kernels = _Kernels(rows, begins, known)
    for row, begin, took in zip(rows.tolist(), begins.tolist(), seconds.tolist(), strict=True):
        program, slot, thread = row[:3]
        if program == POOL:
            step = kernels.around(row[3])
        else:
            step = known.get(program, {}).get(slot)
        if step is None:
            continue
        category = "worker" if program == POOL else step.category
        yield Event(
            category, step.name, step.function, step.scope, step.line,
            begin, took, threads.name(thread), step.leaf,
        )  # fmt: skip


class _Kernels:
    """Which kernel ran at a time: pool threads do not know what they work on."""

    def __init__(self, rows: Any, begins: Any, known: dict[int, dict[int, _Step]]) -> None:
        found = [
            (begin, end, known[program][slot])
            for program, slot, _, begin, end in rows.tolist()
            if slot in known.get(program, {}) and known[program][slot].leaf
        ]
        found.sort(key=lambda kernel: kernel[0])
        self._begins = np.array([begin for begin, _, _ in found], np.int64)
        self._found = found

    def around(self, tick: int) -> _Step | None:
        k = int(np.searchsorted(self._begins, tick, "right")) - 1
        if k < 0:
            return None
        _, end, step = self._found[k]
        return step if tick <= end else None


def _steps(function: str, module: NativeModule) -> Iterator[tuple[int, _Step]]:
    """What each slot of a program stands for. The program itself is slot 0."""
    yield 0, _Step("call", function, function, "", "", not module.outline)
    yield from _inside(function, module.outline)


def _inside(function: str, steps: Sequence[StepReport]) -> Iterator[tuple[int, _Step]]:
    for step in steps:
        if step.kernel is not None:
            loc = next(iter(step.kernel.locs), step.loc)
            category, name = "kernel", step.kernel.name
            if step.text == "library call":
                category = "library"
            else:
                name = step.kernel.title
        else:
            loc, name = step.loc, step.text
            category = "callback" if name == "callback" else "control"
        leaf = not step.blocks or step.kernel is not None
        yield step.slot, _Step(category, name, function, _scope(loc), place(loc), leaf)
        for block in step.blocks if step.kernel is None else ():  # no probe is in scalar code
            yield block.slot, _block(function, step, block)
            yield from _inside(function, block.steps)


def _block(function: str, step: StepReport, block: BlockReport) -> _Step:
    name = block.text or "iteration"
    return _Step("control", name, function, _scope(step.loc), place(step.loc), not block.steps)


def _scope(loc: SourceLine | None) -> str:
    return "" if loc is None else loc.scope


class _Threads:
    """Names of threads: Python's own, and numbers for those of the pool."""

    def __init__(self, recording: Recording) -> None:
        self._names = {t.ident: t.name for t in threading.enumerate()}
        self._python = {span.thread for span in recording.spans}
        self._workers = 0

    def name(self, thread: int) -> str:
        if thread not in self._names:
            kind = "thread" if thread in self._python else "pool thread"
            self._workers += 1
            self._names[thread] = f"{kind} {self._workers}"
        return self._names[thread]
