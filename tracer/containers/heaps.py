"""The functions of `heapq` and `bisect` on native lists, by their names."""

from __future__ import annotations

from typing import Any

from ...ir.types import I64
from ..control.control import cond, while_loop
from ..core.tracers import as_value, wrap
from .elements.forms import Form
from .elements.varied import Unfit
from .folds import is_less
from .sequences import Sequence
from .stand_ins import element, fail, is_tried, require

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
    if is_tried():
        require(as_value(heap.truth()), _EMPTY, "IndexError")
    ok, *values = heap.put("heap_replace", item=item)
    require(ok, _EMPTY, "IndexError")
    return element(heap.form, values)


def heappushpop(heap: Sequence, item: Any) -> Any:
    """Add an item, and take the least."""
    if not heap.is_known:
        return item
    _, *values = heap.put("heap_push_pop", item=item)
    return element(heap.form, values)


def _place(items: Sequence, x: Any, lo: Any, hi: Any, key: Any, *, after: bool) -> Any:
    if not items.is_known:
        return 0
    if isinstance(lo, int) and lo < 0:
        raise ValueError("lo must be non-negative")
    hi = items.length() if hi is None else hi
    if key is None and _form_of(x) == items.form:
        method = "bisect_right" if after else "bisect_left"
        (found,) = items.put(method, as_value(lo, I64), as_value(hi, I64), item=x)
        return wrap(found, "i")

    def step(ends: Any) -> Any:
        """Numbers of another kind are compared as they are."""
        middle = (ends[0] + ends[1]) // 2
        other = items[middle]
        other = other if key is None else key(other)
        goes_on = is_less(x, other) ^ True if after else is_less(other, x)
        return cond(goes_on, lambda: (middle + 1, ends[1]), lambda: (ends[0], middle))

    return while_loop(lambda ends: ends[0] < ends[1], step, (lo, hi))[0]


def _form_of(x: Any) -> Form | None:
    try:
        return Form.of(x)
    except Unfit:
        return None


def bisect_left(items: Sequence, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    """Where an item belongs, before its equals."""
    return _place(items, x, lo, hi, key, after=False)


def bisect_right(items: Sequence, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    """Where an item belongs, behind its equals."""
    return _place(items, x, lo, hi, key, after=True)


def insort_left(items: Sequence, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    """Put an item where it belongs, before its equals."""
    place = bisect_left(items, x if key is None else key(x), lo, hi, key=key)
    items.insert(place, x)


def insort_right(items: Sequence, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    """Put an item where it belongs, behind its equals."""
    place = bisect_right(items, x if key is None else key(x), lo, hi, key=key)
    items.insert(place, x)
