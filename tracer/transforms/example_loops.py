"""A function with loops of its own, over many examples: one after the other, or shared among threads.

for i in prange(shape[0]):              batched, each step of the function's loops would be made for
    for j in prange(shape[1]):          all examples, with steps as short as an example is: slower by
        out[i, j] = f(x[i, j], y[j])    ten and more times than a loop that stays in registers
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.batching.examples import (
    Shape,
    Source,
    computes_and_checks,
    has_effects,
    has_loops,
    over_examples,
)
from ..core.effects import advance, order_token
from ..core.specs import Spec, Static, is_array, spec_of
from ..core.threaded_state import BorrowedStates
from ..core.trace import current_trace
from ..core.tracers import as_value, wrap
from ..core.tracing import trace_function
from ..data import pytree
from ..data.callables import Function
from ..messages.source import user_line


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
    if traced.advanced or None in values or not computes_and_checks(traced.graph):
        return None
    if not has_loops(traced.graph):
        return None
    pairs = zip(arrays, follows, strict=True)
    sources = [Source(as_value(x), own) for x, own in pairs if is_array(x)]
    sources += [Source(c.outer, ()) for c in traced.captures]
    b = trace.builder
    with b.at(user_line()):
        token = order_token() if has_effects(traced.graph) else None
        results = over_examples(b, traced.graph, sources, shape, values, token)  # type: ignore[arg-type]
    advance(tuple(results[len(values) :]))
    leaves = [wrap(v, scalar=False) for v in results[: len(values)]]
    return (pytree.unflatten(traced.out_tree, leaves),)


def _spec(x: Any, lead: int) -> Spec | Static:
    if not is_array(x):
        return Static(x)
    whole = spec_of(x)
    type = whole.type.with_shape(whole.type.shape[lead:])
    return Spec(type, whole.weak, not type.shape)
