"""How many values become one: by which function, from which start, written out as an expression."""

from __future__ import annotations

from ...ir.opdef import OPS
from ...ir.ops.folds.reductions import identity
from ..scalar import DType, Expr, const, fma
from . import EXPANSIONS

COMBINE = {"add": "add", "multiply": "mul", "min": "minimum", "max": "maximum"}  # of updates
FOLDS = {name: d.combiner for name, d in OPS.items() if d.combiner and "axes" in d.attrs}
CHAIN = 4  # multiply-adds that wait for each other


def fold(name: str, values: list[Expr], dtype: DType) -> Expr:
    """A reduction as a balanced tree; a sum starts from 0, as NumPy's, so that it is never -0.

    Sums of products are short chains of multiply-adds: they round once where the loops of a reduction
    would round twice.
    """
    if not values:
        return const(identity(name, dtype), dtype)
    function = EXPANSIONS[FOLDS[name]]
    if name == "sum" and dtype.kind == "f":
        if all(v.op == "mul" for v in values):
            values = [_chain(values[k : k + CHAIN]) for k in range(0, len(values), CHAIN)]
        else:
            values = [values[0] + 0.0, *values[1:]]
    while len(values) > 1:
        halves = [function(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = [*halves, *values[len(halves) * 2 :]]
    return values[0]


def _chain(products: list[Expr]) -> Expr:
    total = const(0, products[0].dtype)
    for a, b in (v.args for v in products):
        total = fma(a, b, total)
    return total
