"""LLVM functions written from Python: typed values, and blocks that take parameters.

    f = Function("i64", "sum_to", n="i64")
    loop, done = f.block("loop", i="i64", total="i64"), f.block("done", total="i64")
    f.jump(loop, 0, 0)
    with f.at(loop) as (i, total):
        f.branch(f.less(i, f.n), ..., done, total)

A block's parameters become phis. No LLVM pass runs over this code: what is to be inlined is a Python
function that writes instructions, and a call that is written is a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple


class Value(NamedTuple):
    """An LLVM value: its type and its text (`%t3`, `@name`, `7`)."""

    type: str
    text: str


class Block:
    """A basic block. `params` are values inside it, given by each jump to it."""

    def __init__(self, label: str, params: list[Value]) -> None:
        self.label = label
        self.params = params
        self.incoming: list[tuple[str, list[Value]]] = []
        self.lines: list[str] = []

    def text(self) -> str:
        phis = [
            f"  {param.text} = phi {param.type} "
            + ", ".join(f"[ {values[k].text}, %{label} ]" for label, values in self.incoming)
            for k, param in enumerate(self.params)
        ]
        return "\n".join([f"{self.label}:", *phis, *self.lines])


NULL = Value("ptr", "null")


class Function:
    """One function under construction. Its parameters are `f.args`."""

    def __init__(self, result: str, name: str, *, internal: bool = False, **params: str) -> None:
        self.name = name
        self.result = result
        self.args = [Value(type, f"%{name}") for name, type in params.items()]
        self.internal = internal
        self.callees: dict[str, str] = {}
        self._numbers = count()
        self._blocks: list[Block] = []
        self._here = self.block("entry")

    # Blocks

    def block(self, hint: str, **params: str) -> Block:
        number = next(self._numbers)
        label = hint if hint == "entry" else f"{hint}{number}"
        values = [Value(type, f"%{name}.{number}") for name, type in params.items()]
        block = Block(label, values)
        self._blocks.append(block)
        return block

    def at(self, block: Block) -> list[Value]:
        """Go on writing in `block`; gives its parameters."""
        self._here = block
        return block.params

    def jump(self, block: Block, *values: Value | int) -> None:
        self._enter(block, values)
        self._line(f"br label %{block.label}")

    def branch(self, condition: Value, then: Block, otherwise: Block, likely: bool = True) -> None:
        """A conditional jump to blocks without parameters; the first is taken mostly if `likely`."""
        self._enter(then, ())
        self._enter(otherwise, ())
        hint = ", !prof !0" if likely else ""
        self._line(f"br i1 {condition.text}, label %{then.label}, label %{otherwise.label}{hint}")

    def require(self, condition: Value, otherwise: Block) -> None:
        """Go on here if `condition` holds, else in `otherwise`."""
        after = self.block("ok")
        self.branch(condition, after, otherwise)
        self.at(after)

    def switch(self, value: Value, default: Block, cases: dict[int, Block]) -> None:
        for block in (default, *cases.values()):
            self._enter(block, ())
        table = " ".join(f"{value.type} {k}, label %{b.label}" for k, b in cases.items())
        self._line(f"switch {value.type} {value.text}, label %{default.label} [ {table} ]")

    @contextmanager
    def each(self, n: Value | int) -> Iterator[Value]:
        """`with f.each(n) as i:` writes the body of a loop over i from 0 to n."""
        head, body, end = self.block("each", i="i64"), self.block("body"), self.block("end")
        self.jump(head, 0)
        (i,) = self.at(head)
        self.branch(self.less(i, n), body, end, likely=False)
        self.at(body)
        yield i
        self.jump(head, self.add(i, 1))
        self.at(end)

    @contextmanager
    def when(self, condition: Value, likely: bool = False) -> Iterator[None]:
        """`with f.when(c):` writes what happens only if `c` holds."""
        body, end = self.block("when"), self.block("end")
        self.branch(condition, body, end, likely)
        self.at(body)
        yield
        self.jump(end)
        self.at(end)

    def ret(self, value: Value | None = None) -> None:
        self._line("ret void" if value is None else f"ret {value.type} {value.text}")

    def unreachable(self) -> None:
        self._line("unreachable")

    # Instructions

    def op(self, type: str, text: str) -> Value:
        value = Value(type, f"%t{next(self._numbers)}")
        self._line(f"{value.text} = {text}")
        return value

    def call(self, type: str, name: str | Value, *args: Value | int) -> Value:
        """Call a function: by name (it is declared by this), or by address."""
        values = [_value("i64", a) for a in args]
        if isinstance(name, str):
            params = ", ".join(v.type for v in values)
            self.callees[name] = f"declare {type} @{name}({params})"
            name = Value("ptr", f"@{name}")
        text = f"call {type} {name.text}({', '.join(f'{v.type} {v.text}' for v in values)})"
        if type == "void":
            self._line(text)
            return Value("void", "")
        return self.op(type, text)

    def alloca(self, type: str, n: Value | int = 1, align: int = 16) -> Value:
        amount = _value("i64", n)
        return self.op("ptr", f"alloca {type}, i64 {amount.text}, align {align}")

    def offset(self, base: Value, n: Value | int, unit: str = "i8") -> Value:
        """`base` moved by n bytes (or n times the size of `unit`)."""
        if n == 0:
            return base
        return self.op("ptr", f"getelementptr {unit}, ptr {base.text}, i64 {_value('i64', n).text}")

    def load(self, type: str, base: Value, offset: Value | int = 0, unit: str = "i8") -> Value:
        return self.op(type, f"load {type}, ptr {self.offset(base, offset, unit).text}")

    def store(
        self, value: Value, base: Value, offset: Value | int = 0, unit: str = "i8", align: int = 0
    ) -> None:
        to = self.offset(base, offset, unit)
        known = f", align {align}" if align else ""
        self._line(f"store {value.type} {value.text}, ptr {to.text}{known}")

    def _binary(self, name: str, a: Value, b: Value | int) -> Value:
        return self.op(a.type, f"{name} {a.type} {a.text}, {_value(a.type, b).text}")

    def add(self, a: Value, b: Value | int) -> Value:
        return self._binary("add", a, b)

    def sub(self, a: Value, b: Value | int) -> Value:
        return self._binary("sub", a, b)

    def mul(self, a: Value, b: Value | int) -> Value:
        return self._binary("mul", a, b)

    def divide(self, a: Value, b: Value | int) -> Value:
        """Of unsigned numbers."""
        return self._binary("udiv", a, b)

    def shift_right(self, a: Value, b: Value | int) -> Value:
        """Of an unsigned number."""
        return self._binary("lshr", a, b)

    def larger(self, a: Value, b: Value) -> Value:
        """Of unsigned numbers."""
        return self.select(self.compare("ugt", a, b), a, b)

    def both(self, a: Value, b: Value | int) -> Value:
        """Bitwise and."""
        return self._binary("and", a, b)

    def either(self, a: Value, b: Value | int) -> Value:
        """Bitwise or."""
        return self._binary("or", a, b)

    def differ(self, a: Value, b: Value | int) -> Value:
        """Bitwise exclusive or."""
        return self._binary("xor", a, b)

    def compare(self, how: str, a: Value, b: Value | int) -> Value:
        return self.op("i1", f"icmp {how} {a.type} {a.text}, {_value(a.type, b).text}")

    def same(self, a: Value, b: Value | int) -> Value:
        return self.compare("eq", a, b)

    def unlike(self, a: Value, b: Value | int) -> Value:
        return self.compare("ne", a, b)

    def less(self, a: Value, b: Value | int) -> Value:
        return self.compare("slt", a, b)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        picked = f"{a.type} {a.text}, {b.type} {b.text}"
        return self.op(a.type, f"select i1 {condition.text}, {picked}")

    def convert(self, how: str, value: Value, type: str) -> Value:
        """zext, sext, trunc, ptrtoint, inttoptr, bitcast."""
        return self.op(type, f"{how} {value.type} {value.text} to {type}")

    # Text

    def text(self) -> str:
        params = ", ".join(f"{a.type} {a.text}" for a in self.args)
        linkage = "internal " if self.internal else ""
        blocks = "\n".join(block.text() for block in self._blocks)
        return f"define {linkage}{self.result} @{self.name}({params}) nounwind {{\n{blocks}\n}}\n"

    def _line(self, text: str) -> None:
        self._here.lines.append(f"  {text}")

    def _enter(self, block: Block, values: Sequence[Value | int]) -> None:
        given = [_value(p.type, v) for p, v in zip(block.params, values, strict=True)]
        block.incoming.append((self._here.label, given))


def _value(type: str, value: Value | int) -> Value:
    return Value(type, str(value)) if isinstance(value, int) else value


def module_ir(functions: Sequence[Function], objects: Sequence[str]) -> str:
    """The LLVM text of functions that call each other; `objects` are external symbols."""
    defined = {function.name for function in functions}
    declared = {
        name: line
        for function in functions
        for name, line in function.callees.items()
        if name not in defined
    }
    lines = [f"@{name} = external global i8" for name in objects]
    lines += [declared[name] for name in sorted(declared)]
    lines += [function.text() for function in functions]
    return "\n".join([*lines, '!0 = !{!"branch_weights", i32 1000, i32 1}', ""])
