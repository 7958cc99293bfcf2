"""One of the items of a sequence, at a place that only the running program knows.

    label = LABELS[int(np.argmax(scores))]      # texts, None, tuples of numbers and texts
    name, size = random.choice(SHAPES)

Items of one form are stacked, leaf by leaf; of several forms there is a union (`unions`), whose tag is
an element of a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from ...ir.types import I64, is_supported
from ..arrays.common import array
from ..core.effects import check
from ..core.tracers import WEAK_DTYPES, Tracer, as_value, weak_kind, wrap
from ..data import pytree
from .unions import Union, number_of, possible

_MOST = 4096  # items among which one is chosen
_STATIC: tuple[type, ...] = (
    *(str, bytes, Enum, FunctionType, BuiltinFunctionType, type, np.ufunc, np.dtype),
    type(np.sum),  # NumPy's functions
)


def require_item(items: Sequence[Any], index: Tracer) -> None:
    """IndexError, as Python's, where there is no `items[index]`."""
    name = "string" if isinstance(items, str) else type(items).__name__
    inside = (index >= -len(items)) & (index < len(items))
    check(inside, f"{name} index out of range", error="IndexError")


def choose(items: Sequence[Any], index: Tracer, checked: bool = True) -> tuple[Any] | None:
    """`items[index]`, in a tuple; None where the program cannot choose: where items can be changed, or
    are numbers of several classes. `index` is a traced integer; is it `checked` that one is there?"""
    if not 0 < len(items) <= _MOST or not all(map(_is_immutable, items)):
        return None
    numbers = [number_of(item) for item in items]
    members: dict[int, list[Any]] = {}
    ranks = []  # of each item among those of its form
    for item, number in zip(items, numbers, strict=True):
        alike = members.setdefault(number, [])
        ranks.append(len(alike))
        alike.append(item)
    if any(len({_kinds(item) for item in alike}) > 1 for alike in members.values()):
        return None
    if not checked:
        require_item(items, index)
    rank = _entry(ranks, index)
    options = {number: _stacked(alike, rank) for number, alike in members.items()}
    if len(options) == 1:
        return (next(iter(options.values())),)
    return (Union(_entry(numbers, index), options),)


def choose_by_key(items: Mapping[Any, Any], key: Any, *otherwise: Any) -> tuple[Any] | None:
    """The same of `items[key]`, or `items.get(key, otherwise)`, of a dict with numbers as keys and not
    only numbers as values. KeyError where there is none."""
    if not items or key.shape or all(map(_is_number, items.values())):
        return None
    if set(map(type, items)) not in ({int}, {float}):
        return None
    same = array(np.array(list(items))) == key
    place = same.argmax()
    if otherwise:
        place = np.where(same.any(), place, len(items))
    found = choose([*items.values(), *otherwise], wrap(as_value(array(place), I64), scalar=True))
    if found is not None and not otherwise:
        check(same.any(), "", key, error="KeyError")
    return found


def length_of(union: Union) -> Any:
    """`len` of a value of several forms."""
    lengths = [len(union.options[n]) for n in possible(union)]
    result: Any = lengths[0]
    for number, length in zip(possible(union)[1:], lengths[1:], strict=True):
        if length != result:
            result = array(np.where(union.tag == number, length, result))
    return wrap(as_value(result, I64), "i") if isinstance(result, Tracer) else result


def _is_number(item: Any) -> bool:
    return isinstance(item, (Tracer, np.generic, np.ndarray)) or weak_kind(item) is not None


def _entry(table: Sequence[int], index: Any) -> Tracer:
    """The number at a traced place of a table."""
    return wrap(as_value(array(np.array(table, np.int64))[index]), scalar=True)


def _is_immutable(item: Any) -> bool:
    if type(item) is tuple or hasattr(type(item), "_fields"):
        return all(map(_is_immutable, item))
    if isinstance(item, (Tracer, np.generic)):
        return getattr(item, "scalar", True) and is_supported(item.dtype)
    return item is None or isinstance(item, _STATIC) or weak_kind(item) is not None


def _kinds(item: Any) -> tuple[Any, ...]:
    """The classes of the numbers in an item."""
    return tuple(_kind(leaf) for leaf in pytree.flatten(item)[0])


def _kind(leaf: Any) -> Any:
    return weak_kind(leaf) or getattr(leaf, "dtype", None)


def _stacked(alike: Sequence[Any], rank: Tracer) -> Any:
    """The item of this rank, of items of one form."""
    leaves, trees = zip(*map(pytree.flatten, alike), strict=True)
    if len(alike) == 1:
        return alike[0]
    chosen = []
    for column in zip(*leaves, strict=True):
        weak = weak_kind(column[0])
        if weak is None and not isinstance(column[0], (Tracer, np.generic)):
            chosen.append(column[0])  # not an array: the same in all
            continue
        dtype = WEAK_DTYPES[weak] if weak else column[0].dtype
        chosen.append(wrap(as_value(array(list(column), dtype)[rank]), weak, scalar=True))
    return pytree.unflatten(trees[0], chosen)
