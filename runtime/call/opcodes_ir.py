"""The frame in which each opcode of a call program is written as LLVM: fetch, decode, where to go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...codegen.llvm.builder import NULL, Block, Value, symbol
from ...codegen.llvm.modules import Function
from ..native.layout import IntLayout, NdarrayLayout
from .opcodes import HEADER, Opcode

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
    """A function that runs opcodes: what their code is written with."""

    frame: Value
    pc: Value
    cursor: Value
    following: Block | None = None  # where the next opcode is run; None: by the caller
    leaving: Block  # drops what is owned
    ints: IntLayout | None = (
        None  # how ints lie, and where lists have their items, if that is known
    )
    items: int | None = None

    def __init__(
        self, layout: NdarrayLayout, name: str, internal: bool = False, **params: str
    ) -> None:
        super().__init__("ptr", name, internal=internal, **params)
        self.layout = layout
        self.pair = self.alloca("ptr", 2)
        self.overflow = self.alloca("i32")
        self.miss, self.error = self.block("miss"), self.block("error")

    def write(self, handlers: Mapping[int, Handler]) -> None:
        """Where the opcode at `pc` leads, and the code of each."""
        names = {op: name.lower() for name, op in vars(Opcode).items() if name.isupper()}
        starts = {op: self.block(names[op]) for op in handlers}
        wrong = self.block("wrong")
        self.switch(self.load("i64", self.pc), wrong, starts)
        self.at(wrong)
        self.unreachable()
        for op, block in starts.items():
            self.at(block)
            handlers[op](self)

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
        self.go_to(after)

    def go_to(self, after: Value) -> None:
        """On to the opcode that is there."""
        if self.following is None:
            self.ret(after)
        else:
            self.jump(self.following, after)

    def leave(self, result: Value) -> None:
        """Drop what is owned and return."""
        self.jump(self.leaving, result)

    @property
    def missed(self) -> Value:
        """What is returned if a guard does not hold."""
        return self.literal("i64", MISS).to("inttoptr", "ptr")

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


def program_interpreter(layout: NdarrayLayout, items: int | None) -> Interpreter:
    """The function `ptr jitney_program(program, args, n, kwnames)`; lists have their `items` there."""
    words = {"program": "ptr", "arguments": "ptr", "n": "i64", "names": "ptr"}
    f = Interpreter(layout, "jitney_program", internal=True, **words)
    program = f.args[0]
    f.items = items
    f.cursor = f.alloca("i64")  # for PyDict_Next
    f.following = f.block("next", pc="ptr")
    f.leaving = f.block("leave", result="ptr")
    owned_at = f.load("i64", program, 8 * HEADER.index("first owned word"))
    n_owned = f.load("i64", program, 8 * HEADER.index("owned words"))
    scratch_at = f.load("i64", program, 8 * HEADER.index("scratch word"))
    f.frame = f.alloca("i64", f.load("i64", program))
    with f.each(n_owned) as i:
        f.store(NULL, f.frame, owned_at + i, "i64")
    f.store(NULL, f.frame, scratch_at, "i64")
    f.go_to(f.offset(program, 8 * len(HEADER)))
    (f.pc,) = f.at(f.following)
    f.write(HANDLERS)
    f.at(f.miss)
    f.leave(f.missed)
    f.at(f.error)
    f.leave(NULL)
    (result,) = f.at(f.leaving)
    with f.each(n_owned) as i:
        owned = f.load("ptr", f.frame, owned_at + i, "i64")
        with f.when(owned.ne(NULL)):
            f.call("void", "Py_DecRef", owned)
    with f.when(scratch_at.ne(0)):
        scratch = f.load("ptr", f.frame, scratch_at, "i64")
        with f.when(scratch.ne(NULL), likely=True):
            f.call("void", "give_scratch", scratch)
    f.ret(result)
    return f
