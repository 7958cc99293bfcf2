"""Lines of text files."""

from __future__ import annotations

import codecs
from typing import Any

from .errors import DataError
from .reading import CHUNK, FileStep, Source
from .trees import texts


class Lines(FileStep):
    """Lines, decoded a chunk at a time: the current one is at `offset`, behind `number` lines."""

    def __init__(
        self, paths: list[str], encoding: str | None, errors: str, compression: str | None
    ) -> None:
        super().__init__(paths, compression)
        self.encoding, self.errors = encoding, errors
        self.enter(0)

    def enter(self, index: int, offset: int = 0, number: int = 0) -> None:
        super().enter(index, offset, number)
        self.rest = b""  # what was read behind the chunk: the beginning of a line
        self.lines: list[Any] = []  # of the chunk; in place of one that is none, the error
        self.at = 0  # how many of them were handed on

    def _chunk(self) -> None:
        """Go to the next chunk of this file or a later one. Raises StopIteration."""
        while (file := self.opened()) is not None:
            start = file.offset - len(self.rest)
            data = self._whole_lines(file)
            if data:
                self.offset, self.number = start, self.number + len(self.lines)
                self.lines, self.at = self._decoded(data), 0
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
            return [self._line(line, self.encoding) for line in data.split(b"\n")]

    def _line(self, line: bytes, encoding: str) -> Any:
        try:
            return line.decode(encoding, self.errors)
        except UnicodeDecodeError as error:
            return error

    def __next__(self) -> Any:
        if self.at >= len(self.lines):
            self._chunk()
        line = self.lines[self.at]
        self.at += 1
        return line if not isinstance(line, UnicodeDecodeError) else self._refuse(line, self.at)

    def _refuse(self, error: UnicodeDecodeError, at: int) -> Any:
        raise DataError(
            f"{self.path}, line {self.number + at}: byte {error.start} of the line is not "
            f"{self.encoding} ({error.object[error.start]:#04x}, {error.reason}): give its encoding=, "
            'errors="replace", or encoding=None for lines of bytes'
        )

    def skip(self, count: int) -> int:
        left = count
        while left:
            if self.at >= len(self.lines):
                try:
                    self._chunk()
                except StopIteration:
                    break
            step = min(left, len(self.lines) - self.at)
            self.at += step
            left -= step
        return count - left

    def block(self, count: int) -> tuple[Any, int]:
        if self.at >= len(self.lines):
            self._chunk()
        lines = self.lines[self.at : self.at + count]
        if any(isinstance(line, UnicodeDecodeError) for line in lines):
            return super().block(count)
        self.at += len(lines)
        return texts(lines), len(lines)

    def position(self) -> Any:
        return [*super().position(), self.at]

    def move(self, position: Any) -> None:
        self.enter(*position[:3])
        if self.skip(position[3]) < position[3]:
            raise DataError(f"{self.path} is shorter than when the position was saved")
