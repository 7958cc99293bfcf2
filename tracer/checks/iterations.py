"""The iterations of the loops around what failed in native code: a note on the exception.

Native code does not keep count: it says which line failed. So the function is traced again and its
graph interpreted up to there, on the arguments, which a call that failed left as they were.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.failures import Failure, Trip, find_failure
from ...ir.graph import Graph, SourceLine
from ...ir.types import TensorType
from ..messages.source import shown_file

SECONDS = 2.0  # that are spent on it
_LOOPS = 3  # that a note names
_RANGE = re.compile(r"\s*for\s+(\w+)\s+in\s+[\w.]*range\(")
_HARMLESS = ("assert", "create_token")  # effects that a second run may have


def note_iterations(
    error: Exception, line: SourceLine, graph: Graph, arrays: Sequence[np.ndarray[Any, Any]]
) -> None:
    """Add a note to `error`, which code of this graph has raised for a line; none where there is no loop
    around it, or a second run would be seen."""
    ops = list(graph.walk())
    if any(op.definition.effect and op.name not in _HARMLESS for op in ops):
        return
    if not any("consts" in op.attrs for op in ops):
        return
    tensors = all(isinstance(p.type, TensorType) for p in graph.params)
    if not tensors or len(graph.params) != len(arrays):
        return
    native = [np.asarray(a, p.dtype) for a, p in zip(arrays, graph.params, strict=True)]
    failure = find_failure(graph, native, SECONDS)
    if failure is not None and _is_about(failure, line) and failure.trips:
        error.add_note("\n".join(map(_text, failure.trips[-_LOOPS:])))


def _is_about(failure: Failure, line: SourceLine) -> bool:
    own = failure.op.loc
    return own is not None and (own.file, own.line) == (line.file, line.line)


def _text(trip: Trip) -> str:
    line = trip.loop.loc
    if line is None:
        return f"in iteration {trip.number} of a loop"
    text = f"in iteration {trip.number} of the loop at {shown_file(line.file)}:{line.line}"
    found = _RANGE.match(linecache.getline(line.file, line.line))
    return f"{text} ({found[1]} = {trip.index})" if found else text
