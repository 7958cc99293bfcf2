"""Values of LLVM code that is being written: typed, with operators, and constants.

A `Value` knows its LLVM type; an operator on it writes an instruction where its builder stands, and
raises `TypeError` where types do not fit. Integers have no sign in LLVM: `//`, `%` and `>>` are those of
unsigned numbers, `<` and its kind those of signed ones, `a.ult(b)` and its kind of unsigned ones. A
plain int is a constant of the type that the other operand has, in every lane of a vector; True and False
are conditions.

`a == b` asks now whether two are the same value, `a.eq(b)` writes a comparison. A `Value` is neither
true nor false: `is None` tells whether there is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NoReturn

from .types import bits_of, element_of, is_float, vector

if TYPE_CHECKING:
    from .builder import Builder

Number = int  # a constant that takes its type from its neighbour


class Value:
    """An LLVM value: the text that stands for it (`%t3`, `@name`, `7`), its type, and the builder that
    writes what uses it. Its `repr` is the operand with its type, as it stands in calls."""

    __slots__ = ("builder", "text", "type")

    def __init__(self, type: str, text: str, builder: Builder | None = None) -> None:
        self.type = type
        self.text = text
        self.builder = builder

    def __repr__(self) -> str:
        return f"{self.type} {self.text}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value):
            raise TypeError(f"{self!r} == {other!r}: `eq` compares when the code runs")
        return self.text == other.text and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.text)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} is known when the code runs: `is None` tells whether it is there"
        )

    @property
    def is_constant(self) -> bool:
        return self.text[0] not in "%@"

    @property
    def number(self) -> int | None:
        """The integer that it is, if it is a constant one, the same in all lanes."""
        digits = self.text.lstrip("-")
        return int(self.text) if digits.isdigit() else None

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

    def __mul__(self, other: Value | Number) -> Value:
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

    def __rmul__(self, other: Number) -> Value:
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

    def __lt__(self, other: Value | Number) -> Value:
        return self._compared("slt", other)

    def __le__(self, other: Value | Number) -> Value:
        return self._compared("sle", other)

    def __gt__(self, other: Value | Number) -> Value:
        return self._compared("sgt", other)

    def __ge__(self, other: Value | Number) -> Value:
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


Condition = Value | bool  # where there may be none, None says so

NULL = Value("ptr", "null")
VOID = Value("void", "")
COLD = "noinline nounwind optnone"  # a function that LLVM need not take long for: it runs seldom


@cache
def symbol(name: str) -> Value:
    """The address of what has this name in a module."""
    plain = name.replace(".", "_").replace("$", "_").isidentifier()
    return Value("ptr", f"@{name}" if plain else f'@"{name}"')


def poison(type: str) -> Value:
    """A value that nobody looks at."""
    return Value(type, "poison")


def zeros(type: str) -> Value:
    """Zero, or null, in each part of a type that has several."""
    return Value(type, "zeroinitializer")


def constant(type: str, value: Number) -> Value:
    """A number, in all lanes of a vector; an address can only be null."""
    return Value(type, constant_text(type, value))


@lru_cache(maxsize=None, typed=True)
def constant_text(type: str, value: Number) -> str:
    """A number as a literal of a type; TypeError for what has none. An address can only be null."""
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no constant of type {type}")
    if type[0] == "<":
        return f"splat ({element_of(type)} {constant_text(element_of(type), value)})"
    if type == "i1":
        if value not in (-1, 0, 1):
            raise TypeError(f"{value} is no condition")
        return "true" if value else "false"
    if value.__class__ is bool:
        raise TypeError(f"{value} where {type} is wanted: a condition is an i1")
    if type.startswith("ptr"):
        if value:
            raise TypeError(f"{value} is no address")
        return "null"
    bits_of(type)
    return str(value)


def vector_constant(element: str, values: Iterable[Number]) -> Value:
    """A constant with a number for each lane."""
    numbers = tuple(values)
    return Value(vector(len(numbers), element), _lanes(element, numbers))


@cache
def _lanes(element: str, numbers: tuple[Number, ...]) -> str:
    """The text of a vector of constants."""
    return f"<{', '.join([f'{element} {constant_text(element, k)}' for k in numbers])}>"


def _writer(*operands: Value | Number) -> Builder:
    for operand in operands:
        if isinstance(operand, Value) and operand.builder is not None:
            return operand.builder
    raise TypeError(f"an operator on constants alone: {operands}")


def as_operand(type: str, value: Value | Number) -> Value:
    """`value` as an operand of this type."""
    if not isinstance(value, Value):
        return constant(type, value)
    if value.type != type:
        raise TypeError(f"{value!r} where {type} is wanted")
    return value


def operand_text(type: str, value: Value | Number) -> str:
    """The text of `as_operand`."""
    if not isinstance(value, Value):
        return constant_text(type, value)
    if value.type != type:
        raise TypeError(f"{value!r} where {type} is wanted")
    return value.text


def as_condition(condition: Condition, lanes: int = 1) -> Value:
    """A condition of so many lanes. TypeError of whatever is none, so that nothing is taken for the
    lack of one: that is None, and whoever may be given it asks for it."""
    if condition.__class__ not in (Value, bool):
        raise TypeError(f"{condition!r} where a condition is wanted")
    return as_operand(vector(lanes, "i1"), condition)
