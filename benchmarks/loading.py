"""Elements per second out of arrays, text and TFRecord: jitney beside PyTorch's DataLoader and Grain.

    python -m benchmarks.loading          with the frameworks that can be imported
    python -m benchmarks.loading --small

Each row is one pass in batches of 64 (`elements`: one by one). The loaders take turns, and the best of
their passes counts. PyTorch has no reader of TFRecord: its row has one in Python, with the checksums.
Grain does not compare those.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SIZE = 64
Passes = dict[str, Callable[[], Iterable[Any]]]  # of a loader: by row, what begins a pass


class Inputs:
    """Arrays in memory, a file of lines, a file of records."""

    def __init__(self, folder: Path, count: int) -> None:
        import jitney as jt

        rng = np.random.default_rng(0)
        self.count = count
        self.x = rng.random((count, 784), dtype=np.float32)
        self.y = rng.integers(0, 10, count)
        self.text, self.records = str(folder / "lines.txt"), str(folder / "a.tfrecord")
        lines = (f"line {i} of the file, and some more words {7 * i}\n" for i in range(count))
        Path(self.text).write_text("".join(lines))
        with jt.data.RecordWriter(self.records) as writer:
            for _ in range(count):
                writer.write(rng.bytes(200))


def double(row: Any) -> Any:
    return row * 2


def jitney(inputs: Inputs) -> Passes:
    import jitney as jt

    pairs, rows = jt.data.from_arrays((inputs.x, inputs.y)), jt.data.from_arrays(inputs.x)
    lines, records = jt.data.text_lines(inputs.text), jt.data.tfrecord(inputs.records)
    return {
        "arrays, shuffled": pairs.shuffle(seed=0).batch(SIZE).iterator,
        "arrays, mapped": rows.map(double).batch(SIZE).iterator,
        "arrays, 2 processes": rows.map(double, workers=2, processes=True).batch(SIZE).iterator,
        "text, elements": lines.iterator,
        "text": lines.batch(SIZE).iterator,
        "TFRecord, elements": records.iterator,
        "TFRecord, unverified": jt.data.tfrecord(inputs.records, verify=False).iterator,
    }


def torch(inputs: Inputs) -> Passes:
    from torch import from_numpy
    from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

    class Lines(IterableDataset[str]):
        def __iter__(self) -> Iterator[str]:
            with open(inputs.text) as file:
                for line in file:
                    yield line.removesuffix("\n")

    class Records(IterableDataset[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            return records_in_python(inputs.records)

    class Doubled(Dataset[Any]):
        def __len__(self) -> int:
            return inputs.count

        def __getitem__(self, i: int) -> Any:
            return from_numpy(double(inputs.x[i]))

    pairs = TensorDataset(from_numpy(inputs.x), from_numpy(inputs.y))
    return {
        "arrays, shuffled": lambda: DataLoader(pairs, batch_size=SIZE, shuffle=True),
        "arrays, mapped": lambda: DataLoader(Doubled(), batch_size=SIZE),
        "arrays, 2 processes": lambda: DataLoader(Doubled(), batch_size=SIZE, num_workers=2),
        "text, elements": lambda: DataLoader(Lines(), batch_size=None),
        "text": lambda: DataLoader(Lines(), batch_size=SIZE),
        "TFRecord, elements": lambda: DataLoader(Records(), batch_size=None),
    }


def grain(inputs: Inputs) -> Passes:
    from grain import MapDataset
    from grain.experimental import TFRecordIterDataset

    numbers = MapDataset.range(inputs.count)
    pairs = numbers.map(lambda i: (inputs.x[i], inputs.y[i]))
    lines = MapDataset.source(Path(inputs.text).read_text().splitlines())
    return {
        "arrays, shuffled": lambda: pairs.shuffle(seed=0).batch(SIZE).to_iter_dataset(),
        "arrays, mapped": lambda: (
            numbers.map(lambda i: double(inputs.x[i])).batch(SIZE).to_iter_dataset()
        ),
        "text, elements": lines.to_iter_dataset,
        "text": lambda: lines.batch(SIZE).to_iter_dataset(),
        "TFRecord, unverified": lambda: TFRecordIterDataset(inputs.records),
    }


def records_in_python(path: str) -> Iterator[bytes]:
    from crc32c import crc32c

    with open(path, "rb") as file:
        while head := file.read(12):
            record, foot = file.read(struct.unpack_from("<Q", head)[0]), file.read(4)
            for data, check in ((head[:8], head[8:]), (record, foot)):
                found = crc32c(data)
                turned = ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF
                if turned != int.from_bytes(check, "little"):
                    raise ValueError(f"{path}: wrong checksum")
            yield record


def measure(
    loaders: list[Callable[[Inputs], Passes]], count: int, rounds: int
) -> dict[str, dict[str, float]]:
    """Elements per second, by row and loader, of those that can be imported."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs = Inputs(Path(folder), count)
        passes: dict[str, Passes] = {}
        for loader in loaders:
            try:
                passes[loader.__name__] = loader(inputs)
            except ImportError as error:
                print(f"  {loader.__name__}: {error}")
        for _ in range(rounds):
            for name, rows in passes.items():
                for row, begin in rows.items():
                    start = time.perf_counter()
                    for _ in begin():
                        pass
                    speed = count / (time.perf_counter() - start)
                    cells = found.setdefault(row, {})
                    cells[name] = max(cells.get(name, 0.0), speed)
    return found


def main() -> None:
    small = "--small" in sys.argv
    found = measure([jitney, torch, grain], 2_000 if small else 20_000, 1 if small else 5)
    names = list(dict.fromkeys(name for cells in found.values() for name in cells))
    print(f"thousands of elements a second\n{'':22}" + "".join(f"{name:>12}" for name in names))
    for row, cells in found.items():
        speeds = (f"{cells[n] / 1e3:12.1f}" if n in cells else f"{'-':>12}" for n in names)
        print(f"{row:22}" + "".join(speeds))


if __name__ == "__main__":
    main()
