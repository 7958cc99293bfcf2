"""Lowering of attention and its derivative to the kernels of `cuda_kernels`.

before: y, lse = attention(q, k, v)
after:  one kernel; where few queries meet many keys, one for parts of the keys and what joins these
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....ir.graph import Op, Value
from ....ir.record import replace
from ...cuda import program as device
from ...loop_ir.kernel import Array, Stage
from ...lowering.lower import Lowering, indices, variables
from ...math import EXPANSIONS
from ...module import KernelReport
from ...scalar import const, eq, select
from .cuda_plan import AttentionStep, AttentionTile, Matrices, tiles_for
from .cuda_views import ELEMENTS, element_of, matrices, result, rows_of, vectors
from .lower_attention import row_products

if TYPE_CHECKING:
    from ...device.build import ProgramBuilder

WANTED = 128  # blocks that keep a GPU busy
QUERIES = 64  # of a block
PART = 256  # keys of one part, at the least


def parts_of_keys(batch: int, queries: int, keys: int) -> tuple[int, int]:
    """Parts into which keys are cut, so that many blocks have work, and the length of each.

    By shape alone: results depend on it.
    """
    parts = min(2 * WANTED // (batch * -(-queries // QUERIES)), keys // PART)
    if parts < 4:
        return 1, keys
    length = -(-keys // (QUERIES * parts)) * QUERIES
    return -(-keys // length), length


def attention(low: Lowering, op: Op) -> None:
    """y[*B, S, E] and lse[*B, S] of q[*B, S, D], k[*B, T, D], v[*B, T, E] and perhaps a bias.

    One kernel; or one for parts of the keys, and a reduction that joins them (see `parts_of_keys`).
    """
    y_value, lse_value = op.results
    if 0 in y_value.shape[:-1]:
        for value in op.results:
            _own(low, value)
        return
    step = _step(low, op, "forward", op.operands[:3], op.operands[3:])
    batch = math.prod(step.batch)
    parts, length = parts_of_keys(batch, step.queries, step.keys)
    if parts == 1:
        step.results = (result(low, y_value, step.element), rows_of(_own(low, lse_value)))
        low.items.append(_grouped(step))
        return
    arrays = [
        Array((parts, *value.shape), step.real, name="partial") for value in (y_value, lse_value)
    ]
    y, lse = arrays
    step.parts, step.length = parts, length
    step.results = (Matrices(y, y.strides[:-2], *y.strides[-2:]), rows_of(lse))
    low.items.append(_grouped(step))
    _join(low, op, y, lse)


def _grouped(step: AttentionStep) -> AttentionStep:
    """A step whose queries are those of several heads, if there is one of each and they share keys.

    before: q[*B, G, 1, D], k[*B, 1, S, D]       after: q[*B, G, D], k[*B, S, D]
    """
    if step.queries != 1 or not step.batch or step.k.batch[-1] or step.v.batch[-1]:
        return step
    views = (step.q, step.k, step.v)
    q, k, v = (replace(m, batch=m.batch[:-1]) for m in views)
    own = [replace(m, batch=m.batch[:-1], row=m.batch[-1]) for m in step.results]
    bias = step.bias and replace(step.bias, batch=step.bias.batch[:-1], row=step.bias.batch[-1])
    return replace(
        step,
        q=replace(q, row=step.q.batch[-1]),
        k=k,
        v=v,
        bias=bias,
        results=tuple(own),
        batch=step.batch[:-1],
        queries=step.batch[-1],
    )


def _join(low: Lowering, op: Op, y: Array, lse: Array) -> None:
    """Results of all keys from those of parts, each with the weight that its part has."""
    y_value, lse_value = op.results
    *rows, column = variables(y_value.shape)
    (part,) = variables((lse.shape[0],))
    dims, loc = (*rows, part), op.loc

    def reduce(name: str, array: Array, dims: Any, value: Any, point: Any) -> None:
        stage = Stage(array, dims, value, "reduce", name, len(dims) - 1, loc=loc, ops=["attention"])
        low.emit(point, stage)

    top, total = (Array(lse.shape[1:], lse.dtype, name=n) for n in ("top", "total"))
    p = low.point()
    reduce("max", top, dims, p.load(lse, indices((part, *rows)), None), p)
    never = const(float("-inf"), lse.dtype)
    p = low.point()
    shift = p.load(top, indices(rows), None)
    shift = select(eq(shift, never), const(0, lse.dtype), shift)
    exponent = p.load(lse, indices((part, *rows)), None) - shift
    reduce("sum", total, dims, EXPANSIONS["exp"](exponent), p)
    whole = low.array_for(lse_value)
    p = low.point()
    sums = p.load(total, indices(rows), None)
    logsum = p.load(top, indices(rows), None) + EXPANSIONS["log"](sums)
    logsum = select(eq(sums, const(0, lse.dtype)), const(float("nan"), lse.dtype), logsum)
    low.emit(p, Stage(whole, tuple(rows), logsum, ops=["attention"], loc=loc))
    low.arrays[lse_value] = whole
    p = low.point()
    weight = p.load(lse, indices((part, *rows)), None) - p.load(whole, indices(rows), None)
    value = p.load(y, indices((part, *rows, column)), None) * EXPANSIONS["exp"](weight)
    reduce("sum", _own(low, y_value), (*rows, column, part), value, p)


def attention_grad(low: Lowering, op: Op) -> None:
    """dq, dk and dv, in the shapes of q, k and v, from y, lse and the cotangent of y.

    Two kernels that compute scores again: one of blocks of queries, one of blocks of keys.
    """
    q, k, v, y, lse, ct, *bias = op.operands
    if 0 in q.shape[:-1]:
        for r in op.results:
            array, dims = _own(low, r), variables(r.shape)
            low.emit(low.point(), Stage(array, dims, const(0, r.dtype), loc=op.loc))
        return
    step = _step(low, op, "queries", (q, k, v, ct), bias)
    backward_inputs = (
        matrices(low, ct, step.element),
        vectors(low, lse),
        rows_of(row_products(low, y, ct, op)),
    )
    dq, dk, dv = (result(low, r, step.element) for r in op.results)
    low.items.append(replace(step, backward_inputs=backward_inputs, results=(dq,)))
    whole = replace(step, keys=k.shape[-2], causal=op.attrs["causal"])
    low.items.append(replace(whole, kind="keys", backward_inputs=backward_inputs, results=(dk, dv)))


def _step(
    low: Lowering, op: Op, kind: Any, operands: Sequence[Value], bias: Sequence[Value]
) -> AttentionStep:
    elements = {element_of(x) for x in operands}
    q, k, v = operands[:3]
    element = elements.pop() if len(elements) == 1 else ELEMENTS[q.dtype]
    causal = op.attrs["causal"]
    keys = min(k.shape[-2], q.shape[-2]) if causal else k.shape[-2]
    extra = None
    if bias:
        own = element if element_of(bias[0]) == element else ELEMENTS[bias[0].dtype]
        extra = _shared(bias[0], matrices(low, bias[0], own))
    return AttentionStep(
        kind,
        element,
        matrices(low, q, element),
        matrices(low, k, element),
        matrices(low, v, element),
        extra,
        (),
        (),
        q.shape[:-2],
        q.shape[-2],
        max(keys, 1),
        q.shape[-1],
        v.shape[-1],
        op.attrs["scale"],
        causal and q.shape[-2] > 1,
        loc=op.loc,
    )


def _shared(value: Value, view: Matrices) -> Matrices:
    """A dim of size 1 serves all."""
    batch = tuple(0 if n == 1 else s for n, s in zip(value.shape[:-2], view.batch, strict=True))
    return replace(view, batch=batch)


def _own(low: Lowering, value: Value) -> Array:
    array = low.arrays[value] = low.array_for(value)
    return array


def attention_steps(builder: ProgramBuilder, step: AttentionStep) -> list[device.Step]:
    """The launch of one kernel, with the tile that was chosen or measured to be fastest."""
    sizes = (math.prod(step.batch), step.queries, step.keys, step.depth, step.width)
    what = f"{step.kind} {step.element}[{','.join(map(str, sizes))}]"
    what += f"{' causal' * step.causal}{' bias' * (step.bias is not None)} {step.parts}"
    tiles = {repr(tile): tile for tile in tiles_for(step, builder.target)}
    tile = builder.chosen("attention", what, tiles, lambda b, tile: [_launch(b, step, tile)])
    launch = _launch(builder, step, tile)
    step.name = launch.kernel
    builder.note(
        KernelReport(
            name=step.name,
            ops=("attention" if step.kind == "forward" else "attention_grad",),
            extents=sizes,
            bytes_read=sum(a.nbytes for a in step.reads),
            bytes_written=sum(a.nbytes for a in step.writes),
            flops=step.flops,
            parallel=True,
            note=tile.note,
            locs=(step.loc,) if step.loc is not None else (),
        )
    )
    return [launch]


def _launch(builder: ProgramBuilder, step: AttentionStep, tile: AttentionTile) -> device.Launch:
    from .cuda_kernels import attention_emitter

    arrays = list(dict.fromkeys([*step.reads, *step.writes]))
    alignments = {a: builder.alignment(a) for a in arrays}
    e = attention_emitter(step, tile, builder.target, builder.definitions, alignments)
    e.body()
    hint = f"attention_{step.kind}"
    name = builder.emitted(e.b, hint, tile.threads, list(alignments.values()))
    return device.Launch(name, (tile.blocks(step), 1, 1), tuple(map(builder.ref, e.b.arrays)))
