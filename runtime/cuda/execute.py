"""Running a `DeviceProgram`: memory for it, its steps on a stream, and what its kernels complained of.

    executable = DeviceExecutable(program, context)
    run = executable.run([x.address, y.address], stream)    # returns at once
    run.outputs                             # Buffers, for what comes next on the stream
    run.wait()                              # raises what the program's checks have found

Launches, copies and fills in a row are one table (`launcher.py`). Branches and loops whose way depends
on values are walked here: the host reads the deciding bytes and so waits for them. Programs without such
steps wait for nothing, and when they are called again with the same memory they are one CUDA graph.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...codegen.cuda.program import (
    Carry,
    Copy,
    DeviceProgram,
    Fill,
    HostCall,
    If,
    Launch,
    Ref,
    Scalar,
    Scan,
    Step,
    While,
)
from ...codegen.module import STATUS_WORDS
from ...ir.record import record
from .driver import Context, Module
from .launcher import Launcher, Place, Table, launcher
from .memory import Buffer, context_pool
from .transfers import Pending, Pinned, begin_download, download, upload, upload_to

_SCALARS = {"i32": "<i", "i64": "<q", "f32": "<f", "f64": "<d"}
_FAILURE_WORD = STATUS_WORDS - 1
_GRAPH_COMMANDS = 3  # fewer are launched one by one in no more time
_GRAPHS = 8  # that an executable keeps, for as many sets of addresses
_STATUS_BYTES = 8 * STATUS_WORDS


class Segment:
    """Commands that need no decision: a table, and where it lies."""

    def __init__(self, table: Table) -> None:
        self.words = table.finish()
        self.address = self.words.ctypes.data
        self.commands = table.commands


@record
class Branches:
    index: Place
    ways: tuple[Plan, ...]


@record
class Loop:
    test: Plan
    flag: Place
    body: Plan
    carries: tuple[Carry, ...]


@record
class Trips:
    scan: Scan
    body: Plan


Planned = Segment | Branches | Loop | Trips | HostCall
Plan = tuple[Planned, ...]


class Bases:
    """Numbers of the addresses that the places of a program start from."""

    def __init__(self, program: DeviceProgram) -> None:
        counts = {
            "input": len(program.inputs),
            "output": len(program.outputs),
            "arena": 1,
            "constant": len(program.constants),
            "counters": 1,
            "status": 1,
            "slot": program.slots,
        }
        self.first: dict[str, int] = {}
        self.count = 0
        for space, count in counts.items():
            self.first[space] = self.count
            self.count += count

    def place(self, ref: Ref) -> Place:
        return self.first[ref.space] + ref.number, ref.offset


class _Planner:
    """Steps to plans."""

    def __init__(self, program: DeviceProgram, module: Module, bases: Bases) -> None:
        self._program = program
        self._module = module
        self._bases = bases

    def plan(self, steps: Sequence[Step]) -> Plan:
        planned: list[Planned] = []
        table = Table()
        for step in steps:
            if self._command(step, table):
                continue
            if table.commands:
                planned.append(Segment(table))
                table = Table()
            planned.append(self._control(step))
        if table.commands:
            planned.append(Segment(table))
        return tuple(planned)

    def _command(self, step: Step, table: Table) -> bool:
        """Write a step that needs no decision; False for the others."""
        place = self._bases.place
        if isinstance(step, Launch):
            entry = self._program.kernels[step.kernel]
            handle = self._module.function(step.kernel).handle
            arguments = [
                struct.pack(_SCALARS[a.dtype], a.value) if isinstance(a, Scalar) else place(a)
                for a in step.arguments
            ]
            table.launch(handle, step.grid, entry.threads, entry.shared_bytes, arguments)
        elif isinstance(step, Copy):
            table.copy(place(step.target), place(step.source), step.nbytes)
        elif isinstance(step, Fill):
            table.fill(place(step.target), step.count, step.width, step.value)
        else:
            return False
        return True

    def _control(self, step: Step) -> Planned:
        place = self._bases.place
        if isinstance(step, If):
            return Branches(place(step.index), tuple(self.plan(way) for way in step.branches))
        if isinstance(step, While):
            test, body = self.plan(step.test), self.plan(step.body)
            return Loop(test, place(step.flag), body, step.carries)
        if isinstance(step, Scan):
            return Trips(step, self.plan(step.body))
        assert isinstance(step, HostCall), step
        return step


def is_static(plan: Plan) -> bool:
    """Whether the host decides nothing on the way."""
    return all(
        isinstance(step, Segment) or (isinstance(step, Trips) and is_static(step.body))
        for step in plan
    )


def commands(plan: Plan) -> int:
    """How many commands a static plan is."""
    return sum(
        step.commands if isinstance(step, Segment) else step.scan.length * commands(step.body)
        for step in plan
        if isinstance(step, (Segment, Trips))
    )


class Run:
    """A run that was begun. `outputs` may be used by what comes later on its stream."""

    def __init__(
        self, executable: DeviceExecutable, outputs: list[Buffer], status: Pending | None
    ) -> None:
        self.outputs = outputs
        self._executable = executable
        self._status = status
        self._words: list[int] | None = None  # of the status block, when they are known

    @property
    def may_fail(self) -> bool:
        """Whether the program checks anything."""
        return self._status is not None or self._words is not None

    def succeeded(self) -> bool:
        """Whether it is known by now that no check has failed."""
        if self._status is not None and self._status.done():
            self._settle()
        return self._status is None and not (self._words and self._words[_FAILURE_WORD])

    def wait(self) -> None:
        """Wait until the checks of the run are known. Raises what one has found, each time."""
        self._settle()
        if self._words is not None:
            self._executable.complain(self._words)

    def _settle(self) -> None:
        if self._status is not None:
            self._words, self._status = self._status.wait().tolist(), None


class _Work:
    """Memory that the runs on one stream share, one after the other."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.arena: Buffer | None = None
        self.counters: Buffer | None = None
        self.status: Buffer | None = None
        self.peek: Pinned | None = None


