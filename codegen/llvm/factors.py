"""Factorisations of matrices in place, as LLVM functions that call each other and themselves.

    subtract(c, ldc, a, lda, b, brow, bcol, m, n, k, triangle)      C[m, n] -= A[m, k] @ B[k, n]
    lu(a, ld, m, n, pivots, info)              P A = L U by rows, m >= n
    cholesky(a, ld, m, n, info)                n columns of L with L L^T = A, from A's lower half
    lower(l, ld, n, x, ldx, r, unit)           X[n, r] := L^-1 X
    upper(u, ld, n, x, ldx, r)                 X[n, r] := U^-1 X

Rows lie side by side in memory and `ld` elements apart; extents are arguments, so that one text serves
all sizes. Each function halves its columns until a leaf of `LANES` columns is left, whose rows are
vectors; all other work is `subtract`, a product of matrices by the micro-kernels of `tiles`, whose
panels of columns threads share. S. Toledo, Locality of reference in LU decomposition with partial
pivoting (1997); F. Gustavson, Recursion leads to automatic variable blocking (1997).

Micro-kernels read `ROWS` - 1 rows beyond the last of A, and leaves `LANES` - 1 columns beyond the last:
memory has to be there, but what is in it does not matter. Sums do not depend on the threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..blocking import tile_shapes
from ..scalar import DType
from ..target import Target
from ..tiled import Factorisation
from .gemm import loop
from .instructions import SCALAR_TYPES, intrinsic, number, type_text
from .text import Operand
from .tiles import Function, element, has_fma, multiply_add, tile_function
from .whole import Whole

LANES = 8  # columns of a leaf
ROWS = 8  # of a tile, at the most
DEPTH = (
    128  # terms that are added up in registers: a panel of B of that height is in the nearest cache
)
SHARED = 1 << 18  # multiply-adds from which threads share a product


class _Body(Whole):
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
    e: _Body, lo: str, hi: str, step: int, carried: Sequence[tuple[str, str]]
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


class Factors:
    """The functions for one dtype, made when they are asked for; `texts` are in the order of need."""

    def __init__(self, target: Target, dtype: DType) -> None:
        self.target = target
        self.dtype = dtype
        self.kind = f"f{8 * dtype.itemsize}"
        self.scalar = SCALAR_TYPES[dtype]
        shapes = [(min(rows, ROWS), vectors) for rows, vectors in tile_shapes(target)]
        self.rows, vectors = max(shapes, key=lambda s: s[0] * s[1] / (s[0] + s[1]))
        self.panel = vectors * target.lanes(dtype.itemsize)
        self.vectors = vectors
        self.texts: dict[str, str] = {}
        self.declarations: set[str] = {f"declare void @{Target.PARALLEL_FOR}(ptr, ptr, i64, i64)"}
        self.imports = {Target.PARALLEL_FOR}

    def _define(self, name: str, parameters: str, e: _Body) -> str:
        full = f"{name}_{self.kind}"
        body = "\n".join(e.lines)
        self.texts[full] = (
            f"define internal void @{full}({parameters}) nounwind {{\nentry:\n{body}\n  ret void\n}}\n"
        )
        self.declarations |= set(e.declarations)
        return full

    def _begun(self, name: str) -> bool:
        """Whether a function is there, or is being made (it calls itself)."""
        full = f"{name}_{self.kind}"
        if full in self.texts:
            return True
        self.texts[full] = ""
        return False

    def _name(self, name: str) -> str:
        return f"@{name}_{self.kind}"

    # Products

    def _tile(self) -> str:
        tile: Function = tile_function(self.target, self.dtype, self.rows, self.vectors)
        self.texts[tile.name] = tile.text
        self.declarations |= tile.declarations
        return f"@{tile.name}"

    def subtract(self) -> str:
        """C[m, n] -= A[m, k] @ B[k, n]. B's elements are `brow` and `bcol` apart, one of which is 1.
        With `triangle`, only what is on and below the diagonal of C is wanted."""
        if self._begun("subtract"):
            return self._name("subtract")
        unit = self._panels()
        e = _Body(self.target, self.dtype)
        words = "c a b ldc lda brow bcol m n k triangle".split()
        e.line(f"%words = alloca [{len(words)} x i64], align 16")
        for position, word in enumerate(words):
            ty = "ptr" if word in ("c", "a", "b") else "i64"
            place = e.value_of(f"getelementptr i64, ptr %words, i64 {position}")
            e.line(f"store {ty} %{word}, ptr {place}, align 8")
        area = e.value_of("mul i64 %m, %n")
        work = e.value_of(f"mul i64 {area}, %k")
        more = e.value_of(f"add i64 %n, {self.panel - 1}")
        count = e.value_of(f"udiv i64 {more}, {self.panel}")
        few = e.compare("slt", work, SHARED)
        with e.when(few), e.when(e.compare("sgt", work, 0)):
            e.line(f"call void {unit}(ptr %words, i64 0, i64 {count})")
        with e.when(e.value_of(f"xor i1 {few}, true")):
            e.line(f"call void @{Target.PARALLEL_FOR}(ptr {unit}, ptr %words, i64 {count}, i64 1)")
        self._define(
            "subtract",
            "ptr %c, i64 %ldc, ptr %a, i64 %lda, ptr %b, i64 %brow, i64 %bcol, i64 %m, i64 %n, "
            "i64 %k, i64 %triangle",
            e,
        )
        return self._name("subtract")

    def _panels(self) -> str:
        """The panels lo to hi of such a product: -B is packed, and all tiles pass by."""
        name, tile = "subtract_panels", self._tile()
        e = _Body(self.target, self.dtype)
        size = self.dtype.itemsize
        e.line(f"%pack = alloca [{DEPTH * self.panel * size} x i8], align 64")
        e.line(f"%edge = alloca [{self.rows * self.panel * size} x i8], align 64")
        for position, word in enumerate("c a b ldc lda brow bcol m n k triangle".split()):
            ty = "ptr" if word in ("c", "a", "b") else "i64"
            place = e.value_of(f"getelementptr i64, ptr %words, i64 {position}")
            e.line(f"%{word} = load {ty}, ptr {place}, align 8")
        with loop(e, "%lo", "%hi", 1) as p:
            first = e.times(p, self.panel)
            width = e.least(e.minus("%n", first), self.panel)
            whole = e.compare("eq", width, self.panel)
            tiles_above, _ = e.split(first, self.rows)
            top = e.value_of(f"mul i64 {e.times(tiles_above, self.rows)}, %triangle")
            with loop(e, "0", "%k", DEPTH) as k:
                depth = e.least(e.minus("%k", k), DEPTH)
                b = e.at("%b", e.times(k, "%brow"), e.times(first, "%bcol"))
                self._pack(e, b, depth, width)
                a = e.at("%a", k)
                with loop(e, top, "%m", self.rows) as i:
                    left = e.at(a, e.times(i, "%lda"))
                    out = e.at("%c", e.times(i, "%ldc"), first)
                    height = e.least(e.minus("%m", i), self.rows)
                    fits = e.value_of(f"and i1 {whole}, {e.compare('eq', height, self.rows)}")
                    with e.when(fits):
                        self._call_tile(e, tile, left, out, "%ldc", depth, "true")
                    with e.when(e.value_of(f"xor i1 {fits}, true")):
                        self._call_tile(e, tile, left, "%edge", str(self.panel), depth, "false")
                        self._add_edge(e, out, height, width)
        return f"@{self._define(name, 'ptr %words, i64 %lo, i64 %hi', e)}"

    def _call_tile(
        self, e: _Body, tile: str, a: str, c: str, c_step: str, depth: str, add: str
    ) -> None:
        e.line(
            f"call void {tile}(ptr {a}, i64 %lda, ptr %pack, i64 {self.panel}, ptr {c}, "
            f"i64 {c_step}, i64 {depth}, i1 {add}, i32 0, ptr null, i64 0)"
        )

    def _pack(self, e: _Body, b: str, depth: str, width: str) -> None:
        """-B in rows of a panel, the last columns filled up."""
        beside = e.compare("eq", "%bcol", 1)
        with e.when(beside), loop(e, "0", depth, 1) as i:
            row, to = e.at(b, e.times(i, "%brow")), e.at("%pack", e.times(i, self.panel))
            for start in range(0, self.panel, LANES):
                mask = e.lanes_below(e.minus(width, start))
                x = e.load(self.dtype, e.at(row, str(start)), LANES, mask=mask)
                negated = e.value_of(f"fneg {e.vector} {x}")
                e.store(self.dtype, negated, e.at(to, str(start)), LANES)
        with e.when(e.value_of(f"xor i1 {beside}, true")), loop(e, "0", depth, 1) as i:
            row, to = e.at(b, i), e.at("%pack", e.times(i, self.panel))
            with loop(e, "0", width, 1) as j:
                x = e.get(row, e.times(j, "%bcol"))
                e.put(e.value_of(f"fneg {self.scalar} {x}"), to, j)
            with loop(e, width, str(self.panel), 1) as j:
                e.put(number(0, self.dtype), to, j)

    def _add_edge(self, e: _Body, out: str, height: str, width: str) -> None:
        with loop(e, "0", height, 1) as i:
            source, to = e.at("%edge", e.times(i, self.panel)), e.at(out, e.times(i, "%ldc"))
            with loop(e, "0", width, LANES) as j:
                mask = e.lanes_below(e.minus(width, j))
                new = e.load(self.dtype, e.at(source, j), LANES)
                old = e.load(self.dtype, e.at(to, j), LANES, mask=mask)
                total = e.value_of(f"fadd {e.vector} {old}, {new}")
                e.store(self.dtype, total, e.at(to, j), LANES, mask=mask)

    # Triangular systems

    def _halves(self, e: _Body) -> tuple[str, str]:
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
        if self._begun(name):
            return self._name(name)
        subtract = self.subtract()
        e = _Body(self.target, self.dtype)
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
                f"call void {self._name(name)}(ptr {t}, i64 %ld, i64 {n}, ptr {x}, i64 %ldx, "
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
        self._define(name, parts, e)
        return self._name(name)

    def _triangular_leaf(self, e: _Body, name: str) -> None:
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
        if self._begun("lu"):
            return self._name("lu")
        subtract, lower, swap = self.subtract(), self.lower(), self.swap_rows()
        e = _Body(self.target, self.dtype)
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
            itself = self._name("lu")
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
        self._define("lu", "ptr %a, i64 %ld, i64 %m, i64 %n, ptr %pivots, ptr %info", e)
        return self._name("lu")

    def _lu_leaf(self, e: _Body) -> None:
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
        if self._begun("swap_rows"):
            return self._name("swap_rows")
        e = _Body(self.target, self.dtype)
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
        self._define("swap_rows", "ptr %a, i64 %ld, i64 %n, ptr %pivots, i64 %k", e)
        return self._name("swap_rows")

    # Cholesky

    def cholesky(self) -> str:
        """The first n of m columns of L with L L^T = A, in the place of A's lower half. `info` is set
        to 1 if A is not positive definite; what comes of it is of no use then."""
        if self._begun("cholesky"):
            return self._name("cholesky")
        subtract = self.subtract()
        e = _Body(self.target, self.dtype)
        small = e.compare("sle", "%n", LANES)
        with e.when(small):
            self._cholesky_corner(e)
            self._cholesky_below(e)
        with e.when(e.value_of(f"xor i1 {small}, true")):
            first, second = self._halves(e)
            down = e.times(first, "%ld")
            left, rest = e.at("%a", down), e.at("%a", down, first)
            below = e.minus("%m", first)
            itself = self._name("cholesky")
            e.line(f"call void {itself}(ptr %a, i64 %ld, i64 %m, i64 {first}, ptr %info)")
            e.line(
                f"call void {subtract}(ptr {rest}, i64 %ld, ptr {left}, i64 %ld, ptr {left}, "
                f"i64 1, i64 %ld, i64 {below}, i64 {second}, i64 {first}, i64 1)"
            )
            e.line(f"call void {itself}(ptr {rest}, i64 %ld, i64 {below}, i64 {second}, ptr %info)")
        self._define("cholesky", "ptr %a, i64 %ld, i64 %m, i64 %n, ptr %info", e)
        return self._name("cholesky")

    def _cholesky_corner(self, e: _Body) -> None:
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

    def _cholesky_below(self, e: _Body) -> None:
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
        for j in range(LANES):
            columns.append(e.load(self.dtype, e.at(f"%{corner}", str(j * LANES)), LANES))
            inside = e.compare("slt", str(j), "%n")
            # a column that is not there is read from the first place, and counts as one
            place = e.value_of(f"select i1 {inside}, i64 {j}, i64 0")
            root = e.get("%a", e.times(place, "%ld"), place)
            roots.append(
                e.value_of(f"select i1 {inside}, {self.scalar} {root}, {self.scalar} {one}")
            )
        mask = e.lanes_below("%n")
        with loop(e, "%n", "%m", 1) as i:
            to = e.at("%a", e.times(i, "%ld"))
            row = e.load(self.dtype, to, LANES, mask=mask)
            for j in range(LANES):
                x = e.value_of(f"extractelement {e.vector} {row}, i64 {j}")
                x = e.value_of(f"fdiv {self.scalar} {x}, {roots[j]}")
                row = e.minus_product(row, x, columns[j])
                row = e.value_of(f"insertelement {e.vector} {row}, {self.scalar} {x}, i64 {j}")
            e.store(self.dtype, row, to, LANES, mask=mask)


def factorisation(step: Factorisation, target: Target) -> tuple[str, list[str], set[str], set[str]]:
    """What does a step's units: its text from the parameter list on, functions that it calls,
    declarations, and symbols of the runtime."""
    return _Unit(step, target).function()


class _Unit:
    """One matrix of a step after the other."""

    def __init__(self, step: Factorisation, target: Target) -> None:
        self.step = step
        self.dtype = step.work.dtype
        self.f = Factors(target, self.dtype)
        self.e = _Body(target, self.dtype)

    def function(self) -> tuple[str, list[str], set[str], set[str]]:
        e, f, step = self.e, self.f, self.step
        arrays = {"work": step.work, "x": step.x, "pivots": step.pivots}
        names = [name for name, array in arrays.items() if array is not None]
        for position, name in enumerate((*names, "status")):
            place = e.value_of(f"getelementptr ptr, ptr %ctx, i64 {position}")
            e.line(f"%{name} = load ptr, ptr {place}, align 8")
        e.line("%info = alloca i64, align 8")
        if step.kind == "lu":
            e.line(f"%swaps = alloca [{step.n} x i64], align 8")
        with loop(e, "%lo", "%hi", 1) as u:
            e.line("store i64 0, ptr %info, align 8")
            self._item(u)
        body = "\n".join(e.lines)
        text = f"(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {{\nentry:\n{body}\n  ret void\n}}\n"
        return text, list(f.texts.values()), f.declarations | set(e.declarations), f.imports

    def _item(self, u: str) -> None:
        e, step = self.e, self.step
        work = e.at("%work", e.times(u, step.height * step.pitch))
        pivots = ""
        if step.pivots is not None:
            pivots = e.value_of(f"getelementptr i64, ptr %pivots, i64 {e.times(u, step.n)}")
        if step.kind == "lu":
            self._factors(work, pivots)
            return
        if step.kind == "cholesky":
            sizes = f"i64 {step.pitch}, i64 {step.n}, i64 {step.n}"
            self._call(self.f.cholesky(), f"ptr {work}, {sizes}, ptr %info")
            self._unless_fine(work, step.n, step.pitch)
            return
        x = e.at("%x", e.times(u, step.n * step.r))
        if step.kind == "inv":
            self._identity(x)
        if step.kind in ("solve", "inv"):
            self._call(self.f.lu(), self._square(work, pivots))
            sizes = f"i64 {step.r}, i64 {step.r}, ptr {pivots}, i64 {step.n}"
            self._call(self.f.swap_rows(), f"ptr {x}, {sizes}")
            self._triangle(self.f.lower(), work, x, "true")
            self._triangle(self.f.upper(), work, x, "false")
        else:
            *unit, name = step.kind.split()
            if not unit:
                self._look_for_zeros(work)
            solve = self.f.lower() if name == "lower" else self.f.upper()
            self._triangle(solve, work, x, "true" if unit else "false")
        self._unless_fine(x, step.r, step.r)

    def _call(self, function: str, arguments: str) -> None:
        self.e.line(f"call void {function}({arguments})")

    def _square(self, work: str, pivots: str) -> str:
        n = min(self.step.n, self.step.r) if self.step.kind == "lu" else self.step.n
        sizes = f"i64 {self.step.pitch}, i64 {self.step.n}, i64 {n}"
        return f"ptr {work}, {sizes}, ptr {pivots}, ptr %info"

    def _triangle(self, function: str, work: str, x: str, unit: str) -> None:
        step = self.step
        sizes = f"i64 {step.pitch}, i64 {step.n}, ptr {x}, i64 {step.r}, i64 {step.r}"
        self._call(function, f"ptr {work}, {sizes}, i1 {unit}")

    def _identity(self, x: str) -> None:
        e, n = self.e, self.step.n
        with loop(e, "0", str(n), 1) as i:
            row = e.at(x, e.times(i, n))
            with loop(e, "0", str(n), 1) as j:
                e.put(number(0, self.dtype), row, j)
            e.put(number(1, self.dtype), row, i)

    def _factors(self, work: str, pivots: str) -> None:
        """LU of n x r matrices: of the first columns, then what is right of them."""
        e, step = self.e, self.step
        n, k = step.n, min(step.n, step.r)
        self._call(self.f.lu(), self._square(work, pivots))
        if step.r > k:
            right = e.at(work, str(k))
            rest = f"i64 {step.pitch}, i64 {step.r - k}"
            self._call(self.f.swap_rows(), f"ptr {right}, {rest}, ptr {pivots}, i64 {k}")
            square = f"ptr {work}, i64 {step.pitch}, i64 {k}"
            self._call(self.f.lower(), f"{square}, ptr {right}, {rest}, i1 true")
        self._order(pivots, n, k)

    def _order(self, pivots: str, n: int, k: int) -> None:
        """Swaps in the place of which comes the order of rows that they make."""
        e = self.e
        swaps = "%swaps"

        def word(base: str, i: str) -> str:
            return e.value_of(f"getelementptr i64, ptr {base}, i64 {i}")

        with loop(e, "0", str(n), 1) as i:
            value = e.fresh(f"load i64, ptr {word(pivots, i)}, align 8")
            e.line(f"store i64 {value}, ptr {word(swaps, i)}, align 8")
            e.line(f"store i64 {i}, ptr {word(pivots, i)}, align 8")
        with loop(e, "0", str(k), 1) as i:
            j = e.fresh(f"load i64, ptr {word(swaps, i)}, align 8")
            mine, other = word(pivots, i), word(pivots, j)
            a = e.fresh(f"load i64, ptr {mine}, align 8")
            b = e.fresh(f"load i64, ptr {other}, align 8")
            e.line(f"store i64 {b}, ptr {mine}, align 8")
            e.line(f"store i64 {a}, ptr {other}, align 8")

    def _look_for_zeros(self, work: str) -> None:
        e, step = self.e, self.step
        with loop(e, "0", str(step.n), 1) as i:
            x = e.get(work, e.times(i, step.pitch), i)
            scalar = e.scalar
            zero = e.value_of(f"fcmp oeq {scalar} {x}, {number(0, self.dtype)}")
            with e.when(zero):
                e.line("store i64 1, ptr %info, align 8")

    def _unless_fine(self, out: str, columns: int, apart: int) -> None:
        """NaN in the place of what could not be computed, and the error site."""
        e, step = self.e, self.step
        bad = e.compare("ne", e.fresh("load i64, ptr %info, align 8"), 0)
        with e.when(bad):
            nan = number(math.nan, self.dtype)
            with loop(e, "0", str(step.n), 1) as i, loop(e, "0", str(columns), 1) as j:
                e.put(nan, out, e.times(i, apart), j)
            if step.site:
                place = e.value_of("getelementptr i64, ptr %status, i64 7")
                e.line(f"store i64 {step.site}, ptr {place}, align 8")
