"""Native containers of Python's objects that were there before the call, as LLVM. The GIL is held.

    PyObject *jitney_enter(PyObject **items, int64 n, int64 *kinds, uint64 *handles, PyObject *seen)

makes containers of n lists, dicts, sets and deques, and writes their handles. It gives a capsule, which
gives them back when it goes; None if two of the objects are one, or one, or what is in it, is not what
its *kind* (`objects_ir`) says. If `seen` is not null one object that is in several places is one
container; if it is a dict it gets the addresses of all objects that may be as keys.

`jitney_enter_lazily` does not look at attributes of objects: compiled code asks for those of each object
when it first needs them (`arrive`), and has no record of one that is not what its kind says.
"""

from __future__ import annotations

from ...codegen.kernels.stores import layout, sets, tables
from ...codegen.llvm.builder import NULL, Value, symbol
from ...codegen.llvm.modules import Defined, Function, module_ir
from ...ir.ops.control.python_sets import SetLayout
from ..native.layout import InstanceLayout, IntLayout, NdarrayLayout
from . import objects_ir as o
from .entering_records_ir import (
    ATTRIBUTES,
    COPY,
    MORE,
    PLACE,
    ROOM,
    TAKE,
    attributes,
    copy,
    one_record,
)
from .reading_ir import Items, number_of

WORD = o.WORD
_ENTER = Defined("enter", ("ptr", "ptr", "ptr"), "ptr")
_NUMBER = Defined("number", ("ptr", "ptr"), "i1")
_RELEASE = Defined("release", ("ptr",))
_DROP = Defined("drop", ("ptr",))
_ARRIVE = Defined("arrive", ("ptr",))
_MET = Defined("met", ("ptr", "ptr"), "ptr")
# Of the state, after the first container; whether objects may be in several places; the hash of a key so
# far; memory: the latest chunk, which begins with where the one before it is, how much of it is taken,
# and its size. Objects whose attributes are to be looked at, and whether that is when they are asked
# for. Those that may be in several places: a table of addresses, of objects and their containers, how
# many places it has, less one, and how many are taken.
_SEEN, _TOTAL, _CHUNK, _USED, _END, _TODO, _LAZY = (k * WORD for k in range(1, 8))
_TABLE, _MASK, _COUNT = (k * WORD for k in range(8, 11))
_STATE_BYTES = 11 * WORD
_LEAST_MET = 64  # places of that table
_PAIR = 2 * WORD
_LEAST = 1024  # bytes of a chunk
_EQUAL = 2  # Py_EQ
_EXACT = 1 << 53  # whole numbers up to here are floats


def entering_ir(
    arrays: NdarrayLayout,
    ints: IntLayout | None,
    items: int | None,
    where: SetLayout | None,
    instances: InstanceLayout | None,
) -> str:
    """The LLVM text; how `arrays` lie says where objects have their class, too, `items` where lists have
    theirs; how sets lie says `where`, and attributes `instances`."""
    ob_type = arrays.ob_type
    functions = [attributes(instances), copy(arrays)]
    functions += [_take(ob_type), _enter(ob_type, items, where), _number(ints)]
    functions += [_room(), _release(), _drop(), _arrive(), _met()]
    functions += [_enter_all("jitney_enter", False), _enter_all("jitney_enter_lazily", True)]
    helpers = layout.closure([tables.note()])
    objects = [
        "none",
        "true",
        "gone",
        "float64",
        "int64",
        "PyBool_Type",
        "PyFloat_Type",
        "PyLong_Type",
        "PyTuple_Type",
    ]
    return module_ir([*functions, *helpers], objects)


