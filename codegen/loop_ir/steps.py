"""The steps of a program: kernels and what stands beside them, and which arrays each step touches.

    Program   a list of steps over arrays: kernels, products, branches, loops, callbacks

A new kind of step is a class here, a member of `Step`, and a line in `direct`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from ...ir.graph import SourceLine
from ...ir.record import field, record
from ..journal import Subject
from ..limits import limits
from ..module import CopySite
from .kernel import Array, Kernel


@record(frozen=False, eq=False)
class Tiled:
    """A step that is loops around micro-kernels (see `tiled`), cut into units that threads share."""

    loc: SourceLine | None = field(default=None, kw_only=True)
    name: str = field(default="", kw_only=True)
    rate: ClassVar[str] = "flops"  # what limits its speed (`module.KernelReport`)

    @property
    def reads(self) -> list[Array]:
        raise TypeError("every kind of step says what it reads")

    @property
    def writes(self) -> list[Array]:
        raise TypeError("every kind of step says what it writes")

    @property
    def vain(self) -> list[Array]:
        """Arrays of which it may read what nobody wrote, and use none of it."""
        return []

    @property
    def units(self) -> int:
        raise TypeError("every kind of step says how many units it has")

    @property
    def flops(self) -> int:
        raise TypeError("every kind of step says how much work it is")

    @property
    def grain(self) -> int:
        """How many units a thread takes at a time; all of them if they are not worth sharing."""
        shares = min(self.flops / limits().shared_flops, 64.0)
        return self.units if shares < 2 else max(int(self.units / shares), 1)


@record(frozen=False, eq=False)
class Matmul:
    """c[b, m, n] = a[b, m, k] @ b[b, k, n]; a and b are arrays with explicit strides.

    a's rows or its columns lie side by side. b's rows do, and if there is a `panel`, b lies packed in
    panels of so many columns (b_strides[0] leads from batch to batch), the last one filled up.
    `element`: what float of 16 bits, "f16" or "bf16", the words of a and b stand for; c is float32.
    `watched`: of which kinds c should have no element, see the op `watched`. `upper`: of c only what
    is on the diagonal and to the right of it is asked for.
    """

    a: Array
    b: Array
    c: Array
    batch: int
    m: int
    n: int
    k: int
    a_strides: tuple[int, int, int]  # batch, m, k
    b_strides: tuple[int, int, int]  # batch, k, n
    a_offset: int = 0
    b_offset: int = 0
    panel: int = 0
    loc: SourceLine | None = None
    name: str = ""
    element: str = ""
    watched: str = ""
    upper: bool = False

    @property
    def flops(self) -> int:
        total = 2 * self.batch * self.m * self.n * self.k
        return total // 2 if self.upper else total


class Part(NamedTuple):
    """A step of row blocks: it has `total` rows, of which a unit does `length` (the last one fewer).

    `plan` is its schedule, or how the product is cut: one that goes by these rows.
    """

    step: Kernel | Matmul
    length: int
    total: int
    plan: Any


@record(frozen=False, eq=False)
class RowBlocks:
    """For each unit, which threads share: each part's rows of that unit, one part after the other.

    `local` are arrays that nothing else touches: they need memory for one unit only, so many elements.
    """

    units: int
    parts: list[Part]
    grain: int
    spans: dict[Array, int]  # elements that each unit writes and reads of an array
    local: dict[Array, int] = field(default_factory=dict)


@record(frozen=False, eq=False)
class Sort:
    """Sort rows of encoded elements, `keys`, into `target`; see `lower_sorting` for the kinds.

    `keys` and `scratch` (of the same size, or `keys` again) are overwritten, and `counts`. With memory
    for counts, `target` may be `keys` again. Of `key_bits` the last `settled` are in order where the
    others are equal: they need no sorting.
    """

    keys: Array
    target: Array
    scratch: Array
    counts: Array
    kind: str
    key_bits: int
    loc: SourceLine | None = None
    window: tuple[int, int] | None = None  # only these elements of each row are wanted
    settled: int = 0

    @property
    def axis(self) -> int:
        """The axis that rows run along: the last, or last but one if elements are pairs."""
        return -2 if self.kind == "pairs" else -1


@record(frozen=False, eq=False)
class TrueIndices:
    """Where rows of bytes, `mask`, are 1, then where they are 2, ...: as many indices as a row of
    `target` has, filled up with the length of a row. Both are contiguous."""

    mask: Array
    target: Array
    classes: int
    loc: SourceLine | None = None


@record(frozen=False, eq=False)
class Branch:
    """Run one of `branches`, chosen by the int32 in `index` (clamped into range)."""

    index: Array
    branches: list[Program]
    loc: SourceLine | None = None


@record(frozen=False, eq=False)
class Carry:
    """One value that a loop carries. `now` and `next` are slot arrays: they name a pointer.

    The loop starts with `init` copied to `result`, where `now` points, if that is another array. The
    body writes `next`, which points to `spare`; then the two pointers are exchanged. In the end the
    value is copied to `result` if it is not there. No `spare`: the body works in place, and `next` is
    not used. `both`: the spare starts with the initial value too, since the body does not write all of
    it.
    """

    init: Array
    now: Array
    next: Array
    result: Array
    spare: Array | None
    both: bool = False


@record(frozen=False, eq=False)
class Loop:
    """`while test: body`. `test` is a program that writes `flag`."""

    carries: list[Carry]
    test: Program
    flag: Array
    body: Program
    loc: SourceLine | None = None


@record(frozen=False, eq=False)
class Moving:
    """A slot that points at this iteration's slice of an array, along axis 0."""

    whole: Array
    slice: Array


