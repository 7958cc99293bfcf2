"""How a number was computed of what the outermost trace was given, as a program of its own.

Python may need the number itself, of an array's elements say, for a shape. `jit` runs this program on
the arguments, traces again with the number, and asks at each call whether it still comes out so.
"""

from __future__ import annotations

from typing import Any

from ...ir.build import Builder
from ...ir.graph import Graph, Op, SourceLine, Value
from ...ir.record import record
from ...ir.types import TensorType
from .trace import Array, Trace
from .tracers import Tracer, method
from .tracing import is_private

MOST_NUMBERS = 8  # in a row: a shape
_MOST = 2_000  # values


@record
class Computation:
    """A graph with one output, a number. Its parameters are those of the outermost trace that stand at
    `inputs`. The same computation has the same `key`, in another trace too. `line` is the user's, `size`
    how many values it takes."""

    key: str
    graph: Graph
    inputs: tuple[int, ...]
    line: SourceLine | None
    size: int


class _Hidden(Exception):
    """The number depends on a loop's iteration, on something outside, or on an effect."""


@method("_computation")
def computation_of(x: Tracer, row: bool = False) -> Computation | None:
    """How `x` is computed; None if it is no integer, or `row` of a few, or if that can't be told."""
    trace: Trace | None = x._storage.trace
    few = x.ndim == 0 or (row and x.ndim == 1 and x.size <= MOST_NUMBERS)
    if trace is None or trace.done or not few or x.dtype.kind not in "iu":
        return None
    return computation(x._storage.value, trace)


def computation(value: Value, trace: Trace, most: int = _MOST) -> Computation | None:
    """How a number of a trace, or of one that is nested in it, is computed of its parameters; None also
    if that takes more than so many values."""
    copier = _Copier(most)
    try:
        result = copier.copied(value, trace)
    except _Hidden:
        return None
    graph = copier.builder.graph
    graph.outputs = [result]
    inputs = tuple(copier.parameters)
    line = None if value.op is None else value.op.loc
    return Computation(f"{inputs} {graph}", graph, inputs, line, copier.size)


class _Copier:
    """Copies what a value depends on, from as many traces as it takes, into one graph."""

    def __init__(self, most: int) -> None:
        self.builder = Builder(Graph("number"))
        self._most = most
        self.parameters: dict[int, Value] = {}
        self._copies: dict[Value, Value] = {}

    @property
    def size(self) -> int:
        return len(self._copies)

    def copied(self, value: Value, trace: Trace) -> Value:
        pending: list[tuple[Value, Trace]] = [(value, trace)]
        while pending:
            value, trace = pending[-1]
            missing = [n for n in _needed(value, trace) if n[0] not in self._copies]
            if missing:
                pending += missing
                continue
            pending.pop()
            if value not in self._copies:
                self._copy(value, trace)
            if len(self._copies) > self._most:
                raise _Hidden
        return self._copies[value]

    def _copy(self, value: Value, trace: Trace) -> None:
        if value.op is not None:
            self.builder.copy(value.op, self._copies)
            return
        made = _made_inside(value, trace)
        if made is not None:
            self._copies[value] = self.builder.const(made)
            return
        outer = _outer(value, trace)
        self._copies[value] = self._parameter(value) if outer is None else self._copies[outer[0]]

    def _parameter(self, value: Value) -> Value:
        if not isinstance(value.type, TensorType):
            raise _Hidden
        known = self.parameters.get(value.index)
        if known is None:
            known = self.parameters[value.index] = self.builder.graph.add_param(value.type)
        return known


def _needed(value: Value, trace: Trace) -> list[tuple[Value, Trace]]:
    """What has to be copied before a value can be."""
    if value.op is not None:
        if not _can_run_twice(value.op):
            raise _Hidden
        return [(operand, trace) for operand in value.op.operands]
    outer = None if _made_inside(value, trace) is not None else _outer(value, trace)
    return [] if outer is None else [outer]


def _made_inside(value: Value, trace: Trace) -> Array | None:
    """The elements of a parameter that is a NumPy array which the function has made."""
    captures = (c for c in trace.captures if c.param is value and trace.parent is None)
    return next((c.snapshot for c in captures if is_private(c)), None)


def _outer(value: Value, trace: Trace) -> tuple[Value, Trace] | None:
    """What a parameter stands for in the trace around; None for one of the outermost trace."""
    parent = trace.parent
    if trace.eager or (parent is not None and parent.eager):
        raise _Hidden  # its numbers are known, or lost to a derivative
    outer: Any = trace.lent.get(value)
    for capture in trace.captures:
        if capture.param is value:
            outer = capture.outer
            if parent is None:
                raise _Hidden  # an array of outside that was found on the way
    if parent is None:
        return None
    if not isinstance(outer, Value):
        raise _Hidden
    return outer, parent


def _can_run_twice(op: Op) -> bool:
    """Whether nobody notices that an op, and what is in it, runs once more."""
    inner = (inner for region in op.regions for inner in region.ops)
    definition = op.definition
    plain = not definition.effect and definition.family != "tape" and op.name != "pure_callback"
    return plain and all(map(_can_run_twice, inner))
