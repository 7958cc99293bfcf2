"""Scalar code as an LLVM function: carries are phis, statements stand in the order of the program.

    void @name(ptr %ctx, i64, i64)      like a kernel's; it leaves at once where a check fails

Short bodies are repeated, so that the jumps between trips cost little; where the trips can be counted,
nothing is tested between copies (`counted`). Long loops look for signals: see `control`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ....ir.types import I64
from ...loop_ir.scalar_code import (
    Body,
    Choose,
    Invoke,
    Let,
    Repeat,
    Require,
    Routine,
    Special,
    Statement,
    Write,
    calls,
    nodes,
)
from ...loop_ir.steps import ScalarCode
from ...module import PYTHON_ERROR
from ...scalar import Expr
from ...target import Target
from ..accesses import AccessEmitter
from ..builder import Value, symbol
from ..checks import CheckEmitter, StatusBlock
from ..functions import Calls, FunctionTable
from ..indices import IndexEmitter
from ..instructions import type_text
from ..leaves import KernelLeaves
from ..scalars import ScalarEmitter
from ..text import TextEmitter
from .counted import Trips, emit_counted, is_next, trips_of
from .packing import emit_packed

REPEATED = 40  # expressions in a body and its copies together
COPIES = 4  # of a short body, at the most
STACK = 1 << 22  # bytes that functions which call themselves may take of it
POLLED_WORK = 1 << 20  # scalar operations between two looks at the clock


class StatementEmitter(ABC):
    """Emits statements, with positions as i64. Subclasses say what a failed check does."""

    def __init__(self, step: ScalarCode, memory: AccessEmitter) -> None:
        self.step, self.memory = step, memory
        self.indices, self.exprs, self.b = memory.indices, memory.exprs, memory.b

    @abstractmethod
    def leave_if(self, bad: Value, words: Sequence[Value], site: int) -> None:
        """Write to the status block and leave if `bad`."""

    @abstractmethod
    def together(self, values: Sequence[Expr]) -> None:
        """Emit those of the values that are better computed together than one by one."""

    @abstractmethod
    def poll(self) -> None:
        """What long loops do once in a while."""

    # Statements.

    def block(self, block: Body) -> None:
        for statement in block.statements:
            self._statement(statement)

    def _statement(self, s: Statement) -> None:
        match s:
            case Let():
                self.together(s.values)
                self.exprs.emit_many(s.values)
            case Write():
                value = self.exprs.operand(s.value)
                self.memory.write(s.array.dtype, *self.memory.locate(s.array, s.index), value)
            case Require():
                self._require(s)
            case Choose():
                self._choose(s)
            case Repeat():
                self._repeat(s)
            case Special():
                self._special(s)
            case Invoke():
                self.invoke(s)

    def invoke(self, s: Invoke) -> None:
        """Call a function of numbers."""
        raise AssertionError("only scalar code that is a function of its own calls others")

    def _special(self, s: Special) -> None:
        operands = [self.exprs.operand(e).value for e in s.operands]
        values = [v if v.builder is not None else Value(v.type, v.text, self.b) for v in operands]
        pointers = [self.memory.pointers[array] for array in s.arrays]
        for result, value in zip(s.results, s.write(self.b, values, pointers), strict=True):
            self.exprs.bind(result, value, uniform=True)

    def _require(self, s: Require) -> None:
        bad = ~self.exprs.operand(s.flag).value
        words = [self._word(v) for v in s.values]
        if s.taken is None:
            self.leave_if(bad, words, s.site)
            return
        taken = self.exprs.operand(s.taken).value
        doubt, on = self.b.later("doubt"), self.b.later("on")
        self.b.fork(bad, doubt, (), on, hint=self.b.unlikely())
        self.b.at(doubt)
        with self.b.scope():
            self.leave_if(taken, words, s.site)
            self.b.jump(on)
        self.b.at(on)

    def _word(self, value: Expr) -> Value:
        """The bytes of a value in an int64."""
        operand = self.exprs.operand(value).value
        if value.dtype.kind == "f":
            operand = operand.to("bitcast", f"i{8 * value.dtype.itemsize}")
        return operand if operand.type == "i64" else operand.zext("i64")

    def _choose(self, s: Choose) -> None:
        index = self.exprs.operand(s.index).value
        index = self.b.select(index < 0, 0, index)
        *blocks, last = (self.b.later("branch") for _ in s.blocks)
        end = self.b.later("joined")
        joined = self.b.parameters(end, *(type_text(r.dtype, 1) for r in s.results))
        self.b.switch(index, last, dict(enumerate(blocks)))
        for block, statements, values in zip((*blocks, last), s.blocks, s.values, strict=True):
            self.b.at(block)
            with self.b.scope():
                self.block(statements)
                operands = [self.exprs.operand(v).value for v in values]
            self.b.jump(end, *operands)
        self.b.at(end)
        for result, value in zip(s.results, joined, strict=True):
            self.exprs.bind(result, value, uniform=True)

    # Loops.

    def _repeat(self, s: Repeat) -> None:
        """Copies of the body one after the other, as long as there are enough trips; then the rest."""
        values = [self.exprs.operand(e).value for e in s.start]
        bounded = s.counter is not None and s.condition is not None
        trips = None if bounded else trips_of(self, s, values)
        if trips is None:
            self._while(s, values)
            return
        for carry, value in zip(s.carries, self.counted(s, values, trips), strict=True):
            self.exprs.bind(carry, value, uniform=True)

    def counted(self, s: Repeat, values: Sequence[Value], trips: Trips) -> Sequence[Value]:
        """A loop whose trips are counted: its last values."""
        copies = self.copies(_size(s.body))
        every = interval(self.step.work * copies) * copies
        return emit_counted(self, s, values, trips, copies, every)

    def copies(self, size: int) -> int:
        """How often a body of this size is repeated."""
        copies = COPIES
        while copies > 1 and size * copies > REPEATED:
            copies //= 2
        return copies

    def trip(self, s: Repeat, values: Sequence[Value]) -> list[Value]:
        """One copy of the body; gives the new values."""
        with self.b.scope():
            for carry, value in zip(s.carries, values, strict=True):
                self.exprs.bind(carry, value, uniform=True)
            self.block(s.body)
            return [self.exprs.operand(e).value for e in s.new]

    def _while(self, s: Repeat, values: Sequence[Value]) -> None:
        """A loop that its condition ends, or, if it has a counter, the last of its trips."""
        assert s.test is not None and s.condition is not None
        copies = self.copies(_size(s.body) + _size(s.test) + len(s.new) + 1)
        every = interval(self.step.work * copies)
        polls = s.counter is None or s.length > every
        clock = _counting(s) if polls else None
        ticks = polls and clock is None
        most = None if s.trips is None else self.exprs.operand(s.trips).value
        head, leave = self.b.later("while"), self.b.later("done")
        own = ["i64"] * (ticks + (most is not None))  # turns until it polls, and the trip
        types = [type_text(c.dtype, 1) for c in s.carries]
        parameters = self.b.parameters(head, *own, *types)
        counts, names = parameters[: len(own)], parameters[len(own) :]
        last = self.b.parameters(leave, *types)
        self.b.jump(head, *([every] * ticks), *([0] * (most is not None)), *values)
        self.b.at(head)
        fewer = counts[0] - 1 if ticks else None
        trip = counts[-1] if most is not None else None
        now: Sequence[Value] = names
        for _ in range(copies):
            if trip is not None and most is not None:
                asked = self.b.later("left")
                self.b.fork(trip.ne(most), asked, (), leave, now)
                self.b.at(asked)
                assert s.counter is not None
                self.indices.positions[s.counter] = trip
            inside = self.b.later("body")
            with self.b.scope():
                for carry, value in zip(s.carries, now, strict=True):
                    self.exprs.bind(carry, value, uniform=True)
                self.block(s.test)
                going = self.exprs.operand(s.condition).value
                self.b.fork(going, inside, (), leave, now)
                self.b.at(inside)
                self.block(s.body)
                now = [self.exprs.operand(e).value for e in s.new]
            if trip is not None:
                trip = self.b.stepped(trip, 1, "nuw nsw")
        trips = [] if trip is None else [trip]
        if clock is not None:
            self._poll_each(now[clock], every, copies)
        if fewer is None:
            self.b.jump(head, *trips, *now)
        else:
            self._poll_if(fewer, every, head, (*trips, *now))
        self.b.at(leave)
        for carry, value in zip(s.carries, last, strict=True):
            self.exprs.bind(carry, value, uniform=True)

    def _poll_each(self, clock: Value, every: int, copies: int) -> None:
        """Look for signals once in so many turns, as a number tells that `copies` trips moved by one."""
        due, on = self.b.later("due"), self.b.later("on")
        low = clock & (every * copies - 1)
        self.b.fork(low.ult(copies), due, (), on, hint=self.b.unlikely())
        self.b.at(due)
        self.poll()
        self.b.jump(on)
        self.b.at(on)

    def _poll_if(self, fewer: Value, every: int, head: Any, values: Sequence[Value]) -> None:
        """Go back to `head`, with a look for signals each time that no turns are left until one."""
        due, on = self.b.later("due"), self.b.later("on")
        (again,) = self.b.parameters(on, "i64")
        over = fewer.eq(0)
        self.b.fork(over, due, (), on, (fewer,), self.b.unlikely())
        self.b.at(due)
        self.poll()
        self.b.jump(on, every)
        self.b.at(on)
        self.b.jump(head, again, *values)


class ScalarCodeEmitter(StatementEmitter):
    """Emits one step. `polls` tells afterwards whether it looks for signals."""

    vectors_by_hand = True  # LLVM makes none of what is emitted

    def __init__(
        self,
        step: ScalarCode,
        target: Target,
        definitions: dict[str, str],
        functions: FunctionTable,
    ) -> None:
        b = TextEmitter(target, 1, definitions=definitions)
        self.step = step
        self.calls = self.functions(functions)
        self.on_x86 = "x86_64" in target.triple
        b.as_on_x86 = self.on_x86 and self.vectors_by_hand
        exprs = ScalarEmitter(b, calls=self.calls)
        # Whose memory functions share with who calls them.
        self.common = self.arrays = list(dict.fromkeys([*step.reads, *step.writes]))
        *addresses, self.status = self.take(b)
        pointers = dict(zip(self.arrays, addresses, strict=True))
        memory = AccessEmitter(IndexEmitter(exprs), pointers, dict.fromkeys(self.arrays, 0))
        exprs.leaves = KernelLeaves(
            memory, CheckEmitter(exprs, StatusBlock(b, self.status, leave=self.leave))
        )
        super().__init__(step, memory)
        self.routines: list[Routine] = []  # that are defined here
        self.floor: Value | None = None  # where the stack of functions must not reach
        self.clock: Value | None = None  # tells when a loop looked for signals, if any does

    @property
    def polls(self) -> bool:
        """Tells afterwards whether the code looks for signals."""
        return self.clock is not None

    def take(self, b: TextEmitter) -> list[Value]:
        """The addresses of the arrays and that of the status block."""
        ctx, _, _ = b.takes(ctx="ptr", lo="i64", hi="i64")
        names = [*(f"p{k}" for k in range(len(self.arrays))), "status"]
        with b.at_start():
            return [b.pointer_at(ctx, k, name) for k, name in enumerate(names)]

    def functions(self, table: FunctionTable) -> Calls:
        """The elementwise functions that the code calls."""
        return Calls(table, table.called(calls(self.step.body)))

    def function(self) -> str:
        """The function's text, from the parameter list on: equal steps have equal texts."""
        self.block(self.step.body)
        self.b.ret()
        return self.b.unnamed(noalias=("ctx",))

    def leave_if(self, bad: Value, words: Sequence[Value], site: int) -> None:
        self._leave_if(bad, [*enumerate(words), (7, self.b.word(site))])

    def _leave_if(self, bad: Value, words: Sequence[tuple[int, Value]]) -> None:
        yes, no = self.b.later("bad"), self.b.later("good")
        self.b.fork(bad, yes, (), no, hint=self.b.unlikely())
        self.b.at(yes)
        with self.b.scope():
            for position, word in words:
                self.b.store(word, self.b.offset(self.status, position, "i64"))
            self.leave()
        self.b.at(no)

    def leave(self) -> None:
        """Return where a check has failed."""
        self.b.ret()

    def invoke(self, s: Invoke) -> None:
        values = [self.exprs.operand(e).value for e in s.operands]
        around = dict.fromkeys([*self.step.reads, *self.step.writes, *s.routine.around])
        pointers = [self.memory.pointers[a] for a in around]
        types = result_types(s.routine)
        others = (*pointers, self.status, self.last_look())
        made = self.b.call(types, symbol(s.routine.name), *self.depth(), *values, *others)
        self._leave_if(self.b.field(made, len(s.results)), ())
        for k, result in enumerate(s.results):
            self.exprs.bind(result, self.b.field(made, k), uniform=True)
        if s.defines:
            self.routines.append(s.routine)

    def depth(self) -> list[Value]:
        """How deep a function is that is called here, and where the stack must not reach."""
        if self.floor is None:
            with self.b.at_start():
                self.floor = self.b.word_at(0, "top").to("ptrtoint", "i64") - STACK
        return [self.b.word(0), self.floor]

    def together(self, values: Sequence[Expr]) -> None:
        emit_packed(self, values)

    def poll(self) -> None:
        self.leave_if(self.asks_for_signals(), (), PYTHON_ERROR)

    def asks_for_signals(self) -> Value:
        """Whether there was a signal that raised."""
        return self.b.call("i1", symbol("poll"), self.last_look())

    def last_look(self) -> Value:
        """Where the function keeps when it looked for signals."""
        if self.clock is None:
            with self.b.at_start():
                self.clock = self.b.word_at(0, "poll_clock")
        return self.clock


def result_types(routine: Routine) -> str:
    """What the function of a routine gives: its results, and whether a check failed."""
    return f"{{ {', '.join([*(type_text(e.dtype, 1) for e in routine.outs), 'i1'])} }}"


def interval(work: int) -> int:
    """Turns of a loop between two looks at the clock: a power of two."""
    return 1 << max(POLLED_WORK // max(work, 1), 1).bit_length() - 1


def _counting(s: Repeat) -> int | None:
    """The carry that each trip moves by one, if there is such an integer of 64 bits."""
    for k, (carry, new) in enumerate(zip(s.carries, s.new, strict=True)):
        if carry.dtype == I64 and (is_next(new, carry, 1) or is_next(new, carry, -1)):
            return k
    return None


def _size(block: Body) -> int:
    """Expressions and statements of a block; a large number if there are loops inside."""
    if any(isinstance(s, (Repeat, Choose, Special, Invoke)) for s in block.statements):
        return REPEATED
    size = len(block.statements)
    for node in nodes(block):
        if node.op == "loop":
            return REPEATED
        size += node.attr.size if node.op == "call" else node.op not in ("const", "var")
    return size
