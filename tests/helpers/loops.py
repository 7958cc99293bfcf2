"""Programs with loops, for tests of their derivatives, passes and lowering.

    def body(i, c, x):                        # the trip's number, a loop invariant, the carry
        return [x.sin() * c]

    graph = program(lambda n, c, x: repeat(n, body, [c], [x]), np.int64(3), 2.0, 0.5)

`while_loop`, `repeat`, `scan`, `lanes_while` and `cond` append ops; their regions are Python functions
over Terms (`ir.ops.term`), which get the fixed values first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitney.ir.autodiff.transform import vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph, Value
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS
from jitney.ir.ops.term import Term
from jitney.ir.types import I32, I64, type_of
from jitney.ir.verify import verify

Region = Callable[..., Sequence[Any]]


def region(f: Region, types: Sequence[Any], name: str = "region") -> Graph:
    """`f` over Terms as a graph; it gives Terms or Values."""
    graph = Graph(name)
    b = Builder(graph)
    out = f(*(Term(b, graph.add_param(t)) for t in types))
    graph.outputs = [t.value if isinstance(t, Term) else t for t in out]
    return graph


def program(f: Region, *arrays: Any) -> Graph:
    """`f` over Terms as a graph whose parameters are like `arrays`."""
    graph = region(f, [type_of(np.asarray(a)) for a in arrays], "f")
    verify(graph)
    return graph


def _values(terms: Sequence[Any]) -> list[Value]:
    return [t.value if isinstance(t, Term) else t for t in terms]


def while_loop(
    test: Region, body: Region, fixed: Sequence[Any], state: Sequence[Any], **attrs: Any
) -> list[Term]:
    b = (list(fixed) + list(state))[0].b
    operands = _values([*fixed, *state])
    types = [v.type for v in operands]
    regions = [region(test, types, "test"), region(body, types, "body")]
    op = b.append(OPS["while"], operands, {"consts": len(fixed), **attrs}, regions)
    return [Term(b, v) for v in op.results]


def scan(
    body: Region,
    fixed: Sequence[Any],
    state: Sequence[Any],
    xs: Sequence[Any],
    length: int,
    reverse: bool = False,
) -> list[Term]:
    b = [*fixed, *state, *xs][0].b
    operands = _values([*fixed, *state, *xs])
    slices = [v.tensor.with_shape(v.shape[1:]) for v in _values(xs)]
    types = [v.type for v in _values([*fixed, *state])] + slices
    attrs = {"consts": len(fixed), "carries": len(state), "length": length, "reverse": reverse}
    op = b.append(OPS["scan"], operands, attrs, [region(body, types, "body")])
    return [Term(b, v) for v in op.results]


def cond(index: Term, branches: Sequence[Region], operands: Sequence[Any]) -> list[Term]:
    b = index.b
    values = _values(operands)
    regions = [region(f, [v.type for v in values], f"branch_{k}") for k, f in enumerate(branches)]
    number = index.value if index.value.dtype == I32 else b.convert(index.value, dtype=I32)
    op = b.append(OPS["cond"], [number, *values], {}, regions)
    return [Term(b, v) for v in op.results]


def lanes_while(
    test: Region, body: Region, fixed: Sequence[Any], state: Sequence[Any], **attrs: Any
) -> list[Term]:
    b = [*fixed, *state][0].b
    operands = _values([*fixed, *state])
    types = [v.tensor.with_shape(()) for v in operands]
    regions = [region(test, types, "test"), region(body, types, "body")]
    op = b.append(OPS["lanes_while"], operands, {"consts": len(fixed), **attrs}, regions)
    return [Term(b, v) for v in op.results]


def integer(like: Term, value: int) -> Term:
    return Term(like.b, like.b.const(value, I64))


def repeat(count: Term, body: Region, fixed: Sequence[Any], state: Sequence[Any], **attrs: Any):
    """`count` (0-d i64) trips of `body(i, *fixed, *state)`, by a while loop."""
    n = len(fixed)

    def test(limit: Term, *rest: Term) -> list[Term]:
        return [rest[n] < limit]

    def trip(limit: Term, *rest: Term) -> list[Any]:
        i, out = rest[n], body(rest[n], *rest[:n], *rest[n + 1 :])
        return [i + 1, *out]

    zero = integer(count, 0)
    return while_loop(test, trip, [count, *fixed], [zero, *state], **attrs)[1:]


def gradient(graph: Graph, wrt: Sequence[int] | None = None) -> Graph:
    """The graph of the gradients alone: takes the parameters and one cotangent per float output."""
    wrt = [i for i, p in enumerate(graph.params) if p.dtype.kind == "f"] if wrt is None else wrt
    found = vjp_graph(graph, wrt)
    found.outputs = found.outputs[len(graph.outputs) :]
    verify(found)
    return found


def run(graph: Graph, *arrays: Any) -> list[np.ndarray]:
    return evaluate(graph, [np.asarray(a) for a in arrays])
