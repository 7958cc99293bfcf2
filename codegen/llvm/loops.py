"""Loops around what is emitted.

Every loop has the same form, a test at its head with the accumulators as phis, so zero iterations need
no special case. A vectorised loop of static length is followed by one masked body for what is left; if
the body only stores and reads nothing that it writes, the last vector is moved back to overlap instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.types import I32
from ..loop_ir.index import Var
from ..sizes import factor_of
from .builder import Number, Value, vector_constant
from .indices import IndexEmitter, iota
from .text import Operand

Values = list[Operand]  # what a loop carries


class LoopEmitter:
    """Emits loops around what is emitted at each point.

    Vectors of shared loops end where chunks of `grain` do. `idempotent`: doing a point twice does no
    harm. `aligned` gives the last position up to 0 of a loop's variable at which a store that is to
    begin with a cache line does so.
    """

    def __init__(
        self,
        indices: IndexEmitter,
        grain: int = 1,
        idempotent: bool = False,
        aligned: Callable[[Var], Value] | None = None,
    ) -> None:
        self.indices, self.b = indices, indices.b
        self.grain, self.idempotent, self.aligned = grain, idempotent, aligned

    def rows(
        self,
        loops: Sequence[Var],
        lo: Value | Number,
        hi: Value | Number,
        body: Callable[[], object],
    ) -> None:
        """Walk the outer points lo..hi of several loops taken as one."""

        def at_row(q: Value, _: Values) -> Values:
            self.indices.stand_at(loops, q)
            body()
            return []

        self.loop(lo, hi, 1, [], at_row)

    def loop(
        self,
        lo: Value | Number,
        hi: Value | Number,
        step: int,
        values: Values,
        body: Callable[[Value, Values], Values],
    ) -> Values:
        """for i in range(lo, hi, step): values = body(i, values)"""
        head, inside, leave = (self.b.later(h) for h in ("for", "do", "end"))
        i, *accumulators = self.b.parameters(
            head, self.b.index_type, *(v.value.type for v in values)
        )
        carried = [v._replace(value=a) for v, a in zip(values, accumulators, strict=True)]
        self.b.jump(head, lo, *(v.value for v in values))
        self.b.at(head)
        self.b.branch(i < hi, inside, leave)
        with self.b.scope():
            self.b.at(inside)
            new = body(i, carried)
            self.b.jump(head, self.b.stepped(i, step), *(n.value for n in new))
        self.b.at(leave)
        return carried

    def vector(
        self,
        var: Var,
        lo: Value | Number,
        hi: Value | Number,
        body: Callable[[Values], Values],
        values: Values | None = None,
        shared: bool = False,
    ) -> Values:
        """Walk var over lo..hi in vectors, what is left at the end included. `shared`: that is the part
        of its range that this call of the kernel does."""
        values = values or []
        width, n = self.b.width, var.extent
        self.indices.lane, outside = var, self.indices.lane
        start, end = self.indices.as_index(lo), self.indices.as_index(hi)
        static = start.number == 0 and end.number == n
        # Shared loops are cut at whole vectors, but for the units of row blocks.
        least = factor_of(n)  # of any length that the axis may have
        whole = least % width == 0 and (static or (start.number != 0 and self.grain % width == 0))
        if width == 1:
            out = self.loop(lo, hi, 1, values, lambda i, v: self._at(var, i, None, v, body))
        elif self.aligned is not None and static and self.idempotent and not values:
            out = self.loop(
                self.aligned(var),
                hi,
                width,
                values,
                lambda i, v: self._at(var, self._inside(i, n - width), None, v, body),
            )
        elif whole:
            out = self.loop(lo, hi, width, values, lambda i, v: self._at(var, i, None, v, body))
        elif not values and self.idempotent and least >= width and (static or shared):
            last = n - width if static else end - width
            out = self.loop(
                lo,
                hi,
                width,
                values,
                lambda i, v: self._at(var, self.indices.least(i, last), None, v, body),
            )
        else:
            out = self._masked_tail(var, start, end, static, values, body)
        self.indices.lane = outside
        return out

    def _inside(self, i: Value, last: int) -> Value:
        """`i` where it is in 0..last, else the end that is nearer."""
        return self.indices.least(self.b.select(i > 0, i, 0), last)

    def _masked_tail(
        self,
        var: Var,
        lo: Value,
        hi: Value,
        static: bool,
        values: Values,
        body: Callable[[Values], Values],
    ) -> Values:
        """Whole vectors first, then one body with the lanes beyond `hi` switched off."""
        width, n = self.b.width, var.extent
        if static:
            main = n - n % width
            if main:
                at = lambda i, v: self._at(var, i, None, v, body)  # noqa: E731
                values = self.loop(0, main, width, values, at)
            if n % width:
                lanes = vector_constant("i1", [k < n % width for k in range(width)])
                with self.b.scope():
                    values = self._at(var, main, lanes, values, body)
            return values
        whole = (hi - lo) & -width
        stop = lo + whole
        values = self.loop(lo, stop, width, values, lambda i, v: self._at(var, i, None, v, body))

        def rest(i: Value, carried: Values) -> Values:
            left32 = (hi - i).trunc("i32")
            spread = self.b.spread(Operand(left32, True), I32)
            mask = self.b.compare("slt", iota(width, "i32"), spread)
            return self._at(var, i, mask, carried, body)

        return self.loop(stop, hi, width, values, rest)

    def _at(
        self,
        var: Var,
        position: Value | Number,
        mask: Value | None,
        values: Values,
        body: Callable[[Values], Values],
    ) -> Values:
        self.indices.positions[var] = self.indices.as_index(position)
        self.b.mask, outside = mask, self.b.mask
        result = body(values)
        self.b.mask = outside
        return result
