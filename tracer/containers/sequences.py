"""Lists and deques: sequences of elements of one form."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import BOOL, I64
from ..arrays.common import array
from ..control.control import cond, fori_loop, while_loop
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .kinds import NOTHING, Form, Unfit
from .questions import is_equal, is_exact, question
from .stand_ins import (
    Container,
    element,
    enlist,
    fail,
    for_each,
    index_value,
    leaves_of,
    register,
    require,
    require_found,
    root,
    run,
)
from .walking import walk

_MANY = 16  # elements that are put in by a loop


def _not_in() -> str:
    """What `index` says: with the element, until Python 3.14."""
    try:
        return str([1].index(0))
    except ValueError as error:
        said = str(error)
        return "{} is not in {}" if said.startswith("0") else said.replace("list", "{1}")


_NOT_IN = _not_in()


class Sequence(Container):
    """What lists and deques have in common. `_outside` is what is said of a place to write to."""

    __slots__ = ()
    _outside = "list assignment index out of range"

    @property
    def form(self) -> Form:
        """The form of elements, where one has been seen."""
        form = self.kind.value
        assert form is not None
        return form

    def fill_from(self, items: Any) -> None:
        """Add what is in one of Python's: many numbers by a loop."""
        columns = columns_of(items)
        if columns is None:
            for item in items:
                self.append(item)
            return
        form, arrays = columns
        constants = [array(column) for column in arrays]

        def add(i: Any) -> None:
            self.append(element(form, [as_value(column[i]) for column in constants]))

        for_each(len(items), add)

    def add_all(self, items: Any) -> None:
        self.extend(items)

    def put(self, method: str, *places: Value, item: Any) -> tuple[Value, ...]:
        self.kind.see(NOTHING, item)
        form = self.form
        values = leaves_of(form, item)
        return run(method, self._at, *places, *values, value=form.dtypes)

    def ask(self, method: str, *operands: Value) -> tuple[Value, ...]:
        return run(method, self._at, *operands, value=self.form.dtypes)

    def append(self, item: Any) -> None:
        self.put("append", item=item)

    def taken(self, method: str, message: str, *places: Value) -> Any:
        if not self.is_known:
            fail(IndexError(message))
        ok, *values = self.ask(method, *places)
        require(ok, message, "IndexError")
        return element(self.form, values)

    def extend(self, items: Any) -> None:
        if isinstance(items, Sequence) and type(items) is type(self):
            self.kind.unite(items.kind)
            if self.is_known:
                self.ask("extend", items._at)
        else:
            walk(items, self.append)

    def __iadd__(self, items: Any) -> Any:
        self.extend(items)
        return self

    def insert(self, index: Any, item: Any) -> None:
        self.put("insert", index_value(index, str(self.kind)), item=item)

    def clear(self) -> None:
        run("clear", self._at)

    def copy(self) -> Any:
        made = self.fresh()
        made.extend(self)
        return made

    def reverse(self) -> None:
        if self.is_known:
            self.ask("reverse")

    def place_of(self, item: Any, start: Any = 0) -> Any:
        """Where an element is, or -1."""
        found = question(self.form, item)
        if not is_exact(self.form, item):
            return self._compared(item, start)
        if found is None:
            return -1
        values, possible = found
        place = wrap(self.ask("find", as_value(start, I64), *values)[0], "i")
        return place if possible is True else wrap(as_value(np.where(possible, place, -1)), "i")

    def _compared(self, item: Any, start: Any) -> Any:
        """Where an element is that NumPy says to be equal, or -1."""
        length = self.length()

        def going(state: Any) -> Any:
            return (state[0] < length) & ~state[1]

        def step(state: Any) -> Any:
            same = is_equal(self.at(state[0]), item)
            return wrap(as_value(np.where(same, state[0], state[0] + 1)), "i"), same

        place, found = while_loop(going, step, (start, False))
        return wrap(as_value(np.where(found, place, -1)), "i")

    def walked(self) -> tuple[Any, Any]:
        """How many elements there are, and what gives one by its number."""
        return self.length(), self.at

    first = walked

    def at(self, i: Any) -> Any:
        """The element at a place that is there."""
        return element(self.form, self.ask("get", as_value(i, I64))[1:])

    def contains(self, item: Any) -> Any:
        """`item in self`"""
        place = self.place_of(item) if self.is_known else -1
        return place >= 0

    def index(self, item: Any) -> Any:
        place = self.place_of(item) if self.is_known else -1
        require_found(place >= 0, item, _NOT_IN.format("{}", self.kind))
        return place

    def count(self, item: Any) -> Any:
        if not self.is_known:
            return 0
        if not is_exact(self.form, item):
            item_at = self.at
            return fori_loop(
                0, self.length(), lambda i, n: n + _number(is_equal(item_at(i), item)), 0
            )
        found = question(self.form, item)
        if found is None:
            return 0
        values, possible = found
        many = wrap(self.ask("count", *values)[0], "i")
        return many if possible is True else wrap(as_value(np.where(possible, many, 0)), "i")

    def remove(self, item: Any) -> None:
        place = self.place_of(item) if self.is_known else -1
        require_found(place >= 0, item, f"{self.kind}.remove(x): x not in {self.kind}")
        if self.is_known:
            self.ask("take", as_value(place, I64))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return self.taken("get", f"{self.kind} index out of range", self._place(index))

    def _part(self, index: slice) -> Any:
        raise TypeError("sequence index must be integer, not 'slice'")

    def __setitem__(self, index: Any, item: Any) -> None:
        if isinstance(index, slice):
            complain(
                errors.UnsupportedFunctionError,
                f"assignment to a slice of a {self.kind} that grows in compiled code",
                "assign element by element, or make a new list.",
            )
        place = self._place(index)
        (ok,) = self.put("set", place, item=item)
        require(ok, self._outside, "IndexError")

    def __delitem__(self, index: Any) -> None:
        self.taken("take", self._outside, self._place(index))

    def _place(self, index: Any) -> Value:
        return index_value(index, str(self.kind))


