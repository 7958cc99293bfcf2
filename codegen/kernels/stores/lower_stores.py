"""Lowering of `store`: each method is a statement of scalar code, in loops and by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ir.graph import Op
from ....ir.ops.control.stores import HEAP_METHODS, METHODS, SETS
from ....ir.types import BOOL, TOKEN, TensorType
from ...llvm.builder import NULL, Value, constant
from ...loop_ir.scalar_code import Body, Require, Special, Write
from ...loop_ir.steps import ScalarCode, StoreRoot
from ...lowering.lower import Lowering, lowering
from ...lowering.scalar_builder import ScalarBuilder, rule
from ...scalar import Expr, Unique, var
from . import order, sequences, set_algebra, sets, tables
from .layout import (
    ARRIVES,
    BLOCK,
    CHANGES,
    FIRST,
    LENGTH,
    Records,
    StoreFunction,
    address,
    closure,
    first_of,
    length_of,
    new,
    nothing,
    record_at,
)
from .sets import Members
from .tables import Entries

WORK = 8  # scalar operations that a method counts for

Code = Callable[[Any, Sequence[Value]], Sequence[Value]]
Plan = tuple[Code | None, Code, tuple[StoreFunction, ...]]
"""What is done first and tells whether there is memory, what is done then, and the functions of both."""


@lowering("store")
def _store(low: Lowering, op: Op) -> None:
    """A method by itself: scalar code that reads operands from memory, and writes its results there."""
    results = [low.array_for(v) for v in op.results if v.type is not TOKEN]
    if op.attrs["method"] == "root":
        low.items.append(StoreRoot(results[0]))
    else:
        p = low.point()
        operands = [p.at(v, ()) for v in op.operands[:-1]]
        block = Body()
        found = _statements(block, op, operands, _no_memory(low, op))
        for array, expr in zip(results, found, strict=True):
            block.statements.append(Write(array, (), expr))
        reads = list(dict.fromkeys(access.array for access in p.reads))
        name = f"store_{op.attrs['method']}"
        low.items.append(ScalarCode(block, reads, results, [name], WORK, loc=op.loc))
    for value, array in zip(op.results, results, strict=False):
        low.arrays[value] = array


@rule("store")
def _in_loop(c: ScalarBuilder, op: Op) -> None:
    operands = [c.scalar(v) for v in op.operands[:-1]]
    for value, held in zip(
        op.results, _statements(c.block, op, operands, _no_memory(c.low, op)), strict=False
    ):
        results = np.empty((), object)
        results[()] = held
        c.bind(value, results)


def _no_memory(low: Lowering, op: Op) -> int | None:
    method = op.attrs["method"]
    if method == "end" or (method in METHODS and not METHODS[method].grows):
        return None
    return low.context.site("memory", "no memory for a container that grows", op)


def _statements(block: Body, op: Op, operands: Sequence[Expr], no_memory: int | None) -> list[Expr]:
    """Add the statements of a method; gives what it gives."""
    make, code, functions = _plan(op)
    helpers = closure(functions)
    types = [v.type for v in op.results if isinstance(v.type, TensorType)]
    results = [var(Unique("stored"), t.dtype) for t in types]
    arguments = list(operands)

    def statement(results: list[Expr], code: Code) -> None:
        def write(b: Any, values: Sequence[Value], pointers: Sequence[Value]) -> Sequence[Value]:
            return code(b, [address(values[0]), *values[1:]])

        block.statements.append(
            Special(results, arguments, [], write, frozenset(), helpers, keeps_gil=False)
        )

    if make is not None:
        assert no_memory is not None
        room = var(Unique("room"), BOOL)
        if code is None:
            statement([room, *results], make)
            block.statements.append(Require(room, no_memory, []))
            return results
        statement([room], make)
        block.statements.append(Require(room, no_memory, []))
    statement(results, code)
    return results


def _plan(op: Op) -> Plan:
    method, key, value = (op.attrs[name] for name in ("method", "key", "value"))
    if method in _PLAIN:
        return _PLAIN[method]()
    if method.startswith("table_"):
        return _TABLES[method](Entries(key, value))
    if method in SETS:
        return _sets(Members(key, op.attrs.get("form", "")), Entries(key, value).nbytes)[method]()
    order = len(key) if method in HEAP_METHODS and value else 0
    return _SEQUENCES[method](Records((*key, *value), order=order), len(key))


def _made(handle: Value) -> list[Value]:
    """Whether there was memory for a new container, and its handle."""
    return [handle.ne(NULL), handle.to("ptrtoint", "i64")]


def _new() -> Any:
    return lambda b, x: _made(b.run(new(), x[0])), None, (new(),)


def _end() -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        """All containers leave the call."""
        all_ = b.load("i64", x[0], align=8)
        b.store(constant("i64", 0), x[0], align=8)
        return [all_]

    return None, code, ()


_PLAIN: dict[str, Callable[[], Any]] = {
    "new": _new,
    "new_table": _new,
    "new_set": _new,
    "end": _end,
}


# Sequences


def _room(nbytes: int) -> Code:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        """Room for one more record at the end: asked for only where there is none in sight."""
        s = x[0]
        with b.when(~_fits(b, s, nbytes)):
            b.run(sequences.reserve(), s, length_of(b, s) * nbytes, nbytes)
        return [_fits(b, s, nbytes)]

    return code


def _fits(b: Any, s: Value, nbytes: int) -> Value:
    from .layout import END

    end = record_at(b, s, length_of(b, s) + 1, nbytes)
    return b.compare("ule", end, b.load("ptr", s, END, align=8))


def _there(b: Any, ok: Value, at: Value, nbytes: int) -> Value:
    """Where to read a record that perhaps is not there."""
    return b.select(ok, at, b.table(nothing(nbytes), "nothing"))


def _append(r: Records, keys: int) -> Any:
    def code(b: Any, x: Sequence[Value]) -> tuple[()]:
        s, *values = x
        length = length_of(b, s)
        r.store(b, record_at(b, s, length, r.nbytes), values)
        b.store(length + 1, s, LENGTH, align=8)
        return ()

    return _room(r.nbytes), code, (sequences.reserve(),)


def _prepend(r: Records, keys: int) -> Any:
    def make(b: Any, x: Sequence[Value]) -> list[Value]:
        s = x[0]
        before = sequences.reserve_before()
        return [b.run(before, s, length_of(b, s) * r.nbytes, r.nbytes)]

    def code(b: Any, x: Sequence[Value]) -> tuple[()]:
        s, *values = x
        at = b.offset(first_of(b, s), -r.nbytes)
        r.store(b, at, values)
        b.store(at, s, FIRST, align=8)
        b.store(length_of(b, s) + 1, s, LENGTH, align=8)
        return ()

    return make, code, (sequences.reserve_before(),)


def _arrive(*_: Any) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        """The record of an object of outside, which is read when it is first asked for."""
        s = x[0]
        with b.when(first_of(b, s).eq(NULL), likely=False):
            b.call("void", b.load("ptr", s, ARRIVES, align=8), s)
        return [first_of(b, s).ne(NULL)]

    return code, None, ()


def _get(r: Records, keys: int) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        i, ok = sequences.place_of(b, x[0], x[1])
        return [ok, *r.load(b, _there(b, ok, record_at(b, x[0], i, r.nbytes), r.nbytes))]

    return None, code, ()


def _set(r: Records, keys: int) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        i, ok = sequences.place_of(b, x[0], x[1])
        with b.when(ok, likely=False):
            r.store(b, record_at(b, x[0], i, r.nbytes), x[2:])
        return [ok]

    return None, code, ()


def _pop(r: Records, keys: int) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        s = x[0]
        length = length_of(b, s)
        ok = length.ne(0)
        last = length - ok.zext("i64")
        record = r.load(b, _there(b, ok, record_at(b, s, last, r.nbytes), r.nbytes))
        b.store(last, s, LENGTH, align=8)
        return [ok, *record]

    return None, code, ()


def _pop_first(r: Records, keys: int) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        s = x[0]
        length, first = length_of(b, s), first_of(b, s)
        ok = length.ne(0)
        record = r.load(b, _there(b, ok, first, r.nbytes))
        b.store(length - ok.zext("i64"), s, LENGTH, align=8)
        b.store(b.offset(first, b.select(ok, r.nbytes, b.literal("i64", 0))), s, FIRST, align=8)
        return [ok, *record]

    return None, code, ()


def _take(r: Records, keys: int) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        i, ok = sequences.place_of(b, x[0], x[1])
        record = r.load(b, _there(b, ok, record_at(b, x[0], i, r.nbytes), r.nbytes))
        with b.when(ok):
            b.run(sequences.delete(), x[0], r.nbytes, i)
        return [ok, *record]

    return None, code, (sequences.delete(),)


def _insert(r: Records, keys: int) -> Any:
    def code(b: Any, x: Sequence[Value]) -> tuple[()]:
        r.store(b, b.run(sequences.open_gap(), x[0], r.nbytes, x[1]), x[2:])
        return ()

    return _room(r.nbytes), code, (sequences.reserve(), sequences.open_gap())


def _called(function: StoreFunction, *fixed: Any, gives: bool = True) -> Any:
    """A method that is one call."""

    def code(b: Any, x: Sequence[Value]) -> Sequence[Value]:
        result = b.run(function, *x, *fixed)
        return (result,) if gives else ()

    return None, code, (function,)


def _growing(function: StoreFunction, *fixed: Any, others: tuple[int, ...] = ()) -> Any:
    """A call that tells whether there was memory; `others` are operands that are handles."""

    def code(b: Any, x: Sequence[Value]) -> Sequence[Value]:
        values = [address(v) if k in others else v for k, v in enumerate(x)]
        return (b.run(function, *values, *fixed),)

    return code, None, (function,)


def _making(function: StoreFunction, others: tuple[int, ...] = ()) -> Any:
    """A call that gives a new container; its second operand is the root, `others` are containers."""

    def code(b: Any, x: Sequence[Value]) -> Sequence[Value]:
        values = [address(v) if k in (1, *others) else v for k, v in enumerate(x)]
        return _made(b.run(function, *values))

    return code, None, (function,)


def _length(*_: Any) -> Any:
    return None, lambda b, x: [length_of(b, x[0])], ()


def _touch(*_: Any) -> Any:
    def code(b: Any, x: Sequence[Value]) -> tuple[()]:
        b.store(b.load("i64", x[0], CHANGES, align=8) + 1, x[0], CHANGES, align=8)
        return ()

    return None, code, ()


def _changes(*_: Any) -> Any:
    return None, lambda b, x: [b.load("i64", x[0], CHANGES, align=8)], ()


def _clear(*_: Any) -> Any:
    def code(b: Any, x: Sequence[Value]) -> tuple[()]:
        b.store(constant("i64", 0), x[0], LENGTH, align=8)
        b.store(b.load("ptr", x[0], BLOCK, align=8), x[0], FIRST, align=8)
        return ()

    return None, code, ()


def _heap_push(r: Records, keys: int) -> Any:
    room, append, _ = _append(r, keys)

    def code(b: Any, x: Sequence[Value]) -> tuple[()]:
        append(b, x)
        b.run(order.sift_down(r), x[0], 0, length_of(b, x[0]) - 1)
        return ()

    return room, code, (sequences.reserve(), order.sift_down(r))


def _heap_pop(r: Records, keys: int) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        ok = length_of(b, x[0]).ne(0)
        record = r.load(b, _there(b, ok, first_of(b, x[0]), r.nbytes))
        with b.when(ok):
            b.run(order.take_least(r), x[0])
        return [ok, *record]

    return None, code, (order.take_least(r),)


def _heap_replace(r: Records, keys: int) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        s, *values = x
        ok = length_of(b, s).ne(0)
        record = r.load(b, _there(b, ok, first_of(b, s), r.nbytes))
        with b.when(ok):
            r.store(b, first_of(b, s), values)
            b.run(order.sift_up(r), s, 0)
        return [ok, *record]

    return None, code, (order.sift_up(r),)


def _heap_push_pop(r: Records, keys: int) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        """The least of the heap if that is less than what is pushed, else what is pushed itself."""
        s, *values = x
        ok = length_of(b, s).ne(0)
        least = r.load(b, _there(b, ok, first_of(b, s), r.nbytes))
        changes = ok & r.less(b, least, values)
        with b.when(changes):
            r.store(b, first_of(b, s), values)
            b.run(order.sift_up(r), s, 0)
        chosen = [b.select(changes, a, v) for a, v in zip(least, values, strict=True)]
        return [b.literal("i1", 1), *chosen]

    return None, code, (order.sift_up(r),)


_SEQUENCES: dict[str, Callable[[Records, int], Any]] = {
    "length": _length,
    "touch": _touch,
    "arrive": _arrive,
    "changes": _changes,
    "get": _get,
    "set": _set,
    "append": _append,
    "prepend": _prepend,
    "insert": _insert,
    "pop": _pop,
    "pop_first": _pop_first,
    "take": _take,
    "clear": _clear,
    "find": lambda r, _: _called(sequences.find(r)),
    "count": lambda r, _: _called(sequences.count(r)),
    "reverse": lambda r, _: _called(sequences.reverse(len(r.dtypes)), gives=False),
    "sort": lambda r, keys: _growing(order.sort(r, keys)),
    "extend": lambda r, _: _growing(sequences.extend(), r.nbytes, others=(1,)),
    "fill": lambda r, _: _growing(sequences.fill(r)),
    "repeat": lambda r, _: _growing(sequences.repeat(), r.nbytes),
    "slice": lambda r, _: _making(sequences.part(len(r.dtypes))),
    "heap_push": _heap_push,
    "heap_pop": _heap_pop,
    "heap_replace": _heap_replace,
    "heap_push_pop": _heap_push_pop,
    "heapify": lambda r, _: _called(order.heapify(r), gives=False),
    "bisect_left": lambda r, _: _called(order.bisect(r, False)),
    "bisect_right": lambda r, _: _called(order.bisect(r, True)),
}


# Tables


def _value(e: Entries) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        at = _there(b, x[1] >= 0, record_at(b, x[0], x[1], e.nbytes), e.nbytes)
        return e.whole.load(b, at, len(e.key))

    return None, code, ()


def _entry(e: Entries) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        at = _there(b, x[1] >= 0, record_at(b, x[0], x[1], e.nbytes), e.nbytes)
        return e.whole.load(b, at)

    return None, code, ()


def _remove(e: Entries) -> Any:
    def code(b: Any, x: Sequence[Value]) -> list[Value]:
        entry = b.run(tables.remove(e), *x)
        ok = entry.ne(NULL)
        return [ok, *e.whole.load(b, _there(b, ok, entry, e.nbytes), len(e.key))]

    return None, code, (tables.remove(e),)


_TABLES: dict[str, Callable[[Entries], Any]] = {
    "table_length": _length,
    "table_find": lambda e: _called(tables.find(e)),
    "table_value": _value,
    "table_entry": _entry,
    "table_put": lambda e: _growing(tables.put(e)),
    "table_remove": _remove,
    "table_clear": lambda e: _called(tables.clear(), gives=False),
    "table_last": lambda e: _called(tables.last(e.nbytes)),
    "table_first": lambda e: _called(tables.first(e.nbytes)),
    "table_positions": lambda e: _making(tables.positions(e.nbytes)),
    "table_copy": lambda e: _making(tables.copy(e.nbytes)),
}


# Sets


def _sets(m: Members, entry_bytes: int) -> dict[str, Callable[[], Any]]:
    """The methods of sets of such keys."""
    nbytes, which = m.nbytes, m.identity

    def entry(b: Any, x: Sequence[Value]) -> list[Value]:
        at = _there(b, x[1] >= 0, record_at(b, x[0], x[1], nbytes), nbytes)
        return m.keys.load(b, at)

    def taken(function: StoreFunction, reads: bool) -> Any:
        def code(b: Any, x: Sequence[Value]) -> list[Value]:
            at = b.run(function, *x)
            ok = at.ne(NULL)
            return [ok, *(m.keys.load(b, _there(b, ok, at, nbytes)) if reads else ())]

        return None, code, (function,)

    def swap(b: Any, x: Sequence[Value]) -> tuple[()]:
        b.run(sets.swap(), x[0], address(x[1]))
        return ()

    return {
        "set_length": _length,
        "set_find": lambda: _called(sets.find(*which)),
        "set_entry": lambda: (None, entry, ()),
        "set_put": lambda: _growing(sets.put(*which)),
        "set_remove": lambda: taken(sets.remove(*which), False),
        "set_pop": lambda: taken(sets.pop(nbytes), True),
        "set_clear": lambda: _called(sets.clear(), gives=False),
        "set_first": lambda: _called(sets.first(nbytes)),
        "set_positions": lambda: _making(sets.positions(nbytes)),
        "set_copy": lambda: _making(set_algebra.copy(*which)),
        "set_intersection": lambda: _making(set_algebra.intersection(*which), (2,)),
        "set_difference": lambda: _making(set_algebra.difference(*which), (2,)),
        "set_merge": lambda: _growing(set_algebra.merge(*which), others=(1,)),
        "set_take_keys": lambda: _growing(set_algebra.take_keys(*which, entry_bytes), others=(1,)),
        "set_take_out": lambda: _growing(set_algebra.difference_update(*which), others=(1,)),
        "set_toggle": lambda: _growing(set_algebra.toggle(*which), others=(1,)),
        "set_shrink": lambda: _growing(sets.shrink(nbytes)),
        "set_swap": lambda: (None, swap, (sets.swap(),)),
        "set_sized": lambda: _growing(sets.sized(nbytes)),
        "set_write": lambda: _called(sets.write(*which), gives=False),
    }
