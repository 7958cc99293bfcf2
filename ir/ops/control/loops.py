"""What the derivatives of loops share: which carries take part, and how cotangents add up.

A loop body is a graph from (consts..., carries..., others...) to (carries..., others...). A carry is
*varied* if it depends on what is differentiated in some iteration, and *useful* if a result that has a
cotangent depends on it; derivatives carry the ones that are both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...autodiff.residuals import Split, split
from ...autodiff.transform import is_differentiable, reach, vjp_undoing
from ...autodiff.undo import trails_worth
from ...graph import Graph, Value, uniform
from ...record import record
from ...types import I64, TensorType

_COUNTER = TensorType((), I64)


@record
class Flow:
    """Positions among the body's parameters (`wrt`) and outputs (`outputs`) that take part."""

    consts: list[int]
    carries: list[int]  # numbered from the first carry: at consts + i among the parameters
    xs: list[int]  # likewise
    ys: list[int]


def varied_carries(body: Graph, consts: int, carries: int, varied: Sequence[bool]) -> list[bool]:
    """For each output of `body` whether it varies with the parameters marked in `varied`."""
    wrt = {i for i, g in enumerate(varied) if g and is_differentiable(body.params[i].type)}
    while True:
        _, out = reach(body, wrt, range(len(body.outputs)))
        more = {consts + i for i in range(carries) if out[i]} - wrt
        if not more:
            moving = [consts + i in wrt for i in range(carries)]
            return moving + out[carries:]
        wrt |= more


def flow(
    body: Graph, consts: int, carries: int, wanted: Sequence[bool], needed: Sequence[bool]
) -> Flow:
    """What reverse mode differentiates, for the operands and results of the loop that are marked."""
    varied = varied_carries(body, consts, carries, wanted)
    floats = [is_differentiable(v.type) for v in body.params]
    wrt = [
        i
        for i in range(len(body.params))
        if floats[i] and (varied[i - consts] if consts <= i < consts + carries else wanted[i])
    ]
    ends = {i for i, v in enumerate(varied) if v and needed[i]}
    while True:
        used, _ = reach(body, wrt, ends)
        more = {i for i in range(carries) if varied[i] and used[consts + i]} - ends
        if not more:
            break
        ends |= more
    active = [i for i in wrt if used[i]]
    return Flow(
        [i for i in active if i < consts],
        sorted(i for i in ends if i < carries),
        [i - consts - carries for i in active if i >= consts + carries],
        sorted(i - carries for i in ends if i >= carries),
    )


def invariant_carries(body: Graph, consts: int, carries: int) -> list[int]:
    """The carries that the body gives back as they are."""
    return [i for i in range(carries) if body.outputs[i] is body.params[consts + i]]


def counters(body: Graph, consts: int, carries: int) -> dict[int, int]:
    """The carries that count iterations: by the position of each, what an iteration adds to it.

    Going back, an iteration's value is the next one's less that: nothing has to be kept.
    """
    found = {}
    for i in range(carries):
        param, op = body.params[consts + i], body.outputs[i].op
        if param.type != _COUNTER or op is None or op.name not in ("add", "sub"):
            continue
        if param not in op.operands or (op.name == "sub" and op.operands[0] is not param):
            continue
        step = uniform(op.operands[1] if op.operands[0] is param else op.operands[0])
        if step is not None:
            found[i] = int(step) if op.name == "add" else -int(step)
    return found


def parted(
    body: Graph,
    wrt: Sequence[int],
    outputs: Sequence[int],
    free: Collection[int],
    invariant: Collection[int],
    moving: Mapping[int, int],
) -> tuple[Split, list[int], Graph]:
    """The parts of a loop's body, the outputs that they undo, and the graph of both parts.

    `moving` are the outputs that may be undone, with the parameters of which they are the next ones.
    An array of which an iteration changes little is undone rather than kept whole.
    """
    joint, offers = vjp_undoing(body, wrt, outputs, ())
    ends = len(body.params), len(body.outputs)
    parts = split(joint, *ends, free, invariant)
    trails = trails_worth(body, moving, parts.saved, offers)
    if trails:
        other, _ = vjp_undoing(body, wrt, outputs, trails)
        undone = split(other, *ends, free, invariant)
        if _size(undone) < _size(parts):
            return undone, [trail.output for trail in trails], other
    return parts, [], joint


def _size(parts: Split) -> int:
    return sum(v.nbytes for v in parts.saved)


def wrapped(n: int) -> int:
    """`n` as integers of 64 bits have it."""
    return (n + (1 << 63)) % (1 << 64) - (1 << 63)


def tensors(values: Sequence[Value], positions: Collection[int]) -> list[int]:
    """Which of `positions` are tensors, not tokens or tapes."""
    return [i for i in positions if isinstance(values[i].type, TensorType)]
