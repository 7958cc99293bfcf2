"""The opcodes that look at arguments and at the outside, as LLVM."""

from __future__ import annotations

from ...codegen.llvm.builder import NULL, Value, constant, symbol
from .opcodes_ir import Interpreter, opcode
from .program import ANY_STRIDE, Opcode
from .reading_ir import Items

TRUE, FALSE = symbol("true"), symbol("false")
_EQ = constant("i32", 2)  # Py_EQ


@opcode(Opcode.ARGUMENTS)
def _arguments(f: Interpreter) -> None:
    count = f.word(1)
    f.check(f.names.eq(NULL))
    f.check(f.n.eq(count))
    _take(f, count)
    f.go(2)


@opcode(Opcode.KEYWORDS)
def _keywords(f: Interpreter) -> None:
    count = f.word(1)
    f.check(f.names.ne(NULL))
    f.check(f.n.eq(count))
    f.check(f.call("i64", "PyTuple_Size", f.names).eq(f.word(2)))
    _take(f, count)
    f.go(3)


def _take(f: Interpreter, count: Value) -> None:
    with f.each(count) as i:
        f.store(f.load("ptr", f.arguments, i, "i64"), f.frame, i, "i64")


@opcode(Opcode.KEYWORD)
def _keyword(f: Interpreter) -> None:
    first, guess, name = f.offset(f.arguments, f.word(2), "i64"), f.word(4), f.pointer(5)
    found = f.block("found", j="i64")
    search, next = f.block("search"), f.block("try", j="i64")
    there = f.block("there")
    f.branch(f.call("ptr", "PyTuple_GetItem", f.names, guess).eq(name), there, search, likely=True)
    f.at(there)
    f.jump(found, guess)
    f.at(search)
    f.jump(next, 0)
    (j,) = f.at(next)
    f.check(j < f.word(3))
    yes, no = f.block("yes"), f.block("no")
    f.branch(f.call("ptr", "PyTuple_GetItem", f.names, j).eq(name), yes, no, likely=True)
    f.at(yes)
    f.jump(found, j)
    f.at(no)
    f.jump(next, j + 1)
    (j,) = f.at(found)
    f.put(1, f.load("ptr", first, j, "i64"))
    f.go(6)


def _dtype(f: Interpreter, descr: Value, wanted: Value) -> None:
    """NumPy has one object for each dtype, but gives arrays from a pickle another one."""
    other, same = f.block("other_dtype"), f.block("same_dtype")
    f.branch(descr.eq(wanted), same, other, likely=True)
    f.at(other)
    what = (f.load("i64", d, f.layout.dtype_what) for d in (descr, wanted))
    f.check(next(what).eq(next(what)))
    f.jump(same)
    f.at(same)


def _of_rank(f: Interpreter) -> tuple[Value, Value, Value]:
    """An array of the dtype, flags and rank that the words say; that, its rank and its dims."""
    array, ndim, flags = f.get(1), f.word(4), f.word(5)
    layout = f.layout
    f.check_type(array, "ndarray_type")
    _dtype(f, f.load("ptr", array, layout.descr), f.pointer(3))
    have = f.load("i32", array, layout.flags).zext("i64")
    rank = f.load("i32", array, layout.ndim).zext("i64")
    f.check((have & flags).eq(flags) & rank.eq(ndim))
    return array, ndim, f.load("ptr", array, layout.dims)


def _array(f: Interpreter, strided: bool) -> None:
    array, ndim, dims = _of_rank(f)
    wanted = f.offset(f.pc, 8 * 6)
    strides = f.load("ptr", array, f.layout.strides)
    with f.each(ndim) as i:
        f.check(f.load("i64", dims, i, "i64").eq(f.load("i64", wanted, i, "i64")))
        if strided:
            stride = f.load("i64", wanted, i + ndim, "i64")
            fits = f.load("i64", strides, i, "i64").eq(stride)
            f.check(fits | stride.eq(ANY_STRIDE))
    f.put(2, f.data_of(array))
    f.go(6, ndim + ndim if strided else ndim)


@opcode(Opcode.ARRAY)
def _contiguous(f: Interpreter) -> None:
    _array(f, strided=False)


@opcode(Opcode.STRIDED_ARRAY)
def _strided(f: Interpreter) -> None:
    _array(f, strided=True)


