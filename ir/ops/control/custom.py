"""Ops that say how a part of a program is differentiated. None of them computes anything of its own.

    custom_vjp(*inputs, *outputs, *closed, *rest; regions = (backward,))
    custom_jvp(*inputs, *outputs, *closed, *rest; regions = (forward,))

Both give `outputs`, which other ops computed from `inputs`, and cut them off from these ops for
differentiation: the region takes the place of their derivatives. `backward` takes (rest..., one
cotangent per float output...) and gives one cotangent per float input; `forward` takes (rest...,
inputs..., results..., one tangent per float input...) and gives one tangent per float output, linear in
the tangents: it is handed the results of the op itself, which then need not be computed again, or kept
twice. `closed` are the floats that the computation reads beside its inputs: nobody
knows a derivative with respect to them.

    remat(*operands; policy; regions = (body,))     the body, computed again in the backward pass
    checkpoint_name(x; label)                       x, by a name that policies know
    materialize(x)                                  x, in memory before anything reads it
    optimization_barrier(*values)                   the values; no pass looks from one side to the other

`passes.inline_calls` dissolves all but the barrier before code is generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autodiff.remat import Policy, recompute
from ...autodiff.transform import is_differentiable, jvp_graph, vjp_graph
from ...batching.transform import (
    BatchBuilder,
    Batched,
    Marks,
    batch_elementwise,
    batch_region,
    regions_need_mask,
)
from ...build import Builder
from ...cost import Cost
from ...graph import Graph, Op, Value
from ...interpreter import evaluate
from ...opdef import DerivativeError, GraphError, OpDef, register
from ...types import TensorType, Type
from ..composed import instantiated
from ..families import examples, linear
from .structured import check_params, listed

# custom_vjp and custom_jvp


def _differentiable(types: Sequence[Type]) -> list[Type]:
    return [t for t in types if is_differentiable(t)]


def _infer_custom_vjp(
    *types: Type, inputs: int, outputs: int, closed: int, name: str, regions: tuple[Graph, ...]
) -> tuple[Type, ...]:
    primals, results, rest = _parts(types, inputs, outputs, closed, regions)
    (backward,) = regions
    check_params(backward, [*rest, *_differentiable(results)], "backward")
    wanted = _differentiable(primals)
    if backward.output_types != wanted:
        raise GraphError(f"backward gives {listed(backward.output_types)}, not {listed(wanted)}")
    return tuple(results)


def _infer_custom_jvp(
    *types: Type, inputs: int, outputs: int, closed: int, name: str, regions: tuple[Graph, ...]
) -> tuple[Type, ...]:
    primals, results, rest = _parts(types, inputs, outputs, closed, regions)
    (forward,) = regions
    check_params(forward, [*rest, *primals, *results, *_differentiable(primals)], "forward")
    wanted = _differentiable(results)
    if forward.output_types != wanted:
        raise GraphError(f"forward gives {listed(forward.output_types)}, not {listed(wanted)}")
    return tuple(results)


def _parts(
    types: Sequence[Type], inputs: int, outputs: int, closed: int, regions: Sequence[Graph]
) -> tuple[Sequence[Type], Sequence[Type], Sequence[Type]]:
    """The types of the inputs, of the outputs, and of what the region takes beside."""
    if len(regions) != 1:
        raise GraphError(f"needs one region, the rule, got {len(regions)}")
    if min(inputs, outputs, closed) < 0 or inputs + outputs + closed > len(types):
        raise GraphError(f"inputs={inputs}, outputs={outputs}, closed={closed}: {listed(types)}")
    if not all(isinstance(t, TensorType) for t in types):
        raise GraphError(f"takes tensors only, not {listed(types)}")
    start = inputs + outputs
    return types[:inputs], types[inputs:start], types[start + closed :]


def _outputs(*arrays: Any, inputs: int, outputs: int, **_: Any) -> tuple[Any, ...]:
    return arrays[inputs : inputs + outputs]


def _refuse_closed(op: Op, concerned: Sequence[bool]) -> None:
    start = op.attrs["inputs"] + op.attrs["outputs"]
    if any(concerned[start : start + op.attrs["closed"]]):
        raise DerivativeError(
            f"the derivative with respect to a value that {op.attrs['name']} closes over is asked "
            f"for, and its rule ({op.name}) speaks of its arguments alone; make the value an "
            "argument"
        )


def _jvp_custom_vjp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    raise DerivativeError(
        f"{op.attrs['name']} has a rule for reverse mode alone (jt.custom_vjp), and forward mode "
        "(jt.jvp, jt.jacfwd, jt.linearize) needs another; jt.custom_jvp serves both"
    )


def _vjp_custom_vjp(
    b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Sequence[bool]
) -> list[Value | None]:
    _refuse_closed(op, wanted)
    inputs, start = op.attrs["inputs"], op.attrs["inputs"] + op.attrs["outputs"]
    floats = [i for i, v in enumerate(op.results) if is_differentiable(v.type)]
    seeds = instantiated(b, [cotangents[i] for i in floats], [op.results[i] for i in floats])
    gradients = iter(b.inline(op.regions[0], [*op.operands[start + op.attrs["closed"] :], *seeds]))
    grads: list[Value | None] = [None] * len(op.operands)
    for i in range(inputs):
        if is_differentiable(op.operands[i].type):
            grads[i] = next(gradients)
    return grads


def _jvp_custom_jvp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    """The rule; its derivative along the tangents there are, which is the same, as it is linear in
    them: so the inputs that do not vary give no 0 * inf."""
    _refuse_closed(op, [t is not None for t in tangents])
    (forward,) = op.regions
    inputs, start = op.attrs["inputs"], op.attrs["inputs"] + op.attrs["outputs"]
    floats = [i for i in range(inputs) if is_differentiable(op.operands[i].type)]
    arguments = [*op.operands[start + op.attrs["closed"] :], *op.operands[:inputs], *op.results]
    varying = [k for k, i in enumerate(floats) if tangents[i] is not None]
    rule = None if len(varying) == len(floats) else _along(forward, len(arguments), varying)
    if rule is None:
        seeds = instantiated(b, [tangents[i] for i in floats], [op.operands[i] for i in floats])
        tangents_out = iter(b.inline(forward, [*arguments, *seeds]))
    else:
        zeros = [b.zeros(op.operands[i].type) for i in floats]
        along = [t for t in (tangents[floats[k]] for k in varying) if t is not None]
        out = b.inline(rule, [*arguments, *zeros, *along])
        tangents_out = iter(out[len(forward.outputs) :])
    return [next(tangents_out) if is_differentiable(v.type) else None for v in op.results]


def _along(forward: Graph, first: int, varying: Sequence[int]) -> Graph | None:
    """`forward`'s derivative by those of its tangents, which start at parameter `first`, if any."""
    try:
        return jvp_graph(forward, [first + k for k in varying])
    except DerivativeError:
        return None


