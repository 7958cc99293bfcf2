"""Several neighbouring points of one thread: the same scalar code once per point.

Neighbours in memory are loaded together before the first of them, and stored together after the last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from ...ir.types import BOOL
from ..llvm.builder import Value
from ..llvm.text import Operand
from ..loop_ir.index import Data, Index, Var, variables
from ..loop_ir.kernel import Access, Array, Kernel
from ..lowering.pointwise import loop_variables
from ..scalar import DType, Expr
from ..schedule.signature import Signature
from .emitter import ThreadEmitter, Word, memory_type
from .schedule import Schedule, is_wide, passed_arrays
from .target import CudaTarget


class LaneEmitter(ThreadEmitter):
    """Emits one kernel, for `lanes` points at a time, of which number `number` is the one at hand."""

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
        self.first: Word = ""  # where the first of the lanes stands
        self.number = 0  # of the lane at hand
        self.points: list[dict[Array, Operand]] = [self.registers]  # each lane's values
        self.stored: dict[tuple[Value, Index], list[Value]] = {}  # not yet: lanes that go together
        self.single: list[tuple[DType, Value, Value]] = []  # not yet: value and place
        self.holds_back = False  # whether stores wait for `_flush`
        self.known_loads = False  # whether equal loads give equal values
        if plan.row is not None:
            self.passed = plan.row.passed
        elif plan.depth > 1:
            self.passed = passed_arrays(kernel)
        self.home = {self.pointers[a]: (a, alignments[a]) for a in own.arrays}
        for found in plan.surveys.values():
            for loop, positions in found.results.items():
                self.read_results.setdefault(loop, set()).update(positions)

    def body(self) -> None:
        """Emit the kernel's code."""
        raise NotImplementedError

    def _each(self) -> Iterator[int]:
        """Stand at one lane after the other."""
        if self.lanes == 1:
            yield 0
            return
        for k in range(self.lanes):
            self.number, self.registers = k, self.points[k]
            self.positions[self.along] = self._position(k)
            self.forget()
            yield k
        self.forget()

    def at_lanes(self, lane: Var, count: int, value: Expr) -> list[Value]:
        """The value at 0, 1, ..., count - 1 of a loop, whatever neighbours are meant otherwise."""
        before = self.lanes, self.along, self.first, self.points, self.registers
        self.lanes, self.along, self.first = count, lane, 0
        self.points = [{} for _ in range(count)]
        self.registers = self.points[0]
        self.positions[lane] = 0
        self.forget()
        texts = [self.operand(value).text for _ in self._each()]
        self.lanes, self.along, self.first, self.points, self.registers = before
        self.forget()
        return texts

    def _position(self, k: int) -> Word:
        if self.first == 0:
            return k
        return self.first + k if k else self.first

    def register_files(self) -> list[dict[Array, Operand]]:
        return [self.registers, *self.points]

    # Memory: what lanes have side by side goes together.

    def _wide(self, base: Value, flat: Index) -> bool:
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

    def _read(self, dtype: DType, base: Any, flat: Index, guard: Operand | None) -> Operand:
        flat = flat.substitute(self.env)
        if guard is not None or not self._wide(base, flat):
            known = self.home.get(base)
            self.known_loads = known is not None and known[0] not in self.written
            value = super()._read(dtype, base, flat, guard)
            self.known_loads = False
            return value
        pointer, memory, align = self._group(dtype, base, flat)
        return self._lane_of(dtype, memory, pointer, align)

    def _load(self, expr: Expr) -> Operand:
        """A guarded load whose guard is the same for all lanes may be one access, too."""
        access: Access = expr.attr
        if self.lanes == 1 or not expr.args or access.array in self.registers:
            return super()._load(expr)
        base, flat = self.place(access.array, access.index)
        flat = flat.substitute(self.env)
        if not self._wide(base, flat) or not same_for_all(expr.args[0], self.along, self.env):
            return super()._load(expr)
        dtype, guard = access.array.dtype, self.operand(expr.args[0])
        pointer, memory, align = self._group(dtype, base, flat)
        there = self.select(self.known(guard.text, BOOL, 1), pointer, base)
        return self._lane_of(dtype, memory, there, align)

    def _lane_of(self, dtype: DType, memory: Value, pointer: Value, align: int) -> Operand:
        """The element of the lane at hand, from what all lanes load together."""
        text = f"load {memory}, {pointer!r}, align {align}"
        vector = self.op(memory, text)  # once for all lanes
        text = self.extract(vector, self.number)
        if dtype == BOOL:
            text = text.ne(0)
        return Operand(text, True)

    def fresh(self, type: str, text: str) -> Value:
        if self.known_loads and text.startswith("load "):
            return self.op(type, text)  # nobody writes there
        return super().fresh(type, text)

    def _write(self, dtype: DType, base: Any, flat: Index, value: Operand) -> None:
        flat = flat.substitute(self.env)
        if self._wide(base, flat):
            text = value.text
            if dtype == BOOL:
                text = text.zext("i8")
            self.stored.setdefault((base, flat), []).append(text)
        elif self.holds_back:
            place = self._address(dtype, base, self.index_text(flat))
            self.single.append((dtype, value.text, place))
        else:
            super()._write(dtype, base, flat, value)

    def _flush(self) -> None:
        """Store what has been kept back."""
        for (base, flat), texts in self.stored.items():
            assert len(texts) == self.lanes, "every lane stores, once"
            dtype = self.home[base][0].dtype
            pointer, memory, align = self._group(dtype, base, flat)
            self.store(self.packed(texts), pointer, align=align)
        for dtype, text, place in self.single:
            self.store_elements(dtype, text, place, 1)
        self.stored, self.single = {}, []

    def _group(self, dtype: DType, base: Word, flat: Index) -> tuple[Word, Word, int]:
        """Where the first lane's element is, the LLVM type of all lanes' in memory, the alignment."""
        here, self.positions[self.along] = self.positions[self.along], self.first
        pointer = self._address(dtype, base, self.index_text(flat))
        self.positions[self.along] = here
        element = memory_type(dtype)
        align = math.gcd(self.lanes * dtype.itemsize, 16)
        return pointer, f"<{self.lanes} x {element}>", align


def same_for_all(expr: Expr, lane: Var, env: Mapping[Var, Index]) -> bool:
    """Whether an expression does not depend on which of the neighbours is meant."""
    pending, seen = [expr], set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        pending += node.args
        places = node.attr.index if node.op == "load" else [node.attr] if node.op == "index" else []
        if any(lane in variables(i.substitute(env)) for i in places):
            return False
        if node.op in ("loop", "var") and loop_variables(node):
            return False
    return True
