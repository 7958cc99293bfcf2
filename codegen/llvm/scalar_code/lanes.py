"""Loops whose trips have nothing to do with each other: several of them side by side, in lanes.

    for j in lanes(n):                      c[i, j] of 32 j at a time
        s = 0.0
        for p in range(m): s += a[i, p] * b[p, j]
        c[i, j] = s

What a trip does stays in its order, so sums are the same to the last bit; what waits for itself, as a
sum or an iteration does, waits for all lanes at once. Where lanes go different ways, all ways are gone,
each under a mask; a `while` runs as long as any lane's condition holds. LLVM makes vectors of innermost
loops only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ....ir.types import BOOL
from ...limits import limits
from ...loop_ir.index import Index, Var, of_var
from ...loop_ir.scalar_code import (
    Body,
    Choose,
    Repeat,
    Require,
    Special,
    accesses,
    blocks,
    computed,
    flops,
)
from ...scalar import Expr
from ..accesses import AccessEmitter
from ..builder import Value
from ..checks import CheckEmitter, StatusBlock
from ..functions import Calls
from ..indices import IndexEmitter
from ..instructions import type_text
from ..leaves import KernelLeaves
from ..scalars import ScalarEmitter
from ..text import TextEmitter
from ..types import vector
from .independence import are_apart
from .statements import StatementEmitter

if TYPE_CHECKING:
    from .statements import ScalarCodeEmitter

VECTORS = 4  # registers of a carry, where all lanes make the same trips
CARRIES = 3  # of a loop, up to which that many registers are there
FAR = 3  # operations that take as long as touching an element of each lane one by one


def lanes_of_trips(b: TextEmitter, s: Repeat) -> int:
    """How many trips of a loop should run side by side; 0: none."""
    if s.counter is None or s.trips is not None or s.carries or not b.has_scalef:
        return 0
    inner = [loop for block in blocks(s.body) for loop in _loops(block)]
    if not inner or any(not loop.carries and not any(True for _ in _below(loop)) for loop in inner):
        return 0
    if not _independent(s):
        return 0
    far = touches_far(s)
    if far is None or (far and any(lanes_of_trips(b, loop) for loop in inner)):
        return 0
    # A truth is a bit for each lane of what it was asked of.
    sizes = [8 if c.dtype == BOOL else c.dtype.itemsize for loop in inner for c in loop.carries]
    lanes = b.target.vector_bits // (8 * max(sizes, default=8))
    divergent = any(loop.condition is not None or loop.trips is not None for loop in inner)
    if not divergent and max(len(loop.carries) for loop in inner) <= CARRIES:
        lanes *= VECTORS
    while lanes > 4 and lanes > s.length:
        lanes //= 2
    return lanes if s.length >= lanes else 0


def is_vectors(node: Expr) -> bool:
    """Whether an operation is done in all lanes at a time, and cannot fail."""
    if node.op in ("bounded", "demanded"):
        return False
    if node.op in ("div", "rem") and node.dtype.kind in "iu":
        return node.args[1].op == "const"
    return True


def _independent(s: Repeat) -> bool:
    """Whether no trip touches what another trip writes, and none can fail."""
    for block in blocks(s.body):
        if any(isinstance(x, (Require, Special)) for x in block.statements):
            return False
        if not all(map(is_vectors, computed(block))):
            return False
    return are_apart(s)


def _loops(block: Body) -> Iterator[Repeat]:
    return (s for s in block.statements if isinstance(s, Repeat))


def _below(loop: Repeat) -> Iterator[Repeat]:
    return (inner for block in blocks(loop.body) for inner in _loops(block))


def touches_far(s: Repeat) -> bool | None:
    """Whether lanes touch elements that are far apart, in loops that are inside, not one element or
    neighbours. None: more of them than pays for what is computed."""
    assert s.counter is not None
    far, way = False, -1 if _goes_down(s) else 1
    for loop in _below(s):
        for block in blocks(loop.body):
            steps = [*_steps(block, s.counter)]
            if None in steps:
                return None
            apart = sum(step not in (0, way) for step in steps)
            if apart * FAR > flops(block):
                return None
            far = far or apart > 0
    return far


def _goes_down(s: Repeat) -> bool:
    """Whether most of what trips touch lies before what the trip before has touched."""
    assert s.counter is not None
    ways = [step for block in blocks(s.body) for step in _steps(block, s.counter) if step]
    return sum(step < 0 for step in ways) * 2 > len(ways)


def _steps(block: Body, counter: Var) -> Iterator[int | None]:
    """By how many elements each trip moves the accesses of a block; None: not by the same each time."""
    for array, position, _ in accesses(block):
        strides = [index.stride(counter) for index in position]
        if None in strides:
            yield None
        else:
            pairs = zip(strides, array.strides, strict=True)
            yield sum(step * stride for step, stride in pairs if step is not None)


class TripEmitter(StatementEmitter):
    """Emits the body of a loop for several trips at a time, into the function of a nest."""

    def __init__(self, e: ScalarCodeEmitter, s: Repeat, lanes: int) -> None:
        assert s.counter is not None
        b = e.b.beside(lanes)
        exprs = ScalarEmitter(b, calls=Calls(e.calls.table, e.calls.called))
        memory = AccessEmitter(IndexEmitter(exprs), e.memory.pointers, e.memory.origins)
        exprs.leaves = KernelLeaves(
            memory, CheckEmitter(exprs, StatusBlock(b, e.status, leave=b.ret))
        )
        exprs.begin_like(e.exprs)
        memory.indices.positions.update(e.indices.positions)
        lane = s.counter
        if _goes_down(s):  # backwards, so that lanes touch neighbours
            lane = Var("turned", s.length)
            memory.indices.env[s.counter] = -of_var(lane) + (s.length - 1)
        memory.indices.lane = lane
        super().__init__(e.step, memory)
        self.nest, self.counter, self.length, self.lanes = e, lane, s.length, lanes

    def emit(self, body: Body, every: int, start: Value | int, stop: Value | int) -> None:
        """The trips from `start`, a multiple of the lanes, to `stop`, one too or the last; it looks for
        signals after `every` trips."""
        b = self.b
        head, done = b.later("side"), b.later("done")
        (first,) = b.parameters(head, "i64")
        b.jump(head, start)
        b.at(head)
        self.indices.positions[self.counter] = first
        with b.scope():
            if self.length % self.lanes:
                positions = self.indices.vector(Index(0, {self.counter: 1}))
                b.mask = b.compare("slt", positions, self.length)
            self.block(body)
            b.mask = None
            following = b.stepped(first, self.lanes, "nuw nsw")
            if self.lanes * every < self.length:
                self.nest.poll()
            b.fork(following < stop, head, (following,), done)
        b.at(done)

    def together(self, values: Sequence[Expr]) -> None:
        """They are vectors."""

    def leave_if(self, bad: Value, words: Sequence[Value], site: int) -> None:
        raise AssertionError("lanes do not fail")

    def poll(self) -> None:
        self.nest.poll()

    # Under a mask.

    @property
    def _on(self) -> Value:
        return self.b.literal(vector(self.lanes, "i1"), 1) if self.b.mask is None else self.b.mask

    def wide(self, value: Expr) -> Value:
        """A value in all lanes."""
        return self.b.spread(self.exprs.operand(value), value.dtype)

    def _types(self, values: Sequence[Expr]) -> list[str]:
        return [type_text(v.dtype, self.lanes) for v in values]

    def bind(self, variables: Sequence[Expr], values: Sequence[Any]) -> None:
        """Give variables values that differ from lane to lane."""
        for variable, value in zip(variables, values, strict=True):
            self.exprs.bind(variable, value, uniform=False)

    def _choose(self, s: Choose) -> None:
        """All blocks, each under its mask."""
        index, b, before = self.wide(s.index), self.b, self.b.mask
        results: list[Value] = []
        last = len(s.blocks) - 1
        for k, (block, values) in enumerate(zip(s.blocks, s.values, strict=True)):
            if k == last:
                here = b.compare("sge", index, k)
            else:
                here = b.compare("eq" if k else "sle", index, k)
            with b.scope():
                b.mask = here if before is None else here & before
                self.block(block)
                operands = [self.wide(v) for v in values]
                b.mask = before
            if not k:
                results = operands
            else:
                results = [
                    b.select(here, new, old) for new, old in zip(operands, results, strict=True)
                ]
        self.bind(s.results, results)

    # Loops.

    def _repeat(self, s: Repeat) -> None:
        start = [self.wide(x) for x in s.start]
        if s.condition is not None:
            limit = None if s.trips is None else self.wide(s.trips)
            self.bind(s.carries, self._as_long_as_any(s, start, limit))
            return
        trips = None if s.trips is None else self.exprs.operand(s.trips)
        if trips is None:
            self.bind(s.carries, self._counted(s, start, s.length))
        elif trips.uniform:
            self.bind(s.carries, self._counted(s, start, trips.value))
        else:
            self.bind(s.carries, self._as_long_as_any(s, start, trips.value))

    def _counted(self, s: Repeat, start: Sequence[Value], number: Value | int) -> Sequence[Value]:
        """The same trips in all lanes."""
        b = self.b
        body, done = b.later("body"), b.later("done")
        position, *names = b.parameters(body, "i64", *self._types(s.carries))
        last = b.parameters(done, *self._types(s.carries))
        if isinstance(number, int):
            if not number:
                return start
            b.jump(body, 0, *start)
        else:
            b.fork(b.word(number).ne(0), body, (0, *start), done, start)
        b.at(body)
        assert s.counter is not None
        self.indices.positions[s.counter] = position
        with b.scope():
            self.bind(s.carries, names)
            self.block(s.body)
            new = [self.wide(x) for x in s.new]
            following = b.stepped(position, 1, "nuw nsw")
            b.fork(following.ne(b.word(number)), body, (following, *new), done, new)
        b.at(done)
        return [*last]

    def _as_long_as_any(
        self, s: Repeat, start: Sequence[Value], limit: Value | int | None
    ) -> Sequence[Value]:
        """Each lane has trips of its own: until its condition fails, or after `limit` of them."""
        b, before = self.b, self.b.mask
        head, body, leave = b.later("any"), b.later("body"), b.later("leave")
        due, again = b.later("due"), b.later("again")
        types = self._types(s.carries)
        position, left, on, *names = b.parameters(
            head, "i64", "i64", type_text(BOOL, self.lanes), *types
        )
        every = max(limits().polled_work // 64, 1)
        b.jump(head, 0, every, self._on, *start)
        b.at(head)
        with b.scope():
            self.bind(s.carries, names)
            still = on
            if s.counter is not None:
                self.indices.positions[s.counter] = position
                assert limit is not None
                still = on & b.compare("ult", b.splat(position, self.lanes), limit)
            if s.condition is not None:
                assert s.test is not None
                b.mask = still
                self.block(s.test)
                still = still & self.wide(s.condition)
            word = still.to("bitcast", f"i{self.lanes}") if self.lanes > 1 else still
            b.fork(word.ne(0), body, (), leave)
            b.at(body)
            b.mask = still
            self.block(s.body)
            new = [b.select(still, self.wide(x), old) for x, old in zip(s.new, names, strict=True)]
            b.mask = before
            (rest,) = b.parameters(again, "i64")
            fewer = left - 1
            b.fork(fewer.eq(0), due, (), again, (fewer,), b.unlikely())
            b.at(due)
            self.poll()
            b.jump(again, every)
            b.at(again)
            b.jump(head, b.stepped(position, 1, "nuw nsw"), rest, still, *new)
        b.at(leave)
        b.mask = before
        return [*names]
