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

from ...codegen.cuda.program import DeviceProgram
from ...codegen.kernels.tape.cuda_tapes import PEAK, STATE_BYTES
from ...codegen.module import STATUS_WORDS
from ...ir.forks import renewed
from .conditions import RecordedWalk
from .conditions import are_supported as conditions_are_supported
from .cublas import BlasError
from .driver import Context
from .heaps import FIRST_BYTES, enough, has_heap
from .launcher import Location, Table, launcher
from .library import DeviceError
from .memory import DeviceBuffer, context_pool
from .plan import Bases, Plan, Planner, Segment, commands, is_static, may_be_recorded
from .tensor_maps import TensorMaps
from .transfers import Pinned, upload
from .walk import FAILURE_WORD, STATUS_BYTES, Walk, WatchedWalk

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
        self._block: DeviceBuffer | None = None

    def expect(self, block: DeviceBuffer) -> tuple[int, int]:
        """The words of `block` are going to be copied: where to, and the event that tells of it."""
        self._block = block
        return self._pinned.address, self._event

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

    __slots__ = ("_executable", "_status", "_words", "outputs")

    def __init__(
        self, executable: DeviceExecutable, outputs: list[DeviceBuffer], status: Status | None
    ) -> None:
        self.outputs = outputs
        self._executable = executable
        self._status = status
        self._words: list[int] | None = None  # of the status block, when they are known

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
    """What the runs on one stream share, one after the other: scratch memory, and the addresses that
    locations start from, as `Bases` numbers them."""

    def __init__(self, count: int) -> None:
        self.lock = renewed(threading.Lock())
        self.bases = (ctypes.c_int64 * count)()
        self.address = ctypes.addressof(self.bases)
        self.ready = False  # whether the bases are those of the memory here
        self.arena: DeviceBuffer | None = None
        self.counters: DeviceBuffer | None = None
        self.heap: DeviceBuffer | None = None
        self.status: DeviceBuffer | None = None
        self.peek: Pinned | None = None


