"""Running a `DeviceProgram`: memory for it, its steps on a stream, and what its kernels complained of.

    executable = DeviceExecutable(program, context)
    run = executable.run([x.address, y.address], stream)    # returns at once
    run.outputs                             # Buffers, for what comes next on the stream
    run.wait()                              # raises what the program's checks have found

Launches, copies and fills in a row are one table (`launcher.py`). A program that is called again with
the same memory is one CUDA graph; so is one with loops and branches, at once, where the driver lets the
device decide them (`conditions.py`). Otherwise the host reads the deciding bytes, and so waits for them.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...codegen.cuda.program import DeviceProgram
from ...codegen.module import STATUS_WORDS
from .conditions import RecordedWalk
from .conditions import are_supported as conditions_are_supported
from .driver import Context
from .launcher import Launcher, Place, launcher
from .library import DeviceError
from .memory import Buffer, context_pool
from .plan import Bases, Planner, commands, is_static, may_be_recorded
from .tensor_maps import TensorMaps
from .transfers import Pinned, upload
from .walk import FAILURE_WORD, STATUS_BYTES, Walk

_GRAPH_COMMANDS = 3  # fewer are launched one by one in no more time
_RECORDED_COMMANDS = 4096  # longer ones are not made into graphs
_WORKSPACE_ALIGNMENT = 256
_GRAPHS = 8  # that an executable keeps, for as many sets of addresses


class Status:
    """Where the words of a status block arrive on the host; used again and again."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pinned = Pinned(context, STATUS_BYTES)
        self._event = context.create_event()
        self._block: Buffer | None = None

    def fetch(self, block: Buffer, stream: int) -> None:
        """Ask for what the block holds when the stream has come so far."""
        self._block = block
        self._context.copy_out(self._pinned.address, block.address, STATUS_BYTES, stream)
        self._context.record_event(self._event, stream)

    def done(self) -> bool:
        return self._block is None or self._context.has_happened(self._event)

    def wait(self) -> list[int]:
        if self._block is not None:
            self._context.synchronize_event(self._event)
            self._block = None
        return list((ctypes.c_int64 * STATUS_WORDS).from_address(self._pinned.address))

    def __del__(self) -> None:
        if sys.is_finalizing() or not getattr(self, "_event", 0):
            return
        if self._block is not None:
            self.wait()  # the memory may not go while the device writes it
        self._context.destroy_event(self._event)


