"""Lowering of convolutions."""

from __future__ import annotations

from ..ir.graph import Op
from ..ir.ops.convolution import windows
from .index import Var, of_var
from .kernel import Array, Stage
from .lower import Lowering, indices, lowering, variables
from .lower_windows import Place
from .scalar import Expr, const, select


@lowering("conv")
def _conv(low: Lowering, op: Op) -> None:
    array = low.array_for(op.result)
    if 0 in op.operands[0].shape or op.operands[1].tensor.size == 0:
        dims = variables(array.shape)
        low.emit(low.point(), Stage(array, dims, const(0, array.dtype), ops=["conv"], loc=op.loc))
    else:
        _as_reduction(low, op, array)
    low.arrays[op.result] = array


def _as_reduction(low: Lowering, op: Op, array: Array) -> None:
    """A sum over the kernel's taps and channels, for each element of the result."""
    x, w = op.operands
    for operand in (x, w):
        if operand not in low.arrays and low.cost.get(operand, 0) > 0:
            low.materialise(operand)
    dims = windows(x.shape, w.shape, op.attrs)
    g, n, *places, o = variables(array.shape)
    taps = [Var(f"k{i}", d.taps) for i, d in enumerate(dims)]
    c = Var("c", x.shape[-1])
    place = Place()
    for d, v, k in zip(dims, places, taps, strict=True):
        at = of_var(v) * d.stride + of_var(k) * d.rhs_dilation - d.low
        place.add(at, d.size, d.lhs_dilation)
    p = low.point()
    exists = place.exists
    if exists is not None:
        p.masks.append(exists)
    value = p.at(x, (of_var(g), of_var(n), *place.index, of_var(c)), exists)
    zero = const(0, array.dtype)
    if place.inside is not None:
        value = select(place.inside, value, zero)
    term: Expr = value * p.at(w, (of_var(g), *indices(taps), of_var(c), of_var(o)))
    if place.between is not None:
        term = select(place.between, term, zero)
    kept = (g, n, *places, o)
    stage = Stage(
        array, (*kept, *taps, c), term, "reduce", "sum", len(kept), loc=op.loc, ops=["conv"], cost=1
    )
    low.emit(p, stage)
