"""Native containers that leave the compiled function: Python's own are made of them when it has run.

All that leave one call do so together, as handles and the address of the first container of the call:
whoever makes the Python objects gives the memory back.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import Counter, deque
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import optree

from ...ir.build import Builder
from ...ir.graph import Graph
from ...ir.ops.control.stores import HANDLE, RUNS, Table
from ...ir.record import record
from ..core.tracers import as_value, emit
from ..core.tracing import Presented
from ..data import pytree
from .arrays import GrownArray, array_of
from .kinds import Form, Kind, current, make_native
from .stand_ins import Container, root, run
from .tables import View, refuse_view

_FEW = 100  # containers that are given back one by one
Target = tuple[np.dtype[Any] | None] | None  # of an array its dtype, if it was given
Plans = tuple[tuple[Kind, Target], ...]
_LINK, _BLOCK, _FIRST, _LENGTH, _END, _INDEX, _MASK, _TAKEN = range(8)


def leaving(result: Any) -> Any:
    """What a function gives, with native containers as what they will be in Python."""
    kinds = current()
    if kinds is None:
        return result
    _make_native(result)
    if kinds.root is None:
        return result
    found: list[Container] = []
    targets: list[Target] = []

    def is_container(x: Any) -> bool:
        return isinstance(x, (Container, View, GrownArray))

    def number(x: Any) -> Any:
        target = None
        if isinstance(x, View):
            refuse_view(x)
        elif isinstance(x, GrownArray):
            x, target = x.items, (x.dtype,)
        if not isinstance(x, Container):
            return x
        found.append(x)
        targets.append(target)
        return _Place(len(found) - 1)

    placed = optree.tree_map(number, result, is_leaf=is_container, namespace=pytree.NAMESPACE)
    if not found:
        run("end", root())
        return result
    handles = [as_value(x.handle) for x in found]
    parts = [emit("reshape", v, shape=(1,)).value for v in (*handles, run("end", root())[0])]
    together = emit("concat", *parts, axis=0)
    plans = tuple((x.kind, target) for x, target in zip(found, targets, strict=True))

    def present(x: Any) -> Any:
        return Presented(together, Leaving(x.number, plans)) if isinstance(x, _Place) else x

    return optree.tree_map(present, placed, namespace=pytree.NAMESPACE)


def _make_native(result: Any) -> None:
    """Sets and Counters of Python's can only leave as native ones."""
    leaves = optree.tree_leaves(result, namespace=pytree.NAMESPACE)
    make_native([leaf for leaf in leaves if type(leaf) in (set, Counter)])


@record
class _Place:
    """Which container of those that leave."""

    number: int


class Leaving:
    """Of the handles that leave a call, the Python object for one of them."""

    def __init__(self, number: int, plans: Plans) -> None:
        self.number, self.plans = number, plans

    def __call__(self, handles: Any) -> Any:
        made = _MADE.get(id(handles))
        if made is None:
            key = id(handles)
            made = _MADE[key] = _objects(np.asarray(handles), self.plans)
            weakref.finalize(handles, _MADE.pop, key, None)
        return made[self.number]


_MADE: dict[int, list[Any]] = {}
"""What was made of arrays of handles, by their ids, as long as these are there."""


def _objects(handles: np.ndarray[Any, Any], plans: Plans) -> list[Any]:
    *places, first = handles.tolist()
    source: _Source = _Interpreted() if first & 1 else _Native()
    made: dict[int, Any] = {}
    try:
        return [
            _object(source, place, kind.root, made)
            if target is None or not place
            else array_of(source.columns(place, None, kind.value), kind.value, *target)
            for place, (kind, target) in zip(places, plans, strict=True)
        ]
    finally:
        source.release(first)


class _Source:
    """Where containers are: gives their records as columns, one for each leaf."""

    columns: Callable[[int, Form | None, Form | None], list[Any]]
    release: Callable[[int], None]


