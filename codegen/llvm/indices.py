"""Indices as integers: of lane 0 (`value`), or as int64 of every lane (`vector`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.types import I32, I64
from ..loop_ir.index import Data, Div, Index, Mod, Var
from ..scalar import DType, Expr
from ..sizes import Size, size_of
from .builder import Number, Value, vector_constant
from .scalars import ScalarEmitter
from .text import Operand


class IndexEmitter:
    """Knows where the loops stand. Loops count in the builder's `index_type`."""

    def __init__(self, exprs: ScalarEmitter) -> None:
        self.exprs, self.b = exprs, exprs.b
        self.env: dict[Var, Index] = {}  # the variables of stages in terms of the loops'
        self.positions: dict[
            Var, Value | Number
        ] = {}  # each loop's variable -> its value (of lane 0)
        self.lane: Var | None = None  # the variable that vectors follow
        self.lengths: dict[Size, Value] = {}  # of axes, where they are known when code runs only

    def length(self, extent: int) -> Value | int:
        """How many iterations a loop has: its extent, or a multiple of the length that it goes by."""
        size = size_of(extent)
        return extent if size is None else self.lengths[size] * (extent // size.capacity)

    def stand_at(self, loops: Sequence[Var], q: Value | Number) -> None:
        """Set several loops' variables to the point that is `q` when they are taken as one."""
        rest = self.as_index(q)
        for var in reversed(loops[1:]):
            self.positions[var] = rest % var.extent
            rest = rest // var.extent
        if loops:
            self.positions[loops[0]] = rest

    def emit(self, index: Index) -> Operand:
        index = index.substitute(self.env)
        if self.is_uniform(index):
            return Operand(self.index_as(index, I64), True)
        return Operand(self.vector(index), False)

    def index_as(self, index: Index, dtype: DType) -> Value:
        """The scalar value of an index as an int32, into which it is known to fit, or an int64."""
        value, wanted = self.value(index), "i32" if dtype == I32 else "i64"
        if value.number is not None:
            return self.b.literal(wanted, value.number)
        if value.type == wanted:
            return value
        return value.to("trunc" if wanted == "i32" else "sext", wanted)

    def is_uniform(self, index: Index) -> bool:
        """Whether an index is the same in all lanes."""
        if self.lane is None or self.b.width == 1:
            return True
        return not any(self._varies(atom) for atom in index.substitute(self.env).terms)

    def rest_is_uniform(self, index: Index) -> bool:
        return not any(self._varies(a) for a in index.terms if a is not self.lane)

    def _varies(self, atom: Any) -> bool:
        if isinstance(atom, Var):
            return atom is self.lane
        if isinstance(atom, Div):
            return any(self._varies(a) for a in atom.index.terms)
        return not self.exprs.operand(atom.expr).uniform

    def value(self, index: Index) -> Value:
        """The scalar value of an index; of lane 0 if it follows the lanes."""
        index = index.substitute(self.env)
        total: Value | None = None
        for atom, coeff in index.terms.items():
            term = self.as_index(self._atom(atom))
            if coeff != 1:
                term = term * coeff
            total = term if total is None else total + term
        if total is None:
            return self.b.literal(self.b.index_type, index.const)
        return total + index.const if index.const else total

    def as_index(self, position: Value | Number) -> Value:
        """A position, which may be a number."""
        if isinstance(position, Value):
            return position
        return self.b.literal(self.b.index_type, position)

    def least(self, a: Value | Number, b: Value | Number) -> Value:
        a = self.as_index(a)
        return self.b.select(a < b, a, b)

    def _atom(self, atom: Any) -> Value | Number:
        if isinstance(atom, Var):
            return self.positions[atom]
        if isinstance(atom, Data):
            return self._data(atom.expr)
        inner = self.value(atom.index)
        if atom.index.range()[0] >= 0:
            return inner % atom.n if isinstance(atom, Mod) else inner // atom.n
        return _floor_divide(inner, atom)

    def _data(self, expr: Expr) -> Value:
        """An index that the program computed, an i64."""
        value = self.exprs.operand(expr).value
        narrow = self.b.index_type == "i32" and not value.is_constant
        return value.trunc("i32") if narrow else value

    def vector(self, index: Index) -> Value:
        """The int64 values of an index in all lanes."""
        index = index.substitute(self.env)
        fixed = Index(index.const, {a: c for a, c in index.terms.items() if not self._varies(a)})
        total = self.b.spread(Operand(self.value(fixed), True), I64)
        for atom, coeff in index.terms.items():
            if not self._varies(atom):
                continue
            term = self._atom_vector(atom)
            if coeff != 1:
                term = term * coeff
            total = total + term
        return total

    def _atom_vector(self, atom: Any) -> Value:
        if isinstance(atom, Var):
            start = self.as_index(self.positions[atom])
            if start.is_constant:
                start = self.b.hidden(start)
            return self.b.spread(Operand(start, True), I64) + iota(self.b.width, "i64")
        if isinstance(atom, Data):
            return self.b.spread(self.exprs.operand(atom.expr), I64)
        inner = self.vector(atom.index)
        if atom.index.range()[0] >= 0:
            return inner % atom.n if isinstance(atom, Mod) else inner // atom.n
        return _floor_divide(inner, atom)


def _floor_divide(inner: Value, atom: Div) -> Value:
    """Floor division or remainder of an index that may be negative."""
    shift = -(atom.index.range()[0] // atom.n) * atom.n  # makes it non-negative
    moved = inner + shift
    if isinstance(atom, Mod):
        return moved % atom.n
    return moved // atom.n - shift // atom.n


def iota(width: int, ty: str) -> Value:
    """The vector 0, 1 .. width - 1 of integers of a type."""
    return vector_constant(ty, range(width))
