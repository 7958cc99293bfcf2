"""Lists of numbers that are arguments: an array, seen as a list.

    @jt.jit
    def smooth(xs, a):              # xs: one array of 400 numbers
        for i in range(1, len(xs)):
            xs[i] = a * xs[i] + (1 - a) * xs[i - 1]

The length is known, elements are those of the array, which a loop reads and writes as any other. What
an array cannot do (`append`, a slice whose bounds are traced) a native list can: the function is traced
again, and the argument is one from the start.

A table is a list of lists of one length: an array of two dimensions, of which a row is a view. Which
rows it has is fixed: a function that puts others into it, or asks which list a row is, is traced again
with a list for each row (`jit.function`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from ...ir.types import BOOL, I64
from ..arrays.table import FUNCTIONS
from ..control.control import fori_loop
from ..core.tracers import Tracer, as_value, weak_kind, wrap
from ..data.lists import ListKind, provide_packed
from ..messages import errors
from ..messages.errors import complain
from .elements.forms import Form
from .elements.questions import is_equal
from .folds import some
from .kinds import Again, Kind, current
from .sequences import List, Sequence, as_number
from .stand_ins import fail, for_each, index_value

_WEAK: dict[type, str] = {float: "f", int: "i", bool: "b"}
WRITTEN = "written"  # of a site: what else would be written out, see `autograph.listing`
_ORDER = operator.attrgetter("stop", "start", "step")


class Packed(Sequence):
    """A list whose elements are those of an array: numbers, or lists that are views of it."""

    __slots__ = ("data", "site", "weak")
    _jitney_lazy = True  # where an array is wanted it is one of its elements
    _jitney_list = True

    def __init__(self, data: Tracer, weak: str | None, site: Any) -> None:
        self.data, self.weak, self.site = data, weak, site
        self.kind = Kind(list)

    @property
    def is_table(self) -> bool:
        """Whether the elements are lists."""
        return self.data.ndim > 1

    @property
    def packed(self) -> bool:
        """Whether a comprehension over it is one loop."""
        return not self.is_table

    # What an array cannot do

    def become_native(self) -> Any:
        """Trace again, with a native list in the place of this one."""
        kinds, site = current(), self.site
        while site[0] == "row":
            site = site[1]
        given = None if kinds is None else kinds.births.get(site)
        if given is not None:
            raise errors.ChangedArgument(given.place)
        if self.is_table or self.site[0] == "row":
            refuse_rows()
        origin = _written(self.site)
        if kinds is not None and origin is not None:
            kinds.written.add(origin)
            raise Again
        if kinds is None:
            complain(
                errors.UnsupportedFunctionError,
                "a list that is an argument grows or shrinks, or is asked for what only lists can do",
                "pass an array, or copy what is needed into a list of the function's own.",
            )
        kinds.sites[self.site] = Kind(list)
        raise Again

    @property
    def handle(self) -> Any:
        return self.become_native()

    @property
    def _at(self) -> Any:
        return self.become_native()

    @property
    def form(self) -> Form:
        self.become_native()
        raise AssertionError("unreachable")

    def put(self, method: str, *places: Any, item: Any) -> Any:
        return self.become_native()

    def ask(self, method: str, *operands: Any) -> Any:
        return self.become_native()

    def fresh(self) -> Any:
        return self.become_native()

    def clear(self) -> None:
        self.become_native()

    def extend(self, items: Any) -> None:
        self.become_native()

    def __delitem__(self, index: Any) -> None:
        self.become_native()

    def __radd__(self, other: Any) -> Any:
        return self.become_native()

    __imul__ = __radd__

    def __getattr__(self, name: str) -> Any:
        return self.become_native() if name == "pop" else super().__getattr__(name)

    def _numbers_only(self) -> None:
        if self.is_table:
            self.become_native()

    # What it can

    @property
    def is_known(self) -> bool:
        return True

    def length(self) -> Any:
        return self.data.shape[0]

    def truth(self) -> Any:
        return self.data.shape[0] != 0

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return map(self.at, range(self.length()))

    def at(self, i: Any) -> Any:
        return self.element(self.data[i])

    def element(self, x: Any) -> Any:
        """An element of the array as one of the list."""
        if self.is_table:
            return Packed(x, self.weak, ("row", self.site))
        return wrap(as_value(x), self.weak, scalar=True)

    def going(self) -> Any:
        return None

    def materialise(self) -> Tracer:
        """An array of the elements."""
        return wrap(as_value(self.data), scalar=False)

    def __array__(self, *args: Any, **options: Any) -> Any:
        return FUNCTIONS["array"](self.materialise(), *args, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_with_arrays(args), **_with_arrays(kwargs))

    def __array_ufunc__(  # type: ignore[override]
        self, ufunc: Any, method: str, *inputs: Any, **options: Any
    ) -> Any:
        """Python's operators of a number of NumPy's and a list come here, too."""
        counts = [x for x in inputs if isinstance(x, np.integer)]
        if ufunc is np.multiply and counts and not options:
            return self * counts[0]
        return getattr(ufunc, method)(*_with_arrays(inputs), **_with_arrays(options))

    def _part(self, index: slice) -> Any:
        if self.is_table:
            return self._rows()[index]
        if any(isinstance(x, Tracer) for x in _ORDER(index)):
            return self.become_native()
        return self._derived(f"[{index}]", self.data[index])

    def _rows(self) -> list[Any]:
        return [*self]

    def copy(self) -> Any:
        return self._rows() if self.is_table else self._derived("copy", self.data)

    def __deepcopy__(self, memo: Any) -> Any:
        if self.is_table:
            return [row.copy() for row in self]
        return self.copy()

    def _derived(self, how: str, data: Any) -> Any:
        """A new list of the elements of an array."""
        return made_of(wrap(as_value(data), scalar=False), self.weak, (how, self.site))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return self.at(self._index(index, "list index out of range"))

    def __setitem__(self, index: Any, item: Any) -> None:
        if isinstance(index, slice) or not self._takes(item):
            self.become_native()
        self.data[self._index(index, self._outside)] = item

    def _takes(self, item: Any) -> bool:
        """Whether an element may be this. An int is a float among floats, a number of Python's one of
        NumPy's among these."""
        if self.is_table or (isinstance(item, Tracer) and item.shape):
            return False
        weak = weak_kind(item)
        if weak != self.weak and _written(self.site) is not None:
            return False
        if weak is None:
            scalar = isinstance(item, (Tracer, np.generic)) and item.dtype == self.data.dtype
            return self.weak is None and scalar
        kind = self.weak or self.data.dtype.kind
        return weak == kind or (kind == "f" and weak == "i")

    def _index(self, index: Any, message: str) -> Any:
        place = index_value(index, "list")
        if isinstance(index, Tracer):
            return index if index.dtype == I64 else wrap(place, "i")
        if not -self.length() <= int(index) < self.length():
            fail(IndexError(message))
        return int(index)

    def reverse(self) -> None:
        self._numbers_only()
        self.data[:] = self.data[::-1].copy()

    def sort(self, *, key: Any = None, reverse: Any = False) -> None:
        if self.is_table or key is not None or not isinstance(reverse, (bool, int)):
            self.become_native()
        ordered: Any = self.data[::-1] if reverse else self.data
        ordered = np.sort(ordered, kind="stable")
        self.data[:] = ordered[::-1] if reverse else ordered

    def contains(self, item: Any) -> Any:
        self._numbers_only()
        if not isinstance(item, Tracer) and not isinstance(item, (int, float, np.generic)):
            return False
        return some(self, lambda x: is_equal(x, item), True)

    def place_of(self, item: Any, start: Any = 0) -> Any:
        self._numbers_only()
        return self._compared(item, start)

    def count(self, item: Any) -> Any:
        self._numbers_only()

        def add(i: Any, n: Any) -> Any:
            return n + as_number(wrap(as_value(is_equal(self.at(i), item), BOOL), "b"))

        return fori_loop(0, self.length(), add, 0)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, (Tracer, np.ndarray)):
            return NotImplemented
        if self.is_table:
            return self._rows() + (other._rows() if isinstance(other, Packed) else other)
        if isinstance(other, Packed) and other.weak == self.weak and not other.is_table:
            return self._derived("+", np.concatenate([self.data, other.data]))
        if isinstance(other, Packed):
            refuse_mixture(self.weak, other.weak)
        return self.become_native()

    def __mul__(self, times: Any) -> Any:
        if isinstance(times, (Tracer, np.ndarray)) and times.shape:
            return NotImplemented
        self._numbers_only()
        if isinstance(times, (int, np.integer)):
            return self._derived("*", np.tile(self.data, max(int(times), 0)))
        return self.become_native()

    __rmul__ = __mul__


