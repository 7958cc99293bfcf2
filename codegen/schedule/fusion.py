"""Fusion: stages that share loops become one kernel.

Stages arrive in execution order. Each joins an earlier kernel if its loops fit and everything that it
reads from that kernel is at hand there, otherwise it opens a kernel of its own. Two shapes of kernel
come out:

- a *map* kernel: all stages run over the same index space and read each other only at the same point,
  so intermediate values stay in registers;
- a *row* kernel: stages share the outer loops; at one outer point ("row") nests of inner loops follow
  one another, so a row stays in cache between them (softmax, layernorm), and a value needed only
  within the row lives in a register or a row buffer.

The order of effects is kept: a stage goes no earlier than the last writer of what it reads, and the
last reader or writer of what it writes; one that checks indices no earlier than the last condition or
call of Python before it, which the user wrote to be met first. Only the last few kernels are looked
at, so the pass is linear.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from ...ir.graph import Knobs
from ...ir.record import field, record
from ..journal import Refusal, listening, note
from ..limits import limits
from ..loop_ir.index import Index, Var
from ..loop_ir.kernel import Array, Kernel, Nest, Stage
from ..loop_ir.steps import Callback, Check, touched
from .survey import survey

WINDOW = 12  # kernels looked back at
MAX_STAGES = 48
MAX_COST = 1500
MAX_ARRAYS = 128  # of one kernel: for many more, LLVM takes time that grows faster than they do
MAX_UNRELATED = 3  # beside the first: they share the loops only, and more of them are the same code
LONG = 1 << 14  # elements from which unrelated stages share a kernel only if few arrays are in it
STREAMS = 6  # so many
STACK_BYTES = 1 << 18  # what the row buffers of one kernel may take
SHORT_ROW = 32  # and elements of a row for each simple instruction of that
SHORT_SUM = 300  # elements of a window up to which lanes are neighbours in what comes of windows
SERIAL_WORK = 1 << 14  # elements under which a kernel without parallel outer loops is fine
HELD_BYTES = 1 << 16  # an array beyond that is not begun long before it is finished
NOTABLE = 1 << 10  # points from which it is worth saying why loops are not shared

# Why a stage does not join a group.
CLOSED = Refusal(
    "the other writes element by element in an order of its own (a scan, a scatter, an update)",
    "put what is elementwise before it",
)
APART = Refusal("jt.materialize stands between them", "take it out")
ASKED = Refusal("jt.schedule asks for other loops", "put both into one scope")
ALONE = Refusal("it writes in an order of its own (a scan, a scatter, an update in place)")
LARGE = Refusal("one kernel of both would be too large", "nothing: a kernel of so much is full")
AGAIN = Refusal("both write the same array")
LOOPS = Refusal(
    "their loops differ", "give both the same shape (slice before computing, not afterwards)"
)
ROWS = Refusal("they reduce over other axes", "reduce over the same axes, keepdims=True")
FEW_ROWS = Refusal(
    "there are too few rows to share among threads: all elements belong to one",
    "give it many short rows (a batch) rather than one long one",
)
LONG_ROWS = Refusal(
    "a row of it does not stay in the cache", "work on shorter rows: more, smaller batches of them"
)
ELSEWHERE = Refusal(
    "it reads what the other computes at other places than its own (shifted, transposed, gathered)",
    "transpose or shift the input, before anything is computed of it",
)
WHOLE = Refusal("it needs all of what the other computes before it can begin")
ACROSS = Refusal(
    "vectors would run along rows for one and across rows for the other",
    "lay the array out so that both go along its last axis (np.ascontiguousarray(x.T))",
)
UNRELATED = Refusal("they have no array in common")


@record(frozen=False, eq=False)
class Group:
    """A kernel in the making. `flexible`: a map kernel, whose loops may still be split into rows."""

    extents: tuple[int, ...]
    nests: list[Nest]
    flexible: bool
    mode: str  # which loop is vectorised: "inner", "outer", or "" while both would do
    closed: bool = False
    ordered: bool = False
    made: dict[Array, Stage] = field(default_factory=dict)
    reads: set[Array] = field(default_factory=set)  # of more than one element
    cost: int = 0
    touched: set[Array] = field(default_factory=set)
    count: int = 0
    knobs: Knobs | None = None
    unrelated: int = 0  # stages that have nothing to do with those before them


def fuse(items: list[Any], keep: Iterable[Array] = ()) -> list[Any]:
    """Group the stages of `items` into kernels; other steps stay in order. `keep` is read outside."""
    steps: list[Any] = []
    written: dict[Array, int] = {}
    read: dict[Array, int] = {}
    met_first = -1  # the last step that may raise, and is no kernel
    for item in _numbers_first(items):
        if isinstance(item, Stage):
            earliest = met_first if met_first >= 0 and survey(item).checks else -1
            position = _join_group(steps, item, written, read, earliest)
            for access in item.reads:
                read[access.array] = max(read.get(access.array, -1), position)
            written[item.array] = max(written.get(item.array, -1), position)
        else:
            steps.append(item)
            if isinstance(item, (Check, Callback)):
                met_first = len(steps) - 1
            reads, writes = touched(item)
            for array in reads:
                read[array] = len(steps) - 1
            for array in writes:
                written[array] = len(steps) - 1
    steps = [part for s in steps for part in (_kernels(s) if isinstance(s, Group) else [s])]
    uses = Counter(a for s in steps for a in _arrays(s))
    uses.update(keep)
    for step in steps:
        if isinstance(step, Kernel):
            _find_local(step, uses)
    return steps


def _numbers_first(items: list[Any]) -> list[Any]:
    """Single numbers that depend on nothing before them come first, so that what reads one can still
    join the kernel of whatever else it reads.

        before: for i: m[i] = ...;   for j: n[j] = ...;   r = -rate;   for i: p[i] += r * m[i];   ...
        after:  r = -rate;   for i: m[i] = ...; p[i] += r * m[i];   for j: n[j] = ...; ...
    """
    first: list[Any] = []
    others: list[Any] = []
    written: set[Array] = set()  # by the others
    read: set[Array] = set()
    for item in items:
        if isinstance(item, Stage) and _is_free_number(item, written, read):
            first.append(item)
            continue
        others.append(item)
        reads, writes = _touched(item)
        read.update(reads)
        written.update(writes)
    return first + others


def _touched(item: Any) -> tuple[list[Array], list[Array]]:
    if isinstance(item, Stage):
        return [access.array for access in item.reads], [item.array]
    return touched(item)


def _is_free_number(stage: Stage, written: set[Array], read: set[Array]) -> bool:
    if stage.array.kind not in ("temp", "output") or stage.array.size > 1:
        return False
    if math.prod(stage.extents) > 1:
        return False
    if stage.action != "store" or not stage.whole or stage.ordered or stage.knobs is not None:
        return False
    if stage.array in written or stage.array in read or survey(stage).checks:
        return False
    return not any(access.array in written for access in stage.reads)


def _join_group(
    steps: list[Any],
    stage: Stage,
    written: dict[Array, int],
    read: dict[Array, int],
    earliest: int,
) -> int:
    """Join the stage to the best group or append a new one; returns its position in `steps`."""
    earliest = max((earliest, *(written.get(a.array, -1) for a in stage.reads)))
    earliest = max(earliest, read.get(stage.array, -1), written.get(stage.array, -1))
    last = len(steps) - 1
    candidates = [earliest] if earliest >= 0 else []
    candidates += range(last, max(earliest, last - WINDOW), -1)
    if stage.array not in written and _holds_memory(stage):
        candidates = [position for position in candidates if position == last]
    refusals: list[tuple[Group, Refusal]] = []
    for position in candidates:
        group = steps[position]
        if isinstance(group, Group):
            refusal = _join(group, stage)
            if refusal is None:
                return position
            refusals.append((group, refusal))
    if listening():
        _tell(stage, refusals)
    steps.append(_open(stage))
    return len(steps) - 1


def _holds_memory(stage: Stage) -> bool:
    """Whether the stage writes a few elements of a large array, such as the edges of a copy whose inside
    comes later: writing them much earlier would keep memory for all that time."""
    size = stage.array.nbytes
    return size > HELD_BYTES and math.prod(stage.extents) * stage.array.dtype.itemsize * 4 < size


def _tell(stage: Stage, refusals: list[tuple[Group, Refusal]]) -> None:
    """Note why a stage does not share the loops of a neighbour that it has to do with."""
    for group, refusal in refusals:
        made = [s for a, s in group.made.items() if any(r.array is a for r in stage.reads)]
        beside = made or (list(group.made.values()) if _shares_reads(group, stage) else [])
        points = max(math.prod(s.extents) for s in (stage, *group.made.values()))
        if beside and points >= NOTABLE:
            note("fusion", stage.subject, refusal, beside[-1].subject)
            return


def _open(stage: Stage) -> Group:
    mapping = stage.action == "store"
    outer = stage.shared if stage.action == "update" else stage.outer
    extents = stage.extents[:outer]
    group = Group(extents, [Nest([stage], outer)], mapping, "")
    if stage.action == "reduce":
        group.mode = vector_mode(stage, outer)
    elif not mapping:
        group.mode = vector_mode(stage, outer) if stage.action == "scan" else "inner"
        group.closed = True
        group.ordered = stage.action == "update" and not stage.shared
    _add(group, stage)
    return group


def _add(group: Group, stage: Stage) -> None:
    group.made[stage.array] = stage
    group.knobs = group.knobs or stage.knobs
    group.reads.update([a.array for a in stage.reads if a.array.size > 1])
    group.cost += stage.cost
    group.touched.update([a.array for a in stage.accesses])
    group.count += 1


def _join(group: Group, stage: Stage) -> Refusal | None:
    """Make `stage` part of `group`, or say why it cannot be."""
    if any(a.array.apart and a.array in group.made for a in stage.reads):
        return APART
    if stage.knobs is not None and group.knobs not in (None, stage.knobs):
        return ASKED
    if group.closed:
        return CLOSED
    if stage.action not in ("store", "reduce") or (
        stage.ordered and not _replaces_points(group, stage)
    ):
        return ALONE
    if group.count >= MAX_STAGES or group.cost + stage.cost > MAX_COST:
        return LARGE
    if len(group.touched.union([a.array for a in stage.accesses])) > MAX_ARRAYS:
        return LARGE
    if stage.array in group.made and stage.whole:
        return AGAIN
    if group.flexible and stage.action == "store":
        return _join_map(group, stage) if stage.extents == group.extents else LOOPS
    return _join_row(group, stage)


def _join_map(group: Group, stage: Stage) -> Refusal | None:
    own = stage.point
    related = _shares_reads(group, stage)
    for access in stage.reads:
        maker = group.made.get(access.array)
        if maker is not None and not (_at_own_points(maker) and access.index == own):
            return ELSEWHERE
        related = related or maker is not None
    if not related:
        if group.unrelated >= MAX_UNRELATED or _has_many_streams(group, stage):
            return UNRELATED
        group.unrelated += 1
    _place(group.nests[0].stages, stage)
    _add(group, stage)
    return None


def _has_many_streams(group: Group, stage: Stage) -> bool:
    """Whether loops over long arrays would go along so many that fetching ahead does not keep up."""
    touched = group.touched.union([access.array for access in stage.accesses])
    return math.prod(group.extents) >= LONG and len(touched) > STREAMS


def _place(stages: list[Stage], stage: Stage) -> None:
    """Put a stage behind the last one that it has to do with: what that computed is in registers then.

    before: for i: a[i] = ...;  b[i] = ...;  x[i] -= f(a[i]);  y[i] -= f(b[i])
    after:  for i: a[i] = ...;  x[i] -= f(a[i]);  b[i] = ...;  y[i] -= f(b[i])
    """
    read = {access.array for access in stage.reads}
    at = len(stages)
    while at and not survey(stage).checks:
        before = stages[at - 1]
        if before.array in read or before.array is stage.array:
            break
        if any(access.array is stage.array for access in before.reads):
            break
        at -= 1
    stages.insert(at or len(stages), stage)


def _join_row(group: Group, stage: Stage) -> Refusal | None:
    """Make `stage` a part of each row, in an existing nest or one of its own."""
    outer = len(group.extents) if not group.flexible else stage.outer
    if group.flexible and len(group.extents) < outer:
        return LOOPS
    if stage.action == "reduce" and stage.outer != outer:
        return ROWS
    if len(stage.dims) < outer or stage.extents[:outer] != group.extents[:outer]:
        return LOOPS
    refusal = _row_misfit(group, stage, outer)
    if refusal is not None:
        return refusal
    own = stage.point
    depends = False
    for access in stage.reads:
        maker = group.made.get(access.array)
        if maker is None:
            continue
        depends = True
        if maker.outer < outer or access.index[:outer] != own[:outer] or not _at_own_points(maker):
            return ELSEWHERE if maker.outer >= outer else WHOLE
    mode = group.mode
    inner = len(stage.dims) > outer
    if stage.action == "reduce":
        wanted = vector_mode(stage, outer)
        if mode and wanted != mode:
            return ACROSS
        if group.flexible and wanted == "outer" and len(group.extents) > outer:
            return ACROSS
        mode = wanted
    elif inner:
        if mode == "outer":
            return ACROSS
        mode = "inner"
    if not depends and not _shares_reads(group, stage):
        return UNRELATED
    if group.flexible:
        group.nests[0].outer = outer
        group.extents = group.extents[:outer]
        group.flexible = False
    group.mode = mode
    nest = group.nests[-1]
    if _fits_nest(nest, stage, group, outer, own):
        nest.stages.append(stage)
    else:
        group.nests.append(Nest([stage], outer))
    _add(group, stage)
    return None


def _replaces_points(group: Group, stage: Stage) -> bool:
    """Whether a stage that is computed over an array can follow, at each point, those of a map kernel:
    each of them reads there the element that the stage replaces, or none of the array.

        before: for i: u[i] = m[i] + g[i];   for i: m[i] = 0.9 * m[i] + g[i]
        after:  for i: u[i] = m[i] + g[i];  m[i] = 0.9 * m[i] + g[i]
    """
    if not (group.flexible and stage.extents == group.extents and _at_own_points(stage)):
        return False
    readers = [s for nest in group.nests for s in nest.stages]
    return all(a.index == s.point for s in readers for a in s.reads if a.array is stage.array)


def _at_own_points(maker: Stage) -> bool:
    """Whether the stage writes every element of its array, each one at the point of its index."""
    return maker.whole and maker.index == maker.point[: maker.outer]


def _shares_reads(group: Group, stage: Stage) -> bool:
    """Whether the stage reads an array that the group reads: a sibling over the same data."""
    if math.prod(group.extents) == 1:
        return True
    return any(a.array in group.reads for a in stage.reads)


def _row_misfit(group: Group, stage: Stage, outer: int) -> Refusal | None:
    """Rows must be small enough to stay in cache, and enough of them to share among cores."""
    rows = math.prod(stage.extents[:outer])
    work = math.prod(stage.extents[outer:])
    largest = max([work, *(math.prod(n.extents) for n in group.nests)])
    if group.flexible:
        largest = max(work, math.prod(group.extents[outer:]))
    if rows * largest <= SERIAL_WORK:
        return None
    if rows < 16:
        return FEW_ROWS
    return LONG_ROWS if largest * stage.array.dtype.itemsize > limits().row_bytes else None


def _fits_nest(nest: Nest, stage: Stage, group: Group, outer: int, own: tuple[Index, ...]) -> bool:
    """Whether the stage can run in the body of the nest's loops."""
    if nest.extents != stage.extents[outer:] or nest.stages[0].chunks != stage.chunks:
        return False
    here = {s.array: s for s in nest.stages}
    for access in stage.reads:
        maker = here.get(access.array)
        if maker is None:
            continue
        if maker.action != "store" or access.index != own:
            return False
    return True


