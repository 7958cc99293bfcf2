"""Kernels that scatter: every point by a thread of its own, what meets at one slot by atomics.

Where many updates go to few slots, blocks update tables of their own in shared memory, one for some of
the warps each, and add these to the result in the end. LLVM makes atomics of 8 and 16 bits loops around
a swap of the word that they are in.
"""

from __future__ import annotations

from collections.abc import Callable

from ....ir.ops.folds.reductions import identity
from ....ir.types import I32
from ...cuda.points import PointEmitter
from ...cuda.schedule import counts
from ...llvm.builder import Value, constant
from ...llvm.instructions import SCALAR_TYPES
from ...llvm.loops import Values
from ...llvm.reductions import apply
from ...llvm.text import Operand
from ...loop_ir.kernel import Stage
from ...math import EXPANSIONS
from ...math.combiners import COMBINE
from ...scalar import DType, const
from .cuda_atomics import combine
from .lower_updates import FOLDS


class UpdateEmitter(PointEmitter):
    """Emits one kernel whose only stage scatters."""

    def body(self) -> None:
        if not self.layout.tables:
            super().body()
            return
        self._by_tables()

    def store_stage(self, stage: Stage) -> None:
        if stage.where is None:
            self._combine(stage)
            return
        with self.b.when(self.exprs.operand(stage.where).value):
            self._combine(stage)

    def _combine(self, stage: Stage) -> None:
        base, flat = self.memory.locate(stage.array, stage.index)
        dtype = stage.array.dtype
        offset = self.indices.value(flat.substitute(self.indices.env))
        if self.layout.tables:
            value = constant("i32", 1) if self.counting else self._value_of(stage)
            if self.b.index_type == "i64":
                offset = offset.trunc("i32")
            at = self.own_table + offset
            address = self.b.in_shared(self.entry, self.buffer, at)
            combine(self.b, stage.op, self.entry, address, value)
            return
        value = self._value_of(stage)
        combine(self.b, stage.op, dtype, self.b.element_at(dtype, base, offset), value)

    def _value_of(self, stage: Stage) -> Value:
        return self.exprs.operand(stage.value).value

    # Tables in shared memory.

    def _by_tables(self) -> None:
        plan = self.layout
        (stage,) = self.kernel.stages
        self.indices.env.update(plan.outer.env)
        *others, last = plan.outer.vars
        self.counting = counts(stage)
        self.entry = I32 if self.counting else stage.array.dtype
        size = stage.array.size - self.memory.origins[stage.array]
        self.buffer = self.b.shared(self.entry, size * plan.tables)
        tid = self.b.thread()
        neutral = 0 if self.counting else identity(FOLDS[stage.op], self.entry)
        empty = self.exprs.operand(const(neutral, self.entry)).value

        def clear(at: Value, values: Values) -> Values:
            address = self.b.in_shared(self.entry, self.buffer, at)
            self.b.store_elements(self.entry, empty, address)
            return values

        def update(q: Value, values: Values) -> Values:
            self.exprs.forget()
            self._unit(q, others, last)
            return values

        def hand_over(at: Value, values: Values) -> Values:
            self.exprs.forget()
            total = self._total(stage, at, size)
            changed = self._differs(total, empty)
            with self.b.when(changed):
                if self.counting:
                    total = self._times_constant(stage, total)
                pointer, dtype = self.b.pointers[stage.array], stage.array.dtype
                combine(
                    self.b,
                    stage.op,
                    dtype,
                    self.b.element_at(dtype, pointer, self.b.widened(at)),
                    total,
                )
            return values

        self._loop32(tid, size * plan.tables, plan.threads, clear)
        self.b.barrier()
        warp = tid >> 5
        self.own_table = (warp & plan.tables - 1) * size
        start = self.b.block_number() * plan.threads
        first = start + self.b.widened(tid)
        self.loops.loop(first, plan.units, plan.threads * plan.blocks, [], update)
        self.b.barrier()
        self._loop32(tid, size, plan.threads, hand_over)

    def _loop32(
        self, first: Value, end: int, step: int, body: Callable[[Value, Values], Values]
    ) -> None:
        """A loop over slots in shared memory, which are i32."""
        index_type, self.b.index_type = self.b.index_type, "i32"

        def inside(at: Value, values: Values) -> Values:
            self.b.index_type = index_type
            result = body(at, values)
            self.b.index_type = "i32"
            return result

        self.loops.loop(first, end, step, [], inside)
        self.b.index_type = index_type

    def _total(self, stage: Stage, at: Value, size: int) -> Value:
        """What all tables have at a slot."""
        dtype = self.entry
        parts = []
        for k in range(self.layout.tables):
            slot = at + k * size if k else at
            parts.append(self.b.load_elements(dtype, self.b.in_shared(dtype, self.buffer, slot), 1))
        function = "add" if self.counting else COMBINE[stage.op]
        total: Value = parts[0]
        for part in parts[1:]:
            total = self._apply(function, dtype, total, part)
        return total

    def _apply(self, name: str, dtype: DType, x: Value, y: Value) -> Value:
        function, operands = EXPANSIONS[name], [Operand(x, True), Operand(y, True)]
        return apply(self.exprs, lambda a, b: [function(a, b)], operands, [dtype, dtype])[0].value

    def _differs(self, text: Value, other: Value) -> Value:
        if self.entry.kind == "f":
            return self.b.compare_floats("une", text, other)
        return text.ne(other)

    def _times_constant(self, stage: Stage, count: Value) -> Value:
        """So many times the constant that is added."""
        dtype = stage.array.dtype
        ty = SCALAR_TYPES[dtype]
        if dtype.kind == "f":
            number = count.to("sitofp", ty)
        elif dtype.itemsize > 4:
            number = count.sext(ty)
        else:
            number = count if dtype.itemsize == 4 else count.trunc(ty)
        return self._apply("mul", dtype, number, self._value_of(stage))
