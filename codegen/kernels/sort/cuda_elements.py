"""Elements of a sort in registers and in memory: numbers, or pairs of a position and a key."""

from __future__ import annotations

from collections.abc import MutableMapping

from ....ir.types import I64
from ...cuda.emitter import ThreadBuilder, Word
from ...cuda.target import CudaTarget
from ...llvm.builder import Condition, Value
from ...llvm.indices import IndexEmitter
from ...llvm.instructions import SCALAR_TYPES
from ...llvm.loops import LoopEmitter
from ...llvm.scalars import ScalarEmitter
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Sort
from .cuda_select_plan import Select

Element = tuple[Value, ...]  # the parts of one: a number, or a key and an index


class ElementEmitter:
    """Emits a kernel that moves elements of `source` to `result`."""

    memory: list[Value]  # shared, of each part of the elements

    def __init__(
        self,
        step: Sort | Select,
        index_type: str,
        source: Array,
        result: Array,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
    ) -> None:
        arrays = list(dict.fromkeys((source, result)))
        self.b = ThreadBuilder(target, index_type, arrays, definitions)
        self.indices = IndexEmitter(ScalarEmitter(self.b))
        self.loops = LoopEmitter(self.indices)
        self.kind, self.source, self.result = step.kind, source, result
        self.b.written = {result}
        self.pairs = step.kind == "pairs"
        self.dtype = I64 if self.pairs else step.keys.dtype
        self.element = SCALAR_TYPES[self.dtype]
        self.parts = 2 if self.pairs else 1
        self.tid = self.b.thread()

    def key(self, x: Element) -> Value:
        if self.kind != "float":
            return x[-1]
        middle = 1 << (8 * self.dtype.itemsize - 1)  # the codes of both zeros meet here
        below = x[-1].eq(middle - 1)
        return self.b.select(below, middle, x[-1])

    def chosen(self, condition: Condition, x: Element, y: tuple[Word, ...]) -> Element:
        return tuple(self.b.select(condition, a, b) for a, b in zip(x, y, strict=True))

    # Memory.

    def get(self, local: Value) -> Element:
        return tuple(
            self.b.load_elements(self.dtype, self.b.in_shared(self.dtype, memory, local), 1)
            for memory in self.memory
        )

    def put(self, local: Value, item: Element) -> None:
        for memory, text in zip(self.memory, item, strict=True):
            self.b.store_elements(self.dtype, text, self.b.in_shared(self.dtype, memory, local))

    def element_at(self, position: Value) -> Element:
        pointer = self.b.pointers[self.source]
        return tuple(
            self.b.load_elements(self.dtype, self.b.element_at(self.dtype, pointer, at), 1)
            for at in self.parts_of(position)
        )

    def parts_of(self, position: Word) -> list[Word]:
        if not self.pairs:
            return [position]
        twice = self.times(position, 2)
        return [twice, twice + 1]

    def fetch(self, inside: Condition, position: Word) -> Element:
        """An element of the source, or what sorts after all of them."""
        safe = self.b.select(inside, position, 0)
        return self.chosen(inside, self.element_at(safe), (-1,) * self.parts)

    def several(
        self, base: Word, at: Value, n: int, count: int, step: int
    ) -> list[tuple[Value, Element]]:
        """Elements of the row that begins at `base`, from position `at` on, `step` apart, all on their
        way before the first is used; and whether there is such a position among n."""
        positions = [at + k * step for k in range(count)]
        inside = [position < n for position in positions]
        pairs = zip(inside, positions, strict=True)
        return [(on, self.fetch(on, base + position)) for on, position in pairs]

    def deposit(self, inside: Condition, position: Word, item: Element) -> None:
        with self.b.when(inside):
            for at, text in zip(self.parts_of(position), item, strict=True):
                pointer = self.b.element_at(self.dtype, self.b.pointers[self.result], at)
                self.b.store_elements(self.dtype, text, pointer)

    # Numbers.

    def times(self, text: Word, factor: int) -> Word:
        return text * factor

    def smaller(self, x: Value, y: Word) -> Value:
        return self.b.select(x < y, x, y)
