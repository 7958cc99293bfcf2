"""Points of one thread that share what they read: neighbours along loops other than the last.

    before: thread (i, j): y[i, j] = x[i - 1, j] + x[i, j] + x[i + 1, j]              three loads for one
    after:  thread (u, j): y[4 u, j] = x[4 u - 1, j] + ..., ..., y[4 u + 3, j] = ...  six for four

The loop is written as 4 u + t, so positions that are equal have equal texts, and are loaded once: so
are stencils, windows that overlap, and what is computed of one row of them. Where elements are found by
division (what a window by strides reaches back to), most conditions are known then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from ..loop_ir.index import Index, Var, linear, variables
from ..loop_ir.kernel import Kernel
from ..scalar import Expr
from ..schedule.survey import loads

if TYPE_CHECKING:
    from .schedule import Schedule

TIMES = (2, 3, 4, 8)  # points of a thread along a loop
GAIN = 1.2  # how many times fewer loads are worth it
UNEVEN = 1.15  # what it costs that some threads have fewer points, which they do one by one
WRITTEN = 1200  # nodes of all points together, up to which they are written out

Beside = tuple[tuple[Var, int], ...]  # loops, and how many neighbours along each a thread has


def beside(kernel: Kernel, plan: Schedule, least: int) -> Beside:
    """Loops along which a thread of a kernel takes neighbours; at least so many threads are left."""
    made = {s.array for s in kernel.stages}
    if any(s.action != "store" for s in kernel.stages) or any(n.extents for n in kernel.nests):
        return ()
    if kernel.ordered or any(v.loops or v.checks for v in plan.surveys.values()):
        return ()
    read = [e for s in kernel.stages for e in loads(s.value) if e.attr.array not in kernel.local]
    *others, last = plan.outer.vars
    if any(e.attr.array in made for e in read) or last.extent % plan.lanes:
        return ()
    nodes = plan.lanes * sum(v.size + 1 for v in plan.surveys.values())
    chosen: Beside = ()
    before = _loads_per_point(read, chosen, plan)
    for _ in others:
        options = []
        for var in others:
            for times in TIMES:
                more = (*chosen, (var, times))
                points = math.prod(n for _, n in more)
                left = plan.units // points
                fits = times <= var.extent and left >= least and nodes * points <= WRITTEN
                if fits and all(var is not v for v, _ in chosen) and _moves(read, var, plan):
                    count = _loads_per_point(read, more, plan)
                    options.append((count if var.extent % times == 0 else UNEVEN * count, more))
        if not options:
            break
        best = min(count for count, _ in options)
        count, more = next(f for f in options if f[0] <= best * 1.1)  # the fewest points that do
        if before < GAIN * count:
            break
        chosen, before = more, count
    return chosen


def _moves(read: Sequence[Expr], var: Var, plan: Schedule) -> bool:
    """Whether neighbours along a loop read other elements, some of which may be the same."""
    return any(var in variables(i.substitute(plan.outer.env)) for e in read for i in e.attr.index)


def offsets(chosen: Beside) -> Iterator[tuple[int, ...]]:
    """Where a thread's points are: for each, how far from its first one along each loop of `chosen`."""
    return product(*(range(times) for _, times in chosen))


def at_neighbour(
    env: Mapping[Var, Index], groups: Mapping[Var, Var], chosen: Beside, offset: Sequence[int]
) -> dict[Var, Index]:
    """The loops of a kernel in terms of groups of neighbours, at one of these."""
    moved = {
        var: Index(0, {groups[var]: times}) + t
        for (var, times), t in zip(chosen, offset, strict=True)
    }
    return {v: index.substitute(moved) for v, index in env.items()}


def _loads_per_point(read: Sequence[Expr], chosen: Beside, plan: Schedule) -> float:
    groups = {var: group_of(var, times) for var, times in chosen}
    elements: set[tuple[object, Index]] = set()
    for offset in offsets(chosen):
        env = at_neighbour(plan.outer.env, groups, chosen, offset)
        for load in read:
            if not any(_never(guard, env) for guard in load.args):
                flat = linear(load.attr.index, load.attr.array.strides)
                elements.add((load.attr.array, flat.substitute(env)))
    return len(elements) / math.prod(times for _, times in chosen)


def _never(guard: Expr, env: Mapping[Var, Index]) -> bool:
    """Whether a condition is known not to hold."""
    if guard.op == "and":
        return any(_never(a, env) for a in guard.args)
    if guard.op != "eq" or guard.args[0].op != "index" or guard.args[1].op != "const":
        return False
    index = guard.args[0].attr.substitute(env)
    return not index.terms and index.const != guard.args[1].attr


def group_of(var: Var, times: int) -> Var:
    """The loop over groups of neighbours."""
    return Var("group", -(-var.extent // times))
