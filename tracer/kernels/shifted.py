"""A function of neighbours' values over whole arrays: each neighbour is a shifted slice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.record import record
from ..data.callables import Function
from ..transforms.vmap import vmap
from .neighbours import Offset

Reach = tuple[int, int]  # how far neighbours lie before, as a number of at most 0, and behind

_LARGE = 1 << 14  # elements from which an array is not copied for its edges
_LONG = 8  # and how much longer than its edges together it has to be


@record
class Shifted:
    """A stencil at work: `one` of the values at `places`, and of the `rest` of the arguments."""

    one: Function
    shape: tuple[int, ...]
    reaches: list[Reach]
    places: list[tuple[int, Offset]]  # the number of an argument, and which neighbour
    arrays: dict[int, Any]
    rest: list[Any]

    def inside(self, arrays: dict[int, Any]) -> Any:
        """The results whose neighbours are all in `arrays`, which have the sizes of the first."""
        first = np.shape(arrays[self.places[0][0]] if self.places else self.arrays[0])
        pairs = zip(first, self.reaches, strict=True)
        sizes = [max(n + low - high, 0) for n, (low, high) in pairs]
        parts = []
        for k, offset in self.places:
            starts = [o - low for o, (low, _) in zip(offset, self.reaches, strict=True)]
            parts.append(
                arrays[k][tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))]
            )
        axes = (*(0 for _ in parts), *(None for _ in self.rest))
        over = self.one
        for n in reversed(sizes):
            over = vmap(over, axes, axis_size=n)
        return over(*parts, *self.rest)

    def continued(self, mode: str) -> Any:
        """All results, of arrays that go on beyond their edges. Long arrays are not copied for that:
        what is near an edge is computed apart."""
        parts = self._parts(self.arrays, (), mode)
        if len(parts) == 1:
            return parts[0][1]
        return assembled(np.zeros_like(parts[0][1], shape=self.shape), parts)

    def _parts(self, arrays: dict[int, Any], start: Offset, mode: str) -> list[tuple[Offset, Any]]:
        """The results in parts, each with where it begins; `start` says it for axes that are done."""
        axis = len(start)
        if axis == len(self.shape):
            return [(start, self.inside(arrays))]
        (low, high), n = self.reaches[axis], self.shape[axis]
        width = high - low
        if not width:
            return self._parts(arrays, (*start, 0), mode)
        rows = np.pad(np.arange(n), (-low, high), mode=mode)  # type: ignore[call-overload]
        if n < _LONG * width or math.prod(self.shape) < _LARGE:
            return self._parts(_taken(arrays, rows, axis), (*start, 0), mode)
        parts = self._parts(arrays, (*start, -low), mode)
        rest = (0,) * (len(self.shape) - axis - 1)
        if low:
            parts.append(((*start, 0, *rest), self._edge(arrays, rows[: width - low], axis, mode)))
        if high:
            edge = self._edge(arrays, rows[n - high :], axis, mode)
            parts.append(((*start, n - high, *rest), edge))
        return parts

    def _edge(self, arrays: dict[int, Any], rows: Any, axis: int, mode: str) -> Any:
        slab = _taken(arrays, rows, axis)
        for d in range(axis + 1, len(self.shape)):
            low, high = self.reaches[d]
            slab = _taken(slab, np.pad(np.arange(self.shape[d]), (-low, high), mode=mode), d)  # type: ignore[call-overload]
        return self.inside(slab)


def assembled(whole: Any, parts: Sequence[tuple[Offset, Any]]) -> Any:
    """`whole` with each part where it begins."""
    for start, values in parts:
        place = tuple(slice(a, a + n) for a, n in zip(start, np.shape(values), strict=True))
        whole[place] = values
    return whole


def _taken(arrays: dict[int, Any], rows: Any, axis: int) -> dict[int, Any]:
    return {k: np.take(x, rows, axis=axis) for k, x in arrays.items()}
