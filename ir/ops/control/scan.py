"""`scan`: a loop with a known trip count, over the slices of arrays.

    scan(*operands; consts, carries, length, reverse; regions = (body,))
        operands are consts..., initial carries..., xs... (whose leading dimension is `length`).
        The body takes (consts..., carries..., one slice of each x) and gives (carries..., ys...).
        Results are the last carries, and each y stacked along a new leading dimension.

With `reverse` it walks from the last index to the first; a y lands at the index of its x's. A
length of 0 gives the initial carries and empty ys. Tokens and tapes may be carries.

`independent`, if it is there, is the user's word that iterations may be made in any order, and at the
same time: what they carry are arrays of which each writes its own elements, and sums and the like.

In reverse mode the forward scan also stacks what the backward part of the body needs and cannot
compute again from consts, slices of xs and ys (see `residuals`); the backward scan walks the other
way, and adds up the cotangents of consts in carries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...autodiff.cotangents import accumulated
from ...autodiff.residuals import Split
from ...autodiff.shared_tapes import with_shared_tape
from ...autodiff.transform import is_differentiable, jvp_graph
from ...batching.structured import batch_scan
from ...build import Builder
from ...graph import Graph, Op, Value
from ...interpreter import runner
from ...opdef import GraphError, OpDef, register
from ...record import record
from ...types import I64, TAPE, TensorType, Type, is_linear
from ..composed import instantiated
from ..families import Arg, DType, Example
from .loops import Flow, counters, flow, invariant_carries, parted, tensors, varied_carries, wrapped
from .structured import check_params, listed, region


def infer_scan(
    *types: Type,
    consts: int,
    carries: int,
    length: int,
    reverse: bool,
    independent: bool = False,
    regions: tuple[Graph, ...],
) -> tuple[Type, ...]:
    """The types of the last carries and of the stacked results. GraphError as any type rule."""
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
    *arrays: Any,
    consts: int,
    carries: int,
    length: int,
    reverse: bool,
    independent: bool = False,
    regions: tuple[Graph, ...],
) -> tuple[Any, ...]:
    (body,) = regions
    fixed, carry = arrays[:consts], list(arrays[consts : consts + carries])
    xs = arrays[consts + carries :]
    ys = [np.empty((length, *v.shape), v.dtype) for v in body.outputs[carries:]]
    step = runner(body)
    for i in reversed(range(length)) if reverse else range(length):
        out = step([*fixed, *carry, *(x[i] for x in xs)])
        carry = out[:carries]
        for stack, y in zip(ys, out[carries:], strict=True):
            stack[i] = y
    return (*carry, *ys)


# Forward mode: the same scan with tangents beside what varies.


def _jvp_scan(
    b: Builder, op: Op, tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], list[Value | None]]:
    consts, carries = op.attrs["consts"], op.attrs["carries"]
    first_x = consts + carries
    (body,) = op.regions
    varied = varied_carries(body, consts, carries, [t is not None for t in tangents])
    fixed = [i for i in range(consts) if tangents[i] is not None]
    moving = [consts + i for i in range(carries) if varied[i]]
    slices = [i for i in range(first_x, len(op.operands)) if tangents[i] is not None]
    push = jvp_graph(body, fixed + moving + slices)
    floats = [i for i, v in enumerate(body.outputs) if is_differentiable(v.type)]
    tangent_of = dict(zip(floats, push.outputs[len(body.outputs) :], strict=True))

    new = Graph(push.name)
    env: dict[int, Value] = {}
    d_env: dict[int, Value] = {}
    for own, active in (
        (range(consts), fixed),
        (range(consts, first_x), moving),
        (range(first_x, len(body.params)), slices),
    ):
        env.update((i, new.add_param(body.params[i].type, body.params[i].name)) for i in own)
        d_env.update((i, new.add_param(body.params[i].type)) for i in active)
    inputs = [*(env[i] for i in range(len(body.params)))]
    inputs += [d_env[i] for i in fixed + moving + slices]
    stacked = [i for i in range(carries, len(body.outputs)) if varied[i]]
    own_out, zero = push.outputs[: len(body.outputs)], [i - consts for i in moving]
    push.outputs = [
        *own_out[:carries],
        *(tangent_of[i] for i in zero),
        *own_out[carries:],
        *(tangent_of[i] for i in stacked),
    ]
    new.outputs = Builder(new, op.loc).inline(push, inputs)

    start = instantiated(b, [tangents[i] for i in moving], [op.operands[i] for i in moving])
    operands = [
        *op.operands[:consts],
        *(t for t in tangents[:consts] if t is not None),
        *op.operands[consts:first_x],
        *start,
        *op.operands[first_x:],
        *(t for t in tangents[first_x:] if t is not None),
    ]
    attrs = {**op.attrs, "consts": consts + len(fixed), "carries": carries + len(moving)}
    out = list(b.append(op.definition, operands, attrs, [new]).results)
    n, m = carries + len(moving), len(body.outputs) - carries
    results = out[:carries] + out[n : n + m]
    rest = iter(out[carries:n] + out[n + m :])
    return results, [next(rest) if v else None for v in varied]


# Reverse mode.


@record
class _Residuals:
    """What the forward scan leaves behind: a stack for each saved tensor, a tape of saved tapes."""

    flow: Flow
    free: list[int]
    counting: dict[int, int]  # carries that count, and their steps
    undone: dict[int, int]  # carries whose updates are taken back, and the operands they start as
    parts: Split
    stacks: dict[Value, Value]  # by the saved value of the body
    tape: Value | None
    left: Sequence[Value]  # what the carries are that are taken back


def _forward_scan(
    b: Builder,
    op: Op,
    wanted: Sequence[bool],
    needed: Sequence[bool],
    undo: Mapping[int, int] | None = None,
) -> tuple[Sequence[Value], _Residuals]:
    """The scan with stacks. It undoes what it needs: `undo` asks for nothing else."""
    consts, carries = op.attrs["consts"], op.attrs["carries"]
    (body,) = op.regions
    active = flow(body, consts, carries, wanted, needed)
    still = [consts + i for i in invariant_carries(body, consts, carries)]
    free = [*range(consts), *tensors(body.params, still)]
    free += range(consts + carries, len(body.params))
    wrt = [
        *active.consts,
        *(consts + i for i in active.carries),
        *(consts + carries + i for i in active.xs),
    ]
    outputs = active.carries + [carries + i for i in active.ys]
    fixed = [i for i in free if i < consts + carries]
    counting = counters(body, consts, carries)
    known = [*free, *(consts + i for i in counting)]
    moving = {i: consts + i for i in range(carries) if consts + i not in known}
    parts, undone, joint = parted(body, wrt, outputs, known, fixed, moving)
    parts = with_shared_tape(parts)
    free = [i for i in free if i in parts.free]
    counting = {i: step for i, step in counting.items() if consts + i in parts.free}

    # The body that also gives what is saved: tensors are stacked unless they are ys already, and
    # tapes go on a tape, which is one more carry, as is one that loops inside share.
    tapes = [v for v in parts.saved if v.type == TAPE]
    ys = joint.outputs[carries : len(body.outputs)]
    fresh = [v for v in parts.saved if v.type != TAPE and v not in ys]
    new = Graph(parts.forward.name)
    inner = Builder(new, op.loc)
    own = [new.add_param(v.type, v.name) for v in parts.forward.params[: consts + carries]]
    top = [new.add_param(TAPE)] if tapes or parts.shares_tape else []
    own += [
        new.add_param(v.type, v.name)
        for v in parts.forward.params[consts + carries : len(body.params)]
    ]
    out = inner.inline(parts.forward, [*own, *(top if parts.shares_tape else [])])
    if parts.shares_tape:
        top = [out.pop()]
    saved = dict(zip(parts.saved, out[len(body.outputs) :], strict=True))
    if tapes:
        top = [inner.op("tape_push", t, *(saved[v] for v in tapes)) for t in top]
    new.outputs = [
        *out[:carries],
        *top,
        *out[carries : len(body.outputs)],
        *(saved[v] for v in fresh),
    ]
    start = [b.op("tape_new")] if top else []
    operands = [*op.operands[: consts + carries], *start, *op.operands[consts + carries :]]
    attrs = {**op.attrs, "carries": carries + len(start)}
    if top:
        attrs.pop("independent", None)
    all_results = list(b.append(op.definition, operands, attrs, [new]).results)
    tape = all_results.pop(carries) if top else None
    results = all_results[: len(body.outputs)]
    stacks = dict(zip(ys, results[carries:], strict=True))
    stacks.update(zip(fresh, all_results[len(body.outputs) :], strict=True))
    operand = {i: consts + i for i in undone}
    left = [results[i] for i in undone]
    return results, _Residuals(active, free, counting, operand, parts, stacks, tape, left)


def _vjp_scan(
    b: Builder,
    op: Op,
    cotangents: Sequence[Value | None],
    wanted: Sequence[bool],
    stored: _Residuals,
    after: Mapping[int, Value] | None = None,
) -> list[Value | None]:
    """A scan the other way, over (consts; counters, tape, cotangents, sums, what is taken back; xs,
    stacks, cotangents of ys)."""
    consts, carries = op.attrs["consts"], op.attrs["carries"]
    active, parts = stored.flow, stored.parts
    fixed = [i for i in stored.free if i < consts + carries]
    xs = [i for i in stored.free if i >= consts + carries]
    stacked = [v for v in parts.saved if v.type != TAPE]
    like = [op.operands[consts + i] for i in active.carries]
    cts = instantiated(b, [cotangents[i] for i in active.carries], like)
    outputs = [carries + i for i in active.ys]
    ct_ys = instantiated(b, [cotangents[i] for i in outputs], [op.results[i] for i in outputs])
    sums = [b.zeros(op.operands[i].type) for i in active.consts]
    tape = [] if stored.tape is None else [stored.tape]
    counting = stored.counting
    length = op.attrs["length"]
    ends = [
        b.op("add", op.operands[consts + i], b.const(wrapped(length * step), I64))
        for i, step in counting.items()
    ]
    groups = [
        [op.operands[i] for i in fixed],
        ends,
        tape,
        cts,
        sums,
        [(after or {}).get(i, v) for i, v in zip(stored.undone, stored.left, strict=True)],
        [op.operands[i] for i in xs],
        [stored.stacks[v] for v in stacked],
        ct_ys,
    ]

    new = Graph(parts.backward.name)
    inner = Builder(new, op.loc)
    p_fixed, p_ends, p_tape, p_cts, p_sums, p_left = (
        [new.add_param(v.type) for v in group] for group in groups[:6]
    )
    p_xs, p_stacks, p_ys = (
        [new.add_param(v.tensor.with_shape(v.shape[1:])) for v in group] for group in groups[6:]
    )
    saved = dict(zip(stacked, p_stacks, strict=True))
    if tape and not parts.shares_tape:
        tapes = [v for v in parts.saved if v.type == TAPE]
        below, *inside = inner.op("tape_pop", p_tape[0], types=(TAPE,) * len(tapes))
        saved.update(zip(tapes, inside, strict=True))
        p_tape = [below]
    counts = [
        inner.op("sub", v, inner.const(step, I64))
        for v, step in zip(p_ends, counting.values(), strict=True)
    ]
    known = dict(zip([*fixed, *(consts + i for i in counting)], [*p_fixed, *counts], strict=True))
    values = [*(known[i] for i in sorted(known)), *p_xs, *(saved[v] for v in parts.saved)]
    shared = p_tape if parts.shares_tape else []
    grads = inner.inline(parts.backward, [*values, *p_cts, *p_ys, *p_left, *shared])
    if shared:
        p_tape = [grads.pop()]
    n, m = len(sums), len(sums) + len(cts)
    totals = accumulated(inner, p_sums, grads)
    last = len(grads) - len(p_left)
    new.outputs = [*counts, *p_tape, *grads[n:m], *totals, *grads[last:], *grads[m:last]]

    attrs = {
        "consts": len(fixed),
        "carries": len(counts) + len(tape) + m + len(p_left),
        "length": length,
        "reverse": not op.attrs["reverse"],
    }
    operands = [v for group in groups for v in group]
    out = list(b.append(op.definition, operands, attrs, [new]).results)
    out = out[len(counts) + len(tape) :]
    result: list[Value | None] = [None] * len(op.operands)
    targets = [
        *(consts + i for i in active.carries),
        *active.consts,
        *(consts + carries + i for i in active.xs),
    ]
    out, before = [*out[:m], *out[m + len(p_left) :]], out[m : m + len(p_left)]
    for i, grad in zip(targets, out, strict=True):
        result[i] = grad
    return [*result, *before]


def _examples() -> tuple[Example, ...]:
    def regions(dtype: DType) -> tuple[Graph, ...]:
        types = [TensorType((2,), dtype)] * 3
        return (region("body", types, lambda b, w, c, x: [b.mul(c, w), b.add(c, x)]),)

    return tuple(
        Example(
            (Arg((2,)), Arg((2,)), Arg((length, 2))),
            {
                "consts": 1,
                "carries": 1,
                "length": length,
                "reverse": length > 3,
                "independent": False,
            },
            "iufc",
            regions,
        )
        for length in (0, 3, 4)
    )


register(
    OpDef(
        "scan",
        "structured",
        infer_scan,
        _scan,
        _jvp_scan,
        _vjp_scan,
        _forward_scan,
        batch=batch_scan,
        attrs=("consts", "carries", "length", "reverse", "independent"),
        regions=1,
        doc="a loop over the slices of arrays, which carries values and stacks results",
        extra={"examples": _examples()},
    )
)
