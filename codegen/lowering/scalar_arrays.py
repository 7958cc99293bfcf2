"""Arrays in scalar code: values that are not taken apart, by loops over their elements.

    s = (a[i, :n] * b[:n]).sum()        for k in range(n): s += a[i, k] * b[k]

Such a value is a function of its position, as in kernels, or stays in memory. A reduction, a product or
an update of it is a loop, which ends where a count says that the other elements are of no account (see
`extents`). Loops over windows whose length is a value are written in this way; kernels would run
over whole axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ...ir.graph import Op, Value
from ...ir.ops.folds.reductions import identity
from ...ir.types import I64
from ..loop_ir.index import Index, Var, of_var, variables
from ..loop_ir.kernel import Array
from ..loop_ir.scalar_code import Body, Repeat
from ..math import EXPANSIONS
from ..math.combiners import COMBINE, FOLDS
from ..scalar import DType, Expr, Unique, compare, const, ne, select, var
from .extents import cuts
from .pointwise import IndexTuple, as_index, bounded_window, clamped, index_value
from .scalar_builder import FEW, SPILL, ScalarBuilder, Stored, Unfit

FREE = frozenset(("reassoc", "contract"))  # what sums of arrays may do: their order is nobody's


class Axis:
    """A loop over an axis: `trips` of its `extent` positions, all of them if None. `counts` are the
    values that are known to be above each position."""

    def __init__(
        self, extent: int, trips: Expr | None = None, counts: Sequence[Value] = ()
    ) -> None:
        limit = trips.attr if trips is not None and trips.op == "index" else None
        self.variable = Var("element", extent, limit)
        self.trips, self.counts = trips, counts


def axis_of(c: ScalarBuilder, values: Sequence[Value], axes: Sequence[int], fill: object) -> Axis:
    """The loop over an axis that values share, as far as one of them is not yet `fill`."""
    extent = values[0].shape[axes[0]]
    windows = [cuts(v, a, fill) for v, a in zip(values, axes, strict=True)]
    shared = [n for n in windows[0] if all(n in others for others in windows[1:])]
    if not shared:
        return Axis(extent)
    return cut_axis(c, extent, shared[0], shared[:1])


def cut_axis(c: ScalarBuilder, extent: int, count: Value, counts: Sequence[Value]) -> Axis:
    """A loop over the first `count` positions of an axis."""
    number = c.scalar(count)
    if number.op == "const":
        return Axis(min(max(number.attr, 0), extent))
    trips = clamped(number, 0, extent)
    c.let(np.array([trips], object))
    return Axis(extent, trips, counts)


@contextmanager
def loop(c: ScalarBuilder, axes: Sequence[Axis]) -> Iterator[IndexTuple]:
    """The statements made meanwhile are done at each position; gives the position."""
    blocks: list[Body] = []
    outer = c.block
    for axis in axes:
        c.p.live[axis.variable] = frozenset(axis.counts)
        c.block = Body()
        blocks.append(c.block)
    yield tuple(of_var(axis.variable) for axis in axes)
    for axis, block, around in reversed(
        [*zip(axes, blocks, [outer, *blocks][: len(blocks)], strict=True)]
    ):
        around.statements.append(Repeat([], [], block, [], axis.variable, None, None, axis.trips))
    c.block = outer


def accumulate(
    c: ScalarBuilder,
    axes: Sequence[Axis],
    start: Sequence[Expr],
    step: Callable[[IndexTuple, list[Expr]], list[Expr]],
) -> list[Expr]:
    """Loops that carry values: `step(position, values)` gives the next ones. Gives the last ones."""
    if not axes:
        return step((), list(start))
    first, *rest = axes
    carries = [var(Unique("total"), e.dtype) for e in start]
    c.p.live[first.variable] = frozenset(first.counts)
    with c.inside() as block:
        here = of_var(first.variable)
        new = accumulate(c, rest, carries, lambda inner, now: step((here, *inner), now))
        c.let(np.array(new, object))
    c.block.statements.append(
        Repeat(carries, list(start), block, new, first.variable, None, None, first.trips)
    )
    return carries


def added(total: Expr, value: Expr) -> Expr:
    """A sum whose order is nobody's, of products that may be rounded with it."""
    if total.dtype.kind != "f":
        return total + value
    if value.op == "mul":
        value = Expr("mul", value.args, value.dtype, FREE)
    return Expr("add", (total, value), total.dtype, FREE)


