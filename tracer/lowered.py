"""`f.lower(x)` and `f.explain(x)`: the stages between a graph and machine code, to be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ..ir.graph import Graph

if TYPE_CHECKING:
    from ..ir.mincut import SavePlan


@dataclass(frozen=True)
class Lowered:
    """A traced and compiled call. `graph` is as traced; `executable` is native code.

    `plan` tells what `jit(save=...)` has chosen to keep and to compute again; None without.
    """

    graph: Graph
    executable: Any
    plan: SavePlan | None = None

    @property
    def kernels(self) -> list[Any]:
        """One report per kernel: what was fused, bytes, flops."""
        return list(self.executable.kernels)

    def llvm(self) -> str:
        """The LLVM IR."""
        return str(self.executable.llvm)

    def asm(self) -> str:
        """The machine code, as assembly."""
        return str(self.executable.asm())

    def explain(self) -> str:
        return explain(self)

    def __str__(self) -> str:
        return self.explain()


def explain(lowered: Lowered) -> str:
    """A table of the kernels: which ops were fused into each, its extents, bytes and flops."""
    kernels = lowered.kernels
    count = len(lowered.graph.ops)
    lines = [
        f"{lowered.graph.name}: {count} ops, {len(kernels)} kernel{'s' if len(kernels) != 1 else ''}"
    ]
    plan = lowered.plan
    if plan is not None:
        lines.append(
            f"  kept for the backward part: {_size(plan.saved_bytes)}; {plan.recomputed} ops run "
            f"again; predicted peak {_size(plan.peak_bytes)}, planned "
            f"{_size(lowered.executable.module.arena_bytes)}"
        )
    for kernel in kernels:
        extents = "x".join(map(str, kernel.extents)) or "1"
        lines.append(
            f"  {kernel.name} [{extents}]{' parallel' if kernel.parallel else ''}: "
            f"reads {_size(kernel.bytes_read)}, writes {_size(kernel.bytes_written)}, "
            f"{kernel.flops:,} flops"
        )
        if kernel.ops:
            lines.append(f"    {' '.join(kernel.ops)}")
        if kernel.note:
            lines.append(f"    {kernel.note}")
        places = sorted({(PurePath(loc.file).name, loc.line) for loc in kernel.locs})
        if places:
            lines.append("    " + ", ".join(f"{file}:{line}" for file, line in places))
    return "\n".join(lines)


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.4g} {unit}"
        n /= 1024
    return f"{n:.4g} GiB"
