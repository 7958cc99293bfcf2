"""Arithmetic on i64 values as text, folded where both sides are constants."""

from __future__ import annotations

from .text import TextEmitter


def known(text: str) -> int | None:
    """The value of a constant operand."""
    return int(text) if text.lstrip("-").isdigit() else None


class Whole(TextEmitter):
    """A text emitter for the loops around micro-kernels: operands are names or numbers."""

    def plus(self, a: str, b: str | int) -> str:
        return self._fold("add", a, str(b), neutral=0)

    def minus(self, a: str, b: str | int) -> str:
        x, y = known(a), known(str(b))
        if x is not None and y is not None:
            return str(x - y)
        return a if y == 0 else self.value_of(f"sub nsw i64 {a}, {b}")

    def times(self, a: str, b: str | int) -> str:
        if "0" in (a, str(b)):
            return "0"
        return self._fold("mul", a, str(b), neutral=1)

    def _fold(self, op: str, a: str, b: str, neutral: int) -> str:
        x, y = known(a), known(b)
        if x is not None and y is not None:
            return str(x + y if op == "add" else x * y)
        if x == neutral:
            return b
        return a if y == neutral else self.value_of(f"{op} nsw i64 {a}, {b}")

    def least(self, a: str, b: str | int) -> str:
        return self._choose("slt", a, str(b))

    def most(self, a: str, b: str | int) -> str:
        return self._choose("sgt", a, str(b))

    def _choose(self, order: str, a: str, b: str) -> str:
        x, y = known(a), known(b)
        if x is not None and y is not None:
            return str(min(x, y) if order == "slt" else max(x, y))
        test = self.value_of(f"icmp {order} i64 {a}, {b}")
        return self.value_of(f"select i1 {test}, i64 {a}, i64 {b}")

    def split(self, a: str, n: int) -> tuple[str, str]:
        """a // n, a % n, of a that is not negative."""
        if n == 1:
            return a, "0"
        x = known(a)
        if x is not None:
            return str(x // n), str(x % n)
        return self.value_of(f"udiv i64 {a}, {n}"), self.value_of(f"urem i64 {a}, {n}")