def freely_summed(value: Expr, carry: Expr) -> Expr:
    """What a loop makes of a carry, if that is a sum, as one whose order is nobody's."""
    if value.op not in ("add", "sub") or value.dtype.kind != "f":
        return value
    a, b = value.args
    for total, other in ((a, b), (b, a)) if value.op == "add" else ((a, b),):
        inner = freely_summed(total, carry)
        if total is carry or inner is not total:
            if other.op == "mul":
                other = Expr("mul", other.args, other.dtype, FREE)
            return Expr(value.op, (inner, other), value.dtype, FREE)
    return value


def is_large(c: ScalarBuilder, value: Value) -> bool:
    """Whether a value is not taken apart."""
    return c.counted and value.tensor.size > FEW


# Reductions and products


def fold_large(c: ScalarBuilder, op: Op) -> None:
    """A reduction of a large value."""
    (source,), axes = op.operands, op.attrs["axes"]
    remaining = [d for d in range(len(source.shape)) if d not in axes]
    neutral = identity(op.name, op.result.dtype)
    combine = EXPANSIONS[FOLDS[op.name]]

    def result(outer: IndexTuple) -> Expr:
        loops = [axis_of(c, [source], [d], neutral) for d in axes]

        def step(inner: IndexTuple, now: list[Expr]) -> list[Expr]:
            at = dict(zip([*remaining, *axes], [*outer, *inner], strict=True))
            value = c.p.at(source, tuple(at[d] for d in range(len(source.shape))))
            return [added(now[0], value) if op.name == "sum" else combine(now[0], value)]

        return accumulate(c, loops, [const(neutral, op.result.dtype)], step)[0]

    _results(c, op, result, [cuts_of(c, source, d, neutral) for d in remaining])


def cuts_of(c: ScalarBuilder, source: Value, axis: int, fill: object) -> Value | None:
    """The count of an axis that stays: rows behind it are identities alone."""
    return next(iter(cuts(source, axis, fill)), None)


def place_of_best(c: ScalarBuilder, op: Op) -> None:
    """argmax or argmin of a large value: the first NaN, or the first of the best."""
    (source,), axis = op.operands, op.attrs["axis"]
    remaining = [d for d in range(len(source.shape)) if d != axis]
    dtype = source.dtype
    worst = const(identity("max" if op.name == "argmax" else "min", dtype), dtype)

    def result(outer: IndexTuple) -> Expr:
        loops = [axis_of(c, [source], [axis], worst.attr)]

        def step(inner: IndexTuple, now: list[Expr]) -> list[Expr]:
            at = dict(zip([*remaining, axis], [*outer, *inner], strict=True))
            value = c.p.at(source, tuple(at[d] for d in range(len(source.shape))))
            best, place = now
            better = compare("gt" if op.name == "argmax" else "lt", value, best)
            if dtype.kind == "f":
                better = (better | ne(value, value)) & ~ne(best, best)
            here = index_value(inner[0])
            return [select(better, value, best), select(better, here, place)]

        return accumulate(c, loops, [worst, const(0, I64)], step)[1]

    _results(c, op, result, [None] * len(remaining))


