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

from ...ir.record import record
from ...ir.types import I64
from ..scalar import DType, Expr
from ..scalar_code import Let, Repeat, nodes
from .instructions import INSTRUCTIONS, SCALAR_TYPES

if TYPE_CHECKING:
    from .scalar_code import StatementEmitter


@record
class Trips:
    """A loop's trips: `number` is an i64, without sign, that is known when code is emitted or not.

    Carry `position` counts them by `step`; None: the trip's number does, which is no carry.
    """

    number: str | int
    position: int | None = None
    step: int = 1


def trips_of(e: StatementEmitter, s: Repeat, values: Sequence[str]) -> Trips | None:
    """The trips that a loop is going to make; None if only its condition tells."""
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
        if _is_next(s.new[position], counter, step) and _is_invariant(e, limit, s):
            return Trips(_distance(e, values[position], limit, step > 0), position, step)
    return None


def _only_tests(e: StatementEmitter, s: Repeat) -> bool:
    """Whether a loop's test does nothing but compute its condition."""
    assert s.test is not None
    return all(isinstance(x, Let) for x in s.test.statements) and all(
        n.op in INSTRUCTIONS or n.op in ("const", "var") or e.has(n) for n in nodes(s.test)
    )


def _is_next(new: Expr, counter: Expr, step: int) -> bool:
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
        if node.op == "const" or e.has(node):
            continue
        if node.op not in INSTRUCTIONS:
            return False
        pending += node.args
    return True


def _distance(e: StatementEmitter, start: str, limit: Expr, up: bool) -> str | int:
    """Steps from `start` to `limit`; 0 if the limit has been reached."""
    stop, ty = e.operand(limit).text, SCALAR_TYPES[limit.dtype]
    low, high = (start, stop) if up else (stop, start)
    if low[0] != "%" and high[0] != "%":
        return max(int(high) - int(low), 0)
    order = "slt" if limit.dtype.kind == "i" else "ult"
    any_ = e.value_of(f"icmp {order} {ty} {low}, {high}")
    many = e.value_of(f"sub {ty} {high}, {low}")
    if ty != "i64":
        many = e.value_of(f"zext {ty} {many} to i64")
    return e.value_of(f"select i1 {any_}, i64 {many}, i64 0")


def emit_counted(
    e: StatementEmitter, s: Repeat, values: Sequence[str], trips: Trips, copies: int, every: int
) -> list[str]:
    """Emit the loop: its last values. It looks for signals about each `every` trips."""
    loop = _Counted(e, s, trips)
    now = [*values] if trips.position is not None else ["0", *values]
    if isinstance(trips.number, str):
        now = loop.chunks(now, trips.number, copies, every)
    else:
        whole = trips.number - trips.number % copies
        if whole > every:
            now = loop.chunks(now, str(trips.number), copies, every)
        else:
            now = loop.turns(now, str(whole), copies) if whole else now
            for _ in range(trips.number - whole):
                now = loop.trip(now)
    return now if trips.position is not None else now[1:]


class _Counted:
    """The loop while it is emitted: `now` are the texts of the carries, and first that of the trip."""

    def __init__(self, e: StatementEmitter, s: Repeat, trips: Trips) -> None:
        self.e, self.s = e, s
        self.counts = trips.position or 0
        self.step = trips.step
        self.own = trips.position is None
        self.dtypes: list[DType] = [*([I64] if self.own else []), *(c.dtype for c in s.carries)]
        self.type = SCALAR_TYPES[self.dtypes[self.counts]]

    def trip(self, now: Sequence[str]) -> list[str]:
        """The body once."""
        if not self.own:
            return self.e.trip(self.s, now)
        assert self.s.counter is not None
        number, *carries = now
        self.e.at[self.s.counter] = number
        new = self.e.trip(self.s, carries)
        following = number.isdigit() and str(int(number) + 1)
        return [following or self.e.fresh(f"add nsw i64 {number}, 1"), *new]

    def turns(self, now: Sequence[str], number: str, copies: int) -> list[str]:
        """`number` trips, a multiple of `copies` and not none."""
        e = self.e
        if number == str(copies):
            for _ in range(copies):
                now = self.trip(now)
            return [*now]
        stop = self._after(now[self.counts], number)
        turn, done, before = e.new_label("turn"), e.new_label("done"), e.block
        names = [f"%a{next(e.names)}" for _ in now]
        e.lines.append(f"  br label %{turn}")
        e.start_block(turn)
        phis = len(e.lines)
        new: Sequence[str] = names
        for _ in range(copies):
            new = self.trip(new)
        more = e.fresh(f"icmp ne {self.type} {new[self.counts]}, {stop}")
        e.lines.append(f"  br i1 {more}, label %{turn}, label %{done}")
        e.phis(phis, names, self.dtypes, [(now, before), (new, e.block)])
        e.start_block(done)
        return [*new]

    def chunks(self, now: Sequence[str], number: str, copies: int, every: int) -> list[str]:
        """`number` trips, any number, with a look for signals after each `every` of them."""
        e = self.e
        chunk, some, look, due, rest = (
            e.new_label(h) for h in ("chunk", "some", "look", "due", "rest")
        )
        before, left = e.block, f"%left{next(e.names)}"
        names = [f"%a{next(e.names)}" for _ in now]
        e.lines.append(f"  br label %{chunk}")
        e.start_block(chunk)
        phis = len(e.lines)
        few = e.fresh(f"icmp ult i64 {left}, {copies}")
        e.lines.append(f"  br i1 {few}, label %{rest}, label %{some}")
        e.start_block(some)
        whole = e.fresh(f"and i64 {left}, {-copies}")
        many = e.fresh(f"icmp ugt i64 {whole}, {every}")
        trips = e.fresh(f"select i1 {many}, i64 {every}, i64 {whole}")
        new = self.turns(names, trips, copies)
        fewer = e.fresh(f"sub i64 {left}, {trips}")
        e.lines.append(f"  br i1 {many}, label %{due}, label %{look}")
        e.start_block(due)
        e.poll()
        e.lines.append(f"  br label %{look}")
        e.start_block(look)
        e.lines.append(f"  br label %{chunk}")
        sources = [([number, *now], before), ([fewer, *new], e.block)]
        e.phis(phis, [left, *names], [I64, *self.dtypes], sources)
        e.start_block(rest)
        return [*names] if copies == 1 else self._rest(names, left)

    def _rest(self, now: Sequence[str], number: str) -> list[str]:
        """`number` trips, few or none."""
        e = self.e
        stop = self._after(now[self.counts], number)
        head, one, done, before = *(e.new_label(h) for h in ("head", "one", "done")), e.block
        names = [f"%a{next(e.names)}" for _ in now]
        e.lines.append(f"  br label %{head}")
        e.start_block(head)
        phis = len(e.lines)
        more = e.fresh(f"icmp ne {self.type} {names[self.counts]}, {stop}")
        e.lines.append(f"  br i1 {more}, label %{one}, label %{done}")
        e.start_block(one)
        new = self.trip(names)
        e.lines.append(f"  br label %{head}")
        e.phis(phis, names, self.dtypes, [(now, before), (new, e.block)])
        e.start_block(done)
        return names

    def _after(self, counter: str, number: str) -> str:
        """What counts the trips, `number` trips later."""
        e = self.e
        if number.isdigit() and counter.isdigit():
            return str(int(counter) + self.step * int(number))
        if self.type != "i64" and not number.isdigit():
            number = e.value_of(f"trunc i64 {number} to {self.type}")
        return e.value_of(f"{'add' if self.step > 0 else 'sub'} {self.type} {counter}, {number}")
