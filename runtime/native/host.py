"""The CPU of this process, described by LLVM once and remembered on disk.

LLVM's words for a CPU (`Target`) decide what code is generated, and asking for them imports LLVM. So
they are kept in the cache on disk, under what the CPU says of itself: its `cpuid` registers, read by
a few bytes of machine code. Where those bytes cannot run, LLVM is asked in each process.
"""

from __future__ import annotations

import ctypes
import pickle
import platform
import struct
import sys
from functools import lru_cache

from ...codegen.limits import DEFAULT, limits
from ...codegen.target import Target
from ...ir.record import replace
from ..cache.disk import disk_cache
from ..cache.installation import digest, installation
from ..config import config
from .image import PAGE, Image, LoadError, load_image
from .llvm import llvm, lock

# void cpuid(u32 leaf, u32 subleaf, u32 registers[4])
_CPUID = bytes.fromhex(
    "53"  # push rbx
    "4989d0"  # mov r8, rdx
    "89f8"  # mov eax, edi
    "89f1"  # mov ecx, esi
    "0fa2"  # cpuid
    "418900"  # mov [r8], eax
    "41895804"  # mov [r8+4], ebx
    "41894808"  # mov [r8+8], ecx
    "4189500c"  # mov [r8+12], edx
    "5b"  # pop rbx
    "c3"  # ret
)
# u64 xgetbv(): which registers the system saves
_XGETBV = bytes.fromhex("31c90f01d048c1e2204809d0c3")
_XGETBV_AT = 64
_OSXSAVE = 1 << 27
# The leaves that LLVM reads for the name and the features of a CPU.
_LEAVES = ((0, 0), (1, 0), (7, 0), (7, 1), (13, 1), (20, 0), (25, 0), (36, 0))
_EXTENDED = ((0x80000000, 0), (0x80000001, 0), (0x80000007, 0), (0x80000008, 0), (0x80000021, 0))


def host_identity() -> str | None:
    """What tells this CPU from those that need other code; None where nothing does."""
    found = cpu_words()
    return (
        None if found is None else digest(struct.pack(f"<{len(found[0])}IQ", *found[0], found[1]))
    )


def cpu_words() -> tuple[list[int], int] | None:
    """The registers of cpuid, four for each of the leaves, and which registers the system saves."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    code = _CPUID.ljust(_XGETBV_AT, b"\xcc") + _XGETBV
    exports = {"cpuid": 0, "xgetbv": _XGETBV_AT}
    try:
        library = load_image(Image(code, b"", PAGE, 0, exports, ()))
    except LoadError:
        return None
    cpuid = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(
        library.address("cpuid")
    )
    registers = (ctypes.c_uint32 * 4)()

    def read(leaf: int, sub: int) -> tuple[int, int, int, int]:
        cpuid(leaf, sub, ctypes.addressof(registers))
        a, b, c, d = registers
        return a, (b & 0xFFFF00 if leaf == 1 else b), c, d  # without the core's own number

    words: list[int] = []
    for first, leaves in ((0, _LEAVES), (0x80000000, _EXTENDED)):
        highest = read(first, 0)[0]
        for leaf, sub in leaves:
            words += read(leaf, sub) if leaf <= highest else (0, 0, 0, 0)
    saved = 0
    if words[4 + 2] & _OSXSAVE:
        saved = ctypes.CFUNCTYPE(ctypes.c_uint64)(library.address("xgetbv"))()
    return words, saved


@lru_cache(maxsize=1)
def host_target() -> Target:
    """The CPU that this process runs on, with what the runtime found there."""
    target = known_host()
    if target is None:
        target = _ask_llvm()
        identity = host_identity()
        if identity is not None:
            key = digest("host", installation(), identity)
            disk_cache().put(key, pickle.dumps(target))
    return target


def known_host() -> Target | None:
    """The same, if an earlier process has asked LLVM."""
    identity = host_identity()
    if identity is None:
        return None
    cache = disk_cache()
    key = digest("host", installation(), identity)
    data = cache.get(key)
    if data is None:
        return None
    try:
        target = pickle.loads(data)
    except Exception:  # whatever a pickle of another making may raise
        target = None
    if isinstance(target, Target):
        return target
    cache.discard(key)
    return None


probe = ""  # of the code that is made now: see `codegen.target`; `runtime.recording` sets it


def current_target() -> Target:
    """What functions are compiled for now: this CPU, as the settings want it."""
    target = process_target()
    if not (config.sanitize or config.quick or probe) and limits() is DEFAULT:
        return target
    own = {"sanitize": config.sanitize, "quick": config.quick}
    return replace(target, limits=limits(), probe=probe, **own)


def process_target() -> Target:
    """This CPU as `jt.config.cpu` has it, with no other setting: for code that all functions share."""
    return held_to(config.cpu, host_target())


_V2 = "+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+sahf"
_V3 = f"{_V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
_V4 = f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"

# What CPUs of x86-64 have, by the name of a level: LLVM's name for one, its features, bits of vectors.
# "x86-64-v2" to "x86-64-v4" are the levels of the System V ABI, without tuning for one maker's.
LEVELS = {
    "x86-64-v4": ("x86-64-v4", _V4, 512),
    "x86-64-v3": ("x86-64-v3", _V3, 256),
    "x86-64-v2": ("x86-64-v2", _V2, 128),
    "avx2": (
        "haswell",
        "+sse2,+sse4.1,+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2,+lzcnt,+popcnt,+f16c,+movbe",
        256,
    ),
    "sse": ("x86-64", "+sse2", 128),
}


@lru_cache(maxsize=8)
def held_to(level: str, host: Target) -> Target:
    """This CPU as if it had no more than a level of them has.

    Raises ValueError if it has less, or is of another kind.
    """
    if level in ("native", "host"):
        return host
    if not host.triple.startswith("x86_64"):
        raise ValueError(
            f"jitney.config.cpu is {level!r}, a level of x86-64's CPUs, and this is one of "
            f"{host.triple.partition('-')[0]}: leave it 'native'"
        )
    cpu, features, bits = LEVELS[level]
    missing = [f for f in features.split(",") if not host.has(f[1:])]
    if missing:
        raise ValueError(f"jitney.config.cpu is {level!r}, but this CPU lacks {' '.join(missing)}")
    return replace(host, cpu=cpu, features=features, vector_bits=bits)


def _ask_llvm() -> Target:
    binding = llvm()
    with lock:
        triple = binding.get_process_triple()
        cpu = binding.get_host_cpu_name()
        features = binding.get_host_cpu_features().flatten()
    return Target(
        triple=triple,
        cpu=cpu,
        features=features,
        vector_bits=detected_vector_bits(triple, features),
    )


def detected_vector_bits(triple: str, features: str) -> int:
    """The widest vectors worth using, from LLVM's feature string."""
    on = set(features.split(","))
    if "x86_64" in triple:
        if {"+avx512f", "+avx512vl", "+avx512dq", "+avx512bw"} <= on:
            return 512
        return 256 if {"+avx2", "+fma"} <= on else 128
    return 128
