"""A function with loops of its own, over many examples: one after the other, or shared among threads.

for i in prange(shape[0]):              batched, each step of the function's loops would be made for
    for j in prange(shape[1]):          all examples, with steps as short as an example is: slower by
        out[i, j] = f(x[i, j], y[j])    ten and more times than a loop that stays in registers
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.build import Builder
from ...ir.graph import Graph, Value
from ...ir.opdef import OPS
from ...ir.record import record
from ...ir.types import I64, TensorType
from ..core.specs import Spec, Static, is_array, spec_of
from ..core.threaded_state import BorrowedStates
from ..core.trace import current_trace
from ..core.tracers import as_value, wrap
from ..core.tracing import Traced, trace_function
from ..data import pytree
from ..data.callables import Function
from ..messages.source import user_line

Shape = tuple[int, ...]


@record
class _Source:
    """An array of which each example has a part: `follows` are the axes of examples that it has."""

    value: Value
    follows: Shape


def looped(
    function: Function, arrays: Sequence[Any], follows: Sequence[Shape], shape: Shape
) -> tuple[Any] | None:
    """`function` of the parts of `arrays`, for all examples of `shape`: a tuple with what it gives.

    The first axes of each array are those that it `follows`. None where loops over examples would not
    pay, since the function has none itself, or cannot be, since it does more than compute.
    """
    trace = current_trace()
    if trace is None or trace.eager:
        return None
    specs = [_spec(x, len(own)) for x, own in zip(arrays, follows, strict=True)]
    tree = pytree.flatten((tuple(range(len(specs))), {}))[1]
    traced = trace_function(function, specs, tree, what="vectorize", borrowed=BorrowedStates())
    values = [r.output for r in traced.results]
    if traced.token is not None or traced.advanced or None in values or not _has_loops(traced):
        return None
    pairs = zip(arrays, follows, strict=True)
    sources = [_Source(as_value(x), own) for x, own in pairs if is_array(x)]
    sources += [_Source(c.outer, ()) for c in traced.captures]
    b = trace.builder
    with b.at(user_line()):
        types = [traced.graph.outputs[k].tensor for k in values]  # type: ignore[index]
        outs = [b.zeros(t.with_shape((*shape, *t.shape))) for t in types]
        results = _loop(b, traced, sources, shape, [], outs)
    leaves = [wrap(v, scalar=False) for v in results]
    return (pytree.unflatten(traced.out_tree, leaves),)


def _spec(x: Any, lead: int) -> Spec | Static:
    if not is_array(x):
        return Static(x)
    whole = spec_of(x)
    type = whole.type.with_shape(whole.type.shape[lead:])
    return Spec(type, whole.weak, not type.shape)


def _has_loops(traced: Traced) -> bool:
    return any(op.name in ("while", "scan") for op in traced.graph.walk())


def _loop(
    b: Builder,
    traced: Traced,
    sources: Sequence[_Source],
    shape: Shape,
    positions: Sequence[Value],
    outs: Sequence[Value],
) -> list[Value]:
    """A loop over the next axis of `shape`, which carries `outs`; `positions` are those before it."""
    if len(positions) == len(shape):
        return _example(b, traced, sources, positions, outs)
    body = Graph("examples")
    inner = Builder(body, b.loc)
    fixed = [s.value for s in sources]
    own = [body.add_param(v.type) for v in (*fixed, *positions)]
    count = body.add_param(TensorType((), I64))
    carried = [body.add_param(v.type) for v in outs]
    within = [_Source(v, s.follows) for v, s in zip(own, sources, strict=False)]
    results = _loop(inner, traced, within, shape, [*own[len(fixed) :], count], carried)
    body.outputs = [inner.add(count, inner.const(1, I64)), *results]
    attrs = {
        "consts": len(own),
        "carries": 1 + len(outs),
        "length": shape[len(positions)],
        "reverse": False,
        "independent": True,
    }
    operands = [*fixed, *positions, b.const(0, I64), *outs]
    return list(b.append(OPS["scan"], operands, attrs, [body]).results[1:])


def _example(
    b: Builder,
    traced: Traced,
    sources: Sequence[_Source],
    positions: Sequence[Value],
    outs: Sequence[Value],
) -> list[Value]:
    parts = [_part(b, s.value, [positions[d] for d in s.follows]) for s in sources]
    made = b.inline(traced.graph, parts)
    every = tuple(range(len(positions)))
    results = []
    for out, result in zip(outs, traced.results, strict=True):
        value = made[result.output]  # type: ignore[index]
        results.append(b.scatter(out, value, *positions, axes=every, mode="clip", combine="set"))
    return results


def _part(b: Builder, x: Value, positions: Sequence[Value]) -> Value:
    if not positions:
        return x
    part: Value = b.gather(x, *positions, axes=tuple(range(len(positions))), mode="clip")
    return part
