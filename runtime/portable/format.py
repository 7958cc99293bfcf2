"""A file of an exported function: a header of plain data and pieces of bytes, read with suspicion.

    magic (8)   version (4)   zero (4)   length of the header (8)   length of the file (8)   hash (32)
    header: JSON          pieces, each at a multiple of 64 bytes from where the header ends

Nothing in a file is run or imported while it is read: numbers are looked at before they are used, pieces
lie in the file, and whatever does not fit is a `FormatError` that says what. The hash (BLAKE2) tells a
damaged file. It does not tell a friend's: what is in the file is machine code, and calling it is as
trusting as loading a shared library.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ...ir.blake2 import blake2b

MAGIC = b"jitney\x00E"
VERSION = 1
_HEAD = struct.Struct("<8sIIQQ32s")
_ALIGNMENT = 64
_MOST_HEADER = 256 << 20

T = TypeVar("T")


class FormatError(ValueError):
    """A file is none of an exported function, or damaged, or of another version."""


class Pieces:
    """The pieces of a file that is being written; the header has their numbers."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def add(self, content: bytes) -> int:
        self._pieces.append(content)
        return len(self._pieces) - 1

    def file(self, header: dict[str, Any]) -> bytes:
        """The whole file."""
        spans, at = [], 0
        for piece in self._pieces:
            spans.append([at, len(piece)])
            at += len(piece) + -len(piece) % _ALIGNMENT
        text = json.dumps({**header, "pieces": spans}, separators=(",", ":"), allow_nan=False)
        head = text.encode()
        head += b" " * (-(_HEAD.size + len(head)) % _ALIGNMENT)
        body = head + b"".join(p + bytes(-len(p) % _ALIGNMENT) for p in self._pieces)
        length = _HEAD.size + len(body)
        begin = _HEAD.pack(MAGIC, VERSION, 0, len(head), length, bytes(32))
        hashed = blake2b(begin + body, digest_size=32).digest()
        return begin[:-32] + hashed + body


def read(path: str | os.PathLike[str]) -> Field:
    """The header of a file, with its pieces. Raises FormatError, and OSError for what cannot be read."""
    with open(path, "rb") as file:
        return parse(file.read(), os.fspath(path))


def parse(data: bytes, name: str = "the file") -> Field:
    """As `read`, of bytes."""
    if len(data) < _HEAD.size or data[:8] != MAGIC:
        raise FormatError(f"{name} is no file that jt.export(...).save has written")
    _, version, zero, size, length, hashed = _HEAD.unpack_from(data)
    if version != VERSION or zero:
        raise FormatError(
            f"{name} has version {version} of the format, and this jitney reads {VERSION}: export the "
            "function again with the jitney that loads it"
        )
    if length != len(data):
        raise FormatError(
            f"{name} has {len(data):,} bytes of {length:,}: it was cut off, or joined"
        )
    if size > min(length - _HEAD.size, _MOST_HEADER):
        raise FormatError(f"{name} is damaged: its header is larger than it")
    whole = data[: _HEAD.size - 32] + bytes(32) + data[_HEAD.size :]
    if blake2b(whole, digest_size=32).digest() != hashed:
        raise FormatError(f"{name} is damaged: its checksum is another")
    start = _HEAD.size + size
    try:
        header = json.loads(data[_HEAD.size : start].decode())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{name} is damaged: its header cannot be read: {error}") from None
    field = Field(header, "header", name, ())
    spans = [item.items_of(int) for item in field["pieces"].items()]
    pieces = []
    for span in spans:
        if len(span) != 2 or min(span) < 0 or start + sum(span) > len(data):
            raise FormatError(f"{name} is damaged: a piece lies outside of it")
        pieces.append(data[start + span[0] : start + sum(span)])
    return Field(header, "header", name, tuple(pieces))


class Field:
    """A value of a header that may be anything; its methods give what it has to be, or FormatError."""

    __slots__ = ("value", "path", "name", "pieces")

    def __init__(self, value: Any, path: str, name: str, pieces: tuple[bytes, ...]) -> None:
        self.value, self.path, self.name, self.pieces = value, path, name, pieces

    def wrong(self, what: str) -> FormatError:
        return FormatError(f"{self.name} is damaged: {self.path} {what}")

    def _inner(self, value: Any, path: str) -> Field:
        return Field(value, path, self.name, self.pieces)

    def __getitem__(self, key: str) -> Field:
        if not isinstance(self.value, dict) or key not in self.value:
            raise self.wrong(f"has no {key!r}")
        return self._inner(self.value[key], f"{self.path}.{key}")

    def items(self) -> Iterator[Field]:
        if not isinstance(self.value, list):
            raise self.wrong("is no list")
        return (self._inner(item, f"{self.path}[{k}]") for k, item in enumerate(self.value))

    def items_of(self, kind: type[T]) -> list[T]:
        return [item.of(kind) for item in self.items()]

    def of(self, kind: type[T]) -> T:
        """A value of exactly this class."""
        if type(self.value) is not kind:
            raise self.wrong(f"is no {kind.__name__}")
        return self.value

    def or_none(self, kind: type[T]) -> T | None:
        return None if self.value is None else self.of(kind)

    def number(self, least: int, most: int) -> int:
        value = self.of(int)
        if not least <= value <= most:
            raise self.wrong(f"is {value}, which is not from {least} to {most}")
        return value

    def piece(self) -> bytes:
        return self.pieces[self.number(0, len(self.pieces) - 1)]

    def checked(self, work: Callable[[Any], T]) -> T:
        """What `work` makes of the value, whose ValueError, TypeError and KeyError say what is wrong."""
        try:
            return work(self.value)
        except (
            ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError,
        ) as error:  # fmt: skip
            raise self.wrong(f"cannot be read: {error}") from None
