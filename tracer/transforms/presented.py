"""Results of transformed functions, as their callers see them."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Value
from ..core.trace import Array
from ..core.tracers import wrap

Leaf = Array | Value  # an ndarray outside of tracing, a value of the enclosing trace inside


def present(leaf: Leaf, weak: str | None, scalar: bool, *, fresh: bool = False) -> Any:
    """A result as the caller sees it: a tracer inside a trace, outside what NumPy would return.

    Outside, 0-d results are NumPy scalars, or Python's if weak. An array is copied unless it is
    `fresh` (nobody else holds it) and an ordinary array that owns its memory.
    """
    if isinstance(leaf, Value):
        return wrap(leaf, weak, scalar=scalar)
    if not leaf.shape:
        return leaf.item() if weak else leaf[()]
    if fresh and leaf.flags.owndata and leaf.flags.writeable:
        return leaf
    return leaf.copy()