def _take(ob_type: int) -> Function:
    """Write the values of an element; false if it is not what the nodes at the cursor say."""
    f = Function("i1", "take", internal=True, cursor="ptr", item="ptr", state="ptr")
    cursor, item, state = f.args
    number = f.alloca("i64")
    node, cls = f.load("ptr", cursor), f.load("ptr", item, ob_type)
    n, what = f.load("i64", node, WORD), f.load("ptr", node, 2 * WORD)
    f.store(f.offset(node, o.NODE), cursor)
    names = "bool int float scalar constant tuple call container choice same several integers"
    cases = {k: f.block(name) for k, name in enumerate(names.split())}
    wrong, good = f.block("wrong"), f.block("good")
    f.switch(f.load("i64", node), wrong, cases)

    def place() -> Value:
        at = f.load("ptr", cursor, PLACE)
        f.store(f.offset(at, WORD), cursor, PLACE)
        return at

    def mix(word: Value) -> None:
        f.store(tables.mixed(f.load("i64", state, _TOTAL), word), state, _TOTAL)

    f.at(cases[o.BOOL])
    f.require(cls.eq(symbol("PyBool_Type")), wrong)
    truth = item.eq(symbol("true")).zext("i64")
    f.store(truth, place())
    mix(truth)
    f.jump(good)
    f.at(cases[o.INT])
    f.require(cls.eq(symbol("PyLong_Type")), wrong)
    f.require(f.run(_NUMBER, item, number), wrong)
    f.store(f.load("i64", number), place())
    mix(f.load("i64", number))
    f.jump(good)
    f.at(cases[o.FLOAT])
    f.require(cls.eq(symbol("PyFloat_Type")), wrong)
    value = f.call("double", "PyFloat_AsDouble", item)
    f.store(value, place())
    mix((value + tables.ZERO).to("bitcast", "i64"))
    f.jump(good)
    f.at(cases[o.SCALAR])
    f.require(cls.eq(n.to("inttoptr", "ptr")), wrong)
    at = place()
    f.store(f.literal("i64", 0), at)
    f.call("void", "PyArray_ScalarAsCtype", item, at)
    mix(f.load("i64", at))
    f.jump(good)
    f.at(cases[o.CONSTANT])
    f.branch(item.eq(what), good, wrong)
    f.at(cases[o.TUPLE])
    f.require(cls.eq(symbol("PyTuple_Type")), wrong)
    f.require(f.call("i64", "PyTuple_Size", item).eq(n), wrong)
    with f.each(n) as i:
        f.require(f.run(TAKE, cursor, f.call("ptr", "PyTuple_GetItem", item, i), state), wrong)
    f.jump(good)
    f.at(cases[o.CALL])
    f.jump(wrong)

    f.at(cases[o.CHOICE])
    equal, found = f.literal("i32", _EQUAL), f.block("found")
    with f.loop(i=0) as loop:
        loop.going(loop.i < n)
        option = f.offset(what, loop.i * (2 * WORD))
        other = f.load("ptr", option, WORD)
        f.store(f.load("i64", option), number)
        unlike = f.block("unlike")
        f.require(cls.eq(f.load("ptr", other, ob_type)), unlike)
        f.branch(f.call("i32", "PyObject_RichCompareBool", item, other, equal).eq(1), found, unlike)
        f.at(unlike)
        loop.next(loop.i + 1)
    f.jump(wrong)
    f.at(found)
    f.store(f.load("i64", number), place())
    f.jump(good)
    f.at(cases[o.SAME])
    f.require(cls.eq(f.load("ptr", what, ob_type)), wrong)
    f.branch(f.call("i32", "PyObject_RichCompareBool", item, what, equal).eq(1), good, wrong)
    for how, type in ((o.SEVERAL, "double"), (o.SEVERAL_INTS, "i64")):
        f.at(cases[how])
        at, distance = place(), what.to("ptrtoint", "i64")
        with f.when(distance.eq(WORD)):  # nothing but flags is behind the number
            place()
        code = _code(f, cls)
        f.require(((n >> code) & 1).ne(0), wrong)
        f.store(code, f.offset(at, distance))
        whole, broken, numpys = (f.block(hint) for hint in ("whole", "broken", "numpys"))
        f.switch(code, broken, {1: whole, 3: numpys})
        kept = f.block("kept")
        f.at(whole)
        f.require(f.run(_NUMBER, item, number), wrong)
        f.jump(kept)
        f.at(numpys)
        f.call("void", "PyArray_ScalarAsCtype", item, number)
        f.jump(kept)
        f.at(kept)
        integer = f.load("i64", number)
        if type == "double":
            f.require((integer <= _EXACT) & (integer >= -_EXACT), wrong)
        f.store(integer if type == "i64" else integer.to("sitofp", "double"), at)
        f.jump(good)
        f.at(broken)
        f.store(f.call("double", "PyFloat_AsDouble", item), at)
        f.jump(good)
    f.at(cases[o.CONTAINER])
    made = f.run(_ENTER, item, what, state)
    f.require(made.ne(NULL), wrong)
    f.store(made, place())
    f.jump(good)
    f.at(wrong)
    f.ret(f.literal("i1", 0))
    f.at(good)
    f.ret(f.literal("i1", 1))
    return f


