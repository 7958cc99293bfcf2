"""Schedules: how the loops of a kernel are laid over the threads of a GPU.

"points": every outer point belongs to one thread, which runs the inner loops by itself. Neighbouring
threads take neighbouring points of the last outer loop; with `lanes` > 1 a thread takes as many
neighbours as one access of 128 bits holds, where most accesses are such.

The kernel itself is not changed: a schedule gives new loop variables and maps the kernel's to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ...ir.record import field, record
from ..index import Index, Var, linear, variables
from ..kernel import Array, Kernel, Stage
from ..schedule import Loops, collapse, inner_loops, mode_of, renamed
from ..signature import Signature
from ..survey import Survey, loads, survey
from .emitter import fits_32_bits
from .target import CudaTarget

ACCESS = 16  # bytes that a thread moves at a time, at the most
LONG = 400  # nodes of all lanes together, up to which a thread takes several points
THREADS = 256


@record(frozen=False, eq=False)
class Schedule:
    form: str
    mode: str
    outer: Loops
    inner: list[Loops]
    surveys: dict[Stage, Survey]
    index_type: str
    lanes: int = 1
    threads: int = THREADS
    blocks: int = 1
    flops: int = 0
    flat: dict[Array, list[Index]] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """How many threads have something to do."""
        *others, last = (v.extent for v in self.outer.vars)
        return math.prod(others) * -(-last // self.lanes)


def schedule(
    kernel: Kernel, own: Signature, alignments: Mapping[Array, int], target: CudaTarget
) -> Schedule:
    surveys = {s: survey(s) for s in kernel.stages}
    outer_env, outer_vars = renamed(kernel)
    flats = [f.substitute(outer_env) for s in surveys.values() for f in s.indices]
    loops = collapse(outer_vars, flats)
    env = {v: i.substitute(loops.env) for v, i in outer_env.items()}
    outer = Loops(loops.vars or (Var("one", 1),), env)
    inner = [inner_loops(nest, len(kernel.extents), surveys) for nest in kernel.nests]
    plan = Schedule("points", mode_of(kernel), outer, inner, surveys, _index_type(kernel, surveys))
    plan.lanes = _lanes(kernel, own, plan, alignments)
    units = plan.units
    while plan.threads > target.WARP and units < plan.threads * target.sms:
        plan.threads //= 2
    plan.blocks = -(-units // plan.threads)
    points = math.prod(kernel.extents)
    for nest in kernel.nests:
        n = points * math.prod(nest.extents)
        plan.flops += n * sum(surveys[s].size for s in nest.stages)
    return plan


def _index_type(kernel: Kernel, surveys: Mapping[Stage, Survey]) -> str:
    """i32 where no position and no count of points needs more."""
    counts = [math.prod(n.extents) * math.prod(kernel.extents) for n in kernel.nests]
    ends = [abs(end) for s in surveys.values() for f in s.indices for end in f.range()]
    sizes = [a.size for s in kernel.stages for a in (s.array, *(r.array for r in s.reads))]
    return "i32" if fits_32_bits([*counts, *ends, *sizes]) else "i64"


def _lanes(kernel: Kernel, own: Signature, plan: Schedule, alignments: Mapping[Array, int]) -> int:
    """How many neighbouring points one thread takes."""
    last, rows = plan.outer.vars[-1], math.prod(v.extent for v in plan.outer.vars[:-1])
    if kernel.ordered or any(v.loops for v in plan.surveys.values()):
        return 1
    if any(s.action not in ("store", "reduce") for s in kernel.stages):
        return 1
    flats = list(_flats(kernel, own, plan))
    sizes = [array.dtype.itemsize for array, flat in flats if flat.coeff(last)]
    nodes = sum(v.size + 1 for v in plan.surveys.values())
    lanes = ACCESS // max(sizes, default=ACCESS)
    while lanes > 1:
        score = 0
        for array, flat in flats:
            if flat.coeff(last) == 1 and flat.is_affine_in(last):
                score += 1 if is_wide(flat, last, lanes, array, alignments[array]) else -1
        enough = plan.units >= lanes * THREADS
        if (
            score > 0
            and enough
            and lanes * nodes <= LONG
            and (rows == 1 or not last.extent % lanes)
        ):
            break
        lanes //= 2
    return lanes


def _flats(kernel: Kernel, own: Signature, plan: Schedule) -> Iterator[tuple[Array, Index]]:
    """Every access of arrays in memory, as offset from where the array's pointer points."""
    for nest, loops in zip(kernel.nests, plan.inner, strict=True):
        env = {**plan.outer.env, **loops.env}
        for stage in nest.stages:
            accesses = [
                (load.attr.array, load.attr.index) for load in loads(stage.value) if not load.args
            ]
            for array, index in (*accesses, (stage.array, stage.index)):
                if array not in kernel.local:
                    flat = linear(index, array.strides, -own.origins[array])
                    yield array, flat.substitute(env)


def is_wide(flat: Index, along: Var, lanes: int, array: Array, alignment: int) -> bool:
    """Whether `lanes` neighbours along a loop, from a multiple of `lanes` on, are one aligned access."""
    if flat.coeff(along) != 1 or alignment % min(lanes * array.dtype.itemsize, ACCESS):
        return False
    rest = [(atom, coeff) for atom, coeff in flat.terms.items() if atom is not along]
    if flat.const % lanes or any(coeff % lanes for _, coeff in rest):
        return False
    return all(along not in variables(Index(0, {atom: 1})) for atom, _ in rest)
