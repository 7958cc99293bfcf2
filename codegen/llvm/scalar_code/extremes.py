"""Loops that seek the largest or smallest element: lanes seek among trips of their own.

    for i in range(n):                      best, trip = lanes: the first best of trips k, k + lanes, ...
        if x[i] > best:            ->       of equal ones the earliest, also where 0.0 meets -0.0
            best = x[i]                     best, place = x[trip], trip
            place = i

What a lane holds is what Python's loop over its trips would hold, NaN included: a comparison with NaN
is false. What else the loop remembers of the best trip is computed when that is known. LLVM makes
vectors of such loops for integers only, as it may not exchange zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....ir.types import BOOL, F32, F64
from ...loop_ir.index import Index
from ...loop_ir.scalar_code import Choose, Let, Repeat, blocks, computed, within
from ...scalar import Expr
from ..builder import Value, vector
from .lanes import VECTORS, TripEmitter, is_vectors
from .statements import ScalarCodeEmitter

LEAST = 4  # turns of the lanes, from which they are worth their end
POLLED = 1 << 20  # trips between two looks for signals


class Extreme(NamedTuple):
    """A loop that keeps what it finds in the trip where `found` holds last, which is that of the `best`
    element: each carry then becomes the one of `values`."""

    found: Expr
    best: int
    larger: bool
    values: list[Expr]


def extreme_of(s: Repeat) -> Extreme | None:
    """What a loop seeks, if it does nothing but seek."""
    if s.counter is None or s.trips is not None or s.condition is not None or not s.carries:
        return None
    *others, last = s.body.statements or [Let([])]
    ways = _ways(last) if isinstance(last, Choose) else {}
    if not all(isinstance(x, Let) for x in (*others, *([] if ways else [last]))):
        return None
    chosen = [ways.get(new) or _chosen(new) for new in s.new]
    if any(
        way is None or way[2] is not carry for way, carry in zip(chosen, s.carries, strict=True)
    ):
        return None
    (found, _, _), *_ = pairs = [way for way in chosen if way is not None]
    values = [value for _, value, _ in pairs]
    if any(test is not found for test, _, _ in pairs) or found.op not in ("gt", "lt"):
        return None
    for k, (carry, value) in enumerate(zip(s.carries, values, strict=True)):
        if carry not in found.args or carry.dtype not in (F32, F64):
            continue
        first = found.args[0] is carry
        if _same(found.args[first], value):
            extreme = Extreme(found, k, found.op == ("lt" if first else "gt"), values)
            free = not any(node in s.carries for node in within(values))
            return extreme if free and _is_side_by_side(s, extreme) else None
    return None


Way = tuple[
    Expr, Expr, Expr
]  # a condition, what something is where it holds, and where it does not


def _ways(s: Choose) -> dict[Expr, Way]:
    """What the results of a choice between two are, if it does nothing else."""
    test = _truth(s.index)
    if test is None or len(s.blocks) != 2:
        return {}
    if not all(isinstance(x, Let) for block in s.blocks for x in block.statements):
        return {}
    no, yes = s.values
    return {r: (test, a, b) for r, a, b in zip(s.results, yes, no, strict=True)}


def _chosen(new: Expr) -> Way | None:
    """The same of an expression."""
    if new.op != "select":
        return None
    test, yes, no = new.args
    if test.op == "le" and test.args[1].op == "const" and test.args[1].attr == 0:
        found = _truth(test.args[0])  # a branch: the first one is that of False
        return None if found is None else (found, no, yes)
    return test, yes, no


def _truth(number: Expr) -> Expr | None:
    """The condition that a number, 0 or 1, stands for."""
    is_one = number.op == "convert" and number.args[0].dtype == BOOL
    return number.args[0] if is_one else None


def _same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are surely equal."""
    if a is b:
        return True
    if a.op != "load" or b.op != "load":
        return False
    return a.attr.array is b.attr.array and tuple(a.attr.index) == tuple(b.attr.index)


def _is_side_by_side(s: Repeat, extreme: Extreme) -> bool:
    """Whether lanes can do it all, on elements that are neighbours."""
    assert s.counter is not None
    lets = (node for block in blocks(s.body) for node in computed(block))
    every = [*lets, *within([extreme.found, *extreme.values])]
    if not all(map(is_vectors, every)) or any(node.op == "call" for node in every):
        return False
    for node in every:
        if node.op == "load":
            for index, stride in zip(node.attr.index, node.attr.array.strides, strict=True):
                step = index.stride(s.counter)
                if step is None or (step and step * stride != 1):
                    return False
    return True


