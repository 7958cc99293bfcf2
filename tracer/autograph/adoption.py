"""Assignment, inside of a branch or loop, to arrays from outside of it: the op gives them back.

While a region is traced, an array of an enclosing trace that it assigns to is *adopted*: its storage
belongs to the region's trace for the time being. All views of it, under whatever name, see the new
value. At the region's end the storage is handed back, and takes the value that the op computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.graph import Value
from ..core.trace import Trace, require_trace
from ..core.tracers import Storage
from ..core.views import refuse_stale


class Adoption:
    """The storages that the region traced by `trace` has adopted."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.owners: list[tuple[Storage, Trace, Value]] = []
        self.doubts: list[Any] = []  # see `sharing`
        trace.adoption = self

    def adopt(self, storage: Storage, value: Value | None = None) -> None:
        """Take over a storage, with `value` of the region (by default what it holds now)."""
        owner, outer = storage.trace, storage.value
        refuse_stale(storage, self.trace)
        if value is None:
            value = self.trace.lift(outer, owner)
        self.owners.append((storage, owner, outer))
        storage.trace, storage.value = self.trace, value
        storage.version += 1

    def finish(self) -> dict[Storage, Value]:
        """Hand the storages back. Returns what the region has made of them."""
        finals = {}
        for storage, owner, outer in self.owners:
            finals[storage] = storage.value
            storage.trace, storage.value = owner, outer
            storage.version += 1
        self.owners = []
        return finals


def write(storage: Storage, value: Value) -> None:
    """Let `storage` hold `value`, of the current trace, from now on."""
    trace = require_trace()
    if storage.trace is not trace:
        trace.adopt(storage)
    storage.value = value
    storage.version += 1


def union(finals: Sequence[dict[Storage, Value]]) -> list[Storage]:
    return list(dict.fromkeys(storage for one in finals for storage in one))
