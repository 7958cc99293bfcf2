"""A kernel as an LLVM function: `void @name(ptr %ctx, i64 %lo, i64 %hi)`.

`ctx` is a block of pointers, one per array that the kernel touches in memory, the status block last if
the kernel checks bounds. `lo..hi` is the part of the shared loop that this call does (see `schedule`).
"""

from __future__ import annotations

import math
from typing import Any

from ..loop_ir.index import Index, Var
from ..loop_ir.kernel import Access, Array, Kernel, Nest, Stage
from ..scalar import Expr
from ..schedule.schedule import Schedule
from ..schedule.signature import Signature
from ..target import Target
from .builder import Block, Value
from .functions import FunctionTable
from .loops import Values
from .nests import NestEmitter
from .row_groups import RowGroupEmitter
from .streams import TileEmitter
from .text import LINE, Operand
from .transposes import SquareEmitter, row_of

TURNS = 1 << 14  # of a loop inside of a kernel between two looks for signals


class KernelEmitter(NestEmitter):
    """Emits one kernel under one schedule."""

    row_of_square: Value

    def __init__(
        self,
        kernel: Kernel,
        signature: Signature,
        plan: Schedule,
        target: Target,
        definitions: dict[str, str],
        functions: FunctionTable,
    ) -> None:
        super().__init__(target, plan.width, definitions=definitions)
        self.kernel = kernel
        self.plan = plan
        self.head = self.code.start  # what stands before all loops
        self.lane: Var | None = None  # the vectorised loop's variable, and where it stands
        self.mask = ""  # the lanes that are on, when not all are
        self.env: dict[Var, Index] = {}
        self.positions: dict[Var, Any] = {}  # loop variable -> its int64 value (of lane 0)
        self.registers: dict[Array, Operand] = {}
        self.turned: dict[Expr, Value] = {}  # loads that a square has ready, and where
        self.buffers: dict[Array, tuple[Any, tuple[int, ...]]] = {}  # row buffers
        self.pointers: dict[Array, Any] = {}
        self.functions = functions
        self.called = functions.called(f for s in plan.surveys.values() for f in s.calls)
        for found in plan.surveys.values():
            for loop, positions in found.results.items():
                self.read_results.setdefault(loop, set()).update(positions)
        self.checks = any(s.checks or s.loops for s in plan.surveys.values())
        self.polls = False  # tells afterwards whether a loop looks for signals
        self.arrays = signature.arrays
        self.origins = signature.origins
        self.idempotent = self.kernel.idempotent

    # The function.

    def function(self) -> str:
        """The function's text, from the parameter list on: equal kernels have equal texts."""
        head = self.head
        for position, array in enumerate(self.arrays):
            self.pointers[array] = Value("ptr", f"%p{position}", self)
            head += _pointer(f"%p{position}", position)
        if self.checks:
            head += _pointer("%status", len(self.arrays))
        if not self.plan.tile:
            self._row_buffers()
        self._outer()
        self.ret()
        return f"(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {{\n{self.code.text()}\n}}\n"

    def stack(self, nbytes: int) -> Value:
        """Memory on the stack, for as long as the function runs."""
        name = Value("ptr", f"%row{next(self.names)}", self)
        self.head.append(f"  {name} = alloca [{nbytes} x i8], align 64")
        return name

    def turn(self, leave: Block) -> None:
        """Once in many turns, see whether a signal has raised, so that Ctrl-C ends any loop."""
        left, clock = (Value("ptr", f"%poll_{name}", self) for name in ("left", "clock"))
        if not self.polls:
            self.polls = True
            for name, start in ((left, TURNS), (clock, 0)):
                self.head.append(f"  {name} = alloca i64, align 8")
                self.head.append(f"  store i64 {start}, ptr {name}, align 8")
        before = self.load("i64", left)
        after = before - 1
        self.store(after, left)
        over = after.eq(0)
        due, on = self.later("due"), self.later("on")
        self.fork(over, due, (), on, hint=self._seldom())
        self.at(due)
        self.store(self.literal("i64", TURNS), left)
        stop = self.fresh("i1", f"call i1 @stopped(ptr %status, ptr {clock})")
        self.branch(stop, leave, on)
        self.at(on)

    def _row_buffers(self) -> None:
        """Stack memory for values of one row that a later nest reads again."""
        outer = len(self.kernel.extents)
        home = {s.array: n for n in self.kernel.nests for s in n.stages}
        for nest in self.kernel.nests:
            for stage in nest.stages:
                for access in stage.reads:
                    array = access.array
                    if array not in self.kernel.local or array in self.buffers:
                        continue
                    if home[array] is not nest and len(array.shape) > outer:
                        inner = array.shape[outer:]
                        count = math.prod(inner)
                        name = self.stack(count * array.dtype.itemsize)
                        strides = (0,) * outer + array.strides[outer:]
                        self.buffers[array] = (name, strides)

    # Outer loops.

    def _outer(self) -> None:
        plan = self.plan
        self.env.update(plan.outer.env)
        loops = plan.outer.vars
        bounds = ("%lo", "%hi") if plan.parallel else (0, plan.range)
        lo, hi = (self.literal("i64", bound) for bound in bounds)
        if plan.mode == "inner" and plan.rows > 1:
            RowGroupEmitter(self, lo, hi).emit()
        elif plan.mode == "inner":
            self._walk_rows(loops, lo, hi, self._row)
        elif plan.cross is not None:
            self._squares(plan.cross, lo, hi)
        elif plan.tile:
            tile = Var("tile", plan.tiles)
            self._walk_rows((*loops[:-1], tile), lo, hi, lambda: self._tile(tile))
        elif len(loops) == 1:
            self._vector(loops[0], lo, hi, self._lanes)
        elif plan.split_last:
            rows = str(math.prod(v.extent for v in loops[:-1]))
            self._walk_rows(
                loops[:-1], "0", rows, lambda: self._vector(loops[-1], lo, hi, self._lanes)
            )
        else:
            self._walk_rows(
                loops[:-1],
                lo,
                hi,
                lambda: self._vector(loops[-1], "0", str(loops[-1].extent), self._lanes),
            )

    def _squares(self, cross: Var, lo: str, hi: str) -> None:
        plan = self.plan
        rows, columns = Var("rows", plan.cross_tiles), Var("columns", plan.tiles)
        others = [v for v in plan.outer.vars[:-1] if v is not cross]
        squares = SquareEmitter(self, cross)

        def tile() -> None:
            row = self.positions[rows] * plan.cross_tile
            squares.tile(row, self.positions[columns] * plan.tile)

        self._walk_rows((*others, rows, columns), lo, hi, tile)

    def _tile(self, tile: Var) -> None:
        extent = self.plan.outer.vars[-1].extent
        lo = self.positions[tile] * self.plan.tile
        hi = lo + self.plan.tile
        TileEmitter(self, lo, self.least(hi, str(extent))).emit()

    def _lanes(self, _: Values) -> Values:
        self._row()
        return []

    def line_start(self, stage: Stage, var: Var) -> str:
        self.positions[var] = self.literal(self.index_type, 0)
        base, flat = self.place(stage.array, stage.index)
        dtype = stage.array.dtype
        at = self._address(dtype, base, self.index_text(flat.substitute(self.env)))
        past = at.to("ptrtoint", "i64") & LINE - 1
        return self._minus("0", past // dtype.itemsize)

    def fetch_ahead(self, nest: Nest) -> None:
        if nest is self.kernel.nests[-1]:
            for access in self.plan.ahead:
                self._fetch(access)

    def _fetch(self, access: Access) -> None:
        """Ask for what the first nest reads of the next row, at this place of the loop."""
        row = self.plan.outer.vars[-1]
        here = self.positions[row]
        self.positions[row] = here + 1
        base, flat = self.place(access.array, access.index)
        dtype = access.array.dtype
        first = self._address(dtype, base, self.index_text(flat.substitute(self.env)))
        self.positions[row] = here
        for line in range(0, self.width * dtype.itemsize, LINE):
            self.prefetch(self.offset(first, line), 1)

    def _load(self, expr: Expr) -> Operand:
        tile = self.turned.get(expr)
        return (
            super()._load(expr) if tile is None else Operand(row_of(self, tile, expr.dtype), False)
        )


def _pointer(name: str, position: int) -> list[str]:
    return [
        f"  {name}a = getelementptr ptr, ptr %ctx, i64 {position}",
        f"  {name} = load ptr, ptr {name}a, align 8",
    ]
