"""Lines, times and sizes, as reports show them."""

from __future__ import annotations

from typing import Any

from ..messages.source import shown_file

CELL = "text-align:left;white-space:nowrap;padding:1px 14px 1px 0"  # of a table in a notebook


def at(loc: Any) -> str:
    """Where something is, for the middle of a sentence."""
    return f" at {shown_file(loc.file)}:{loc.line}" if loc is not None else ""


def time_text(seconds: float) -> str:
    """A time with the unit that suits it: `12.3 us`."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def size_text(n: float) -> str:
    """Bytes with the unit that suits them: `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.4g} {unit}"
        n /= 1024
    return f"{n:.4g} GiB"
