"""Files as streams of bytes, many paths, compressed or not, from any offset, a chunk at a time; and
those of text as lines."""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import os
import zlib
from collections.abc import Iterable
from itertools import islice
from operator import length_hint
from typing import IO, Any

from .errors import DataError, refuse
from .steps import Passes, Step
from .trees import texts

CHUNK = 1 << 18
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def listed(paths: Paths, what: str) -> list[str]:
    """Paths and patterns as paths, those of a pattern sorted. Raises FileNotFoundError for none."""
    found: list[str] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        name = os.fspath(path)
        if glob.has_magic(name) and not os.path.exists(name):
            some = sorted(glob.glob(name, recursive=True))
            if not some:
                missing = f"{what}: no file is called {name!r}"
                refuse(
                    missing,
                    f"give a pattern that some have, from {os.getcwd()}.",
                    FileNotFoundError,
                )
            found += some
        elif os.path.exists(name):
            found.append(name)
        else:
            missing = f"{what}: there is no {name!r}"
            refuse(missing, f"give a file that is there, from {os.getcwd()}.", FileNotFoundError)
    return found


def check_compression(asked: str | None) -> str | None:
    """A compression that there is, or None."""
    if asked not in ("GZIP", "ZLIB", "", None):
        what = f"compression={asked!r} is not known"
        refuse(what, 'give "GZIP", "ZLIB", "" for none, or None to see it by the first bytes.')
    return asked


def compression_of(path: str, asked: str | None) -> str:
    """What was asked for, or (None) what the file's first bytes say."""
    if asked is not None:
        return asked
    with open(path, "rb") as file:
        return "GZIP" if file.read(3) == b"\x1f\x8b\x08" else ""


