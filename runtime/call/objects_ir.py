"""Python's objects of the containers that native code leaves behind, as LLVM. The GIL is held.

    PyObject *jitney_leave(uint64 *handles, int64 n, int64 *kinds, void *entered)

makes a list of the n objects for the first n handles, null for what raised; the container after them
is the first of all of the call, which are given back. A container that two hold is one object: its
header keeps it meanwhile. Those that were made of Python's (`entering_ir`), of which `entered` is the
first, stand for these, whose content is changed first; they are given back by who made them.

A *kind*, by address, says what containers are: how they are filled; what makes an empty one; the
elements of keys, and of values; where a record begins, and its bytes; their class; whether code changes
them; the name of an attribute that they all have, and its value. An *element* is written from the
outside in, three words a node: what it is, how many nodes are in it or a number's class, an address;
of a choice how many objects there are, and a table of numbers, which values are, and these objects; of a
number of several classes a bit for the code of each (float, int, np.float64, np.int64), and how far
behind it its code is, in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...codegen.kernels.stores import layout, sets
from ...codegen.llvm.builder import NULL, Value, symbol
from ...codegen.llvm.modules import Defined, Function, module_ir
from ...ir.ops.control.python_sets import SetLayout

WORD = layout.WORD
BOOL, INT, FLOAT, SCALAR, CONSTANT, TUPLE, CALL, CONTAINER, CHOICE, SAME = range(10)
SEVERAL, SEVERAL_INTS = 10, 11  # a number of several classes: a float in memory, or an integer
# Of kinds; ADDED: sets in another order, FROZEN: tuples.
LIST, DEQUE, SET, DICT, MAPPING, ADDED, ARRAY, FROZEN, RECORD = range(9)
KIND_WORDS = 10
FILLED, EMPTY, KEY, VALUE, LEAD, BYTES, CLASS, CHANGED, DETAIL, DETAIL_IS = (
    k * WORD for k in range(KIND_WORDS)
)
NODE = 3 * WORD
FIELD_WORDS = 5
# Of a field; AT is its place among the values of objects that share their keys, which EMPTY is then.
NAME, OPTIONAL, MORE, NODES, AT = (k * WORD for k in range(FIELD_WORDS))
_CONTAINER = Defined("container", ("ptr", "ptr"), "ptr")
_ELEMENT = Defined("element", ("ptr",), "ptr")
_FILL = Defined("fill", ("ptr", "ptr", "ptr"), "i1")
_REFILL = Defined("refill", ("ptr",), "i1")
_LAY_OUT = Defined("lay_out", ("ptr", "ptr", "ptr"), "i1")
_KINDS = "list deque set dict mapping added array frozen".split()


def objects_ir(sets: SetLayout | None, data: int) -> str:
    """The LLVM text; `sets` is how Python's sets lie, `data` where arrays say where numbers are."""
    functions = [_element(), _container(), _fill(sets is not None, data), _refill(), _leave()]
    functions += [] if sets is None else [_lay_out(sets)]
    names = ["none", "extend", "clear", "where", "gone", "float64", "int64"]
    return module_ir(functions, names)


