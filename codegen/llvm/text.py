"""LLVM instructions as lines of text: names, numbering of equal instructions, loads and stores.

`TextEmitter` appends to `lines`. Values are *uniform* (one scalar for all lanes) or vectors of the full
width; `spread` makes the second out of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, MutableSet
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple, Protocol

from ...ir.types import BOOL
from ..scalar import DType, Expr
from .instructions import SCALAR_TYPES, type_text

LINE = 64  # bytes of a cache line


class TargetLike(Protocol):
    """What scalar code needs to know about the machine."""

    @property
    def vector_bits(self) -> int: ...

    @property
    def features(self) -> str: ...


class Operand(NamedTuple):
    """An emitted value: its text, a scalar's if `uniform` and else a vector's of the full width."""

    text: str
    uniform: bool


class TextEmitter:
    """Emits instructions at one width (1: plain scalars) into `lines`.

    `names` numbers the values and labels of the whole function; `declarations` collects `declare`
    lines; `definitions` maps the body of each module-level constant to its name (`name = body`).
    All three may be shared by several emitters. `block` is the label of the block being filled.
    `table_space` is where tables of constants lie: nothing, or an address space and a blank.
    """

    table_space = ""
    HALF_FEATURES = frozenset(("+f16c", "+neon"))  # one of these converts halves

    def __init__(
        self,
        target: TargetLike,
        lines: list[str],
        width: int,
        names: Iterator[int] | None = None,
        declarations: MutableSet[str] | None = None,
        definitions: MutableMapping[str, str] | None = None,
        block: str = "entry",
    ) -> None:
        self.target = target
        self.lines = lines
        self.width = width
        self.names = count() if names is None else names
        self.declarations: MutableSet[str] = set() if declarations is None else declarations
        self.definitions: MutableMapping[str, str] = {} if definitions is None else definitions
        self.block = block
        features = target.features.split(",")
        self.has_half = not self.HALF_FEATURES.isdisjoint(features)
        self.has_scalef = "+avx512f" in features and "+avx512vl" in features
        self.signatures: dict[Any, tuple[str, str]] = {}
        self._numbered: dict[str, str] = {}  # instruction -> name of its value
        self._numbered_log: list[str] = []

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Values emitted inside are forgotten at its end: for blocks that do not dominate the rest."""
        mark = len(self._numbered_log)
        try:
            yield
        finally:
            while len(self._numbered_log) > mark:
                del self._numbered[self._numbered_log.pop()]

    def value_of(self, instruction: str) -> str:
        """The name of an instruction's value; an instruction that is in scope is not repeated."""
        name = self._numbered.get(instruction)
        if name is None:
            name = f"%v{next(self.names)}"
            self.lines.append(f"  {name} = {instruction}")
            self._numbered[instruction] = name
            self._numbered_log.append(instruction)
        return name

    def fresh(self, instruction: str) -> str:
        """Like `value_of` for what may give another value each time, such as a load."""
        name = f"%v{next(self.names)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def half_by_bits(self, node: Expr, lanes: int, a: str) -> str:
        """A conversion of halves, where the machine has no instruction for it."""
        raise TypeError("a plain text emitter writes no formulas")

    def define(self, prefix: str, body: str) -> str:
        """The name of a module-level constant or metadata node (`prefix` is `@something` or `!`)."""
        return self.definitions.setdefault(body, f"{prefix}{len(self.definitions)}")

    def new_label(self, hint: str) -> str:
        return f"{hint}{next(self.names)}"

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def spread(self, operand: Operand, dtype: DType) -> str:
        """The operand at full width."""
        text, uniform = operand
        if not uniform or self.width == 1:
            return text
        if text[0] != "%":
            return f"splat ({SCALAR_TYPES[dtype]} {text})"
        ty = type_text(dtype, self.width)
        first = self.value_of(f"insertelement {ty} poison, {SCALAR_TYPES[dtype]} {text}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.value_of(f"shufflevector {ty} {first}, {ty} poison, {zeros}")

    def load(self, dtype: DType, pointer: str, lanes: int, align: int = 0, mask: str = "") -> str:
        """Load `lanes` adjacent elements; under a mask, lanes that are off read as zero."""
        memory = _memory_type(dtype, lanes)
        align = align or dtype.itemsize
        if mask:
            symbol = f"@llvm.masked.load.{_memory_suffix(dtype, lanes)}.p0"
            bits = type_text(BOOL, lanes)
            self.declarations.add(f"declare {memory} {symbol}(ptr, {bits}, {memory})")
            text = self.fresh(
                f"call {memory} {symbol}(ptr align {align} {pointer}, {bits} {mask}, "
                f"{memory} zeroinitializer)"
            )
        else:
            text = self.fresh(f"load {memory}, ptr {pointer}, align {align}")
        if dtype == BOOL:
            zero = "0" if lanes == 1 else "zeroinitializer"
            return self.value_of(f"icmp ne {memory} {text}, {zero}")
        return text

    def store(
        self, dtype: DType, text: str, pointer: str, lanes: int, align: int = 0, mask: str = ""
    ) -> None:
        """Store `lanes` adjacent elements, those of the mask if there is one."""
        memory = _memory_type(dtype, lanes)
        align = align or dtype.itemsize
        if dtype == BOOL:
            text = self.value_of(f"zext {type_text(BOOL, lanes)} {text} to {memory}")
        lane = _only_lane(mask)
        if lane is not None:  # LLVM forgets to truncate what is stored under such a mask
            one = self.value_of(f"extractelement {memory} {text}, i64 {lane}")
            place = f"getelementptr i8, ptr {pointer}, i64 {lane * dtype.itemsize}"
            scalar = _memory_type(dtype, 1)
            align = min(align, dtype.itemsize)
            self.lines.append(f"  store {scalar} {one}, ptr {self.value_of(place)}, align {align}")
        elif mask:
            symbol = f"@llvm.masked.store.{_memory_suffix(dtype, lanes)}.p0"
            bits = type_text(BOOL, lanes)
            self.declarations.add(f"declare void {symbol}({memory}, ptr, {bits})")
            self.lines.append(
                f"  call void {symbol}({memory} {text}, ptr align {align} {pointer}, {bits} {mask})"
            )
        else:
            self.lines.append(f"  store {memory} {text}, ptr {pointer}, align {align}")


def _only_lane(mask: str) -> int | None:
    """The lane that is on, if `mask` is a constant with one such lane."""
    bits = mask.strip("<>").split(", ") if mask.startswith("<") else []
    return bits.index("i1 true") if bits.count("i1 true") == 1 else None


def _memory_type(dtype: DType, lanes: int) -> str:
    scalar = "i8" if dtype == BOOL else SCALAR_TYPES[dtype]
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def _memory_suffix(dtype: DType, lanes: int) -> str:
    name = "i8" if dtype == BOOL else f"{'f' if dtype.kind == 'f' else 'i'}{dtype.itemsize * 8}"
    return f"v{lanes}{name}"
