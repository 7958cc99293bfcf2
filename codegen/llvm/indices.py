"""Indices as integers: of lane 0 (`index_text`), or as int64 of every lane (`_index_vector`)."""

from __future__ import annotations

from typing import Any

from ...ir.types import I32, I64
from ..loop_ir.index import Data, Div, Index, Mod, Var
from ..scalar import DType, Expr
from .builder import Number, Value, vector_constant
from .scalars import ScalarEmitter
from .text import Operand


class IndexEmitter(ScalarEmitter):
    """Knows where the loops stand: `at` the value of each variable, `lane` the one that vectors follow.

    `env` gives the variables of the kernel's stages in terms of the loops'. Loops count, and positions
    in arrays are computed, in integers of `index_type`; a vector of lanes wants i64.
    """

    index_type = "i64"

    lane: Var | None  # the vectorised loop's variable; its value in `at` is that of lane 0
    env: dict[Var, Index]
    positions: dict[Var, Any]

    def _index(self, index: Index) -> Operand:
        index = index.substitute(self.env)
        if self._is_uniform_index(index):
            return Operand(self.index_as(index, I64), True)
        return Operand(self._index_vector(index), False)

    def index_as(self, index: Index, dtype: DType) -> Value:
        """The scalar value of an index as an int32, into which it is known to fit, or an int64."""
        text, wanted = self.index_text(index), "i32" if dtype == I32 else "i64"
        if text.is_constant:
            return self.literal(wanted, str(text))
        return (
            text if wanted == text.type else text.to("trunc" if wanted == "i32" else "sext", wanted)
        )

    def _is_uniform_index(self, index: Index) -> bool:
        """Whether an index is the same in all lanes."""
        if self.lane is None or self.width == 1:
            return True
        return not any(self._varies(atom) for atom in index.substitute(self.env).terms)

    def _rest_uniform(self, index: Index) -> bool:
        return not any(self._varies(a) for a in index.terms if a is not self.lane)

    def _varies(self, atom: Any) -> bool:
        if isinstance(atom, Var):
            return atom is self.lane
        if isinstance(atom, Div):
            return any(self._varies(a) for a in atom.index.terms)
        return not self.operand(atom.expr).uniform

    def index_text(self, index: Index) -> Value:
        """The scalar value of an index; of lane 0 if it follows the lanes."""
        index = index.substitute(self.env)
        total: Value | None = None
        for atom, coeff in index.terms.items():
            term = self.as_index(self._atom_text(atom))
            if coeff != 1:
                term = term * coeff
            total = term if total is None else total + term
        if total is None:
            return self.literal(self.index_type, index.const)
        return total + index.const if index.const else total

    def as_index(self, text: Value | Number) -> Value:
        """A position, which may be a constant's text."""
        return text if isinstance(text, Value) else self.literal(self.index_type, text)

    def _atom_text(self, atom: Any) -> str:
        if isinstance(atom, Var):
            return self.positions[atom]
        if isinstance(atom, Data):
            return self._data_text(atom.expr)
        inner = self.index_text(atom.index)
        if atom.index.range()[0] >= 0:
            return inner % atom.n if isinstance(atom, Mod) else inner // atom.n
        return _floor_divide(inner, atom)

    def _data_text(self, expr: Expr) -> str:
        """An index that the program computed."""
        return self.operand(expr).text

    def _index_vector(self, index: Index) -> Value:
        """The int64 values of an index in all lanes."""
        index = index.substitute(self.env)
        fixed = Index(index.const, {a: c for a, c in index.terms.items() if not self._varies(a)})
        total = self.spread(Operand(self.index_text(fixed), True), I64)
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
            base = self.spread(Operand(self.as_index(self.positions[atom]), True), I64)
            return base + iota(self.width, "i64")
        if isinstance(atom, Data):
            return self.spread(self.operand(atom.expr), I64)
        inner = self._index_vector(atom.index)
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
    return vector_constant(ty, range(width))
