"""What a heap consists of: nodes, what their slots hold, and how a slot is read and written.

A node is one object of the user's, a list, tuple, dict or deque; each of its slots, by attribute, index
or key, holds another node, an input, or what has to stay as it is.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from types import CellType, FunctionType
from typing import Any

import numpy as np

from ...ir.record import record
from ..core.specs import Spec
from ..data.containers import is_native
from ..records.kinds import RecordKind, fields_of
from .frozen import attributes_of
from .paths import ABSENT, Path

Place = tuple[Any, ...]  # the number of a root, and keys of slots from there on
DICTS = (dict, OrderedDict, defaultdict, Counter)


@record
class Policy:
    """Which numbers are inputs: those that are assigned to by name (bools, which are settings more often
    than state, elsewhere than in `__init__`), and `more`, by node and key.
    With `fixed` none is, because Python asks for their values, and with `arrays` no array either.
    `objects`: there is a heap though nothing is changed, as the function returns objects. Containers
    at the places `natives` are native ones in compiled code; with `barred` none is."""

    more: frozenset[tuple[int, Any]] = frozenset()
    fixed: bool = False
    arrays: bool = False
    objects: bool = False
    natives: frozenset[Place] = frozenset()
    barred: bool = False
    classes: frozenset[type] = frozenset()  # whose objects are native ones, too


@record
class Inner:
    """A slot holds the node of this number."""

    node: int


@record
class Input:
    """A slot holds the array or number that is input `number`."""

    number: int


@record(eq=False)
class Fixed:
    """A slot holds a value that has to stay as it is; `frozen` is its snapshot. Of arrays, see `Policy`,
    also which they are: `number`."""

    value: Any
    frozen: Any
    number: int | None = None


Content = Inner | Input | Fixed


@record(frozen=False, eq=False)
class Node:
    """One object, list, tuple, dict or deque: its class, and what its slots hold, by attribute, index or
    key. `place` is where it was found first, `value` the one that was there when the function was
    traced. A `log` is a list, deque or set to which the function only adds: what is in it does not
    matter, and an empty one stands in for it."""

    value: Any
    cls: type
    name: str
    place: Place
    slots: dict[Any, Content]
    log: bool = False
    live: bool = False  # numbers in it are inputs
    absent: frozenset[str] = (
        frozenset()
    )  # attributes that it may not have, but for those in `slots`
    exact: tuple[str, ...] | None = None  # all attributes, if it may have asked for any
    standing: Any = None  # what stands in its place: of a tuple, one with tracers
    records: RecordKind | None = None  # of a structured array, whose slots are its fields

    @property
    def is_object(self) -> bool:
        composite = self.cls in (list, deque, set, *DICTS) or self.records is not None
        return not composite and not issubclass(self.cls, tuple)

    @property
    def holding(self) -> Any:
        """What holds its elements: of a log, what the function has added."""
        return self.standing if self.log else self.value

    @property
    def is_whole(self) -> bool:
        """Whether its slots are never assigned to: something else stands in its place."""
        return self.records is not None or isinstance(self.value, tuple)


@record(frozen=False, eq=False)
class InputOf:
    """An input: what it is like, and the value that was there when the function was traced."""

    value: Any
    spec: Spec


@record
class HeapSlot:
    """One slot: of a node, or a global or cell."""

    holder: Node | Path
    key: Any
    name: str

    def get(self) -> Any:
        if isinstance(self.holder, Path):
            return self.holder.find()
        return slot_value(self.holder, self.holder.holding, self.key)

    def put(self, value: Any) -> None:
        if isinstance(self.holder, Path):
            put_root(self.holder, value)
        elif value is ABSENT:
            object.__delattr__(self.holder.value, self.key)
        else:
            put_slot(self.holder, self.holder.holding, self.key, value)


def contents(node: Node) -> dict[Any, Any]:
    """What is in a node now, by attribute, index or key."""
    value = node.holding
    if node.is_object:
        return attributes_of(value) or {}
    return value if isinstance(value, dict) else dict(enumerate(value))


def class_data(cls: type, name: str) -> Any:
    """Data that objects have of their class; ABSENT for methods, properties, and Python's own."""
    if name[:2] == name[-2:] == "__":
        return ABSENT
    for base in cls.__mro__[:-1]:
        if name in vars(base):
            value = vars(base)[name]
            plain = not isinstance(value, FunctionType) and not hasattr(type(value), "__get__")
            return value if plain else ABSENT
    return ABSENT


