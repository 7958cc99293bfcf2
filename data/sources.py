"""Where elements come from: arrays, ranges, generators, files of lines, records and tables."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

import jitney as jt

from .dataset import Dataset
from .errors import DataError, blame, refuse
from .reading import Lines, Paths, check_compression, listed
from .records import Records
from .rows import Arrays, Range
from .selecting import Zip
from .steps import Passes, Step
from .tables import TableBlocks
from .trees import length_of, mapped, texts


@jt.errors.naming_lines
def from_arrays(tree: Any) -> Dataset:
    """The rows of arrays, along their first axes: element i is the tree of their i-th rows.

    Lists are arrays; dicts and tuples are trees. The rows are views that cannot be written to; batches
    are copies. Memory maps (`np.load(path, mmap_mode="r")`) are read as they are asked for. Raises
    DataError for arrays of different lengths.

    >>> list(jt.data.from_arrays({"x": [1.5, 2.5], "y": ["a", "b"]}))
    [{'x': np.float64(1.5), 'y': 'a'}, {'x': np.float64(2.5), 'y': 'b'}]
    """
    arrays = _arrays(tree)
    length_of(arrays, "from_arrays")
    return Dataset("from_arrays", Arrays, tree=arrays)


def _arrays(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: _arrays(v) for k, v in tree.items()}
    if isinstance(tree, tuple):
        parts = list(map(_arrays, tree))
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if isinstance(tree, list):
        if any(isinstance(x, (str, bytes)) for x in tree):
            return texts(tree)
        try:
            return _locked(tree)
        except ValueError:
            refuse(
                "from_arrays: a list with rows of different lengths is no array",
                "from_generator(lambda: map(np.asarray, rows)) gives them one by one.",
                DataError,
            )
    leaves, structure = jt.tree.flatten(tree)
    return jt.tree.unflatten(structure, [_locked(leaf) for leaf in leaves])


def _locked(array: Any) -> Any:
    found = np.asarray(array)
    found = found.astype(object) if found.dtype.kind in "UST" else found.view()
    found.flags.writeable = False
    return found


def range(*span: int) -> Dataset:
    """Integers, as Python's `range` has them.

    >>> list(jt.data.range(2, 8, 3))
    [2, 5]
    """
    return Dataset("range", Range, span=builtins.range(*span))


def from_generator(
    function: Callable[..., Iterable[Any]], *args: Any, copy: bool = True
) -> Dataset:
    """What `function(*args)`, a generator function or one that returns an iterable, gives in each pass.

    Its arrays are copied, as many generators fill the same one again (`copy=False` trusts that this one
    does not). A position is a number: restoring it runs the generator so far again, unless its iterator
    has `state()` and `restore(state)` of its own.

    >>> def squares(n):
    ...     for i in range(n):
    ...         yield i * i
    >>> list(jt.data.from_generator(squares, 3))
    [0, 1, 4]
    """
    if not callable(function):
        refuse(
            f"from_generator was given {jt.errors.describe(function)}",
            "give a function that makes an iterator for each pass: lambda: items.",
            TypeError,
        )
    return Dataset("from_generator", Generated, function=function, args=args, copy=copy)


def zip(*datasets: Any) -> Dataset:
    """Elements side by side: tuples for several datasets, else the tree that holds them.

    It ends with the first that ends.

    >>> list(jt.data.zip(jt.data.range(3), jt.data.from_arrays(["a", "b"])))
    [(0, 'a'), (1, 'b')]
    >>> list(jt.data.zip({"n": jt.data.range(2)}))
    [{'n': 0}, {'n': 1}]
    """
    tree = datasets[0] if len(datasets) == 1 else datasets
    leaves, structure = jt.tree.flatten(tree)
    if not leaves or not all(isinstance(leaf, Dataset) for leaf in leaves):
        refuse(
            f"zip was given {', '.join(map(jt.errors.describe, leaves)) or 'nothing'}",
            "give datasets, or one tree of them: jt.data.from_arrays(x) makes one of an array.",
            TypeError,
        )
    numbered = jt.tree.unflatten(structure, builtins.range(len(leaves)))
    return Dataset("zip", Zip, *leaves, tree=numbered)


def files(paths: Paths) -> Dataset:
    """The paths of files, by pattern or one by one; those of a pattern (`**` for folders) are sorted.

    `files("*.png").map(jt.data.decode_image)` reads pictures, `.map(jt.data.read_file)` whole files.
    Raises FileNotFoundError where there is none.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in "ba":
    ...     _ = (folder / f"{name}.txt").write_text(name)
    >>> [open(path).read() for path in jt.data.files(folder / "*.txt")]
    ['a', 'b']
    """
    return Dataset("files", Arrays, tree=texts(listed(paths, "files")))


def read_file(path: str | os.PathLike[str]) -> bytes:
    """A whole file.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a"
    >>> _ = path.write_bytes(b"abc")
    >>> jt.data.read_file(path)
    b'abc'
    """
    with open(path, "rb") as file:
        return file.read()


@jt.errors.naming_lines
def memmap(
    path: str | os.PathLike[str], dtype: Any = None, shape: Any = (), offset: int = 0
) -> Dataset:
    """The rows of a file of numbers that is mapped into memory: `.npy`, or raw with a dtype.

    A raw file has rows of that shape, as many as there are. Raises DataError for a file that is
    truncated, or no such file.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.npy"
    >>> np.save(path, np.arange(4.0).reshape(2, 2))
    >>> [row.tolist() for row in jt.data.memmap(path)]
    [[0.0, 1.0], [2.0, 3.0]]
    """
    name = os.fspath(path)
    try:
        if dtype is None:
            return from_arrays(np.load(name, mmap_mode="r", allow_pickle=False))
        row = np.dtype((dtype, tuple(shape)))
        count, rest = divmod(os.path.getsize(name) - offset, row.itemsize)
        if rest or count < 0:
            raise ValueError(f"{rest} bytes more than {count} rows of {row.itemsize} bytes")
        if count == 0:
            return from_arrays(np.empty((0, *shape), dtype))
        return from_arrays(np.memmap(name, dtype, "r", offset, (count, *shape)))
    except (ValueError, EOFError) as error:
        raise DataError(f"{name}: not an array that can be mapped ({error})") from error


def text_lines(
    paths: Paths,
    *,
    encoding: str | None = "utf-8",
    errors: str = "strict",
    compression: str | None = None,
) -> Dataset:
    """The lines of text files, without their ends (`\\n`, `\\r\\n`); `encoding=None` gives bytes.

    Files that gzip compressed are seen by their first bytes. Raises FileNotFoundError; while it runs,
    DataError for a line that is not of the encoding, with its file and number.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.txt"
    >>> _ = open(path, "w").write("one\\ntwo\\n")
    >>> list(jt.data.text_lines(path))
    ['one', 'two']
    """
    if encoding is not None and "\n".encode(encoding) != b"\n":
        what = f"text_lines cannot find the ends of lines in {encoding}"
        refuse(what, "give an encoding whose line ends are ASCII's, or decode read_file's bytes.")
    options = {"encoding": encoding, "errors": errors}
    options["compression"] = check_compression(compression)
    return Dataset("text_lines", Lines, paths=listed(paths, "text_lines"), **options)


def tfrecord(paths: Paths, *, compression: str | None = None, verify: bool = True) -> Dataset:
    """The records of TFRecord files, as bytes: `.map(lambda r: parse_example(r, features))` reads them.

    `compression` is `"GZIP"`, `"ZLIB"`, `""` (none) or None, which sees gzip by the first bytes.
    `verify=False` does not compare checksums. Raises FileNotFoundError; while it runs, DataError with
    file, record and byte for what is truncated or corrupted.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.tfrecord"
    >>> with jt.data.RecordWriter(path) as writer:
    ...     writer.write(b"one")
    >>> list(jt.data.tfrecord(path))
    [b'one']
    """
    found = listed(paths, "tfrecord")
    options = {"compression": check_compression(compression), "verify": verify}
    return Dataset("tfrecord", Records, paths=found, **options)


def csv(
    paths: Paths,
    *,
    columns: list[str] | None = None,
    dtypes: Mapping[str, Any] | None = None,
    missing: Any = None,
    delimiter: str = ",",
    names: list[str] | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    """The rows of CSV files, as dicts of their columns, by pyarrow.

    The first line has the names, unless `names` does. What a column holds is seen from the first rows,
    or said by `dtypes`. A value that is not there is NaN in a column of floats, elsewhere `missing` (one
    for all, or by column) or a DataError.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.csv"
    >>> _ = open(path, "w").write("x,y\\n1,a\\n2,b\\n")
    >>> list(jt.data.csv(path))
    [{'x': np.int64(1), 'y': 'a'}, {'x': np.int64(2), 'y': 'b'}]
    """
    options = {
        "kind": "csv",
        "columns": columns,
        "dtypes": dtypes,
        "missing": missing,
        "delimiter": delimiter,
        "names": names,
        "encoding": encoding,
    }
    return Dataset("csv", TableBlocks, paths=listed(paths, "csv"), options=options)


def arrow(paths: Paths, *, columns: list[str] | None = None, missing: Any = None) -> Dataset:
    """The rows of Arrow (file or stream), Feather or Parquet files, as dicts of their columns.

    `missing` as in `csv`.

    >>> import pyarrow, pyarrow.feather, tempfile
    >>> path = tempfile.mkdtemp() + "/a.feather"
    >>> pyarrow.feather.write_feather(pyarrow.table({"x": [1, 2]}), path)
    >>> list(jt.data.arrow(path))
    [{'x': np.int64(1)}, {'x': np.int64(2)}]
    """
    options = {"kind": "arrow", "columns": columns, "missing": missing}
    return Dataset("arrow", TableBlocks, paths=listed(paths, "arrow"), options=options)


class Generated(Step):
    """What an iterator of the user's gives. A position is a number, or the iterator's own state."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], copy: bool) -> None:
        super().__init__()
        self.function, self.args, self.copy = function, args, copy
        self.iterator: Iterator[Any] | None = None
        self.at = 0

    @staticmethod
    def length(**options: Any) -> float | None:
        return None

    def __next__(self) -> Any:
        try:
            if self.iterator is None:
                self._open()
            element = next(self.iterator)  # type: ignore[arg-type]
        except StopIteration:
            raise
        except Exception as error:
            blame(error, "from_generator", self.function, self.at, self.args)
            self.iterator = None  # it has ended, but is not at its end
            raise
        self.at += 1
        return mapped(_own, element) if self.copy else element

    def _open(self) -> None:
        """Begin, and come to where this is."""
        self.iterator = iter(self.function(*self.args))
        for i in builtins.range(self.at):
            try:
                next(self.iterator)
            except StopIteration:
                raise DataError(
                    f"from_generator: the generator ended at element {i}, before the position "
                    f"{self.at} that is to be restored"
                ) from None

    def skip(self, count: int) -> int:
        copy, self.copy = self.copy, False
        try:
            return super().skip(count)
        finally:
            self.copy = copy

    def reset(self, passes: Passes) -> None:
        self.passes = passes
        self.close()
        self.at = 0

    def position(self) -> Any:
        state = getattr(self.iterator, "state", None)
        return {"at": self.at, "state": state()} if callable(state) else self.at

    def move(self, position: Any) -> None:
        self.close()
        if isinstance(position, dict):
            iterator: Any = iter(self.function(*self.args))
            iterator.restore(position["state"])
            self.iterator, self.at = iterator, position["at"]
        else:
            self.at = position

    def close(self) -> None:
        iterator, self.iterator = self.iterator, None
        close = getattr(iterator, "close", None)
        if callable(close):
            close()


def _own(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf
