"""What calls of the driver hand over: functions of modules, options of loads, arguments, results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from ..library import INVALID_VALUE
from .device_memory import RefusedCall
from .machine import EmulatedModule

NOT_SUPPORTED = 801
_INFO_LOG, _INFO_SIZE, _ERROR_LOG, _ERROR_SIZE, _VERBOSE = 3, 4, 5, 6, 12  # CUjit_option


class EmulatedKernel(NamedTuple):
    """A function of a loaded module."""

    module: EmulatedModule
    name: str


class Setters(NamedTuple):
    """The module of kernels that set conditions: the driver's own, for what they do is not in LLVM."""

    names: tuple[str, ...] = ("jitney_set_while", "jitney_set_branch")


class SettingKernel(NamedTuple):
    """One of the functions of `Setters`."""

    name: str


def out(type: Any, pointer: int, value: Any) -> None:
    """Write a result where the caller wants it."""
    type.from_address(pointer).value = value


def error_log(count: int, options: int, values: int) -> Callable[[str], None]:
    """Writes to the buffer that the options of a load have for errors."""
    numbers = list((ctypes.c_int * count).from_address(options)) if count else []
    entries = list((ctypes.c_size_t * count).from_address(values)) if count else []
    values_of = dict(zip(numbers, entries, strict=True))
    if not set(values_of) <= {_INFO_LOG, _INFO_SIZE, _ERROR_LOG, _ERROR_SIZE, _VERBOSE}:
        raise RefusedCall(INVALID_VALUE, f"options {numbers} of a load")

    def say(text: str) -> None:
        room = values_of.get(_ERROR_SIZE, 0)
        if room:
            data = text.encode()[: room - 1] + b"\0"
            ctypes.memmove(values_of[_ERROR_LOG], data, len(data))

    return say


def packed(parameters: int, extra: int) -> bytes:
    """The packed arguments of a launch, from `extra` as cuLaunchKernel has it."""
    if parameters or not extra:
        raise RefusedCall(NOT_SUPPORTED, "the emulated driver takes packed arguments only")
    words = (ctypes.c_uint64 * 5).from_address(extra)
    if list(words[::2]) != [1, 2, 0]:
        raise RefusedCall(INVALID_VALUE, "launch arguments are not packed as they should be")
    size = ctypes.c_size_t.from_address(words[3]).value
    return ctypes.string_at(words[1], size)
