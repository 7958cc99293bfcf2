"""Sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.ops.control import python_sets
from ...ir.types import I64
from ..arrays.common import array
from ..control.control import cond
from ..core.tracers import as_value, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .dicts import Dict
from .elements.forms import form_of_keys
from .elements.varied import is_constant
from .folds import some
from .kinds import NOTHING
from .stand_ins import Container, element, enlist, fail, for_each, register, require, root
from .tables import Table
from .walking import Numbered, walk

Method = Callable[[Any, Any], Any]


def _operator(function: Method) -> tuple[Method, Method]:
    """An operator of two sets, and the same with the sides changed: one of them may be Python's."""

    def forward(self: Any, other: Any) -> Any:
        return function(self, self._other(other)) if _is_set(other) else NotImplemented

    def backward(self: Any, other: Any) -> Any:
        return function(self._other(other), self) if _is_set(other) else NotImplemented

    return forward, backward


def _is_set(x: Any) -> bool:
    return isinstance(x, (Set, FrozenSet, set, frozenset))


class Set(Table):
    """A set. It runs over its keys as CPython does: where a key lies in memory decides that."""

    __slots__ = ()
    _new = "new_set"

    def _ask(self, method: str, *operands: Value) -> tuple[Value, ...]:
        form = self.kind.key
        shape = "" if form is None else form_of_keys(form)
        method = method.replace("table_", "set_")
        return self._run(method, *operands, key=self._dtypes["key"], form=shape)

    def _other(self, items: Any) -> Any:
        """What this one is to be joined with, or compared to, as a native set."""
        if isinstance(items, (Set, FrozenSet)):
            return items if isinstance(items, Set) else items.as_set
        made = Set(self.kind.derived("other", set))
        if isinstance(items, (set, frozenset)):
            made.fill_from(items)
        else:
            made.update(items)
        return made

    def fill_from(self, items: Any) -> None:
        """Have the keys of one of Python's sets, which lie as there."""
        how = python_sets.read(items)
        if how is None or not how.entries or any(map(is_constant, pytree.flatten([*items])[0])):
            for item in items:
                self.add(item)
            return
        for item in items:
            self.kind.see(item, NOTHING)
        form = self.kind.key
        if form is None:
            return
        live = [key is not python_sets.GONE for _, key in how.entries]
        places = [place for place, _ in how.entries]
        any_key = (
            next(iter(items)) if items else element(form, [as_value(0, d) for d in form.dtypes])
        )
        keys = [
            key if there else any_key for (_, key), there in zip(how.entries, live, strict=True)
        ]
        self._ask("set_sized", as_value(how.size, I64), as_value(how.finger, I64))
        columns = zip(*(pytree.flatten(key)[0] for key in keys), strict=True)
        numbers = [array(np.array(c, d)) for c, d in zip(columns, form.numbers, strict=True)]
        where, there = array(np.array(places)), array(np.array(live))

        def write(i: Any) -> None:
            self._ask("set_write", *(as_value(column[i]) for column in (where, there, *numbers)))

        for_each(len(keys), write)

    def entries(self, make: Callable[[Any, Any], Any]) -> Any:
        self._refuse_unordered()
        return super().entries(make)

    def first(self, make: Callable[[Any, Any], Any] = lambda key, value: key) -> Any:
        """The first of `entries` alone."""
        self._refuse_unordered()
        return super().first(make)

    def _refuse_unordered(self) -> None:
        """Python's order is known of keys of which each hash is."""
        form = self.kind.key
        if form is not None and "?" in form_of_keys(form):
            complain(
                errors.UnsupportedFunctionError,
                "the order of a set whose keys hold other things than numbers is asked for in compiled "
                "code; it depends on hashes that are others in each process",
                "use a dict, whose order is that in which keys came: dict.fromkeys(...).",
            )

    def add(self, item: Any) -> None:
        self._ask("set_put", *self._key(item))

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
        self._refuse_unordered()
        require(as_value(self.truth()), message, "KeyError")
        form = self.kind.key
        assert form is not None
        return element(form, self._ask("set_pop")[1:])

    def update(self, *others: Any) -> None:
        for other in others:
            same, mine = self._alike(other, learns=True), self.kind.key
            if same is not None:
                self._ask("set_merge", same._at)
            elif _is_set(other):
                pass
            elif isinstance(other, Dict) and self._is_of_dict(other) and mine is not None:
                self._run(
                    "set_take_keys",
                    other._at,
                    key=other._dtypes["key"],
                    value=other._dtypes["value"],
                    form=form_of_keys(mine),
                )
            else:
                walk(other, self.add)

    def _alike(self, other: Any, learns: bool = False) -> Any:
        """Another set as a native one, with keys of the form of these; None for what is no set, and if
        one of them is empty as far as it is known. `learns`: the other one's keys go into this."""
        if not _is_set(other):
            return None
        other = self._other(other)
        if not other.is_known or not (learns or self.is_known):
            return None
        self.kind.see_keys_of(other.kind)
        if not self._has_keys_of(other):
            other.kind.see_keys_of(self.kind)
        return other

    def _is_of_dict(self, other: Dict) -> bool:
        """Whether another one is a plain dict with keys of the form of these."""
        return other.kind.cls is dict and self._has_keys_of(other)

    def _has_keys_of(self, other: Any) -> bool:
        mine, others = self.kind.key, other.kind.key
        if mine is None or others is None or mine.numbers != others.numbers:
            return False
        return form_of_keys(mine) == form_of_keys(others)

    def _made(self, change: Callable[[Set], None]) -> Set:
        made: Set = self.copy()
        change(made)
        return made

    def union(self, *others: Any) -> Set:
        return self._made(lambda made: made.update(*others))

    def difference(self, *others: Any) -> Set:
        if not others:
            return self.copy()
        made = self._without(others[0])
        made.difference_update(*others[1:])
        return made

    def _without(self, other: Any) -> Set:
        same = self._alike(other)
        if same is not None and self.is_known:
            (made,) = self._ask("set_difference", root(), same._at)
            return type(self)(self.kind, wrap(made, scalar=True))
        if not isinstance(other, Dict) or other.kind.cls is not dict or not self.is_known:
            return self._made(lambda made: made.difference_update(other))
        few = (self.length() >> 2) > other.length()
        return cond(
            few,
            lambda: self._made(lambda made: made.difference_update(other)),
            lambda: self._sifted(self, lambda item: other.contains(item) ^ True),
        )

    def difference_update(self, *others: Any) -> None:
        for other in others:
            same = self._alike(other)
            if not self.is_known:
                continue
            if same is not None:
                self._ask("set_take_out", same._at)
            elif not _is_set(other):
                walk(other, self.discard)
                self._ask("set_shrink")

    def intersection(self, *others: Any) -> Set:
        made = self
        for other in others:
            made = made._common(other)
        return made if others else self.copy()

    def _common(self, other: Any) -> Set:
        """What is in both."""
        same = self._alike(other)
        if same is not None and self.is_known:
            (made,) = self._ask("set_intersection", root(), same._at)
            return type(self)(self.kind, wrap(made, scalar=True))
        return self.fresh() if _is_set(other) else self._sifted(other, self.contains)

    def _sifted(self, items: Any, wanted: Callable[[Any], Any]) -> Set:
        """Of items those that are wanted."""
        made: Set = self.fresh()

        def look(item: Any) -> None:
            there = wanted(item)
            if there is not False:
                cond(there, lambda: made.add(item), lambda: None)

        walk(items, look)
        return made

    def intersection_update(self, *others: Any) -> None:
        kept = self.intersection(*others)
        if self.is_known:
            self._ask("set_swap", kept._at)

    def symmetric_difference_update(self, other: Any) -> None:
        if not _is_set(other) and not (isinstance(other, Dict) and other.kind.cls is dict):
            other = self._other(other)
        same = self._alike(other, learns=True)
        if same is not None:
            self._ask("set_toggle", same._at)
        elif not _is_set(other):
            walk(other, self._turn)

    def _turn(self, item: Any) -> None:
        there = self.contains(item)
        if there is False:
            self.add(item)
        else:
            cond(there, lambda: self.discard(item), lambda: self.add(item))

    def symmetric_difference(self, other: Any) -> Set:
        made: Set = self.fresh()
        made.update(other)
        made.symmetric_difference_update(self)
        return made

    def isdisjoint(self, other: Any) -> Any:
        return some(self._other(other).unordered(), self.contains, True) ^ True

    def issubset(self, other: Any) -> Any:
        return some(self.unordered(), self._other(other).contains, False)

    def issuperset(self, other: Any) -> Any:
        return self._other(other).issubset(self)

    def is_comparable(self, other: Any) -> bool:
        return isinstance(other, Set)

    def __eq__(self, other: object) -> Any:
        return super().__eq__(self._other(other) if _is_set(other) else other)

    __hash__ = None  # type: ignore[assignment]

    def unordered(self) -> Numbered:
        """The keys for whom the order does not matter."""
        return Numbered(*self.in_any_order(lambda key, value: key))

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


