"""A kernel as an LLVM function: `void @name(ptr %ctx, i64 %lo, i64 %hi)`.

`ctx` is a block of pointers, one per array that the kernel touches in memory, the status block last if
the kernel checks bounds. `lo..hi` is the part of the shared loop that this call does (see `schedule`).
"""

from __future__ import annotations

import math

from ..llvm.accesses import AccessEmitter
from ..llvm.builder import Block, Value, symbol
from ..llvm.checks import CheckEmitter, StatusBlock
from ..llvm.functions import Calls, FunctionTable
from ..llvm.indices import IndexEmitter
from ..llvm.leaves import KernelLeaves
from ..llvm.loops import LoopEmitter, Values
from ..llvm.scalars import ScalarEmitter
from ..llvm.stages import StageEmitter
from ..llvm.text import LINE, TextEmitter
from ..loop_ir.index import Var
from ..loop_ir.kernel import Kernel
from ..marks import Marks
from ..schedule.schedule import Schedule
from ..schedule.signature import Signature, sizes_of
from ..schedule.survey import results_read
from ..target import Target
from .column_tiles import TileEmitter
from .nests import NestEmitter
from .row_groups import RowGroupEmitter
from .transposes import SquareEmitter

TURNS = 1 << 14  # of a loop inside of a kernel between two looks for signals


