"""Graphs as networkx graphs, for real graph algorithms, layouts and invariants.

networkx takes a quarter of a second to import, so nothing on the way to a compiled function asks
for this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .types import TensorType

if TYPE_CHECKING:
    from .graph import Graph, Value


def to_networkx(graph: Graph) -> Any:
    """A `networkx.MultiDiGraph` of `graph`: data flows along the edges.

    Nodes are `("param", i)`, `("op", i)` and `("output", i)`, in execution order, with attributes
    `kind`, `label`, `loc` and, for ops, `op` (the `Op` itself) and `name`. There is one edge per
    operand, with `operand` (its position), `type` (text), `nbytes` (0 for a token) and `value`.
    Regions are not entered: a structured op is one node, its regions are graphs of their own.
    """
    import networkx

    result = networkx.MultiDiGraph(name=graph.name)
    source: dict[Value, tuple[str, int]] = {}
    for i, param in enumerate(graph.params):
        source[param] = ("param", i)
        result.add_node(("param", i), kind="param", label=param.name or f"param {i}", loc=None)
    for i, op in enumerate(graph.ops):
        node = ("op", i)
        result.add_node(node, kind="op", label=op.name, name=op.name, op=op, loc=op.loc)
        for position, operand in enumerate(op.operands):
            result.add_edge(source[operand], node, **_edge(operand, position))
        source.update((value, node) for value in op.results)
    for i, output in enumerate(graph.outputs):
        node = ("output", i)
        result.add_node(node, kind="output", label=output.name or f"output {i}", loc=None)
        result.add_edge(source[output], node, **_edge(output, 0))
    return result


def _edge(value: Value, position: int) -> dict[str, Any]:
    nbytes = value.type.nbytes if isinstance(value.type, TensorType) else 0
    return {"operand": position, "type": str(value.type), "nbytes": nbytes, "value": value}
