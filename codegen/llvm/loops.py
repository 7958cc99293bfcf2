"""Loops around what is emitted.

Every loop has the same form, a test at its head with the accumulators as phis, so zero trips need no
special case. A vectorised loop of static length is followed by one masked body for what is left; if
the body only stores and reads nothing that it writes, the last vector is moved back to overlap instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...ir.types import I32
from ..loop_ir.index import Var
from ..loop_ir.kernel import Stage
from ..schedule.schedule import Schedule
from .builder import Number, Value, vector_constant
from .indices import IndexEmitter, iota
from .text import Operand


class Carried(NamedTuple):
    """A value that a loop carries: an operand and its LLVM type."""

    text: Any
    uniform: bool
    type: str


Values = list[Carried]


class LoopEmitter(IndexEmitter):
    """Emits loops of a scheduled kernel. `idempotent`: doing a point twice does no harm."""

    plan: Schedule
    idempotent: bool

    def _walk_rows(
        self, loops: Sequence[Var], lo: str, hi: str, body: Callable[[], object]
    ) -> None:
        """Walk the outer points lo..hi of several loops taken as one."""

        def at_row(q: Value, _: Values) -> Values:
            self.stand_at(loops, q)
            body()
            return []

        self._loop(lo, hi, 1, [], at_row)

    def stand_at(self, loops: Sequence[Var], q: str) -> None:
        """Set several loops' variables to the point that is `q` when they are taken as one."""
        place = self.as_index(q)
        for var in reversed(loops[1:]):
            self.positions[var] = place % var.extent
            place = place // var.extent
        if loops:
            self.positions[loops[0]] = place

    def _loop(
        self,
        lo: Value | Number,
        hi: Value | Number,
        step: int,
        values: Values,
        body: Callable[[Value, Values], Values],
    ) -> Values:
        """for i in range(lo, hi, step): values = body(i, values)"""
        head, inside, leave = (self.later(h) for h in ("for", "do", "end"))
        i, *accumulators = self.parameters(head, self.index_type, *(v.type for v in values))
        carried = [v._replace(text=a) for v, a in zip(values, accumulators, strict=True)]
        self.jump(head, lo, *(v.text for v in values))
        self.at(head)
        self.branch(i < hi, inside, leave)
        with self.scope():
            self.at(inside)
            new = body(i, carried)
            self.jump(head, self.stepped(i, step), *(n.text for n in new))
        self.at(leave)
        return carried

    def _vector(
        self,
        var: Var,
        lo: str,
        hi: str,
        body: Callable[[Values], Values],
        values: Values | None = None,
    ) -> Values:
        """Walk var over lo..hi in vectors, what is left at the end included."""
        values = values or []
        width, n = self.width, var.extent
        self.lane, outside = var, self.lane
        static = lo == "0" and hi == str(n)
        # Shared loops are cut at whole vectors, but for the units of row blocks.
        whole = n % width == 0 and (static or (lo != "0" and self.plan.grain % width == 0))
        if width == 1:
            out = self._loop(lo, hi, 1, values, lambda i, v: self._at(var, i, "", v, body))
        elif self.plan.aligned is not None and static and self.idempotent and not values:
            start = self.line_start(self.plan.aligned, var)
            out = self._loop(
                start,
                hi,
                width,
                values,
                lambda i, v: self._at(var, self.inside(i, n - width), "", v, body),
            )
        elif whole:
            out = self._loop(lo, hi, width, values, lambda i, v: self._at(var, i, "", v, body))
        elif not values and self.idempotent and n >= width and (static or lo == "%lo"):
            last = str(n - width) if static else self._minus(hi, width)
            out = self._loop(
                lo,
                hi,
                width,
                values,
                lambda i, v: self._at(var, self.least(i, last), "", v, body),
            )
        else:
            out = self._masked_tail(var, lo, hi, static, values, body)
        self.lane = outside
        return out

    def _minus(self, text: str, k: int | str) -> Value:
        return self.as_index(text) - k

    def inside(self, i: Value, last: int) -> Value:
        """`i` where it is in 0..last, else the end that is nearer."""
        return self.least(self.select(i > 0, i, 0), last)

    def line_start(self, stage: Stage, var: Var) -> str:
        """The last position of `var` up to 0 at which a stage's store begins a cache line."""
        raise TypeError("only an emitter of kernels knows where arrays are")

    def least(self, a: Value | Number, b: Value | Number) -> Value:
        a = self.as_index(a) if isinstance(a, str) else self.literal(self.index_type, a)
        return self.select(a < b, a, b)

    def _masked_tail(
        self,
        var: Var,
        lo: str,
        hi: str,
        static: bool,
        values: Values,
        body: Callable[[Values], Values],
    ) -> Values:
        """Whole vectors first, then one body with the lanes beyond `hi` switched off."""
        width, n = self.width, var.extent
        if static:
            main = n - n % width
            if main:
                values = self._loop(
                    "0",
                    str(main),
                    width,
                    values,
                    lambda i, v: self._at(var, i, "", v, body),
                )
            if n % width:
                lanes = vector_constant("i1", [k < n % width for k in range(width)])
                with self.scope():
                    values = self._at(var, str(main), lanes, values, body)
            return values
        start = self.as_index(lo)
        whole = (self.as_index(hi) - start) & -width
        stop = start + whole
        values = self._loop(lo, stop, width, values, lambda i, v: self._at(var, i, "", v, body))

        def rest(i: Value, carried: Values) -> Values:
            left32 = (self.as_index(hi) - i).trunc("i32")
            spread = self.spread(Operand(left32, True), I32)
            mask = self.compare("slt", iota(width, "i32"), spread)
            return self._at(var, i, mask, carried, body)

        return self._loop(stop, hi, width, values, rest)

    def _at(
        self, var: Var, position: str, mask: str, values: Values, body: Callable[[Values], Values]
    ) -> Values:
        self.positions[var] = self.as_index(position)
        self.mask, outside = mask, self.mask
        result = body(values)
        self.mask = outside
        return result
