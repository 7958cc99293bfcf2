"""`lanes_while`: a loop that each element of arrays runs for itself, for as long as it needs.

    lanes_while(*operands; consts, checkpoint; regions = (cond, body))
        operands are consts... and initial carries..., all of one shape. The regions are scalar
        graphs of elementwise ops: both take 0-d (consts..., carries...), cond gives one bool, body
        the carries. Results are the carries after each element's own last trip.

What a scalar `while` becomes when it is batched: in one kernel each lane of a vector stops by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Graph
from ..interpreter import evaluate_op
from ..opdef import GraphError, OpDef, register
from ..types import TensorType, Type
from .families import Array, check_same
from .structured import check_checkpoint, check_params, listed


def infer_lanes(
    *types: Type, consts: int, checkpoint: str | int = "all", regions: tuple[Graph, ...]
) -> tuple[Type, ...]:
    if len(regions) != 2:
        raise GraphError(f"needs two regions, cond and body, got {len(regions)}")
    if not 0 <= consts < len(types):
        raise GraphError(f"consts={consts} with {len(types)} operands")
    if not all(isinstance(t, TensorType) for t in types):
        raise GraphError(f"takes tensors only, got {listed(types)}")
    check_same(types, dtypes_too=False)  # type: ignore[arg-type]
    check_checkpoint(checkpoint)
    test, body = regions
    scalars = [t.with_shape(()) for t in types if isinstance(t, TensorType)]
    check_params(test, scalars, "cond")
    check_params(body, scalars, "body")
    if [str(t) for t in test.output_types] != ["bool[]"]:
        raise GraphError(f"cond gives {listed(test.output_types)}, it must give (bool[])")
    if body.output_types != scalars[consts:]:
        raise GraphError(
            f"body gives {listed(body.output_types)} for the carry {listed(scalars[consts:])}"
        )
    for region in regions:
        for op in region.ops:
            if not is_lanewise(op.definition):
                raise GraphError(f"{op.name} is not elementwise")
    return types[consts:]


def is_lanewise(definition: OpDef) -> bool:
    """Whether an op may stand in the regions of `lanes_while`."""
    return definition.family == "elementwise" or definition.name in ("constant", "lanes_while")


def _lanes(
    *arrays: Array, consts: int, checkpoint: str | int = "all", regions: tuple[Graph, ...]
) -> tuple[Array, ...]:
    """Turn by turn, over the elements that still run."""
    test, body = regions
    shape = np.shape(arrays[0])
    flat = [np.array(a).reshape(-1) for a in arrays]
    running = np.arange(flat[0].size)
    while running.size:
        lanes = [a[running] for a in flat]
        (goes_on,) = evaluate_lanes(test, lanes)
        running, lanes = running[goes_on], [a[goes_on] for a in lanes]
        if running.size:
            for carry, new in zip(flat[consts:], evaluate_lanes(body, lanes), strict=True):
                carry[running] = new
    return tuple(a.reshape(shape) for a in flat[consts:])


def evaluate_lanes(graph: Graph, arrays: list[Array]) -> list[Array]:
    """A scalar graph of elementwise ops, applied to each element of 1-d arrays."""
    env: dict[Any, Any] = dict(zip(graph.params, arrays, strict=True))
    shape = arrays[0].shape
    for op in graph.ops:
        operands = [env[v] for v in op.operands]
        if op.regions:
            operands = [np.broadcast_to(a, shape) for a in operands]
        env.update(zip(op.results, evaluate_op(op, operands), strict=True))
    return [np.broadcast_to(env[v], shape) for v in graph.outputs]


register(
    OpDef(
        "lanes_while",
        "structured",
        infer_lanes,
        _lanes,
        attrs=("consts", "checkpoint"),
        regions=2,
        doc="a loop that each element runs for itself",
        extra={"examples": ()},
    )
)
