"""Memory of other libraries: how long its owner is kept.

When nobody here refers to it any more, our work on it may still be ahead, and its owner, who could use
the memory again, knows nothing of our stream: so a `Holder` keeps the owner until that work is done.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

from .driver import Context
from .memory import DeviceMemory


class Foreign(DeviceMemory):
    """Memory that belongs to somebody else."""

    __slots__ = ("_holder", "_owner")

    def __init__(self, address: int, nbytes: int, owner: Any, holder: Holder) -> None:
        super().__init__(address, nbytes)
        self._owner = owner
        self._holder = holder

    def __del__(self) -> None:
        self._holder.hold(self._owner, self.others)


class Holder:
    """Keeps owners of foreign memory until a stream, and others that are named, have come as far as
    they were asked to go when the owner was given."""

    def __init__(self, context: Context, stream: int) -> None:
        self._context, self._stream = context, stream
        self._held: deque[tuple[list[int], Any]] = deque()

    def __bool__(self) -> bool:
        return bool(self._held)

    def hold(self, owner: Any, others: tuple[int, ...] = ()) -> None:
        """Called when something dies, anywhere: never raises, nor waits."""
        try:
            if sys.is_finalizing():
                return
            events = [self._context.recorded_event(s) for s in (self._stream, *others)]
            self._held.append((events, owner))
        except Exception:
            pass  # the device is lost, or the process forked: nobody uses the memory

    def sweep(self) -> None:
        """Let those go that need not be kept any more."""
        for _ in range(len(self._held)):
            try:
                events, owner = self._held.popleft()
            except IndexError:  # another thread sweeps
                return
            if not all(map(self._context.has_happened, events)):
                self._held.appendleft((events, owner))
                return
            for event in events:
                self._context.destroy_event(event)

    def release_memory(self) -> None:
        """Wait for what is held, and let it go."""
        for events, _ in list(self._held):
            for event in events:
                self._context.synchronize_event(event)
        self.sweep()
