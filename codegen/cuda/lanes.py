"""Several neighbouring points of one thread: the same scalar code once per point.

Neighbours in memory are loaded together before the first of them, and stored together after the last.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, MutableMapping

from ...ir.types import BOOL
from ..llvm.accesses import AccessEmitter
from ..llvm.builder import Value
from ..llvm.checks import CheckEmitter
from ..llvm.indices import IndexEmitter
from ..llvm.leaves import KernelLeaves
from ..llvm.loops import LoopEmitter
from ..llvm.scalars import ScalarEmitter
from ..llvm.stages import StageEmitter
from ..llvm.text import Operand, element_type
from ..loop_ir.index import Index, Var, follows, variables
from ..loop_ir.kernel import Access, Array, Kernel, indices_of
from ..lowering.pointwise import loop_variables
from ..scalar import DType, Expr, nodes_of
from ..schedule.signature import Signature
from ..schedule.survey import results_read
from .emitter import DeviceStatus, ThreadBuilder, Word, is_zero
from .schedule import Schedule, is_wide, passed_arrays
from .target import CudaTarget


class LaneMemory(AccessEmitter):
    """Memory for `lanes` points at a time, of which number `number` is the one at hand."""

    b: ThreadBuilder

    def __init__(
        self,
        b: ThreadBuilder,
        indices: IndexEmitter,
        origins: Mapping[Array, int],
        alignments: Mapping[Array, int],
        along: Var,
    ) -> None:
        super().__init__(indices, b.pointers, origins)
        self.lanes = 1
        self.along = along
        self.first: Word = 0  # where the first of the lanes stands
        self.number = 0  # of the lane at hand
        self.points: list[dict[Array, Operand]] = [self.registers]  # each lane's values
        self.by_points = False  # whether a single lane has values of its own, too
        self.stored: dict[tuple[Value, Index], list[Value]] = {}  # not yet: lanes that go together
        self.single: list[tuple[DType, Value, Value]] = []  # not yet: value and address
        self.holds_back = False  # whether stores wait for `flush`
        self.home = {self.pointers[a]: (a, n) for a, n in alignments.items()}

    def each(self) -> Iterator[int]:
        """Stand at one lane after the other."""
        if self.lanes == 1 and not self.by_points:
            yield 0
            return
        for k in range(self.lanes):
            self.number, self.registers = k, self.points[k]
            if self.lanes > 1:
                self.indices.positions[self.along] = self._position(k)
            self.exprs.forget()
            yield k
        self.exprs.forget()

    def at_lanes(self, lane: Var, count: int, value: Expr) -> list[Value]:
        """The value at 0, 1, ..., count - 1 of a loop, whatever neighbours are meant otherwise."""
        before = self.lanes, self.along, self.first, self.points, self.registers
        self.lanes, self.along, self.first = count, lane, 0
        self.points = [{} for _ in range(count)]
        self.registers = self.points[0]
        self.indices.positions[lane] = 0
        self.exprs.forget()
        texts = [self.exprs.operand(value).value for _ in self.each()]
        self.lanes, self.along, self.first, self.points, self.registers = before
        self.exprs.forget()
        return texts

    def _position(self, k: int) -> Word:
        if is_zero(self.first):
            return k
        return self.first + k if k else self.first

    def register_files(self) -> list[dict[Array, Operand]]:
        return [self.registers, *self.points]

    # Memory: what lanes have side by side goes together.

    def _wide(self, base: Value, flat: Index) -> bool:
        home = self.home.get(base)
        if self.lanes == 1 or home is None:
            return False
        if follows(flat, self.along, self.indices.env):
            return False
        array, alignment = home
        return is_wide(flat, self.along, self.lanes, array, alignment)

    def read(self, dtype: DType, base: Value, flat: Index, guard: Operand | None) -> Operand:
        flat = flat.substitute(self.indices.env)
        if guard is not None or not self._wide(base, flat):
            return super().read(dtype, base, flat, guard)
        pointer, memory, align = self._group(dtype, base, flat)
        return self._lane_of(dtype, memory, pointer, align)

    def load(self, expr: Expr) -> Operand:
        """A guarded load whose guard is the same for all lanes may be one access, too."""
        access: Access = expr.attr
        if self.lanes == 1 or not expr.args or access.array in self.registers:
            return super().load(expr)
        base, flat = self.locate(access.array, access.index)
        flat = flat.substitute(self.indices.env)
        if not self._wide(base, flat) or not same_for_all(
            expr.args[0], self.along, self.indices.env
        ):
            return super().load(expr)
        dtype, guard = access.array.dtype, self.exprs.operand(expr.args[0])
        pointer, memory, align = self._group(dtype, base, flat)
        there = self.b.select(guard.value, pointer, base)
        return self._lane_of(dtype, memory, there, align)

    def _lane_of(self, dtype: DType, memory: str, pointer: Value, align: int) -> Operand:
        """The element of the lane at hand, from what all lanes load together."""
        vector = self.b.load_once(memory, pointer, align)  # for all lanes
        value = self.b.extract(vector, self.number)
        return Operand(value.ne(0) if dtype == BOOL else value, True)

    def one(self, dtype: DType, base: Value, address: Value) -> Value:
        home = self.home.get(base)
        stays = home is not None and home[0] not in self.b.written
        return self.b.load_elements(dtype, address, 1, stays=stays)

    def write(self, dtype: DType, base: Value, flat: Index, value: Operand) -> None:
        flat = flat.substitute(self.indices.env)
        if self._wide(base, flat):
            text = value.value
            if dtype == BOOL:
                text = text.zext("i8")
            self.stored.setdefault((base, flat), []).append(text)
        elif self.holds_back:
            address = self.b.element_at(dtype, base, self.indices.value(flat))
            self.single.append((dtype, value.value, address))
        else:
            super().write(dtype, base, flat, value)

    def flush(self) -> None:
        """Store what has been kept back."""
        for (base, flat), texts in self.stored.items():
            assert len(texts) == self.lanes, "every lane stores, once"
            dtype = self.home[base][0].dtype
            pointer, memory, align = self._group(dtype, base, flat)
            self.b.store(self.b.packed(texts), pointer, align=align)
        for dtype, text, address in self.single:
            self.b.store_elements(dtype, text, address)
        self.stored, self.single = {}, []

    def _group(self, dtype: DType, base: Value, flat: Index) -> tuple[Value, str, int]:
        """Where the first lane's element is, the LLVM type of all lanes' in memory, the alignment."""
        here, self.indices.positions[self.along] = self.indices.positions[self.along], self.first
        pointer = self.b.element_at(dtype, base, self.indices.value(flat))
        self.indices.positions[self.along] = here
        element = element_type(dtype)
        align = math.gcd(self.lanes * dtype.itemsize, 16)
        return pointer, f"<{self.lanes} x {element}>", align


class LaneEmitter(ABC):
    """Emits one kernel of loops and stages, for several points at a time."""

    def __init__(
        self,
        kernel: Kernel,
        own: Signature,
        plan: Schedule,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
        alignments: Mapping[Array, int],
    ) -> None:
        self.kernel, self.layout = kernel, plan
        b = self.b = ThreadBuilder(target, plan.index_type, own.arrays, definitions)
        b.written = {s.array for s in kernel.stages}
        if plan.row is not None:
            b.passed = plan.row.passed
        elif plan.depth > 1:
            b.passed = passed_arrays(kernel)
        exprs = self.exprs = ScalarEmitter(b)
        exprs.read_results = results_read(plan.surveys.values())
        self.indices = IndexEmitter(exprs)
        homes = {a: alignments[a] for a in own.arrays}
        self.memory = LaneMemory(b, self.indices, own.origins, homes, plan.outer.vars[-1])
        exprs.leaves = KernelLeaves(self.memory, CheckEmitter(exprs, DeviceStatus(b)))
        self.loops = LoopEmitter(self.indices)
        self.stages = StageEmitter(kernel, self.memory, self.loops)

    @abstractmethod
    def body(self) -> None:
        """Emit the kernel's code."""


def same_for_all(expr: Expr, lane: Var, env: Mapping[Var, Index]) -> bool:
    """Whether an expression does not depend on which of the neighbours is meant."""
    if any(lane in variables(i.substitute(env)) for i in indices_of(expr)):
        return False
    return not any(n.op in ("loop", "var") and loop_variables(n) for n in nodes_of(expr))
