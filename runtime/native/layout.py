"""Where NumPy keeps an array's pointer, shape and strides, checked on live arrays.

`PyArrayObject`'s fields are public macros of NumPy's headers, compiled into every extension
module, so their offsets hold within one NumPy ABI. `ndarray_layout()` states them and verifies
them on probe arrays; if anything is not where it should be (another ABI, a free-threaded build
with a different object head that the probe does not confirm) it returns None and callers go
through NumPy's Python interface.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any

import numpy as np

from ...ir.record import record

C_CONTIGUOUS = 0x1  # NPY_ARRAY_C_CONTIGUOUS, and so on
ALIGNED = 0x100
WRITEABLE = 0x400
OWNDATA = 0x4
_GET_HANDLER = 305  # PyDataMem_GetHandler in NumPy's API table, since 1.22


@record
class NdarrayLayout:
    """Byte offsets of fields from the address of an ndarray object; `dtype_what` from that of a dtype:
    eight bytes, kind, type, byte order, flags and the number of the type."""

    ob_type: int
    data: int
    ndim: int
    dims: int
    strides: int
    descr: int
    flags: int
    handler: int
    dtype_what: int


def free_threaded() -> bool:
    """Whether this Python is built without the GIL. `sysconfig` says so too, after a millisecond."""
    return "free-threading" in sys.version


def refuse_without_gil() -> None:
    """RuntimeError if threads run Python at once: native code and LLVM's bindings count on the GIL."""
    if free_threaded() and not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise RuntimeError(
            "jitney needs the GIL: compiled code and llvmlite's bindings were not made to run "
            "without it. Start Python with PYTHON_GIL=1, or use a standard build."
        )


@lru_cache(maxsize=1)
def array_api() -> Any:
    """NumPy's C API table, as an indexable pointer of addresses."""
    from numpy._core._multiarray_umath import _ARRAY_API  # type: ignore[import-not-found]

    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get_pointer(_ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))


def current_handler() -> Any:
    """The memory handler (NEP 49), a capsule, that new arrays have in this context."""
    return ctypes.PYFUNCTYPE(ctypes.py_object)(array_api()[_GET_HANDLER])()


def _agrees(layout: NdarrayLayout, array: np.ndarray[Any, Any]) -> bool:
    def word(offset: int, ctype: Any = ctypes.c_ssize_t) -> int:
        value: int = ctype.from_address(id(array) + offset).value
        return value

    def words(offset: int) -> tuple[int, ...]:
        return tuple((ctypes.c_ssize_t * array.ndim).from_address(word(offset)))

    what = ctypes.string_at(id(array.dtype) + layout.dtype_what, 8)
    named = (array.dtype.kind + array.dtype.char).encode()

    return (
        word(layout.ob_type) == id(np.ndarray)
        and word(layout.ndim, ctypes.c_int) == array.ndim
        and word(layout.data) == array.ctypes.data
        and word(layout.descr) == id(array.dtype)
        and word(layout.flags, ctypes.c_int) & 0xFFFF == array.flags.num
        and word(layout.handler) == (id(current_handler()) if array.flags.owndata else 0)
        and (array.ndim == 0 or words(layout.dims) == array.shape)
        and (array.ndim == 0 or words(layout.strides) == array.strides)
        and what[:2] + what[4:] == named + array.dtype.num.to_bytes(4, sys.byteorder)
    )


@record
class IntLayout:
    """Ints of one digit at most: `head` is a word that tells how many digits there are, and the sign,
    `digit` an int32. A `tagged` head has the digits from the third bit on, and below what is to be
    taken from 1; else it is the number of digits, with the sign."""

    head: int
    digit: int
    tagged: bool


@lru_cache(maxsize=1)
def int_layout() -> IntLayout | None:
    """The layout, verified; None if this Python keeps ints in another way."""
    head = object.__basicsize__
    if sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8 or free_threaded():
        return None
    layout = IntLayout(head, head + 8, sys.version_info >= (3, 12))
    most = (1 << sys.int_info.bits_per_digit) - 1
    short = [0, 1, -1, 255, -7, 10**6, -(10**9), most, -most]
    long = [most + 1, -most - 1, 10**30, -(10**30)]
    agrees = [_short(layout, n) == n for n in short] + [_short(layout, n) is None for n in long]
    return layout if all(agrees) else None


def _short(layout: IntLayout, n: int) -> int | None:
    """What an int is by the layout; None if it has more than a digit."""
    head: int = ctypes.c_int64.from_address(id(n) + layout.head).value
    factor = (1 - (head & 3) if 0 <= head < 16 else None) if layout.tagged else head
    if factor is None or abs(factor) > 1:
        return None
    digit: int = ctypes.c_uint32.from_address(id(n) + layout.digit).value
    return factor * digit


