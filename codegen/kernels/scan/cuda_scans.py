"""Kernels of scans: threads scan what they hold, then the totals of each other.

    along rows:     a warp takes a piece of a tile, `items` accesses of neighbouring lanes; lanes scan
                    their totals by shuffles, warps theirs through shared memory
    down columns:   lanes take neighbouring columns, the threads that go down one of them `items` rows
                    each; what they have come to goes through shared memory

A row of several tiles is walked by its team, which carries what the tiles before have come to. Positions
beyond the end repeat the last one: they come after all that is stored.
"""

from __future__ import annotations

from ...cuda.lanes import LaneEmitter
from ...cuda.scan_plan import ScanPlan
from ...cuda.teams import Team
from ...cuda.warps import WARP
from ...llvm.loops import Carried, Values
from ...llvm.reductions import Fold, apply
from ...llvm.text import Operand
from ...loop_ir.index import Var
from ...loop_ir.kernel import Nest, Stage


class ScanEmitter(LaneEmitter):
    """What both forms have in common: the walk over tiles, and the monoid."""

    stage: Stage
    nest: Nest
    scan: ScanPlan

    def body(self) -> None:
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

    def stand(self) -> None:
        """Find this thread's row or column."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """Steps of the inner loop: what `tile` counts."""
        raise NotImplementedError

    @property
    def carried(self) -> int:
        """How many values go from tile to tile."""
        return 1

    def tile(self, number: str, carry: list[str], limit: str) -> list[str]:
        """Scan one tile, after `carry`; steps from `limit` on do not exist ("": all do).

        Steps are counted in the order of the scan.
        """
        raise NotImplementedError

    def _tiles(self) -> None:
        scan = self.scan
        each, ragged = scan.team * scan.items, self.stage.chunks is not None
        if scan.trips == 1:
            limit = self._limit() if ragged or self.count % each else ""
            self.tile("0", [], limit)
            return
        whole = 0 if ragged else self.count // each
        carry: Values = [self.neutral] * self.carried

        def step(number: str, values: Values, limit: str = "") -> Values:
            ends = self.tile(self.narrow(number), [v.text for v in values], limit)
            return [Carried(text, True, self.neutral.type) for text in ends]

        if whole:
            carry = self.loops.loop("0", str(whole), 1, carry, step)
        if whole == scan.trips - 1:
            step(str(whole), carry, self._limit())
        elif not whole:
            limit = self._limit()
            self.loops.loop("0", str(scan.trips), 1, carry, lambda n, v: step(n, v, limit))

    def _limit(self) -> str:
        """How many steps there are: fewer in the last chunk of a row that was cut."""
        chunks, ty = self.stage.chunks, self.b.index_type
        if chunks is None:
            return str(self.count)
        start = self.indices.value(self.indices.env[self.stage.dims[chunks.axis]] * chunks.length)
        left = self.b.value_of(f"sub {ty} {chunks.total}, {start}")
        left = self.indices.least(left, str(chunks.length))
        each = chunks.length // self.count
        if each > 1:
            left = self.b.value_of(f"udiv {ty} {left}, {each}")
        return self.narrow(left)

    def narrow(self, text: str) -> str:
        """An index that is small, in 32 bits."""
        if self.b.index_type == "i32" or text[0] != "%":
            return text
        return self.b.value_of(f"trunc i64 {text} to i32")

    def clamped(self, step: str, limit: str) -> tuple[str, str]:
        """Whether there is such a step, and the step or the last one."""
        if not limit:
            return "", step
        last = self.b.value_of(f"sub i32 {limit}, 1") if limit[0] == "%" else str(int(limit) - 1)
        valid = self.b.value_of(f"icmp slt i32 {step}, {limit}")
        return valid, self.b.value_of(f"select i1 {valid}, i32 {step}, i32 {last}")

    def position(self, step: str, limit: str) -> str:
        """Where a step is in the order of memory."""
        if self.stage.reverse:
            count = limit or str(self.count)
            last = (
                self.b.value_of(f"sub i32 {count}, 1") if count[0] == "%" else str(int(count) - 1)
            )
            step = self.b.value_of(f"sub i32 {last}, {step}")
        return self.b.widened(step)

    def both(self, a: str | None, b: str) -> str:
        """The monoid's operation; nothing is before the first value."""
        if a is None:
            return b
        operands = [Operand(a, True), Operand(b, True)]
        return apply(self.exprs, self.fold.merge, operands, [self.dtype, self.dtype])[0].text

    def chosen(self, condition: str, a: str, b: str) -> str:
        ty = self.neutral.type
        return self.b.value_of(f"select i1 {condition}, {ty} {a}, {ty} {b}")

    def turns(self, number: str, count: int) -> str:
        """Where in shared memory the tile's values begin: tiles use two places in turns, so that
        nobody overwrites what others still read."""
        if self.scan.trips == 1:
            return "0"
        odd = self.b.value_of(f"and i32 {number}, 1")
        return self.b.value_of(f"mul i32 {odd}, {count}")

    @property
    def places(self) -> int:
        return min(self.scan.trips, 2)

    # The elements at one step.

    def values_here(self) -> list[str]:
        found = [""] * self.memory.lanes
        for _ in self.memory.each():
            found[self.memory.number] = self.exprs.operand(self.stage.value).text
        return found

    def store_here(self, values: list[str], valid: str) -> None:
        for _ in self.memory.each():
            self.stages.store(self.stage, Operand(values[self.memory.number], True))
        conditions = [c for c in (valid, self.team.here) if c]
        if not conditions:
            self.memory.flush()
            return
        on = conditions[0]
        for other in conditions[1:]:
            on = self.b.value_of(f"and i1 {on}, {other}")
        with self.b.when(on):
            self.memory.flush()


