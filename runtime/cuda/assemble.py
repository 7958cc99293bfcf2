"""LLVM text for NVPTX to PTX: what versions there are, what a module may contain, and the assembling.

    ptx = assemble(program.ir, "sm_90", ptx_for("sm_90", driver_version))

LLVM ends the process on what it cannot select, so a module is looked through first: it may call what
it defines and what `codegen/cuda/intrinsics.py` lists for the architecture, and nothing else.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ...codegen.cuda.intrinsics import INTRINSICS
from ...codegen.kernels.matmul import cuda_wgmma as wgmma
from ..native.engine import NEWEST_WORDS, NativeError
from ..native.llvm import llvm, lock

TRIPLE = "nvptx64-nvidia-cuda"
# The PTX versions that this LLVM emits, and the least of each architecture (LLVM exits below that).
_VERSIONS = (60, 61, 63, 64, 65, *range(70, 79), *range(80, 89), 90)
_LEAST = {
    "sm_75": 63,
    "sm_80": 70,
    "sm_86": 71,
    "sm_87": 74,
    "sm_89": 78,
    "sm_90": 78,
    "sm_90a": 80,
    "sm_100": 86,
    "sm_100a": 86,
    "sm_103": 88,
    "sm_103a": 88,
    "sm_110": 90,
    "sm_110a": 90,
    "sm_120": 87,
    "sm_120a": 87,
    "sm_121": 88,
    "sm_121a": 88,
}
_DEFAULT = 78  # CUDA 11.8: any driver of 2022 and later takes it

_TYPES = re.compile(r"\b(fp128|x86_fp80|ppc_fp128|x86_amx|vscale|thread_local)\b")
_ASSEMBLY = re.compile(r"\basm\b")
_KNOWN_ASSEMBLY = re.compile(r'\bcall [^"\n]*\basm sideeffect "([^"\n]*)", "[^"\n]*"\(')
_GENERIC_GLOBAL = re.compile(r"^@\S+ = (?!.*addrspace\([134]\))(?!.*\balias\b).*$", re.M)
_DECLARATION = re.compile(r'^declare [^@]*@"?([\w.$]+)"?\(', re.M)


class AssembleError(NativeError):
    """A module that cannot become PTX for an architecture: a bug in jitney, or too old a driver."""


def architectures() -> list[str]:
    """The architectures that PTX can be emitted for."""
    return list(_LEAST)


def architecture_number(arch: str) -> int:
    """90 of "sm_90" and of "sm_90a"."""
    _check_architecture(arch)
    return int(arch[3:].rstrip("a"))


def nearest_architecture(major: int, minor: int) -> str:
    """The newest architecture whose code a device of that compute capability runs."""
    capability = 10 * major + minor
    architectures = [arch for arch in _LEAST if arch[-1] != "a" and int(arch[3:]) <= capability]
    if not architectures:
        raise AssembleError(f"GPUs older than sm_75 are not supported; this one is sm_{capability}")
    return max(architectures, key=architecture_number)


def architecture_for(ir: str, arch: str) -> str:
    """What to assemble a module for, on a device of `arch`: with its own features if it has them."""
    names = _DECLARATION.findall(ir)
    rows = [INTRINSICS[name] for name in names if name in INTRINSICS]
    features = "a" if _ASSEMBLY.search(ir) else max((row.features for row in rows), default="")
    return arch if not features or arch.endswith(features) else arch + features


def driver_ptx(version: int) -> int:
    """The highest PTX version that a driver takes, from what cuDriverGetVersion says.

    CUDA 12.4 is 12040 and takes PTX 8.4: 84 here.
    """
    major, minor = version // 1000, version % 1000 // 10
    if major >= 13:
        return 90 + 10 * (major - 13) + minor
    if major == 12:
        return 80 + (minor if minor < 6 else minor - 1)
    return 70 + minor if major == 11 else 65


def ptx_for(arch: str, driver_version: int | None = None) -> int:
    """The PTX version to emit for an architecture: the driver's best, or one that all drivers take."""
    _check_architecture(arch)
    least = _LEAST[arch]
    if driver_version is None:
        return max(least, _DEFAULT)
    best = driver_ptx(driver_version)
    if best < least:
        raise AssembleError(
            f"{arch} needs PTX {least / 10}, and this NVIDIA driver (CUDA {driver_version / 1000:.1f}) "
            f"takes {best / 10} at most: install a newer driver"
        )
    return max(v for v in _VERSIONS if v <= best)


