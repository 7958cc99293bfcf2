"""`while`: a loop with a trip count known only at run time.

    while(*operands; consts, checkpoint; regions = (cond, body))
        the first `consts` operands stay, the rest is carried: while cond(consts, carry):
        carry = body(consts, carry). Both regions take (consts..., carry...).

In reverse mode the forward loop counts its iterations, and the backward loop makes as many.
`independent`: see `scan`; only of loops that count up to a number.
`checkpoint` says what is kept for it: with "all" (here), a record per iteration on a tape, of what
the backward part of the body needs; "sqrt" and a number of slots are in `loops_checkpoint`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...autodiff.transform import is_differentiable, jvp_graph
from ...batching.structured import batch_while
from ...build import Builder
from ...graph import Graph, Op, Value
from ...interpreter import runner
from ...opdef import GraphError, OpDef, register
from ...types import I64, TAPE, TensorType, Type, is_linear
from ..composed import instantiated
from ..families import Arg, Example
from . import loops_checkpoint
from .loops import counters, invariant_carries, varied_carries
from .loops_backward import Plan, Residuals, make_plan, run_loop, unwind
from .structured import check_checkpoint, check_params, listed, region


def _infer_while(
    *types: Type,
    consts: int,
    checkpoint: str | int = "all",
    independent: bool = False,
    regions: tuple[Graph, ...],
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
    *arrays: Any,
    consts: int,
    checkpoint: str | int = "all",
    independent: bool = False,
    regions: tuple[Graph, ...],
) -> tuple[Any, ...]:
    test, body = regions
    fixed, carry = arrays[:consts], list(arrays[consts:])
    holds, step = runner(test), runner(body)
    while holds([*fixed, *carry])[0]:
        carry = step([*fixed, *carry])
    return tuple(carry)


# Forward mode: the same loop over the carry and the tangents of what varies in it.


def jvp_loop(
    b: Builder, op: Op, tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], list[Value | None]]:
    """One loop that carries the tangents beside the values."""
    consts = op.attrs["consts"]
    test, body = op.regions
    carries = len(op.results)
    varied = varied_carries(body, consts, carries, [t is not None for t in tangents])
    fixed = [i for i in range(consts) if tangents[i] is not None]
    moving = [i for i in range(carries) if varied[i]]
    push = jvp_graph(body, fixed + [consts + i for i in moving])
    floats = [i for i, v in enumerate(body.outputs) if is_differentiable(v.type)]
    tangent_of = dict(zip(floats, push.outputs[carries:], strict=True))
    push.outputs[carries:] = [tangent_of[i] for i in moving]

    # The new loop's parameters: consts, d_fixed, then carry, d_moving.
    def reordered(graph: Graph) -> list[Value]:
        own = [graph.add_param(v.type, v.name) for v in body.params[:consts]]
        d_fixed = [graph.add_param(body.params[i].type) for i in fixed]
        own += [graph.add_param(v.type, v.name) for v in body.params[consts:]]
        return own + d_fixed + [graph.add_param(body.params[consts + i].type) for i in moving]

    new_test, new_body = Graph(test.name), Graph(push.name)
    new_test.outputs = Builder(new_test, op.loc).inline(
        test, reordered(new_test)[: consts + carries]
    )
    new_body.outputs = Builder(new_body, op.loc).inline(push, reordered(new_body))
    start = [consts + i for i in moving]
    operands = [
        *op.operands[:consts],
        *(t for t in (tangents[i] for i in fixed) if t is not None),
        *op.operands[consts:],
        *instantiated(b, [tangents[i] for i in start], [op.operands[i] for i in start]),
    ]
    attrs = {**op.attrs, "consts": consts + len(fixed)}
    loop = b.append(op.definition, operands, attrs, [new_test, new_body])
    out = iter(loop.results[carries:])
    return loop.results[:carries], [next(out) if v else None for v in varied]


# Reverse mode.


def _forward_while(
    b: Builder,
    op: Op,
    wanted: Sequence[bool],
    needed: Sequence[bool],
    undo: Mapping[int, int] | None = None,
) -> tuple[Sequence[Value], Residuals]:
    """The loop with a tape. It undoes what it needs: `undo` asks for nothing else."""
    checkpoint = op.attrs.get("checkpoint", "all")
    plan = make_plan(op, wanted, needed, counting=checkpoint == "all")
    if checkpoint != "all" and plan.parts.saved and can_replay(op):
        return loops_checkpoint.forward(b, op, plan, checkpoint)
    test, body = op.regions
    count = len(op.results)
    counter = _unit_counter(op) if checkpoint == "all" else None
    if counter is not None and not plan.has_tape:
        loop = b.append(op.definition, op.operands, op.attrs, op.regions)
        return loop.results, _residuals(b, op, plan, loop.results, counter, None)

    def goes_on(inner: Builder, fixed: list[Value], state: list[Value]) -> Value:
        return inner.inline(test, [*fixed, *state[:count]])[0]

    def iteration(inner: Builder, fixed: list[Value], state: list[Value]) -> list[Value]:
        done, tape = state[count : count + len(start)], state[count + len(start) :]
        shared = tape if plan.parts.shares_tape else []
        out = inner.inline(plan.parts.forward, [*fixed, *state[:count], *shared])
        if shared:
            tape = [out.pop()]
        done = [inner.op("add", n, inner.const(1, I64)) for n in done]
        return [*out[:count], *done, *(inner.op("tape_push", t, *out[count:]) for t in tape)]

    tape = [b.op("tape_new")] if plan.has_tape else []
    start = [b.const(0, I64)] if counter is None else []
    consts = op.attrs["consts"]
    state = [*op.operands[consts:], *start, *tape]
    results = run_loop(b, op.operands[:consts], state, goes_on, iteration, body.name)
    memory = results[-1] if tape else None
    return results[:count], _residuals(b, op, plan, results, counter, memory)


def _unit_counter(op: Op) -> tuple[int, int] | None:
    """A carry that moves by one in each iteration, and its step: it tells how many there were."""
    steps = counters(op.regions[1], op.attrs["consts"], len(op.results))
    return next(((i, step) for i, step in steps.items() if abs(step) == 1), None)


def _residuals(
    b: Builder,
    op: Op,
    plan: Plan,
    results: Sequence[Value],
    counter: tuple[int, int] | None,
    memory: Value | None,
) -> Residuals:
    """What the forward loop leaves; without a counter of its own, a carry behind the others counts."""
    ends = [_end(b, op, i, step, results[i]) for i, step in plan.counting.items()]
    left = [results[i] for i in plan.undone]
    if counter is None:
        return Residuals(plan, results[len(op.results)], memory, ends, left)
    i, step = counter
    span = [_end(b, op, i, step, results[i]), op.operands[op.attrs["consts"] + i]]
    count = b.op("sub", *(span if step > 0 else span[::-1]))
    return Residuals(plan, count, memory, ends, left)


def _end(b: Builder, op: Op, carry: int, step: int, result: Value) -> Value:
    """What a carry that counts is after the loop: by the loop's test, where that says it.

    So the backward loop's counters are made of the loop's operands, as the loop's own are, and
    nothing is kept for them.
    """
    consts = op.attrs["consts"]
    test, body = op.regions
    (flag,) = test.outputs
    way = _WAYS.get((flag.op.name, step)) if flag.op is not None else None
    if flag.op is None or way is None:
        return result
    here, limit = flag.op.operands
    still = [
        *range(consts),
        *(consts + i for i in invariant_carries(body, consts, len(op.results))),
    ]
    at = test.params.index(limit) if limit.op is None else -1
    if here is not test.params[consts + carry] or at not in still:
        return result
    return b.op(way, op.operands[consts + carry], op.operands[at])


# While the counter is below (above) a limit, and moves there by one: at which of the two it ends.
_WAYS = {("lt", 1): "maximum", ("gt", -1): "minimum"}


def can_replay(op: Op) -> bool:
    """Whether parts can be run again from a copy of the carry: no effects but checks, and no tapes."""
    inner = (inner for region in op.regions for inner in region.walk())
    effects = any(i.definition.effect and i.name != "assert" for i in inner)
    return not effects and all(v.type != TAPE for v in op.operands)


def _vjp_while(
    b: Builder,
    op: Op,
    cotangents: Sequence[Value | None],
    wanted: Sequence[bool],
    stored: Residuals,
    after: Mapping[int, Value] | None = None,
) -> list[Value | None]:
    consts = op.attrs["consts"]
    active = stored.plan.flow
    inits = [op.operands[consts + i] for i in active.carries]
    cts = instantiated(b, [cotangents[i] for i in active.carries], inits)
    sums = [b.zeros(op.operands[i].type) for i in active.consts]
    before: list[Value] = []
    if stored.memory is None or isinstance(stored.memory, Value):
        plan = stored.plan
        free = [op.operands[i] for i in plan.free]
        left = [(after or {}).get(i, v) for i, v in zip(plan.undone, stored.left, strict=True)]
        cts, sums, before = unwind(
            b, plan, free, stored.count, stored.memory, cts, sums, stored.ends, left
        )
    else:
        cts, sums = loops_checkpoint.backward(b, op, stored, cts, sums)
    grads: list[Value | None] = [None] * len(op.operands)
    for i, total in zip(active.consts, sums, strict=True):
        grads[i] = total
    for i, ct in zip(active.carries, cts, strict=True):
        grads[consts + i] = ct
    return [*grads, *before]


def countdown(type: TensorType) -> tuple[Graph, Graph]:
    """while n > 0: n, x = n - 1, x * factor"""
    types = [type, TensorType((), I64), type]
    return (
        region("test", types, lambda b, factor, n, x: [b.gt(n, b.const(0, I64))]),
        region(
            "body", types, lambda b, factor, n, x: [b.sub(n, b.const(1, I64)), b.mul(x, factor)]
        ),
    )


register(
    OpDef(
        "while",
        "structured",
        _infer_while,
        _while,
        jvp_loop,
        _vjp_while,
        _forward_while,
        total=False,
        batch=batch_while,
        attrs=("consts", "checkpoint", "independent"),
        regions=2,
        doc="a loop with a trip count known only at run time",
        extra={
            "examples": tuple(
                Example(
                    (Arg((2,)), Arg((), "i64", 4), Arg((2,))),
                    {"consts": 1, "checkpoint": checkpoint, "independent": False},
                    "iufc",
                    lambda dtype: countdown(TensorType((2,), dtype)),
                )
                for checkpoint in ("all", "sqrt", 2)
            )
        },
    )
)
