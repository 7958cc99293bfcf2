"""Where the compiled functions of NumPy's generators are: native code calls them by address.

NumPy's C interface to its distributions (`numpy/random/c_distributions.pxd`) is compiled into the module
of its `Generator`, whose symbols the dynamic linker knows on Linux and macOS.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(import_module("numpy.random._generator").__file__)


@functools.cache
def function_address(name: str) -> int:
    """The address of a function, or of a table (`layers`); RuntimeError without one of that name."""
    if name in _ZIGGURATS:
        return ctypes.addressof(layers(name))
    address = _address(name)
    if not address:
        raise RuntimeError(f"NumPy's generators have no function {name} that others can call")
    return address


def _address(name: str) -> int:
    function = getattr(_library(), name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


@functools.cache
def are_there() -> bool:
    """Whether the functions can be called at all."""
    try:
        return all(map(_address, ("random_standard_uniform", "random_interval", "random_binomial")))
    except OSError:
        return False


# Layers of ziggurats: of NumPy's own, by asking its functions with bits that we choose


class _Bits(ctypes.Structure):
    """A bitgen_t."""

    _fields_ = [
        ("state", ctypes.c_void_p),
        ("next_uint64", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)),
        ("next_uint32", ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)),
        ("next_double", ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)),
        ("next_raw", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)),
    ]


class Ziggurat(NamedTuple):
    """A method that takes a layer and a number of `bits` bits from 64 bits, each from a place on."""

    function: str
    layer_at: int
    number_at: int
    bits: int


_ZIGGURATS = {
    "normal_layers": Ziggurat("random_standard_normal", 0, 9, 52),
    "exponential_layers": Ziggurat("random_standard_exponential", 3, 11, 53),
}
LAYERS = 256


class Layers(ctypes.Structure):
    """Of each layer: what one unit of the number is worth, and below which number it is taken at once,
    or a little less. 0 leaves a layer to NumPy's function."""

    _fields_ = [("unit", ctypes.c_double * LAYERS), ("below", ctypes.c_uint64 * LAYERS)]


@functools.cache
def layers(name: str) -> Layers:
    """The layers of a ziggurat; none that can be used where NumPy's functions answer otherwise."""
    ziggurat, table = _ZIGGURATS[name], Layers()
    draw = _asked_with(ziggurat)
    units = [draw(layer, 1)[0] for layer in range(LAYERS)]
    edges = [unit * 2.0**ziggurat.bits for unit in units]
    inner = [edges[-1], *([0.0] + edges[1:-1])]
    for layer, (unit, edge, within) in enumerate(zip(units, edges, inner, strict=True)):
        below = max(int(within / edge * 2.0**ziggurat.bits) - (1 << 16), 0)
        if below and _holds(draw, layer, unit, (1, 12345, below // 3, below - 1)):
            table.unit[layer], table.below[layer] = unit, below
    return table


def _holds(
    draw: Callable[[int, int], Any], layer: int, unit: float, numbers: Iterable[int]
) -> bool:
    """Whether NumPy takes these numbers at once, for what they are worth."""
    return all(draw(layer, number) == (number * unit, 1) for number in numbers)


def _asked_with(ziggurat: Ziggurat) -> Callable[[int, int], tuple[float, int]]:
    """A function from a layer and a number to what NumPy's function makes of them, and how often it asks
    for more."""
    word, asked = 0, 0

    def next_word(state: int) -> int:
        nonlocal asked
        asked += 1
        return word if asked < 9 else 2 << ziggurat.layer_at | 1 << ziggurat.number_at

    def next_double(state: int) -> float:
        nonlocal asked
        asked += 1
        return 0.0 if asked < 9 else 0.5  # zeros for ever would be refused for ever

    types: Any = {name: type for name, type, *_ in _Bits._fields_}
    integer, double = types["next_uint64"](next_word), types["next_double"](next_double)
    bits = _Bits(None, integer, types["next_uint32"](next_word), double, integer)
    function = getattr(_library(), ziggurat.function)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_void_p]

    def draw(layer: int, number: int) -> tuple[float, int]:
        nonlocal word, asked
        word, asked = layer << ziggurat.layer_at | number << ziggurat.number_at, 0
        return function(ctypes.byref(bits)), asked

    return draw