def _element() -> Function:
    """The next element: the cursor says where its nodes are, and where its values."""
    f = Function("ptr", "element", internal=True, cursor="ptr")
    node = f.load("ptr", f.cursor)
    n, what = f.load("i64", node, WORD), f.load("ptr", node, 2 * WORD)
    f.store(f.offset(node, NODE), f.cursor)
    names = "bool int float scalar constant tuple call container choice same several integers"
    cases = {k: f.block(name) for k, name in enumerate(names.split()) if k != SAME}
    f.switch(f.load("i64", node), cases[CONSTANT], cases)

    def value() -> Value:
        at = f.load("ptr", f.cursor, WORD)
        f.store(f.offset(at, WORD), f.cursor, WORD)
        return at

    f.at(cases[BOOL])
    f.ret(f.call("ptr", "PyBool_FromLong", f.load("i8", value()).zext("i64")))
    f.at(cases[INT])
    f.ret(f.call("ptr", "PyLong_FromLongLong", f.load("i64", value())))
    f.at(cases[FLOAT])
    f.ret(f.call("ptr", "PyFloat_FromDouble", f.load("double", value())))
    f.at(cases[SCALAR])
    f.ret(f.call("ptr", "PyArray_Scalar", value(), what, NULL))
    f.at(cases[CONSTANT])
    f.call("void", "Py_IncRef", what)
    f.ret(what)
    f.at(cases[CHOICE])
    number = f.load("i64", value())
    with f.loop(i=0) as loop:
        at = f.offset(what, loop.i * (2 * WORD))
        loop.going(f.load("i64", at).ne(number) & (loop.i < n - 1))
        loop.next(loop.i + 1)
    held = f.load("ptr", f.offset(what, loop.i * (2 * WORD)), WORD)
    f.call("void", "Py_IncRef", held)
    f.ret(held)
    f.at(cases[CONTAINER])
    handle = f.load("i64", value()).to("inttoptr", "ptr")
    f.ret(f.run(_CONTAINER, handle, what))
    f.at(cases[SEVERAL])
    f.ret(_of_several(f, value(), what, "double"))
    f.at(cases[SEVERAL_INTS])
    f.ret(_of_several(f, value(), what, "i64"))
    f.at(cases[TUPLE])
    f.ret(_parts(f, n))
    f.at(cases[CALL])
    parts = _parts(f, n)
    made = f.call("ptr", "PyObject_Call", what, parts, NULL)
    f.call("void", "Py_DecRef", parts)
    f.ret(made)
    return f


def _of_several(f: Function, at: Value, distance: Value, type: str) -> Value:
    """A number of several classes, which is of this type in memory."""
    word = f.alloca("i64")
    code = f.load("i8", f.offset(at, distance.to("ptrtoint", "i64")))
    cases = {k: f.block(name) for k, name in enumerate("float int numpys numpys_int".split())}
    done = f.block("done", made="ptr")
    number = f.load(type, at)
    whole = number if type == "i64" else number.to("fptosi", "i64")
    real = number.to("sitofp", "double") if type == "i64" else number
    f.switch(code.zext("i64"), cases[0], cases)
    f.at(cases[0])
    f.jump(done, f.call("ptr", "PyFloat_FromDouble", real))
    f.at(cases[1])
    f.jump(done, f.call("ptr", "PyLong_FromLongLong", whole))
    for k, name in ((2, "float64"), (3, "int64")):
        f.at(cases[k])
        f.store(real if k == 2 else whole, word)
        f.jump(done, f.call("ptr", "PyArray_Scalar", word, symbol(name), NULL))
    (made,) = f.at(done)
    return made


def _parts(f: Function, n: Value) -> Value:
    """A tuple of the next n elements."""
    made, failed = f.call("ptr", "PyTuple_New", n), f.block("failed")
    with f.each(n) as i:
        part = f.run(_ELEMENT, f.cursor)
        f.require(part.ne(NULL), failed)
        f.call("i32", "PyTuple_SetItem", made, i, part)  # takes the reference
    done = f.block("done")
    f.jump(done)
    f.at(failed)
    f.call("void", "Py_DecRef", made)
    f.ret(NULL)
    f.at(done)
    return made


