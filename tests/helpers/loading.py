"""A driver that is given what a real one is given: PTX, which a ptxas assembles if there is one.

Kernels do not run; what they need is known as a device would know it: of the very text that is loaded.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from ptxas import KernelResources, Report, find_ptxas, run_ptxas

from jitney.codegen.cuda.program import DeviceProgram
from jitney.runtime.cuda.driver import Context, describe
from jitney.runtime.cuda.emulator.driver import EmulatedLibrary, RefusedCall
from jitney.runtime.cuda.execute import DeviceExecutable
from jitney.runtime.cuda.library import INVALID_VALUE

SHARED_BYTES = 227 << 10  # of a block, static and dynamic
REGISTERS = 64 << 10  # of a block; each warp gets them in steps of 256
_SHARED, _LOCAL, _REGISTERS = 1, 3, 4  # CUfunction_attribute


class Loaded(NamedTuple):
    kernels: dict[str, KernelResources]


class Known(NamedTuple):
    resources: KernelResources | None


class PtxDriver(EmulatedLibrary):
    """`texts` is what was loaded, `reports` what ptxas said of it; a kernel named `bad` is refused."""

    emulated = False

    def __init__(self, memory: int = 1 << 16) -> None:
        super().__init__(memory)
        self.texts: list[str] = []
        self.reports: list[Report] = []

    def _cuModuleLoadDataEx(self, module, image, count, options, values):
        numbers = list((ctypes.c_int * count).from_address(options))
        given = list((ctypes.c_size_t * count).from_address(values))
        assert numbers == [3, 4, 5, 6, 12] and given[1] == given[3] >= 1 << 12
        text = ctypes.string_at(image).decode()
        ctypes.memmove(given[0], b"an advisory\0", 12)
        if ".entry bad" in text:
            ctypes.memmove(given[2], b"line 3: refused\0", 16)
            raise RefusedCall(218)
        self.texts.append(text)
        kernels: dict[str, KernelResources] = {}
        if find_ptxas() is not None:
            self.reports.append(run_ptxas(text, text.partition(".target ")[2].split()[0]))
            kernels = self.reports[-1].kernels
        self._new(Loaded(kernels), module)

    def _cuModuleGetFunction(self, function, module, name):
        kernels = self._get(module, Loaded).kernels
        self._new(Known(kernels.get(ctypes.string_at(name).decode())), function)

    def _cuModuleUnload(self, module):
        self._remove(module, Loaded)

    def _cuFuncGetAttribute(self, value, number, function):
        found = self._get(function, Known).resources
        known = {}
        if found is not None:
            known = {_SHARED: found.shared, _LOCAL: found.stack, _REGISTERS: found.registers}
        ctypes.c_int.from_address(value).value = known.get(number, 0)

    def _cuFuncSetAttribute(self, function, number, value):
        found = self._get(function, Known).resources
        if number != 8 or value + (found.shared if found else 0) > SHARED_BYTES:
            raise RefusedCall(INVALID_VALUE)


def loaded(program: DeviceProgram) -> tuple[str, Report | None]:
    """The PTX that a device is given for a program, and what ptxas says of it; every kernel can be
    launched, and none spills, or has anything that ptxas warns of."""
    driver = PtxDriver()
    DeviceExecutable(program, Context(describe(driver)[0]))
    (text,) = driver.texts
    if not driver.reports:
        return text, None
    (report,) = driver.reports
    assert not report.warnings, report.warnings
    assert set(report.kernels) == set(program.kernels)
    for name, entry in program.kernels.items():
        needed = report.kernels[name]
        threads = entry.threads[0] * entry.threads[1] * entry.threads[2]
        assert not needed.spills, (name, needed)
        assert needed.shared + entry.shared_bytes <= SHARED_BYTES, (name, needed)
        assert -(-needed.registers // 8) * 8 * threads <= REGISTERS, (name, needed)
    return text, report