class Source:
    """A file that is read in chunks. A forked child has a file of its own."""

    def __init__(self, path: str, compression: str | None) -> None:
        self.path = path
        self.compression = compression_of(path, compression)
        self.offset = 0  # of what was read, in the uncompressed file
        self._file: Any = None
        self._process = 0

    def seek(self, offset: int) -> None:
        """Go on at an offset."""
        self.offset = offset
        self.close()

    def read(self, count: int) -> bytes:
        """So many bytes, or fewer at the end. Raises DataError where they cannot be uncompressed."""
        try:
            if self._file is None or self._process != os.getpid():
                self._file, self._process = self._open(), os.getpid()
                self._file.seek(self.offset)
            data = self._file.read(count)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"{self.path}: {self.compression} data is truncated or corrupted behind byte "
                f"{self.offset} of what it holds ({error})"
            ) from error
        self.offset += len(data)
        return data

    def _open(self) -> Any:
        if self.compression == "GZIP":
            return gzip.open(self.path, "rb")
        file: IO[bytes] = open(self.path, "rb")  # noqa: SIM115 (held, and closed by `close`)
        return io.BufferedReader(_Inflated(file), CHUNK) if self.compression == "ZLIB" else file

    def size_left(self) -> int | None:
        """How many bytes come yet, where that is known."""
        if self.compression:
            return None
        return os.path.getsize(self.path) - self.offset

    def close(self) -> None:
        """Close the file; reading opens it again."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()


class FileStep(Step):
    """The elements of files, read a chunk at a time, which is at `offset` behind `number` elements.

    In place of an element that is corrupted a chunk has the error. `chunk` goes to the next one.
    """

    def __init__(self, paths: list[str], compression: str | None = None) -> None:
        super().__init__()
        self.paths, self.compression = paths, compression
        self.file: Source | None = None
        self.enter(0)

    @staticmethod
    def length(*, paths: list[str], **options: Any) -> float | None:
        return None if paths else 0

    def enter(self, index: int, offset: int = 0, number: int = 0) -> None:
        """Go to an offset of a file."""
        self.close()
        self.index, self.offset, self.number = index, offset, number
        self.hold([])
        self.rest = b""  # what was read behind the chunk: the beginning of an element

    def opened(self) -> Source | None:
        """The file that this is in, open where this is; None behind the last one."""
        if self.file is None and self.index < len(self.paths):
            self.file = Source(self.paths[self.index], self.compression)
            self.file.seek(self.offset)
        return self.file

    @property
    def path(self) -> str:
        """The file that this is in, or the last one."""
        return self.paths[min(self.index, len(self.paths) - 1)]

    def chunk(self) -> None:
        """Hold the elements of the next chunk of this file or a later one. Raises StopIteration."""
        raise NotImplementedError

    def hold(self, elements: list[Any]) -> None:
        """These are the chunk's elements."""
        self.elements, self.left = elements, iter(elements)

    @property
    def at(self) -> int:
        """How many of the chunk's elements were handed on."""
        return len(self.elements) - length_hint(self.left)

    def __next__(self) -> Any:
        for element in self.left:
            if element.__class__ is DataError:
                raise element
            return element
        self.chunk()
        return self.__next__()

    def skip(self, count: int) -> int:
        left = count
        while left:
            try:
                if self.at == len(self.elements):
                    self.chunk()
            except StopIteration:
                break
            except DataError:  # as who asks for it will see
                return count
            step = min(left, len(self.elements) - self.at)
            next(islice(self.left, step, step), None)  # goes on without making anything
            left -= step
        return count - left

    def block(self, count: int) -> tuple[Any, int]:
        if self.at == len(self.elements):
            self.chunk()
        found = list(islice(self.left, count))
        if DataError in set(map(type, found)):
            self.skip(count - len(found))
            raise next(x for x in found if type(x) is DataError)
        return texts(found), len(found)

    def reset(self, passes: Passes) -> None:
        self.passes = passes
        self.enter(0)

    def position(self) -> Any:
        return [self.index, self.offset, self.number, self.at]

    def move(self, position: Any) -> None:
        *place, at = position
        self.enter(*place)
        if self.skip(at) < at:
            raise DataError(f"{self.path} is shorter than when the position was saved")

    def close(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            file.close()


class _Inflated(io.RawIOBase):
    """What a file that zlib compressed holds. It can be read forwards, and seeks by reading."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inflate = zlib.decompressobj()
        self._ready = b""
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._inflate.eof:
            data = self._inflate.unconsumed_tail or self._file.read(CHUNK)
            if not data:
                raise EOFError("it ends before its end mark")
            self._ready = self._inflate.decompress(data, CHUNK)
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        self._at += count
        return count

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == 0 and offset >= self._at:
            while self._at < offset and self.readinto(bytearray(min(CHUNK, offset - self._at))):
                pass
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self._file.close()
        super().close()


class Lines(FileStep):
    """Lines, decoded a chunk at a time."""

    def __init__(
        self, paths: list[str], encoding: str | None, errors: str, compression: str | None
    ) -> None:
        super().__init__(paths, compression)
        self.encoding, self.errors = encoding, errors

    def chunk(self) -> None:
        while (file := self.opened()) is not None:
            start = file.offset - len(self.rest)
            data = self._whole_lines(file)
            if data:
                self.offset, self.number = start, self.number + len(self.elements)
                self.hold(self._decoded(data))
                return
            self.enter(self.index + 1)
        raise StopIteration

    def _whole_lines(self, file: Source) -> bytes:
        parts = [self.rest]
        while data := file.read(CHUNK):
            end = data.rfind(b"\n") + 1
            if end:
                parts.append(data[:end])
                self.rest = data[end:]
                return b"".join(parts)
            parts.append(data)
        self.rest = b""
        return b"".join(parts)

    def _decoded(self, data: bytes) -> list[Any]:
        if self.offset == 0 and self.encoding == "utf-8":
            data = data.removeprefix(codecs.BOM_UTF8)
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        data = data.removesuffix(b"\n")
        if self.encoding is None:
            return data.split(b"\n")
        try:
            return data.decode(self.encoding, self.errors).split("\n")
        except UnicodeDecodeError:
            return [
                self._line(i, line) for i, line in enumerate(data.split(b"\n"), self.number + 1)
            ]

    def _line(self, number: int, line: bytes) -> str | DataError:
        assert self.encoding is not None
        try:
            return line.decode(self.encoding, self.errors)
        except UnicodeDecodeError as error:
            return DataError(
                f"{self.path}, line {number}: byte {error.start} of the line is not {self.encoding} "
                f'({line[error.start]:#04x}, {error.reason}): give its encoding=, errors="replace", or '
                "encoding=None for lines of bytes"
            )
