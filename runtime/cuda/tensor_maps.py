"""Tensor maps: what the copy engine of sm_90 is told of an array, 128 bytes that the driver makes.

    maps = TensorMaps(library)
    maps.write(map, address, place)         # into memory of the host, for a kernel's arguments

They are passed to kernels by value, so a graph keeps them; who launches anew asks anew, and what was
asked for the same addresses before is remembered.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict

from ...codegen.cuda.program import MAP_ALIGNMENT, MAP_BYTES, TensorMap
from .library import DeviceError, DriverLibrary

# CUtensorMapDataType, and bytes of an element. 16-bit floats are copied as they are.
_UINT16, _TFLOAT32 = 1, 11
_TYPES = {"f16": (_UINT16, 2), "bf16": (_UINT16, 2), "tf32": (_TFLOAT32, 4)}
_SWIZZLE_128, _PROMOTE_256 = 3, 3
_REMEMBERED = 256


class TensorMaps:
    """Makes maps, and remembers the last ones."""

    def __init__(self, library: DriverLibrary) -> None:
        self._library = library
        self._encoded: OrderedDict[tuple[TensorMap, int], bytes] = OrderedDict()

    def write(self, map: TensorMap, address: int, target: int) -> None:
        """Put the map of an array that begins at an address at a place of the host's memory."""
        key = (map, address)
        encoded = self._encoded.get(key)
        if encoded is None:
            encoded = self._encoded[key] = encode(self._library, map, address)
            while len(self._encoded) > _REMEMBERED:
                self._encoded.popitem(last=False)
        ctypes.memmove(target, encoded, MAP_BYTES)


def encode(library: DriverLibrary, map: TensorMap, address: int) -> bytes:
    """The 128 bytes of a map, from the driver."""
    rank = len(map.sizes)
    kind, _ = _TYPES[map.element]
    room = (ctypes.c_ubyte * (MAP_BYTES + MAP_ALIGNMENT))()
    start = ctypes.addressof(room)
    start += -start % MAP_ALIGNMENT
    sizes = (ctypes.c_uint64 * rank)(*map.sizes)
    strides = (ctypes.c_uint64 * rank)(*map.strides)
    box, steps = (ctypes.c_uint32 * rank)(*map.box), (ctypes.c_uint32 * rank)(*[1] * rank)
    try:
        library.cuTensorMapEncodeTiled(
            start, kind, rank, address, sizes, strides, box, steps, 0, _SWIZZLE_128, _PROMOTE_256, 0
        )
    except DeviceError as error:
        raise DeviceError(f"{error}, for {map} at {address:#x}", error.code) from None
    return ctypes.string_at(start, MAP_BYTES)