def _container() -> Function:
    """The object for a container, None for no container at all."""
    f = Function("ptr", "container", internal=True, store="ptr", kind="ptr")
    store, kind = f.args
    hints = "none", "there", "known", "fresh", "failed", "too_deep"
    none, there, known, fresh, failed, too_deep = map(f.block, hints)
    f.branch(store.eq(NULL), none, there)
    f.at(none)
    f.call("void", "Py_IncRef", symbol("none"))
    f.ret(symbol("none"))
    f.at(there)
    found = f.load("ptr", store, layout.OBJECT)
    f.branch(found.ne(NULL), known, fresh)
    f.at(known)
    f.call("void", "Py_IncRef", found)
    f.ret(found)
    f.at(fresh)
    deep = f.call("i32", "Py_EnterRecursiveCall", symbol("where"))
    f.require(deep.eq(0), too_deep)
    filled, other = f.block("filled", made="ptr"), f.block("other")
    cases = {LIST: f.block("listed"), FROZEN: f.block("frozen")}
    f.switch(f.load("i64", kind), other, cases)
    for how, new in ((LIST, "PyList_New"), (FROZEN, "PyTuple_New")):
        f.at(cases[how])
        f.jump(filled, f.call("ptr", new, f.load("i64", store, layout.LENGTH)))
    f.at(other)
    f.jump(filled, f.call("ptr", "PyObject_CallObject", f.load("ptr", kind, EMPTY), NULL))
    (made,) = f.at(filled)
    f.require(made.ne(NULL), failed)
    f.store(made, store, layout.OBJECT)
    f.require(f.run(_FILL, store, kind, made), failed)
    f.call("void", "Py_LeaveRecursiveCall")
    f.call("void", "Py_IncRef", made)
    f.ret(made)
    f.at(failed)
    f.call("void", "Py_LeaveRecursiveCall")
    f.jump(too_deep)
    f.at(too_deep)
    f.ret(NULL)
    return f


def _lay_out(where: SetLayout) -> Function:
    """Put the keys of a set into an empty one of Python's, in the same entries of its table."""
    f = Function("i1", "lay_out", internal=True, store="ptr", kind="ptr", made="ptr")
    store, kind, made = f.args
    cursor = f.alloca("ptr", 2)
    failed = f.block("failed")
    keys, nbytes = f.load("ptr", kind, KEY), f.load("i64", kind, BYTES)
    entries = f.load("ptr", store, layout.FIRST)
    f.store(f.load("i64", store, sets.FINGER), made, where.finger)
    mask = f.load("i64", store, layout.MASK)
    with f.when(entries.ne(NULL) & mask.ugt(sets.LEAST - 1)):
        larger = f.call("ptr", "PyMem_Calloc", mask + 1, 2 * WORD)
        f.require(larger.ne(NULL), failed)
        f.store(larger, made, where.table)
        f.store(mask, made, where.mask)
    with f.each(f.select(entries.eq(NULL), f.literal("i64", 0), mask + 1)) as i:
        at = f.offset(entries, i * nbytes)
        h = f.load("i64", at)
        with f.when(h.ne(sets.EMPTY)):
            entry = f.offset(f.load("ptr", made, where.table), i * (2 * WORD))
            live, gone, done = f.block("live"), f.block("gone"), f.block("done", key="ptr")
            f.branch(h.ne(sets.GONE), live, gone)
            f.at(live)
            f.store(keys, cursor)
            f.store(f.offset(at, WORD), cursor, WORD)
            key = f.run(_ELEMENT, cursor)
            f.require(key.ne(NULL), failed)
            f.store(f.load("i64", made, where.used) + 1, made, where.used)
            f.jump(done, key)
            f.at(gone)
            f.jump(done, symbol("gone"))
            (key,) = f.at(done)
            f.store(h, entry, WORD)
            f.store(key, entry)
            f.store(f.load("i64", made, where.fill) + 1, made, where.fill)
    f.ret(f.literal("i1", 1))
    f.at(failed)
    f.ret(f.literal("i1", 0))
    return f


