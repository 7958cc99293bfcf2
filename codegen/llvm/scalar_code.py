"""Scalar code as an LLVM function: carries are phis, statements stand in the order of the program.

    void @name(ptr %ctx, i64, i64)      like a kernel's; it leaves at once where a check fails

Short bodies are repeated, so that the jumps between trips cost little; where the trips can be counted,
nothing is tested between copies (`counted`). Long loops look for signals: see `control`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.types import BOOL
from ..loop_ir.index import Index, Var
from ..loop_ir.kernel import Array
from ..loop_ir.scalar_code import (
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
from ..loop_ir.steps import ScalarCode
from ..module import PYTHON_ERROR
from ..scalar import Expr
from ..target import Target
from .accesses import AccessEmitter
from .builder import Value
from .counted import emit_counted, trips_of
from .functions import FunctionTable
from .instructions import type_text
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
        bad = ~self.known(self.operand(s.flag).text, BOOL, 1)
        words = [self._word(v) for v in s.values]
        self._leave_if(bad, words, str(s.site))

    def _leave_if(self, bad: str, words: Sequence[str], site: str) -> None:
        """Write to the status block and leave if `bad`."""
        yes, no = self.later("bad"), self.later("good")
        self.fork(bad, yes, (), no, hint=self._seldom())
        self.at(yes)
        with self.scope():
            for position, word in [*enumerate(words), (7, site)]:
                place = self.offset(Value("ptr", "%status"), position, "i64")
                self.store(self.word(word), place)
        self.ret()
        self.at(no)

    def _after_report(self, block: Any) -> None:
        self.ret()

    def _word(self, value: Expr) -> Value:
        """The bytes of a value in an int64."""
        found = self.known(self.operand(value).text, value.dtype, 1)
        if value.dtype.kind == "f":
            found = found.to("bitcast", f"i{8 * value.dtype.itemsize}")
        return found if found.type == "i64" else found.zext("i64")

    def _choose(self, s: Choose) -> None:
        index = self.known(self.operand(s.index).text, s.index.dtype, 1)
        index = self.select(index < 0, 0, index)
        *blocks, last = (self.later("branch") for _ in s.blocks)
        end = self.later("joined")
        joined = self.parameters(end, *(type_text(r.dtype, 1) for r in s.results))
        self.switch(index, last, dict(enumerate(blocks)))
        for block, statements, values in zip((*blocks, last), s.blocks, s.values, strict=True):
            self.at(block)
            with self.scope():
                self._block(statements)
                given = [self.operand(v).text for v in values]
            self.jump(end, *given)
        self.at(end)
        for result, value in zip(s.results, joined, strict=True):
            self.bind(result, value, uniform=True)

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
        head, leave = self.later("while"), self.later("done")
        types = [type_text(c.dtype, 1) for c in s.carries]
        left, *names = self.parameters(head, "i64", *types)
        last = self.parameters(leave, *types)
        every = _interval(self.step.work * copies)
        self.jump(head, every, *values)
        self.at(head)
        fewer = left - 1
        now: Sequence[str] = names
        for _ in range(copies):
            inside = self.later("body")
            with self.scope():
                for carry, text in zip(s.carries, now, strict=True):
                    self.bind(carry, text, uniform=True)
                self._block(s.test)
                going = self.operand(s.condition).text
                self.fork(going, inside, (), leave, now)
                self.at(inside)
                self._block(s.body)
                now = [self.operand(e).text for e in s.new]
        due, on = self.later("due"), self.later("on")
        (again,) = self.parameters(on, "i64")
        over = fewer.eq(0)
        self.fork(over, due, (), on, (fewer,), self._seldom())
        self.at(due)
        self.poll()
        self.jump(on, every)
        self.at(on)
        self.jump(head, again, *now)
        self.at(leave)
        for carry, value in zip(s.carries, last, strict=True):
            self.bind(carry, value, uniform=True)

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
        super().__init__(target, 1, definitions=definitions)
        self.step = step
        self.lane: Var | None = None
        self.mask = ""
        self.env: dict[Var, Index] = {}
        self.positions: dict[Var, Any] = {}
        self.registers: dict[Array, Operand] = {}
        self.buffers: dict[Array, tuple[str, tuple[int, ...]]] = {}
        self.pointers: dict[Array, str] = {}
        self.idempotent = False
        self.functions = functions
        self.called = functions.called(calls(step.body))
        self.polls = False
        self.head = self.code.start
        self.arrays = list(dict.fromkeys([*step.reads, *step.writes]))

    def function(self) -> str:
        """The function's text, from the parameter list on: equal steps have equal texts."""
        for position, name in enumerate([*(f"%p{k}" for k in range(len(self.arrays))), "%status"]):
            self.head.append(f"  {name}a = getelementptr ptr, ptr %ctx, i64 {position}")
            self.head.append(f"  {name} = load ptr, ptr {name}a, align 8")
        self.pointers = {array: f"%p{k}" for k, array in enumerate(self.arrays)}
        self.origins = dict.fromkeys(self.arrays, 0)
        self._block(self.step.body)
        self.ret()
        return f"(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {{\n{self.code.text()}\n}}\n"

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
        due = self.fresh("i1", f"call i1 @poll(ptr {clock})")
        self._leave_if(due, (), str(PYTHON_ERROR))


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
