"""The GPU of the tests: the emulated one, or with JITNEY_TEST_CUDA=on the machine's own.

    JITNEY_TEST_CUDA=on python -m pytest -n 0 tests/gpu/kernels/test_cuda_kernels.py

Every test of a kernel's results runs on either. Those about the emulator itself are `emulator_only`: on
a real device they would read what nobody wrote, or end its context. With JITNEY_CUDA=emulate as well,
what would run on a real device runs on the emulated driver.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from jitney.codegen.cuda.program import KernelShape
from jitney.codegen.cuda.target import CudaTarget
from jitney.runtime.cuda.assemble import architecture_number, ptx_for
from jitney.runtime.cuda.driver import Context, DeviceInfo, devices
from jitney.runtime.cuda.emulator.driver import EmulatedLibrary
from jitney.runtime.cuda.emulator.machine import FORWARDS, EmulatedModule, Order
from jitney.runtime.cuda.library import DriverLibrary

REAL = os.environ.get("JITNEY_TEST_CUDA") == "on"
emulator_only = pytest.mark.skipif(REAL, reason="about the emulator")
_LEAST_MEMORY = 2 << 20  # tests with less are about memory that runs out
_ALIGNMENT = 256


def library(memory: int = 8 << 20) -> DriverLibrary:
    """A driver for one test; `memory` is how much an emulated device has."""
    if not REAL:
        return EmulatedLibrary(memory)
    if memory < _LEAST_MEMORY:
        pytest.skip("a device with so little memory is emulated")
    real = device().library
    wrapped = RealLibrary(real.functions, real.where)
    wrapped.emulated = real.emulated
    return wrapped


class RealLibrary(DriverLibrary):
    """What an emulated driver knows of itself, a real one does not: the test is skipped."""

    def __getattr__(self, name: str) -> Any:
        if name in ("launches", "_pinned"):
            pytest.skip(f"only the emulated driver has `{name}`")
        return super().__getattr__(name)


def device() -> DeviceInfo:
    """The first GPU of the machine."""
    return devices()[0]


def target() -> CudaTarget:
    """What kernels of tests are compiled for."""
    if not REAL:
        return CudaTarget()
    info = device()
    return CudaTarget(architecture_number(info.arch), ptx_for(info.arch, info.driver), info.sms)


def poison(context: Context) -> Context:
    """Memory that this context gives is full of NaN from now on, as an emulated device's is."""
    allocate = context.allocate

    def poisoned(nbytes: int, stream: int) -> int:
        address = allocate(nbytes, stream)
        context.fill(address, nbytes, 1, 0xFF, stream)
        return address

    context.allocate = poisoned  # type: ignore[method-assign]
    return context


class DeviceModule:
    """The kernels of a text on a real device, launched as those of an `EmulatedModule` are: memory is
    the host's, and goes there and back with each launch."""

    def __init__(self, ir: str) -> None:
        self._ir = ir
        self._names = re.findall(r"ptx_kernel void @([\w.]+)\(", ir)
        self._modules: dict[Any, Any] = {}
        self._context = device().context()

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
        """Words of the arguments that are addresses in `ranges` become the device's."""
        context = self._context
        if shared_bytes not in self._modules:
            entries = {name: KernelShape(block, shared_bytes) for name in self._names}
            self._modules[shared_bytes] = context.load_module(self._ir, entries)
        function = self._modules[shared_bytes].function(kernel)
        stream = context.create_stream()
        homes = [_Home(context, low, high, stream) for low, high in ranges or ()]
        try:
            packed = b"".join(
                _moved(arguments[k : k + 8], homes) for k in range(0, len(arguments), 8)
            )
            context.launch(function, grid, block, shared_bytes, stream, packed)
            context.synchronize(stream)
        finally:
            for home in homes:
                home.fetch()
            context.synchronize(stream)
            context.destroy_stream(stream)
        return 0


class _Home:
    """A range of the host's memory, and where it is on the device: as well aligned."""

    def __init__(self, context: Context, low: int, high: int, stream: int) -> None:
        self.low, self.high = low, high
        self._context, self._stream = context, stream
        self._start = context.allocate(high - low + _ALIGNMENT, stream)
        self.address = self._start + (low - self._start) % _ALIGNMENT
        context.copy_in(self.address, low, high - low, stream)

    def fetch(self) -> None:
        self._context.copy_out(self.low, self.address, self.high - self.low, self._stream)
        self._context.free(self._start, self._stream)


def _moved(word: bytes, homes: Sequence[_Home]) -> bytes:
    if len(word) == 8:
        value = int.from_bytes(word, "little")
        for home in homes:
            if home.low <= value < home.high:
                return np.int64(home.address + value - home.low).tobytes()
    return word


Module: Any = DeviceModule if REAL else EmulatedModule
