"""The opcodes that allocate, run the entry and build what is returned, as LLVM."""

from __future__ import annotations

from ...codegen.llvm.builder import NULL, zeros
from ...codegen.module import PYTHON_ERROR, STATUS_WORDS
from .arrays_ir import new_array
from .opcodes_ir import Interpreter, opcode
from .program import HITS, Opcode

_STATUS = f"[{STATUS_WORDS} x i64]"


@opcode(Opcode.HOLD)
def _hold(f: Interpreter) -> None:
    value = f.get(2)
    f.call("void", "Py_IncRef", value)
    f.put(1, value)
    f.go(3)


@opcode(Opcode.SCRATCH)
def _scratch(f: Interpreter) -> None:
    array = f.call("ptr", "take_scratch", f.word(3), f.pointer(4), f.pointer(5))
    f.put_new(2, array)
    start = f.data_of(array).to("ptrtoint", "i64") + 63
    f.put(1, start & -64)
    f.go(6)


@opcode(Opcode.SLOT)
def _slot(f: Interpreter) -> None:
    f.put(1, f.slot(2))
    f.go(3)


@opcode(Opcode.MEMORY)
def _memory(f: Interpreter) -> None:
    current, given, found = f.block("current"), f.block("given"), f.block("found", capsule="ptr")
    f.branch(f.pointer(3).eq(NULL), current, given, likely=True)
    f.at(current)
    f.jump(found, f.call("ptr", "PyDataMem_GetHandler"))
    f.at(given)
    f.call("void", "Py_IncRef", f.pointer(3))
    f.jump(found, f.pointer(3))
    (capsule,) = f.at(found)
    f.put_new(1, capsule)
    known, other, done = f.block("known"), f.block("other"), f.block("done", handler="ptr")
    f.branch(capsule.eq(f.pointer(4)), known, other, likely=True)
    f.at(known)
    f.jump(done, f.pointer(5))
    f.at(other)
    handler = f.call("ptr", "PyCapsule_GetPointer", capsule, f.pointer(6))
    f.require(handler.ne(NULL), f.error)
    f.jump(done, handler)
    (handler,) = f.at(done)
    f.put(2, handler)
    f.go(7)


@opcode(Opcode.EMPTY)
def _empty(f: Interpreter) -> None:
    ndim = f.word(4).trunc("i32")
    array = new_array(f, f.pointer(3), ndim, f.offset(f.pc, 8 * 5))
    f.put_new(1, array)
    f.put(2, f.data_of(array))
    f.go(5, f.word(4))


@opcode(Opcode.ALLOCATE)
def _allocate(f: Interpreter) -> None:
    ndim, dims = f.word(7).trunc("i32"), f.offset(f.pc, 8 * 8)
    array = f.call("ptr", "own_array", f.pointer(6), ndim, dims, f.word(5), f.get(3), f.get(4))
    f.put_new(1, array)
    f.put(2, f.data_of(array))
    f.go(8, f.word(7))


@opcode(Opcode.SIZED_ALLOCATE)
def _sized_allocate(f: Interpreter) -> None:
    ndim, dims, length = f.word(12), f.slot(10), f.get(8, "i64")
    given = f.offset(f.pc, 8 * 13)
    with f.each(ndim) as i:
        f.store(f.load("i64", given, i, "i64"), dims, i, "i64")
    f.store(length, dims)
    nbytes = length * f.word(9)
    nbytes = f.select(nbytes.eq(0), f.literal("i64", 1), nbytes)
    big = nbytes.uge(f.word(7))
    memory = (f.select(big, f.get(k + 2), f.get(k)) for k in (3, 4))
    args = (f.pointer(11), ndim.trunc("i32"), dims, nbytes, *memory)
    array = f.call("ptr", "own_array", *args)
    f.put_new(1, array)
    f.put(2, f.data_of(array))
    f.go(13, ndim)


@opcode(Opcode.RUN)
def _run(f: Interpreter) -> None:
    entry, block, status = f.pointer(1), f.slot(2), f.slot(3)
    hits = f.offset(f.program, 8 * HITS)
    f.store(f.load("i64", hits) + 1, hits)
    f.store(zeros(_STATUS), status)
    released, held = f.block("released"), f.block("held")
    done, failed = f.block("done", code="i32"), f.block("failed")
    f.branch(f.word(4).ne(0), released, held)
    f.at(released)
    thread = f.call("ptr", "PyEval_SaveThread")
    code = f.call("i32", entry, block)
    f.call("void", "PyEval_RestoreThread", thread)
    f.jump(done, code)
    f.at(held)
    f.jump(done, f.call("i32", entry, block))
    (code,) = f.at(done)
    ok = f.block("success")
    f.branch(code.eq(0), ok, failed, likely=True)
    f.at(failed)
    f.require(code.ne(PYTHON_ERROR), f.error)
    f.check(~((code > 0) & f.word(6).ne(0)))
    f.call("void", "report_failure", f.pointer(5), code.sext("i64"), status)
    f.jump(f.error)
    f.at(ok)
    f.go(7)


@opcode(Opcode.TOLD)
def _told(f: Interpreter) -> None:
    f.check(f.get(1, "i8").eq(0))
    f.go(2)


@opcode(Opcode.COPY)
def _copy(f: Interpreter) -> None:
    done = f.call("i32", "PyArray_CopyInto", f.get(1), f.get(2))
    f.require(done.eq(0), f.error)
    f.go(3)


