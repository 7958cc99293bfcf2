"""The units of a `Factorisation`: matrices of a batch, one after the other.

void @solve(ptr %ctx, i64 %lo, i64 %hi)      %ctx: the matrices, X, pivots, the status block
"""

from __future__ import annotations

import math

from ...llvm.builder import Value
from ...llvm.instructions import number
from ...llvm.text import address
from ...schedule.tiled import Factorisation
from ...target import Target
from ..matmul.cpu_gemm import loop
from .cpu_factors import Factors
from .cpu_leaves import LeafEmitter


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
        self.e = LeafEmitter(target, self.dtype)

    def function(self) -> tuple[str, list[str], set[str], set[str]]:
        e, f, step = self.e, self.f, self.step
        arrays = {"work": step.work, "x": step.x, "pivots": step.pivots}
        names = [name for name, array in arrays.items() if array is not None]
        for position, name in enumerate((*names, "status")):
            pointer = e.b.offset(Value("ptr", "%ctx"), position, "ptr")
            e.b.line(f"%{name} = load ptr, ptr {pointer}, align 8")
        e.b.line("%info = alloca i64, align 8")
        if step.kind == "lu":
            e.b.line(f"%swaps = alloca [{min(step.n, step.r)} x i64], align 8")
        with loop(e.b, "%lo", "%hi", 1) as u:
            e.b.store(e.b.word(0), address("%info"))
            self._item(u)
        e.b.ret()
        text = f"(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {{\n{e.b.code.text()}\n}}\n"
        return text, list(f.texts.values()), f.declarations | set(e.b.declarations), f.imports

    def _item(self, u: str) -> None:
        e, step = self.e, self.step
        work = e.element("%work", e.b.times(u, step.height * step.pitch))
        pivots = ""
        if step.pivots is not None:
            pivots = e.b.offset(Value("ptr", "%pivots"), e.b.times(u, step.n), "i64")
        if step.kind == "lu":
            self._factors(work, pivots)
            return
        if step.kind == "cholesky":
            sizes = f"i64 {step.pitch}, i64 {step.n}, i64 {step.n}"
            self._call(self.f.cholesky(), f"ptr {work}, {sizes}, ptr %info")
            self._unless_fine(work, step.n, step.pitch)
            return
        x = e.element("%x", e.b.times(u, step.n * step.r))
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
        self.e.b.line(f"call void {function}({arguments})")

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
        with loop(e.b, "0", str(n), 1) as i:
            row = e.element(x, e.b.times(i, n))
            with loop(e.b, "0", str(n), 1) as j:
                e.put(number(0, self.dtype), row, j)
            e.put(number(1, self.dtype), row, i)

    def _factors(self, work: str, pivots: str) -> None:
        """LU of n x r matrices: of the first columns, then what is right of them."""
        e, step = self.e, self.step
        n, k = step.n, min(step.n, step.r)
        self._call(self.f.lu(), self._square(work, pivots))
        if step.r > k:
            right = e.element(work, str(k))
            rest = f"i64 {step.pitch}, i64 {step.r - k}"
            self._call(self.f.swap_rows(), f"ptr {right}, {rest}, ptr {pivots}, i64 {k}")
            square = f"ptr {work}, i64 {step.pitch}, i64 {k}"
            self._call(self.f.lower(), f"{square}, ptr {right}, {rest}, i1 true")
        self._order(pivots, n, k)

    def _order(self, pivots: str, n: int, k: int) -> None:
        """Swaps, instead of which comes the order of rows that they make."""
        e = self.e
        swaps = "%swaps"

        def word(base: str, i: str) -> Value:
            return e.b.offset(address(base), i, "i64")

        with loop(e.b, "0", str(k), 1) as i:
            value = e.b.load("i64", word(pivots, i))
            e.b.store(e.b.word(value), word(swaps, i))
        with loop(e.b, "0", str(n), 1) as i:
            e.b.store(e.b.word(i), word(pivots, i))
        with loop(e.b, "0", str(k), 1) as i:
            j = e.b.load("i64", word(swaps, i))
            mine, other = word(pivots, i), word(pivots, j)
            a = e.b.load("i64", mine)
            b = e.b.load("i64", other)
            e.b.store(e.b.word(b), mine)
            e.b.store(e.b.word(a), other)

    def _look_for_zeros(self, work: str) -> None:
        e, step = self.e, self.step
        with loop(e.b, "0", str(step.n), 1) as i:
            x = e.get(work, e.b.times(i, step.pitch), i)
            zero = e.b.compare_floats("oeq", x, number(0, self.dtype))
            with e.b.when(zero):
                e.b.store(e.b.word(1), address("%info"))

    def _unless_fine(self, out: str, columns: int, apart: int) -> None:
        """NaN instead of what could not be computed, and the error site."""
        e, step = self.e, self.step
        bad = e.b.load("i64", address("%info")).ne(0)
        with e.b.when(bad):
            nan = number(math.nan, self.dtype)
            with loop(e.b, "0", str(step.n), 1) as i, loop(e.b, "0", str(columns), 1) as j:
                e.put(nan, out, e.b.times(i, apart), j)
            if step.site:
                pointer = e.b.offset(Value("ptr", "%status"), 7, "i64")
                e.b.store(e.b.word(step.site), pointer)
