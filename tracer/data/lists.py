"""Long lists of numbers of one class, as inputs of compiled code: one array each.

A list of 400 floats would be 400 values of the graph otherwise. What the function sees of it is a list
(`containers.packed`); what it assigns to elements goes back into the caller's list after the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from ...ir.record import record
from ...ir.types import BOOL, F64, I64, TensorType
from . import pytree

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
    """What compiled code relies on: the class of all numbers in a list."""

    cls: type

    def type_of(self, items: Sequence[Any]) -> TensorType:
        return TensorType((len(items),), _DTYPES[self.cls])

    def pack(self, items: Sequence[Any]) -> Array:
        """The numbers as an array; TypeError if they are others than of this kind."""
        if kind_of_list(items) != self:
            raise TypeError
        return np.fromiter(items, _DTYPES[self.cls], len(items))

    def unpack(self, items: list[Any], values: Array) -> None:
        """Let the items of a list be these numbers. Those that are equal stay."""
        bits = f"V{values.itemsize}"
        for i in np.flatnonzero(self.pack(items).view(bits) != values.view(bits)).tolist():
            items[i] = self.cls(values[i])

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
    if len(set(map(type, value))) > 1:
        return None
    if cls is int and not -(1 << 63) <= min(value) <= max(value) < 1 << 63:
        return None  # no dtype has room for it
    return ListKind(cls)


def with_leaves(value: Any) -> Any:
    """An argument with a `ListLeaf` for each long list of numbers in it; itself if there is none."""
    cls = type(value)
    if cls is dict:
        parts = {key: with_leaves(item) for key, item in value.items()}
        changed = any(parts[key] is not item for key, item in value.items())
        return parts if changed else value
    if cls is not list and cls is not tuple:
        return value
    kind = kind_of_list(value)
    if kind is not None:
        return ListLeaf(value, kind)
    items = [with_leaves(item) for item in value]
    return cls(items) if any(map(_differ, items, value)) else value


def _differ(a: Any, b: Any) -> bool:
    return a is not b


def with_own_lists(
    finish: Callable[[list[Any], Sequence[Any]], Any], grown: Sequence[int]
) -> Callable[[list[Any], Sequence[Any]], Any]:
    """`finish` gives a result and the content of those inputs, lists, that have `grown`: a function that
    puts it into them and gives the result."""

    def finish_with_lists(outputs: list[Any], inputs: Sequence[Any]) -> Any:
        result, contents = finish(outputs, inputs)
        own = {}
        for k, content in zip(grown, contents, strict=True):
            _refill(inputs[k], content)
            own[id(content)] = inputs[k]
        is_own = lambda x: id(x) in own  # noqa: E731
        own_of = lambda x: own.get(id(x), x)  # noqa: E731
        return optree.tree_map(own_of, result, is_leaf=is_own, namespace=pytree.NAMESPACE)

    return finish_with_lists


def _refill(items: list[Any], content: list[Any]) -> None:
    """Let a list have this content. Items that are equal, of one class, stay."""
    for i, (old, new) in enumerate(zip(items, content, strict=False)):
        if type(old) is type(new) and (old == new or old != old) and str(old) == str(new):
            content[i] = old
    items[:] = content
