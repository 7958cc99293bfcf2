"""Loops of scalar code whose trips are counted before the first of them.

    chunk:  as many trips as come before the next look at the clock, a multiple of the copies
    turn:   the body, so many times over; back to turn until the chunk is done
            look for signals if trips are left; back to chunk
    rest:   fewer trips than there are copies, one by one

A turn tests nothing but whether it was the last. A scan's trips are known when code is emitted, those of
`while i < n: i += 1` when the loop is reached, if n is the same in each trip: then `i` itself counts
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....ir.record import record
from ....ir.types import I64
from ...loop_ir.scalar_code import Let, Repeat, nodes
from ...scalar import DType, Expr
from ..builder import Value
from ..instructions import INSTRUCTIONS, SCALAR_TYPES

if TYPE_CHECKING:
    from .statements import StatementEmitter


@record
class Trips:
    """A loop's trips: `number` is an i64, without sign, that is known when code is emitted or not.

    Carry `position` counts them by `step`; None: the trip's number does, which is no carry.
    """

    number: Value | int
    position: int | None = None
    step: int = 1


def trips_of(e: StatementEmitter, s: Repeat, values: Sequence[Value]) -> Trips | None:
    """The trips that a loop is going to make; None if only its condition tells."""
    if s.trips is not None:
        value = e.exprs.operand(s.trips).value
        return Trips(value if value.number is None else value.number)
    if s.counter is not None:
        return Trips(s.length)
    condition = s.condition
    assert condition is not None and s.test is not None
    if condition.op not in ("lt", "gt") or not _only_tests(e, s):
        return None
    less, more = condition.args if condition.op == "lt" else reversed(condition.args)
    for counter, limit, step in ((less, more, 1), (more, less, -1)):
        if counter not in s.carries or counter.dtype.kind not in "iu":
            continue
        position = s.carries.index(counter)
        if is_next(s.new[position], counter, step) and _is_invariant(e, limit, s):
            return Trips(_distance(e, values[position], limit, step > 0), position, step)
    return None


def _only_tests(e: StatementEmitter, s: Repeat) -> bool:
    """Whether a loop's test does nothing but compute its condition."""
    assert s.test is not None
    return all(isinstance(x, Let) for x in s.test.statements) and all(
        n.op in INSTRUCTIONS or n.op in ("const", "var") or e.exprs.has(n) for n in nodes(s.test)
    )


def is_next(new: Expr, counter: Expr, step: int) -> bool:
    """Whether `new` is counter + step."""
    if new.op == "sub":
        return new.args[0] is counter and new.args[1].op == "const" and new.args[1].attr == -step
    if new.op != "add" or counter not in new.args:
        return False
    other = new.args[0] if new.args[1] is counter else new.args[1]
    return other.op == "const" and other.attr == step


def _is_invariant(e: StatementEmitter, limit: Expr, s: Repeat) -> bool:
    """Whether a value is the same in each trip, and can be computed before the first."""
    pending = [limit]
    while pending:
        node = pending.pop()
        if node in s.carries:
            return False
        if node.op == "const" or e.exprs.has(node):
            continue
        if node.op not in INSTRUCTIONS:
            return False
        pending += node.args
    return True


def _distance(e: StatementEmitter, start: Value, limit: Expr, up: bool) -> Value | int:
    """Steps from `start` to `limit`; 0 if the limit has been reached."""
    stop = e.exprs.operand(limit).value
    first, end = (start, stop) if up else (stop, start)
    if first.number is not None and end.number is not None:
        return max(end.number - first.number, 0)
    order = "slt" if limit.dtype.kind == "i" else "ult"
    some = e.b.compare(order, first, end)
    many = e.b.binary("sub", end, first)
    if many.type != "i64":
        many = many.zext("i64")
    return e.b.select(some, many, 0)


