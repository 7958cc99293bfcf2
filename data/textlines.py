"""Lines of text files."""

from __future__ import annotations

import codecs
from typing import Any

from .errors import DataError
from .reading import CHUNK, FileStep, Source


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
