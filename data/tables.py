"""CSV, Arrow, Feather and Parquet files by pyarrow: blocks of rows, read one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from .errors import DataError
from .reading import CHUNK, FileStep
from .trees import getter, mapped, texts


def arrow(module: str = "") -> Any:
    """pyarrow, or one of its modules."""
    try:
        return import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ImportError as error:
        raise ImportError(
            f"CSV and Arrow need the pyarrow package ({error}): pip install 'jitney[data]'"
        ) from error


class TableBlocks(FileStep):
    """Rows, as dicts of their columns' values: of block `offset` of a file, behind `number` rows."""

    def __init__(self, paths: list[str], options: Mapping[str, Any]) -> None:
        super().__init__(paths)
        self.options = options
        self.process = 0

    def enter(self, index: int, offset: int = 0, number: int = 0) -> None:
        super().enter(index, offset, number)
        self.blocks: Iterator[Any] | None = None
        self.tree: Any = None  # the block's columns
        self.taken = self.count = 0  # how many of its rows were handed on, of how many

    def chunk(self) -> None:
        while self.index < len(self.paths):
            start, before = self.offset + (self.tree is not None), self.number + self.count
            try:
                if self.blocks is None or self.process != os.getpid():
                    self.process = os.getpid()
                    self.blocks = batches(self.path, self.options, start, self.paths[0])
                block = next(self.blocks, None)
            except (arrow().ArrowException, UnicodeDecodeError) as error:
                hint = (
                    ": dtypes={column: dtype} says what a column is"
                    if "conversion" in str(error)
                    else ""
                )
                raise DataError(f"{self.path}, behind row {before}: {error}{hint}") from error
            if block is None:
                self.enter(self.index + 1)
                continue
            self.offset, self.number, self.taken, self.count = start, before, 0, block.num_rows
            self.tree = columns(block, self.options, f"{self.path}, behind row {before}")
            self.row = getter(self.tree)
            if self.count:
                return
        raise StopIteration

    def __next__(self) -> Any:
        if self.taken >= self.count:
            self.chunk()
        self.taken += 1
        return self.row(self.taken - 1)

    def block(self, count: int) -> tuple[Any, int]:
        if self.taken >= self.count:
            self.chunk()
        start, self.taken = self.taken, min(self.count, self.taken + count)
        return mapped(lambda a: a[start : self.taken].copy(), self.tree), self.taken - start

    def skip(self, count: int) -> int:
        left = count
        try:
            while left:
                if self.taken >= self.count:
                    self.chunk()
                step = min(left, self.count - self.taken)
                self.taken, left = self.taken + step, left - step
        except StopIteration:
            pass
        return count - left

    @property
    def at(self) -> int:
        return self.taken


def batches(path: str, options: Mapping[str, Any], start: int, first: str) -> Iterator[Any]:
    """The record batches of a file from that number on; columns have the first file's types."""
    names = options["columns"]
    if options["kind"] == "csv":
        found = _csv(path, options, first)
        for _ in range(start):
            next(found, None)
        yield from found
        return
    with open(path, "rb") as file:
        head = file.read(6)
    if head[:4] == b"PAR1":
        parquet = arrow("parquet").ParquetFile(path)
        for i in range(start, parquet.num_row_groups):
            table = parquet.read_row_group(i, columns=names).combine_chunks()
            yield from table.to_batches() or [table]
        return
    source = arrow().memory_map(path)
    if head == b"ARROW1":
        reader = arrow("ipc").open_file(source)
        found = (reader.get_batch(i) for i in range(start, reader.num_record_batches))
    else:
        found = iter(arrow("ipc").open_stream(source))
        for _ in range(start):
            next(found, None)
    for batch in found:
        yield batch.select(names) if names is not None else batch


def _csv(path: str, options: Mapping[str, Any], first: str) -> Iterator[Any]:
    types = {k: _type(v) for k, v in (options["dtypes"] or {}).items()}
    if path != first:
        with _csv_reader(first, options, types) as reader:
            types |= {
                field.name: field.type for field in reader.schema if str(field.type) != "null"
            }
    with _csv_reader(path, options, types) as reader:
        yield from reader


def _csv_reader(path: str, options: Mapping[str, Any], types: Mapping[str, Any]) -> Any:
    csv = arrow("csv")
    header: dict[str, Any] = {"column_names": options["names"]} if options["names"] else {}
    return csv.open_csv(
        path,
        csv.ReadOptions(block_size=4 * CHUNK, encoding=options["encoding"], **header),
        csv.ParseOptions(delimiter=options["delimiter"]),
        csv.ConvertOptions(column_types=types, include_columns=options["columns"]),
    )


def _type(dtype: Any) -> Any:
    if dtype is str or dtype is bytes:
        return arrow().string() if dtype is str else arrow().binary()
    return arrow().from_numpy_dtype(np.dtype(dtype))


def columns(block: Any, options: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The columns of a record batch as arrays: numbers as they are, all else as objects."""
    return {
        name: _column(block.column(i), name, options, where)
        for i, name in enumerate(block.schema.names)
    }


def _column(column: Any, name: str, options: Mapping[str, Any], where: str) -> Any:
    types = arrow("types")
    kind = column.type
    missing, dtypes = options["missing"], options.get("dtypes") or {}
    if options["kind"] == "csv" and types.is_binary(kind) and name not in dtypes:
        raise DataError(
            f"{where}: column {name!r} is not {options['encoding']}: give its encoding=, or "
            f"dtypes={{{name!r}: bytes}}"
        )
    plain = types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
    if column.null_count:
        fill = missing.get(name) if isinstance(missing, dict) else missing
        if fill is not None:
            column = column.fill_null(fill)
        elif not types.is_floating(kind):
            row = column.is_null().to_numpy(zero_copy_only=False).argmax()
            raise DataError(
                f"{where}: column {name!r} has no value in row {row} of the block: "
                f"missing={{{name!r}: value}} fills it"
            )
    if plain or types.is_temporal(kind):
        return column.to_numpy(zero_copy_only=False)
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
    found = column.to_pylist()
    if types.is_list(kind) or types.is_fixed_size_list(kind) or types.is_large_list(kind):
        found = [np.asarray(row) for row in found]
    return texts(found)
