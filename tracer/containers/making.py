"""Native containers among which are objects of users' classes: Python makes its own of them.

Where there are none, native code does this (`native_plans`). It is also the way of the interpreter's.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...ir.ops.control import python_sets
from ...ir.ops.control.store_sets import words
from ...ir.ops.control.stores import RUNS, Table
from ..control.number_classes import FLAGS, of_code
from ..data import pytree
from .arrays import array_of
from .boxes import BoxKind
from .elements.forms import Form
from .kinds import Kind, empty_maker, lies_as_in_python
from .objects import UNKNOWN, ClassKind
from .stand_ins import Container

Plans = Iterable[tuple[Kind, Any]]  # of each its kind, and of an array what it becomes
_LINK, _BLOCK, _FIRST, _LENGTH, _END, _INDEX, _MASK, _TAKEN, _CHANGES, _OBJECT, _KIND = range(11)


def objects_of(
    handles: np.ndarray[Any, Any], plans: Plans, entered: Iterable[tuple[int, Kind]] = ()
) -> list[Any]:
    """The Python objects for the containers with these handles, the last of which leads to all. Those of
    what was there before the call get the content of the `entered` ones."""
    *places, first = handles.tolist()
    source: _Source = _Interpreted() if first & 1 else _Native()
    made: dict[int, Any] = {}

    try:
        for place, kind in entered:
            _whole(source, place, kind.root, made)
        return [
            _whole(source, place, kind.root, made)
            if target is None or not place
            else array_of(source.columns(place, None, kind.value), kind.value, *target)
            for place, (kind, target) in zip(places, plans, strict=True)
        ]
    finally:
        source.release(first)


class _Source:
    """Where containers are: gives their records as columns, one for each leaf."""

    columns: Callable[[int, Form | None, Form | None], list[Any]]
    columns_of: Callable[[int, Sequence[np.dtype[Any]]], list[Any]]  # of a sequence
    members: Callable[[int, Form], tuple[python_sets.Entries, list[Any]]]  # of a set
    release: Callable[[int], None]
    made_of: Callable[[int], Any]  # the object that one was made of, None for others
    has_arrived: Callable[[int], bool]  # whether the attributes of an object were ever asked for


def _whole(source: _Source, handle: int, kind: Kind, made: dict[int, Any]) -> Any:
    """The Python object for a container, with all that is in it."""
    waiting: list[Any] = []
    new = _object(source, handle, kind, made, waiting)
    while waiting:
        place, inner = waiting.pop()
        _fill(source, place, inner, made, waiting)
    return new


def _object(
    source: _Source, handle: int, kind: Kind, made: dict[int, Any], waiting: list[Any]
) -> Any:
    """The Python object for a container, which is filled later; `made` are those that are there."""
    if not handle:
        return None  # of a value of several forms, one that it is not
    if handle not in made and kind.cls in (tuple, frozenset):
        made[handle] = _frozen(source, handle, kind, made, waiting)
    if handle not in made:
        old = source.made_of(handle)
        made[handle] = _empty(kind) if old is None else old
        waiting.append((handle, kind))
    return made[handle]


def _frozen(
    source: _Source, handle: int, kind: Kind, made: dict[int, Any], waiting: list[Any]
) -> Any:
    """A tuple or a frozen set: at once, with what is in it."""
    if kind.cls is tuple:
        if kind.value is None:
            return ()
        columns = source.columns(handle, None, kind.value)
        return tuple(_elements(source, kind.value, columns, made, waiting))
    found: set[Any] = set()
    made[handle] = found
    _fill_set(source, handle, kind, found, made, waiting)
    return frozenset(found)


def _fill(
    source: _Source, handle: int, kind: Kind, made: dict[int, Any], waiting: list[Any]
) -> None:
    new = made[handle]
    if isinstance(kind, ClassKind):
        if source.has_arrived(handle):
            _fill_object(source, handle, kind, new, made, waiting)
        return
    if isinstance(kind, BoxKind) and source.made_of(handle) is not None:
        return  # nobody writes into it
    if source.made_of(handle) is not None and kind.changes:
        new.clear()
    if isinstance(kind, BoxKind):
        new[...] = source.columns_of(handle, (kind.dtype,))[0].reshape(kind.shape)
        return
    if kind.key is None and kind.value is None:
        return
    if kind.cls is set:
        _fill_set(source, handle, kind, new, made, waiting)
        return
    columns = source.columns(handle, kind.key, kind.value)
    count = 0 if kind.key is None else len(kind.key.dtypes)
    parts = [
        _elements(source, form, part, made, waiting)
        for form, part in ((kind.key, columns[:count]), (kind.value, columns[count:]))
        if form is not None
    ]
    if source.made_of(handle) is not None and not kind.changes:
        return  # but what is in there may have changed
    if isinstance(new, dict):
        content = dict(zip(*parts, strict=True))
        dict.update(new, content) if type(new) is Counter else new.update(content)
    else:
        new.extend(parts[0])


def _fill_set(
    source: _Source,
    handle: int,
    kind: Kind,
    new: Any,
    made: dict[int, Any],
    waiting: list[Any],
) -> None:
    """Put keys where they lie in the set that left."""
    form = kind.key
    if form is None or (source.made_of(handle) is not None and not kind.changes):
        return
    how, columns = source.members(handle, form)
    keys = iter(_elements(source, form, columns, made, waiting))
    entries = [(i, key if key is python_sets.GONE else next(keys)) for i, key in how.entries]
    if lies_as_in_python(kind):
        python_sets.write(new, python_sets.Entries(how.size, how.finger, entries))
    else:
        new.update(key for _, key in entries if key is not python_sets.GONE)


def _fill_object(
    source: _Source,
    handle: int,
    kind: ClassKind,
    new: Any,
    made: dict[int, Any],
    waiting: list[Any],
) -> None:
    columns = iter(source.columns_of(handle, kind.dtypes))
    for name, field in kind.fields.items():
        if name not in (kind.sure or ()):
            continue
        words = [next(columns) for _ in field.dtypes]
        value = None if field.static is UNKNOWN else field.static
        if field.form is not None and (not field.optional or words.pop(0)[0]):
            (value,) = _elements(source, field.form, words, made, waiting)
        if kind.changes or source.made_of(handle) is None:
            object.__setattr__(new, name, value)


def _empty(kind: Kind) -> Any:
    if isinstance(kind, ClassKind):
        return object.__new__(kind.cls)
    return empty_maker(kind)()


def _elements(
    source: _Source, form: Form, columns: list[Any], made: dict[int, Any], waiting: list[Any]
) -> list[Any]:
    """Elements of one form, of a column for each word."""
    flags = iter(columns[len(form.leaves) :])
    lists = [
        column.tolist() if weak is not None else list(column)
        for column, (_, weak) in zip(columns, form.leaves, strict=False)
    ]
    for k, (_, weak) in enumerate(form.leaves):
        if weak in FLAGS:
            lists[k] = [*map(of_code, lists[k], next(flags).tolist())]
    if form.tree.is_leaf():
        return lists[0]
    plain = pytree.flatten(tuple(range(len(lists))))[1]
    if form.tree == plain:
        return list(zip(*lists, strict=True))
    return [
        _with_objects(source, pytree.unflatten(form.tree, row), made, waiting)
        for row in zip(*lists, strict=True)
    ]


def _with_objects(source: _Source, element: Any, made: dict[int, Any], waiting: list[Any]) -> Any:
    if isinstance(element, Container):
        return _object(source, int(element.handle), element.kind.root, made, waiting)
    if isinstance(element, tuple):
        parts = [_with_objects(source, part, made, waiting) for part in element]
        return type(element)(*parts) if hasattr(element, "_fields") else tuple(parts)
    return element


class _Native(_Source):
    """In memory that native code has left."""

    def columns(self, handle: int, key: Form | None, value: Form | None) -> list[Any]:
        dtypes = [d for form in (key, value) if form is not None for d in form.dtypes]
        return self.columns_of(handle, dtypes, key is not None)

    def columns_of(
        self, handle: int, dtypes: Sequence[np.dtype[Any]], is_table: bool = False
    ) -> list[Any]:
        header = _header(handle)
        lead = 8 if is_table else 0
        count = header[_TAKEN] if is_table else header[_LENGTH]
        if not count:
            return [np.empty(0, dtype) for dtype in dtypes]
        records = _records(header[_FIRST], count, dtypes, lead)
        if is_table:
            records = records[records["hash"] >= 0]
        return [records[f"x{k}"].copy() for k in range(len(dtypes))]

    def members(self, handle: int, form: Form) -> tuple[python_sets.Entries, list[Any]]:
        from ...codegen.kernels.stores import sets  # the code generator, where there is such code

        header = _header(handle)
        if not header[_FIRST]:
            nothing = [np.empty(0, dtype) for dtype in form.dtypes]
            return python_sets.Entries(sets.LEAST, header[_END], []), nothing
        size = header[_MASK] + 1
        records = _records(header[_FIRST], size, form.dtypes, 8)
        hashes = records["hash"]
        entries = [
            (i, python_sets.GONE if h == sets.GONE else None)
            for i, h in enumerate(hashes.tolist())
            if h != sets.EMPTY
        ]
        live = records[(hashes != sets.EMPTY) & (hashes != sets.GONE)]
        columns = [live[f"x{k}"].copy() for k in range(len(form.dtypes))]
        return python_sets.Entries(size, header[_END], entries), columns

    def made_of(self, handle: int) -> Any:
        header = _header(handle)
        return ctypes.cast(header[_OBJECT], ctypes.py_object).value if header[_KIND] else None

    def has_arrived(self, handle: int) -> bool:
        return bool(_header(handle)[_LENGTH])

    def release(self, first: int) -> None:
        from ...runtime.call import objects
        from .native_plans import planned

        last = np.array([first], np.uint64)
        objects.leave()(last.ctypes.data, 0, ctypes.addressof(planned([])), 0)


def _records(at: int, count: int, dtypes: Sequence[np.dtype[Any]], lead: int) -> Any:
    """So many records in memory, each with a hash at its begin, or, without a `lead`, none."""
    layout = np.dtype(
        {
            "names": ["hash", *(f"x{k}" for k in range(len(dtypes)))],
            "formats": [np.int64, *dtypes],
            "offsets": [0, *(lead + 8 * k for k in range(len(dtypes)))],
            "itemsize": lead + 8 * len(dtypes),
        }
    )
    memory: Any = (ctypes.c_char * (count * layout.itemsize)).from_address(at)
    return np.frombuffer(memory, layout)


def _header(handle: int) -> Any:
    return (ctypes.c_int64 * 11).from_address(handle)


class _Interpreted(_Source):
    """Among the containers of the interpreter's runs."""

    def columns(self, handle: int, key: Form | None, value: Form | None) -> list[Any]:
        dtypes = [d for form in (key, value) if form is not None for d in form.dtypes]
        return self.columns_of(handle, dtypes)

    def columns_of(self, handle: int, dtypes: Sequence[np.dtype[Any]]) -> list[Any]:
        found = RUNS.at(handle)
        if isinstance(found, Table):
            records = [sum(found.records[p], ()) for p in found.positions.values()]
        else:
            records = list(found)
        return [np.array([r[k] for r in records], dtype) for k, dtype in enumerate(dtypes)]

    def members(self, handle: int, form: Form) -> tuple[python_sets.Entries, list[Any]]:
        keys = RUNS.at(handle).keys
        how = python_sets.read(keys)
        if how is None:
            how = python_sets.Entries(len(keys), 0, [*enumerate(keys)])
        records = [words(key) for key in keys]
        columns = [np.array([r[k] for r in records], d) for k, d in enumerate(form.dtypes)]
        return how, columns

    def made_of(self, handle: int) -> Any:
        return RUNS.at(handle).made_of

    def has_arrived(self, handle: int) -> bool:
        return True

    def release(self, first: int) -> None:
        RUNS.objects.pop(first >> 32, None)
