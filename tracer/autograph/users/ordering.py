"""Sorting and heaps of lists, and of objects with a user's `<`: in Python, to be transformed.

A heap's steps are `heapq`'s, so that equal objects come out in the order in which they do there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from ...containers.sequences import List
from ...containers.stand_ins import Container
from .operators import twin


def heappush(heap: Any, item: Any) -> None:
    """`heapq.heappush`"""
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)


def heappop(heap: Any) -> Any:
    """`heapq.heappop`"""
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    _sink(heap, 0)
    return first


def heapreplace(heap: Any, item: Any) -> Any:
    """`heapq.heapreplace`"""
    first = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return first


def heappushpop(heap: Any, item: Any) -> Any:
    """`heapq.heappushpop`"""
    result = item
    if heap:
        first = heap[0]
        if first < item:
            heap[0] = item
            _sink(heap, 0)
            result = first
    return result


def heapify(heap: Any) -> None:
    """`heapq.heapify`"""
    half = len(heap) // 2
    for k in range(half):
        _sink(heap, half - 1 - k)


def _rise(heap: Any, start: Any, place: Any) -> None:
    """Let what is at a place change with those above it that it is less than."""
    item = heap[place]
    rising = place > start
    while rising:
        above = (place - 1) >> 1
        other = heap[above]
        if item < other:
            heap[place] = other
            place = above
            rising = place > start
        else:
            rising = False
    heap[place] = item


def _sink(heap: Any, start: Any) -> None:
    """Let what is at a place sink to the end, the lesser ones rising, and rise again from there."""
    end, place, item = len(heap), np.int64(start), heap[start]
    below = 2 * place + 1
    while below < end:
        if below + 1 < end and not heap[below] < heap[below + 1]:
            below += 1
        heap[place] = heap[below]
        place = below
        below = 2 * place + 1
    heap[place] = item
    _rise(heap, start, place)


def sort(items: Any, *, reverse: bool = False) -> None:
    """`list.sort`: runs of 1, 2, 4, ... elements are merged, which keeps the order of equal ones."""
    if reverse:
        items.reverse()
    width: Any = np.int64(1)
    many: Any = len(items)
    while width < many:
        merged: list[Any] = []
        start: Any = 0
        while start < many:
            middle, end = min(start + width, many), min(start + 2 * width, many)
            left, right = start, middle
            while left < middle or right < end:
                takes_left = right >= end
                if left < middle and right < end:
                    takes_left = not items[right] < items[left]
                if takes_left:
                    merged.append(items[left])
                    left += 1
                else:
                    merged.append(items[right])
                    right += 1
            start += 2 * width
        items[:] = merged
        width *= 2
    if reverse:
        items.reverse()


_HEAPS: dict[Any, Callable[..., Any]] = {
    getattr(heapq, f.__name__): f for f in (heappush, heappop, heapreplace, heappushpop, heapify)
}


def ordering(function: Any, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """What is called in place of a function of `heapq`, or of `sorted`, where there are objects."""
    own = _HEAPS.get(function)
    if own is None and function is not sorted:
        return otherwise

    def call(items: Any, *more: Any, **options: Any) -> Any:
        holds = isinstance(items, List) and holds_others(items, *more)
        if not holds or options.get("key") is not None:
            return otherwise(items, *more, **options)
        if own is not None:
            return twin(own)(items, *more)
        made = items.copy()
        twin(sort)(made, **options)
        return made

    return call


def sorting(method: Any) -> Callable[..., Any]:
    """The method `sort` of a native list."""

    def call(*, key: Any = None, reverse: Any = False) -> None:
        items = method.__self__
        if key is None and holds_others(items):
            twin(sort)(items, reverse=reverse)
        else:
            method(key=key, reverse=reverse)

    return call


def holds_others(items: List, *more: Any) -> bool:
    """Whether there are containers, or objects of users' classes, in the elements of a native list."""
    form = items.kind.value
    if form is not None and form.holds_containers:
        return True
    return any(isinstance(x, Container) for value in more for x in _flat(value))


def _flat(value: Any) -> list[Any]:
    return [part for x in value for part in _flat(x)] if isinstance(value, tuple) else [value]