def check(ir: str, arch: str, ptx: int) -> None:
    """Raise AssembleError if a module has what LLVM cannot select for `arch` and `ptx`.

    The module must be valid LLVM (see `verify`).
    """
    _check_architecture(arch)
    if ptx not in _VERSIONS or ptx < _LEAST[arch]:
        raise AssembleError(f"{arch} cannot be given PTX {ptx / 10}: it needs {_LEAST[arch] / 10}")
    for name in _DECLARATION.findall(ir):
        row = INTRINSICS.get(name)
        if row is None:
            raise AssembleError(
                f"kernels may not call {name}: it is not in the table of intrinsics"
            )
        if row.sm > architecture_number(arch) or row.ptx > ptx:
            raise AssembleError(
                f"{name} needs sm_{row.sm} and PTX {row.ptx / 10}, not {arch} and {ptx / 10}"
            )
        if row.features and not arch.endswith(row.features):
            raise AssembleError(f"{name} needs sm_{row.sm}{row.features}, not {arch}")
        if row.flags and not _all_calls_have(ir, name, row.flags):
            raise AssembleError(f"each call of {name} needs the flag {row.flags}")
    if _ASSEMBLY.search(ir):
        _check_assembly(ir, arch)
    for pattern, what in (
        (_TYPES, "kernels cannot use {}"),
        (_GENERIC_GLOBAL, "a global must say its address space: {}"),
    ):
        match = pattern.search(ir)
        if match:
            raise AssembleError(what.format(match[0]))


def _check_assembly(ir: str, arch: str) -> None:
    """Raise AssembleError but for the assembly of `cuda_wgmma.py`, where there is such."""
    ours = _KNOWN_ASSEMBLY.findall(ir)
    if len(ours) != len(_ASSEMBLY.findall(ir)) or any(wgmma.parse(t) is None for t in set(ours)):
        raise AssembleError("kernels may not contain inline assembly but wgmma's")
    if arch != "sm_90a":
        raise AssembleError(f"wgmma needs sm_90a, not {arch}")


def _all_calls_have(ir: str, name: str, flags: str) -> bool:
    calls = re.findall(rf"call ([^@\n]*)@{re.escape(name)}\(", ir)
    return all(flags in call.split() for call in calls)


def assemble(ir: str, arch: str, ptx: int | None = None) -> str:
    """PTX for a module without `target` lines."""
    ptx = ptx_for(arch) if ptx is None else ptx
    with lock:
        module = parse(ir)
        try:
            check(str(module), arch, ptx)
            return str(_machine(arch, ptx).emit_assembly(module))
        finally:
            module.close()


def parse(ir: str) -> Any:
    """The module of a text without `target` lines, verified. For the caller to close."""
    with lock:
        try:
            module = llvm().parse_assembly(_header() + ir)
            module.verify()
        except RuntimeError as error:
            raise AssembleError(f"LLVM refuses the module: {str(error).strip()}") from None
        return module


def _check_architecture(arch: str) -> None:
    if arch not in _LEAST:
        raise AssembleError(f"no architecture {arch!r}; there are {', '.join(_LEAST)}")


@lru_cache(maxsize=1)
def _target() -> Any:
    binding = llvm()
    if binding.llvm_version_info[0] < NEWEST_WORDS:  # an option that it lacks would end the process
        number = ".".join(map(str, binding.llvm_version_info))
        raise AssembleError(
            f"programs for GPUs need llvmlite 0.48 or newer (LLVM {NEWEST_WORDS}); here is LLVM {number}"
        )
    with lock:
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        return binding.Target.from_triple(TRIPLE)


@lru_cache(maxsize=16)
def _machine(arch: str, ptx: int) -> Any:
    return _target().create_target_machine(cpu=arch, features=f"+ptx{ptx}", opt=3)


@lru_cache(maxsize=1)
def _header() -> str:
    layout = _machine("sm_75", _LEAST["sm_75"]).target_data
    return f'target triple = "{TRIPLE}"\ntarget datalayout = "{layout}"\n'
