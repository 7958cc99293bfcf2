"""Constants: computed while compiling, kept small, and pulled in front of broadcasts.

All rules are exact: the op's own NumPy reference computes the folded constant.
"""

from __future__ import annotations

import numpy as np

from ...graph import Graph, Op, Value
from ...interpreter import evaluate_op
from .rewrite import Replacement, Rewriter, RuleTable, constant, on, rewrite

MAX_RESULT = 64  # elements of a folded constant
MAX_OPERANDS = 1 << 16  # elements that folding may read
_MAX_UNIFORM = 4096  # elements of a constant that are compared with each other
_FAMILIES = ("elementwise", "linear", "reduction", "bilinear", "opaque")


def fold_constants(graph: Graph) -> Graph:
    """Compute ops whose operands are constants, if the result is small and nothing raises.

        graph f(%x: f32[]) -> f32[] {            graph f(%x: f32[]) -> f32[] {
          %a = constant value={3.0} : f32[]        %a = constant value={3.0} : f32[]
          %b = mul %a, %a : f32[]           ->     %b = constant value={9.0} : f32[]
          %y = mul %x, %b : f32[]                  %y = mul %x, %b : f32[]
          return %y                                return %y
        }                                        }

    The constants that were read stay, for dead code elimination to drop.
    """
    return rewrite(graph, RuleTable(FOLDING))


_LEFT = ("broadcast", "checkpoint_name", "materialize")  # a constant would say less


def _fold(b: Rewriter, op: Op) -> Replacement:
    operands = [constant(v) for v in op.operands]
    if any(a is None for a in operands) or op.definition.name in _LEFT:
        return None
    if op.results[0].tensor.size > MAX_RESULT or sum(a.size for a in operands) > MAX_OPERANDS:
        return None
    try:
        results = evaluate_op(op, operands)
    except Exception:  # whatever the reference raises, the compiled code raises at run time
        return None
    return [b.const(a) for a in results]


def _uniform_constant(b: Rewriter, op: Op) -> Replacement:
    """An array of equal elements is a broadcast scalar."""
    value = op.attrs["value"]
    if not 1 < value.size <= _MAX_UNIFORM:
        return None
    bits = np.ascontiguousarray(value).reshape(-1).view(f"u{value.dtype.itemsize}")
    if (bits != bits[0]).any():
        return None
    return b.full(value.shape, value.reshape(-1)[0], value.dtype)


def _elementwise_of_broadcasts(b: Rewriter, op: Op) -> Replacement:
    """f(broadcast(x), broadcast(y)) = broadcast(f(x, y)): fewer elements to compute.

    All operands are broadcast in the same way, or from scalars.
    """
    dims: tuple[int, ...] = ()
    sources: list[Value] = []
    for operand in op.operands:
        inner = operand.op
        if inner is None or inner.definition.name != "broadcast":
            return None
        if inner.attrs["dims"]:
            if dims and dims != inner.attrs["dims"]:
                return None
            dims = inner.attrs["dims"]
        sources.append(inner.operands[0])
    shape = op.results[0].shape
    small = tuple([shape[d] for d in dims])
    operands = [v if v.shape == small else b.broadcast(v, shape=small, dims=()) for v in sources]
    return b.broadcast(b.op(op.name, *operands, **op.attrs), shape=shape, dims=dims)


def _elementwise_of_reshapes(b: Rewriter, op: Op) -> Replacement:
    """f(reshape(x), reshape(y)) = reshape(f(x, y)), where the reshapes only add axes of size 1.

    All operands are reshaped from one shape, or broadcast from scalars. So what `keepdims` adds
    leaves again at the next broadcast, and rows are computed as rows.
    """
    shape: tuple[int, ...] | None = None
    sources: list[Value] = []
    repeated: list[bool] = []
    for operand in op.operands:
        inner = operand.op
        if inner is None or inner.definition.name not in ("reshape", "broadcast"):
            return None
        (source,) = inner.operands
        repeated.append(inner.definition.name == "broadcast")
        if repeated[-1]:
            if source.shape != ():
                return None
        elif shape is None:
            shape = source.shape
        elif shape != source.shape:
            return None
        sources.append(source)
    full = op.results[0].shape
    if shape is None or len(shape) >= len(full):
        return None
    if [n for n in shape if n != 1] != [n for n in full if n != 1]:
        return None
    operands = [
        b.broadcast(v, shape=shape, dims=()) if again else v
        for v, again in zip(sources, repeated, strict=True)
    ]
    return b.reshape(b.op(op.name, *operands, **op.attrs), shape=full)


def _empty(b: Rewriter, op: Op) -> Replacement:
    """A result without elements needs no computing."""
    result = op.results[0]
    return b.zeros(result.tensor) if 0 in result.shape else None


FOLDING = [
    *(on(f"family:{family}", _fold, of="constant") for family in _FAMILIES),
    on("constant", _uniform_constant),
    on("family:elementwise", _elementwise_of_broadcasts, of="broadcast"),
    *(on("family:elementwise", _elementwise_of_reshapes, of="reshape", at=i) for i in range(3)),
    on("family:elementwise", _empty),
]