def _vjp_custom_jvp(
    b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Sequence[bool]
) -> list[Value | None]:
    """The transpose of the rule, which is linear in the tangents, so that any will do."""
    _refuse_closed(op, wanted)
    (forward,) = op.regions
    inputs, start = op.attrs["inputs"], op.attrs["inputs"] + op.attrs["outputs"]
    floats = [i for i in range(inputs) if is_differentiable(op.operands[i].type)]
    seeds = [cotangents[i] for i, v in enumerate(op.results) if is_differentiable(v.type)]
    asked = [k for k, i in enumerate(floats) if wanted[i]]
    flowing = [i for i, ct in enumerate(seeds) if ct is not None]
    first = len(forward.params) - len(floats)
    transposed = vjp_graph(forward, [first + k for k in asked], flowing)
    out = b.inline(
        transposed,
        [
            *op.operands[start + op.attrs["closed"] :],
            *op.operands[:inputs],
            *op.results,
            *(b.zeros(op.operands[i].type) for i in floats),
            *(ct for ct in seeds if ct is not None),
        ],
    )
    grads: list[Value | None] = [None] * len(op.operands)
    for k, grad in zip(asked, out[len(forward.outputs) :], strict=True):
        grads[floats[k]] = grad
    return grads


def _batch_custom(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """Everything gets the leading dimension, and so does all that the rule takes and gives.

    A rule that needs the mask closes over it: it is the first value that the rule takes beside.
    """
    (region,) = op.regions
    mask = [b.active] if b.active is not None and regions_need_mask(op) else []
    rule, flags = batch_region(region, [True] * len(region.params), b.size, masked=bool(mask))
    rule.outputs = BatchBuilder(rule, b.size).spread_all(rule.outputs, flags)
    spread = b.spread_all(operands, batched)
    rest = op.attrs["inputs"] + op.attrs["outputs"] + op.attrs["closed"]
    spread[rest:rest] = mask
    new = b.append(op.definition, spread, op.attrs, [rule])
    return new.results, [True] * len(new.results)


def _custom(name: str, infer: Any, jvp: Any, vjp: Any, doc: str) -> OpDef:
    return register(
        OpDef(
            name,
            "structured",
            infer,
            lambda *arrays, regions, **attrs: _outputs(*arrays, **attrs),
            jvp,
            vjp,
            batch=_batch_custom,
            attrs=("inputs", "outputs", "closed", "name"),
            regions=1,
            doc=doc,
        )
    )


CUSTOM_VJP = _custom(
    "custom_vjp",
    _infer_custom_vjp,
    _jvp_custom_vjp,
    _vjp_custom_vjp,
    "values with a backward rule of the user's own",
)
CUSTOM_JVP = _custom(
    "custom_jvp",
    _infer_custom_jvp,
    _jvp_custom_jvp,
    _vjp_custom_jvp,
    "values with a tangent rule of the user's own",
)

# optimization_barrier and checkpoint_name


def barrier(b: Builder, values: Sequence[Value]) -> list[Value]:
    """The values, behind one barrier. Tokens and tapes pass beside it."""
    tensors = [v for v in values if isinstance(v.type, TensorType)]
    if not tensors:
        return list(values)
    results = iter(b.append(BARRIER, tensors).results)
    return [next(results) if isinstance(v.type, TensorType) else v for v in values]


def _infer_barrier(*types: Type) -> tuple[Type, ...]:
    if not types or not all(isinstance(t, TensorType) for t in types):
        raise GraphError(f"takes one tensor or more, not {listed(types)}")
    return types


def _through_barrier(b: Builder, values: Sequence[Value | None]) -> list[Value | None]:
    results = iter(barrier(b, [v for v in values if v is not None]))
    return [None if v is None else next(results) for v in values]


def _batch_barrier(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    return b.append(op.definition, operands).results, batched


BARRIER = register(
    OpDef(
        "optimization_barrier",
        "opaque",
        _infer_barrier,
        lambda *arrays: arrays,
        lambda b, op, tangents: _through_barrier(b, tangents),
        lambda b, op, cotangents, wanted: _through_barrier(b, cotangents),
        cost=Cost.FREE,
        pointwise=True,
        batch=_batch_barrier,
        moves=True,
        doc="its operands, which no pass traces back any further",
        extra={"examples": examples((2, 3)) + examples((2,), (3,))},
    )
)

NAME = linear(
    "checkpoint_name",
    lambda x, *, label: x,
    lambda x, *, label: x,
    lambda b, op, ct, i: ct,
    cost=Cost.FREE,
    pointwise=True,
    batch=batch_elementwise,
    attrs=("label",),
    examples=examples((2, 3), label="x"),
    doc="x, by a name that the policies of checkpoint know",
)

MATERIALIZE = linear(
    "materialize",
    lambda x: x,
    lambda x: x,
    lambda b, op, ct, i: ct,
    cost=Cost.FREE,
    batch=batch_elementwise,
    examples=examples((2, 3)),
    doc="x, which is in memory as a whole before anything reads it",
)

# remat


def _infer_remat(*types: Type, policy: Policy, regions: tuple[Graph, ...]) -> tuple[Type, ...]:
    if len(regions) != 1:
        raise GraphError(f"needs one region, the body, got {len(regions)}")
    check_params(regions[0], types, "the body")
    return tuple(regions[0].output_types)


def _remat(*arrays: Any, policy: Policy, regions: tuple[Graph, ...]) -> tuple[Any, ...]:
    return tuple(evaluate(regions[0], arrays))


def _jvp_remat(
    b: Builder, op: Op, tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], list[Value | None]]:
    body = jvp_graph(op.regions[0], [i for i, t in enumerate(tangents) if t is not None])
    varying = [t for t in tangents if t is not None]
    new = b.append(op.definition, [*op.operands, *varying], op.attrs, [body]).results
    count = len(op.results)
    pushed = iter(new[count:])
    return new[:count], [next(pushed) if is_differentiable(v.type) else None for v in op.results]


def _forward_remat(
    b: Builder, op: Op, wanted: Sequence[bool], needed: Sequence[bool]
) -> tuple[Sequence[Value], Any]:
    wrt = [i for i, want in enumerate(wanted) if want]
    outputs = [i for i, need in enumerate(needed) if need]
    parts = recompute(op.regions[0], wrt, outputs, op.attrs["policy"])
    new = b.append(op.definition, op.operands, op.attrs, [parts.forward]).results
    count = len(op.results)
    return new[:count], (wrt, outputs, parts, new[count:])


def _vjp_remat(
    b: Builder,
    op: Op,
    cotangents: Sequence[Value | None],
    wanted: Sequence[bool],
    saved: tuple[Any, ...],
) -> list[Value | None]:
    """The body once more, behind a barrier that the cotangents pass, too: so it waits for them."""
    wrt, outputs, parts, stored = saved
    seeds = instantiated(b, [cotangents[i] for i in outputs], [op.results[i] for i in outputs])
    again = [op.operands[i] for i in parts.params]
    operands = barrier(b, [*again, *stored, *seeds])
    gradients = b.append(op.definition, operands, op.attrs, [parts.backward]).results
    grads: list[Value | None] = [None] * len(op.operands)
    for i, grad in zip(wrt, gradients, strict=True):
        grads[i] = grad
    return grads


def _batch_remat(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    mask = [b.active] if b.active is not None and regions_need_mask(op) else []
    body, flags = batch_region(op.regions[0], batched, b.size, masked=bool(mask))
    return b.append(op.definition, [*mask, *operands], op.attrs, [body]).results, flags


REMAT = register(
    OpDef(
        "remat",
        "structured",
        _infer_remat,
        _remat,
        _jvp_remat,
        _vjp_remat,
        _forward_remat,
        batch=_batch_remat,
        attrs=("policy",),
        regions=1,
        doc="a part of the program whose values are computed again in the backward pass, not kept",
    )
)
