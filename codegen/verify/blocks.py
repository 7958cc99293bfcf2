"""Units of row blocks keep apart: none touches what another one writes, or more than its own of what is
local. Found by the elements that some units touch, not by the spans that the pass knows."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import NamedTuple

from ..loop_ir.footprints import Footprint, footprints
from ..loop_ir.steps import Matmul, Part, RowBlocks
from ..schedule.regions import Region, apart, covers, in_rows, interval
from ..schedule.schedule import Schedule
from .errors import StepError, name_of


class _Touch(NamedTuple):
    """What an access touches in one unit of row blocks, or a part of that."""

    access: Footprint
    region: Region


def check_units(blocks: RowBlocks) -> None:
    """No unit touches what another one writes, or more than its own of what is local."""
    for part in blocks.parts:
        _check_plan(part, blocks.units)
    looked_at = sorted({0, 1, blocks.units // 2, blocks.units - 2, blocks.units - 1})
    touched = {u: _touched(blocks, u) for u in looked_at if 0 <= u < blocks.units}
    for u, here in touched.items():
        for (_, array, *_), region in here:
            own = blocks.local.get(array)
            if own is not None and not covers(interval(own * u, own), region):
                raise StepError(f"unit {u} of {name_of(blocks)} leaves its part of {array!r}")
        for v in (v for v in touched if v > u):
            for (a, at), (b, there) in product(here, touched[v]):
                # The points of one stage write different elements, even where these are interleaved.
                meeting = a.array is b.array and not (a.by is b.by and a.writes and b.writes)
                if meeting and (a.writes or b.writes) and not apart(at, there):
                    raise StepError(
                        f"units {u} and {v} of {name_of(blocks)} meet in {a.array!r}: "
                        f"{at.low}..{at.high} and {there.low}..{there.high}"
                    )


def _touched(blocks: RowBlocks, unit: int) -> list[_Touch]:
    touches: list[_Touch] = []
    for part in blocks.parts:
        first, last = unit * part.length, min((unit + 1) * part.length, part.total) - 1
        accesses = footprints(part.step, part.total)
        if accesses is None:
            raise StepError(f"{name_of(part.step)} has no {part.total} rows")
        touches += [_Touch(a, r) for a in accesses for r in in_rows(a.flat, a.rows, first, last)]
    return touches


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
    overlap = plan.cross is not None and (
        plan.cross.extent % plan.width or loops[-1].extent % plan.width
    )
    if overlap and not part.step.idempotent:
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
        position, step_number = divmod(position, count)
        at[var] = step_number * step
    point = 0
    for var in plan.outer.vars:
        point = point * var.extent + at[var]
    return point
