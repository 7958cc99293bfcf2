"""Factorisations of matrices in place, as LLVM functions that call each other and themselves.

    lu(a, ld, m, n, pivots, info)              P A = L U by rows, m >= n
    cholesky(a, ld, m, n, info)                n columns of L with L L^T = A, from A's lower half
    lower(l, ld, n, x, ldx, r, unit)           X[n, r] := L^-1 X
    upper(u, ld, n, x, ldx, r)                 X[n, r] := U^-1 X

Rows lie side by side in memory and `ld` elements apart; extents are arguments, so that one text serves
all sizes. Each function halves its columns until a leaf of `LANES` columns is left, whose rows are
vectors; all other work is products of matrices (`block_products`).

S. Toledo, Locality of reference in LU decomposition with partial pivoting (1997); F. Gustavson,
Recursion leads to automatic variable blocking (1997).
"""

from __future__ import annotations

from .block_products import BlockProducts
from .gemm import loop
from .instructions import intrinsic, number
from .leaves import LANES, LeafEmitter, carrying


class Factors(BlockProducts):
    """The functions for one dtype, made when they are asked for."""

    # Triangular systems

    def _halves(self, e: LeafEmitter) -> tuple[str, str]:
        """How many columns are done first, a multiple of a leaf's, and how many then."""
        half = e.value_of(f"lshr i64 {e.plus('%n', 2 * LANES - 1)}, 1")
        first = e.value_of(f"and i64 {half}, {-LANES}")
        return first, e.minus("%n", first)

    def lower(self) -> str:
        """X[n, r] := L^-1 X. With `unit`, L's diagonal counts as ones."""
        return self._triangular("lower")

    def upper(self) -> str:
        """X[n, r] := U^-1 X."""
        return self._triangular("upper")

    def _triangular(self, name: str) -> str:
        if self.begun(name):
            return self.name(name)
        subtract = self.subtract()
        e = LeafEmitter(self.target, self.dtype)
        parts = "ptr %t, i64 %ld, i64 %n, ptr %x, i64 %ldx, i64 %r, i1 %unit"
        small = e.compare("sle", "%n", LANES)
        with e.when(small):
            self._triangular_leaf(e, name)
        with e.when(e.value_of(f"xor i1 {small}, true")):
            first, second = self._halves(e)
            left, down = e.times(first, "%ld"), e.times(first, "%ldx")
            x2 = e.at("%x", down)
            corners = {"%t": ("%x", first), e.at("%t", left, first): (x2, second)}
            solve = [
                f"call void {self.name(name)}(ptr {t}, i64 %ld, i64 {n}, ptr {x}, i64 %ldx, "
                "i64 %r, i1 %unit)"
                for t, (x, n) in corners.items()
            ]
            if name == "lower":
                c, a, b, m, k = x2, e.at("%t", left), "%x", second, first
            else:
                solve.reverse()
                c, a, b, m, k = "%x", e.at("%t", first), x2, first, second
            e.line(solve[0])
            e.line(
                f"call void {subtract}(ptr {c}, i64 %ldx, ptr {a}, i64 %ld, ptr {b}, i64 %ldx, "
                f"i64 1, i64 {m}, i64 %r, i64 {k}, i64 0)"
            )
            e.line(solve[1])
        self.define(name, parts, e)
        return self.name(name)

    def _triangular_leaf(self, e: LeafEmitter, name: str) -> None:
        """A row after the other, by vectors of columns."""
        one = number(1, self.dtype)
        with loop(e, "0", "%r", LANES) as c:
            mask = e.lanes_below(e.minus("%r", c))
            with loop(e, "0", "%n", 1) as step:
                i = step if name == "lower" else e.minus(e.minus("%n", 1), step)
                own, place = e.at("%t", e.times(i, "%ld")), e.at("%x", e.times(i, "%ldx"), c)
                begin = e.load(self.dtype, place, LANES, mask=mask)
                lo, hi = ("0", i) if name == "lower" else (e.plus(i, 1), "%n")
                with carrying(e, lo, hi, 1, [(e.vector, begin)]) as (j, (value,), new):
                    other = e.at("%x", e.times(j, "%ldx"), c)
                    row = e.load(self.dtype, other, LANES, mask=mask)
                    new.append(e.minus_product(value, e.get(own, j), row))
                diagonal = e.get(own, i)
                d = e.value_of(f"select i1 %unit, {self.scalar} {one}, {self.scalar} {diagonal}")
                quotient = e.value_of(f"fdiv {e.vector} {value}, {e.everywhere(d)}")
                e.store(self.dtype, quotient, place, LANES, mask=mask)

    # LU

    def lu(self) -> str:
        """P A = L U: L without its diagonal of ones, and U, in the place of A. Row i was swapped with
        row pivots[i], in order. `info` is set to 1 if a pivot is zero."""
        if self.begun("lu"):
            return self.name("lu")
        subtract, lower, swap = self.subtract(), self.lower(), self.swap_rows()
        e = LeafEmitter(self.target, self.dtype)
        small = e.compare("sle", "%n", LANES)
        with e.when(small):
            self._lu_leaf(e)
        with e.when(e.value_of(f"xor i1 {small}, true")):
            first, second = self._halves(e)
            down = e.times(first, "%ld")
            right, left = e.at("%a", first), e.at("%a", down)
            rest = e.at("%a", down, first)
            below = e.minus("%m", first)
            more = e.value_of(f"getelementptr i64, ptr %pivots, i64 {first}")
            itself = self.name("lu")
            e.line(
                f"call void {itself}(ptr %a, i64 %ld, i64 %m, i64 {first}, ptr %pivots, ptr %info)"
            )
            e.line(
                f"call void {swap}(ptr {right}, i64 %ld, i64 {second}, ptr %pivots, i64 {first})"
            )
            e.line(
                f"call void {lower}(ptr %a, i64 %ld, i64 {first}, ptr {right}, i64 %ld, "
                f"i64 {second}, i1 true)"
            )
            e.line(
                f"call void {subtract}(ptr {rest}, i64 %ld, ptr {left}, i64 %ld, ptr {right}, "
                f"i64 %ld, i64 1, i64 {below}, i64 {second}, i64 {first}, i64 0)"
            )
            e.line(
                f"call void {itself}(ptr {rest}, i64 %ld, i64 {below}, i64 {second}, ptr {more}, "
                "ptr %info)"
            )
            e.line(f"call void {swap}(ptr {left}, i64 %ld, i64 {first}, ptr {more}, i64 {second})")
            with loop(e, first, "%n", 1) as j:
                place = e.value_of(f"getelementptr i64, ptr %pivots, i64 {j}")
                old = e.fresh(f"load i64, ptr {place}, align 8")
                e.line(f"store i64 {e.plus(old, first)}, ptr {place}, align 8")
        self.define("lu", "ptr %a, i64 %ld, i64 %m, i64 %n, ptr %pivots, ptr %info", e)
        return self.name("lu")

    def _lu_leaf(self, e: LeafEmitter) -> None:
        """Column after column; all rows below the pivot's are moved by a multiple of it."""
        mask = e.lanes_below("%n")
        with loop(e, "0", "%n", 1) as j:
            start = [(self.scalar, number(-1, self.dtype)), ("i64", j)]
            with carrying(e, j, "%m", 1, start) as (i, (best, at), new):
                x = e.get("%a", e.times(i, "%ld"), j)
                absolute = intrinsic(e, "fabs", self.dtype, 1, (x,))
                more = e.value_of(f"fcmp ogt {self.scalar} {absolute}, {best}")
                new.append(
                    e.value_of(f"select i1 {more}, {self.scalar} {absolute}, {self.scalar} {best}")
                )
                new.append(e.value_of(f"select i1 {more}, i64 {i}, i64 {at}"))
            place = e.value_of(f"getelementptr i64, ptr %pivots, i64 {j}")
            e.line(f"store i64 {at}, ptr {place}, align 8")
            zero = e.value_of(f"fcmp oeq {self.scalar} {best}, {number(0, self.dtype)}")
            with e.when(zero):
                e.line("store i64 1, ptr %info, align 8")
            with e.when(e.value_of(f"xor i1 {zero}, true")):
                mine, other = e.at("%a", e.times(j, "%ld")), e.at("%a", e.times(at, "%ld"))
                row = e.load(self.dtype, mine, LANES, mask=mask)
                pivot_row = e.load(self.dtype, other, LANES, mask=mask)
                e.store(self.dtype, row, other, LANES, mask=mask)
                e.store(self.dtype, pivot_row, mine, LANES, mask=mask)
                pivot = e.get(mine, j)
                after = e.both(e.lanes_that("sgt", j), mask)
                here = e.lanes_that("eq", j)
                with loop(e, e.plus(j, 1), "%m", 1) as i:
                    to = e.at("%a", e.times(i, "%ld"))
                    factor = e.value_of(f"fdiv {self.scalar} {e.get(to, j)}, {pivot}")
                    row = e.load(self.dtype, to, LANES, mask=mask)
                    moved = e.minus_product(row, factor, pivot_row)
                    moved = e.choose(after, moved, e.choose(here, e.everywhere(factor), row))
                    e.store(self.dtype, moved, to, LANES, mask=mask)

    def swap_rows(self) -> str:
        """Swap row i with row pivots[i], for i below k in order, in n columns."""
        if self.begun("swap_rows"):
            return self.name("swap_rows")
        e = LeafEmitter(self.target, self.dtype)
        with loop(e, "0", "%k", 1) as i:
            place = e.value_of(f"getelementptr i64, ptr %pivots, i64 {i}")
            j = e.fresh(f"load i64, ptr {place}, align 8")
            with e.when(e.compare("ne", i, j)):
                mine, other = e.at("%a", e.times(i, "%ld")), e.at("%a", e.times(j, "%ld"))
                with loop(e, "0", "%n", LANES) as c:
                    mask = e.lanes_below(e.minus("%n", c))
                    here, there = e.at(mine, c), e.at(other, c)
                    x = e.load(self.dtype, here, LANES, mask=mask)
                    y = e.load(self.dtype, there, LANES, mask=mask)
                    e.store(self.dtype, y, here, LANES, mask=mask)
                    e.store(self.dtype, x, there, LANES, mask=mask)
        self.define("swap_rows", "ptr %a, i64 %ld, i64 %n, ptr %pivots, i64 %k", e)
        return self.name("swap_rows")

    # Cholesky

    def cholesky(self) -> str:
        """The first n of m columns of L with L L^T = A, in the place of A's lower half. `info` is set
        to 1 if A is not positive definite; what comes of it is of no use then."""
        if self.begun("cholesky"):
            return self.name("cholesky")
        subtract = self.subtract()
        e = LeafEmitter(self.target, self.dtype)
        small = e.compare("sle", "%n", LANES)
        with e.when(small):
            self._cholesky_corner(e)
            self._cholesky_below(e)
        with e.when(e.value_of(f"xor i1 {small}, true")):
            first, second = self._halves(e)
            down = e.times(first, "%ld")
            left, rest = e.at("%a", down), e.at("%a", down, first)
            below = e.minus("%m", first)
            itself = self.name("cholesky")
            e.line(f"call void {itself}(ptr %a, i64 %ld, i64 %m, i64 {first}, ptr %info)")
            e.line(
                f"call void {subtract}(ptr {rest}, i64 %ld, ptr {left}, i64 %ld, ptr {left}, "
                f"i64 1, i64 %ld, i64 {below}, i64 {second}, i64 {first}, i64 1)"
            )
            e.line(f"call void {itself}(ptr {rest}, i64 %ld, i64 {below}, i64 {second}, ptr %info)")
        self.define("cholesky", "ptr %a, i64 %ld, i64 %m, i64 %n, ptr %info", e)
        return self.name("cholesky")

    def _cholesky_corner(self, e: LeafEmitter) -> None:
        """The leaf's own square, element by element."""
        with loop(e, "0", "%n", 1) as j:
            own = e.at("%a", e.times(j, "%ld"))
            square = e.get(own, j)
            positive = e.value_of(f"fcmp ogt {self.scalar} {square}, {number(0, self.dtype)}")
            with e.when(e.value_of(f"xor i1 {positive}, true")):
                e.line("store i64 1, ptr %info, align 8")
            root = intrinsic(e, "sqrt", self.dtype, 1, (square,))
            e.put(root, own, j)
            with loop(e, e.plus(j, 1), "%n", 1) as i:
                row = e.at("%a", e.times(i, "%ld"))
                x = e.value_of(f"fdiv {self.scalar} {e.get(row, j)}, {root}")
                e.put(x, row, j)
                with loop(e, e.plus(j, 1), e.plus(i, 1), 1) as k:
                    other = e.get("%a", e.times(k, "%ld"), j)
                    product = e.value_of(f"fmul {self.scalar} {x}, {other}")
                    old = e.get(row, k)
                    e.put(e.value_of(f"fsub {self.scalar} {old}, {product}"), row, k)

    def _cholesky_below(self, e: LeafEmitter) -> None:
        """The rows below it: each a vector, from which the corner's columns are eliminated."""
        zero, one = number(0, self.dtype), number(1, self.dtype)
        corner = e.new_label("corner")
        nbytes = LANES * LANES * self.dtype.itemsize
        e.lines.insert(0, f"  %{corner} = alloca [{nbytes} x i8], align 64")
        with loop(e, "0", str(LANES), 1) as j, loop(e, "0", str(LANES), 1) as i:
            e.put(zero, f"%{corner}", e.times(j, LANES), i)
        with loop(e, "0", "%n", 1) as j, loop(e, e.plus(j, 1), "%n", 1) as i:
            e.put(e.get("%a", e.times(i, "%ld"), j), f"%{corner}", e.times(j, LANES), i)
        columns, roots = [], []
        for column in range(LANES):
            columns.append(e.load(self.dtype, e.at(f"%{corner}", str(column * LANES)), LANES))
            inside = e.compare("slt", str(column), "%n")
            # a column that is not there is read from the first place, and counts as one
            place = e.value_of(f"select i1 {inside}, i64 {column}, i64 0")
            root = e.get("%a", e.times(place, "%ld"), place)
            roots.append(
                e.value_of(f"select i1 {inside}, {self.scalar} {root}, {self.scalar} {one}")
            )
        mask = e.lanes_below("%n")
        with loop(e, "%n", "%m", 1) as i:
            to = e.at("%a", e.times(i, "%ld"))
            row = e.load(self.dtype, to, LANES, mask=mask)
            for lane, (column_below, root) in enumerate(zip(columns, roots, strict=True)):
                x = e.value_of(f"extractelement {e.vector} {row}, i64 {lane}")
                x = e.value_of(f"fdiv {self.scalar} {x}, {root}")
                row = e.minus_product(row, x, column_below)
                row = e.value_of(f"insertelement {e.vector} {row}, {self.scalar} {x}, i64 {lane}")
            e.store(self.dtype, row, to, LANES, mask=mask)