def _code(f: Function, cls: Value) -> Value:
    """Which of the classes of numbers that memory tells apart this is; 4 for none."""
    code = f.literal("i64", 4)
    for k, name in enumerate(("PyFloat_Type", "PyLong_Type", "float64", "int64")):
        code = f.select(cls.eq(symbol(name)), f.literal("i64", k), code)
    return code


def _number(ints: IntLayout | None) -> Function:
    """Write the number of an int; false if it is too large."""
    f = Function("i1", "number", internal=True, item="ptr", to="ptr")
    wrong = f.block("wrong")
    f.store(number_of(f, f.item, ints, f.alloca("i32"), wrong), f.to)
    f.ret(f.literal("i1", 1))
    f.at(wrong)
    f.ret(f.literal("i1", 0))
    return f


def _enter(ob_type: int, items: int | None, where: SetLayout | None) -> Function:
    """The container for an object; null if it is not of this kind."""
    f = Function("ptr", "enter", internal=True, item="ptr", kind="ptr", state="ptr")
    item, kind, state = f.args
    cursor, position, iterator = f.alloca("ptr", 2), f.alloca("i64"), f.alloca("ptr")
    key, value = f.alloca("ptr"), f.alloca("ptr")
    f.store(NULL, iterator)
    wrong, none, fresh = f.block("wrong"), f.block("none"), f.block("fresh")
    f.require(f.load("ptr", item, ob_type).eq(f.load("ptr", kind, o.CLASS)), none)
    seen = f.load("ptr", state, _SEEN)
    look = f.block("look")
    # Who else has the object, if there is only one reference?
    f.branch(seen.eq(NULL) | f.load("i32", item).eq(1), fresh, look)
    f.at(look)
    place = f.run(_MET, state, item)
    f.require(place.ne(NULL), none)
    there = f.block("there")
    f.branch(f.load("ptr", place).ne(NULL), there, fresh)
    f.at(there)
    known = f.load("ptr", place, WORD)
    f.require(f.load("ptr", known, layout.KIND).eq(kind), none)
    f.ret(known)

    f.at(fresh)
    made = f.run(ROOM, state, layout.HEADER_BYTES)
    f.require(made.ne(NULL), none)
    f.fill(made, 0, layout.HEADER_BYTES, align=8)
    f.store(item, made, layout.OBJECT)
    f.call("void", "Py_IncRef", item)
    f.store(kind, made, layout.KIND)
    first, follows, begins = f.load("ptr", state), f.block("follows"), f.block("begins")
    detail = f.block("detail")
    f.branch(first.eq(NULL), begins, follows)
    f.at(begins)
    f.store(made, state)
    f.jump(detail)
    f.at(follows)
    f.store(f.load("ptr", first, layout.LINK), made, layout.LINK)
    f.store(made, first, layout.LINK)
    f.jump(detail)

    f.at(detail)
    with f.when(seen.ne(NULL) & f.load("i32", item).ne(2)):  # one is the header's
        place = f.run(_MET, state, item)
        f.require(place.ne(NULL), wrong)
        f.store(item, place)
        f.store(made, place, WORD)
        f.store(f.load("i64", state, _COUNT) + 1, state, _COUNT)
    with f.when(f.load("ptr", kind, o.DETAIL).ne(NULL)):
        held = f.call("ptr", "PyObject_GetAttr", item, f.load("ptr", kind, o.DETAIL))
        f.require(held.ne(NULL), wrong)
        wanted = f.load("ptr", kind, o.DETAIL_IS)
        same = f.call("i32", "PyObject_RichCompareBool", held, wanted, f.literal("i32", _EQUAL))
        f.call("void", "Py_DecRef", held)
        f.require(same.eq(1), wrong)

    several = f.block("several")
    record, array = f.block("record"), f.block("array")
    f.switch(f.load("i64", kind), several, {o.RECORD: record, o.ARRAY: array})
    f.at(record)
    later, now = f.block("later"), f.block("now")
    f.branch(f.load("i64", state, _LAZY).ne(0), later, now)
    f.at(later)
    f.store(_ARRIVE.address, made, layout.ARRIVES)
    f.store(state, made, layout.AMONG)
    f.ret(made)
    f.at(now)
    f.require(one_record(f, made, f.load("i64", kind, o.BYTES), state).ne(NULL), wrong)
    f.store(f.load("ptr", state, _TODO), made, layout.MASK)
    f.store(made, state, _TODO)
    f.ret(made)
    f.at(array)
    f.require(f.run(COPY, item, made, kind, state), wrong)
    f.ret(made)
    f.at(several)
    size = f.call("i64", "PyObject_Size", item)
    f.require(size >= 0, wrong)
    keys, values = f.load("ptr", kind, o.KEY), f.load("ptr", kind, o.VALUE)
    lead, nbytes = f.load("i64", kind, o.LEAD), f.load("i64", kind, o.BYTES)
    good, full = f.block("good"), f.block("full")
    is_set = f.load("i64", kind).eq(o.SET)
    # Of an empty one the nodes may not be known. In an empty set keys may have left their marks.
    f.branch(size.eq(0) & ~(is_set & keys.ne(NULL)), good, full)
    f.at(full)
    f.require(keys.ne(NULL) | values.ne(NULL), wrong)
    sequence, table, filled = f.block("sequence"), f.block("table"), f.block("filled", block="ptr")
    f.branch(keys.eq(NULL), sequence, table)
    f.at(sequence)
    room = size * nbytes + MORE
    block = f.run(ROOM, state, room)
    f.require(block.ne(NULL), wrong)
    f.store(f.offset(block, room), made, layout.END)
    f.store(size, made, layout.LENGTH)
    f.jump(filled, block)
    f.at(table)
    indexed, members = f.block("indexed"), f.block("members")
    f.branch(is_set, members, indexed)
    f.at(members)
    if where is None:
        f.jump(wrong)
    else:
        mask = f.load("i64", item, where.mask)
        block = f.run(ROOM, state, (mask + 1) * nbytes)
        f.require(block.ne(NULL), wrong)
        f.fill(block, sets.EMPTY_BYTE, (mask + 1) * nbytes, align=8)
        fields = (layout.TAKEN, where.fill), (layout.MASK, where.mask), (sets.FINGER, where.finger)
        for field, offset in (*fields, (layout.LENGTH, where.used)):
            f.store(f.load("i64", item, offset), made, field)
        f.jump(filled, block)
    f.at(indexed)
    with f.loop(places=tables.LEAST_PLACES) as sizes:
        sizes.going(sizes.places < (size + 1) * tables.PER_ENTRY)
        sizes.next(sizes.places * 2)
    index = f.call("ptr", layout.ALLOCATE, sizes.places * 4)
    f.require(index.ne(NULL), wrong)
    f.store(index, made, layout.INDEX)
    f.fill(index, -1, sizes.places * 4, align=4)
    f.store(sizes.places - 1, made, layout.MASK)
    block = f.run(ROOM, state, (sizes.places // tables.PER_ENTRY + 1) * nbytes)
    f.require(block.ne(NULL), wrong)
    f.store(size, made, layout.TAKEN)
    f.store(size, made, layout.LENGTH)
    f.jump(filled, block)
    (block,) = f.at(filled)
    f.store(block, made, layout.BLOCK)
    f.store(block, made, layout.FIRST)
    f.store(f.literal("i64", 1), made, layout.LENT)

    def item_into(i: Value, held: Value) -> None:
        """Record i of a sequence."""
        f.store(values, cursor)
        f.store(f.offset(block, i * nbytes + lead), cursor, PLACE)
        f.require(f.run(TAKE, cursor, held, state), wrong)

    def entry_into(i: Value, name: Value, held: Value) -> None:
        """Entry i of a table."""
        at = f.offset(block, i * nbytes)
        f.store(keys, cursor)
        f.store(f.offset(at, WORD), cursor, PLACE)
        f.store(f.literal("i64", 0), state, _TOTAL)
        f.require(f.run(TAKE, cursor, name, state), wrong)
        h = tables.hash_of(f.load("i64", state, _TOTAL))
        f.store(h, at)
        f.run(
            tables.note(), f.load("ptr", made, layout.INDEX), f.load("i64", made, layout.MASK), h, i
        )
        f.store(values, cursor)
        f.require(f.run(TAKE, cursor, held, state), wrong)

    hints = "list deque set dict mapping"
    cases = {k: f.block(hint) for k, hint in enumerate(hints.split())}
    f.switch(f.load("i64", kind), wrong, cases)
    f.at(cases[o.LIST])
    numbers, others = f.block("numbers"), f.block("others")
    all_items = Items(f, item, items)
    f.branch(f.load("i64", values).eq(o.INT), numbers, others)
    f.at(others)
    with f.each(size) as i:
        item_into(i, all_items[i])
    f.jump(good)
    f.at(numbers)
    with f.each(size) as i:
        held = all_items[i]
        f.require(f.load("ptr", held, ob_type).eq(symbol("PyLong_Type")), wrong)
        f.require(f.run(_NUMBER, held, f.offset(block, i * nbytes + lead)), wrong)
    f.jump(good)
    f.at(cases[o.SET])
    with f.each(f.load("i64", made, layout.MASK) + 1) as i:
        entry = f.offset(f.load("ptr", item, 0 if where is None else where.table), i * (2 * WORD))
        held, at = f.load("ptr", entry), f.offset(block, i * nbytes)
        with f.when(held.ne(NULL)):
            f.store(f.load("i64", entry, WORD), at)
            with f.when(held.ne(symbol("gone"))):
                f.store(keys, cursor)
                f.store(f.offset(at, WORD), cursor, PLACE)
                f.require(f.run(TAKE, cursor, held, state), wrong)
    f.jump(good)
    for how in (o.DEQUE, o.MAPPING):
        f.at(cases[how])
        f.store(f.call("ptr", "PyObject_GetIter", item), iterator)
        f.require(f.load("ptr", iterator).ne(NULL), wrong)
        with f.each(size) as i:
            held = f.call("ptr", "PyIter_Next", f.load("ptr", iterator))
            f.require(held.ne(NULL), wrong)
            f.call("void", "Py_DecRef", held)  # the object has it
            if how == o.DEQUE:
                item_into(i, held)
            else:
                entry_into(i, held, f.call("ptr", "PyDict_GetItem", item, held))
        f.call("void", "Py_DecRef", f.load("ptr", iterator))
        f.jump(good)
    f.at(cases[o.DICT])
    f.store(f.literal("i64", 0), position)
    with f.each(size) as i:
        more = f.call("i32", "PyDict_Next", item, position, key, value)
        f.require(more.ne(0), wrong)
        entry_into(i, f.load("ptr", key), f.load("ptr", value))
    f.jump(good)
    f.at(good)
    f.ret(made)
    f.at(wrong)
    with f.when(f.load("ptr", iterator).ne(NULL)):
        f.call("void", "Py_DecRef", f.load("ptr", iterator))
    f.jump(none)
    f.at(none)
    f.ret(NULL)
    return f


def _room() -> Function:
    """So many bytes, a multiple of 8, of the chunk of memory, or of a new one; null if there is none."""
    f = Function("ptr", "room", internal=True, state="ptr", nbytes="i64")
    used, end = f.load("i64", f.state, _USED), f.load("i64", f.state, _END)
    enough, full, none, there = map(f.block, ("enough", "full", "none", "there"))
    f.branch((used + f.nbytes) > end, full, enough)
    f.at(enough)
    f.store(used + f.nbytes, f.state, _USED)
    f.ret(f.offset(f.load("ptr", f.state, _CHUNK), used))
    f.at(full)
    size = f.larger(end * 2, f.nbytes + _LEAST)
    chunk = f.call("ptr", layout.ALLOCATE, size)
    f.branch(chunk.eq(NULL), none, there)
    f.at(none)
    f.ret(NULL)
    f.at(there)
    f.store(f.load("ptr", f.state, _CHUNK), chunk)
    f.store(chunk, f.state, _CHUNK)
    f.store(f.nbytes + WORD, f.state, _USED)
    f.store(size, f.state, _END)
    f.ret(f.offset(chunk, WORD))
    return f


def _release() -> Function:
    """Give containers back, with what they own, and the state with the memory that they lie in."""
    f = Function("void", "release", internal=True, state="ptr")
    none = f.block("none")
    f.require(f.state.ne(NULL), none)
    with f.loop(store=f.load("ptr", f.state)) as each:
        each.going(each.store.ne(NULL))
        f.call("void", "Py_DecRef", f.load("ptr", each.store, layout.OBJECT))
        with f.when(f.load("ptr", each.store, layout.INDEX).ne(NULL)):
            f.call("void", layout.RELEASE, f.load("ptr", each.store, layout.INDEX))
        with f.when(f.load("i64", each.store, layout.LENT).eq(0)):
            f.call("void", layout.RELEASE, f.load("ptr", each.store, layout.BLOCK))
        each.next(f.load("ptr", each.store, layout.LINK))
    with f.loop(chunk=f.load("ptr", f.state, _CHUNK)) as chunks:
        chunks.going(chunks.chunk.ne(NULL))
        before = f.load("ptr", chunks.chunk)
        f.call("void", layout.RELEASE, chunks.chunk)
        chunks.next(before)
    f.call("void", layout.RELEASE, f.load("ptr", f.state, _TABLE))
    f.call("void", layout.RELEASE, f.state)
    f.jump(none)
    f.at(none)
    f.ret()
    return f


def _drop() -> Function:
    """What a capsule does at its end."""
    f = Function("void", "drop", internal=True, capsule="ptr")
    f.run(_RELEASE, f.call("ptr", "PyCapsule_GetPointer", f.capsule, NULL))
    f.ret()
    return f


def _met() -> Function:
    """The place in the table for an object: it has its address, or none; null if there is no memory."""
    f = Function("ptr", "met", internal=True, state="ptr", item="ptr")
    state, item = f.args
    old = f.load("ptr", state, _TABLE)
    places = f.select(old.eq(NULL), f.literal("i64", 0), f.load("i64", state, _MASK) + 1)
    none, grow, look = f.block("none"), f.block("grow"), f.block("look", table="ptr", mask="i64")
    full = (f.load("i64", state, _COUNT) + 1) * 2 > places
    f.fork(~full, look, (old, places - 1), grow)
    f.at(grow)
    size = f.larger(places * 2, f.literal("i64", _LEAST_MET))
    new = f.call("ptr", layout.ALLOCATE, size * _PAIR)
    f.require(new.ne(NULL), none)
    f.fill(new, 0, size * _PAIR, align=8)
    with f.each(places) as i:
        pair = f.offset(old, i * _PAIR)
        held = f.load("ptr", pair)
        with f.when(held.ne(NULL)):
            to = _probe(f, new, size - 1, held)
            f.store(held, to)
            f.store(f.load("ptr", pair, WORD), to, WORD)
    f.call("void", layout.RELEASE, old)
    f.store(new, state, _TABLE)
    f.store(size - 1, state, _MASK)
    f.jump(look, new, size - 1)
    table, mask = f.at(look)
    f.ret(_probe(f, table, mask, item))
    f.at(none)
    f.ret(NULL)
    return f


def _probe(f: Function, table: Value, mask: Value, item: Value) -> Value:
    h = tables.hash_of(item.to("ptrtoint", "i64"))
    with f.loop(i=h & mask) as loop:
        held = f.load("ptr", table, loop.i * _PAIR)
        loop.going(held.ne(NULL) & held.ne(item))
        loop.next((loop.i + 1) & mask)
    return f.offset(table, loop.i * _PAIR)


def _arrive() -> Function:
    """Make the record of an object, if it is as its kind says. The GIL is held, as no other thread may
    change objects between two that are read."""
    f = Function("void", "arrive", internal=True, made="ptr")
    made, wrong = f.made, f.block("wrong")
    state, kind = f.load("ptr", made, layout.AMONG), f.load("ptr", made, layout.KIND)
    f.require(one_record(f, made, f.load("i64", kind, o.BYTES), state).ne(NULL), wrong)
    f.store(NULL, made, layout.AMONG)
    f.store(NULL, made, layout.ARRIVES)
    f.require(f.run(ATTRIBUTES, made, state), wrong)
    f.ret()
    f.at(wrong)
    f.call("void", "PyErr_Clear")
    f.store(NULL, made, layout.FIRST)
    f.store(f.literal("i64", 0), made, layout.LENGTH)
    f.ret()
    return f


def _enter_all(name: str, lazy: bool) -> Function:
    f = Function("ptr", name, items="ptr", n="i64", kinds="ptr", handles="ptr", seen="ptr")
    wrong = f.block("wrong")
    state = f.call("ptr", layout.ALLOCATE, _STATE_BYTES)
    f.require(state.ne(NULL), wrong)
    f.fill(state, 0, _STATE_BYTES, align=8)
    f.store(f.literal("i64", int(lazy)), state, _LAZY)
    f.store(f.seen, state, _SEEN)
    with f.each(f.n) as i:
        item, kind = f.load("ptr", f.items, i, "i64"), f.load("ptr", f.kinds, i, "i64")
        with f.each(i) as k:
            f.require(f.load("ptr", f.items, k, "i64").ne(item), wrong)
        made = f.run(_ENTER, item, kind, state)
        f.require(made.ne(NULL), wrong)
        f.store(made, f.handles, i, "i64")
        # One after the other, or long lists would need a long stack.
        with f.loop(entered=f.load("ptr", state, _TODO)) as objects:
            objects.going(objects.entered.ne(NULL))
            f.store(f.load("ptr", objects.entered, layout.MASK), state, _TODO)
            f.store(NULL, objects.entered, layout.MASK)
            f.require(f.run(ATTRIBUTES, objects.entered, state), wrong)
            objects.next(f.load("ptr", state, _TODO))
    with (
        f.when(f.seen.ne(NULL) & f.seen.ne(symbol("none")) & f.load("ptr", state, _TABLE).ne(NULL)),
        f.each(f.load("i64", state, _MASK) + 1) as i,
    ):
        held = f.load("ptr", f.load("ptr", state, _TABLE), i * _PAIR)
        with f.when(held.ne(NULL)):
            key = f.call("ptr", "PyLong_FromVoidPtr", held)
            f.require(key.ne(NULL), wrong)
            put = f.call("i32", "PyDict_SetItem", f.seen, key, symbol("none"))
            f.call("void", "Py_DecRef", key)
            f.require(put.eq(0), wrong)
    capsule = f.call("ptr", "PyCapsule_New", state, NULL, _DROP.address)
    f.require(capsule.ne(NULL), wrong)
    f.ret(capsule)
    f.at(wrong)
    f.call("void", "PyErr_Clear")
    f.run(_RELEASE, state)
    f.call("void", "Py_IncRef", symbol("none"))
    f.ret(symbol("none"))
    return f
