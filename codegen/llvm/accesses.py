"""What an expression's leaves read and where results go: loads, stores, gathers, scatters.

Neighbouring lanes that touch neighbouring elements become one vector load or store, lanes that touch the
same element one scalar. Lanes that touch every other element, as the parts of complex numbers lie,
become a vector of twice the width whose lanes between are masked off. Anything else is a gather or a
scatter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...ir.types import BOOL
from ..loop_ir.index import Index, linear
from ..loop_ir.kernel import Access, Array
from ..math.functions import Function
from ..scalar import DType, Expr
from .builder import Value, constant, vector, vector_constant
from .checks import CheckEmitter
from .functions import FunctionTable
from .instructions import type_text
from .text import Operand, TextEmitter, address, element_type


class AccessEmitter(CheckEmitter):
    """Knows where arrays are: in a register, in a row buffer on the stack, or behind a pointer."""

    registers: dict[Array, Operand]
    buffers: dict[Array, tuple[Any, tuple[int, ...]]]
    pointers: dict[Array, Any]
    origins: dict[Array, int]  # the elements that the pointers point at
    functions: FunctionTable
    called: frozenset[Function]  # those that are not written out

    def register_files(self) -> list[dict[Array, Operand]]:
        """Where values of arrays are remembered: one for each point that is worked on."""
        return [self.registers]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What a block puts into registers is there only where the block has been passed."""
        before = [(file, dict(file)) for file in self.register_files()]
        try:
            with super().scope():
                yield
        finally:
            for file, values in before:
                file.clear()
                file.update(values)

    def emit_leaf(self, expr: Expr) -> Operand:
        if expr.op == "load":
            return self._load(expr)
        if expr.op == "index":
            return self._index(expr.attr)
        if expr.op == "bounded":
            return self._bounded(expr)
        if expr.op == "demanded":
            return self._demanded(expr)
        return super().emit_leaf(expr)

    def call_function(self, function: Function, operands: Sequence[Operand]) -> Operand:
        if function not in self.called:
            return super().call_function(function, operands)
        return self.call_named(function, operands, self)

    def call_named(
        self, function: Function, operands: Sequence[Operand], wide: TextEmitter
    ) -> Operand:
        """Call a function of the module at the width of `wide`, which emits what stands here."""
        uniform = all(x.uniform for x in operands)
        lanes = 1 if uniform else wide.width
        given = [
            self.known(x.text, p.dtype, 1) if uniform else wide.spread(x, p.dtype)
            for p, x in zip(function.params, operands, strict=True)
        ]
        name = self.functions.name(function, lanes)
        ty = type_text(function.root.dtype, lanes)
        call = f"call fastcc {ty} {name}({', '.join(repr(x) for x in given)})"
        return Operand(self.op(ty, call), uniform)

    def leaf_is_uniform(self, expr: Expr) -> bool:
        if self.width == 1 or self.lane is None:
            return True
        if expr.op == "load":
            access: Access = expr.attr
            if access.array in self.registers:
                return self.registers[access.array].uniform
            return all(self._is_uniform_index(i) for i in access.index)
        return expr.op in ("bounded", "demanded") or self._is_uniform_index(expr.attr)

    def _load(self, expr: Expr) -> Operand:
        access: Access = expr.attr
        held = self.registers.get(access.array)
        if held is not None:
            return held
        base, flat = self.place(access.array, access.index)
        guard = self.operand(expr.args[0]) if expr.args else None
        return self._read(access.array.dtype, base, flat, guard)

    def _read(self, dtype: DType, base: str, flat: Index, guard: Operand | None) -> Operand:
        flat = flat.substitute(self.env)
        if self._is_uniform_index(flat):
            offset = self.index_text(flat)
            if guard is not None:
                on = self._any_lane(guard)
                offset = self.select(on, offset, 0)
            return Operand(self.load_elements(dtype, self._address(dtype, base, offset), 1), True)
        mask = self._lanes_on(guard)
        lane = self.lane
        assert lane is not None
        if flat.coeff(lane) == 1 and self._rest_uniform(flat):
            pointer = self._address(dtype, base, self.index_text(flat))
            return Operand(self.load_elements(dtype, pointer, self.width, mask=mask), False)
        if self._is_interleaved(dtype, flat):
            pointer = self._address(dtype, base, self.index_text(flat))
            return Operand(self._load_interleaved(dtype, pointer, mask), False)
        pointers = self._addresses(dtype, base, flat)
        return Operand(self._gather(dtype, pointers, mask), False)

    def _write(self, dtype: DType, base: str, flat: Index, value: Operand) -> None:
        flat = flat.substitute(self.env)
        if self._is_uniform_index(flat):
            if not value.uniform:
                raise AssertionError("a value that differs between lanes is stored to one place")
            self.store_elements(
                dtype, value.text, self._address(dtype, base, self.index_text(flat)), 1
            )
            return
        text = self.spread(value, dtype)
        lane = self.lane
        assert lane is not None
        if flat.coeff(lane) == 1 and self._rest_uniform(flat):
            pointer = self._address(dtype, base, self.index_text(flat))
            self.store_elements(dtype, text, pointer, self.width, mask=self.mask)
        elif self._is_interleaved(dtype, flat):
            pointer = self._address(dtype, base, self.index_text(flat))
            self._store_interleaved(dtype, text, pointer)
        else:
            self._scatter(dtype, text, self._addresses(dtype, base, flat))

    def _is_interleaved(self, dtype: DType, flat: Index) -> bool:
        """Whether the lanes touch every other element."""
        lane = self.lane
        assert lane is not None
        return dtype.itemsize >= 4 and flat.coeff(lane) == 2 and self._rest_uniform(flat)

    def _load_interleaved(self, dtype: DType, pointer: str, mask: str) -> Value:
        wide = self.load_elements(dtype, pointer, 2 * self.width, mask=self._every_other(mask))
        return self.shuffle(wide, Value(wide.type, "poison"), range(0, 2 * self.width, 2))

    def _store_interleaved(self, dtype: DType, value: Value, pointer: str) -> None:
        lanes = [k // 2 for k in range(2 * self.width)]
        spread = self.shuffle(value, Value(value.type, "poison"), lanes)
        mask = self._every_other(self.mask)
        self.store_elements(dtype, spread, pointer, 2 * self.width, mask=mask)

    def _every_other(self, mask: str) -> Value:
        """A mask of twice the width: its even lanes are on as in `mask`, its odd lanes off."""
        if not mask:
            return vector_constant("i1", [True, False] * self.width)
        lanes = [k // 2 if k % 2 == 0 else self.width for k in range(2 * self.width)]
        on = self.known(mask, BOOL, self.width)
        return self.shuffle(on, constant(on.type, "zeroinitializer"), lanes)

    def _lanes_on(self, guard: Operand | None) -> str:
        """The mask of a load: the loop's lanes, and those that the program wants."""
        if guard is None:
            return self.mask
        on = self.spread(guard, BOOL)
        return on & self.mask if self.mask else on

    def _address(self, dtype: DType, base: Any, offset: Any) -> Any:
        return self.offset(address(base), offset, element_type(dtype))

    def _addresses(self, dtype: DType, base: str, flat: Index) -> Value:
        return self.offset(address(base), self._index_vector(flat), element_type(dtype))

    def _gather(self, dtype: DType, places: Value, mask: str) -> Value:
        memory = constant(vector(self.width, element_type(dtype)), "zeroinitializer")
        on = self.known(mask or "splat (i1 true)", BOOL, self.width)
        found = self.gather(places, on, memory, dtype.itemsize)
        return found.ne(0) if dtype == BOOL else found

    def _scatter(self, dtype: DType, value: Value, places: Value) -> None:
        if dtype == BOOL:
            value = self.bytes_of(value, self.width)
        on = self.known(self.mask or "splat (i1 true)", BOOL, self.width)
        self.scatter(value, places, on, dtype.itemsize)

    def place(self, array: Array, index: tuple[Index, ...]) -> tuple[Any, Index]:
        """A pointer, and the offset from it in elements, of a position in an array."""
        buffer = self.buffers.get(array)
        if buffer is not None:
            base, strides = buffer
            return base, linear(index, strides)
        return self.pointers[array], linear(index, array.strides, -self.origins[array])
