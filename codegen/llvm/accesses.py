"""What an expression's leaves read and where results go: loads, stores, gathers, scatters.

Neighbouring lanes that touch neighbouring elements become one vector load or store, lanes that touch the
same element one scalar. Lanes that touch every other element, as the parts of complex numbers lie,
become a vector of twice the width whose lanes between are masked off. Anything else is a gather or a
scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...ir.types import BOOL
from ..loop_ir.index import Index, linear
from ..loop_ir.kernel import Access, Array
from ..scalar import DType, Expr
from .builder import Value, constant, vector, vector_constant
from .indices import IndexEmitter
from .text import Operand, element_type

Buffers = dict[Array, tuple[Any, tuple[int, ...]]]


class AccessEmitter:
    """Knows where arrays are: in a register, in a row buffer on the stack, or behind a pointer."""

    def __init__(
        self, indices: IndexEmitter, pointers: Mapping[Array, Any], origins: Mapping[Array, int]
    ) -> None:
        self.indices, self.exprs, self.b = indices, indices.exprs, indices.b
        self.registers: dict[Array, Operand] = {}
        self.buffers: Buffers = {}  # pointers, and strides in elements
        self.pointers = pointers
        self.origins = origins  # the elements that the pointers point at
        # Loads of what has been brought elsewhere, and what gives their values.
        self.brought: dict[Expr, Callable[[], Operand]] = {}
        self.b.scoped.append(self._scoped)

    def register_files(self) -> list[dict[Array, Operand]]:
        """Where values of arrays are remembered: one for each point that is worked on."""
        return [self.registers]

    def _scoped(self) -> Callable[[], None]:
        """What a block puts into registers is there only where the block has been passed."""
        before = [(file, dict(file)) for file in self.register_files()]

        def restore() -> None:
            for file, values in before:
                file.clear()
                file.update(values)

        return restore

    def is_uniform(self, access: Access) -> bool:
        """Whether what is read is the same in all lanes."""
        if access.array in self.registers:
            return self.registers[access.array].uniform
        return all(self.indices.is_uniform(i) for i in access.index)

    def load(self, expr: Expr) -> Operand:
        """The value of a load: from a register, from what was turned over, or from memory."""
        brought = self.brought.get(expr)
        if brought is not None:
            return brought()
        access: Access = expr.attr
        held = self.registers.get(access.array)
        if held is not None:
            return held
        base, flat = self.locate(access.array, access.index)
        guard = self.exprs.operand(expr.args[0]) if expr.args else None
        return self.read(access.array.dtype, base, flat, guard)

    def read(self, dtype: DType, base: str, flat: Index, guard: Operand | None) -> Operand:
        """Elements of all lanes: one for all, neighbours, every second one, or gathered."""
        flat = flat.substitute(self.indices.env)
        if self.indices.is_uniform(flat):
            offset = self.indices.value(flat)
            if guard is not None:
                on = self.exprs.any_lane(guard)
                offset = self.b.select(on, offset, 0)
            return Operand(self.one(dtype, base, self.b.element_at(dtype, base, offset)), True)
        mask = self._lanes_on(guard)
        lane = self.indices.lane
        assert lane is not None
        if flat.coeff(lane) == 1 and self.indices.rest_is_uniform(flat):
            pointer = self.b.element_at(dtype, base, self.indices.value(flat))
            return Operand(self.b.load_elements(dtype, pointer, self.b.width, mask=mask), False)
        if self._is_interleaved(dtype, flat):
            pointer = self.b.element_at(dtype, base, self.indices.value(flat))
            return Operand(self._load_interleaved(dtype, pointer, mask), False)
        pointers = self.b.element_at(dtype, base, self.indices.vector(flat))
        return Operand(self._gather(dtype, pointers, mask), False)

    def one(self, dtype: DType, base: Any, address: Any) -> Value:
        """One element of what begins at `base`."""
        return self.b.load_elements(dtype, address, 1)

    def write(self, dtype: DType, base: str, flat: Index, value: Operand) -> None:
        flat = flat.substitute(self.indices.env)
        if self.indices.is_uniform(flat):
            if not value.uniform:
                raise AssertionError("a value that differs between lanes is stored to one element")
            self.b.store_elements(
                dtype, value.text, self.b.element_at(dtype, base, self.indices.value(flat)), 1
            )
            return
        text = self.b.spread(value, dtype)
        lane = self.indices.lane
        assert lane is not None
        if flat.coeff(lane) == 1 and self.indices.rest_is_uniform(flat):
            pointer = self.b.element_at(dtype, base, self.indices.value(flat))
            self.b.store_elements(dtype, text, pointer, self.b.width, mask=self.b.mask)
        elif self._is_interleaved(dtype, flat):
            pointer = self.b.element_at(dtype, base, self.indices.value(flat))
            self._store_interleaved(dtype, text, pointer)
        else:
            self._scatter(dtype, text, self.b.element_at(dtype, base, self.indices.vector(flat)))

    def _is_interleaved(self, dtype: DType, flat: Index) -> bool:
        """Whether the lanes touch every other element."""
        lane = self.indices.lane
        assert lane is not None
        return dtype.itemsize >= 4 and flat.coeff(lane) == 2 and self.indices.rest_is_uniform(flat)

    def _load_interleaved(self, dtype: DType, pointer: str, mask: str) -> Value:
        wide = self.b.load_elements(dtype, pointer, 2 * self.b.width, mask=self._every_other(mask))
        return self.b.shuffle(wide, Value(wide.type, "poison"), range(0, 2 * self.b.width, 2))

    def _store_interleaved(self, dtype: DType, value: Value, pointer: str) -> None:
        lanes = [k // 2 for k in range(2 * self.b.width)]
        spread = self.b.shuffle(value, Value(value.type, "poison"), lanes)
        mask = self._every_other(self.b.mask)
        self.b.store_elements(dtype, spread, pointer, 2 * self.b.width, mask=mask)

    def _every_other(self, mask: str) -> Value:
        """A mask of twice the width: its even lanes are on as in `mask`, its odd lanes off."""
        if not mask:
            return vector_constant("i1", [True, False] * self.b.width)
        lanes = [k // 2 if k % 2 == 0 else self.b.width for k in range(2 * self.b.width)]
        on = self.b.typed(mask, BOOL, self.b.width)
        return self.b.shuffle(on, constant(on.type, "zeroinitializer"), lanes)

    def _lanes_on(self, guard: Operand | None) -> str:
        """The mask of a load: the loop's lanes, and those that the program wants."""
        if guard is None:
            return self.b.mask
        on = self.b.spread(guard, BOOL)
        return on & self.b.mask if self.b.mask else on

    def _gather(self, dtype: DType, addresses: Value, mask: str) -> Value:
        memory = constant(vector(self.b.width, element_type(dtype)), "zeroinitializer")
        on = self.b.typed(mask or "splat (i1 true)", BOOL, self.b.width)
        values = self.b.gather(addresses, on, memory, dtype.itemsize)
        return values.ne(0) if dtype == BOOL else values

    def _scatter(self, dtype: DType, value: Value, addresses: Value) -> None:
        if dtype == BOOL:
            value = self.b.bytes_of(value, self.b.width)
        on = self.b.typed(self.b.mask or "splat (i1 true)", BOOL, self.b.width)
        self.b.scatter(value, addresses, on, dtype.itemsize)

    def locate(self, array: Array, index: tuple[Index, ...]) -> tuple[Any, Index]:
        """A pointer, and the offset from it in elements, of a position in an array."""
        buffer = self.buffers.get(array)
        if buffer is not None:
            base, strides = buffer
            return base, linear(index, strides)
        return self.pointers[array], linear(index, array.strides, -self.origins[array])
