"""Systems of equations with one matrix share its LU factors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..build import Builder
from ..graph import Graph, Op, Value
from .regions import map_regions, substituted

LEAST = 16  # unknowns from which on the factors, in memory of their own, are worth it
ROWS: dict[str, Any] = {"axes": (0,), "mode": "clip", "names": (0,)}


def share_factors(graph: Graph) -> Graph:
    """Factorise a matrix once, of which several systems are solved, or of its transpose: as a solution
    and its derivative are.

        %x = solve %a, %b                           %lu, %order = lu %a
        %t = transpose %a perm=[1,0]       ->       %x = U^-1 L^-1 %b[%order]
        %y = solve %t, %c                           %y[%order] = L^-T U^-T %c

    It is the same up to rounding, for the transpose; its pivots are those of the matrix.
    """
    graph = map_regions(graph, share_factors)
    systems = Counter(_matrix(op.operands[0]) for op in graph.ops if _is_large(op))
    factors: dict[Value, Sequence[Value]] = {}

    def solved(b: Builder, op: Op, operands: Sequence[Value]) -> list[Value] | None:
        if not _is_large(op) or systems[_matrix(op.operands[0])] < 2:
            return None
        matrix = _matrix(op.operands[0])
        if matrix not in factors:
            factors[matrix] = b.op("lu", _matrix(operands[0]))
        packed, order = factors[matrix]
        solution = _turned if matrix is not op.operands[0] else _straight
        return [solution(b, packed, order, operands[1], op.attrs["mode"])]

    return substituted(graph, solved) if max(systems.values(), default=0) > 1 else graph


def _is_large(op: Op) -> bool:
    if op.name != "solve":
        return False
    a = op.operands[0]
    return a.dtype.kind == "f" and len(a.shape) == 2 and a.shape[0] >= LEAST


def _matrix(value: Value) -> Value:
    """What a square matrix is, or is the transpose of."""
    op = value.op
    if op is None or op.name != "transpose" or op.attrs["perm"] != (1, 0):
        return value
    return op.operands[0]


def _straight(b: Builder, packed: Value, order: Value, right: Value, mode: str) -> Value:
    x = b.op("gather", right, order, **ROWS)
    x = b.op("triangular_solve", packed, x, lower=True, unit=True, mode="fill")
    solution: Value = b.op("triangular_solve", packed, x, lower=False, unit=False, mode=mode)
    return solution


def _turned(b: Builder, packed: Value, order: Value, right: Value, mode: str) -> Value:
    packed = b.op("transpose", packed, perm=(1, 0))
    x = b.op("triangular_solve", packed, right, lower=True, unit=False, mode=mode)
    x = b.op("triangular_solve", packed, x, lower=False, unit=True, mode="fill")
    solution: Value = b.op("scatter", right, x, order, combine="set", **ROWS)
    return solution
