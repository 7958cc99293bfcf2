"""Units of row blocks keep apart: none touches what another one writes, or more than its own of what is
local. Found by the ranges of indices in the rows of some units, not by the spans that the pass knows."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any, NamedTuple

from ..index import Data, Var, contiguous_strides, linear, of_var
from ..kernel import Array, Kernel
from ..schedule import Schedule
from ..steps import Matmul, Part, RowBlocks
from .errors import StepError, name_of


class _Reach(NamedTuple):
    """The elements of an array that a stage or product touches in a unit of row blocks lie in lo..hi."""

    by: Any
    array: Array
    lo: int
    hi: int
    writes: bool


def check_units(blocks: RowBlocks) -> None:
    """No unit touches what another one writes, or more than its own of what is local."""
    for part in blocks.parts:
        _check_plan(part, blocks.units)
    looked_at = sorted({0, 1, blocks.units // 2, blocks.units - 2, blocks.units - 1})
    reaches = {u: _unit_reaches(blocks, u) for u in looked_at if 0 <= u < blocks.units}
    for u, here in reaches.items():
        for reach in here:
            own = blocks.local.get(reach.array)
            if own is not None and (reach.lo < own * u or reach.hi >= own * (u + 1)):
                raise StepError(f"unit {u} of {name_of(blocks)} leaves its part of {reach.array!r}")
        for v in (v for v in reaches if v > u):
            for a, b in product(here, reaches[v]):
                # The points of one stage write different elements, even where these are interleaved.
                apart = a.array is not b.array or (a.by is b.by and a.writes and b.writes)
                if not apart and (a.writes or b.writes) and a.hi >= b.lo:
                    raise StepError(
                        f"units {u} and {v} of {name_of(blocks)} meet in {a.array!r}: "
                        f"{a.lo}..{a.hi} and {b.lo}..{b.hi}"
                    )


def _unit_reaches(blocks: RowBlocks, unit: int) -> list[_Reach]:
    found: list[_Reach] = []
    for part in blocks.parts:
        first, last = unit * part.length, min((unit + 1) * part.length, part.total) - 1
        if isinstance(part.step, Matmul):
            found += _product_reaches(part.step, first, last)
        else:
            found += _kernel_reaches(part.step, part.total, first, last)
    return found


def _product_reaches(step: Matmul, first: int, last: int) -> list[_Reach]:
    between, row, column = step.a_strides
    corners = [
        step.a_offset + r // step.m * between + r % step.m * row + k * column
        for r in (first, last)
        for k in (0, step.k - 1)
    ]
    return [
        _Reach(step, step.a, min(corners), max(corners), False),
        _Reach(step, step.b, 0, step.b.size - 1, False),
        _Reach(step, step.c, first * step.n, (last + 1) * step.n - 1, True),
    ]


def _kernel_reaches(kernel: Kernel, total: int, first: int, last: int) -> list[_Reach]:
    """Of the arrays outside of a kernel, what is touched in the rows first..last of `total`."""
    rank = next(d for d in range(len(kernel.extents) + 1) if prod(kernel.extents[:d]) == total)
    row = of_var(Var("row", last - first + 1)) + first
    found: list[_Reach] = []
    for stage in kernel.stages:
        weights = contiguous_strides(stage.extents[:rank])
        at = {v: (row // w) % v.extent for v, w in zip(stage.dims[:rank], weights, strict=True)}
        accesses = [(a.array, a.index, False) for a in stage.reads]
        for array, index, writes in [*accesses, (stage.array, stage.index, True)]:
            if array not in kernel.local:
                flat = linear(index, array.strides)
                data = any(isinstance(atom, Data) for atom in flat.terms)
                lo, hi = (0, array.size - 1) if data else flat.substitute(at).range()
                found.append(_Reach(stage, array, lo, hi, writes))
    return found


def _check_plan(part: Part, units: int) -> None:
    """The part of a schedule's range that a unit gets begins where the unit's rows do."""
    if isinstance(part.step, Matmul):
        return
    plan = part.plan
    loops = plan.outer.vars
    points = prod(v.extent for v in loops)
    each = part.length * (plan.range // part.total)
    for unit in {1, units - 1}:
        begins = _first_point(plan, unit * each)
        if begins != unit * part.length * points // part.total:
            raise StepError(f"{name_of(part.step)} does not go by the rows of its unit")
    if plan.cross is not None and (plan.cross.extent % plan.width or loops[-1].extent % plan.width):
        written = {s.array for s in part.step.stages} - part.step.local
        if any(a.array in written for s in part.step.stages for a in s.reads):
            raise StepError(f"{name_of(part.step)} does points twice, and reads what it writes")
    least = min(part.length, part.total - (units - 1) * part.length) * (plan.range // part.total)
    if plan.split_last and not plan.tile and plan.width > least:
        raise StepError(f"{name_of(part.step)} has vectors longer than a unit")


def _first_point(plan: Schedule, position: int) -> int:
    """Where, among all outer points in order, that position of a schedule's range begins."""
    *others, last = plan.outer.vars
    walked = [(v, v.extent, 1) for v in others if v is not plan.cross]
    if plan.cross is not None:
        walked.append((plan.cross, plan.cross_tiles, plan.cross_tile))
    if plan.tile:
        walked.append((last, plan.tiles, plan.tile))
    elif plan.mode == "inner":
        walked.append((last, last.extent, 1))
    elif plan.split_last:
        walked = [(last, last.extent, 1)]
    at = dict.fromkeys(plan.outer.vars, 0)
    for var, count, step in reversed(walked):
        position, place = divmod(position, count)
        at[var] = place * step
    point = 0
    for var in plan.outer.vars:
        point = point * var.extent + at[var]
    return point
