"""Which arguments a value was computed of, for errors that ask for its number.

Python needs the number itself for a shape, a range, an axis. Where it comes of numbers among the
arguments, `jit` traces the function again with these compiled in.
"""

from __future__ import annotations

from ...ir.graph import Value
from .trace import Trace
from .tracers import Tracer, method

_MOST = 10_000  # values that are looked through


@method("_behind")
def behind(x: Tracer) -> frozenset[int] | None:
    """The positions of the outermost trace's parameters that `x` depends on; None where a loop or a
    transformation between hides them."""
    trace: Trace | None = x._storage.trace
    values = {x._storage.value}
    while trace is not None:
        roots = _roots(values)
        if roots is None:
            return None
        if trace.parent is None:
            return frozenset(value.index for value in roots)
        outer = {**trace.lent, **{c.param: c.outer for c in trace.captures}}
        if not roots <= outer.keys():
            return None
        values, trace = {outer[value] for value in roots}, trace.parent
    return None


def _roots(values: set[Value]) -> set[Value] | None:
    """The graph's parameters that values are computed of."""
    pending, seen, roots = list(values), set(values), set()
    while pending:
        value = pending.pop()
        if value.op is None:
            roots.add(value)
            continue
        new = [v for v in value.op.operands if v not in seen]
        seen.update(new)
        pending += new
        if len(seen) > _MOST:
            return None
    return roots
