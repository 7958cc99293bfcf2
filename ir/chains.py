"""What each iteration of a loop hands to the next: counters, sums, products, extremes, other things."""

from __future__ import annotations

from collections.abc import Sequence

from .graph import Graph, Op, Value
from .opdef import OPS
from .subgraphs import behind, between
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
    return not on.isdisjoint(behind([value]))


def chain_of(output: Value, param: Value) -> Chain:
    """`output` as `param` with one kind of operation, perhaps again, perhaps guarded. Raises Broken."""
    chain = Chain()
    _follow(output, param, chain)
    return chain


def _follow(output: Value, param: Value, chain: Chain) -> None:
    moving = between([param], [output])
    pending, seen = [output], {param}
    while pending:
        value = pending.pop()
        if value in moving and value not in seen:
            seen.add(value)
            pending += _before(value, moving, chain)


def _before(value: Value, moving: set[Value], chain: Chain) -> Sequence[Value]:
    """The operands by which the running value may come to `value`; `moving` depends on that."""
    op = value.op
    assert op is not None
    if op.name in ("convert", "optimization_barrier"):
        return [op.operands[value.index]]
    if combination(op):
        running = [v for v in op.operands if v in moving]
        chain.groups.add(combination(op))
        if len(running) > 1 or len(chain.groups) > 1:
            raise Broken(op)
        if op.name in INVERSE and running[0] is not op.operands[0]:
            raise Broken(op)
        return running
    if op.name == "select":
        chain.guarded |= op.operands[0] in moving
        return op.operands[1:]
    if op.name == "cond":
        chain.guarded |= op.operands[0] in moving
        for region in op.regions:
            pairs = zip(region.params, op.operands[1:], strict=True)
            own = [p for p, v in pairs if v in moving]
            _follow_inside(region.outputs[value.index], own, op, chain)
        return op.operands[1:]
    if op.name in ("scan", "while"):
        return _before_loop(op, value.index, moving, chain)
    raise Broken(op)


def _before_loop(op: Op, index: int, moving: set[Value], chain: Chain) -> Sequence[Value]:
    output, own, moved = through(op, index, moving)
    if op.name == "while":
        (goes_on,) = op.regions[0].outputs
        chain.guarded |= depends(goes_on, {op.regions[0].params[p.index] for p in moved})
    _follow_inside(output, own, op, chain)
    return [op.operands[op.attrs["consts"] + index]]


def through(op: Op, index: int, moving: set[Value]) -> tuple[Value, list[Value], set[Value]]:
    """A running value on its way through an inner loop: what an iteration makes of it, the parameter by
    which it comes in (none, or one), and all carries that depend on it. Raises Broken if it comes in by
    another one, or comes back to itself by way of another."""
    body, first = op.regions[-1], op.attrs["consts"]
    carries = body.params[first : first + op.attrs.get("carries", len(op.results))]
    own = [p for p, v in zip(body.params, op.operands, strict=True) if v in moving]
    if index >= len(carries) or any(p is not carries[index] for p in own):
        raise Broken(op)
    moved = _moved(body, carries, own)
    if depends(body.outputs[index], moved - {carries[index]}):
        raise Broken(op)
    return body.outputs[index], own, moved


def _follow_inside(output: Value, own: Sequence[Value], op: Op, chain: Chain) -> None:
    if len(own) > 1:
        raise Broken(op)
    for p in own:
        _follow(output, p, chain)


def _moved(body: Graph, carries: Sequence[Value], own: Sequence[Value]) -> set[Value]:
    """`own` and the carries that are computed from them, in the same iteration or in a later one."""
    moved, met = set(own), set[Value]()
    while moved != met:
        met = set(moved)
        pairs = zip(carries, body.outputs, strict=False)  # what is stacked comes behind
        moved |= {p for p, output in pairs if depends(output, met)}
    return moved