class DeviceExecutable:
    """A program on a device. Runs may be begun from many threads; those on one stream follow each other.

    `graphs`: whether what can be a CUDA graph becomes one.
    """

    def __init__(self, program: DeviceProgram, context: Context, graphs: bool = True) -> None:
        self.program = program
        self.context = context
        self.pool = context_pool(context)
        self.bases = Bases(program)
        self._module = context.load_module(program.ir, program.kernels)
        planner = Planner(program, self._module, self.bases, context)
        self.plan = planner.plan(program.steps)
        self._watched: Plan | None = None  # the same, each launch apart
        # What libraries need lies behind the program's own scratch memory.
        start = -(-program.arena_bytes // _WORKSPACE_ALIGNMENT) * _WORKSPACE_ALIGNMENT
        self.workspace: Location = self.bases.first["arena"], start
        self._scratch_bytes = (
            start + planner.workspace if planner.workspace else program.arena_bytes
        )
        self._heap_bytes = 0  # of the next heap
        self._may_exceed = False  # whether a run may want more
        if has_heap(program):
            bound = enough(program)
            self._heap_bytes, self._may_exceed = bound or FIRST_BYTES, bound is None
        self.maps, self.described = TensorMaps(context.cuda), planner.maps
        self._run_table = launcher(context.cuda, context.handle)
        self._outputs = [
            (math.prod(o.shape) * o.dtype.itemsize, f"{o.dtype.name}{list(o.shape)}")
            for o in program.outputs
        ]
        self._pack = struct.Struct(f"{len(program.inputs) + len(program.outputs)}q").pack_into
        self._poisons = bool(self._scratch_bytes) and context.info.emulated
        self._constants: list[DeviceBuffer] | None = None
        self._work: dict[int, Work] = {}
        self._statuses: list[Status] = []
        self._lock = renewed(threading.RLock())
        self._graphs: OrderedDict[tuple[int, ...], int] = OrderedDict()
        self._seen: OrderedDict[tuple[int, ...], None] = OrderedDict()
        self._decides = not is_static(self.plan)
        short = commands(self.plan) < _GRAPH_COMMANDS and not self._decides
        recordable = may_be_recorded(self.plan) and commands(self.plan) <= _RECORDED_COMMANDS
        conditions = not self._decides or conditions_are_supported(context)
        self.replays = graphs and recordable and conditions and not short
        self._tables()
        self.pool.reclaimable(self)

    def _tables(self) -> None:
        """What surrounds a run that checks something, and what is one call of machine code."""
        first = self.bases.first
        before, after, replay = Table(), Table(), Table()
        if self._heap_bytes:
            before.fill((first["heap"], 0), STATE_BYTES // 4, 4, 0)
        if self.program.errors or self.program.callbacks:
            before.fill((first["status"], 0), 2 * STATUS_WORDS, 4, 0)
            after.fetch((first["answer"], 0), (first["status"], 0), STATUS_BYTES)
            after.record(first["event"])
        replay.graph(first["graph"])
        self._before, self._after = Segment(before), Segment(after)
        self._replay = _joined(before, replay, after)
        self._whole: Segment | None = None
        if all(isinstance(step, Segment) and not step.maps for step in self.plan):
            tables = [step.table for step in self.plan if isinstance(step, Segment)]
            self._whole = _joined(before, *tables, after)
        looked_at = self.program.errors or self.program.callbacks or self._may_exceed
        simple = not (self.replays or looked_at or self._poisons)
        self._simple = self._whole.address if self._whole is not None and simple else 0

    def run(self, inputs: Sequence[int], stream: int) -> Run:
        """Begin a run. `inputs` are the addresses of the first elements, in memory that lives until the
        stream has come so far."""
        layouts = self.program.inputs
        if len(inputs) != len(layouts):
            raise TypeError(f"{len(layouts)} inputs are needed, {len(inputs)} were given")
        for k, (address, layout) in enumerate(zip(inputs, layouts, strict=True)):
            if address % layout.alignment:
                raise ValueError(
                    f"input {k} at {address:#x} is not aligned as the program needs it"
                )
        return Run(self, *self.begin(inputs, stream))

    def begin(
        self, inputs: Sequence[int], stream: int, watched: str | None = None
    ) -> tuple[list[DeviceBuffer], Status | None]:
        """As `run`, of inputs that are as the program wants them; gives what a Run is made of.

        `watched`: each launch is waited for, and recorded as one of the function of this name.
        """
        outputs, bases = [], [*inputs]
        for nbytes, label in self._outputs:
            buffer = self.pool.allocate(nbytes, stream, label)
            outputs.append(buffer)
            bases.append(buffer.address)
        work = self._work.get(stream) or self._new_work(stream)
        with work.lock:
            if not work.ready:
                self._prepare(work, stream)
            self._pack(work.bases, 0, *bases)
            if self._simple and watched is None:
                code = self._run_table(self._simple, work.address, stream)
                if code:
                    raise self.context.cuda.error("a launch", code)
                return outputs, None
            if self._poisons and work.arena is not None:  # its contents are undefined
                self.context.fill(work.arena.address, self._scratch_bytes, 1, 0xFF, stream)
            status = None
            if work.status is not None:
                status = self._take_status()
                first = self.bases.first
                work.bases[first["answer"]], work.bases[first["event"]] = status.expect(work.status)
            self._launch(bases, work, stream, watched)
            while self._may_exceed and (wanted := self._exceeded(work, stream)):
                self._heap_bytes = max(2 * self._heap_bytes, wanted)
                work.heap = None  # first: there may be room for one of them only
                self._prepare(work, stream)
                self._launch(bases, work, stream, watched)
        return outputs, status

    def _launch(self, bases: Sequence[int], work: Work, stream: int, watched: str | None) -> None:
        if watched is not None:
            if self._watched is None:
                apart = Planner(self.program, self._module, self.bases, self.context, apart=True)
                self._watched = apart.plan(self.program.steps)
            with self.context:
                self._native(self._before, work, stream)
                WatchedWalk(self, stream, work, watched).walk(self._watched)
                self._native(self._after, work, stream)
            return
        heap = (work.heap.address, work.heap.nbytes) if work.heap is not None else ()
        if self.replays and (graph := self._graph((stream, *heap, *bases), work)):
            work.bases[self.bases.first["graph"]] = graph
            self._native(self._replay, work, stream)
        elif self._whole is not None:
            self._native(self._whole, work, stream)
        else:
            with self.context:
                self._native(self._before, work, stream)
                Walk(self, stream, work).walk(self.plan)
                self._native(self._after, work, stream)

    def _exceeded(self, work: Work, stream: int) -> int:
        """How large the heap of the run should have been, if it was too small. Waits for the run."""
        assert work.heap is not None
        if work.peek is None:
            work.peek = Pinned(self.context, 2 * STATUS_BYTES)
        self.context.copy_out(work.peek.address, work.heap.address + PEAK, 8, stream)
        self.context.synchronize(stream)
        wanted = STATE_BYTES + ctypes.c_int64.from_address(work.peek.address).value
        return wanted if wanted > work.heap.nbytes else 0

    def _native(self, segment: Segment, work: Work, stream: int) -> None:
        code = self._run_table(segment.address, work.address, stream)
        if code:
            raise self.context.cuda.error("a launch", code)

    def _new_work(self, stream: int) -> Work:
        with self._lock:
            return self._work.setdefault(stream, Work(self.bases.count))

    def _take_status(self) -> Status:
        with self._lock:
            for k, status in enumerate(self._statuses):
                if status.done():
                    return self._statuses.pop(k)
        return Status(self.context)

    def give_status(self, status: Status) -> None:
        """Back from a run, which may still be under way."""
        self._statuses.append(status)

    def _prepare(self, work: Work, stream: int) -> None:
        """Memory for the runs on a stream."""
        program, first, bases = self.program, self.bases.first, work.bases
        if self._scratch_bytes and work.arena is None:
            work.arena = self.pool.allocate(self._scratch_bytes, stream, "scratch memory")
        if work.arena is not None:
            bases[first["arena"]] = work.arena.address
        if self._heap_bytes:
            if work.heap is None:
                work.heap = self.pool.allocate(self._heap_bytes, stream, "tapes")
            bases[first["heap"]] = work.heap.address
            bases[first["heap"] + 1] = work.heap.address + work.heap.nbytes // 8 * 8
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
        work.ready = True

    def _device_constants(self) -> list[DeviceBuffer]:
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

    def _graph(self, key: tuple[int, ...], work: Work) -> int:
        """The graph of a run with these addresses, if one was asked for before; else 0."""
        graph = self._graphs.get(key)
        if graph is not None:
            if len(self._graphs) == _GRAPHS:
                with self._lock:
                    self._graphs.move_to_end(key)
            return graph
        with self._lock:
            if key not in self._seen and not self._decides:
                self._seen[key] = None
                while len(self._seen) > 4 * _GRAPHS:
                    self._seen.popitem(last=False)
                return 0
        try:
            with self.context:
                graph = self._capture(work)
        except DeviceError as error:
            if not self._decides and not isinstance(error, BlasError):
                raise
            # Nothing has run yet, and the host can decide, and ask for products one by one.
            self.replays = False
            what = (
                "loops wait for the host" if self._decides else "products are launched one by one"
            )
            warnings.warn(
                f"{what}, since a graph of them is refused: {error}", RuntimeWarning, stacklevel=4
            )
            return 0
        with self._lock:
            self._graphs[key] = graph
            while len(self._graphs) > _GRAPHS:
                self.context.destroy_graph(self._graphs.popitem(last=False)[1])
        return graph

    def _capture(self, work: Work) -> int:
        """A graph of the run, captured on a stream of its own: nothing that others ask of the run's
        stream meanwhile, such as freeing memory, is part of it."""
        context = self.context
        stream = context.create_stream()
        try:
            context.begin_capture(stream)
            try:
                RecordedWalk(self, stream, work).walk(self.plan)
            except BaseException:
                context.abandon_capture(stream)
                raise
            return context.end_capture(stream)
        finally:
            context.destroy_stream(stream)

    def attributes(self, kernel: str) -> dict[str, int]:
        """What a kernel needs, as `Function.attributes` says it."""
        return self._module.function(kernel).attributes()

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
                    one.arena = one.heap = None
                    one.ready = False
                finally:
                    one.lock.release()
        for graph in graphs:
            self.context.destroy_graph(graph)

    def __del__(self) -> None:
        for graph in getattr(self, "_graphs", {}).values():
            self.context.destroy_graph(graph)


def _joined(*tables: Table) -> Segment:
    whole = Table()
    for table in tables:
        whole.extend(table)
    return Segment(whole)
