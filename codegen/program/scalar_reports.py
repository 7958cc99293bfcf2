"""What `explain` says of scalar code: its loops and branches, and how many operations are in them."""

from __future__ import annotations

from collections.abc import Mapping

from ..loop_ir.scalar_code import Body, Choose, Repeat, flops
from ..module import BlockReport, StepReport


def scalar_block(
    body: Body, slots: Mapping[int, int] = {}, text: str = "", times: int | None = 1
) -> BlockReport:
    """The loops and branches of a block, in order, with what the block computes beside them.

    `slots` are the numbers of the blocks' probes, by identity.
    """
    steps = []
    for s in body.statements:
        if isinstance(s, Repeat):
            steps.append(_loop(s, slots))
        elif isinstance(s, Choose):
            names = branch_names(len(s.blocks))
            named = zip(s.blocks, names, strict=True)
            blocks = [scalar_block(block, slots, name, None) for block, name in named]
            if any(block.steps or block.flops for block in blocks):
                ordered = blocks[::-1] if len(blocks) == 2 else blocks
                steps.append(StepReport("branch", blocks=tuple(ordered), chooses=True))
    return BlockReport(text, tuple(steps), slots.get(id(body), -1), times, flops(body))


def branch_names(count: int) -> list[str]:
    """What the branches of a condition are called, by their numbers."""
    return ["else", "if"] if count == 2 else [f"case {k}" for k in range(count)]


def total_flops(block: BlockReport) -> int:
    """Of one run of a block, with what is in it: loops that nobody can count run once, the dearer of the
    branches is taken."""
    total = block.flops
    for step in block.steps:
        inner = [(1 if b.times is None else b.times) * total_flops(b) for b in step.blocks]
        total += max(inner, default=0) if step.chooses else sum(inner)
    return total


def _loop(loop: Repeat, slots: Mapping[int, int]) -> StepReport:
    known = loop.counter is not None and loop.trips is None and loop.condition is None
    times = loop.length if known else None
    text = "while" if times is None else f"for {times:,} iterations"
    blocks = [scalar_block(loop.body, slots, "", times)]
    if loop.test is not None and loop.test.statements:
        blocks.insert(0, scalar_block(loop.test, slots, "test", times))
    return StepReport(text, loc=loop.loc, blocks=tuple(blocks))