@opcode(Opcode.FLOAT_RESULT)
def _float_result(f: Interpreter) -> None:
    f.put_new(1, f.call("ptr", "PyFloat_FromDouble", f.get(2, "double")))
    f.go(3)


@opcode(Opcode.INT_RESULT)
def _int_result(f: Interpreter) -> None:
    f.put_new(1, f.call("ptr", "PyLong_FromLongLong", f.get(2, "i64")))
    f.go(3)


@opcode(Opcode.BOOL_RESULT)
def _bool_result(f: Interpreter) -> None:
    f.put_new(1, f.call("ptr", "PyBool_FromLong", f.get(2, "i8").zext("i64")))
    f.go(3)


@opcode(Opcode.COMPLEX_RESULT)
def _complex_result(f: Interpreter) -> None:
    real, imaginary = f.get(2, "double"), f.load("double", f.slot(2), 8)
    f.put_new(1, f.call("ptr", "PyComplex_FromDoubles", real, imaginary))
    f.go(3)


@opcode(Opcode.GENERIC_RESULT)
def _generic_result(f: Interpreter) -> None:
    f.put_new(1, f.call("ptr", "PyArray_Scalar", f.slot(2), f.pointer(3), NULL))
    f.go(4)


@opcode(Opcode.ALIAS)
def _alias(f: Interpreter) -> None:
    _hold(f)


@opcode(Opcode.CONSTANT)
def _constant(f: Interpreter) -> None:
    value = f.pointer(2)
    f.call("void", "Py_IncRef", value)
    f.put(1, value)
    f.go(3)


def _make(f: Interpreter, cls: str) -> None:
    n, items = f.word(2), f.offset(f.pc, 8 * 3)
    made = f.call("ptr", f"{cls}_New", n)
    f.put_new(1, made)
    with f.each(n) as i:
        item = f.offset(f.frame, f.load("i64", items, i, "i64"), "i64")
        f.call("i32", f"{cls}_SetItem", made, i, f.load("ptr", item))  # takes the reference
        f.store(NULL, item)
    f.go(3, n)


@opcode(Opcode.MAKE_TUPLE)
def _make_tuple(f: Interpreter) -> None:
    _make(f, "PyTuple")


@opcode(Opcode.MAKE_LIST)
def _make_list(f: Interpreter) -> None:
    _make(f, "PyList")


@opcode(Opcode.MAKE_DICT)
def _make_dict(f: Interpreter) -> None:
    """A copy of a dict with the keys, so that it has its size from the start."""
    made, n = f.call("ptr", "PyDict_Copy", f.pointer(2)), f.word(3)
    f.put_new(1, made)
    pairs = f.offset(f.pc, 8 * 4)
    with f.each(n) as i:
        pair = f.offset(pairs, i + i, "i64")
        item = f.load("ptr", f.frame, f.load("i64", pair, 8), "i64")
        done = f.call("i32", "PyDict_SetItem", made, f.load("ptr", pair), item)
        f.require(done.eq(0), f.error)
    f.go(4, n + n)


@opcode(Opcode.CALL)
def _call(f: Interpreter) -> None:
    made = f.call("ptr", "PyObject_Vectorcall", f.pointer(2), f.slot(4), f.word(3), NULL)
    f.put_new(1, made)
    f.go(5)


@opcode(Opcode.PICK)
def _pick(f: Interpreter) -> None:
    n, cases, value = f.word(3), f.offset(f.pc, 8 * 5), f.get(2, "i64")
    f.put(1, f.get(4))
    with f.each(n) as i:
        case = f.offset(cases, i + i, "i64")
        with f.when(f.load("i64", case).eq(value)):
            f.put(1, f.load("ptr", f.frame, f.load("i64", case, 8), "i64"))
    f.call("void", "Py_IncRef", f.get(1))
    f.go(5, n + n)


@opcode(Opcode.PUT_ATTRIBUTE)
def _put_attribute(f: Interpreter) -> None:
    done = f.call("i32", "PyObject_GenericSetAttr", f.get(1), f.pointer(2), f.get(3))
    f.require(done.eq(0), f.error)
    f.go(4)


@opcode(Opcode.PUT_ITEM)
def _put_item(f: Interpreter) -> None:
    f.call("void", "Py_IncRef", f.get(3))
    done = f.call("i32", "PyList_SetItem", f.get(1), f.word(2), f.get(3))  # takes the reference
    f.require(done.eq(0), f.error)
    f.go(4)


@opcode(Opcode.PUT_KEY)
def _put_key(f: Interpreter) -> None:
    done = f.call("i32", "PyDict_SetItem", f.get(1), f.pointer(2), f.get(3))
    f.require(done.eq(0), f.error)
    f.go(4)


@opcode(Opcode.PUT_CELL)
def _put_cell(f: Interpreter) -> None:
    done = f.call("i32", "PyCell_Set", f.get(1), f.get(2))
    f.require(done.eq(0), f.error)
    f.go(3)


@opcode(Opcode.FAR)
def _far(f: Interpreter) -> None:
    after = f.call("ptr", f.pointer(1), f.frame, f.offset(f.pc, 16))
    f.require(after.ne(NULL), f.error)
    f.check(after.ne(f.missed))
    f.go_to(after)


@opcode(Opcode.RETURN)
def _return(f: Interpreter) -> None:
    result = f.get(1)
    f.put(1, NULL)
    f.leave(result)
