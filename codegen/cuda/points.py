"""Kernels whose outer points are shared out among threads: the form that every kernel can take.

    thread q: points lanes * q .. lanes * q + lanes - 1 of the last outer loop

What is done for the several points of a thread is the same scalar code once per point. Neighbours in
memory are loaded together before the first of them, and stored together after the last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from ...ir.types import BOOL
from ..index import Data, Index, Var, variables
from ..kernel import Array, Kernel, Nest
from ..llvm.instructions import SCALAR_TYPES
from ..llvm.loops import Values
from ..llvm.text import Operand
from ..scalar import DType
from ..schedule import Loops
from ..signature import Signature
from .emitter import ThreadEmitter
from .schedule import Schedule, is_wide
from .target import CudaTarget


class PointEmitter(ThreadEmitter):
    """Emits one kernel. `lanes` points at a time, of which `lane` is the one at hand."""

    def __init__(
        self,
        kernel: Kernel,
        own: Signature,
        plan: Schedule,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
        alignments: Mapping[Array, int],
    ) -> None:
        super().__init__(target, plan.index_type, own.arrays, own.origins, definitions)
        self.kernel, self.layout = kernel, plan
        self.plan: Any = plan
        self.written = {s.array for s in kernel.stages}
        self.lanes = 1
        self.along = plan.outer.vars[-1]
        self.first = ""  # where the first of the lanes stands
        self.number = 0  # of the lane at hand
        self.points: list[dict[Array, Operand]] = [self.registers]  # each lane's values
        self.stored: dict[tuple[str, Index], list[str]] = {}  # not yet: lanes that go together
        self.home = {self.pointers[a]: (a, alignments[a]) for a in own.arrays}
        for found in plan.surveys.values():
            for loop, positions in found.results.items():
                self.read_results.setdefault(loop, set()).update(positions)

    def body(self) -> None:
        """The body of the kernel: this thread's points, if it has any."""
        plan = self.layout
        self.env.update(plan.outer.env)
        *others, last = plan.outer.vars
        ty = self.index_type
        start = self.value_of(f"mul {ty} {self.block_number()}, {plan.threads}")
        q = self.value_of(f"add {ty} {start}, {self.widened(self.thread())}")
        if plan.units == plan.threads * plan.blocks:
            self._unit(q, others, last)
        else:
            with self.only_if(self.value_of(f"icmp slt {ty} {q}, {plan.units}")):
                self._unit(q, others, last)

    def _unit(self, q: str, others: list[Var], last: Var) -> None:
        lanes, n, ty = self.layout.lanes, last.extent, self.index_type
        unit = Var("unit", -(-n // lanes))
        self.stand_at((*others, unit), q)
        if lanes == 1:
            self.at[last] = self.at[unit]
            self._row()
            return
        first = self.value_of(f"mul {ty} {self.at[unit]}, {lanes}")
        if n % lanes == 0:
            self._together(first, lanes)
            return
        with self.only_if(self.value_of(f"icmp sle {ty} {first}, {n - lanes}")):
            self._together(first, lanes)
        with self.only_if(self.value_of(f"icmp sgt {ty} {first}, {n - lanes}")):

            def one(position: str, values: Values) -> Values:
                self.at[last] = position
                self._forget()
                self._row()
                return values

            self._loop(first, str(n), 1, [], one)

    def _together(self, first: str, lanes: int) -> None:
        """Everything for a whole group of points."""
        self.lanes, self.first = lanes, first
        self.points = [{} for _ in range(lanes)]
        self.at[self.along] = first
        self._row()
        self.lanes, self.points = 1, [self.registers]
        self._forget()

    def _each(self) -> Iterator[int]:
        """Stand at one lane after the other."""
        if self.lanes == 1:
            yield 0
            return
        for k in range(self.lanes):
            self.number, self.registers = k, self.points[k]
            self.at[self.along] = self._position(k)
            self._forget()
            yield k
        self._forget()

    def _position(self, k: int) -> str:
        return self.value_of(f"add {self.index_type} {self.first}, {k}") if k else self.first

    def _forget(self) -> None:
        """Expressions have other values at the next point. Instructions that are equal stay known."""
        self._memo, self._memo_log = {}, []

    # Nests, for all lanes at once.

    @contextmanager
    def inner_registers(self) -> Iterator[None]:
        before = [dict(point) for point in self.points]
        yield
        for point, values in zip(self.points, before, strict=True):
            point.clear()
            point.update(values)

    def _row(self) -> None:
        for nest, loops in zip(self.kernel.nests, self.plan.inner, strict=True):
            self._nest(nest, loops)
        self._flush()
        for point in self.points:
            point.clear()

    def _nest(self, nest: Nest, loops: Loops) -> None:
        self.env.update(loops.env)
        folds = [self._reduction(s, nest, False) for s in nest.stages]
        starts: Values = []
        for _ in self._each():
            if loops.vars:
                self._hoist(nest)
            starts += [c for fold in folds if fold is not None for c in fold.initial()]

        def body(values: Values) -> Values:
            results: Values = []
            for _ in self._each():
                for stage, fold in zip(nest.stages, folds, strict=True):
                    if fold is None:
                        self._store_stage(stage)
                        continue
                    at = len(results)
                    results += fold.combine(values[at : at + fold.count])
                    if stage.action == "scan":
                        self.keep_running(stage, results[at:])
            if loops.vars:
                self._flush()
            return results

        if loops.vars:
            with self.inner_registers():
                ends = self._walk(loops.vars, nest, starts, body)
        else:
            ends = body(starts)
        position = 0
        for _ in self._each():
            for stage, fold in zip(nest.stages, folds, strict=True):
                if fold is None:
                    continue
                if stage.action != "scan":
                    self.keep(stage, fold.finish(ends[position : position + fold.count]))
                position += fold.count

    # Memory: what lanes have side by side goes together.

    def _wide(self, base: str, flat: Index) -> bool:
        known = self.home.get(base)
        if self.lanes == 1 or known is None:
            return False
        if any(isinstance(a, Data) and self._follows(a) for a in flat.terms):
            return False
        array, alignment = known
        return is_wide(flat, self.along, self.lanes, array, alignment)

    def _follows(self, atom: Data) -> bool:
        """Whether an index that the program computed may differ between lanes."""
        return any(
            self.along in variables(self.env[v]) if v in self.env else v is self.along
            for v in atom.vars
        )

    def _read(self, dtype: DType, base: str, flat: Index, guard: Operand | None) -> Operand:
        flat = flat.substitute(self.env)
        if guard is not None or not self._wide(base, flat):
            return super()._read(dtype, base, flat, guard)
        pointer, memory, align = self._group(dtype, base, flat)
        vector = self.value_of(f"load {memory}, ptr {pointer}, align {align}")
        text = self.value_of(f"extractelement {memory} {vector}, i32 {self.number}")
        if dtype == BOOL:
            text = self.value_of(f"icmp ne i8 {text}, 0")
        return Operand(text, True)

    def _write(self, dtype: DType, base: str, flat: Index, value: Operand) -> None:
        flat = flat.substitute(self.env)
        if not self._wide(base, flat):
            super()._write(dtype, base, flat, value)
            return
        text = value.text
        if dtype == BOOL:
            text = self.value_of(f"zext i1 {text} to i8")
        group = self.stored.setdefault((base, flat), [])
        group.append(text)

    def _flush(self) -> None:
        """Store what lanes have kept back."""
        for (base, flat), texts in self.stored.items():
            assert len(texts) == self.lanes, "every lane stores, once"
            dtype = self.home[base][0].dtype
            pointer, memory, align = self._group(dtype, base, flat)
            element = memory.split(" x ")[1][:-1]
            vector = "poison"
            for k, text in enumerate(texts):
                vector = self.value_of(
                    f"insertelement {memory} {vector}, {element} {text}, i32 {k}"
                )
            self.lines.append(f"  store {memory} {vector}, ptr {pointer}, align {align}")
        self.stored = {}

    def _group(self, dtype: DType, base: str, flat: Index) -> tuple[str, str, int]:
        """Where the first lane's element is, the LLVM type of all lanes' in memory, the alignment."""
        here, self.at[self.along] = self.at[self.along], self.first
        pointer = self._address(dtype, base, self.index_text(flat))
        self.at[self.along] = here
        element = "i8" if dtype == BOOL else SCALAR_TYPES[dtype]
        align = math.gcd(self.lanes * dtype.itemsize, 16)
        return pointer, f"<{self.lanes} x {element}>", align
