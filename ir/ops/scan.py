"""`scan`: a loop with a known trip count, over the slices of arrays.

    scan(*operands; consts, carries, length, reverse; regions = (body,))
        operands are consts..., initial carries..., xs... (whose leading dimension is `length`).
        The body takes (consts..., carries..., one slice of each x) and gives (carries..., ys...).
        Results are the last carries, and each y stacked along a new leading dimension.

With `reverse` it walks from the last index to the first; a y lands at the index of its x's. A
length of 0 gives the initial carries and empty ys. Tokens and tapes may be carries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Graph
from ..interpreter import evaluate
from ..opdef import GraphError, OpDef, register
from ..types import TensorType, Type, is_linear
from .structured import check_params, listed


def infer_scan(
    *types: Type, consts: int, carries: int, length: int, reverse: bool, regions: tuple[Graph, ...]
) -> tuple[Type, ...]:
    if len(regions) != 1:
        raise GraphError(f"needs one region, the body, got {len(regions)}")
    if consts < 0 or carries < 0 or consts + carries > len(types):
        raise GraphError(f"consts={consts} and carries={carries} with {len(types)} operands")
    if length < 0:
        raise GraphError(f"length={length} is negative")
    fixed, carry, xs = types[:consts], types[consts : consts + carries], types[consts + carries :]
    if any(is_linear(t) for t in fixed):
        raise GraphError(f"a token or a tape cannot be a loop invariant, in {listed(fixed)}")
    slices = []
    for x in xs:
        if not isinstance(x, TensorType) or x.shape[:1] != (length,):
            raise GraphError(f"an x has type {x}; its leading dimension must be length={length}")
        slices.append(x.with_shape(x.shape[1:]))
    (body,) = regions
    check_params(body, [*fixed, *carry, *slices], "body")
    out = body.output_types
    if tuple(out[:carries]) != carry:
        raise GraphError(f"body gives {listed(out)} for the carry {listed(carry)}")
    ys = []
    for y in out[carries:]:
        if not isinstance(y, TensorType):
            raise GraphError(f"a y has type {y}; only tensors can be stacked")
        ys.append(y.with_shape((length, *y.shape)))
    return (*carry, *ys)


def _scan(
    *arrays: Any, consts: int, carries: int, length: int, reverse: bool, regions: tuple[Graph, ...]
) -> tuple[Any, ...]:
    (body,) = regions
    fixed, carry = arrays[:consts], list(arrays[consts : consts + carries])
    xs = arrays[consts + carries :]
    ys = [np.empty((length, *v.shape), v.dtype) for v in body.outputs[carries:]]
    for i in reversed(range(length)) if reverse else range(length):
        out = evaluate(body, [*fixed, *carry, *(x[i] for x in xs)])
        carry = out[:carries]
        for stack, y in zip(ys, out[carries:], strict=True):
            stack[i] = y
    return (*carry, *ys)


register(
    OpDef(
        "scan",
        "structured",
        infer_scan,
        _scan,
        attrs=("consts", "carries", "length", "reverse"),
        regions=1,
        doc="a loop over the slices of arrays, which carries values and stacks results",
        extra={"examples": ()},
    )
)
