"""Accesses of kernels: stages stay within arrays and write each element once; those that share
loops meet in an array at the same point."""

from __future__ import annotations

from math import prod

from ..loop_ir.index import Index, Var, contiguous_strides, linear, of_var, variables
from ..loop_ir.kernel import Access, Kernel, Stage
from ..schedule.regions import Region, apart, one_to_one, region, within
from ..schedule.survey import loads
from .errors import StepError, name_of


def check_accesses(kernel: Kernel) -> None:
    """Check the accesses of each stage, and of those that meet in an array."""
    for stage in kernel.stages:
        _check_within(stage)
        if stage.action in ("store", "reduce", "scan"):
            _check_once(stage)
        elif stage.shared:
            _check_shared(stage)
    if not kernel.ordered:
        _check_points(kernel)


def _check_within(stage: Stage) -> None:
    """What is written is a part of the array, and so is what is read under no condition."""
    plain = [load.attr for load in loads(stage.value) if not load.args]
    for access in (stage.write, *plain):
        for env in _environments(stage):
            if not within([i.substitute(env) for i in access.index], access.array.shape):
                raise StepError(f"{name_of(stage)} leaves its array: {access!r}")


def _environments(stage: Stage) -> list[dict[Var, Index]]:
    """What loops run over: all of theirs, or those of whole chunks, and those of the last one."""
    if stage.chunks is None:
        return [{}]
    axis, length, total = stage.chunks
    chunk, within_chunk = stage.dims[axis], stage.dims[stage.outer]
    last = chunk.extent - 1
    rest = {chunk: Index(last), within_chunk: of_var(Var("rest", total - last * length))}
    return [{chunk: of_var(Var("whole", last))}, rest] if last else [rest]


def _check_once(stage: Stage) -> None:
    """Each element is written at one point, and all are if the stage says so."""
    array = stage.array
    flat = linear(stage.index, contiguous_strides(array.shape))
    loops = stage.dims[: stage.outer] if stage.action == "reduce" else stage.dims
    points, before = 0, list[Region]()
    for env in _environments(stage) if stage.action == "scan" else [{}]:
        walked = set(loops) - env.keys() | {v for i in env.values() for v in variables(i)}
        at = flat.substitute(env)
        if not one_to_one(at, walked) or not all(apart(region(at), other) for other in before):
            raise StepError(f"{name_of(stage)} may write an element twice, at {stage.index}")
        points += prod(v.extent for v in walked)
        before.append(region(at))
    if stage.whole and points != array.size:
        raise StepError(f"{name_of(stage)} writes {points} of its {array.size} elements")


def _check_shared(stage: Stage) -> None:
    """The loops of an update that threads share write elements of their own."""
    loops = stage.dims[: stage.shared]
    own = [(i, n) for i, n in zip(stage.index, stage.array.shape, strict=True) if i.strides(loops)]
    strides = contiguous_strides(tuple(n for _, n in own))
    if not one_to_one(linear([i for i, _ in own], strides), loops):
        raise StepError(f"{name_of(stage)} writes an element in two threads, at {stage.index}")


def _check_points(kernel: Kernel) -> None:
    """Stages of one kernel meet in an array at the same outer point, in one nest at the same point:
    what else is there may not be written yet, or be overwritten already."""
    stages = [(nest, stage) for nest in kernel.nests for stage in nest.stages]
    for there, maker in stages:
        for nest, stage in stages:
            loops = len(stage.dims) if there is nest else len(kernel.extents)
            for access in stage.reads if stage is maker else stage.accesses:
                if access.array is maker.array and not _kept_apart(stage, access, maker, loops):
                    raise StepError(
                        f"{name_of(kernel)}: {name_of(stage)} touches {access!r} at other points "
                        f"than those at which {name_of(maker)} writes it"
                    )


def _kept_apart(stage: Stage, access: Access, maker: Stage, loops: int) -> bool:
    """Whether an access is to no element that another stage writes, unless at the same point of so many
    loops. (The points of one stage write different elements.)"""
    shared = maker.dims[:loops]
    same = {own: of_var(other) for own, other in zip(stage.dims, shared, strict=False)}
    meeting = (
        here.substitute(same) == there
        for here, there in zip(access.index, maker.index, strict=True)
        if not variables(there).isdisjoint(shared)
    )
    return all(meeting) or apart(region(access.flat), region(maker.write.flat))
