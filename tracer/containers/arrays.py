"""`np.array(items)` of a native list: an array of as many elements as that has at run time.

    a = np.array(found)         # numbers, or rows: arrays of one shape
    a[a > 0] * 2                # another one
    x[found]                    # elements of an array by numbers that a list has

Its elements lie in a native list of its own. What NumPy does to each element is a loop that makes
another such list; what it makes of all of them is a loop, too (`numpy_folds`, `grown_functions`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ...ir.types import I64
from ..control.control import cond, fori_loop
from ..control.number_classes import FLAGS
from ..core.effects import check
from ..core.tracers import WEAK_DTYPES, Tracer, as_value, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .boxes import is_box
from .elements.forms import Form
from .kinds import NOTHING, current
from .numpy_folds import FOLDS, fold_of, folded, numbers_of
from .packed import Packed
from .sequences import List, Tuple
from .sequences import Sequence as NativeSequence
from .stand_ins import for_each, require, run

_REDUCED = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}


class GrownArray(np.lib.mixins.NDArrayOperatorsMixin):
    """What such an array is while the function is traced. It has `items` to itself."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, items: NativeSequence, dtype: Any = None) -> None:
        self.items = items
        self.given = None if dtype is None else np.dtype(dtype)
        self.of_list = False  # whether it is no more than `np.array` of a list
        self.has_views = False  # among them itself: in NumPy another one sees what changes

    @property
    def numbers(self) -> Any:
        """The elements, as numbers of NumPy's or rows; None where none has been seen."""
        return numbers_of(self.items, self.given) if self.items.is_known else None

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64) if self.numbers is None else self.numbers.dtype

    @property
    def row_shape(self) -> tuple[int, ...]:
        form = self.items.kind.value
        kind: Any = form.example.kind if is_box(form) and form is not None else None
        return () if kind is None else kind.shape

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.length(), *self.row_shape

    @property
    def ndim(self) -> int:
        return 1 + len(self.row_shape)

    @property
    def size(self) -> Any:
        return self.length() * int(np.prod(self.row_shape))

    def length(self) -> Any:
        return self.items.length()

    def at(self, i: Any) -> Any:
        """An element that is there."""
        return self.numbers.at(i)

    def refused_texts(self) -> NativeSequence:
        """The items, which are numbers; arrays of texts are not made."""
        if self.items.kind.value is not None and self.items.kind.value.is_varied:
            self.items.__array__()
        return self.items

    def walked(self) -> tuple[Any, Any]:
        """How many numbers there are, and what gives one by its number."""
        return (
            (self.length(), self.at) if self.numbers is not None else (self.length(), self.items.at)
        )

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """This takes an array of a known length."""
        complain(
            errors.DynamicShapeError,
            "an array of a list that grows in compiled code has as many elements as that has at run "
            "time, and this is not done to such arrays",
            "compute with the elements of the list in a `for` statement, or outside of the function.",
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        if name in FOLDS:
            return partial(self.folded, name)
        method = METHODS.get(name)
        return self.refuse() if method is None else partial(method, self)

    def folded(self, name: str, *args: Any, **options: Any) -> Any:
        """The array reduced."""
        axis = dict(zip(("axis",), args, strict=False))
        found = None if len(args) > 1 else folded(name, self.items, self.given, **axis, **options)
        return self.refuse() if found is None else found

    def __array_ufunc__(self, ufunc: Any, how: str, *inputs: Any, **options: Any) -> Any:
        if how == "reduce" and ufunc in _REDUCED and not options.keys() - {"axis"}:
            return self.folded(_REDUCED[ufunc], options.get("axis", 0))
        out = options.pop("out", None)
        if how != "__call__" or options or ufunc.nout != 1 or (out and out != (self,)):
            self.refuse()
        made = elementwise(ufunc, *inputs)
        return made if out is None else self._becomes(made)

    def _becomes(self, made: GrownArray) -> GrownArray:
        """`a += b`"""
        if self.has_views or self.numbers is None or self.row_shape:
            self.refuse()
        if not np.can_cast(made.dtype, self.dtype, "same_kind"):
            raise TypeError(f"cannot cast an array of {made.dtype} into one of {self.dtype}")
        require_same(self.length(), made.length())
        dtype = self.items.form.leaves[0]
        for_each(self.length(), lambda i: self._put(i, made.at(i), dtype))
        return self

    def _put(self, i: Any, value: Any, leaf: Any) -> None:
        dtype, weak = leaf
        self.items[wrap(as_value(i, I64), "i")] = wrap(as_value(value, dtype), weak, scalar=True)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return called[0](function, args, options)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple) and index:
            return self._of_rows(*index)
        if isinstance(index, slice):
            part = GrownArray(self.items[index], self.given)
            part.has_views = self.has_views = True
            return part
        if isinstance(index, (GrownArray, NativeSequence)):
            index = grown(index)
            return _masked(self, index) if index.dtype == np.bool_ else gathered(self, index)
        place = self._place(index)
        return self.at(place)

    def _of_rows(self, first: Any, *rest: Any) -> Any:
        if isinstance(first, slice) and first == slice(None) and len(rest) <= len(self.row_shape):
            return mapped(self, lambda row: row[rest])
        if isinstance(first, slice):
            self.refuse()
        found = self[first]
        return found[rest] if rest else found

    def _place(self, index: Any) -> Any:
        if not isinstance(index, (int, np.integer)) and not (
            isinstance(index, Tracer) and index.dtype.kind in "iu" and not index.shape
        ):
            self.refuse()
        n = self.length()
        inside = (index >= -n) & (index < n)
        message = "index {} is out of bounds for axis 0 with size {}"
        check(wrap(as_value(inside), "b"), message, index, n, error="IndexError")
        return wrap(as_value(np.where(index < 0, index + n, index), I64), "i")

    __setitem__ = __iter__ = __len__ = __bool__ = __array__ = __matmul__ = __rmatmul__ = refuse


