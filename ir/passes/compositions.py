"""Ops by other ops, for targets that have no library and no loops for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..build import Builder
from ..graph import Graph, Op, Value
from ..ops.folds.sorting import compose_true_indices
from ..ops.products.sparse import counted_rows, scattered
from .fourier import TRANSFORMS
from .inline_calls import inline_calls
from .regions import map_regions, substituted

Rule = Callable[..., Value]
COMPOSITIONS: dict[str, Rule] = {
    **TRANSFORMS,
    "true_indices": compose_true_indices,
    "sparse_dot": scattered,
    "sparse_dot_t": scattered,
    "sparse_rows": counted_rows,
}


def compose(graph: Graph, chosen: Mapping[str, Rule] = COMPOSITIONS) -> Graph:
    """`graph` with other ops instead of those that are `chosen`.

    %y = fft %x inverse=False factor=1.0 : c64[8]     ->     %y = dot %x, %f ... : c64[8]
    """

    def composed(b: Builder, op: Op, operands: Sequence[Value]) -> list[Value] | None:
        return [chosen[op.name](b, *operands, **op.attrs)] if op.name in chosen else None

    def everywhere(graph: Graph) -> Graph:
        return substituted(map_regions(graph, everywhere), composed)

    # Twice: some of the ops are compositions themselves, of loops, and the bodies of others have some.
    return everywhere(inline_calls(everywhere(graph)))
