"""The units of a `Factorisation`: matrices of a batch, one after the other.

void @solve(ptr %ctx, i64 %lo, i64 %hi)      %ctx: the matrices, X, pivots, the status block
"""

from __future__ import annotations

import math

from ...llvm.builder import NULL, Callee, Value
from ...llvm.whole import Word
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
        context, lo, hi = e.b.takes(ctx="ptr", lo="i64", hi="i64")
        self.memory = {
            name: e.b.load("ptr", context, k, "ptr", align=8)
            for k, name in enumerate((*names, "status"))
        }
        self.info = e.b.alloca("i64", align=8)
        if step.kind == "lu":
            self.swaps = e.b.alloca(f"[{min(step.n, step.r)} x i64]", align=8)
        with loop(e.b, lo, hi, 1) as u:
            e.b.store(e.b.word(0), self.info)
            self._item(u)
        e.b.ret()
        return (
            e.b.unnamed(noalias=("ctx",)),
            list(f.texts.values()),
            f.declarations | set(e.b.declarations),
            f.imports,
        )

    def _item(self, u: Value) -> None:
        e, step = self.e, self.step
        work = e.element(self.memory["work"], e.b.times(u, step.height * step.pitch))
        pivots = NULL
        if step.pivots is not None:
            pivots = e.b.offset(self.memory["pivots"], e.b.times(u, step.n), "i64")
        if step.kind == "lu":
            self._factors(work, pivots)
            return
        if step.kind == "cholesky":
            e.b.run(self.f.cholesky(), work, step.pitch, step.n, step.n, self.info)
            self._unless_fine(work, step.n, step.pitch)
            return
        x = e.element(self.memory["x"], e.b.times(u, step.n * step.r))
        if step.kind == "inv":
            self._identity(x)
        if step.kind in ("solve", "inv"):
            self._decompose(work, pivots, step.n)
            e.b.run(self.f.swap_rows(), x, step.r, step.r, pivots, step.n)
            self._triangle(self.f.lower(), work, x, True)
            self._triangle(self.f.upper(), work, x, False)
        else:
            *unit, name = step.kind.split()
            if not unit:
                self._look_for_zeros(work)
            solve = self.f.lower() if name == "lower" else self.f.upper()
            self._triangle(solve, work, x, bool(unit))
        self._unless_fine(x, step.r, step.r)

    def _decompose(self, work: Value, pivots: Value, columns: int) -> None:
        step = self.step
        self.e.b.run(self.f.lu(), work, step.pitch, step.n, columns, pivots, self.info)

    def _triangle(self, function: Callee, work: Value, x: Value, unit: bool) -> None:
        step = self.step
        self.e.b.run(function, work, step.pitch, step.n, x, step.r, step.r, unit)

    def _identity(self, x: Value) -> None:
        e, n = self.e, self.step.n
        with loop(e.b, 0, n, 1) as i:
            row = e.element(x, e.b.times(i, n))
            with loop(e.b, 0, n, 1) as j:
                e.put(e.number(0), row, j)
            e.put(e.number(1), row, i)

    def _factors(self, work: Value, pivots: Value) -> None:
        """LU of n x r matrices: of the first columns, then what is right of them."""
        e, step = self.e, self.step
        n, k = step.n, min(step.n, step.r)
        self._decompose(work, pivots, k)
        if step.r > k:
            right = e.element(work, k)
            rest = step.pitch, step.r - k
            e.b.run(self.f.swap_rows(), right, *rest, pivots, k)
            e.b.run(self.f.lower(), work, step.pitch, k, right, *rest, True)
        self._order(pivots, n, k)

    def _order(self, pivots: Value, n: int, k: int) -> None:
        """Swaps, instead of which comes the order of rows that they make."""
        e = self.e
        swaps = self.swaps

        def word(base: Value, i: Word) -> Value:
            return e.b.offset(base, i, "i64")

        with loop(e.b, 0, k, 1) as i:
            value = e.b.load("i64", word(pivots, i))
            e.b.store(value, word(swaps, i))
        with loop(e.b, 0, n, 1) as i:
            e.b.store(i, word(pivots, i))
        with loop(e.b, 0, k, 1) as i:
            j = e.b.load("i64", word(swaps, i))
            mine, other = word(pivots, i), word(pivots, j)
            a = e.b.load("i64", mine)
            b = e.b.load("i64", other)
            e.b.store(b, mine)
            e.b.store(a, other)

    def _look_for_zeros(self, work: Value) -> None:
        e, step = self.e, self.step
        with loop(e.b, 0, step.n, 1) as i:
            x = e.get(work, e.b.times(i, step.pitch), i)
            zero = e.b.compare_floats("oeq", x, e.number(0))
            with e.b.when(zero):
                e.b.store(e.b.word(1), self.info)

    def _unless_fine(self, out: Value, columns: int, apart: int) -> None:
        """NaN instead of what could not be computed, and the error site."""
        e, step = self.e, self.step
        bad = e.b.load("i64", self.info).ne(0)
        with e.b.when(bad):
            nan = e.number(math.nan)
            with loop(e.b, 0, step.n, 1) as i, loop(e.b, 0, columns, 1) as j:
                e.put(nan, out, e.b.times(i, apart), j)
            if step.site:
                pointer = e.b.offset(self.memory["status"], 7, "i64")
                e.b.store(e.b.word(step.site), pointer)