def _with_lists(name: str) -> None:
    """Let the other operand of an operator be a native list, too."""
    operator = getattr(np.lib.mixins.NDArrayOperatorsMixin, name)

    def call(x: GrownArray, other: Any) -> Any:
        return operator(x, grown(other) if isinstance(other, NativeSequence) else other)

    setattr(GrownArray, name, call)


for _name in "add sub mul truediv floordiv mod pow lt le gt ge eq ne and or xor".split():
    for _prefix in ("", "r", "i"):
        if hasattr(GrownArray, f"__{_prefix}{_name}__"):
            _with_lists(f"__{_prefix}{_name}__")


class _Flags:
    """What is known of an array beside its elements, which is no part of its structure."""

    def __init__(self, of_list: bool) -> None:
        self.of_list = of_list

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags)

    def __hash__(self) -> int:
        return 0


def _again(how: Any, parts: Any) -> GrownArray:
    """One that a branch or loop has chosen: who else has it, nobody knows."""
    made = GrownArray(parts[0], how[0])
    made.of_list, made.has_views = how[1].of_list, True
    return made


pytree.register_pytree(GrownArray, lambda x: ((x.items,), (x.given, _Flags(x.of_list))), _again)

called: list[Callable[..., Any]] = []  # `grown_functions`, which lies above, puts it here


def grown(items: Any, dtype: Any = None, **options: Any) -> Any:
    """`np.array(items, dtype)`"""
    if isinstance(items, GrownArray):
        return items if dtype is None else mapped(items, lambda v: v.astype(dtype))
    form = isinstance(items, NativeSequence) and items.kind.value
    refused = form and form.holds_containers and not is_box(form)
    if options or not isinstance(items, NativeSequence) or refused or (form and form.is_varied):
        items.__array__()
    made = GrownArray(items.listed() if isinstance(items, Tuple) else items.copy(), dtype)
    kinds = current()
    if form and is_box(form) and kinds is not None:
        kinds.in_arrays.add(form.example.kind)
        if kinds.copies_rows:
            made = mapped(made, lambda row: row)
    made.of_list = True
    return made


