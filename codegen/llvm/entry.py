"""The entry function: a program's steps as LLVM code that calls the kernels one after the other.

    i32 @entry(ptr %args)      %args: inputs, outputs, arena, status block (see `codegen.module`)

Temporaries are places in the arena. A loop's carries are pointers kept in stack slots, which the loop
swaps. Branches and loops of the program are branches and loops here: no Python runs in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from typing import Any

from ..kernel import (
    Array,
    Branch,
    Check,
    Copy,
    Kernel,
    Loop,
    Matmul,
    Program,
    Sort,
)
from ..schedule import schedule
from ..target import Target
from . import sorting
from .kernels import KernelEmitter

CONTEXT_WORDS_AT_LEAST = 4


class EntryEmitter:
    """Emits the entry and all kernels of one program."""

    def __init__(
        self, target: Target, inputs: Sequence[Array], outputs: Sequence[Array], name: str
    ) -> None:
        self.target = target
        self.name = name
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.names = count()
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.functions: dict[str, str] = {}  # text without its name -> name
        self.helpers: dict[str, None] = {}  # whole functions, such as sorts
        self.declarations: set[str] = set()
        self.definitions: dict[str, str] = {}
        self.imports: set[str] = set()
        self.constants: dict[Array, str] = {}
        self.slots: dict[Array, str] = {}
        self.context_words = CONTEXT_WORDS_AT_LEAST
        self.schedules: list[tuple[Kernel, Any, str]] = []
        self.block = "entry"

    # The module.

    def module(self, program: Program) -> str:
        """The text of the whole module."""
        self._program(program)
        head = [f"define i32 @{self.name}(ptr %args) nounwind {{", "entry:"]
        pointers = [*self.inputs, *self.outputs]
        for position, array in enumerate(pointers):
            head += _argument(_argument_name(array), position)
        head += _argument("%arena", len(pointers))
        head += _argument("%status", len(pointers) + 1)
        head.append("  %site_at = getelementptr i64, ptr %status, i64 7")
        head.append("  store i64 0, ptr %site_at, align 8")
        head.append(f"  %ctx = alloca [{self.context_words} x ptr], align 16")
        head += self.allocas
        entry = "\n".join([*head, *self.lines, "  ret i32 0", "}"])
        kernels = "\n".join(
            f"define internal void @{name}{text}" for text, name in self.functions.items()
        )
        globals_ = "\n".join(f"{name} = {body}" for body, name in self.definitions.items())
        declarations = "\n".join(sorted(self.declarations))
        return "\n".join([globals_, declarations, *self.helpers, kernels, entry, ""])

    def _program(self, program: Program) -> None:
        for step in program.steps:
            _EMITTERS[type(step)](self, step)

    # Small pieces.

    def op(self, text: str) -> str:
        name = f"%t{next(self.names)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, hint: str) -> str:
        return f"{hint}{next(self.names)}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def pointer(self, array: Array) -> str:
        """Where an array is, right now."""
        if array.kind in ("input", "output"):
            return _argument_name(array)
        if array.kind == "const":
            return self._constant(array)
        if array.kind == "slot":
            return self.op(f"load ptr, ptr {self.slots[array]}, align 8")
        assert array.offset >= 0, f"{array!r} has no place in the arena"
        return self.op(f"getelementptr i8, ptr %arena, i64 {array.offset}")

    def _constant(self, array: Array) -> str:
        name = self.constants.get(array)
        if name is None:
            assert array.data is not None
            data = array.data.tobytes()
            text = "".join(
                chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data
            )
            body = f'private unnamed_addr constant [{len(data)} x i8] c"{text}", align 64'
            name = self.constants[array] = self.definitions.setdefault(
                body, f"@data{len(self.definitions)}"
            )
        return name

    def copy(self, target: str, source: str, nbytes: int) -> None:
        self.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        self.line(
            f"call void @llvm.memcpy.p0.p0.i64(ptr align 1 {target}, ptr align 1 {source}, "
            f"i64 {nbytes}, i1 false)"
        )

    def fail_if(self, condition: str, site: str) -> None:
        """Leave the entry with an error site if `condition` holds."""
        bad, good = self.label("fail"), self.label("fine")
        self.line(f"br i1 {condition}, label %{bad}, label %{good}")
        self.start(bad)
        self.line(f"ret i32 {site}")
        self.start(good)

    # Steps.

    def kernel(self, step: Kernel) -> None:
        plan = schedule(step, self.target)
        emitter = KernelEmitter(step, plan, self.target, self.definitions)
        text = emitter.function()
        name = self.functions.get(text)
        if name is None:
            ops = [op for s in step.stages for op in reversed(s.ops)]
            step.name = f"{_symbol(ops)}_{len(self.functions)}"
            name = self.functions[text] = step.name
        step.name = name
        self.declarations |= set(emitter.declarations)
        self.schedules.append((step, plan, name))
        words = [self.pointer(a) for a in emitter.arrays]
        if emitter.checks:
            words.append("%status")
        self.context_words = max(self.context_words, len(words))
        for position, word in enumerate(words):
            place = self.op(f"getelementptr ptr, ptr %ctx, i64 {position}")
            self.line(f"store ptr {word}, ptr {place}, align 8")
        if plan.parallel:
            run = Target.PARALLEL_FOR
            self.imports.add(run)
            self.declarations.add(f"declare void @{run}(ptr, ptr, i64, i64)")
            self.line(
                f"call void @{run}(ptr @{name}, ptr %ctx, i64 {plan.range}, i64 {plan.grain})"
            )
        else:
            self.line(f"call void @{name}(ptr %ctx, i64 0, i64 {plan.range})")
        if emitter.checks:
            site = self.op("load i64, ptr %site_at, align 8")
            wrong = self.op(f"icmp ne i64 {site}, 0")
            self.fail_if(wrong, self.op(f"trunc i64 {site} to i32"))

    def matmul(self, step: Matmul) -> None:
        letter, scalar = ("s", "float") if step.c.dtype.itemsize == 4 else ("d", "double")
        width = f"i{self.target.blas_int_bits}"
        symbol = f"cblas_{letter}gemm"
        self.imports.add(symbol)
        ints = ", ".join([width] * 3)
        self.declarations.add(
            f"declare void @{symbol}(i32, i32, i32, {ints}, {scalar}, ptr, {width}, ptr, {width}, "
            f"{scalar}, ptr, {width})"
        )
        size = step.c.dtype.itemsize
        a = self._offset(self.pointer(step.a), step.a_offset * size)
        b = self._offset(self.pointer(step.b), step.b_offset * size)
        c = self.pointer(step.c)
        a_order, lda = _layout(step.a_strides, step.m, step.k)
        b_order, ldb = _layout(step.b_strides, step.k, step.n)

        def call(a: str, b: str, c: str) -> None:
            self.line(
                f"call void @{symbol}(i32 101, i32 {a_order}, i32 {b_order}, {width} {step.m}, "
                f"{width} {step.n}, {width} {step.k}, {scalar} 1.0, ptr {a}, {width} {lda}, "
                f"ptr {b}, {width} {ldb}, {scalar} 0.0, ptr {c}, {width} {step.n})"
            )

        if step.batch == 1:
            call(a, b, c)
            return
        with _Counted(self, step.batch) as i:
            steps = (step.a_strides[0], step.b_strides[0], step.m * step.n)
            at = [
                self.op(f"getelementptr i8, ptr {p}, i64 {self.op(f'mul i64 {i}, {s * size}')}")
                for p, s in zip((a, b, c), steps, strict=True)
            ]
            call(*at)

    def _offset(self, pointer: str, nbytes: int) -> str:
        return self.op(f"getelementptr i8, ptr {pointer}, i64 {nbytes}") if nbytes else pointer

    def sort(self, step: Sort) -> None:
        n = step.source.shape[-1]
        rows = math.prod(step.source.shape[:-1])
        function = sorting.sort_function(step.source.dtype, step.indices)
        self.helpers.update(dict.fromkeys(function.texts))
        self.declarations |= function.declarations
        self.line(
            f"call void @{function.name}(ptr {self.pointer(step.source)}, "
            f"ptr {self.pointer(step.target)}, ptr {self.pointer(step.scratch)}, "
            f"i64 {rows}, i64 {n})"
        )

    def branch(self, step: Branch) -> None:
        index = self.op(f"load i32, ptr {self.pointer(step.index)}, align 4")
        end = self.label("joined")
        labels = [self.label("branch") for _ in step.branches]
        # Out of range is clamped, as the op says: below 0 the first branch, above the last.
        low = self.op(f"icmp slt i32 {index}, 0")
        index = self.op(f"select i1 {low}, i32 0, i32 {index}")
        cases = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(labels[:-1]))
        self.line(f"switch i32 {index}, label %{labels[-1]} [ {cases} ]")
        for label, program in zip(labels, step.branches, strict=True):
            self.start(label)
            self._program(program)
            self.line(f"br label %{end}")
        self.start(end)

    def loop(self, step: Loop) -> None:
        for carry in step.carries:
            for array in (carry.now, carry.next):
                slot = self.slots[array] = f"%slot{next(self.names)}"
                self.allocas.append(f"  {slot} = alloca ptr, align 8")
        homes = []
        for carry in step.carries:
            home = self.pointer(carry.result)
            homes.append(home)
            self._move(carry.init, home, carry.result)
            self.line(f"store ptr {home}, ptr {self.slots[carry.now]}, align 8")
            spare = self.pointer(carry.spare)
            self.line(f"store ptr {spare}, ptr {self.slots[carry.next]}, align 8")
        head, body, end = self.label("while"), self.label("body"), self.label("done")
        self.line(f"br label %{head}")
        self.start(head)
        self._program(step.test)
        flag = self.op(f"load i8, ptr {self.pointer(step.flag)}, align 1")
        going = self.op(f"icmp ne i8 {flag}, 0")
        self.line(f"br i1 {going}, label %{body}, label %{end}")
        self.start(body)
        self._program(step.body)
        for carry in step.carries:
            if carry.swap:
                now, new = self.slots[carry.now], self.slots[carry.next]
                old = self.op(f"load ptr, ptr {now}, align 8")
                fresh = self.op(f"load ptr, ptr {new}, align 8")
                self.line(f"store ptr {fresh}, ptr {now}, align 8")
                self.line(f"store ptr {old}, ptr {new}, align 8")
        self.line(f"br label %{head}")
        self.start(end)
        for carry, home in zip(step.carries, homes, strict=True):
            if carry.swap and carry.result.nbytes:
                self._bring_home(carry.now, home, carry.result.nbytes)

    def _move(self, source: Array, target: str, like: Array) -> None:
        if like.nbytes:
            assert source.contiguous, "a loop's initial value is contiguous"
            self.copy(target, self.pointer(source), like.nbytes)

    def _bring_home(self, now: Array, home: str, nbytes: int) -> None:
        """Copy the final value of a carry to where the loop's result is, if it is not there."""
        away, there = self.label("away"), self.label("home")
        here = self.op(f"load ptr, ptr {self.slots[now]}, align 8")
        same = self.op(f"icmp eq ptr {here}, {home}")
        self.line(f"br i1 {same}, label %{there}, label %{away}")
        self.start(away)
        self.copy(home, here, nbytes)
        self.line(f"br label %{there}")
        self.start(there)

    def check(self, step: Check) -> None:
        flag = self.op(f"load i8, ptr {self.pointer(step.flag)}, align 1")
        for word, array in enumerate(step.values):
            value = self._word(array)
            place = self.op(f"getelementptr i64, ptr %status, i64 {word}")
            self.line(f"store i64 {value}, ptr {place}, align 8")
        self.fail_if(self.op(f"icmp eq i8 {flag}, 0"), str(step.site))

    def _word(self, array: Array) -> str:
        """A 0-d value's bytes in an int64."""
        size = array.dtype.itemsize * 8
        value = self.op(f"load i{size}, ptr {self.pointer(array)}, align {array.dtype.itemsize}")
        return value if size == 64 else self.op(f"zext i{size} {value} to i64")

    def whole_copy(self, step: Copy) -> None:
        self.copy(self.pointer(step.target), self.pointer(step.source), step.source.nbytes)


