"""TFRecord files: a length, its checksum, the bytes, their checksum; one after the other."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import IO, Any

import jitney as jt

from .errors import DataError, refuse
from .reading import CHUNK, FileStep, Source, check_compression

HEAD = struct.Struct("<QI")
FOOT = struct.Struct("<I")
DELTA, MASK = 0xA282EAD8, 0xFFFFFFFF
FRAME = HEAD.size + FOOT.size


@cache
def crc() -> Callable[[Any], int]:
    """The checksum of the crc32c package."""
    try:
        from crc32c import crc32c
    except ImportError as error:
        raise ImportError(
            f"TFRecord files need the crc32c package ({error}): pip install 'jitney[data]'"
        ) from error
    return crc32c


def masked(data: Any) -> int:
    """The checksum as the format stores it: turned, with a constant added."""
    found = crc()(data)
    return ((found >> 15 | found << 17) + DELTA) & MASK


class RecordWriter:
    """Writes a TFRecord file: bytes, or messages such as `example(...)`, one record each.

    The file appears under its name when the writer is closed, or its `with` block left without an
    exception; until then it has another name in the same folder. `compression` is `"GZIP"`, `"ZLIB"`
    or None. Raises OSError where the folder cannot be written.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.tfrecord"
    >>> with jt.data.RecordWriter(path) as writer:
    ...     writer.write(b"one")
    ...     writer.write(jt.data.example({"x": 2}))
    >>> len(list(jt.data.tfrecord(path)))
    2
    """

    def __init__(self, path: str | os.PathLike[str], compression: str | None = None) -> None:
        self.path = os.fspath(path)
        self._partial = f"{self.path}.{os.getpid()}.{id(self):x}.partial"
        kind = check_compression(compression or "")
        crc()
        try:
            file: IO[bytes] = open(self._partial, "wb")  # noqa: SIM115 (held, and closed by `close`)
        except OSError as error:
            named = OSError(error.errno, error.strerror, self.path)
            jt.errors.note_line(named)
            raise named from None
        self._raw = file
        self._file: Any = gzip.GzipFile("", "wb", 6, file, 0) if kind == "GZIP" else file
        self._deflate = zlib.compressobj() if kind == "ZLIB" else None

    def write(self, record: Any) -> None:
        """Add a record: bytes, or a message with `SerializeToString`."""
        data = record if isinstance(record, (bytes, bytearray, memoryview)) else None
        if data is None:
            if not hasattr(record, "SerializeToString"):
                what = f"a record cannot be {jt.errors.describe(record)}"
                refuse(what, "give bytes, text.encode(), or a message: example(...).", TypeError)
            data = record.SerializeToString(deterministic=True)
        head = struct.pack("<Q", len(data))
        frame = head, FOOT.pack(masked(head)), data, FOOT.pack(masked(data))
        self._write(b"".join(frame))

    def _write(self, data: bytes) -> None:
        self._file.write(self._deflate.compress(data) if self._deflate else data)

    def close(self) -> None:
        """Write what is pending, and give the file its name."""
        if not self._raw.closed:
            if self._deflate:
                self._file.write(self._deflate.flush())
            if self._file is not self._raw:
                self._file.close()
            self._raw.flush()
            os.fsync(self._raw.fileno())
            self._raw.close()
            os.replace(self._partial, self.path)

    def discard(self) -> None:
        """Let go of all that was written."""
        if not self._raw.closed:
            self._raw.close()
            os.unlink(self._partial)

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if hasattr(self, "_raw"):
            self.discard()


class Records(FileStep):
    """The records of files, taken apart a chunk at a time."""

    def __init__(self, paths: list[str], compression: str | None, verify: bool) -> None:
        super().__init__(paths, compression)
        self.verify = verify

    def chunk(self) -> None:
        while (file := self.opened()) is not None:
            self.offset, self.number = (
                file.offset - len(self.rest),
                self.number + len(self.elements),
            )
            self.hold([])
            self.rest += file.read(CHUNK)
            if self.rest:
                self._complete(file)
                self.hold(self._taken_apart(self.rest))
                return
            self.enter(self.index + 1)
        raise StopIteration

    def _complete(self, file: Source) -> None:
        """Read on until there is a whole record. Raises DataError if there is none."""
        have = len(self.rest)
        if have < HEAD.size:
            raise self._wrong(f"it is truncated: {have} bytes of a record's {HEAD.size} of head")
        size, check = HEAD.unpack_from(self.rest)
        if self.verify and masked(self.rest[:8]) != check:
            raise self._wrong("its length has a wrong checksum: no TFRecord file, or corrupted")
        left = file.size_left()
        parts = [self.rest]
        while have < size + FRAME and (left is None or size + FRAME <= have + left):
            # No more memory than there is data, whatever the length says.
            if not (data := file.read(min(size + FRAME - have, 1 << 24))):
                break
            parts.append(data)
            have, left = have + len(data), file.size_left()
        self.rest = b"".join(parts)
        if have < size + FRAME:
            there = max(0, have - HEAD.size + (left or 0))
            raise self._wrong(f"it is truncated: {there} bytes of a record of {size}")

    def _taken_apart(self, data: bytes) -> list[Any]:
        """The whole records of the bytes, up to one whose head is wrong."""
        sum_of, foot, verify, total = crc(), FOOT.unpack_from, self.verify, len(data)
        lengths: dict[
            bytes, int
        ] = {}  # of heads that were compared: most records are of a few lengths
        found: list[Any] = []
        start = 0
        while start + FRAME <= total:
            begin = start + HEAD.size
            head = data[start:begin]
            size = lengths.get(head)
            if size is None:
                size, check = HEAD.unpack(head)
                if verify and masked(head[:8]) != check:
                    break
                lengths[head] = size
            end = begin + size
            if end + FOOT.size > total:
                break
            record: Any = data[begin:end]
            if verify:
                check = sum_of(record)
                if ((check >> 15 | check << 17) + DELTA) & MASK != foot(data, end)[0]:
                    what = f"its {size} bytes have a wrong checksum"
                    record = self._wrong(what, len(found), start)
            start = end + FOOT.size
            found.append(record)
        self.rest = data[start:]
        return found

    def _wrong(self, what: str, further: int = 0, start: int = 0) -> DataError:
        place = f"record {self.number + further} at byte {self.offset + start}"
        return DataError(f"{self.path}, {place}: {what}")
