"""Elements of a sort in registers and in memory: numbers, or pairs of a position and a key."""

from __future__ import annotations

from collections.abc import MutableMapping

from ....ir.types import I64
from ...cuda.emitter import ThreadBuilder
from ...cuda.target import CudaTarget
from ...llvm.indices import IndexEmitter
from ...llvm.instructions import SCALAR_TYPES
from ...llvm.loops import LoopEmitter
from ...llvm.scalars import ScalarEmitter
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Sort
from .cuda_select_plan import Select

Element = tuple[str, ...]  # the texts of its parts, the key last


class ElementEmitter:
    """Emits a kernel that moves elements of `source` to `result`."""

    memory: list[str]  # shared, of each part of the elements

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

    def key(self, x: Element) -> str:
        if self.kind != "float":
            return x[-1]
        middle = 1 << (8 * self.dtype.itemsize - 1)  # the codes of both zeros meet here
        below = self.b.value_of(f"icmp eq {self.element} {x[-1]}, {middle - 1}")
        return self.b.value_of(
            f"select i1 {below}, {self.element} {middle}, {self.element} {x[-1]}"
        )

    def chosen(self, condition: str, x: Element, y: Element) -> Element:
        ty = self.element
        return tuple(
            self.b.value_of(f"select i1 {condition}, {ty} {a}, {ty} {b}")
            for a, b in zip(x, y, strict=True)
        )

    # Memory.

    def get(self, local: str) -> Element:
        return tuple(
            self.b.load_elements(self.dtype, self.b.in_shared(self.dtype, memory, local), 1)
            for memory in self.memory
        )

    def put(self, local: str, item: Element) -> None:
        for memory, text in zip(self.memory, item, strict=True):
            self.b.store_elements(self.dtype, text, self.b.in_shared(self.dtype, memory, local), 1)

    def element_at(self, place: str) -> Element:
        pointer = self.b.pointers[self.source]
        return tuple(
            self.b.load_elements(self.dtype, self.b.element_at(self.dtype, pointer, at), 1)
            for at in self.parts_of(place)
        )

    def parts_of(self, place: str) -> list[str]:
        if not self.pairs:
            return [place]
        twice = self.times(place, 2)
        return [twice, self.b.value_of(f"add {self.b.index_type} {twice}, 1")]

    def fetch(self, inside: str, place: str) -> Element:
        """An element of the source, or what sorts after all of them."""
        safe = self.b.value_of(
            f"select i1 {inside}, {self.b.index_type} {place}, {self.b.index_type} 0"
        )
        return self.chosen(inside, self.element_at(safe), ("-1",) * self.parts)

    def several(
        self, base: str, at: str, n: int, count: int, step: int
    ) -> list[tuple[str, Element]]:
        """Elements of the row that begins at `base`, from place `at` on, `step` apart, all on their way
        before the first is used; and whether there is such a place among n."""
        ty, op = self.b.index_type, self.b.value_of
        places = [op(f"add {ty} {at}, {k * step}") for k in range(count)]
        inside = [op(f"icmp slt {ty} {place}, {n}") for place in places]
        pairs = zip(inside, places, strict=True)
        return [(on, self.fetch(on, op(f"add {ty} {base}, {place}"))) for on, place in pairs]

    def deposit(self, inside: str, place: str, item: Element) -> None:
        with self.b.when(inside):
            for at, text in zip(self.parts_of(place), item, strict=True):
                pointer = self.b.element_at(self.dtype, self.b.pointers[self.result], at)
                self.b.store_elements(self.dtype, text, pointer, 1)

    # Numbers.

    def times(self, text: str, factor: int) -> str:
        return self.b.value_of(f"mul {self.b.index_type} {text}, {factor}")

    def narrow(self, text: str) -> str:
        return text if self.b.index_type == "i32" else self.b.value_of(f"trunc i64 {text} to i32")

    def smaller(self, ty: str, x: str, y: str) -> str:
        return self.b.value_of(
            f"select i1 {self.b.value_of(f'icmp slt {ty} {x}, {y}')}, {ty} {x}, {ty} {y}"
        )