class DeviceExecutable:
    """A program on a device. Runs may be begun from many threads; those on one stream follow each other.

    `graphs`: whether what can be a CUDA graph becomes one. `native`: launch by machine code.
    """

    def __init__(
        self,
        program: DeviceProgram,
        context: Context,
        graphs: bool = True,
        run: Launcher | None = None,
    ) -> None:
        self.program = program
        self.context = context
        self.pool = context_pool(context)
        self.bases = Bases(program)
        self._module = context.load_module(program.ir, program.kernels)
        self.plan = _Planner(program, self._module, self.bases).plan(program.steps)
        self._run_table = run or launcher(context.cuda)
        self._constants: list[Buffer] | None = None
        self._work: dict[int, _Work] = {}
        self._lock = threading.Lock()
        self._graphs: OrderedDict[bytes, int] = OrderedDict()
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        static = is_static(self.plan)
        self.replays = graphs and static and commands(self.plan) >= _GRAPH_COMMANDS
        self.pool.reclaimable(self)

    def run(self, inputs: Sequence[int], stream: int) -> Run:
        """Begin a run. `inputs` are the addresses of the first elements, in memory that lives until the
        stream has come so far."""
        self.context.activate()
        outputs = [
            self.pool.allocate(
                int(np.prod(output.shape, dtype=np.int64)) * output.dtype.itemsize,
                stream,
                f"{output.dtype.name}{list(output.shape)}",
            )
            for output in self.program.outputs
        ]
        with self._lock:
            work = self._work.setdefault(stream, _Work())
        with work.lock:
            bases = self._addresses(inputs, outputs, work, stream)
            state = _State(self, bases, stream, work)
            if work.status is not None:
                self.context.fill(work.status.address, 2 * STATUS_WORDS, 4, 0, stream)
            if self.replays:
                self._replay(state)
            else:
                state.walk(self.plan)
            status = None
            if work.status is not None:
                dtype = np.dtype(np.int64)
                status = begin_download(
                    self.context, work.status.address, (STATUS_WORDS,), dtype, stream, work.status
                )
        return Run(self, outputs, status)

    def _addresses(
        self, inputs: Sequence[int], outputs: list[Buffer], work: _Work, stream: int
    ) -> np.ndarray[Any, Any]:
        program, first = self.program, self.bases.first
        if len(inputs) != len(program.inputs):
            raise TypeError(f"{len(program.inputs)} inputs are needed, {len(inputs)} were given")
        bases = np.zeros(self.bases.count, np.int64)
        for k, address in enumerate(inputs):
            if address % program.inputs[k].alignment:
                raise ValueError(
                    f"input {k} at {address:#x} is not aligned as the program needs it"
                )
            bases[first["input"] + k] = address
        for k, buffer in enumerate(outputs):
            bases[first["output"] + k] = buffer.address
        if program.arena_bytes:
            if work.arena is None:
                work.arena = self.pool.allocate(program.arena_bytes, stream, "scratch memory")
            bases[first["arena"]] = work.arena.address
            if self.context.info.emulated:  # its contents are undefined
                self.context.fill(work.arena.address, program.arena_bytes, 1, 0xFF, stream)
        if program.counter_words:
            if work.counters is None:
                work.counters = self.pool.allocate(4 * program.counter_words, stream, "counters")
                self.context.fill(work.counters.address, program.counter_words, 4, 0, stream)
            bases[first["counters"]] = work.counters.address
        if program.errors or program.callbacks:
            if work.status is None:
                work.status = self.pool.allocate(_STATUS_BYTES, stream, "status")
            bases[first["status"]] = work.status.address
        for k, buffer in enumerate(self._device_constants()):
            buffer.used_on(stream)
            bases[first["constant"] + k] = buffer.address
        return bases

    def _device_constants(self) -> list[Buffer]:
        """The constants on the device, copied there at first."""
        with self._lock:
            if self._constants is None:
                stream = self.context.create_stream()
                self._constants = [
                    upload(self.pool, array, stream, "a constant")
                    for array in self.program.constants
                ]
                self.context.synchronize(stream)
                for buffer in self._constants:
                    buffer.stream = 0
                self.context.destroy_stream(stream)
            return self._constants

    def _replay(self, state: _State) -> None:
        """Run as a graph, if this was asked for with these addresses before."""
        key = struct.pack("<q", state.stream) + state.bases.tobytes()
        with self._lock:
            graph = self._graphs.get(key, 0)
            if graph:
                self._graphs.move_to_end(key)
            elif key not in self._seen:
                self._seen[key] = None
                while len(self._seen) > 4 * _GRAPHS:
                    self._seen.popitem(last=False)
                graph = -1
        if graph < 0:
            state.walk(self.plan)
            return
        if not graph:
            graph = self._capture(state)
            with self._lock:
                self._graphs[key] = graph
                while len(self._graphs) > _GRAPHS:
                    self.context.destroy_graph(self._graphs.popitem(last=False)[1])
        self.context.launch_graph(graph, state.stream)

    def _capture(self, state: _State) -> int:
        context = self.context
        context.begin_capture(state.stream)
        try:
            state.walk(self.plan)
        except BaseException:
            context.abandon_capture(state.stream)
            raise
        return context.end_capture(state.stream)

    def complain(self, words: Sequence[int]) -> None:
        """Raise what the words of a status block say, if they say something."""
        number = words[_FAILURE_WORD]
        if number:
            from ..executable import error_of

            raise error_of(self.program.errors[number - 1], words)

    def release_memory(self) -> None:
        """Give the scratch memory of streams back; the graphs that use it go too."""
        with self._lock:
            graphs = [self._graphs.popitem()[1] for _ in range(len(self._graphs))]
            work = list(self._work.values())
        for one in work:
            if one.lock.acquire(blocking=False):
                try:
                    one.arena = None
                finally:
                    one.lock.release()
        for graph in graphs:
            self.context.destroy_graph(graph)

    def __del__(self) -> None:
        for graph in getattr(self, "_graphs", {}).values():
            self.context.destroy_graph(graph)


