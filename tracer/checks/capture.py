"""`jt.capture`: intermediate values of jitted functions, kept to be looked at.

    with jt.capture("hidden/*") as seen:
        loss(params, x)
    seen["hidden/relu"][:3]

Inside, jitted functions are interpreted op by op, with the same results; what the filter takes is
copied.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...ir.graph import Op, SourceLine
from ...ir.record import record
from ...ir.types import TensorType, type_of
from ...ir.walker import Results, Walker
from ..messages.source import shown_file

Array = np.ndarray[Any, Any]
Filter = str | int | re.Pattern[str] | Callable[[Array], bool] | None
Iterations = int | slice | Container[int] | None
LIMIT = 256 << 20
_LISTED = 20  # values that a print-out of what was seen lists


@record(eq=False)
class Captured:
    """A value that was kept: name, op, line, the iteration of each loop around it, and what it was."""

    name: str
    op: str
    line: SourceLine | None
    iterations: tuple[int, ...]
    value: Array

    def __repr__(self) -> str:
        at = f" at {shown_file(self.line.file)}:{self.line.line}" if self.line else ""
        trips = f", iteration {', '.join(map(str, self.iterations))}" if self.iterations else ""
        return f"{self.name}: {type_of(self.value)}{at}{trips}"


class Seen:
    """The values that were kept, in the order in which they were computed.

    seen["hidden/relu"]       the last value of that name, an array to be sliced
    seen["hidden/relu", 3]    the one of the third iteration, or of [2, 3] of loops in each other
    seen["hidden/relu", 2:5]  those of several iterations, stacked
    seen.names()              all names;  seen.search("relu|tanh") those in which that is found
    seen.all(name)            everything kept under a name, with iterations and line
    seen.at(12)               ... or that comes from a line
    seen.find(name, low, high)  where elements lie between two numbers, and these elements

    `dropped` counts what was not kept because there was no room.
    """

    def __init__(self, limit: int) -> None:
        self.records: list[Captured] = []
        self.limit = limit
        self.nbytes = 0
        self.dropped = 0

    def names(self) -> list[str]:
        """The names, in the order of the first value of each."""
        return list(dict.fromkeys(r.name for r in self.records))

    def search(self, pattern: str) -> list[str]:
        """The names in which the regular expression is found."""
        return [name for name in self.names() if re.search(pattern, name)]

    def all(self, name: str) -> list[Captured]:
        """What was kept under a name. KeyError, with names that are like it, if that is nothing."""
        found = [r for r in self.records if r.name == name]
        if not found:
            import difflib

            near = difflib.get_close_matches(name, self.names(), 3, 0.3) or self.names()[:5]
            raise KeyError(
                f"nothing called {name!r} was kept; there are {', '.join(near) or 'none'}"
            )
        return found

    def at(self, line: int) -> list[Captured]:
        """What was kept of a line."""
        return [r for r in self.records if r.line and r.line.line == line]

    def find(self, name: str, low: float, high: float) -> tuple[Array, Array]:
        """The places of elements of the last value between two numbers, and these elements."""
        value = self[name]
        inside = (low <= value) & (value <= high)
        return np.argwhere(inside), value[inside]

    def __getitem__(self, key: str | tuple[str, Any]) -> Array:
        if isinstance(key, str):
            return self.all(key)[-1].value
        name, which = key
        found = self.all(name)
        if isinstance(which, slice):
            trips = range(max(max(r.iterations, default=0) for r in found) + 1)[which]
            return np.stack([r.value for r in found if r.iterations and r.iterations[-1] in trips])
        wanted = (which,) if isinstance(which, int) else tuple(which)
        for one in found:
            if one.iterations[-len(wanted) :] == wanted:
                return one.value
        raise KeyError(f"{name} of iteration {which} was not kept")

    def __contains__(self, name: object) -> bool:
        return any(r.name == name for r in self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Captured]:
        return iter(self.records)

    def __repr__(self) -> str:
        count = len(self.records)
        lines = [f"{count} value{'' if count == 1 else 's'}, {self.nbytes:,} bytes"]
        if self.dropped:
            lines[0] += (
                f"; {self.dropped} more were dropped: they did not fit into {self.limit:,} bytes"
            )
        lines += [f"  {r!r}" for r in self.records[:_LISTED]]
        if len(self.records) > _LISTED:
            lines.append(f"  and {len(self.records) - _LISTED} more")
        return "\n".join(lines)


class Recorder(Walker):
    """Keeps what a filter takes."""

    def __init__(self, seen: Seen, takes: Callable[[Captured], bool], trips: Iterations) -> None:
        super().__init__()
        self.seen = seen
        self._takes = takes
        self._trips = trips
        self._names: dict[tuple[int, int], str] = {}
        self._taken: set[str] = set()
        self._ops: list[Op] = []  # whose ids are keys

    def results(self, op: Op, operands: Sequence[Any], compute: Callable[[], Results]) -> Results:
        if op.regions:
            with self.inside(op):
                results = compute()
        else:
            results = compute()
        trips = tuple(trip for _, trip in self.trips())
        if op.definition.family != "source" and (not trips or _wanted(self._trips, trips[-1])):
            for value, result in zip(op.results, results, strict=True):
                if isinstance(value.type, TensorType):
                    self._see(Captured(self._name(op, value.index), op.name, op.loc, trips, result))
        return results

    def _name(self, op: Op, index: int) -> str:
        key = (id(op), index)
        name = self._names.get(key)
        if name is None:
            self._ops.append(op)
            said = op.results[index].name
            if not said:
                scope = f"{op.loc.scope}/" if op.loc and op.loc.scope else ""
                said = scope + ((op.loc.role if op.loc else "") or op.name)
            name, count = said, 0
            while name in self._taken:
                count += 1
                name = f"{said}_{count}"
            self._names[key] = name
            self._taken.add(name)
        return name

    def _see(self, found: Captured) -> None:
        seen, value = self.seen, np.asarray(found.value)
        if not self._takes(found):
            return
        if seen.nbytes + value.nbytes > seen.limit:
            seen.dropped += 1
            return
        seen.nbytes += value.nbytes
        kept = value.copy()
        kept.setflags(write=False)
        seen.records.append(Captured(found.name, found.op, found.line, found.iterations, kept))


_RECORDER: ContextVar[Recorder | None] = ContextVar("jitney_recorder", default=None)


def recorder() -> Recorder | None:
    """What keeps values in this context."""
    return _RECORDER.get()


@contextmanager
def recording(
    filter: Filter | Sequence[Filter], iterations: Iterations, limit: int
) -> Iterator[Seen]:
    """Inside, interpreted graphs are recorded."""
    seen = Seen(limit)
    filters: Sequence[Any] = filter if isinstance(filter, (list, tuple)) else [filter]
    tests = [_test(one) for one in filters]
    reset = _RECORDER.set(
        Recorder(seen, lambda found: any(test(found) for test in tests), iterations)
    )
    try:
        yield seen
    finally:
        _RECORDER.reset(reset)


def _wanted(iterations: Iterations, trip: int) -> bool:
    if iterations is None:
        return True
    if isinstance(iterations, int):
        return trip == iterations
    if isinstance(iterations, slice):
        if (iterations.start or 0) < 0 or (iterations.stop or 0) < 0:
            raise ValueError("iterations are counted from the first one: no negative numbers")
        return trip in range(trip + 1)[iterations]
    return trip in iterations


def _test(filter: Filter) -> Callable[[Captured], bool]:
    if filter is None:
        return lambda found: True
    if isinstance(filter, str):
        file, _, line = filter.rpartition(":")
        if file and line.isdigit():
            return lambda found: found.line is not None and _is_at(found.line, file, int(line))
        pattern: str = filter
        return lambda found: fnmatch.fnmatchcase(found.name, pattern)
    if isinstance(filter, re.Pattern):
        regex = filter
        return lambda found: regex.search(found.name) is not None
    if isinstance(filter, int) and not isinstance(filter, bool):
        number = filter
        return lambda found: found.line is not None and found.line.line == number
    if callable(filter):
        function = filter
        return lambda found: bool(function(np.asarray(found.value)))
    raise TypeError(
        f"a filter of jt.capture is a name with * and ?, a regular expression, a line, a function of an "
        f"array, or a list of these, not {filter!r}"
    )


def _is_at(line: SourceLine, file: str, number: int) -> bool:
    return line.line == number and file in (line.file, shown_file(line.file))
