"""Which containers of the heap are native ones in compiled code, and how they come there (`heap`).

    class Life:
        def step(self):
            ...
            self.cells = {c for c, k in n.items() if k == 3}     # a native set: an input, of any length

Of these the function gets handles, and the heap knows nothing of what is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.types import TensorType
from ..core.specs import Spec
from ..data.containers import CONTAINERS
from ..data.lists import kind_of_list, kind_of_table
from .heap_nodes import Node, Place

if TYPE_CHECKING:
    from ..containers.entering import Entering, Entrance
    from ..containers.kinds import Kind

HANDLE = TensorType((), np.dtype(np.uint64))  # as that of `ir.ops.control.stores`
NO_HANDLE = np.zeros((), HANDLE.dtype)


def stays(spec: Spec) -> bool:
    """Whether an object is seen itself, and only its state, or a handle of it, is the input."""
    return spec.holder is not None and not getattr(spec.holder, "stands", False)


def is_data(value: Any) -> bool:
    """Whether a container that the function may change is of any length, not so many values."""
    return type(value) is set or bool(kind_of_list(value) or kind_of_table(value))


class Natives:
    """Those of one heap: by the numbers of the inputs, how they become native ones."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}  # of inputs, by id
        self.others: list[tuple[Any, Place]] = []  # sets, which are no nodes, and where they are
        self._values: list[Any] = []
        self._entering: dict[int, Entering] = {}
        self._known: dict[int, Kind] = {}  # by id
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
        from ..containers.entering import entering  # with the first: few functions have one

        how = entering(value, self._known)
        if how is None:
            return None
        self.numbers[id(value)] = number
        self._entering[number] = how
        self._values.append(value)
        return Spec(HANDLE, None, True, holder=how)

    def found_twice(self, nodes: Iterable[Node]) -> set[Place]:
        """Where containers are that are in native ones, too."""
        if not self._values:
            return set()
        from ..containers.entering import inner_of

        inner = {id(x) for value in self._values for x in inner_of(value)} - self.numbers.keys()
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