def vector_mode(stage: Stage, outer: int) -> str:
    """The loop whose neighbouring points lie side by side in memory: "inner" or "outer"."""
    inner_vars = [v for v in stage.dims[outer:] if v.extent > 1]
    outer_vars = [v for v in stage.dims[:outer] if v.extent > 1]
    if not inner_vars:
        return "outer" if outer_vars else "inner"
    if not outer_vars or stage.action == "update":
        return "inner"
    along_inner, along_outer = inner_vars[-1], outer_vars[-1]
    if stage.chunks is not None and along_outer is stage.dims[stage.chunks.axis]:
        return "inner"  # chunks differ in length, lanes may not
    score = 0
    for flat in (access.flat for access in stage.reads):
        score += _stride_score(flat.stride(along_inner)) - _stride_score(flat.stride(along_outer))
    total_inner = math.prod(v.extent for v in inner_vars)
    if stage.action == "scan":
        return "outer" if score < 0 else "inner"
    if total_inner < 8 and along_outer.extent >= 2 * total_inner:
        return "outer"
    if total_inner <= min(SHORT_SUM, along_outer.extent) and _slides(stage, along_outer):
        return "outer"
    return "inner" if score >= 0 else "outer"


def _slides(stage: Stage, along: Var) -> bool:
    """Whether neighbours along an outer loop read neighbours, or the same: as windows and convolutions
    do, whose lanes then need not be added up in the end."""
    accesses = (*stage.reads, stage.write)
    return stage.action == "reduce" and all(a.flat.stride(along) in (-1, 0, 1) for a in accesses)


