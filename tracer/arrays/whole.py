"""Arrays whose first axis has a length that each call binds, as the padded arrays that stand for them.

What computes with all rows alike, as `vmap` and `scan` do, takes the padded arrays and gives results
that are as long. Only for lengths of a call (`tracer/lengths`): code ends there, so that nothing is
computed for what is behind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...ir.graph import Value
from ...ir.types import I64
from ..core.trace import Trace, current_trace
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from .common import build
from .creation import COUNTED
from .table import LAZY


class Rows(NamedTuple):
    """A tree with padded arrays in the place of others, which all have the length `count`."""

    tree: Any
    count: Any
    padded: list[Tracer]

    def counted(self, tree: Any) -> Any:
        """Results, arrays of as many rows, as long as the arguments are."""
        return pytree.tree_map(lambda x: COUNTED[0](x, {0: self.count}), tree)

    def alive(self) -> Tracer:
        """Which rows are there."""
        b, shape = build(), (self.padded[0].shape[0],)
        limit = b.broadcast(as_value(self.count, I64), shape=shape, dims=())
        return wrap(b.lt(b.iota(shape=shape, dtype=I64, axis=0), limit), scalar=False)


def whole_rows(tree: Any) -> Rows | None:
    """The arrays of a tree that have a length of the call, whole; None if there are none, or several
    lengths."""
    trace = current_trace()
    if trace is None:
        return None
    leaves, structure = pytree.flatten_whole(tree)
    counts: list[Any] = []
    padded: list[Tracer] = []
    for k, leaf in enumerate(leaves):
        if type(leaf) not in LAZY or set(getattr(leaf, "counts", ())) != {0}:
            continue
        value = as_value(leaf.counts[0])
        if not _is_length(trace, value):
            return None
        counts.append(value)
        leaves[k] = leaf.padded
        padded.append(leaf.padded)
    if not counts or any(value is not counts[0] for value in counts):
        return None
    return Rows(pytree.unflatten(structure, leaves), wrap(counts[0], "i"), padded)


def _is_length(trace: Trace, value: Value) -> bool:
    """Whether a value is a length that the call of the outermost function binds."""
    while trace.parent is not None:
        outer = next((c.outer for c in trace.captures if c.param is value), trace.lent.get(value))
        if outer is None:
            return False
        value, trace = outer, trace.parent
    return any(value is count._storage.value for count in trace.lengths.values())
