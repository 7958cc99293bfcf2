"""The machine code in this process: shared while it is in use, and not more of it than wanted.

`SharedCode` finds an executable that some function already has; it keeps none alive. The functions
do (`tracer.jit`), so code goes with the last function that needs it. `CodeBudget` makes functions let
go of what has not run for long when there is more than `jt.config.memory_cache_size`.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from ...ir.forks import renewed
from ..config import config, serve

T = TypeVar("T")


class SharedCode(Generic[T]):
    """Values by key, as long as somebody else refers to them. Thread-safe.

    `get_or_make` runs `make` for a key at most once at a time: other threads that ask for it wait.
    """

    def __init__(self) -> None:
        self._values: weakref.WeakValueDictionary[Hashable, T] = weakref.WeakValueDictionary()
        self._lock = renewed(threading.RLock())
        self._making: dict[Hashable, threading.RLock] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> T | None:
        return self._values.get(key)

    def put(self, key: Hashable, value: T) -> None:
        self._values[key] = value

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        value = self.get(key)
        if value is not None:
            return value
        with self._lock:
            turn = self._making.setdefault(key, renewed(threading.RLock()))
        with turn:
            value = self.get(key)
            if value is None:
                try:
                    value = make()
                    self.put(key, value)
                finally:
                    with self._lock:
                        self._making.pop(key, None)
        return value

    def clear(self) -> None:
        self._values.clear()


class Evictable(Protocol):
    """Something that keeps code alive, and can let go of it."""

    @property
    def code(self) -> object: ...  # with `nbytes`; the same object may be kept by others too

    @property
    def hits(self) -> int: ...  # how often it ran

    def evict(self) -> bool: ...  # False: not now


class CodeBudget:
    """Keeps the code of all functions within `jt.config.memory_cache_size`.

    What runs in native code cannot tell when it ran, but it counts. So this is the clock algorithm:
    whoever ran since the hand last passed stays for another round, the others leave, oldest first.
    """

    def __init__(self) -> None:
        self._lock = renewed(threading.RLock())
        self._entries: OrderedDict[int, tuple[weakref.ref[Evictable], int]] = OrderedDict()
        self._most = 0  # no less than `nbytes`, which looks at all entries

    def add(self, entry: Evictable) -> None:
        """Count a new entry. `trim` comes later: it may not be called while code is being made."""
        with self._lock:
            self._entries[id(entry)] = weakref.ref(entry), -1

    def nbytes(self) -> int:
        """Bytes of the code that entries keep, each piece counted once."""
        codes = {id(entry.code): entry.code for _, entry, _ in self._alive()}
        return sum(getattr(code, "nbytes", 0) for code in codes.values())

    def entries(self) -> list[Evictable]:
        """All that keep code."""
        return [entry for _, entry, _ in self._alive()]

    def trim(self, newest: Evictable | None = None) -> None:
        """Let go of code until the rest fits; never of `newest`."""
        limit = config.memory_cache_size
        if newest is not None:
            self._most += getattr(newest.code, "nbytes", 0)
            if self._most <= limit:
                return
        if self._counted() <= limit:
            return
        for _ in range(2):
            for key, entry, hits in self._alive():
                if entry is newest:
                    continue
                now = entry.hits
                if now == hits and entry.evict():
                    with self._lock:
                        self._entries.pop(key, None)
                    if self._counted() <= limit:
                        return
                else:
                    with self._lock:
                        self._entries[key] = weakref.ref(entry), now
                        self._entries.move_to_end(key)

    def _counted(self) -> int:
        self._most = self.nbytes()
        return self._most

    def _alive(self) -> list[tuple[int, Evictable, int]]:
        with self._lock:
            entries = [(key, entry(), hits) for key, (entry, hits) in self._entries.items()]
            for key, entry, _ in entries:
                if entry is None:
                    del self._entries[key]
        return [(key, entry, hits) for key, entry, hits in entries if entry is not None]


budget = CodeBudget()
"""The budget of this process."""
serve("memory_cache_size", lambda size: budget.trim())
