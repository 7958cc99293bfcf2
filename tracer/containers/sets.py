"""Sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control.control import cond
from ..core.tracers import as_value
from .folds import some
from .kinds import Kind
from .stand_ins import element, enlist, fail, register, require
from .tables import Table
from .walking import walk

Method = Callable[[Any, Any], Any]


def _operator(function: Method) -> tuple[Method, Method]:
    """An operator of two sets, and the same with the sides changed: one of them may be Python's."""

    def forward(self: Any, other: Any) -> Any:
        return function(self, _native(other)) if _is_set(other) else NotImplemented

    def backward(self: Any, other: Any) -> Any:
        return function(_native(other), self) if _is_set(other) else NotImplemented

    return forward, backward


def _is_set(x: Any) -> bool:
    return isinstance(x, (Set, set, frozenset))


def _native(items: Any) -> Any:
    """Items of any kind as a native set."""
    if isinstance(items, Set):
        return items
    made = Set(Kind(set))
    made.update(items)
    return made


class Set(Table):
    """A set."""

    __slots__ = ()

    def fill_from(self, items: Any) -> None:
        for item in items:
            self.add(item)

    def add(self, item: Any) -> None:
        self._ask("table_put", *self._key(item))

    def add_all(self, items: Any) -> None:
        self.update(items)

    def discard(self, item: Any) -> None:
        if self.is_known:
            self._remove(item)

    def remove(self, item: Any) -> None:
        if not self.is_known:
            self._missing(item)
        self.take(item)

    def pop(self) -> Any:
        message = "pop from an empty set"
        if not self.is_known:
            fail(KeyError(message))
        require(as_value(self.truth()), message, "KeyError")
        (place,) = self._ask("table_first")
        form = self.kind.key
        assert form is not None
        found = element(form, self._ask("table_entry", place))
        self._remove(found)
        return found

    def update(self, *others: Any) -> None:
        for other in others:
            walk(other, self.add)

    def _made(self, change: Callable[[Set], None]) -> Set:
        made: Set = self.copy()
        change(made)
        return made

    def union(self, *others: Any) -> Set:
        return self._made(lambda made: made.update(*others))

    def difference(self, *others: Any) -> Set:
        return self._made(lambda made: made.difference_update(*others))

    def difference_update(self, *others: Any) -> None:
        for other in others:
            walk(other, self.discard)

    def intersection(self, *others: Any) -> Set:
        made = self
        for other in others:
            made = made._common(other)
        return made if others else self.copy()

    def _common(self, other: Any) -> Set:
        """What is in both."""
        made: Set = self.fresh()
        others = _native(other)

        def look(item: Any) -> None:
            there = others.contains(item)
            if there is not False:
                cond(there, lambda: made.add(item), lambda: None)

        walk(self, look)
        return made

    def intersection_update(self, *others: Any) -> None:
        kept = self.intersection(*others)
        self.clear()
        self.update(kept)

    def symmetric_difference_update(self, other: Any) -> None:
        kept = self.symmetric_difference(other)
        self.clear()
        self.update(kept)

    def isdisjoint(self, other: Any) -> Any:
        return some(_native(other), self.contains, True) ^ True

    def issubset(self, other: Any) -> Any:
        return some(self, _native(other).contains, False)

    def issuperset(self, other: Any) -> Any:
        return _native(other).issubset(self)

    def symmetric_difference(self, other: Any) -> Set:
        made: Set = self.copy()

        def look(item: Any) -> None:
            there = self.contains(item)
            if there is False:
                made.add(item)
            else:
                cond(there, lambda: made.discard(item), lambda: made.add(item))

        walk(other, look)
        return made

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __isub__(self, other: Any) -> Any:
        self.difference_update(other)
        return self

    def __iand__(self, other: Any) -> Any:
        self.intersection_update(other)
        return self

    def __ixor__(self, other: Any) -> Any:
        self.symmetric_difference_update(other)
        return self

    __or__, __ror__ = _operator(lambda a, b: a.union(b))
    __sub__, __rsub__ = _operator(lambda a, b: a.difference(b))
    __and__, __rand__ = _operator(lambda a, b: a.intersection(b))
    __xor__, __rxor__ = _operator(lambda a, b: a.symmetric_difference(b))
    __le__, _ = _operator(lambda a, b: a.issubset(b))
    __ge__, _ = _operator(lambda a, b: b.issubset(a))
    __lt__, _ = _operator(lambda a, b: a.issubset(b) & (a.length() < b.length()))
    __gt__, _ = _operator(lambda a, b: b.issubset(a) & (b.length() < a.length()))


register(set, Set)
enlist(Set)
