"""Which op of a graph fails first? Asked by `try`, whose handlers run where one does.

    graph f(%x: f64[3], %i: i64[])             graph f(%x: f64[3], %i: i64[])
      %y = gather %x, %i mode="check"    ->      %in = (-3 <= %i) and (%i < 3)
      return %y                                  return select %in, -1, 0

Ops that may fail become ops that do not, of which the rest is computed all the same: an index is
clipped, a matrix that has no inverse gives NaN. Loops and functions that call themselves have the number
among what they carry and give, and end when something in them has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from ..build import Builder
from ..graph import Graph, Op, Value
from ..opdef import OPS
from ..ops.control.effects import ERRORS
from ..types import BOOL, I32, I64, TOKEN, TensorType, Type, is_inexact

NONE = -1  # the number where nothing fails


def failures(
    ops: Sequence[Op], labels: tuple[str, ...] = ()
) -> Iterator[tuple[Op, type[BaseException]]]:
    """The ops that may raise, those in regions too, and what; Exception where nobody knows. `labels` are
    those of the recursive functions that the ops are in: calls of others raise what these do."""
    for op in ops:
        inside = (*labels, op.attrs["label"]) if op.name == "recursion" else labels
        for region in op.regions:
            yield from failures(region.ops, inside)
        if op.name == "assert":
            yield op, ERRORS[op.attrs.get("error", "AssertionError")]
        elif op.attrs.get("mode") == "check":
            yield op, IndexError if "axes" in op.attrs else np.linalg.LinAlgError
        elif op.name == "recursion":
            yield op, RecursionError
        elif (error := exception_of(op)) is not None:
            yield op, type(error)
        elif _is_unknown(op, labels):
            yield op, Exception


def exception_of(op: Op) -> Exception | None:
    """The exception that an op raises whenever it runs: a user's `raise` of a class of his own."""
    function = op.attrs.get("function")
    return None if function is None else function.raises


def _is_unknown(op: Op, labels: tuple[str, ...]) -> bool:
    """Whether it calls what may raise anything."""
    if op.name == "recurse":
        return op.attrs["label"] not in labels
    return "function" in op.attrs and op.attrs["function"].name not in ("print", "debug_print")


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
    if not op.definition.effect or op.name == "assert" or exception_of(op) is not None:
        return False
    reads: Callable[[Op], bool] | None = op.definition.extra.get("reads")
    return reads is None or not reads(op)


def _everything(op: Op) -> Iterator[Op]:
    """The ops in the regions of one, and in theirs."""
    for region in op.regions:
        for inner in region.ops:
            yield inner
            yield from _everything(inner)


def _telling(
    graph: Graph,
    numbers: Mapping[Op, int],
    ops: Sequence[Op] | None = None,
    *,
    goes_on: bool = False,
) -> Graph:
    """`graph`, with that number as one more output; or the number alone, as some of its ops tell it.
    If it `goes_on`, the first parameter is the number that was found before."""
    new = Graph(graph.name)
    before = new.add_param(TensorType((), I64)) if goes_on else None
    env = {v: new.add_param(v.type, v.name) for v in graph.params}
    b = Builder(new)
    none = b.const(np.int64(NONE), I64)
    which = none if before is None else before
    for op in graph.ops if ops is None else ops:
        tell = _TELLING.get(op.name)
        if tell is not None and any(one in numbers for one in (op, *_within(op))):
            number, results = tell(b, op, [env[v] for v in op.operands], numbers, which)
            env.update(zip(op.results, results, strict=True))
        elif op in numbers:
            number = b.select(_fine(b, op, env), none, b.const(np.int64(numbers[op]), I64))
        elif op.name in _ENDLESS and which is not none:
            made = _if_fine(b, which, op, [env[v] for v in op.operands])
            env.update(zip(op.results, made, strict=True))
            continue
        else:
            b.copy(op, env)
            continue
        which = number if which is none else b.select(b.ne(which, none), which, number)
    new.outputs = [*(env[v] for v in graph.outputs if ops is None), which]
    return new


