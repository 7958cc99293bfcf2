"""Schedules: how the loops of a kernel are laid over the threads of a GPU.

"points": every outer point belongs to one thread, which runs the inner loops by itself. Neighbouring
threads take neighbouring points of the last outer loop.
"rows": every outer point belongs to a team of threads, which share the inner loops (see `rows`).
Scans have plans of their own (`scan_plan`).

With `lanes` > 1 a thread takes as many neighbours at a time as one access of 128 bits holds, where most
accesses are such.

The kernel itself is not changed: a schedule gives new loop variables and maps the kernel's to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ...ir.record import field, record
from ...ir.types import BOOL
from ..loop_ir.index import Index, Var, linear, of_var
from ..loop_ir.kernel import Array, Kernel, Nest, Stage
from ..scalar import Expr
from ..schedule.regions import aligned
from ..schedule.schedule import Loops, loops_of, mode_of
from ..schedule.signature import Signature
from ..schedule.survey import Survey, crossing, loads
from .emitter import fits_32_bits
from .neighbours import Beside, beside
from .scan_plan import DEEPEST, FULL, ScanTile, column_plan, row_plan, scan_stage
from .target import CudaTarget

ACCESS = 16  # bytes that a thread moves at a time, at the most
LONG = 400  # nodes of all lanes together, up to which a thread takes several points
THREADS = 256  # in a block
ROW_THREADS = 128  # in a block of several teams
MOST_THREADS = 1024
TABLE_BYTES = 24 << 10  # of shared memory for the tables of a block that scatters to few slots
UPDATES = 32  # for each of those slots, from which such tables are worth their handing over
SIDE = 32  # of the squares that are turned over
HELD_BYTES = 64  # of a row that a thread has in registers, for each array
UNROLLED = 2000  # operations of a thread on its part of a row, up to which they are written out


@record
class Row:
    """How a row kernel is run: `team` threads for a row. `unrolled`: each element has a register in the
    program, so that `held` arrays stay in the registers of the threads that made their elements.
    `passed` arrays go from nest to nest through memory.
    """

    team: int
    unrolled: bool
    held: frozenset[Array]
    passed: frozenset[Array]


@record(frozen=False, eq=False)
class Schedule:
    """How a kernel is run on a GPU: which loops blocks and threads take, and how much of each.

    `mode` is a word of `mode_of`. `outer` are the loops over points, collapsed, and `inner` those of
    each nest; `index_type` ("i32" or "i64") holds every offset. A launch has `blocks` of `threads`,
    and each thread takes `lanes` neighbouring points at a time.
    """

    mode: str
    outer: Loops
    inner: list[Loops]
    surveys: dict[Stage, Survey]
    index_type: str
    lanes: int = 1
    threads: int = THREADS
    blocks: int = 1
    flops: int = 0
    row: Row | None = None
    depth: int = 1  # threads to a point, of a column kernel
    tables: int = 0  # in the shared memory of each block, of a kernel that scatters to few slots
    cross: Var | None = None  # some arrays are contiguous along this loop,
    turned: list[Expr] = field(default_factory=list)  # which these loads read (see `transposes`)
    scan: ScanTile | None = None
    beside: Beside = ()  # loops along which a thread takes neighbours (see `neighbours`)

    @property
    def note(self) -> str:
        """The schedule in a few words."""
        if self.tables:
            return f"{self.blocks} blocks of {self.threads} threads, {self.tables} tables each"
        if self.cross is not None:
            return f"{self.blocks} blocks, squares of {SIDE} points turned over"
        if self.scan is not None:
            way = "down a column" if self.scan.down else "along a row"
            return f"{self.blocks} blocks, {self.scan.team} threads scan {way}"
        if self.depth > 1:
            return f"{self.blocks} blocks of {self.depth} threads for a column"
        if self.row is None:
            points = self.lanes * math.prod(times for _, times in self.beside)
            each = f"{points} points" if points > 1 else "one point"
            return f"{self.blocks} blocks of {self.threads} threads, {each} each"
        held = "in registers" if self.row.unrolled else "in loops"
        return f"{self.blocks} blocks, {self.row.team} threads for a row, {held}"

    @property
    def units(self) -> int:
        """How many threads have something to do."""
        times = dict(self.beside)
        *others, last = self.outer.vars
        counts = (-(-v.extent // times.get(v, 1)) for v in others)
        return math.prod(counts) * -(-last.extent // self.lanes)


def schedule(
    kernel: Kernel, own: Signature, alignments: Mapping[Array, int], target: CudaTarget
) -> Schedule:
    """Decide how a kernel is run on `target`.

    `own` is the kernel's signature; `alignments` are those of its arrays' addresses, in bytes. Nothing
    but these decides, so that results are the same from run to run.
    """
    outer, inner, surveys = loops_of(kernel)
    index_type = _index_type(kernel, surveys)
    plan = Schedule(mode_of(kernel), outer, inner, surveys, index_type, row=row_of(kernel, target))
    points = math.prod(kernel.extents)
    plan.cross, plan.turned = _turned(kernel, plan, target)
    if plan.cross is not None:
        squares = [-(-v.extent // SIDE) for v in (plan.cross, outer.vars[-1])]
        rest = [v.extent for v in outer.vars[:-1] if v is not plan.cross]
        plan.blocks = math.prod((*rest, *squares))
    elif scan_stage(kernel) is not None:
        _schedule_scan(kernel, own, plan, alignments)
    elif plan.row is None:
        plan.lanes = _lanes(kernel, own, plan, alignments)
        units = plan.units
        plan.depth = _depth(kernel, plan, target)
        if plan.depth == 1:
            plan.beside = beside(kernel, plan, target.sms * THREADS)
            units = plan.units
        else:
            plan.threads = plan.depth * target.WARP
        while plan.threads > target.WARP and units < plan.threads * target.sms and plan.depth == 1:
            plan.threads //= 2
        plan.blocks = -(-units // (plan.threads // plan.depth))
        _plan_tables(kernel, own, plan, target)
    else:
        plan.lanes = row_lanes(kernel, own, plan, alignments)
        team = plan.row.team
        plan.threads = team  # several warps are a block of their own
        if team <= target.WARP:
            plan.threads = min(ROW_THREADS, _power_of_two(points) * team)
        plan.blocks = -(-points // (plan.threads // team))
    for nest in kernel.nests:
        n = points * math.prod(nest.extents)
        plan.flops += n * sum(surveys[s].size for s in nest.stages)
    return plan


def _schedule_scan(
    kernel: Kernel, own: Signature, plan: Schedule, alignments: Mapping[Array, int]
) -> None:
    """Threads for a scan."""
    if plan.mode == "outer":
        plan.lanes = _lanes(kernel, own, plan, alignments)
        plan.scan = column_plan(kernel, plan.lanes)
    else:
        plan.lanes = row_lanes(kernel, own, plan, alignments)
        plan.scan = row_plan(kernel, plan.lanes)
    assert plan.scan is not None, "threads as many as it takes"
    plan.threads = plan.scan.threads
    points = plan.units if plan.scan.down else math.prod(kernel.extents)
    plan.blocks = -(-points // (plan.threads // plan.scan.team))


def _turned(kernel: Kernel, plan: Schedule, target: CudaTarget) -> tuple[Var | None, list[Expr]]:
    """Loads that are contiguous along another outer loop than the last one, and that loop."""
    nothing: tuple[Var | None, list[Expr]] = None, []
    plain = all(s.action == "store" for s in kernel.stages) and not kernel.ordered
    if (
        not plain
        or any(n.extents for n in kernel.nests)
        or any(v.loops for v in plan.surveys.values())
    ):
        return nothing
    by_loop = crossing(kernel.stages, plan.outer.vars, plan.outer.env, lambda e, _: not e.args)
    by_loop = {v: exprs for v, exprs in by_loop.items() if v.extent >= SIDE // 4}
    if not by_loop or plan.outer.vars[-1].extent < SIDE // 4:
        return nothing
    cross = max(by_loop, key=lambda v: len(by_loop[v]))
    turned: list[Expr] = []
    room = target.shared_bytes
    for expr in by_loop[cross]:
        room -= SIDE * (SIDE + 1) * expr.dtype.itemsize
        if room >= 0:
            turned.append(expr)
    return cross, turned


def _depth(kernel: Kernel, plan: Schedule, target: CudaTarget) -> int:
    """How many threads share a column, where there are too few columns for the device."""
    if kernel.ordered or any(s.action not in ("store", "reduce") for s in kernel.stages):
        return 1
    rows = [n.extents[0] for n in kernel.nests if math.prod(n.extents) > 1]
    if not rows or (plan.lanes > 1 and plan.outer.vars[-1].extent % plan.lanes):
        return 1
    folds = [s for s in kernel.stages if s.action == "reduce"]
    each = sum(s.array.dtype.itemsize + 8 * s.op.startswith("arg") for s in folds) * plan.lanes
    depth = 1
    while depth < MOST_THREADS // target.WARP and max(rows) >= 8 * depth:
        much = 2 * depth * target.WARP * each > target.shared_bytes
        if much or plan.units * depth >= target.sms * THREADS:
            break
        depth *= 2
    return depth


def scatters(plan: Schedule) -> bool:
    """Whether it is of a kernel that scatters."""
    return any(s.action == "scatter" for s in plan.surveys)


def counts(stage: Stage) -> bool:
    """Whether a stage adds one and the same number everywhere: then updates can be counted."""
    return stage.op == "add" and stage.value.op == "const"


def _plan_tables(kernel: Kernel, own: Signature, plan: Schedule, target: CudaTarget) -> None:
    """Tables of their own for blocks, where many updates go to few slots."""
    stage = kernel.stages[0]
    if stage.action != "scatter" or stage.op == "set" or stage.where is not None:
        return
    size = stage.array.size - own.origins[stage.array]
    nbytes = size * (4 if counts(stage) else stage.array.dtype.itemsize)
    if stage.array.dtype == BOOL or nbytes > TABLE_BYTES or not stage.array.contiguous:
        return
    updates = math.prod(v.extent for v in plan.outer.vars)
    blocks = min(2 * target.sms, updates // (UPDATES * size), updates // (4 * THREADS))
    if not blocks or not fits_32_bits([updates + 2 * blocks * THREADS]):
        return
    plan.threads, plan.blocks = THREADS, blocks
    plan.tables = THREADS // target.WARP
    while plan.tables * nbytes > TABLE_BYTES:
        plan.tables //= 2


def passed_arrays(kernel: Kernel) -> frozenset[Array]:
    """What one nest of a kernel writes, element by element, and another one reads."""
    home = {s.array: nest for nest in kernel.nests for s in nest.stages if s.action == "store"}
    return frozenset(
        a.array
        for nest in kernel.nests
        for s in nest.stages
        for a in s.reads
        if home.get(a.array, nest) is not nest
    )


def row_of(kernel: Kernel, target: CudaTarget, team: int = 0) -> Row | None:
    """How the rows of a kernel are shared among threads; None: a thread does all of an outer point.

    `team`: how many threads are to share a row; 0 for as many as seem best.
    """
    stages = kernel.stages
    if (
        kernel.ordered
        or mode_of(kernel) == "outer"
        or any(s.action not in ("store", "reduce") for s in stages)
    ):
        return None
    n, rows = max(math.prod(nest.extents) for nest in kernel.nests), math.prod(kernel.extents)
    itemsize = max(s.array.dtype.itemsize for s in stages)
    most = max(HELD_BYTES // itemsize, 1)  # elements in a thread
    team = team or _team(n, rows, most, target)
    work = sum(len(nest.stages) + sum(s.cost for s in nest.stages) for nest in kernel.nests)
    unrolled = n <= most * team and -(-n // team) * work <= UNROLLED
    home = {s.array: nest for nest in kernel.nests for s in nest.stages}
    again: dict[Array, bool] = {}  # arrays that a later nest reads, whether at its own points only
    for nest in kernel.nests:
        for stage in nest.stages:
            own = tuple(of_var(v) for v in stage.dims)
            for access in stage.reads:
                made = home.get(access.array)
                if made is None or made is nest or math.prod(made.extents) == 1:
                    continue
                if access.array.shape == kernel.extents and not _stores(made, access.array):
                    continue
                here = access.index == own and made.extents == nest.extents
                again[access.array] = here and again.get(access.array, True)
    held = frozenset(a for a, here in again.items() if here and unrolled)
    return Row(team, unrolled, held, frozenset(again.keys() - held))


def _team(n: int, rows: int, most: int, target: CudaTarget) -> int:
    """How many threads share a row of n elements, of which each should have `most` at the most."""
    team = min(_power_of_two(-(-n // 4)), target.WARP)
    while team < MOST_THREADS and n > most * team:
        team *= 2
    while team < MOST_THREADS and n > 8 * team and rows * team < target.sms * THREADS:
        team *= 2
    return team


def _stores(nest: Nest, array: Array) -> bool:
    """Whether the nest writes the array element by element."""
    return any(s.array is array and s.action == "store" for s in nest.stages)


def _power_of_two(n: int) -> int:
    """The least that is not smaller."""
    return 1 << max(n - 1, 0).bit_length()


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
    if any(s.action not in ("store", "reduce", "scan") for s in kernel.stages):
        return 1
    scans = scan_stage(kernel) is not None
    flats = [
        (array, flat, last)
        for nest, loops in zip(kernel.nests, plan.inner, strict=True)
        for array, flat in _flats(kernel, own, nest, {**plan.outer.env, **loops.env})
    ]
    nodes = sum(v.size + 1 for v in plan.surveys.values())
    lanes = ACCESS
    while lanes > 1:
        enough = plan.units >= lanes * (FULL // DEEPEST if scans else THREADS)
        even = not last.extent % lanes or (rows == 1 and not scans)
        if even and enough and lanes * nodes <= LONG and _gains(flats, lanes, alignments):
            break
        lanes //= 2
    return lanes


def row_lanes(
    kernel: Kernel, own: Signature, plan: Schedule, alignments: Mapping[Array, int]
) -> int:
    """How many neighbours along the last loop of each nest a thread of a team takes."""
    flats: list[tuple[Array, Index, Var]] = []
    lanes, team = ACCESS, plan.row.team if plan.row is not None else 1
    for nest, loops in zip(kernel.nests, plan.inner, strict=True):
        if not loops.vars:
            continue
        last = loops.vars[-1]
        chunks = nest.stages[0].chunks
        lanes = math.gcd(lanes, last.extent, *((chunks.total, chunks.length) if chunks else ()))
        while lanes > 1 and math.prod(nest.extents) < lanes * team:
            lanes //= 2  # every thread has something to do
        own_flats = _flats(kernel, own, nest, {**plan.outer.env, **loops.env})
        flats += [(array, flat, last) for array, flat in own_flats]
    if any(v.loops for v in plan.surveys.values()):
        return 1
    while lanes > 1 and not _gains(flats, lanes, alignments):
        lanes //= 2
    return lanes


def _gains(
    flats: list[tuple[Array, Index, Var]], lanes: int, alignments: Mapping[Array, int]
) -> bool:
    """Whether most accesses to neighbours are made of aligned groups of `lanes`, none too large."""
    score = 0
    for array, flat, along in flats:
        if flat.stride(along) == 1:
            if lanes * array.dtype.itemsize > ACCESS:
                return False
            score += 1 if is_wide(flat, along, lanes, array, alignments[array]) else -1
    return score > 0


def _flats(
    kernel: Kernel, own: Signature, nest: Nest, env: Mapping[Var, Index]
) -> Iterator[tuple[Array, Index]]:
    """Every access of arrays in memory, as offset from where the array's pointer points."""
    for stage in nest.stages:
        accesses = [load.attr for load in loads(stage.value) if not load.args]
        accessed = [(access.array, access.index) for access in accesses]
        for array, index in (*accessed, (stage.array, stage.index)):
            if array not in kernel.local:
                flat = linear(index, array.strides, -own.origins[array])
                yield array, flat.substitute(env)


def is_wide(flat: Index, along: Var, lanes: int, array: Array, alignment: int) -> bool:
    """Whether `lanes` neighbours along a loop, from a multiple of `lanes` on, are one aligned access."""
    nbytes = min(lanes * array.dtype.itemsize, ACCESS)
    return alignment % nbytes == 0 and aligned(flat, along, lanes)
