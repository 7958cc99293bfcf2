"""A lowered program as steps of a `DeviceProgram`: kernels emitted, arrays as locations in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from ...ir.types import BOOL
from ..cuda import program as device
from ..cuda.emitter import ThreadBuilder
from ..cuda.intrinsics import INTRINSICS
from ..cuda.program import KernelShape, Launch, Ref
from ..cuda.scalar_code import ScalarThreadEmitter
from ..cuda.schedule import Schedule, schedule
from ..cuda.target import CudaTarget
from ..cuda.tuning import Chooser
from ..kernels.attention.cuda_lowering import attention_steps
from ..kernels.attention.cuda_plan import AttentionStep
from ..kernels.matmul.cuda_library import LibraryProduct, library_steps
from ..kernels.matmul.cuda_products import Product
from ..kernels.matmul.cuda_tiles import Tile
from ..kernels.matmul.cuda_warpgroups import WarpgroupTile, warpgroup_tiles
from ..kernels.sort.cuda_select_plan import Select
from ..kernels.sort.cuda_steps import select_steps, sort_steps
from ..kernels.tape.cuda_tapes import THREADS as TAPE_THREADS
from ..kernels.tape.cuda_tapes import TapeEmitter
from ..llvm.builder import Value
from ..loop_ir import steps as lowered
from ..loop_ir.kernel import Array, Kernel
from ..marks import Marks
from ..module import KernelReport
from ..program.entry import readable
from ..schedule.signature import Signature, signature
from ..schedule.traffic import bytes_moved
from .emitters import emitter_for, ops_of
from .last_block import with_tails

T = TypeVar("T")
ALIGNED = 16  # bytes that matter to an access


class ProgramBuilder:
    """Collects the kernels, constants and reports of one program."""

    def __init__(
        self,
        target: CudaTarget,
        alignments: Sequence[int],
        chooser: Chooser | None = None,
        trial: Callable[[ProgramBuilder], Any] | None = None,
    ) -> None:
        self.target = target
        self.chooser = chooser or Chooser()
        self.trial = trial  # a builder of programs of one step, by which its ways are timed
        self.alignments = alignments  # of the inputs
        self.kernels: dict[str, KernelShape] = {}
        self.texts: dict[str, tuple[str, str]] = {}  # without a name -> name, and with it
        self.built: dict[Hashable, tuple[str, Schedule, bool]] = {}
        self.definitions: dict[str, str] = {}
        self.declarations: set[str] = set()
        self.constants: dict[Array, int] = {}
        self.slots: dict[Array, tuple[int, int]] = {}  # number, alignment
        self.aliases: dict[Array, Array] = {}  # carries that stay where they are
        self.reports: dict[str, KernelReport] = {}
        self.marks: Marks | None = None  # if instructions are to say their lines
        self.slot_count = 0
        self.counter_words = 0

    def ir(self) -> str:
        globals_ = [f"{name} = {body}" for body, name in self.definitions.items()]
        texts = [text for _, text in self.texts.values()]
        return "\n".join([*globals_, *sorted(self.declarations), *texts, ""])

    @property
    def arch(self) -> str:
        """The least architecture that has all that is called."""
        called = [line.split("@")[1].split("(")[0] for line in self.declarations]
        rows = [INTRINSICS[name] for name in called]
        features = max((row.features for row in rows), default="")
        return f"sm_{max((row.sm for row in rows), default=75)}{features}"

    # Memory.

    def ref(self, array: Array, offset: int = 0) -> Ref:
        """Where an array is, `offset` bytes on."""
        array = self.aliases.get(array, array)
        match array.kind:
            case "input" | "output":
                return Ref(array.kind, array.position, offset + array.start * array.dtype.itemsize)
            case "temp":
                assert array.offset >= 0, f"{array!r} has no offset in the arena"
                return Ref("arena", 0, array.offset + offset)
            case "const":
                return Ref(
                    "constant", self.constants.setdefault(array, len(self.constants)), offset
                )
        return Ref("slot", self.slots[array][0], offset)

    def alignment(self, array: Array, offset: int = 0) -> int:
        """What the address is known to be a multiple of, up to 16."""
        array = self.aliases.get(array, array)
        if array.kind == "input":
            base = self.alignments[array.position]
        elif array.kind == "slot":
            base = self.slots[array][1]
        else:
            base = ALIGNED
        offset += array.start * array.dtype.itemsize
        return math.gcd(base, offset, ALIGNED)

    def slot(self, array: Array, alignment: int) -> int:
        self.slots[array] = (self.slot_count, alignment)
        self.slot_count += 1
        return self.slot_count - 1

    # Steps.

    def steps(self, program: lowered.Program) -> tuple[device.Step, ...]:
        steps: list[device.Step] = []
        todo = list(program.steps)
        while todo:
            launch, count = with_tails(self, todo)
            steps += [launch] if launch is not None else self.step(todo[0])
            todo = todo[count:]
        return tuple(steps)

    def step(self, step: Any) -> list[device.Step]:
        return EMITTERS[type(step)](self, step)

    def chosen(
        self,
        family: str,
        what: str,
        ways: Mapping[str, T],
        steps: Callable[[ProgramBuilder, T], Sequence[device.Step]],
    ) -> T:
        """One of several ways of doing a step; `steps` makes it, with a builder, in a given way."""

        def trial(way: T) -> device.DeviceProgram:
            assert self.trial is not None, "programs are built with trials where there is a choice"
            builder = self.trial(self)
            program: device.DeviceProgram = builder.program(steps(builder, way))
            return program

        if len(ways) == 1:
            return next(iter(ways.values()))
        return self.chooser.choose(family, what, ways, trial)

    def function(self, hint: str, text: str, entry: KernelShape) -> str:
        """The name of a kernel whose text has NAME instead: equal ones are one."""
        emitted = self.texts.get(text)
        if emitted is None:
            name = f"{hint}_{len(self.texts)}"
            emitted = self.texts[text] = name, text.replace("@NAME", f"@{name}")
            self.kernels[name] = entry
        return emitted[0]

    def emitted(self, b: ThreadBuilder, hint: str, threads: int, alignments: Sequence[int]) -> str:
        """The name of the kernel that `b` has written."""
        self.declarations |= set(b.declarations)
        text = b.definition("NAME", threads, alignments)
        return self.function(hint, text, KernelShape((threads, 1, 1), b.dynamic_bytes))

    def kernel(self, step: Kernel) -> list[device.Step]:
        """The launch of a kernel; kernels with equal signatures and alignments share a text."""
        own = signature(step)
        alignments = self.aligned(own)
        key: tuple[Hashable, ...] = own.key, tuple(alignments.values())
        if self.marks is not None:
            key = *key, id(step)  # equal kernels of other lines are others
        built = self.built.get(key)
        if built is None:
            plan = self.plan(step, own)
            launch, reports = self.scheduled(step, own, plan)
            built = self.built[key] = launch.kernel, plan, reports
        name, plan, reports = built
        step.name = name
        self.report(step, plan, name, tuple(ops_of(step)))
        return [self._launch(name, own, plan, reports)]

    def aligned(self, own: Signature) -> dict[Array, int]:
        """What the pointer to each array of a kernel is a multiple of."""
        return {a: self.alignment(a, own.origins[a] * a.dtype.itemsize) for a in own.arrays}

    def plan(self, step: Kernel, own: Signature) -> Schedule:
        """The schedule of a kernel."""
        plans = self._plans(step, own, self.aligned(own))
        ways = {f"{p.threads} threads, {p.note}": p for p in plans}
        what = f"{'+'.join(ops_of(step))} {list(step.extents)}"
        return self.chosen("kernel", what, ways, lambda b, p: [b.scheduled(step, own, p)[0]])

    def _plans(
        self, step: Kernel, own: Signature, alignments: Mapping[Array, int]
    ) -> list[Schedule]:
        """Schedules of a kernel, the best one by the model first."""
        best = schedule(step, own, alignments, self.target)
        if not self.chooser.wants_all:
            return [best]
        from .variants import variants

        return [best, *variants(step, own, alignments, self.target, best)]

    def scheduled(self, step: Kernel, own: Signature, plan: Schedule) -> tuple[Launch, bool]:
        """The launch of a kernel by a schedule, and whether it may report errors."""
        alignments = self.aligned(own)
        e = emitter_for(plan)(step, own, plan, self.target, self.definitions, alignments)
        e.exprs.marks = self.marks
        e.body()
        name = self.emitted(e.b, readable(ops_of(step)), plan.threads, list(alignments.values()))
        return self._launch(name, own, plan, e.b.reports), e.b.reports

    def _launch(self, name: str, own: Signature, plan: Schedule, reports: bool) -> Launch:
        arguments = [self.ref(a, own.origins[a] * a.dtype.itemsize) for a in own.arrays]
        if reports:
            arguments.append(Ref("status"))
        return Launch(name, (plan.blocks, 1, 1), tuple(arguments))

    def report(self, kernel: Kernel, plan: Schedule, name: str, ops: tuple[str, ...]) -> None:
        read, written = bytes_moved(kernel)
        self.note(
            KernelReport(
                name=name,
                ops=ops,
                extents=kernel.extents,
                bytes_read=read,
                bytes_written=written,
                flops=plan.flops,
                parallel=True,
                note=plan.note + self.how_chosen,
                locs=kernel.locs,
            )
        )

    @property
    def how_chosen(self) -> str:
        """What reports say of choices."""
        return ", chosen by measuring" if self.chooser.wants_all else ""

    def note(self, report: KernelReport) -> None:
        self.reports.setdefault(report.name, report)

    def matmul(self, step: lowered.Matmul) -> list[device.Step]:
        return self.product(Product(step))

    def product(self, step: Product) -> list[device.Step]:
        """The launch of a product, with the tile that is expected, or was measured, to be fastest."""
        from ..kernels.matmul.cuda_tiles import tiles_for

        dot = step.matmul
        what = f"{dot.c.dtype.name}[{dot.batch},{dot.m},{dot.n},{dot.k}]"
        others = warpgroup_tiles(step, self.target, self.alignment)
        tiles = {repr(t): t for t in tiles_for(dot, self.target, others)}
        tile = self.chosen("product", what, tiles, lambda b, tile: [b.multiplied(step, tile)])
        launch = self.multiplied(step, tile)
        step.name = dot.name = name = launch.kernel
        elements = dot.batch * dot.m * dot.n
        self.note(
            KernelReport(
                name=name,
                ops=step.ops,
                extents=(dot.batch, dot.m, dot.n, dot.k),
                bytes_read=step.bytes_read,
                bytes_written=sum(a.nbytes for a in dict.fromkeys(step.writes)),
                flops=2 * elements * dot.k,
                parallel=True,
                note=tile.note + self.how_chosen,
                locs=(dot.loc,) if dot.loc is not None else (),
            )
        )
        return [launch]

    def multiplied(self, step: Product, tile: Tile | WarpgroupTile) -> Launch:
        """The launch of a product by a tile."""
        from ..kernels.matmul.cuda_emitter import ProductEmitter

        if isinstance(tile, WarpgroupTile):
            return self.multiplied_by_warpgroups(step, tile)
        arrays = step.arrays
        alignments = {a: self.alignment(a) for a in arrays}
        e = ProductEmitter(step, tile, self.target, self.definitions, alignments)
        e.body()
        name = self.emitted(e.b, readable(step.ops), tile.threads, list(alignments.values()))
        arguments = [*map(self.ref, arrays), *([Ref("status")] if e.b.reports else [])]
        return Launch(name, (tile.blocks(step.matmul), 1, 1), tuple(arguments))

    def multiplied_by_warpgroups(self, step: Product, tile: WarpgroupTile) -> Launch:
        """The launch of a product by warpgroups; its operands must be such as boxes bring."""
        from ..kernels.matmul.cuda_boxes import boxed
        from ..kernels.matmul.cuda_warpgroups import WarpgroupEmitter

        sides = boxed(step, tile.m, tile.n, tile.element, self.alignment)
        assert sides is not None, "such tiles are for operands that boxes bring"
        alignments = {a: self.alignment(a) for a in step.arrays}
        e = WarpgroupEmitter(step, tile, sides, self.target, self.definitions, alignments)
        e.body()
        name = self.emitted(
            e.b, readable(step.ops), tile.threads, [alignments[a] for a in e.b.arrays]
        )
        arguments: list[device.Argument] = [*e.maps(self.ref), *map(self.ref, e.b.arrays)]
        arguments += [Ref("status")] if e.b.reports else []
        return Launch(name, (e.blocks, 1, 1), tuple(arguments))

    def scalar_code(self, step: lowered.ScalarCode) -> list[device.Step]:
        e = ScalarThreadEmitter(step, self.target, self.definitions)
        e.body()
        step.name = self.emitted(
            e.b, readable(step.ops), 1, [self.alignment(a) for a in e.b.arrays]
        )
        self.note(KernelReport(step.name, tuple(step.ops), note="scalar code"))
        arguments = [*map(self.ref, e.b.arrays), *([Ref("status")] if e.b.reports else [])]
        return [Launch(step.name, (1, 1, 1), tuple(arguments))]

    def copy(self, step: lowered.Copy) -> list[device.Step]:
        return self._copy(step.target, step.source)

    def _copy(self, target: Array, source: Array) -> list[device.Step]:
        nbytes = source.nbytes
        return [device.Copy(self.ref(target), self.ref(source), nbytes)] if nbytes else []

    def check(self, step: lowered.Check) -> list[device.Step]:
        """A kernel of one thread that notes an error unless the flag is set."""
        arrays = list(dict.fromkeys([step.flag, *step.values]))
        b = ThreadBuilder(self.target, "i32", arrays, self.definitions)
        words = [self._word(b, a) for a in step.values]
        passed = b.load_elements(BOOL, b.pointers[step.flag], 1)
        with b.when(~passed):
            b.note(step.site, words)
        name = self.emitted(b, "check", 1, [self.alignment(a) for a in arrays])
        return [Launch(name, (1, 1, 1), (*map(self.ref, arrays), Ref("status")))]

    def _word(self, b: ThreadBuilder, array: Array) -> Value:
        """A 0-d value's bytes in an int64."""
        bits = array.dtype.itemsize * 8
        value = b.load(f"i{bits}", b.pointers[array], align=array.dtype.itemsize)
        return value if bits == 64 else value.zext("i64")

    def callback(self, step: lowered.Callback) -> list[device.Step]:
        operands, results = map(self.ref, step.operands), map(self.ref, step.results)
        return [device.HostCall(step.number, tuple(operands), tuple(results))]

    def tape_new(self, step: lowered.TapeNew) -> list[device.Step]:
        e = self._tape(step.handle, [])
        e.new()
        return [device.TapeNew(self.ref(step.handle), (self._tape_launch(e, "tape", 1, 1),))]

    def tape_push(self, step: lowered.TapePush) -> list[device.Step]:
        launches = self._tape_launches(step.handle, step.values, store=True)
        return [device.TapePush(self.ref(step.handle), self._record(step.values), launches)]

    def tape_pop(self, step: lowered.TapePop) -> list[device.Step]:
        launches = self._tape_launches(step.handle, step.values, store=False)
        return [device.TapePop(self.ref(step.handle), self._record(step.values), launches)]

    def _tape(self, handle: Array, values: Sequence[Array]) -> TapeEmitter:
        alignments = [self.alignment(a) for a in values]
        return TapeEmitter(self.target, handle, values, alignments, self.definitions)

    def _tape_launch(self, e: TapeEmitter, hint: str, blocks: int, threads: int) -> Launch:
        name = self.emitted(e.b, hint, threads, [self.alignment(a) for a in e.b.arrays])
        heap = Ref("heap", 0), Ref("heap", 1)
        return Launch(name, (blocks, 1, 1), (*map(self.ref, e.b.arrays), *heap))

    def _tape_launches(
        self, handle: Array, values: Sequence[Array], store: bool
    ) -> tuple[Launch, ...]:
        """A record is made, or taken off, and what is small of it copied; then what is large."""
        values = [a for a in values if a.nbytes]
        e = self._tape(handle, values)
        e.push() if store else e.pop()
        hint = "tape_push" if store else "tape_pop"
        launches = [self._tape_launch(e, hint, 1, TAPE_THREADS)]
        for number in range(len(values)):
            if not e.is_small(number):
                part = self._tape(handle, values)
                part.copy_record(number, store)
                blocks = part.blocks(number)
                launches.append(self._tape_launch(part, f"{hint}_large", blocks, TAPE_THREADS))
        return tuple(launches)

    def _record(self, values: Sequence[Array]) -> tuple[tuple[Ref, int], ...]:
        return tuple((self.ref(a), a.nbytes) for a in values if a.nbytes)

    # Branches and loops.

    def branch(self, step: lowered.Branch) -> list[device.Step]:
        return [device.If(self.ref(step.index), tuple(map(self.steps, step.branches)))]

    def loop(self, step: lowered.Loop) -> list[device.Step]:
        before, carries = self._carries(step.carries)
        test, body = self.steps(step.test), self.steps(step.body)
        return [*before, device.While(test, self.ref(step.flag), body, carries)]

    def scan(self, step: lowered.Scan) -> list[device.Step]:
        """A loop of known length: copies of its carries, slots for its slices, its body's steps."""
        before, carries = self._carries(step.carries)
        slices = []
        for part in (*step.xs, *step.ys):
            stride = part.whole.strides[0] * part.whole.dtype.itemsize
            number = self.slot(part.slice, math.gcd(self.alignment(part.whole), stride, ALIGNED))
            slices.append(device.Slice(number, self.ref(part.whole), stride))
        if not step.length:
            return before
        body = self.steps(step.body)
        scan = device.Scan(step.length, step.reverse, body, carries, tuple(slices))
        return [*before, scan]

    def _carries(
        self, carries: Sequence[lowered.Carry]
    ) -> tuple[list[device.Step], tuple[device.Carry, ...]]:
        """The copies before a loop, and the carries whose buffers are exchanged."""
        before: list[device.Step] = []
        trading = []
        for carry in carries:
            assert carry.init.contiguous, "a loop's initial value is contiguous"
            if carry.init is not carry.result:
                before += self._copy(carry.result, carry.init)
            if carry.spare is None:
                self.aliases[carry.now] = self.aliases.get(carry.result, carry.result)
                continue
            if carry.both:
                before += self._copy(carry.spare, carry.init)
            alignment = min(self.alignment(carry.result), self.alignment(carry.spare))
            now, following = self.slot(carry.now, alignment), self.slot(carry.next, alignment)
            home, spare = self.ref(carry.result), self.ref(carry.spare)
            trading.append(device.Carry(now, following, home, spare, carry.result.nbytes))
        return before, tuple(trading)


EMITTERS: Mapping[type, Callable[[ProgramBuilder, Any], list[device.Step]]] = {
    Kernel: ProgramBuilder.kernel,
    lowered.Copy: ProgramBuilder.copy,
    lowered.Sort: sort_steps,
    Select: select_steps,
    lowered.Check: ProgramBuilder.check,
    lowered.Callback: ProgramBuilder.callback,
    lowered.TapeNew: ProgramBuilder.tape_new,
    lowered.TapePush: ProgramBuilder.tape_push,
    lowered.TapePop: ProgramBuilder.tape_pop,
    lowered.Branch: ProgramBuilder.branch,
    lowered.Loop: ProgramBuilder.loop,
    lowered.Scan: ProgramBuilder.scan,
    lowered.Matmul: ProgramBuilder.matmul,
    Product: ProgramBuilder.product,
    LibraryProduct: library_steps,
    AttentionStep: attention_steps,
    lowered.ScalarCode: ProgramBuilder.scalar_code,
}