def listed(length: Any, item: Callable[[Any], Any]) -> GrownArray:
    """The array of `item(i)` for as many numbers."""
    made = fresh()

    def add(i: Any) -> None:
        append(made, item(i))

    for_each(length, add)
    return GrownArray(made)


def fresh(like: Any = None) -> List:
    """An empty list for the elements of an array, which are `like` this, if that is known."""
    kinds = current()
    assert kinds is not None
    made = List(kinds.kind_at(user_line(2)))
    if like is not None:
        made.kind.see(NOTHING, like)
    return made


def append(made: List, value: Any) -> None:
    """Add a number of NumPy's, or a row."""
    value = value if isinstance(value, Tracer) else wrap(as_value(value), scalar=not np.ndim(value))
    made.append(value if value.shape else wrap(as_value(value), scalar=True))


def nothing() -> GrownArray:
    """An array without elements."""
    return GrownArray(fresh())


def mapped(x: GrownArray, function: Callable[[Any], Any]) -> GrownArray:
    """A function of each element."""
    return nothing() if x.numbers is None else listed(x.length(), lambda i: function(x.at(i)))


def elementwise(function: Callable[..., Any], *operands: Any) -> Any:
    """A function of numbers for each element of grown arrays. Numbers, rows, and arrays of as many
    elements are operands, too."""
    parts = [grown(x) if isinstance(x, NativeSequence) else x for x in operands]
    arrays = [x for x in parts if isinstance(x, GrownArray)]
    if any(x.numbers is None for x in arrays):
        return nothing()
    length, rows = arrays[0].length(), max(len(x.row_shape) for x in arrays)
    for other in arrays[1:]:
        require_same(length, other.length())

    def of(x: Any) -> Callable[[Any], Any]:
        if isinstance(x, GrownArray):
            return x.at
        if np.ndim(x) <= rows:
            return lambda i: x
        if np.ndim(x) > rows + 1:
            arrays[0].refuse()
        require_same(length, len(x))
        whole = x if isinstance(x, Tracer) else wrap(as_value(np.asarray(x)), scalar=False)
        return lambda i: whole[i]

    each = [of(x) for x in parts]
    return listed(length, lambda i: function(*(at(i) for at in each)))


def require_same(n: Any, m: Any) -> None:
    """ValueError, as NumPy's, where two lengths differ."""
    message = "operands could not be broadcast together with shapes ({},) ({},)"
    require(as_value(n == m), message, "ValueError", n, m)


def _masked(x: GrownArray, mask: GrownArray) -> GrownArray:
    require_same(x.length(), mask.length())
    if x.numbers is None or mask.numbers is None:
        return nothing()
    made = fresh()

    def look(i: Any) -> None:
        cond(mask.at(i), lambda: append(made, x.at(i)), lambda: None)

    for_each(x.length(), look)
    return GrownArray(made)


def gathered(x: Any, places: GrownArray) -> GrownArray:
    """`x[places]`"""
    return mapped(places, lambda i: x[wrap(as_value(i), scalar=True)])


def is_grown(x: Any) -> bool:
    """Whether it is a native list, and no array for one, or an array of one."""
    return isinstance(x, (GrownArray, NativeSequence)) and not isinstance(x, Packed)


def is_grown_index(x: Any, index: Any) -> bool:
    """Whether an array is indexed by a list or an array that grew."""
    first = index[0] if isinstance(index, tuple) and index else index
    return is_grown(first) and isinstance(x, (Tracer, np.ndarray))


def put_into(x: Any, index: Any, value: Any) -> None:
    """`x[index] = value` of such an array: one element after the other."""
    places, *rest = index if isinstance(index, tuple) else (index,)
    places = grown(places)
    if places.dtype == np.bool_:
        places = called[0](np.flatnonzero, (places,), {})
    if places.numbers is None:
        return
    value = grown(value) if isinstance(value, NativeSequence) else value
    many = isinstance(value, GrownArray) or np.ndim(value) == x.ndim - len(rest)
    if isinstance(value, GrownArray):
        require_same(places.length(), value.length())
    elif many:
        value = value if isinstance(value, Tracer) else wrap(as_value(np.asarray(value)))
        require_same(places.length(), len(value))

    def put(k: Any, array: Any) -> Any:
        one = (value.at(k) if isinstance(value, GrownArray) else value[k]) if many else value
        array[(wrap(as_value(places.at(k)), scalar=True), *rest)] = one
        return array

    x[...] = fori_loop(0, places.length(), put, x.copy())