@opcode(Opcode.SIZED_ARRAY)
def _sized(f: Interpreter) -> None:
    array, ndim, dims = _of_rank(f)
    wanted = f.offset(f.pc, 8 * 10)
    length = f.load("i64", dims)
    f.check(length.uge(f.word(8)) & length.ule(f.word(9)))
    with f.each(ndim - 1) as i:
        f.check(f.load("i64", dims, i + 1, "i64").eq(f.load("i64", wanted, i, "i64")))
    with f.when(f.word(7).ne(0)):
        f.put(6, length)
    f.check(f.get(6, "i64").eq(length))
    f.put(2, f.data_of(array))
    f.go(9, ndim)


@opcode(Opcode.FLOAT)
def _float(f: Interpreter) -> None:
    number = f.get(1)
    f.check_type(number, "PyFloat_Type")
    f.put(3, f.call("double", "PyFloat_AsDouble", number))
    f.put(2, f.slot(3))
    f.go(4)


def _small_int(f: Interpreter, number: Value) -> Value:
    """The value of an object that has to be an int of 64 bits."""
    f.check_type(number, "PyLong_Type")
    value = f.call("i64", "PyLong_AsLongLongAndOverflow", number, f.overflow)
    f.check(f.load("i32", f.overflow).eq(0))
    return value


@opcode(Opcode.INT)
def _int(f: Interpreter) -> None:
    f.put(3, _small_int(f, f.get(1)))
    f.put(2, f.slot(3))
    f.go(4)


@opcode(Opcode.BOOL)
def _bool(f: Interpreter) -> None:
    flag = f.get(1)
    yes = flag.eq(TRUE)
    f.check(yes | flag.eq(FALSE))
    f.put(3, yes.zext("i8"))
    f.put(2, f.slot(3))
    f.go(4)


@opcode(Opcode.COMPLEX)
def _complex(f: Interpreter) -> None:
    number = f.get(1)
    f.check_type(number, "PyComplex_Type")
    f.put(3, f.call("double", "PyComplex_RealAsDouble", number))
    imaginary = f.call("double", "PyComplex_ImagAsDouble", number)
    f.store(imaginary, f.offset(f.slot(3), 8))
    f.put(2, f.slot(3))
    f.go(4)


@opcode(Opcode.GENERIC)
def _generic(f: Interpreter) -> None:
    scalar = f.get(1)
    f.check_type(scalar, f.pointer(4))
    f.call("void", "PyArray_ScalarAsCtype", scalar, f.slot(3))
    f.put(2, f.slot(3))
    f.go(5)


@opcode(Opcode.FOREIGN)
def _foreign(f: Interpreter) -> None:
    """Of such a scalar NumPy tells where its value is, not what it is."""
    scalar = f.get(1)
    f.check_type(scalar, f.pointer(4))
    f.call("void", "PyArray_ScalarAsCtype", scalar, f.slot(3))
    f.put(2, f.load("ptr", f.slot(3)))
    f.go(5)


@opcode(Opcode.IS)
def _is(f: Interpreter) -> None:
    f.check(f.get(1).eq(f.pointer(2)))
    f.go(3)


@opcode(Opcode.IS_STRING)
def _is_string(f: Interpreter) -> None:
    text, wanted = f.get(1), f.pointer(2)
    compare, done = f.block("compare"), f.block("done")
    f.branch(text.eq(wanted), done, compare, likely=True)
    f.at(compare)
    f.check_type(text, "PyUnicode_Type")
    f.check(f.call("i32", "PyUnicode_Compare", text, wanted).eq(0))
    f.jump(done)
    f.at(done)
    f.go(3)


@opcode(Opcode.IS_INT)
def _is_int(f: Interpreter) -> None:
    f.check(_small_int(f, f.get(1)).eq(f.word(2)))
    f.go(3)


@opcode(Opcode.IS_FLOAT)
def _is_float(f: Interpreter) -> None:
    number = f.get(1)
    f.check_type(number, "PyFloat_Type")
    bits = f.call("double", "PyFloat_AsDouble", number).to("bitcast", "i64")
    f.check(bits.eq(f.word(2)))
    f.go(3)


@opcode(Opcode.SAME)
def _same(f: Interpreter) -> None:
    f.check(f.get(1).eq(f.get(2)))
    f.go(3)


