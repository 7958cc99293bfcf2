"""Arithmetic on i64 values, folded where both sides are constants."""

from __future__ import annotations

from .builder import Number, Value
from .text import TextEmitter

Word = Value | Number  # an i64


def constant_of(word: Word) -> int | None:
    """The number that an operand is, if it is a literal; None if it is the name of a value."""
    return word.number if isinstance(word, Value) else word


class Whole(TextEmitter):
    """An emitter for the loops around micro-kernels."""

    def argument(self, context: Value, position: int) -> Value:
        """A pointer of the context block."""
        return self.load_once("ptr", self.offset(context, position, "ptr"), 8)

    def constant_word(self, table: Value, position: int) -> Value:
        """An i64 of a table of constants."""
        return self.load_once("i64", self.offset(table, position, "i64"), 8)

    def plus(self, a: Word, b: Word) -> Value:
        return self._fold("add", a, b, neutral=0)

    def minus(self, a: Word, b: Word) -> Value:
        x, y = constant_of(a), constant_of(b)
        if x is not None and y is not None:
            return self.word(x - y)
        return self.word(a) if y == 0 else self.binary("sub nsw", self.word(a), b)

    def times(self, a: Word, b: Word) -> Value:
        if 0 in (constant_of(a), constant_of(b)):
            return self.word(0)
        return self._fold("mul", a, b, neutral=1)

    def _fold(self, op: str, a: Word, b: Word, neutral: int) -> Value:
        x, y = constant_of(a), constant_of(b)
        if x is not None and y is not None:
            return self.word(x + y if op == "add" else x * y)
        if x == neutral:
            return self.word(b)
        return self.word(a) if y == neutral else self.binary(f"{op} nsw", self.word(a), b)

    def least(self, a: Word, b: Word) -> Value:
        return self._choose("slt", a, b)

    def most(self, a: Word, b: Word) -> Value:
        return self._choose("sgt", a, b)

    def _choose(self, order: str, a: Word, b: Word) -> Value:
        x, y = constant_of(a), constant_of(b)
        if x is not None and y is not None:
            return self.word(min(x, y) if order == "slt" else max(x, y))
        first = self.word(a)
        return self.select(self.compare(order, first, b), first, b)

    def split(self, a: Word, n: int) -> tuple[Value, Value]:
        """a // n, a % n, of a that is not negative."""
        word, x = self.word(a), constant_of(a)
        if n == 1:
            return word, self.word(0)
        if x is not None:
            return self.word(x // n), self.word(x % n)
        return word // n, word % n