class Run:
    """A run that was begun. `outputs` may be used by what comes later on its stream."""

    def __init__(
        self, executable: DeviceExecutable, outputs: list[Buffer], status: Status | None
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
        return self._status is None and not (self._words and self._words[FAILURE_WORD])

    def wait(self) -> None:
        """Wait until the checks of the run are known. Raises what one has found, each time."""
        self._settle()
        if self._words is not None:
            self._executable.complain(self._words)

    def _settle(self) -> None:
        if self._status is not None:
            self._words = self._status.wait()
            self._executable.give_status(self._status)
            self._status = None

    def __del__(self) -> None:
        if self._status is not None:
            self._executable.give_status(self._status)


class Work:
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
        planner = Planner(program, self._module, self.bases, context)
        self.plan = planner.plan(program.steps)
        # What libraries need lies behind the program's own scratch memory.
        start = -(-program.arena_bytes // _WORKSPACE_ALIGNMENT) * _WORKSPACE_ALIGNMENT
        self.workspace: Place = self.bases.first["arena"], start
        self._scratch_bytes = (
            start + planner.workspace if planner.workspace else program.arena_bytes
        )
        self.maps, self.map_count = TensorMaps(context.cuda), planner.map_count
        self._run_table = run or launcher(context.cuda)
        self._outputs = [
            (math.prod(o.shape) * o.dtype.itemsize, f"{o.dtype.name}{list(o.shape)}")
            for o in program.outputs
        ]
        self._no_bases = np.zeros(self.bases.count, np.int64)
        self._constants: list[Buffer] | None = None
        self._work: dict[int, Work] = {}
        self._statuses: list[Status] = []
        self._lock = threading.Lock()
        self._graphs: OrderedDict[bytes, int] = OrderedDict()
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._decides = not is_static(self.plan)
        short = commands(self.plan) < _GRAPH_COMMANDS and not self._decides
        recordable = may_be_recorded(self.plan) and commands(self.plan) <= _RECORDED_COMMANDS
        conditions = not self._decides or conditions_are_supported(context)
        self.replays = graphs and recordable and conditions and not short
        self.pool.reclaimable(self)

    def run(self, inputs: Sequence[int], stream: int) -> Run:
        """Begin a run. `inputs` are the addresses of the first elements, in memory that lives until the
        stream has come so far."""
        with self.context:
            return self._begin(inputs, stream)

    def _begin(self, inputs: Sequence[int], stream: int) -> Run:
        outputs = [self.pool.allocate(nbytes, stream, label) for nbytes, label in self._outputs]
        with self._lock:
            work = self._work.setdefault(stream, Work())
        with work.lock:
            bases = self._addresses(inputs, outputs, work, stream)
            state = Walk(self, bases, stream, work)
            if work.status is not None:
                self.context.fill(work.status.address, 2 * STATUS_WORDS, 4, 0, stream)
            if self.replays:
                self._replay(state)
            else:
                state.walk(self.plan)
            status = None
            if work.status is not None:
                status = self._take_status()
                status.fetch(work.status, stream)
        return Run(self, outputs, status)

    def _take_status(self) -> Status:
        with self._lock:
            for k, status in enumerate(self._statuses):
                if status.done():
                    return self._statuses.pop(k)
        return Status(self.context)

    def give_status(self, status: Status) -> None:
        """Back from a run, which may still be under way."""
        self._statuses.append(status)

    def _addresses(
        self, inputs: Sequence[int], outputs: list[Buffer], work: Work, stream: int
    ) -> np.ndarray[Any, Any]:
        program, first = self.program, self.bases.first
        if len(inputs) != len(program.inputs):
            raise TypeError(f"{len(program.inputs)} inputs are needed, {len(inputs)} were given")
        bases = self._no_bases.copy()
        for k, address in enumerate(inputs):
            if address % program.inputs[k].alignment:
                raise ValueError(
                    f"input {k} at {address:#x} is not aligned as the program needs it"
                )
            bases[first["input"] + k] = address
        for k, buffer in enumerate(outputs):
            bases[first["output"] + k] = buffer.address
        if self._scratch_bytes:
            if work.arena is None:
                work.arena = self.pool.allocate(self._scratch_bytes, stream, "scratch memory")
            bases[first["arena"]] = work.arena.address
            if self.context.info.emulated:  # its contents are undefined
                self.context.fill(work.arena.address, self._scratch_bytes, 1, 0xFF, stream)
        if program.counter_words:
            if work.counters is None:
                work.counters = self.pool.allocate(4 * program.counter_words, stream, "counters")
                self.context.fill(work.counters.address, program.counter_words, 4, 0, stream)
            bases[first["counters"]] = work.counters.address
        if program.errors or program.callbacks:
            if work.status is None:
                work.status = self.pool.allocate(STATUS_BYTES, stream, "status")
            bases[first["status"]] = work.status.address
        for k, buffer in enumerate(self._device_constants()):
            buffer.used_on(stream)
            bases[first["constant"] + k] = buffer.address
        return bases

    def _device_constants(self) -> list[Buffer]:
        """The constants on the device, copied there at first."""
        with self._lock:
            if self._constants is None and not self.program.constants:
                self._constants = []
            elif self._constants is None:
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

    def _replay(self, state: Walk) -> None:
        """Run as a graph, if this was asked for with these addresses before."""
        key = struct.pack("<q", state.stream) + state.bases.tobytes()
        with self._lock:
            graph = self._graphs.get(key, 0)
            if graph:
                self._graphs.move_to_end(key)
            elif key not in self._seen and not self._decides:
                self._seen[key] = None
                while len(self._seen) > 4 * _GRAPHS:
                    self._seen.popitem(last=False)
                graph = -1
        if graph < 0:
            state.walk(self.plan)
            return
        if not graph:
            try:
                graph = self._capture(state)
            except DeviceError as error:
                if not self._decides:
                    raise
                # Nothing has run yet, and the host can decide.
                self.replays = False
                warnings.warn(
                    f"loops wait for the host, since the driver refuses them in a graph: {error}",
                    RuntimeWarning,
                    stacklevel=4,
                )
                state.walk(self.plan)
                return
            with self._lock:
                self._graphs[key] = graph
                while len(self._graphs) > _GRAPHS:
                    self.context.destroy_graph(self._graphs.popitem(last=False)[1])
        self.context.launch_graph(graph, state.stream)

    def _capture(self, state: Walk) -> int:
        """A graph of the run, captured on a stream of its own: nothing that others ask of the run's
        stream meanwhile, such as freeing memory, is part of it."""
        context = self.context
        stream = context.create_stream()
        try:
            context.begin_capture(stream)
            try:
                RecordedWalk(self, state.bases, stream, state.work).walk(self.plan)
            except BaseException:
                context.abandon_capture(stream)
                raise
            return context.end_capture(stream)
        finally:
            context.destroy_stream(stream)

    def complain(self, words: Sequence[int]) -> None:
        """Raise what the words of a status block say, if they say something."""
        number = words[FAILURE_WORD]
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