class TilePart(NamedTuple):
    """A kernel of a loop's body: it writes `rows` rows from `first` on; `each` of its range is a row.

    `plan` is a schedule that goes by rows.
    """

    step: Kernel
    plan: Any
    first: int
    rows: int
    each: int
    level: int


@record(frozen=False, eq=False)
class TimeTiles:
    """How a loop does several `iterations` at a time on each of `units` blocks of rows (`time_tiles`).

    A part reads rows at most `reach` away from those that it writes, so that an iteration does `shrink`
    rows fewer at each side of a block than the one before. `margin` rows more are left to the edges
    between blocks. Threads take `grain` blocks at a time.
    """

    parts: list[TilePart]
    first: int
    rows: int
    units: int
    iterations: int
    reach: int
    shrink: int
    margin: int
    grain: int


@record(frozen=False, eq=False)
class Scan:
    """`for i in range(length): body`, from the last i to the first if `reverse`.

    With `tiles` the body's kernels run tile by tile, so that its temporaries live as long as the loop.
    """

    carries: list[Carry]
    xs: list[Moving]
    ys: list[Moving]
    length: int
    reverse: bool
    body: Program
    loc: SourceLine | None = None
    tiles: TimeTiles | None = None


@record(frozen=False, eq=False)
class ScalarCode:
    """Statements over single numbers (`scalar_code.Block`)."""

    body: Any
    reads: list[Array]
    writes: list[Array]
    ops: list[str]
    work: int  # scalar operations of one run, loops of unknown length counted once
    shared: bool = False  # among threads, once it is emitted
    name: str = ""
    loc: SourceLine | None = None

    @property
    def subject(self) -> Subject:
        """What notes call it."""
        return Subject("the loop", self.loc)


@record(frozen=False, eq=False)
class TapeNew:
    """Make an empty tape; `handle` (int64, 0-d) stands for it from then on."""

    handle: Array
    site: int  # error site of "no memory"


@record(frozen=False, eq=False)
class TapePush:
    """Append one record, copies of `values`, to a tape."""

    handle: Array
    values: list[Array]
    site: int


@record(frozen=False, eq=False)
class TapePop:
    """Take the last record off a tape, into `values`."""

    handle: Array
    values: list[Array]


@record(frozen=False, eq=False)
class StoreRoot:
    """Put where the call's containers, or its tapes, are kept (an address, as 64 bits) into `handle`."""

    handle: Array
    tapes: bool = False


