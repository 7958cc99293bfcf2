"""Kernels of scans: threads scan what they hold, then the totals of each other.

    along rows:     a warp takes a piece of a tile, `items` accesses of neighbouring lanes; lanes scan
                    their totals by shuffles, warps theirs through shared memory
    down columns:   lanes take neighbouring columns, the threads that go down one of them `items` rows
                    each; what they have come to goes through shared memory

A row of several tiles is walked by its team, which carries what the tiles before have come to. Positions
beyond the end repeat the last one: they come after all that is stored.
"""

from __future__ import annotations

from abc import abstractmethod

from ...cuda.emitter import Word
from ...cuda.lanes import LaneEmitter
from ...cuda.scan_plan import ScanTile
from ...cuda.teams import Team
from ...cuda.warps import WARP
from ...llvm.builder import Condition, Value
from ...llvm.loops import Values
from ...llvm.reductions import Fold, apply
from ...llvm.text import Operand
from ...loop_ir.index import Var
from ...loop_ir.kernel import Nest, Stage


class ScanEmitter(LaneEmitter):
    """What both forms have in common: the walk over tiles, and the monoid."""

    stage: Stage
    nest: Nest
    scan: ScanTile

    def body(self) -> None:
        """The kernel: a team finds its row or column, and walks it tile by tile."""
        plan = self.layout
        assert plan.scan is not None, "the schedule of a scan"
        self.scan, self.memory.holds_back = plan.scan, True
        (self.nest,) = self.kernel.nests
        (self.stage,) = self.nest.stages
        self.dtype = self.stage.array.dtype
        self.team = Team(self.b, self.indices, self.scan.team)
        self.memory.by_points = True
        fold = self.stages.reduction(self.stage, self.nest, False)
        assert isinstance(fold, Fold), "scans are folds of one value"
        self.fold = fold
        (self.neutral,) = fold.initial()
        self.indices.env.update(plan.outer.env)
        self.indices.env.update(plan.inner[0].env)
        (self.inner,) = plan.inner[0].vars or (Var("one", 1),)
        self.stand()
        self.stages.hoist(self.nest)
        self._tiles()

    @abstractmethod
    def stand(self) -> None:
        """Find this thread's row or column."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Steps of the inner loop: what `tile` counts."""

    @property
    def carried(self) -> int:
        """How many values go from tile to tile."""
        return 1

    @abstractmethod
    def tile(self, number: Word, carry: list[Value], limit: Word | None) -> list[Value]:
        """Scan one tile, after `carry`; steps from `limit` on do not exist ("": all do).

        Steps are counted in the order of the scan.
        """

    def _tiles(self) -> None:
        scan = self.scan
        each, ragged = scan.team * scan.items, self.stage.chunks is not None
        if scan.tiles == 1:
            limit = self._limit() if ragged or self.count % each else None
            self.tile(0, [], limit)
            return
        whole = 0 if ragged else self.count // each
        carry: Values = [self.neutral] * self.carried

        def step(number: Word, values: Values, limit: Word | None = None) -> Values:
            ends = self.tile(self.b.narrowed(number), [v.value for v in values], limit)
            return [Operand(value, True) for value in ends]

        if whole:
            carry = self.loops.loop(0, whole, 1, carry, step)
        if whole == scan.tiles - 1:
            step(whole, carry, self._limit())
        elif not whole:
            limit = self._limit()
            self.loops.loop(0, scan.tiles, 1, carry, lambda n, v: step(n, v, limit))

    def _limit(self) -> Word:
        """How many steps there are: fewer in the last chunk of a row that was cut."""
        chunks = self.stage.chunks
        if chunks is None:
            return self.count
        start = self.indices.value(self.indices.env[self.stage.dims[chunks.axis]] * chunks.length)
        left = chunks.total - start
        left = self.indices.least(left, chunks.length)
        each = chunks.length // self.count
        if each > 1:
            left = left // each
        return self.b.narrowed(left)

    def clamped(self, step: Word, limit: Word | None) -> tuple[Condition | None, Word]:
        """Whether there is such a step, where that is in doubt, and the step or the last one."""
        if limit is None:
            return None, step
        last = limit - 1
        valid = step < limit
        return valid, self.b.select(valid, step, last)

    def position(self, step: Word, limit: Word | None) -> Word:
        """Where a step is in the order of memory."""
        if self.stage.reverse:
            last = (self.count if limit is None else limit) - 1
            step = last - step
        return self.b.widened(step)

    def both(self, a: Value | None, b: Value) -> Value:
        """The monoid's operation; nothing is before the first value."""
        if a is None:
            return b
        operands = [Operand(a, True), Operand(b, True)]
        return apply(self.exprs, self.fold.merge, operands, [self.dtype, self.dtype])[0].value

    def turns(self, number: Word, count: int) -> Word:
        """Where in shared memory the tile's values begin: tiles use two slots in turns, so that
        nobody overwrites what others still read."""
        if self.scan.tiles == 1:
            return 0
        odd = number & 1
        return odd * count

    @property
    def slots(self) -> int:
        return min(self.scan.tiles, 2)

    # The elements at one step.

    def values_here(self) -> list[Value]:
        return [self.exprs.operand(self.stage.value).value for _ in self.memory.each()]

    def store_here(self, values: list[Value], valid: Condition | None) -> None:
        for _ in self.memory.each():
            self.stages.store(self.stage, Operand(values[self.memory.number], True))
        with self.b.where(self.b.both(valid, self.team.here)):
            self.memory.flush()


