"""Which objects a result is or holds: what the caller gave, and what a pytree is no place for.

    def largest(a, b):
        return a if a[0] > b[0] else b

Containers among the arguments are taken apart, and the function gets others of the same content. Nobody
sees that unless they come out again: the caller expects his own then, and they have to be nodes of the
heap (`heap`). Objects of the user's, and sets, come out as effects do, by recipes (`effects`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from ..data import pytree
from ..messages.errors import ChangedArgument as ChangedArgument
from ..messages.errors import WantsHeap as WantsHeap
from ..records.arrays import Records
from .subjects import is_object

Place = int | str


class ShownLater(ABC):
    """A text whose characters are known when the function has run: `shown` makes it of its `values`."""

    __slots__ = ()

    @property
    @abstractmethod
    def values(self) -> tuple[Any, ...]: ...

    @abstractmethod
    def shown(self, values: Iterable[Any]) -> str: ...


class Kept:
    """The containers among the `arguments` of a function, each with its place. What stands in the places
    `whole` are the caller's own, the others were taken apart."""

    def __init__(self, arguments: Iterable[tuple[Place, Any]], whole: Collection[Place]) -> None:
        self._places: dict[int, Place] = {}
        self._own: set[int] = set()
        for place, argument in arguments:
            ids = {id(node) for node in _changeable(argument)}
            if place in whole:
                self._own |= ids
            else:
                self._places |= dict.fromkeys(ids, place)

    @property
    def taken_apart(self) -> Iterable[tuple[int, Place]]:
        """By id, those that were taken apart, with the place where they were given."""
        return self._places.items()

    def refuse(self, value: Any) -> None:
        """Raise ChangedArgument for one that was taken apart."""
        place = self._places.get(id(value))
        if place is not None:
            raise ChangedArgument(place)

    def refuse_within(self, result: Any, outside: Iterable[Any]) -> None:
        """Raise ChangedArgument for one that was taken apart in a result, WantsHeap for others, for
        those in what is read from outside, and for what no pytree has room for."""
        leaves = pytree.flatten(result)[0]
        nodes = list(_changeable(result))
        for node in nodes:
            self.refuse(node)
        if any(isinstance(leaf, (set, frozenset, Counter)) or is_object(leaf) for leaf in leaves):
            raise WantsHeap
        if any(isinstance(node, ShownLater) for node in pytree.nodes(result)):
            raise WantsHeap
        if nodes:
            own = self._own | {id(node) for value in outside for node in _changeable(value)}
            if any(id(node) in own for node in nodes):
                raise WantsHeap


def _changeable(tree: Any) -> Iterator[Any]:
    for x in pytree.nodes(tree):
        is_array = isinstance(x, Records) and not x.scalar
        if is_array or isinstance(x, (list, dict, deque)) or is_object(x):
            yield x