# Each of these tells of an op with regions: it gives the number, and what the op gives.
Told = tuple[Value, Sequence[Value]]


def _tell_cond(
    b: Builder, op: Op, given: Sequence[Value], numbers: Mapping[Op, int], before: Value
) -> Told:
    regions = [_telling(region, numbers, goes_on=True) for region in op.regions]
    index, *operands = given
    *results, which = b.append(op.definition, [index, before, *operands], op.attrs, regions).results
    return which, results


def _tell_while(
    b: Builder, op: Op, given: Sequence[Value], numbers: Mapping[Op, int], before: Value
) -> Told:
    """Whether it goes on is computed where the carry is, as asking it may fail: a loop that has failed
    does not go on."""
    consts, (test, body) = op.attrs["consts"], (_telling(region, numbers) for region in op.regions)
    fixed = given[:consts]
    goes_on, which = b.inline(test, given)
    which = b.select(_is_none(b, before), which, before)

    new_test, new_body = Graph("cond"), Graph("body")
    params = [new_test.add_param(v.type) for v in (*given, goes_on, which)]
    inner = Builder(new_test, op.loc)
    new_test.outputs = [inner.op("bitwise_and", params[-2], _is_none(inner, params[-1]))]
    params = [new_body.add_param(v.type) for v in (*given, goes_on, which)]
    inner = Builder(new_body, op.loc)
    *carry, failed = inner.inline(body, params[: len(given)])
    again, asked = inner.inline(test, [*params[:consts], *carry])
    failed = inner.select(_is_none(inner, failed), asked, failed)
    new_body.outputs = [*carry, again, failed]
    operands = [*fixed, *given[consts:], goes_on, which]
    *results, _, number = b.append(op.definition, operands, op.attrs, [new_test, new_body]).results
    return number, results


