"""Dicts, of all kinds."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...ir.types import I64
from ..control.control import cond
from ..control.unions import NONE, Union, is_one_of, number_of
from ..core.effects import check
from ..core.tracers import as_value, emit, wrap
from ..messages import errors
from ..messages.errors import complain
from .elements import varied
from .folds import total
from .kinds import CLASSES, Kind, kind_of, make_native
from .mixed import choose
from .sequences import List
from .stand_ins import (
    Container,
    element,
    enlist,
    fail,
    for_each,
    leaves_of,
    native,
    register,
    require,
)
from .tables import Table, View
from .walking import walk


class Dict(Table):
    """A dict, or one of the kinds that `collections` has."""

    __slots__ = ()

    def fill_from(self, items: Any) -> None:
        for key, value in items.items():
            self[key] = value

    def _value_at(self, place: Any) -> Any:
        form = self.kind.value
        assert form is not None
        return element(form, self._ask("table_value", as_value(place, I64)))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.kind.see(key, value)
        if self.kind.root.by_text is not None:
            self.kind.see_text(key, varied.numbers_in(value))
        key_form, form = self.kind.key, self.kind.value
        assert key_form is not None and form is not None
        self._ask("table_put", *leaves_of(key_form, key), *leaves_of(form, value))

    def __getitem__(self, key: Any) -> Any:
        if self.kind.cls is Counter:
            return self.get(key, 0)
        if self.kind.cls is defaultdict and self.kind.detail is not None:
            return self._made(key)
        return self.value_of(key) if self.is_known else self._missing(key)

    def value_of(self, key: Any) -> Any:
        """The value of a key that is there."""
        place = self.find(key)
        self.require_key(place >= 0, key)
        found = self._value_at(place)
        if type(found) is not Union:
            return found
        numbers = self.kind.options_of(key)
        options = {n: option for n, option in found.options.items() if n in numbers}
        if not options:
            return found
        check(is_one_of(found, [*options]), "a dict has another value than was put into it")
        return Union(found.tag, options) if len(options) > 1 else next(iter(options.values()))

    def item_of(self, key: Any) -> Any:
        """A key that is there as the table has it, and its value."""
        place = self.find(key)
        self.require_key(place >= 0, key)
        return self._entry(as_value(place, I64), lambda name, value: (name, value))

    def _made(self, key: Any) -> Any:
        """The value of a key, which gets what a defaultdict's factory makes where it has none."""
        if not self.is_known:
            self[key] = _made_by(self.kind)
        else:
            self._unless_there(key, lambda: _made_by(self.kind))
        return self._value_at(self.find(key))

    def __delitem__(self, key: Any) -> None:
        if self.kind.cls is Counter:
            if self.is_known:
                self._remove(key)
            return
        if not self.is_known:
            self._missing(key)
        self.take(key)

    def get(self, key: Any, default: Any = None) -> Any:
        if not self.is_known:
            return default
        place = self.find(key)
        return self._or(place >= 0, lambda: self._value_at(place), default)

    def _or(self, there: Any, value: Callable[[], Any], default: Any) -> Any:
        """`value()` if it is there, else `default`."""
        if there is False:
            return default
        if default is not None:
            make_native([default])  # the values are native ones, too
            held = None if self.kind.value is None else self.kind.value.example
            if isinstance(held, Container) and isinstance(default, Container):
                held.kind.unite(default.kind)
            return choose(there, value, default, self.kind.value)
        form = self.kind.value
        assert form is not None
        nothing = element(form, [as_value(np.zeros((), d)[()]) for d in form.dtypes])
        found = cond(there, value, lambda: nothing)
        if type(found) is Union:
            missing = as_value(NONE, I64)
            chosen = emit("select", as_value(there), as_value(found.tag), missing).value
            return Union(wrap(chosen, scalar=True), {NONE: None, **found.options})
        number = number_of(found)
        tags = [as_value(tag, I64) for tag in (number, NONE)]
        tag = wrap(emit("select", as_value(there), *tags).value, scalar=True)
        return Union(tag, {NONE: None, number: found})

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if not self.is_known:
            self[key] = default
            return default
        self.kind.see(key, default)
        self._unless_there(key, lambda: default)
        return self._value_at(self.find(key))

    def _unless_there(self, key: Any, make: Callable[[], Any]) -> None:
        """Give a key a value if it has none."""
        missing = self.find(key) < 0
        if missing is True:
            self[key] = make()
        else:
            cond(missing, lambda: self.__setitem__(key, make()), lambda: None)

    def pop(self, key: Any, *default: Any) -> Any:
        if not self.is_known:
            return default[0] if default else self._missing(key)
        form = self.kind.value
        assert form is not None
        if not default:
            return element(form, self.take(key))
        ok, values = self._remove(key)
        found = element(form, values)
        return self._or(ok, lambda: found, default[0])

    def popitem(self, last: bool = True) -> Any:
        ordered = self.kind.cls is OrderedDict
        message = "dictionary is empty" if ordered else "popitem(): dictionary is empty"
        if not self.is_known:
            fail(KeyError(message))
        require(as_value(self.truth()), message, "KeyError")
        (place,) = self._ask("table_last" if last else "table_first")
        key, value = self.kind.key, self.kind.value
        assert key is not None and value is not None
        found = self._ask("table_entry", place)
        pair = element(key, found[: len(key.dtypes)]), element(value, found[len(key.dtypes) :])
        self._remove(pair[0])
        return pair

    def update(self, other: Any = (), **more: Any) -> None:
        if self.kind.cls is Counter:
            self.counted(other, more, 1)
        else:
            self._each(other, self.__setitem__, more)

    def _each(self, other: Any, put: Callable[[Any, Any], None], more: dict[str, Any]) -> None:
        """`put(key, value)` for all items of a dict, or of pairs."""
        if isinstance(other, Dict):
            walk(View(other, "items"), lambda pair: put(*pair))
        elif hasattr(other, "keys"):
            for key in other:
                put(key, other[key])
        else:
            walk(other, lambda pair: put(*pair))
        for name, value in more.items():
            put(name, value)

    def counted(self, other: Any, more: dict[str, Any], sign: int) -> None:
        """Count what is there, or take it off."""

        def add(key: Any, count: Any) -> None:
            self[key] = self[key] + sign * count

        if isinstance(other, Dict) or hasattr(other, "keys"):
            self._each(other, add, more)
        else:
            walk(other, lambda key: add(key, 1))
            self._each((), add, more)

    def add_all(self, items: Any) -> None:
        self.update(items)

    def keys(self) -> View:
        return View(self, "keys")

    def values(self) -> View:
        return View(self, "values")

    def items(self) -> View:
        return View(self, "items")

    def __getattr__(self, name: str) -> Any:
        method = _METHODS.get((self.kind.cls, name))
        return super().__getattr__(name) if method is None else partial(method, self)


