"""The steps of a compiled program as `explain` shows them: in order, in loops and branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...codegen.module import BlockReport, KernelReport, StepReport
from ...ir.graph import SourceLine
from ...ir.record import fields, record, replace
from ...runtime.machine_limits import MachineLimits
from ...runtime.probing import Costs
from ..messages.source import shown_file

_UNSHOWN = ("check",)  # steps that are of interest only where they cost something
_MOST_NAMES = 4  # that are shown of one line
_REPEATS = 3  # from which on steps that are the same are told once
_LONGEST = 12  # steps in what is repeated
_CLOCK = 1e-7  # seconds: what takes less is not compared with limits
_NOTABLE = 0.01  # share of a call from which on they are shown


@record
class KernelCost:
    """One kernel in the place where it runs.

    name, ops       what it is called in the assembly, and the graph ops that were fused into it
    lines           of the user's source that it computes
    extents         its iteration space
    bytes_read, bytes_written, flops    of one run; where nothing was run, a loop of unknown length
                    inside of it counts once
    parallel        whether threads share it
    note            how it is vectorised
    runs            in one call: how often
    seconds         in one call, all runs together; None where nothing was measured, as of `runs`
    share           of the call
    of_bandwidth    of the bytes a second that this machine moves at most for a call of this size, or,
                    if it is faster, for a kernel of this size
    of_flops        of this machine's flops a second
    of_operations   of the elementwise operations a second that it does in a chain of functions, and of
                    the elements that it reads where indices say; 1 at most
    """

    name: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    extents: tuple[int, ...]
    bytes_read: int
    bytes_written: int
    flops: int
    parallel: bool
    note: str
    runs: int | None = None
    seconds: float | None = None
    share: float | None = None
    of_bandwidth: float | None = None
    of_flops: float | None = None
    of_operations: float | None = None

    @property
    def limit(self) -> tuple[str, float] | None:
        """The limit that it is nearest to, and which part of it is reached."""
        parts = {
            "bandwidth": self.of_bandwidth,
            "flops": self.of_flops,
            "elementwise operations": self.of_operations,
        }
        known = {name: part for name, part in parts.items() if part is not None}
        return max(known.items(), key=lambda item: item[1], default=None)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in fields(self)}


@record
class Step:
    """A kernel, or what stands beside kernels; `blocks` are the steps inside of it."""

    text: str
    line: str
    kernel: KernelCost | None
    runs: int | None
    seconds: float | None
    share: float | None
    blocks: tuple[Block, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "line": self.line,
            "kernel": self.kernel and self.kernel.name,
            "runs": self.runs,
            "seconds": self.seconds,
            "share": self.share,
            "blocks": [
                {
                    "text": block.text,
                    "runs": block.runs,
                    "steps": [s.to_dict() for s in block.steps],
                }
                for block in self.blocks
            ],
        }


@record
class Block:
    """The body of a loop, a branch: steps that run one after the other, `runs` times in one call."""

    text: str
    runs: int | None
    steps: tuple[Step, ...]


def bare(kernels: Sequence[KernelReport]) -> tuple[Step, ...]:
    """Steps of a program of which no more is known than its kernels, in order."""
    made = Measured(None, None, 0)
    return tuple([made.step(StepReport("", kernel), None) for kernel in kernels])


def is_uncounted(report: StepReport) -> bool:
    """Whether there is scalar code in a step whose blocks run as often as only the program knows."""
    inner = [step for block in report.blocks for step in block.steps]
    unknown = report.kernel is not None and any(_is_open(block) for block in report.blocks)
    return unknown or any(map(is_uncounted, inner))


def _is_open(block: BlockReport) -> bool:
    """Whether a block of scalar code, or one in it, has no known number of runs."""
    inner = (b for step in block.steps for b in step.blocks)
    return block.times is None or any(map(_is_open, inner))


def kernels_of(steps: Sequence[Step]) -> Iterator[KernelCost]:
    """In the order in which they run first."""
    for step in steps:
        if step.kernel is not None:
            yield step.kernel
        for block in step.blocks:
            yield from kernels_of(block.steps)


def grouped(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps with those that repeat each other told once: what is the same several times in a row, alone
    or in a sequence, becomes one block of so many runs."""
    found: list[Step] = []
    k = 0
    while k < len(steps):
        length, times = _repeated(steps, k)
        if times < _REPEATS:
            found.append(steps[k])
            k += 1
            continue
        all_of_them = steps[k : k + length * times]
        same = [all_of_them[i::length] for i in range(length)]
        text = f"{times} times in a row"
        found.append(
            Step(text, "", None, None, None, None, (Block("", None, tuple(map(_added, same))),))
        )
        k += length * times
    return tuple(found)


