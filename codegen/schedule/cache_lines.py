"""What a schedule does about cache lines: where vectors of a row begin, and what is fetched ahead."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..loop_ir.index import of_var
from ..loop_ir.kernel import Access, Array, Kernel, Stage

if TYPE_CHECKING:
    from .schedule import Schedule

FAR_BYTES = 1 << 20  # an array that is not in the nearer caches when a kernel begins


def fetch_ahead(kernel: Kernel, plan: Schedule) -> None:
    """Let the last nest of a row kernel, which finds its row in the cache, fetch the next row."""
    nests = [(n, loops) for n, loops in zip(kernel.nests, plan.inner, strict=True) if loops.vars]
    if plan.mode != "inner" or plan.width == 1 or len(nests) < 2 or plan.rows > 1:
        return
    (first, _), (last, loops) = nests[0], nests[-1]
    if last is not kernel.nests[-1] or first.extents != last.extents or len(loops.vars) != 1:
        return
    if not plan.outer.vars or plan.outer.vars[-1].extent < 16:
        return
    seen: set[Array] = set()
    for stage in first.stages:
        env = {a: of_var(b) for a, b in zip(stage.dims, last.stages[0].dims, strict=False)}
        for access in stage.reads:
            array = access.array
            if array in seen or array in kernel.local or array.nbytes < FAR_BYTES:
                continue
            here = Access(array, tuple(i.substitute(env) for i in access.index))
            flat = here.flat.substitute({**plan.outer.env, **loops.env})
            if flat.stride(loops.vars[-1]) == 1 and flat.stride(plan.outer.vars[-1]):
                seen.add(array)
                plan.ahead.append(here)


def align(kernel: Kernel, plan: Schedule) -> None:
    """Let the vectors of a stencil's rows begin where cache lines do: of a row of `y[1:-1]`, and of
    what it reads beside that, nearly all vectors would lie on two lines (1.3 times slower)."""
    if plan.mode != "outer" or plan.cross is not None or plan.tile or len(plan.outer.vars) < 2:
        return
    if plan.outer.vars[-1].extent < 2 * plan.width or plan.width == 1:
        return
    reads = Counter(a.array for s in kernel.stages for a in s.reads)
    if any(n > 1 for a, n in reads.items() if a not in kernel.local):
        stored = (s for s in kernel.stages if s.array not in kernel.local)
        plan.aligned = next((s for s in stored if _is_row(s, plan)), None)


def _is_row(stage: Stage, plan: Schedule) -> bool:
    """Whether neighbouring lanes of what a stage stores are neighbours in memory."""
    flat = stage.write.flat.substitute(plan.outer.env)
    return stage.array.dtype.itemsize >= 4 and flat.stride(plan.outer.vars[-1]) == 1
