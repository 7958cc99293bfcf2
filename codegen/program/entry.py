"""The entry function: a program's steps as LLVM code that calls the kernels one after the other.

    i32 @entry(ptr %args)      %args: inputs, outputs, arena, status block (see `codegen.module`)

Temporaries are places in the arena. A loop's carries are pointers kept in stack slots, which the loop
swaps. Branches and loops of the program are branches and loops here: no Python runs in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ...ir.record import fields, record
from ..cpu import units
from ..cpu.kernels import KernelEmitter
from ..journal import Subject, note
from ..kernels.tape import cpu_tapes as tapes
from ..llvm.builder import LIKELY, Number, Value, constant
from ..llvm.functions import FunctionTable
from ..llvm.modules import Function, declarations
from ..llvm.scalar_code.nests import NestEmitter, why_no_nest
from ..llvm.scalar_code.routines import RoutineEmitter
from ..llvm.scalar_code.statements import ScalarCodeEmitter
from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.scalar_code import specials
from ..loop_ir.steps import (
    Branch,
    Callback,
    Check,
    Copy,
    Loop,
    Matmul,
    Program,
    RowBlocks,
    ScalarCode,
    Scan,
    Sort,
    StoreRoot,
    TapeNew,
    TapePop,
    TapePush,
    TrueIndices,
)
from ..marks import Marks
from ..module import TOLD_WORD
from ..schedule.blocking import Blocking, blocking
from ..schedule.follows import check_loops
from ..schedule.knobs import knobs_of
from ..schedule.schedule import Schedule, schedule
from ..schedule.signature import Signature, signature
from ..schedule.tiled import (
    Attention,
    AttentionGrad,
    Convolution,
    Factorisation,
    Fourier,
    LibraryCall,
    LongConvolution,
)
from ..sizes import size_of, sizes
from ..target import Target
from . import control
from .calls import Bound, Call, Pointers, emit_calls
from .probes import probes_for
from .provenance import FAILED, Provenance
from .thread_limit import limited_text

CONTEXT_WORDS_AT_LEAST = 4
_BYTES = [chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in range(256)]


@record
class Done:
    """A kernel's function: its schedule, whether it may report errors, and whether it polls."""

    name: str
    plan: Schedule
    checks: bool
    polls: bool