def _fill(lays_out: bool, data: int) -> Function:
    """Put what is in a container into an object: an empty one, or a list, whose items become others.
    False if something was raised."""
    f = Function("i1", "fill", internal=True, store="ptr", kind="ptr", made="ptr")
    store, kind, made = f.args
    cursor = f.alloca("ptr", 2)
    keys, values = f.load("ptr", kind, KEY), f.load("ptr", kind, VALUE)
    lead, nbytes = f.load("i64", kind, LEAD), f.load("i64", kind, BYTES)
    count = f.select(
        keys.eq(NULL), f.load("i64", store, layout.LENGTH), f.load("i64", store, layout.TAKEN)
    )
    length = f.select(values.eq(NULL), f.literal("i64", 0), count)
    cases = {k: f.block(name) for k, name in enumerate(_KINDS)}
    failed, done = f.block("failed"), f.block("done")

    def record(i: Value, elements: Value) -> Value:
        """Where record i is, with the cursor before its first element."""
        at = f.offset(f.load("ptr", store, layout.FIRST), i * nbytes)
        f.store(elements, cursor)
        f.store(f.offset(at, lead), cursor, WORD)
        return at

    def element() -> Value:
        made = f.run(_ELEMENT, cursor)
        f.require(made.ne(NULL), failed)
        return made

    @contextmanager
    def entries() -> Iterator[None]:
        """Those of a table that were not removed."""
        with (
            f.each(f.select(keys.eq(NULL), f.literal("i64", 0), count)) as i,
            f.when(f.load("i64", record(i, keys)) >= 0),
        ):
            yield

    @contextmanager
    def members() -> Iterator[None]:
        """Those of a set."""
        none = f.load("ptr", store, layout.FIRST).eq(NULL)
        size = f.select(none, f.literal("i64", 0), f.load("i64", store, layout.MASK) + 1)
        with f.each(size) as i:
            h = f.load("i64", record(i, keys))
            with f.when(h.ne(sets.EMPTY) & h.ne(sets.GONE)):
                yield

    f.switch(f.load("i64", kind), failed, cases)
    for how, put in ((LIST, "PyList_SetItem"), (FROZEN, "PyTuple_SetItem")):
        f.at(cases[how])
        with f.each(length) as i:
            record(i, values)
            f.call("i32", put, made, i, element())  # takes the reference
        f.jump(done)

    f.at(cases[DEQUE])
    items = f.call("ptr", "PyList_New", length)
    f.require(items.ne(NULL), failed)
    with f.each(length) as i:
        record(i, values)
        # If that fails the list stays: there is no memory.
        f.call("i32", "PyList_SetItem", items, i, element())
    added = f.call("ptr", "PyObject_CallMethodObjArgs", made, symbol("extend"), items, NULL)
    f.call("void", "Py_DecRef", items)
    f.require(added.ne(NULL), failed)
    f.call("void", "Py_DecRef", added)
    f.jump(done)

    f.at(cases[SET])
    if lays_out:
        f.require(f.run(_LAY_OUT, store, kind, made), failed)
    f.jump(done)

    f.at(cases[ARRAY])
    numbers, nbytes_each = f.load("ptr", made, data), lead
    with f.each(f.load("i64", store, layout.LENGTH)) as i:
        at = f.offset(f.load("ptr", store, layout.FIRST), i * WORD)
        f.copy(f.offset(numbers, i * nbytes_each), at, nbytes_each)
    f.jump(done)

    f.at(cases[ADDED])
    with members():
        item = element()
        added = f.call("i32", "PySet_Add", made, item)
        f.call("void", "Py_DecRef", item)
        f.require(added.eq(0), failed)
    f.jump(done)

    for how, put in ((DICT, "PyDict_SetItem"), (MAPPING, "PyObject_SetItem")):
        f.at(cases[how])
        with entries():
            key = element()
            f.store(values, cursor)
            value = f.run(_ELEMENT, cursor)
            ready, without = f.block("ready"), f.block("without")
            f.branch(value.ne(NULL), ready, without, likely=True)
            f.at(without)
            f.call("void", "Py_DecRef", key)
            f.jump(failed)
            f.at(ready)
            added = f.call("i32", put, made, key, value)
            f.call("void", "Py_DecRef", key)
            f.call("void", "Py_DecRef", value)
            f.require(added.eq(0), failed)
        f.jump(done)

    f.at(failed)
    f.ret(f.literal("i1", 0))
    f.at(done)
    f.ret(f.literal("i1", 1))
    return f


