"""Generators of random numbers of NumPy's and Python's, as inputs of compiled code.

Compiled code draws in a generator's own state, so that nothing has to be handed back: it is given a
*handle*, the address of the object and that of its state (`ir.ops.control.draws`). Where in an object
the state lies is looked for in one whose state is known; where it is not found, or NumPy or Python has
another layout of a known bit generator, the generator itself is asked for its numbers.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from functools import cache
from types import BuiltinFunctionType, MethodType
from typing import Any

import numpy as np

from ...ir.record import record

Array = np.ndarray[Any, Any]
_ASKED = ":asked"  # the source of a generator whose state native code does not touch
_make: list[Callable[[GeneratorKind, Any], Any]] = []
_ask: list[Callable[[Any], Any]] = []


@record
class GeneratorKind:
    """What compiled code relies on: the class of a generator, and that of its bit generator."""

    cls: Any
    bits: Any

    @property
    def source(self) -> str:
        """How native code knows it; see `codegen.kernels.draws.sources`."""
        name = self.cls.__name__
        from ...runtime.random_functions import are_there  # few functions have generators

        if _offset(self.cls) is None or (self.bits is not None and not are_there()):
            return name + _ASKED
        known = "MT19937" if self.bits is None else _known(self.bits)
        if self.cls is np.random.RandomState and known != "MT19937":
            return name  # of those that have others, few are in a hurry
        return f"{name}:{known}" if known else name

    def asker(self) -> Callable[[Any], Array]:
        """A function that gives the handles of generators of this kind, and raises TypeError for others.

        It remembers the last one: mostly it is asked for the same again. That one stays alive.
        """
        last: Any = None
        bits: Any = None
        lock: Any = None
        handle: Any = None
        is_state = self.cls is np.random.RandomState

        def ask(value: Any) -> Any:
            nonlocal last, bits, lock, handle
            if value is not last or (is_state and value._bit_generator is not bits):
                if kind_of(value) is not self:
                    raise TypeError
                handle, bits = handle_of(value), _bits_of(value)
                last, lock = value, getattr(bits, "lock", None)
            elif lock is not None:
                with lock:
                    pass
            return handle

        return ask

    def __call__(self, handle: Any) -> Any:
        """What stands in for the generator with this handle while a function is traced."""
        return _make[0](self, handle)


def provide_stand_ins(make: Callable[[GeneratorKind, Any], Any]) -> None:
    """What makes stand-ins; it lies above."""
    _make[:] = [make]


def provide_asking(ask: Callable[[Any], Any]) -> None:
    """What makes of a drawing function one that draws in what is traced; it lies above."""
    _ask[:] = [ask]


def asking(function: Any) -> Any:
    """What a name that stands for a drawing function stands for while a function is traced."""
    asks = _asking.get(id(function))
    if asks is None:
        asks = _asking[id(function)] = _ask[0](function)
        _asked[id(asks)] = asks, function
    return asks


_asking: dict[int, Any] = {}
_asked: dict[int, tuple[Any, Any]] = {}  # what `asking` has made, and of what


def kind_of(value: Any) -> GeneratorKind | None:
    """The kind of a generator of NumPy's or Python's own classes; None for all other values."""
    cls: Any = type(value)
    if cls is _loaded("numpy.random", "Generator"):
        return _kind(cls, type(value.bit_generator))
    if cls is _loaded("numpy.random", "RandomState"):
        return _kind(cls, type(value._bit_generator))
    return _kind(cls, None) if cls is _loaded("random", "Random") else None


def _loaded(module: str, name: str) -> Any:
    """A class or function of a module that somebody has loaded. We do not: it would take a
    good part of the time in which a process starts that finds its programs on disk."""
    return getattr(sys.modules.get(module), name, _NOBODYS)


_NOBODYS = object()


def _kind(cls: type, bits: type | None) -> GeneratorKind:
    """The one record of a kind."""
    return _kinds.setdefault((cls, bits), GeneratorKind(cls, bits))


_kinds: dict[tuple[type, type | None], GeneratorKind] = {}


def handle_of(value: Any) -> Array:
    """Where a generator is. Waits for a thread that is drawing from it."""
    bits = _bits_of(value)
    if bits is not None:
        with bits.lock:
            pass
    cls: Any = type(value)
    return np.array((id(value), id(value) + (_offset(cls) or 0)), np.uint64)


def _bits_of(value: Any) -> Any:
    """The bit generator of a generator; None for Python's."""
    if type(value) is _loaded("numpy.random", "RandomState"):
        return value._bit_generator
    return None if type(value) is _loaded("random", "Random") else value.bit_generator