@opcode(Opcode.DIFFER)
def _differ(f: Interpreter) -> None:
    f.check(f.get(1).ne(f.get(2)))
    f.go(3)


@opcode(Opcode.TUPLE)
def _tuple(f: Interpreter) -> None:
    f.check_type(f.get(1), f.pointer(2))
    _items(f, "PyTuple", f.word(3), f.slot(4))
    f.go(5)


@opcode(Opcode.LIST)
def _list(f: Interpreter) -> None:
    f.check_type(f.get(1), "PyList_Type")
    _items(f, "PyList", f.word(2), f.slot(3))
    f.go(4)


def _items(f: Interpreter, cls: str, n: Value, to: Value) -> None:
    sequence = f.get(1)
    f.check(f.call("i64", f"{cls}_Size", sequence).eq(n))
    held = Items(f, sequence, f.items) if cls == "PyList" else None
    with f.each(n) as i:
        item = f.call("ptr", f"{cls}_GetItem", sequence, i) if held is None else held[i]
        f.store(item, to, i, "i64")


@opcode(Opcode.DICT)
def _dict(f: Interpreter) -> None:
    """The keys have to be the wanted objects, or equal ones of their type, in the wanted order."""
    mapping, n, to, keys = f.get(1), f.word(2), f.slot(3), f.offset(f.pc, 8 * 4)
    f.check_type(mapping, "PyDict_Type")
    f.check(f.call("i64", "PyDict_Size", mapping).eq(n))
    value_at = f.offset(f.pair, 8)
    f.store(constant("i64", 0), f.cursor)
    with f.each(n) as i:
        f.call("i32", "PyDict_Next", mapping, f.cursor, f.pair, value_at)
        key, wanted = f.load("ptr", f.pair), f.load("ptr", keys, i, "i64")
        compare, take = f.block("compare"), f.block("take")
        f.branch(key.eq(wanted), take, compare, likely=True)
        f.at(compare)
        f.check(f.type_of(key).eq(f.type_of(wanted)))
        equal = f.call("i32", "PyObject_RichCompareBool", key, wanted, _EQ)
        f.check(equal.eq(1))
        f.jump(take)
        f.at(take)
        f.store(f.load("ptr", value_at), to, i, "i64")
    f.go(4, n)


@opcode(Opcode.TYPE)
def _type(f: Interpreter) -> None:
    f.check_type(f.get(1), f.pointer(2))
    f.go(3)


@opcode(Opcode.GLOBAL)
def _global(f: Interpreter) -> None:
    value = f.call("ptr", "PyDict_GetItem", f.pointer(2), f.pointer(3))
    f.check(value.ne(NULL))
    f.call("void", "Py_IncRef", value)
    f.put(1, value)
    f.go(4)


@opcode(Opcode.ABSENT)
def _absent(f: Interpreter) -> None:
    f.check(f.call("ptr", "PyDict_GetItem", f.pointer(1), f.pointer(2)).eq(NULL))
    f.go(3)


@opcode(Opcode.UNCHANGED)
def _unchanged(f: Interpreter) -> None:
    same, changed = f.block("same"), f.block("changed")
    f.branch(f.load("i64", f.pointer(1)).eq(f.word(2)), same, changed, likely=True)
    f.at(same)
    f.go(0, f.word(3))
    f.at(changed)
    f.go(4)


@opcode(Opcode.SEEN)
def _seen(f: Interpreter) -> None:
    start = f.offset(f.pc, f.word(2) * -8)
    f.store(f.load("i64", f.pointer(1)), f.offset(start, 16))
    f.go(3)


@opcode(Opcode.CLASS)
def _class(f: Interpreter) -> None:
    version = f.load("i32", f.pointer(1)).zext("i64")
    f.check(version.eq(f.word(2)))
    f.go(3)


@opcode(Opcode.WORD)
def _word(f: Interpreter) -> None:
    f.check(f.load("i64", f.pointer(1)).eq(f.word(2)))
    f.go(3)


