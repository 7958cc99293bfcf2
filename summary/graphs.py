"""Traced graphs on TensorBoard's graph page, regions as folded scopes."""

from __future__ import annotations

from typing import Any

from .writer import Writer, current, event, tensorboard


def graph(graph: Any, *, writer: Writer | None = None) -> None:
    """A traced function: `jt.summary.graph(f.trace(x))`.

    Ops are nodes with the types of their results and the user's line; name scopes, bodies of loops and
    branches fold. Raises TypeError for what is no graph.
    """
    if not all(hasattr(graph, name) for name in ("params", "ops", "outputs")):
        raise TypeError(
            f"jt.summary.graph takes a traced graph, f.trace(*args), and got {type(graph).__name__}"
        )
    to = writer or current()
    if to is not None:
        definition = graph_def(graph)
        to.add(event(0, graph_def=definition.SerializeToString()))


def graph_def(graph: Any) -> Any:
    """The graph as TensorFlow's `GraphDef`."""
    result = tensorboard("compat.proto.graph_pb2").GraphDef()
    result.versions.producer = 22
    _Nodes(result).graph(graph, "", None)
    return result


class _Nodes:
    """Adds nodes to a definition; knows which node and output gives a value."""

    def __init__(self, definition: Any) -> None:
        self._definition = definition
        self._taken: set[str] = set()
        self._sources: dict[Any, str] = {}

    def graph(self, graph: Any, scope: str, inputs: list[str] | None) -> None:
        """The nodes of a graph within `scope`; `inputs`: what its parameters come from."""
        for k, param in enumerate(graph.params):
            name = self._name(scope, param.name or f"input{k}")
            source = inputs[k : k + 1] if inputs is not None else []
            self._add(name, "Parameter", source, [param], None)
        for op in graph.ops:
            self._op(op, scope)
        for k, output in enumerate(graph.outputs):
            name = self._name(scope, output.name or f"output{k}")
            self._add(name, "Output", [self._sources[output]], [], None)

    def _op(self, op: Any, scope: str) -> None:
        own = op.loc.scope if op.loc is not None else ""
        name = self._name("/".join(filter(None, [scope, own])), op.name)
        inputs = [self._sources[operand] for operand in op.operands]
        kind = "Const" if op.name == "constant" else op.name  # TensorBoard draws those small
        self._add(name, kind, inputs, op.results, op.loc)
        for region in op.regions:
            self.graph(region, f"{name}/{region.name}", None)

    def _add(self, name: str, kind: str, inputs: list[str], results: Any, loc: Any) -> None:
        node = self._definition.node.add(name=name, op=kind, input=inputs)
        for k, value in enumerate(results):
            self._sources[value] = name if k == 0 else f"{name}:{k}"
            shape = node.attr["_output_shapes"].list.shape.add()
            for size in getattr(value.type, "shape", ()):
                shape.dim.add(size=size)
        if results:
            node.attr["types"].s = ", ".join(str(v.type) for v in results).encode()
        if loc is not None:
            node.attr["line"].s = str(loc).encode()

    def _name(self, scope: str, name: str) -> str:
        """A name that TensorBoard takes, and that no other node has."""
        base = "/".join(filter(None, [scope, _plain(name)]))
        unique, k = base, 0
        while unique in self._taken:
            k += 1
            unique = f"{base}_{k}"
        self._taken.add(unique)
        return unique


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c in "_.-" else "_" for c in name) or "_"
