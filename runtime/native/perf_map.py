"""Names of machine code for Linux's `perf`: it reads `/tmp/perf-PID.map`, a line for each function.

    perf record -g python program.py   # with JITNEY_PERF=1
    perf report

https://github.com/torvalds/linux/blob/master/tools/perf/Documentation/jit-interface.txt
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def perf_map_path() -> Path:
    """Where perf looks for this process's names."""
    return Path(f"/tmp/perf-{os.getpid()}.map")


def write_perf_map(start: int, functions: Iterable[tuple[str, int, int]]) -> None:
    """Tell perf of code that was loaded at `start`: name, offset and size of each function.

    Where the file can't be written perf knows no names, and the program goes on.
    """
    lines = [f"{start + at:x} {size:x} jitney:{name}\n" for name, at, size in functions]
    try:
        with open(perf_map_path(), "a", encoding="utf-8") as file:
            file.write("".join(lines))
    except OSError:
        pass
