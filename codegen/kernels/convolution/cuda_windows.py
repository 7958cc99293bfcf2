"""Lowering of window reductions for a GPU: folds of folds, so that neighbours share them.

    small       max over i of (max over j of x[p + i, q + j]): threads that have several p share rows
    large       z[i, q] = max over j of x[i, q + j]; y[p, q] = max over i of z[p + i, q]
    long        z[i] = sum of x[i .. i + 9]; y[p] = z[p] + z[p + 10] + ... + z[p + 90]

Sums are folded in that order; windows that hardly overlap are plain reductions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ....ir.graph import Op
from ....ir.ops.folds.reductions import identity
from ....ir.record import record, replace
from ...loop_ir.index import Index, Var, of_var
from ...loop_ir.kernel import Array, Stage
from ...lowering.lower import Lowering, rule_of, variables
from ...lowering.lower_windows import WindowElement, prepare
from ...lowering.pointwise import Pointwise
from ...math import EXPANSIONS
from ...scalar import Expr, const, select

WINDOWS = ("window_sum", "window_prod", "window_max", "window_min")
WRITTEN_OUT = 32  # elements of a window up to which they are one expression

Read = Callable[[Pointwise, Sequence[Index], Expr | None], Expr]


@record
class MovingWindow:
    """A window along one dim: element p covers p * stride + k * dilation - low for k below `taps`."""

    size: int
    taps: int
    stride: int
    low: int
    dilation: int
    positions: int

    @property
    def trivial(self) -> bool:
        return (self.taps, self.stride, self.low) == (1, 1, 0) and self.positions == self.size

    @property
    def overlaps(self) -> bool:
        """Whether an element is read by many windows."""
        return self.positions > 1 and 2 * self.stride < self.taps


def window_reduction(low: Lowering, op: Op) -> None:
    """A reduction over windows, written out; large windows that overlap share partial folds.

    Other large windows are reduced as on a CPU.
    """
    (source,) = op.operands
    names = ("window", "strides", "low", "dilation")
    dims = [
        MovingWindow(*sizes)
        for sizes in zip(source.shape, *(op.attrs[n] for n in names), op.result.shape, strict=True)
    ]
    if math.prod(d.taps for d in dims) > WRITTEN_OUT and not any(d.overlaps for d in dims):
        rule_of(op.name)(low, op)
        return
    prepare(low, source, math.prod(d.taps for d in dims))
    array = low.array_for(op.result)
    how = _Windows(low, op)

    def read(p: Pointwise, index: Sequence[Index], mask: Expr | None) -> Expr:
        return p.at(source, tuple(index), mask)

    how.fill(array, read, dims)
    low.arrays[op.result] = array


class _Windows:
    """The folds of one op."""

    def __init__(self, low: Lowering, op: Op) -> None:
        self.low, self.op = low, op
        self.name = op.name.removeprefix("window_")
        self.empty = identity(self.name, op.result.dtype)

    def fill(self, array: Array, read: Read, dims: Sequence[MovingWindow]) -> None:
        """Fill an array with the folds of windows over what `read` gives."""
        if math.prod(d.taps for d in dims) <= WRITTEN_OUT:
            self._written_out(array, read, dims)
            return
        moving = [d for d, w in enumerate(dims) if not w.trivial]
        if len(moving) == 1:
            self._long(array, read, dims, moving[0])
            return
        first = max(moving, key=lambda d: (dims[d].stride, d))
        still = [_still(w.size) for w in dims]
        now = [w if d == first else still[d] for d, w in enumerate(dims)]
        part = Array(tuple(w.positions for w in now), array.dtype, name="part")
        self.fill(part, read, now)
        still[first] = _still(dims[first].positions)
        rest = [still[d] if d == first else w for d, w in enumerate(dims)]
        self.fill(array, _reading(part), rest)

    def _written_out(
        self,
        array: Array,
        read: Read,
        dims: Sequence[MovingWindow],
        also: tuple[Read, Sequence[MovingWindow]] | None = None,
    ) -> None:
        """A stage of one expression. `also`: further windows, of what else is read."""
        loops = variables(array.shape)
        p = self.low.point()
        value = self._fold(p, read, dims, loops, ())
        if also is not None:
            value = self._combined(value, self._fold(p, *also, loops, ()))
        stage = Stage(array, loops, value, ops=[self.op.name], loc=self.op.loc)
        stage.cost += math.prod(d.taps for d in dims)
        self.low.emit(p, stage)

    def _combined(self, a: Expr, b: Expr) -> Expr:
        return EXPANSIONS[_COMBINE[self.name]](a, b)

    def _fold(
        self,
        p: Pointwise,
        read: Read,
        dims: Sequence[MovingWindow],
        loops: Sequence[Var],
        taps: tuple[int, ...],
    ) -> Expr:
        """The fold over the dims behind those whose tap is chosen."""
        if len(taps) == len(dims):
            element = WindowElement()
            for d, v, k in zip(dims, loops, taps, strict=True):
                element.add(of_var(v) * d.stride + (k * d.dilation - d.low), d.size)
            return self._element(p, read, element)
        count = dims[len(taps)].taps
        total = self._fold(p, read, dims, loops, (*taps, 0))
        for k in range(1, count):
            total = self._combined(total, self._fold(p, read, dims, loops, (*taps, k)))
        return total

    def _element(self, p: Pointwise, read: Read, element: WindowElement) -> Expr:
        exists = element.exists
        if exists is None:
            return read(p, element.index, None)
        p.masks.append(exists)
        value = read(p, element.index, exists)
        return select(exists, value, const(self.empty, value.dtype))

    def _long(self, array: Array, read: Read, dims: Sequence[MovingWindow], axis: int) -> None:
        """A window along one dim of more elements than are written out."""
        w = dims[axis]
        if not w.overlaps or w.taps > WRITTEN_OUT**2:
            self._looped(array, read, dims, axis)
            return
        length = math.isqrt(w.taps)
        count, rest = divmod(w.taps, length)
        far = length * w.dilation
        starts = (w.positions - 1) * w.stride + (count - 1) * far + 1
        fold = MovingWindow(w.size, length, 1, w.low, w.dilation, starts)
        now = [fold if d == axis else v for d, v in enumerate(dims)]
        part = Array(tuple(v.positions for v in now), array.dtype, name="part")
        self._written_out(part, read, now)
        folds = replace(w, size=starts, taps=count, low=0, dilation=far)
        also = None
        if rest:
            left = replace(w, taps=rest, low=w.low - count * far)
            also = read, [left if d == axis else v for d, v in enumerate(dims)]
        then = [folds if d == axis else v for d, v in enumerate(dims)]
        self._written_out(array, _reading(part), then, also)

    def _looped(self, array: Array, read: Read, dims: Sequence[MovingWindow], axis: int) -> None:
        """Each window by a loop."""
        loops, k = variables(array.shape), Var("k", dims[axis].taps)
        element = WindowElement()
        for d, (w, v) in enumerate(zip(dims, loops, strict=True)):
            at = of_var(v) * w.stride - w.low
            element.add(at + of_var(k) * w.dilation if d == axis else at, w.size)
        p = self.low.point()
        value = self._element(p, read, element)
        stage = Stage(array, (*loops, k), value, "reduce", self.name, len(loops))
        stage.ops, stage.loc = [self.op.name], self.op.loc
        self.low.emit(p, stage)


def _still(size: int) -> MovingWindow:
    """What leaves a dim as it is."""
    return MovingWindow(size, 1, 1, 0, 1, size)


_COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


def _reading(array: Array) -> Read:
    return lambda p, index, mask: p.load(array, tuple(index), mask)