class _State:
    """One run on its way through the plan."""

    def __init__(
        self, executable: DeviceExecutable, bases: np.ndarray[Any, Any], stream: int, work: _Work
    ) -> None:
        self.executable = executable
        self.context = executable.context
        self.bases = bases
        self.stream = stream
        self.work = work
        self._slots = executable.bases.first["slot"]

    def address(self, place: Place) -> int:
        return int(self.bases[place[0]]) + place[1]

    def at(self, ref: Ref) -> int:
        return self.address(self.executable.bases.place(ref))

    def walk(self, plan: Plan) -> None:
        for step in plan:
            if isinstance(step, Segment):
                self._segment(step)
            elif isinstance(step, Branches):
                (index,) = struct.unpack("<i", self._peek((step.index, 4))[0])
                self.walk(step.ways[min(max(index, 0), len(step.ways) - 1)])
            elif isinstance(step, Loop):
                self._loop(step)
            elif isinstance(step, Trips):
                self._trips(step)
            else:
                self._host_call(step)

    def _segment(self, segment: Segment) -> None:
        run = self.executable._run_table
        code = run(segment.address, self.bases.ctypes.data, self.stream)
        if code:
            raise self.context.cuda.error("a launch", code)

    def _peek(self, *places: tuple[Place, int]) -> list[bytes]:
        """So many bytes at each place, once the stream has come here."""
        work = self.work
        if work.peek is None:
            work.peek = Pinned(self.context, 2 * _STATUS_BYTES)
        starts = []
        end = work.peek.address
        for place, nbytes in places:
            self.context.copy_out(end, self.address(place), nbytes, self.stream)
            starts.append((end, nbytes))
            end += -(-nbytes // 8) * 8
        self.context.synchronize(self.stream)
        return [ctypes.string_at(start, nbytes) for start, nbytes in starts]

    def _status_place(self) -> tuple[Place, int] | None:
        if self.work.status is None:
            return None
        return (self.executable.bases.first["status"], 0), _STATUS_BYTES

    def _begin(self, carries: Sequence[Carry]) -> None:
        for carry in carries:
            self.bases[self._slots + carry.now] = self.at(carry.home)
            self.bases[self._slots + carry.next] = self.at(carry.spare)

    def _trade(self, carries: Sequence[Carry]) -> None:
        for carry in carries:
            now, following = self._slots + carry.now, self._slots + carry.next
            self.bases[[now, following]] = self.bases[[following, now]]

    def _bring_home(self, carries: Sequence[Carry]) -> None:
        for carry in carries:
            here, home = int(self.bases[self._slots + carry.now]), self.at(carry.home)
            if here != home:
                self.context.copy(home, here, carry.nbytes, self.stream)

    def _loop(self, loop: Loop) -> None:
        status = self._status_place()
        self._begin(loop.carries)
        while True:
            self.walk(loop.test)
            flag, *words = self._peek((loop.flag, 1), *([status] if status else []))
            failed = words and struct.unpack_from("<q", words[0], 8 * _FAILURE_WORD)[0]
            if flag == b"\0" or failed:
                break
            self.walk(loop.body)
            self._trade(loop.carries)
        self._bring_home(loop.carries)

    def _trips(self, trips: Trips) -> None:
        scan = trips.scan
        self._begin(scan.carries)
        for trip in range(scan.length):
            i = scan.length - 1 - trip if scan.reverse else trip
            for one in scan.slices:
                self.bases[self._slots + one.slot] = self.at(one.base) + i * one.stride
            self.walk(trips.body)
            self._trade(scan.carries)
        self._bring_home(scan.carries)

    def _host_call(self, call: HostCall) -> None:
        status = self._status_place()
        if status is not None:
            self.executable.complain(struct.unpack(f"<{STATUS_WORDS}q", self._peek(status)[0]))
        site = self.executable.program.callbacks[call.number]
        operands = []
        for ref, type in zip(call.operands, site.operands, strict=True):
            array = np.empty(type.shape, type.dtype)
            download(self.context, self.at(ref), array, self.stream)
            operands.append(array)
        results = site.function(*operands)
        for ref, type, result in zip(call.results, site.results, results, strict=True):
            array = np.empty(type.shape, type.dtype)
            array[...] = result
            upload_to(self.context, self.at(ref), array, self.stream)
