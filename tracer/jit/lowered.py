"""`f.lower(x)` and `f.explain(x)`: the stages between a graph and machine code, to be looked at."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ...ir.graph import Graph
from ...ir.record import record
from ...runtime.devices import CPU, Device
from ..messages import errors
from ..messages.errors import complain
from .options import DEFAULTS, Options

if TYPE_CHECKING:
    from ...ir.passes.mincut import SavePlan
    from ..core.tracing import Traced


@record
class Lowered:
    """A traced and compiled call. `graph` is as traced; `executable` is native code, or a program of
    kernels on another `device`.

    `plan` tells what `jit(save=...)` has chosen to keep and to compute again; None without.
    """

    graph: Graph
    executable: Any
    plan: SavePlan | None = None
    device: Device = CPU
    options: Options = DEFAULTS

    @property
    def kernels(self) -> list[Any]:
        """One report per kernel: what was fused, bytes, flops."""
        return list(self.executable.kernels)

    def llvm(self) -> str:
        """The LLVM IR."""
        return str(self.executable.llvm)

    def asm(self) -> str:
        """The machine code, as assembly; PTX for a GPU."""
        return str(self.executable.asm())

    def explain(self) -> str:
        return explain(self)

    def __str__(self) -> str:
        return self.explain()


def explain(lowered: Lowered) -> str:
    """A table of the kernels: which ops were fused into each, its extents, bytes and flops."""
    kernels = lowered.kernels
    count = len(lowered.graph.ops)
    where = f" on {lowered.device}" if lowered.device != CPU else ""
    lines = [
        f"{lowered.graph.name}: {count} ops, {len(kernels)} kernel{'s' if len(kernels) != 1 else ''}"
        + where
    ]
    lines.append(f"  options: {str(lowered.options) or 'as by default'}")
    lines += _memory(lowered)
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
        lines_of_code = sorted({(PurePath(loc.file).name, loc.line) for loc in kernel.locs})
        if lines_of_code:
            lines.append("    " + ", ".join(f"{file}:{line}" for file, line in lines_of_code))
    return "\n".join(lines)


def _memory(lowered: Lowered) -> list[str]:
    """The arena, the results and their sum, which is the most that a call allocates; copies."""
    module = lowered.executable.module
    results = sum(type.nbytes for type in module.outputs)
    peak = _size(module.arena_bytes + results)
    lines = [f"  memory: arena {_size(module.arena_bytes)}, results {_size(results)}, peak {peak}"]
    if module.in_place:
        count = len(module.in_place)
        lines.append(f"  {count} result{'s' if count != 1 else ''} in the place of arguments")
    calls = [site for site in getattr(module, "callbacks", ()) if hasattr(site.function, "name")]
    lines += [f"  calls Python: {site.function.name}{_at(site.loc)}" for site in calls]
    lines += [f"  copies {_size(copy.nbytes)}{_at(copy.loc)}: {copy.why}" for copy in module.copies]
    return lines


def _at(loc: Any) -> str:
    return f" at {PurePath(loc.file).name}:{loc.line}" if loc is not None else ""


def refuse_copies(name: str, traced: Traced, settled: Traced, module: Any) -> None:
    """Raise InPlaceError if compiled code copies an array that it should update."""
    copies = [f"{_size(c.nbytes)} are copied{_at(c.loc)}: {c.why}" for c in module.copies]
    for parameter in settled.mutated:
        value = traced.graph.params[parameter]
        copies.append(
            f"{_size(value.tensor.nbytes)} are copied at the end: the new elements of "
            f"`{value.name or parameter}` are computed apart from the old ones"
            + (", since the call may fail half way" if module.errors or module.callbacks else "")
        )
    if copies:
        complain(
            errors.InPlaceError,
            f"{name} does not update in place: " + "; ".join(copies),
            "do not read the old elements after the update, donate arguments that are given up "
            "(donate_argnums), or leave out inplace='require'.",
        )


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.4g} {unit}"
        n /= 1024
    return f"{n:.4g} GiB"
