"""Loop invariants move out of loops."""

from __future__ import annotations

from collections.abc import Sequence

from ..autodiff.residuals import can_hoist, is_cheap
from ..build import Builder
from ..graph import Graph, Op, Value
from .cse import eliminate_common_subexpressions
from .dead import eliminate_dead_code
from .regions import map_regions, substituted


def hoist_invariants(graph: Graph) -> Graph:
    """Compute before a loop what is the same in each iteration and costs more than reading it.

        graph body(%w: f32[8,8], %x: f32[8]) -> f32[8] {      the body of a loop, %w invariant
          %e = exp %w : f32[8,8]
          %y = dot %x, %e contract=[[0],[0]] ...         ->   exp before the loop, which gets one
          return %y                                           more loop invariant
        }

    Cheap ops (arithmetic, movement) stay in the loop, where they fuse with what reads them. So do
    ops that may raise, and inner loops: the loop may make no iteration. What forward and backward
    loops of a derivative compute alike is then computed once.
    """
    moved = _hoist(graph)
    if moved is graph:
        return graph
    return eliminate_dead_code(eliminate_common_subexpressions(moved))


def _hoist(graph: Graph) -> Graph:
    graph = map_regions(graph, _hoist)

    def lifted(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
        roots = _invariants(op)
        return b.put(_lifted(b, op.with_operands(operands), roots)) if roots else None

    return substituted(graph, lifted)


def _invariants(op: Op) -> list[Op]:
    """The dear ops of a loop's body that read invariants only."""
    if op.name not in ("while", "scan"):
        return []
    body = op.regions[-1]
    still = set(body.params[: op.attrs["consts"]])
    invariants = []
    for inner in body.ops:
        if still.issuperset(inner.operands) and can_hoist(inner):
            still.update(inner.results)
            if not is_cheap(inner) and inner.operands:
                invariants.append(inner)
    return invariants


def _lifted(b: Builder, op: Op, roots: list[Op]) -> Op:
    """`op` with the results of `roots` as more loop invariants, which are computed before it."""
    consts = op.attrs["consts"]
    body = op.regions[-1]
    env = dict(zip(body.params[:consts], op.operands[:consts], strict=True))
    needed = {v for root in roots for v in root.operands}
    chain = []
    for inner in reversed(body.ops):
        if inner in roots or any(v in needed for v in inner.results):
            needed.update(inner.operands)
            chain.append(inner)
    for inner in reversed(chain):
        b.copy(inner, env)
    values = [v for root in roots for v in root.results]
    regions = [_with_consts(r, consts, values, r is body) for r in op.regions]
    operands = [*op.operands[:consts], *(env[v] for v in values), *op.operands[consts:]]
    attrs = {**op.attrs, "consts": consts + len(values)}
    return op.with_operands(operands, tuple(regions), attrs)


def _with_consts(graph: Graph, consts: int, values: list[Value], inside: bool) -> Graph:
    """`graph` with `values` as parameters behind the first `consts`; `inside`, they are its own."""
    new = Graph(graph.name)
    env = {v: new.add_param(v.type, v.name) for v in graph.params[:consts]}
    params = {v: new.add_param(v.type, v.name) for v in values}
    env.update((v, new.add_param(v.type, v.name)) for v in graph.params[consts:])
    hoisted = params if inside else {}
    env.update(hoisted)
    b = Builder(new)
    for op in graph.ops:
        if not all(v in hoisted for v in op.results) or not op.results:
            b.copy(op, env)
    new.outputs = [env[v] for v in graph.outputs]
    return new
