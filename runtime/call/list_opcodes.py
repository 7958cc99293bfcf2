"""The opcodes that make arrays, and native containers, of lists of numbers and others, as LLVM.

They are a function of their own, `ptr jitney_lists(frame, pc)`, which few processes load: it runs one
opcode and gives where the next one is, or what `jitney_program` does, `MISS` or null.
"""

from __future__ import annotations

from collections.abc import Callable

from ...codegen.llvm.builder import NULL, Value, symbol
from ...codegen.llvm.modules import module_ir
from ..native.layout import IntLayout, NdarrayLayout
from .call_fields import OBJECTS
from .opcodes import Opcode
from .opcodes_ir import Handler, Interpreter
from .reading_ir import Items, number_of

Of = Callable[..., Value]  # of the function that is written, and values
_HANDLERS: dict[int, Handler] = {}


def lists_ir(layout: NdarrayLayout, ints: IntLayout | None, items: int | None) -> str:
    """The LLVM text; `ints` and `items` say where to read."""
    f = Interpreter(layout, "jitney_lists", frame="ptr", pc="ptr")
    f.frame, f.pc = f.args
    f.ints, f.items = ints, items
    f.write(_HANDLERS)
    f.at(f.miss)
    f.ret(f.missed)
    f.at(f.error)
    f.ret(NULL)
    return module_ir([f], list(OBJECTS))


def opcode(op: int) -> Callable[[Handler], Handler]:
    """Registers what writes the code of an opcode."""

    def register(handler: Handler) -> Handler:
        _HANDLERS[op] = handler
        return handler

    return register


def _list(f: Interpreter) -> tuple[Value, Value, Value]:
    return f.get(1), f.get(2), f.word(3)


def _packs(code: int, table: int, cls: str, type: str, value_of: Of) -> None:
    def fill(f: Interpreter, items: Value, data: Value, n: Value) -> None:
        _check_list(f, items, n)
        held = Items(f, items, f.items)
        with f.each(n) as i:
            item = held[i]
            f.check_type(item, cls)
            f.store(value_of(f, item), data, i, type)

    @opcode(code)
    def pack(f: Interpreter) -> None:
        fill(f, *_list(f))
        f.go(4)

    @opcode(table)
    def pack_rows(f: Interpreter) -> None:
        rows, data, n = _list(f)
        columns = f.word(4)
        _check_list(f, rows, n)
        held = Items(f, rows, f.items)
        with f.each(n) as row:
            fill(f, held[row], f.offset(data, row * columns, type), columns)
        f.go(5)


def _check_list(f: Interpreter, items: Value, n: Value) -> None:
    f.check_type(items, "PyList_Type")
    f.check(f.call("i64", "PyList_Size", items).eq(n))


def _float(f: Interpreter, item: Value) -> Value:
    return f.call("double", "PyFloat_AsDouble", item)


def _int(f: Interpreter, item: Value) -> Value:
    return number_of(f, item, f.ints, f.overflow, f.miss)


def _bool(f: Interpreter, item: Value) -> Value:
    return item.eq(symbol("true")).zext("i8")


def _unpacks(code: int, cls: str, type: str, is_same: Of, made_of: Of) -> None:
    """`is_same(item, value)` of an item of the class, `made_of(value)` gives a new one."""

    @opcode(code)
    def unpack(f: Interpreter) -> None:
        items, data, n = _list(f)
        with f.each(n) as i:
            item = f.call("ptr", "PyList_GetItem", items, i)
            f.require(item.ne(NULL), f.error)
            value = f.load(type, data, i, type)
            compare, change, done = f.block("compare"), f.block("change"), f.block("done")
            f.branch(f.type_of(item).eq(symbol(cls)), compare, change, likely=True)
            f.at(compare)
            f.branch(is_same(f, item, value), done, change)
            f.at(change)
            new = made_of(f, value)
            f.require(new.ne(NULL), f.error)
            stored = f.call("i32", "PyList_SetItem", items, i, new)  # takes the reference
            f.require(stored.eq(0), f.error)
            f.jump(done)
            f.at(done)
        f.go(4)


def _same_float(f: Interpreter, item: Value, value: Value) -> Value:
    old = f.call("double", "PyFloat_AsDouble", item)
    return old.to("bitcast", "i64").eq(value.to("bitcast", "i64"))


def _same_int(f: Interpreter, item: Value, value: Value) -> Value:
    old = f.call("i64", "PyLong_AsLongLongAndOverflow", item, f.overflow)
    return old.eq(value) & f.load("i32", f.overflow).eq(0)


def _same_bool(f: Interpreter, item: Value, value: Value) -> Value:
    return item.eq(symbol("true")).eq(value.ne(0))


