"""Does it start: the driver, the device, and every kernel of the benchmarks compiled, loaded, run once.

For each module: LLVM's time, that of the driver's compiler, its log, and registers, local memory
(spills) and shared memory of each kernel.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .checks import sanitizer
from .process import Options, Writer

PEERS = ("torch", "triton", "jax", "jaxlib", "cupy-cuda13x", "nvidia-cublas")
OWN = ("numpy", "llvmlite", "ml_dtypes", "optree", "networkx", "pytest", "hypothesis")
# CUdevice_attribute
ATTRIBUTES = {
    "clock_kHz": 13, "memory_clock_kHz": 36, "memory_bus_bits": 37, "l2_bytes": 38,
    "registers_per_sm": 82, "shared_per_sm": 81, "shared_per_block": 97, "copy_engines": 40,
}  # fmt: skip


def stage(options: Options, writer: Writer) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "machine", machine
    yield "device", device
    from .rows import ROWS

    for name in ROWS:
        if options.get("rows") is None or name in options["rows"]:
            yield name, lambda name=name: load_and_run(name)  # type: ignore[misc]


def machine() -> dict[str, Any]:
    versions = {}
    for package in (*OWN, *PEERS):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    tools = {
        name: shutil.which(name) for name in ("nvidia-smi", "nvcc", "ptxas", "nvdisasm", "ncu")
    }
    tools["compute-sanitizer"] = sanitizer()
    said = None
    if tools["nvidia-smi"]:
        query = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw"
        command = [tools["nvidia-smi"], f"--query-gpu={query},temperature.gpu", "--format=csv"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpus": len(os.sched_getaffinity(0)),
        "versions": versions,
        "tools": tools,
        "nvidia-smi": said,
    }


def device() -> dict[str, Any]:
    start = time.perf_counter()
    from jitney.runtime.cuda.driver import devices
    from jitney.runtime.cuda.library import SIGNATURES

    info = devices()[0]
    found = time.perf_counter()
    context = info.context()
    made = time.perf_counter()
    cuda = info.library
    attributes = {}
    for name, number in ATTRIBUTES.items():
        value = ctypes.c_int()
        code = cuda.functions["cuDeviceGetAttribute"](ctypes.byref(value), number, info.ordinal)
        attributes[name] = value.value if code == 0 else None
    free, total = context.memory()
    return {
        "name": info.name, "arch": info.arch, "sms": info.sms, "driver": info.driver,
        "emulated": info.emulated, "library": cuda.where, "attributes": attributes,
        "free": free, "total": total, "stream_ordered": context.stream_ordered,
        "missing_functions": [name for name in SIGNATURES if not cuda.has(name)],
        "init_seconds": found - start, "context_seconds": made - found,
    }  # fmt: skip


def load_and_run(name: str) -> dict[str, Any]:
    """A row at its small size: its modules as they are loaded, and the error of its answer."""
    from . import peers
    from .rows import ROWS

    row = ROWS[name]
    inputs = row.inputs(True)
    modules: list[dict[str, Any]] = []
    context = peers.context()
    load = context.load_module

    def recorded(ir: str, entries: Any) -> Any:
        module, found = measured(load, context, ir, entries)
        modules.append(found)
        return module

    context.load_module = recorded
    try:
        call = peers.Jitney().prepare(row, inputs)
        start = time.perf_counter()
        call.wait(call())
        first = time.perf_counter() - start
        answer = call.arrays(call())
    finally:
        context.load_module = load
    with np.errstate(all="ignore"):
        error = row.error(answer, row.reference(inputs))
    found = {"first": first, "error_of_tolerated": error, "modules": modules}
    if not error <= 1:
        found["error"] = f"wrong answer: {error:.3g} times what is tolerated"
    return found


def measured(load: Any, context: Any, ir: str, entries: Any) -> tuple[Any, dict[str, Any]]:
    """A module loaded, and what a user waits for at the first call."""
    from jitney.runtime.cuda.assemble import architecture_for, assemble, ptx_for

    info = context.info
    arch = architecture_for(ir, info.arch)
    start = time.perf_counter()
    ptx = assemble(ir, arch, ptx_for(arch, info.driver))
    found: dict[str, Any] = {"llvm_ms": 1e3 * (time.perf_counter() - start), "ptx_bytes": len(ptx)}
    if info.emulated:
        return load(ir, entries), found | {"kernels": {name: {} for name in entries}}
    start = time.perf_counter()
    module = context.load_image(ptx.encode(), entries, verbose=True)
    found["ptx_jit_ms"] = 1e3 * (time.perf_counter() - start)
    found["log"] = module.log[-1500:]
    found["advisories"] = re.findall(r"\(C75\d\d\).*", module.log)
    found["kernels"] = {
        name: {**module.function(name).attributes(), "threads": entry.threads}
        for name, entry in entries.items()
    }
    return module, found
