"""The builder that emitters hold: numbering of equal instructions, lanes, loads and stores.

Values are *uniform* (one scalar for all lanes) or vectors of the full width; `spread` makes the second
out of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, MutableSet, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, Protocol

from ...ir.types import BOOL
from ..scalar import DType
from .builder import (
    LIKELY,
    Builder,
    Code,
    Condition,
    Number,
    Value,
    as_condition,
    lanes_of,
    vector,
    zeros,
)
from .instructions import SCALAR_TYPES, number, type_text

LINE = 64  # bytes of a cache line


class TargetLike(Protocol):
    """What scalar code needs to know about the machine."""

    @property
    def vector_bits(self) -> int: ...

    @property
    def features(self) -> str: ...

    @property
    def fastmath(self) -> bool: ...


class Operand(NamedTuple):
    """An emitted value: a scalar if `uniform` and else a vector of the full width."""

    value: Value
    uniform: bool


class TextEmitter(Builder):
    """Emits instructions at one width (1: plain scalars).

    `declarations` collects `declare` lines; `definitions` maps the body of each module-level constant to
    its name (`name = body`). They, and the code, may be shared by several emitters. `table_space` is
    where tables of constants lie: nothing, or an address space and a blank. `index_type` is that of
    loop counters and of positions in arrays; a vector of lanes wants i64.
    """

    table_space = ""
    has_flags = True  # arithmetic tells by a flag whether it wrapped
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
        self.mask: Value | None = None  # the lanes that are on, when not all are
        self.index_type = "i64"
        self.declarations: MutableSet[str] = set() if declarations is None else declarations
        self.definitions: MutableMapping[str, str] = {} if definitions is None else definitions
        features = target.features.split(",")
        # Whether a number becomes an integer by the instruction of x86-64: LLVM makes no vectors of it.
        self.as_on_x86 = False
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
    def when(self, condition: Condition, likely: bool = False) -> Iterator[None]:
        """`with b.when(c):` the code inside runs where `c` holds; its values stay inside."""
        body, end = self.later("then"), self.later("next")
        self.branch(condition, body, end, likely)
        with self.scope():
            self.at(body)
            yield
        self.jump(end)
        self.at(end)

    def where(self, condition: Condition | None) -> AbstractContextManager[None]:
        """`with b.where(c):` is `when`, and runs always without a condition."""
        return nullcontext() if condition is None else self.when(condition)

    def both(self, a: Condition | None, b: Condition | None) -> Condition | None:
        """Whether both conditions hold, of those that there are."""
        if a is None or b is None:
            return b if a is None else a
        return a & b

    def no(self, condition: Condition) -> Condition:
        """Whether a condition does not hold."""
        return ~condition if isinstance(condition, Value) else not condition

    @property
    def lines(self) -> list[str]:
        return self.current.lines

    @property
    def names(self) -> Iterator[int]:
        return self.code.numbers

    def define(self, prefix: str, body: str) -> str:
        """The name of a module-level constant or metadata node (`prefix` is `@something` or `!`)."""
        return self.definitions.setdefault(body, f"{prefix}{len(self.definitions)}")

    def table(self, values: Sequence[Value], name: str = "data") -> Value:
        """Where constants of one type lie in memory, one after the other."""
        kind, text = values[0].type, ", ".join([repr(v) for v in values])
        body = f"private unnamed_addr {self.table_space}constant [{len(values)} x {kind}] [{text}]"
        address = self.define(f"@{name}", f"{body}, align 64")
        return Value(f"ptr {self.table_space}".rstrip(), address, self)

    def unlikely(self) -> str:
        """The hint that a branch goes to its first block once in a while only."""
        return ", !prof " + self.define("!", '!{!"branch_weights", i32 1, i32 2000}')

    def likely(self) -> str:
        """The hint that a branch goes to its first block mostly."""
        return ", !prof " + self.define("!", LIKELY)

    def spread(self, operand: Operand, dtype: DType) -> Value:
        """The operand at full width."""
        value, uniform = operand
        if not uniform or self.width == 1:
            return value
        if value.is_constant:
            ty = type_text(dtype, self.width)
            return Value(ty, f"splat ({value!r})", self)
        return self.splat(value, self.width)

    def scalar(self, value: Any, dtype: DType) -> Value:
        """A number of this dtype, as a constant that operators can begin with."""
        return Value(SCALAR_TYPES[dtype], number(value, dtype), self)

    def word(self, a: Value | Number) -> Value:
        """An i64, which may be a number."""
        return a if isinstance(a, Value) else self.literal("i64", a)

    def element_at(self, dtype: DType, base: Value, offset: Value | Number) -> Value:
        """The address of an element, counted from `base`; of several for a vector of offsets."""
        return self.offset(base, offset, element_type(dtype))

    def load_elements(
        self,
        dtype: DType,
        source: Value,
        lanes: int,
        mask: Condition | None = None,
        stays: bool = False,
    ) -> Value:
        """Load `lanes` adjacent elements; under a mask, lanes that are off read as zero.

        What `stays` while the function runs is not loaded twice.
        """
        memory = _memory_type(dtype, lanes)
        if mask is not None:
            on = as_condition(mask, lanes)
            value = self.load_masked(source, on, zeros(memory), dtype.itemsize, stays)
        else:
            load = self.load_once if stays else self.load
            value = load(memory, source, align=dtype.itemsize)
        return value.ne(0) if dtype == BOOL else value

    def bytes_of(self, value: Value, lanes: int) -> Value:
        """Booleans as they lie in memory. Of vectors by a subtraction: what `zext` becomes for AVX-512
        masks, a vector of ones, ends LLVM 20 when it looks for a wider constant that begins so."""
        memory = _memory_type(BOOL, lanes)
        if lanes == 1:
            return self.convert("zext", value, memory)
        return 0 - self.convert("sext", value, memory)

    def store_elements(
        self, dtype: DType, value: Value, target: Value, *, mask: Condition | None = None
    ) -> None:
        """Store adjacent elements, one for each lane of `value`, those of the mask if there is one."""
        lanes, align = lanes_of(value.type), dtype.itemsize
        if dtype == BOOL:
            value = self.bytes_of(value, lanes)
        if mask is None:
            self.store(value, target, align=align)
            return
        on = as_condition(mask, lanes)
        lane = _only_lane(on)
        if lane is None:
            self.store_masked(value, target, on, align)
        else:  # LLVM forgets to truncate what is stored under such a mask
            one = self.extract(value, lane)
            there = self.offset(target, lane * dtype.itemsize)
            self.store(one, there, align=align)


def _only_lane(mask: Value) -> int | None:
    """The lane that is on, if `mask` is a constant with one such lane."""
    bits = mask.text.strip("<>").split(", ") if mask.text.startswith("<") else []
    return bits.index("i1 true") if bits.count("i1 true") == 1 else None


def element_type(dtype: DType) -> str:
    """The LLVM type of an element in memory, where a bool is a byte."""
    return "i8" if dtype == BOOL else SCALAR_TYPES[dtype]


def _memory_type(dtype: DType, lanes: int) -> str:
    return vector(lanes, element_type(dtype))
