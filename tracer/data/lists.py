"""Long lists of numbers of one class, and tables of them, as inputs of compiled code: one array each.

A list of 400 floats would be 400 values of the graph otherwise. What the function sees of it is a list
(`containers.packed`); what it assigns to elements goes back into the caller's list after the run. A
table is a list of lists of one length: an array of two dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ...ir.record import record
from ...ir.types import BOOL, F64, I64, TensorType

Array = np.ndarray[Any, Any]
LONG = 16  # numbers from which a list is one value
_DTYPES: dict[type, np.dtype[Any]] = {
    float: F64,
    int: I64,
    bool: BOOL,
    np.float64: F64,
    np.int64: I64,
}
_make: list[Callable[[ListKind, Any], Any]] = []


@record
class ListKind:
    """What compiled code relies on: the class of all numbers in a list, or in the lists of a table."""

    cls: type
    table: bool = False

    def type_of(self, items: Sequence[Any]) -> TensorType:
        shape = (len(items), len(items[0])) if self.table else (len(items),)
        return TensorType(shape, _DTYPES[self.cls])

    def pack(self, items: Sequence[Any]) -> Array:
        """The numbers as an array; TypeError if they are others than of this kind."""
        type = self.type_of(items)
        if self.table:  # the call has just looked at all of it
            return np.fromiter(chain.from_iterable(items), type.dtype, type.size).reshape(
                type.shape
            )
        if kind_of_list(items) != self:
            raise TypeError
        return np.fromiter(items, type.dtype, type.size)

    def unpack(self, items: list[Any], values: Array) -> None:
        """Let the items of a list be these numbers. Those that are equal stay."""
        bits = f"V{values.itemsize}"
        before = self.pack(items)
        if not self.table:
            items, before, values = [items], before[None], values[None]
        changed = before.view(bits) != values.view(bits)
        for row in np.flatnonzero(changed.any(axis=1)).tolist():
            places = np.flatnonzero(changed[row])
            new = values[row, places]
            numbers = new.tolist() if self.cls in (int, float, bool) else new
            for i, number in zip(places.tolist(), numbers, strict=True):
                items[row][i] = number

    def __call__(self, array: Any) -> Any:
        """What stands in for a list of the elements of `array`, a tracer."""
        return _make[0](self, array)


class ListLeaf:
    """A list on its way through the pytree functions, which would take it apart."""

    __slots__ = ("items", "kind")

    def __init__(self, items: list[Any], kind: ListKind) -> None:
        self.items, self.kind = items, kind


def provide_packed(make: Callable[[ListKind, Any], Any]) -> None:
    """What makes stand-ins; it lies above."""
    _make[:] = [make]


def kind_of_list(value: Any) -> ListKind | None:
    """The kind of a long list of numbers of one class; None for all other values."""
    if type(value) is not list or len(value) < LONG or (cls := type(value[0])) not in _DTYPES:
        return None
    return ListKind(cls) if _are_of(cls, value) else None


def kind_of_table(value: Any) -> ListKind | None:
    """The kind of a list of lists of one length, with many numbers of one class; None for all others.

    A row that is there twice has two names: the array would hold it twice."""
    if type(value) is not list or len(value) < 2 or type(row := value[0]) is not list:
        return None
    if len(value) * len(row) < LONG or (cls := type(row[0])) not in _DTYPES:
        return None
    if any(type(row) is not list for row in value) or len(set(map(len, value))) > 1:
        return None
    if len(set(map(id, value))) < len(value) or not all(_are_of(cls, row) for row in value):
        return None
    return ListKind(cls, table=True)


def has_many(value: Any) -> bool:
    """Whether a dict or list has so many lists, sets, dicts or tuples of numbers in it that each number
    would be too much for a graph: it is a native container from the start, if it can be."""
    if type(value) not in (dict, list) or len(value) < _MANY_PARTS:
        return False
    parts = [*value.values()] if type(value) is dict else value
    classes = set(map(type, parts))
    if len(classes) > 1 or not classes <= _PARTS or not all(map(_begins_with_numbers, parts)):
        return False
    most = _MANY_IN_TUPLES if tuple in classes else _MANY_NUMBERS
    return sum(map(len, parts)) > most and kind_of_table(value) is None


_PARTS = {list, tuple, set, dict}
_MANY_PARTS, _MANY_NUMBERS, _MANY_IN_TUPLES = 64, 500, 2000


def _begins_with_numbers(part: Any) -> bool:
    first = next(iter(part), 0)
    while type(first) is tuple and first:
        first = first[0]
    return type(first) in _DTYPES


def _are_of(cls: type, numbers: list[Any]) -> bool:
    if len(set(map(type, numbers))) > 1 or type(numbers[0]) is not cls:
        return False
    # For others no dtype has room.
    return cls is not int or -(1 << 63) <= min(numbers) <= max(numbers) < 1 << 63


def with_leaves(arguments: Any, tables: bool = True) -> Any:
    """Arguments with a `ListLeaf` for each long list of numbers in them, and for each table; themselves
    if there is none."""
    found = _with_leaves(arguments, tables)
    if tables and found is not arguments and _share_rows(found):
        return _with_leaves(arguments, False)
    return found


def _with_leaves(value: Any, tables: bool) -> Any:
    cls = type(value)
    if cls is dict:
        parts = {key: _with_leaves(item, tables) for key, item in value.items()}
        changed = any(parts[key] is not item for key, item in value.items())
        return parts if changed else value
    if cls is not list and cls is not tuple:
        return value
    kind = kind_of_list(value) or (kind_of_table(value) if tables else None)
    if kind is not None:
        return ListLeaf(value, kind)
    items = [_with_leaves(item, tables) for item in value]
    return cls(items) if any(map(_differ, items, value)) else value


def _share_rows(arguments: Any) -> bool:
    """Whether the row of a table is somewhere else, too: writes to one are seen in the other."""
    owners: dict[int, int] = {}
    lists = list(_lists(arguments))
    tables = {id(x.items): x.items for x in lists if type(x) is ListLeaf and x.kind.table}
    for table in tables.values():
        for row in table:
            if owners.setdefault(id(row), id(table)) != id(table):
                return True
    return any(id(x.items if type(x) is ListLeaf else x) in owners for x in lists)


def _lists(value: Any) -> Iterator[Any]:
    """The lists in arguments, and those leaves that are lists."""
    if type(value) in (list, ListLeaf):
        yield value
    if type(value) in (list, tuple, dict):
        for item in value.values() if type(value) is dict else value:
            yield from _lists(item)


def _differ(a: Any, b: Any) -> bool:
    return a is not b
