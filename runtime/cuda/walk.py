"""One run on its way through a plan, the host deciding what must be decided."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.cuda.program import MAP_BYTES, Carry, HostCall, Ref, TapeNew, TapePop, TapePush
from ...codegen.module import STATUS_WORDS
from ..recording import span
from .launcher import Location
from .plan import BlasCall, Branches, LoopPlan, Plan, ScanPlan, Segment
from .tapes import Tapes
from .transfers import Pinned, download, upload_to

if TYPE_CHECKING:
    from .execute import DeviceExecutable, Work

STATUS_BYTES = 8 * STATUS_WORDS
FAILURE_WORD = 7  # of the status block: the number of the error site


class Walk:
    """One run on its way through the plan."""

    def __init__(self, executable: DeviceExecutable, stream: int, work: Work) -> None:
        self.executable = executable
        self.context = executable.context
        self.bases = work.bases
        self.stream = stream
        self.work = work
        self._slots = executable.bases.first["slot"]
        self.tapes = Tapes(executable.pool, stream)
        self._described: np.ndarray[Any, Any] | None = None  # room for tensor maps

    def address(self, location: Location) -> int:
        return self.bases[location[0]] + location[1]

    def at(self, ref: Ref) -> int:
        return self.address(self.executable.bases.locate(ref))

    def walk(self, plan: Plan) -> None:
        for step in plan:
            if isinstance(step, Segment):
                self._segment(step)
            elif isinstance(step, BlasCall):
                self._library_call(step)
            elif isinstance(step, Branches):
                self._branches(step)
            elif isinstance(step, LoopPlan):
                self._loop(step)
            elif isinstance(step, ScanPlan):
                self._iterations(step)
            elif isinstance(step, HostCall):
                self._host_call(step)
            else:
                self._tape(step)

    def _branches(self, branches: Branches) -> None:
        (index,) = struct.unpack("<i", self._peek((branches.index, 4))[0])
        self.walk(branches.ways[min(max(index, 0), len(branches.ways) - 1)])

    def _segment(self, segment: Segment) -> None:
        run = self.executable._run_table
        if segment.maps:
            self._describe(segment)
        code = run(segment.address, self.work.address, self.stream)
        if code:
            raise self.context.cuda.error("a launch", code)

    def _library_call(self, call: BlasCall) -> None:
        at = self.address
        workspace = at(self.executable.workspace)
        call.product.run(
            at(call.left), at(call.right), at(call.result), at(call.bias), workspace, self.stream
        )

    def _describe(self, segment: Segment) -> None:
        """Make the tensor maps of the segment's launches, for the addresses of now."""
        executable = self.executable
        if self._described is None:
            self._described = np.empty(MAP_BYTES * len(executable.described), np.uint8)
        start = self._described.ctypes.data
        self.bases[executable.bases.first["maps"]] = start
        for number, map in segment.maps.items():
            executable.maps.write(map, self.at(map.base), start + MAP_BYTES * number)

    def _peek(self, *locations: tuple[Location, int]) -> list[bytes]:
        """So many bytes at each location, once the stream has come here."""
        work = self.work
        if work.peek is None:
            work.peek = Pinned(self.context, 2 * STATUS_BYTES)
        starts = []
        end = work.peek.address
        for location, nbytes in locations:
            self.context.copy_out(end, self.address(location), nbytes, self.stream)
            starts.append((end, nbytes))
            end += -(-nbytes // 8) * 8
        self.context.synchronize(self.stream)
        return [ctypes.string_at(start, nbytes) for start, nbytes in starts]

    def _status_location(self) -> tuple[Location, int] | None:
        if self.work.status is None:
            return None
        return (self.executable.bases.first["status"], 0), STATUS_BYTES

    def _begin(self, carries: Sequence[Carry]) -> None:
        for carry in carries:
            self.bases[self._slots + carry.now] = self.at(carry.home)
            self.bases[self._slots + carry.next] = self.at(carry.spare)

    def _trade(self, carries: Sequence[Carry]) -> None:
        for carry in carries:
            now, following = self._slots + carry.now, self._slots + carry.next
            self.bases[now], self.bases[following] = self.bases[following], self.bases[now]

    def _bring_home(self, carries: Sequence[Carry]) -> None:
        for carry in carries:
            here, home = self.bases[self._slots + carry.now], self.at(carry.home)
            if here != home:
                self.context.copy(home, here, carry.nbytes, self.stream)

    def _loop(self, loop: LoopPlan) -> None:
        status = self._status_location()
        self._begin(loop.carries)
        while True:
            self.walk(loop.test)
            flag, *words = self._peek((loop.flag, 1), *([status] if status else []))
            failed = words and struct.unpack_from("<q", words[0], 8 * FAILURE_WORD)[0]
            if flag == b"\0" or failed:
                break
            self.walk(loop.body)
            self._trade(loop.carries)
        self._bring_home(loop.carries)

    def _iterations(self, plan: ScanPlan) -> None:
        scan = plan.scan
        self._begin(scan.carries)
        for iteration in range(scan.length):
            i = scan.length - 1 - iteration if scan.reverse else iteration
            for one in scan.slices:
                self.bases[self._slots + one.slot] = self.at(one.base) + i * one.stride
            self.walk(plan.body)
            self._trade(scan.carries)
        self._bring_home(scan.carries)

    def _host_call(self, call: HostCall) -> None:
        status = self._status_location()
        if status is not None:
            self.executable.complain(struct.unpack(f"<{STATUS_WORDS}q", self._peek(status)[0]))
        site = self.executable.program.callbacks[call.number]
        operands = []
        for ref, type in zip(call.operands, site.operands, strict=True):
            array = np.empty(type.shape, type.dtype)
            download(self.context, self.at(ref), array, self.stream)
            operands.append(array)
        with self.context.let_go():
            results = site.function(*operands)
        for ref, type, result in zip(call.results, site.results, results, strict=True):
            array = np.empty(type.shape, type.dtype)
            array[...] = result
            upload_to(self.context, self.at(ref), array, self.stream)

    def _tape(self, step: TapeNew | TapePush | TapePop) -> None:
        """The handle is read and written like any number; kernels copy and keep it."""
        if isinstance(step, TapeNew):
            self._write_number(step.handle, self.tapes.new())
            return
        location = self.executable.bases.locate(step.handle)
        (handle,) = struct.unpack("<q", self._peek((location, 8))[0])
        values = [(self.at(ref), nbytes) for ref, nbytes in step.values]
        if isinstance(step, TapePop):
            self.tapes.pop(handle, values)
            return
        if not handle:
            handle = self.tapes.new()
            self._write_number(step.handle, handle)
        self.tapes.push(handle, values)

    def _write_number(self, ref: Ref, number: int) -> None:
        """Write an int64."""
        at = self.at(ref)
        for offset, half in ((0, number & 0xFFFFFFFF), (4, number >> 32)):
            self.context.fill(at + offset, 1, 4, half, self.stream)


class WatchedWalk(Walk):
    """A run while it is recorded: each launch is waited for, and is a span."""

    def __init__(self, executable: DeviceExecutable, stream: int, work: Work, name: str) -> None:
        super().__init__(executable, stream, work)
        self._function = name
        self._reports = {report.name: report for report in executable.program.reports[::-1]}

    def _segment(self, segment: Segment) -> None:
        report = self._reports.get(segment.name)
        loc = next(iter(report.locs), None) if report is not None else None
        name = segment.name if report is None else report.title
        with span("kernel", name, function=self._function, loc=loc):
            super()._segment(segment)
            self.context.synchronize(self.stream)

    def _library_call(self, call: BlasCall) -> None:
        with span("library", "cuBLASLt", function=self._function):
            super()._library_call(call)
            self.context.synchronize(self.stream)