def emit_counted(
    e: StatementEmitter, s: Repeat, values: Sequence[Value], trips: Trips, copies: int, every: int
) -> list[Value]:
    """Emit the loop: its last values. It looks for signals about each `every` trips."""
    loop = _Counted(e, s, trips)
    now = [*values] if trips.position is not None else [e.b.word(0), *values]
    if isinstance(trips.number, Value):
        now = loop.chunks(now, trips.number, copies, every)
    else:
        whole = trips.number - trips.number % copies
        if whole > every:
            now = loop.chunks(now, trips.number, copies, every)
        else:
            now = loop.turns(now, whole, copies) if whole else now
            for _ in range(trips.number - whole):
                now = loop.trip(now)
    return now if trips.position is not None else now[1:]


class _Counted:
    """The loop while it is emitted: `now` are the carries, and first the number of the trip."""

    def __init__(self, e: StatementEmitter, s: Repeat, trips: Trips) -> None:
        self.e, self.s = e, s
        self.counts = trips.position or 0
        self.step = trips.step
        self.own = trips.position is None
        self.dtypes: list[DType] = [*([I64] if self.own else []), *(c.dtype for c in s.carries)]
        self.types = [SCALAR_TYPES[d] for d in self.dtypes]
        self.type = SCALAR_TYPES[self.dtypes[self.counts]]

    def trip(self, now: Sequence[Value]) -> list[Value]:
        """The body once."""
        if not self.own:
            return self.e.trip(self.s, now)
        assert self.s.counter is not None
        number, *carries = now
        self.e.indices.positions[self.s.counter] = self.e.indices.as_index(number)
        new = self.e.trip(self.s, carries)
        constant, b = number.number, self.e.b
        return [b.stepped(number, 1) if constant is None else b.word(constant + 1), *new]

    def turns(self, now: Sequence[Value], number: Value | int, copies: int) -> list[Value]:
        """`number` trips, a multiple of `copies` and not none."""
        e = self.e
        if isinstance(number, int) and number == copies:
            for _ in range(copies):
                now = self.trip(now)
            return [*now]
        stop = self._after(now[self.counts], number)
        turn, done = e.b.later("turn"), e.b.later("done")
        new: Sequence[Value] = e.b.parameters(turn, *self.types)
        e.b.jump(turn, *now)
        e.b.at(turn)
        for _ in range(copies):
            new = self.trip(new)
        more = new[self.counts].ne(stop)
        e.b.fork(more, turn, new, done)
        e.b.at(done)
        return [*new]

    def chunks(
        self, now: Sequence[Value], number: Value | int, copies: int, every: int
    ) -> list[Value]:
        """`number` trips, any number, with a look for signals after each `every` of them."""
        e = self.e
        chunk, some, look, due, rest = (
            e.b.later(h) for h in ("chunk", "some", "look", "due", "rest")
        )
        left, *names = e.b.parameters(chunk, "i64", *self.types)
        e.b.jump(chunk, number, *now)
        e.b.at(chunk)
        few = left.ult(copies)
        e.b.branch(few, rest, some)
        e.b.at(some)
        whole = left & -copies
        many = whole.ugt(every)
        trips = e.b.select(many, every, whole)
        new = self.turns(names, trips, copies)
        fewer = left - trips
        e.b.branch(many, due, look)
        e.b.at(due)
        e.poll()
        e.b.jump(look)
        e.b.at(look)
        e.b.jump(chunk, fewer, *new)
        e.b.at(rest)
        return [*names] if copies == 1 else self._rest(names, left)

    def _rest(self, now: Sequence[Value], number: Value) -> list[Value]:
        """`number` trips, few or none."""
        e = self.e
        stop = self._after(now[self.counts], number)
        head, one, done = (e.b.later(h) for h in ("head", "one", "done"))
        names = e.b.parameters(head, *self.types)
        e.b.jump(head, *now)
        e.b.at(head)
        more = names[self.counts].ne(stop)
        e.b.branch(more, one, done)
        e.b.at(one)
        new = self.trip(names)
        e.b.jump(head, *new)
        e.b.at(done)
        return [*names]

    def _after(self, counter: Value, number: Value | int) -> Value:
        """What counts the trips, `number` trips later."""
        b, start = self.e.b, counter.number
        if isinstance(number, int) and start is not None and start >= 0:
            return b.literal(self.type, start + self.step * number)
        if self.type != "i64" and isinstance(number, Value):
            number = number.trunc(self.type)
        return b.binary("add" if self.step > 0 else "sub", counter, number)