def lasting_handle(value: Any) -> Array:
    """A handle that keeps its generator alive."""
    memory: Any = (ctypes.c_uint64 * 2)(*handle_of(value).tolist())
    memory.generator = value
    return np.frombuffer(memory, np.uint64)


def behind(function: Any) -> Any:
    """The generator that a function draws from: one of its methods, or of a module that has one; None
    for all others."""
    function = _asked.get(id(function), (None, function))[1]
    if isinstance(function, (MethodType, BuiltinFunctionType)):
        owner = function.__self__
        return owner if kind_of(owner) is not None else None
    if _loaded("numpy.random", "ranf") is not _NOBODYS:
        known = _of_module()
        if type(function) is type(known[0]) and function in known:
            return np.random.mtrand._rand
    return None


@cache
def _of_module() -> tuple[Any, ...]:
    """NumPy's own, first asked for before any trace puts others into the module."""
    return np.random.seed, np.random.sample, np.random.ranf


# Where states are


@cache
def _offset(cls: Any) -> int | None:
    """Bytes from a generator to what native code takes for it."""
    try:
        if cls is _loaded("random", "Random"):
            return _offset_in_random()
        generator: Any = cls(np.random.PCG64(1))
        words = _words(generator)
        at = _bitgen(words, generator.bit_generator if cls is np.random.Generator else generator)
        if at is None or cls is np.random.Generator:
            return None if at is None else 8 * at
        return _offset_in_state(generator, words, id(generator) + 8 * at)
    except (AttributeError, TypeError, ValueError):
        return None


def _words(value: Any) -> list[int]:
    count = type(value).__basicsize__ // 8
    return list((ctypes.c_uint64 * count).from_address(id(value)))


def _bitgen(words: list[int], owner: Any) -> int | None:
    """Where the words of a bitgen_t are: the state, and the functions that draw from it."""
    interface = getattr(owner, "_bit_generator", owner).ctypes
    functions = (interface.next_uint64, interface.next_uint32, interface.next_double)
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    wanted = [interface.state_address, *addresses]
    offsets = [k for k in range(len(words) - 4) if words[k : k + 4] == wanted]
    return offsets[0] if offsets else None


def _offset_in_state(generator: Any, words: list[int], bitgen: int) -> int | None:
    """Where a RandomState has the address of its bitgen_t, and then its second normal number."""
    state = generator.get_state(legacy=False)
    mark = 0.48235
    generator.set_state({**state, "has_gauss": 1, "gauss": mark})
    words = _words(generator)
    (bits,) = struct.unpack("Q", struct.pack("d", mark))
    for k in range(len(words) - 2):
        if words[k] == bitgen and words[k + 1] & 0xFFFFFFFF == 1 and words[k + 2] == bits:
            return 8 * k
    return None


def _offset_in_random() -> int | None:
    """Where a random.Random has its position and its words."""
    generator = sys.modules["random"].Random(7)
    generator.random()
    *key, position = generator.getstate()[1]
    size = type(generator).__basicsize__ // 4
    words = list((ctypes.c_uint32 * size).from_address(id(generator)))
    for k in range(size - len(key)):
        if words[k] == position and words[k + 1 : k + 1 + len(key)] == key:
            return 4 * k
    return None


@cache
def _known(bits: Any) -> str:
    """The name of a bit generator whose state native code knows."""
    if bits is np.random.PCG64:
        return "PCG64" if _is_pcg64() else ""
    if bits is np.random.MT19937:
        return "MT19937" if _is_twister() else ""
    return ""


def _is_pcg64() -> bool:
    generator = np.random.PCG64(3)
    state: Any = generator.state["state"]
    (at,) = (ctypes.c_uint64 * 1).from_address(generator.ctypes.state_address)
    low, high, step_low, step_high = (ctypes.c_uint64 * 4).from_address(at)
    return (high << 64 | low, step_high << 64 | step_low) == (state["state"], state["inc"])


def _is_twister() -> bool:
    generator = np.random.MT19937(3)
    state: Any = generator.state["state"]
    words = list((ctypes.c_uint32 * 625).from_address(generator.ctypes.state_address))
    return words == [*state["key"].tolist(), state["pos"]]
