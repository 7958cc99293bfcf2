"""TFRecord files: a length, its checksum, the bytes, their checksum; one after the other."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import IO, Any

from .errors import DataError
from .reading import CHUNK, FileStep, Source, compression_of

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
        kind = compression_of(self.path, compression or "")
        crc()
        file: IO[bytes] = open(self._partial, "wb")  # noqa: SIM115 (held, and closed by `close`)
        self._raw = file
        self._file: Any = gzip.GzipFile("", "wb", 6, file, 0) if kind == "GZIP" else file
        self._deflate = zlib.compressobj() if kind == "ZLIB" else None

    def write(self, record: Any) -> None:
        """Add a record: bytes, or a message with `SerializeToString`."""
        data = record if isinstance(record, (bytes, bytearray, memoryview)) else None
        if data is None:
            if not hasattr(record, "SerializeToString"):
                raise TypeError(
                    f"a record is bytes or a message such as example(...), not {record!r}"
                )
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
    """The records of files, decoded a chunk at a time, which is at `offset`, behind `number` records."""

    def __init__(self, paths: list[str], compression: str | None, verify: bool) -> None:
        super().__init__(paths, compression)
        self.verify = verify
        self.enter(0)

    def enter(self, index: int, offset: int = 0, number: int = 0) -> None:
        super().enter(index, offset, number)
        self.rest = b""  # what was read behind the chunk: the beginning of a record
        self.records: list[Any] = []  # of the chunk; in place of one that is corrupted, the error
        self.ends: list[int] = []  # of the records, from `offset` on
        self.at = 0  # how many were handed on

    def _chunk(self) -> None:
        """Go to the next chunk of this file or a later one. Raises StopIteration, DataError."""
        while (file := self.opened()) is not None:
            self.offset, self.number = self._here(), self.number + self.at
            self.records, self.ends, self.at = [], [], 0
            self.rest += file.read(CHUNK)
            if self.rest:
                self._complete(file)
                self._decode(self.rest)
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

    def _decode(self, data: bytes) -> None:
        """Take the whole records of the bytes apart, up to one whose head is wrong."""
        sum_of, verify, total = crc(), self.verify, len(data)
        start = 0
        while start + FRAME <= total:
            size, check = HEAD.unpack_from(data, start)
            end = start + size + FRAME
            if end > total:
                break
            if verify:
                found = sum_of(data[start : start + 8])
                if ((found >> 15 | found << 17) + DELTA) & MASK != check:
                    break
            record: Any = data[start + HEAD.size : end - FOOT.size]
            if verify:
                found = sum_of(record)
                (check,) = FOOT.unpack_from(data, end - FOOT.size)
                if ((found >> 15 | found << 17) + DELTA) & MASK != check:
                    record = self._wrong(f"its {size} bytes have a wrong checksum", start)
            self.records.append(record)
            self.ends.append(end)
            start = end
        self.rest = data[start:]

    def __next__(self) -> bytes:
        if self.at >= len(self.records):
            self._chunk()
        record = self.records[self.at]
        self.at += 1
        if isinstance(record, DataError):
            raise record
        return record

    def skip(self, count: int) -> int:
        left = count
        while left:
            if self.at >= len(self.records):
                try:
                    self._chunk()
                except StopIteration:
                    break
                except DataError:  # as who asks for it will see
                    return count
            step = min(left, len(self.records) - self.at)
            self.at += step
            left -= step
        return count - left

    def _here(self) -> int:
        return self.offset + (self.ends[self.at - 1] if self.at else 0)

    def _wrong(self, what: str, start: int = 0) -> DataError:
        place = f"record {self.number + len(self.records)} at byte {self.offset + start}"
        return DataError(f"{self.path}, {place}: {what}")

    def position(self) -> Any:
        return [self.index, self._here(), self.number + self.at]
