"""Sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control.control import cond
from ..core.tracers import as_value
from .stand_ins import element, enlist, fail, register, require
from .tables import Table
from .walking import walk


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
        ok, _ = self._remove(item)
        self.require_key(ok, item)

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

    def intersection(self, other: Any) -> Set:
        made: Set = self.fresh()

        def look(item: Any) -> None:
            there = self.contains(item)
            if there is not False:
                cond(there, lambda: made.add(item), lambda: None)

        walk(other, look)
        return made

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

    def __or__(self, other: Any) -> Any:
        return self.union(other)

    def __sub__(self, other: Any) -> Any:
        return self.difference(other)

    def __and__(self, other: Any) -> Any:
        return self.intersection(other)

    def __xor__(self, other: Any) -> Any:
        return self.symmetric_difference(other)

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __isub__(self, other: Any) -> Any:
        self.difference_update(other)
        return self


register(set, Set)
enlist(Set)
