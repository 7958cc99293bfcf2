"""Sums of products that a loop carries become one product after the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..build import Builder
from ..graph import Graph, Op, Value
from .dead import eliminate_dead_code
from .regions import map_regions, substituted


class _Sum(NamedTuple):
    """Carry number `carry` grows by `dot`, whose operands are stacked: `sources` say where.

    A site is the position of an operand of the scan (one of its xs), or -1 - k for its result k.
    """

    carry: int
    dot: Op
    sources: tuple[int, int]


def gather_sums(graph: Graph) -> Graph:
    """Take a sum of products out of a scan, where all that it reads is stacked anyway.

        %s, %ps = scan ... {                           %s, %ps = scan ... {
          %t = dot %x, %p contract=[[0],[0]] ...
          %n = add %s, %t                         ->     return %p
          return %n, %p                                }
        }                                              %t = dot %xs, %ps contract=[[0,1],[0,1]] ...
                                                       %n = add %init, %t

    x is a slice of the stack xs, and the loop stacks p. The derivative of a recurrent network's
    weights is such a sum. It is the same up to the rounding of a sum whose terms change sources.
    """
    gathered = _gather(graph)
    return graph if gathered is graph else eliminate_dead_code(gathered)


def _gather(graph: Graph) -> Graph:
    graph = map_regions(graph, _gather)

    def gathered(b: Builder, op: Op, operands: Sequence[Value]) -> list[Value] | None:
        sums = _sums(op) if op.name == "scan" else []
        return _without(b, op.with_operands(operands), sums) if sums else None

    return substituted(graph, gathered)


def _sums(op: Op) -> list[_Sum]:
    consts, carries = op.attrs["consts"], op.attrs["carries"]
    (body,) = op.regions
    users = body.users()
    sums = []
    for i in range(carries):
        carry, out = body.params[consts + i], body.outputs[i]
        add = out.op
        if add is None or add.name != "add" or carry not in add.operands or users[carry] != [add]:
            continue
        if users.get(out) or body.outputs.count(out) != 1 or carry in body.outputs:
            continue
        (term,) = [v for v in add.operands if v is not carry] or [carry]
        dot = term.op
        if dot is None or dot.name != "dot" or term.dtype.kind != "f" or users[term] != [add]:
            continue
        sources = [_source_index(op, body, v) for v in dot.operands]
        if term not in body.outputs and None not in sources:
            sums.append(_Sum(i, dot, (sources[0] or 0, sources[1] or 0)))
    return sums


def _source_index(op: Op, body: Graph, value: Value) -> int | None:
    """Where all the values that `value` takes in a loop are stacked."""
    first = op.attrs["consts"] + op.attrs["carries"]
    if value in body.params[first:]:
        return body.params.index(value)
    stacked = body.outputs[op.attrs["carries"] :]
    return -1 - op.attrs["carries"] - stacked.index(value) if value in stacked else None


def _without(b: Builder, op: Op, sums: list[_Sum]) -> list[Value]:
    """The scan's results, those of `sums` computed after it."""
    consts = op.attrs["consts"]
    gone = {s.carry for s in sums}
    (body,) = op.regions
    region = Graph(body.name)
    inner = Builder(region)
    env = {}
    for i, p in enumerate(body.params):
        if i - consts not in gone:
            env[p] = region.add_param(p.type, p.name)
    dropped = {body.outputs[c].op for c in gone}
    for inside in body.ops:
        if inside not in dropped:
            inner.copy(inside, env)
    region.outputs = [env[v] for i, v in enumerate(body.outputs) if i not in gone]
    operands = [v for i, v in enumerate(op.operands) if i - consts not in gone]
    attrs = {**op.attrs, "carries": op.attrs["carries"] - len(gone)}
    results = iter(b.append(op.definition, operands, attrs, [region]).results)
    values: list[Value | None] = [
        None if i in gone else next(results) for i in range(len(op.results))
    ]
    for s in sums:
        left, right = (op.operands[p] if p >= 0 else values[-1 - p] for p in s.sources)
        assert left is not None
        assert right is not None
        (ac, bc), (ab, bb) = s.dot.attrs["contract"], s.dot.attrs["batch"]
        total = b.op(
            "dot",
            left,
            right,
            contract=((0, *_shifted(ac)), (0, *_shifted(bc))),
            batch=(_shifted(ab), _shifted(bb)),
        )
        values[s.carry] = b.add(op.operands[consts + s.carry], total)
    return [v for v in values if v is not None]


def _shifted(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([d + 1 for d in axes])