def of_array(x: Tracer, index: Any) -> GrownArray:
    """`x[index]` of such an array."""
    index, *rest = index if isinstance(index, tuple) else (index,)
    index = grown(index)
    if any(not isinstance(r, (int, np.integer, slice)) and np.ndim(r) for r in rest):
        index.refuse()

    def row(i: Any) -> Any:
        return x[(wrap(as_value(i), scalar=True), *rest)]

    if index.dtype != np.bool_:
        return mapped(index, row)
    require_same(x.shape[0], index.length())
    made = fresh()

    def look(i: Any) -> None:
        cond(index.at(i), lambda: append(made, row(i)), lambda: None)

    for_each(index.length(), look)
    return GrownArray(made)


# Arrays that leave


def left(x: GrownArray) -> tuple[NativeSequence, Any]:
    """The list that leaves for an array, of rows that of all their numbers; and what becomes of it."""
    items = x.refused_texts()
    if not is_box(items.kind.value):
        return items, (x.given, x.of_list, None)
    kind: Any = items.form.example.kind
    flat = fresh(kind.dtype.type(0))

    def add(i: Any) -> None:
        run("extend", flat._at, items.ask("get", as_value(i, I64))[1], value=(kind.dtype,))

    for_each(items.length(), add)
    return flat, (x.given, x.of_list, kind.shape)


def array_of(
    columns: list[np.ndarray[Any, Any]],
    form: Form | None,
    dtype: Any,
    of_list: bool,
    shape: tuple[int, ...] | None,
) -> Any:
    """The array of elements of this form, of a column for each word; of rows of this shape."""
    if form is None or (of_list and not len(columns[0])):
        return np.array([], dtype)
    columns = _numbers(columns, form)
    whole = columns[0] if form.tree.is_leaf() else np.stack(columns, axis=1)
    if shape is not None:
        whole = whole.reshape(len(whole) // max(math.prod(shape), 1), *shape)
    return whole.astype(dtype) if dtype is not None else whole


def _numbers(columns: list[np.ndarray[Any, Any]], form: Form) -> list[np.ndarray[Any, Any]]:
    """A column for each leaf: of ints where all are."""
    numbers, flags = columns[: len(form.leaves)], iter(columns[len(form.leaves) :])
    for k, (_, weak) in enumerate(form.leaves):
        if weak in FLAGS and (next(flags) == 1).all() and len(numbers[k]):
            numbers[k] = numbers[k].astype(np.int64)
    return numbers


def reduced(function: Any, items: Any, *args: Any, **options: Any) -> Any:
    """`np.sum(items)`, and its like; None if it is no reduction."""
    name = fold_of(function)
    if isinstance(items, GrownArray):
        return None if name is None else getattr(items, name)(*args, **options)
    if name is None or not isinstance(items, NativeSequence) or len(args) > 1:
        return None
    return folded(name, items, None, **dict(zip(("axis",), args, strict=False)), **options)


def _tolist(x: GrownArray) -> List:
    """A list of Python's numbers."""
    made = fresh()
    if x.numbers is None:
        return made
    if x.row_shape:
        x.refuse()
    weak = {"b": "b", "i": "i", "u": "i", "f": "f"}[x.dtype.kind]

    def add(i: Any) -> None:
        made.append(wrap(as_value(x.at(i), WEAK_DTYPES[weak]), weak, scalar=True))

    for_each(x.length(), add)
    return made


METHODS: dict[str, Callable[..., Any]] = {
    "tolist": _tolist,
    "copy": lambda x: GrownArray(x.items.copy(), x.given),
    "astype": lambda x, dtype: mapped(x, lambda v: v.astype(dtype)),
}
