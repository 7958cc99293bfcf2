"""Reductions inside a kernel: how accumulators start, take in a value, and come together at the end.

An accumulator has one slot per lane. Where lanes are separate results (a reduction over an axis that
is not vectorised) the slots are the results; otherwise they are folded by halves, in a fixed order, so
that a sum does not depend on anything but the shape and the target's vector width.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from ...ir.ops.folds.reductions import identity
from ...ir.types import I32, I64
from ..loop_ir.index import Var, contiguous_strides, linear, of_var
from ..loop_ir.kernel import Stage
from ..math import EXPANSIONS
from ..math.combiners import FOLDS
from ..scalar import DType, Expr, Unique, convert, eq, fma, ne, select, var
from .builder import Value, poison
from .indices import IndexEmitter, iota
from .instructions import SCALAR_TYPES, constant
from .scalars import Operand, ScalarEmitter


def apply(
    e: ScalarEmitter,
    function: Callable[..., Sequence[Expr]],
    operands: Sequence[Operand],
    dtypes: Sequence[DType],
) -> list[Operand]:
    """`function` of values that are already emitted; it gives several expressions."""
    names = [Unique("value") for _ in operands]
    for name, operand in zip(names, operands, strict=True):
        e.bind(name, operand.value, uniform=operand.uniform)
    exprs = function(*(var(n, d) for n, d in zip(names, dtypes, strict=True)))
    results = [e.operand(x) for x in exprs]
    for name in names:
        e.unbind(name)
    return results


class Reduction(ABC):
    """A fold of one value per point. Subclasses say what is carried and how two carries combine."""

    def __init__(self, indices: IndexEmitter, stage: Stage, vector: bool, lanewise: bool) -> None:
        self.indices, self.exprs, self.b = indices, indices.exprs, indices.b
        self.stage = stage
        self.vector = vector  # accumulators are vectors
        self.lanewise = lanewise  # each lane is a result of its own
        self.dtypes: list[DType] = []
        self.starts: list[float | int | bool] = []

    @property
    def count(self) -> int:
        return len(self.dtypes)

    @abstractmethod
    def merge(self, *carries: Expr) -> list[Expr]:
        """The fold of two carries, given one after the other."""

    @abstractmethod
    def take(self, *carry: Expr) -> list[Expr]:
        """The fold of a carry and the stage's value at this point."""

    def initial(self) -> list[Operand]:
        lanes = self.b.width if self.vector else 1
        return [
            Operand(constant(s, d, lanes), not self.vector)
            for s, d in zip(self.starts, self.dtypes, strict=True)
        ]

    def combine(self, old: Sequence[Operand]) -> list[Operand]:
        b = self.b
        new = apply(self.exprs, self.take, old, self.dtypes)
        out = []
        for before, after, dtype in zip(old, new, self.dtypes, strict=True):
            value = b.spread(after, dtype) if self.vector else after.value
            if self.vector and b.mask is not None and not self.lanewise:
                value = b.select(b.mask, value, before.value)
            out.append(Operand(value, before.uniform))
        return out

    def finish(self, ends: Sequence[Operand]) -> Operand:
        """The result: one per lane, or the lanes folded together."""
        if not self.vector:
            return self.result(Operand(ends[-1].value, True))
        if self.lanewise:
            return self.result(Operand(ends[-1].value, False))
        values, width = [c.value for c in ends], self.b.width
        while width > 1:
            values = self._halve(values, width)
            width //= 2
        return self.result(Operand(values[-1], True))

    def result(self, operand: Operand) -> Operand:
        return operand

    def _halve(self, values: Sequence[Value], width: int) -> list[Value]:
        """Fold the upper half of the lanes onto the lower half."""
        b, half = self.b, width // 2
        sub = self.exprs.narrower(half)
        parts: list[Operand] = []
        for start in (0, half):
            for whole in values:
                if half == 1:
                    part = b.extract(whole, start)
                else:
                    lanes = range(start, start + half)
                    part = b.shuffle(whole, poison(whole.type), lanes)
                parts.append(Operand(part, half == 1))
        merged = apply(sub, self.merge, parts, [*self.dtypes, *self.dtypes])
        return [sub.b.spread(m, d) for m, d in zip(merged, self.dtypes, strict=True)]


