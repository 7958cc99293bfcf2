"""What a fault was, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ...codegen.module import TOLD_WORD, NativeModule
from ...codegen.target import Target
from . import layout as at
from .machine import check_module


class SanitizerError(RuntimeError):
    """Compiled code read or wrote what it must not: a bug in jitney."""


def violation(module: NativeModule, target: Target, status: Sequence[int]) -> SanitizerError:
    """The error that the status block of a checked entry tells."""
    word, number, site, offset, size, nbytes, detail, kernel = status[:TOLD_WORD]
    sites = check_module(module, target).sites
    function, _, instruction = sites[site].partition(": ")
    access, kind = divmod(word, 1 << at.ACCESS_SHIFT)
    verb = "writes" if access & at.WRITE else "reads"
    name = _array(module, sites, number)
    where = f"{verb} {size} bytes at byte {offset} of {nbytes}"
    what = {
        at.OUT_OF_BOUNDS: f"{where}: out of bounds of",
        at.UNWRITTEN: f"{where}, which nobody has written, of",
        at.OVERLAP: f"{where}, written as {_array(module, sites, _signed(detail))}, of",
        at.RACE: f"{where}, which another unit of the same loop touches, of",
        at.READ_ONLY: f"{where} of a constant,",
        at.UNFILLED: f"leaves byte {offset} of {nbytes} unwritten of",
        at.NULL: f"{verb} {size} bytes at the address {offset}, which is",
        at.WILD: f"{verb} {size} bytes at the address {offset:#x}, which is",
    }[kind]
    lines = [f"compiled code {what} {name}: this is a bug in jitney, please report it"]
    if function:
        lines.append(f"  in {function}: {instruction}")
    if kernel:
        report = module.kernels[kernel - 1]
        lines.append(f"  kernel {report.name} ({', '.join(report.ops)})")
        locs = {k.locs for k in module.kernels if k.name == report.name}
        for loc in dict.fromkeys(loc for group in locs for loc in group):
            lines.append(f"  at {loc}{loc.inside}")
    return SanitizerError("\n".join(lines))


def _signed(number: int) -> int:
    """What is kept in 32 bits."""
    return number - (1 << 32) if number >> 31 else number


def _array(module: NativeModule, sites: Sequence[str], number: int) -> str:
    if number == -1:
        return "a tape"
    if number < 0:
        return sites[-number - 1]
    return module.arrays[number] if number < len(module.arrays) else "no array"