_packs(Opcode.PACK_FLOATS, Opcode.PACK_FLOAT_ROWS, "PyFloat_Type", "double", _float)
_packs(Opcode.PACK_INTS, Opcode.PACK_INT_ROWS, "PyLong_Type", "i64", _int)
_packs(Opcode.PACK_BOOLS, Opcode.PACK_BOOL_ROWS, "PyBool_Type", "i8", _bool)
_unpacks(
    Opcode.UNPACK_FLOATS,
    "PyFloat_Type",
    "double",
    _same_float,
    lambda f, value: f.call("ptr", "PyFloat_FromDouble", value),
)
_unpacks(
    Opcode.UNPACK_INTS,
    "PyLong_Type",
    "i64",
    _same_int,
    lambda f, value: f.call("ptr", "PyLong_FromLongLong", value),
)
_unpacks(
    Opcode.UNPACK_BOOLS,
    "PyBool_Type",
    "i8",
    _same_bool,
    lambda f, value: f.call("ptr", "PyBool_FromLong", value.zext("i64")),
)


@opcode(Opcode.ENTER)
def _enter(f: Interpreter) -> None:
    n, items, handles, more = f.word(3), f.slot(5), f.slot(6), 8 * 8
    with f.each(n) as i:
        pair = f.offset(f.offset(f.pc, more), i + i, "i64")
        f.store(f.load("ptr", f.frame, f.load("i64", pair), "i64"), items, i, "i64")
        f.store(f.offset(handles, i, "i64"), f.frame, f.load("i64", pair, 8), "i64")
    seen = f.select(f.word(7).ne(0), symbol("none"), NULL)
    capsule = f.call("ptr", f.pointer(2), items, n, f.pointer(4), handles, seen)
    f.put_new(1, capsule)
    f.check(capsule.ne(symbol("none")))
    f.go(8, n + n)


@opcode(Opcode.ARE_STRINGS)
def _are_strings(f: Interpreter) -> None:
    first, n, texts = f.slot(1), f.word(2), f.offset(f.pc, 8 * 3)
    with f.each(n) as i:
        text, wanted = f.load("ptr", first, i, "i64"), f.load("ptr", texts, i, "i64")
        with f.when(text.ne(wanted)):
            f.check_type(text, "PyUnicode_Type")
            f.check(f.call("i32", "PyUnicode_Compare", text, wanted).eq(0))
    f.go(3, n)


@opcode(Opcode.LEAVE)
def _leave(f: Interpreter) -> None:
    handles, n = f.data_of(f.get(2)), f.word(4)
    entered = f.block("entered", first="ptr")
    some, call = f.block("some"), f.block("call")
    f.fork(f.word(6).eq(0), entered, (NULL,), some)
    f.at(some)
    f.jump(entered, f.load("ptr", handles, n + 1, "i64"))
    (first,) = f.at(entered)
    made = f.call("ptr", f.pointer(3), handles, n, f.pointer(5), first)
    f.require(made.ne(NULL), f.error)
    f.jump(call)
    f.at(call)
    with f.each(n) as i:
        item = f.call("ptr", "PyList_GetItem", made, i)
        f.call("void", "Py_IncRef", item)
        f.store(item, f.offset(f.slot(1), i, "i64"))
    f.call("void", "Py_DecRef", made)
    f.go(7)


@opcode(Opcode.PACK_GENERICS)
def _pack_generics(f: Interpreter) -> None:
    items, data, n = _list(f)
    f.check_type(items, "PyList_Type")
    f.check(f.call("i64", "PyList_Size", items).eq(n))
    with f.each(n) as i:
        item = f.call("ptr", "PyList_GetItem", items, i)
        f.check_type(item, f.pointer(4))
        f.call("void", "PyArray_ScalarAsCtype", item, f.offset(data, i, "i64"))
    f.go(5)


@opcode(Opcode.UNPACK_GENERICS)
def _unpack_generics(f: Interpreter) -> None:
    """Items that are there stay if they have the very bits."""
    items, data, n = _list(f)
    with f.each(n) as i:
        new = f.call("ptr", "PyArray_Scalar", f.offset(data, i, "i64"), f.pointer(4), NULL)
        f.require(new.ne(NULL), f.error)
        item = f.call("ptr", "PyList_GetItem", items, i)
        change, drop, done = f.block("change"), f.block("drop"), f.block("done")
        compare = f.block("compare")
        there = item.ne(NULL)
        f.require(there, f.error)
        f.branch(f.type_of(item).eq(f.type_of(new)), compare, change, likely=True)
        f.at(compare)
        f.call("void", "PyArray_ScalarAsCtype", item, f.pair)
        same = f.load("i64", f.pair).eq(f.load("i64", data, i, "i64"))
        f.branch(same, drop, change)
        f.at(drop)
        f.call("void", "Py_DecRef", new)
        f.jump(done)
        f.at(change)
        stored = f.call("i32", "PyList_SetItem", items, i, new)  # takes the reference
        f.require(stored.eq(0), f.error)
        f.jump(done)
        f.at(done)
    f.go(5)
