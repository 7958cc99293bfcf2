"""Schedules: how the loops of a kernel run on a CPU.

Decides, per kernel: which loops are walked as one (collapsed), which loop is vectorised and at what
width, and how the work is cut for the thread pool. The kernel itself is not changed: a schedule gives
new loop variables and maps the kernel's variables to indices over them.

Two modes:

- "outer": the last outer loop is vectorised, and everything at an outer point is done in each lane
  (elementwise kernels; reductions over an axis that is not contiguous).
- "inner": outer points are walked one by one, and each nest vectorises its own last loop (row
  programs, reductions over contiguous axes).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ...ir.graph import Knobs
from ...ir.record import field, record
from ...ir.types import BOOL
from ..journal import Refusal, note, too_little
from ..limits import limits
from ..loop_ir.index import Index, Var, of_var, variables
from ..loop_ir.kernel import Access, Kernel, Nest, Stage
from ..scalar import Expr
from ..sizes import has_size
from ..target import Target
from .cache_lines import align, fetch_ahead
from .fusion import vector_mode
from .knobs import done, knobs_of, refused
from .survey import Survey, crossing, invariants, loads, loops_work, survey, updates_neighbours

WIDEST = 64  # lanes: more, of single bytes, gain little, and a gather has code for each
BY_LANE = 16  # the same where each lane has its own update
PAGE_BYTES = 1 << 12  # a tile narrower than a page is hard on the prefetcher
NOTABLE = 1 << 10  # points from which it is worth saying why there are no vectors
NOTABLE_NS = 1000.0  # and why one thread does it
MANY_CHUNKS = 1 << 12  # of a loop whose length is not known
LIGHT = 12  # operations per point up to which accumulators have the registers to themselves


# Why a loop is no loop of vectors, and why threads do not share it.
UPDATES = Refusal(
    "it changes elements at places that may meet, one after the other",
    "where places do not meet, assign a slice or use np.take and a reduction instead",
)
SCANS = Refusal(
    "each element of a row needs the one before it",
    "scan along the first axis: neighbouring columns go side by side then",
)
SHORT = Refusal(
    "its inner loop is shorter than a vector",
    "put the longest axis last",
)
ORDERED = Refusal("its elements are changed in an order that matters")
WHOLE = Refusal(
    "its outer loop has one iteration",
    "reduce along an axis of a matrix, or put more rows in one call",
)


@record(frozen=False)
class Loops:
    """Loop variables to walk, outermost first, and what the kernel's variables are in terms of them."""

    vars: tuple[Var, ...]
    env: dict[Var, Index]


