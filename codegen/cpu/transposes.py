"""Map kernels whose arrays have different fastest axes: squares of them are turned over in registers.

    for a square of rows i0.. and columns j0..:
        turn over each x[j, i] there: vectors along i are loaded, shuffled, put down as vectors along j
        for rows i of the square:
            out[i, j0..] = f(y[i, j0..], turned[i])

So every load and store is a whole vector. `schedule` finds the second axis, `cross`, and the tiles.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...ir.types import BOOL
from ..llvm.builder import Value
from ..llvm.instructions import SCALAR_TYPES
from ..llvm.loops import Values
from ..llvm.text import Operand, TextEmitter
from ..loop_ir.index import Index, Var
from ..loop_ir.kernel import Access
from ..scalar import DType, Expr

if TYPE_CHECKING:
    from .kernels import KernelEmitter


class SquareEmitter:
    """Emits the squares of one tile of the last outer loop and the loop `cross`."""

    def __init__(self, e: KernelEmitter, cross: Var) -> None:
        self.e = e
        self.cross = cross
        self.last: Var = e.plan.outer.vars[-1]
        self.side = e.b.width
        self.row: Value  # of the square at hand

    def tile(self, row: Value, column: Value) -> None:
        """The tile that begins at `row` of cross and `column` of the last loop."""
        e, plan = self.e, self.e.plan
        rows_end = e.indices.least(row + plan.cross_tile, self.cross.extent)
        columns_end = e.indices.least(column + plan.tile, self.last.extent)

        def at_columns(j: Value, _: Values) -> Values:
            first_column = e.indices.least(j, self.last.extent - self.side)

            def at_rows(i: Value, _: Values) -> Values:
                e.indices.positions[self.last] = first_column
                e.indices.positions[self.cross] = first = e.indices.least(
                    i, self.cross.extent - self.side
                )
                self._square(first)
                return []

            return e.loops.loop(row, rows_end, self.side, [], at_rows)

        e.loops.loop(column, columns_end, self.side, [], at_columns)

    def _square(self, first: Value) -> None:
        e = self.e
        tiles: dict[tuple[object, Index, Expr | None], Value] = {}
        for expr in e.plan.turned:
            access: Access = expr.attr
            base, flat = e.memory.locate(access.array, access.index)
            flat = flat.substitute(e.indices.env)
            guard = expr.args[0] if expr.args else None
            key = (access.array, flat, guard)
            if key not in tiles:
                tiles[key] = self._turn(access.array.dtype, base, flat, guard)
            tile = tiles[key]
            e.memory.brought[expr] = partial(self._row_of, tile, expr.dtype)
        e.indices.lane = self.last

        def at_row(m: Value, _: Values) -> Values:
            e.indices.positions[self.cross] = first + m
            self.row = m
            e.nests.row()
            return []

        e.loops.loop(0, self.side, 1, [], at_row)
        e.indices.lane = None

    def _turn(self, dtype: DType, base: Value, flat: Index, guard: Expr | None) -> Value:
        """Turn over the square that begins here; returns where its rows are put.

        A `guard` says which of the vectors that are loaded exist.
        """
        e, side = self.e, self.side
        element = "i8" if dtype == BOOL else SCALAR_TYPES[dtype]
        start = e.indices.value(flat)
        stride = flat.coeff(self.last)
        rows = []
        for k in range(side):
            offset = start + (k * stride) if k else start
            at = e.b.offset(base, offset, element)
            ty, align = f"<{side} x {element}>", dtype.itemsize
            if guard is None:
                rows.append(e.b.load(ty, at, align=align))
            else:
                rows.append(e.b.load_elements(dtype, at, side, mask=self._guarded(guard, k)))
        tile = e.stack(side * side * dtype.itemsize)
        for k, row in enumerate(turned(e.b, rows)):
            at = e.b.offset(tile, k * side, element)
            e.b.store(row, at, align=dtype.itemsize)
        return tile

    def _guarded(self, guard: Expr, k: int) -> Value:
        """Whether vector k of the square exists, as a mask."""
        e = self.e
        first = e.indices.positions[self.last]
        with e.b.scope():
            e.indices.positions[self.last] = first + k
            mask = e.b.spread(e.exprs.operand(guard), BOOL)
        e.indices.positions[self.last] = first
        return mask

    def _row_of(self, tile: Value, dtype: DType) -> Operand:
        """The vector that a turned access has in this row of the square."""
        b = self.e.b
        element = "i8" if dtype == BOOL else SCALAR_TYPES[dtype]
        row = b.offset(tile, self.row * b.width, element)
        return Operand(b.load_elements(dtype, row, b.width), False)


def turned(builder: TextEmitter, rows: list[Value]) -> list[Value]:
    """The columns of a square matrix of vectors, by halves: blocks off the diagonal are exchanged."""
    side = len(rows)
    half = side // 2
    while half:
        after = list(rows)
        for k in range(side):
            if k & half:
                continue
            a, b = rows[k], rows[k + half]
            upper = [lane if not lane & half else side + lane - half for lane in range(side)]
            lower = [lane + half if not lane & half else side + lane for lane in range(side)]
            for slot, lanes in ((k, upper), (k + half, lower)):
                after[slot] = builder.shuffle(a, b, lanes)
        rows, half = after, half // 2
    return rows