def _object(source: _Source, handle: int, kind: Kind, made: dict[int, Any]) -> Any:
    """The Python object for a container; `made` are those that are there already."""
    if not handle:
        return None  # of a value of several forms, one that it is not
    if handle in made:
        return made[handle]
    new = _empty(kind)
    made[handle] = new
    if kind.key is None and kind.value is None:
        return new
    columns = source.columns(handle, kind.key, kind.value)
    count = 0 if kind.key is None else len(kind.key.leaves)
    parts = [
        _elements(source, form, part, made)
        for form, part in ((kind.key, columns[:count]), (kind.value, columns[count:]))
        if form is not None
    ]
    if isinstance(new, dict):
        content = dict(zip(*parts, strict=True))
        dict.update(new, content) if type(new) is Counter else new.update(content)
    elif isinstance(new, set):
        new.update(parts[0])
    else:
        new.extend(parts[0])
    return new


def _empty(kind: Kind) -> Any:
    if kind.cls is deque or (issubclass(kind.cls, dict) and kind.detail is not None):
        return kind.cls((), kind.detail) if kind.cls is deque else kind.cls(kind.detail)
    return kind.cls()


def _elements(source: _Source, form: Form, columns: list[Any], made: dict[int, Any]) -> list[Any]:
    """Elements of one form, of a column for each leaf."""
    lists = [
        column.tolist() if weak is not None else list(column)
        for column, (_, weak) in zip(columns, form.leaves, strict=True)
    ]
    if form.tree.is_leaf():
        return lists[0]
    plain = pytree.flatten(tuple(range(len(lists))))[1]
    if form.tree == plain:
        return list(zip(*lists, strict=True))
    return [
        _with_objects(source, pytree.unflatten(form.tree, row), made)
        for row in zip(*lists, strict=True)
    ]


def _with_objects(source: _Source, element: Any, made: dict[int, Any]) -> Any:
    if isinstance(element, Container):
        return _object(source, int(element.handle), element.kind.root, made)
    if isinstance(element, tuple):
        parts = [_with_objects(source, part, made) for part in element]
        return type(element)(*parts) if hasattr(element, "_fields") else tuple(parts)
    return element


class _Native(_Source):
    """In memory that native code has left."""

    def columns(self, handle: int, key: Form | None, value: Form | None) -> list[Any]:
        header = _header(handle)
        dtypes = [d for form in (key, value) if form is not None for d in form.dtypes]
        lead = 0 if key is None else 8
        count = header[_LENGTH] if key is None else header[_TAKEN]
        if not count:
            return [np.empty(0, dtype) for dtype in dtypes]
        layout = np.dtype(
            {
                "names": ["hash", *(f"x{k}" for k in range(len(dtypes)))],
                "formats": [np.int64, *dtypes],
                "offsets": [0, *(lead + 8 * k for k in range(len(dtypes)))],
                "itemsize": lead + 8 * len(dtypes),
            }
        )
        memory = (ctypes.c_char * (count * layout.itemsize)).from_address(header[_FIRST])
        records = np.frombuffer(memory, layout)
        if key is not None:
            records = records[records["hash"] >= 0]
        return [records[f"x{k}"].copy() for k in range(len(dtypes))]

    def release(self, first: int) -> None:
        free, some = _free(), 0
        while first:
            some += 1
            if some > _FEW:
                _free_all().run([np.asarray(first, np.uint64)])
                return
            header = _header(first)
            following = header[_LINK]
            for owned in (header[_INDEX], header[_BLOCK], first):
                free(owned)
            first = following


def _header(handle: int) -> Any:
    return (ctypes.c_int64 * 8).from_address(handle)


@cache
def _free_all() -> Any:
    """Native code that gives back many containers."""
    from ...runtime.compile import compile

    graph = Graph("free")
    b = Builder(graph)
    first, token = graph.add_param(HANDLE), b.op("create_token")
    graph.outputs = [b.op("store", first, token, method="free", key=(), value=())[0]]
    return compile(graph)


@cache
def _free() -> Any:
    free = ctypes.pythonapi.PyMem_RawFree
    free.argtypes, free.restype = (ctypes.c_void_p,), None
    return free


class _Interpreted(_Source):
    """Among the containers of the interpreter's runs."""

    def columns(self, handle: int, key: Form | None, value: Form | None) -> list[Any]:
        found = RUNS.at(handle)
        if isinstance(found, Table):
            records = [sum(found.records[p], ()) for p in found.positions.values()]
        else:
            records = list(found)
        dtypes = [d for form in (key, value) if form is not None for d in form.dtypes]
        return [np.array([r[k] for r in records], dtype) for k, dtype in enumerate(dtypes)]

    def release(self, first: int) -> None:
        RUNS.objects.pop(first >> 32, None)
