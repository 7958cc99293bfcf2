"""Loops around what is emitted.

Every loop has the same form, a test at its head with the accumulators as phis, so zero trips need no
special case. A vectorised loop of static length is followed by one masked body for what is left; if
the body only stores and reads nothing that it writes, the last vector is moved back to overlap instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...ir.types import I32
from ..index import Var
from ..kernel import Stage
from ..schedule import Schedule
from .indices import IndexEmitter, iota
from .text import Operand


class Carried(NamedTuple):
    """A value that a loop carries: an operand and its LLVM type."""

    text: str
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

        def at_row(q: str, _: Values) -> Values:
            self.stand_at(loops, q)
            body()
            return []

        self._loop(lo, hi, 1, [], at_row)

    def stand_at(self, loops: Sequence[Var], q: str) -> None:
        """Set several loops' variables to the point that is `q` when they are taken as one."""
        for var in reversed(loops[1:]):
            self.at[var] = self.value_of(f"urem {self.index_type} {q}, {var.extent}")
            q = self.value_of(f"udiv {self.index_type} {q}, {var.extent}")
        if loops:
            self.at[loops[0]] = q

    def _loop(
        self,
        lo: str,
        hi: str,
        step: int,
        values: Values,
        body: Callable[[str, Values], Values],
    ) -> Values:
        """for i in range(lo, hi, step): values = body(i, values)"""
        head, inside, leave = (self.new_label(h) for h in ("for", "do", "end"))
        before = self.block
        i = f"%i{next(self.names)}"
        carried = [v._replace(text=f"%a{next(self.names)}") for v in values]
        self.lines.append(f"  br label %{head}")
        self.start_block(head)
        phis = len(self.lines)
        self.lines.append(f"  {i}c = icmp slt {self.index_type} {i}, {hi}")
        self.lines.append(f"  br i1 {i}c, label %{inside}, label %{leave}")
        with self.scope():
            self.start_block(inside)
            new = body(i, carried)
            self.lines.append(f"  {i}n = add nsw {self.index_type} {i}, {step}")
            self.lines.append(f"  br label %{head}")
            after = self.block
        texts = [f"  {i} = phi {self.index_type} [ {lo}, %{before} ], [ {i}n, %{after} ]"]
        texts += [
            f"  {c.text} = phi {c.type} [ {v.text}, %{before} ], [ {n.text}, %{after} ]"
            for c, v, n in zip(carried, values, new, strict=True)
        ]
        self.lines[phis:phis] = texts
        self.start_block(leave)
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

    def _minus(self, text: str, k: int | str) -> str:
        return self.value_of(f"sub {self.index_type} {text}, {k}")

    def inside(self, i: str, last: int) -> str:
        """`i` where it is in 0..last, else the end that is nearer."""
        ty = self.index_type
        above = self.value_of(f"icmp sgt {ty} {i}, 0")
        return self.least(self.value_of(f"select i1 {above}, {ty} {i}, {ty} 0"), str(last))

    def line_start(self, stage: Stage, var: Var) -> str:
        """The last position of `var` up to 0 at which a stage's store begins a cache line."""
        raise TypeError("only an emitter of kernels knows where arrays are")

    def least(self, a: str, b: str) -> str:
        below = self.value_of(f"icmp slt {self.index_type} {a}, {b}")
        return self.value_of(f"select i1 {below}, {self.index_type} {a}, {self.index_type} {b}")

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
                lanes = [f"i1 {'true' if k < n % width else 'false'}" for k in range(width)]
                with self.scope():
                    values = self._at(var, str(main), f"<{', '.join(lanes)}>", values, body)
            return values
        length = self.value_of(f"sub i64 {hi}, {lo}")
        whole = self.value_of(f"and i64 {length}, {-width}")
        stop = self.value_of(f"add i64 {lo}, {whole}")
        values = self._loop(lo, stop, width, values, lambda i, v: self._at(var, i, "", v, body))

        def rest(i: str, carried: Values) -> Values:
            left = self.value_of(f"sub i64 {hi}, {i}")
            left32 = self.value_of(f"trunc i64 {left} to i32")
            spread = self.spread(Operand(left32, True), I32)
            mask = self.value_of(f"icmp slt <{width} x i32> {iota(width, 'i32')}, {spread}")
            return self._at(var, i, mask, carried, body)

        return self._loop(stop, hi, width, values, rest)

    def _at(
        self, var: Var, position: str, mask: str, values: Values, body: Callable[[Values], Values]
    ) -> Values:
        self.at[var] = position
        self.mask, outside = mask, self.mask
        result = body(values)
        self.mask = outside
        return result
