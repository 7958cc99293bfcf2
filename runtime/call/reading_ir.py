"""Items of lists and numbers of ints, read where this Python keeps them, as LLVM. The GIL is held."""

from __future__ import annotations

from ...codegen.llvm.builder import Block, Value
from ...codegen.llvm.modules import Function
from ..native.layout import IntLayout


def number_of(
    f: Function, item: Value, ints: IntLayout | None, overflow: Value, wrong: Block
) -> Value:
    """The number of an int; `wrong` is where to go if it is too large. Of short ones it is read where it
    is, by `ints`; `overflow` is room for an i32."""
    long, good = f.block("long"), f.block("good", number="i64")
    if ints is None:
        f.jump(long)
    else:
        head = f.load("i64", item, ints.head)
        digit = f.load("i32", item, ints.digit).zext("i64")
        short = head.ult(16) if ints.tagged else (head + 1).ult(3)
        factor = f.literal("i64", 1) - (head & 3) if ints.tagged else head
        f.fork(short, good, (factor * digit,), long)
    f.at(long)
    number = f.call("i64", "PyLong_AsLongLongAndOverflow", item, overflow)
    f.require(f.load("i32", overflow).eq(0), wrong)
    f.jump(good, number)
    (number,) = f.at(good)
    return number


class Items:
    """The items of a list that nothing changes meanwhile; lists have them `at` (`list_items`)."""

    def __init__(self, f: Function, items: Value, at: int | None) -> None:
        self._f, self._items = f, items
        self._first = None if at is None else f.load("ptr", items, at)

    def __getitem__(self, i: Value) -> Value:
        if self._first is None:
            return self._f.call("ptr", "PyList_GetItem", self._items, i)
        return self._f.load("ptr", self._first, i, "i64")
