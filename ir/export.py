"""Graphs as networkx graphs, for real graph algorithms, layouts and invariants.

networkx takes a quarter of a second to import, so nothing on the way to a compiled function asks
for this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .types import TensorType

if TYPE_CHECKING:
    from .graph import Graph, Value


Node = tuple[Any, ...]


def to_networkx(graph: Graph, regions: bool = False) -> Any:
    """A `networkx.MultiDiGraph` of `graph`: data flows along the edges.

    Nodes are `("param", i)`, `("op", i)` and `("output", i)`, in execution order, with attributes
    `kind`, `label`, `loc` and, for ops, `op` (the `Op` itself) and `name`. There is one edge per
    operand, with `operand` (its position), `type` (text), `nbytes` (0 for a token) and `value`.

    A structured op is one node. With `regions` the nodes of its regions are there, too, by their place:
    `("op", 3, 0, "param", 1)` is a parameter of the first region of op 3. They have the attributes
    `parent`, the node of the op, and `region`, the number; edges stay within a graph.
    """
    import networkx

    result = networkx.MultiDiGraph(name=graph.name)
    _add(result, graph, (), regions, {})
    return result


def _add(result: Any, graph: Graph, prefix: Node, regions: bool, where: dict[str, Any]) -> None:
    source: dict[Value, Node] = {}
    for i, param in enumerate(graph.params):
        node = (*prefix, "param", i)
        source[param] = node
        label = param.name or f"param {i}"
        result.add_node(node, kind="param", label=label, loc=None, **where)
    for i, op in enumerate(graph.ops):
        node = (*prefix, "op", i)
        result.add_node(node, kind="op", label=op.name, name=op.name, op=op, loc=op.loc, **where)
        for number, region in enumerate(op.regions if regions else ()):
            inside = {"parent": node, "region": number}
            _add(result, region, (*node, number), regions, inside)
        for position, operand in enumerate(op.operands):
            result.add_edge(source[operand], node, **_edge(operand, position))
        source.update((value, node) for value in op.results)
    for i, output in enumerate(graph.outputs):
        node = (*prefix, "output", i)
        label = output.name or f"output {i}"
        result.add_node(node, kind="output", label=label, loc=None, **where)
        result.add_edge(source[output], node, **_edge(output, 0))


def _edge(value: Value, position: int) -> dict[str, Any]:
    nbytes = value.type.nbytes if isinstance(value.type, TensorType) else 0
    return {"operand": position, "type": str(value.type), "nbytes": nbytes, "value": value}
