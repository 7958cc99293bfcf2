"""What functions of matrices are emitted with: rows of a few columns as vectors, loops, conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...llvm.builder import Value, poison, vector_constant
from ...llvm.instructions import SCALAR_TYPES, type_text
from ...llvm.text import Operand
from ...llvm.whole import Whole, Word
from ...scalar import DType
from ...target import Target
from ..matmul.cpu_tiles import element, has_fma, multiply_add

LANES = 8  # columns of a leaf


class LeafEmitter:
    """What is emitted into one function by the builder `b`; vectors are leaves' rows."""

    def __init__(self, target: Target, dtype: DType) -> None:
        self.b = Whole(target, LANES)
        self.dtype = dtype
        self.scalar = SCALAR_TYPES[dtype]
        self.vector = type_text(dtype, LANES)
        self.fused = has_fma(target)

    def element(self, base: Value, *offsets: Word) -> Value:
        return element(self.b, self.dtype, base, *offsets)

    def get(self, base: Value, *offsets: Word) -> Value:
        return self.b.load_elements(self.dtype, self.element(base, *offsets), 1)

    def put(self, value: Value, base: Value, *offsets: Word) -> None:
        self.b.store_elements(self.dtype, value, self.element(base, *offsets))

    def number(self, value: float) -> Value:
        """A constant of the matrices' dtype."""
        return self.b.scalar(value, self.dtype)

    def lanes_below(self, count: Word) -> Value:
        """The lanes below an i64."""
        return self.lanes_that("slt", count)

    def lanes_that(self, order: str, count: Word) -> Value:
        numbers = vector_constant("i64", range(LANES))
        return self.b.compare(order, numbers, self.b.splat(self.b.word(count), LANES))

    def everywhere(self, value: Value) -> Value:
        return self.b.spread(Operand(value, True), self.dtype)

    def minus_product(self, value: Value, factor: Value, row: Value) -> Value:
        """value - factor * row: a scalar times a vector."""
        negated = self.b.negated(factor)
        return multiply_add(self.b, self.dtype, self.fused, self.everywhere(negated), row, value)

    def sum_of(self, value: Value) -> Value:
        """The sum of a vector's lanes, halves added to each other."""
        lanes = LANES
        while lanes > 2:
            lanes //= 2
            low, high = (
                self.b.shuffle(value, poison(value.type), range(k, k + lanes)) for k in (0, lanes)
            )
            value = self.b.binary("fadd", low, high)
        return self.b.binary("fadd", self.b.extract(value, 0), self.b.extract(value, 1))

    def choose(self, mask: Value, a: Value, b: Value) -> Value:
        return self.b.select(mask, a, b)


@contextmanager
def carrying(
    e: LeafEmitter, lo: Word, hi: Word, step: int, carried: Sequence[Value]
) -> Iterator[tuple[Value, list[Value], list[Value]]]:
    """A loop with values of its own, which start so. Gives its counter, the values, which are the last
    ones after the loop, and a list for the next ones."""
    head, inside, leave = (e.b.later(h) for h in ("for", "do", "end"))
    i, *names = e.b.parameters(head, "i64", *(start.type for start in carried))
    new: list[Value] = []
    e.b.jump(head, lo, *carried)
    e.b.at(head)
    e.b.branch(i < hi, inside, leave)
    with e.b.scope():
        e.b.at(inside)
        yield i, names, new
        e.b.jump(head, e.b.stepped(i, step), *new)
    e.b.at(leave)
