"""One tape for a nest of loops: what loops inside of a loop keep goes on the tape of that loop.

    forward:   u = tape_new; while ... u; push t, a, u        while ... t; push t, a
    backward:  t, a, u = pop t; while ... u                   t, a = pop t; while ... t

A backward loop takes off what its forward loop has put on, all of it, and loops run backwards in the
reverse order. So what is below is on top again when its turn comes; inner loops need no tapes of
their own, one for each iteration of the outer loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..build import Builder
from ..graph import Graph, Op, Value
from ..record import record, replace
from ..types import TAPE
from .residuals import Split


@record
class _Trip:
    """Where a tape goes: the ops that take it and give it on, and the values that it is on the way."""

    ops: list[Op]
    values: list[Value]


def with_shared_tape(parts: Split) -> Split:
    """Parts of which both take one tape, last, and give it, in place of those that are saved.

    The same parts, if there are no tapes or it is not plain that they are used one after the other.
    """
    tapes = [v for v in parts.saved if v.type == TAPE]
    own = len(parts.forward.outputs) - len(parts.saved)
    first = len(parts.free)
    there, back = [], []
    for v in tapes:
        at = parts.saved.index(v)
        made = _trip_to(parts.forward, parts.forward.outputs[own + at])
        used = _trip_from(parts.backward, parts.backward.params[first + at])
        if made is None or used is None:
            return parts
        there.append(made)
        back.append(used)
    order = sorted(range(len(tapes)), key=lambda k: parts.forward.ops.index(there[k].ops[0]))
    there, back = [there[k] for k in order], [back[k] for k in reversed(order)]
    if not (tapes and _in_turn(parts.forward, there) and _in_turn(parts.backward, back)):
        return parts
    return replace(
        parts,
        forward=_rebuilt(parts.forward, there),
        backward=_rebuilt(parts.backward, back),
        saved=[v for v in parts.saved if v.type != TAPE],
        shares_tape=True,
    )


def _trip_to(graph: Graph, end: Value) -> _Trip | None:
    """The way of a tape from a new one to an output."""
    ops: list[Op] = []
    values = [end]
    while (op := values[0].op) is not None and op.name != "tape_new":
        before = _tape_of(op, values[0])
        if before is None:
            return None
        ops.insert(0, op)
        values.insert(0, before)
    return _Trip(ops, values) if ops and values[0].op is not None else None


def _trip_from(graph: Graph, start: Value) -> _Trip | None:
    """The way of a tape from a parameter to where nothing reads it."""
    ops: list[Op] = []
    values = [start]
    users = graph.users()
    while users[values[-1]]:
        (op,) = users[values[-1]]
        after = [v for v in op.results if v.type == TAPE]
        if len(after) != 1 or _tape_of(op, after[0]) is None:
            return None
        ops.append(op)
        values += after
    return None if not ops or values[-1] in graph.outputs else _Trip(ops, values)


def _tape_of(op: Op, result: Value) -> Value | None:
    """The tape that a loop makes another of. Loops over examples know those of branches as their own."""
    tapes = [v for v in op.operands if v.type == TAPE]
    results = [v for v in op.results if v.type == TAPE]
    return tapes[0] if op.name in ("scan", "while") and len(tapes) == len(results) == 1 else None


def _in_turn(graph: Graph, trips: Sequence[_Trip]) -> bool:
    """Whether each begins after the one before has ended."""
    at = {op: k for k, op in enumerate(graph.ops)}
    return all(at[a.ops[-1]] < at[b.ops[0]] for a, b in pairwise(trips))


def _rebuilt(graph: Graph, trips: Sequence[_Trip]) -> Graph:
    """The graph with one tape that goes all the trips, one after the other."""
    new = Graph(graph.name)
    gone = {v for trip in trips for v in trip.values}
    env = {p: new.add_param(p.type, p.name) for p in graph.params if p not in gone}
    tape = new.add_param(TAPE)
    b = Builder(new)
    begins = {trip.ops[0]: trip for trip in trips}
    ends = {trip.ops[-1]: trip for trip in trips}
    for op in graph.ops:
        if op.name == "tape_new" and op.result in gone:
            continue
        if op in begins:
            env[begins[op].values[0]] = tape
        b.copy(op, env)
        if op in ends:
            tape = env[ends[op].values[-1]]
    new.outputs = [*(env[v] for v in graph.outputs if v not in gone), tape]
    return new
