"""Scalar code as an LLVM function: carries are phis, statements stand in the order of the program.

    void @name(ptr %ctx, i64, i64)      like a kernel's; it leaves at once where a check fails

Short bodies are repeated, so that the jumps between trips cost little; where the trips can be counted,
nothing is tested between copies (`counted`). Long loops look for signals: see `control`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.types import I64
from ..index import Index, Var
from ..kernel import Array
from ..module import PYTHON_ERROR
from ..scalar import DType, Expr
from ..scalar_code import (
    Block,
    Choose,
    Let,
    Repeat,
    Require,
    Statement,
    Write,
    calls,
    nodes,
)
from ..steps import ScalarCode
from ..target import Target
from .accesses import AccessEmitter
from .counted import emit_counted, trips_of
from .functions import FunctionTable
from .instructions import SCALAR_TYPES, type_text
from .packing import emit_packed
from .text import Operand

REPEATED = 40  # expressions in a body and its copies together
COPIES = 4  # of a short body, at the most
POLLED_WORK = 1 << 20  # scalar operations between two looks at the clock


class StatementEmitter(AccessEmitter):
    """Emits statements, with positions as i64. `poll` is what long loops do once in a while."""

    step: ScalarCode
    head: list[str]

    # Statements.

    def _block(self, block: Block) -> None:
        for statement in block.statements:
            self._statement(statement)

    def _statement(self, s: Statement) -> None:
        match s:
            case Let():
                self.together(s.values)
                self.emit_many(s.values)
            case Write():
                value = self.operand(s.value)
                self._write(s.array.dtype, *self.place(s.array, s.index), value)
            case Require():
                self._require(s)
            case Choose():
                self._choose(s)
            case Repeat():
                self._repeat(s)

    def _require(self, s: Require) -> None:
        flag = self.operand(s.flag).text
        bad = self.value_of(f"xor i1 {flag}, true")
        words = [self._word(v) for v in s.values]
        self._leave_if(bad, words, str(s.site))

    def _leave_if(self, bad: str, words: Sequence[str], site: str) -> None:
        """Write to the status block and leave if `bad`."""
        yes, no = self.new_label("bad"), self.new_label("good")
        self.lines.append(f"  br i1 {bad}, label %{yes}, label %{no}{self._seldom()}")
        self.start_block(yes)
        for position, word in [*enumerate(words), (7, site)]:
            place = self.fresh(f"getelementptr i64, ptr %status, i64 {position}")
            self.lines.append(f"  store i64 {word}, ptr {place}, align 8")
        self.lines.append("  ret void")
        self.start_block(no)

    def _after_report(self, label: str) -> None:
        self.lines.append("  ret void")

    def _word(self, value: Expr) -> str:
        """The bytes of a value in an int64."""
        text, dtype = self.operand(value).text, value.dtype
        if dtype.kind == "b":
            return self.value_of(f"zext i1 {text} to i64")
        bits = dtype.itemsize * 8
        if dtype.kind == "f":
            text = self.value_of(f"bitcast {SCALAR_TYPES[dtype]} {text} to i{bits}")
        return text if bits == 64 else self.value_of(f"zext i{bits} {text} to i64")

    def _choose(self, s: Choose) -> None:
        index = self.operand(s.index).text
        low = self.value_of(f"icmp slt i32 {index}, 0")
        index = self.value_of(f"select i1 {low}, i32 0, i32 {index}")
        labels = [self.new_label("branch") for _ in s.blocks]
        end = self.new_label("joined")
        cases = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(labels[:-1]))
        self.lines.append(f"  switch i32 {index}, label %{labels[-1]} [ {cases} ]")
        columns: list[list[str]] = []
        for label, block, values in zip(labels, s.blocks, s.values, strict=True):
            self.start_block(label)
            with self.scope():
                self._block(block)
                texts = [self.operand(v).text for v in values]
            columns.append([f"[ {t}, %{self.block} ]" for t in texts])
            self.lines.append(f"  br label %{end}")
        self.start_block(end)
        for result, *sources in zip(s.results, *columns, strict=True):
            ty = type_text(result.dtype, 1)
            self.bind(result, self.fresh(f"phi {ty} {', '.join(sources)}"), uniform=True)

    # Loops.

    def _repeat(self, s: Repeat) -> None:
        """Copies of the body one after the other, as long as there are enough trips; then the rest."""
        values = [self.operand(e).text for e in s.start]
        trips = trips_of(self, s, values)
        if trips is None:
            self._while(s, values)
            return
        copies = _copies(_size(s.body))
        every = _interval(self.step.work * copies) * copies
        for carry, text in zip(
            s.carries, emit_counted(self, s, values, trips, copies, every), strict=True
        ):
            self.bind(carry, text, uniform=True)

    def trip(self, s: Repeat, values: Sequence[str]) -> list[str]:
        """One copy of the body; gives the new values."""
        with self.scope():
            for carry, text in zip(s.carries, values, strict=True):
                self.bind(carry, text, uniform=True)
            self._block(s.body)
            return [self.operand(e).text for e in s.new]

    def _while(self, s: Repeat, values: Sequence[str]) -> None:
        assert s.test is not None and s.condition is not None
        copies = _copies(_size(s.body) + _size(s.test) + len(s.new) + 1)
        head, leave = self.new_label("while"), self.new_label("done")
        before = self.block
        names = [f"%a{next(self.names)}" for _ in values]
        left = f"%left{next(self.names)}"
        every = _interval(self.step.work * copies)
        self.lines.append(f"  br label %{head}")
        self.start_block(head)
        phis = len(self.lines)
        fewer = self.fresh(f"sub i64 {left}, 1")
        ends: list[tuple[Sequence[str], str]] = []
        now: Sequence[str] = names
        for _ in range(copies):
            inside = self.new_label("body")
            with self.scope():
                for carry, text in zip(s.carries, now, strict=True):
                    self.bind(carry, text, uniform=True)
                self._block(s.test)
                going = self.operand(s.condition).text
                ends.append((now, self.block))
                self.lines.append(f"  br i1 {going}, label %{inside}, label %{leave}")
                self.start_block(inside)
                self._block(s.body)
                now = [self.operand(e).text for e in s.new]
        due, on = self.new_label("due"), self.new_label("on")
        over = self.fresh(f"icmp eq i64 {fewer}, 0")
        worked = self.block
        self.lines.append(f"  br i1 {over}, label %{due}, label %{on}{self._seldom()}")
        self.start_block(due)
        self.poll()
        polled = self.block
        self.lines.append(f"  br label %{on}")
        self.start_block(on)
        again = self.fresh(f"phi i64 [ {fewer}, %{worked} ], [ {every}, %{polled} ]")
        self.lines.append(f"  br label %{head}")
        self.phis(phis, [left, *names], [I64, *(c.dtype for c in s.carries)], [
            ([str(every), *values], before), ([again, *now], self.block)])  # fmt: skip
        self.start_block(leave)
        for k, carry in enumerate(s.carries):
            sources = ", ".join(f"[ {texts[k]}, %{label} ]" for texts, label in ends)
            self.bind(carry, self.fresh(f"phi {type_text(carry.dtype, 1)} {sources}"), uniform=True)

    def phis(
        self,
        place: int,
        names: Sequence[str],
        dtypes: Sequence[DType],
        sources: Sequence[tuple[Sequence[str], str]],
    ) -> None:
        """Insert phis: `sources` are their texts and the block that these come from."""
        self.lines[place:place] = [
            f"  {name} = phi {type_text(dtype, 1)} "
            + ", ".join(f"[ {texts[k]}, %{label} ]" for texts, label in sources)
            for k, (name, dtype) in enumerate(zip(names, dtypes, strict=True))
        ]

    def together(self, values: Sequence[Expr]) -> None:
        """Emit those of the values that are better computed together than one by one."""

    def poll(self) -> None:
        raise NotImplementedError


class ScalarCodeEmitter(StatementEmitter):
    """Emits one step. `polls` tells afterwards whether it looks for signals."""

    def __init__(
        self,
        step: ScalarCode,
        target: Target,
        definitions: dict[str, str],
        functions: FunctionTable,
    ) -> None:
        super().__init__(target, [], 1, definitions=definitions)
        self.step = step
        self.lane: Var | None = None
        self.mask = ""
        self.env: dict[Var, Index] = {}
        self.at: dict[Var, str] = {}
        self.registers: dict[Array, Operand] = {}
        self.buffers: dict[Array, tuple[str, tuple[int, ...]]] = {}
        self.pointers: dict[Array, str] = {}
        self.idempotent = False
        self.functions = functions
        self.called = functions.called(calls(step.body))
        self.polls = False
        self.head: list[str] = []
        self.arrays = list(dict.fromkeys([*step.reads, *step.writes]))

    def function(self) -> str:
        """The function's text, from the parameter list on: equal steps have equal texts."""
        for position, name in enumerate([*(f"%p{k}" for k in range(len(self.arrays))), "%status"]):
            self.head.append(f"  {name}a = getelementptr ptr, ptr %ctx, i64 {position}")
            self.head.append(f"  {name} = load ptr, ptr {name}a, align 8")
        self.pointers = {array: f"%p{k}" for k, array in enumerate(self.arrays)}
        self.origins = dict.fromkeys(self.arrays, 0)
        self._block(self.step.body)
        body = "\n".join([*self.head, *self.lines, "  ret void"])
        return f"(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {{\nentry:\n{body}\n}}\n"

    def together(self, values: Sequence[Expr]) -> None:
        emit_packed(self, values)

    def poll(self) -> None:
        clock = "%poll_clock"
        if not self.polls:
            self.polls = True
            self.head += [
                f"  {clock} = alloca i64, align 8",
                f"  store i64 0, ptr {clock}, align 8",
            ]
        self._leave_if(self.fresh(f"call i1 @poll(ptr {clock})"), (), str(PYTHON_ERROR))


def _interval(work: int) -> int:
    """Turns of a loop between two looks at the clock: a power of two."""
    return 1 << max(POLLED_WORK // max(work, 1), 1).bit_length() - 1


def _copies(size: int) -> int:
    """How often a body of this size is repeated."""
    copies = COPIES
    while copies > 1 and size * copies > REPEATED:
        copies //= 2
    return copies


def _size(block: Block) -> int:
    """Expressions and statements of a block; a large number if there are loops inside."""
    if any(isinstance(s, (Repeat, Choose)) for s in block.statements):
        return REPEATED
    size = len(block.statements)
    for node in nodes(block):
        if node.op == "loop":
            return REPEATED
        size += node.attr.size if node.op == "call" else node.op not in ("const", "var")
    return size
