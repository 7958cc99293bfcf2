"""Formulas over graph values: `t * x.cos()` instead of nested builder calls.

A `Term` is a value with a builder. Python operators and the names of elementwise ops append ops;
a Python number takes the other side's shape and dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ..build import Builder
from ..graph import Value
from ..opdef import OPS


class Term:
    """A value of the graph that `b` builds, with operators that append elementwise ops."""

    __slots__ = ("b", "value")

    def __init__(self, b: Builder, value: Value) -> None:
        self.b = b
        self.value = value

    def _op(self, name: str, *operands: Any) -> Self:
        return type(self)(self.b, self.b.op(name, *(self.lift(x) for x in operands)))

    def lift(self, x: Any) -> Value:
        """The value of a Term; a number as a constant like this one."""
        return x.value if isinstance(x, Term) else self.b.full_like(self.value, x)

    def __getattr__(self, name: str) -> Callable[..., Self]:
        if name not in OPS:
            raise AttributeError(f"there is no op {name!r}")
        return lambda *operands: self._op(name, self, *operands)

    def __neg__(self) -> Self:
        return self._op("neg", self)

    def __add__(self, other: Any) -> Self:
        return self._op("add", self, other)

    def __radd__(self, other: Any) -> Self:
        return self._op("add", other, self)

    def __sub__(self, other: Any) -> Self:
        return self._op("sub", self, other)

    def __rsub__(self, other: Any) -> Self:
        return self._op("sub", other, self)

    def __mul__(self, other: Any) -> Self:
        return self._op("mul", self, other)

    def __rmul__(self, other: Any) -> Self:
        return self._op("mul", other, self)

    def __truediv__(self, other: Any) -> Self:
        return self._op("div", self, other)

    def __rtruediv__(self, other: Any) -> Self:
        return self._op("div", other, self)

    def __pow__(self, other: Any) -> Self:
        return self._op("pow", self, other)

    def __and__(self, other: Term) -> Self:
        return self._op("bitwise_and", self, other)

    def __or__(self, other: Term) -> Self:
        return self._op("bitwise_or", self, other)

    def __lt__(self, other: Any) -> Self:
        return self._op("lt", self, other)

    def __le__(self, other: Any) -> Self:
        return self._op("le", self, other)

    def __gt__(self, other: Any) -> Self:
        return self._op("gt", self, other)

    def __ge__(self, other: Any) -> Self:
        return self._op("ge", self, other)


def where(condition: Term, x: Any, y: Any) -> Term:
    """Elementwise choice; one of `x` and `y` is a Term, the other may be a number."""
    like = x if isinstance(x, Term) else y
    return Term(like.b, like.b.op("select", condition.value, like.lift(x), like.lift(y)))
