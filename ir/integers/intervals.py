"""Between which integers the elements of a value lie: an index known to be in range needs no check.

    select(c, 4, 0) + (x & 3)                         0, 7
    lo, hi = 0, n                                     what a loop carries, at the start of each iteration
    while lo < hi:                                    and after the last: 0 <= lo, hi <= n
        middle = (lo + hi) // 2                       and so 0 <= middle < n
        lo, hi = (middle + 1, hi) if c else (lo, middle)

What a loop carries is found by going through its body until nothing more comes in; ends that go on
growing are moved to the next number that the loop speaks of, and then to the end of the dtype. A
condition, a branch and a check that held narrow what they ask about.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..chains import step_of
from ..graph import Graph, Op, Value
from ..types import BOOL, TensorType
from .interval_rules import ARITHMETIC, LEAVES, OPPOSITE, RULES, TRUE, Interval, product, union
from .positions import positions

DEPTH = 128  # ops that are looked through, one behind the other
TURNS = 6  # through a loop's body, after which ends that still grow are those of the dtype


class OfLoop(NamedTuple):
    """What is known of the parameters of a loop's condition and body, and of the results."""

    condition: dict[Value, Interval]
    body: dict[Value, Interval]
    results: dict[Value, Interval]


def interval(value: Value, known: Mapping[Value, Interval] | None = None) -> Interval:
    """The least and the largest element that a value of integers or truths may have.

    What is not known to be less is all that the dtype holds. `known` are those of some values.
    """
    return _of(value, dict(known or {}), DEPTH)


def remembered(value: Value, known: dict[Value, Interval]) -> Interval:
    """The same, where `known` takes up what is found out: for many values of one graph."""
    return _of(value, known, DEPTH)


def of_loop(op: Op, known: dict[Value, Interval]) -> OfLoop:
    """What is known of the integers that a `while`, `lanes_while` or `scan` carries."""
    return _of_loop(op, known, DEPTH)


def fits(value: Value, known: dict[Value, Interval]) -> bool:
    """Whether what an op of integers computes surely is in the dtype of its result. `known` takes up
    what is found out."""
    if value.op is None:
        return False
    bounds = _bounds(value, value.op, known, DEPTH)
    low, high = _whole(value)
    return bounds is not None and low <= bounds[0] and bounds[1] <= high


def _of(value: Value, intervals: dict[Value, Interval], depth: int) -> Interval:
    interval = intervals.get(value)
    if interval is None:
        low, high = interval = _whole(value)
        bounds = _bounds(value, value.op, intervals, depth - 1) if value.op and depth else None
        if bounds is not None and low <= bounds[0] and bounds[1] <= high:
            interval = bounds
        intervals[value] = interval
    return interval


def _whole(value: Value) -> Interval:
    if value.dtype == BOOL:
        return 0, 1
    info = np.iinfo(value.dtype)
    return int(info.min), int(info.max)


def _bounds(value: Value, op: Op, intervals: dict[Value, Interval], depth: int) -> Interval | None:
    if op.name == "cond":
        last = len(op.regions) - 1
        first, stop = (min(max(k, 0), last) for k in _of(op.operands[0], intervals, depth))
        taken = range(first, stop + 1)
        return union(*(_of_branch(value, op, k, intervals, depth) for k in taken))
    if op.name in ("while", "scan"):
        found = _of_loop(op, intervals, depth).results
        intervals.update({v: found.get(v, _whole(v)) for v in op.results if _is_counted(v)})
        return found.get(value)
    if op.name == "constant":
        data = op.attrs["value"]
        return (int(data.min()), int(data.max())) if data.size else None
    if op.name == "iota":
        return 0, max(op.result.shape[op.attrs["axis"]] - 1, 0)
    if op.name in ("argmax", "argmin", "argsort"):
        return 0, max(op.operands[0].shape[op.attrs["axis"]] - 1, 0)
    if op.name in ("max", "min", "sum") and op.operands[0].dtype.kind in "biu":
        (source,) = op.operands
        parts = source.tensor.size // max(op.result.tensor.size, 1)
        return product(
            _of(source, intervals, depth), (parts, parts) if op.name == "sum" else (1, 1)
        )
    if op.definition.view or op.name in ("convert", "bitcast"):
        (source,) = op.operands
        same = source.dtype.itemsize == value.dtype.itemsize or op.name != "bitcast"
        return _of(source, intervals, depth) if source.dtype.kind in "biu" and same else None
    if op.name in ("gather", "dynamic_slice", "sort") and op.attrs.get("mode") != "fill":
        return _of(op.operands[0], intervals, depth)
    if op.name == "bounded_slice":
        return union(_of(op.operands[0], intervals, depth), (0, 0))
    if op.name == "select":
        return union(*(_of(v, intervals, depth) for v in op.operands[1:]))
    return _by_rule(op, intervals, depth)


