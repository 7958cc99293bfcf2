"""What functions of matrices are emitted with: rows of a few columns as vectors, loops, conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..scalar import DType
from ..target import Target
from .instructions import SCALAR_TYPES, type_text
from .text import Operand
from .tiles import element, has_fma, multiply_add
from .whole import Whole

LANES = 8  # columns of a leaf


class LeafEmitter(Whole):
    """What is emitted into one function; vectors are leaves' rows."""

    def __init__(self, target: Target, dtype: DType) -> None:
        super().__init__(target, [], LANES)
        self.dtype = dtype
        self.scalar = SCALAR_TYPES[dtype]
        self.vector = type_text(dtype, LANES)
        self.fused = has_fma(target)

    def at(self, base: str, *offsets: str) -> str:
        return element(self, self.dtype, base, *offsets)

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def get(self, base: str, *offsets: str) -> str:
        return self.load(self.dtype, self.at(base, *offsets), 1)

    def put(self, value: str, base: str, *offsets: str) -> None:
        self.store(self.dtype, value, self.at(base, *offsets), 1)

    def lanes_below(self, count: str) -> str:
        """The lanes below an i64."""
        return self.lanes_that("slt", count)

    def lanes_that(self, order: str, count: str) -> str:
        ty = f"<{LANES} x i64>"
        first = self.value_of(f"insertelement {ty} poison, i64 {count}, i64 0")
        zeros = f"<{LANES} x i32> zeroinitializer"
        spread = self.value_of(f"shufflevector {ty} {first}, {ty} poison, {zeros}")
        numbers = ", ".join(f"i64 {k}" for k in range(LANES))
        return self.value_of(f"icmp {order} {ty} <{numbers}>, {spread}")

    def everywhere(self, value: str) -> str:
        return self.spread(Operand(value, True), self.dtype)

    def minus_product(self, value: str, factor: str, row: str) -> str:
        """value - factor * row: a scalar times a vector."""
        negated = self.value_of(f"fneg {self.scalar} {factor}")
        return multiply_add(self, self.dtype, self.fused, self.everywhere(negated), row, value)

    def both(self, a: str, b: str) -> str:
        return self.value_of(f"and <{LANES} x i1> {a}, {b}")

    def choose(self, mask: str, a: str, b: str) -> str:
        return self.value_of(f"select <{LANES} x i1> {mask}, {self.vector} {a}, {self.vector} {b}")

    @contextmanager
    def when(self, test: str) -> Iterator[None]:
        """What is done only if an i1 holds."""
        inside, after = self.new_label("then"), self.new_label("on")
        self.line(f"br i1 {test}, label %{inside}, label %{after}")
        self.start_block(inside)
        with self.scope():
            yield
        self.line(f"br label %{after}")
        self.start_block(after)

    def compare(self, order: str, a: str, b: str | int) -> str:
        return self.value_of(f"icmp {order} i64 {a}, {b}")


@contextmanager
def carrying(
    e: LeafEmitter, lo: str, hi: str, step: int, carried: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """A loop with values of its own: pairs of type and start. Gives its counter, the names of the
    values, which hold the last ones after the loop, and a list for the next ones."""
    head, inside, leave = (e.new_label(h) for h in ("for", "do", "end"))
    before, i = e.block, f"%i{next(e.names)}"
    names = [f"%c{next(e.names)}" for _ in carried]
    new: list[str] = []
    e.line(f"br label %{head}")
    e.start_block(head)
    phi = len(e.lines)
    e.line(f"{i}c = icmp slt i64 {i}, {hi}")
    e.line(f"br i1 {i}c, label %{inside}, label %{leave}")
    with e.scope():
        e.start_block(inside)
        yield i, names, new
        e.line(f"{i}n = add nsw i64 {i}, {step}")
        e.line(f"br label %{head}")
    texts = [f"  {i} = phi i64 [ {lo}, %{before} ], [ {i}n, %{e.block} ]"]
    texts += [
        f"  {name} = phi {ty} [ {start}, %{before} ], [ {following}, %{e.block} ]"
        for name, (ty, start), following in zip(names, carried, new, strict=True)
    ]
    e.lines[phi:phi] = texts
    e.start_block(leave)
