"""`lanes_while`: a loop that each element of arrays runs for itself, for as long as it needs.

    lanes_while(*operands; consts, checkpoint; regions = (cond, body))
        operands are consts... and initial carries..., all of one shape. The regions are scalar
        graphs of elementwise ops: both take 0-d (consts..., carries...), cond gives one bool, body
        the carries. Results are the carries after each element's own last iteration.

What a scalar `while` becomes when it is batched: in one kernel each lane of a vector stops by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...batching.lanewise import is_lanewise
from ...batching.structured import batch_lanes_while
from ...build import Builder
from ...graph import Graph, Op, Value
from ...interpreter import entered, evaluate_op
from ...opdef import OPS, GraphError, OpDef, register
from ...record import record
from ...types import TensorType, Type
from ..families import Arg, Array, Example, check_same
from .loops_backward import Residuals
from .loops_while import countdown, jvp_loop
from .structured import check_checkpoint, check_params, listed


def infer_lanes(
    *types: Type, consts: int, checkpoint: str | int = "all", regions: tuple[Graph, ...]
) -> tuple[Type, ...]:
    """The types of the carries, which are the operands behind the `consts`."""
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
    entered(graph)
    env: dict[Any, Any] = dict(zip(graph.params, arrays, strict=True))
    shape = arrays[0].shape
    for op in graph.ops:
        operands = [env[v] for v in op.operands]
        if op.regions:
            operands = [np.broadcast_to(a, shape) for a in operands]
        env.update(zip(op.results, evaluate_op(op, operands), strict=True))
    return [np.broadcast_to(env[v], shape) for v in graph.outputs]


# Derivatives. Forward mode stays in lanes; reverse mode goes through `while` over all lanes.


@record
class _Masked:
    loop: Op
    residuals: Residuals


def _forward_lanes(
    b: Builder, op: Op, wanted: Sequence[bool], needed: Sequence[bool]
) -> tuple[Sequence[Value], _Masked]:
    """As a `while` that runs as long as one lane does. Lanes that have ended keep their values."""
    consts = op.attrs["consts"]
    test, body = op.regions
    shape = op.operands[0].shape
    mask = b.inline(lift(test, shape), op.operands)[0]
    any_left, step = Graph("any_left"), Graph(body.name)
    for graph in (any_left, step):
        for v in [*op.operands[:consts], mask, *op.operands[consts:]]:
            graph.add_param(v.type, v.name)
    axes = tuple(range(len(shape)))
    any_left.outputs = [Builder(any_left, op.loc).op("any", any_left.params[consts], axes=axes)]
    inner = Builder(step, op.loc)
    fixed, running, carry = step.params[:consts], step.params[consts], step.params[consts + 1 :]
    after = inner.inline(lift(body, shape), [*fixed, *carry])
    carry = [inner.op("select", running, x, y) for x, y in zip(after, carry, strict=True)]
    (goes_on,) = inner.inline(lift(test, shape), [*fixed, *carry])
    step.outputs = [inner.op("bitwise_and", running, goes_on), *carry]

    operands = [*op.operands[:consts], mask, *op.operands[consts:]]
    loop = b.make(OPS["while"], operands, dict(op.attrs), [any_left, step])
    where = [*wanted[:consts], False, *wanted[consts:]]
    rule: Any = loop.definition.forward
    results, stored = rule(b, loop, where, [False, *needed])
    return results[1:], _Masked(loop, stored)


def _vjp_lanes(
    b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Sequence[bool], saved: _Masked
) -> list[Value | None]:
    consts = op.attrs["consts"]
    where = [*wanted[:consts], False, *wanted[consts:]]
    rule: Any = saved.loop.definition.vjp
    grads = rule(b, saved.loop, [None, *cotangents], where, saved.residuals)
    return [*grads[:consts], *grads[consts + 1 :]]


def lift(graph: Graph, shape: tuple[int, ...]) -> Graph:
    """A scalar graph of elementwise ops as a graph over arrays of `shape`."""
    new = Graph(graph.name)
    b = Builder(new)
    env: dict[Value, Value] = {
        v: new.add_param(v.tensor.with_shape(shape), v.name) for v in graph.params
    }
    for op in graph.ops:
        b.copy(op, env)
        if op.name == "constant":
            env[op.result] = b.broadcast_to(env[op.result], shape)
    new.outputs = [env[v] for v in graph.outputs]
    return new


register(
    OpDef(
        "lanes_while",
        "structured",
        infer_lanes,
        _lanes,
        jvp_loop,
        _vjp_lanes,
        _forward_lanes,
        pointwise=True,
        total=False,
        batch=batch_lanes_while,
        attrs=("consts", "checkpoint"),
        regions=2,
        doc="a loop that each element runs for itself",
        extra={
            "examples": tuple(
                Example(
                    (Arg(shape), Arg(shape, "i64", 5), Arg(shape)),
                    {"consts": 1, "checkpoint": "all"},
                    "iufc",
                    lambda dtype: countdown(TensorType((), dtype)),
                )
                for shape in ((2, 3), (), (0,))
            )
        },
    )
)
