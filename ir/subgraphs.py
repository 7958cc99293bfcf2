"""Parts of a graph: what follows from values, what they need, and a graph of its own for either."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from .build import Builder
from .graph import Graph, Op, Value


def readers(ops: Iterable[Op], values: Iterable[Value]) -> set[Op]:
    """The ops that read `values`, directly or not."""
    dependent = set(values)
    ops_reading = set()
    for op in ops:
        if not dependent.isdisjoint(op.operands):
            dependent.update(op.results)
            ops_reading.add(op)
    return ops_reading


def reached(
    ops: Sequence[Op], ends: Iterable[Value], stop: Collection[Value] = (), effects: bool = False
) -> tuple[set[Op], set[Value]]:
    """The ops that `ends` depend on without looking beyond `stop`, and those of `stop` they read.

    With `effects` the ops that have effects, too.
    """
    values = set(ends)
    needed = set()
    for op in reversed(ops):
        if any(v in values and v not in stop for v in op.results) or (effects and op.has_effect):
            needed.add(op)
            values.update(op.operands)
    return needed, {v for v in values if v in stop}


Sources = dict[Value, Sequence[Value]]  # values, and the operands that each is computed from


def behind(ends: Iterable[Value]) -> Sources:
    """All values that `ends` are computed from, themselves included. Of a loop or a branch that is what
    these results need: a sum and a flag that a loop carries side by side are not behind each other."""
    return _behind(ends, {})


def between(starts: Iterable[Value], ends: Iterable[Value]) -> set[Value]:
    """What is behind `ends` and computed from one of `starts`, both included where they meet."""
    readers: dict[Value, list[Value]] = {}
    sources = behind(ends)
    for v, operands in sources.items():
        for operand in operands:
            readers.setdefault(operand, []).append(v)
    pending, seen = [v for v in starts if v in sources], set[Value]()
    while pending:
        v = pending.pop()
        if v not in seen:
            seen.add(v)
            pending += readers.get(v, ())
    return seen


def _behind(ends: Iterable[Value], known: Sources) -> Sources:
    pending, found = [*ends], Sources()
    while pending:
        v = pending.pop()
        if v in found:
            continue
        if v.op is None:
            found[v] = ()
        elif not v.op.regions:
            found[v] = v.op.operands
        else:
            if v not in known:
                known[v] = _sources(v.op, v.index, known)
            found[v] = known[v]
        pending += found[v]
    return found


def _sources(op: Op, index: int, known: Sources) -> Sequence[Value]:
    """The operands that a result of an op with regions is computed from."""
    if op.name == "cond":
        read = set().union(*(_read(r, [r.outputs[index]], known) for r in op.regions))
        return [op.operands[0], *(op.operands[1 + k] for k in read)]
    if op.name not in ("scan", "while", "lanes_while"):
        return op.operands
    *tests, body = op.regions
    first, carries = op.attrs["consts"], op.attrs.get("carries", len(op.results))
    read = set().union(*(_read(test, test.outputs, known) for test in tests))
    needed, met = {index}, set[int]()
    while needed != met:
        met = set(needed)
        read |= _read(body, [body.outputs[k] for k in met], known)
        needed |= {k - first for k in read if first <= k < first + carries}
    return [op.operands[k] for k in read | {first + k for k in met if k < carries}]


def _read(region: Graph, ends: Iterable[Value], known: Sources) -> set[int]:
    """Which parameters of a region are behind some of its values."""
    return {v.index for v in _behind(ends, known) if v.op is None}


def extract(
    name: str,
    params: Sequence[Value],
    ops: Iterable[Op],
    chosen: Collection[Op],
    outputs: Sequence[Value],
) -> Graph:
    """A graph of the `chosen` ones of `ops`, over `params` (values that it takes as they are)."""
    graph = Graph(name)
    env = {v: graph.add_param(v.type, v.name) for v in params}
    start = dict(env)
    b = Builder(graph)
    for op in ops:
        if op in chosen:
            b.copy(op, env)
            env.update(start)  # an op that runs for one result does not replace a given one
    graph.outputs = [env[v] for v in outputs]
    return graph