def _by_rule(op: Op, intervals: dict[Value, Interval], depth: int) -> Interval | None:
    exact = ARITHMETIC.get(op.name.removesuffix("_fits")) if op.name.endswith("_fits") else None
    rule = exact or RULES.get(op.name)
    if rule is None or op.operands[0].dtype.kind not in "iu":
        return None
    bounds = rule(*(_of(v, intervals, depth) for v in op.operands))
    if exact is None or bounds is None:
        return bounds
    low, high = _whole(op.operands[0])
    return TRUE if low <= bounds[0] and bounds[1] <= high else None


def _is_counted(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.dtype.kind in "biu"


# Branches.


def _of_branch(
    value: Value, op: Op, k: int, intervals: dict[Value, Interval], depth: int
) -> Interval:
    """What the k-th branch gives for one of the results."""
    region = op.regions[k]
    flag = _flag(op)
    narrowed = {} if flag is None else dict(_assumed(flag, k == 1, intervals, depth))
    of_params = {}
    for p, v in zip(region.params, op.operands[1:], strict=True):
        if _is_counted(p) and _is_counted(v):
            of_params[p] = narrowed[v] if v in narrowed else _of(v, intervals, depth)
    _assume_checks(region, of_params, depth)
    return _of(region.outputs[value.index], of_params, depth)


def _flag(op: Op) -> Value | None:
    """The truth that tells between two branches."""
    index = op.operands[0].op
    if len(op.regions) != 2 or index is None or index.name != "convert":
        return None
    (flag,) = index.operands
    return flag if flag.dtype == BOOL and not flag.shape else None


def _assume_checks(region: Graph, intervals: dict[Value, Interval], depth: int) -> None:
    """What is known of the values of a region that comes to its end."""
    for op in region.ops:
        if op.name == "assert":
            intervals.update(_assumed(op.operands[0], True, intervals, depth))


def _assumed(
    flag: Value, holds: bool, intervals: dict[Value, Interval], depth: int
) -> Iterator[tuple[Value, Interval]]:
    """What is known where a truth holds, or where it does not."""
    op = flag.op
    if op is None or not depth or flag.shape or flag.dtype != BOOL:
        return
    if op.name in LEAVES and op.operands[0].dtype.kind in "iu":
        name = op.name if holds else OPPOSITE[op.name]
        x, y = op.operands
        ends = LEAVES[name](_of(x, intervals, depth), _of(y, intervals, depth))
        for v, (low, high) in zip((x, y), ends, strict=True):
            if low <= high:
                yield from _narrowed(v, (low, high), intervals)
    elif op.name == ("bitwise_and" if holds else "bitwise_or"):
        for v in op.operands:
            yield from _assumed(v, holds, intervals, depth - 1)
    elif op.name == "invert":
        yield from _assumed(op.operands[0], not holds, intervals, depth - 1)
    elif op.name == "cond":
        yield from _assumed_both(op, flag, holds, intervals, depth)


def _assumed_both(
    op: Op, flag: Value, holds: bool, intervals: dict[Value, Interval], depth: int
) -> Iterator[tuple[Value, Interval]]:
    """`first and second` holds, or `first or second` does not: both are as they are."""
    first = _flag(op)
    short, other = op.regions[not holds], op.regions[holds]
    out = short.outputs[flag.index]
    if first is None:
        return
    if out.op is None:
        known = op.operands[1 + short.params.index(out)] is first
    else:
        known = out.op.name == "constant" and bool(out.op.attrs["value"]) is not holds
    if not known:
        return
    yield from _assumed(first, holds, intervals, depth - 1)
    pairs = [p for p in zip(other.params, op.operands[1:], strict=True) if all(map(_is_counted, p))]
    inner = {p: _of(v, intervals, depth - 1) for p, v in pairs}
    outer = dict(pairs)
    for p, found in _assumed(other.outputs[flag.index], holds, inner, depth - 1):
        if p in outer:
            yield outer[p], found


def _narrowed(
    value: Value, found: Interval, intervals: Mapping[Value, Interval]
) -> Iterator[tuple[Value, Interval]]:
    """What is known of a value, and of what it was computed of: of x where x + 3 is known."""
    yield value, found
    op = value.op
    if op is None or op.name not in ("add", "sub", "bitcast"):
        return
    x, *others = op.operands
    if op.name == "bitcast":
        moved, same = found, x.dtype.kind in "iu" and x.dtype.itemsize == value.dtype.itemsize
    else:
        step = others[0].op
        same = step is not None and step.name == "constant" and not step.result.shape
        by = int(step.attrs["value"]) if same and step is not None else 0
        moved = (
            (found[0] - by, found[1] - by) if op.name == "add" else (found[0] + by, found[1] + by)
        )
    low, high = _whole(x) if same else (0, -1)
    if low <= moved[0] and moved[1] <= high:
        before = intervals.get(x, (low, high))
        both = max(before[0], moved[0]), min(before[1], moved[1])
        if both[0] <= both[1]:
            yield from _narrowed(x, both, intervals)


# Loops.


def _of_loop(op: Op, intervals: dict[Value, Interval], depth: int) -> OfLoop:
    first = op.attrs["consts"]
    stop = first + op.attrs.get("carries", len(op.operands) - first)
    given = [_of(v, intervals, depth) if _is_counted(v) else None for v in op.operands]
    counted = _counters(op, given)
    state = [counted.get(k, known) for k, known in enumerate(given[first:stop])]
    body, inner = op.regions[-1], depth // 4
    marks = _landmarks(op, given)
    outs: list[Interval | None] = []
    placed = dict(positions(op, lambda v: _of(v, intervals, depth)))
    for turn in range(TURNS + len(state) + 1):
        condition, own = _entered(op, [*given[:first], *state, *given[stop:]], inner)
        own.update(placed)
        known = dict(own)
        _assume_checks(body, known, inner)
        outs = [_of(v, known, inner) if _is_counted(v) else None for v in body.outputs]
        moved = [
            _widened(old, new, v, marks if turn < TURNS else [])
            for old, new, v in zip(state, outs, op.operands[first:stop], strict=False)
        ]
        moved = [counted.get(k, known) for k, known in enumerate(moved)]
        if moved == state:
            break
        state = moved
    else:
        return OfLoop({}, {}, {})
    last = dict(condition)
    if op.name != "scan":
        last.update(_assumed(op.regions[0].outputs[0], False, last, inner))
    else:
        ends = [union(x, y) if x and y else None for x, y in zip(state, outs, strict=False)]
        there = zip(body.params, [*given[:first], *ends], strict=False)
        last = {param: found for param, found in there if found is not None}
    results = [last.get(p) for p in op.regions[0].params[first:stop]] + outs[stop - first :]
    pairs = zip(op.results, results, strict=False)
    return OfLoop(condition, own, {v: found for v, found in pairs if found is not None})


def _counters(op: Op, given: Sequence[Interval | None]) -> dict[int, Interval]:
    """The carries of a `scan` to which each iteration adds a number, where iterations begin."""
    if op.name != "scan":
        return {}
    (body,), first = op.regions, op.attrs["consts"]
    found: dict[int, Interval] = {}
    for k, output in enumerate(body.outputs[: op.attrs["carries"]]):
        param, start = body.params[first + k], given[first + k]
        step = None if start is None else step_of(output, param)
        if step is not None and start is not None:
            moved = step * max(op.attrs["length"] - 1, 0)
            low, high = _whole(param)
            bounds = start[0] + min(moved, 0), start[1] + max(moved, 0)
            if low <= bounds[0] + min(step, 0) and bounds[1] + max(step, 0) <= high:
                found[k] = bounds
    return found


def _entered(
    op: Op, given: Sequence[Interval | None], depth: int
) -> tuple[dict[Value, Interval], dict[Value, Interval]]:
    """What is known where a loop asks its condition, and where an iteration begins."""

    def of(region: Graph) -> dict[Value, Interval]:
        pairs = zip(region.params, given, strict=False)
        return {p: known for p, known in pairs if known is not None and _is_counted(p)}

    body = of(op.regions[-1])
    if op.name == "scan":
        return {}, body
    test = op.regions[0]
    condition = of(test)
    position = {p: k for k, p in enumerate(test.params)}
    for v, found in _assumed(test.outputs[0], True, dict(condition), depth):
        if v in position:
            body[op.regions[-1].params[position[v]]] = found
    return condition, body


def _widened(
    old: Interval | None, new: Interval | None, value: Value, marks: Sequence[int]
) -> Interval | None:
    """Both, and where an end moved up to the next of `marks`, or to the end of the dtype."""
    if old is None or new is None:
        return None
    low, high = union(old, new)
    least, most = _whole(value)
    if low < old[0]:
        k = bisect_right(marks, low)
        low = marks[k - 1] if k else least
    if high > old[1]:
        k = bisect_left(marks, high)
        high = marks[k] if k < len(marks) else most
    return max(low, least), min(high, most)


def _landmarks(op: Op, given: Sequence[Interval | None]) -> list[int]:
    """Numbers that a loop speaks of, and their neighbours."""
    numbers = {0}
    for known in given:
        numbers.update(known or ())
    for region in op.regions:
        for inner in region.ops:
            if inner.name == "constant" and inner.attrs["value"].dtype.kind in "iu":
                numbers.update(inner.attrs["value"].reshape(-1)[:1].tolist())
    return sorted({n + by for n in numbers for by in (-1, 0, 1)})
