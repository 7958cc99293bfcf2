"""Products of matrices on sm_90a: one warp brings operands, two warpgroups multiply them.

    producer    for each tile of the block, for each step of the sum:
                    wait until the stage is empty; announce its bytes; begin to copy boxes of a and b
    consumers   for each tile of the block, for each step of the sum:
                    wait until the stage is full; begin the products of 64 rows by all columns
                    wait for the products of the step before; its stage is empty
                store the sums, or what the epilogue makes of them

Stages go round in a ring of shared memory; two barriers in memory for each, `full` and `empty`, count
who has come and which bytes have arrived, and the parity of their phase changes at each round. The ring
has to begin at a multiple of ATOM, for the copy engine and the descriptors: the kernel itself sees to
it, whatever an assembler or a linker made of the alignment. The barriers lie behind the ring. There
are as many blocks as multiprocessors, each taking one tile after the other: while the consumers store
a tile, the next one's operands come. The producer's registers go to the consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping

from ....ir.record import record
from ....ir.types import F32
from ...cuda.emitter import Word
from ...cuda.program import Ref, TensorMap
from ...cuda.target import CudaTarget
from ...llvm.builder import Value, constant
from ...llvm.loops import Values
from ...llvm.text import Operand
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Matmul
from .cuda_boxes import Boxed, boxed
from .cuda_products import Product
from .cuda_results import Result, ResultEmitter
from .cuda_wgmma import ATOM, LINE, ROWS, Assembly, Form, multiply, wait

CONSUMERS = 2  # warpgroups
# Of a thread: at the start, and after the producer has given away what it does not need.
REGISTERS, PRODUCER_REGISTERS, CONSUMER_REGISTERS = 168, 40, 232


@record
class WarpgroupTile:
    """`rows` times 64 rows of the result for each consumer, by `n` columns; `stages` of the ring."""

    rows: int
    n: int
    stages: int
    element: str

    @property
    def m(self) -> int:
        return CONSUMERS * self.rows * ROWS

    @property
    def depth(self) -> int:
        return LINE // (4 if self.element == "tf32" else 2)

    @property
    def threads(self) -> int:
        return 128 * (1 + CONSUMERS)

    def blocks(self, step: Matmul) -> int:
        """How many tiles there are."""
        return step.batch * -(-step.m // self.m) * -(-step.n // self.n)

    @property
    def note(self) -> str:
        return f"tiles of {self.m} x {self.n}, {self.element} on tensor cores, by warpgroups"


class WarpgroupEmitter(ResultEmitter):
    """Emits the kernel of one product, for a grid of `blocks`."""

    def __init__(
        self,
        product: Product,
        tile: WarpgroupTile,
        sides: tuple[Boxed, Boxed],
        target: CudaTarget,
        definitions: MutableMapping[str, str],
        alignments: Mapping[Array, int],
    ) -> None:
        step = product.matmul
        others = [s.reads for s in product.epilogue.stages] if product.epilogue else []
        read = {access.array for accesses in others for access in accesses}
        arrays = [
            a for a in product.arrays if a in read or a not in (step.a, step.b) or a is step.c
        ]
        super().__init__(product, tile, target, definitions, alignments, arrays)
        self.tile, self.sides = tile, sides
        self.blocks = min(tile.blocks(step), target.sms)
        self.accumulators = tile.rows * tile.n // 2
        self.form = Form(tile.n, tile.element, sides[0].turned, sides[1].turned)
        self.starts = (0, sides[0].nbytes)
        self.stage_bytes = sum(side.nbytes for side in sides)
        self.ring_bytes = tile.stages * self.stage_bytes
        # No more alignment is promised than linkers keep: with it, rounding would be folded away.
        self.buffer = self.b.shared_block(self.ring_bytes + tile.stages * MBARRIERS + ATOM, 16)
        self.b.tensor_maps = len(sides)
        # Two elements of a thread are 4 bytes then: stores would be of parts of sectors.
        self.exchanges = tile.n % 32 == 0 and min(a.dtype.itemsize for a in product.writes) < 4
        self.b.attributes = {"nvvm.minctasm": "1", "nvvm.maxnreg": str(REGISTERS)}

    def maps(self, ref: Callable[[Array, int], Ref]) -> list[TensorMap]:
        """The arguments that come before the arrays."""
        return [side.map(ref) for side in self.sides]

    # The body.

    def body(self) -> None:
        """The kernel: one warpgroup brings operands to the ring, the others multiply them."""
        thread = self.b.thread()
        self._allocate_ring()
        with self.b.when(thread.eq(0)):
            for k in range(self.tile.stages):
                self._initialise(self.full, k, 1)
                self._initialise(self.empty, k, 4 * CONSUMERS)
            self.b.nvvm("llvm.nvvm.fence.mbarrier_init.release.cluster")
        self.b.barrier()
        group = thread >> 7
        # The same in all lanes, and known to be.
        group = self.b.nvvm("llvm.nvvm.shfl.sync.idx.i32", -1, group, 0, 31, fresh=True)
        self._either(group.eq(0), self._produce, lambda: self._consume(group, thread))

    def _allocate_ring(self) -> None:
        """The ring's first byte, its address in 32 bits, and the barriers."""
        stages = self.tile.stages
        start = self.buffer.to("ptrtoint", "i32")
        before = 0 - start & ATOM - 1
        self.start = start + before
        self.ring = self.b.offset(self.buffer, before, "i8")
        self.full, self.empty = (
            self.b.offset(self.ring, self.ring_bytes + 8 * k, "i8") for k in (0, stages)
        )

    def _initialise(self, barriers: Value, number: int, count: int) -> None:
        address = self._mbarrier(barriers, self.b.literal("i32", number))
        self.b.nvvm("llvm.nvvm.mbarrier.init.shared", address, count)

    def _either(
        self, condition: Value, then: Callable[[], None], other: Callable[[], None]
    ) -> None:
        first, second, end = (self.b.later(h) for h in ("producer", "consumer", "end"))
        self.b.branch(condition, first, second)
        for block, emit in ((first, then), (second, other)):
            with self.b.scope():
                self.b.at(block)
                emit()
                self.b.jump(end)
        self.b.at(end)

    def _each_tile(self, values: Values, body: Callable[[Values], Values]) -> None:
        """The tiles of this block, one after the other."""

        def turn(q: Value, carried: Values) -> Values:
            self.stand_at_tile(q)
            self.end: Word = self.step.k
            if self.product.total:
                k = self.step.k
                before = self.batch * k
                left = self.product.total - before
                self.end = self.indices.least(left, self.end)
            return body(carried)

        tiles = self.tile.blocks(self.step)
        self.loops.loop(self.b.block_number(), tiles, self.blocks, values, turn)

    # Rings: the stage's number and the parity of its round.

    def _ring(self) -> Values:
        return [Operand(constant("i32", 0), True)] * 2

    def _next(self, stage: Value, parity: Value) -> tuple[Value, Value]:
        after = stage + 1
        wraps = after.eq(self.tile.stages)
        turned = wraps.zext("i32")
        return self.b.select(wraps, 0, after), parity ^ turned

    def _mbarrier(self, barriers: Value, stage: Word) -> Value:
        return self.b.offset(barriers, stage, "i64")

    def _wait_for(self, barriers: Value, stage: Value, parity: Value) -> None:
        """Until the phase of that parity has ended."""
        again, done = self.b.later("wait"), self.b.later("done")
        address = self._mbarrier(barriers, stage)
        self.b.jump(again)
        self.b.at(again)
        name = "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta"
        self.b.branch(self.b.nvvm(name, address, parity, fresh=True), done, again)
        self.b.at(done)

    # The producer: one thread of one warp.

    def _produce(self) -> None:
        self.b.nvvm("llvm.nvvm.setmaxnreg.dec.sync.aligned.u32", PRODUCER_REGISTERS)
        with self.b.when(self.b.thread().ult(32)):
            chosen = self.b.nvvm("llvm.nvvm.elect.sync", -1, fresh=True)
            with self.b.when(self.b.field(chosen, 1)):
                self._each_tile(self._ring(), self._bring)

    def _bring(self, ring: Values) -> Values:
        """Begin the copies of one tile's operands."""

        def turn(k0: Value, carried: Values) -> Values:
            stage, parity = (c.value for c in carried)
            self._wait_for(self.empty, stage, parity ^ 1)
            full = self._mbarrier(self.full, stage)
            announce = "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta"
            self.b.nvvm(announce, full, self.stage_bytes, fresh=True)
            k = k0
            if self.product.total:
                before = self.batch * self.step.k
                k = before + k0
            base = stage * self.stage_bytes
            for number, first in enumerate((self.m0, self.n0)):
                self._copy(number, full, base, first, k)
            new = self._next(stage, parity)
            return [c._replace(value=t) for c, t in zip(carried, new, strict=True)]

        return self.loops.loop(0, self.end, self.tile.depth, ring, turn)

    def _copy(self, number: int, full: Word, base: Value, first: Word, first_k: Value) -> None:
        """Copy the boxes of one operand: rows from `first` on, the sum's positions from `first_k` on."""
        side = self.sides[number]
        row, k = self.b.narrowed(first), self.b.narrowed(first_k)
        for box, ahead in enumerate(side.boxes):
            at = base + (self.starts[number] + box * side.box_bytes)
            target = self.b.offset(self.ring, at, "i8")
            target = target.to("addrspacecast", "ptr addrspace(7)")
            here = row + ahead if ahead else row
            point = [here, k] if side.turned else [k, here]
            if side.batched:
                point.append(self.b.narrowed(self.batch))
            name = f"llvm.nvvm.cp.async.bulk.tensor.g2s.tile.{len(point)}d"
            hints = (0, 0, 0, 0, 0)
            self.b.nvvm(name, target, full, self.b.tensor_map(number), *point, *hints)

    # The consumers.

    def _consume(self, group: Value, thread: Value) -> None:
        tile = self.tile
        self.b.nvvm("llvm.nvvm.setmaxnreg.inc.sync.aligned.u32", CONSUMER_REGISTERS)
        lane = thread & 31
        self.first_lane = lane.eq(0)
        consumer = group - 1
        warp = thread >> 5 & 3
        row = warp * 16 + (lane >> 2)
        own = consumer * (tile.rows * ROWS)
        self.first_row = own + row
        self.quarter = lane & 3
        self.descriptors = [
            self._descriptor(0, consumer, tile.rows * ROWS),
            self._descriptor(1, consumer, 0),
        ]

        def turn(ring: Values) -> Values:
            sums, ring = self._sum(ring)
            self.store_results(self._exchanged(sums) if self.exchanges else sums)
            return ring

        self._each_tile(self._ring(), turn)

    def _descriptor(self, number: int, consumer: Value, rows: int) -> Value:
        """An operand's descriptor in the first stage; each consumer begins so many rows further on."""
        side = self.sides[number]
        start = self.start + self.starts[number] & 262143
        start = start >> 4
        if rows:
            start = start + consumer * side.ahead(rows, 0)
        return start.zext("i64") | side.descriptor

    def zeros(self) -> Values:
        return [Operand(self.b.scalar(0, F32), True)] * self.accumulators

    def _sum(self, ring: Values) -> tuple[list[Value], Values]:
        """The sums of one tile, and where the ring is then. The products of one step are under way
        while those of the next are begun."""
        count = self.accumulators

        def turn(k0: Value, carried: Values) -> Values:
            *sums, stage, parity, before = (c.value for c in carried)
            self._wait_for(self.full, stage, parity)
            sums = self._wait_until(1, self._multiply(stage, sums))
            started = before >= 0
            with self.b.when(started & self.first_lane):
                self._release(before)
            new = [*sums, *self._next(stage, parity), stage]
            return [c._replace(value=t) for c, t in zip(carried, new, strict=True)]

        values = [*self.zeros(), *ring, Operand(constant("i32", -1), True)]
        ends = self.loops.loop(0, self.end, self.tile.depth, values, turn)
        sums = self._wait_until(0, [c.value for c in ends[:count]])
        with self.b.when(self.first_lane):
            self._release(ends[-1].value)
        return sums, ends[count:-1]

    def _release(self, stage: Value) -> None:
        """One warp is done with a stage."""
        address = self._mbarrier(self.empty, stage)
        name = "llvm.nvvm.mbarrier.arrive.scope.cta.space.cta"
        self.b.nvvm(name, address, 1, fresh=True)

    def _multiply(self, stage: Value, sums: list[Value]) -> list[Value]:
        """Begin the products of a stage."""
        tile, form = self.tile, self.form
        ahead = (stage * (self.stage_bytes >> 4)).zext("i64")
        here = [d + ahead for d in self.descriptors]
        self.b.nvvm("llvm.nvvm.wgmma.fence.sync.aligned")
        product, each = multiply(form), form.accumulators
        for k in range(0, tile.depth, form.k):
            for i in range(tile.rows):
                operands = [
                    self._ahead(here[number], self.sides[number].ahead(rows, k))
                    for number, rows in ((0, i * ROWS), (1, 0))
                ]
                old = sums[i * each : (i + 1) * each]
                sums[i * each : (i + 1) * each] = self._assembly(product, *operands, *old)
        self.b.nvvm("llvm.nvvm.wgmma.commit_group.sync.aligned")
        return sums

    def _ahead(self, descriptor: Value, units: int) -> Value:
        return descriptor + units if units else descriptor

    def _wait_until(self, groups: int, sums: list[Value]) -> list[Value]:
        return self._assembly(wait(groups, len(sums)), *sums)

    def _assembly(self, assembly: Assembly, *operands: Value) -> list[Value]:
        """What assembly gives for operands."""
        text, constraints = assembly.text, assembly.constraints
        struct = self.b.assembly(assembly.result, text, constraints, *operands)
        return [self.b.field(struct, k) for k in range(assembly.accumulators)]

    # The result.

    def _rows(self) -> Iterator[tuple[Word, int]]:
        """This thread's rows, and the number of the first accumulator of each; the next pair of columns
        is 8 further on, and 4 accumulators."""
        for i in range(self.tile.rows):
            for half in range(2):
                ahead = ROWS * i + 8 * half
                row = self.first_row
                if ahead:
                    row = row + ahead
                yield row, i * self.form.accumulators + 2 * half

    def results(self) -> Iterator[Result]:
        step, pairs = (32, 4) if self.exchanges else (8, 1)
        first = self.quarter * (2 * pairs)
        for row, start in self._rows():
            for j in range(self.tile.n // step):
                column = first + step * j if j else first
                at = start + 4 * pairs * j
                yield Result(row, column, [at + 4 * s + c for s in range(pairs) for c in range(2)])

    def _exchanged(self, sums: list[Value]) -> list[Value]:
        """Four threads have pairs of columns of 4 times 8 neighbours; then each has all pairs of 8."""
        sums = list(sums)
        for _, start in self._rows():
            for first in range(start, start + self.form.accumulators, 16):
                for c in range(2):
                    numbers = [first + 4 * s + c for s in range(4)]
                    for number, text in zip(numbers, self._turned(numbers, sums), strict=True):
                        sums[number] = text
        return sums

    def _turned(self, numbers: list[int], sums: list[Value]) -> list[Value]:
        """Word t of thread s instead of word s of thread t, of four threads."""
        words = [sums[k] for k in numbers]
        for bit in (1, 2):
            mine = self.quarter & bit
            upper = mine.ne(0)
            for low in (k for k in range(4) if not k & bit):
                x, y = words[low], words[low | bit]
                sent = self.b.select(upper, x, y)
                name = "llvm.nvvm.shfl.sync.bfly.f32"
                taken = self.b.nvvm(name, -1, sent, bit, 31, fresh=True)
                words[low] = self.b.select(upper, taken, x)
                words[low | bit] = self.b.select(upper, y, taken)
        return words


# Rows of 64 for each consumer, columns; how much faster than other instructions of tensor cores.
SHAPES = {(1, 256): 1.7, (2, 128): 1.7, (1, 192): 1.6, (1, 128): 1.5, (1, 64): 1.1}
SHARED_BYTES = 227 << 10  # that a block may have
MBARRIERS = 16  # bytes of a stage's barriers
_MOST_STAGES = 8


def warpgroup_tiles(
    product: Product, target: CudaTarget, alignment: Callable[[Array, int], int]
) -> list[tuple[WarpgroupTile, float]]:
    """Tiles that warpgroups of the target can multiply, each with how fast it is."""
    element = _element(product.matmul, target)
    if not element:
        return []
    candidates = [(tile_of(*shape, element), speed) for shape, speed in SHAPES.items()]
    return [
        (t, v) for t, v in candidates if boxed(product, t.m, t.n, element, alignment) is not None
    ]


def _element(step: Matmul, target: CudaTarget) -> str:
    """What tensor cores make of the operands' elements; "": they do not take them."""
    if target.name != "sm_90a" or target.ptx < 80:
        return ""
    if step.element:
        return step.element
    return "tf32" if step.a.dtype == F32 and target.tf32 else ""


def tile_of(rows: int, n: int, element: str) -> WarpgroupTile:
    """A tile with as many stages as fit."""
    stage = (CONSUMERS * rows * ROWS + n) * LINE
    stages = min((SHARED_BYTES - ATOM) // (stage + MBARRIERS), _MOST_STAGES)
    return WarpgroupTile(rows, n, stages, element)
