"""Tensor maps of the emulated driver: checked as a real one does, and written in plain words."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import NamedTuple

from .boxes import MAGIC, MAP, MAX_RANK

_ITEMS = {1: 2, 11: 4}  # CUtensorMapDataType: UINT16, TFLOAT32
_TFLOAT32 = 11
_SWIZZLES = {0: 0, 3: 128}
MAP_BYTES = 128


class Asked(NamedTuple):
    """The arguments of cuTensorMapEncodeTiled, but for the place of the map."""

    kind: int
    address: int
    sizes: Sequence[int]
    strides: Sequence[int]  # of all dims but the first
    box: Sequence[int]
    steps: Sequence[int]
    interleave: int
    swizzle: int
    promotion: int
    fill: int


def complaint(request: Asked) -> str:
    """Why a driver refuses a map, "" if it does not."""
    item = _ITEMS.get(request.kind, 0)
    line = request.box[0] * item
    checks = {
        "this kind of elements, interleaving or swizzle is not emulated": item
        and not request.interleave
        and request.swizzle in _SWIZZLES,
        f"ranks above {MAX_RANK} are not emulated": len(request.sizes) <= MAX_RANK,
        "an address is a multiple of 16": request.address and request.address % 16 == 0,
        "there are 1 to 2**32 elements along a dim": all(0 < n <= 1 << 32 for n in request.sizes),
        "a stride is a multiple of 16 below 2**40": all(
            s % 16 == 0 and 0 < s < 1 << 40 for s in request.strides
        ),
        "a box has 1 to 256 elements along a dim": all(0 < n <= 256 for n in request.box),
        "steps between elements are 1 here": all(n == 1 for n in request.steps),
        "a line of a box is a multiple of 16 bytes": line % 16 == 0,
        "a swizzled line has 128 bytes at most": not request.swizzle or line <= 128,
        "l2 promotion is 0 to 3": 0 <= request.promotion <= 3,
        "what is outside is zero": request.fill == 0,
    }
    return next((why for why, good in checks.items() if not good), "")


def write(request: Asked, address: int) -> None:
    """Put a map at a place."""
    values = {
        "magic": MAGIC,
        "address": request.address,
        "rank": len(request.sizes),
        "item": _ITEMS[request.kind],
        "tf32": int(request.kind == _TFLOAT32),
        "swizzle": _SWIZZLES[request.swizzle],
    }
    for name, numbers in (
        ("size", request.sizes),
        ("stride", (0, *request.strides)),
        ("box", request.box),
    ):
        for k in range(MAX_RANK):
            values[f"{name}{k}"] = numbers[k] if k < len(numbers) else int(name != "stride")
    words = struct.pack(f"<{len(MAP)}q", *(values[name] for name in MAP))
    ctypes.memmove(address, words.ljust(MAP_BYTES, b"\0"), MAP_BYTES)


def read(words: bytes) -> Asked:
    """What a map of ours was asked for."""
    values = dict(zip(MAP, struct.unpack_from(f"<{len(MAP)}q", words), strict=True))
    rank = values["rank"]
    sizes, strides, box = (
        [values[f"{name}{k}"] for k in range(rank)] for name in ("size", "stride", "box")
    )
    kind = _TFLOAT32 if values["tf32"] else 1
    swizzle = {nbytes: k for k, nbytes in _SWIZZLES.items()}[values["swizzle"]]
    return Asked(kind, values["address"], sizes, strides[1:], box, [1] * rank, 0, swizzle, 0, 0)
