"""What stands in for a structured array, or for one record of it, while a function is traced."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .kinds import RecordKind, are_fields, assembled, fields_of, is_structured, kind_of

_INTEGERS = (int, np.integer)


class Records:
    """A structured array: its kind, and an array for each field.

    A single record is in its `place`, an array and an index, and writes go there; or it has values, one
    for each field, if it is no part of an array.
    """

    __slots__ = ("kind", "parts", "place")
    _jitney_lazy = True  # where an array of numbers is wanted it is refused
    __array_priority__ = 1002.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, kind: RecordKind, parts: Sequence[Any], place: tuple[Records, Any] | None = None
    ) -> None:
        put = object.__setattr__
        put(self, "kind", kind)
        put(self, "parts", tuple(parts))
        put(self, "place", place)

    # What it is

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.kind.dtype

    @property
    def names(self) -> tuple[str, ...]:
        return self.kind.names

    @property
    def scalar(self) -> bool:
        return self.kind.scalar

    @property
    def shape(self) -> tuple[Any, ...]:
        if self.scalar:
            return ()
        own = len(self.kind.field(self.names[0])[1])
        whole: tuple[Any, ...] = self.parts[0].shape
        return whole[: len(whole) - own]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Any:
        size: Any = 1
        for n in self.shape:
            size = size * n
        return size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    def __len__(self) -> int:
        if self.scalar:
            return len(self.names)
        if not self.shape:
            raise TypeError("len() of unsized object")
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Records({self.dtype}, shape {self.shape})"

    # Reading

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return self._field(self._number(index))
        if isinstance(index, list) and index and all(isinstance(name, str) for name in index):
            return self._some(index)
        if self.scalar:
            return self._field(_position(index, len(self.names)))
        if self._is_one(index):
            at = index if isinstance(index, tuple) else (index,)
            self._field(0)[at]  # says whether there is such an element
            return Records(self.kind.of_record, (), (self, at))
        return self._each(lambda part, own: part[_leading(index, own)])

    def _number(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"no field of name {name}")
        return self.names.index(name)

    def _field(self, number: int) -> Any:
        if self.place is None:
            return self.parts[number]
        array, at = self.place
        return array._field(number)[at]

    def _some(self, names: list[str]) -> Records:
        """A view of some of the fields."""
        kind = self.kind.of_fields(names)
        if self.place is not None:
            array, at = self.place
            return Records(kind, (), (array._some(names), at))
        return Records(kind, [self.parts[self._number(name)] for name in names])

    def _is_one(self, index: Any) -> bool:
        """Whether an index is that of one record."""
        items = index if isinstance(index, tuple) else (index,)
        return len(items) == len(self.shape) and all(map(_is_number, items))

    def _each(self, function: Callable[[Any, int], Any], kind: RecordKind | None = None) -> Records:
        """Of what a function makes of each field, and of how many axes at its end are its own."""
        parts = []
        for name, part in zip(self.names, self.parts, strict=True):
            parts.append(function(part, len(self.kind.field(name)[1])))
        return Records(kind or self.kind, parts)

    def mapped(self, function: Callable[[Any], Any]) -> Records:
        """With what a function makes of each array of numbers in the place of it."""
        return self._each(
            lambda part, own: part.mapped(function) if type(part) is Records else function(part)
        )

    def values(self) -> Records:
        """A record by itself: what it holds now."""
        if self.place is None:
            return self
        parts = [_copied(self._field(i)) for i in range(len(self.names))]
        return Records(self.kind, parts)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and self.kind.has_attributes and name in self.names:
            found = self[name]
            if isinstance(found, Records) and not found.scalar:
                return found.view(np.recarray)
            return found
        refuse_attribute(self, name)

    # Writing

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, str):
            self._put(self._number(index), value)
        elif isinstance(index, list) and index and all(isinstance(name, str) for name in index):
            self._some(index)[...] = value
        elif self.scalar and index is not Ellipsis and index != ():
            self._put(_position(index, len(self.names)), value)
        elif self.place is not None:
            array, at = self.place
            array[at] = value
        else:
            self._check_writes()
            self._assign(index, value)

    def _check_writes(self) -> None:
        if self.scalar and self.place is None:
            complain(
                errors.ArgumentError,
                "a record that is no part of an array here (an argument, or what a branch chose) is "
                "assigned to",
                "assign to the array that it is of: p[i][name] = value, or p[name][i] = value.",
            )

    def _put(self, number: int, value: Any) -> None:
        """`self[name] = value`"""
        if self.place is not None:
            array, at = self.place
            array._field(number)[at] = value
            return
        self._check_writes()
        if self.parts[number] is not value:
            self.parts[number][...] = value

    def _assign(self, index: Any, value: Any) -> None:
        values = self._by_field(value)
        for name, part, item in zip(self.names, self.parts, values, strict=True):
            part[_leading(index, len(self.kind.field(name)[1]))] = item

    def _by_field(self, value: Any) -> Sequence[Any]:
        """What each field gets of a value; records are assigned field by field, by their order."""
        value = records(value)
        count = len(self.names)
        if isinstance(value, list):
            value = of_items(value, self.dtype)
        if isinstance(value, Records):
            if len(value.names) != count:
                raise ValueError(
                    f"a record of {len(value.names)} fields is assigned to one of {count}"
                )
            copy = value.values() if value.scalar else value
            return [_copied(part) for part in copy.parts]
        if isinstance(value, tuple):
            if len(value) != count:
                raise ValueError(
                    f"could not assign tuple of length {len(value)} to structure with {count} fields."
                )
            return value
        return [value] * count

    def __setattr__(self, name: str, value: Any) -> None:
        if not (self.kind.has_attributes and name in self.names):
            refuse_attribute(self, name)
        self[name] = value

    # Methods

    def copy(self, order: str = "C") -> Records:
        if self.scalar:
            return self.values()
        return self._each(lambda part, own: part.copy())

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Records:
        return self.copy()

    def view(self, dtype: Any = None, type: Any = None) -> Records:
        """Only of another class: fields by attribute or not."""
        cls = type or dtype
        if cls not in (np.recarray, np.ndarray) or self.scalar:
            refuse_attribute(self, "view")
        of = np.dtype((np.record, self.dtype)) if cls is np.recarray else self.dtype
        return Records(RecordKind(of, cls), self.parts)

    def reshape(self, *shape: Any, order: str = "C") -> Records:
        new = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        full = np.empty(self.shape, np.bool_).reshape(new).shape
        return self._each(lambda part, own: part.reshape(full + part.shape[part.ndim - own :]))

    def ravel(self, order: str = "C") -> Records:
        return self.reshape(-1)

    def flatten(self, order: str = "C") -> Records:
        return self.reshape(-1).copy()

    @property
    def T(self) -> Records:
        return self.transpose()

    def transpose(self, *axes: Any) -> Records:
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        order = tuple(order) or tuple(reversed(range(self.ndim)))
        return self._each(
            lambda part, own: part.transpose(*order, *range(part.ndim - own, part.ndim))
        )

    def take(self, indices: Any, axis: Any = None, **options: Any) -> Records:
        whole = self.reshape(-1) if axis is None else self
        at = 0 if axis is None else axis % self.ndim
        return whole._each(lambda part, own: np.take(part, indices, axis=at, **options))

    def fill(self, value: Any) -> None:
        self[...] = value

    def argsort(self, axis: int = -1, kind: Any = None, order: Any = None) -> Any:
        """By the fields of `order`, then by the others, in their order."""
        first = [order] if isinstance(order, str) else list(order or ())
        names = [*first, *(name for name in self.names if name not in first)]
        keys = [key for name in names for key in _keys(self[name])]
        return np.lexsort(tuple(reversed(keys)), axis=axis)

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        self[...] = self._sorted(axis, order)

    def _sorted(self, axis: int, order: Any) -> Records:
        if self.ndim != 1:
            refuse_attribute(self, "sort")
        return self[self.argsort(order=order)]

    def tolist(self) -> Any:
        if self.scalar or not self.shape:
            return self.item()
        return [self[i].tolist() for i in range(len(self))]

    def item(self, *index: Any) -> Any:
        """A tuple of Python's numbers."""
        one = self if self.scalar else self[index or (0,) * self.ndim]
        fields = [one._field(i) for i in range(len(self.names))]
        return tuple([x.tolist() if getattr(x, "ndim", 0) else x.item() for x in fields])

    # Comparisons, and NumPy's functions

    def __eq__(self, other: Any) -> Any:
        other = records(other)
        if not isinstance(other, Records) or len(other.names) != len(self.names):
            complain(
                errors.UnsupportedFunctionError,
                "a structured array is compared with what is none of the same fields",
                "compare fields: p['x'] == value.",
            )
        equal: Any = True
        for i, name in enumerate(self.names):
            same = self._field(i) == other._field(i)
            for _ in self.kind.field(name)[1]:
                same = same.all(axis=-1)
            equal = np.logical_and(equal, same)
        return equal

    def __ne__(self, other: Any) -> Any:
        return np.logical_not(self == other)

    def __bool__(self) -> bool:
        refuse_attribute(self, "__bool__")

    def materialise(self) -> NoReturn:
        self.__array__()

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        complain(
            errors.UnsupportedFunctionError,
            f"an array of numbers is wanted, and a structured one is given, of fields {self.names}",
            f"name the field: p[{self.names[0]!r}].",
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc in (np.equal, np.not_equal) and method == "__call__" and not options:
            one, other = map(records, inputs)
            return (one == other) if ufunc is np.equal else (one != other)
        return self.__array__()

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        own = FUNCTIONS.get(function)
        if own is None:
            complain(
                errors.UnsupportedFunctionError,
                f"{getattr(function, '__name__', 'this')} of a structured array is not compiled",
                f"apply it to the fields: p[{self.names[0]!r}].",
            )
        return own(*args, **options)

    def _call(self, entry: Any, args: tuple[Any, ...], options: Any) -> Any:
        """A function of the table of which this is an argument."""
        if isinstance(entry.numpy, np.ufunc):
            return self.__array_ufunc__(entry.numpy, "__call__", *args, **options)
        return self.__array_function__(entry.numpy, (), args, options)


def _refuse_arithmetic(self: Records, *_: Any) -> NoReturn:
    self.__array__()


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    for _form in (f"__{_name}__", f"__r{_name}__", f"__i{_name}__"):
        setattr(Records, _form, _refuse_arithmetic)
for _name in ("neg", "abs", "lt", "le", "gt", "ge"):
    setattr(Records, f"__{_name}__", _refuse_arithmetic)

FUNCTIONS: dict[Any, Callable[..., Any]] = {}  # NumPy's functions of structured arrays


def records(value: Any) -> Any:
    """What stands in for a structured array or a record of NumPy's; all else is given back."""
    if not is_structured(value):
        return value
    return Records(kind_of(value), [records(part) for part in fields_of(value)])


def made(dtype: np.dtype[Any], make: Callable[[np.dtype[Any], tuple[int, ...]], Any]) -> Records:
    """A structured array of what `make` gives for each field: by dtype, and shape in one record."""
    kind = RecordKind(dtype, np.ndarray)
    parts = []
    for name in kind.names:
        base, shape, _ = kind.field(name)
        if base.names is None:
            parts.append(make(base.newbyteorder("="), shape))
        else:
            parts.append(made(base, _within(make, shape)))
    return Records(kind, parts)


def _within(make: Callable[..., Any], outer: tuple[int, ...]) -> Callable[..., Any]:
    return lambda base, own: make(base, (*outer, *own))


def of_items(items: Any, dtype: np.dtype[Any]) -> Records:
    """The structured array of nested lists of tuples, in which there may be traced values."""
    if isinstance(items, Records):
        return items.copy()
    kind = RecordKind(dtype, np.ndarray)
    parts: list[Any] = []
    for number, name in enumerate(kind.names):
        base = kind.field(name)[0]
        column = _column(items, number, len(kind.names))
        if base.names is None:
            parts.append(np.array(column, base.newbyteorder("=")))
        else:
            parts.append(of_items(column, base))
    return Records(kind, parts)


def _column(items: Any, number: int, count: int) -> Any:
    if isinstance(items, list):
        return [_column(item, number, count) for item in items]
    if isinstance(items, Records) and items.scalar:
        return items._field(number)
    if not isinstance(items, tuple) or len(items) != count:
        raise TypeError(f"a record of {count} fields is wanted: give it as a tuple, not {items!r}")
    return items[number]


def refuse_attribute(x: Records, name: str) -> NoReturn:
    """`x.name` is not compiled, or is nothing that structured arrays have."""
    if not name.startswith("_") and hasattr(x.kind.cls, name):
        complain(
            errors.UnsupportedFunctionError,
            f"{name} of a structured array is not compiled",
            f"apply it to the fields: p[{x.names[0]!r}].",
        )
    raise AttributeError(f"'{x.kind.cls.__name__}' object has no attribute '{name}'")


def _position(index: Any, count: int) -> int:
    if not isinstance(index, _INTEGERS):
        raise IndexError("invalid index")
    if not -count <= index < count:
        raise IndexError(f"invalid index ({index})")
    return int(index) % count


def _is_number(item: Any) -> bool:
    if isinstance(item, (bool, np.bool_)):
        return False
    dtype = getattr(item, "dtype", None)
    traced = dtype is not None and not getattr(item, "shape", (0,)) and dtype.kind in "iu"
    return isinstance(item, _INTEGERS) or traced


def _leading(index: Any, own: int) -> Any:
    """An index of the records as one of a field, whose last axes are its own."""
    items = index if isinstance(index, tuple) else (index,)
    if own and any(item is Ellipsis for item in items):
        return (*items, *[slice(None)] * own)
    return index


def _copied(part: Any) -> Any:
    """What a field holds now."""
    if isinstance(part, Records):
        return part.copy()
    return part.copy() if getattr(part, "ndim", 0) else part


def _keys(part: Any) -> list[Any]:
    """By what an array is sorted: the fields of one that has fields, the elements of subarrays."""
    if isinstance(part, Records):
        return [key for name in part.names for key in _keys(part[name])]
    if part.ndim > 1:
        return [part[:, i] for i in range(part.shape[1])]
    return [part]


# Pytrees: an array is a container of its fields, a record that of its array and its place


def _flatten(x: Records) -> tuple[Any, Any, Any]:
    if x.place is None:
        return x.parts, (x.kind, False), x.names
    array, at = x.place
    return (array, at), (x.kind, True), ("array", "index")


def _unflatten(static: tuple[RecordKind, bool], children: Any) -> Any:
    kind, placed = static
    parts = tuple(children)
    if placed:
        array, at = parts
        if isinstance(array, np.ndarray):
            return array[tuple([operator.index(i) for i in at])]
        return Records(kind, (), (array, at))
    return assembled(kind, parts) if are_fields(kind, parts) else Records(kind, parts)


def take_apart(value: Any) -> tuple[tuple[Any, ...], np.dtype[Any]]:
    """The fields of a structured array, and what has to stay as it is beside its class."""
    return fields_of(value), value.dtype


pytree.convert_arrays(Records, _flatten, _unflatten, is_structured, records, take_apart)