def _read(name: str) -> Any:
    """A method that changes nothing."""
    return lambda self, *args: getattr(self.as_set, name)(*args)


def _joined(name: str) -> Any:
    """A method, or an operator, that makes a new one."""

    def call(self: FrozenSet, *others: Any) -> Any:
        made = getattr(self.thawed(), name)(*others)
        return FrozenSet.of(made) if isinstance(made, Set) else made

    return call


def _joined_behind(name: str) -> Any:
    """An operator whose left side, one of Python's, says what comes out."""

    def call(self: FrozenSet, other: Any) -> Any:
        made = getattr(self.as_set, name)(other)
        return FrozenSet.of(made) if isinstance(other, frozenset) else made

    return call


class FrozenSet(Container):
    """A frozen set: a set's memory that nobody changes any more."""

    __slots__ = ()

    @classmethod
    def of(cls, items: Set) -> FrozenSet:
        """Of a set that nobody else has."""
        kind = items.kind.derived("frozenset", frozenset)
        kind.see_forms_of(items.kind)
        return cls(kind, items.handle)

    @property
    def as_set(self) -> Set:
        """What is asked as a set is."""
        return Set(self.kind, self.handle)

    def thawed(self) -> Set:
        """A set of the same."""
        made = Set(self.kind.derived("set", set))
        made.update(self)
        return made

    def copy(self) -> FrozenSet:
        return self

    walked, first, going, length, contains = map(
        _read, ("walked", "first", "going", "length", "contains")
    )
    issubset, issuperset, isdisjoint, unordered = map(
        _read, ("issubset", "issuperset", "isdisjoint", "unordered")
    )
    __eq__, __lt__, __le__, __gt__, __ge__ = map(
        _read, ("__eq__", "__lt__", "__le__", "__gt__", "__ge__")
    )
    union, intersection, difference, symmetric_difference = map(
        _joined, ("union", "intersection", "difference", "symmetric_difference")
    )
    __or__, __and__, __sub__, __xor__ = map(_joined, ("__or__", "__and__", "__sub__", "__xor__"))
    __ror__, __rand__, __rsub__, __rxor__ = map(
        _joined_behind, ("__ror__", "__rand__", "__rsub__", "__rxor__")
    )
    __hash__ = None


register(set, Set)
enlist(FrozenSet)
enlist(Set)
