"""What `jt.bench` gives: rows of times, as text, as HTML with a chart, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from .chart import chart
from .clock import Timing

_CELL = "text-align:left;white-space:nowrap;padding:1px 14px 1px 0"


class Row(NamedTuple):
    """One function at one size.

    seconds, low, high    of one call: the median, and the quartiles around it
    rounds                batches of calls that were timed
    ratio                 of its time to the fastest one's at this size
    first                 seconds of the first call, in which `jit` traces and compiles
    nbytes, flops         of one call, if they are known: those of the first compiled function among
                          the rows of a size, by `jt.cost`
    of_bandwidth, of_flops    parts of what this machine does at most
    """

    name: str
    size: Any
    seconds: float
    low: float
    high: float
    rounds: int
    ratio: float
    first: float
    nbytes: float | None
    flops: float | None
    of_bandwidth: float | None
    of_flops: float | None


class Work(NamedTuple):
    """What one call moves and computes, and what this machine does at most for a call of its size."""

    nbytes: float
    flops: float
    bandwidth: float
    peak_flops: float


def rows(size: Any, timings: Sequence[tuple[str, Timing]], work: Work | None) -> list[Row]:
    """The rows of one size."""
    best = min(timing.median for _, timing in timings)
    return [_row(name, size, timing, best, work) for name, timing in timings]


def _row(name: str, size: Any, timing: Timing, best: float, work: Work | None) -> Row:
    seconds = max(timing.median, 1e-12)
    known = (None, None, None, None)
    if work is not None:
        parts = work.nbytes / seconds / work.bandwidth, work.flops / seconds / work.peak_flops
        known = (work.nbytes, work.flops, *parts)  # type: ignore[assignment]
    spread = timing.low, timing.high, timing.rounds
    return Row(name, size, seconds, *spread, seconds / max(best, 1e-12), timing.first, *known)


class Benchmark(str):
    """The table of `jt.bench` as text, with `.rows`, `.to_dict()` and a table and chart in notebooks."""

    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Lists of numbers and texts, one for each column."""
        return {name: [getattr(row, name) for row in self.rows] for name in Row._fields}

    def _repr_html_(self) -> str:
        head, *lines = _cells(self.rows)
        cells = [[f"<td style='{_CELL}'>{escape(c)}</td>" for c in line] for line in lines]
        names = "".join(f"<th style='{_CELL}'>{escape(c)}</th>" for c in head)
        body = "".join(f"<tr>{''.join(line)}</tr>" for line in cells)
        table = f"<div style='overflow-x:auto'><table><tr>{names}</tr>{body}</table></div>"
        return f"<div>{table}{chart(self.rows)}</div>"


def shown(found: Sequence[Row]) -> Benchmark:
    """The table of these rows."""
    lines = _cells(found)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
    made = Benchmark("\n".join(text.rstrip() for text in texts))
    made.rows = tuple(found)
    return made


def _cells(found: Sequence[Row]) -> list[list[str]]:
    """The table, its head first; columns that say nothing are left out."""
    sized = len({str(row.size) for row in found}) > 1
    known = any(row.nbytes is not None for row in found)
    head = ["size"] * sized + ["function", "a call", "spread", "slower", "first call"]
    table = [head + ["GB/s", "GFLOP/s", "of the limit"] * known]
    for row in found:
        line = [str(row.size)] * sized
        line += [row.name, time_text(row.seconds), _spread(row), _ratio(row), time_text(row.first)]
        table.append(line + _rates(row) * known)
    return table


def _spread(row: Row) -> str:
    return f"{time_text(row.low)} to {time_text(row.high)}"


def _ratio(row: Row) -> str:
    return "" if row.ratio < 1.005 else f"{row.ratio:.2f} x"


def _rates(row: Row) -> list[str]:
    if row.nbytes is None or row.flops is None:
        return ["", "", ""]
    parts = ((row.of_bandwidth or 0, "bandwidth"), (row.of_flops or 0, "flops"))
    part, name = max(parts)
    rates = [f"{amount / row.seconds / 1e9:.3g}" for amount in (row.nbytes, row.flops)]
    return [*rates, f"{part:.0%} {name}"]


def time_text(seconds: float) -> str:
    """A time with the unit that suits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
