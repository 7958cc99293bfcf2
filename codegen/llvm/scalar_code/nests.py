"""Loops over elements of arrays as functions for LLVM's own loop passes.

    void @name(ptr noalias %p0, ..., ptr noalias %status, i64 %lo, i64 %hi) nounwind "loops"

Statements are emitted as they stand, each once, in loops of LLVM's canonical form: one counter from 0
by 1, tested at the end. What is left to LLVM is to move what does not change out of loops, to make
vectors and to unroll. For that it is told that no two arrays overlap, that addresses stay within
their arrays, and which functions of vectors our elementwise functions have. A nest that threads share
(`shared`) makes trips `lo` to `hi - 1` of its outermost loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ....ir.graph import SourceLine
from ...journal import Refusal, listening, note
from ...limits import limits
from ...loop_ir.scalar_code import Body, Repeat, Write, calls, has_routines, may_fail, nodes, within
from ...loop_ir.steps import ScalarCode
from ...math.functions import Elementwise
from ...module import PYTHON_ERROR
from ...scalar import Expr
from ..builder import Value, symbol
from ..functions import Calls, FunctionTable
from ..instructions import SCALAR_TYPES, type_text
from ..text import Operand, TextEmitter
from ..values import COLD
from .counted import Trips
from .extremes import emit_extreme, extreme_of
from .lanes import TripEmitter, lanes_of_trips
from .shared import shared_loop
from .statements import ScalarCodeEmitter
from .work import heft, outer_loops

MARK = '"loops"'  # the attribute of functions that go through LLVM's passes
SIDE_BY_SIDE = 4  # sums of elements that LLVM makes a vector of


CALLS_ITSELF = Refusal("a function in it calls itself", "write the recursion as a loop")
WAITS = Refusal(
    "each iteration waits for the number of the one before",
    "if it is a sum that may be made in any order, allow that with jit(fastmath=True) or write np.sum",
)
NUMBERS = Refusal("its loops touch numbers only, no elements of arrays")
LITTLE = Refusal("it is little work: passes over it would take longer than they save")
# Why LLVM may make no vectors of a loop in a nest, if it makes none.
FAILS = Refusal(
    "an iteration of the inner loop may raise (an index out of bounds, an overflow, an assert)",
    "loop over range(len(x)) of the arrays that are indexed, or jit(boundscheck=False)",
)
ENDS = Refusal(
    "the loop may end in any iteration (break, return, while)", "move the test out of it"
)
HANDS_ON = Refusal(
    "an iteration of the inner loop needs a number of the one before",
    "allow sums in any order with jit(fastmath=True), or write np.sum over the row",
)


def why_no_nest(step: ScalarCode) -> Refusal | None:
    """Why a step should not go through LLVM's passes, which take long loops over elements, or inside of
    loops.

    A single loop that carries floats runs at the latency of its operations, with passes or without, if
    it does not seek an extreme, is no sum in any order, and has no vector of sums side by side.
    """
    if has_routines(step.body):
        return CALLS_ITSELF
    loops = list(outer_loops(step.body))
    if not any(True for s in loops for _ in outer_loops(s.body)):
        if any(_waits(s) and extreme_of(s) is None for s in loops):
            return WAITS
        if not any(_touches(s.body) for s in loops):
            return NUMBERS
    return None if heft(step.body) > limits().nest_work else LITTLE


def _waits(s: Repeat) -> bool:
    """Whether a loop carries floats, each trip waiting for the one before."""
    floats = [(c, new) for c, new in zip(s.carries, s.new, strict=True) if c.dtype.kind == "f"]
    if all(new.op in ("add", "sub") and new.attr for _, new in floats):
        return False
    return len(floats) < SIDE_BY_SIDE or not _apart(floats)


def _apart(steps: Sequence[tuple[Expr, Expr]]) -> bool:
    """Whether carries step by one operation, each by what depends on none of them."""
    kinds = {(new.op, new.dtype, new.args.index(c) if c in new.args else -1) for c, new in steps}
    by = [a for c, new in steps for a in new.args if a is not c]
    return len(kinds) == 1 and len(by) == len(steps) and not {c for c, _ in steps} & {*within(by)}


def _touches(block: Body) -> bool:
    """Whether a block reads or writes elements."""
    return (
        any(isinstance(s, Write) for s in block.statements)
        or any(node.op == "load" for node in nodes(block))
        or any(map(_touches, block.inner()))
    )


class NestEmitter(ScalarCodeEmitter):
    """Emits one step as a function for LLVM's passes, which takes its arrays and the status block."""

    vectors_by_hand = False
    shared: Repeat | None = None  # the loop whose trips threads share, `grain` of them at a time
    length = grain = 0
    span: tuple[Value, Value]
    doubts: list[tuple[SourceLine | None, Refusal]]  # why LLVM may make no vectors of inner loops

    def __init__(self, *args: Any) -> None:
        self.doubts = []
        super().__init__(*args)

    def take(self, b: TextEmitter) -> list[Value]:
        b.moves = "inbounds "
        shared = shared_loop(self.step, partial(lanes_of_trips, b))
        if isinstance(shared, Refusal):
            note("threads", self.step.subject, shared)
        else:
            self.shared, self.grain = shared
            self.length = self.shared.length
        names = [*(f"p{k}" for k in range(len(self.arrays))), "status"]
        *pointers, lo, hi = b.takes(**dict.fromkeys(names, "ptr"), lo="i64", hi="i64")
        self.span = lo, hi
        return pointers

    def function(self) -> str:
        self.block(self.step.body)
        self.b.ret()
        wide = f'"prefer-vector-width"="{self.b.target.vector_bits}"'
        pointers = [name for name, value in self.b.code.params.items() if value.type == "ptr"]
        return self.b.unnamed(noalias=pointers, attributes=f"nounwind {MARK} {wide}")

    def caller(self, name: str) -> str:
        """The function that a program calls: it takes its arrays from a block of pointers."""
        b = TextEmitter(self.b.target, 1)
        pointers = super().take(b)
        b.call("void", symbol(name), *pointers, *(b.code.params[k] for k in ("lo", "hi")))
        b.ret()
        return b.unnamed(noalias=("ctx",), attributes=COLD)

    def functions(self, table: FunctionTable) -> Calls:
        return VectorCalls(table, frozenset(calls(self.step.body)))

    def together(self, values: Sequence[Expr]) -> None:
        """LLVM makes the vectors."""

    def _repeat(self, s: Repeat) -> None:
        """A loop that may end in its middle LLVM makes no vectors of."""
        before = self.b.as_on_x86
        fails = may_fail(s.body)
        self.b.as_on_x86 = self.on_x86 and (s.condition is not None or fails)
        if listening() and not any(True for _ in outer_loops(s.body)):
            refusal = ENDS if s.condition is not None else FAILS if fails else None
            if refusal is not None or s.carries:
                self.doubts.append((s.loc, refusal or HANDS_ON))
        super()._repeat(s)
        self.b.as_on_x86 = before

    def counted(self, s: Repeat, values: Sequence[Value], trips: Trips) -> Sequence[Value]:
        sought = emit_extreme(self, s, values)
        if sought is not None:
            return sought
        lanes = lanes_of_trips(self.b, s)
        start, stop = self.span if s is self.shared else (0, trips.number)
        if not lanes:
            return _Loop(self, s, start, stop).emit(values)
        every = max(limits().polled_work // (max(heft(s.body), 1) * lanes), 1)
        TripEmitter(self, s, lanes).emit(s.body, every, start, stop)
        return values

    def leave_if(self, bad: Value, words: Sequence[Value], site: int) -> None:
        """Of several threads, the check that comes first in the program tells."""
        if self.shared is None or words or site == PYTHON_ERROR:
            super().leave_if(bad, words, site)
            return
        place = self.b.offset(self.status, 7, "i64")
        told = self.b.load("i64", place, align=8)
        first = told.eq(0) | (told > site)
        self._leave_if(bad, [(7, self.b.select(first, site, told))])

    def asks_for_signals(self) -> Value:
        if self.shared is None:
            return super().asks_for_signals()
        return self.b.call("i1", symbol("stopped"), self.status, self.last_look())


class _Loop:
    """A loop while it is emitted. Its carries are phis; `step` moves the carry that counts, if one does.

    Long loops look for signals, from time to time: an outer loop takes so many trips at a time.
    """

    def __init__(self, e: NestEmitter, s: Repeat, start: Value | int, stop: Value | int) -> None:
        self.e, self.b, self.s, self.start, self.stop = e, e.b, s, start, stop
        self.types = [SCALAR_TYPES[c.dtype] for c in s.carries]
        self.most = s.length if s.counter is not None else None  # trips, or a bound of them

    def emit(self, values: Sequence[Value]) -> Sequence[Value]:
        number = self.stop
        if isinstance(number, int) and number == 0:
            return values
        some = isinstance(number, int) or isinstance(self.start, Value)  # there is a trip
        work = max(heft(self.s.body), 1)
        every = max(limits().polled_work // work, 1)
        most = number if isinstance(number, int) else self.most
        if _looks(self.s.body) or (most is not None and most <= every):
            return self._span(values, self.start, number, some)
        chunk, look, on, done = (self.b.later(h) for h in ("chunk", "look", "on", "done"))
        first, *names = self.b.parameters(chunk, "i64", *self.types)
        last = self.b.parameters(done, *self.types)
        if some:
            self.b.jump(chunk, self.start, *values)
        else:
            any_trip = self.b.word(number).ne(0)
            self.b.fork(any_trip, chunk, (0, *values), done, values)
        self.b.at(chunk)
        with self.b.scope():
            left = self.b.word(number) - first
            more = left.ugt(every)
            stop = first + self.b.select(more, every, left)
            new = self._span(names, first, stop, True)
            self.b.fork(more, look, (), done, new)
            self.b.at(look)
            self.e.poll()
            self.b.jump(on)
            self.b.at(on)
            self.b.jump(chunk, stop, *new)
        self.b.at(done)
        return [*last]

    def _span(
        self, values: Sequence[Value], start: Value | int, stop: Value | int, some: bool
    ) -> Sequence[Value]:
        """The trips from `start` to `stop`; `some`: there is one at least."""
        body, done = self.b.later("body"), self.b.later("done")
        position, *names = self.b.parameters(body, "i64", *self.types)
        last = self.b.parameters(done, *self.types)
        if some:
            self.b.jump(body, start, *values)
        else:
            any_trip = self.b.word(stop).ne(0)
            self.b.fork(any_trip, body, (start, *values), done, values)
        self.b.at(body)
        if self.s.counter is not None:
            self.e.indices.positions[self.s.counter] = position
        with self.b.scope():
            new = self.e.trip(self.s, names)
            following = self.b.stepped(position, 1, "nuw nsw")
            more = following.ne(self.b.word(stop))
            self.b.fork(more, body, (following, *new), done, new)
        self.b.at(done)
        return [*last]


def _looks(block: Body) -> bool:
    """Whether a loop in a block looks for signals each time that the block runs."""
    loops = [s for s in block.statements if isinstance(s, Repeat) and s.counter is not None]
    whole = [s for s in loops if s.trips is None and s.condition is None and s.length]
    return any(s.length * heft(s.body) > limits().polled_work or _looks(s.body) for s in whole)


class VectorCalls(Calls):
    """Calls of one number that LLVM may make calls of vectors, also under a condition."""

    def call(
        self, function: Elementwise, operands: Sequence[Operand], b: TextEmitter, wide: TextEmitter
    ) -> Operand:
        result = function.root.dtype
        name = self.table.name(function, 1)
        size = max(dtype.itemsize for dtype in (result, *(p.dtype for p in function.params)))
        lanes = b.target.vector_bits // (8 * size)
        attributes = "nounwind willreturn memory(none)"
        if lanes > 1:
            vectors = self.table.name(function, lanes)
            kinds = "v" * len(operands)
            variant = f"_ZGV_LLVM_N{lanes}{kinds}_{name}({vectors})"
            attributes += f' "vector-function-abi-variant"="{variant}"'
        values = [x.value for x in operands]
        kind = type_text(result, 1)
        return Operand(b.evaluate(kind, symbol(name), *values, attributes=attributes), True)
