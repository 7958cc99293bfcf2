"""Streams, events and graphs of the emulated driver: nothing happens before somebody waits for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ..library import INVALID_VALUE
from .device_memory import RefusedCall

Operation = Callable[[], None]


class Condition:
    """What decides about a conditional node."""

    def __init__(self) -> None:
        self.value = 0


class GraphExec(list[Operation]):
    """A graph that was instantiated."""


class Graph(list[Operation]):
    """What was captured. `loose`: a node that what comes next does not depend on."""

    loose: int = 0
    bodies: Any = None


class Stream:
    """What was asked for and has not happened yet; while it is captured, what the graph will do.

    What comes next waits for all that `peers` have to do by then: the legacy default stream and those
    that are not non-blocking wait for each other.
    """

    def __init__(self) -> None:
        self.queue: deque[tuple[list[tuple[Stream, int]], Operation]] = deque()
        self.asked = self.done = 0
        self.peers: list[Stream] = []
        self.captured: Graph | None = None
        self.graph = 0  # its handle

    def submit(self, operation: Operation) -> None:
        if self.captured is not None:
            if self.captured.loose:
                raise RefusedCall(
                    INVALID_VALUE, "what follows a conditional node does not wait for it"
                )
            self.captured.append(operation)
            return
        if any(peer.captured is not None for peer in self.peers):
            raise RefusedCall(906, "a stream that is captured would have to be waited for")
        self.queue.append(([(p, p.asked) for p in self.peers if p.queue], operation))
        self.asked += 1

    def step(self) -> None:
        before, operation = self.queue.popleft()
        try:
            for peer, number in before:
                while peer.done < number:
                    peer.step()
            operation()
        finally:
            self.done += 1

    def drain(self) -> None:
        if self.captured is not None:
            raise RefusedCall(900, "a stream that is captured is waited for")
        while self.queue:
            self.step()


class Event:
    """Recorded `asked` times, of which `happened` have been reached, at `time`."""

    def __init__(self) -> None:
        self.asked = 0
        self.happened = 0
        self.stream: Stream | None = None
        self.time = 0.0

    def wait(self, number: int) -> None:
        while self.happened < number and self.stream is not None and self.stream.queue:
            self.stream.step()
