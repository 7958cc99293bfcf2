"""What stages and steps read, as who wrote it: every rewriting of them has to keep that.

    before = flow(items)
    steps = fuse(items)
    check_flow(before, steps, keep)

This compares what programs mean: it knows nothing of how a pass reasons, of its windows, counts or
spans. What it takes on trust is that a stage says truly what it reads and writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..loop_ir.kernel import Array, Kernel, Stage
from ..loop_ir.steps import Matmul, RowBlocks, Tiled, touched
from .errors import StepError, name_of


class Version(NamedTuple):
    """The contents of an array, as who wrote them: `base` stands for the last writer of all of it, or
    for all that wrote in an order; `pieces` for those who wrote parts since, in any order."""

    base: int
    pieces: int


class Flow(NamedTuple):
    """For each stage or step what it reads, what is left in each array in the end, and the steps that
    must not be exchanged: those that are more than arithmetic."""

    reads: dict[Any, tuple[Version, ...]]
    left: dict[Array, Version]
    effects: list[Any]


def flow(items: Iterable[Any]) -> Flow:
    """What is read by `items`: stages and steps in the order of their execution."""
    now: dict[Array, Version] = {}
    sources: dict[Any, tuple[Version, ...]] = {}

    def version(array: Array) -> Version:
        return now.get(array) or Version(hash(array) if array.kind == "input" else 0, 0)

    for leaf in leaves(items):
        reads, writes = accesses(leaf)
        if leaf in sources:
            raise StepError(f"a step stands twice: {name_of(leaf)}")
        sources[leaf] = tuple(version(a) for a in reads)
        for array in writes:
            old = version(array)
            if isinstance(leaf, Matmul) or (isinstance(leaf, Stage) and leaf.whole):
                now[array] = Version(hash((0, leaf)), 0)
            elif isinstance(leaf, Stage) and leaf.action == "store" and not leaf.ordered:
                now[array] = Version(old.base, old.pieces + hash((1, leaf)))
            else:
                now[array] = Version(hash((old, leaf)), 0)
    return Flow(sources, now, [s for s in sources if not isinstance(s, (Stage, Matmul, Tiled))])


def leaves(items: Iterable[Any]) -> Iterator[Any]:
    """Stages, and steps that are not made of stages."""
    for item in items:
        if isinstance(item, Kernel):
            yield from item.stages
        elif isinstance(item, RowBlocks):
            yield from leaves(parts_of(item))
        else:
            yield item


def parts_of(step: Any) -> list[Any]:
    """The steps that row blocks are made of."""
    return [part.step for part in step.parts] if isinstance(step, RowBlocks) else []


def accesses(leaf: Any) -> tuple[list[Array], list[Array]]:
    """The arrays that a step reads, and those that it writes."""
    if isinstance(leaf, Stage):
        return [a.array for a in leaf.reads], [leaf.array]
    reads, writes = touched(leaf)
    return reads, list(dict.fromkeys(writes))


def check_flow(before: Flow, steps: Sequence[Any], keep: Collection[Array]) -> None:
    """Compare what steps read, and what they leave in `keep`, with how it was before a rewriting."""
    after = flow(steps)
    for leaf in before.reads.keys() | after.reads.keys():
        if leaf not in after.reads or leaf not in before.reads:
            lost = "is lost" if leaf not in after.reads else "is new"
            raise StepError(f"a step {lost}: {name_of(leaf)}")
        for k, (old, new) in enumerate(zip(before.reads[leaf], after.reads[leaf], strict=True)):
            if old != new:
                array = accesses(leaf)[0][k]
                raise StepError(f"{name_of(leaf)} reads {array!r} when another step has written it")
    if before.effects != after.effects:
        raise StepError("steps with effects are in another order")
    for array in keep:
        if before.left.get(array) != after.left.get(array):
            raise StepError(f"{array!r} is left with the work of other steps")
