"""What became of the names that a user gave to values, when the graph was rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...ir.graph import Graph, Value
from ...ir.passes import optimise, storable


def fates(graph: Graph, after: Graph) -> dict[str, str]:
    """For each name of a value in a traced graph what a rewritten one has of it: "" where it is there,
    else the name of the value that it is the same as, or a sentence."""
    given = _named(graph)
    here = _named(after)
    lost = [name for name in given if name not in here]
    same = _same(graph, {name: given[name] for name in lost})
    params = {value.name for value in after.params}
    found = {}
    for name in given:
        if name in here:
            found[name] = ""
        elif same.get(name) in {*here, *params}:
            found[name] = f"is {same[name]}"
        else:
            found[name] = "is gone: nothing that is computed needs it by itself"
    return found


def fates_text(graph: Graph, after: Graph) -> str:
    """A line for each name."""
    found = fates(graph, after)
    width = max(map(len, found), default=0)
    lines = [f"{name:<{width}}  {fate or 'is there'}" for name, fate in found.items()]
    return "\n".join(lines) or "no value has a name"


def _named(graph: Graph) -> dict[str, Value]:
    """Values that ops give, regions' too, by their names."""
    return {v.name: v for op in graph.walk() for v in op.results if v.name}


def _same(graph: Graph, lost: Mapping[str, Value]) -> dict[str, str]:
    """By lost names: those of what the values are, when all are kept."""
    own = {value for op in graph.ops for value in op.results}
    kept = {name: value for name, value in lost.items() if value in own}
    if not kept:
        return {}
    wanted = [*graph.outputs, *kept.values()]
    whole = storable(graph.giving(wanted))
    if len(whole.outputs) != len(wanted):
        return {}  # parts of complex numbers
    ends = optimise(whole).outputs[len(graph.outputs) :]
    return dict(_with_names(kept, ends))


def _with_names(kept: Mapping[str, Value], ends: list[Value]) -> Iterator[tuple[str, str]]:
    for name, value in zip(kept, ends, strict=True):
        if value.name and value.name != name:
            yield name, value.name
