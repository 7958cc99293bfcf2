"""Which containers of the heap are native ones in compiled code, and how they come there (`heap`).

    class Life:
        def step(self):
            ...
            self.cells = {c for c, k in n.items() if k == 3}     # a native set: an input, of any length

Of these the function gets handles, and the heap knows nothing of what is in them.
"""

from __future__ import annotations

from abc import ABCMeta
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.types import TensorType
from ..core.specs import Spec
from ..data.containers import CONTAINERS
from ..data.lists import has_many, kind_of_list, kind_of_table
from ..data.objects import kind_of
from .frozen import attributes_of
from .heap_nodes import Node, Place, class_data
from .paths import ABSENT
from .subjects import is_object

if TYPE_CHECKING:
    from ..containers.entering import Entering, Entrance, Known
    from ..containers.kinds import Kind

HANDLE = TensorType((), np.dtype(np.uint64))  # as that of `ir.ops.control.stores`
_ATOMS = (int, float, bool, str, type(None))
NO_HANDLE = np.zeros((), HANDLE.dtype)


def stays(spec: Spec) -> bool:
    """Whether an object is seen itself, and only its state, or a handle of it, is the input."""
    return spec.holder is not None and not getattr(spec.holder, "stands", False)


def is_data(value: Any) -> bool:
    """Whether a container that the function may change is of any length, not so many values."""
    known = type(value) is set or bool(kind_of_list(value) or kind_of_table(value))
    return known or has_many(value)


class Natives:
    """Those of one heap: by the numbers of the inputs, how they become native ones."""

    def __init__(self, classes: frozenset[type] = frozenset()) -> None:
        self._classes = classes  # whose objects are native ones
        self.numbers: dict[int, int] = {}  # of inputs, by id
        self.others: list[tuple[Any, Place]] = []  # sets, which are no nodes, and where they are
        self._values: list[Any] = []
        self._entering: dict[int, Entering] = {}
        self._known: Known | None = None
        self._entrance: Entrance | None = None

    def __bool__(self) -> bool:
        return bool(self._entering)

    def __contains__(self, number: int) -> bool:
        return number in self._entering

    @property
    def entering(self) -> list[Entering]:
        """How each becomes a native one, in the order of the inputs."""
        return [*self._entering.values()]

    @entering.setter
    def entering(self, found: Sequence[Entering]) -> None:
        self._entering = dict(zip(self._entering, found, strict=True))

    @property
    def kinds(self) -> list[tuple[int, Kind]]:
        """The inputs, and of which kind each is."""
        return [(number, how.kind) for number, how in self._entering.items()]

    def take(self, value: Any, number: int) -> Spec | None:
        """Let a container be native, as input `number`; None if it can't be."""
        from ..containers.entering import EnteringObject, Known, entering  # few functions have one

        if self._known is None:
            self._known = Known()
        how: Entering | None
        if type(value) in CONTAINERS:
            how = entering(value, self._known)
        else:
            how = EnteringObject(value, self._classes, _attributes_of)
        if how is None:
            return None
        self.numbers[id(value)] = number
        self._entering[number] = how
        self._values.append(value)
        return Spec(HANDLE, None, True, holder=how)

    def found_twice(self, nodes: Iterable[Node]) -> set[Place]:
        """Where containers are that are in native ones, too."""
        values = [value for value in self._values if type(value) in CONTAINERS]
        if not values:
            return set()
        from ..containers.entering import inner_of

        inner = {id(x) for value in values for x in inner_of(value)} - self.numbers.keys()
        found = {node.place for node in nodes if id(node.value) in inner}
        return found | {place for value, place in self.others if id(value) in inner}

    def offer(self, nodes: Iterable[Node], tried: Iterable[Place]) -> None:
        """Tell the trace that begins which other containers could be native."""
        from ..containers.kinds import Outside, current  # when it is traced: a call needs none

        kinds = current()
        if kinds is None:
            return
        found = [(node.value, node.place) for node in nodes if not node.log]
        for value, place in (*found, *self.others):
            if type(value) in CONTAINERS and place not in tried:
                kinds.births[id(value)] = Outside(place)

    @property
    def holds_arrays(self) -> bool:
        """Whether arrays are in objects that become native ones: copies of them, then."""
        return any(how.holds_arrays for how in self.entering)

    @property
    def entrance(self) -> Entrance:
        """What makes all of a call."""
        if self._entrance is None:
            from ..containers.entering import Entrance

            self._entrance = Entrance([how.kind for how in self.entering])
        return self._entrance

    def enter(self, inputs: list[Any], nodes: Sequence[Any], interpreted: bool) -> Any:
        """Put handles in the place of containers among the inputs of a call; gives what keeps the
        native ones, and who may be one by id. None if one is not like what was traced."""
        values = [inputs[n] for n in self._entering]
        found = self.entrance.enter(values, interpreted)
        if found is None:
            return None
        handles, owner, seen = found
        if seen and not seen.keys().isdisjoint(map(id, nodes)):
            return None
        for k, number in enumerate(self._entering):
            inputs[number] = handles[k : k + 1].reshape(())
        return owner, {*map(id, values), *seen}


