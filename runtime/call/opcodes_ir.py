"""The frame in which each opcode of a call program is written as LLVM: fetch, decode, where to go on."""

from __future__ import annotations

from collections.abc import Callable

from ...codegen.llvm.builder import NULL, Block, Value, symbol
from ...codegen.llvm.modules import Function
from ..native.layout import NdarrayLayout
from .program import HEADER, Opcode

MISS = 1  # what the interpreter returns if a guard does not hold; null: an exception is set

Handler = Callable[["Interpreter"], None]
HANDLERS: dict[int, Handler] = {}


def opcode(op: int) -> Callable[[Handler], Handler]:
    """Registers what writes the code of an opcode. It ends with `go`, `miss` or `error`."""

    def register(handler: Handler) -> Handler:
        HANDLERS[op] = handler
        return handler

    return register


class Interpreter(Function):
    """The function `ptr jitney_program(program, args, n, kwnames)`."""

    def __init__(self, layout: NdarrayLayout) -> None:
        super().__init__(
            "ptr",
            "jitney_program",
            internal=True,
            program="ptr",
            arguments="ptr",
            n="i64",
            names="ptr",
        )
        self.layout = layout
        self.program, self.arguments, self.n, self.names = self.args
        self.cursor = self.alloca("i64")  # for PyDict_Next
        self.pair = self.alloca("ptr", 2)
        self.overflow = self.alloca("i32")
        self._next = self.block("next", pc="ptr")
        self.miss, self.error = self.block("miss"), self.block("error")
        self._leave = self.block("leave", result="ptr")
        self.owned_at = self.load("i64", self.program, 8 * HEADER.index("first owned word"))
        self.n_owned = self.load("i64", self.program, 8 * HEADER.index("owned words"))
        self.scratch_at = self.load("i64", self.program, 8 * HEADER.index("scratch word"))
        self.frame = self.alloca("i64", self.load("i64", self.program))
        with self.each(self.n_owned) as i:
            self.store(NULL, self.frame, self.owned_at + i, "i64")
        self.store(NULL, self.frame, self.scratch_at, "i64")
        self.jump(self._next, self.offset(self.program, 8 * len(HEADER)))
        (self.pc,) = self._next.params
        self._write_opcodes()
        self._write_leaving()

    def _write_opcodes(self) -> None:
        numbers = {name: op for name, op in vars(Opcode).items() if name.isupper()}
        starts = {op: self.block(name.lower()) for name, op in numbers.items()}
        self.at(self._next)
        wrong = self.block("wrong")
        self.switch(self.load("i64", self.pc), wrong, starts)
        self.at(wrong)
        self.unreachable()
        for op, block in starts.items():
            self.at(block)
            HANDLERS[op](self)

    def _write_leaving(self) -> None:
        self.at(self.miss)
        self.jump(self._leave, self.literal("i64", MISS).to("inttoptr", "ptr"))
        self.at(self.error)
        self.jump(self._leave, NULL)
        (result,) = self.at(self._leave)
        with self.each(self.n_owned) as i:
            owned = self.load("ptr", self.frame, self.owned_at + i, "i64")
            with self.when(owned.ne(NULL)):
                self.call("void", "Py_DecRef", owned)
        with self.when(self.scratch_at.ne(0)):
            scratch = self.load("ptr", self.frame, self.scratch_at, "i64")
            with self.when(scratch.ne(NULL), likely=True):
                self.call("void", "give_scratch", scratch)
        self.ret(result)

    # Operands: the words after the opcode, counted from 1

    def word(self, k: int) -> Value:
        return self.load("i64", self.pc, 8 * k)

    def pointer(self, k: int) -> Value:
        return self.load("ptr", self.pc, 8 * k)

    def slot(self, k: int) -> Value:
        """The address of the frame's word that operand k names."""
        return self.offset(self.frame, self.word(k), "i64")

    def get(self, k: int, type: str = "ptr") -> Value:
        return self.load(type, self.slot(k))

    def put(self, k: int, value: Value) -> None:
        self.store(value, self.slot(k))

    def put_new(self, k: int, value: Value) -> None:
        """An owned reference that a call gave; null is an error."""
        self.put(k, value)
        self.require(value.ne(NULL), self.error)

    # Where to go

    def go(self, words: int, more: Value | None = None) -> None:
        """On to the next opcode: this one has so many words, itself included."""
        after = self.offset(self.pc, 8 * words)
        if more is not None:
            after = self.offset(after, more, "i64")
        self.jump(self._next, after)

    def leave(self, result: Value) -> None:
        """Drop what is owned and return."""
        self.jump(self._leave, result)

    def check(self, condition: Value) -> None:
        self.require(condition, self.miss)

    def forgive(self) -> Block:
        """A block that drops the exception and counts as a mismatch."""
        here, block = self.current, self.block("forgive")
        self.at(block)
        self.call("void", "PyErr_Clear")
        self.jump(self.miss)
        self.at(here)
        return block

    # Objects

    def type_of(self, value: Value) -> Value:
        return self.load("ptr", value, self.layout.ob_type)

    def check_type(self, value: Value, cls: str | Value) -> None:
        if not isinstance(cls, Value):
            cls = symbol(cls)
        self.check(self.type_of(value).eq(cls))

    def data_of(self, array: Value) -> Value:
        return self.load("ptr", array, self.layout.data)
