"""The functions of `heapq` and `bisect` on native lists, by their names."""

from __future__ import annotations

from typing import Any

from ...ir.types import I64
from ..core.tracers import as_value, wrap
from .sequences import Sequence
from .stand_ins import element, fail, require

_EMPTY = "index out of range"


def heappush(heap: Sequence, item: Any) -> None:
    """Add an item."""
    heap.put("heap_push", item=item)


def heappop(heap: Sequence) -> Any:
    """Take the least item."""
    return heap.taken("heap_pop", _EMPTY)


def heapify(heap: Sequence) -> None:
    """Make a heap of a list."""
    if heap.is_known:
        heap.ask("heapify")


def heapreplace(heap: Sequence, item: Any) -> Any:
    """Take the least item, and add one."""
    if not heap.is_known:
        fail(IndexError(_EMPTY))
    ok, *values = heap.put("heap_replace", item=item)
    require(ok, _EMPTY, "IndexError")
    return element(heap.form, values)


def heappushpop(heap: Sequence, item: Any) -> Any:
    """Add an item, and take the least."""
    if not heap.is_known:
        return item
    _, *values = heap.put("heap_push_pop", item=item)
    return element(heap.form, values)


def _place(items: Sequence, x: Any, lo: Any, hi: Any, side: str) -> Any:
    if not items.is_known:
        return 0
    places = as_value(lo, I64), as_value(items.length() if hi is None else hi, I64)
    (found,) = items.put(side, *places, item=x)
    return wrap(found, "i")


def bisect_left(items: Sequence, x: Any, lo: Any = 0, hi: Any = None) -> Any:
    """Where an item belongs, before its equals."""
    return _place(items, x, lo, hi, "bisect_left")


def bisect_right(items: Sequence, x: Any, lo: Any = 0, hi: Any = None) -> Any:
    """Where an item belongs, behind its equals."""
    return _place(items, x, lo, hi, "bisect_right")


def insort_left(items: Sequence, x: Any, lo: Any = 0, hi: Any = None) -> None:
    """Put an item where it belongs, before its equals."""
    items.insert(bisect_left(items, x, lo, hi), x)


def insort_right(items: Sequence, x: Any, lo: Any = 0, hi: Any = None) -> None:
    """Put an item where it belongs, behind its equals."""
    items.insert(bisect_right(items, x, lo, hi), x)
