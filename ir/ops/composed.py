"""Ops and compositions that stand for each other.

`composed_rules`: derivatives by composition. An op whose result other ops could compute borrows their
rules. Right at every order, and it costs one expression instead of two hand-written derivatives; the
composition itself is never run, except for the parts that its derivative reads.

`composition`: the other way round. What other ops compute is an op because its derivative is simpler
than theirs, or theirs does not exist. `passes.inline_calls` puts the others in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.transform import jvp_graph, vjp_graph
from ..batching.transform import Rule as Batch
from ..batching.transform import batch_elementwise
from ..build import Builder, Grads, Wanted
from ..graph import Graph, Op, Value
from ..interpreter import evaluate
from ..opdef import OpDef, register
from ..types import TensorType

Rule = Callable[..., list[Value | None]]


def composed_rules(compose: Callable[..., Value | list[Value]]) -> tuple[Rule, Rule]:
    """The jvp and vjp of an op of floats that equals `compose(b, *operands, **attrs)`.

    `compose` gives the result, or a list of all results.
    """

    def body(op: Op) -> Graph:
        graph = Graph(op.name)
        b = Builder(graph, op.loc)
        results = compose(b, *(graph.add_param(v.type) for v in op.operands), **op.attrs)
        graph.outputs = results if isinstance(results, list) else [results]
        return graph

    def jvp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
        wrt = [i for i, t in enumerate(tangents) if t is not None]
        nonzero = [t for t in tangents if t is not None]
        values = b.inline(jvp_graph(body(op), wrt), [*op.operands, *nonzero])
        return list(values[-len(op.results) :])

    def vjp(b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Wanted) -> Grads:
        wrt = [i for i, want in enumerate(wanted) if want]
        seeds = instantiated(b, cotangents, op.results)
        values = b.inline(vjp_graph(body(op), wrt), [*op.operands, *seeds])
        grads = iter(values[len(op.results) :])
        return [next(grads) if want else None for want in wanted]

    return jvp, vjp


def instantiated(b: Builder, values: Sequence[Value | None], like: Sequence[Any]) -> list[Value]:
    """Zeros instead of None."""
    return [b.zeros(v.type) if t is None else t for t, v in zip(values, like, strict=True)]


def transposed(
    jvp: Callable[[Builder, Op, Sequence[Value | None]], list[Value | None]],
) -> Callable[..., list[Value | None]]:
    """The vjp of an op whose jvp is given: its tangents are linear in those that it takes."""

    def vjp(b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Wanted) -> Grads:
        wrt = [i for i, want in enumerate(wanted) if want]
        flowing = [i for i, ct in enumerate(cotangents) if ct is not None]
        graph = Graph(op.name)
        inner = Builder(graph, op.loc)
        env: dict[Value, Value] = {v: graph.add_param(v.type) for v in op.operands}
        operands = [env[v] for v in op.operands]
        results = [graph.add_param(v.type) for v in op.results]
        stand_in = Op(op.definition, tuple(operands), op.attrs, op.regions, op.loc)
        stand_in.results = tuple(results)
        tangents: list[Value | None] = [None] * len(wanted)
        for i in wrt:
            tangents[i] = graph.add_param(op.operands[i].type)
        moved = jvp(inner, stand_in, tangents)
        graph.outputs = instantiated(
            inner, [moved[i] for i in flowing], [op.results[i] for i in flowing]
        )
        first = len(op.operands) + len(op.results)
        backward = vjp_graph(graph, [first + k for k in range(len(wrt))])
        arguments = [
            *op.operands,
            *op.results,
            *(b.zeros(op.operands[i].type) for i in wrt),
            *(ct for ct in cotangents if ct is not None),
        ]
        grads: list[Value | None] = [None] * len(wanted)
        for i, grad in zip(wrt, b.inline(backward, arguments)[len(flowing) :], strict=True):
            grads[i] = grad
        return grads

    return vjp


def composition(
    name: str,
    compose: Callable[..., list[Value]],
    jvp: Rule,
    vjp: Rule | None = None,
    *,
    kinds: str,
    attrs: tuple[str, ...] = (),
    batch: Batch = batch_elementwise,
    doc: str = "",
) -> OpDef:
    """Define an op that gives what `compose(b, *operands, **attrs)` makes of leading dims and matrices.

    Its vjp is the transpose of its jvp unless it is given.
    """

    def body(types: Sequence[TensorType], attributes: dict[str, Any]) -> Graph:
        graph = Graph(name)
        params = [graph.add_param(type) for type in types]
        graph.outputs = compose(Builder(graph), *params, **attributes)
        return graph

    def infer(*types: TensorType, **attributes: Any) -> Any:
        results = tuple(body(types, attributes).output_types)
        return results if len(results) > 1 else results[0]

    def reference(*arrays: Any, **attributes: Any) -> Any:
        types = [TensorType(a.shape, a.dtype) for a in arrays]
        results = tuple(evaluate(body(types, attributes), arrays))
        return results if len(results) > 1 else results[0]

    return register(
        OpDef(
            name,
            "composition",
            infer,
            reference,
            jvp,
            vjp or transposed(jvp),
            batch=batch,
            dtypes=kinds,
            attrs=attrs,
            doc=doc,
            extra={"compose": compose, "examples": ()},
        )
    )