@record(frozen=False, eq=False)
class Callback:
    """Call back into Python: function number `number` of the module, on contiguous arrays."""

    number: int
    operands: list[Array]
    results: list[Array]


@record(frozen=False, eq=False)
class Check:
    """Stop with error site `site` unless `flag` is true; `values` (0-d) go into its message."""

    flag: Array
    site: int
    values: list[Array] = field(default_factory=list)


@record(frozen=False, eq=False)
class Copy:
    """Copy a whole contiguous array (of equal size in bytes)."""

    source: Array
    target: Array


Step = (
    Kernel
    | Matmul
    | Tiled
    | RowBlocks
    | Sort
    | TrueIndices
    | Branch
    | Loop
    | Scan
    | ScalarCode
    | TapeNew
    | TapePush
    | TapePop
    | StoreRoot
    | Callback
    | Check
    | Copy
)


@record(frozen=False, eq=False)
class Program:
    """Steps in execution order; `copies` are those that each run makes and could have been spared."""

    steps: list[Any] = field(default_factory=list)
    copies: list[CopySite] = field(default_factory=list)


def inner_programs(step: Any) -> list[Program]:
    """The programs of a branch or loop, in the order in which they first run."""
    if isinstance(step, Branch):
        return step.branches
    if isinstance(step, Loop):
        return [step.test, step.body]
    return [step.body] if isinstance(step, Scan) else []


def steps_within(program: Program) -> Sequence[Any]:
    """Every step, those of branches and loop bodies included."""
    steps: list[Any] = []
    for step in program.steps:
        steps.append(step)
        if isinstance(step, RowBlocks):
            steps.extend(part.step for part in step.parts)
        for inner in inner_programs(step):
            steps.extend(steps_within(inner))
    return steps


def touched(step: Any) -> tuple[list[Array], list[Array]]:
    """Arrays that a step reads and writes, those of its inner programs included."""
    reads, writes = direct(step)
    for program in inner_programs(step):
        for inner in steps_within(program):
            r, w = direct(inner)
            reads += r
            writes += w
    return reads, writes


def outside(step: Any) -> tuple[list[Array], list[Array]]:
    """Arrays that a step reads and writes by itself, without those that live inside it only."""
    inner = [part.step for part in step.parts] if isinstance(step, RowBlocks) else []
    hidden = {a for s in (step, *inner) if isinstance(s, Kernel | RowBlocks) for a in s.local}
    reads, writes = direct(step)
    return [a for a in reads if a not in hidden], [a for a in writes if a not in hidden]


def direct(step: Any) -> tuple[list[Array], list[Array]]:
    """Arrays that a step reads and writes by itself."""
    match step:
        case Kernel():
            return [a.array for s in step.stages for a in s.reads], [s.array for s in step.stages]
        case Matmul():
            return [step.a, step.b], [step.c]
        case Tiled():
            return step.reads, step.writes
        case RowBlocks():
            each = [direct(part.step) for part in step.parts]
            return [a for r, _ in each for a in r], [a for _, w in each for a in w]
        case Sort():
            return [step.keys], [step.keys, step.target, step.scratch, step.counts]
        case TrueIndices():
            return [step.mask], [step.target]
        case Copy():
            return [step.source], [step.target]
        case Check():
            return [step.flag, *step.values], []
        case Callback():
            return list(step.operands), list(step.results)
        case TapeNew():
            return [], [step.handle]
        case TapePush():
            return [step.handle, *step.values], [step.handle]
        case StoreRoot():
            return [], [step.handle]
        case TapePop():
            return [step.handle], [step.handle, *step.values]
        case ScalarCode():
            return list(step.reads), list(step.writes)
        case Branch():
            return [step.index], []
    carries: list[Carry] = step.carries
    reads = [c.init for c in carries]
    writes = [a for c in carries for a in (c.now, c.next, c.result, c.spare) if a is not None]
    if isinstance(step, Loop):
        return [*reads, step.flag], writes
    return [*reads, *(m.whole for m in step.xs)], [*writes, *(m.whole for m in step.ys)]
