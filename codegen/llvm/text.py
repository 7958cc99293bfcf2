"""The builder that emitters hold: numbering of equal instructions, lanes, loads and stores.

Values are *uniform* (one scalar for all lanes) or vectors of the full width; `spread` makes the second
out of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, MutableSet
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from ...ir.types import BOOL
from ..scalar import DType
from .builder import (
    Builder,
    Code,
    Number,
    Value,
    constant,
    vector,
)
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

    text: Any
    uniform: bool


class TextEmitter(Builder):
    """Emits instructions at one width (1: plain scalars).

    `declarations` collects `declare` lines; `definitions` maps the body of each module-level constant to
    its name (`name = body`). They, and the code, may be shared by several emitters. `table_space` is
    where tables of constants lie: nothing, or an address space and a blank. `index_type` is that of
    loop counters and of positions in arrays; a vector of lanes wants i64.
    """

    table_space = ""
    HALF_FEATURES = frozenset(("+f16c", "+neon"))  # one of these converts halves

    def __init__(
        self,
        target: TargetLike,
        width: int,
        code: Code | None = None,
        declarations: MutableSet[str] | None = None,
        definitions: MutableMapping[str, str] | None = None,
    ) -> None:
        super().__init__(code)
        self.target = target
        self.width = width
        self.mask: Any = ""  # the lanes that are on, when not all are
        self.index_type = "i64"
        self.declarations: MutableSet[str] = set() if declarations is None else declarations
        self.definitions: MutableMapping[str, str] = {} if definitions is None else definitions
        features = target.features.split(",")
        self.has_half = not self.HALF_FEATURES.isdisjoint(features)
        self.has_scalef = "+avx512f" in features and "+avx512vl" in features
        self._numbered: dict[str, Value] = {}  # instruction -> its value
        self._numbered_log: list[str] = []
        # What else is forgotten at the end of a scope: at its begin each gives what brings it back.
        self.scoped: list[Callable[[], Callable[[], None]]] = []

    def narrower(self, width: int) -> TextEmitter:
        """A builder for `width` lanes that goes on where this one stands."""
        return TextEmitter(self.target, width, self.code, self.declarations, self.definitions)

    def beside(self, width: int) -> TextEmitter:
        """A builder for `width` lanes that goes on where this one stands, and shares its scopes."""
        other = self.narrower(width)
        other.moves = self.moves
        other._numbered, other._numbered_log = self._numbered, self._numbered_log
        return other

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Values emitted inside are forgotten at its end: for blocks that do not dominate the rest."""
        mark = len(self._numbered_log)
        restored = [state() for state in self.scoped]
        try:
            yield
        finally:
            for restore in restored:
                restore()
            while len(self._numbered_log) > mark:
                del self._numbered[self._numbered_log.pop()]

    def declare(self, name: str, declaration: str) -> None:
        self.declarations.add(declaration)

    def op(self, type: str, text: str) -> Value:
        """An instruction that is in scope is not repeated."""
        value = self._numbered.get(text)
        if value is None:
            value = self._numbered[text] = Builder.fresh(self, type, text)
            self._numbered_log.append(text)
        return value

    @contextmanager
    def when(
        self, condition: Value | Number, likely: bool = False, hint: str = "then"
    ) -> Iterator[None]:
        """`with b.when(c):` the code inside runs where `c` holds; its values stay inside."""
        body, end = self.later(hint), self.later("next")
        self.branch(condition, body, end, likely)
        with self.scope():
            self.at(body)
            yield
        self.jump(end)
        self.at(end)

    @property
    def lines(self) -> list[str]:
        return self.current.lines

    @property
    def names(self) -> Iterator[int]:
        return self.code.numbers

    def define(self, prefix: str, body: str) -> str:
        """The name of a module-level constant or metadata node (`prefix` is `@something` or `!`)."""
        return self.definitions.setdefault(body, f"{prefix}{len(self.definitions)}")

    def seldom(self) -> str:
        """The hint that a branch goes to its first block once in a while only."""
        return ", !prof " + self.define("!", '!{!"branch_weights", i32 1, i32 2000}')

    def spread(self, operand: Operand, dtype: DType) -> Value:
        """The operand at full width."""
        text, uniform = operand
        if not uniform or self.width == 1:
            return self.known(text, dtype, self.width)
        if text[0] != "%":
            ty = type_text(dtype, self.width)
            return Value(ty, f"splat ({SCALAR_TYPES[dtype]} {text})", self)
        return self.splat(self.known(text, dtype, 1), self.width)

    def known(self, text: str, dtype: DType, lanes: int) -> Value:
        """A value of this dtype, by its text."""
        return text if isinstance(text, Value) else Value(type_text(dtype, lanes), text, self)

    def word(self, a: Value | Number) -> Value:
        """An i64, which may be a number or the text of one."""
        return a if isinstance(a, Value) else self.literal("i64", a)

    def element_at(self, dtype: DType, base: Any, offset: Any) -> Any:
        """The address of an element, counted from `base`; of several for a vector of offsets."""
        return self.offset(address(base), offset, element_type(dtype))

    def load_elements(
        self,
        dtype: DType,
        pointer: str,
        lanes: int,
        align: int = 0,
        mask: str = "",
        stays: bool = False,
    ) -> Value:
        """Load `lanes` adjacent elements; under a mask, lanes that are off read as zero.

        What `stays` while the function runs is not loaded twice.
        """
        memory, place = _memory_type(dtype, lanes), address(pointer)
        align = align or dtype.itemsize
        if mask:
            on = self.known(mask, BOOL, lanes)
            found = self.load_masked(place, on, constant(memory, "zeroinitializer"), align)
        else:
            text = f"load {memory}, {place!r}, align {align}"
            found = self.op(memory, text) if stays else self.fresh(memory, text)
        return found.ne(0) if dtype == BOOL else found

    def bytes_of(self, value: Value, lanes: int) -> Value:
        """Booleans as they lie in memory. Of vectors by a subtraction: what `zext` becomes for AVX-512
        masks, a vector of ones, ends LLVM 20 when it looks for a wider constant that begins so."""
        memory = _memory_type(BOOL, lanes)
        if lanes == 1:
            return self.convert("zext", value, memory)
        return 0 - self.convert("sext", value, memory)

    def store_elements(
        self, dtype: DType, text: str, pointer: str, lanes: int, align: int = 0, mask: str = ""
    ) -> None:
        """Store `lanes` adjacent elements, those of the mask if there is one."""
        value, place = self.known(text, dtype, lanes), address(pointer)
        align = align or dtype.itemsize
        if dtype == BOOL:
            value = self.bytes_of(value, lanes)
        lane = _only_lane(mask)
        if lane is not None:  # LLVM forgets to truncate what is stored under such a mask
            one = self.extract(value, lane)
            there = self.offset(place, lane * dtype.itemsize)
            self.store(one, there, align=min(align, dtype.itemsize))
        elif mask:
            self.store_masked(value, place, self.known(mask, BOOL, lanes), align)
        else:
            self.store(value, place, align=align)


def address(text: str) -> Value:
    """A pointer, by its text, which may begin with an address space."""
    if isinstance(text, Value):
        return text
    space, _, name = text.rpartition(" ")
    return Value(f"ptr {space}".strip(), name)


def _only_lane(mask: str) -> int | None:
    """The lane that is on, if `mask` is a constant with one such lane."""
    bits = mask.strip("<>").split(", ") if mask.startswith("<") else []
    return bits.index("i1 true") if bits.count("i1 true") == 1 else None


def element_type(dtype: DType) -> str:
    """The LLVM type of an element in memory, where a bool is a byte."""
    return "i8" if dtype == BOOL else SCALAR_TYPES[dtype]


def _memory_type(dtype: DType, lanes: int) -> str:
    return vector(lanes, element_type(dtype))
