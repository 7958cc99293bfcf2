"""What a planted fault is, and how it gets into a tree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Fault(NamedTuple):
    """One wrong line: in `file`, `old` becomes `new`. `test` must fail then, and not without it."""

    name: str
    breaks: str
    file: str
    old: str
    new: str
    test: str


class Drift(AssertionError):
    """The text that a fault replaces is not there, or not only once: the fault must follow the code."""


def planted(fault: Fault, tree: Path) -> str:
    """The text of the fault's file in `tree`, with the fault."""
    text = (tree / fault.file).read_text(encoding="utf-8")
    count = text.count(fault.old)
    if count != 1 or fault.old == fault.new:
        raise Drift(
            f"fault {fault.name}: {count} times in {fault.file}, and once is wanted:\n{fault.old}"
        )
    return text.replace(fault.old, fault.new)


def plant(fault: Fault, tree: Path) -> None:
    """Put the fault into a tree, under a time of change that no compiled file of Python's has."""
    path = tree / fault.file
    text, then = planted(fault, tree), path.stat().st_mtime
    path.write_text(text, encoding="utf-8")
    os.utime(path, (then + 100, then + 100))
