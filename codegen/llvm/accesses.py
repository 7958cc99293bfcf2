"""What an expression's leaves read and where results go: loads, stores, gathers, scatters.

Neighbouring lanes that touch neighbouring elements become one vector load or store, lanes that touch the
same element one scalar. Lanes that touch every other element, as the parts of complex numbers lie,
become a vector of twice the width whose lanes between are masked off. Anything else is a gather or a
scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ...ir.types import BOOL
from ..loop_ir.index import Index, linear
from ..loop_ir.kernel import Access, Array
from ..scalar import DType, Expr
from .builder import Value, as_condition, poison, vector, vector_constant, zeros
from .indices import IndexEmitter
from .text import Operand, element_type

Buffers = dict[Array, tuple[Value, tuple[int, ...]]]


class AccessEmitter:
    """Knows where arrays are: in a register, in a row buffer on the stack, or behind a pointer."""

    def __init__(
        self, indices: IndexEmitter, pointers: Mapping[Array, Value], origins: Mapping[Array, int]
    ) -> None:
        self.indices, self.exprs, self.b = indices, indices.exprs, indices.b
        self.registers: dict[Array, Operand] = {}
        self.buffers: Buffers = {}  # pointers, and strides in elements
        self.pointers = pointers
        self.origins = origins  # the elements that the pointers point at
        self.lasting: Collection[
            Value
        ] = ()  # pointers to what nothing changes while the function runs
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

    def read(self, dtype: DType, base: Value, flat: Index, guard: Operand | None) -> Operand:
        """Elements of all lanes: one for all, neighbours, every second one, or gathered."""
        flat = flat.substitute(self.indices.env)
        if self.indices.is_uniform(flat):
            offset = self.indices.value(flat)
            if guard is not None:
                on = self.exprs.any_lane(guard)
                offset = self.b.select(on, offset, 0)
            return Operand(self.one(dtype, base, self.b.element_at(dtype, base, offset)), True)
        mask, stays = self._lanes_on(guard), base in self.lasting
        lane = self.indices.lane
        assert lane is not None
        if flat.coeff(lane) == 1 and self.indices.rest_is_uniform(flat):
            pointer = self.b.element_at(dtype, base, self.indices.value(flat))
            loaded = self.b.load_elements(dtype, pointer, self.b.width, mask=mask, stays=stays)
            return Operand(loaded, False)
        if self._is_interleaved(dtype, flat):
            pointer = self.b.element_at(dtype, base, self.indices.value(flat))
            return Operand(self._load_interleaved(dtype, pointer, mask, stays), False)
        pointers = self.b.element_at(dtype, base, self.indices.vector(flat))
        return Operand(self._gather(dtype, pointers, mask, stays), False)

    def one(self, dtype: DType, base: Value, address: Value) -> Value:
        """One element of what begins at `base`."""
        return self.b.load_elements(dtype, address, 1, stays=base in self.lasting)

    def write(self, dtype: DType, base: Value, flat: Index, value: Operand) -> None:
        flat = flat.substitute(self.indices.env)
        if self.indices.is_uniform(flat):
            if not value.uniform:
                raise AssertionError("a value that differs between lanes is stored to one element")
            address = self.b.element_at(dtype, base, self.indices.value(flat))
            self.b.store_elements(dtype, value.value, address)
            return
        new = self.b.spread(value, dtype)
        lane = self.indices.lane
        assert lane is not None
        if flat.coeff(lane) == 1 and self.indices.rest_is_uniform(flat):
            pointer = self.b.element_at(dtype, base, self.indices.value(flat))
            self.b.store_elements(dtype, new, pointer, mask=self.b.mask)
        elif self._is_interleaved(dtype, flat):
            pointer = self.b.element_at(dtype, base, self.indices.value(flat))
            self._store_interleaved(dtype, new, pointer)
        else:
            self._scatter(dtype, new, self.b.element_at(dtype, base, self.indices.vector(flat)))

    def _is_interleaved(self, dtype: DType, flat: Index) -> bool:
        """Whether the lanes touch every other element."""
        lane = self.indices.lane
        assert lane is not None
        return dtype.itemsize >= 4 and flat.coeff(lane) == 2 and self.indices.rest_is_uniform(flat)

    def _load_interleaved(
        self, dtype: DType, pointer: Value, mask: Value | None, stays: bool
    ) -> Value:
        lanes, mask = 2 * self.b.width, self._every_other(mask)
        wide = self.b.load_elements(dtype, pointer, lanes, mask=mask, stays=stays)
        return self.b.shuffle(wide, poison(wide.type), range(0, 2 * self.b.width, 2))

    def _store_interleaved(self, dtype: DType, value: Value, pointer: Value) -> None:
        lanes = [k // 2 for k in range(2 * self.b.width)]
        spread = self.b.shuffle(value, poison(value.type), lanes)
        mask = self._every_other(self.b.mask)
        self.b.store_elements(dtype, spread, pointer, mask=mask)

    def _every_other(self, mask: Value | None) -> Value:
        """A mask of twice the width: its even lanes are on as in `mask`, its odd lanes off."""
        if mask is None:
            return vector_constant("i1", [True, False] * self.b.width)
        lanes = [k // 2 if k % 2 == 0 else self.b.width for k in range(2 * self.b.width)]
        return self.b.shuffle(mask, zeros(mask.type), lanes)

    def _lanes_on(self, guard: Operand | None) -> Value | None:
        """The mask of a load: the loop's lanes, and those that the program wants."""
        if guard is None:
            return self.b.mask
        on = self.b.spread(guard, BOOL)
        return on if self.b.mask is None else on & self.b.mask

    def _gather(self, dtype: DType, addresses: Value, mask: Value | None, stays: bool) -> Value:
        memory = zeros(vector(self.b.width, element_type(dtype)))
        values = self.b.gather(addresses, self._all_or(mask), memory, dtype.itemsize, stays)
        return values.ne(0) if dtype == BOOL else values

    def _scatter(self, dtype: DType, value: Value, addresses: Value) -> None:
        if dtype == BOOL:
            value = self.b.bytes_of(value, self.b.width)
        self.b.scatter(value, addresses, self._all_or(self.b.mask), dtype.itemsize)

    def _all_or(self, mask: Value | None) -> Value:
        """The lanes of the mask; all of them without one."""
        return as_condition(True if mask is None else mask, self.b.width)

    def locate(self, array: Array, index: tuple[Index, ...]) -> tuple[Value, Index]:
        """A pointer, and the offset from it in elements, of a position in an array."""
        buffer = self.buffers.get(array)
        if buffer is not None:
            base, strides = buffer
            return base, linear(index, strides)
        return self.pointers[array], linear(index, array.strides, -self.origins[array])
