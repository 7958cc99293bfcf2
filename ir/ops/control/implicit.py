"""Values that solve an equation, with the derivative of the implicit function theorem.

    implicit(*inputs, *x; inputs; regions = (fun, solve, transposed))

Gives `x`, which other ops computed such that `fun(inputs..., x...)` is 0, and cuts it off from these ops
for differentiation. `solve` takes (inputs..., x..., b...) and gives v with J v = b, where J is the
derivative of `fun` by x; `transposed` gives w with J^T w = b.

The tangent of x solves J v + (the derivative of fun by the inputs) = 0 and the cotangent of what J is
applied to solves J^T w = (the cotangent of x): again values that solve an equation. So there are
derivatives of any order, both ways, and none of how anything was solved.

`passes.inline_calls` dissolves the op before code is generated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...autodiff.transform import is_differentiable, jvp_graph, vjp_graph
from ...batching.transform import BatchBuilder, Batched, Marks, batch_region, regions_need_mask
from ...build import Builder
from ...graph import Graph, Op, Value
from ...opdef import GraphError, OpDef, register
from ...types import TensorType, Type
from ..composed import instantiated
from .structured import check_params, listed, region

Apply = Callable[[Builder, Sequence[Value]], Sequence[Value]]


def _infer(*types: Type, inputs: int, name: str, regions: tuple[Graph, ...]) -> tuple[Type, ...]:
    solution = types[inputs:]
    if len(regions) != 3 or not 0 <= inputs < len(types):
        raise GraphError(f"takes inputs={inputs} and three regions, got {len(regions)} regions")
    if not all(isinstance(t, TensorType) and is_differentiable(t) for t in solution):
        raise GraphError(f"solves for floats, not {listed(solution)}")
    fun, *solvers = regions
    check_params(fun, types, "fun")
    for solver in solvers:
        check_params(solver, [*types, *solution], "a solver")
    for graph in regions:
        if list(graph.output_types) != list(solution):
            raise GraphError(f"gives {listed(graph.output_types)}, not {listed(solution)}")
    return tuple(solution)


def _parts(op: Op) -> tuple[list[Value], list[Value]]:
    """The inputs, and the solution as it is to be read in derivatives."""
    return list(op.operands[: op.attrs["inputs"]]), list(op.results)


def _solved(
    b: Builder, op: Op, rhs: Sequence[Value], apply: Apply, solve: Graph, transposed: Graph
) -> list[Value]:
    """The solution of the linear system `apply(..., v) = rhs`, which knows that it is one.

    `apply`, `solve` and `transposed` take the inputs and the solution of `op` before their own.
    """
    inputs, x = _parts(op)
    known, n = [*inputs, *x], len(x)
    types = [v.type for v in (*known, *rhs, *x)]

    def residual(b: Builder, *params: Value) -> list[Value]:
        left = apply(b, [*params[: len(known)], *params[-n:]])
        right = params[len(known) : len(known) + n]
        return [b.op("sub", lhs, r) for lhs, r in zip(left, right, strict=True)]

    def through(solver: Graph) -> Graph:
        return region(
            solver.name,
            [*types, *types[-n:]],
            lambda b, *params: b.inline(solver, [*params[: len(known)], *params[-n:]]),
        )

    found = b.inline(solve, [*known, *rhs])
    regions = [region("linear", types, residual), through(solve), through(transposed)]
    attrs = {"inputs": len(known) + n, "name": op.attrs["name"]}
    return list(b.append(op.definition, [*known, *rhs, *found], attrs, regions).results)


def _jvp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    fun, solve, transposed = op.regions
    inputs, x = _parts(op)
    varying = [i for i, t in enumerate(tangents[: len(inputs)]) if t is not None]
    if not varying:
        return [None] * len(x)
    along = [t for i in varying if (t := tangents[i]) is not None]
    pushed = b.inline(jvp_graph(fun, varying), [*inputs, *x, *along])[len(x) :]
    rhs = [b.op("neg", r) for r in pushed]
    by_x = jvp_graph(fun, range(len(inputs), len(fun.params)))
    return list(_solved(b, op, rhs, lambda b, p: b.inline(by_x, p)[len(x) :], solve, transposed))


def _vjp(
    b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Sequence[bool]
) -> list[Value | None]:
    fun, solve, transposed = op.regions
    inputs, x = _parts(op)
    asked = [i for i, want in enumerate(wanted[: len(inputs)]) if want]
    grads: list[Value | None] = [None] * len(op.operands)
    if not asked:
        return grads
    seeds = instantiated(b, cotangents, x)
    by_x = vjp_graph(fun, range(len(inputs), len(fun.params)))
    found = _solved(b, op, seeds, lambda b, p: b.inline(by_x, p)[len(x) :], transposed, solve)
    pulled = b.inline(vjp_graph(fun, asked), [*inputs, *x, *(b.op("neg", w) for w in found)])
    for i, grad in zip(asked, pulled[len(x) :], strict=True):
        grads[i] = grad
    return grads


def _batch(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """Everything gets the leading dimension. A mask is one more input."""
    mask = [b.active] if b.active is not None and regions_need_mask(op) else []
    regions = []
    for graph in op.regions:
        new, flags = batch_region(graph, [True] * len(graph.params), b.size, masked=bool(mask))
        new.outputs = BatchBuilder(new, b.size).spread_all(new.outputs, flags)
        regions.append(new)
    attrs = {**op.attrs, "inputs": op.attrs["inputs"] + len(mask)}
    new_op = b.append(op.definition, [*mask, *b.spread_all(operands, batched)], attrs, regions)
    return new_op.results, [True] * len(new_op.results)


IMPLICIT = register(
    OpDef(
        "implicit",
        "structured",
        _infer,
        lambda *arrays, regions, inputs, name: arrays[inputs:],
        _jvp,
        _vjp,
        batch=_batch,
        attrs=("inputs", "name"),
        regions=3,
        doc="values that solve an equation, with the derivative of the implicit function theorem",
    )
)
