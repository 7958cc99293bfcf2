"""Sequences of elements of one form, and lists."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.ops.control.stores import HEAP_METHODS
from ...ir.types import BOOL, I64
from ..arrays.common import array
from ..control.control import cond, fori_loop, while_loop
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .elements import varied
from .elements.forms import Form
from .elements.questions import is_equal, is_exact, question
from .elements.varied import Unfit
from .folds import is_less, some, sure
from .kinds import CLASSES, NOTHING, number_in_order
from .slices import as_int, bounds
from .stand_ins import (
    Container,
    element,
    enlist,
    fail,
    for_each,
    index_value,
    is_tried,
    leaves_of,
    native,
    register,
    require,
    require_found,
    root,
    run,
    without,
)
from .walking import Numbered, walk

_MANY = 16  # elements that are put in by a loop


def _said(of: Callable[[], Any]) -> str:
    """What Python says where an element is not there: with the element, or without."""
    try:
        return str(of())
    except ValueError as error:
        said = str(error)
        return said.replace("0", "{}") if "0" in said else said


_NOT_THERE: dict[tuple[type, str], str] = {
    (list, "index"): _said(lambda: [1].index(0)),
    (list, "remove"): _said(lambda: [1].remove(0)),
    (deque, "index"): _said(lambda: deque([1]).index(0)),
    (deque, "remove"): _said(lambda: deque([1]).remove(0)),
    (tuple, "index"): _said(lambda: (1,).index(0)),
}


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
        return self.ask(method, *places, *leaves_of(self.form, item))

    def ask(self, method: str, *operands: Value) -> tuple[Value, ...]:
        form = self.form
        if method in HEAP_METHODS and form.is_varied:
            _require_order(form, "a heap")
        if method in HEAP_METHODS and form.is_mixed:
            return self._run(method, *operands, key=form.numbers, value=form.flags)
        return self._run(method, *operands, value=form.dtypes)

    def append(self, item: Any) -> None:
        self.put("append", item=item)

    def taken(self, method: str, message: str, *places: Value) -> Any:
        if not self.is_known:
            fail(IndexError(message))
        if is_tried():
            there = self.ask("get", *places)[0] if places else as_value(self.truth())
            require(there, message, "IndexError")
            return element(self.form, self.ask(method, *places)[1:])
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

    def is_equal(self, other: Any) -> Any:
        """Whether they have equal elements."""
        numbers = Numbered(self.length(), lambda i: i)
        length = self.length() == other.length()
        return cond(
            length,
            lambda: some(numbers, lambda i: is_equal(self.at(i), other.at(i)), False),
            lambda: False,
        )

    def _first_apart(self, other: Any) -> Any:
        """The first place where they differ, or the length of the shorter."""
        end = np.minimum(self.length(), other.length())
        found = while_loop(
            lambda s: (s[0] < end) & s[1],
            lambda s: (lambda same: (s[0] + as_number(same), same))(
                is_equal(self.at(s[0]), other.at(s[0]))
            ),
            (0, True),
        )
        return found[0]

    def _is_less(self, other: Any, or_equal: bool) -> Any:
        if type(other) in CLASSES:
            other = native(other)
        if not isinstance(other, Sequence) or not self.is_comparable(other):
            return NotImplemented
        if not self.is_known or not other.is_known:
            both = self.length(), other.length()
            return both[0] <= both[1] if or_equal else both[0] < both[1]
        place = self._first_apart(other)
        mine, others = self.length(), other.length()
        return cond(
            (place < mine) & (place < others),
            lambda: is_less(self.at(place), other.at(place)),
            lambda: (mine <= others) if or_equal else (mine < others),
        )

    def __lt__(self, other: Any) -> Any:
        return self._is_less(other, False)

    def __le__(self, other: Any) -> Any:
        return self._is_less(other, True)

    def __gt__(self, other: Any) -> Any:
        other = native(other) if type(other) in CLASSES else other
        return other._is_less(self, False) if isinstance(other, Sequence) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        other = native(other) if type(other) in CLASSES else other
        return other._is_less(self, True) if isinstance(other, Sequence) else NotImplemented

    def insert(self, index: Any, item: Any) -> None:
        self.put("insert", index_value(index, str(self.kind)), item=item)

    def clear(self) -> None:
        self._run("clear")

    def copy(self) -> Any:
        made = self.fresh()
        made.extend(self)
        return made

    def reverse(self) -> None:
        if self.is_known:
            self.ask("reverse")

    def place_of(self, item: Any, start: Any = 0) -> Any:
        """Where an element is, or -1."""
        if not is_exact(self.form, item):
            return self._compared(item, start)
        found = question(self.form, item)
        if found is None:
            return -1
        values, possible = found
        place = wrap(self.ask("find", as_value(start, I64), *values)[0], "i")
        return place if possible is True else wrap(as_value(np.where(possible, place, -1)), "i")

    def _compared(self, item: Any, start: Any) -> Any:
        """Where an element is that NumPy says to be equal, or -1."""
        length = self.length()

        def going(state: Any) -> Any:
            return (state[0] < length) & (state[1] ^ True)

        def step(state: Any) -> Any:
            same = is_equal(self.at(state[0]), item)
            return wrap(as_value(np.where(same, state[0], state[0] + 1)), "i"), same

        place, found = while_loop(going, step, (start, False))
        return wrap(as_value(np.where(found, place, -1)), "i")

    def walked(self) -> tuple[Any, Any]:
        """How many elements there are, and what gives one by its number."""
        return self.length(), self.at

    first = walked

    def going(self) -> Callable[[Any], Any]:
        """What tells whether there is an element of a number, for a loop: it may grow or shrink."""
        return lambda i: i < self.length()

    def at(self, i: Any) -> Any:
        """The element at a place that is there."""
        return element(self.form, self.ask("get", as_value(i, I64))[1:])

    def contains(self, item: Any) -> Any:
        """`item in self`"""
        place = self.place_of(item) if self.is_known else -1
        return place >= 0

    def index(self, item: Any) -> Any:
        place = self.place_of(item) if self.is_known else -1
        require_found(place >= 0, item, _NOT_THERE[self.kind.cls, "index"])
        return place

    def count(self, item: Any) -> Any:
        if not self.is_known:
            return 0
        if not is_exact(self.form, item):
            item_at = self.at
            return fori_loop(
                0, self.length(), lambda i, n: n + as_number(is_equal(item_at(i), item)), 0
            )
        found = question(self.form, item)
        if found is None:
            return 0
        values, possible = found
        many = wrap(self.ask("count", *values)[0], "i")
        return many if possible is True else wrap(as_value(np.where(possible, many, 0)), "i")

    def remove(self, item: Any) -> None:
        place = self.place_of(item) if self.is_known else -1
        require_found(place >= 0, item, _NOT_THERE[self.kind.cls, "remove"])
        if self.is_known:
            self.ask("take", as_value(place, I64))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return self.taken("get", f"{self.kind} index out of range", self._place(index))

    def _part(self, index: slice) -> Any:
        raise TypeError("sequence index must be integer, not 'slice'")

    def __setitem__(self, index: Any, item: Any) -> None:
        place = self._place(index)
        if is_tried() and self.is_known:
            require(self.ask("get", place)[0], self._outside, "IndexError")
            self.put("set", place, item=item)
            return
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
        form = self.form
        self._run("sort", as_value(reverse, BOOL), key=form.numbers, value=form.flags)

    def ordered(self, key: Any, reverse: Any) -> List:
        """A sorted copy, by `key` of each element."""
        form, key = self.form, sure(key)
        (pairs,) = run("new", root())
        keys: list[Form] = []

        def add(i: Any) -> None:
            item = self[i]
            by = varied.narrowed(key(item))
            keys[:] = [Form.of(by)]
            _require_order(keys[0], "the key of a sort")
            order = keys[0].numbers
            values = [*leaves_of(keys[0], by)[: len(order)], *leaves_of(form, item)]
            run("append", as_value(together), *values, value=(*order, *form.dtypes))

        together = wrap(pairs, scalar=True)
        for_each(self.length(), add)
        dtypes = keys[0].numbers
        run("sort", pairs, as_value(reverse, BOOL), key=dtypes, value=form.dtypes)
        made = self.fresh()

        def take(i: Any) -> None:
            _, *values = run(
                "get", as_value(together), as_value(i, I64), value=(*dtypes, *form.dtypes)
            )
            made._run("append", *values[len(dtypes) :], value=form.dtypes)

        for_each(self.length(), take)
        return made

    def _part(self, index: slice) -> Any:
        if not self.is_known:
            return self.fresh()
        start, count, step = bounds(index, self.length())
        places = (as_value(x, I64) for x in (start, count, step))
        (made,) = self.ask("slice", root(), *places)
        return type(self)(self.kind, wrap(made, scalar=True))

    def __setitem__(self, index: Any, item: Any) -> None:
        if not isinstance(index, slice):
            super().__setitem__(index, item)
            return
        made = self.fresh()
        made.extend(item)
        if index.step is not None and not (isinstance(index.step, int) and index.step == 1):
            self._set_each(index, made)
            return
        length = self.length()
        start, count, _ = bounds(index, length)
        rest = self[as_int(start + count) :]
        self._keep(start)
        self.extend(made)
        self.extend(rest)

    def _keep(self, count: Any) -> None:
        """Only the first elements."""
        kept = self[: as_int(count)]
        self.clear()
        self.extend(kept)

    def _set_each(self, index: slice, items: List) -> None:
        start, count, step = bounds(index, self.length())
        message = "attempt to assign sequence of size {} to extended slice of size {}"
        many = items.length()
        require(as_value(many == count), message, "ValueError", many, count)
        if items.is_known:
            for_each(count, lambda i: super(List, self).__setitem__(start + i * step, items.at(i)))

    def __delitem__(self, index: Any) -> None:
        if not isinstance(index, slice):
            super().__delitem__(index)
            return
        if not self.is_known:
            return
        start, count, step = bounds(index, self.length())
        if step < 0:
            start, step = start + (count - 1) * step, -step
        kept = self.fresh()

        def look(i: Any) -> None:
            past = i - start
            taken = (past >= 0) & (past < count * step) & (past % step == 0)
            cond(taken, lambda: None, lambda: kept.append(self.at(i)))

        for_each(self.length(), look)
        self.clear()
        self.extend(kept)

    def __add__(self, other: Any) -> Any:
        made = self.copy()
        made.extend(other)
        return made

    def __radd__(self, other: Any) -> Any:
        made = self.fresh()
        made.extend(other)
        made.extend(self)
        return made

    def __mul__(self, times: Any) -> Any:
        if getattr(times, "ndim", 0):
            self.__array__()
        made = self.copy()
        made *= times
        return made

    __rmul__ = __mul__

    def __imul__(self, times: Any) -> Any:
        if self.is_known:
            self.ask("repeat", index_value(times, "list"))
        return self


class Tuple(Sequence):
    """A tuple of as many elements as a list had: what is in its memory nobody changes any more."""

    __slots__ = ()
    append = extend = insert = clear = copy = reverse = remove = without

    @classmethod
    def of(cls, items: List) -> Tuple:
        """Of a list that nobody else has."""
        kind = items.kind.derived("tuple", tuple)
        kind.see_forms_of(items.kind)
        return cls(kind, items.handle)

    def listed(self) -> List:
        made = List(self.kind.derived("list", list))
        made.extend(self)
        return made

    def _part(self, index: slice) -> Any:
        return Tuple.of(self.listed()[index])

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, (tuple, Tuple)):
            return NotImplemented
        return Tuple.of(self.listed() + other)

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        made = List(self.kind.derived("list", list))
        made.extend(other)
        made.extend(self)
        return Tuple.of(made)

    def __iadd__(self, other: Any) -> Any:
        return self + other

    def __mul__(self, times: Any) -> Any:
        return Tuple.of(self.listed() * times)

    __rmul__ = __mul__

    def _native(self, other: Any) -> Any:
        """Another tuple, to be compared with."""
        if type(other) is not tuple:
            return other
        made = List(self.kind.derived("list", list))
        made.extend(other)
        return Tuple.of(made)

    def __eq__(self, other: object) -> Any:
        return super().__eq__(self._native(other))

    def _is_less(self, other: Any, or_equal: bool) -> Any:
        return super()._is_less(self._native(other), or_equal)

    def __gt__(self, other: Any) -> Any:
        return super().__gt__(self._native(other))

    def __ge__(self, other: Any) -> Any:
        return super().__ge__(self._native(other))

    def __setitem__(self, index: Any, item: Any) -> None:
        fail(TypeError("'tuple' object does not support item assignment"))

    def __delitem__(self, index: Any) -> None:
        fail(TypeError("'tuple' object doesn't support item deletion"))

    __hash__ = None  # type: ignore[assignment]


def as_number(x: Any) -> Any:
    """A traced bool as an int of Python's."""
    return wrap(as_value(x.astype(np.int64)), "i")


def columns_of(items: Any) -> tuple[Form, list[np.ndarray[Any, Any]]] | None:
    """Many elements that are known numbers, as arrays for each of their leaves; None for others."""
    if len(items) < _MANY:
        return None
    if any(map(varied.is_constant, pytree.flatten(items)[0])):
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
    return form, [np.array(c, d) for c, d in zip(columns, form.numbers, strict=True)]


def _require_order(form: Form, what: str) -> None:
    if form.is_varied:
        texts = varied.texts_in(form.example)
        if texts is None:
            complain(
                errors.UnsupportedFunctionError,
                f"{what} of elements that hold one thing here and another there",
                "order them by numbers, or by texts.",
            )
        number_in_order(texts)
    if any(dtype == np.dtype(np.uint64) and weak is None for dtype, weak in form.leaves):
        complain(
            errors.UnsupportedFunctionError,
            f"{what} of elements that are containers",
            "sort by a number, or a tuple of numbers (key=).",
        )


register(list, List)
enlist(List)
enlist(Tuple)