def _refill() -> Function:
    """Let the objects that containers were made of, this one and those after it, have the content that
    these have now, where there may be another one."""
    f = Function("i1", "refill", internal=True, first="ptr")
    failed = f.block("failed")
    with f.loop(store=f.first) as each:
        each.going(each.store.ne(NULL))
        store = each.store
        kind, made = f.load("ptr", store, layout.KIND), f.load("ptr", store, layout.OBJECT)
        with f.when(f.load("i64", kind, CHANGED).ne(0)):
            cases = {k: f.block(name) for k, name in enumerate(_KINDS)}
            fill = f.block("fill")
            f.switch(f.load("i64", kind), failed, cases)
            f.at(cases[LIST])
            length = f.load("i64", store, layout.LENGTH)
            have = f.call("i64", "PyList_Size", made)
            with f.when(have > length):
                cut = f.call("i32", "PyList_SetSlice", made, length, have, NULL)
                f.require(cut.eq(0), failed)
            with f.when(have < length), f.each(length - have):
                added = f.call("i32", "PyList_Append", made, symbol("none"))
                f.require(added.eq(0), failed)
            f.jump(fill)
            for k in (SET, ADDED):
                f.at(cases[k])
                f.call("i32", "PySet_Clear", made)
                f.jump(fill)
            f.at(cases[DICT])
            f.call("void", "PyDict_Clear", made)
            f.jump(fill)
            for k in (ARRAY, FROZEN):
                f.at(cases[k])
                f.jump(failed)
            for k in (DEQUE, MAPPING):
                f.at(cases[k])
                cleared = f.call("ptr", "PyObject_CallMethodObjArgs", made, symbol("clear"), NULL)
                f.require(cleared.ne(NULL), failed)
                f.call("void", "Py_DecRef", cleared)
                f.jump(fill)
            f.at(fill)
            f.require(f.run(_FILL, store, kind, made), failed)
        each.next(f.load("ptr", store, layout.LINK))
    f.ret(f.literal("i1", 1))
    f.at(failed)
    f.ret(f.literal("i1", 0))
    return f


def _leave() -> Function:
    f = Function("ptr", "jitney_leave", handles="ptr", n="i64", kinds="ptr", entered="ptr")
    handles, n, kinds, entered = f.args
    made, failed, unfilled, after = (
        f.call("ptr", "PyList_New", n),
        f.block("failed"),
        f.block("unfilled"),
        f.block("after", all="ptr"),
    )
    f.require(made.ne(NULL), failed)
    f.require(f.run(_REFILL, entered), unfilled)
    with f.each(n) as i:
        kind = f.load("ptr", kinds, i, "i64")
        store = f.load("ptr", handles, i, "i64")
        item = f.run(_CONTAINER, f.select(kind.eq(NULL), NULL, store), kind)
        there, missing = f.block("there"), f.block("missing")
        f.branch(item.ne(NULL), there, missing, likely=True)
        f.at(missing)
        f.call("void", "Py_DecRef", made)
        f.jump(failed)
        f.at(there)
        f.call("i32", "PyList_SetItem", made, i, item)  # takes the reference
    f.jump(after, made)
    f.at(unfilled)
    f.call("void", "Py_DecRef", made)
    f.jump(failed)
    f.at(failed)
    f.jump(after, NULL)
    (result,) = f.at(after)
    with f.loop(store=f.load("ptr", handles, n, "i64")) as each:
        each.going(each.store.ne(NULL))
        following = f.load("ptr", each.store, layout.LINK)
        with f.when(f.load("ptr", each.store, layout.OBJECT).ne(NULL)):
            f.call("void", "Py_DecRef", f.load("ptr", each.store, layout.OBJECT))
        for owned in (layout.INDEX, layout.BLOCK):
            f.call("void", layout.RELEASE, f.load("ptr", each.store, owned))
        f.call("void", layout.RELEASE, each.store)
        each.next(following)
    f.ret(result)
    return f
