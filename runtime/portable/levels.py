"""CPUs by the levels of their instruction sets: what code can be exported for, and what runs here.

A process that only loads code does not ask LLVM: bits of `cpuid` say which level a CPU of x86-64 has.
The levels are those of the "System V Application Binary Interface, AMD64 Architecture Supplement".
"""

from __future__ import annotations

import platform
import sys

from ...codegen.target import Target
from ..native.host import LEVELS, cpu_words, host_identity, process_target

X86 = ("x86-64-v4", "x86-64-v3", "x86-64-v2")
ARM = "aarch64"
NATIVE = "native"
CPUS = (*X86, ARM, NATIVE)
"""What can be exported for; the last is the CPU of this process, and runs on those that are like it."""

# Bits of registers: (word of `cpu_words`, bit). Words come in fours, (a, b, c, d), for the leaves.
_LEAF_1C, _LEAF_1D, _LEAF_7B, _EXTENDED_C = 4 + 2, 4 + 3, 8 + 1, 36 + 2
_V2 = [(_LEAF_1C, b) for b in (0, 9, 13, 19, 20, 23)] + [(_EXTENDED_C, 0)]
_V3 = [(_LEAF_1C, b) for b in (12, 22, 26, 27, 28, 29)] + [(_LEAF_7B, b) for b in (3, 5, 8)]
_V3 += [(_EXTENDED_C, 5)]
_V4 = [(_LEAF_7B, b) for b in (16, 17, 28, 30, 31)]
_SAVED = {"x86-64-v2": 0, "x86-64-v3": 0x6, "x86-64-v4": 0xE6}  # registers that the system saves


def target_for(cpu: str) -> Target:
    """What code is generated for, which need not run here."""
    if cpu == NATIVE:
        return process_target()
    if cpu == ARM:
        return Target("aarch64-unknown-linux-gnu", "generic", "", 128)
    name, features, bits = LEVELS[cpu]
    return Target("x86_64-unknown-linux-gnu", name, features, bits)


def default_cpus() -> tuple[str, ...]:
    """Those of this machine's kind."""
    return (ARM,) if platform.machine() == ARM else X86


def levels_here() -> tuple[str, ...]:
    """The levels whose code runs here, the highest first."""
    if sys.platform != "linux":
        return ()
    if platform.machine() == ARM:
        return (ARM,)
    found = cpu_words()
    if found is None:
        return ()
    words, saved = found
    levels: list[str] = []
    for level, bits in (("x86-64-v2", _V2), ("x86-64-v3", _V3), ("x86-64-v4", _V4)):
        mask = _SAVED[level]
        if not all(words[word] >> bit & 1 for word, bit in bits) or saved & mask != mask:
            break
        levels.insert(0, level)
    return tuple(levels)


def identity() -> str:
    """What tells this CPU from others that need other code; "" where nothing does."""
    return host_identity() or ""