@record
class InstanceLayout:
    """Objects that share the keys of their dictionaries with all of their class: where, before the
    object, the address of the values is, and, if that is null, of the dictionary; where that has its
    keys and values."""

    values: int
    dictionary: int
    keys: int
    dictionary_values: int

    def place(self, cls: type, name: str) -> int | None:
        """Which of the values an attribute is, in all objects of a class."""
        keys = self.keys_of(cls)
        if not keys:
            return None
        count = ctypes.c_ssize_t.from_address(keys + _KEY_COUNT).value
        entries = keys + _INDICES + (1 << ctypes.c_uint8.from_address(keys + _INDEX_BYTES).value)
        names = [ctypes.c_void_p.from_address(entries + 16 * k).value for k in range(count)]
        wanted = id(sys.intern(name))
        return names.index(wanted) if wanted in names else None

    def keys_of(self, cls: type) -> int:
        """The address of the keys that objects of a class share; 0 if they share none."""
        if not cls.__flags__ & _MANAGED_DICT or cls.__basicsize__ < object.__basicsize__:
            return 0
        try:
            own: dict[str, Any] = object.__new__(cls).__dict__
        except (TypeError, AttributeError):
            return 0
        keys = ctypes.c_void_p.from_address(id(own) + self.keys).value or 0
        is_split = keys and ctypes.c_uint8.from_address(keys + _KEY_KIND).value == _SPLIT
        return keys if is_split else 0


_MANAGED_DICT = 1 << 4  # Py_TPFLAGS_MANAGED_DICT
_INDEX_BYTES, _KEY_KIND, _KEY_COUNT, _INDICES, _SPLIT = 9, 10, 24, 32, 2  # of a dictionary's keys


@lru_cache(maxsize=1)
def instance_layout() -> InstanceLayout | None:
    """The layout, verified; None if this Python keeps attributes in another way."""
    if sys.version_info[:2] != (3, 11) or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    layout = InstanceLayout(-32, -24, object.__basicsize__ + 16, object.__basicsize__ + 24)

    class Probe:
        def __init__(self) -> None:
            self.a, self.b, self.c = object(), 3.5, object()

    def pair(address: int, *offsets: int) -> list[int | None]:
        return [ctypes.c_void_p.from_address(address + offset).value for offset in offsets]

    def agrees(probe: Probe, values: int | None) -> bool:
        held = probe.a, probe.b, probe.c
        if not values or [layout.place(Probe, name) for name in "abc"] != [0, 1, 2]:
            return False
        return pair(values, 0, 8, 16) == [id(x) for x in held]

    probes = Probe(), Probe()
    if probes[0].__dict__ is None or not Probe.__flags__ & _MANAGED_DICT:
        return None
    inline, none = pair(id(probes[1]), layout.values, layout.dictionary)
    nothing, own = pair(id(probes[0]), layout.values, layout.dictionary)
    if none or nothing or own != id(probes[0].__dict__):
        return None
    keys, values = pair(own, layout.keys, layout.dictionary_values)
    fits = keys == layout.keys_of(Probe) and agrees(probes[0], values)
    return layout if fits and agrees(probes[1], inline) else None


def list_items() -> int | None:
    """Where a list has the address of its items, verified; None if this Python keeps them elsewhere."""
    probe, at = [object(), object(), 3.5], object.__basicsize__ + 8
    if free_threaded() or list.__basicsize__ < at + 8:
        return None
    items = ctypes.c_void_p.from_address(id(probe) + at).value
    found = [*(ctypes.c_void_p * 3).from_address(items or id(probe))]
    return at if found == [id(x) for x in probe] else None


@lru_cache(maxsize=1)
def ndarray_layout() -> NdarrayLayout | None:
    """The layout, verified; None if this NumPy or Python keeps arrays in another way."""
    try:
        if ctypes.sizeof(ctypes.c_void_p) != 8 or array_api()[2] != id(np.ndarray):
            return None
    except (ImportError, AttributeError, ValueError):
        return None
    head = object.__basicsize__
    layout = NdarrayLayout(
        ob_type=head - 8,
        data=head,
        ndim=head + 8,
        dims=head + 16,
        strides=head + 24,
        descr=head + 40,
        flags=head + 48,
        handler=head + 72,
        dtype_what=head + 8,
    )
    cube = np.arange(5 * 7 * 11, dtype=np.float32).reshape(5, 7, 11)
    frozen = np.ones(3, np.int16)
    frozen.setflags(write=False)
    probes = (
        cube,
        cube[1:, ::-2, 3],
        np.zeros((3, 4), order="F"),
        np.zeros(()),
        np.zeros((0, 2), np.uint8),
        np.ones(3, np.dtype(np.int32).newbyteorder()),
        np.frombuffer(b"abcdefghi", np.int8)[1:].view(np.float32),
        frozen,
    )
    return layout if all(_agrees(layout, probe) for probe in probes) else None