class RowScanEmitter(ScanEmitter):
    """Scans along rows: a team of threads walks each row, tile by tile."""

    def stand(self) -> None:
        self.team.stand_at_own_row(self.layout.outer.vars, self.layout.threads)
        self.memory.lanes, self.memory.along = self.layout.lanes, self.inner
        width = self.width_of_group
        self.lane_number = self.team.member & width - 1
        self.warp_number = self.team.member >> WARP.bit_length() - 1
        piece = self.warp_number * (width * self.scan.items)
        self.start = piece + self.lane_number
        if self.warps > 1:
            self.buffer = self.b.shared(self.dtype, self.slots * self.warps)

    @property
    def width_of_group(self) -> int:
        return min(self.team.size, WARP)

    @property
    def warps(self) -> int:
        return max(self.team.size // WARP, 1)

    @property
    def count(self) -> int:
        return self.inner.extent // self.layout.lanes

    def tile(self, number: Word, carry: list[Value], limit: Word | None) -> list[Value]:
        """One tile: lanes scan a warp's piece, then warps each other's totals; what is carried on."""
        scan = self.scan
        before = number * (self.team.size * scan.items)
        start = before + self.start
        steps = [self.clamped(start + k * self.width_of_group, limit) for k in range(scan.items)]
        items = []
        for _, step in steps:
            self._stand_at_step(step, limit)
            items.append(self._scanned(self.values_here()))
        last = 0 if self.stage.reverse else self.memory.lanes - 1
        # What each access has before it in the warp's piece, and the piece's total.
        total: Value | None = None
        befores: list[Value | None] = []
        inside: list[Value | None] = []
        for values in items:
            befores.append(total)
            sums, own = self._lane_sums(values[last])
            inside.append(own)
            total = self.both(total, sums)
        assert total is not None
        base: Value | None = carry[0] if carry else None
        ends = [self.both(base, total)] if carry else []
        if self.warps > 1:
            base, ends = self._after_warps(number, total, base)
        for (valid, step), values, prior, own in zip(steps, items, befores, inside, strict=True):
            start_from = base if prior is None else self.both(base, prior)
            if own is not None:
                start_from = self.both(start_from, own)
            self._stand_at_step(step, limit)
            self.store_here([self.both(start_from, v) for v in values], valid)
        return ends

    def _stand_at_step(self, step: Word, limit: Word | None) -> None:
        lanes = self.memory.lanes
        first = self.position(step, limit) * lanes
        self.memory.first = self.indices.positions[self.inner] = first
        self.memory.points = [{} for _ in range(lanes)]

    def _scanned(self, values: list[Value]) -> list[Value]:
        """The scan of one access of this thread."""
        order = list(range(len(values)))
        if self.stage.reverse:
            order.reverse()
        prefixes, total = list(values), None
        for k in order:
            prefixes[k] = total = self.both(total, values[k])
        return prefixes

    def _lane_sums(self, total: Value) -> tuple[Value, Value | None]:
        """From each lane's total: that of all lanes, and of those before this one (None: of no lane)."""
        width = self.width_of_group
        if width == 1:
            return total, None
        own = self._scan_lanes(total, width)
        before, some = self.team.warp.from_before(own, self.dtype, 1, width)
        whole = self.team.warp.from_lane(own, self.dtype, width - 1, width)
        return whole, self.b.select(some, before, self.neutral.value)

    def _scan_lanes(self, own: Value, width: int) -> Value:
        distance = 1
        while distance < width:
            other, some = self.team.warp.from_before(own, self.dtype, distance, width)
            own = self.b.select(some, self.both(other, own), own)
            distance *= 2
        return own

    def _after_warps(
        self, number: Word, total: Value, base: Value | None
    ) -> tuple[Value, list[Value]]:
        """What is before this warp's piece, and before the next tile."""
        warps, lane = self.warps, self.lane_number
        turn = self.turns(number, warps)
        with self.b.when(lane.eq(0)):
            slot = turn + self.warp_number
            there = self.b.in_shared(self.dtype, self.buffer, slot)
            self.b.store_elements(self.dtype, total, there)
        self.b.barrier()
        one = lane & warps - 1
        slot = turn + one
        partial = self.b.load_elements(
            self.dtype, self.b.in_shared(self.dtype, self.buffer, slot), 1
        )
        sums = self._scan_lanes(partial, warps)
        before = self.team.warp.from_lane(sums, self.dtype, self.warp_number - 1)
        none = self.warp_number.eq(0)
        before = self.b.select(none, self.neutral.value, before)
        whole = self.team.warp.from_lane(sums, self.dtype, warps - 1)
        return self.both(base, before), [] if base is None else [self.both(base, whole)]


class ColumnScanEmitter(ScanEmitter):
    """Neighbouring lanes take neighbouring columns; a team of threads, one of each warp, goes down."""

    def stand(self) -> None:
        plan = self.layout
        depth, threads = self.team.size, plan.threads
        thread, lanes = self.b.thread(), plan.lanes
        column, warp = thread & WARP - 1, thread >> 5
        group = warp >> depth.bit_length() - 1
        self.team.member = warp & depth - 1
        side = group * WARP + column
        first = self.b.block_number() * (threads // depth)
        q = first + self.b.widened(side)
        if plan.units % (threads // depth):
            self.team.here = q < plan.units
            q = self.indices.least(q, plan.units - 1)
        *others, last = plan.outer.vars
        unit = Var("unit", last.extent // lanes)
        self.indices.stand_at((*others, unit), q)
        self.memory.lanes, self.memory.along = lanes, last
        at = self.indices.positions[unit]
        at = at * lanes if lanes > 1 else at
        self.memory.first = self.indices.positions[last] = at
        self.memory.points = [{} for _ in range(lanes)]
        self.start = self.team.member * self.scan.items
        if depth > 1:
            self.buffer = self.b.shared(self.dtype, self.slots * lanes * threads)
            self.top = group * (depth * WARP) + column

    @property
    def count(self) -> int:
        return self.inner.extent

    @property
    def carried(self) -> int:
        return self.layout.lanes

    def tile(self, number: Word, carry: list[Value], limit: Word | None) -> list[Value]:
        """One tile: threads scan their rows, members each other's totals; what is carried on."""
        scan, lanes = self.scan, self.memory.lanes
        before = number * (self.team.size * scan.items)
        start = before + self.start
        steps = [self.clamped(start + k, limit) for k in range(scan.items)]
        items: list[list[Value]] = []
        totals: list[Value | None] = [None] * lanes
        for _, step in steps:
            self.indices.positions[self.inner] = self.position(step, limit)
            values = [self.both(a, b) for a, b in zip(totals, self.values_here(), strict=True)]
            items.append(values)
            totals = [*values]
        bases: list[Value | None] = [*carry] if carry else [None] * lanes
        ends = [self.both(base, end) for base, end in zip(bases, items[-1], strict=True)]
        if self.team.size > 1:
            bases, ends = self._after_members(number, items[-1], bases)
        for (valid, step), values in zip(steps, items, strict=True):
            self.indices.positions[self.inner] = self.position(step, limit)
            sums = [self.both(base, v) for base, v in zip(bases, values, strict=True)]
            self.store_here(sums, valid)
        return ends if carry else []

    def _after_members(
        self, number: Word, totals: list[Value], bases: list[Value | None]
    ) -> tuple[list[Value | None], list[Value]]:
        """What is before this thread's rows in each column, and before the next tile."""
        threads, lanes = self.layout.threads, self.memory.lanes
        turn = self.turns(number, lanes * threads)
        mine = turn + self.b.thread()
        for k, total in enumerate(totals):
            slot = mine + k * threads
            there = self.b.in_shared(self.dtype, self.buffer, slot)
            self.b.store_elements(self.dtype, total, there)
        self.b.barrier()
        top = turn + self.top
        here: list[Value | None] = []
        ends: list[Value] = []
        for k, base in enumerate(bases):
            sums = self.neutral.value if base is None else base
            mine = sums
            for m in range(self.team.size):
                slot = top + (k * threads + m * WARP)
                partial = self.b.load_elements(
                    self.dtype, self.b.in_shared(self.dtype, self.buffer, slot), 1
                )
                sums = self.both(sums, partial)
                if m + 1 < self.team.size:
                    later = self.team.member > m
                    mine = self.b.select(later, sums, mine)
            here.append(mine)
            ends.append(sums)
        return here, ends