class EntryEmitter:
    """Emits the entry and all kernels of one program."""

    def __init__(
        self,
        target: Target,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        name: str,
        arena_bytes: int = 0,
        marks: Marks | None = None,
        tells: bool = False,
    ) -> None:
        self.target = target
        self.tells = tells  # the last output is whether it has met watched values
        self.marks = marks
        self.name = name
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        names = [_argument_name(a) for a in (*inputs, *outputs)]
        names = [*dict.fromkeys(names), "arena", "status"]
        self.arguments = {name: position for position, name in enumerate(names)}
        self.named = {"arena", "status"}  # those that the code names
        f = self.f = Function("i32", name, args="ptr")
        f.prefix = "t"
        self.status, self.site_at, self.ctx = (
            f.named("ptr", n) for n in ("status", "site_at", "ctx")
        )
        self.functions: dict[str, str] = {}  # text without its name -> name
        self.kernels: dict[Hashable, Done] = {}  # by signature; see `_emit`
        self.products: dict[Hashable, str] = {}  # names of matrix products, by what they depend on
        self.helpers: dict[str, None] = {}  # whole functions, such as sorts
        self.declarations: set[str] = set()
        self.definitions: dict[str, str] = {}
        self.imports: set[str] = set()
        self.elementwise = FunctionTable(target, self.declarations, self.definitions)
        self.constants: dict[Array, Value] = {}
        self.slots: dict[Array, Value] = {}
        self.clock: Value | None = None  # when a loop looked for signals
        self.context_words = CONTEXT_WORDS_AT_LEAST
        self.schedules: list[tuple[Kernel, Any, str]] = []
        self.calls: list[Call] = []  # what comes next
        self.keeps_gil = False  # what it touches belongs to Python
        self.tapes: Value | None = None  # the lists of the call's tapes and containers
        self.provenance = Provenance(self, arena_bytes) if target.sanitize else None
        self.probes = probes_for(self, target.probe, arena_bytes)

    # The module.

    def module(self, program: Program) -> str:
        """The text of the whole module."""
        if self.provenance is not None:
            self.provenance.expect(program)
        self.program(program)
        f = self.f
        told = self.outputs[-1] if self.tells else None
        if told is not None:
            at, word = self.pointer(told), f.offset(self.status, TOLD_WORD, "i64")
            flag = f.load("i8", at, align=1) | f.load("i64", word, align=8).ne(0).zext("i8")
            f.store(flag, at, align=1)
        f.ret(constant("i32", 0))
        with f.at_start(first=True):
            for name, position in self.arguments.items():
                if name in self.named:
                    f.pointer_at(f.args[0], position, name, "_at")
            f.place(self.status, 7, "i64", "site_at")
            f.store(constant("i64", 0), self.site_at, align=8)
            if told is not None:
                f.store(constant("i64", 0), f.offset(self.status, TOLD_WORD, "i64"), align=8)
            f.alloca(f"[{self.context_words} x ptr]", name="ctx")
        self.declarations.update(f.callees.values())
        functions = [f]
        if self.tapes is not None:
            functions.append(tapes.wrapper(f, self.name))
        entry = "".join([self._text(g) for g in functions])
        kernels = "\n".join(
            f"define internal void @{name}{text}" for text, name in self.functions.items()
        )
        globals_ = "\n".join(f"{name} = {body}" for body, name in self.definitions.items())
        declarations = "\n".join(sorted(self.declarations))
        text = "\n".join(
            [globals_, declarations, *self.helpers, *self.elementwise.texts, kernels, entry]
        )
        if self.target.threads:
            text = limited_text(text, self.target.threads)
        return text if self.probes is None else self.probes.finished(text)

    def program(self, program: Program) -> None:
        if self.probes is not None:
            self.probes.program(program)
            return
        for step in program.steps:
            if not isinstance(step, CALLS):
                self.flush()
            self.step(step)
        self.flush()

    def step(self, step: Any) -> None:
        EMITTERS[type(step)](self, step)

    def flush(self) -> None:
        """Emit the calls that are due."""
        calls, self.calls = self.calls, []
        emit_calls(self, calls)
        if calls and self.provenance is not None:
            self.fail_if(self.f.call("i64", FAILED).ne(0), 0)

    # Small pieces.

    def pointer(self, array: Array | None) -> Value:
        """Where an array is, right now."""
        if array is not None and self.is_watched(array):
            assert self.provenance is not None
            return self.provenance.pointer(array)
        pointer = self.argument(array)
        if pointer is not None:
            name, offset = pointer
            return self.f.offset(self.given(name), offset)
        assert array is not None
        if array.kind == "const":
            return self._constant(array)
        return self.f.load("ptr", self.slots[array], align=8)

    def given(self, name: str) -> Value:
        """An argument of the entry."""
        self.named.add(name)
        return self.f.named("ptr", name)

    def is_watched(self, array: Array | None) -> bool:
        """Whether pointers to an array are made by `provenance`."""
        kinds = ("temp", "input", "output")
        return self.provenance is not None and array is not None and array.kind in kinds

    def argument(self, array: Array | None) -> tuple[str, int] | None:
        """The argument of the entry that an array lies in, and at which byte. None: the status."""
        if array is None:
            return "status", 0
        if array.kind == "temp":
            assert array.offset >= 0, f"{array!r} has no place in the arena"
            return "arena", array.offset
        if array.kind in ("input", "output"):
            return _argument_name(array), array.start * array.dtype.itemsize
        return None

    def _grain(self, grain: int) -> int:
        """Units that a thread takes at a time: one by one if they are watched."""
        return 1 if self.provenance is not None else grain

    def _constant(self, array: Array) -> Value:
        address = self.constants.get(array)
        if address is None:
            assert array.data is not None
            address = self.constants[array] = self.data(array.data.tobytes())
        return address

    def data(self, data: bytes) -> Value:
        """The address of a constant in memory."""
        text = "".join([_BYTES[b] for b in data])
        body = f'private unnamed_addr constant [{len(data)} x i8] c"{text}", align 64'
        name = self.definitions.setdefault(body, f"@data{len(self.definitions)}")
        return Value("ptr", name, self.f)

    def copy(self, target: Value, source: Value, nbytes: Value | int) -> None:
        self.f.copy(target, source, nbytes, align=1)

    def fail_if(self, condition: Value, site: Value | Number) -> None:
        """Leave the entry with an error site if `condition` holds."""
        f = self.f
        bad, good = f.later("fail"), f.later("fine")
        f.branch(condition, bad, good)
        f.at(bad)
        f.ret(site if isinstance(site, Value) else constant("i32", site))
        f.at(good)

    # Steps. What emits those that few programs have is imported when one has them.

    def kernel(self, step: Kernel) -> None:
        done, pointers = self._kernel(step, None)
        plan = done.plan
        grain = plan.grain if plan.parallel else plan.range
        size, bound = size_of(plan.range), None
        if size is not None:
            bound = Bound(size, plan.range // size.capacity)
        self.calls.append(
            Call(done.name, pointers, plan.range, grain, done.checks, done.polls, bound)
        )

    def _kernel(self, step: Kernel, plan: Schedule | None) -> tuple[Done, Pointers]:
        """The function of a kernel, and what it takes.

        `plan`, if there is one, is the schedule that it shall have.
        """
        own = signature(step)
        asked = knobs_of(step)
        key = own.key if asked is None else (own.key, asked)
        if self.marks is not None:
            key = key, id(step)  # equal kernels of other lines are others
        if plan is not None:
            key = key, plan.width, plan.split_last, plan.grain % plan.width == 0
        function = self.kernels.get(key)
        if function is None:
            function = self.kernels[key] = self._emit(step, own, plan)
        step.name = function.name
        self.schedules.append((step, function.plan, step.name))
        pointers = [(a, own.origins[a] * a.dtype.itemsize) for a in own.arrays]
        status = [(None, 0)] if function.checks else []
        return function, (*pointers, *status)

    def scalar_code(self, step: ScalarCode) -> None:
        refusal = why_no_nest(step)
        nests = self.probes is None or self.probes.nests
        kind = NestEmitter if refusal is None and nests else ScalarCodeEmitter
        if refusal is not None:
            note("scalar", step.subject, refusal)
        emitter = kind(step, self.target, self.definitions, self.elementwise)
        step.name = self.function(emitter.function(), readable(step.ops))
        if isinstance(emitter, NestEmitter):
            for loc, doubt in emitter.doubts:
                note("vectors", Subject(step.name, loc), doubt)
            step.name = self.function(emitter.caller(step.name), readable(step.ops))
        self.declarations |= set(emitter.b.declarations)
        length = grain = 0
        if isinstance(emitter, NestEmitter) and emitter.shared is not None:
            length, grain = emitter.length, emitter.grain
            step.shared = True
        routines = list(emitter.routines)
        while routines:
            own = (routines.pop(), step, self.target, self.definitions, self.elementwise)
            inner = RoutineEmitter(*own)
            self.helpers[inner.function()] = None
            self.declarations |= set(inner.b.declarations)
            routines += inner.routines
        if emitter.polls:
            (control.polling_kernels if step.shared else control.polling)(self)
        for special in specials(step.body):
            self.imports |= special.imports
            self.add(special.helpers)
            self.keeps_gil |= special.keeps_gil
        pointers = [(a, 0) for a in emitter.arrays]
        self.calls.append(
            Call(
                step.name,
                (*pointers, (None, 0)),
                length,
                grain,
                True,
                step.shared and emitter.polls,
            )
        )

    def _emit(self, step: Kernel, own: Signature, plan: Schedule | None) -> Done:
        plan = plan or schedule(step, self.target)
        if sizes():
            check_loops(plan)
        table = self.definitions, self.elementwise
        emitter = KernelEmitter(step, own, plan, self.target, *table, self.marks)
        text = emitter.function()
        self.declarations |= set(emitter.b.declarations)
        if emitter.polls:
            control.polling_kernels(self)
        name = self.functions.get(text)
        if name is None:
            ops = [op for s in step.stages for op in reversed(s.ops)]
            name = self.functions[text] = f"{readable(ops)}_{len(self.functions)}"
        return Done(name, plan, emitter.checks, emitter.polls)

    def matmul(self, step: Matmul) -> None:

        cut = blocking(step, self.target)
        name, pointers = self._matmul(step, cut)
        grain, bound = self._grain(cut.grain(step)), None
        size = size_of(step.batch) or size_of(step.m)
        if size is not None and size_of(step.m) is None:
            each = cut.blocks(step) * cut.groups(step)
            bound = Bound(size, step.batch // size.capacity, times=each)
        elif size is not None:
            bound = Bound(size, step.m // size.capacity, cut.block, cut.groups(step))
        self.calls.append(Call(name, pointers, cut.units(step), grain, False, bound=bound))

    def _matmul(self, step: Matmul, cut: Blocking) -> tuple[str, Pointers]:
        """The function of a matrix product, and what it takes."""
        own = ("a", "b", "c", "a_offset", "b_offset", "loc", "name")  # what no code depends on
        key = cut, step.c.dtype, *(getattr(step, name) for name in fields(step) if name not in own)
        name = self.products.get(key)
        if name is None:
            from ..kernels.matmul.cpu_gemm import gemm

            text, tiles, declarations = gemm(step, cut, self.target)
            self.declarations |= declarations
            for tile in tiles:
                self.helpers[tile.text] = None
                self.declarations |= tile.declarations
            name = self.products[key] = self.function(text, "gemm")
        step.name = name
        size = step.c.dtype.itemsize
        return name, (
            (step.a, step.a_offset * size),
            (step.b, step.b_offset * size),
            (step.c, 0),
            *([(None, 0)] if step.watched else []),
            *((s.array, 0) for s in (size_of(step.m) or size_of(step.k),) if s is not None),
        )

    def row_blocks(self, step: RowBlocks) -> None:
        """A function that calls each part's for one unit after the other."""
        shares: list[units.Share] = []
        own: list[units.Own] = []
        words: list[tuple[Array | None, int]] = []
        checks = polls = False
        for part in step.parts:
            if isinstance(part.step, Matmul):
                name, pointers = self._matmul(part.step, part.plan)
                share = units.Share(name, len(words), 1, step.units)
            else:
                done, pointers = self._kernel(part.step, part.plan)
                checks, polls = checks or done.checks, polls or done.polls
                each = done.plan.each(part.total)
                assert each is not None, "a part of row blocks goes by rows"
                share = units.Share(done.name, len(words), part.length * each, done.plan.range)
            shares.append(share)
            for array, offset in pointers:
                if array in step.local:
                    size = step.local[array] * array.dtype.itemsize
                    own.append(units.Own(len(words), size, offset, array))
                    array, offset = None, 0
                words.append((array, offset))
        if own:
            self.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        name = self.function(units.function(shares, own, len(words)), "rows")
        grain = self._grain(step.grain)
        self.calls.append(Call(name, tuple(words), step.units, grain, checks, polls))

    def convolution(self, step: Convolution | LongConvolution) -> None:
        common = (self.target, self.definitions, self.function)
        if isinstance(step, Convolution):
            from ..kernels.convolution.cpu_convolution import convolution

            text, declarations = convolution(step, *common)
        else:
            from ..kernels.convolution.cpu_long import long_convolution

            text, declarations = long_convolution(step, *common)
        self.declarations |= declarations
        step.name = self.function(text, "conv")
        pointers = ((step.x, 0), (step.w, 0), (step.y, 0))
        self.calls.append(Call(step.name, pointers, step.units, self._grain(step.grain), False))

    def attention(self, step: Attention | AttentionGrad) -> None:
        if isinstance(step, Attention):
            from ..kernels.attention.cpu_forward import attention

            text, tiles, declarations = attention(step, self.target, self.function)
        else:
            from ..kernels.attention.cpu_backward import attention_grad

            text, tiles, declarations = attention_grad(step, self.target, self.function)
        for tile in tiles:
            self.helpers[tile.text] = None
            declarations |= tile.declarations
        self.declarations |= declarations
        step.name = self.function(text, "attention")
        pointers: Pointers = tuple((a, 0) for a in (*step.reads, *step.writes))
        self.calls.append(Call(step.name, pointers, step.units, self._grain(step.grain), False))

    def library_call(self, step: LibraryCall) -> None:
        from .library import library_call

        text, declarations, imports = library_call(step)
        self.declarations |= declarations
        self.imports |= imports
        step.name = self.function(text, step.loop.name)
        arrays = [*step.operands, *step.results]
        status = [(None, 0)] if step.site else []
        pointers: Pointers = (*((a, 0) for a in arrays), *status)
        checks = bool(step.site)
        self.calls.append(Call(step.name, pointers, step.units, self._grain(step.grain), checks))

    def fourier(self, step: Fourier) -> None:
        from ..kernels.fourier.cpu_fourier import fourier

        text, declarations = fourier(step, self.target, self.data)
        self.declarations |= declarations
        step.name = self.function(text, step.kind)
        pointers = ((step.source, 0), (step.target, 0))
        self.calls.append(Call(step.name, pointers, step.units, self._grain(step.grain), False))

    def factorisation(self, step: Factorisation) -> None:
        from ..kernels.factor.cpu_units import factorisation

        text, helpers, declarations, imports = factorisation(step, self.target)
        self.helpers.update(dict.fromkeys(helpers))
        self.declarations |= declarations
        self.imports |= imports
        step.name = self.function(text, step.kind.replace(" ", "_"))
        arrays = [a for a in (step.work, step.x, step.pivots) if a is not None]
        pointers: Pointers = (*((a, 0) for a in arrays), (None, 0))
        checks = step.site > 0
        self.calls.append(Call(step.name, pointers, step.units, self._grain(step.grain), checks))

    def function(self, text: str, hint: str) -> str:
        """The name of a function, given from its parameter list on: equal ones are one."""
        return self.functions.setdefault(text, f"{hint}_{len(self.functions)}")

    def sort(self, step: Sort) -> None:
        from ..kernels.sort.cpu_sorting import sort_functions

        functions = sort_functions(step, self.target)
        self.add(functions)
        self.imports.add(Target.PARALLEL_FOR)
        memory = (step.keys, step.target, step.scratch, step.counts)
        rows = math.prod(step.keys.shape[: step.axis])
        self.f.run(functions[-1], *(self.pointer(a) for a in memory), rows)

    def true_indices(self, step: TrueIndices) -> None:
        from ..kernels.sort.cpu_true_indices import true_index_functions

        functions = true_index_functions(step)
        self.add(functions)
        self.imports.add(Target.PARALLEL_FOR)
        rows = math.prod(step.mask.shape[:-1])
        self.f.run(functions[-1], self.pointer(step.mask), self.pointer(step.target), rows)

    def add(self, functions: Sequence[Function]) -> None:
        """Functions that this module has, and what they call."""
        self.helpers.update(dict.fromkeys(map(self._text, functions)))
        self.declarations.update(declarations(functions).values())

    def _text(self, function: Function) -> str:
        """With the number that the hint of likely branches has among what this module defines."""
        text, hint = function.text(), function.likely()
        if hint not in text:
            return text
        name = self.definitions.setdefault(LIKELY, f"!{len(self.definitions)}")
        return text.replace(hint, f", !prof {name}")

    def check(self, step: Check) -> None:
        f = self.f
        flag = f.load("i8", self.pointer(step.flag), align=1)
        for word, array in enumerate(step.values):
            value = self._word(array)
            f.store(value, f.offset(self.status, constant("i64", word), "i64"), align=8)
        self.fail_if(flag.eq(0), step.site)

    def _word(self, array: Array) -> Value:
        """A 0-d value's bytes in an int64."""
        size = array.dtype.itemsize
        value = self.f.load(f"i{8 * size}", self.pointer(array), align=size)
        return value if size == 8 else value.zext("i64")

    def whole_copy(self, step: Copy) -> None:
        nbytes: Value | int = step.source.nbytes
        size = size_of(step.source.size)
        if size is not None:
            n = self.f.load("i64", self.pointer(size.array), align=8)
            nbytes = n * (step.source.nbytes // size.capacity)
        self.copy(self.pointer(step.target), self.pointer(step.source), nbytes)


def _argument_name(array: Array) -> str:
    return f"{'in' if array.kind == 'input' else 'out'}{array.position}"


def readable(ops: Sequence[str]) -> str:
    """A readable function name from the ops of a kernel."""
    shown = [op for op in ops if op not in ("broadcast", "constant", "reshape", "copy")][:4]
    return "_".join(dict.fromkeys(shown)) or "copy"


# Steps that add to `calls`.
CALLS = (
    *(Kernel, ScalarCode, Matmul, RowBlocks, Convolution, LongConvolution),
    *(LibraryCall, Fourier, Factorisation),
)
EMITTERS: dict[type, Callable[[EntryEmitter, Any], None]] = {
    Kernel: EntryEmitter.kernel,
    Matmul: EntryEmitter.matmul,
    RowBlocks: EntryEmitter.row_blocks,
    Convolution: EntryEmitter.convolution,
    Attention: EntryEmitter.attention,
    AttentionGrad: EntryEmitter.attention,
    LongConvolution: EntryEmitter.convolution,
    LibraryCall: EntryEmitter.library_call,
    Factorisation: EntryEmitter.factorisation,
    Fourier: EntryEmitter.fourier,
    Sort: EntryEmitter.sort,
    TrueIndices: EntryEmitter.true_indices,
    Check: EntryEmitter.check,
    Copy: EntryEmitter.whole_copy,
    Branch: control.branch,
    Loop: control.loop,
    Scan: control.scan,
    ScalarCode: EntryEmitter.scalar_code,
    TapeNew: tapes.new,
    TapePush: tapes.push,
    TapePop: tapes.pop,
    StoreRoot: tapes.root,
    Callback: control.callback,
}