def emit_extreme(e: ScalarCodeEmitter, s: Repeat, start: Sequence[Value]) -> Sequence[Value] | None:
    """The last values of a loop that seeks; None if it is another one, or short."""
    extreme = extreme_of(s)
    if extreme is None:
        return None
    lanes = VECTORS * e.b.target.vector_bits // (8 * max(c.dtype.itemsize for c in s.carries))
    if s.length < LEAST * lanes:
        return None
    search = _Search(e, s, extreme, lanes)
    best, trips = search.all_lanes(start[extreme.best])
    return search.values_at(search.first(best, trips), start)


class _Search:
    """The loop while it is emitted: each lane's best element, and the trip it was found in, or -1."""

    def __init__(self, e: ScalarCodeEmitter, s: Repeat, extreme: Extreme, lanes: int) -> None:
        self.e, self.b, self.s, self.extreme, self.lanes = e, e.b, s, extreme, lanes
        self.side = TripEmitter(e, s, lanes)
        assert s.counter is not None
        self.counter = s.counter
        self.numbers = vector(lanes, "i64")

    def all_lanes(self, start: Value) -> tuple[Value, Value]:
        b, lanes, length = self.b, self.lanes, self.s.length
        whole = length - length % lanes
        first = b.splat(start, lanes)
        head, look, on, done = (b.later(h) for h in ("seek", "look", "on", "done"))
        position, best, trips = b.parameters(head, "i64", first.type, self.numbers)
        last = b.parameters(done, first.type, self.numbers)
        b.jump(head, 0, first, b.literal(self.numbers, -1))
        b.at(head)
        new = self._step(position, best, trips)
        following = b.stepped(position, lanes, "nuw nsw")
        if length > POLLED:
            due = (following & (POLLED - 1)).eq(0)
            b.fork(due, look, (), on, (), b.unlikely())
            b.at(look)
            self.e.poll()
            b.jump(on)
            b.at(on)
        b.fork(following.ne(whole), head, (following, *new), done, new)
        b.at(done)
        if whole == length:
            return last[0], last[1]
        self.side.indices.positions[self.counter] = b.word(whole)
        places = self.side.indices.vector(Index(0, {self.counter: 1}))
        self.side.b.mask = b.compare("slt", places, b.literal(self.numbers, length))
        found = self._step(b.word(whole), last[0], last[1])
        self.side.b.mask = None
        return found

    def _step(self, position: Value, best: Value, trips: Value) -> tuple[Value, Value]:
        """One trip of each lane, of those that are on."""
        side, k = self.side, self.extreme.best
        side.indices.positions[self.counter] = position
        with side.b.scope():
            side.bind([self.s.carries[k]], [best])
            better = side.wide(self.extreme.found)
            if side.b.mask is not None:
                better = better & side.b.mask
            here = side.indices.vector(Index(0, {self.counter: 1}))
            value = side.wide(self.extreme.values[k])
            return self.b.select(better, value, best), self.b.select(better, here, trips)

    def first(self, best: Value, trips: Value) -> Value:
        """The trip of the best of all lanes, of equal ones the first: halves against each other."""
        b, lanes = self.b, self.lanes
        while lanes > 1:
            lanes //= 2
            (x, y), (i, j) = (self._halves(several, lanes) for several in (best, trips))
            better = b.compare_floats("ogt" if self.extreme.larger else "olt", y, x)
            earlier = b.compare_floats("oeq", y, x) & b.compare("slt", j, i)
            other = better | earlier
            best, trips = b.select(other, y, x), b.select(other, j, i)
        return trips

    def _halves(self, several: Value, lanes: int) -> tuple[Value, Value]:
        b = self.b
        if lanes == 1:
            return b.extract(several, b.word(0)), b.extract(several, b.word(1))
        low, high = range(lanes), range(lanes, 2 * lanes)
        return b.shuffle(several, several, low), b.shuffle(several, several, high)

    def values_at(self, trip: Value, start: Sequence[Value]) -> Sequence[Value]:
        """What the carries are when the best is that of a trip, or what they started with."""
        b, e = self.b, self.e
        won, done = b.later("won"), b.later("sought")
        last = b.parameters(done, *(v.type for v in start))
        b.fork(trip < 0, done, start, won)
        b.at(won)
        e.indices.positions[self.counter] = trip
        with b.scope():
            values = [e.exprs.operand(v).value for v in self.extreme.values]
            b.jump(done, *values)
        b.at(done)
        return [*last]
