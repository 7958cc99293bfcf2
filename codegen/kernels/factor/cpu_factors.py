"""Factorisations of matrices in place, as LLVM functions that call each other and themselves.

    lu(a, ld, m, n, pivots, info)              P A = L U by rows, m >= n
    cholesky(a, ld, m, n, info)                n columns of L with L L^T = A, from A's lower half
    lower(l, ld, n, x, ldx, r, unit)           X[n, r] := L^-1 X
    upper(u, ld, n, x, ldx, r)                 X[n, r] := U^-1 X

Rows lie side by side in memory and `ld` elements apart; extents are arguments, so that one text serves
all sizes. Each function halves its columns until a leaf of `LANES` columns is left, whose rows are
vectors; all other work is products of matrices (`cpu_blocks`).

S. Toledo, Locality of reference in LU decomposition with partial pivoting (1997); F. Gustavson,
Recursion leads to automatic variable blocking (1997).
"""

from __future__ import annotations

from functools import partial

from ...llvm.builder import Callee, Value
from ..matmul.cpu_gemm import loop
from ..matmul.cpu_tiles import multiply_add
from .cpu_blocks import BlockProducts
from .cpu_leaves import LANES, LeafEmitter, carrying


class Factors(BlockProducts):
    """The functions for one dtype, made when they are asked for."""

    # Triangular systems

    def _halves(self, e: LeafEmitter, n: Value) -> tuple[Value, Value]:
        """How many of n columns are done first, a multiple of a leaf's, and how many then."""
        half = e.b.plus(n, 2 * LANES - 1) >> 1
        first = half & (-LANES)
        return first, e.b.minus(n, first)

    def lower(self) -> Callee:
        """X[n, r] := L^-1 X. With `unit`, L's diagonal counts as ones."""
        return self._triangular("lower")

    def upper(self) -> Callee:
        """X[n, r] := U^-1 X."""
        return self._triangular("upper")

    def _triangular(self, name: str) -> Callee:
        params = dict.fromkeys(("t", "ld", "n", "x", "ldx", "r"), "i64") | {"t": "ptr", "x": "ptr"}
        return self.made(name, partial(self._triangle, name), **params, unit="i1")

    def _triangle(
        self,
        name: str,
        e: LeafEmitter,
        t: Value,
        ld: Value,
        n: Value,
        x: Value,
        ldx: Value,
        r: Value,
        unit: Value,
    ) -> None:
        subtract = self.subtract()
        single = (r <= 1) & (ldx <= 1)
        small = n <= LANES
        with e.b.when(single):
            self._triangular_vector(e, name, t, ld, n, x, unit)
        with e.b.when(~single & small):
            self._triangular_leaf(e, name, t, ld, n, x, ldx, r, unit)
        with e.b.when(~single & ~small):
            first, second = self._halves(e, n)
            left, down = e.b.times(first, ld), e.b.times(first, ldx)
            x2, t2 = e.element(x, down), e.element(t, left, first)
            corners = [(t, x, first), (t2, x2, second)]
            if name == "lower":
                c, a, b, m, k = x2, e.element(t, left), x, second, first
            else:
                corners.reverse()
                c, a, b, m, k = x, e.element(t, first), x2, first, second
            solve = self._triangular(name)
            for number, (corner, rows, size) in enumerate(corners):
                if number:
                    e.b.run(subtract, c, ldx, a, ld, b, ldx, 1, m, r, k, 0)
                e.b.run(solve, corner, ld, size, rows, ldx, r, unit)

    def _triangular_vector(
        self, e: LeafEmitter, name: str, t: Value, ld: Value, n: Value, x: Value, unit: Value
    ) -> None:
        """One column whose elements are adjacent: a row's product with what is known, by vectors."""
        with loop(e.b, 0, n, 1) as step:
            i = step if name == "lower" else e.b.minus(e.b.minus(n, 1), step)
            own = e.element(t, e.b.times(i, ld))
            lo, hi = (0, i) if name == "lower" else (e.b.plus(i, 1), n)
            with carrying(e, lo, hi, LANES, [e.everywhere(e.number(0))]) as (j, (sums,), new):
                mask = e.lanes_below(e.b.minus(hi, j))
                row = e.b.load_elements(self.dtype, e.element(own, j), LANES, mask=mask)
                known = e.b.load_elements(self.dtype, e.element(x, j), LANES, mask=mask)
                new.append(multiply_add(e.b, self.dtype, e.fused, row, known, sums))
            rest = e.b.binary("fsub", e.get(x, i), e.sum_of(sums))
            d = e.b.select(unit, e.number(1), e.get(own, i))
            e.put(e.b.binary("fdiv", rest, d), x, i)

    def _triangular_leaf(
        self,
        e: LeafEmitter,
        name: str,
        t: Value,
        ld: Value,
        n: Value,
        x: Value,
        ldx: Value,
        r: Value,
        unit: Value,
    ) -> None:
        """A row after the other, by vectors of columns."""
        one = e.number(1)
        with loop(e.b, 0, r, LANES) as c:
            mask = e.lanes_below(e.b.minus(r, c))
            with loop(e.b, 0, n, 1) as step:
                i = step if name == "lower" else e.b.minus(e.b.minus(n, 1), step)
                own, address = (
                    e.element(t, e.b.times(i, ld)),
                    e.element(x, e.b.times(i, ldx), c),
                )
                begin = e.b.load_elements(self.dtype, address, LANES, mask=mask)
                lo, hi = (0, i) if name == "lower" else (e.b.plus(i, 1), n)
                with carrying(e, lo, hi, 1, [begin]) as (j, (value,), new):
                    other = e.element(x, e.b.times(j, ldx), c)
                    row = e.b.load_elements(self.dtype, other, LANES, mask=mask)
                    new.append(e.minus_product(value, e.get(own, j), row))
                diagonal = e.get(own, i)
                d = e.b.select(unit, one, diagonal)
                quotient = e.b.binary("fdiv", value, e.everywhere(d))
                e.b.store_elements(self.dtype, quotient, address, mask=mask)

    # LU

    def lu(self) -> Callee:
        """P A = L U: L without its diagonal of ones, and U, in the memory of A. Row i was swapped with
        row pivots[i], in order. `info` is set to 1 if a pivot is zero."""
        sizes = dict.fromkeys(("ld", "m", "n"), "i64")
        return self.made("lu", self._lu, a="ptr", **sizes, pivots="ptr", info="ptr")

    def _lu(
        self, e: LeafEmitter, a: Value, ld: Value, m: Value, n: Value, pivots: Value, info: Value
    ) -> None:
        subtract, lower, swap = self.subtract(), self.lower(), self.swap_rows()
        small = n <= LANES
        with e.b.when(small):
            self._lu_leaf(e, a, ld, m, n, pivots, info)
        with e.b.when(~small):
            first, second = self._halves(e, n)
            down = e.b.times(first, ld)
            right, left = e.element(a, first), e.element(a, down)
            rest = e.element(a, down, first)
            below = e.b.minus(m, first)
            more = e.b.offset(pivots, first, "i64")
            itself = self.lu()
            e.b.run(itself, a, ld, m, first, pivots, info)
            e.b.run(swap, right, ld, second, pivots, first)
            e.b.run(lower, a, ld, first, right, ld, second, True)
            e.b.run(subtract, rest, ld, left, ld, right, ld, 1, below, second, first, 0)
            e.b.run(itself, rest, ld, below, second, more, info)
            e.b.run(swap, left, ld, first, more, second)
            with loop(e.b, first, n, 1) as j:
                pointer = e.b.offset(pivots, j, "i64")
                old = e.b.load("i64", pointer)
                e.b.store(e.b.plus(old, first), pointer)

    def _lu_leaf(
        self, e: LeafEmitter, a: Value, ld: Value, m: Value, n: Value, pivots: Value, info: Value
    ) -> None:
        """Column after column; all rows below the pivot's are moved by a multiple of it."""
        mask = e.lanes_below(n)
        with loop(e.b, 0, n, 1) as j:
            start = [e.number(-1), j]
            with carrying(e, j, m, 1, start) as (i, (best, at), new):
                x = e.get(a, e.b.times(i, ld), j)
                absolute = e.b.intrinsic("fabs", self.scalar, x)
                more = e.b.compare_floats("ogt", absolute, best)
                new.append(e.b.select(more, absolute, best))
                new.append(e.b.select(more, i, at))
            pointer = e.b.offset(pivots, j, "i64")
            e.b.store(at, pointer)
            zero = e.b.compare_floats("oeq", best, e.number(0))
            with e.b.when(zero):
                e.b.store(e.b.word(1), info)
            with e.b.when(~zero):
                mine, other = (
                    e.element(a, e.b.times(j, ld)),
                    e.element(a, e.b.times(at, ld)),
                )
                row = e.b.load_elements(self.dtype, mine, LANES, mask=mask)
                pivot_row = e.b.load_elements(self.dtype, other, LANES, mask=mask)
                e.b.store_elements(self.dtype, row, other, mask=mask)
                e.b.store_elements(self.dtype, pivot_row, mine, mask=mask)
                pivot = e.get(mine, j)
                after = e.lanes_that("sgt", j) & mask
                here = e.lanes_that("eq", j)
                with loop(e.b, e.b.plus(j, 1), m, 1) as i:
                    to = e.element(a, e.b.times(i, ld))
                    factor = e.b.binary("fdiv", e.get(to, j), pivot)
                    row = e.b.load_elements(self.dtype, to, LANES, mask=mask)
                    moved = e.minus_product(row, factor, pivot_row)
                    moved = e.choose(after, moved, e.choose(here, e.everywhere(factor), row))
                    e.b.store_elements(self.dtype, moved, to, mask=mask)

    def swap_rows(self) -> Callee:
        """Swap row i with row pivots[i], for i below k in order, in n columns."""
        sizes = {"ld": "i64", "n": "i64"}
        return self.made("swap_rows", self._swap_rows, a="ptr", **sizes, pivots="ptr", k="i64")

    def _swap_rows(
        self, e: LeafEmitter, a: Value, ld: Value, n: Value, pivots: Value, k: Value
    ) -> None:
        with loop(e.b, 0, k, 1) as i:
            pointer = e.b.offset(pivots, i, "i64")
            j = e.b.load("i64", pointer)
            with e.b.when(e.b.word(i).ne(j)):
                mine, other = (
                    e.element(a, e.b.times(i, ld)),
                    e.element(a, e.b.times(j, ld)),
                )
                with loop(e.b, 0, n, LANES) as c:
                    mask = e.lanes_below(e.b.minus(n, c))
                    here, there = e.element(mine, c), e.element(other, c)
                    x = e.b.load_elements(self.dtype, here, LANES, mask=mask)
                    y = e.b.load_elements(self.dtype, there, LANES, mask=mask)
                    e.b.store_elements(self.dtype, y, here, mask=mask)
                    e.b.store_elements(self.dtype, x, there, mask=mask)

    # Cholesky

    def cholesky(self) -> Callee:
        """The first n of m columns of L with L L^T = A, in the memory of A's lower half. `info` is set
        to 1 if A is not positive definite; what comes of it is of no use then."""
        sizes = dict.fromkeys(("ld", "m", "n"), "i64")
        return self.made("cholesky", self._cholesky, a="ptr", **sizes, info="ptr")

    def _cholesky(
        self, e: LeafEmitter, a: Value, ld: Value, m: Value, n: Value, info: Value
    ) -> None:
        subtract = self.subtract()
        small = n <= LANES
        with e.b.when(small):
            self._cholesky_corner(e, a, ld, n, info)
            self._cholesky_below(e, a, ld, m, n)
        with e.b.when(~small):
            first, second = self._halves(e, n)
            down = e.b.times(first, ld)
            left, rest = e.element(a, down), e.element(a, down, first)
            below = e.b.minus(m, first)
            itself = self.cholesky()
            e.b.run(itself, a, ld, m, first, info)
            e.b.run(subtract, rest, ld, left, ld, left, 1, ld, below, second, first, 1)
            e.b.run(itself, rest, ld, below, second, info)

    def _cholesky_corner(self, e: LeafEmitter, a: Value, ld: Value, n: Value, info: Value) -> None:
        """The leaf's own square, element by element."""
        with loop(e.b, 0, n, 1) as j:
            own = e.element(a, e.b.times(j, ld))
            square = e.get(own, j)
            positive = e.b.compare_floats("ogt", square, e.number(0))
            with e.b.when(~positive):
                e.b.store(e.b.word(1), info)
            root = e.b.intrinsic("sqrt", self.scalar, square)
            e.put(root, own, j)
            with loop(e.b, e.b.plus(j, 1), n, 1) as i:
                row = e.element(a, e.b.times(i, ld))
                x = e.b.binary("fdiv", e.get(row, j), root)
                e.put(x, row, j)
                with loop(e.b, e.b.plus(j, 1), e.b.plus(i, 1), 1) as k:
                    other = e.get(a, e.b.times(k, ld), j)
                    product = x * other
                    old = e.get(row, k)
                    e.put(old - product, row, k)

    def _cholesky_below(self, e: LeafEmitter, a: Value, ld: Value, m: Value, n: Value) -> None:
        """The rows below it: each a vector, from which the corner's columns are eliminated."""
        zero, one = e.number(0), e.number(1)
        corner = e.b.stack(f"[{LANES * LANES * self.dtype.itemsize} x i8]")
        with loop(e.b, 0, LANES, 1) as j, loop(e.b, 0, LANES, 1) as i:
            e.put(zero, corner, e.b.times(j, LANES), i)
        with loop(e.b, 0, n, 1) as j, loop(e.b, e.b.plus(j, 1), n, 1) as i:
            e.put(e.get(a, e.b.times(i, ld), j), corner, e.b.times(j, LANES), i)
        columns, roots = [], []
        for column in range(LANES):
            safe = e.element(corner, column * LANES)
            columns.append(e.b.load_elements(self.dtype, safe, LANES))
            inside = e.b.word(column) < n
            # a column that is not there is read from the first safe, and counts as one
            own = e.b.select(inside, e.b.word(column), 0)
            root = e.get(a, e.b.times(own, ld), own)
            roots.append(e.b.select(inside, root, one))
        mask = e.lanes_below(n)
        with loop(e.b, n, m, 1) as i:
            to = e.element(a, e.b.times(i, ld))
            row = e.b.load_elements(self.dtype, to, LANES, mask=mask)
            for lane, (column_below, root) in enumerate(zip(columns, roots, strict=True)):
                x = e.b.binary("fdiv", e.b.extract(row, lane), root)
                row = e.b.insert(e.minus_product(row, x, column_below), x, lane)
            e.b.store_elements(self.dtype, row, to, mask=mask)
