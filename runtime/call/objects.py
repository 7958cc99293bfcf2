"""Python's objects of the containers that native code leaves behind, and the way back: how they are
described."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ...ir.ops.control.python_sets import layout as set_layout
from ..native.layout import array_api, instance_layout, int_layout, list_items, ndarray_layout
from ..native.support import load_support
from . import entering_ir, objects_ir

_SCALAR, _SCALAR_AS = (
    60,
    62,
)  # the places of PyArray_Scalar and PyArray_ScalarAsCtype in NumPy's table
_EXTEND, _CLEAR = "extend", "clear"
_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)
_WHERE = ctypes.create_string_buffer(b" while containers leave compiled code")


class Plans:
    """What handles stand for, to call `leave` with. All words are in one array, which kinds, and the
    containers in their elements, are offsets into until it is finished."""

    def __init__(self) -> None:
        self._words: list[int] = []
        self._moved: list[int] = []  # words that are places in the array
        self._references: list[Any] = []

    def ref(self, value: Any) -> int:
        """The address of an object, which is kept alive."""
        self._references.append(value)
        return id(value)

    def reserve(self, n: int) -> int:
        """A place for n words."""
        place = len(self._words)
        self._words += [0] * n
        return place

    def write(self, place: int, words: Sequence[int], places: Sequence[int] = ()) -> None:
        """`places` says which of the words are places themselves."""
        self._words[place : place + len(words)] = words
        self._moved += [place + k for k in places]

    def finished(self) -> Any:
        """The words, as a ctypes array."""
        words: Any = (ctypes.c_int64 * len(self._words))(*self._words)
        start = ctypes.addressof(words)
        for k in self._moved:
            words[k] = start + 8 * words[k]
        words.references = self._references
        return words


def _gone() -> int:
    """What stands for a key that was taken out of a set."""
    sets = set_layout()
    return id(None) if sets is None else sets.gone


@cache
def leave() -> Callable[[int, int, int, int], list[Any]]:
    """`leave(handles, n, kinds, entered)`: see `objects_ir`."""
    at = ctypes.c_void_p
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, at, ctypes.c_ssize_t, at, at)
    made: Callable[[int, int, int, int], list[Any]] = kind(leave_address())
    return made


@cache
def leave_address() -> int:
    """Where that function is."""
    imports = {
        "none": id(None),
        "extend": id(_EXTEND),
        "clear": id(_CLEAR),
        "where": ctypes.addressof(_WHERE),
        "PyArray_Scalar": array_api()[_SCALAR],
        "gone": _gone(),
        "float64": id(_FLOAT64),
        "int64": id(_INT64),
    }
    arrays = ndarray_layout()
    assert arrays is not None
    text = partial(objects_ir.objects_ir, set_layout(), arrays.data)
    library = load_support("objects", text, ["jitney_leave"], imports)
    return library.keep().address("jitney_leave")


@cache
def enter() -> Callable[[Any, int, int, Any, Any], Any]:
    """`enter(items, n, kinds, handles, seen)`: see `entering_ir`."""
    at = ctypes.c_void_p
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, at, ctypes.c_ssize_t, at, at, ctypes.py_object)
    made: Callable[[Any, int, int, Any, Any], Any] = kind(enter_address())
    return made


@cache
def enter_address(lazily: bool = False) -> int:
    """Where that function is, or the one that leaves objects to be looked at when they are asked for."""
    layout = ndarray_layout()
    assert layout is not None
    imports = {
        "none": id(None),
        "true": id(True),
        "float64": id(np.float64),
        "int64": id(np.int64),
        "PyArray_ScalarAsCtype": array_api()[_SCALAR_AS],
        "gone": _gone(),
    }
    text = partial(
        entering_ir.entering_ir,
        layout,
        int_layout(),
        list_items(),
        set_layout(),
        instance_layout(),
    )
    names = ["jitney_enter", "jitney_enter_lazily"]
    library = load_support("entering", text, names, imports)
    return library.keep().address(names[lazily])
