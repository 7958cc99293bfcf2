"""Traced values that are known while tracing, because they depend on constants only.

Array library code asks for them: `n = xp.asarray(len(x)); if n > 2: ...`. Whatever makes of such a
value a Python number, a shape or a branch gets it, computed by the interpreter. So it is with what an
eager trace around knows: a derivative rule may branch on the values that `jt.grad` was called with.
"""

from __future__ import annotations

from typing import Any

from ...ir.graph import Op, Value
from ...ir.types import TensorType, is_inexact
from .computations import MOST_NUMBERS
from .trace import Array, EagerBuilder, Trace
from .tracers import Tracer, concrete
from .tracing import is_private

_MOST_OPS = 128
_MOST_ELEMENTS = 4096


def is_traced(x: Any) -> bool:
    """Whether `x` is known only when the traced graph runs."""
    return isinstance(x, Tracer) and not x._storage.trace.eager and not x._storage.trace.done


def is_undecided(x: Any) -> bool:
    """Whether it is traced and not known all the same, as what is computed of constants is."""
    return is_traced(x) and (x.size != 1 or known_array(x) is None)


def stays_traced(x: Any) -> bool:
    """Whether no number may be made of it: it is undecided, or an eager trace differentiates it."""
    if not isinstance(x, Tracer):
        return False
    return is_differentiated(x) if x._storage.trace.eager else is_undecided(x)


def known_array(x: Tracer) -> Array | None:
    """The elements of `x`, which must not be written to, if they are known while tracing."""
    trace = x._storage.trace
    if trace.done:
        return None
    if isinstance(trace.builder, EagerBuilder):
        return concrete(x)
    return _known(x.value, trace, [_MOST_OPS])


def _known(value: Value, trace: Trace, left: list[int]) -> Array | None:
    """The elements of a value of a trace; `left` is how many ops may still be computed."""
    values = trace.constants
    if value in values:
        return values[value]
    result = None
    if isinstance(value.type, TensorType) and value.type.size <= _MOST_ELEMENTS:
        if value.op is None:
            result = _captured(value, trace, left)
        elif _is_pure(value.op):
            result = _computed(value, value.op, trace, left)
        if result is None and value.type.size <= MOST_NUMBERS:
            result = _answered(value, trace)
    if left[0] >= 0:
        values[value] = result
    return result


def _answered(value: Value, trace: Trace) -> Array | None:
    """What is known of a number for this call."""
    outermost = trace
    while outermost.parent is not None:
        outermost = outermost.parent
    return None if outermost.answers is None else outermost.answers.known(value, trace)


def is_differentiated(x: Tracer) -> bool:
    """Whether an eager trace differentiates the value, or what it is made of."""
    return is_inexact(x.dtype) and _is_differentiated(x.value, x._storage.trace)


def _is_differentiated(value: Value, trace: Trace) -> bool:
    if isinstance(trace.builder, EagerBuilder):
        return value in trace.builder.active
    parent = trace.parent
    if parent is None:
        return False
    outer = {**trace.lent, **{c.param: c.outer for c in trace.captures}}
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        if value in outer and _is_differentiated(outer[value], parent):
            return True
        if value.op is not None and value.op.name != "stop_gradient":
            pending += (v for v in value.op.operands if v not in seen)
            seen.update(value.op.operands)
    return False


def _is_pure(op: Op) -> bool:
    definition = op.definition
    if op.regions or definition.effect or definition.family in ("structured", "tape"):
        return False
    return op.name != "pure_callback"  # users see their functions run


def _computed(value: Value, op: Op, trace: Trace, left: list[int]) -> Array | None:
    from ...ir.interpreter import evaluate_op

    left[0] -= 1
    operands = []
    for operand in op.operands:
        array = _known(operand, trace, left) if left[0] >= 0 else None
        if array is None:
            return None
        operands.append(array)
    results = evaluate_op(op, operands)
    array = results[op.results.index(value)]
    array = array.view()
    array.flags.writeable = False
    return array


def _captured(value: Value, trace: Trace, left: list[int]) -> Array | None:
    """What an enclosing trace knows; an array that the traced function made and nobody else has."""
    if value in trace.lent:
        return _of_parent(trace.lent[value], trace, left)
    for capture in trace.captures:
        if capture.param is value:
            if isinstance(capture.outer, Value):
                return _of_parent(capture.outer, trace, left)
            return capture.snapshot if is_private(capture) else None
    return None


def _of_parent(value: Value, trace: Trace, left: list[int]) -> Array | None:
    parent = trace.parent
    assert parent is not None
    if isinstance(parent.builder, EagerBuilder):
        return parent.builder.arrays.get(value)
    return _known(value, parent, left)
