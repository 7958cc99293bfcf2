"""Native records of objects of users' classes, and copies of arrays in them, as LLVM (`entering_ir`)."""

from __future__ import annotations

from ...codegen.kernels.stores import layout
from ...codegen.llvm.builder import NULL, Value, symbol
from ...codegen.llvm.modules import Defined, Function
from ..native.layout import C_CONTIGUOUS, InstanceLayout, NdarrayLayout
from . import objects_ir as o

WORD = o.WORD
TAKE = Defined("take", ("ptr", "ptr", "ptr"), "i1")
ROOM = Defined("room", ("ptr", "i64"), "ptr")
ATTRIBUTES = Defined("attributes", ("ptr", "ptr"), "i1")
COPY = Defined("copy", ("ptr", "ptr", "ptr", "ptr"), "i1")
PLACE = WORD  # of a cursor, after the next node: where its values go
MORE = 16  # bytes behind the records of a sequence


def one_record(f: Function, made: Value, nbytes: Value, state: Value, count: int = 1) -> Value:
    """Memory for so many bytes of records of a container; null if there is none."""
    block = f.run(ROOM, state, nbytes + MORE)
    f.store(f.offset(block, nbytes + MORE), made, layout.END)
    f.store(f.literal("i64", count), made, layout.LENGTH)
    f.store(block, made, layout.BLOCK)
    f.store(block, made, layout.FIRST)
    f.store(f.literal("i64", 1), made, layout.LENT)
    return block


def attributes(instances: InstanceLayout | None) -> Function:
    """Write the attributes of an object into its record; false if they are others."""
    f = Function("i1", "attributes", internal=True, made="ptr", state="ptr")
    made, state = f.args
    cursor, none = f.alloca("ptr", 2), f.block("none")
    item, kind = f.load("ptr", made, layout.OBJECT), f.load("ptr", made, layout.KIND)
    f.store(f.load("ptr", made, layout.FIRST), cursor, PLACE)
    values = None if instances is None else _values(f, item, kind, instances)
    with f.each(f.load("i64", kind, o.LEAD)) as i:
        field = f.offset(f.load("ptr", kind, o.KEY), i * (o.FIELD_WORDS * WORD))
        asked, found = f.block("asked"), f.block("found", held="ptr")
        if values is None:  # all Pythons but 3.11
            f.jump(asked)
        else:
            direct, at = f.block("direct"), f.load("i64", field, o.AT)
            f.branch(values.ne(NULL) & (at >= 0), direct, asked)
            f.at(direct)
            f.jump(found, f.load("ptr", f.offset(values, at * WORD)))
        f.at(asked)
        held = f.call("ptr", "PyObject_GetAttr", item, f.load("ptr", field, o.NAME))
        f.require(held.ne(NULL), none)
        f.call("void", "Py_DecRef", held)  # the object has it
        f.jump(found, held)
        (held,) = f.at(found)
        f.require(held.ne(NULL), none)
        take, there, absent = f.block("take"), f.block("there"), f.block("absent")
        flagged, after = f.block("flagged"), f.block("after")
        more = f.load("i64", field, o.MORE)
        f.branch(f.load("i64", field, o.OPTIONAL).ne(0) & (more >= 0), flagged, take)
        f.at(flagged)
        at = f.load("ptr", cursor, PLACE)
        f.store(f.offset(at, WORD), cursor, PLACE)
        f.branch(held.eq(symbol("none")), absent, there)
        f.at(absent)
        f.fill(at, 0, (more + 1) * WORD, align=8)
        f.store(f.offset(at, (more + 1) * WORD), cursor, PLACE)
        f.jump(after)
        f.at(there)
        f.store(f.literal("i64", 1), at)
        f.jump(take)
        f.at(take)
        f.store(f.load("ptr", field, o.NODES), cursor)
        f.require(f.run(TAKE, cursor, held, state), none)
        f.jump(after)
        f.at(after)
    f.ret(f.literal("i1", 1))
    f.at(none)
    f.ret(f.literal("i1", 0))
    return f


def _values(f: Function, item: Value, kind: Value, instances: InstanceLayout) -> Value:
    """Where the values are of an object that shares its keys with its class; null if it does not."""
    keys, done = f.load("ptr", kind, o.EMPTY), f.block("done", values="ptr")
    shared, apart, own = f.block("shared"), f.block("apart"), f.block("own")
    f.fork(keys.eq(NULL), done, (NULL,), shared)
    f.at(shared)
    values = f.load("ptr", f.offset(item, instances.values))
    f.fork(values.ne(NULL), done, (values,), apart)
    f.at(apart)
    dictionary = f.load("ptr", f.offset(item, instances.dictionary))
    f.fork(dictionary.eq(NULL), done, (NULL,), own)
    f.at(own)
    same, others = f.block("same"), f.block("others")
    f.branch(f.load("ptr", dictionary, instances.keys).eq(keys), same, others)
    f.at(same)
    f.jump(done, f.load("ptr", dictionary, instances.dictionary_values))
    f.at(others)
    f.jump(done, NULL)
    (found,) = f.at(done)
    return found


def copy(arrays: NdarrayLayout) -> Function:
    """Copy the numbers of an array; false if it is of another shape or dtype."""
    f = Function("i1", "copy", internal=True, item="ptr", made="ptr", kind="ptr", state="ptr")
    item, made, kind, state = f.args
    like, wrong = f.load("ptr", kind, o.DETAIL_IS), f.block("wrong")
    ndim = f.load("i64", like, WORD)
    f.require(f.load("ptr", item, arrays.descr).eq(f.load("ptr", like)), wrong)
    f.require(f.load("i32", item, arrays.ndim).sext("i64").eq(ndim), wrong)
    dims, strides = (f.load("ptr", item, x) for x in (arrays.dims, arrays.strides))
    count = f.alloca("i64")
    f.store(f.literal("i64", 1), count)
    with f.each(ndim) as d:
        size = f.load("i64", dims, d, "i64")
        f.require(size.eq(f.load("i64", f.offset(like, 2 * WORD), d, "i64")), wrong)
        f.store(f.load("i64", count) * size, count)
    total = f.load("i64", count)
    block = one_record(f, made, total * WORD, state)
    f.require(block.ne(NULL), wrong)
    f.store(total, made, layout.LENGTH)
    each = f.load("i64", kind, o.LEAD)
    source, rest = f.alloca("ptr"), f.alloca("i64")
    whole, single = f.block("whole"), f.block("single")
    is_whole = (f.load("i32", item, arrays.flags) & C_CONTIGUOUS).ne(0)
    f.branch(is_whole & each.eq(WORD), whole, single)
    f.at(whole)
    f.copy(block, f.load("ptr", item, arrays.data), total * WORD)
    f.ret(f.literal("i1", 1))
    f.at(single)
    with f.each(total) as i:
        f.store(f.load("ptr", item, arrays.data), source)
        f.store(i, rest)
        with f.each(ndim) as k:
            d = ndim - 1 - k
            size = f.load("i64", dims, d, "i64")
            left = f.load("i64", rest)
            step = (left % size) * f.load("i64", strides, d, "i64")
            f.store(left // size, rest)
            f.store(f.offset(f.load("ptr", source), step), source)
        at = f.offset(block, i * WORD)
        f.store(f.literal("i64", 0), at)
        f.copy(at, f.load("ptr", source), each)
    f.ret(f.literal("i1", 1))
    f.at(wrong)
    f.ret(f.literal("i1", 0))
    return f
