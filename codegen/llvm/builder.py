"""LLVM IR written from Python: blocks that take parameters, loops, instructions of typed values.

    f = Function("i64", "sum_to", n="i64")
    with f.loop(i=0, total=0) as loop:
        loop.going(loop.i < f.n)
        loop.next(loop.i + 1, loop.total + loop.i)
    f.ret(loop.total)
    print(f.text())                         # define i64 @sum_to(i64 %n) nounwind { ...

What is written has typed values (`values`) as operands: a text that LLVM would refuse is an error at the
line that wrote it. Where an instruction takes a condition or none, None says that there is none, and
nothing else does.

A block's parameters become phis, and every jump gives their values. No LLVM pass runs over this code:
what is to be inlined is a Python function that writes instructions, and a call that is written is a
call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from .blocks import Block as Block
from .blocks import Code as Code
from .blocks import OpenLoop as OpenLoop
from .operands import Callee as Callee
from .operands import arguments_text, as_taken, as_typed, check_mask, type_of
from .types import bits_of as bits_of
from .types import bools as bools
from .types import bytes_of as bytes_of
from .types import element_of as element_of
from .types import fields_of as fields_of
from .types import is_float as is_float
from .types import lanes_of as lanes_of
from .types import suffix as suffix
from .types import vector as vector
from .values import NULL as NULL
from .values import VOID as VOID
from .values import Condition as Condition
from .values import Number as Number
from .values import Value as Value
from .values import as_condition as as_condition
from .values import as_operand, constant_text, operand_text
from .values import constant as constant
from .values import poison as poison
from .values import symbol as symbol
from .values import vector_constant as vector_constant
from .values import zeros as zeros

LIKELY = '!{!"branch_weights", i32 2000, i32 1}'  # metadata of a module


@cache
def _intrinsic(name: str, type: str) -> str:
    return f"llvm.{name}.{suffix(type)}"


class Builder(ABC):
    """Writes instructions into blocks. `at(block)` says into which. Values that get no name of their own
    have numbers after `prefix`; `moves` are flags of all address arithmetic."""

    prefix = "v"
    moves = ""

    def __init__(self, code: Code | None = None) -> None:
        self.code = code or Code()
        self.declared: set[str] = set()  # intrinsics

    @abstractmethod
    def declare(self, name: str, declaration: str) -> None:
        """Note what a function is that is called, and may be defined elsewhere."""

    @property
    def current(self) -> Block:
        """The block that is being written."""
        return self.code.here

    # The function

    def takes(self, **params: str) -> list[Value]:
        """The parameters of the function: names and types."""
        self.code.params = {name: self.named(type, name) for name, type in params.items()}
        return [*self.code.params.values()]

    def named(self, type: str, name: str) -> Value:
        """What has, or is going to have, this name in the function."""
        return Value(type, f"%{name}", self)

    @property
    def types(self) -> list[str]:
        """The types of the function's parameters."""
        return [p.type for p in self.code.params.values()]

    def unnamed(self, *, noalias: Collection[str] = (), attributes: str = "nounwind") -> str:
        """The function's text from the parameter list on: equal functions have equal texts. Nothing
        else leads to what is behind the `noalias` parameters."""
        params = ", ".join(
            f"{p.type} {'noalias ' if name in noalias else ''}{p.text}"
            for name, p in self.code.params.items()
        )
        return f"({params}) {attributes} {{\n{self.code.text()}\n}}\n"

    # Blocks

    @contextmanager
    def at_start(self, first: bool = False) -> Iterator[None]:
        """What is written inside stands before all else in the function; `first`: also before what was
        written so earlier."""
        start, before = self.code.start, self.code.here
        if first:
            later, start.lines = start.lines, []
        self.code.here = start
        yield
        self.code.here = before
        if first:
            start.lines += later

    def block(self, hint: str, **params: str) -> Block:
        """A new block, which stands in the text here."""
        block = self.later(hint, **params)
        self.code.place(block)
        return block

    def later(self, hint: str, **params: str) -> Block:
        """A new block, which stands in the text where it is entered first."""
        number = next(self.code.numbers)
        values = [Value(type, f"%{name}.{number}", self) for name, type in params.items()]
        return Block(f"{hint}{number}", values)

    def parameters(self, block: Block, *types: str) -> list[Value]:
        """Give a block parameters, before anything jumps to it."""
        block.params += [Value(type, f"%a{next(self.code.numbers)}", self) for type in types]
        return block.params

    def at(self, block: Block) -> list[Value]:
        """Go on writing in `block`; gives its parameters."""
        if not block.is_placed:
            self.code.place(block)
        self.code.here = block
        return block.params

    def jump(self, block: Block, *values: Value | Number) -> None:
        block.enter(self.current.label, values)
        self.line(f"br label %{block.label}")

    def branch(
        self, condition: Condition, then: Block, otherwise: Block, likely: bool | None = None
    ) -> None:
        """A conditional jump to blocks without parameters; the first is taken mostly if `likely`."""
        self.fork(condition, then, (), otherwise, (), self.likely() if likely else "")

    def fork(
        self,
        condition: Condition,
        then: Block,
        values: Sequence[Value | Number],
        otherwise: Block,
        other_values: Sequence[Value | Number] = (),
        hint: str = "",
    ) -> None:
        """A conditional jump to blocks with parameters."""
        test = as_condition(condition).text
        then.enter(self.current.label, values)
        otherwise.enter(self.current.label, other_values)
        labels = f"label %{then.label}, label %{otherwise.label}"
        self.line(f"br i1 {test}, {labels}{hint}")

    def likely(self) -> str:
        """The hint that a branch goes to its first block mostly: in each module `!0` is `LIKELY`."""
        return ", !prof !0"

    def require(self, condition: Value, otherwise: Block) -> None:
        """Go on here if `condition` holds, mostly; else in `otherwise`."""
        after = self.block("ok")
        self.branch(condition, after, otherwise, likely=True)
        self.at(after)

    def switch(self, value: Value, default: Block, cases: dict[int, Block]) -> None:
        for block in (default, *cases.values()):
            block.enter(self.current.label, ())
        table = " ".join(f"{value.type} {k}, label %{b.label}" for k, b in cases.items())
        self.line(f"switch {value!r}, label %{default.label} [ {table} ]")

    @contextmanager
    def loop(self, **carried: Value | Number) -> Iterator[OpenLoop]:
        """`with f.loop(i=0) as loop:` writes a loop that carries `loop.i`. Ints are of type i64.

        The body says when it ends (`going`, or `repeat` at the end of an iteration) and what the next
        iteration has (`next`, `repeat`).
        """
        first = {n: v if isinstance(v, Value) else constant("i64", v) for n, v in carried.items()}
        head = self.later("loop", **{n: v.type for n, v in first.items()})
        self.jump(head, *first.values())
        self.at(head)
        loop = OpenLoop(self, head, first)
        yield loop
        self.at(loop._end)

    @contextmanager
    def each(self, n: Value | Number, start: Value | Number = 0) -> Iterator[Value]:
        """`with f.each(n) as i:` writes the body of a loop over i from `start` to n."""
        head, body, end = self.block("each", i="i64"), self.block("body"), self.block("end")
        self.jump(head, start)
        (i,) = self.at(head)
        self.branch(i < n, body, end)
        self.at(body)
        yield i
        self.jump(head, i + 1)
        self.at(end)

    @contextmanager
    def when(self, condition: Condition, likely: bool = False) -> Iterator[None]:
        """`with f.when(c):` writes what happens only if `c` holds."""
        body, end = self.block("when"), self.block("end")
        self.branch(condition, body, end, likely)
        self.at(body)
        yield
        self.jump(end)
        self.at(end)

    def ret(self, value: Value | None = None) -> None:
        self.line("ret void" if value is None else f"ret {value!r}")

    def unreachable(self) -> None:
        self.line("unreachable")

    # Instructions

    def line(self, text: str) -> None:
        """An instruction that has no value."""
        self.code.here.lines.append(f"  {text}")

    def op(self, type: str, text: str) -> Value:
        """An instruction whose value depends on its operands only. It need not be written twice."""
        return self.fresh(type, text)

    def fresh(self, type: str, text: str, name: str = "") -> Value:
        """An instruction that has a value of this type, which may get a name of its own."""
        code = self.code
        value = Value(type, f"%{name or f'{self.prefix}{next(code.numbers)}'}", self)
        code.here.lines.append(f"  {value.text} = {text}")
        return value

    def literal(self, type: str, value: Number) -> Value:
        """A constant that operators can begin with."""
        return Value(type, constant_text(type, value), self)

    def binary(self, name: str, a: Value, b: Value | Number) -> Value:
        type = a.type
        if type[0] == "p":
            raise TypeError(f"{name} of an address: {a!r}")
        return self.op(type, f"{name} {type} {a.text}, {operand_text(type, b)}")

    def stepped(self, counter: Value, by: Value | Number, flags: str = "nsw") -> Value:
        """A loop's counter in the next iteration: `flags` say how it does not overflow."""
        type = counter.type
        return self.fresh(type, f"add {flags} {type} {counter.text}, {operand_text(type, by)}")

    def compare(self, how: str, a: Value, b: Value | Number) -> Value:
        """Of integers and addresses."""
        type = a.type
        return self.op(bools(type), f"icmp {how} {type} {a.text}, {operand_text(type, b)}")

    def hidden(self, constant: Value) -> Value:
        """The constant as a value of which LLVM knows nothing, so that it folds nothing with it.

        Vectors whose lanes it knows to be zero it gets wrong: of `x / select(c, 1, y)`, where a lane is
        zero in x and y, it takes the quotient for zero whatever `c` is. It is 0 / 0 (LLVM 22, x86)."""
        return self.op(constant.type, f'call {constant.type} asm "", "=r,0"({constant!r})')

    def select(self, condition: Condition, a: Value | Number, b: Value | Number) -> Value:
        if not isinstance(condition, Value):
            condition = as_condition(condition)
        if condition.type != "i1" and condition.type != bools(type_of(a, b)):
            raise TypeError(f"{condition!r} chooses between {a!r} and {b!r}")
        type = type_of(a, b)
        picked = f"{type} {operand_text(type, a)}, {type} {operand_text(type, b)}"
        return self.op(type, f"select {condition!r}, {picked}")

    def compare_floats(self, how: str, a: Value, b: Value | Number) -> Value:
        """`oeq`, `olt`, ... are false where one is NaN, `ueq`, `une`, ... true; `uno`: one is."""
        type = a.type
        return self.op(bools(type), f"fcmp {how} {type} {a.text}, {operand_text(type, b)}")

    def negated(self, a: Value) -> Value:
        """Of floats."""
        return self.op(a.type, f"fneg {a!r}")

    def least(self, a: Value, b: Value | Number) -> Value:
        """Of signed numbers."""
        return self.select(a < b, a, b)

    def larger(self, a: Value, b: Value | Number) -> Value:
        """Of unsigned numbers."""
        return self.select(a.ugt(b), a, b)

    def convert(self, how: str, value: Value, type: str) -> Value:
        """zext, sext, trunc, ptrtoint, inttoptr, bitcast, ..."""
        return self.op(type, f"{how} {value.type} {value.text} to {type}")

    def call(self, result: str, name: str | Value, *args: Value | Number) -> Value:
        """Call a function by its name, which declares it, or by its address. Numbers are i64."""
        values = [as_operand(a.type if isinstance(a, Value) else "i64", a) for a in args]
        if not isinstance(name, Value):
            address = symbol(name)
            types = ", ".join([v.type for v in values])
            self.declare(name, f"declare {result} {address.text}({types})")
        else:
            address = name
        return self._call(result, address, values)

    def call_variadic(self, result: str, name: str, *args: Value | Number) -> Value:
        """Call a function of C that takes whatever comes after its first argument. Numbers are i64."""
        values = [as_operand(a.type if isinstance(a, Value) else "i64", a) for a in args]
        kind = f"({values[0].type}, ...)"
        self.declare(name, f"declare {result} @{name}{kind}")
        return self.fresh(result, f"call {result} {kind} @{name}({arguments_text(values)})")

    def run(self, function: Callee, *args: Value | Number) -> Value:
        """Call a function of the same module."""
        return self._call(function.result, function.address, as_taken(function, args))

    def leave_to(self, function: Callee, *args: Value | Number) -> None:
        """The end: a function of the same module, which returns to whoever called this one."""
        arguments = arguments_text(as_taken(function, args))
        self.line(f"tail call {function.result} {function.address.text}({arguments})")
        self.ret()

    def ask(self, function: Callee, *args: Value | Number) -> Value:
        """The same of one whose result depends on its arguments only: it need not be asked twice."""
        arguments = arguments_text(as_taken(function, args))
        return self.op(
            function.result, f"call {function.result} {function.address.text}({arguments})"
        )

    def resume(self, address: Value, *args: Value) -> None:
        """Call a `fastcc` function, as the parts of coroutines are."""
        self._call("void", address, args, "fastcc ")

    def _call(
        self, result: str, address: Value, values: Sequence[Value], convention: str = ""
    ) -> Value:
        text = f"call {convention}{result} {address.text}({arguments_text(values)})"
        if result == "void":
            self.line(text)
            return VOID
        return self.fresh(result, text)

    def evaluate(self, result: str, function: Value, *args: Value, attributes: str = "") -> Value:
        """Call a `fastcc` function whose result depends on its arguments only; `attributes` of the call
        say more of it."""
        text = f"call fastcc {result} {function.text}({arguments_text(args)}) {attributes}"
        return self.op(result, text.rstrip())

    def assembly(self, result: str, text: str, constraints: str, *values: Value) -> Value:
        """Inline assembly, which may do more than its value shows, for all lanes of a warp together."""
        call = f'asm sideeffect "{text}", "{constraints}"({arguments_text(values)}) convergent nounwind'
        return self.fresh(result, f"call {result} {call}")

    def intrinsic(self, name: str, type: str, *args: Value | Number, flags: str = "") -> Value:
        """`llvm.NAME`, overloaded on `type`, which its result has, and arguments that are ints. `flags`
        are of fast math."""
        values = [a if isinstance(a, Value) else as_typed(type, a) for a in args]
        full = _intrinsic(name, type)
        if full not in self.declared:
            self.declared.add(full)
            types = ", ".join([v.type for v in values])
            self.declare(full, f"declare {type} @{full}({types})")
        return self.op(type, f"call {flags}{type} @{full}({arguments_text(values)})")

    def ldexp(self, a: Value, n: Value) -> Value:
        """a * 2**n, of floats and integers in as many lanes."""
        full = f"llvm.ldexp.{suffix(a.type)}.{suffix(n.type)}"
        self.declare(full, f"declare {a.type} @{full}({a.type}, {n.type})")
        return self.op(a.type, f"call {a.type} @{full}({arguments_text((a, n))})")

    # Lanes

    def splat(self, value: Value, lanes: int) -> Value:
        """A vector that has `value` in all lanes."""
        type = vector(lanes, value.type)
        first = self.insert(poison(type), value, 0)
        return self.shuffle(first, poison(type), [0] * lanes)

    def extract(self, value: Value, lane: Value | Number) -> Value:
        number = lane if isinstance(lane, Value) else constant("i64", lane)
        return self.op(element_of(value.type), f"extractelement {value!r}, {number!r}")

    def insert(self, into: Value, value: Value, lane: Value | Number) -> Value:
        as_operand(element_of(into.type), value)
        number = lane if isinstance(lane, Value) else constant("i64", lane)
        return self.op(into.type, f"insertelement {into!r}, {value!r}, {number!r}")

    def packed(self, values: Sequence[Value]) -> Value:
        """A vector that has these values in its lanes."""
        packed = poison(vector(len(values), values[0].type))
        for k, value in enumerate(values):
            packed = self.insert(packed, value, k)
        return packed

    def shuffle(self, a: Value, b: Value, lanes: Iterable[int]) -> Value:
        """The lanes of a and then of b with these numbers."""
        as_operand(a.type, b)
        order = vector_constant("i32", lanes)
        text = f"shufflevector {a!r}, {b!r}, {order!r}"
        return self.op(vector(lanes_of(order.type), element_of(a.type)), text)

    # Memory

    def alloca(
        self, type: str, n: Value | Number | None = None, align: int = 16, name: str = ""
    ) -> Value:
        """Memory on the stack for a value of this type, or for n of them."""
        amount = "" if n is None else f", i64 {operand_text('i64', n)}"
        return self.fresh("ptr", f"alloca {type}{amount}, align {align}", name)

    def stack(self, type: str, align: int = 64, name: str = "") -> Value:
        """Memory on the stack for as long as the function runs, wherever this stands."""
        with self.at_start():
            return self.alloca(type, align=align, name=name)

    def word_at(self, value: Number, name: str = "") -> Value:
        """Memory on the stack for an i64, with this value to begin with."""
        address = self.alloca("i64", align=8, name=name)
        self.store(constant("i64", value), address, align=8)
        return address

    def pointer_at(self, block: Value, position: int, name: str, slot: str = "a") -> Value:
        """The pointer at a position of a block of pointers: a value that has this name."""
        address = self.place(block, position, "ptr", f"{name}{slot}")
        return self.fresh("ptr", f"load ptr, {address!r}, align 8", name)

    def place(self, base: Value, n: Number, unit: str, name: str) -> Value:
        """`base` moved by n times the size of `unit`: a value that has this name."""
        return self.fresh(base.type, f"getelementptr {unit}, {base!r}, i64 {n}", name)

    def offset(self, base: Value, n: Value | Number, unit: str = "i8") -> Value:
        """`base` moved by n bytes (or n times the size of `unit`)."""
        moved = f"getelementptr {self.moves}{unit}, {base!r}"
        if isinstance(n, Value):
            lanes = lanes_of(n.type)
            type = base.type if lanes == 1 else vector(lanes, base.type)
            return self.op(type, f"{moved}, {n.type} {n.text}")
        if n == 0:
            return base
        return self.op(base.type, f"{moved}, i64 {n}")

    def load(
        self, type: str, base: Value, offset: Value | Number = 0, unit: str = "i8", align: int = 0
    ) -> Value:
        """What is at `base`, moved; aligned as its type is by nature, or to `align` bytes."""
        address = self.offset(base, offset, unit)
        aligned = f", align {align}" if align else ""
        return self.fresh(type, f"load {type}, {address!r}{aligned}")

    def store(
        self,
        value: Value,
        base: Value,
        offset: Value | Number = 0,
        unit: str = "i8",
        align: int = 0,
    ) -> None:
        to = self.offset(base, offset, unit)
        aligned = f", align {align}" if align else ""
        self.line(f"store {value!r}, {to!r}{aligned}")

    def load_once(self, type: str, address: Value, align: int) -> Value:
        """What is at an address where it stays the same: it need not be read twice."""
        return self.op(type, f"load {type}, {address!r}, align {align}")

    def load_volatile(self, type: str, address: Value) -> Value:
        """What another thread may have written."""
        return self.fresh(type, f"load volatile {type}, {address!r}, align {bytes_of(type)}")

    def store_volatile(self, value: Value, address: Value) -> None:
        """For another thread to read."""
        self.line(f"store volatile {value!r}, {address!r}, align {bytes_of(value.type)}")

    def load_masked(
        self, address: Value, mask: Value, rest: Value, align: int, stays: bool = False
    ) -> Value:
        """The lanes of the mask from memory, the others from `rest`. What `stays` is not read twice."""
        type, name = rest.type, f"llvm.masked.load.{suffix(rest.type)}.p0"
        self.declare(name, f"declare {type} @{name}(ptr, {mask.type}, {type})")
        check_mask(type, mask)
        arguments = f"ptr align {align} {address.text}, {mask!r}, {rest!r}"
        return (self.op if stays else self.fresh)(type, f"call {type} @{name}({arguments})")

    def gather(
        self, addresses: Value, mask: Value, rest: Value, align: int, stays: bool = False
    ) -> Value:
        """The lanes of the mask from where each lane's address says, the others from `rest`. What
        `stays` is not read twice."""
        type, name = rest.type, f"llvm.masked.gather.{suffix(rest.type)}.{suffix(addresses.type)}"
        self.declare(name, f"declare {type} @{name}({addresses.type}, {mask.type}, {type})")
        check_mask(type, mask)
        arguments = f"{addresses.type} align {align} {addresses.text}, {mask!r}, {rest!r}"
        return (self.op if stays else self.fresh)(type, f"call {type} @{name}({arguments})")

    def scatter(self, value: Value, addresses: Value, mask: Value, align: int) -> None:
        """The lanes of the mask to where each lane's address says."""
        check_mask(value.type, mask)
        name = f"llvm.masked.scatter.{suffix(value.type)}.{suffix(addresses.type)}"
        self.declare(name, f"declare void @{name}({value.type}, {addresses.type}, {mask.type})")
        arguments = f"{value!r}, {addresses.type} align {align} {addresses.text}, {mask!r}"
        self.line(f"call void @{name}({arguments})")

    def store_masked(self, value: Value, address: Value, mask: Value, align: int) -> None:
        """The lanes of the mask, where each belongs."""
        self._store_lanes(f"store.{suffix(value.type)}.p0", value, address, mask, align)

    def store_compressed(self, value: Value, address: Value, mask: Value, align: int) -> None:
        """The lanes of the mask, one after the other."""
        self._store_lanes(f"compressstore.{suffix(value.type)}", value, address, mask, align)

    def compress(self, value: Value, mask: Value) -> Value:
        """The lanes of the mask, one after the other in the first lanes; the others have any values."""
        check_mask(value.type, mask)
        type, name = value.type, f"llvm.experimental.vector.compress.{suffix(value.type)}"
        self.declare(name, f"declare {type} @{name}({type}, {mask.type}, {type})")
        return self.fresh(type, f"call {type} @{name}({value!r}, {mask!r}, {type} poison)")

    def _store_lanes(
        self, name: str, value: Value, address: Value, mask: Value, align: int
    ) -> None:
        check_mask(value.type, mask)
        name = f"llvm.masked.{name}"
        self.declare(name, f"declare void @{name}({value.type}, ptr, {mask.type})")
        self.line(f"call void @{name}({value!r}, ptr align {align} {address.text}, {mask!r})")

    def copy(self, to: Value, start: Value, nbytes: Value | Number, align: int = 0) -> None:
        """memcpy."""
        self._move("memcpy", to, start, nbytes, align)

    def move(self, to: Value, start: Value, nbytes: Value | Number) -> None:
        """memmove: the two may overlap."""
        self._move("memmove", to, start, nbytes, 0)

    def _move(self, how: str, to: Value, start: Value, nbytes: Value | Number, align: int) -> None:
        name, aligned = f"llvm.{how}.p0.p0.i64", f"align {align} " if align else ""
        self.declare(name, f"declare void @{name}(ptr, ptr, i64, i1)")
        n = as_operand("i64", nbytes)
        arguments = (
            f"ptr {aligned}{operand_text('ptr', to)}, ptr {aligned}{operand_text('ptr', start)}"
        )
        self.line(f"call void @{name}({arguments}, {n!r}, i1 false)")

    def fill(self, to: Value, byte: Value | Number, nbytes: Value | Number, align: int = 0) -> None:
        """memset."""
        name, aligned = "llvm.memset.p0.i64", f"align {align} " if align else ""
        self.declare(name, f"declare void @{name}(ptr, i8, i64, i1)")
        what, n = as_operand("i8", byte), as_operand("i64", nbytes)
        arguments = f"ptr {aligned}{operand_text('ptr', to)}, {what!r}, {n!r}, i1 false"
        self.line(f"call void @{name}({arguments})")

    def prefetch(self, address: Value, level: int, *, write: bool = False) -> None:
        """Ask for one line of memory, to be in the cache of that level (1 is the nearest)."""
        self.declare("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        arguments = f"{address!r}, i32 {int(write)}, i32 {4 - level}, i32 1"
        self.line(f"call void @llvm.prefetch.p0({arguments})")

    def load_atomic(self, type: str, address: Value, order: str) -> Value:
        size = bytes_of(type)
        return self.fresh(type, f"load atomic {type}, {address!r} {order}, align {size}")

    def store_atomic(self, value: Value, address: Value, order: str) -> None:
        size = bits_of(value.type) // 8
        self.line(f"store atomic {value!r}, {address!r} {order}, align {size}")

    def update_atomic(self, how: str, address: Value, value: Value, order: str) -> Value:
        """xchg, add, sub, and, ...: gives what was there before."""
        return self.fresh(value.type, f"atomicrmw {how} {address!r}, {value!r} {order}")

    def swap_atomic(
        self, address: Value, old: Value, new: Value, orders: str
    ) -> tuple[Value, Value]:
        """`new` in place of `old`, if that is there: what was there, and whether it was `old`."""
        as_operand(old.type, new)
        pair = f"{{ {old.type}, i1 }}"
        result = self.fresh(pair, f"cmpxchg {address!r}, {old!r}, {new!r} {orders}")
        return self.field(result, 0), self.field(result, 1)

    def several(self, values: Sequence[Value]) -> Value:
        """Some values as one, for a function to return."""
        kind = f"{{ {', '.join([v.type for v in values])} }}"
        made = poison(kind)
        for k, value in enumerate(values):
            made = self.op(kind, f"insertvalue {made!r}, {value!r}, {k}")
        return made

    def field(self, several: Value, number: int) -> Value:
        """One value of several that an instruction has given."""
        return self.op(fields_of(several.type)[number], f"extractvalue {several!r}, {number}")