class List(Sequence):
    """A list."""

    __slots__ = ()

    def pop(self, index: Any = -1) -> Any:
        if type(index) is int and index == -1:
            return self.taken("pop", "pop from empty list")
        if type(index) is int and index == 0:
            return self.taken("pop_first", "pop from empty list")
        if not self.is_known:
            fail(IndexError("pop from empty list"))
        require(as_value(self.truth()), "pop from empty list", "IndexError")
        return self.taken("take", "pop index out of range", index_value(index, "list"))

    def insert(self, index: Any, item: Any) -> None:
        if type(index) is int and index == 0:
            self.put("prepend", item=item)
        else:
            super().insert(index, item)

    def sort(self, *, key: Any = None, reverse: Any = False) -> None:
        if not self.is_known:
            return
        if key is not None:
            ordered = self.ordered(key, reverse)
            self.clear()
            self.extend(ordered)
            return
        _require_order(self.form, "list.sort")
        run("sort", self._at, as_value(reverse, BOOL), key=self.form.dtypes)

    def ordered(self, key: Any, reverse: Any) -> List:
        """A sorted copy, by `key` of each element."""
        form = self.form
        (pairs,) = run("new", root())
        keys: list[Form] = []

        def add(i: Any) -> None:
            item = self[i]
            by = key(item)
            keys[:] = [Form.of(by)]
            _require_order(keys[0], "the key of a sort")
            values = [*leaves_of(keys[0], by), *leaves_of(form, item)]
            run("append", as_value(together), *values, value=(*keys[0].dtypes, *form.dtypes))

        together = wrap(pairs, scalar=True)
        for_each(self.length(), add)
        dtypes = keys[0].dtypes
        run("sort", pairs, as_value(reverse, BOOL), key=dtypes, value=form.dtypes)
        made = self.fresh()

        def take(i: Any) -> None:
            _, *values = run(
                "get", as_value(together), as_value(i, I64), value=(*dtypes, *form.dtypes)
            )
            run("append", made._at, *values[len(dtypes) :], value=form.dtypes)

        for_each(self.length(), take)
        return made

    def _part(self, index: slice) -> Any:
        if not self.is_known:
            return self.fresh()
        start, count, step = _bounds(index, self.length())
        places = (as_value(x, I64) for x in (start, count, step))
        (made,) = self.ask("slice", root(), *places)
        return type(self)(self.kind, wrap(made, scalar=True))

    def __add__(self, other: Any) -> Any:
        made = self.copy()
        made.extend(other)
        return made

    def __mul__(self, times: Any) -> Any:
        made = self.copy()
        made *= times
        return made

    __rmul__ = __mul__

    def __imul__(self, times: Any) -> Any:
        if self.is_known:
            self.ask("repeat", index_value(times, "list"))
        return self


class Deque(Sequence):
    """A deque. Of one with a bound, what is too much falls off the other end."""

    __slots__ = ()
    _outside = "deque index out of range"

    def append(self, item: Any) -> None:
        super().append(item)
        self._shed("pop_first")

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
        run("prepend", self._at, *values, value=self.form.dtypes)


def _number(x: Any) -> Any:
    return wrap(as_value(x.astype(np.int64)), "i")


def columns_of(items: Any) -> tuple[Form, list[np.ndarray[Any, Any]]] | None:
    """Many elements that are known numbers, as arrays for each of their leaves; None for others."""
    if len(items) < _MANY:
        return None
    rows = [pytree.flatten(item) for item in items]
    if any(isinstance(leaf, Tracer) for leaves, _ in rows for leaf in leaves):
        return None
    try:
        forms = {Form.of(item) for item in items}
    except Unfit:
        return None
    form = forms.pop()
    if forms:
        return None
    columns = zip(*(leaves for leaves, _ in rows), strict=True)
    return form, [np.array(c, d) for c, d in zip(columns, form.dtypes, strict=True)]


def _require_order(form: Form, what: str) -> None:
    if any(dtype == np.dtype(np.uint64) and weak is None for dtype, weak in form.leaves):
        complain(
            errors.UnsupportedFunctionError,
            f"{what} of elements that are containers",
            "sort by a number, or a tuple of numbers (key=).",
        )


def _bounds(index: slice, length: Any) -> tuple[Any, Any, Any]:
    """Where a slice starts, how many elements it has, and its step."""
    step = 1 if index.step is None else index.step
    if isinstance(step, Tracer):
        complain(
            errors.DynamicShapeError,
            "the step of a slice depends on a traced value",
            "write a loop.",
        )
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, length) if step > 0 else (-1, length - 1)

    def place(x: Any, default: Any) -> Any:
        if x is None:
            return default
        x = np.where(x < 0, x + length, x)
        return np.minimum(np.maximum(x, low), high)

    start = place(index.start, low if step > 0 else high)
    stop = place(index.stop, high if step > 0 else low)
    count = (stop - start + step - (1 if step > 0 else -1)) // step
    return start, np.maximum(count, 0), step


for _cls, _stand_in in ((list, List), (deque, Deque)):
    register(_cls, _stand_in)
    enlist(_stand_in)
