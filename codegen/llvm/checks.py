"""Checks that a kernel makes on the way: indices in bounds, conditions that must hold."""

from __future__ import annotations

from ...ir.types import BOOL, I64
from ..loop_ir.kernel import Bound, Demand
from ..scalar import DType, Expr
from .builder import Block, Value, vector
from .instructions import constant, type_text
from .loops import LoopEmitter
from .text import Operand


class CheckEmitter(LoopEmitter):
    """Notes the first failure in the status block, `%status`, and goes on with a harmless value."""

    def _bounded(self, expr: Expr) -> Operand:
        """Normalise an index; note the first one that is out of bounds in the status block."""
        bound: Bound = expr.attr
        raw = self.operand(expr.args[0])
        guard = self.operand(expr.args[1]) if len(expr.args) > 1 else None
        lanes = 1 if raw.uniform and (guard is None or guard.uniform) else self.width
        dtype = expr.dtype
        text = self.known(raw.text, dtype, 1) if lanes == 1 else self.spread(raw, dtype)
        ty = type_text(dtype, lanes)
        size = constant(bound.size, dtype, lanes)
        zero = self.literal(ty, 0)
        negative = text < zero
        wrapped = text + size
        normal = self.select(negative, wrapped, text)
        if bound.clip:
            last = constant(bound.size - 1, dtype, lanes)
            text = self.intrinsic("smin", ty, self.intrinsic("smax", ty, text, zero), last)
            return Operand(text, lanes == 1)
        bad = normal.uge(size)
        if guard is not None:
            on = guard.text if lanes == 1 else self.spread(guard, BOOL)
            bad = bad & on
        reported = bad
        if self.mask and lanes > 1:
            reported = bad & self.mask
        self._report(reported, text, lanes, bound.size, bound.site, dtype)
        return Operand(self.select(bad, zero, normal), lanes == 1)

    def _demanded(self, expr: Expr) -> Operand:
        """The value, after noting whether its condition fails in a lane that counts."""
        demand: Demand = expr.attr
        value = self.operand(expr.args[0])
        conditions = [self.operand(a) for a in expr.args[1:]]
        lanes = 1 if all(c.uniform for c in conditions) else self.width
        texts = [c.text if lanes == 1 else self.spread(c, BOOL) for c in conditions]
        bad = ~self.known(texts[0], BOOL, lanes)
        for on in (*texts[1:], *([self.mask] if self.mask and lanes > 1 else [])):
            bad = bad & on
        self._report(bad, self.literal(vector(lanes, "i64"), 0), lanes, 0, demand.site)
        return value

    def _report(
        self, bad: Value, index: Value, lanes: int, size: int, site: int, dtype: DType = I64
    ) -> None:
        """If any lane is bad, write the index, the size and the error site to the status block.

        What was reported first stays, so without threads the error is the interpreter's.
        """
        some = self._any_lane(Operand(bad, lanes == 1))
        yes, no = self.later("bad"), self.later("good")
        weights = self.define("!", '!{!"branch_weights", i32 1, i32 2000}')
        self.fork(some, yes, (), no, hint=f", !prof {weights}")
        self.at(yes)
        with self.scope():
            if lanes > 1:
                word = bad.to("bitcast", f"i{lanes}")
                index = self.extract(index, self.intrinsic("cttz", word.type, word, True))
            if dtype != I64:
                index = index.sext("i64")
            places = [self.offset(Value("ptr", "%status"), k, "i64") for k in (0, 1, 7)]
            old = [self.load("i64", place) for place in places]
            first = old[-1].eq(0)
            words: tuple[Value | int, ...] = (index, size, site)
            for place, before, value in zip(places, old, words, strict=True):
                kept = self.select(first, value, before)
                self.store(kept, place)
        self._after_report(no)
        self.at(no)

    def _after_report(self, block: Block) -> None:
        """What a failed check does next; where the others go on is `block`."""
        self.jump(block)