class _Counted:
    """`with _Counted(entry, n) as i:` emits the body n times over, in a loop."""

    def __init__(self, entry: EntryEmitter, n: int) -> None:
        self.entry, self.n = entry, n
        self.head, self.body, self.end = (entry.label(h) for h in ("each", "item", "after"))
        self.i = f"%i{next(entry.names)}"

    def __enter__(self) -> str:
        e = self.entry
        before = e.block
        e.line(f"br label %{self.head}")
        e.start(self.head)
        self.phi = len(e.lines)
        self.before = before
        e.line(f"{self.i}c = icmp slt i64 {self.i}, {self.n}")
        e.line(f"br i1 {self.i}c, label %{self.body}, label %{self.end}")
        e.start(self.body)
        return self.i

    def __exit__(self, *_: object) -> None:
        e = self.entry
        e.line(f"{self.i}n = add nsw i64 {self.i}, 1")
        e.line(f"br label %{self.head}")
        e.lines.insert(
            self.phi,
            f"  {self.i} = phi i64 [ 0, %{self.before} ], [ {self.i}n, %{e.block} ]",
        )
        e.start(self.end)


def _layout(strides: tuple[int, int, int], rows: int, cols: int) -> tuple[int, int]:
    """CBLAS order (111 plain, 112 transposed) and leading dimension of a row-major operand."""
    _, row, col = strides
    if col == 1:
        return 111, max(row, cols)
    return 112, max(col, rows)


def _argument_name(array: Array) -> str:
    return f"%{'in' if array.kind == 'input' else 'out'}{array.position}"


def _argument(name: str, position: int) -> list[str]:
    return [
        f"  {name}_at = getelementptr ptr, ptr %args, i64 {position}",
        f"  {name} = load ptr, ptr {name}_at, align 8",
    ]


def _symbol(ops: Sequence[str]) -> str:
    """A readable function name from the ops of a kernel."""
    shown = [op for op in ops if op not in ("broadcast", "constant", "reshape", "copy")][:4]
    return "_".join(dict.fromkeys(shown)) or "copy"


_EMITTERS: dict[type, Any] = {
    Kernel: EntryEmitter.kernel,
    Matmul: EntryEmitter.matmul,
    Sort: EntryEmitter.sort,
    Branch: EntryEmitter.branch,
    Loop: EntryEmitter.loop,
    Check: EntryEmitter.check,
    Copy: EntryEmitter.whole_copy,
}
