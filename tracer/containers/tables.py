"""Tables from keys of one form to values of one form: what dicts and sets have in common."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ...ir.types import I64
from ..control.control import cond
from ..control.unions import Union, possible
from ..core.effects import check
from ..core.tracers import as_value, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .elements.questions import is_equal, question
from .elements.varied import has_no_words, narrowed
from .folds import some
from .kinds import NOTHING
from .sequences import List
from .stand_ins import (
    Container,
    element,
    fail,
    is_tried,
    leaves_of,
    require,
    root,
    run,
    shown,
)
from .walking import Numbered, Walked


class Table(Container):
    """What dicts and sets have in common."""

    __slots__ = ()
    _new = "new_table"

    @property
    def _dtypes(self) -> dict[str, Any]:
        key, value = self.kind.key, self.kind.value
        return {
            "key": () if key is None else key.dtypes,
            "value": () if value is None else value.dtypes,
        }

    def _ask(self, method: str, *operands: Value) -> tuple[Value, ...]:
        return self._run(method, *operands, **self._dtypes)

    def length(self) -> Any:
        if not self.is_known:
            return 0
        return wrap(self._ask("table_length")[0], "i")

    def _key(self, key: Any) -> list[Value]:
        self.kind.see(key, NOTHING)
        assert self.kind.key is not None
        return leaves_of(self.kind.key, key)

    def find(self, key: Any) -> Any:
        """Where what is asked for is, or -1."""
        assert self.kind.key is not None
        found = question(self.kind.key, key)
        if found is None:
            return -1
        values, possible = found
        place = wrap(self._ask("table_find", *values)[0], "i")
        return place if possible is True else wrap(as_value(np.where(possible, place, -1)), "i")

    def contains(self, key: Any) -> Any:
        """`key in self`"""
        return (self.find(key) if self.is_known else -1) >= 0

    def is_comparable(self, other: Container) -> bool:
        return issubclass(self.kind.cls, dict) == issubclass(other.kind.cls, dict)

    def is_equal(self, other: Any) -> Any:
        """Whether they have the same keys, with equal values."""
        if self.kind.cls is other.kind.cls is OrderedDict:
            mine, others = (View(table, "items").listed() for table in (self, other))
            return mine.is_equal(others)

        def same(key: Any, value: Any) -> Any:
            there = other.contains(key)
            if value is None or there is False:
                return there
            return cond(there, lambda: is_equal(value, other[key]), lambda: False)

        pairs = Numbered(*self.in_any_order(lambda key, value: (key, value)))
        alike = some(pairs, lambda pair: same(*pair), False)
        return (self.length() == other.length()) & alike

    def clear(self) -> None:
        self._ask("table_clear")

    def copy(self) -> Any:
        if not self.is_known:
            return self.fresh()
        (made,) = self._ask("table_copy", root())
        return type(self)(self.kind, wrap(made, scalar=True))

    def _remove(self, key: Any) -> tuple[Any, tuple[Value, ...]]:
        """Take out what is asked for: whether it was there, and its value."""
        assert self.kind.key is not None
        found = question(self.kind.key, key)
        if found is None:
            form = self.kind.value
            return False, () if form is None else tuple(as_value(0, d) for d in form.dtypes)
        names, possible = found
        if possible is True:
            ok, *values = self._ask("table_remove", *names)
            return wrap(ok, "b"), tuple(values)
        asked = [wrap(name, scalar=True) for name in names]
        nothing = () if self.kind.value is None else self.kind.value.dtypes

        def take() -> tuple[Any, ...]:
            ok, *values = self._ask("table_remove", *map(as_value, asked))
            return wrap(ok, "b"), *(wrap(v, scalar=True) for v in values)

        def leave() -> tuple[Any, ...]:
            return False, *(wrap(as_value(0, dtype), scalar=True) for dtype in nothing)

        there, *rest = cond(possible, take, leave)
        return there, tuple(map(as_value, rest))

    def take(self, key: Any) -> tuple[Value, ...]:
        """Take a key out, which has to be there: its value."""
        if is_tried():
            self.require_key(self.find(key) >= 0, key)
            return self._remove(key)[1]
        ok, values = self._remove(key)
        self.require_key(ok, key)
        return values

    def _missing(self, key: Any) -> Any:
        """KeyError, for a table that has been empty so far."""
        fail(KeyError(*(() if isinstance(key, Container) else (key,))))

    def require_key(self, ok: Any, key: Any) -> None:
        key = narrowed(key)
        if type(key) is Union:
            for n in possible(key):
                self.require_key((key.tag != n) | ok, key.options[n])
        elif any(map(has_no_words, pytree.flatten(key)[0])) or key is None:
            text, values = shown(key)
            check(ok, text[1:-1] if isinstance(key, str) else text, *values, error="KeyError")
        else:
            check(ok, "", *pytree.flatten(key)[0], error="KeyError")

    def entries(self, make: Callable[[Any, Any], Any]) -> Walked:
        """What `make` makes of each key and value, in order. Meanwhile the table keeps its keys."""
        return self.in_any_order(make)

    def in_any_order(self, make: Callable[[Any, Any], Any]) -> Walked:
        """As `entries`, for whom the order does not matter."""
        if not self.is_known:
            return 0, lambda i: None
        (places,) = self._ask("table_positions", root())
        held = wrap(places, scalar=True)

        def item(i: Any) -> Any:
            _, place = run("get", as_value(held), as_value(i, I64), value=(I64,))
            return self._entry(place, make)

        return self.length(), item

    def going(self) -> Callable[[Any], Any]:
        """What tells whether there is an item of a number, for a loop: RuntimeError if it has changed
        since. An OrderedDict is not asked at its end."""
        before, stamp = self.length(), self._stamp()

        def going(i: Any) -> Any:
            there = i < before
            same, kept = self.length() == before, self._stamp() == stamp
            if self.kind.cls is OrderedDict:
                emptied = (self.length() == 0) & kept
                mutated = "OrderedDict mutated during iteration"
                for fine, message in (
                    (emptied ^ True, _said_when_emptied()),
                    (same & kept, mutated),
                ):
                    require(as_value((i >= before) | fine), message, "RuntimeError")
                return there
            what = "Set" if self.kind.cls is set else "dictionary"
            require(as_value(same), f"{what} changed size during iteration", "RuntimeError")
            message = f"{what} keys changed during iteration"
            require(as_value(kept), message, "RuntimeError")
            return there

        return going

    def _stamp(self) -> Any:
        return wrap(self._ask("changes")[0], "i")

    def walked(self) -> Walked:
        return self.entries(lambda key, value: key)

    def first(self, make: Callable[[Any, Any], Any] = lambda key, value: key) -> Walked:
        """The first of `entries` alone."""
        if not self.is_known:
            return 0, lambda i: None
        (place,) = self._ask("table_first")
        return self.length(), lambda i: self._entry(place, make)

    def _entry(self, place: Value, make: Callable[[Any, Any], Any]) -> Any:
        key, value = self.kind.key, self.kind.value
        assert key is not None
        found = self._ask("table_entry", place)
        count = len(key.dtypes)
        rest = None if value is None else element(value, found[count:])
        return make(element(key, found[:count]), rest)


_PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "keys": lambda key, value: key,
    "values": lambda key, value: value,
    "items": lambda key, value: (key, value),
}


class View:
    """The keys, the values or the items of a dict."""

    def __init__(self, table: Table, what: str) -> None:
        self.table, self.what = table, what

    def walked(self) -> Walked:
        return self.table.entries(_PARTS[self.what])

    def going(self) -> Callable[[Any], Any]:
        """As of the dict."""
        return self.table.going()

    @property
    def is_known(self) -> bool:
        """As of the dict."""
        return self.table.is_known

    def first(self) -> Walked:
        """The first of them alone."""
        return self.table.first(_PARTS[self.what])

    def length(self) -> Any:
        return self.table.length()

    def contains(self, item: Any) -> Any:
        if self.what == "keys":
            return self.table.contains(item)
        return self.listed().contains(item)

    def listed(self) -> List:
        """A list of them."""
        made = List(self.table.kind.derived(self.what, list))
        made.extend(self)
        return made

    def __iter__(self) -> Any:
        return iter(self.table)


def refuse_view(view: View) -> NoReturn:
    """Views cannot leave the compiled function."""
    complain(
        errors.ArgumentError,
        f"the {view.what} of a dict leave the compiled function, without the dict",
        f"make a list of them: list(d.{view.what}()).",
    )


def _said_when_emptied() -> str:
    """What Python says of an OrderedDict cleared while it is run over: new ones say "mutated"."""
    one = OrderedDict(a=1)
    items = iter(one)
    one.clear()
    try:
        next(items)
    except RuntimeError as error:
        return str(error)
    return "OrderedDict changed size during iteration"
