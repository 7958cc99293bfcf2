"""Footprints: which elements of which arrays a step touches, row by row.

Kernels and products, whose accesses are known by element, may be said to have rows: the first of their
loops, taken as one. Of other steps only the arrays are known (`steps.direct`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from .index import Index, Var, linear, of_var
from .kernel import Array, Kernel
from .steps import Matmul


class Footprint(NamedTuple):
    """An access of a stage or product, `by`: element `flat` of an array, at each point of its loops, of
    which the first, `rows`, count rows."""

    by: Any
    array: Array
    flat: Index
    rows: Sequence[Var]
    writes: bool


def footprints(step: Kernel | Matmul, total: int) -> list[Footprint] | None:
    """What a step of `total` rows touches, of arrays outside it; None if it has no such rows."""
    if isinstance(step, Matmul):
        return _of_product(step)
    ranks = range(1, len(step.extents) + 1)
    rank = next((d for d in ranks if prod(step.extents[:d]) == total), 0)
    if not rank:
        return None
    return [
        Footprint(stage, access.array, access.flat, stage.dims[:rank], writes)
        for stage in step.stages
        for access, writes in [*((a, False) for a in stage.reads), (stage.write, True)]
        if access.array not in step.local
    ]


def _of_product(step: Matmul) -> list[Footprint]:
    rows = Var("b", step.batch), Var("m", step.m)
    b, m = map(of_var, rows)
    k, n = of_var(Var("k", step.k)), of_var(Var("n", step.n))
    everything = of_var(Var("all", step.b.size))
    return [
        Footprint(step, step.a, linear((b, m, k), step.a_strides, step.a_offset), rows, False),
        Footprint(step, step.b, everything, rows, False),
        Footprint(step, step.c, linear((b, m, n), (step.m * step.n, step.n, 1)), rows, True),
    ]