@opcode(Opcode.FUNCTION)
def _function(f: Interpreter) -> None:
    """Attributes are a dict that is there from the first of them on."""
    function = f.get(1)
    f.check_type(function, "PyFunction_Type")
    for k, part in enumerate(("Code", "Defaults", "KwDefaults"), 2):
        f.check(f.call("ptr", f"PyFunction_Get{part}", function).eq(f.pointer(k)))
    attributes = f.load("ptr", function, f.word(5))
    known, empty, unlike = f.block("known"), f.block("empty"), f.block("unlike")
    f.branch(attributes.eq(f.pointer(6)), known, unlike, likely=True)
    f.at(unlike)
    f.check(f.pointer(6).eq(NULL) & attributes.ne(NULL))
    f.jump(empty)
    f.at(empty)
    f.check(f.call("i64", "PyDict_Size", attributes).eq(0))
    f.jump(known)
    f.at(known)
    f.go(7)


@opcode(Opcode.CODE_OF)
def _code_of(f: Interpreter) -> None:
    f.check(f.call("ptr", "PyFunction_GetCode", f.pointer(1)).eq(f.pointer(2)))
    f.go(3)


@opcode(Opcode.METHOD)
def _method(f: Interpreter) -> None:
    bound = f.call("ptr", "PyObject_GetAttr", f.get(2), f.pointer(3))
    f.put(1, bound)
    f.require(bound.ne(NULL), f.forgive())
    f.check_type(bound, "PyMethod_Type")
    f.check(f.call("ptr", "PyMethod_Function", bound).eq(f.pointer(4)))
    f.go(5)


@opcode(Opcode.CELL)
def _cell(f: Interpreter) -> None:
    value = f.call("ptr", "PyCell_Get", f.pointer(2))
    f.put(1, value)
    f.check(value.ne(NULL))
    f.go(3)


@opcode(Opcode.ATTRIBUTE)
def _attribute(f: Interpreter) -> None:
    value = f.call("ptr", "PyObject_GetAttr", f.get(2), f.pointer(3))
    f.put(1, value)
    f.require(value.ne(NULL), f.forgive())
    f.go(4)


@opcode(Opcode.ASK)
def _ask(f: Interpreter) -> None:
    value = f.call("ptr", "PyObject_Vectorcall", f.pointer(2), f.slot(4), f.word(3), NULL)
    f.put(1, value)
    f.require(value.ne(NULL), f.forgive())
    f.go(5)


@opcode(Opcode.CODE)
def _code(f: Interpreter) -> None:
    function = f.get(1)
    f.check_type(function, "PyFunction_Type")
    f.check(f.call("ptr", "PyFunction_GetCode", function).eq(f.pointer(2)))
    f.go(3)


@opcode(Opcode.APART)
def _apart(f: Interpreter) -> None:
    """Ranges of bytes, sorted by where they start: none that is written begins before the last end,
    and none before the last end of one that is written."""
    n, ranges = f.word(1), f.slot(2)
    with f.each(n) as i:
        reach = f.offset(f.pc, 8 * 3)
        reach = f.offset(reach, i * (8 * 4))
        start = f.load("i64", f.frame, f.load("i64", reach), "i64")
        low = start + f.load("i64", reach, 8)
        flags = f.load("i64", reach, 24)
        sized = flags >> 1  # where the length is, counted from 1, of which `high` is for each
        where = f.select(sized.eq(0), sized, sized - 1)
        each, length = f.load("i64", reach, 16), f.load("i64", f.frame, where, "i64")
        high = start + f.select(sized.eq(0), each, each * length)
        f.store(low, ranges, i + i, "i64")
        marked = high + high | (flags & 1)
        f.store(marked, f.offset(ranges, 8), i + i, "i64")
    f.call("void", "sort_pairs", ranges, n)
    ends, written_ends = f.pair, f.offset(f.pair, 8)
    f.store(constant("i64", 0), ends)
    f.store(constant("i64", 0), written_ends)
    with f.each(n) as i:
        low = f.load("i64", ranges, i + i, "i64")
        marked = f.load("i64", f.offset(ranges, 8), i + i, "i64")
        written, high = (marked & 1).ne(0), marked >> 1
        end, written_end = f.load("i64", ends), f.load("i64", written_ends)
        f.check(low.uge(f.select(written, end, written_end)))
        f.store(f.larger(end, high), ends)
        f.store(f.select(written, f.larger(written_end, high), written_end), written_ends)
    f.go(3, n * 4)
