"""Kernels on the emulated GPU: loading a module's text, and launching.

    module = EmulatedModule(program.ir)
    module.launch("softmax", grid=(4, 1, 1), block=(128, 1, 1), arguments=packed, order=GREEDY)

One launch of a process runs at a time, on the calling thread. What is compiled is kept on disk.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from ....codegen.llvm.modules import module_ir
from ....ir.forks import renewed
from ....ir.record import record
from ...cache.disk import disk_cache
from ...cache.installation import digest, installation
from ...native.engine import host_engine, load_code
from ...native.host import host_target
from ...native.image import LoadedImage
from ...native.records import dump_code, load_code_record
from ...native.support import load_support
from .. import assemble
from . import boxes, races, warpgroups
from . import layout as at
from .boxes import BOXES
from .coroutines import host_text
from .mbarriers import MBARRIERS
from .memory import MEMORY
from .scheduler import SCHEDULER
from .warpgroups import WARPGROUPS
from .warps import warp_operation


class EmulationError(RuntimeError):
    """A kernel did what it must not: a bug in jitney. `kind` is one of the errors of `layout`."""

    def __init__(self, message: str, kind: int) -> None:
        super().__init__(message)
        self.kind = kind


@record
class Order:
    """In which order threads run, and when copies arrive.

    direction   1: blocks, warps and lanes upwards; -1: downwards; 0: as `seed` says
    greedy      stay with a warp until all of it waits, rather than give each a step in turn
    eager       asynchronous copies arrive at once, rather than as late as they may
    fill        the bytes of shared memory when a block starts
    """

    direction: int = 1
    greedy: bool = False
    eager: bool = False
    seed: int = 0
    fill: int = 0xFF

    def __str__(self) -> str:
        way = {1: "forwards", -1: "backwards", 0: f"shuffled by {self.seed}"}[self.direction]
        return way + ", greedy" * self.greedy + ", eager copies" * self.eager

    def stride(self, blocks: int) -> tuple[int, int]:
        """(stride, start): the k-th block to run is `(stride * k + start) mod blocks`."""
        if self.direction == 1:
            return 1, 0
        if self.direction == -1:
            return blocks - 1 if blocks > 1 else 1, blocks - 1
        stride = 1 + 2 * (self.seed * 7 + 3) % max(blocks, 1)
        while gcd(stride, blocks) != 1:
            stride += 1
        return stride, (self.seed * 31 + 7) % max(blocks, 1)


FORWARDS = Order()
BACKWARDS = Order(-1, greedy=True, fill=0x7F)
GREEDY = Order(1, greedy=True)
ORDERS = (FORWARDS, BACKWARDS, Order(0, seed=1, eager=True, fill=0xA5), Order(0, True, seed=2))
"""What must not change a result."""

_ARGUMENTS_ALIGNMENT = 64
_running = renewed(threading.RLock())


@lru_cache(maxsize=1)
def _core() -> tuple[LoadedImage, dict[str, int], Any]:
    """The scheduler and what kernels call, compiled: (library, addresses, run)."""
    makers = (*SCHEDULER, warp_operation, *MEMORY, *MBARRIERS, *BOXES, *WARPGROUPS)
    functions = [make() for make in makers]
    names = [f.name for f in functions if not f.internal]
    library = load_support("cuda emulator", lambda: module_ir(functions, ()), names).keep()
    addresses = {name: library.address(name) for name in names}
    return library, addresses, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses["emu_run"])


class _Block:
    """Memory for the threads, warps and copies of one block. Frames of threads stay for the next."""

    def __init__(self) -> None:
        self.threads = np.zeros(at.MAX_THREADS * at.THREAD_SIZE, np.uint8)
        self.warps = np.zeros(at.MAX_THREADS // at.WARP_SIZE * at.WARP_BYTES, np.uint8)
        self.sink = np.zeros(2 * at.SINK_BYTES, np.uint8)
        self._rooms: dict[str, np.ndarray[Any, Any]] = {}

    def room(self, name: str) -> int:
        """The address of what only some kernels need."""
        if name not in self._rooms:
            self._rooms[name] = np.zeros(_ROOMS[name], np.uint8)
        return self._rooms[name].ctypes.data


_ROOMS = {
    "queues": at.MAX_THREADS * at.QUEUE_ENTRIES * at.QUEUE_ENTRY,
    "records": at.WINDOW_BYTES * races.RECORD_BYTES,
    "boxes": boxes.ENTRIES * boxes.ENTRY_BYTES,
    "sums": at.MAX_THREADS * warpgroups.THREAD_BYTES,
    "group_steps": warpgroups.GROUPS * warpgroups.STEPS * warpgroups.STEP_BYTES,
}


@lru_cache(maxsize=1)
def _block() -> _Block:
    return _Block()


class EmulatedModule:
    """The kernels of a module. `ir` has no `target` lines."""

    def __init__(self, ir: str) -> None:
        module = assemble.parse(ir)
        text = str(module)
        module.close()
        arch = assemble.architecture_for(text, "sm_90")
        assemble.check(text, arch, assemble.ptx_for(arch, 13000))
        self.host = host_text(text)
        _, addresses, self._run = _core()
        exports = [*(f"emu.kernel.{name}" for name in self.host.kernels), "emu.window"]
        exports += ["emu.data"] * bool(self.host.data)
        imports = {name: address for name, address in addresses.items() if name in self.host.text}
        self._library = _load(self.host.text, self.host.coroutines, exports, imports)
        self.window = self._library.address("emu.window")
        self._data: list[tuple[int, int]] = []  # ranges of the module's own global memory
        if self.host.data:
            words = ctypes.c_int64 * (2 * len(self.host.data))
            table = words.from_address(self._library.address("emu.data"))
            self._data = [(table[k], table[k] + table[k + 1]) for k in range(0, len(table), 2)]

    @property
    def kernels(self) -> list[str]:
        return list(self.host.kernels)

    def launch(
        self,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: bytes,
        shared_bytes: int = 0,
        ranges: Sequence[tuple[int, int]] | None = None,
        order: Order = FORWARDS,
        races: bool = True,
    ) -> int:
        """Run all threads of a grid. Returns how many steps warps took.

        `arguments` is packed as for the driver. `ranges` are the (start, end) of the global memory
        that the kernel may access, sorted; None: all that there is. `races`: races in shared memory
        are errors even if no order shows them.
        """
        threads = block[0] * block[1] * block[2]
        if not 0 < threads <= at.MAX_THREADS:
            raise ValueError(
                f"a block of {block} has {threads} threads; 1 to {at.MAX_THREADS} can be"
            )
        if min(grid) < 1:
            raise ValueError(f"a grid of {grid} has no blocks")
        used = self.host.static_shared[kernel]
        if shared_bytes:
            used = self.host.dynamic_offset + shared_bytes
        if used > at.WINDOW_BYTES:
            raise ValueError(f"{used} bytes of shared memory; a block can have {at.WINDOW_BYTES}")
        entry = self._library.address(f"emu.kernel.{kernel}")
        with _running:
            job = self._job(kernel, grid, block, used, order, races)
            packed = np.zeros(len(arguments) + 2 * _ARGUMENTS_ALIGNMENT, np.uint8)
            start = -packed.ctypes.data % _ARGUMENTS_ALIGNMENT
            packed[start : start + len(arguments)] = np.frombuffer(arguments, np.uint8)
            job.entry, job.args = entry, packed.ctypes.data + start
            if ranges is not None:
                allowed = sorted([*ranges, *self._data]) or [(0, 0)]
                table = np.array(allowed, np.int64)
                job.ranges, job.range_count = table.ctypes.data, len(table)
            self._run(ctypes.addressof(job))
        if job.error:
            raise self._error(job, kernel, order)
        return int(job.steps)

    def _job(
        self,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        used: int,
        order: Order,
        find_races: bool,
    ) -> at.Job:
        memory = _block()
        stride, start = order.stride(grid[0] * grid[1] * grid[2])
        job = at.Job(window=self.window, window_used=used, fill=order.fill)
        job.grid_x, job.grid_y, job.grid_z = grid
        job.block_x, job.block_y, job.block_z = block
        job.stride, job.start = stride, start
        job.multiplier, job.increment = (31, 31) if order.direction == -1 else (1, 0)
        job.random, job.greedy, job.eager = order.direction == 0, order.greedy, order.eager
        job.state = (order.seed + 1) * 0x9E3779B97F4A7C15 & (1 << 63) - 1
        job.threads, job.warps = memory.threads.ctypes.data, memory.warps.ctypes.data
        job.sink = memory.sink.ctypes.data + -memory.sink.ctypes.data % at.SINK_BYTES
        job.registers = self.host.registers.get(kernel, 0)
        for name in self.host.rooms:
            setattr(job, name, memory.room(name))
        if find_races and used and not self.host.partial_barriers:  # those order some threads only
            job.records = memory.room("records")
        return job

    def _error(self, job: at.Job, kernel: str, order: Order) -> EmulationError:
        site = self.host.sites[job.site - 1] if job.site else kernel
        name, _, source = site.partition(": ")
        block = (job.ctaid_x, job.ctaid_y, job.ctaid_z)
        what = self._race(job.detail) if job.error == at.RACE else _describe(job)
        return EmulationError(
            f"{what}\n  kernel {name}, block {block}, thread {job.thread} "
            f"(lane {job.thread % 32} of warp {job.thread // 32})\n  at {source}\n  order: {order}",
            job.error,
        )

    def _race(self, record: int) -> str:
        who, site = races.describe(record)
        there = self.host.sites[site - 1].partition(": ")[2] if site else "?"
        return f"a race in shared memory: no barrier since the access of {who}, {there}"


def _describe(job: at.Job) -> str:
    access = f"an access of {job.size} bytes at {job.address:#x} is"
    threads = job.block_x * job.block_y * job.block_z
    return {
        at.OUT_OF_BOUNDS: f"{access} out of bounds",
        at.MISALIGNED: f"{access} misaligned",
        at.DIVERGED_OPERATION: "lanes that should act together wait at different instructions "
        f"(see lane {job.detail})",
        at.NOT_IN_MASK: "a lane takes part in an operation whose mask leaves it out",
        at.MISSING_LANES: "a warp waits for lanes that never come "
        f"(the lanes of mask {job.detail:#010x} are elsewhere)",
        at.DIVERGED_BARRIER: f"a warp waits at two barrier instructions (see lane {job.detail})",
        at.MISSING_THREADS: f"a barrier is not reached by as many of the {threads} threads as it wants",
        at.LIVELOCK: "all threads wait for something that never happens",
        at.NO_MBARRIER: "a word that was not initialised as an mbarrier, or with no count",
        at.TOO_MANY_ARRIVALS: "more arrivals at an mbarrier than its phase expects",
        at.TOO_MANY_BYTES: "more bytes are announced to an mbarrier than it can count",
        at.UNANNOUNCED_BYTES: "bytes arrive at an mbarrier to which they were not announced",
        at.MISSING_ARRIVALS: "threads wait for a phase that never ends, or for registers: "
        f"{job.detail & 0xFFFFF} arrivals and {job.detail >> 40 & 0xFFFFF} bytes are missing",
        at.NO_MAP: "a tensor map that is none, or not of this rank, or not at a multiple of 64",
        at.UNFENCED_MBARRIER: "the copy engine is given an mbarrier that it may not know of yet: "
        "a fence is missing",
        at.UNFINISHED_BOXES: "all threads have gone while copies are under way",
        at.NO_REGISTERS: "no number of registers that a thread can have, or no limit at the start",
        at.DIVERGED_GROUP: "warps of a warpgroup do not go by the same instructions",
        at.BAD_DESCRIPTOR: "a descriptor that is none, or that leads out of shared memory",
        at.UNFENCED_PRODUCT: "a product of a warpgroup without a fence since the last wait",
        at.TOUCHED_SUMS: "accumulators of one product belong to several, or were changed under way",
        at.TOO_MANY_PRODUCTS: "more products under way than the emulation follows",
    }[job.error]


def _load(text: str, coroutines: bool, exports: list[str], imports: dict[str, int]) -> LoadedImage:
    """The module's machine code, from the cache on disk if an earlier process left it there."""
    cache = disk_cache()
    key = digest("cuda emulation", installation(), host_target().key(), text)
    code = load_code_record(cache.get(key))
    if code is None:
        code = host_engine().assemble(text, quick=True, coroutines=coroutines)
        cache.put(key, dump_code(code))
    return load_code(code, exports, imports)