def _stride_score(stride: int | None) -> int:
    """How well a loop suits an access that it moves by so much, or by no fixed number: unit stride
    best, unmoving well, strided badly."""
    return 2 if stride in (1, -1) else 0 if stride == 0 else -2


# The finished kernels, and which arrays stay inside of one.


def _kernels(group: Group) -> list[Kernel]:
    """The finished kernel; or two, what a row kernel does with scalars after its last inner loop apart.

    before: for i: z = sum over k of x[i,k] * w[k]; r[i] = exp(z)       (one exp at a time)
    after:  for i: z[i] = sum over k of x[i,k] * w[k];   for i: r[i] = exp(z[i])       (vectors)

    That pays if rows are short.
    """
    nests, rows = group.nests, math.prod(group.extents)
    count = next((k for k, n in enumerate(reversed(nests)) if math.prod(n.extents) > 1), 0)
    few = not count or rows < limits().many_rows
    whole = Kernel(group.extents, nests, ordered=group.ordered)
    if group.mode != "inner" or group.ordered or group.flexible or few:
        return [whole]
    tail = [s for n in nests[-count:] for s in n.stages]
    work = sum(math.prod(n.extents) for n in nests[:-count])
    if any(s.action != "store" for s in tail) or sum(s.cost for s in tail) * SHORT_ROW < work:
        return [whole]
    outer = len(group.extents)
    after = [Nest(list(alike), outer) for _, alike in groupby(tail, lambda s: s.extents[outer:])]
    return [Kernel(group.extents, nests[:-count]), Kernel(group.extents, after)]


def _find_local(kernel: Kernel, uses: Counter[Array]) -> None:
    """Find the arrays that nothing outside of a kernel touches. `uses` counts what does."""
    outer = len(kernel.extents)
    buffered = 0
    read_here = {a.array for s in kernel.stages for a in s.reads}
    for stage in kernel.stages:
        array = stage.array
        if array.kind != "temp" or uses[array] > 1 or array not in read_here or not stage.whole:
            continue
        if len(array.shape) > outer:
            buffered += math.prod(array.shape[outer:]) * array.dtype.itemsize
            if buffered > STACK_BYTES:
                continue
        kernel.local.add(array)


def _arrays(step: Any) -> set[Array]:
    """All that a step touches."""
    return {a for arrays in touched(step) for a in arrays}