class Fold(Reduction):
    """sum, prod, max, min, any, all: one accumulator of the result's dtype."""

    def __init__(self, indices: IndexEmitter, stage: Stage, vector: bool, lanewise: bool) -> None:
        super().__init__(indices, stage, vector, lanewise)
        self.dtypes = [stage.array.dtype]
        self.starts = [identity(stage.op, stage.array.dtype)]
        if stage.action == "scan" and stage.op == "sum" and stage.array.dtype.kind == "f":
            # NumPy's running sum starts from the first element, its sum from 0.
            self.starts = [-0.0]
        self.function = EXPANSIONS[FOLDS[stage.op]]

    def merge(self, *carries: Expr) -> list[Expr]:
        return [self.function(*carries)]

    def take(self, *carry: Expr) -> list[Expr]:
        value = self.stage.value
        added = self.stage.op == "sum" and self.stage.action == "reduce"
        if added and value.op == "mul" and value.dtype.kind == "f":
            a, b = value.args
            return [fma(a, b, carry[0])]
        return [self.function(carry[0], value)]


class ArgFold(Reduction):
    """argmax, argmin: the best value so far and its index; NaN beats all, the first of equals wins.

    A lane keeps the index that lane 0 had then: one number for the whole vector, as wide as the values
    are. What a lane starts with is no better than any element, and its index is the lane's first.
    """

    def __init__(
        self,
        indices: IndexEmitter,
        stage: Stage,
        vector: bool,
        lanewise: bool,
        dims: Sequence[Var],
    ) -> None:
        super().__init__(indices, stage, vector, lanewise)
        value = stage.value
        self.value = convert(value, np.dtype(np.uint8)) if value.dtype.kind == "b" else value
        shape = tuple(v.extent for v in dims)
        self.index = linear([of_var(v) for v in dims], contiguous_strides(shape))
        narrow = math.prod(shape) < 2**31 and self.value.dtype.itemsize <= 4
        self.dtypes = [self.value.dtype, I32 if narrow else I64]
        op = "max" if stage.op == "argmax" else "min"
        self.starts = [identity(op, self.value.dtype), 0]
        self.here = Unique("here")

    def combine(self, old: Sequence[Operand]) -> list[Operand]:
        self.exprs.bind(self.here, self.indices.index_as(self.index, self.dtypes[1]), uniform=True)
        return super().combine(old)

    def take(self, *carry: Expr) -> list[Expr]:
        best, at = carry
        value = self.value
        better = value > best if self.stage.op == "argmax" else value < best
        if value.dtype.kind == "f":
            worse = value <= best if self.stage.op == "argmax" else value >= best
            better = ~worse & eq(best, best)  # NaN is not worse; nothing is better than NaN
        return [select(better, value, best), select(better, var(self.here, self.dtypes[1]), at)]

    def merge(self, *carries: Expr) -> list[Expr]:
        best, at, value, index = carries
        better = value > best if self.stage.op == "argmax" else value < best
        same = eq(value, best)
        if value.dtype.kind == "f":
            nan, best_nan = ne(value, value), ne(best, best)
            better = (better | nan) & ~best_nan
            same = same | (nan & best_nan)
        take = better | (same & (index < at))
        return [select(take, value, best), select(take, index, at)]

    def finish(self, ends: Sequence[Operand]) -> Operand:
        if self.vector and not self.lanewise:
            best, at = ends
            scalar = SCALAR_TYPES[self.dtypes[1]]
            position = at.value + iota(self.b.width, scalar)
            ends = [best, at._replace(value=position)]
        return super().finish(ends)

    def result(self, operand: Operand) -> Operand:
        function = lambda at: [convert(at, I64)]  # noqa: E731
        return apply(self.exprs, function, [operand], self.dtypes[1:])[0]


def reduction(
    indices: IndexEmitter, stage: Stage, vector: bool, lanewise: bool, dims: Sequence[Var]
) -> Reduction:
    """The fold that a stage asks for; `dims` are its inner loops."""
    if stage.op in ("argmax", "argmin"):
        return ArgFold(indices, stage, vector, lanewise, dims)
    return Fold(indices, stage, vector, lanewise)
