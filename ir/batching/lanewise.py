"""From structured scalar code to `lanes_while`: control flow that each element follows for itself.

A scalar graph of elementwise ops, branches and loops becomes one of elementwise ops and
`lanes_while` alone: branches are all computed and selected from; a loop in a branch runs only for the
lanes that take it, because its condition is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..build import Builder
from ..graph import Graph, Op, Value
from ..opdef import OpDef
from ..types import BOOL, TensorType


def is_lanewise(definition: OpDef) -> bool:
    """Whether an op may stand in the regions of `lanes_while`."""
    return definition.family == "elementwise" or definition.name in ("constant", "lanes_while")


def lanewise_loop(op: Op, *, masked: bool) -> tuple[Graph, Graph] | None:
    """The regions of the `lanes_while` that does what the `while` op does in each lane, or None.

    With `masked` the regions take a first bool: whether the lane takes part at all.
    """
    try:
        test, body = (
            _flat(region, masked=masked, test=k == 0) for k, region in enumerate(op.regions)
        )
    except _NotLanewiseError:
        return None
    return test, body


class _NotLanewiseError(Exception):
    """A graph holds something that a single lane cannot do."""


def _flat(region: Graph, *, masked: bool, test: bool) -> Graph:
    new = Graph(region.name)
    active = new.add_param(TensorType((), BOOL), "active") if masked else None
    if any(not _is_scalar(v) for v in (*region.params, *region.outputs)):
        raise _NotLanewiseError
    params = [new.add_param(v.type, v.name) for v in region.params]
    b = Builder(new)
    new.outputs = _inline(b, region, params, active)
    if test and active is not None:
        new.outputs = [b.bitwise_and(active, new.outputs[0])]
    return new


def _is_scalar(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.shape == ()


def _inline(
    b: Builder, graph: Graph, arguments: Sequence[Value], active: Value | None
) -> list[Value]:
    """Append what `graph` computes; loops run only where `active` holds."""
    env = dict(zip(graph.params, arguments, strict=True))
    for op in graph.ops:
        if any(not _is_scalar(v) for v in (*op.operands, *op.results)):
            raise _NotLanewiseError
        operands = [env[v] for v in op.operands]
        with b.at(op.loc):
            if op.name == "cond":
                results = _branches(b, op, operands, active)
            elif op.name in ("while", "lanes_while"):
                results = _loop(b, op, operands, active)
            elif is_lanewise(op.definition):
                results = list(b.append(op.definition, operands, op.attrs, op.regions).results)
            elif op.definition.view or op.name == "optimization_barrier":  # from 0-d to 0-d
                results = operands
            else:
                raise _NotLanewiseError
        env.update(zip(op.results, results, strict=True))
    return [env[v] for v in graph.outputs]


def _branches(b: Builder, op: Op, operands: Sequence[Value], active: Value | None) -> list[Value]:
    index, *inputs = operands
    last = len(op.regions) - 1
    index = b.minimum(b.maximum(index, b.full_like(index, 0)), b.full_like(index, last))
    results: list[Value] = []
    for k, region in enumerate(op.regions):
        is_taken = b.eq(index, b.full_like(index, k))
        inside = is_taken if active is None else b.bitwise_and(active, is_taken)
        out = _inline(b, region, inputs, inside)
        results = (
            [b.select(is_taken, new, old) for new, old in zip(out, results, strict=True)]
            if k
            else out
        )
    return results


def own_attrs(op: Op) -> dict[str, Any]:
    """The attributes of a `while` whose iterations are counted by nobody any more."""
    return {name: value for name, value in op.attrs.items() if name != "independent"}


def _loop(b: Builder, op: Op, operands: Sequence[Value], active: Value | None) -> list[Value]:
    regions = lanewise_loop(op, masked=active is not None)
    if regions is None:
        raise _NotLanewiseError
    attrs = own_attrs(op)
    if active is not None:
        operands = [active, *operands]
        attrs["consts"] += 1
    results = b.op("lanes_while", *operands, regions=regions, **attrs)
    return list(results) if isinstance(results, tuple) else [results]
