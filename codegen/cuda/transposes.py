"""Map kernels that read some arrays across the order in which they write: by squares in shared memory.

block:  a square of SIDE x SIDE points; what lies along the other loop is loaded in that order,
        and read from shared memory, turned over, where it is wanted
"""

from __future__ import annotations

from functools import partial

from ..llvm.builder import Condition, Value
from ..llvm.text import Operand
from ..loop_ir.index import Var
from ..scalar import DType
from .lanes import LaneEmitter
from .schedule import SIDE

DEEP = 8  # rows of threads: each does SIDE / DEEP points


class TransposeEmitter(LaneEmitter):
    """Emits one kernel whose schedule has loads to turn over."""

    def body(self) -> None:
        """The kernel: a block turns squares of loads in shared memory, then computes the points."""
        plan = self.layout
        assert plan.cross is not None
        self.indices.env.update(plan.outer.env)
        *others, last = plan.outer.vars
        cross = plan.cross
        down, along = Var("down", -(-cross.extent // SIDE)), Var("along", -(-last.extent // SIDE))
        rest = [v for v in others if v is not cross]
        self.indices.stand_at((*rest, down, along), self.b.block_number())
        thread = self.b.thread()
        self.column = thread & SIDE - 1
        row = thread >> SIDE.bit_length() - 1
        self.rows = [row + k for k in range(0, SIDE, DEEP)]
        self.corner = {
            cross: self.indices.positions[down] * SIDE,
            last: self.indices.positions[along] * SIDE,
        }
        squares = {expr: self.b.shared(expr.dtype, SIDE * (SIDE + 1)) for expr in plan.turned}
        for row in self.rows:
            self._stand(cross, self.column, last, row)
            for expr, memory in squares.items():
                value = self.exprs.operand(expr)
                address = self.b.in_shared(expr.dtype, memory, self._in_square(row, self.column))
                self.b.store_elements(expr.dtype, value.value, address)
            self.exprs.forget()
        self.b.barrier()
        self.memory.brought = {
            expr: partial(self._turned, memory, expr.dtype) for expr, memory in squares.items()
        }
        self.memory.holds_back = True
        for row in self.rows:
            self.row = row
            valid = self._stand(last, self.column, cross, row)
            for nest in self.kernel.nests:
                for stage in nest.stages:
                    self.stages.store_stage(stage)
            with self.b.where(valid):
                self.memory.flush()
            self.memory.registers.clear()
            self.exprs.forget()

    def _stand(self, first: Var, x: Value, second: Var, y: Value) -> Condition | None:
        """Stand at a point of the square, or at the last there is; whether it was there, if in doubt."""
        valid: Condition | None = None
        for var, offset in ((first, x), (second, y)):
            at = self.corner[var] + self.b.widened(offset)
            self.indices.positions[var] = at
            if var.extent % SIDE:
                self.indices.positions[var] = self.indices.least(at, var.extent - 1)
                here = at < var.extent
                valid = self.b.both(valid, here)
        return valid

    def _in_square(self, row: Value, column: Value) -> Value:
        """A position in a square whose rows are one element longer: columns are in many banks."""
        start = row * (SIDE + 1)
        return start + column

    def _turned(self, memory: Value, dtype: DType) -> Operand:
        """An element of a square at the point at hand."""
        address = self.b.in_shared(dtype, memory, self._in_square(self.column, self.row))
        return Operand(self.b.load_elements(dtype, address, 1), True)