class KernelEmitter:
    """Emits one kernel under one schedule."""

    def __init__(
        self,
        kernel: Kernel,
        signature: Signature,
        plan: Schedule,
        target: Target,
        definitions: dict[str, str],
        functions: FunctionTable,
        marks: Marks | None = None,
    ) -> None:
        surveys = plan.surveys.values()
        b = self.b = TextEmitter(target, plan.width, definitions=definitions)
        self.kernel, self.plan, self.arrays = kernel, plan, signature.arrays
        self.sizes = sizes_of(kernel)
        self.pointers = {a: b.named("ptr", f"p{k}") for k, a in enumerate(signature.arrays)}
        self.status = b.named("ptr", "status")  # of a kernel that checks
        calls = Calls(functions, functions.called(f for s in surveys for f in s.calls))
        self.exprs = exprs = ScalarEmitter(b, calls=calls)
        exprs.turn = self.turn
        exprs.marks = marks
        exprs.read_results = results_read(surveys)
        self.indices = IndexEmitter(exprs)
        self.memory = AccessEmitter(self.indices, self.pointers, signature.origins)
        written = {s.array for s in kernel.stages}
        self.memory.lasting = {p for a, p in self.pointers.items() if a not in written}
        exprs.leaves = KernelLeaves(self.memory, CheckEmitter(exprs, StatusBlock(b, self.status)))
        start = self._line_start if plan.aligned is not None else None
        self.loops = LoopEmitter(self.indices, plan.grain, kernel.idempotent, start)
        self.stages = StageEmitter(kernel, self.memory, self.loops, plan.mode == "outer")
        self.nests = NestEmitter(self.stages, plan)
        self.ctx, self.lo, self.hi = b.takes(ctx="ptr", lo="i64", hi="i64")
        self.checks = any(s.checks or s.loops for s in surveys)
        # Counts turns until a loop looks for signals, and tells when one did, if any loop does.
        self.clocks: tuple[Value, Value] | None = None

    @property
    def polls(self) -> bool:
        """Tells afterwards whether a loop looks for signals."""
        return self.clocks is not None

    # The function.

    def function(self) -> str:
        """The function's text, from the parameter list on: equal kernels have equal texts."""
        with self.b.at_start():
            names = [f"p{k}" for k in range(len(self.arrays))] + ["status"] * self.checks
            for position, name in enumerate(names):
                self.b.pointer_at(self.ctx, position, name)
            for size in self.sizes:
                assert size.array is not None
                length = self.b.load("i64", self.pointers[size.array])
                narrow = self.b.index_type == "i32"
                self.indices.lengths[size] = length.trunc("i32") if narrow else length
        if not self.plan.tile:
            self._row_buffers()
        self._outer()
        self.b.ret()
        return self.b.unnamed(noalias=("ctx",))

    def stack(self, nbytes: int) -> Value:
        """Memory on the stack, for as long as the function runs."""
        return self.b.stack(f"[{nbytes} x i8]", name=f"row{next(self.b.names)}")

    def turn(self, leave: Block) -> None:
        """Once in many turns, see whether a signal has raised, so that Ctrl-C ends any loop."""
        if self.clocks is None:
            with self.b.at_start():
                left, clock = self.b.word_at(TURNS, "poll_left"), self.b.word_at(0, "poll_clock")
            self.clocks = left, clock
        left, clock = self.clocks
        before = self.b.load("i64", left)
        after = before - 1
        self.b.store(after, left)
        over = after.eq(0)
        due, on = self.b.later("due"), self.b.later("on")
        self.b.fork(over, due, (), on, hint=self.b.unlikely())
        self.b.at(due)
        self.b.store(self.b.literal("i64", TURNS), left)
        stop = self.b.call("i1", symbol("stopped"), self.status, clock)
        self.b.branch(stop, leave, on)
        self.b.at(on)

    def _row_buffers(self) -> None:
        """Stack memory for values of one row that a later nest reads again."""
        outer = len(self.kernel.extents)
        home = {s.array: n for n in self.kernel.nests for s in n.stages}
        for nest in self.kernel.nests:
            for stage in nest.stages:
                for access in stage.reads:
                    array = access.array
                    if array not in self.kernel.local or array in self.memory.buffers:
                        continue
                    if home[array] is not nest and len(array.shape) > outer:
                        inner = array.shape[outer:]
                        count = math.prod(inner)
                        name = self.stack(count * array.dtype.itemsize)
                        strides = (0,) * outer + array.strides[outer:]
                        self.memory.buffers[array] = (name, strides)

    # Outer loops.

    def _outer(self) -> None:
        plan = self.plan
        self.indices.env.update(plan.outer.env)
        loops = plan.outer.vars
        lo, hi = self.lo, self.hi
        if not (plan.parallel or self.sizes):
            lo, hi = self.b.word(0), self.b.word(plan.range)

        def part() -> None:
            shared = plan.parallel or bool(self.sizes)
            self.loops.vector(loops[-1], lo, hi, self._lanes, shared=shared)

        if plan.mode == "inner" and plan.rows > 1:
            RowGroupEmitter(self, lo, hi).emit()
        elif plan.mode == "inner":
            self.loops.rows(loops, lo, hi, self.nests.row)
        elif plan.cross is not None:
            self._squares(plan.cross, lo, hi)
        elif plan.tile:
            tile = Var("tile", plan.tiles)
            self.loops.rows((*loops[:-1], tile), lo, hi, lambda: self._tile(tile))
        elif len(loops) == 1:
            part()
        elif plan.split_last:
            before = self.indices.length(math.prod(v.extent for v in loops[:-1]))
            self.loops.rows(loops[:-1], 0, before, part)
        else:
            self.loops.rows(
                loops[:-1],
                lo,
                hi,
                lambda: self.loops.vector(
                    loops[-1], 0, self.indices.length(loops[-1].extent), self._lanes
                ),
            )

    def _squares(self, cross: Var, lo: Value, hi: Value) -> None:
        plan = self.plan
        rows, columns = Var("rows", plan.cross_tiles), Var("columns", plan.tiles)
        others = [v for v in plan.outer.vars[:-1] if v is not cross]
        squares = SquareEmitter(self, cross)

        def tile() -> None:
            row, column = (
                self.indices.as_index(self.indices.positions[v]) for v in (rows, columns)
            )
            squares.tile(row * plan.cross_tile, column * plan.tile)

        self.loops.rows((*others, rows, columns), lo, hi, tile)

    def _tile(self, tile: Var) -> None:
        extent = self.plan.outer.vars[-1].extent
        lo = self.indices.as_index(self.indices.positions[tile]) * self.plan.tile
        hi = lo + self.plan.tile
        TileEmitter(self, lo, self.indices.least(hi, extent)).emit()

    def _lanes(self, _: Values) -> Values:
        self.nests.row()
        return []

    def _line_start(self, var: Var) -> Value:
        """The last position of a loop's variable up to 0 at which the aligned store begins a line."""
        stage = self.plan.aligned
        assert stage is not None
        self.indices.positions[var] = self.b.literal(self.b.index_type, 0)
        base, flat = self.memory.locate(stage.array, stage.index)
        dtype = stage.array.dtype
        at = self.b.element_at(dtype, base, self.indices.value(flat.substitute(self.indices.env)))
        past = at.to("ptrtoint", "i64") & LINE - 1
        return self.indices.as_index(0) - past // dtype.itemsize