class RowScanEmitter(ScanEmitter):
    """A team of threads along each row."""

    def stand(self) -> None:
        self.team.stand_at_own_row(self.layout.outer.vars, self.layout.threads)
        self.memory.lanes, self.memory.along = self.layout.lanes, self.inner
        width = self.width_of_group
        self.lane_number = self.b.value_of(f"and i32 {self.team.member}, {width - 1}")
        self.warp_number = self.b.value_of(f"lshr i32 {self.team.member}, {WARP.bit_length() - 1}")
        piece = self.b.value_of(f"mul i32 {self.warp_number}, {width * self.scan.items}")
        self.start = self.b.value_of(f"add i32 {piece}, {self.lane_number}")
        if self.warps > 1:
            self.buffer = self.b.shared(self.dtype, self.places * self.warps)

    @property
    def width_of_group(self) -> int:
        return min(self.team.size, WARP)

    @property
    def warps(self) -> int:
        return max(self.team.size // WARP, 1)

    @property
    def count(self) -> int:
        return self.inner.extent // self.layout.lanes

    def tile(self, number: str, carry: list[str], limit: str) -> list[str]:
        scan = self.scan
        before = self.b.value_of(f"mul i32 {number}, {self.team.size * scan.items}")
        start = self.b.value_of(f"add i32 {before}, {self.start}")
        steps = [
            self.clamped(self.b.value_of(f"add i32 {start}, {k * self.width_of_group}"), limit)
            for k in range(scan.items)
        ]
        items = []
        for _, step in steps:
            self._stand_at_step(step, limit)
            items.append(self._scanned(self.values_here()))
        last = 0 if self.stage.reverse else self.memory.lanes - 1
        # What each access has before it in the warp's piece, and the piece's total.
        total: str | None = None
        befores: list[str | None] = []
        inside: list[str | None] = []
        for values in items:
            befores.append(total)
            sums, own = self._lane_sums(values[last])
            inside.append(own)
            total = self.both(total, sums)
        assert total is not None
        base: str | None = carry[0] if carry else None
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

    def _stand_at_step(self, step: str, limit: str) -> None:
        ty, lanes = self.b.index_type, self.memory.lanes
        first = self.b.value_of(f"mul {ty} {self.position(step, limit)}, {lanes}")
        self.memory.first = self.indices.positions[self.inner] = first
        self.memory.points = [{} for _ in range(lanes)]

    def _scanned(self, values: list[str]) -> list[str]:
        """The scan of one access of this thread."""
        order = list(range(len(values)))
        if self.stage.reverse:
            order.reverse()
        found, total = list(values), None
        for k in order:
            found[k] = total = self.both(total, values[k])
        return found

    def _lane_sums(self, total: str) -> tuple[str, str | None]:
        """From each lane's total: that of all lanes, and of those before this one (None: of no lane)."""
        width = self.width_of_group
        if width == 1:
            return total, None
        own = self._scan_lanes(total, width)
        before, some = self.team.warp.from_before(own, self.dtype, 1, width)
        whole = self.team.warp.from_lane(own, self.dtype, width - 1, width)
        return whole, self.chosen(some, before, self.neutral.text)

    def _scan_lanes(self, own: str, width: int) -> str:
        distance = 1
        while distance < width:
            other, some = self.team.warp.from_before(own, self.dtype, distance, width)
            own = self.chosen(some, self.both(other, own), own)
            distance *= 2
        return own

    def _after_warps(self, number: str, total: str, base: str | None) -> tuple[str, list[str]]:
        """What is before this warp's piece, and before the next tile."""
        warps, lane = self.warps, self.lane_number
        turn = self.turns(number, warps)
        with self.b.when(self.b.value_of(f"icmp eq i32 {lane}, 0")):
            place = self.b.value_of(f"add i32 {turn}, {self.warp_number}")
            self.b.store_elements(
                self.dtype, total, self.b.in_shared(self.dtype, self.buffer, place), 1
            )
        self.b.barrier()
        one = self.b.value_of(f"and i32 {lane}, {warps - 1}")
        place = self.b.value_of(f"add i32 {turn}, {one}")
        found = self.b.load_elements(
            self.dtype, self.b.in_shared(self.dtype, self.buffer, place), 1
        )
        sums = self._scan_lanes(found, warps)
        last = self.b.value_of(f"sub i32 {self.warp_number}, 1")
        before = self.team.warp.from_lane(sums, self.dtype, last)
        none = self.b.value_of(f"icmp eq i32 {self.warp_number}, 0")
        before = self.chosen(none, self.neutral.text, before)
        whole = self.team.warp.from_lane(sums, self.dtype, warps - 1)
        return self.both(base, before), [] if base is None else [self.both(base, whole)]


class ColumnScanEmitter(ScanEmitter):
    """Neighbouring lanes take neighbouring columns; a team of threads, one of each warp, goes down."""

    def stand(self) -> None:
        plan, ty, op = self.layout, self.b.index_type, self.b.value_of
        depth, threads = self.team.size, plan.threads
        thread, lanes = self.b.thread(), plan.lanes
        column, warp = op(f"and i32 {thread}, {WARP - 1}"), op(f"lshr i32 {thread}, 5")
        group = op(f"lshr i32 {warp}, {depth.bit_length() - 1}")
        self.team.member = op(f"and i32 {warp}, {depth - 1}")
        side = op(f"add i32 {op(f'mul i32 {group}, {WARP}')}, {column}")
        first = op(f"mul {ty} {self.b.block_number()}, {threads // depth}")
        q = op(f"add {ty} {first}, {self.b.widened(side)}")
        if plan.units % (threads // depth):
            self.team.here = op(f"icmp slt {ty} {q}, {plan.units}")
            q = self.indices.least(q, str(plan.units - 1))
        *others, last = plan.outer.vars
        unit = Var("unit", last.extent // lanes)
        self.indices.stand_at((*others, unit), q)
        self.memory.lanes, self.memory.along = lanes, last
        at = self.indices.positions[unit]
        at = op(f"mul {ty} {at}, {lanes}") if lanes > 1 else at
        self.memory.first = self.indices.positions[last] = at
        self.memory.points = [{} for _ in range(lanes)]
        self.start = op(f"mul i32 {self.team.member}, {self.scan.items}")
        if depth > 1:
            self.buffer = self.b.shared(self.dtype, self.places * lanes * threads)
            self.top = op(f"add i32 {op(f'mul i32 {group}, {depth * WARP}')}, {column}")

    @property
    def count(self) -> int:
        return self.inner.extent

    @property
    def carried(self) -> int:
        return self.layout.lanes

    def tile(self, number: str, carry: list[str], limit: str) -> list[str]:
        scan, lanes = self.scan, self.memory.lanes
        before = self.b.value_of(f"mul i32 {number}, {self.team.size * scan.items}")
        start = self.b.value_of(f"add i32 {before}, {self.start}")
        steps = [
            self.clamped(self.b.value_of(f"add i32 {start}, {k}"), limit) for k in range(scan.items)
        ]
        items: list[list[str]] = []
        totals: list[str | None] = [None] * lanes
        for _, step in steps:
            self.indices.positions[self.inner] = self.position(step, limit)
            values = [self.both(a, b) for a, b in zip(totals, self.values_here(), strict=True)]
            items.append(values)
            totals = [*values]
        bases: list[str | None] = [*carry] if carry else [None] * lanes
        ends = [self.both(base, end) for base, end in zip(bases, items[-1], strict=True)]
        if self.team.size > 1:
            bases, ends = self._after_members(number, items[-1], bases)
        for (valid, step), values in zip(steps, items, strict=True):
            self.indices.positions[self.inner] = self.position(step, limit)
            found = [self.both(base, v) for base, v in zip(bases, values, strict=True)]
            self.store_here(found, valid)
        return ends if carry else []

    def _after_members(
        self, number: str, totals: list[str], bases: list[str | None]
    ) -> tuple[list[str | None], list[str]]:
        """What is before this thread's rows in each column, and before the next tile."""
        threads, op, lanes = self.layout.threads, self.b.value_of, self.memory.lanes
        turn = self.turns(number, lanes * threads)
        mine = op(f"add i32 {turn}, {self.b.thread()}")
        for k, total in enumerate(totals):
            place = op(f"add i32 {mine}, {k * threads}")
            self.b.store_elements(
                self.dtype, total, self.b.in_shared(self.dtype, self.buffer, place), 1
            )
        self.b.barrier()
        top = op(f"add i32 {turn}, {self.top}")
        here: list[str | None] = []
        ends: list[str] = []
        for k, base in enumerate(bases):
            sums = self.neutral.text if base is None else base
            mine = sums
            for m in range(self.team.size):
                place = op(f"add i32 {top}, {k * threads + m * WARP}")
                found = self.b.load_elements(
                    self.dtype, self.b.in_shared(self.dtype, self.buffer, place), 1
                )
                sums = self.both(sums, found)
                if m + 1 < self.team.size:
                    later = op(f"icmp sgt i32 {self.team.member}, {m}")
                    mine = self.chosen(later, sums, mine)
            here.append(mine)
            ends.append(sums)
        return here, ends
