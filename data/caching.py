"""What a first pass made, for the later ones: in memory, or in a file that other processes read, too."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .codec import decode, encode
from .errors import DataError
from .records import Records, RecordWriter
from .steps import Counting, Passes, Step
from .trees import is_leaf, mapped


class Memory:
    """Elements of a whole pass, once there was one. Their arrays are copies, and read-only."""

    def __init__(self) -> None:
        self.elements: list[Any] | None = None

    def full(self) -> bool:
        return self.elements is not None

    def writer(self) -> MemoryWriter:
        return MemoryWriter(self)


class MemoryWriter:
    """Collects the elements of a pass."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._elements = memory, list[Any]()

    def write(self, element: Any) -> Any:
        kept = mapped(_kept, element)
        self._elements.append(kept)
        return kept

    def close(self) -> None:
        self._memory.elements = self._elements

    def discard(self) -> None:
        self._elements = []


def _kept(leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray):
        return leaf if is_leaf(leaf) else np.array(leaf)
    leaf = leaf.copy()
    leaf.flags.writeable = False
    return leaf


class File:
    """The elements of a whole pass, one record each, in a file that is there once it is whole."""

    def __init__(self, path: str, of: str) -> None:
        self.path, self.of = path, of

    def full(self) -> bool:
        return os.path.exists(self.path)

    def writer(self) -> FileWriter:
        return FileWriter(self)

    def reader(self) -> Records:
        """The records behind the first, which says what dataset they are of."""
        records = Records([self.path], "", verify=True)
        records.reset(())
        of = decode(next(records))
        if of != self.of:
            raise DataError(
                f"{self.path} caches the dataset {of}, and this is {self.of}: remove the file, or give "
                "another path"
            )
        return records


class FileWriter:
    """Writes the elements of a pass."""

    def __init__(self, file: File) -> None:
        self._writer = RecordWriter(file.path)
        self._writer.write(encode(file.of))
        self.close, self.discard = self._writer.close, self._writer.discard

    def write(self, element: Any) -> Any:
        data = encode(element)
        self._writer.write(data)
        return decode(data)


class Cache(Counting):
    """The first pass over a source, again and again.

    Whatever pass this is, the source's is the first, so that elements are the same with a cache and
    without: in a process that goes on with a pass whose cache was another process's.
    """

    def __init__(self, source: Step, store: Memory | File) -> None:
        super().__init__(source)
        self.store = store
        self.writer: MemoryWriter | FileWriter | None = None
        self.read: Callable[[int], Any] | None = None  # the element of a number

    def __next__(self) -> Any:
        if self.read is None:
            self._begin()
        if self.writer is None:
            assert self.read is not None
            element = self.read(self.at)
            self.at += 1
            return element
        try:
            element = next(self.source)
        except StopIteration:
            writer, self.writer = self.writer, None
            writer.close()
            raise
        except Exception:
            self._give_up()
            self.at += 1
            raise
        self.at += 1
        return self.writer.write(element)

    def _begin(self) -> None:
        """Find out where elements come from; only a pass from its start can be kept."""
        if self.store.full():
            self.read = _elements(self.store, self.at)
            return
        if self.at:
            self._give_up()
            if self.source.skip(self.at) < self.at:
                raise DataError("the data ends before the position that is to be restored")
        else:
            self.writer = self.store.writer()
            self.read = self._straight

    def _straight(self, at: int) -> Any:
        return next(self.source)

    def _give_up(self) -> None:
        if self.writer is not None:
            self.writer.discard()
        self.writer, self.read = None, self._straight

    def skip(self, count: int) -> int:
        if self.writer is None and self.store.full() and isinstance(self.store, Memory):
            done = max(0, min(count, len(self.store.elements or ()) - self.at))
            self.at += done
            return done
        return super().skip(count)

    def reset(self, passes: Passes) -> None:
        self.passes = passes
        self._enter(0)

    def _enter(self, at: int) -> None:
        self._drop()
        self.source.reset((0,))
        self.at = at

    def _drop(self) -> None:
        if self.writer is not None:
            self.writer.discard()
        self.writer = self.read = None

    def position(self) -> Any:
        return self.at

    def move(self, position: Any) -> None:
        self._enter(position)

    def close(self) -> None:
        self._drop()
        super().close()


def _elements(store: Memory | File, start: int) -> Callable[[int], Any]:
    """A function that gives the elements from `start` on, one after the other."""
    if isinstance(store, File):
        records = store.reader()
        records.skip(start)
        return lambda at: decode(next(records))
    elements = store.elements or []

    def element(at: int) -> Any:
        if at >= len(elements):
            raise StopIteration
        return elements[at]

    return element
