"""Where threads can sleep until a word of memory changes: Linux's futex, on machines that we know."""

from __future__ import annotations

import platform
import sys

FUTEX_CALL = {"x86_64": 202, "aarch64": 98}  # the number of the system call


def supported(triple: str = "") -> bool:
    """Whether there is a pool of threads for a target triple (default: this machine)."""
    if not triple:
        return sys.platform == "linux" and platform.machine() in FUTEX_CALL
    return "linux" in triple and triple.partition("-")[0] in FUTEX_CALL