def slots_of(node: Node, value: Any) -> dict[Any, Any] | None:
    """What is in the slots of an object that is in the place of a node; None if they are others."""
    if node.is_object:
        held = attributes_of(value) or {}
        if node.exact is not None and tuple(held) != node.exact:
            return None
        for key in node.slots.keys() - held.keys():
            held[key] = class_data(node.cls, key)
        return held
    if node.records is not None:
        fits = isinstance(value, np.ndarray) and value.dtype == node.records.dtype
        return by_key(node, value) if fits else None
    if len(value) != len(node.slots):
        return None
    if not isinstance(value, dict):
        return dict(enumerate(value))
    same = all(
        a is b or (type(a) is type(b) and a == b) for a, b in zip(value, node.slots, strict=True)
    )
    return value if same else None


def by_key(node: Node, value: Any) -> dict[Any, Any]:
    """What is in a container, by key or number, and in a structured array by field."""
    if node.records is not None:
        return dict(zip(node.records.names, fields_of(value), strict=True))
    return dict(value.items() if isinstance(value, dict) else enumerate(value))


def saved(node: Node) -> Any:
    """The content of a node, to be put back: of a log, what was added to it."""
    if node.log:
        if is_native(node.standing):
            return []  # what happens to it is undone with the trace
        return [] if node.standing is node.value else node.standing.copy()
    if node.is_object:
        return attributes_of(node.value)
    return None if node.is_whole else node.value.copy()


def restore(node: Node, before: Any) -> None:
    """Let a node have the content again that was `saved`."""
    value = node.value
    if before is None:
        return
    if node.log:
        if node.standing is not value and not is_native(node.standing):
            put_content(node.standing, before)
        return
    if node.is_object:
        now = attributes_of(value) or {}
        for name in now.keys() - before.keys():
            object.__delattr__(value, name)
        for name, held in before.items():
            if name not in now or now[name] is not held:
                object.__setattr__(value, name, held)
        return
    pairs = (value.items(), before.items()) if isinstance(value, dict) else (value, before)
    if len(value) != len(before) or any(
        x is not y and (not isinstance(value, dict) or x[0] is not y[0] or x[1] is not y[1])
        for x, y in zip(*pairs, strict=True)
    ):
        put_content(value, before)


def put_content(holder: Any, content: Any) -> None:
    """Give a list, deque, dict or set the content of another."""
    if isinstance(holder, list):
        holder[:] = content
        return
    holder.clear()
    if isinstance(holder, deque):
        holder.extend(content)
    else:
        (dict if isinstance(holder, Counter) else type(holder)).update(holder, content)


def slot_value(node: Node, holder: Any, key: Any) -> Any:
    """What is in a slot of an object that is in the place of a node; ABSENT if nothing is."""
    if not node.is_object:
        return holder[key]
    held = (attributes_of(holder) or {}).get(key, ABSENT)
    return class_data(node.cls, key) if held is ABSENT else held


def put_slot(node: Node, holder: Any, key: Any, value: Any) -> None:
    """Put a value into a slot of an object that is in the place of a node."""
    if node.is_object:
        object.__setattr__(holder, key, value)
    else:
        holder[key] = value


def put_root(path: Path, value: Any) -> None:
    """Let a global or a closure cell hold `value`; ABSENT: nothing."""
    if isinstance(path.root, CellType):
        if value is ABSENT:
            del path.root.cell_contents
        else:
            path.root.cell_contents = value
    elif value is ABSENT:
        path.root.pop(path.name, None)
    else:
        path.root[path.name] = value