def dot(c: ScalarBuilder, op: Op) -> None:
    """A product of large values."""
    (a, b), ((over, with_), (batch, of)) = op.operands, (op.attrs["contract"], op.attrs["batch"])
    free = [
        [d for d in range(len(v.shape)) if d not in (*used, *shared)]
        for v, used, shared in ((a, over, batch), (b, with_, of))
    ]
    axes_of_a, axes_of_b = [*batch, *free[0]], [*of, *free[1]]
    split = len(batch), len(batch) + len(free[0])

    def result(outer: IndexTuple) -> Expr:
        loops = [axis_of(c, [a, b], [d, e], 0) for d, e in zip(over, with_, strict=True)]
        left, right = outer[: split[1]], (*outer[: split[0]], *outer[split[1] :])

        def step(inner: IndexTuple, now: list[Expr]) -> list[Expr]:
            x, y = (
                c.p.at(v, tuple(i for _, i in sorted(zip(axes, at, strict=True), key=_first)))
                for v, axes, at in (
                    (a, [*axes_of_a, *over], [*left, *inner]),
                    (b, [*axes_of_b, *with_], [*right, *inner]),
                )
            )
            return [added(now[0], EXPANSIONS["mul"](x, y))]

        return accumulate(c, loops, [const(0, op.result.dtype)], step)[0]

    counts = [cuts_of(c, a, d, 0) for d in axes_of_a] + [cuts_of(c, b, d, 0) for d in free[1]]
    _results(c, op, result, counts)


def _first(pair: tuple[int, Index]) -> int:
    return pair[0]


def running(c: ScalarBuilder, op: Op, combine: str) -> None:
    """A scan along an axis of a large value."""
    (source,), axis = op.operands, op.attrs["axis"]
    n = source.shape[axis]
    others = [Axis(size) for d, size in enumerate(source.shape) if d != axis]
    held = scratch(c, op.result.shape, op.result.dtype)
    neutral = _NEUTRAL[combine](op.result.dtype)
    with loop(c, others) as outer:

        def step(inner: IndexTuple, now: list[Expr]) -> list[Expr]:
            place = -inner[0] + (n - 1) if op.attrs["reverse"] else inner[0]
            at = (*outer[:axis], place, *outer[axis:])
            new = EXPANSIONS[combine](now[0], c.p.at(source, at))
            c.put(held.array, at, new)
            return [new]

        accumulate(c, [Axis(n)], [const(neutral, op.result.dtype)], step)
    c.bind(op.result, c.renew(held))


_NEUTRAL: dict[str, Callable[[DType], object]] = {
    "add": lambda dtype: identity("sum", dtype),
    "mul": lambda dtype: identity("prod", dtype),
    "maximum": lambda dtype: identity("max", dtype),
    "minimum": lambda dtype: identity("min", dtype),
}


def _results(
    c: ScalarBuilder, op: Op, result: Callable[[IndexTuple], Expr], counts: Sequence[Value | None]
) -> None:
    """The elements of a result, each of which is a loop: a few as variables, many in memory."""
    shape, dtype = op.result.shape, op.result.dtype
    if op.result.tensor.size <= FEW:
        results = np.empty(shape, object)
        for index in np.ndindex(*shape):
            results[index] = result(tuple(Index(k) for k in index))
        c.result(op, results)
        return
    held = scratch(c, shape, dtype)
    axes = [Axis(n) for n in shape]
    with loop(c, axes) as position:
        c.put(held.array, position, result(position))
    c.bind(op.result, c.renew(held))


# Memory


def scratch(c: ScalarBuilder, shape: tuple[int, ...], dtype: DType) -> Stored:
    """Memory for a value of this loop."""
    return Stored(Array(shape, dtype), owned=True)


def in_memory(c: ScalarBuilder, value: Value) -> Stored:
    """A value that is a function of its position, written to memory."""
    held = scratch(c, value.shape, value.dtype)
    with loop(c, [Axis(n) for n in value.shape]) as position:
        c.put(held.array, position, c.p.at(value, position))
    held = c.renew(held)
    c.bind(value, held)
    return held


