"""Programs for GPUs, run plainly: kernels on the emulated device, steps one after the other.

    got = run(compile_device(graph, CudaTarget()), [x, y])     # or raises what the status block says

This knows nothing of streams, graphs and drivers: it is what a `DeviceProgram` means. Where the tests
run on a real device (`gpu.py`), its kernels do.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import gpu
import numpy as np
from ptxas import Report, find_ptxas, run_ptxas

from jitney.codegen.cuda.program import (
    Carry,
    Copy,
    DeviceProgram,
    Fill,
    HostCall,
    If,
    Launch,
    Ref,
    Scan,
    Step,
    TapeNew,
    TapePop,
    TapePush,
    While,
)
from jitney.codegen.device.compile import compile_device
from jitney.codegen.device.host_fallback import HOSTED
from jitney.codegen.kernels.tape.cuda_tapes import PEAK, STATE_BYTES
from jitney.codegen.module import STATUS_WORDS
from jitney.ir.graph import Graph
from jitney.ir.passes import storable
from jitney.ir.passes.compositions import COMPOSITIONS, compose
from jitney.runtime.cuda.assemble import assemble
from jitney.runtime.cuda.emulator.machine import FORWARDS, Order
from jitney.runtime.cuda.walk import FAILURE_WORD

TARGET = gpu.target()
HEAP_BYTES = 1 << 18  # for tapes
SCALARS = {"i32": "<i", "i64": "<q", "f32": "<f", "f64": "<d"}
ERRORS: dict[str, type[Exception]] = {
    "index": IndexError,
    "assert": AssertionError,
    "value": ValueError,
}


def composed(graph: Graph) -> Graph:
    """As a GPU gets it, but for what the host could compute for it."""
    chosen = {name: rule for name, rule in COMPOSITIONS.items() if name not in HOSTED}
    return compose(graph, chosen)


def compiled(graph: Graph, arrays: Sequence[np.ndarray[Any, Any]]) -> DeviceProgram:
    """A program for arrays that lie as these do."""
    strides = [tuple(s // a.itemsize for s in a.strides) for a in arrays]
    alignment = [min(a.ctypes.data & -a.ctypes.data, 16) or 16 for a in arrays]
    signature = graph.input_types, graph.output_types
    return compile_device(storable(composed(graph)), TARGET, strides, alignment, signature)


def run(
    program: DeviceProgram, arrays: Sequence[np.ndarray[Any, Any]], order: Order = FORWARDS
) -> list[np.ndarray[Any, Any]]:
    return _Run(program, arrays, order).outputs


_module = lru_cache(maxsize=2)(gpu.Module)


def assembled(ir: str, arch: str) -> Report | None:
    """Make PTX for an architecture; assemble it, where there is a ptxas, and see that nothing spills."""
    ptx = assemble(ir, arch)
    if find_ptxas() is None:
        return None
    report = run_ptxas(ptx, arch)
    spilled = {name: k.spills for name, k in report.kernels.items() if k.spills}
    assert not spilled and not report.warnings, (spilled, report.warnings)
    return report


def _memory(nbytes: int, fill: int = 0xA5) -> np.ndarray[Any, Any]:
    room = np.full(nbytes + 512, fill, np.uint8)
    start = -room.ctypes.data % 256
    return room[start : start + max(nbytes, 1)]


class _Run:
    def __init__(
        self, program: DeviceProgram, arrays: Sequence[np.ndarray[Any, Any]], order: Order
    ) -> None:
        self.program, self.order = program, order
        self.module = _module(program.ir) if program.kernels else None
        sizes = [int(np.prod(o.shape)) * o.dtype.itemsize for o in program.outputs]
        self.spaces = {
            "input": list(arrays),
            "output": [_memory(n) for n in sizes],
            "arena": [_memory(program.arena_bytes)],
            "constant": [_memory(c.nbytes) for c in program.constants],
            "counters": [_memory(4 * program.counter_words, 0)],
            "status": [_memory(8 * STATUS_WORDS, 0)],
        }
        for memory, data in zip(self.spaces["constant"], program.constants, strict=True):
            memory[: data.nbytes] = np.frombuffer(data.tobytes(), np.uint8)
        self.spaces["heap"] = [_memory(HEAP_BYTES, 0)]
        self.slots: dict[int, int] = {}
        bounds = [np.lib.array_utils.byte_bounds(a) for s in self.spaces.values() for a in s]
        self.ranges = sorted((low, max(high, low + 1)) for low, high in bounds)
        self.steps(program.steps)
        words = self.spaces["status"][0].view(np.int64)
        if words[FAILURE_WORD]:
            site = program.errors[words[FAILURE_WORD] - 1]
            raise ERRORS[site.kind](site.message.format(*words))
        assert self.spaces["heap"][0].view(np.int64)[PEAK // 8] < HEAP_BYTES - STATE_BYTES
        assert not self.spaces["counters"][0][: 4 * program.counter_words].any()
        self.outputs = [
            memory[:n].view(o.dtype).reshape(o.shape)
            for memory, n, o in zip(self.spaces["output"], sizes, program.outputs, strict=True)
        ]

    def at(self, ref: Ref) -> int:
        if ref.space == "slot":
            return self.slots[ref.number] + ref.offset
        if ref.space == "heap":
            return self.spaces["heap"][0].ctypes.data + ref.number * HEAP_BYTES
        return self.spaces[ref.space][ref.number].ctypes.data + ref.offset

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.step(step)

    def step(self, step: Step) -> None:
        match step:
            case Launch():
                self.launch(step)
            case Copy():
                ctypes.memmove(self.at(step.target), self.at(step.source), step.nbytes)
            case Fill():
                pattern = step.value.to_bytes(step.width, "little") * step.count
                ctypes.memmove(self.at(step.target), pattern, len(pattern))
            case If():
                index = ctypes.c_int32.from_address(self.at(step.index)).value
                self.steps(step.branches[min(max(index, 0), len(step.branches) - 1)])
            case While():
                self.repeat(step)
            case Scan():
                self.scan(step)
            case TapeNew() | TapePush() | TapePop():
                for launch in step.launches:
                    self.launch(launch)
            case HostCall():
                raise NotImplementedError("callbacks are tested with the real executor")

    def launch(self, step: Launch) -> None:
        entry = self.program.kernels[step.kernel]
        packed = b""
        for a in step.arguments:  # each where a multiple of its size is
            text = "<Q" if isinstance(a, Ref) else SCALARS[a.dtype]
            value = struct.pack(text, self.at(a) if isinstance(a, Ref) else a.value)
            packed += bytes(-len(packed) % len(value)) + value
        assert self.module is not None
        self.module.launch(
            step.kernel,
            step.grid,
            entry.threads,
            packed,
            entry.shared_bytes,
            self.ranges,
            self.order,
        )

    def repeat(self, step: While) -> None:
        homes = self.begin(step.carries)
        failed = self.spaces["status"][0].view(np.int64)
        while True:
            self.steps(step.test)
            if not ctypes.c_uint8.from_address(self.at(step.flag)).value or failed[FAILURE_WORD]:
                break
            self.steps(step.body)
            self.trade(step.carries)
        self.end(step.carries, homes)

    def scan(self, step: Scan) -> None:
        homes = self.begin(step.carries)
        bases = [self.at(s.base) for s in step.slices]
        for k in range(step.length):
            k = step.length - 1 - k if step.reverse else k
            for part, base in zip(step.slices, bases, strict=True):
                self.slots[part.slot] = base + k * part.stride
            self.steps(step.body)
            self.trade(step.carries)
        self.end(step.carries, homes)

    def begin(self, carries: Sequence[Carry]) -> list[int]:
        for c in carries:
            self.slots[c.now], self.slots[c.next] = self.at(c.home), self.at(c.spare)
        return [self.slots[c.now] for c in carries]

    def trade(self, carries: Sequence[Carry]) -> None:
        for c in carries:
            self.slots[c.now], self.slots[c.next] = self.slots[c.next], self.slots[c.now]

    def end(self, carries: Sequence[Carry], homes: Sequence[int]) -> None:
        for c, home in zip(carries, homes, strict=True):
            if self.slots[c.now] != home:
                ctypes.memmove(home, self.slots[c.now], c.nbytes)
