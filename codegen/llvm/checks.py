"""Checks that a kernel makes on the way: indices in bounds, conditions that must hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...ir.types import BOOL, I64
from ..loop_ir.kernel import Bound, Demand
from ..module import TOLD_WORD
from ..scalar import DType, Expr
from .builder import Block, Value, vector
from .instructions import constant, type_text
from .scalars import ScalarEmitter
from .text import Operand, TextEmitter


class Status(Protocol):
    """Where failed checks are noted: the status block, whose first error is reported. `leaves`: what
    runs ends there."""

    leaves: bool

    def report(
        self, bad: Value, index: Value, lanes: int, size: int, site: int, dtype: DType = I64
    ) -> None:
        """If any of so many lanes is bad, note the index there, the size and the error site."""
        ...

    def tell(self, bad: Value, lanes: int) -> None:
        """If any of so many lanes is bad, note that, and go on."""
        ...


class CheckEmitter:
    """Notes failures in `status`, and goes on with a harmless value."""

    def __init__(self, exprs: ScalarEmitter, status: Status) -> None:
        self.exprs, self.b = exprs, exprs.b
        self.status = status
        self._passed: dict[tuple[str, int], Value] = {}  # what numbers are as indices, once checked
        self.b.scoped.append(self._scoped)

    def _scoped(self) -> Callable[[], None]:
        before = dict(self._passed)

        def restore() -> None:
            self._passed = before

        return restore

    def bounded(self, expr: Expr) -> Operand:
        """Normalise an index; note the first one that is out of bounds."""
        bound: Bound = expr.attr
        raw = self.exprs.operand(expr.args[0])
        guard = self.exprs.operand(expr.args[1]) if len(expr.args) > 1 else None
        lanes = 1 if raw.uniform and (guard is None or guard.uniform) else self.b.width
        dtype = expr.dtype
        number = raw.value if lanes == 1 else self.b.spread(raw, dtype)
        if lanes == 1 and self.status.leaves and bound.site:
            return Operand(self._straight(number, bound, dtype, guard), True)
        ty = type_text(dtype, lanes)
        size = constant(bound.size, dtype, lanes)
        zero = self.b.literal(ty, 0)
        negative = number < zero
        wrapped = number + size
        normal = self.b.select(negative, wrapped, number)
        if bound.clip:
            last = constant(bound.size - 1, dtype, lanes)
            least = self.b.intrinsic("smax", ty, number, zero)
            return Operand(self.b.intrinsic("smin", ty, least, last), lanes == 1)
        bad = normal.uge(size)
        if guard is not None:
            on = guard.value if lanes == 1 else self.b.spread(guard, BOOL)
            bad = bad & on
        if bound.site:
            reported = bad if self.b.mask is None or lanes == 1 else bad & self.b.mask
            self.status.report(reported, number, lanes, bound.size, bound.site, dtype)
        return Operand(self.b.select(bad, zero, normal), lanes == 1)

    def _straight(self, number: Value, bound: Bound, dtype: DType, guard: Operand | None) -> Value:
        """A checked index of code that leaves where a check fails: those that count from the front, most
        of them, take one jump, which is not taken."""
        key = number.text, bound.size
        if key in self._passed:
            return self._passed[key]
        size = constant(bound.size, dtype, 1)
        odd, fine = self.b.later("odd"), self.b.later("fine")
        (index,) = self.b.parameters(fine, number.type)
        self.b.fork(number.uge(size), odd, (), fine, (number,), self.b.unlikely())
        self.b.at(odd)
        with self.b.scope():
            counted = number + size
            bad = counted.uge(size)
            on = bad if guard is None else bad & guard.value
            self.status.report(on, number, 1, bound.size, bound.site, dtype)
            self.b.jump(fine, counted if guard is None else self.b.select(bad, 0, counted))
        self.b.at(fine)
        if guard is None:
            self._passed[key] = index
        return index

    def demanded(self, expr: Expr) -> Operand:
        """The value, after noting whether its condition fails in a lane that counts."""
        demand: Demand = expr.attr
        value = self.exprs.operand(expr.args[0])
        conditions = [self.exprs.operand(a) for a in expr.args[1:]]
        lanes = 1 if all(c.uniform for c in conditions) else self.b.width
        first, *others = (c.value if lanes == 1 else self.b.spread(c, BOOL) for c in conditions)
        bad = ~first
        if self.b.mask is not None and lanes > 1:
            others.append(self.b.mask)
        for on in others:
            bad = bad & on
        if not demand.site:
            self.status.tell(bad, lanes)
            return value
        self.status.report(bad, self.b.literal(vector(lanes, "i64"), 0), lanes, 0, demand.site)
        return value


class StatusBlock:
    """The status block at `block`. A function that leaves at a failed check does so by `leave`."""

    def __init__(
        self, b: TextEmitter, block: Value, leave: Callable[[], None] | None = None
    ) -> None:
        self.b = b
        self.block = block
        self.leave = leave
        self.leaves = leave is not None

    def tell(self, bad: Value, lanes: int) -> None:
        """If any lane is bad, say so in the status block."""
        no = self._if_some(bad, lanes)
        with self.b.scope():
            self.b.store(self.b.literal("i64", 1), self.b.offset(self.block, TOLD_WORD, "i64"))
            self.b.jump(no)
        self.b.at(no)

    def _if_some(self, bad: Value, lanes: int) -> Block:
        """Go where it is dealt with that some lane is bad. Gives where it goes on."""
        some = bad if lanes == 1 else bad.to("bitcast", f"i{lanes}").ne(0)
        yes, no = self.b.later("bad"), self.b.later("good")
        self.b.fork(some, yes, (), no, hint=self.b.unlikely())
        self.b.at(yes)
        return no

    def report(
        self, bad: Value, index: Value, lanes: int, size: int, site: int, dtype: DType = I64
    ) -> None:
        """If any lane is bad, write the index, the size and the error site to the status block.

        What was reported first stays, so without threads the error is the interpreter's.
        """
        no = self._if_some(bad, lanes)
        with self.b.scope():
            if lanes > 1:
                word = bad.to("bitcast", f"i{lanes}")
                index = self.b.extract(index, self.b.intrinsic("cttz", word.type, word, True))
            if dtype != I64:
                index = index.sext("i64")
            fields = [self.b.offset(self.block, k, "i64") for k in (0, 1, 7)]
            old = [self.b.load("i64", field) for field in fields]
            first = old[-1].eq(0)
            words: tuple[Value | int, ...] = (index, size, site)
            for field, before, value in zip(fields, old, words, strict=True):
                new = self.b.select(first, value, before)
                self.b.store(new, field)
            if self.leave is not None:
                self.leave()
            else:
                self.b.jump(no)
        self.b.at(no)