def write(
    c: ScalarBuilder,
    held: Stored,
    update: Value,
    axes: Sequence[Axis],
    target: Callable[[IndexTuple], IndexTuple],
    combine: str | None = None,
) -> Stored:
    """`held`, with the elements of `update` at the positions of the loops written to `target(position)`.

    Elements that are computed of others of this memory than the one that they replace are all computed
    before the first is written.
    """
    position = tuple(of_var(axis.variable) for axis in axes)
    for axis in axes:
        c.p.live[axis.variable] = frozenset(axis.counts)
    index = held.at(target(position))
    with c.inside():
        value = c.p.at(update, position)
    source: Callable[[IndexTuple], Expr]
    if _reads_elsewhere(value, held.array, index, {axis.variable for axis in axes}):
        copy = scratch(c, update.shape, update.dtype)
        with loop(c, axes) as position:
            c.put(copy.array, position, c.p.at(update, position))
        axes = [again(axis) for axis in axes]
        copy = c.renew(copy)

        def source(position: IndexTuple) -> Expr:
            return c.p.load(copy.array, position, None)

    else:

        def source(position: IndexTuple) -> Expr:
            return c.p.at(update, position)

    with loop(c, axes) as position:
        index = held.at(target(position))
        value = source(position)
        if combine is not None:
            value = EXPANSIONS[combine](c.p.load(held.array, index, None), value)
        c.put(held.array, index, value)
    return c.renew(held)


def again(axis: Axis) -> Axis:
    """Another loop over the same positions."""
    return Axis(axis.variable.extent, axis.trips, axis.counts)


def _reads_elsewhere(value: Expr, array: Array, index: IndexTuple, loops: set[Var]) -> bool:
    """Whether an expression may read an array where another iteration of `loops` writes it."""
    pending, seen = [value], {value}
    while pending:
        node = pending.pop()
        if node.op == "load" and node.attr.array is array and node.attr.index != index:
            pairs = zip(node.attr.index, index, strict=True)
            if not any(_keep_apart(read, written, loops) for read, written in pairs):
                return True
        new = [e for e in node.args if e not in seen]
        seen.update(new)
        pending += new
    return False


def _keep_apart(read: Index, written: Index, loops: set[Var]) -> bool:
    """Whether a position that is the same in all iterations is none of those that are written."""
    if variables(read) & loops:
        return False
    least, most = (written - read).reach()
    return least > 0 or most < 0


def update_window(c: ScalarBuilder, op: Op) -> None:
    """The elements of a window, written in place."""
    base, update, *ends = op.operands
    if base.tensor.size <= FEW and not isinstance(c.p.views.get(base), Stored):
        c.elements(op.result)
        return
    held = c.p.views.get(base)
    if held is None or not held.owned:
        return  # a function of its position
    c.p.check(held)
    windows = dict(zip(op.attrs["axes"], op.attrs["steps"], strict=True))
    axes: list[Axis] = []
    starts: dict[int, Expr] = {}
    for d, n in enumerate(base.shape):
        if d not in windows:
            axes.append(Axis(n))
            continue
        k = op.attrs["axes"].index(d)
        starts[d], trips = bounded_window(c.p, ends, n, windows[d], k)
        c.let(np.array([starts[d], trips], object))
        if trips.op == "const":
            axes.append(Axis(trips.attr))
        else:
            axes.append(Axis(n, trips, [ends[len(windows) + k]]))

    def target(position: IndexTuple) -> IndexTuple:
        return tuple(
            i * windows[d] + as_index(starts[d], 0, base.shape[d] - 1) if d in windows else i
            for d, i in enumerate(position)
        )

    c.bind(op.result, write(c, held, update, axes, target))


def update_part(
    c: ScalarBuilder, op: Op, held: Stored, target: Callable[[IndexTuple], IndexTuple]
) -> None:
    """A large value written to a part of an array in memory."""
    if not held.owned:
        raise Unfit
    update = op.operands[1]
    combine = COMBINE.get(op.attrs.get("combine", "set"))
    axes = [Axis(n) for n in update.shape]
    c.bind(op.result, write(c, held, update, axes, target, combine))


SPILL.append(in_memory)