def linked_classes(values: Iterable[Any]) -> tuple[frozenset[type], int]:
    """Classes of users whose objects lead to others of the same class, as nodes of trees and lists do,
    and those of what these lead to; none if one of them says itself what attributes are. And how many
    objects of them there are."""
    leads: dict[type, set[type]] = {}
    count = Counter[type]()
    waiting: list[tuple[type | None, Any]] = [(None, value) for value in values]
    seen: dict[int, Any] = {}
    while waiting:
        cls, value = waiting.pop()
        is_node = is_object(value)
        if is_node and kind_of(value) is None:
            if cls is not None:
                leads[cls].add(type(value))
            cls = type(value)
            leads.setdefault(cls, set())
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if is_node:
            count[type(value)] += 1
            cls = cls if kind_of(value) is None else None
            waiting += [(cls, part) for part in (attributes_of(value) or {}).values()]
        elif type(value) in (tuple, *CONTAINERS):
            parts = [*value, *value.values()] if isinstance(value, dict) else value
            waiting += [(cls, part) for part in parts if type(part) not in _ATOMS]
    linked = {cls for cls in leads if cls in _led_to(cls, leads)}
    for cls in [*linked]:
        linked |= _led_to(cls, leads)
    found = frozenset(linked) if all(map(_is_plain, linked)) else frozenset[type]()
    return found, sum(count[cls] for cls in found)


def _led_to(cls: type, leads: dict[type, set[type]]) -> set[type]:
    found: set[type] = set()
    waiting = [cls]
    while waiting:
        new = leads[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _is_plain(cls: type) -> bool:
    """Whether objects of a class have what is in them, and nothing of their class but methods."""
    own = ("__getattribute__", "__getattr__", "__setattr__", "__delattr__")
    return type(cls) in (type, ABCMeta) and not any(
        name in vars(base) for base in cls.__mro__[:-1] for name in own
    )


def _attributes_of(value: Any) -> dict[str, Any] | None:
    """The attributes of an object; None if something is in their place, or beside them, in its class."""
    attributes = attributes_of(value) or {}
    cls: Any = type(value)
    data, others = _in_class(cls)
    return attributes if data <= attributes.keys() and others.isdisjoint(attributes) else None


@cache
def _in_class(cls: type) -> tuple[frozenset[str], frozenset[str]]:
    """The names of data of a class, and of what is no data and no slot."""
    held = {name: x for base in reversed(cls.__mro__[:-1]) for name, x in list(vars(base).items())}
    data = {name for name in held if class_data(cls, name) is not ABSENT}
    slots = {name for name, x in held.items() if type(x) is MemberDescriptorType}
    return frozenset(data), frozenset(held.keys() - data - slots)
