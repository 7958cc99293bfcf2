"""`f.lower(x)`: the stages between a graph and machine code, to be looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.graph import Graph
from ...ir.record import record
from ...runtime.config import config
from ...runtime.devices import CPU, Device
from ..messages import errors
from ..messages.errors import complain
from .explanation import Explanation, shown
from .memory import MemoryCost, memory_of
from .reasons import sentences
from .roofline import roofline
from .steps import Measured, bare, is_uncounted, kernels_of
from .units import at, size_text, time_text

if TYPE_CHECKING:
    from ...codegen.module import NativeModule
    from ...ir.passes.mincut import SavePlan
    from ...runtime.executable import Executable
    from ...runtime.probing import Costs
    from ..core.trace import Cast
    from ..core.tracing import Traced
    from ..jit.options import Options


@record
class Lowered:
    """A traced and compiled call. `graph` is as traced; `executable` is native code, or a program of
    kernels on another `device`.

    `plan` tells what `jit(save=...)` has chosen to keep and to compute again; None without.
    `probed` makes the same program as `executable` with probes of a kind in it, on the CPU, and
    `arguments` are the arrays of the call; None where it was lowered for shapes and dtypes alone.
    `casts` are arrays that a scalar made float64. `unwatched` is `probed` of the program as it is
    without `check`. `keep` has the function compile for such calls.
    """

    graph: Graph
    executable: Any
    options: Options
    plan: SavePlan | None = None
    device: Device = CPU
    probed: Callable[[str], Executable] | None = None
    arguments: Sequence[np.ndarray[Any, Any]] | None = None
    casts: Sequence[Cast] = ()
    unwatched: Callable[[str], Executable] | None = None
    keep: Callable[[], Any] | None = None

    def compile(self) -> Any:
        """Have the function keep this, so that the first call of its like is a hit; gives the function.
        See `JitFunction.compile`, which takes several signatures.

        >>> f = jit(lambda x: x.sum())
        >>> f.lower(ShapeDtype(3)).compile()(np.ones(3))
        np.float64(3.0)
        """
        assert self.keep is not None, "made by `f.lower`"
        return self.keep()

    @property
    def kernels(self) -> list[Any]:
        """One report per kernel, in the order in which they run first: what was fused, bytes, flops."""
        return list(self.executable.kernels)

    def llvm(self) -> str:
        """The LLVM IR."""
        return str(self.executable.llvm)

    def asm(self) -> str:
        """The machine code, as assembly; PTX for a GPU."""
        return str(self.executable.asm())

    def explain(self) -> Explanation:
        """The kernels in the order in which they run, with what they cost."""
        return explain(self)

    def __str__(self) -> str:
        return str(self.explain())

    def __repr__(self) -> str:
        kernels = len(self.kernels)
        return f"<Lowered {self.graph.name}: {len(self.graph.ops)} ops, {kernels} kernels>"

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()


def explain(lowered: Lowered) -> Explanation:
    """What became of a call: kernels in order, in the loops and branches that they stand in, with bytes
    and flops; with times, if there are arguments and a call does no more than compute."""
    from ...runtime.machine_limits import machine_limits
    from ...runtime.probing import vectorised

    if lowered.probed is None:
        own = lowered.executable.module
        memory = MemoryCost(own.arena_bytes, sum(t.nbytes for t in own.outputs))
        why = sentences((), own.copies, lowered.casts, (), None)
        return shown(_head(lowered, None, memory), bare(lowered.kernels), None, memory, why)
    found, limits, charts = None, None, ""
    clocked = lowered.probed("count")
    module = clocked.module
    results = sum(t.nbytes for t in module.outputs)
    memory = memory_of(module.probes_at, results, module.buffers, module.unstored)
    footprint = memory.peak + sum(t.nbytes for t in module.inputs)
    if lowered.arguments is not None:
        found = _costs(clocked, lowered.arguments, lowered.probed)
        # Of axes of any length bytes and flops are those of the capacity: no rates come of these.
        limits = None if module.lengths else machine_limits()
    made = Measured(found, limits, footprint)
    steps = made.steps(module.outline)
    if limits is not None and (made.bandwidths or made.flops):
        limits = machine_limits(moved=made.bandwidths, flops=made.flops)
        steps = Measured(found, limits, footprint).steps(module.outline)
    if limits is not None:
        kernels = list(kernels_of(steps))
        itemsize = max((r.itemsize for r in module.kernels), default=8)
        charts = roofline(kernels, limits.bandwidth(footprint), limits.peak_flops(itemsize))
    seconds = None if found is None else found.seconds
    why = sentences(module.reasons, module.copies, lowered.casts, vectorised(clocked), found)
    head = _head(lowered, seconds, memory) + _watched(lowered, seconds)
    return shown(head, steps, seconds, memory, why, charts + memory.chart())


def _watched(lowered: Lowered, seconds: float | None) -> list[str]:
    """What it costs that values are watched."""
    if lowered.unwatched is None:
        return []
    line = f"  watched for {', '.join(sorted(lowered.options.watched))}"
    if seconds is None or lowered.arguments is None:
        return [line]
    from ...runtime.probing import measure

    plain = measure(lowered.unwatched("count"), lowered.arguments).seconds
    share = seconds / max(plain, 1e-9) - 1
    return [f"{line}: {share:+.0%} of the {time_text(plain)} that it takes without"]


def _head(lowered: Lowered, seconds: float | None, memory: MemoryCost) -> list[str]:
    return [_title(lowered, seconds), *_settings(lowered, memory)]


def _title(lowered: Lowered, seconds: float | None) -> str:
    ops, kernels = len(lowered.graph.ops), len(lowered.kernels)
    text = f"{lowered.graph.name}: {ops} ops, {kernels} kernel{'s' * (kernels != 1)}"
    text += f" on {lowered.device}" if lowered.device != CPU else ""
    return text if seconds is None else f"{text}; {time_text(seconds)} a call in compiled code"


def _settings(lowered: Lowered, memory: MemoryCost) -> list[str]:
    """Options; memory; what was kept for derivatives."""
    lines = [f"  options: {str(lowered.options) or 'as by default'}"]
    if lowered.device == CPU and config.threads == 1:
        lines.append("  one thread: this process has no more (its cores, or JITNEY_NUM_THREADS)")
    most = [most for *_, most in getattr(lowered.executable.module, "lengths", ())]
    if most:
        each = " and ".join(map(str, most))
        lines.append(
            f"  for any length up to {each}: bytes and flops are of so many, times of these"
        )
    lines += [f"  {line}" for line in memory.lines()]
    lines += _calls(lowered)
    plan = lowered.plan
    if plan is not None:
        lines.append(
            f"  kept for the backward part: {size_text(plan.saved_bytes)}; {plan.recomputed} ops run "
            f"again; predicted peak {size_text(plan.peak_bytes)}, planned "
            f"{size_text(lowered.executable.module.arena_bytes)}"
        )
    return lines


def _calls(lowered: Lowered) -> list[str]:
    """Results in the place of arguments, and what is called in Python."""
    module = lowered.executable.module
    count = len(module.in_place)
    lines = [f"  {count} result{'s' * (count != 1)} in the place of arguments"] if count else []
    calls = [site for site in getattr(module, "callbacks", ()) if hasattr(site.function, "name")]
    return lines + [f"  calls Python: {site.function.name}{at(site.loc)}" for site in calls]


def _costs(
    clocked: Executable,
    arguments: Sequence[np.ndarray[Any, Any]],
    probed: Callable[[str], Executable],
) -> Costs | None:
    """What a call costs; None for one that does more than compute, which is not run to be timed."""
    from ...runtime.probing import measure, trips

    module = clocked.module
    if module.callbacks or module.keeps_gil or _has_containers(module):
        return None
    costs = measure(clocked, arguments)
    if not any(is_uncounted(step) for step in module.outline):
        return costs
    return costs.with_runs(trips(probed("trips"), arguments))


def _has_containers(module: NativeModule) -> bool:
    return any(step.text == "store root" for step in module.outline)


def refuse_copies(name: str, traced: Traced, settled: Traced, module: Any) -> None:
    """Raise InPlaceError if compiled code copies an array that it should update."""
    copies = [f"{size_text(c.nbytes)} are copied{at(c.loc)}: {c.why}" for c in module.copies]
    for parameter in settled.mutated:
        value = traced.graph.params[parameter]
        if not value.tensor.shape:
            continue  # one number, a counter say, is stored either way
        copies.append(
            f"{size_text(value.tensor.nbytes)} are copied at the end: the new elements of "
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
