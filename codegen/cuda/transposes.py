"""Map kernels that read some arrays across the order in which they write: by squares in shared memory.

block:  a square of SIDE x SIDE points; what lies along the other loop is loaded in that order,
        and read from shared memory, turned over, where it is wanted
"""

from __future__ import annotations

from ..llvm.builder import Value
from ..llvm.text import Operand
from ..loop_ir.index import Var
from ..scalar import Expr
from .emitter import Word
from .lanes import LaneEmitter
from .schedule import SIDE

DEEP = 8  # rows of threads: each does SIDE / DEEP points


class TransposeEmitter(LaneEmitter):
    """Emits one kernel whose schedule has loads to turn over."""

    def body(self) -> None:
        plan = self.layout
        assert plan.cross is not None
        self.env.update(plan.outer.env)
        *others, last = plan.outer.vars
        cross = plan.cross
        down, along = Var("down", -(-cross.extent // SIDE)), Var("along", -(-last.extent // SIDE))
        rest = [v for v in others if v is not cross]
        self.stand_at((*rest, down, along), self.block_number())
        thread = self.thread()
        self.column = thread & SIDE - 1
        row = thread >> SIDE.bit_length() - 1
        self.rows = [row + k for k in range(0, SIDE, DEEP)]
        self.corner = {
            cross: self.positions[down] * SIDE,
            last: self.positions[along] * SIDE,
        }
        self.squares: dict[Expr, Value] = {}
        squares = {expr: self.shared(expr.dtype, SIDE * (SIDE + 1)) for expr in plan.turned}
        for row in self.rows:
            self._stand(cross, self.column, last, row)
            for expr, memory in squares.items():
                value = self.operand(expr)
                place = self.in_shared(expr.dtype, memory, self._in_square(row, self.column))
                self.store_elements(expr.dtype, value.text, place, 1)
            self.forget()
        self.barrier()
        self.squares = squares
        self.holds_back = True
        for row in self.rows:
            self.row = row
            valid = self._stand(last, self.column, cross, row)
            for nest in self.kernel.nests:
                for stage in nest.stages:
                    self._store_stage(stage)
            if valid:
                with self.when(valid):
                    self._flush()
            else:
                self._flush()
            self.registers.clear()
            self.forget()

    def _stand(self, first: Var, x: Value, second: Var, y: Value) -> Word:
        """Stand at a point of the square, or at the last there is; whether it was there, if in doubt."""
        valid = ""
        for var, offset in ((first, x), (second, y)):
            at = self.corner[var] + self.widened(offset)
            self.positions[var] = at
            if var.extent % SIDE:
                self.positions[var] = self.least(at, var.extent - 1)
                here = at < var.extent
                valid = valid & here if valid else here
        return valid

    def _in_square(self, row: Value, column: Value) -> Value:
        """A place in a square, whose rows are one element longer, so that columns are in many banks."""
        start = row * (SIDE + 1)
        return start + column

    def _load(self, expr: Expr) -> Operand:
        memory = self.squares.get(expr)
        if memory is None:
            return super()._load(expr)
        place = self.in_shared(expr.dtype, memory, self._in_square(self.column, self.row))
        return Operand(self.load_elements(expr.dtype, place, 1), True)
