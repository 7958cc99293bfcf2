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


def composed_rules(compose: Callable[..., Value]) -> tuple[Rule, Rule]:
    """The jvp and vjp of an op of one float operand that equals `compose(b, x, **attrs)`."""

    def body(op: Op) -> Graph:
        (x,) = op.operands
        graph = Graph(op.name)
        b = Builder(graph, op.loc)
        graph.outputs = [compose(b, graph.add_param(x.type), **op.attrs)]
        return graph

    def jvp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
        (t,) = tangents
        if t is None:
            return [None]
        return [b.inline(jvp_graph(body(op), [0]), [op.operands[0], t])[-1]]

    def vjp(
        b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Sequence[bool]
    ) -> list[Value | None]:
        (ct,) = cotangents
        if ct is None or not wanted[0]:
            return [None]
        return [b.inline(vjp_graph(body(op), [0]), [op.operands[0], ct])[-1]]

    return jvp, vjp


def instantiated(b: Builder, values: Sequence[Value | None], like: Sequence[Any]) -> list[Value]:
    """Zeros in place of None."""
    return [b.zeros(v.type) if t is None else t for t, v in zip(values, like, strict=True)]
