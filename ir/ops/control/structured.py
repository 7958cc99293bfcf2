"""Structured ops: their meaning lies in region graphs. Here is what they share, and `cond`.

Regions capture nothing; all that they read comes in as operands.

    cond(index, *operands; regions = branches)   the branch with that number, clamped into range

`while` is in `loops_while`, `scan` in `scan`, `lanes_while` in `loops_lanes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...autodiff.cotangents import is_zero
from ...autodiff.residuals import Split, is_heavy, split
from ...autodiff.transform import is_differentiable, jvp_graph, reach, vjp_undoing
from ...autodiff.undo import branch_trails
from ...batching.structured import batch_cond
from ...build import Builder
from ...graph import Graph, Op, Value
from ...interpreter import evaluate
from ...opdef import GraphError, OpDef, register
from ...record import record
from ...types import TAPE, TensorType, Type
from ..composed import instantiated
from ..families import Arg, DType, Example, check_dtype
from ..masks import alive


def listed(types: Sequence[Type]) -> str:
    """Types, as text for messages."""
    return "(" + ", ".join(map(str, types)) + ")"


def check_params(region: Graph, types: Sequence[Type], what: str) -> None:
    """GraphError unless the region takes these types."""
    if region.input_types != list(types):
        raise GraphError(f"{what} takes {listed(region.input_types)} but is given {listed(types)}")


def check_checkpoint(checkpoint: str | int) -> None:
    """GraphError for what is no way of bounding memory."""
    slots = isinstance(checkpoint, int) and not isinstance(checkpoint, bool) and checkpoint > 0
    if not slots and checkpoint not in ("all", "sqrt"):
        raise GraphError(f'checkpoint={checkpoint!r} is not "all", "sqrt" or a number of slots')


def region(name: str, types: Sequence[Type], build: Callable[..., Sequence[Value]]) -> Graph:
    """A graph of parameters of `types`; `build(b, *params)` gives its outputs."""
    graph = Graph(name)
    graph.outputs = list(build(Builder(graph), *(graph.add_param(t) for t in types)))
    return graph


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


# Derivatives of cond. Only the branch taken runs, in both directions.


def _varied(op: Op, wrt: Sequence[int]) -> list[bool]:
    """The results that depend on these parameters of the branches, in any branch."""
    wrt = list(wrt)
    count = range(len(op.results))
    flags = [reach(region, wrt, count)[1] for region in op.regions]
    return [any(branch) for branch in zip(*flags, strict=True)]


def _jvp_cond(
    b: Builder, op: Op, tangents: Sequence[Value | None]
) -> tuple[Sequence[Value], list[Value | None]]:
    wrt = [i for i, t in enumerate(tangents[1:]) if t is not None]
    varied = _varied(op, wrt)
    count = len(op.results)
    floats = [i for i, v in enumerate(op.results) if is_differentiable(v.type)]
    branches = [jvp_graph(region, wrt) for region in op.regions]
    for branch in branches:
        pairs = zip(floats, branch.outputs[count:], strict=True)
        branch.outputs[count:] = [t for i, t in pairs if varied[i]]
    varying = [t for t in tangents if t is not None]
    new = b.append(op.definition, [*op.operands, *varying], {}, branches)
    out = iter(new.results[count:])
    return new.results[:count], [next(out) if v else None for v in varied]


@record
class _Branches:
    """What the backward part of a cond needs."""

    wrt: list[int]  # parameters of the branches
    outputs: list[int]
    parts: list[Split]
    tape: Value | None
    kept: list[Value]  # what is kept as results in place of a tape, branch by branch
    undone: dict[int, int]  # results whose updates are taken back, and the operands they were


def _forward_cond(
    b: Builder,
    op: Op,
    wanted: Sequence[bool],
    needed: Sequence[bool],
    undo: Mapping[int, int] | None = None,
) -> tuple[Sequence[Value], _Branches]:
    """Each branch computes again in its backward part what it needs; what is dear goes on a tape.

    The backward part gives the operands of `undo` as well, given the results that they have become.
    """
    wrt = [i for i, w in enumerate(wanted[1:]) if w]
    outputs = [i for i, v in enumerate(_varied(op, wrt)) if v and needed[i]]
    count, params = len(op.results), len(op.operands) - 1
    written = _overwritten(op)
    free = [
        i
        for i, v in enumerate(op.operands[1:])
        if isinstance(v.type, TensorType) and i not in written
    ]
    undone = dict(undo or {})
    trails = [branch_trails(op, i) for i in undone]
    joints = [
        vjp_undoing(region, wrt, outputs, [found[k] for found in trails])[0]
        for k, region in enumerate(op.regions)
    ]
    keep = bool(written) or is_heavy(op)
    parts = [split(joint, params, count, free, keep=keep) for joint in joints]
    if not any(part.saved for part in parts):
        results = b.append(op.definition, op.operands, op.attrs, op.regions).results
        return results, _Branches(wrt, outputs, parts, None, [], undone)
    kept = [v for part in parts for v in part.saved]
    if all(isinstance(v.type, TensorType) and v.tensor.size == 1 for v in kept):
        return _with_results(b, op, _Branches(wrt, outputs, parts, None, [], undone))
    branches = []
    for part in parts:
        new = Graph(part.forward.name)
        own = [new.add_param(v.type, v.name) for v in part.forward.params]
        tape = new.add_param(TAPE)
        inner = Builder(new, op.loc)
        out = inner.inline(part.forward, own)
        if part.saved:
            tape = inner.op("tape_push", tape, *out[count:])
        new.outputs = [*out[:count], tape]
        branches.append(new)
    operands = [*op.operands, b.op("tape_new")]
    *of_branches, tape = b.append(op.definition, operands, {}, branches).results
    return of_branches, _Branches(wrt, outputs, parts, tape, [], undone)


def _overwritten(op: Op) -> set[int]:
    """The arrays of which a branch changes elements: to keep one whole, for the elements that are read
    of it, would be dear, since a loop has another one in each iteration."""
    written = set()
    for outputs in zip(*(region.outputs for region in op.regions), strict=True):
        for region, v in zip(op.regions, outputs, strict=True):
            while v.op is not None and v.op.definition.updates:
                v = v.op.operands[0]
            if v.op is None and isinstance(v.type, TensorType) and v.shape:
                at = region.params.index(v)
                if any(o is not r.params[at] for r, o in zip(op.regions, outputs, strict=True)):
                    written.add(at)
    return written


def _with_results(b: Builder, op: Op, saved: _Branches) -> tuple[Sequence[Value], _Branches]:
    """The op with what its branches keep as results: numbers, which are zeros if not kept."""
    count = len(op.results)
    branches = []
    for own in saved.parts:
        new = Graph(own.forward.name)
        inner = Builder(new, op.loc)
        params = [new.add_param(v.type, v.name) for v in own.forward.params]
        out = inner.inline(own.forward, params)
        new.outputs = out[:count]
        for part in saved.parts:
            mine = part is own
            new.outputs += out[count:] if mine else [inner.zeros(v.type) for v in part.saved]
        branches.append(new)
    results = b.append(op.definition, op.operands, {}, branches).results
    saved.kept.extend(results[count:])
    return results[:count], saved


def _vjp_cond(
    b: Builder,
    op: Op,
    cotangents: Sequence[Value | None],
    wanted: Sequence[bool],
    saved: _Branches,
    after: Mapping[int, Value] | None = None,
) -> list[Value | None]:
    free = sorted({i for part in saved.parts for i in part.free})
    cts = instantiated(
        b, [cotangents[i] for i in saved.outputs], [op.results[i] for i in saved.outputs]
    )
    left = [(after or {})[i] for i in saved.undone]
    branches: list[Graph] = []
    for part in saved.parts:
        new = Graph(part.backward.name)
        inner = Builder(new, op.loc)
        own = {i: new.add_param(op.operands[i + 1].type, op.operands[i + 1].name) for i in free}
        values = [own[i] for i in part.free]
        seeds = [new.add_param(v.type) for v in [*cts, *left]]
        held = [new.add_param(v.type) for v in saved.kept]
        if held:
            first = sum(len(p.saved) for p in saved.parts[: len(branches)])
            values += held[first : first + len(part.saved)]
        if saved.tape is not None:
            tape = new.add_param(TAPE)
            if part.saved:
                types = tuple(v.type for v in part.saved)
                values += inner.op("tape_pop", tape, types=types)[1:]
        new.outputs = inner.inline(part.backward, [*values, *seeds])
        branches.append(new)
    masked = _add_masks(branches, len(saved.wrt))
    tapes = [] if saved.tape is None else [saved.tape]
    operands = [op.operands[0], *(op.operands[i + 1] for i in free), *cts, *left]
    operands += [*saved.kept, *tapes]
    new_op = b.append(op.definition, operands, {}, branches)
    grads: list[Value | None] = [None] * len(op.operands)
    last = len(new_op.results) - len(masked)
    masks = dict(zip(masked, new_op.results[last:], strict=True))
    given = _any_alive(b, cts)
    for at, (i, grad) in enumerate(zip(saved.wrt, new_op.results, strict=False)):
        mask = masks.get(at, given)
        if mask is not None and given is not None and mask is not given:
            mask = b.op("bitwise_and", mask, given)
        is_number = isinstance(grad.type, TensorType) and grad.tensor.size == 1
        if mask is not None and (at in masks or is_number):
            everywhere = b.broadcast_to(mask, grad.shape)
            grad = b.op("select", everywhere, grad, b.full_like(grad, 0))
        grads[i + 1] = grad
    return [*grads, *new_op.results[len(saved.wrt) : last]]


# What a branch makes of its elements only, out of zeros: it is not to be walked over for a mask.
_OF_ELEMENTS = ("scatter", "pad", "concat", "update_slice", "dynamic_update_slice")


def _add_masks(branches: Sequence[Graph], count: int) -> list[int]:
    """Let the branches say, as results, of which of the first `count` they give exact zeros.

    `s = sqrt(x)`, then `if p: s = y`: at x = 0 the zero must not become NaN further on, see `masks`.
    Gives the places of these.
    """
    masked = []
    builders = [Builder(branch) for branch in branches]
    for at in range(count):
        outs = [branch.outputs[at] for branch in branches]
        if any(out.op is not None and out.op.name in _OF_ELEMENTS for out in outs):
            continue
        if not isinstance(outs[0].type, TensorType):
            continue
        found = [alive(b, out) for b, out in zip(builders, outs, strict=True)]
        if all(mask is None for mask in found):
            continue
        masked.append(at)
        for b, mask in zip(builders, found, strict=True):
            b.graph.outputs.append(b.full((), True, bool) if mask is None else mask)
    return masked


def _any_alive(b: Builder, cotangents: Sequence[Value]) -> Value | None:
    """A 0-d bool: where it is false, all of the cotangents are 0; None if that is not known."""
    joined: Value | None = None
    for t in cotangents:
        if is_zero(t):
            continue
        mask = alive(b, t)
        if mask is None:
            return None
        joined = mask if joined is None else b.op("bitwise_or", joined, mask)
    return joined


def _cond_examples() -> tuple[Example, ...]:
    def regions(dtype: DType) -> tuple[Graph, ...]:
        pair = [TensorType((2, 3), dtype)] * 2
        return (
            region("product", pair, lambda b, x, y: [b.mul(x, y), x]),
            region("sum", pair, lambda b, x, y: [b.add(x, y), y]),
        )

    return (Example((Arg((), "i32", 3), Arg((2, 3)), Arg((2, 3))), {}, "iufc", regions),)


register(
    OpDef(
        "cond",
        "structured",
        _infer_cond,
        _cond,
        _jvp_cond,
        _vjp_cond,
        _forward_cond,
        batch=batch_cond,
        regions=-1,
        doc="one of several branches, chosen at run time",
        extra={"examples": _cond_examples()},
    )
)
