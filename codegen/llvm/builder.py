"""LLVM IR written from Python: typed values with operators, blocks that take parameters, loops.

    f = Function("i64", "sum_to", n="i64")
    with f.loop(i=0, total=0) as loop:
        loop.going(loop.i < f.n)
        loop.next(loop.i + 1, loop.total + loop.i)
    f.ret(loop.total)
    print(f.text())                         # define i64 @sum_to(i64 %n) nounwind { ...

A `Value` knows its LLVM type; an operator on it writes an instruction where its builder stands, and
raises `TypeError` where types do not fit: a text that LLVM would refuse is an error at the line that
wrote it. Integers have no sign in LLVM: `//`, `%` and `>>` are those of unsigned numbers, `<` and its
kind those of signed ones, `a.ult(b)` and its kind of unsigned ones. A plain int is a constant of the
type that the other operand has, in every lane of a vector.

A block's parameters become phis, and every jump gives their values. No LLVM pass runs over this code:
what is to be inlined is a Python function that writes instructions, and a call that is written is a
call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .modules import Function

from .types import bits_of as bits_of
from .types import bools as bools
from .types import bytes_of as bytes_of
from .types import element_of as element_of
from .types import fields_of as fields_of
from .types import is_float as is_float
from .types import lanes_of as lanes_of
from .types import suffix as suffix
from .types import vector as vector

Number = int | str  # a constant that takes its type from its neighbour: a number, or its text


class Value(str):
    """An LLVM value: the text that stands for it (`%t3`, `@name`, `7`), its type, and the builder that
    writes what uses it."""

    __slots__ = ("builder", "type")

    type: str
    builder: Builder | None

    def __new__(cls, type: str, text: str, builder: Builder | None = None) -> Value:
        value = str.__new__(cls, text)
        value.type = type
        value.builder = builder
        return value

    def __repr__(self) -> str:
        return f"{self.type} {self}"

    @property
    def is_constant(self) -> bool:
        return self[0] not in "%@"

    def _two(self, name: str, other: Value | Number) -> Value:
        return _writer(self, other).binary(name, self, other)

    def _turned(self, name: str, other: Number) -> Value:
        return _writer(self).binary(name, constant(self.type, other), self)

    def _float_or(self, name: str) -> str:
        return f"f{name}" if is_float(self.type) else name

    def __add__(self, other: Value | Number) -> Value:
        return self._two(self._float_or("add"), other)

    def __sub__(self, other: Value | Number) -> Value:
        return self._two(self._float_or("sub"), other)

    def __mul__(self, other: Value | Number) -> Value:  # type: ignore[override]
        return self._two(self._float_or("mul"), other)

    def __floordiv__(self, other: Value | Number) -> Value:
        return self._two("udiv", other)

    def __mod__(self, other: Value | Number) -> Value:
        return self._two("urem", other)

    def __and__(self, other: Value | Number) -> Value:
        return self._two("and", other)

    def __or__(self, other: Value | Number) -> Value:
        return self._two("or", other)

    def __xor__(self, other: Value | Number) -> Value:
        return self._two("xor", other)

    def __lshift__(self, other: Value | Number) -> Value:
        return self._two("shl", other)

    def __rshift__(self, other: Value | Number) -> Value:
        return self._two("lshr", other)

    def __radd__(self, other: Number) -> Value:
        return self._turned("add", other)

    def __rsub__(self, other: Number) -> Value:
        return self._turned("sub", other)

    def __rmul__(self, other: Number) -> Value:  # type: ignore[override]
        return self._turned("mul", other)

    def __rand__(self, other: Number) -> Value:
        return self._turned("and", other)

    def __ror__(self, other: Number) -> Value:
        return self._turned("or", other)

    def __rxor__(self, other: Number) -> Value:
        return self._turned("xor", other)

    def __rlshift__(self, other: Number) -> Value:
        return self._turned("shl", other)

    def __rrshift__(self, other: Number) -> Value:
        return self._turned("lshr", other)

    def __invert__(self) -> Value:
        return self ^ -1

    def _compared(self, how: str, other: Value | Number) -> Value:
        return _writer(self, other).compare(how, self, other)

    def __lt__(self, other: Value | Number) -> Value:  # type: ignore[override, misc]
        return self._compared("slt", other)

    def __le__(self, other: Value | Number) -> Value:  # type: ignore[override, misc]
        return self._compared("sle", other)

    def __gt__(self, other: Value | Number) -> Value:  # type: ignore[override, misc]
        return self._compared("sgt", other)

    def __ge__(self, other: Value | Number) -> Value:  # type: ignore[override, misc]
        return self._compared("sge", other)

    def ult(self, other: Value | Number) -> Value:
        return self._compared("ult", other)

    def ule(self, other: Value | Number) -> Value:
        return self._compared("ule", other)

    def ugt(self, other: Value | Number) -> Value:
        return self._compared("ugt", other)

    def uge(self, other: Value | Number) -> Value:
        return self._compared("uge", other)

    def eq(self, other: Value | Number) -> Value:
        return self._compared("eq", other)

    def ne(self, other: Value | Number) -> Value:
        return self._compared("ne", other)

    def to(self, how: str, type: str) -> Value:
        """Another type: ptrtoint, inttoptr, bitcast, addrspacecast, sitofp, fptosi, fpext, ..."""
        return _writer(self).convert(how, self, type)

    def zext(self, type: str) -> Value:
        return self.to("zext", type)

    def sext(self, type: str) -> Value:
        return self.to("sext", type)

    def trunc(self, type: str) -> Value:
        return self.to("trunc", type)


_new_text = str.__new__
NULL = Value("ptr", "null")
VOID = Value("void", "")


def constant(type: str, value: Number | bool) -> Value:
    """A number, in all lanes of a vector, or its text; an address can only be null."""
    return Value(type, _constant_text(type, value))


@cache
def _constant_text(type: str, value: Number | bool) -> str:
    if isinstance(value, str):
        return value
    if type[0] == "<":
        return f"splat ({element_of(type)} {_constant_text(element_of(type), value)})"
    if type == "i1":
        return "true" if value else "false"
    if type.startswith("ptr"):
        return "null"
    return str(int(value))


def vector_constant(element: str, values: Iterable[Number]) -> Value:
    """A constant with a number for each lane."""
    numbers = tuple(values)
    return Value(vector(len(numbers), element), _lanes(element, numbers))


@cache
def _lanes(element: str, numbers: tuple[Number, ...]) -> str:
    """The text of a vector of constants."""
    return f"<{', '.join([f'{element} {constant(element, k)}' for k in numbers])}>"


def _writer(*operands: Value | Number) -> Builder:
    for operand in operands:
        if isinstance(operand, Value) and operand.builder is not None:
            return operand.builder
    raise TypeError(f"an operator on constants alone: {operands}")


def _as(type: str, value: Value | Number) -> Value:
    """`value` as an operand of this type."""
    if not isinstance(value, Value):
        return constant(type, value)
    if value.type != type:
        raise TypeError(f"{value!r} where {type} is wanted")
    return value


def _text_as(type: str, value: Value | Number) -> str:
    """The text of `_as`."""
    if value.__class__ is not Value:
        return _constant_text(type, value)
    if value.type != type:
        raise TypeError(f"{value!r} where {type} is wanted")
    return value


def typed_text(type: str, value: Value | Number) -> str:
    """An operand of this type, as it stands in a call."""
    return f"{type} {_text_as(type, value)}"


class Block:
    """A basic block. `params` are values inside it, given by each jump to it."""

    def __init__(self, label: str, params: list[Value]) -> None:
        self.label = label
        self.params = params
        self.incoming: list[tuple[str, list[str]]] = []
        self.lines: list[str] = []
        self.is_placed = False

    def enter(self, origin: str, values: Sequence[Value | Number]) -> None:
        """Note a jump from the block `origin`."""
        given = [_text_as(p.type, v) for p, v in zip(self.params, values, strict=True)]
        self.incoming.append((origin, given))

    def text(self) -> str:
        phis = [
            f"  {param} = phi {param.type} "
            + ", ".join([f"[ {values[k]}, %{label} ]" for label, values in self.incoming])
            for k, param in enumerate(self.params)
        ]
        return "\n".join([f"{self.label}:", *phis, *self.lines])


class Loop:
    """A loop that is being written (`Builder.loop`). What it carries are its attributes."""

    def __init__(self, builder: Builder, head: Block, names: Iterable[str]) -> None:
        self._builder = builder
        self._head = head
        self._end = builder.later("end")
        self.__dict__.update(zip(names, head.params, strict=True))

    def __getattr__(self, name: str) -> Value:
        raise AttributeError(f"the loop carries no {name}")

    @property
    def values(self) -> list[Value]:
        return self._head.params

    def going(self, condition: Value) -> None:
        """Leave the loop here unless `condition` holds."""
        body = self._builder.later("body")
        self._builder.branch(condition, body, self._end)
        self._builder.at(body)

    def next(self, *values: Value | Number) -> None:
        """The end of a trip, and what the next one has."""
        self._builder.jump(self._head, *values)

    def repeat(self, condition: Value, *values: Value | Number) -> None:
        """The end of a trip: another one with these values if `condition` holds."""
        self._builder.fork(condition, self._head, values, self._end)


@cache
def _intrinsic(name: str, type: str) -> str:
    return f"llvm.{name}.{suffix(type)}"


class Code:
    """The blocks of one function, which several builders may write, and its counter of names."""

    def __init__(self) -> None:
        self.numbers = count()
        self.start: list[str] = []  # what stands before all else: memory on the stack
        self.blocks: list[Block] = []
        self.here = Block("entry", [])
        self.place(self.here)

    def place(self, block: Block) -> None:
        block.is_placed = True
        self.blocks.append(block)

    def text(self) -> str:
        first, *others = self.blocks
        texts = [block.text() for block in others]
        return "\n".join(["entry:", *self.start, *first.lines, *texts])


class Builder:
    """Writes instructions into blocks. `at(block)` says into which.

    `moves` are flags of all address arithmetic.
    """

    moves = ""

    def __init__(self, code: Code | None = None) -> None:
        self.code = code or Code()
        self.declared: set[str] = set()  # intrinsics

    def declare(self, name: str, declaration: str) -> None:
        """Note what a function is that is called, and may be defined elsewhere."""
        raise NotImplementedError

    @property
    def current(self) -> Block:
        """The block that is being written."""
        return self.code.here

    # Blocks

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
        self, condition: Value | Number, then: Block, otherwise: Block, likely: bool | None = None
    ) -> None:
        """A conditional jump to blocks without parameters; the first is taken mostly if `likely`."""
        self.fork(condition, then, (), otherwise, (), ", !prof !0" if likely else "")

    def fork(
        self,
        condition: Value | Number,
        then: Block,
        given: Sequence[Value | Number],
        otherwise: Block,
        given_otherwise: Sequence[Value | Number] = (),
        hint: str = "",
    ) -> None:
        """A conditional jump to blocks with parameters."""
        condition = _as("i1", condition)
        then.enter(self.current.label, given)
        otherwise.enter(self.current.label, given_otherwise)
        labels = f"label %{then.label}, label %{otherwise.label}"
        self.line(f"br i1 {condition}, {labels}{hint}")

    def require(self, condition: Value, otherwise: Block) -> None:
        """Go on here if `condition` holds, mostly; else in `otherwise`."""
        after = self.block("ok")
        self.branch(condition, after, otherwise, likely=True)
        self.at(after)

    def switch(self, value: Value, default: Block, cases: dict[int, Block]) -> None:
        for block in (default, *cases.values()):
            block.enter(self.current.label, ())
        table = " ".join(f"{value.type} {k}, label %{b.label}" for k, b in cases.items())
        self.line(f"switch {value.type} {value}, label %{default.label} [ {table} ]")

    @contextmanager
    def loop(self, **carried: Value | Number) -> Iterator[Loop]:
        """`with f.loop(i=0) as loop:` writes a loop that carries `loop.i`. Ints are of type i64.

        The body says when it ends (`going`, or `repeat` at the end of a trip) and what the next trip
        has (`next`, `repeat`).
        """
        first = {n: v if isinstance(v, Value) else constant("i64", v) for n, v in carried.items()}
        head = self.later("loop", **{n: v.type for n, v in first.items()})
        self.jump(head, *first.values())
        self.at(head)
        loop = Loop(self, head, first)
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
    def when(self, condition: Value | Number, likely: bool = False) -> Iterator[None]:
        """`with f.when(c):` writes what happens only if `c` holds."""
        body, end = self.block("when"), self.block("end")
        self.branch(condition, body, end, likely)
        self.at(body)
        yield
        self.jump(end)
        self.at(end)

    def ret(self, value: Value | None = None) -> None:
        self.line("ret void" if value is None else f"ret {value.type} {value}")

    def unreachable(self) -> None:
        self.line("unreachable")

    # Instructions

    def line(self, text: str) -> None:
        """An instruction that has no value."""
        self.code.here.lines.append(f"  {text}")

    def op(self, type: str, text: str) -> Value:
        """An instruction whose value depends on its operands only. It need not be written twice."""
        return self.fresh(type, text)

    def fresh(self, type: str, text: str) -> Value:
        """An instruction that has a value of this type."""
        code = self.code
        name = f"%v{next(code.numbers)}"
        code.here.lines.append(f"  {name} = {text}")
        value = _new_text(Value, name)
        value.type, value.builder = type, self
        return value

    def literal(self, type: str, value: Number) -> Value:
        """A constant that operators can begin with."""
        return Value(type, constant(type, value), self)

    def binary(self, name: str, a: Value, b: Value | Number) -> Value:
        type = a.type
        if type[0] == "p":
            raise TypeError(f"{name} of an address: {a!r}")
        return self.op(type, f"{name} {type} {a}, {_text_as(type, b)}")

    def stepped(self, counter: Value, by: Value | Number, known: str = "nsw") -> Value:
        """A loop's counter in the next trip: it is `known` not to overflow."""
        type = counter.type
        return self.fresh(type, f"add {known} {type} {counter}, {_as(type, by)}")

    def compare(self, how: str, a: Value, b: Value | Number) -> Value:
        """Of integers and addresses."""
        type = a.type
        return self.op(bools(type), f"icmp {how} {type} {a}, {_text_as(type, b)}")

    def hidden(self, constant: Value) -> Value:
        """The constant as a value of which LLVM knows nothing, so that it folds nothing with it.

        Vectors whose lanes it knows to be zero it gets wrong: of `x / select(c, 1, y)`, where a lane is
        zero in x and y, it takes the quotient for zero whatever `c` is. It is 0 / 0 (LLVM 22, x86)."""
        return self.op(constant.type, f'call {constant.type} asm "", "=r,0"({constant!r})')

    def select(self, condition: Value, a: Value | Number, b: Value | Number) -> Value:
        if condition.type != "i1" and condition.type != bools(_type_of(a, b)):
            raise TypeError(f"{condition!r} chooses between {a!r} and {b!r}")
        type = _type_of(a, b)
        picked = f"{type} {_text_as(type, a)}, {type} {_text_as(type, b)}"
        return self.op(type, f"select {condition.type} {condition}, {picked}")

    def compare_floats(self, how: str, a: Value, b: Value | Number) -> Value:
        """`oeq`, `olt`, ... are false where one is NaN, `ueq`, `une`, ... true; `uno`: one is."""
        type = a.type
        return self.op(bools(type), f"fcmp {how} {type} {a}, {_text_as(type, b)}")

    def negated(self, a: Value) -> Value:
        """Of floats."""
        return self.op(a.type, f"fneg {a.type} {a}")

    def least(self, a: Value, b: Value | Number) -> Value:
        """Of signed numbers."""
        return self.select(a < b, a, b)

    def larger(self, a: Value, b: Value | Number) -> Value:
        """Of unsigned numbers."""
        return self.select(a.ugt(b), a, b)

    def convert(self, how: str, value: Value, type: str) -> Value:
        """zext, sext, trunc, ptrtoint, inttoptr, bitcast, ..."""
        return self.op(type, f"{how} {value.type} {value} to {type}")

    def call(self, result: str, name: str | Value, *args: Value | Number) -> Value:
        """Call a function by its name, which declares it, or by its address."""
        values = [_as(a.type if isinstance(a, Value) else "i64", a) for a in args]
        if not isinstance(name, Value):
            self.declare(name, f"declare {result} @{name}({', '.join(v.type for v in values)})")
            name = Value("ptr", f"@{name}")
        return self._call(result, name, values)

    def run(self, function: Function, *args: Value | Number) -> Value:
        """Call a function of the same module."""
        values = [_as(p.type, a) for p, a in zip(function.args, args, strict=True)]
        return self._call(function.result, function.address, values)

    def _call(self, result: str, address: Value, values: Sequence[Value]) -> Value:
        given = ", ".join([f"{v.type} {v}" for v in values])
        text = f"call {result} {address}({given})"
        if result == "void":
            self.line(text)
            return VOID
        return self.fresh(result, text)

    def assembly(self, result: str, text: str, constraints: str, *values: Value) -> Value:
        """Inline assembly, which may do more than its value shows, for all lanes of a warp together."""
        given = ", ".join([repr(v) for v in values])
        call = f'asm sideeffect "{text}", "{constraints}"({given}) convergent nounwind'
        return self.fresh(result, f"call {result} {call}")

    def intrinsic(self, name: str, type: str, *args: Value | Number) -> Value:
        """`llvm.NAME`, overloaded on `type`, which its result has, and arguments that are ints."""
        values = [a if isinstance(a, Value) else _as_typed(type, a) for a in args]
        symbol = _intrinsic(name, type)
        if symbol not in self.declared:
            self.declared.add(symbol)
            types = ", ".join([v.type for v in values])
            self.declare(symbol, f"declare {type} @{symbol}({types})")
        given = ", ".join([f"{v.type} {v}" for v in values])
        return self.op(type, f"call {type} @{symbol}({given})")

    # Lanes

    def splat(self, value: Value, lanes: int) -> Value:
        """A vector that has `value` in all lanes."""
        type = vector(lanes, value.type)
        first = self.insert(Value(type, "poison"), value, 0)
        return self.shuffle(first, Value(type, "poison"), [0] * lanes)

    def extract(self, value: Value, lane: Value | Number) -> Value:
        place = lane if isinstance(lane, Value) else constant("i64", lane)
        text = f"extractelement {value.type} {value}, {place.type} {place}"
        return self.op(element_of(value.type), text)

    def insert(self, into: Value, value: Value, lane: Value | Number) -> Value:
        _as(element_of(into.type), value)
        place = lane if isinstance(lane, Value) else constant("i64", lane)
        given = f"{into.type} {into}, {value.type} {value}"
        return self.op(into.type, f"insertelement {given}, {place.type} {place}")

    def packed(self, values: Sequence[Value]) -> Value:
        """A vector that has these values in its lanes."""
        found = Value(vector(len(values), values[0].type), "poison", self)
        for k, value in enumerate(values):
            found = self.insert(found, value, k)
        return found

    def shuffle(self, a: Value, b: Value, lanes: Iterable[int]) -> Value:
        """The lanes of a and then of b with these numbers."""
        _as(a.type, b)
        order = vector_constant("i32", lanes)
        text = f"shufflevector {a.type} {a}, {b.type} {b}, {order.type} {order}"
        return self.op(vector(lanes_of(order.type), element_of(a.type)), text)

    # Memory

    def alloca(self, type: str, n: Value | Number = 1, align: int = 16) -> Value:
        amount = _as("i64", n)
        return self.fresh("ptr", f"alloca {type}, i64 {amount}, align {align}")

    def offset(self, base: Value, n: Value | Number, unit: str = "i8") -> Value:
        """`base` moved by n bytes (or n times the size of `unit`)."""
        moved = f"getelementptr {self.moves}{unit}, {base.type} {base}"
        if n.__class__ is Value:
            lanes = lanes_of(n.type)
            type = base.type if lanes == 1 else vector(lanes, base.type)
            return self.op(type, f"{moved}, {n.type} {n}")
        if n == 0:
            return base
        return self.op(base.type, f"{moved}, i64 {n}")

    def load(
        self, type: str, base: Value, offset: Value | Number = 0, unit: str = "i8", align: int = 0
    ) -> Value:
        """What is at `base`, moved; aligned as its type is by nature, or to `align` bytes."""
        place = self.offset(base, offset, unit)
        known = f", align {align}" if align else ""
        return self.fresh(type, f"load {type}, {place.type} {place}{known}")

    def store(
        self,
        value: Value,
        base: Value,
        offset: Value | Number = 0,
        unit: str = "i8",
        align: int = 0,
    ) -> None:
        to = self.offset(base, offset, unit)
        known = f", align {align}" if align else ""
        self.line(f"store {value.type} {value}, {to.type} {to}{known}")

    def load_masked(self, place: Value, mask: Value, rest: Value, align: int) -> Value:
        """The lanes of the mask from memory, the others from `rest`."""
        type, name = rest.type, f"llvm.masked.load.{suffix(rest.type)}.p0"
        self.declare(name, f"declare {type} @{name}(ptr, {mask.type}, {type})")
        given = f"ptr align {align} {place}, {mask!r}, {rest!r}"
        return self.fresh(type, f"call {type} @{name}({given})")

    def gather(self, places: Value, mask: Value, rest: Value, align: int) -> Value:
        """The lanes of the mask from where each lane's address says, the others from `rest`."""
        type, name = rest.type, f"llvm.masked.gather.{suffix(rest.type)}.{suffix(places.type)}"
        self.declare(name, f"declare {type} @{name}({places.type}, {mask.type}, {type})")
        given = f"{places.type} align {align} {places}, {mask!r}, {rest!r}"
        return self.fresh(type, f"call {type} @{name}({given})")

    def scatter(self, value: Value, places: Value, mask: Value, align: int) -> None:
        """The lanes of the mask to where each lane's address says."""
        name = f"llvm.masked.scatter.{suffix(value.type)}.{suffix(places.type)}"
        self.declare(name, f"declare void @{name}({value.type}, {places.type}, {mask.type})")
        given = f"{value!r}, {places.type} align {align} {places}, {mask!r}"
        self.line(f"call void @{name}({given})")

    def store_masked(self, value: Value, place: Value, mask: Value, align: int) -> None:
        """The lanes of the mask, where each belongs."""
        self._store_lanes(f"store.{suffix(value.type)}.p0", value, place, mask, align)

    def store_compressed(self, value: Value, place: Value, mask: Value, align: int) -> None:
        """The lanes of the mask, one after the other."""
        self._store_lanes(f"compressstore.{suffix(value.type)}", value, place, mask, align)

    def _store_lanes(self, name: str, value: Value, place: Value, mask: Value, align: int) -> None:
        _as(bools(value.type), mask)
        name = f"llvm.masked.{name}"
        self.declare(name, f"declare void @{name}({value.type}, ptr, {mask.type})")
        self.line(f"call void @{name}({value!r}, ptr align {align} {place}, {mask!r})")

    def copy(self, to: Value, start: Value, nbytes: Value | Number, align: int = 0) -> None:
        """memcpy."""
        self._move("memcpy", to, start, nbytes, align)

    def move(self, to: Value, start: Value, nbytes: Value | Number) -> None:
        """memmove: the two may overlap."""
        self._move("memmove", to, start, nbytes, 0)

    def _move(self, how: str, to: Value, start: Value, nbytes: Value | Number, align: int) -> None:
        name, known = f"llvm.{how}.p0.p0.i64", f"align {align} " if align else ""
        self.declare(name, f"declare void @{name}(ptr, ptr, i64, i1)")
        n = _as("i64", nbytes)
        self.line(f"call void @{name}(ptr {known}{to}, ptr {known}{start}, {n!r}, i1 false)")

    def fill(self, to: Value, byte: Value | Number, nbytes: Value | Number, align: int = 0) -> None:
        """memset."""
        name, known = "llvm.memset.p0.i64", f"align {align} " if align else ""
        self.declare(name, f"declare void @{name}(ptr, i8, i64, i1)")
        what, n = _as("i8", byte), _as("i64", nbytes)
        self.line(f"call void @{name}(ptr {known}{to}, {what!r}, {n!r}, i1 false)")

    def prefetch(self, place: Value, level: int, *, write: bool = False) -> None:
        """Ask for one line of memory, to be in the cache of that level (1 is the nearest)."""
        self.declare("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        given = f"{place!r}, i32 {int(write)}, i32 {4 - level}, i32 1"
        self.line(f"call void @llvm.prefetch.p0({given})")

    def load_atomic(self, type: str, place: Value, order: str) -> Value:
        size = bytes_of(type)
        return self.fresh(type, f"load atomic {type}, {place!r} {order}, align {size}")

    def store_atomic(self, value: Value, place: Value, order: str) -> None:
        size = bits_of(value.type) // 8
        self.line(f"store atomic {value!r}, {place!r} {order}, align {size}")

    def update_atomic(self, how: str, place: Value, value: Value, order: str) -> Value:
        """xchg, add, sub, and, ...: gives what was there before."""
        return self.fresh(value.type, f"atomicrmw {how} {place!r}, {value!r} {order}")

    def swap_atomic(self, place: Value, old: Value, new: Value, orders: str) -> tuple[Value, Value]:
        """`new` in place of `old`, if that is there: what was there, and whether it was `old`."""
        _as(old.type, new)
        pair = f"{{ {old.type}, i1 }}"
        found = self.fresh(pair, f"cmpxchg {place!r}, {old!r}, {new!r} {orders}")
        return self.field(found, 0), self.field(found, 1)

    def field(self, several: Value, number: int) -> Value:
        """One value of several that an instruction has given."""
        return self.op(fields_of(several.type)[number], f"extractvalue {several!r}, {number}")


def _type_of(a: Value | Number, b: Value | Number) -> str:
    for value in (a, b):
        if isinstance(value, Value):
            return value.type
    raise TypeError(f"neither {a} nor {b} has a type")


def _as_typed(type: str, value: Value | Number) -> Value:
    """Flags of intrinsics are bools, other numbers have the type."""
    if isinstance(value, Value):
        return value
    return constant("i1" if isinstance(value, bool) else type, value)
