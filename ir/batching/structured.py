"""Batching rules of structured ops: what happens when examples want different branches and iterations.

- `cond`: one index for all examples keeps it a branch. An index for each runs every branch for all
  examples, masked by who takes it, and selects.
- `while`: one trip count for all keeps it a loop over batched carries. Where examples stop at
  different times, a loop over scalars becomes `lanes_while`. Other loops go on until the last example
  is done, and examples that are done keep their carries.
- `scan`: its trip count is static, so examples never part.

What branches and iterations hand on unchanged is what it was, for all examples, wherever they part.

`batch_tapes` says how tapes follow examples that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..graph import Graph, Op, Value
from ..types import TAPE, TOKEN, TensorType
from .lanewise import lanewise_loop, own_attrs
from .tapes import per_branch, source_of
from .transform import (
    BatchBuilder,
    Batched,
    Flags,
    Marks,
    batch_region,
    batching_error,
    regions_need_mask,
)

# cond


def batch_cond(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """A `cond`; with a batched predicate all branches run, each for its examples."""
    if batched[0]:
        return _handed_on(op, operands, batched, _all_branches(b, op, operands, batched))
    if any(v.type is TAPE for v in (*op.operands, *op.results)):
        return _branch_with_tapes(b, op, operands, batched)
    index, *rest = operands
    mask = _mask(b, op)
    branches = [batch_region(r, batched[1:], b.size, masked=bool(mask)) for r in op.regions]
    flags = [any(column) for column in zip(*(own for _, own in branches), strict=True)]
    for region, own in branches:
        _spread_outputs(region, own, flags, b.size)
    new = b.append(op.definition, [index, *mask, *rest], op.attrs, [r for r, _ in branches])
    return new.results, flags


def _branch_with_tapes(
    b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Sequence[bool]
) -> Batched:
    """A branch for all, with a tape for each branch instead of a tape."""
    index, *rest = operands
    count = len(op.regions)
    below, tapes = _opened(b, rest, count)
    inputs = [t for v, own in zip(rest, tapes, strict=True) for t in (own or [v])]
    active = [] if b.active is None else [b.active]
    graphs, founds = [], []
    for k, region in enumerate(op.regions):
        new = Graph(region.name)
        mask = new.add_param(active[0].type, "active") if active else None
        inner = BatchBuilder(new, b.size, mask, b.loc)
        params = [new.add_param(v.type, v.name) for v in inputs]
        outputs, flags = inner.walk(region, _chosen(params, tapes, k), batched[1:])
        graphs.append(inner)
        founds.append((outputs, flags))
    flags = [any(column) for column in zip(*(own for _, own in founds), strict=True)]
    for k, (inner, (outputs, own)) in enumerate(zip(graphs, founds, strict=True)):
        for v in inner.spread_where(outputs, own, flags):
            if v.type is TAPE:
                others = [inner.tape_new() for _ in range(count - 1)]
                inner.graph.outputs += [*others[:k], v, *others[k:]]
            else:
                inner.graph.outputs.append(v)
    new_op = b.append(op.definition, [index, *active, *inputs], op.attrs, [g.graph for g in graphs])
    out = iter(new_op.results)
    results = []
    for j, v in enumerate(op.results):
        if v.type is TAPE:
            results.append(b.tape_push(_below(b, op, j, below), *(next(out) for _ in range(count))))
        else:
            results.append(next(out))
    return results, flags


def _all_branches(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """Each branch for the examples that take it; then a choice for each example."""
    index, *rest = operands
    last = len(op.regions) - 1
    index = b.minimum(b.maximum(index, b.full_like(index, 0)), b.full_like(index, last))
    below, tapes = _opened(b, rest, last + 1)
    inputs = [t for v, own in zip(rest, tapes, strict=True) for t in (own or [v])]
    around = b.active
    results: list[Value] = []
    pushed: list[list[Value]] = [[] for _ in op.results]
    for k, region in enumerate(op.regions):
        is_taken = b.eq(index, b.full_like(index, k))
        b.active = b.masked_by(is_taken)
        try:
            outputs, flags = b.walk(region, _chosen(inputs, tapes, k), batched[1:])
        finally:
            b.active = around
        out = b.spread_all(outputs, flags)
        for j, v in enumerate(out):
            if v.type is TOKEN:  # the next branch's effects come next
                inputs = [v if old.type is TOKEN else old for old in inputs]
            pushed[j].append(v)
        results = (
            [b.choose(is_taken, new, old) for new, old in zip(out, results, strict=True)]
            if k
            else out
        )
    for j, v in enumerate(op.results):
        if v.type is TAPE:
            results[j] = b.tape_push(_below(b, op, j, below), *pushed[j])
    return results, [v.type is not TOKEN for v in op.results]


def _opened(
    b: BatchBuilder, operands: Sequence[Value], count: int
) -> tuple[list[Value | None], list[list[Value]]]:
    """For each operand that is a tape what is below its record, and the tapes of the branches."""
    below: list[Value | None] = []
    tapes: list[list[Value]] = []
    for v in operands:
        under, own = per_branch(b, v, count) if v.type is TAPE else (None, [])
        below.append(under)
        tapes.append(own)
    return below, tapes


def _chosen(inputs: Sequence[Value], tapes: Sequence[Sequence[Value]], k: int) -> list[Value]:
    """The arguments of branch `k`: of each group of tapes its own."""
    rest = iter(inputs)
    chosen = []
    for own in tapes:
        group = [next(rest) for _ in range(max(len(own), 1))]
        chosen.append(group[k] if own else group[0])
    return chosen


def _below(b: BatchBuilder, op: Op, result: int, below: Sequence[Value | None]) -> Value:
    """What the tape that is result number `result` was before the branch pushed on it."""
    for region in op.regions:
        source = source_of(region, region.outputs[result])
        boundary = None if source is None else below[source.index]
        if boundary is not None:
            return boundary
    return b.tape_new()


# while


def batch_while(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """A `while` of more dims; if its test differs among examples, it runs until all are done."""
    consts = op.attrs["consts"]
    test, body = op.regions
    mask = _mask(b, op)
    flags = list(batched)
    while True:  # what the body makes batched of a carry is batched from the start
        new_body, out = batch_region(body, flags, b.size, masked=bool(mask))
        new_test, (parts,) = batch_region(test, flags, b.size, masked=bool(mask))
        if parts:
            looped = _until_all_are_done(b, op, operands, batched)
            return _handed_on(op, operands, batched, looped)
        grown = flags[:consts] + [f or o for f, o in zip(flags[consts:], out, strict=True)]
        if grown == flags:
            break
        flags = grown
    _spread_outputs(new_body, out, flags[consts:], b.size)
    inputs = [
        *operands[:consts],
        *b.spread_where(operands[consts:], batched[consts:], flags[consts:]),
    ]
    if b.active is not None:  # without an example to run for, the loop might not end
        go = b.any_active()
        inputs = [go, *inputs]
        for region in (new_test, new_body):
            _add_first(region, go.tensor, "go")
        inside = BatchBuilder(new_test, b.size)
        new_test.outputs = [inside.bitwise_and(new_test.params[0], new_test.outputs[0])]
        if mask:
            inputs[0:1] = [go, *mask]
    attrs = {**op.attrs, "consts": len(inputs) - len(operands) + consts}
    new = b.append(op.definition, inputs, attrs, [new_test, new_body])
    return new.results, flags[consts:]


def _until_all_are_done(
    b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Sequence[bool]
) -> Batched:
    consts = op.attrs["consts"]
    flags = [v.type is not TOKEN for v in op.results]
    lanes = lanewise_loop(op, masked=b.active is not None)
    if lanes is not None:
        mask = [] if b.active is None else [b.active]
        attrs = {**own_attrs(op), "consts": consts + len(mask)}
        inputs = [*mask, *b.spread_all(operands, batched)]
        results = b.op("lanes_while", *inputs, regions=lanes, **attrs)
        return results if isinstance(results, tuple) else [results], flags

    # The loop carries, in front of what it carried, which examples still run.
    test, body = op.regions
    fixed = operands[:consts]
    carry = b.spread_all(operands[consts:], batched[consts:])
    inner_flags = [*batched[:consts], *flags]

    def goes_on(inside: BatchBuilder, values: Sequence[Value]) -> Value:
        (test_result,), (flag,) = inside.walk(test, values, inner_flags)
        return inside.masked_by(inside.spread(test_result, flag))

    running = goes_on(b, [*fixed, *carry])
    types = [v.type for v in (*fixed, running, *carry)]
    new_test, new_body = Graph(test.name), Graph(body.name)
    for region in (new_test, new_body):
        for type in types:
            region.add_param(type)
    inside = BatchBuilder(new_test, b.size, loc=op.loc)
    new_test.outputs = [inside.op("any", new_test.params[consts], axes=(0,))]

    active, old = new_body.params[consts], new_body.params[consts + 1 :]
    inside = BatchBuilder(new_body, b.size, active, op.loc)
    outputs, own = inside.walk(body, [*new_body.params[:consts], *old], inner_flags)
    took_part = inside.active  # without those who waited for a record of their own
    assert took_part is not None
    new = [
        inside.choose(took_part, v, before)
        for v, before in zip(inside.spread_all(outputs, own), old, strict=True)
    ]
    inside.active = active
    new_body.outputs = [goes_on(inside, [*new_body.params[:consts], *new]), *new]
    regions = [new_test, new_body]
    loop = b.append(op.definition, [*fixed, running, *carry], own_attrs(op), regions)
    return loop.results[1:], flags


def batch_lanes_while(
    b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Sequence[bool]
) -> Batched:
    """The same loop, of lanes one dim more."""
    spread = b.spread_all(operands, batched) if any(batched) else list(operands)
    flags = [any(batched)] * len(op.results)
    if b.active is None:
        return b.append(op.definition, spread, op.attrs, op.regions).results, flags
    spread = b.spread_all(operands, batched)
    lanes = lanewise_loop(op, masked=True)
    assert lanes is not None, "the regions of lanes_while are lanewise"
    attrs = {**op.attrs, "consts": op.attrs["consts"] + 1}
    mask = b.per_example(b.active, spread[0])
    return b.append(op.definition, [mask, *spread], attrs, lanes).results, [True] * len(flags)


# scan


def batch_scan(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """A `scan` of more dims: each slice of xs and ys holds a row for each example."""
    consts, carries = op.attrs["consts"], op.attrs["carries"]
    (body,) = op.regions
    mask = _mask(b, op)
    moving = slice(consts, consts + carries)
    flags = list(batched)
    while True:
        new_body, out = batch_region(body, flags, b.size, masked=bool(mask))
        grown = [f or o for f, o in zip(flags[moving], out[:carries], strict=True)]
        if grown == flags[moving]:
            break
        flags[moving] = grown
    results = [*flags[moving], *out[carries:]]
    _spread_outputs(new_body, out, results, b.size)
    start = b.spread_where(operands[moving], batched[moving], flags[moving])
    xs = [  # a slice for each iteration, and in it a row for each example
        b.moved(x, 1, 0) if flag else x
        for x, flag in zip(operands[moving.stop :], batched[moving.stop :], strict=True)
    ]
    attrs = {**op.attrs, "consts": consts + len(mask)}
    loop = b.append(op.definition, [*mask, *operands[:consts], *start, *xs], attrs, [new_body])
    stacked = [
        b.moved(y, 1, 0) if flag else y
        for y, flag in zip(loop.results[carries:], out[carries:], strict=True)
    ]
    return [*loop.results[:carries], *stacked], results


# effects and callbacks


def batch_assert(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """One check for all examples; the values in its message are those of the first that fails."""
    pred, *values, token = operands
    if b.active is not None:
        off = b.invert(b.active) if batched[0] else b.invert(b.any_active())
        pred = b.bitwise_or(off, pred)
    if b.size == 0 and any(batched):
        return [token], [False]
    if batched[0]:
        failing = b.argmin(pred, axis=0)
        pred = b.op("all", pred, axes=(0,))
    elif b.active is not None and any(batched):
        failing = b.argmax(b.active, axis=0)
    else:
        failing = b.const(0, "int64")
    shown = [
        b.gather(v, failing, axes=(0,), mode="clip") if flag else v
        for v, flag in zip(values, batched[1:-1], strict=True)
    ]
    return [b.op("assert", pred, *shown, token, **op.attrs)], [False]


def refuse_effect(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Any:
    """Raise BatchingError."""
    raise batching_error(
        op,
        "a callback with effects runs once per call, in program order, and vmap runs all examples "
        "at once: there is no order to keep",
    )


def refuse_draws(op: Op) -> NoReturn:
    """Raise BatchingError."""
    raise batching_error(
        op,
        "a generator's numbers come one after the other, and vmap runs all examples at once: give "
        "each example a key of its own (jt.random.split), or draw the numbers outside",
    )


def refuse_stores(op: Op) -> NoReturn:
    """Raise BatchingError."""
    raise batching_error(
        op,
        "a list, dict, set, deque or heap that grows while compiled code runs is one container, and "
        "vmap runs all examples at once: count in an array of the final size (out[n] = value; n += 1), "
        "or call the compiled function for each example, [f(x) for x in xs]",
    )


# Shared


def _handed_on(
    op: Op, operands: Sequence[Value], batched: Sequence[bool], outputs: Batched
) -> Batched:
    """`outputs`, with operands instead of the results that they are."""
    results, flags = list(outputs[0]), list(outputs[1])
    for k, result in enumerate(op.results):
        source = _source_index(op, k)
        if source is not None and isinstance(result.type, TensorType) and not batched[source]:
            results[k], flags[k] = operands[source], False
    return results, flags


def _source_index(op: Op, result: int) -> int | None:
    """Which operand a result of a loop or branch always is, None if it may be another value."""
    if op.name == "cond":
        sources = [_source(region.outputs[result]) for region in op.regions]
        indices = {v.index if v.op is None else -1 for v in sources}
        return 1 + indices.pop() if len(indices) == 1 and -1 not in indices else None
    if op.name == "while" or (op.name == "scan" and result < op.attrs["carries"]):
        body, index = op.regions[-1], op.attrs["consts"] + result
        return index if _source(body.outputs[result]) is body.params[index] else None
    return None


def _source(value: Value) -> Value:
    """The value that loops and branches hand on as `value`."""
    while value.op is not None:
        index = _source_index(value.op, value.index)
        if index is None:
            break
        value = value.op.operands[index]
    return value


def _mask(b: BatchBuilder, op: Op) -> list[Value]:
    """The mask, as operands for regions that need it: one or none."""
    return [b.active] if b.active is not None and regions_need_mask(op) else []


def _spread_outputs(region: Graph, own: Flags, wanted: Flags, size: int) -> None:
    """Make outputs of a new `region` batched where `wanted` says so."""
    region.outputs = BatchBuilder(region, size).spread_where(region.outputs, own, wanted)


def _add_first(region: Graph, type: TensorType, name: str) -> None:
    """Give a new `region` one more parameter, in front."""
    region.params.insert(0, Value(type, None, 0, name))
    move_first(region, 0)


def move_first(region: Graph, index: int) -> None:
    """Move the first parameter of a new `region` to that position."""
    region.params.insert(index, region.params.pop(0))
    for i, param in enumerate(region.params):
        param.index = i
