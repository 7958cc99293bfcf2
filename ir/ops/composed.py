"""Derivatives by composition: an op whose result other ops could compute borrows their rules.

Right at every order, and it costs one expression instead of two hand-written derivatives; the
composition itself is never run, except for the parts that its derivative reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff import jvp_graph, vjp_graph
from ..build import Builder
from ..graph import Graph, Op, Value

Rule = Callable[..., list[Value | None]]


def composed_rules(compose: Callable[..., Value | list[Value]]) -> tuple[Rule, Rule]:
    """The jvp and vjp of an op of floats that equals `compose(b, *operands, **attrs)`.

    `compose` gives the result, or a list of all results.
    """

    def body(op: Op) -> Graph:
        graph = Graph(op.name)
        b = Builder(graph, op.loc)
        found = compose(b, *(graph.add_param(v.type) for v in op.operands), **op.attrs)
        graph.outputs = found if isinstance(found, list) else [found]
        return graph

    def jvp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
        wrt = [i for i, t in enumerate(tangents) if t is not None]
        if not wrt:
            return [None] * len(op.results)
        given = [t for t in tangents if t is not None]
        found = b.inline(jvp_graph(body(op), wrt), [*op.operands, *given])
        return list(found[-len(op.results) :])

    def vjp(
        b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Sequence[bool]
    ) -> list[Value | None]:
        wrt = [i for i, want in enumerate(wanted) if want]
        if not wrt or all(ct is None for ct in cotangents):
            return [None] * len(wanted)
        given = instantiated(b, cotangents, op.results)
        found = b.inline(vjp_graph(body(op), wrt), [*op.operands, *given])
        results = iter(found[len(op.results) :])
        return [next(results) if want else None for want in wanted]

    return jvp, vjp


def instantiated(b: Builder, values: Sequence[Value | None], like: Sequence[Any]) -> list[Value]:
    """Zeros in place of None."""
    return [b.zeros(v.type) if t is None else t for t, v in zip(values, like, strict=True)]
