"""Allocating arrays, and scratch memory in arrays, as LLVM. The GIL is held."""

from __future__ import annotations

from ...codegen.llvm.builder import NULL, Value, constant, symbol
from ...codegen.llvm.modules import Function, Variable
from ..handlers import TRACE_DOMAIN, Handler
from ..native.layout import ALIGNED, C_CONTIGUOUS, OWNDATA, WRITEABLE, NdarrayLayout

_SCRATCH_SLOTS = 4  # blocks that wait for the next call
SCRATCH = Variable("scratch_slots", f"[{_SCRATCH_SLOTS} x ptr]")
_KEEP_LIMIT = 64 << 20  # larger blocks are given back at once
_PAGE = 4096
_CARRAY = C_CONTIGUOUS | ALIGNED | WRITEABLE


def new_array(f: Function, descr: Value, ndim: Value, dims: Value) -> Value:
    """A fresh C-contiguous ndarray, or null."""
    f.call("void", "Py_IncRef", descr)  # the callee takes it
    kind, flags = symbol("ndarray_type"), constant("i32", 0)
    return f.call("ptr", "PyArray_NewFromDescr", kind, descr, ndim, dims, NULL, NULL, flags, NULL)


def own_array(layout: NdarrayLayout) -> Function:
    """`ptr own_array(descr, ndim, dims, nbytes, capsule, handler)`: as `new_array`, of at least one
    byte, with memory of NumPy's handler in `capsule`, whose functions are at `handler`.

    As NumPy does it, but that it looks up the handler for each array.
    """
    f = Function(
        *("ptr", "own_array"),
        internal=True,
        descr="ptr",
        ndim="i32",
        dims="ptr",
        nbytes="i64",
        capsule="ptr",
        handler="ptr",
    )
    descr, ndim, dims, nbytes, capsule, handler = f.args
    domain = constant("i32", TRACE_DOMAIN)
    none, failed = f.block("none"), f.block("failed")
    context, malloc = (
        f.load("ptr", handler, getattr(Handler, n).offset) for n in ("ctx", "malloc")
    )
    data = f.call("ptr", malloc, context, nbytes)
    f.require(data.ne(NULL), none)
    f.call("i32", "PyTraceMalloc_Track", domain, data.to("ptrtoint", "i64"), nbytes)
    f.call("void", "Py_IncRef", descr)
    kind, flags = symbol("ndarray_type"), constant("i32", _CARRAY)
    array = f.call("ptr", "PyArray_NewFromDescr", kind, descr, ndim, dims, NULL, data, flags, NULL)
    f.require(array.ne(NULL), failed)
    f.store(f.load("i32", array, layout.flags) | OWNDATA, array, layout.flags)
    f.call("void", "Py_IncRef", capsule)
    f.store(capsule, array, layout.handler)
    f.ret(array)
    f.at(none)
    f.call("void", "PyErr_SetObject", symbol("memory_error"), symbol("no_memory"))
    f.ret(NULL)
    f.at(failed)
    f.call("i32", "PyTraceMalloc_Untrack", domain, data.to("ptrtoint", "i64"))
    free = f.load("ptr", handler, Handler.free.offset)
    f.call("void", free, context, data, nbytes)
    f.ret(NULL)
    return f


def take_scratch(layout: NdarrayLayout) -> Function:
    """`ptr take_scratch(nbytes, capsule, handler)`: an array of bytes with 64 to spare, or null."""
    arguments = {"nbytes": "i64", "capsule": "ptr", "handler": "ptr"}
    f = Function("ptr", "take_scratch", internal=True, **arguments)
    nbytes, capsule, handler = f.args
    dims = f.alloca("i64")
    needed = nbytes + 64
    with f.each(_SCRATCH_SLOTS) as i:
        cached = f.load("ptr", _SLOTS, i, "i64")
        look = f.block("look")
        next = f.block("next")
        f.branch(cached.ne(NULL), look, next, likely=True)
        f.at(look)
        with f.when(_size(f, layout, cached).uge(needed), likely=True):
            f.store(NULL, _SLOTS, i, "i64")
            f.ret(cached)
            f.at(f.block("unused"))
        f.jump(next)
        f.at(next)
    whole = needed + (_PAGE - 1) & -_PAGE
    f.store(whole, dims)
    plain, recycled = f.block("plain"), f.block("recycled")
    one = constant("i32", 1)
    f.branch(capsule.eq(NULL), plain, recycled, likely=True)
    f.at(plain)
    f.ret(new_array(f, _BYTE, one, dims))
    f.at(recycled)
    f.ret(f.call("ptr", "own_array", _BYTE, one, dims, whole, capsule, handler))
    return f


def give_scratch(layout: NdarrayLayout) -> Function:
    """`void give_scratch(array)`: into an empty slot, or in the place of the smallest block."""
    f = Function("void", "give_scratch", internal=True, array="ptr")
    (array,) = f.args
    size = _size(f, layout, array)
    drop, search = f.block("drop"), f.block("search")
    f.branch(size.ule(_KEEP_LIMIT), search, drop, likely=True)
    f.at(search)
    with f.each(_SCRATCH_SLOTS) as i:
        cached = f.load("ptr", _SLOTS, i, "i64")
        look, put, next = f.block("look"), f.block("put"), f.block("next")
        f.branch(cached.eq(NULL), put, look, likely=True)
        f.at(look)
        f.branch(_size(f, layout, cached).ult(size), put, next)
        f.at(put)
        f.store(array, _SLOTS, i, "i64")
        with f.when(cached.ne(NULL)):
            f.call("void", "Py_DecRef", cached)
        f.ret()
        f.at(next)
    f.jump(drop)
    f.at(drop)
    f.call("void", "Py_DecRef", array)
    f.ret()
    return f


_SLOTS = SCRATCH.address
_BYTE = symbol("uint8")


def _size(f: Function, layout: NdarrayLayout, array: Value) -> Value:
    return f.load("i64", f.load("ptr", array, layout.dims))
