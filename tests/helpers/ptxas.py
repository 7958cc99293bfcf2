"""NVIDIA's assembler, where one is installed: machine code from PTX, and what it says of each kernel.

jitney does not need it: the driver assembles PTX by itself. Tests and `explain` ask it what a kernel
costs.

    report = run_ptxas(ptx, "sm_90")
    report.kernels["softmax"].registers       -> 31
    report.warnings                           -> ("(C7508) Potential Performance Loss: ...",)
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache

from jitney.ir.record import record


class PtxasError(RuntimeError):
    """ptxas refused the PTX: a bug in jitney, or too old a ptxas."""


@record
class KernelResources:
    """What one thread of a kernel holds (registers, bytes of stack and of spilled registers), and one
    block (bytes of static shared memory)."""

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int
    barriers: int

    @property
    def spills(self) -> int:
        return self.spill_stores + self.spill_loads


@record
class Report:
    """`kernels` by name; `warnings`: lines that carry a number, such as C7508; the machine code."""

    kernels: dict[str, KernelResources]
    warnings: tuple[str, ...]
    cubin: bytes


def find_ptxas() -> str | None:
    """The ptxas on PATH, of CUDA_HOME or CUDA_PATH, or of an installed wheel; None if there is none."""
    return _search(
        os.environ.get("PATH", ""), os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")
    )


@lru_cache(maxsize=4)
def _search(path: str, *homes: str | None) -> str | None:
    path_found = shutil.which("ptxas", path=path)
    if path_found:
        return path_found
    name = "ptxas.exe" if os.name == "nt" else "ptxas"
    for home in (*homes, "/usr/local/cuda"):
        if home and os.access(os.path.join(home, "bin", name), os.X_OK):
            return os.path.join(home, "bin", name)
    for folder in sys.path:  # wheels: nvidia/cu13/bin (CUDA 13), nvidia/cuda_nvcc/bin (CUDA 12)
        for file in sorted(
            glob.glob(os.path.join(folder, "nvidia", "*", "bin", name)), reverse=True
        ):
            if os.access(file, os.X_OK):
                return file
    return None


def run_ptxas(ptx: str, arch: str) -> Report:
    """Assemble for an architecture. Raises PtxasError with what ptxas says."""
    program = find_ptxas()
    if program is None:
        raise PtxasError(
            "no ptxas on PATH, under CUDA_HOME or in an nvidia-cuda-nvcc wheel: "
            "pip install jitney[ptxas]"
        )
    with tempfile.TemporaryDirectory(prefix="jitney-ptxas-") as folder:
        source, result = os.path.join(folder, "module.ptx"), os.path.join(folder, "module.cubin")
        with open(source, "w", encoding="ascii") as file:
            file.write(ptx)
        done = subprocess.run(
            [program, "-v", f"-arch={arch}", source, "-o", result], capture_output=True, text=True
        )
        said = done.stdout + done.stderr
        if done.returncode:
            raise PtxasError(f"ptxas refuses the module for {arch}: {said.strip()}")
        with open(result, "rb") as binary:
            cubin = binary.read()
    return Report(parse_resources(said), parse_warnings(said), cubin)


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FIELDS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "stack": re.compile(r"(\d+) bytes stack frame"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
    "shared": re.compile(r"(\d+) bytes smem"),
    "barriers": re.compile(r"used (\d+) barriers"),
}
_WARNING = re.compile(r"^ptxas.*?(\(C\d+\).*|warning\s*:.*)$", re.M)


def parse_resources(said: str) -> dict[str, KernelResources]:
    """What `ptxas -v` prints, by kernel."""
    starts = list(_ENTRY.finditer(said))
    ends = [start.start() for start in starts[1:]] + [len(said)]
    kernels = {}
    for start, end in zip(starts, ends, strict=True):
        part = said[start.end() : end]
        values = {name: pattern.search(part) for name, pattern in _FIELDS.items()}
        kernels[start[1]] = KernelResources(
            **{name: int(match[1]) if match else 0 for name, match in values.items()}
        )
    return kernels


def parse_warnings(said: str) -> tuple[str, ...]:
    """The warnings in what the assembler said."""
    return tuple(match[1] for match in _WARNING.finditer(said))
