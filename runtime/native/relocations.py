"""Machine by machine, what an object file leaves open, and how it is written into the code.

A `Machine` sorts the types of relocations by what they want: the address of a symbol in a word, a slot
that holds it, a call of it, or its distance. `settle` writes all but the first. It gets the image's
bytes, where the relocations stand, what they aim at, addends included, and their types.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.record import record

Array = np.ndarray[Any, Any]


class Unlinkable(Exception):
    """The object has something that this linker does not know."""


@record(eq=False)
class Machine:
    """`page` is the largest that a system has; `stub` jumps, from an offset, through a slot."""

    page: int
    pointer: int
    slotted: tuple[int, ...]
    calls: tuple[int, ...]
    distances: tuple[int, ...]
    stub: Callable[[int, int], bytes]
    stub_size: int
    settle: Callable[[Array, Array, Array, Array], None]


def _write(content: Array, where: Array, value: Array, width: int) -> None:
    """Write numbers, little-endian."""
    if width == 4 and (abs(value) >= 1 << 31).any():
        raise Unlinkable("a distance beyond 2 GiB")
    octets = value.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width]
    content[where[:, None] + np.arange(width)] = octets


# ------------------------------------------------------------------------------------------- x86-64

_PC32, _PLT32, _PC64 = 2, 4, 24


def _jump(at: int, slot: int) -> bytes:
    return b"\xff\x25" + struct.pack("<i", slot - at - 6)  # jmp *[rip + disp32]


def _settle_x86(content: Array, where: Array, aim: Array, kind: Array) -> None:
    wide = kind == _PC64
    for chosen, width in ((wide, 8), (~wide, 4)):
        _write(content, where[chosen], (aim - where)[chosen], width)


# ------------------------------------------------------------------------------------------ AArch64

_PREL64, _PREL32 = 260, 261
_PAGES = (275, 311)  # adrp: of an address, and of its slot
_LOW = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3}  # twelve bits, in units of 1 << n
_BRANCHES = (282, 283)
_ADRP, _LDR, _BR = 0x90000010, 0xF9400210, 0xD61F0200  # of x16, which calls may change


def _page_field(distance: Any) -> Any:
    return (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5


def _jump_aarch64(at: int, slot: int) -> bytes:
    load = _LDR | (slot & 0xFFF) >> 3 << 10
    return struct.pack("<3I", _ADRP | _page_field((slot >> 12) - (at >> 12)), load, _BR)


def _settle_aarch64(content: Array, where: Array, aim: Array, kind: Array) -> None:
    for data, width in ((_PREL32, 4), (_PREL64, 8)):
        chosen = kind == data
        _write(content, where[chosen], (aim - where)[chosen], width)

    def fill(chosen: Array, field: Array, mask: int) -> None:
        offsets = where[chosen]
        if (offsets % 4).any():
            raise Unlinkable("an instruction that is not aligned")
        words = content[: len(content) // 4 * 4].view("<u4")
        words[offsets // 4] = words[offsets // 4] & np.uint32(~mask & 0xFFFFFFFF) | (
            field[chosen].astype("<u4")
        )

    distance = aim - where
    if (abs(distance) >= 1 << 27).any():
        raise Unlinkable("a distance beyond what a branch reaches")
    fill(np.isin(kind, _PAGES), _page_field((aim >> 12) - (where >> 12)), 0x60FFFFE0)
    fill(np.isin(kind, _BRANCHES), distance >> 2 & 0x3FFFFFF, 0x3FFFFFF)
    for low, unit in _LOW.items():
        chosen = kind == low
        if (aim[chosen] & ((1 << unit) - 1)).any():
            raise Unlinkable("data that is not aligned")
        fill(chosen, (aim & 0xFFF) >> unit << 10, 0x3FFC00)


MACHINES = {
    62: Machine(
        page=4096,
        pointer=1,
        slotted=(9, 41, 42),  # plain, and with an instruction that a linker may relax
        calls=(_PLT32,),
        distances=(_PC32, _PC64),
        stub=_jump,
        stub_size=8,
        settle=_settle_x86,
    ),
    183: Machine(
        page=1 << 16,
        pointer=257,
        slotted=(311, 312),
        calls=_BRANCHES,
        distances=(_PREL32, _PREL64, 275, *(low for low in _LOW if low != 312)),
        stub=_jump_aarch64,
        stub_size=16,
        settle=_settle_aarch64,
    ),
}
"""By the number that ELF has for a machine."""
