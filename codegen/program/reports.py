"""What `explain` says of a program: its kernels as they run, in the loops and branches around them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...ir.graph import SourceLine
from ...ir.record import replace
from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.steps import (
    Branch,
    Callback,
    Check,
    Copy,
    Loop,
    Matmul,
    Program,
    RowBlocks,
    ScalarCode,
    Scan,
    Sort,
    Tiled,
    TrueIndices,
    direct,
)
from ..module import BlockReport, KernelReport, StepReport, Work
from ..schedule.blocking import Blocking, blocking
from ..schedule.knobs import knobs_of
from ..schedule.schedule import Schedule
from ..schedule.traffic import bytes_moved
from ..target import Target
from .scalar_reports import branch_names, scalar_block, total_flops
from .work import work_of


class Reports:
    """Reports of the steps of a program that was emitted for `target`; `schedules` are those of its
    kernels."""

    def __init__(
        self,
        steps: Sequence[Any],
        schedules: Sequence[tuple[Kernel, Schedule, str]],
        target: Target,
    ) -> None:
        self._plans = {id(kernel): (plan, name) for kernel, plan, name in schedules}
        self._steps = steps
        self._target = target

    def kernels(self) -> list[KernelReport]:
        """One report for each kernel, in program order."""
        found = [self._kernel(step) for step in self._steps]
        return [report for report in found if report is not None]

    def outline(self, program: Program, slots: Mapping[int, int]) -> tuple[StepReport, ...]:
        """The steps as they run, those of loops and branches inside of these. `slots` are the numbers
        of their probes, by identity."""
        return tuple([self._step(step, slots) for step in program.steps])

    def _step(self, step: Any, slots: Mapping[int, int]) -> StepReport:
        return StepReport(
            _text(step),
            self._kernel(step),
            _line(step),
            slots.get(id(step), -1),
            self._blocks(step, slots),
            isinstance(step, Branch),
            _moves(step),
        )

    def _blocks(self, step: Any, slots: Mapping[int, int]) -> tuple[BlockReport, ...]:
        if isinstance(step, ScalarCode):
            return (scalar_block(step.body, slots),)
        if isinstance(step, RowBlocks):
            return (BlockReport("", tuple(self._parts(step, slots)), times=1),)
        if isinstance(step, Scan) and step.tiles is not None:
            body = [_tiled(report) for report in self.outline(step.body, slots)]
            return (BlockReport("", tuple(body), slots.get(id(step.body), -1), step.length),)
        return tuple(
            [
                BlockReport(text, self.outline(program, slots), slots.get(id(program), -1), times)
                for text, program, times in _blocks(step)
            ]
        )

    def _parts(self, rows: RowBlocks, slots: Mapping[int, int]) -> Iterator[StepReport]:
        """What is said of a part is of all of its rows."""
        touched: set[Array] = set()
        for part in rows.parts:
            report = self._step(part.step, slots)
            arrays = {array for side in direct(part.step) for array in side}
            near = sum(array.nbytes for array in arrays & touched)
            touched |= arrays
            if report.kernel is not None:
                kernel = replace(report.kernel, near=near, parallel=rows.grain < rows.units)
                report = replace(report, kernel=kernel)
            yield report

    def _kernel(self, step: Any) -> KernelReport | None:
        match step:
            case Kernel():
                plan = self._plans.get(id(step))
                if plan is None:
                    return None
                report = _kernel_report(step, *plan)
                return replace(report, work=work_of(step)) if self._target.probe else report
            case Matmul():
                cut = blocking(step, self._target)
                return _matmul_report(step, cut)
            case Tiled():
                return _tiled_report(step)
            case ScalarCode():
                return _scalar_report(step)
            case Sort():
                return _sort_report(step)
            case TrueIndices():
                return _true_indices_report(step)
        return None


def _tiled(report: StepReport) -> StepReport:
    """A step of a loop that goes tile by tile: what it moves is near."""
    kernel = report.kernel
    if kernel is None:
        return report
    near = kernel.bytes_read + kernel.bytes_written
    return replace(report, kernel=replace(kernel, near=near, parallel=True))


def _blocks(step: Any) -> list[tuple[str, Program, int | None]]:
    """The programs inside of a step, what each of them is, and how often it runs, if that is known."""
    match step:
        case Branch():
            names = branch_names(len(step.branches))
            pairs = list(zip(names, step.branches, strict=True))
            return [(n, b, None) for n, b in (pairs[::-1] if len(pairs) == 2 else pairs)]
        case Loop():
            return [("test", step.test, None), ("", step.body, None)]
        case Scan():
            return [("", step.body, step.length)]
    return []


def _moves(step: Any) -> int:
    """Bytes that copies read and write: by themselves, and where loops begin."""
    if isinstance(step, Copy):
        return 2 * step.source.nbytes
    if not isinstance(step, (Loop, Scan)):
        return 0
    carries = [(c.result.nbytes, (c.init is not c.result) + c.both) for c in step.carries]
    return sum(2 * nbytes * times for nbytes, times in carries)


def _text(step: Any) -> str:
    match step:
        case RowBlocks():
            return f"for each of {step.units} blocks of rows"
        case Branch():
            return "branch"
        case Loop():
            return "while"
        case Scan():
            tiles = "" if step.tiles is None else f", {step.tiles.iterations} at a time, by blocks"
            return f"for {step.length:,} iterations" + (" backwards" * step.reverse) + tiles
        case Copy():
            return f"copy {step.source.nbytes:,} B"
        case Callback():
            return "callback"
        case Check():
            return "check"
    return _words(type(step).__name__)


def _words(name: str) -> str:
    """`TapePush` as "tape push"."""
    return "".join([f" {c.lower()}" if c.isupper() else c for c in name]).strip()


def _line(step: Any) -> SourceLine | None:
    if isinstance(step, Kernel):
        return next((s.loc for s in step.stages if s.loc is not None), None)
    return getattr(step, "loc", None)


def _locs(step: Any) -> tuple[SourceLine, ...]:
    return (step.loc,) if step.loc is not None else ()


def _kernel_report(kernel: Kernel, plan: Schedule, name: str) -> KernelReport:
    read, written = bytes_moved(kernel)
    ops = [op for s in kernel.stages for op in reversed(s.ops)]
    last = "outer" if plan.mode == "outer" else "inner"
    nests = len(kernel.nests)
    lanes = f"{plan.width} lane{'s' * (plan.width != 1)} over the {last} loop"
    note = f"{nests} nest{'s' * (nests != 1)}, {lanes}{_asked(kernel, plan)}"
    return KernelReport(
        name=name,
        ops=tuple(ops),
        extents=kernel.extents,
        bytes_read=read,
        bytes_written=written,
        flops=plan.flops + _folded(kernel),
        parallel=plan.parallel,
        note=note,
        locs=kernel.locs,
        itemsize=max((s.array.dtype.itemsize for s in kernel.stages), default=8),
    )


def _asked(kernel: Kernel, plan: Schedule) -> str:
    """What the user asked for, by `jt.schedule`, and tiles that follow from it."""
    knobs = knobs_of(kernel)
    if knobs is None:
        return ""
    tiles = f", tiles of {plan.tile}" if plan.tile and knobs.tile else ""
    return f"{tiles}, as jt.schedule({knobs}) asks"


def _folded(kernel: Kernel) -> int:
    """How often a value is taken in by a reduction, a scan or an update."""
    points = math.prod(kernel.extents)
    folds = [
        (n, s) for n in kernel.nests for s in n.stages if s.action != "store" and s.op != "set"
    ]
    return sum(points * math.prod(nest.extents) for nest, _ in folds)


def _scalar_report(step: ScalarCode) -> KernelReport:
    return KernelReport(
        name=step.name,
        ops=tuple(step.ops),
        bytes_read=sum(a.nbytes for a in step.reads),
        bytes_written=sum(a.nbytes for a in step.writes),
        flops=total_flops(scalar_block(step.body)),
        parallel=step.shared,
        note="scalar code, iterations on several threads" if step.shared else "scalar code",
        rate="scalars",
        locs=_locs(step),
    )


def _tiled_report(step: Tiled) -> KernelReport:
    return KernelReport(
        name=step.name,
        ops=(step.name.rpartition("_")[0],),
        extents=(step.units,),
        bytes_read=sum(a.nbytes for a in step.reads),
        bytes_written=sum(a.nbytes for a in step.writes),
        flops=step.flops,
        parallel=step.grain < step.units,
        note=str(step),
        locs=_locs(step),
        itemsize=max((a.dtype.itemsize for a in step.writes), default=8),
        rate=step.rate,
    )


def _matmul_report(step: Matmul, cut: Blocking) -> KernelReport:
    size = step.c.dtype.itemsize
    knobs = None if step.loc is None else step.loc.knobs
    asked = f", as jt.schedule({knobs}) asks" if knobs is not None and knobs.tile else ""
    tiles = f"tiles of {cut.rows} x {cut.panel}, {min(cut.block, step.m)} rows at a time{asked}"
    return KernelReport(
        name=step.name,
        ops=("dot",),
        extents=(step.batch, step.m, step.n, step.k),
        bytes_read=size * step.batch * (step.m * step.k + step.k * step.n),
        bytes_written=size * step.batch * step.m * step.n,
        flops=step.flops,
        parallel=cut.grain(step) < cut.units(step),
        note=tiles,
        rate="flops",
        locs=_locs(step),
        itemsize=size,
    )


def _sort_report(step: Sort) -> KernelReport:
    return KernelReport(
        name="sort",
        ops=("sort",),
        extents=step.keys.shape,
        bytes_read=step.keys.nbytes,
        bytes_written=step.target.nbytes,
        parallel=True,
        note=f"{step.kind} of {step.key_bits} bits",
        locs=_locs(step),
        rate="sorting",
        work=Work(step.keys.nbytes * _digits(step)),
    )


def _digits(step: Sort) -> float:
    """By how many digits of eight bits each key is sorted; of a selection most are only looked at."""
    return 0.25 if step.window is not None else -(-(step.key_bits - step.settled) // 8)


def _true_indices_report(step: TrueIndices) -> KernelReport:
    return KernelReport(
        name="true_indices",
        ops=("true_indices",),
        extents=step.mask.shape,
        bytes_read=step.mask.nbytes,
        bytes_written=step.target.nbytes,
        locs=_locs(step),
    )
