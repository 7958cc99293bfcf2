"""Comprehensions whose elements are numbers, or arrays of one shape, as one loop that fills an array.

ys = [f(x) for x in xs]            # a loop where the elements written out would be a long program
np.array([g(row) for row in m])    # rows, too: nobody sees the list
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.record import record
from ...ir.types import F64, I64
from ..arrays.common import build
from ..containers.comprehensions import serve_listing
from ..containers.packed import WRITTEN, Packed, made_of
from ..control.unions import Union, exact
from ..core.constants import is_undecided
from ..core.tracers import WEAK_DTYPES, Tracer, as_value, weak_kind, wrap
from .beginnings import Beginning
from .loops.loop import loop
from .rolling import Watch, refuse_growth
from .variables import in_graph, reached

_LONG = 16  # elements from which those of Python's own numbers are perhaps a loop


@record
class _Kind:
    """What all elements are."""

    dtype: np.dtype[Any]
    weak: str | None
    shape: tuple[int, ...] = ()


class _Unlike(Exception):
    """An element is not of the expected kind; `kind` is its own, None if no array can hold it."""

    def __init__(self, kind: _Kind | None) -> None:
        super().__init__(kind)
        self.kind = kind


_FLOAT = _Kind(WEAK_DTYPES["f"], "f")


def list_by_loop(
    length: int,
    item: Callable[[Any], Any],
    listed: Callable[[Any], Any],
    site: Any,
    packed: bool,
    unseen: bool,
) -> Any:
    """`[f(x) for x in items]`, where `listed((x,))` gives `[f(x)]`. None where that is no loop: nothing
    has changed then. What elements change elsewhere is carried, as in a `for`. `packed`: the items are
    traced numbers of a list, of which a loop is the natural form. `unseen`: the list becomes an array at
    once, which may be given in its place."""
    if not in_graph() or (length < _LONG and not packed):
        return None
    if packed:
        return _filled(length, item, listed, site, unseen, _FLOAT)
    watch, beginning = Watch(listed), Beginning(reached(listed, item))
    if watch.refused:
        return None
    (first,) = listed((item(0),))
    kind = _kind(first, unseen)
    pays = (is_undecided(first) or isinstance(first, Packed)) and watch.many(length - 1)
    if pays and kind is not None and beginning.takes_back():
        made = _filled(length, item, listed, (WRITTEN, site), unseen, kind)
        if made is not None:
            return made
        (first,) = listed((item(0),))
    return [first, *listed(map(item, range(1, length)))]


def _filled(
    length: int,
    item: Callable[[Any], Any],
    listed: Callable[[Any], Any],
    site: Any,
    unseen: bool,
    expected: _Kind,
) -> Any:
    for _ in range(2):
        data = wrap(build().full((length, *expected.shape), 0, expected.dtype), scalar=False)

        def element(i: Any) -> None:
            (value,) = listed((item(i),))
            kind = _kind(value, unseen)
            if kind is None or kind != expected:  # noqa: B023
                raise _Unlike(kind)
            if isinstance(value, Packed):
                value = value.materialise()
            scalar = not kind.shape
            data[i] = wrap(as_value(value), kind.weak, scalar=True) if scalar else value  # noqa: B023

        error = _attempt(element, length, listed, item)
        if error is None:
            return data if expected.shape else made_of(data, expected.weak, site)
        if not isinstance(error, _Unlike) or error.kind is None:
            return None
        expected = error.kind
    return None


def _attempt(element: Callable[[Any], None], length: int, *parts: Any) -> Exception | None:
    state = reached(*parts)

    def over_all() -> None:
        loop(
            None,
            element,
            state,
            "for",
            counted=True,
            length=length,
            accept=refuse_growth,
            ends=True,
        )

    return Watch(element).attempt(over_all, state)


def _kind(value: Any, unseen: bool) -> _Kind | None:
    """What an element is, if it is a number of one class, whichever way it came about, or where the list
    is not seen an array."""
    if type(exact(value)) is Union:
        return None
    if isinstance(value, Packed):
        return _Kind(value.data.dtype, None, value.data.shape) if unseen else None
    if isinstance(value, Tracer) and value.shape:
        return _Kind(value.dtype, None, value.shape) if unseen else None
    weak = weak_kind(value)
    if weak in ("f", "i", "b"):
        return _Kind(WEAK_DTYPES[weak], weak)
    is_number = weak is None and isinstance(value, (Tracer, np.generic))
    return _Kind(value.dtype, None) if is_number and (unseen or value.dtype in (F64, I64)) else None


serve_listing(list_by_loop)
