"""What a first pass made, for the later ones: in memory, or in a file that other processes read, too.

Elements in files are JSON that has the tree, then the arrays. No pickle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import DataError, describe
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


def encode(element: Any) -> bytes:
    """A tree of dicts, lists, tuples, arrays, numbers, texts and bytes as bytes."""
    parts: list[bytes] = []
    tree = json.dumps(_written(element, parts)).encode()
    return b"".join([len(tree).to_bytes(4, "little"), tree, *parts])


def decode(data: bytes) -> Any:
    """The tree of `encode`; its arrays are read-only views of the bytes."""
    size = int.from_bytes(data[:4], "little")
    return _read(json.loads(data[4 : 4 + size]), memoryview(data), [4 + size])


def _written(x: Any, parts: list[bytes]) -> Any:
    if type(x) is dict:
        if any(type(k) not in (str, int) for k in x):
            raise TypeError(
                f"cache(path) writes dicts with texts or ints as keys, not {describe(x)}"
            )
        return {"dict": [[k, _written(v, parts)] for k, v in x.items()]}
    if type(x) is list or type(x) is tuple:
        return {type(x).__name__: [_written(v, parts) for v in x]}
    if x is None or type(x) in (bool, int, float, str):
        return {"is": x}
    if type(x) is bytes:
        parts.append(x)
        return {"bytes": len(x)}
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype == object:
        return {"objects": [_written(v, parts) for v in x.ravel()], "shape": x.shape}
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.names is None:
        parts.append(np.asarray(x).tobytes())
        kind = "array" if isinstance(x, np.ndarray) else "scalar"
        dtype = x.dtype.str if x.dtype.kind != "V" else x.dtype.name
        return {kind: dtype, "shape": x.shape}
    raise TypeError(f"cache(path) cannot write {describe(x)}; cache() keeps elements in memory")


def _read(x: Any, data: memoryview, at: list[int]) -> Any:
    kind = next(iter(x))
    if kind == "is":
        return x["is"]
    if kind == "dict":
        return {k: _read(v, data, at) for k, v in x["dict"]}
    if kind in ("list", "tuple"):
        parts = [_read(v, data, at) for v in x[kind]]
        return parts if kind == "list" else tuple(parts)
    if kind == "bytes":
        at[0] += x["bytes"]
        return bytes(data[at[0] - x["bytes"] : at[0]])
    if kind == "objects":
        found = np.empty(len(x["objects"]), object)
        found[:] = [_read(v, data, at) for v in x["objects"]]
        return found.reshape(x["shape"])
    try:
        dtype = np.dtype(x[kind])
    except TypeError:
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, x[kind]))
    count = int(np.prod(x["shape"], dtype=np.int64))
    found = np.frombuffer(data, dtype, count, at[0]).reshape(x["shape"])
    at[0] += found.nbytes
    return found if kind == "array" else found[()]
