"""Fourier transforms as an LLVM function: `void @fourier(ptr %ctx, i64 %lo, i64 %hi)`, of units of rows.

    turn the rows into columns: element k of all rows is re[lanes], im[lanes]
    irfft: combine elements k and n - k
    stages, in place: blocks of r * m elements become r blocks of m; what belongs to frequency k ends up
    at a place that a table says
    rfft: combine frequencies k and n - k
    turn columns into rows

Inverse transforms are forward ones of numbers whose parts are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...cpu.transposes import turned
from ...llvm.builder import Value
from ...llvm.text import Operand
from ...llvm.whole import Whole, Word
from ...schedule.fourier_plan import radices
from ...schedule.tiled import Fourier
from ...target import Target
from ..matmul.cpu_gemm import loop, steps
from ..matmul.cpu_tiles import element, has_fma, multiply_add
from .cpu_butterflies import Number, butterfly

Data = Callable[[bytes], Value]


def fourier(step: Fourier, target: Target, data: Data) -> tuple[str, set[str]]:
    """The function's text from its parameter list on, and declarations of what it calls. `data` gives
    the address of a constant."""
    return _Rows(step, target, data).function()


def places(n: int) -> list[int]:
    """Where frequency k is after the stages, for k below n."""
    stages = radices(n)
    assert stages is not None
    found = []
    for k in range(n):
        place, block = 0, n
        for r in stages:
            block //= r
            place += k % r * block
            k //= r
        found.append(place)
    return found


def _roots(powers: Any, n: int) -> Any:
    return np.exp(-2j * math.pi * (powers % n) / n)


class _Rows:
    def __init__(self, step: Fourier, target: Target, data: Data) -> None:
        self.step, self.data = step, data
        self.e = Whole(target, step.lanes)
        self.dtype = step.source.dtype
        self.fused = has_fma(target)
        self.lanes, self.n = step.lanes, step.n
        stages = radices(step.n)
        assert stages is not None
        self.stages = stages
        inverse = step.kind in ("ifft", "irfft")
        self.parts = (self.lanes, 0) if inverse else (0, self.lanes)  # where they lie in a number

    def function(self) -> tuple[str, set[str]]:
        e, step = self.e, self.step
        context, lo, hi = e.takes(ctx="ptr", lo="i64", hi="i64")
        source, target = (e.argument(context, k) for k in range(2))
        size = 2 * (self.n + 1) * self.lanes * self.dtype.itemsize
        self.memory = e.stack(f"[{size} x i8]", name="rows")
        with loop(e, lo, hi, 1) as u:
            row = e.least(e.times(u, self.lanes), step.batch - self.lanes)
            self._bring(element(e, self.dtype, source, e.times(row, step.source_step)))
            if step.kind == "irfft":
                self._mirror()
            self._stage(e.word(0), self.n, 0)
            self._give(element(e, self.dtype, target, e.times(row, step.target_step)))
        e.ret()
        return e.unnamed(noalias=("ctx",)), set(e.declarations)

    # Numbers in the unit's memory.

    def _at(self, k: Word) -> Value:
        return element(self.e, self.dtype, self.memory, self.e.times(k, 2 * self.lanes))

    def _get(self, address: Value, parts: tuple[int, int]) -> Number:
        re, im = (
            self.e.load_elements(self.dtype, element(self.e, self.dtype, address, p), self.lanes)
            for p in parts
        )
        return re, im

    def _put(self, x: Number, address: Value, parts: tuple[int, int]) -> None:
        for value, part in zip(x, parts, strict=True):
            self.e.store_elements(self.dtype, value, element(self.e, self.dtype, address, part))

    def _root(self, table: Value, row: Word, k: int) -> Number:
        """Number k of a row of a table of complex ones, in all lanes."""
        e = self.e
        re, im = (
            e.splat(e.load_elements(self.dtype, element(e, self.dtype, table, row, p), 1), e.width)
            for p in (2 * k, 2 * k + 1)
        )
        return re, im

    def _constant(self, number: float) -> Value:
        return self.e.spread(Operand(self.e.scalar(number, self.dtype), True), self.dtype)

    def _product(self, x: Number, w: Number) -> Number:
        e = self.e
        re = multiply_add(e, self.dtype, self.fused, e.negated(x[1]), w[1], x[0] * w[0])
        im = multiply_add(e, self.dtype, self.fused, x[1], w[0], x[0] * w[1])
        return re, im

    def _table(self, numbers: Any) -> Value:
        pairs = np.stack([numbers.real, numbers.imag], axis=-1)
        return self.data(np.ascontiguousarray(pairs, self.dtype).tobytes())

    # The transform.

    def _stage(self, base: Value, length: int, depth: int) -> None:
        """What begins at `base`, then its blocks one after the other: these are in the nearest cache."""
        e, r = self.e, self.stages[depth]
        block = length // r
        whole = (0, self.lanes)
        table = None
        if block > 1:
            powers = np.outer(np.arange(block), np.arange(1, r))
            table = self._table(_roots(powers, length))
        with steps(e, 0, block, 1) as j:
            first = e.plus(base, j)
            addresses = [self._at(e.plus(first, m * block)) for m in range(r)]
            y = butterfly([self._get(a, whole) for a in addresses], self._constant)
            for k, address in enumerate(addresses):
                x = y[k]
                if k and table is not None:
                    x = self._product(x, self._root(table, e.times(j, 2 * (r - 1)), k - 1))
                self._put(x, address, whole)
        if depth + 1 < len(self.stages):
            with steps(e, 0, r, 1) as part:
                self._stage(e.plus(base, e.times(part, block)), block, depth + 1)

    def _mirror(self) -> None:
        """Z[k] = X[k] + X*[n-k] + i w^-k (X[k] - X*[n-k]), whose transform has the even numbers as real
        parts, the odd ones as imaginary parts."""
        e, n = self.e, self.n
        for end in (0, n):
            imaginary = element(e, self.dtype, self._at(end), self.parts[1])
            e.store_elements(self.dtype, self._constant(0.0), imaginary)
        table = self._table(1j * _roots(-np.arange(n // 2 + 1), 2 * n))
        with loop(e, 0, n // 2 + 1, 1) as k:
            mine, other = self._at(k), self._at(e.minus(n, k))
            a, b = self._get(mine, self.parts), self._get(other, self.parts)
            even = a[0] + b[0], a[1] - b[1]
            odd = a[0] - b[0], a[1] + b[1]
            re, im = self._product(odd, self._root(table, e.times(k, 2), 0))
            self._put((even[0] + re, even[1] + im), mine, self.parts)
            self._put((even[0] - re, im - even[1]), other, self.parts)

    # Rows.

    def _bring(self, source: Value) -> None:
        e = self.e
        count = self.n + 1 if self.step.kind == "irfft" else self.n
        each = self.lanes // 2
        with steps(e, 0, count, each) as t:
            k = e.least(t, count - each)
            start = element(e, self.dtype, source, e.times(k, 2))
            columns = turned(
                e, [self._row(start, r, self.step.source_step) for r in range(e.width)]
            )
            for j in range(each):
                address = self._at(e.plus(k, j))
                self._put((columns[2 * j], columns[2 * j + 1]), address, self.parts)

    def _row(self, start: Value, r: int, step: int) -> Value:
        address = element(self.e, self.dtype, start, r * step)
        return self.e.load_elements(self.dtype, address, self.lanes)

    def _give(self, target: Value) -> None:
        e, step = self.e, self.step
        found = np.asarray(places(self.n), np.int64) * (2 * self.lanes * self.dtype.itemsize)
        self.place = self.data(np.append(found, found[:1]).tobytes())
        real = step.kind == "rfft"
        count = self.n + 1 if real else self.n
        if real:  # -i / 2 w^k
            self.mixed = self._table(-0.5j * step.factor * _roots(np.arange(count), 2 * self.n))
        each = self.lanes // 2
        with steps(e, 0, count, each) as t:
            first = e.least(t, count - each)
            columns: list[Value] = []
            for j in range(each):
                k = e.plus(first, j)
                columns += self._mixed(k) if real else self._scaled(k)
            start = element(e, self.dtype, target, e.times(first, 2))
            for r, row in enumerate(turned(e, columns)):
                address = element(e, self.dtype, start, r * step.target_step)
                e.store_elements(self.dtype, row, address)

    def _frequency(self, k: Word) -> Number:
        e = self.e
        offset = e.load("i64", e.offset(self.place, k, "i64"), align=8)
        return self._get(e.offset(self.memory, offset), self.parts)

    def _scaled(self, k: Word) -> Number:
        re, im = self._frequency(k)
        factor = self._constant(self.step.factor)
        return (re, im) if self.step.factor == 1 else (re * factor, im * factor)

    def _mixed(self, k: Word) -> Number:
        """X[k] = (Z[k] + Z*[n-k]) / 2 - i/2 w^k (Z[k] - Z*[n-k])"""
        e, half = self.e, self._constant(0.5 * self.step.factor)
        a, b = self._frequency(k), self._frequency(e.minus(self.n, k))
        even = (a[0] + b[0]) * half, (a[1] - b[1]) * half
        odd = a[0] - b[0], a[1] + b[1]
        re, im = self._product(odd, self._root(self.mixed, e.times(k, 2), 0))
        return even[0] + re, even[1] + im