def _tell_scan(
    b: Builder, op: Op, given: Sequence[Value], numbers: Mapping[Op, int], before: Value
) -> Told:
    """An iteration after one that has failed does nothing."""
    consts, carries = op.attrs["consts"], op.attrs["carries"]
    first, told = consts + carries, _telling(op.regions[0], numbers)
    body = Graph("body")
    params = [body.add_param(v.type) for v in op.regions[0].params[:first]]
    so_far = body.add_param(before.type)
    params += [body.add_param(v.type) for v in op.regions[0].params[first:]]
    inner = Builder(body, op.loc)

    def run(b: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        return b.inline(told, operands)

    types = [v.type for v in told.outputs]
    kept = [*params[consts:first], *(None for _ in types[carries:-1]), so_far]
    *outs, number = _chosen(inner, so_far, params, types, kept, run)
    body.outputs = [*outs[:carries], number, *outs[carries:]]
    operands = [*given[:first], before, *given[first:]]
    attrs = {**op.attrs, "carries": carries + 1}
    found = b.append(op.definition, operands, attrs, [body]).results
    return found[carries], [*found[:carries], *found[carries + 1 :]]


def _tell_recursion(
    b: Builder, op: Op, given: Sequence[Value], numbers: Mapping[Op, int], before: Value
) -> Told:
    """Each call tells whether it has failed; after one that has, none is made."""
    label = op.attrs["label"]
    calls = [
        one for one in op.regions[0].walk() if one.name == "recurse" and one.attrs["label"] == label
    ]
    told = _telling(op.regions[0], {**numbers, **dict.fromkeys(calls, NONE)})
    *outs, number = told.outputs
    at = _results(op, outs)
    told.outputs = [*outs[:at], number, *outs[at:]]

    def call(b: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        return b.append(op.definition, operands, op.attrs, [told]).results

    types = [v.type for v in told.outputs]
    kept = _kept(types, given, op.attrs["states"])
    results = _chosen(b, before, given, types, kept, call)
    return results[at], [*results[:at], *results[at + 1 :]]


def _tell_recurse(
    b: Builder, op: Op, given: Sequence[Value], numbers: Mapping[Op, int], before: Value
) -> Told:
    at = _results(op, op.results)
    attrs = dict(op.attrs)
    attrs["dtypes"], attrs["shapes"] = (*attrs["dtypes"], "i64"), (*attrs["shapes"], ())

    def call(b: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        return b.append(op.definition, operands, attrs).results

    types = [*(v.type for v in op.results[:at]), before.type, *(v.type for v in op.results[at:])]
    kept = _kept(types, given, op.attrs["states"])
    results = _chosen(b, before, given, types, kept, call)
    return results[at], [*results[:at], *results[at + 1 :]]


_TELLING: dict[str, Callable[..., Told]] = {
    "cond": _tell_cond,
    "while": _tell_while,
    "scan": _tell_scan,
    "recursion": _tell_recursion,
    "recurse": _tell_recurse,
}
_ENDLESS = ("while", "recursion", "recurse")  # may not end where values are not what they should be


def _results(op: Op, values: Sequence[Value]) -> int:
    """How many of the values that a recursive function gives are neither states nor a token."""
    return len(values) - op.attrs["states"] - sum(v.type is TOKEN for v in values)


def _kept(types: Sequence[Type], given: Sequence[Value], states: int) -> list[Value | None]:
    """What a call that is not made gives, where it gives back what it was given."""
    end = len(types) - sum(t is TOKEN for t in types)
    behind = given[len(given) - (len(types) - (end - states)) :]
    return [*(None for _ in range(end - states)), *behind]


def _if_fine(b: Builder, which: Value, op: Op, given: Sequence[Value]) -> Sequence[Value]:
    """What an op gives if nothing has failed yet."""

    def call(b: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        return b.append(op.definition, operands, op.attrs, op.regions).results

    types = [v.type for v in op.results]
    if op.name == "while":
        kept: list[Value | None] = [*given[op.attrs["consts"] :]]
    else:
        kept = _kept(types, given, op.attrs["states"])
    return _chosen(b, which, given, types, kept, call)


def _chosen(
    b: Builder,
    which: Value,
    given: Sequence[Value],
    types: Sequence[Type],
    kept: Sequence[Value | None],
    run: Callable[[Builder, Sequence[Value]], Sequence[Value]],
) -> Sequence[Value]:
    """`run(b, given)` where nothing has failed, else what is `kept`; zeros for None."""
    if which.op is not None and which.op.name == "const":  # nothing before it may fail
        return run(b, given)
    off, on = Graph("failed"), Graph("fine")
    operands = list(dict.fromkeys((*given, *(v for v in kept if v is not None))))
    own = {region: {v: region.add_param(v.type) for v in operands} for region in (off, on)}
    zeros = Builder(off)
    off.outputs = [
        zeros.zeros(type) if v is None else own[off][v] for type, v in zip(types, kept, strict=True)
    ]
    on.outputs = list(run(Builder(on), [own[on][v] for v in given]))
    index = b.convert(_is_none(b, which), dtype=I32)
    return b.append(OPS["cond"], [index, *operands], {}, [off, on]).results


def _is_none(b: Builder, which: Value) -> Value:
    return b.eq(which, b.const(np.int64(NONE), I64))


def _fine(b: Builder, op: Op, env: dict[Value, Value]) -> Value:
    """Whether an op does not fail. An op that never does stands for it afterwards."""
    operands = [env[v] for v in op.operands]
    if op.name == "assert":
        env[op.results[-1]] = operands[-1]
        return operands[0]
    if exception_of(op) is not None:
        env[op.results[-1]] = operands[-1]
        return b.const(np.bool_(False), BOOL)
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
    """The ops in branches and loops, and in those in them."""
    for region in op.regions:
        for inner in region.ops:
            yield inner
            if inner.name in _TELLING:
                yield from _within(inner)


def tellable(ops: Sequence[Op]) -> Iterator[Op]:
    """The ops that `first_failure` can tell of: not what callbacks do."""
    for op in ops:
        if op.name in _TELLING:
            for region in op.regions:
                yield from tellable(region.ops)
        elif op.name == "assert" or op.attrs.get("mode") == "check" or exception_of(op) is not None:
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
