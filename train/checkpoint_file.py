"""One file of arrays and a text: the safetensors format, written whole or not at all.

A file is eight bytes with the length of its header, the header (JSON: of each array its dtype, its
shape and where it lies), and the arrays one behind the other. Nothing in it can run. What a file
claims is checked before memory is asked for: a file from anywhere is an array or a
`CheckpointError`.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

Array = np.ndarray[Any, Any]

TEMPORARY = ".writing-"  # begins the names of files that are not whole yet
_LONGEST_HEADER = 100_000_000  # the format's own limit
_BLOCK = 1 << 24  # bytes that are read or written at once
_TEXT, _TEXT_SUM = "jitney", "jitney-crc32"  # keys of the header's metadata

# The format's names of dtypes; those of ml_dtypes are looked up by name when they turn up.
_NUMPY = {
    **{f"F{8 * size}": f"f{size}" for size in (2, 4, 8)},
    **{f"I{8 * size}": f"i{size}" for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": f"u{size}" for size in (1, 2, 4, 8)},
    "BOOL": "?",
    "C64": "c8",
}
_SMALL = {
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}
_OTHERS = {
    b"PK": "it is a zip file, as np.savez, Keras and PyTorch write them, and no safetensors file",
    b"\x80": "it is a pickle, which is never read, and no safetensors file",
    b"\x89HDF": "it is an HDF5 file, and no safetensors file",
}
# Dtypes that the format lacks are stored as bits of another one, with their own name beside it.
_DTYPE_NAME = re.compile(r"[<|=]?[A-Za-z]\w*(\[\w+\])?")
_AS_BITS = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}


class CheckpointError(ValueError):
    """A checkpoint that is damaged, is none, or has not what is asked of it; it names the file."""


class Entry:
    """What a header says of one array."""

    __slots__ = ("begin", "dtype", "end", "shape")

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...], begin: int, end: int) -> None:
        self.dtype = dtype
        self.shape = shape
        self.begin, self.end = begin, end

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


class Reader:
    """An open file: `entries`, the text, and arrays by name."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self.metadata: dict[str, str] = {}
        self.entries: dict[str, Entry] = {}
        self._read_header()

    @property
    def text(self) -> str | None:
        """What was written beside the arrays; None in a file that another program wrote."""
        text = self.metadata.get(_TEXT)
        if self.metadata.keys() & {_TEXT, _TEXT_SUM}:
            said = {key: value for key, value in self.metadata.items() if key != _TEXT_SUM}
            claimed = self.metadata.get(_TEXT_SUM)
            if text is None or claimed != str(zlib.crc32(repr(said).encode())):
                self._damaged("its description is not the one that was written: it is damaged")
        return text

    def array(self, name: str, expected: int | None = None) -> Array:
        """A new array; CheckpointError if it has not the `checksum` that is expected."""
        entry = self.entries[name]
        try:
            array = np.empty(entry.shape, entry.dtype)
        except (ValueError, MemoryError) as error:
            self._damaged(f"array {name!r}, {entry!r}, can't be held: {error}")
        into = _bytes_of(array)
        self._file.seek(self._data + entry.begin)
        for start in range(0, len(into), _BLOCK):
            block = into[start : start + _BLOCK]
            if self._file.readinto(block) != len(block):  # type: ignore[attr-defined]
                self._damaged(f"the file ends within array {name!r}: it is cut off")
        if expected is not None and checksum(name, array) != expected:
            self._damaged(f"array {name!r} has other bytes than were written: it is damaged")
        return array

    def _damaged(self, what: str) -> NoReturn:
        error = CheckpointError(f"{str(self.path)!r}: {what}")
        error.add_note(
            "train.latest(folder) finds the newest whole one, train.steps(folder) all of them."
        )
        raise error

    def _read_header(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        length = int.from_bytes(self._file.read(8), "little")
        if size < 8:
            self._damaged(f"the file has {size} bytes, no header: it is cut off, or no checkpoint")
        if length > min(_LONGEST_HEADER, size - 8):
            begin = length.to_bytes(8, "little")
            kinds = (kind for magic, kind in _OTHERS.items() if begin.startswith(magic))
            what = next(kinds, "it is cut off, or no checkpoint")
            self._damaged(f"the header would have {length} bytes, and the file has {size}: {what}")
        self._data = 8 + length
        try:
            header = json.loads(self._file.read(length), object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            self._damaged(f"the header is no JSON ({error or 'nested too deeply'})")
        if not isinstance(header, dict):
            self._damaged(f"the header is a {type(header).__name__}, and not an object")
        metadata = header.pop("__metadata__", {})
        if not _is_texts(metadata):
            self._damaged("the header's metadata are not texts by name")
        self.metadata = metadata
        self.entries = {name: self._entry(name, claim) for name, claim in header.items()}
        self._check_layout(size - self._data)

    def _entry(self, name: str, claim: Any) -> Entry:
        if not isinstance(claim, dict) or set(claim) != {"dtype", "shape", "data_offsets"}:
            self._damaged(f"array {name!r} has not just dtype, shape and data_offsets")
        shape, offsets = claim["shape"], claim["data_offsets"]
        if not _is_sizes(shape) or not _is_sizes(offsets) or len(offsets) != 2:
            self._damaged(f"array {name!r} has the shape {shape} at {offsets}: not sizes")
        try:
            dtype = _dtype(claim["dtype"])
        except (KeyError, TypeError):
            self._damaged(
                f"array {name!r} has the dtype {claim['dtype']!r}, which is not known here",
            )
        begin, end = offsets
        if end - begin != math.prod(shape) * dtype.itemsize:
            self._damaged(
                f"array {name!r} of shape {tuple(shape)} and {dtype} can't have {end - begin} bytes",
            )
        return Entry(dtype, tuple(shape), begin, end)

    def _check_layout(self, size: int) -> None:
        """Each byte belongs to one array."""
        at = 0
        for name, entry in sorted(self.entries.items(), key=lambda e: (e[1].begin, e[1].end)):
            if entry.begin != at:
                self._damaged(f"array {name!r} begins at byte {entry.begin}, and not at {at}")
            at = entry.end
        if at != size:
            self._damaged(
                f"its arrays have {at} bytes, and the file holds {size}: it is "
                + ("cut off" if size < at else "longer than it says"),
            )


@contextmanager
def reading(path: Path) -> Iterator[Reader]:
    """The file's header, checked, and its arrays on request."""
    with open(path, "rb") as file:
        yield Reader(path, file)


def write(path: Path, arrays: Mapping[str, Array], text: str | None) -> None:
    """Write a file that either is there whole, also after a crash, or not at all.

    It has another name until all of it is on the disk. What stood under the name before stays until
    then. OSError names the file.
    """
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb", buffering=0) as file:
            for block in _blocks(arrays, text):
                left = memoryview(block)
                while left:
                    left = left[file.write(left) :]
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise _named(error, path) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    _sync_folder(path.parent)


def _named(error: OSError, path: Path) -> OSError:
    """The same error about the file that the user asked for."""
    named = OSError(error.errno, error.strerror, str(path))
    named.add_note("This checkpoint is not written; those that were written before are whole.")
    return named


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk."""
    with suppress(OSError):  # some file systems have no folders that can be synced
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _blocks(arrays: Mapping[str, Array], text: str | None) -> Iterator[Any]:
    header: dict[str, Any] = {}
    if text is not None:
        said = {_TEXT: text}
        header["__metadata__"] = {**said, _TEXT_SUM: str(zlib.crc32(repr(said).encode()))}
    at = 0
    for name, array in arrays.items():
        end = at + array.nbytes
        header[name] = {
            "dtype": _FORMAT_NAMES[array.dtype.name],
            "shape": array.shape,
            "data_offsets": (at, end),
        }
        at = end
    encoded = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    if len(encoded) > _LONGEST_HEADER:
        raise CheckpointError(f"a header of {len(encoded)} bytes is longer than the format allows")
    yield len(encoded).to_bytes(8, "little") + encoded
    yield from map(_bytes_of, arrays.values())


def _bytes_of(array: Array) -> memoryview:
    """The memory of an array in C order. (As bytes: Python knows no dtype of ml_dtypes.)"""
    seen: Any = array.reshape(-1).view("u1") if array.size else b""
    return memoryview(seen)


def checksum(name: str, array: Array) -> int:
    """The CRC-32 of an array's bytes, its dtype, shape and name."""
    start = zlib.crc32(f"{name} {array.dtype.name} {array.shape}".encode())
    return zlib.crc32(_bytes_of(array), start)


def as_stored(array: Array) -> Array:
    """The array as the format can hold it: little-endian, in C order, of a dtype that it has.

    complex128 is pairs of float64, with an axis more; dates and rarer floats are their bits.
    """
    dtype = array.dtype
    array = np.asarray(array, dtype.newbyteorder("<"), order="C")
    if dtype.name in _FORMAT_NAMES:
        return array
    if dtype == np.complex128:
        return array.reshape((*array.shape, 1)).view(np.float64)
    return array.view(_AS_BITS[dtype.itemsize])


def as_held(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array of that dtype whose `as_stored` this is."""
    if array.dtype == dtype:
        return array
    if dtype == np.complex128:
        return array.view(dtype).reshape(array.shape[:-1])
    return array.view(dtype)


def can_store(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of that dtype have a form in a file."""
    if dtype.hasobject or dtype.names is not None or dtype.kind in "SUO":
        return False
    return dtype.name in _FORMAT_NAMES or dtype == np.complex128 or dtype.itemsize in _AS_BITS


def named_dtype(name: str) -> np.dtype[Any]:
    """The dtype of a name that `dtype.str` or `dtype.name` gave; TypeError for others."""
    if not isinstance(name, str) or not _DTYPE_NAME.fullmatch(name):
        raise TypeError(f"{name!r} is no name of a dtype")
    if name.startswith(("float8", "float6", "float4", "bfloat", "int2", "int4", "uint2", "uint4")):
        import ml_dtypes

        found = getattr(ml_dtypes, name, None)
        if found is None:
            raise TypeError(f"there is no dtype {name!r}")
        return np.dtype(found)
    return np.dtype(name)


def fail(path: Path | str, what: str) -> NoReturn:
    """Raise a CheckpointError about a file."""
    raise CheckpointError(f"{str(path)!r}: {what}")


def _dtype(name: str) -> np.dtype[Any]:
    return named_dtype(_SMALL[name]) if name in _SMALL else np.dtype(_NUMPY[name])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands there twice")
    return result


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)


_FORMAT_NAMES = {np.dtype(code).name: name for name, code in _NUMPY.items()} | {
    name: code for code, name in _SMALL.items()
}
