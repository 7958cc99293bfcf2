"""Traced values that are known while tracing, because they depend on constants only.

Array library code asks for them: `n = xp.asarray(len(x)); if n > 2: ...`. Whatever makes of such a
value a Python number, a shape or a branch gets it, computed by the interpreter.
"""

from __future__ import annotations

from ..ir.graph import Op, Value
from ..ir.types import TensorType
from .core import Tracer, concrete
from .trace import Array, EagerBuilder, Trace
from .tracing import is_private

_MOST_OPS = 128
_MOST_ELEMENTS = 4096


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
    found = trace.known
    if value in found:
        return found[value]
    result = None
    if isinstance(value.type, TensorType) and value.type.size <= _MOST_ELEMENTS:
        if value.op is None:
            result = _captured(value, trace, left)
        elif _is_pure(value.op):
            result = _computed(value, value.op, trace, left)
    if left[0] >= 0:
        found[value] = result
    return result


def _is_pure(op: Op) -> bool:
    definition = op.definition
    if op.regions or definition.effect or definition.family in ("structured", "tape"):
        return False
    return op.name != "pure_callback"  # users see their functions run


def _computed(value: Value, op: Op, trace: Trace, left: list[int]) -> Array | None:
    from ..ir.interpreter import evaluate_op

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
    for capture in trace.captures:
        if capture.param is value:
            if isinstance(capture.outer, Value):
                assert trace.parent is not None
                return _known(capture.outer, trace.parent, left)
            return capture.snapshot if is_private(capture) else None
    return None
