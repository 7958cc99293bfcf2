"""Checks that are made at the end of a loop, made by a loop of their own before it.

What can be checked before anything is written may fail with nothing changed: arrays of the caller can
be written where they are. The loop that only checks reads what the other one finds there: an array that
the loop does not write, or of which each iteration reads only the element that it writes itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

import numpy as np

from ..cost import Cost
from ..graph import Graph, Op, Value
from ..types import is_integer
from .dead import eliminate_dead_code
from .failures import failures


def check_first(graph: Graph, arrays: Set[Value]) -> Graph:
    """Give each loop that changes one of `arrays`, and whose flag an `assert` asks, a loop before it,
    which only sets the flag.

        graph f(%x: f64[9]) -> f64[9] {            graph f(%x: f64[9]) -> f64[9] {
          %bad, %y = scan %no, %x { ... }            %bad = scan %no { ... %x ... }
          %ok = invert %bad                          %ok = invert %bad
          %t = assert %ok               ->           %t = assert %ok
          return %y                                  %y = scan %x { ... }
        }                                            return %y
                                                   }

    `graph` itself where there is no such loop, or where the check would be most of its work.
    """
    asked = _asked(graph)
    new = Graph(graph.name)
    new.params = list(graph.params)
    env: dict[Value, Value] = {}
    waiting: list[Op] = []  # the loops that have got one before them, and what needs their results
    late: set[Value] = set()
    due: set[Op] = set()

    def put(op: Op) -> None:
        new.ops.append(op.rebased(env))

    for op in graph.ops:
        flags = [v for v in op.results if v in asked]
        if flags and arrays.isdisjoint(op.operands[op.attrs["consts"] :]):
            flags = []
        first = _checks(op, flags) if flags and late.isdisjoint(op.operands) else None
        if first is not None:
            new.ops.append(first)
            env.update({flag: first.results[flag.index] for flag in flags})
            due.update(check for flag in flags for check in asked[flag])
            waiting.append(op)
            late.update(v for v in op.results if v not in flags)
            continue
        if late.isdisjoint(op.operands):
            put(op)
        else:
            waiting.append(op)
            late.update(op.results)
        due.discard(op)
        if waiting and (not due or (op.has_effect and op in waiting)):
            for each in waiting:
                put(each)
            waiting, late, due = [], set(), set()
    for each in waiting:
        put(each)
    if len(new.ops) == len(graph.ops):
        return graph
    new.outputs = [env.get(v, v) for v in graph.outputs]
    return eliminate_dead_code(new)


def numbers_first(graph: Graph) -> Graph:
    """Move the checks of numbers, with what computes these, to the beginning.

        graph f(%x: f64[9], %n: i64[]) {           graph f(%x: f64[9], %n: i64[]) {
          %y = mul %x, %x                            %ok = lt %n, %most
          %ok = lt %n, %most              ->         %t = assert %ok
          %t = assert %ok                            %y = mul %x, %x

    Effects keep their order: a check that comes after another effect stays behind it, and behind what
    may fail without one, as an index may be out of bounds.
    """
    moved: dict[Op, None] = {}
    for op in graph.ops:
        if not op.has_effect:
            if next(failures([op]), None) is not None:
                break
            continue
        needed = _needed(op, moved)
        if op.name not in ("assert", "create_token") or not all(map(_is_of_numbers, needed)):
            break
        moved.update(dict.fromkeys(op for op in graph.ops if op in needed))
    ops = [*moved, *(op for op in graph.ops if op not in moved)]
    if ops == graph.ops:
        return graph
    new, env = Graph(graph.name), dict[Value, Value]()
    new.params = list(graph.params)
    new.ops = [op.rebased(env) for op in ops]
    new.outputs = [env.get(v, v) for v in graph.outputs]
    return new


def _needed(op: Op, there: Collection[Op]) -> set[Op]:
    """An op and what computes its operands, but for what is there."""
    found, waiting = set[Op](), [op]
    while waiting:
        op = waiting.pop()
        if op not in found and op not in there:
            found.add(op)
            waiting += [v.op for v in op.operands if v.op is not None]
    return found


def _is_of_numbers(op: Op) -> bool:
    values = (*op.operands, *op.results)
    return not op.regions and all(getattr(v.type, "shape", ()) == () for v in values)


def _asked(graph: Graph) -> dict[Value, list[Op]]:
    """Flags of loops, and the checks that they do not hold."""
    found: dict[Value, list[Op]] = {}
    for op in graph.ops:
        if op.name == "assert":
            made = op.operands[0].op
            if made is not None and made.name == "invert":
                flag = made.operands[0]
                if flag.op is not None and flag.op.name == "scan":
                    found.setdefault(flag, []).append(op)
    return found


def _checks(loop: Op, flags: Collection[Value]) -> Op | None:
    """The loop as one that can be run before it for its flags; None if there is none that is cheap, or
    if nothing else is left of the loop then."""
    carries = loop.attrs["carries"]
    if loop.has_effect or len(flags) == len(loop.results):
        return None
    if any(flag.index >= carries for flag in flags):
        return None
    left = Graph("left")
    left.ops = [first := _frozen(loop, []).loop({})]
    left.outputs = [first.results[flag.index] for flag in flags]
    (only,) = eliminate_dead_code(left).ops
    carried = only.operands[only.attrs["consts"] :][: only.attrs["carries"]]
    if any(v.shape for v in carried) or any(map(_is_dear, only.regions[0].walk())):
        return None
    return first


def _is_dear(op: Op) -> bool:
    """Whether it takes longer than to read an element from memory, and another time for the copy."""
    return not op.regions and op.definition.cost >= Cost.FUNCTION


class _Frozen:
    """A loop whose body reads some carried arrays as they are before the loop: in new parameters, behind
    those of what is the same in all iterations."""

    def __init__(self, old: Op, region: Graph, taken: list[int]) -> None:
        self.old, self.region, self.taken = old, region, taken

    def loop(self, start: Mapping[Value, Value], env: Mapping[Value, Value] | None = None) -> Op:
        """The op, where arrays of `start` are read as others."""
        old, env = self.old, env or {}
        consts = old.attrs["consts"]
        given = [old.operands[consts + k] for k in self.taken]
        before = [start.get(v, env.get(v, v)) for v in given]
        plain = [env.get(v, v) for v in old.operands]
        attrs = {**old.attrs, "consts": consts + len(given)}
        operands = (*plain[:consts], *before, *plain[consts:])
        new = Op(old.definition, operands, attrs, (self.region,), old.loc)
        new.results = tuple([Value(v.type, new, v.index, v.name) for v in old.results])
        return new


def _frozen(loop: Op, around: Sequence[Collection[Value]]) -> _Frozen:
    """The loop with arrays in the place of those carried ones of which an iteration reads only what it
    writes. `around`: what counts in each of the loops around."""
    region, consts = loop.regions[0], loop.attrs["consts"]
    constant = [*zip(region.params, loop.operands, strict=True)][:consts]
    counts: list[Collection[Value]] = [{p for p, v in constant if v in c} for c in around]
    params = region.params[consts : consts + loop.attrs["carries"]]
    pairs = [*zip(params, region.outputs, strict=False)]
    counts.append({p for p, end in pairs if _counts(loop, p, end)})
    inner = {op: _frozen(op, counts) for op in region.ops if op.name == "scan"}
    taken = [k for k, pair in enumerate(pairs) if _is_own(*pair, region, counts, inner)]
    if not taken and not any(frozen.taken for frozen in inner.values()):
        return _Frozen(loop, region, [])
    new = Graph(region.name)
    start = {params[k]: Value(params[k].type, None, 0, params[k].name) for k in taken}
    new.params = [*region.params[:consts], *start.values(), *region.params[consts:]]
    new.params = [Value(p.type, None, i, p.name) for i, p in enumerate(new.params)]
    start = dict(zip(start, new.params[consts:], strict=False))
    rest = [*new.params[:consts], *new.params[consts + len(taken) :]]
    env = dict(zip(region.params, rest, strict=True))
    for op in region.ops:
        if op in inner:
            made = inner[op].loop(start, env)
        elif op.name == "gather":
            x = op.operands[0]
            made = op.with_operands([start.get(x, env.get(x, x)), *_in(env, op.operands[1:])])
        else:
            made = op.with_operands(_in(env, op.operands))
        env.update(zip(op.results, made.results, strict=True))
        new.ops.append(made)
    new.outputs = _in(env, region.outputs)
    return _Frozen(loop, new, taken)


def _in(env: Mapping[Value, Value], values: Sequence[Value]) -> list[Value]:
    return [env.get(v, v) for v in values]


def _is_own(
    param: Value,
    end: Value,
    region: Graph,
    counts: Sequence[Collection[Value]],
    inner: Mapping[Op, _Frozen],
) -> bool:
    """Whether a carried array is read only where this iteration writes it, which no other one does."""
    write = end.op
    if write is None or not param.shape or write.operands.count(param) != 1:
        return False
    reads = [op for op in region.ops if param in op.operands and op is not write]
    if write in inner:
        place = write.operands.index(param) - write.attrs["consts"]
        return not reads and place == end.index and place in inner[write].taken
    if write.name != "scatter" or write.operands[0] is not param:
        return False
    where = write.operands[2:]
    each = all(any(v in counting and not v.shape for v in where) for counting in counts)
    fits = write.attrs["combine"] == "set" and write.attrs["mode"] == "check"
    return each and fits and all(_is_there(op, write) for op in reads)


def _is_there(read: Op, write: Op) -> bool:
    """Whether an element is read where one is written."""
    return (
        read.name == "gather"
        and read.operands == (write.operands[0], *write.operands[2:])
        and all(read.attrs[name] == write.attrs[name] for name in ("axes", "mode"))
    )


def _counts(loop: Op, param: Value, end: Value) -> bool:
    """Whether a carry goes through integers that are not negative: each is another place."""
    op, start = end.op, loop.operands[param.index].op
    if op is None or op.name != "add" or start is None or start.name != "constant":
        return False
    steps = [v.op for v in op.operands if v is not param]
    if param.shape or len(steps) != 1 or steps[0] is None or steps[0].name != "constant":
        return False
    first, step = (int(np.asarray(x.attrs["value"]).item()) for x in (start, steps[0]))
    return is_integer(param.dtype) and first >= 0 and step > 0