def _written(site: Any) -> Any:
    """Where the comprehension is of which a list has come, if it can be written out instead."""
    while isinstance(site[0], str):
        if site[0] == WRITTEN:
            return site[1]
        site = site[1]
        if not isinstance(site, tuple):
            break
    return None


def made_of(data: Tracer, weak: str | None, site: Any) -> Any:
    """A list of the elements of an array: a native one if it was found that this has to be one."""
    packed = Packed(data, weak, site)
    kinds = current()
    kind = None if kinds is None else kinds.sites.get(site)
    if kind is None:
        return packed
    native = List(kind)
    assert kinds is not None
    kinds.numbers.append((kind, None, Form.of(packed.at(0)) if packed.length() else None))
    for_each(packed.length(), lambda i: native.append(packed.at(i)))
    return native


def refuse_rows() -> NoReturn:
    """A row would have to be a list by itself."""
    complain(
        errors.UnsupportedFunctionError,
        "a row of a list of lists that is an argument is put elsewhere, grows, shrinks, is returned, "
        "or is asked which list it is",
        "pass an array, or copy the rows into a list of the function's own.",
    )


def refuse_mixture(one: Any, other: Any) -> NoReturn:
    """Elements of two types, by their forms or kinds, meet in one list."""
    complain(
        errors.CarryError,
        f"a container that was there before the call, with elements of type {one}, gets one of {other}",
        "convert them to one type, with int(...) or float(...), or pass an array.",
    )


def check_numbers() -> None:
    """Refuse numbers of another class in a container of outside: those that are there would become
    numbers of that class, too."""
    kinds = current()
    kind: Any
    for kind, *forms in () if kinds is None else kinds.numbers:
        for name, field in (getattr(kind, "entered", None) or {}).items():
            old, new = field.form, kind.fields[name].form
            if old is not None and old.leaves != new.leaves:
                refuse_mixture(old, new)
        for old, new in zip(forms, (kind.key, kind.value), strict=True):
            if old is not None and new is not None and old != new:
                refuse_mixture(old, new)


def _argument(kind: ListKind, data: Tracer) -> Any:
    """What stands in for a list that is an argument."""
    parameter = data._storage.parameter
    weak, site = _WEAK.get(kind.cls), ("argument", parameter)
    return Packed(data, weak, site)


def _with_arrays(x: Any) -> Any:
    """Arguments with arrays in the place of lists."""
    if isinstance(x, Packed):
        return x.materialise()
    if type(x) in (list, tuple):
        return type(x)(map(_with_arrays, x))
    return {key: _with_arrays(item) for key, item in x.items()} if type(x) is dict else x


provide_packed(_argument)
