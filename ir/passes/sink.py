"""Views that a loop's products read are taken inside of the loop."""

from __future__ import annotations

from collections.abc import Sequence

from ..build import Builder
from ..graph import Graph, Op, Value
from .dead import eliminate_dead_code
from .regions import map_regions, substituted


def sink_views(graph: Graph) -> Graph:
    """Make a view that a loop has as an invariant, and that only contractions read there, part of it.

        %t = transpose %x perm=[1,0]                      graph body(%x, %w) {
        ... scan %t, ... consts=1 {                         %t = transpose %x perm=[1,0]
          graph body(%t, %w) { %y = dot %t, %w ... }  ->    %y = dot %t, %w ... }

    An invariant lies in memory, so the transpose would be a copy; a contraction takes it as an index.
    """
    sunk = _sink(graph)
    return graph if sunk is graph else eliminate_dead_code(sunk)


def _sink(graph: Graph) -> Graph:
    graph = map_regions(graph, _sink)

    def sunk(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
        indices = _sinkable(op)
        return b.put(_with_views(op.with_operands(operands), indices)) if indices else None

    return substituted(graph, sunk)


def _sinkable(op: Op) -> list[int]:
    """The invariants of a loop that are views, and read by contractions alone."""
    if op.name not in ("while", "scan"):
        return []
    return [
        index
        for index, value in enumerate(op.operands[: op.attrs["consts"]])
        if value.op is not None
        and value.op.definition.view
        and all(_only_contracted(region, region.params[index]) for region in op.regions)
        and any(region.params[index] in o.operands for region in op.regions for o in region.ops)
    ]


def _only_contracted(region: Graph, param: Value) -> bool:
    users = [op for op in region.ops if param in op.operands]
    return param not in region.outputs and all(op.name == "dot" for op in users)


def _with_views(op: Op, indices: list[int]) -> Op:
    """The loop with what the views at `indices` are taken of as invariants instead."""
    views = {index: op.operands[index].op for index in indices}
    operands = list(op.operands)
    for index, view in views.items():
        assert view is not None
        (operands[index],) = view.operands
    regions = tuple([_taking(region, views) for region in op.regions])
    return op.with_operands(operands, regions)


def _taking(region: Graph, views: dict[int, Op | None]) -> Graph:
    new = Graph(region.name)
    b = Builder(new)
    env: dict[Value, Value] = {}
    views_taken: list[tuple[Op, dict[Value, Value], Value]] = []
    for index, param in enumerate(region.params):
        view = views.get(index)
        if view is None:
            env[param] = new.add_param(param.type, param.name)
        else:
            (source,) = view.operands
            param_of = new.add_param(source.type, source.name)
            views_taken.append((view, {source: param_of}, param))
    for view, inner, param in views_taken:
        env[param] = b.copy(view, inner).result
    new.outputs = b.replay(region, env)
    return new
