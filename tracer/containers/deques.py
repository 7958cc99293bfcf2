"""Deques."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ...ir.graph import Value
from ...ir.types import BOOL
from ..control.control import cond
from ..core.tracers import as_value, wrap
from .sequences import Sequence
from .stand_ins import enlist, for_each, register, require
from .walking import walk

_CHANGING = frozenset("append prepend pop pop_first insert take extend clear".split())


class Deque(Sequence):
    """A deque. Of one with a bound, what is too much falls off the other end."""

    __slots__ = ()
    _outside = "deque index out of range"

    def going(self) -> Callable[[Any], Any]:
        """RuntimeError if it has changed since."""
        self.kind.watch()
        length, stamp = self.length(), self._stamp()

        def going(i: Any) -> Any:
            same = as_value(self._stamp() == stamp)
            require(same, "deque mutated during iteration", "RuntimeError")
            return i < length

        return going

    def _stamp(self) -> Any:
        return wrap(self.ask("changes")[0], "i")

    def ask(self, method: str, *operands: Value) -> tuple[Value, ...]:
        self._tell(method)
        return super().ask(method, *operands)

    def put(self, method: str, *places: Value, item: Any) -> tuple[Value, ...]:
        self._tell(method)
        return super().put(method, *places, item=item)

    def clear(self) -> None:
        self._tell("clear")
        super().clear()

    def _tell(self, method: str) -> None:
        """Say that it changes, where a loop runs over one like it."""
        if self.kind.is_watched and method in _CHANGING:
            self._run("touch")

    def append(self, item: Any) -> None:
        super().append(item)
        self._shed("pop_first")

    def insert(self, index: Any, item: Any) -> None:
        if self.maxlen is not None:
            there = self.length() < self.maxlen
            require(as_value(there, BOOL), "deque already at its maximum size", "IndexError")
        super().insert(index, item)

    def appendleft(self, item: Any) -> None:
        self.put("prepend", item=item)
        self._shed("pop")

    def _shed(self, method: str) -> None:
        most = self.kind.detail
        if most is not None:
            cond(self.length() > most, lambda: self._drop(method), lambda: None)

    def _drop(self, method: str) -> None:
        self.ask(method)

    @property
    def maxlen(self) -> int | None:
        return self.kind.detail

    def pop(self) -> Any:
        return self.taken("pop", "pop from an empty deque")

    def popleft(self) -> Any:
        return self.taken("pop_first", "pop from an empty deque")

    def extendleft(self, items: Any) -> None:
        walk(items, self.appendleft)

    def rotate(self, n: Any = 1) -> None:
        if not self.is_known:
            return
        length = self.length()

        def turn() -> None:
            for_each(n % length, lambda i: self._turn())

        cond(length > 0, turn, lambda: None)

    def _turn(self) -> None:
        _, *values = self.ask("pop")
        self._tell("prepend")
        self._run("prepend", *values, value=self.form.dtypes)


register(deque, Deque)
enlist(Deque)
