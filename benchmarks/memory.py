"""How much memory a call takes: the process's high-water mark above what it held before."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class MemoryPeak:
    """`with MemoryPeak() as peak: call()`; then `peak.bytes`, or None where there is no /proc."""

    bytes: int | None = None

    def __enter__(self) -> MemoryPeak:
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the mark falls back to what is held now
            self._before = _status("VmRSS")
        except OSError:
            self._before = None
        return self

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            self.bytes = max(_status("VmHWM") - self._before, 0)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")
