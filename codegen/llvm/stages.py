"""Stages of a kernel at one point: what is computed before loops, walked, folded, remembered, stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..loop_ir.index import Index, Var, of_var
from ..loop_ir.kernel import Array, Kernel, Nest, Stage
from ..math import EXPANSIONS
from ..math.combiners import COMBINE
from ..schedule.survey import accesses, invariants, updates_neighbours
from .accesses import AccessEmitter
from .builder import Value
from .loops import LoopEmitter, Values
from .reductions import Reduction, apply, reduction
from .scalars import ScalarEmitter
from .text import Operand

Body = Callable[[Values], Values]


class StageEmitter:
    """Emits the stages of one kernel. `lanewise`: lanes are results of their own."""

    def __init__(
        self, kernel: Kernel, memory: AccessEmitter, loops: LoopEmitter, lanewise: bool = False
    ) -> None:
        self.kernel, self.memory, self.loops = kernel, memory, loops
        self.indices, self.exprs, self.b = memory.indices, memory.exprs, memory.b
        self.lanewise = lanewise
        self._replaced = _replaced(kernel)

    def hoist(self, nest: Nest) -> None:
        """Compute what does not change in the nest's loops before them."""
        made = {s.array for s in nest.stages}
        for stage in nest.stages:
            if stage.action == "update":
                continue
            for expr in invariants(stage, set(stage.dims[nest.outer :])):
                if made.isdisjoint(access.array for access in accesses(expr)):
                    self.exprs.operand(expr)

    def reduction(self, stage: Stage, nest: Nest, vector: bool) -> Reduction | None:
        """The fold that a stage asks for, if it does."""
        if stage.action not in ("reduce", "scan"):
            return None
        dims = stage.dims[nest.outer :]
        return reduction(self.indices, stage, vector, self.lanewise, dims)

    # Loops.

    def walk(
        self,
        loops: Sequence[Var],
        nest: Nest,
        values: Values,
        body: Body,
        innermost: Callable[[Var, Values, Body], Values] | None = None,
    ) -> Values:
        """Run `body` over the inner loops, outermost first, carrying `values`.

        `innermost`, if it is given, walks the last one.
        """
        var, rest = loops[0], loops[1:]
        if innermost is not None and not rest:
            return innermost(var, values, body)

        def step(position: Value, carried: Values) -> Values:
            self.indices.positions[var] = position
            return self.walk(rest, nest, carried, body, innermost) if rest else body(carried)

        return self.loops.loop(0, self.extent(nest, var), 1, values, step)

    def extent(self, nest: Nest, var: Var) -> Value | int:
        """The trip count of an inner loop: the last chunk of a split reduction may be shorter."""
        stage = nest.stages[0]
        chunks = stage.chunks
        if chunks is None or self.indices.env[stage.dims[stage.outer]] != of_var(var):
            return self.indices.length(var.extent)
        start = self.indices.value(self.indices.env[stage.dims[chunks.axis]] * chunks.length)
        left = chunks.total - start
        return self.indices.least(left, chunks.length)

    # Values.

    def store_stage(self, stage: Stage) -> None:
        if stage.action == "update":
            self._update(stage)
            return
        value = self.exprs.operand(stage.value)
        self.mark(stage)
        self.keep(stage, value)

    def mark(self, stage: Stage) -> None:
        """What comes next is what the stage does with its value."""
        if self.exprs.marks is not None:
            self.exprs.marks.at(self.b.lines, stage.loc)

    def keep(self, stage: Stage, value: Operand) -> None:
        """Remember a stage's value in a register, and write it to memory if it has any."""
        self.memory.registers[stage.array] = value
        if stage.array not in self.kernel.local or stage.array in self.memory.buffers:
            self.store(stage, value)
        if stage.array in self._replaced:
            self.exprs.forget_where(lambda e: e.op == "load" and e.attr.array is stage.array)

    def keep_running(self, stage: Stage, values: Values) -> None:
        """Write the value that a scan has come to."""
        self.store(stage, values[0])

    def store(self, stage: Stage, value: Operand) -> None:
        base, flat = self.memory.locate(stage.array, stage.index)
        self.memory.write(stage.array.dtype, base, flat, value)

    def _update(self, stage: Stage) -> None:
        base, flat = self.memory.locate(stage.array, stage.index)
        value = self.exprs.operand(stage.value)
        if self.b.width > 1 and not updates_neighbours(stage):
            self._update_by_lane(stage, base, flat, value)
            return
        if stage.op != "set":
            old = self.memory.read(stage.array.dtype, base, flat, None)
            value = _combined(self.exprs, stage, old, value)
        self.memory.write(stage.array.dtype, base, flat, value)

    def _update_by_lane(self, stage: Stage, base: Value, flat: Index, value: Operand) -> None:
        """What is written, and where, for all lanes at once; then the updates, one lane after the
        other: their places may meet."""
        dtype, mask = stage.array.dtype, self.b.mask
        places = self.indices.vector(flat.substitute(self.indices.env))
        one = self.exprs.narrower(1)
        for lane in range(self.b.width):
            on = None if mask is None else self.b.extract(mask, lane)
            with self.b.where(on), one.b.scope():
                address = self.b.element_at(dtype, base, self.b.extract(places, lane))
                new = value.value if value.uniform else self.b.extract(value.value, lane)
                if stage.op != "set":
                    old = one.b.load_elements(dtype, address, 1)
                    operands = Operand(old, True), Operand(new, True)
                    new = _combined(one, stage, *operands).value
                one.b.store_elements(dtype, new, address)


def _combined(exprs: ScalarEmitter, stage: Stage, old: Operand, new: Operand) -> Operand:
    """What an update makes of an element."""
    function, dtype = EXPANSIONS[COMBINE[stage.op]], stage.array.dtype
    (value,) = apply(exprs, lambda a, b: [function(a, b)], [old, new], [dtype, dtype])
    return value


def _replaced(kernel: Kernel) -> set[Array]:
    """Arrays of which a stage overwrites what it, or one before it, has read."""
    read: set[Array] = set()
    replaced: set[Array] = set()
    for stage in kernel.stages:
        read.update(access.array for access in stage.reads)
        if stage.array in read:
            replaced.add(stage.array)
    return replaced
