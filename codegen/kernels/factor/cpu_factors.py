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

from ...llvm.builder import Value
from ...llvm.instructions import number
from ...llvm.text import address
from ..matmul.cpu_gemm import loop
from .cpu_blocks import BlockProducts
from .cpu_leaves import LANES, LeafEmitter, carrying


class Factors(BlockProducts):
    """The functions for one dtype, made when they are asked for."""

    # Triangular systems

    def _halves(self, e: LeafEmitter) -> tuple[str, str]:
        """How many columns are done first, a multiple of a leaf's, and how many then."""
        half = e.b.plus("%n", 2 * LANES - 1) >> 1
        first = half & (-LANES)
        return first, e.b.minus("%n", first)

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
        small = e.b.word("%n") <= LANES
        with e.b.when(small):
            self._triangular_leaf(e, name)
        with e.b.when(~small):
            first, second = self._halves(e)
            left, down = e.b.times(first, "%ld"), e.b.times(first, "%ldx")
            x2 = e.element("%x", down)
            corners = {"%t": ("%x", first), e.element("%t", left, first): (x2, second)}
            solve = [
                f"call void {self.name(name)}(ptr {t}, i64 %ld, i64 {n}, ptr {x}, i64 %ldx, "
                "i64 %r, i1 %unit)"
                for t, (x, n) in corners.items()
            ]
            if name == "lower":
                c, a, b, m, k = x2, e.element("%t", left), "%x", second, first
            else:
                solve.reverse()
                c, a, b, m, k = "%x", e.element("%t", first), x2, first, second
            e.b.line(solve[0])
            e.b.line(
                f"call void {subtract}(ptr {c}, i64 %ldx, ptr {a}, i64 %ld, ptr {b}, i64 %ldx, "
                f"i64 1, i64 {m}, i64 %r, i64 {k}, i64 0)"
            )
            e.b.line(solve[1])
        self.define(name, parts, e)
        return self.name(name)

    def _triangular_leaf(self, e: LeafEmitter, name: str) -> None:
        """A row after the other, by vectors of columns."""
        one = number(1, self.dtype)
        with loop(e.b, "0", "%r", LANES) as c:
            mask = e.lanes_below(e.b.minus("%r", c))
            with loop(e.b, "0", "%n", 1) as step:
                i = step if name == "lower" else e.b.minus(e.b.minus("%n", 1), step)
                own, address = (
                    e.element("%t", e.b.times(i, "%ld")),
                    e.element("%x", e.b.times(i, "%ldx"), c),
                )
                begin = e.b.load_elements(self.dtype, address, LANES, mask=mask)
                lo, hi = ("0", i) if name == "lower" else (e.b.plus(i, 1), "%n")
                with carrying(e, lo, hi, 1, [(e.vector, begin)]) as (j, (value,), new):
                    other = e.element("%x", e.b.times(j, "%ldx"), c)
                    row = e.b.load_elements(self.dtype, other, LANES, mask=mask)
                    new.append(e.minus_product(value, e.get(own, j), row))
                diagonal = e.get(own, i)
                d = e.b.select(e.b.literal("i1", "%unit"), one, diagonal)
                quotient = e.b.binary("fdiv", value, e.everywhere(d))
                e.b.store_elements(self.dtype, quotient, address, LANES, mask=mask)

    # LU

    def lu(self) -> str:
        """P A = L U: L without its diagonal of ones, and U, in the memory of A. Row i was swapped with
        row pivots[i], in order. `info` is set to 1 if a pivot is zero."""
        if self.begun("lu"):
            return self.name("lu")
        subtract, lower, swap = self.subtract(), self.lower(), self.swap_rows()
        e = LeafEmitter(self.target, self.dtype)
        small = e.b.word("%n") <= LANES
        with e.b.when(small):
            self._lu_leaf(e)
        with e.b.when(~small):
            first, second = self._halves(e)
            down = e.b.times(first, "%ld")
            right, left = e.element("%a", first), e.element("%a", down)
            rest = e.element("%a", down, first)
            below = e.b.minus("%m", first)
            more = e.b.offset(Value("ptr", "%pivots"), first, "i64")
            itself = self.name("lu")
            e.b.line(
                f"call void {itself}(ptr %a, i64 %ld, i64 %m, i64 {first}, ptr %pivots, ptr %info)"
            )
            e.b.line(
                f"call void {swap}(ptr {right}, i64 %ld, i64 {second}, ptr %pivots, i64 {first})"
            )
            e.b.line(
                f"call void {lower}(ptr %a, i64 %ld, i64 {first}, ptr {right}, i64 %ld, "
                f"i64 {second}, i1 true)"
            )
            e.b.line(
                f"call void {subtract}(ptr {rest}, i64 %ld, ptr {left}, i64 %ld, ptr {right}, "
                f"i64 %ld, i64 1, i64 {below}, i64 {second}, i64 {first}, i64 0)"
            )
            e.b.line(
                f"call void {itself}(ptr {rest}, i64 %ld, i64 {below}, i64 {second}, ptr {more}, "
                "ptr %info)"
            )
            e.b.line(
                f"call void {swap}(ptr {left}, i64 %ld, i64 {first}, ptr {more}, i64 {second})"
            )
            with loop(e.b, first, "%n", 1) as j:
                pointer = e.b.offset(Value("ptr", "%pivots"), j, "i64")
                old = e.b.load("i64", pointer)
                e.b.store(e.b.word(e.b.plus(old, first)), pointer)
        self.define("lu", "ptr %a, i64 %ld, i64 %m, i64 %n, ptr %pivots, ptr %info", e)
        return self.name("lu")

    def _lu_leaf(self, e: LeafEmitter) -> None:
        """Column after column; all rows below the pivot's are moved by a multiple of it."""
        mask = e.lanes_below("%n")
        with loop(e.b, "0", "%n", 1) as j:
            start = [(self.scalar, number(-1, self.dtype)), ("i64", j)]
            with carrying(e, j, "%m", 1, start) as (i, (best, at), new):
                x = e.get("%a", e.b.times(i, "%ld"), j)
                absolute = e.b.intrinsic("fabs", self.scalar, x)
                more = e.b.compare_floats("ogt", absolute, best)
                new.append(e.b.select(more, absolute, best))
                new.append(e.b.select(more, i, at))
            pointer = e.b.offset(Value("ptr", "%pivots"), j, "i64")
            e.b.store(e.b.word(at), pointer)
            zero = e.b.compare_floats("oeq", best, number(0, self.dtype))
            with e.b.when(zero):
                e.b.store(e.b.word(1), address("%info"))
            with e.b.when(~zero):
                mine, other = (
                    e.element("%a", e.b.times(j, "%ld")),
                    e.element("%a", e.b.times(at, "%ld")),
                )
                row = e.b.load_elements(self.dtype, mine, LANES, mask=mask)
                pivot_row = e.b.load_elements(self.dtype, other, LANES, mask=mask)
                e.b.store_elements(self.dtype, row, other, LANES, mask=mask)
                e.b.store_elements(self.dtype, pivot_row, mine, LANES, mask=mask)
                pivot = e.get(mine, j)
                after = e.lanes_that("sgt", j) & mask
                here = e.lanes_that("eq", j)
                with loop(e.b, e.b.plus(j, 1), "%m", 1) as i:
                    to = e.element("%a", e.b.times(i, "%ld"))
                    factor = e.b.binary("fdiv", e.get(to, j), pivot)
                    row = e.b.load_elements(self.dtype, to, LANES, mask=mask)
                    moved = e.minus_product(row, factor, pivot_row)
                    moved = e.choose(after, moved, e.choose(here, e.everywhere(factor), row))
                    e.b.store_elements(self.dtype, moved, to, LANES, mask=mask)

    def swap_rows(self) -> str:
        """Swap row i with row pivots[i], for i below k in order, in n columns."""
        if self.begun("swap_rows"):
            return self.name("swap_rows")
        e = LeafEmitter(self.target, self.dtype)
        with loop(e.b, "0", "%k", 1) as i:
            pointer = e.b.offset(Value("ptr", "%pivots"), i, "i64")
            j = e.b.load("i64", pointer)
            with e.b.when(e.b.word(i).ne(j)):
                mine, other = (
                    e.element("%a", e.b.times(i, "%ld")),
                    e.element("%a", e.b.times(j, "%ld")),
                )
                with loop(e.b, "0", "%n", LANES) as c:
                    mask = e.lanes_below(e.b.minus("%n", c))
                    here, there = e.element(mine, c), e.element(other, c)
                    x = e.b.load_elements(self.dtype, here, LANES, mask=mask)
                    y = e.b.load_elements(self.dtype, there, LANES, mask=mask)
                    e.b.store_elements(self.dtype, y, here, LANES, mask=mask)
                    e.b.store_elements(self.dtype, x, there, LANES, mask=mask)
        self.define("swap_rows", "ptr %a, i64 %ld, i64 %n, ptr %pivots, i64 %k", e)
        return self.name("swap_rows")

    # Cholesky

    def cholesky(self) -> str:
        """The first n of m columns of L with L L^T = A, in the memory of A's lower half. `info` is set
        to 1 if A is not positive definite; what comes of it is of no use then."""
        if self.begun("cholesky"):
            return self.name("cholesky")
        subtract = self.subtract()
        e = LeafEmitter(self.target, self.dtype)
        small = e.b.word("%n") <= LANES
        with e.b.when(small):
            self._cholesky_corner(e)
            self._cholesky_below(e)
        with e.b.when(~small):
            first, second = self._halves(e)
            down = e.b.times(first, "%ld")
            left, rest = e.element("%a", down), e.element("%a", down, first)
            below = e.b.minus("%m", first)
            itself = self.name("cholesky")
            e.b.line(f"call void {itself}(ptr %a, i64 %ld, i64 %m, i64 {first}, ptr %info)")
            e.b.line(
                f"call void {subtract}(ptr {rest}, i64 %ld, ptr {left}, i64 %ld, ptr {left}, "
                f"i64 1, i64 %ld, i64 {below}, i64 {second}, i64 {first}, i64 1)"
            )
            e.b.line(
                f"call void {itself}(ptr {rest}, i64 %ld, i64 {below}, i64 {second}, ptr %info)"
            )
        self.define("cholesky", "ptr %a, i64 %ld, i64 %m, i64 %n, ptr %info", e)
        return self.name("cholesky")

    def _cholesky_corner(self, e: LeafEmitter) -> None:
        """The leaf's own square, element by element."""
        with loop(e.b, "0", "%n", 1) as j:
            own = e.element("%a", e.b.times(j, "%ld"))
            square = e.get(own, j)
            positive = e.b.compare_floats("ogt", square, number(0, self.dtype))
            with e.b.when(~positive):
                e.b.store(e.b.word(1), address("%info"))
            root = e.b.intrinsic("sqrt", self.scalar, square)
            e.put(root, own, j)
            with loop(e.b, e.b.plus(j, 1), "%n", 1) as i:
                row = e.element("%a", e.b.times(i, "%ld"))
                x = e.b.binary("fdiv", e.get(row, j), root)
                e.put(x, row, j)
                with loop(e.b, e.b.plus(j, 1), e.b.plus(i, 1), 1) as k:
                    other = e.get("%a", e.b.times(k, "%ld"), j)
                    product = x * other
                    old = e.get(row, k)
                    e.put(old - product, row, k)

    def _cholesky_below(self, e: LeafEmitter) -> None:
        """The rows below it: each a vector, from which the corner's columns are eliminated."""
        zero, one = number(0, self.dtype), number(1, self.dtype)
        corner = f"corner{next(e.b.names)}"
        nbytes = LANES * LANES * self.dtype.itemsize
        e.b.code.start.append(f"  %{corner} = alloca [{nbytes} x i8], align 64")
        with loop(e.b, "0", str(LANES), 1) as j, loop(e.b, "0", str(LANES), 1) as i:
            e.put(zero, f"%{corner}", e.b.times(j, LANES), i)
        with loop(e.b, "0", "%n", 1) as j, loop(e.b, e.b.plus(j, 1), "%n", 1) as i:
            e.put(e.get("%a", e.b.times(i, "%ld"), j), f"%{corner}", e.b.times(j, LANES), i)
        columns, roots = [], []
        for column in range(LANES):
            columns.append(
                e.b.load_elements(self.dtype, e.element(f"%{corner}", str(column * LANES)), LANES)
            )
            inside = e.b.word(column) < "%n"
            # a column that is not there is read from the first column, and counts as one
            safe = e.b.select(inside, e.b.word(column), 0)
            root = e.get("%a", e.b.times(safe, "%ld"), safe)
            roots.append(e.b.select(inside, root, one))
        mask = e.lanes_below("%n")
        with loop(e.b, "%n", "%m", 1) as i:
            to = e.element("%a", e.b.times(i, "%ld"))
            row = e.b.load_elements(self.dtype, to, LANES, mask=mask)
            for lane, (column_below, root) in enumerate(zip(columns, roots, strict=True)):
                x = e.b.binary("fdiv", e.b.extract(row, lane), root)
                row = e.b.insert(e.minus_product(row, x, column_below), x, lane)
            e.b.store_elements(self.dtype, row, to, LANES, mask=mask)
