"""The executables of this process: the most recently used, up to so many bytes of machine code."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LRUCache(Generic[T]):
    """At most `capacity` values, the least recently used leaves first. Thread-safe.

    `get_or_make` runs `make` for a key at most once at a time: other threads that ask for it wait.
    """

    def __init__(self, capacity: int = 1024) -> None:
        self.capacity = capacity
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[Hashable, threading.RLock] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: T) -> None:
        dropped = []  # destroyed after the lock is released: unloading code may take a while
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self.capacity:
                dropped.append(self._values.popitem(last=False))

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        value = self.get(key)
        if value is not None:
            return value
        with self._lock:
            turn = self._making.setdefault(key, threading.RLock())
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

    def after_fork(self) -> None:
        """In a forked child: forget the threads that were making values, they are not here."""
        self._lock = threading.Lock()
        self._making = {}

    def clear(self) -> None:
        with self._lock:
            values, self._values = self._values, OrderedDict()
        values.clear()
