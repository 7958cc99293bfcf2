"""What an expression's leaves read and where results go: loads, stores, gathers, scatters.

Neighbouring lanes that touch neighbouring elements become one vector load or store, lanes that touch the
same element one scalar. Lanes that touch every other element, as the parts of complex numbers lie,
become a vector of twice the width whose lanes between are masked off. Anything else is a gather or a
scatter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ...ir.types import BOOL
from ..functions import Function
from ..index import Index, linear
from ..kernel import Access, Array
from ..scalar import DType, Expr
from .checks import CheckEmitter
from .functions import FunctionTable
from .instructions import SCALAR_TYPES, suffix, type_text
from .text import Operand, TextEmitter


class AccessEmitter(CheckEmitter):
    """Knows where arrays are: in a register, in a row buffer on the stack, or behind a pointer."""

    registers: dict[Array, Operand]
    buffers: dict[Array, tuple[str, tuple[int, ...]]]
    pointers: dict[Array, str]
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

    def call(self, function: Function, operands: Sequence[Operand]) -> Operand:
        if function not in self.called:
            return super().call(function, operands)
        return self.call_named(function, operands, self)

    def call_named(
        self, function: Function, operands: Sequence[Operand], wide: TextEmitter
    ) -> Operand:
        """Call a function of the module at the width of `wide`, which emits what stands here."""
        uniform = all(x.uniform for x in operands)
        lanes = 1 if uniform else wide.width
        given = [
            f"{type_text(p.dtype, lanes)} {x.text if uniform else wide.spread(x, p.dtype)}"
            for p, x in zip(function.params, operands, strict=True)
        ]
        name = self.functions.name(function, lanes)
        ty = type_text(function.root.dtype, lanes)
        return Operand(self.value_of(f"call fastcc {ty} {name}({', '.join(given)})"), uniform)

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
                on = guard.text if guard.uniform else self._any_lane(guard)
                offset = self.value_of(
                    f"select i1 {on}, {self.index_type} {offset}, {self.index_type} 0"
                )
            return Operand(self.load(dtype, self._address(dtype, base, offset), 1), True)
        mask = self._lanes_on(guard)
        lane = self.lane
        assert lane is not None
        if flat.coeff(lane) == 1 and self._rest_uniform(flat):
            pointer = self._address(dtype, base, self.index_text(flat))
            return Operand(self.load(dtype, pointer, self.width, mask=mask), False)
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
            self.store(dtype, value.text, self._address(dtype, base, self.index_text(flat)), 1)
            return
        text = self.spread(value, dtype)
        lane = self.lane
        assert lane is not None
        if flat.coeff(lane) == 1 and self._rest_uniform(flat):
            pointer = self._address(dtype, base, self.index_text(flat))
            self.store(dtype, text, pointer, self.width, mask=self.mask)
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

    def _load_interleaved(self, dtype: DType, pointer: str, mask: str) -> str:
        wide = type_text(dtype, 2 * self.width)
        text = self.load(dtype, pointer, 2 * self.width, mask=self._every_other(mask))
        lanes = _constant(2 * k for k in range(self.width))
        return self.value_of(f"shufflevector {wide} {text}, {wide} poison, {lanes}")

    def _store_interleaved(self, dtype: DType, text: str, pointer: str) -> None:
        narrow = type_text(dtype, self.width)
        lanes = _constant(k // 2 for k in range(2 * self.width))
        spread = self.value_of(f"shufflevector {narrow} {text}, {narrow} poison, {lanes}")
        mask = self._every_other(self.mask)
        self.store(dtype, spread, pointer, 2 * self.width, mask=mask)

    def _every_other(self, mask: str) -> str:
        """A mask of twice the width: its even lanes are on as in `mask`, its odd lanes off."""
        if not mask:
            return f"<{', '.join(['i1 true, i1 false'] * self.width)}>"
        bits = type_text(BOOL, self.width)
        lanes = _constant(k // 2 if k % 2 == 0 else self.width for k in range(2 * self.width))
        return self.value_of(f"shufflevector {bits} {mask}, {bits} zeroinitializer, {lanes}")

    def _lanes_on(self, guard: Operand | None) -> str:
        """The mask of a load: the loop's lanes, and those that the program wants."""
        if guard is None:
            return self.mask
        text = self.spread(guard, BOOL)
        if not self.mask:
            return text
        return self.value_of(f"and {type_text(BOOL, self.width)} {text}, {self.mask}")

    def _address(self, dtype: DType, base: str, offset: str) -> str:
        element = "i8" if dtype == BOOL else SCALAR_TYPES[dtype]
        return self.value_of(f"getelementptr {element}, ptr {base}, {self.index_type} {offset}")

    def _addresses(self, dtype: DType, base: str, flat: Index) -> str:
        element = "i8" if dtype == BOOL else SCALAR_TYPES[dtype]
        offsets = self._index_vector(flat)
        return self.value_of(f"getelementptr {element}, ptr {base}, <{self.width} x i64> {offsets}")

    def _gather(self, dtype: DType, pointers: str, mask: str) -> str:
        w = self.width
        memory = f"<{w} x i8>" if dtype == BOOL else type_text(dtype, w)
        name = f"v{w}i8" if dtype == BOOL else suffix(dtype, w)
        symbol = f"@llvm.masked.gather.{name}.v{w}p0"
        bits = type_text(BOOL, w)
        self.declarations.add(f"declare {memory} {symbol}(<{w} x ptr>, {bits}, {memory})")
        on = mask or "splat (i1 true)"
        text = self.fresh(
            f"call {memory} {symbol}(<{w} x ptr> align {dtype.itemsize} {pointers}, {bits} {on}, "
            f"{memory} zeroinitializer)"
        )
        return self.value_of(f"icmp ne {memory} {text}, zeroinitializer") if dtype == BOOL else text

    def _scatter(self, dtype: DType, text: str, pointers: str) -> None:
        w = self.width
        memory = f"<{w} x i8>" if dtype == BOOL else type_text(dtype, w)
        name = f"v{w}i8" if dtype == BOOL else suffix(dtype, w)
        if dtype == BOOL:
            text = self.value_of(f"zext {type_text(BOOL, w)} {text} to {memory}")
        symbol = f"@llvm.masked.scatter.{name}.v{w}p0"
        bits = type_text(BOOL, w)
        self.declarations.add(f"declare void {symbol}({memory}, <{w} x ptr>, {bits})")
        on = self.mask or "splat (i1 true)"
        self.lines.append(
            f"  call void {symbol}({memory} {text}, <{w} x ptr> align {dtype.itemsize} {pointers}, "
            f"{bits} {on})"
        )

    def place(self, array: Array, index: tuple[Index, ...]) -> tuple[str, Index]:
        """A pointer, and the offset from it in elements, of a position in an array."""
        buffer = self.buffers.get(array)
        if buffer is not None:
            base, strides = buffer
            return base, linear(index, strides)
        return self.pointers[array], linear(index, array.strides, -self.origins[array])


def _constant(lanes: Iterable[int]) -> str:
    """The mask of a shufflevector."""
    texts = [f"i32 {k}" for k in lanes]
    return f"<{len(texts)} x i32> <{', '.join(texts)}>"
