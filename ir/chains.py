"""What each iteration of a loop hands to the next: counters, sums, products, extremes, other things."""

from __future__ import annotations

from collections.abc import Sequence

from .graph import Graph, Op, Value
from .opdef import OPS
from .types import is_integer

INVERSE = {"sub": "add", "div": "mul"}  # of which only the left operand may be the running value


class Broken(Exception):
    """The op that makes something else than a sum, a product or an extreme of a running value."""

    def __init__(self, op: Op | None) -> None:
        self.op = op


class Chain:
    """Steps of one kind from a carry to its next value: `groups` has the op that they are, or nothing
    where a branch only chooses between the carry and something else. `guarded`: the running value
    itself decides a branch."""

    def __init__(self) -> None:
        self.groups: set[str] = set()
        self.guarded = False


def step_of(output: Value, param: Value) -> int | None:
    """By how much an iteration moves a carry, if it is always the same."""
    op = output.op
    if op is None or op.name not in ("add", "sub") or op.operands[0] is not param:
        return None
    other = op.operands[1].op
    if other is None or other.name != "constant" or not is_integer(op.result.dtype):
        return None
    step = int(other.attrs["value"].item())
    return -step if op.name == "sub" else step


def combination(op: Op | None) -> str:
    """The operation of a reduction that an op makes a step of; "" if it is none."""
    if op is None:
        return ""
    name = INVERSE.get(op.name, op.name)
    return name if any(d.combiner == name for d in OPS.values()) else ""


def depends(value: Value, on: set[Value]) -> bool:
    """Whether a value is computed from one of `on`."""
    pending, seen = [value], {value}
    while pending:
        v = pending.pop()
        if v in on:
            return True
        new = [u for u in (v.op.operands if v.op else ()) if u not in seen]
        seen.update(new)
        pending += new
    return False


def chain_of(output: Value, param: Value) -> Chain:
    """`output` as `param` with one kind of operation, perhaps again, perhaps guarded. Raises Broken."""
    chain = Chain()
    _follow(output, param, chain)
    return chain


def _follow(value: Value, param: Value, chain: Chain) -> None:
    if value is param or not depends(value, {param}):
        return
    op = value.op
    assert op is not None
    if op.name in ("convert", "optimization_barrier"):
        _follow(op.operands[value.index], param, chain)
    elif combination(op):
        running = [v for v in op.operands if depends(v, {param})]
        chain.groups.add(combination(op))
        if len(running) > 1 or len(chain.groups) > 1:
            raise Broken(op)
        if op.name in INVERSE and running[0] is not op.operands[0]:
            raise Broken(op)
        _follow(running[0], param, chain)
    elif op.name == "select":
        chain.guarded |= depends(op.operands[0], {param})
        for v in op.operands[1:]:
            _follow(v, param, chain)
    elif op.name == "cond":
        chain.guarded |= depends(op.operands[0], {param})
        _follow_branches(op, value, param, chain)
    elif op.name in ("scan", "while"):
        _follow_loop(op, value, param, chain)
    else:
        raise Broken(op)


def _follow_branches(op: Op, value: Value, param: Value, chain: Chain) -> None:
    for region in op.regions:
        pairs = zip(region.params, op.operands[1:], strict=True)
        own = [p for p, v in pairs if depends(v, {param})]
        _follow_inside(region, region.outputs[value.index], own, op, chain)
    for v in op.operands[1:]:
        _follow(v, param, chain)


def _follow_loop(op: Op, value: Value, param: Value, chain: Chain) -> None:
    body, position = op.regions[-1], op.attrs["consts"] + value.index
    pairs = zip(body.params, op.operands, strict=True)
    own = [p for p, v in pairs if depends(v, {param})]
    if own and own != [body.params[position]]:
        raise Broken(op)
    if op.name == "while":
        (goes_on,) = op.regions[0].outputs
        chain.guarded |= bool(own) and depends(goes_on, {op.regions[0].params[position]})
    _follow_inside(body, body.outputs[value.index], own, op, chain)
    _follow(op.operands[position], param, chain)


def _follow_inside(
    region: Graph, output: Value, own: Sequence[Value], op: Op, chain: Chain
) -> None:
    if len(own) > 1:
        raise Broken(op)
    for p in own:
        _follow(output, p, chain)