def _repeated(steps: Sequence[Step], start: int) -> tuple[int, int]:
    """How many steps from `start` on are repeated right after, and how often they are there."""
    for length in range(1, min(_LONGEST, (len(steps) - start) // _REPEATS) + 1):
        keys = [_key(step) for step in steps[start : start + length]]
        times = 1
        while [_key(s) for s in steps[start + times * length :][:length]] == keys:
            times += 1
        if times >= _REPEATS and None not in keys:
            return length, times
    return 1, 1


def _key(step: Step) -> object:
    """What makes two steps the same code; None for one that is like no other."""
    kernel = step.kernel
    return None if kernel is None or step.blocks else (kernel.name, kernel.extents, kernel.ops)


def _added(steps: Sequence[Step]) -> Step:
    """Steps that are the same code as one, with all of their time."""
    first = steps[0]
    assert first.kernel is not None
    seconds = _sum([s.seconds for s in steps])
    share = _sum([s.share for s in steps])
    runs = _sum([s.runs for s in steps])
    lines = dict.fromkeys(line for s in steps if s.kernel for line in s.kernel.lines)
    kernel = replace(first.kernel, lines=tuple(lines), seconds=seconds, share=share, runs=runs)
    return replace(first, kernel=kernel, seconds=seconds, share=share, runs=runs)


def _sum(values: Sequence[Any]) -> Any:
    """None if one is."""
    return None if None in values else sum(values)


def place(loc: SourceLine | None) -> str:
    """A line of source, in short."""
    return "" if loc is None else f"{shown_file(loc.file)}:{loc.line}"


def _lines(locs: Sequence[SourceLine]) -> Iterator[str]:
    """The lines, each with the scopes that it was in and with the derivatives that it is there for."""
    by_line: dict[tuple[str, int], list[SourceLine]] = {}
    for loc in sorted(locs, key=lambda loc: (loc.file, loc.line)):
        by_line.setdefault((loc.file, loc.line), []).append(loc)
    for same in by_line.values():
        named = [*(loc.scope for loc in same), *(loc.role for loc in same)]
        names = [name for name in dict.fromkeys(named) if name]
        more = ", ..." if len(names) > _MOST_NAMES else ""
        text = f" ({', '.join(names[:_MOST_NAMES])}{more})" if names else ""
        yield place(same[0]) + text


def _is_shown(step: Step) -> bool:
    return step.text not in _UNSHOWN or (step.share or 0) >= _NOTABLE


class Measured:
    """Makes steps of reports, with what was measured: `costs` and `limits` are None if nothing was.

    `bandwidths` and `flops` are what kernels did beyond the limits, as `machine_limits` takes it.
    """

    def __init__(self, costs: Costs | None, limits: MachineLimits | None, footprint: int) -> None:
        self._costs, self._limits, self._footprint = costs, limits, footprint
        self.bandwidths: dict[int, float] = {}
        self.flops: dict[int, float] = {}

    def steps(self, outline: Sequence[StepReport], entered: int | None = None) -> tuple[Step, ...]:
        """Those that are shown; the block that they stand in runs `entered` times."""
        steps = [self.step(report, entered) for report in outline]
        return tuple([step for step in steps if _is_shown(step)])

    def step(self, report: StepReport, entered: int | None) -> Step:
        """One without a clock, in scalar code, runs as often as its block."""
        runs, seconds, share = entered, None, None
        if self._costs is not None and report.slot >= 0:
            seconds, runs = self._costs.steps[report.slot]
            share = seconds / max(self._costs.seconds, 1e-12)
        blocks = tuple([self._block(block) for block in report.blocks])
        kernel = None
        if report.kernel is not None:
            kernel = self._kernel(report.kernel, self._flops(report, runs), runs, seconds, share)
        return Step(report.text, place(report.loc), kernel, runs, seconds, share, blocks)

    def _block(self, block: BlockReport) -> Block:
        runs = self._runs(block)
        return Block(block.text, runs, self.steps(block.steps, runs))

    def _runs(self, block: BlockReport) -> int | None:
        known = self._costs is not None and block.slot >= 0
        return self._costs.steps[block.slot].runs if self._costs is not None and known else None

    def _flops(self, report: StepReport, runs: int | None) -> int:
        """Of one run; those of scalar code, which has blocks, as often as the blocks ran."""
        assert report.kernel is not None
        if not report.blocks or not runs or None in map(self._runs, report.blocks):
            return report.kernel.flops
        return round(sum(map(self._operations, report.blocks)) / runs)

    def _operations(self, block: BlockReport) -> int:
        """Of a block of scalar code in one call, with what is in it."""
        inner = [b for step in block.steps for b in step.blocks]
        return (self._runs(block) or 0) * block.flops + sum(map(self._operations, inner))

    def _kernel(
        self,
        report: KernelReport,
        flops: int,
        runs: int | None,
        seconds: float | None,
        share: float | None,
    ) -> KernelCost:
        of_bandwidth = of_flops = of_operations = None
        if seconds and runs and self._limits is not None and seconds / runs >= _CLOCK:
            of_bandwidth = self._of_bandwidth(report, runs / seconds, self._limits)
            speed = runs * flops / seconds
            of_flops = speed / self._limits.peak_flops(report.itemsize)
            if of_flops > 1:
                self.flops[report.itemsize] = max(speed, self.flops.get(report.itemsize, 0.0))
            of_operations = _of_operations(report, runs / seconds, self._limits)
        limits = of_bandwidth, of_flops, of_operations
        return _kernel_cost(report, flops, runs, seconds, share, *limits)

    def _of_bandwidth(self, report: KernelReport, often: float, limits: MachineLimits) -> float:
        """The part of the limit that a kernel moves, which runs so often in a second."""
        moved = report.bytes_read + report.bytes_written
        part = often * moved / limits.bandwidth(self._footprint)
        if part > 1:  # what it reads was in a nearer cache
            part = often * moved / limits.bandwidth(moved)
        if part > 1:
            self.bandwidths[moved] = max(often * moved, self.bandwidths.get(moved, 0.0))
        return part


def _of_operations(report: KernelReport, often: float, limits: MachineLimits) -> float | None:
    """The part of what elementwise code does here, of a kernel that runs so often in a second."""
    work = report.work
    if report.rate != "operations" or not (work.slots or work.accesses):
        return None
    busy = work.slots / limits.operation_rate(report.itemsize)
    busy += sum(n / limits.access_rate(size) for size, n in work.accesses)
    return min(often * busy, 1.0)


def _kernel_cost(report: KernelReport, flops: int, *found: Any) -> KernelCost:
    """`found`: runs, seconds, share, of_bandwidth, of_flops, of_operations."""
    return KernelCost(
        report.name,
        report.ops,
        tuple(_lines(report.locs)),
        report.extents,
        report.bytes_read,
        report.bytes_written,
        flops,
        report.parallel,
        report.note,
        *found,
    )
