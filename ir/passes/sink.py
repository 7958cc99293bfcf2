"""Views that a loop's products read are taken inside of the loop."""

from __future__ import annotations

from ..build import Builder
from ..graph import Graph, Op, Value
from .dead import eliminate_dead_code
from .regions import map_regions

VIEWS = frozenset(("broadcast", "flip", "reshape", "slice", "transpose"))


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
    plans = {op: places for op in graph.ops if (places := _sinkable(op))}
    if not plans:
        return graph
    new = Graph(graph.name)
    new.params = list(graph.params)
    env: dict[Value, Value] = {}
    for op in graph.ops:
        here = op
        if op in plans or not env.keys().isdisjoint(op.operands):
            operands = [env.get(v, v) for v in op.operands]
            here = op.with_operands(operands)
        if op in plans:
            here = _with_views(here, plans[op])
        new.ops.append(here)
        if here is not op:
            env.update(zip(op.results, here.results, strict=True))
    new.outputs = [env.get(v, v) for v in graph.outputs]
    return new


def _sinkable(op: Op) -> list[int]:
    """The invariants of a loop that are views, and read by contractions alone."""
    if op.name not in ("while", "scan"):
        return []
    return [
        place
        for place, value in enumerate(op.operands[: op.attrs["consts"]])
        if value.op is not None
        and value.op.name in VIEWS
        and all(_only_contracted(region, region.params[place]) for region in op.regions)
        and any(region.params[place] in o.operands for region in op.regions for o in region.ops)
    ]


def _only_contracted(region: Graph, param: Value) -> bool:
    users = [op for op in region.ops if param in op.operands]
    return param not in region.outputs and all(op.name == "dot" for op in users)


def _with_views(op: Op, places: list[int]) -> Op:
    """The loop with what the views at `places` are taken of as invariants instead."""
    views = {place: op.operands[place].op for place in places}
    operands = list(op.operands)
    for place, view in views.items():
        assert view is not None
        (operands[place],) = view.operands
    regions = tuple([_taking(region, views) for region in op.regions])
    new = Op(op.definition, tuple(operands), op.attrs, regions, op.loc)
    new.results = tuple([Value(v.type, new, v.index, v.name) for v in op.results])
    return new


def _taking(region: Graph, views: dict[int, Op | None]) -> Graph:
    new = Graph(region.name)
    b = Builder(new)
    env: dict[Value, Value] = {}
    taken: list[tuple[Op, dict[Value, Value], Value]] = []
    for place, param in enumerate(region.params):
        view = views.get(place)
        if view is None:
            env[param] = new.add_param(param.type, param.name)
        else:
            (source,) = view.operands
            given = new.add_param(source.type, source.name)
            taken.append((view, {source: given}, param))
    for view, inner, param in taken:
        env[param] = b.copy(view, inner).result
    for op in region.ops:
        b.copy(op, env)
    new.outputs = [env[v] for v in region.outputs]
    return new
