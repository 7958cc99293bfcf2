"""Formulas of special functions, whose traces are remembered.

The rule of a derivative calls the function again, and other formulas, whose rules do so in turn: a
second derivative of `beta` asks for `digamma` 42 times. What a formula traces to follows from the types
of its operands and from how many derivatives are to come, so each is traced once and then copied.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ...ir.forks import renewed
from ...ir.graph import Graph
from ...ir.ops.control.custom import CUSTOM_JVP
from ...ir.record import record
from ...ir.types import is_inexact
from ..control.regions import Out, TracedRegion, trace_region
from ..core.specs import spec_of
from ..core.trace import EagerBuilder, current_trace
from ..core.tracers import Tracer
from ..data import pytree
from ..messages.source import user_line
from ..transforms.custom import custom_jvp
from ..transforms.custom_call import CustomCall, after, pending_derivatives

_MOST_OPS = 20_000  # in all graphs that are remembered: some 20 MB


@record
class _Formula:
    """A graph of a formula's operands, and what its results are."""

    graph: Graph
    outs: list[Out]
    tree: pytree.TreeDef
    ops: int


class formula(custom_jvp):
    """A `custom_jvp` of arrays that reads nothing but its operands; its rules likewise."""

    def __call__(self, *args: Any) -> Any:
        trace = current_trace()
        if trace is None or not all(isinstance(x, Tracer) for x in args):
            return super().__call__(*args)
        if trace.known_call is not None and trace.known_call.is_of(self, args):
            return trace.known_call.result()
        constant = isinstance(trace.builder, EagerBuilder) and not trace.builder.active
        pending = 0 if constant else pending_derivatives()
        key = (
            self,
            tuple([(x.type, x.weak, x.scalar, x.element_strides) for x in args]),
            (trace.options, trace.wraps, user_line()),
        )
        call = CustomCall(self.fun, (), args)
        value = _remembered.get((*key, 0)) or _remembered.put((*key, 0), self._value(call))
        values = trace.builder.inline(value.graph, call.inputs)
        if not pending:
            results = [out.wrap(v) for out, v in zip(value.outs, values, strict=True)]
            return pytree.unflatten(value.tree, results)
        rule = _remembered.get((*key, pending))
        if rule is None:
            outs = [out.wrap(v) for out, v in zip(value.outs, values, strict=True)]
            rule = _remembered.put((*key, pending), self._rule(call, value.tree, outs))
        wrapped = call.append(CUSTOM_JVP, values, value.outs, (), (), rule.graph)
        return pytree.unflatten(value.tree, wrapped)

    def _value(self, call: CustomCall) -> _Formula:
        """The formula as it is when no derivative is to come."""
        specs = [spec_of(x) for x in call.leaves]
        tree = pytree.flatten((call.primals, {}))[1]
        with after(pending_derivatives()):
            region = trace_region(self.fun, specs, tree, f"a call of {call.name}")
        return _closed(region, [None] * len(region.values))

    def _rule(self, call: CustomCall, tree: pytree.TreeDef, outs: Sequence[Tracer]) -> _Formula:
        """The rule that the next derivative takes."""
        with after(1):
            region = self._forward(call, tree, outs)
        return _closed(region, [x.value.tensor for x in outs if is_inexact(x.dtype)])


def _closed(region: TracedRegion, types: list[Any]) -> _Formula:
    assert not region.captured, "a formula reads its operands alone"
    graph = region.close((), region.values, types)
    return _Formula(graph, region.outs, region.tree, _size(graph))


def _size(graph: Graph) -> int:
    """The ops of a graph but for those of rules, which are remembered by themselves."""
    bodies = [r for op in graph.ops if op.definition is not CUSTOM_JVP for r in op.regions]
    return len(graph.ops) + sum(map(_size, bodies))


class _Memory:
    """Formulas by what they follow from; the oldest are forgotten where they are many."""

    def __init__(self) -> None:
        self._formulas: dict[Any, _Formula] = {}
        self._ops = 0
        self._lock = renewed(threading.Lock())

    def get(self, key: Any) -> _Formula | None:
        return self._formulas.get(key)

    def put(self, key: Any, made: _Formula) -> _Formula:
        with self._lock:
            if key not in self._formulas:
                self._formulas[key] = made
                self._ops += made.ops
            while self._ops > _MOST_OPS and len(self._formulas) > 1:
                oldest = next(iter(self._formulas))
                self._ops -= self._formulas.pop(oldest).ops
        return made


_remembered = _Memory()
