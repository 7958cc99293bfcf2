"""Python's objects of the containers that native code leaves behind, as LLVM. The GIL is held.

    PyObject *jitney_leave(uint64 *handles, int64 n, int64 *kinds)

makes a list of the n objects for the first n handles, null for what raised; the container after them
is the first of all of the call, which are given back. A container that two hold is one object: its
header keeps it meanwhile.

A *kind*, by address, says what containers are: how they are filled; what makes an empty one; the
elements of keys, and of values; where a record begins, and its bytes. An *element* is written from the
outside in, three words a node: what it is, how many nodes are in it, and an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...codegen.kernels.stores import layout
from ...codegen.llvm.builder import NULL, Value, symbol
from ...codegen.llvm.modules import Defined, Function, module_ir

WORD = layout.WORD
BOOL, INT, FLOAT, SCALAR, CONSTANT, TUPLE, CALL, CONTAINER = range(8)  # of elements
LIST, DEQUE, SET, DICT, MAPPING = range(5)  # of kinds
FILLED, EMPTY, KEY, VALUE, LEAD, BYTES = (k * WORD for k in range(6))
_NODE = 3 * WORD
_CONTAINER = Defined("container", ("ptr", "ptr"), "ptr")
_ELEMENT = Defined("element", ("ptr",), "ptr")


def objects_ir() -> str:
    """The LLVM text."""
    return module_ir([_element(), _container(), _leave()], ["none", "extend", "where"])


def _element() -> Function:
    """The next element: the cursor says where its nodes are, and where its values."""
    f = Function("ptr", "element", internal=True, cursor="ptr")
    node = f.load("ptr", f.cursor)
    n, what = f.load("i64", node, WORD), f.load("ptr", node, 2 * WORD)
    f.store(f.offset(node, _NODE), f.cursor)
    names = "bool int float scalar constant tuple call container"
    cases = {k: f.block(name) for k, name in enumerate(names.split())}
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
    f.at(cases[CONTAINER])
    handle = f.load("i64", value()).to("inttoptr", "ptr")
    f.ret(f.run(_CONTAINER, handle, what))
    f.at(cases[TUPLE])
    f.ret(_parts(f, n))
    f.at(cases[CALL])
    parts = _parts(f, n)
    made = f.call("ptr", "PyObject_Call", what, parts, NULL)
    f.call("void", "Py_DecRef", parts)
    f.ret(made)
    return f


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
    cursor = f.alloca("ptr", 2)
    hints = "none", "there", "known", "fresh", "too_deep"
    none, there, known, fresh, too_deep = map(f.block, hints)
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
    keys, values = f.load("ptr", kind, KEY), f.load("ptr", kind, VALUE)
    lead, nbytes = f.load("i64", kind, LEAD), f.load("i64", kind, BYTES)
    count = f.select(
        keys.eq(NULL), f.load("i64", store, layout.LENGTH), f.load("i64", store, layout.TAKEN)
    )
    length = f.select(values.eq(NULL), f.literal("i64", 0), count)
    names = "list deque set dict mapping"
    cases = {k: f.block(name) for k, name in enumerate(names.split())}
    failed = f.block("failed")

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

    def listed(made: Value) -> None:
        f.require(made.ne(NULL), failed)
        with f.each(length) as i:
            record(i, values)
            f.call("i32", "PyList_SetItem", made, i, element())  # takes the reference

    def empty() -> Value:
        made = f.call("ptr", "PyObject_CallObject", f.load("ptr", kind, EMPTY), NULL)
        f.require(made.ne(NULL), failed)
        f.store(made, store, layout.OBJECT)
        return made

    def give(made: Value) -> None:
        f.call("void", "Py_LeaveRecursiveCall")
        f.call("void", "Py_IncRef", made)
        f.ret(made)

    @contextmanager
    def entries() -> Iterator[None]:
        """Those of a table that were not removed."""
        with (
            f.each(f.select(keys.eq(NULL), f.literal("i64", 0), count)) as i,
            f.when(f.load("i64", record(i, keys)) >= 0),
        ):
            yield

    f.switch(f.load("i64", kind), failed, cases)
    f.at(cases[LIST])
    made = f.call("ptr", "PyList_New", length)
    f.store(made, store, layout.OBJECT)
    listed(made)
    give(made)

    f.at(cases[DEQUE])
    made, items = empty(), f.call("ptr", "PyList_New", length)
    listed(items)  # if that fails they stay: there is no memory
    added = f.call("ptr", "PyObject_CallMethodObjArgs", made, symbol("extend"), items, NULL)
    f.call("void", "Py_DecRef", items)
    f.require(added.ne(NULL), failed)
    f.call("void", "Py_DecRef", added)
    give(made)

    f.at(cases[SET])
    made = empty()
    with entries():
        item = element()
        added = f.call("i32", "PySet_Add", made, item)
        f.call("void", "Py_DecRef", item)
        f.require(added.eq(0), failed)
    give(made)

    for how, put in ((DICT, "PyDict_SetItem"), (MAPPING, "PyObject_SetItem")):
        f.at(cases[how])
        made = empty()
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
        give(made)

    f.at(failed)
    f.call("void", "Py_LeaveRecursiveCall")
    f.jump(too_deep)
    f.at(too_deep)
    f.ret(NULL)
    return f


def _leave() -> Function:
    f = Function("ptr", "jitney_leave", handles="ptr", n="i64", kinds="ptr")
    handles, n, kinds = f.args
    made, failed, after = (
        f.call("ptr", "PyList_New", n),
        f.block("failed"),
        f.block("after", all="ptr"),
    )
    f.require(made.ne(NULL), failed)
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
