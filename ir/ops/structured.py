"""Structured control flow: ops whose meaning lies in region graphs.

Regions capture nothing; all that they read comes in as operands.

    cond(index, *operands; regions = branches)   the branch with that number, clamped into range
    while(*operands; consts; regions = (cond, body))
        the first `consts` operands stay, the rest is carried: while cond(consts, carry):
        carry = body(consts, carry). Both regions take (consts..., carry...). `checkpoint` says
        what reverse mode keeps: "all", "sqrt", or a number of slots (see `loops_checkpoint`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autodiff import is_differentiable, jvp_graph, vjp_graph
from ..build import Builder
from ..graph import Graph, Op, Value
from ..interpreter import evaluate
from ..opdef import GraphError, OpDef, register
from ..types import TensorType, Type, is_linear
from .composed import instantiated
from .families import check_dtype


def listed(types: Sequence[Type]) -> str:
    return "(" + ", ".join(map(str, types)) + ")"


def check_params(region: Graph, types: Sequence[Type], what: str) -> None:
    if region.input_types != list(types):
        raise GraphError(f"{what} takes {listed(region.input_types)} but is given {listed(types)}")


# cond


def _infer_cond(index: TensorType, *types: Type, regions: tuple[Graph, ...]) -> tuple[Type, ...]:
    check_dtype(index, "i32", "the index")
    if index.shape != ():
        raise GraphError(f"the index has type {index}; it must be 0-d")
    if not regions:
        raise GraphError("needs at least one branch")
    wanted = regions[0].output_types
    for k, region in enumerate(regions):
        check_params(region, types, f"branch {k}")
        if region.output_types != wanted:
            raise GraphError(
                f"branch {k} gives {listed(region.output_types)}, branch 0 {listed(wanted)}"
            )
    return tuple(wanted)


def _cond(index: Any, *arrays: Any, regions: tuple[Graph, ...]) -> tuple[Any, ...]:
    return tuple(evaluate(regions[min(max(int(index), 0), len(regions) - 1)], arrays))


def _float_params(op: Op, wanted: Sequence[bool]) -> list[int]:
    """Which parameters of the branches to differentiate; operand 0 of `op` is the index."""
    return [i for i, v in enumerate(op.operands[1:]) if wanted[i + 1] and is_differentiable(v.type)]


def _jvp_cond(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    wrt = _float_params(op, [t is not None for t in tangents])
    branches = [jvp_graph(region, wrt) for region in op.regions]
    count = len(op.results)
    for branch in branches:
        del branch.outputs[:count]  # the branch's own results are known already
    given = [t for t in (tangents[i + 1] for i in wrt) if t is not None]
    out = list(b.append(op.definition, [*op.operands, *given], {}, branches).results)
    return [out.pop(0) if is_differentiable(v.type) else None for v in op.results]


def _vjp_cond(
    b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Sequence[bool]
) -> list[Value | None]:
    """Each branch's forward part is computed again inside its backward branch."""
    wrt = _float_params(op, wanted)
    branches = [vjp_graph(region, wrt) for region in op.regions]
    count = len(op.results)
    for branch in branches:
        del branch.outputs[:count]
    floats = [
        (ct, v) for ct, v in zip(cotangents, op.results, strict=True) if is_differentiable(v.type)
    ]
    cts = instantiated(b, [ct for ct, _ in floats], [v for _, v in floats])
    new = b.append(op.definition, [*op.operands, *cts], {}, branches)
    grads: list[Value | None] = [None] * len(op.operands)
    for i, grad in zip(wrt, new.results, strict=True):
        grads[i + 1] = grad
    return grads


register(
    OpDef(
        "cond",
        "structured",
        _infer_cond,
        _cond,
        _jvp_cond,
        _vjp_cond,
        regions=-1,
        doc="one of several branches, chosen at run time",
        extra={"examples": ()},
    )
)

# while


def check_checkpoint(checkpoint: str | int) -> None:
    slots = isinstance(checkpoint, int) and not isinstance(checkpoint, bool) and checkpoint > 0
    if not slots and checkpoint not in ("all", "sqrt"):
        raise GraphError(f'checkpoint={checkpoint!r} is not "all", "sqrt" or a number of slots')


def _infer_while(
    *types: Type, consts: int, checkpoint: str | int = "all", regions: tuple[Graph, ...]
) -> tuple[Type, ...]:
    if len(regions) != 2:
        raise GraphError(f"needs two regions, cond and body, got {len(regions)}")
    if not 0 <= consts <= len(types):
        raise GraphError(f"consts={consts} with {len(types)} operands")
    if any(is_linear(t) for t in types[:consts]):
        raise GraphError(f"a token or a tape cannot be a loop invariant, in {listed(types)}")
    check_checkpoint(checkpoint)
    test, body = regions
    check_params(test, types, "cond")
    check_params(body, types, "body")
    if [str(t) for t in test.output_types] != ["bool[]"]:
        raise GraphError(f"cond gives {listed(test.output_types)}, it must give (bool[])")
    carry = types[consts:]
    if tuple(body.output_types) != carry:
        raise GraphError(f"body gives {listed(body.output_types)} for the carry {listed(carry)}")
    return carry


def _while(
    *arrays: Any, consts: int, checkpoint: str | int = "all", regions: tuple[Graph, ...]
) -> tuple[Any, ...]:
    test, body = regions
    fixed, carry = arrays[:consts], list(arrays[consts:])
    while evaluate(test, [*fixed, *carry])[0]:
        carry = evaluate(body, [*fixed, *carry])
    return tuple(carry)


def _jvp_while(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    """The same loop over the carry and the tangents of its floats, side by side."""
    consts = op.attrs["consts"]
    test, body = op.regions
    fixed = [i for i in range(consts) if tangents[i] is not None]
    moving = [i for i in range(consts, len(op.operands)) if is_differentiable(op.operands[i].type)]
    push = jvp_graph(body, fixed + moving)  # consts, carry, d_fixed, d_moving -> carry', d_moving'
    count = len(body.params)

    # The new loop's parameters: consts, d_fixed, then carry, d_moving.
    def params(graph: Graph) -> list[Value]:
        primal = [graph.add_param(v.type, v.name) for v in body.params[:consts]]
        d_fixed = [graph.add_param(push.params[count + k].type) for k in range(len(fixed))]
        primal += [graph.add_param(v.type, v.name) for v in body.params[consts:]]
        d_moving = [graph.add_param(body.params[i].type) for i in moving]
        return primal + d_fixed + d_moving

    new_test, new_body = Graph(test.name), Graph(push.name)
    new_test.outputs = Builder(new_test, op.loc).inline(test, params(new_test)[:count])
    new_body.outputs = Builder(new_body, op.loc).inline(push, params(new_body))

    given = instantiated(b, [tangents[i] for i in moving], [op.operands[i] for i in moving])
    operands = [
        *op.operands[:consts],
        *(t for t in (tangents[i] for i in fixed) if t is not None),
        *op.operands[consts:],
        *given,
    ]
    loop = b.append(op.definition, operands, {"consts": consts + len(fixed)}, [new_test, new_body])
    out = list(loop.results[len(op.results) :])
    return [out.pop(0) if is_differentiable(v.type) else None for v in op.results]


register(
    OpDef(
        "while",
        "structured",
        _infer_while,
        _while,
        _jvp_while,
        attrs=("consts", "checkpoint"),
        regions=2,
        doc="a loop with a trip count known only at run time",
        extra={"examples": ()},
    )
)
