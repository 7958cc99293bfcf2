"""Python objects whose call is native code: a type with a vectorcall, and the chain of programs.

    class Base:
        def __new__(cls, ...): return new_callable(cls)

    f = Base(...)                    # of a subtype, an instance of Base in every respect
    f(x)                             # runs Base.__call__, in Python
    install(f, [program, ...])
    f(x)                             # runs the first program that takes x, else Base.__call__

`Base` is an ordinary Python class with a `__call__`: it is what runs where there is no native type,
and what a call comes to that no program takes. The native type derives from it, so attributes,
descriptors, weak references, pickling and garbage collection are those of Python's own objects. If
`Base` has a `__get__`, then `type(obj).f(obj, x)` has to mean what `obj.f(x)` means.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple, TypeVar

from ...ir.collector import loading
from ..config import config
from ..native.layout import array_api, free_threaded, list_items, ndarray_layout
from ..native.support import at_hand, load_code_generator, load_support
from .call_fields import CHAIN_OBJECT, CHAIN_WORDS, FALLBACK, FIELDS, OBJECTS, VECTORCALL
from .program import HITS, CallProgram

T = TypeVar("T")

_NUMPY = {  # places in NumPy's API table
    "PyArray_CopyInto": 50,
    "PyArray_Scalar": 60,
    "PyArray_ScalarAsCtype": 62,
    "PyArray_NewFromDescr": 94,
    "PyDataMem_GetHandler": 305,
}
_HAVE_VECTORCALL = 1 << 11  # Py_TPFLAGS_HAVE_VECTORCALL
_METHOD_DESCRIPTOR = 1 << 17  # Py_TPFLAGS_METHOD_DESCRIPTOR
_TP_CALL, _TP_MEMBERS = 50, 72  # slot numbers of typeslots.h
_SSIZE, _OBJECT_EX, _READONLY = 19, 16, 1  # of structmember.h


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("pointer", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


class _Member(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class NativeProgram:
    """A finished program: its words, and what they refer to.

    Programs with equal `key` do the same; those that do the same may have different ones.
    """

    __slots__ = ("address", "key", "runs_python", "_references", "_words")

    def __init__(self, program: CallProgram, *others: Any) -> None:
        self.runs_python = program.runs_python
        self._words = program.words()
        self.key = hash(bytes(self._words))
        self._references = (program.references, others)
        self.address: int = ctypes.addressof(self._words)

    @property
    def hits(self) -> int:
        count: int = self._words[HITS]
        return count


class _Chain:
    """The programs of one object, in the order in which they are tried."""

    __slots__ = ("address", "_references", "_words")

    def __init__(self, programs: Sequence[NativeProgram], gate: Gate | None) -> None:
        words = [
            id(gate.variable) if gate else 0,
            ctypes.addressof(gate.active if gate else _NEVER_ACTIVE),
            int(any(program.runs_python for program in programs)),
            len(programs),
            *(program.address for program in programs),
        ]
        self._words = (ctypes.c_int64 * len(words))(*words)
        self._references = (gate, tuple(programs))
        self.address: int = ctypes.addressof(self._words)


class Gate(NamedTuple):
    """Programs run only while the context variable is None; `active` counts the contexts where it
    may be something else, so that in most calls nobody has to ask."""

    variable: ContextVar[Any]
    active: ctypes.c_int64


_NEVER_ACTIVE = ctypes.c_int64(0)


def native_calls() -> bool:
    """Whether calls can be native here: a known layout, a GIL, and not switched off."""
    return ndarray_layout() is not None and not free_threaded() and config.native_calls


@cache
@loading()
def _vectorcall(base_size: int) -> int:
    """The address of the vectorcall for subtypes of a type whose objects have that size."""
    layout = ndarray_layout()
    assert layout is not None

    def text() -> str:
        from .call_ir import call_ir

        return call_ir(layout, base_size, list_items())

    table = array_api()
    imports = {name: table[index] for name, index in _NUMPY.items()}
    imports |= {name: id(value) for name, value in OBJECTS.items()}
    name = _support_name(base_size)
    # Where this is compiled, so will be the function that somebody wants to call.
    library = load_support(name, text, ["jitney_vectorcall"], imports, load_code_generator)
    return library.keep().address("jitney_vectorcall")


_immortal: list[Any] = []  # what types and their instances point to


@cache
def native_type(base: type) -> type:
    """A subtype of `base` with a native call, where `native_calls()`."""
    size = base.__basicsize__
    members = (_Member * 3)(
        _Member(b"__vectorcalloffset__", _SSIZE, size + 8 * VECTORCALL, _READONLY, None),
        _Member(b"_chain", _OBJECT_EX, size + 8 * CHAIN_OBJECT, 0, None),
        _Member(),
    )
    pointer = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value
    slots = (_Slot * 3)(
        _Slot(_TP_CALL, pointer), _Slot(_TP_MEMBERS, ctypes.addressof(members)), _Slot(0, None)
    )
    name = f"{base.__module__}.{base.__qualname__}".encode()
    flags = _HAVE_VECTORCALL
    if hasattr(base, "__get__"):
        flags |= _METHOD_DESCRIPTOR  # `obj.f(x)` is `f(obj, x)`, without a bound method in between
    spec = _Spec(name, size + 8 * FIELDS, 0, flags, slots)
    _immortal.append((members, slots, spec, name, base.__call__))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)(
        ("PyType_FromSpecWithBases", ctypes.pythonapi)
    )
    native: type = make(ctypes.addressof(spec), (base,))
    native.__doc__ = base.__doc__
    return native


def new_callable(base: type[T]) -> Any:
    """A new, uninitialised instance of `base`, with a native call where that can be."""
    if base.__flags__ & _HAVE_VECTORCALL and "_chain" in vars(base):
        base = base.__base__  # type: ignore[assignment]  # a copy is being made of a native one
    if not native_calls():
        return object.__new__(base)
    made: Any = object.__new__(native_type(base))  # type: ignore[arg-type]
    size = base.__basicsize__
    fields = (ctypes.c_void_p * FIELDS).from_address(id(made) + size)
    fields[FALLBACK] = id(base.__call__)
    install(made, ())
    fields[VECTORCALL] = _vectorcall(size)
    return made


def _support_name(base_size: int) -> str:
    return f"call {base_size} {ndarray_layout()}"


def calls_at_hand() -> bool:
    """Whether calls can be native here without asking LLVM for the code of it."""
    return native_calls() and at_hand(_support_name(_Plain.__basicsize__))


def load_native_calls() -> None:
    """Compile, or load, what calls of ordinary objects need."""
    if native_calls():
        _vectorcall(_Plain.__basicsize__)


class _Plain:
    """A class of the usual size."""


def is_native(target: Any) -> bool:
    """Whether programs can be installed."""
    return bool(type(target).__flags__ & _HAVE_VECTORCALL) and hasattr(target, "_chain")


def install(target: Any, programs: Sequence[NativeProgram], gate: Gate | None = None) -> None:
    """Make `programs` what a call of `target`, an instance of a native type, tries."""
    chain = _Chain(programs, gate)
    previous = getattr(target, "_chain", None)  # alive until nothing leads to it any more
    size = _base_size(type(target))
    target._chain = chain
    ctypes.c_void_p.from_address(id(target) + size + 8 * CHAIN_WORDS).value = chain.address
    del previous


def _base_size(native: type) -> int:
    base = native.__base__
    assert base is not None
    return base.__basicsize__
