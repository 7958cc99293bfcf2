"""Which op of a graph fails first? Asked by `try`, whose handlers run where one does.

    graph f(%x: f64[3], %i: i64[])             graph f(%x: f64[3], %i: i64[])
      %y = gather %x, %i mode="check"    ->      %in = (-3 <= %i) and (%i < 3)
      return %y                                  return select %in, -1, 0

Ops that may fail become ops that do not, of which the rest is computed all the same: an index is
clipped, a matrix that has no inverse gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from ..build import Builder
from ..graph import Graph, Op, Value
from ..ops.control.effects import ERRORS
from ..types import I64, TOKEN, is_inexact


def failures(ops: Sequence[Op]) -> Iterator[tuple[Op, type[BaseException]]]:
    """The ops that may raise, those in regions too, and what; Exception where nobody knows."""
    for op in ops:
        for region in op.regions:
            yield from failures(region.ops)
        if op.name == "assert":
            yield op, ERRORS[op.attrs.get("error", "AssertionError")]
        elif op.attrs.get("mode") == "check":
            yield op, IndexError if "axes" in op.attrs else np.linalg.LinAlgError
        elif op.name == "recursion":
            yield op, RecursionError
        elif "function" in op.attrs and op.attrs["function"].name not in ("print", "debug_print"):
            yield op, Exception


def message(op: Op) -> str | None:
    """What the exception of an op that failed says, if that does not depend on values."""
    if op.name == "assert":
        return op.attrs["message"] if len(op.operands) == 2 else None
    said: str | None = op.definition.extra.get("failure")
    return said


def first_failure(graph: Graph, numbers: Mapping[Op, int]) -> Graph:
    """A graph with the parameters of `graph` and one result: the number of the first of these ops that
    fails, and -1 if none does. If `graph` gives a token, that is a result before it."""
    last = _last(graph.ops, numbers)
    new = _telling(graph, numbers, graph.ops[: last + 1])
    tokens = [v for op in new.ops for v in op.results if v.type is TOKEN]
    tokens = [*(p for p in new.params if p.type is TOKEN), *tokens][-1:] if graph.outputs else []
    new.outputs = [*tokens, new.outputs[-1]]
    return new


def changes_before(ops: Sequence[Op], failing: Collection[Op]) -> Op | None:
    """An op that changes something before it is known whether the last of these fails, or None."""
    ops = ops[: _last(ops, failing) + 1]
    within = [inner for op in ops for inner in (op, *_everything(op))]
    return next((op for op in within if _changes(op)), None)


def _last(ops: Sequence[Op], failing: Collection[Op]) -> int:
    """The place of the last op that is one of these, or has one inside."""
    found = (
        k for k, op in enumerate(ops) if op in failing or any(i in failing for i in _within(op))
    )
    return max(found, default=-1)


def _changes(op: Op) -> bool:
    if not op.definition.effect or op.name == "assert":
        return False
    reads: Callable[[Op], bool] | None = op.definition.extra.get("reads")
    return reads is None or not reads(op)


def _everything(op: Op) -> Iterator[Op]:
    """The ops in the regions of one, and in theirs."""
    for region in op.regions:
        for inner in region.ops:
            yield inner
            yield from _everything(inner)


def _telling(graph: Graph, numbers: Mapping[Op, int], ops: Sequence[Op] | None = None) -> Graph:
    """`graph`, with that number as one more output; or the number alone, as some of its ops tell it."""
    new = Graph(graph.name)
    env = {v: new.add_param(v.type, v.name) for v in graph.params}
    b = Builder(new)
    none = b.const(np.int64(-1), I64)
    told: list[Value] = []  # the number of each op that fails
    for op in graph.ops if ops is None else ops:
        if op.name == "cond" and any(one in numbers for one in _within(op)):
            regions = [_telling(region, numbers) for region in op.regions]
            made = b.append(op.definition, [env[v] for v in op.operands], op.attrs, regions)
            env.update(zip(op.results, made.results, strict=False))
            told.append(made.results[-1])
        elif op in numbers:
            told.append(b.select(_fine(b, op, env), none, b.const(np.int64(numbers[op]), I64)))
        else:
            b.copy(op, env)
    which = none
    for number in reversed(told):
        which = b.select(b.ne(number, none), number, which)
    new.outputs = [*(env[v] for v in graph.outputs if ops is None), which]
    return new


def _fine(b: Builder, op: Op, env: dict[Value, Value]) -> Value:
    """Whether an op does not fail. An op that never does stands for it afterwards."""
    operands = [env[v] for v in op.operands]
    if op.name == "assert":
        env[op.results[-1]] = operands[-1]
        return operands[0]
    if "axes" not in op.attrs:
        made = b.append(op.definition, operands, {**op.attrs, "mode": "fill"})
        env.update(zip(op.results, made.results, strict=True))
        return b.op("bitwise_or", b.invert(_some_nan(b, made.results)), _some_nan(b, operands))
    sizes = [operands[0].shape[axis] for axis in op.attrs["axes"]]
    first = len(operands) - len(sizes)
    pairs = list(zip(operands[first:], sizes, strict=True))
    if 0 in sizes:  # there is no element to be had
        env[op.result] = b.zeros(op.result.tensor)
    else:
        operands[first:] = [_from_start(b, index, size) for index, size in pairs]
        options = {**op.attrs, "mode": "clip", "names": ()}
        env[op.result] = b.append(op.definition, operands, options).result
    return _all(b, [_inside(b, index, size) for index, size in pairs])


def _within(op: Op) -> Iterator[Op]:
    """The ops in branches of a `cond`, and in those of others in them."""
    for region in op.regions:
        for inner in region.ops:
            yield inner
            if inner.name == "cond":
                yield from _within(inner)


def tellable(ops: Sequence[Op]) -> Iterator[Op]:
    """The ops that `first_failure` can tell of: not what callbacks do, or loops."""
    for op in ops:
        if op.name == "cond":
            yield from tellable(list(_within(op)))
        elif op.name == "assert" or op.attrs.get("mode") == "check":
            yield op


def _inside(b: Builder, index: Value, size: int) -> Value:
    low, high = b.full_like(index, -size), b.full_like(index, size)
    return b.op("bitwise_and", b.ge(index, low), b.lt(index, high))


def _from_start(b: Builder, index: Value, size: int) -> Value:
    zero, n = b.full_like(index, 0), b.full_like(index, size)
    return b.select(b.lt(index, zero), b.add(index, n), index)


def _some_nan(b: Builder, values: Sequence[Value]) -> Value:
    tests = [b.op("isnan", x) for x in values if is_inexact(x.dtype)]
    return b.invert(_all(b, [b.invert(test) for test in tests]))


def _all(b: Builder, tests: Sequence[Value]) -> Value:
    whole = [b.op("all", t, axes=tuple(range(len(t.shape)))) if t.shape else t for t in tests]
    out = whole[0]
    for test in whole[1:]:
        out = b.op("bitwise_and", out, test)
    return out
