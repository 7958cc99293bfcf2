"""Checks that a kernel makes on the way: indices in bounds, conditions that must hold."""

from __future__ import annotations

from ...ir.types import BOOL, I64
from ..kernel import Bound, Demand
from ..scalar import DType, Expr
from .instructions import SCALAR_TYPES, constant, suffix, type_text
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
        text = raw.text if lanes == 1 else self.spread(raw, dtype)
        ty, bits = type_text(dtype, lanes), type_text(BOOL, lanes)
        size = constant(bound.size, dtype, lanes)
        zero = "0" if lanes == 1 else "zeroinitializer"
        negative = self.value_of(f"icmp slt {ty} {text}, {zero}")
        wrapped = self.value_of(f"add {ty} {text}, {size}")
        normal = self.value_of(f"select {bits} {negative}, {ty} {wrapped}, {ty} {text}")
        if bound.clip:
            last = constant(bound.size - 1, dtype, lanes)
            for op, limit in (("smax", zero), ("smin", last)):
                symbol = f"@llvm.{op}.{suffix(dtype, lanes)}"
                self.declarations.add(f"declare {ty} {symbol}({ty}, {ty})")
                text = self.value_of(f"call {ty} {symbol}({ty} {text}, {ty} {limit})")
            return Operand(text, lanes == 1)
        bad = self.value_of(f"icmp uge {ty} {normal}, {size}")
        if guard is not None:
            on = guard.text if lanes == 1 else self.spread(guard, BOOL)
            bad = self.value_of(f"and {bits} {bad}, {on}")
        reported = bad
        if self.mask and lanes > 1:
            reported = self.value_of(f"and {bits} {bad}, {self.mask}")
        self._report(reported, text, lanes, bound.size, bound.site, dtype)
        return Operand(
            self.value_of(f"select {bits} {bad}, {ty} {zero}, {ty} {normal}"), lanes == 1
        )

    def _demanded(self, expr: Expr) -> Operand:
        """The value, after noting whether its condition fails in a lane that counts."""
        demand: Demand = expr.attr
        value = self.operand(expr.args[0])
        conditions = [self.operand(a) for a in expr.args[1:]]
        lanes = 1 if all(c.uniform for c in conditions) else self.width
        bits = type_text(BOOL, lanes)
        texts = [c.text if lanes == 1 else self.spread(c, BOOL) for c in conditions]
        bad = self.value_of(f"xor {bits} {texts[0]}, {'true' if lanes == 1 else 'splat (i1 true)'}")
        for on in (*texts[1:], *([self.mask] if self.mask and lanes > 1 else [])):
            bad = self.value_of(f"and {bits} {bad}, {on}")
        self._report(bad, "0" if lanes == 1 else "zeroinitializer", lanes, 0, demand.site)
        return value

    def _report(
        self, bad: str, index: str, lanes: int, size: int, site: int, dtype: DType = I64
    ) -> None:
        """If any lane is bad, write the index, the size and the error site to the status block.

        What was reported first stays, so without threads the error is the interpreter's.
        """
        some = self._any_lane(Operand(bad, lanes == 1))
        yes, no = self.new_label("bad"), self.new_label("good")
        weights = self.define("!", '!{!"branch_weights", i32 1, i32 2000}')
        self.lines.append(f"  br i1 {some}, label %{yes}, label %{no}, !prof {weights}")
        self.start_block(yes)
        with self.scope():
            if lanes > 1:
                word = self.value_of(f"bitcast <{lanes} x i1> {bad} to i{lanes}")
                symbol = f"@llvm.cttz.i{lanes}"
                self.declarations.add(f"declare i{lanes} {symbol}(i{lanes}, i1)")
                first = self.value_of(f"call i{lanes} {symbol}(i{lanes} {word}, i1 true)")
                vector = type_text(dtype, lanes)
                index = self.value_of(f"extractelement {vector} {index}, i{lanes} {first}")
            if dtype != I64:
                index = self.value_of(f"sext {SCALAR_TYPES[dtype]} {index} to i64")
            places = [self.fresh(f"getelementptr i64, ptr %status, i64 {k}") for k in (0, 1, 7)]
            old = [self.fresh(f"load i64, ptr {place}, align 8") for place in places]
            first = self.fresh(f"icmp eq i64 {old[-1]}, 0")
            for place, before, value in zip(places, old, (index, size, site), strict=True):
                kept = self.fresh(f"select i1 {first}, i64 {value}, i64 {before}")
                self.lines.append(f"  store i64 {kept}, ptr {place}, align 8")
        self._after_report(no)
        self.start_block(no)

    def _after_report(self, label: str) -> None:
        """What a failed check does next; where the others go on is `label`."""
        self.lines.append(f"  br label %{label}")