@record(frozen=False)
class Schedule:
    """How the loops of a kernel run: `mode` says which of them is vectorised, `width` lanes wide."""

    mode: str
    width: int
    outer: Loops
    inner: list[Loops] = field(default_factory=list)  # one per nest
    parallel: bool = False
    split_last: bool = False  # "outer" mode: threads share the vectorised loop, not those before it
    grain: int = 1
    # "outer" mode: some arrays are contiguous along this loop (`cpu.transposes`).
    cross: Var | None = None
    cross_tile: int = 0
    turned: list[Expr] = field(default_factory=list)  # the loads from them
    tile: int = 0  # "outer" mode, 0 or: nests are walked row by row, for this many lanes' columns
    rows: int = 1  # and so many rows at a time; "inner" mode: so many outer points at a time
    aligned: Stage | None = None  # rows are walked so that its stores do not straddle cache lines
    ahead: list[Access] = field(default_factory=list)  # what the last nest fetches of the next row
    flops: int = 0
    nanoseconds: float = 0.0  # what it takes, roughly
    surveys: dict[Stage, Survey] = field(default_factory=dict)

    @property
    def range(self) -> int:
        """The length of what threads share."""
        extents = [v.extent for v in self.outer.vars]
        if self.cross is not None:
            others = math.prod(extents[:-1]) // self.cross.extent
            return others * self.cross_tiles * self.tiles
        if self.tile:
            return math.prod(extents[:-1]) * self.tiles
        if self.mode == "outer":
            return extents[-1] if self.split_last else math.prod(extents[:-1])
        return math.prod(extents)

    def each(self, rows: int) -> int | None:
        """How much of the range one of `rows` rows is; None if no part of the range is a row.

        Rows are the first of the kernel's outer loops, taken as one. Where the range counts tiles, or
        leaves out a loop, its being a multiple of `rows` says nothing about what a part of it does.
        """
        loops: list[Var] = []
        while (count := math.prod(v.extent for v in loops)) < rows:
            if len(loops) == len(self.outer.vars):
                return None
            loops.append(self.outer.vars[len(loops)])
        if self.mode == "outer":
            last = self.outer.vars[-1]
            along = self.split_last and not self.tile  # threads share the last loop, and it only
            if loops and (self.cross in loops or (loops != [last] if along else last in loops)):
                return None
        return self.range // rows if count % rows == 0 else None

    @property
    def tiles(self) -> int:
        return -(-self.outer.vars[-1].extent // self.tile)

    @property
    def cross_tiles(self) -> int:
        return -(-self.cross.extent // self.cross_tile) if self.cross is not None else 1


def schedule(kernel: Kernel, target: Target) -> Schedule:
    """How a kernel's loops are walked on a CPU."""
    mode = mode_of(kernel)
    outer, inner, surveys = loops_of(kernel)
    result = Schedule(mode, 1, outer, inner, surveys=surveys)
    result.width = _width(kernel, result, target)
    knobs = knobs_of(kernel)
    if knobs is not None:
        _widen(kernel, result, target, knobs)
    _stream(kernel, result, target)
    _turn(kernel, result, target)
    if knobs is not None:
        _retile(kernel, result, knobs)
    _group(kernel, result, target)
    align(kernel, result)
    if target.fetches_ahead:
        fetch_ahead(kernel, result)
    _share(kernel, result)
    return result


def loops_of(kernel: Kernel) -> tuple[Loops, list[Loops], dict[Stage, Survey]]:
    """The loops around a kernel, those inside of each of its nests, and what its stages touch."""
    surveys = {s: survey(s) for s in kernel.stages}
    outer_env, outer_vars = renamed(kernel)
    flats = [f.substitute(outer_env) for s in surveys.values() for f in s.indices]
    loops = collapse(outer_vars, flats)
    env = {v: i.substitute(loops.env) for v, i in outer_env.items()}
    outer = Loops(loops.vars or (Var("one", 1),), env)
    inner = [inner_loops(nest, len(kernel.extents), surveys) for nest in kernel.nests]
    return outer, inner, surveys


def mode_of(kernel: Kernel) -> str:
    """Which loops are vectorised, the "outer" or the "inner" ones: all stages agree."""
    if all(not nest.extents for nest in kernel.nests):
        return "outer"
    modes = {
        vector_mode(s, nest.outer)
        for nest in kernel.nests
        for s in nest.stages
        if len(s.dims) > nest.outer
    }
    return "outer" if modes == {"outer"} else "inner"


def renamed(kernel: Kernel) -> tuple[dict[Var, Index], list[Var]]:
    """One variable per outer loop, standing for the stages' own."""
    fresh = [Var(f"o{d}", n) for d, n in enumerate(kernel.extents)]
    env = {
        own: of_var(new)
        for stage in kernel.stages
        for own, new in zip(stage.dims, fresh, strict=False)
    }
    return env, fresh


def inner_loops(nest: Nest, outer: int, surveys: dict[Stage, Survey]) -> Loops:
    """The loops of a nest inside of the outer ones."""
    fresh = [Var(f"n{d}", n) for d, n in enumerate(nest.extents)]
    env = {
        own: of_var(new)
        for stage in nest.stages
        for own, new in zip(stage.dims[outer:], fresh, strict=True)
    }
    flats = [f.substitute(env) for s in nest.stages for f in surveys[s].indices]
    if any(
        s.action in ("update", "scan") or s.chunks or s.op.startswith("arg") for s in nest.stages
    ):
        return Loops(tuple(fresh), env)
    loops = collapse(fresh, flats)
    return Loops(loops.vars, {v: i.substitute(loops.env) for v, i in env.items()})


def collapse(variables: Sequence[Var], flats: Iterable[Index]) -> Loops:
    """Merge neighbouring loops that every index walks as if they were one.

    before: for i in 0..a: for j in 0..b: x[b*i + j]      after: for q in 0..a*b: x[q]
    """
    flats = list(flats)
    env: dict[Var, Index] = {}
    done: list[Var] = []
    pending = [v for v in variables if v.extent != 1]
    env.update({v: Index() for v in variables if v.extent == 1})
    while pending:
        last = pending.pop()
        while pending and last.extent and all(_walks_as_one(f, pending[-1], last) for f in flats):
            if has_size((last.extent,)):
                break  # its length is what the loop before it would step by
            before = pending.pop()
            merged = Var(before.name, before.extent * last.extent)
            q = of_var(merged)
            step = {before: q // last.extent, last: q % last.extent}
            flats = [f.substitute(step) for f in flats]
            env = {v: i.substitute(step) for v, i in env.items()} | step
            last = merged
        done.append(last)
    for v in variables:
        env.setdefault(v, of_var(v))
    return Loops(tuple(reversed(done)), env)


def _walks_as_one(flat: Index, before: Var, last: Var) -> bool:
    stride = flat.stride(last)
    return stride is not None and flat.stride(before) == stride * last.extent


def _width(kernel: Kernel, plan: Schedule, target: Target) -> int:
    """Lanes: a vector register of the widest float (else integer) type, times an unroll factor."""
    refusal = _in_order(kernel, plan)
    if refusal is not None:
        note("lanes", kernel.subject, refusal)
        return 1
    dtypes = [s.array.dtype for s in kernel.stages]
    dtypes += [a.array.dtype for s in kernel.stages for a in s.reads if a.array.size > 1]
    floats = [d.itemsize for d in dtypes if d.kind == "f"]
    others = [d.itemsize for d in dtypes if d.kind in "iu"]
    lanes = target.lanes(max(floats or others or [1]))
    nodes = sum(s.size for s in plan.surveys.values())
    loops = loops_work(plan.surveys.values())
    unroll = _in_flight(nodes) if not loops else 4 if loops <= 40 else 1
    if any(s.op.startswith("arg") for s in kernel.stages):
        unroll = min(unroll, 2)
    folds = max(sum(s.action == "reduce" for s in nest.stages) for nest in kernel.nests)
    if nodes > LIGHT:  # what is between the accumulators wants registers too
        while unroll > 1 and 3 * folds * unroll > target.registers:
            unroll //= 2
    width = lanes * unroll
    if plan.mode == "outer":
        sizes = [(plan.outer.vars[-1].extent, nodes + 1)]
    else:
        sizes = [
            (loops.vars[-1].extent, sum(plan.surveys[s].size + 1 for s in nest.stages))
            for nest, loops in zip(kernel.nests, plan.inner, strict=True)
            if loops.vars
        ]
    if kernel.stages[0].action == "update" and not updates_neighbours(kernel.stages[0]):
        width = min(width, BY_LANE)
    longest = max([n for n, _ in sizes], default=1)
    if longest < lanes and math.prod(kernel.extents) * longest >= NOTABLE:
        note("lanes", kernel.subject, SHORT)
    while width >= 2 * longest and width > 1:
        width //= 2
    while width > lanes and longest < 4 * width:
        width //= 2  # a few iterations of one vector each are in flight together anyway
    # Short nests beside long ones: lanes that are off in all of them are work and code for nothing.
    while width > lanes and _padded(sizes, width) > 1.1 * _padded(sizes, width // 2):
        width //= 2
    return min(width, WIDEST)


def _widen(kernel: Kernel, plan: Schedule, target: Target, knobs: Knobs) -> None:
    """Vectors as wide as the user asks."""
    refusal = _in_order(kernel, plan)
    size = max((s.array.dtype.itemsize for s in kernel.stages), default=8)
    own = min(target.lanes(size), plan.width)
    lanes = knobs.lanes or min(own, WIDEST // (knobs.unroll or 1))
    unroll = knobs.unroll or max(min(plan.width // own, WIDEST // lanes), 1)
    for name in ("lanes", "unroll"):
        if getattr(knobs, name) is None:
            continue
        if refusal is not None:
            refused(knobs, name, f"{kernel.subject.name} has no vectors, as {refusal.why}")
        elif lanes * unroll > WIDEST:
            refused(knobs, name, f"vectors have {lanes} lanes here: unroll up to {WIDEST // lanes}")
        else:
            done(knobs, name)
    if refusal is None and lanes * unroll <= WIDEST:
        plan.width = lanes * unroll


def _retile(kernel: Kernel, plan: Schedule, knobs: Knobs) -> None:
    """Tiles as large as the user asks. Where arrays are turned over in squares, these say how wide
    vectors are."""
    if plan.cross is not None:
        for name in ("lanes", "unroll"):
            if getattr(knobs, name) is not None:
                refused(knobs, name, "arrays are turned over in squares there: choose tile=")
    if knobs.tile is None:
        return
    if not plan.tile:
        name = kernel.subject.name
        refused(knobs, "tile", f"{name} neither turns arrays over nor sums down long columns")
    elif knobs.tile < plan.width:
        refused(knobs, "tile", f"vectors have {plan.width} lanes here: choose as much at least")
    else:
        plan.tile = knobs.tile
        if plan.cross is not None:
            plan.cross_tile = knobs.tile
        done(knobs, "tile")


def _in_order(kernel: Kernel, plan: Schedule) -> Refusal | None:
    """Why points have to come one after the other, if they have to."""
    first = kernel.stages[0]
    if first.action == "update" and not updates_neighbours(first):
        note("lanes", kernel.subject, UPDATES)
        if not _reckons(first, plan):
            return UPDATES
    if plan.mode == "inner" and any(s.action == "scan" for s in kernel.stages):
        return SCANS
    return None


def _reckons(stage: Stage, plan: Schedule) -> bool:
    """Whether lanes may reckon what an update writes and where, before each writes its own."""
    own = any(read.array is stage.array for read in stage.reads)
    return not (own or plan.surveys[stage].loops)


def _padded(sizes: Sequence[tuple[int, int]], width: int) -> int:
    """Work in lanes for loops of (trip count, nodes), the lanes that are off counted too."""
    return sum(-(-n // width) * width * nodes for n, nodes in sizes)


def _in_flight(nodes: int) -> int:
    """How many vectors to work on at once. A chain of functions waits for its own results most of the
    time: 4 vectors hide that (1.6 times faster on Black-Scholes than 1), until registers and the time
    to compile speak against it."""
    return 4 if nodes <= 160 else 2 if nodes <= 400 else 1


def _stream(kernel: Kernel, plan: Schedule, target: Target) -> None:
    """Tile the columns of a reduction over rows larger than the caches (`cpu.column_tiles`)."""
    folds = [s for nest in kernel.nests if nest.extents for s in nest.stages]
    if plan.mode != "outer" or plan.width == 1 or any(v.loops for v in plan.surveys.values()):
        return
    columns = plan.outer.vars[-1].extent
    if has_size((columns,)):
        return
    itemsize = max((s.array.dtype.itemsize for s in kernel.stages), default=1)
    rows = max((math.prod(n.extents) for n in kernel.nests), default=1)
    if not folds or columns * rows * itemsize < limits().stream_bytes or columns < 2 * plan.width:
        return
    lanes = target.lanes(itemsize)
    if knobs_of(kernel) is None:
        plan.width = min(plan.width, 2 * lanes)
    nodes = max(plan.surveys[s].size for s in folds)
    plan.rows = 8 if nodes <= 6 else 4 if nodes <= 16 else 2
    points = math.prod(v.extent for v in plan.outer.vars[:-1])
    tile = limits().tile_bytes // (itemsize * max(len(folds), 1))
    tile = min(tile, max(-(-columns * points // 16), PAGE_BYTES // itemsize))
    tile = -(-min(tile, columns) // plan.width) * plan.width
    plan.tile = tile


def _group(kernel: Kernel, plan: Schedule, target: Target) -> None:
    """Walk a few rows of a light reduction or scan together, as the registers allow
    (`cpu.row_groups`)."""
    nest, *rest = kernel.nests
    scans = all(s.action == "scan" for s in nest.stages)
    if plan.mode != "inner" or not nest.extents or any(n.extents for n in rest):
        return
    if plan.width == 1 and not scans:
        return
    points = math.prod(kernel.extents)
    itemsize = max(s.array.dtype.itemsize for s in nest.stages)
    if points * math.prod(nest.extents) * itemsize < limits().stream_bytes:
        return
    if not all(_is_light(s, plan.surveys[s], nest) for s in nest.stages):
        return
    accumulators = -(-plan.width // target.lanes(itemsize)) * len(nest.stages)
    plan.rows = 2 if scans and _pages_apart(nest, plan) else 4
    while plan.rows > 1 and (
        2 * plan.rows * accumulators > target.registers or points < 4 * plan.rows
    ):
        plan.rows //= 2


def _pages_apart(nest: Nest, plan: Schedule) -> bool:
    """Whether rows are a multiple of a page apart: the L1 cache has few sets for these."""
    row = plan.outer.vars[-1]
    steps = (
        access.flat.substitute(plan.outer.env).coeff(row) * access.array.dtype.itemsize
        for stage in nest.stages
        for access in stage.accesses
    )
    return any(step and step % PAGE_BYTES == 0 for step in steps)


def _is_light(stage: Stage, stats: Survey, nest: Nest) -> bool:
    """Whether a stage folds a few operations per element, with nothing to compute once per row."""
    if (
        stage.action not in ("reduce", "scan")
        or stage.chunks is not None
        or stage.op.startswith("arg")
    ):
        return False
    plain = not (stats.loops or stats.checks or stats.calls) and stats.size <= 6
    return plain and not invariants(stage, set(stage.dims[nest.outer :]))


def _turn(kernel: Kernel, plan: Schedule, target: Target) -> None:
    """Find loads that are contiguous along another loop than the last, and tile both loops."""
    if plan.mode != "outer" or any(n.extents for n in kernel.nests) or plan.width == 1:
        return
    last = plan.outer.vars[-1]
    arrays = [a.array for s in kernel.stages for a in (s.write, *(e.attr for e in loads(s.value)))]
    side = min(target.lanes(max(a.dtype.itemsize for a in arrays)), 16)
    by_loop = crossing(
        kernel.stages, plan.outer.vars, plan.outer.env, lambda e, v: _guarded_apart(e, v, plan)
    )
    by_loop = {v: exprs for v, exprs in by_loop.items() if v.extent >= side}
    if has_size([v.extent for v in (last, *by_loop)]):
        return
    if not by_loop or last.extent < side or side < 4:
        return
    cross = max(by_loop, key=lambda v: len(by_loop[v]))
    again = cross.extent % side or last.extent % side  # squares at the ends overlap
    if again and not kernel.idempotent:
        return
    plan.width, plan.cross, plan.turned = side, cross, by_loop[cross]
    plan.cross_tile = plan.tile = limits().squares
    while plan.tile > 32 and plan.range < 16:
        plan.cross_tile = plan.tile = plan.tile // 2


def _guarded_apart(load: Expr, var: Var, plan: Schedule) -> bool:
    """Whether the guard of a load, if there is one, is the same all along a loop, and easily known."""
    if load.args and load.dtype == BOOL:  # kept as bytes in squares, masked as bits
        return False
    seen = list(load.args)
    for node in seen:
        if node.op in ("load", "loop", "var"):
            return False
        if node.op == "index" and var in variables(node.attr.substitute(plan.outer.env)):
            return False
        seen += node.args
    return True


def _share(kernel: Kernel, plan: Schedule) -> None:
    """Cut the outer loops for the thread pool."""
    extents = [v.extent for v in plan.outer.vars]
    if plan.mode == "outer":
        before = math.prod(extents[:-1])
        plan.split_last = len(extents) == 1 or (before < 16 and extents[-1] >= 64 * plan.width)
    points = math.prod(kernel.extents)
    nanoseconds = 0.0
    for nest in kernel.nests:
        n = points * math.prod(nest.extents)
        speedup = max(plan.width, 1)
        for stage in nest.stages:
            size = plan.surveys[stage].size
            traffic = sum(a.array.dtype.itemsize for a in stage.reads)
            nanoseconds += n * (0.03 * traffic + (1.0 + size) * 0.8 / min(speedup, 16))
            plan.flops += n * size
    plan.nanoseconds = nanoseconds
    length = plan.range
    refusal = _unshared(kernel, nanoseconds, length)
    if refusal is not None:
        if nanoseconds >= NOTABLE_NS:
            note("threads", kernel.subject, refusal)
        plan.grain = max(length, 1)
        return
    plan.parallel = True
    most = MANY_CHUNKS if has_size(extents) else 64  # there are few where the length is
    chunks = int(max(2, min(nanoseconds / limits().chunk_ns, most)))
    lanes = plan.mode == "outer" and plan.split_last and not plan.tile
    unit = plan.width if lanes else plan.rows if plan.mode == "inner" else 1
    grain = -(-length // chunks)
    plan.grain = -(-grain // unit) * unit


def _unshared(kernel: Kernel, nanoseconds: float, length: int) -> Refusal | None:
    """Why one thread does all of a kernel, if one should."""
    if nanoseconds < limits().parallel_ns:
        return too_little()
    if kernel.ordered:
        return ORDERED
    return WHOLE if length < 2 else None