def _made_by(kind: Kind) -> Any:
    """What a defaultdict's factory makes."""
    made = kind.detail()
    if type(made) not in CLASSES:
        return made
    return native(made, kind.derived("made", type(made), kind_of(made).detail))


# Methods that only some kinds of dicts have


def _most_common(counter: Dict, n: Any = None) -> List:
    if not counter.is_known:
        return List(counter.kind.derived("items", list))
    ordered = View(counter, "items").listed().ordered(lambda pair: pair[1], True)
    return ordered if n is None else ordered[:n]


def _subtract(counter: Dict, other: Any = (), **more: Any) -> None:
    counter.counted(other, more, -1)


def _elements(counter: Dict) -> List:
    made = List(counter.kind.derived("elements", list))
    walk(View(counter, "items"), lambda pair: for_each(pair[1], lambda i: made.append(pair[0])))
    return made


def _move_to_end(table: Dict, key: Any, last: bool = True) -> None:
    if last is not True:
        complain(
            errors.UnsupportedFunctionError,
            "OrderedDict.move_to_end(key, last=False) in compiled code",
            "keep a list of the keys beside it.",
        )
    if not table.is_known:
        table.pop(key)  # says that it is not there
    name, value = table.item_of(key)
    table.take(name)
    table[name] = value


_METHODS: dict[tuple[type, str], Any] = {
    (Counter, "most_common"): _most_common,
    (Counter, "subtract"): _subtract,
    (Counter, "elements"): _elements,
    (Counter, "total"): lambda counter: total(View(counter, "values")),
    (OrderedDict, "move_to_end"): _move_to_end,
}
for _cls in (dict, Counter, defaultdict, OrderedDict):
    register(_cls, Dict)
enlist(Dict)
