"""How containers lie in memory, and how records are moved and compared.

A header has twelve words: the next container of the call; the block of records, the first of them, their
number, the block's end; of tables the index, its mask, and how many entries are taken; how often it has
changed, for who runs over it; the Python object that it becomes, when it has left the call, or that it
was made of; what says how it was made of that; and whether the block is only lent, and who made the
header gives it back. Of an object of outside that nobody has asked for yet there is no record: what
reads it is in the place of the entries, and where the others of its call are in that of the mask.
A record is a word for each of its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ....ir.types import BOOL
from ...llvm.builder import NULL, Builder, Callee, Number, Value, constant
from ...llvm.instructions import SCALAR_TYPES
from ...llvm.modules import Function

DType = np.dtype[Any]
DTypes = tuple[DType, ...]

WORD = 8
LINK, BLOCK, FIRST, LENGTH, END, INDEX, MASK, TAKEN, CHANGES, OBJECT, KIND, LENT = (
    k * WORD for k in range(12)
)
HEADER_BYTES = 12 * WORD
LEAST_BYTES = 64  # of a block
ARRIVES, AMONG = TAKEN, MASK  # of an object without a record: what makes it, and of which state
PASSED = END  # of a table: how many entries at its begin are known to be removed
ALLOCATE, RELEASE = "PyMem_RawMalloc", "PyMem_RawFree"  # Python's, which gives results back to it


class StoreFunction(Function):
    """A function of the module that knows which others it calls."""

    def __init__(self, result: str, name: str, **params: str) -> None:
        super().__init__(result, f"store_{name}", internal=True, **params)
        self.called: list[StoreFunction] = []

    def run(self, function: Callee, *args: Value | Number) -> Value:
        if isinstance(function, StoreFunction):
            self.called.append(function)
        return super().run(function, *args)

    def allocate(self, nbytes: Value | Number) -> Value:
        return self.call("ptr", ALLOCATE, nbytes)

    def release(self, block: Value) -> None:
        """Give memory back, if there is any."""
        self.call("void", RELEASE, block)

    def leave_block(self, s: Value) -> None:
        """Give the block of a container back, which gets another one, if it is its own."""
        with self.when(self.load("i64", s, LENT).eq(0)):
            self.release(self.load("ptr", s, BLOCK))
        self.store(self.literal("i64", 0), s, LENT)


def closure(functions: Sequence[StoreFunction]) -> tuple[StoreFunction, ...]:
    """Functions and what they call, each once."""
    found: dict[StoreFunction, None] = {}
    waiting = list(functions)
    while waiting:
        function = waiting.pop()
        if function not in found:
            found[function] = None
            waiting += function.called
    return tuple(found)


class Records:
    """Records of these dtypes, `lead` bytes behind where they begin. Which of two is less, the first
    `order` values say; if that is 0 all do."""

    def __init__(self, dtypes: DTypes, lead: int = 0, order: int = 0) -> None:
        self.dtypes = dtypes
        self.lead = lead
        self.order = order
        self.nbytes = lead + WORD * len(dtypes)

    @property
    def name(self) -> str:
        name = "".join(f"{d.kind}{d.itemsize}" for d in self.dtypes) or "none"
        return f"{name}_by_{self.order}" if self.order else name

    @property
    def types(self) -> list[str]:
        return [SCALAR_TYPES[d] for d in self.dtypes]

    def params(self, prefix: str) -> dict[str, str]:
        """The values of a record as parameters of a function."""
        return {f"{prefix}{k}": type for k, type in enumerate(self.types)}

    def load(self, b: Builder, at: Value, start: int = 0, stop: int | None = None) -> list[Value]:
        """The values, or some of them, of the record at an address."""
        values = []
        for k, dtype in list(enumerate(self.dtypes))[start:stop]:
            offset = self.lead + WORD * k
            if dtype == BOOL:
                values.append(b.load("i8", at, offset, align=1).ne(0))
            else:
                values.append(b.load(SCALAR_TYPES[dtype], at, offset, align=dtype.itemsize))
        return values

    def store(self, b: Builder, at: Value, values: Sequence[Value], start: int = 0) -> None:
        for k, (value, dtype) in enumerate(zip(values, self.dtypes[start:], strict=False), start):
            if dtype == BOOL:
                value = b.convert("zext", value, "i8")
            b.store(value, at, self.lead + WORD * k, align=dtype.itemsize)

    def copy(self, b: Builder, to: Value, source: Value) -> None:
        for offset in range(0, self.nbytes, WORD):
            b.store(b.load("i64", source, offset, align=8), to, offset, align=8)

    def equal(self, b: Builder, left: Sequence[Value], right: Sequence[Value]) -> Value:
        same: Value | None = None
        for x, y, dtype in zip(left, right, self.dtypes, strict=False):
            is_float = dtype.kind == "f"
            one = b.compare_floats("oeq", x, y) if is_float else b.compare("eq", x, y)
            same = one if same is None else same & one
        assert same is not None
        return same

    def less(self, b: Builder, left: Sequence[Value], right: Sequence[Value]) -> Value:
        """Whether one tuple is less than another: the first values that differ decide."""
        verdict: Value | None = None
        ordering = self.dtypes[: self.order or None]
        for x, y, dtype in reversed(list(zip(left, right, ordering, strict=False))):
            if dtype.kind == "f":
                less, differ = b.compare_floats("olt", x, y), b.compare_floats("une", x, y)
            else:
                less = b.compare("slt" if dtype.kind == "i" else "ult", x, y)
                differ = b.compare("ne", x, y)
            verdict = less if verdict is None else b.select(differ, less, verdict)
        assert verdict is not None
        return verdict


def first_of(b: Builder, s: Value) -> Value:
    """The address of a container's first record."""
    return b.load("ptr", s, FIRST, align=8)


def length_of(b: Builder, s: Value) -> Value:
    """How many records, or live entries, a container has."""
    return b.load("i64", s, LENGTH, align=8)


def record_at(b: Builder, s: Value, i: Value, nbytes: int) -> Value:
    """Where record `i` is."""
    return b.offset(first_of(b, s), i * nbytes)


@cache
def new() -> StoreFunction:
    """An empty container, kept in the list at `root`; null if there is no memory."""
    f = StoreFunction("ptr", "new", root="ptr")
    made = f.allocate(HEADER_BYTES)
    with f.when(made.ne(NULL)):
        f.fill(made, 0, HEADER_BYTES, align=8)
        f.store(f.load("ptr", f.root), made, LINK)
        f.store(made, f.root)
    f.ret(made)
    return f


@cache
def free_all() -> StoreFunction:
    """Give all containers of a list back."""
    f = StoreFunction("void", "free_all", root="ptr")
    with f.loop(s=f.load("ptr", f.root)) as each:
        each.going(each.s.ne(NULL))
        following = f.load("ptr", each.s, LINK)
        for owned in (INDEX, BLOCK):
            f.release(f.load("ptr", each.s, owned))
        f.release(each.s)
        each.next(following)
    f.ret()
    return f


def address(value: Value) -> Value:
    """A handle as the address that it is."""
    return value.to("inttoptr", "ptr")


def nothing(nbytes: int) -> list[Value]:
    """Words to be read where there is no record."""
    return [constant("i64", 0)] * max(nbytes // WORD, 1)
