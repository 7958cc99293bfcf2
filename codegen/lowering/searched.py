"""Which arrays of a loop are read or written at places that the program computes.

    counts[k] += 1          k is no number that is known when code is made: an element of memory
    v[0], v[1]              these may be variables

An array that is taken apart into variables is searched for such a place by comparing it with each.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.graph import Graph, Op, Value

_PLACED = frozenset(
    (
        *("gather", "scatter", "dynamic_slice", "dynamic_update_slice"),
        *("bounded_slice", "bounded_update_slice"),
    )
)


def searched(op: Op) -> set[Value]:
    """Of the operands of a loop, and of the values inside, those whose memory is searched."""
    values: set[Value] = set()
    while _spread(op, values):
        pass
    return values


def _spread(op: Op, values: set[Value]) -> bool:
    """Go once through an op with regions; whether something was found."""
    before = len(values)
    for graph in op.regions:
        for inner in graph.ops:
            if inner.regions:
                _spread(inner, values)
            elif inner.name in _PLACED and not _is_fixed(inner):
                values.add(inner.operands[0])
            if _updates(inner) and {inner.operands[0], inner.result} & values:
                values.update((inner.operands[0], inner.result))
        for a, b in _same(op, graph):
            if a in values or b in values:
                values.update((a, b))
    return len(values) > before


def _updates(op: Op) -> bool:
    return op.definition.updates or op.name == "bounded_update_slice"


def _is_fixed(op: Op) -> bool:
    """Whether the places of an op are constants."""
    first = 2 if _updates(op) else 1
    return all(v.op is not None and v.op.name == "constant" for v in op.operands[first:])


def _same(op: Op, graph: Graph) -> Iterator[tuple[Value, Value]]:
    """Pairs of values that share memory: what goes into a region, and what comes out of it."""
    if op.name == "cond":
        yield from zip(op.operands[1:], graph.params, strict=False)
        yield from zip(graph.outputs, op.results, strict=False)
    elif op.name in ("while", "scan"):
        first = op.attrs["consts"]
        carries = op.attrs.get("carries", len(op.operands) - first)
        yield from zip(op.operands[: first + carries], graph.params, strict=False)
        if graph is op.regions[-1]:
            ends = graph.outputs[:carries]
            yield from zip(ends, graph.params[first:], strict=False)
            yield from zip(ends, op.results, strict=False)
