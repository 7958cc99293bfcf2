"""Allocating arrays, and scratch memory in arrays, as LLVM. The GIL is held."""

from __future__ import annotations

from collections.abc import Callable

from .function_ir import NULL, Block, Function, Value
from .layout import NdarrayLayout

SCRATCH_SLOTS = 4  # blocks that wait for the next call
_KEEP_LIMIT = 64 << 20  # larger blocks are given back at once
_PAGE = 4096


def new_array(f: Function, descr: Value, ndim: Value, dims: Value) -> Value:
    """A fresh C-contiguous ndarray, or null."""
    f.call("void", "Py_IncRef", descr)  # the callee takes it
    kind, flags = Value("ptr", "@ndarray_type"), Value("i32", "0")
    return f.call("ptr", "PyArray_NewFromDescr", kind, descr, ndim, dims, NULL, NULL, flags, NULL)


def with_handler(f: Function, handler: Value, error: Block, allocate: Callable[[], Value]) -> Value:
    """`allocate()` while NumPy's memory handler is `handler`."""
    previous = f.call("ptr", "PyDataMem_SetHandler", handler)
    f.require(f.unlike(previous, NULL), error)
    array = allocate()
    ours = f.call("ptr", "PyDataMem_SetHandler", previous)
    f.call("void", "Py_DecRef", previous)
    f.require(f.unlike(ours, NULL), error)
    f.call("void", "Py_DecRef", ours)
    return array


def take_scratch(layout: NdarrayLayout) -> Function:
    """`ptr take_scratch(nbytes, handler)`: an array of bytes with 64 to spare, or null."""
    f = Function("ptr", "take_scratch", internal=True, nbytes="i64", handler="ptr")
    nbytes, handler = f.args
    dims = f.alloca("i64")
    failed = f.block("failed")
    needed = f.add(nbytes, 64)
    with f.each(SCRATCH_SLOTS) as i:
        kept = f.load("ptr", _SLOTS, i, "i64")
        look = f.block("look")
        next = f.block("next")
        f.branch(f.unlike(kept, NULL), look, next)
        f.at(look)
        with f.when(f.compare("uge", _size(f, layout, kept), needed), likely=True):
            f.store(NULL, _SLOTS, i, "i64")
            f.ret(kept)
            f.at(f.block("unused"))
        f.jump(next)
        f.at(next)
    f.store(f.both(f.add(needed, _PAGE - 1), -_PAGE), dims)
    plain, recycled = f.block("plain"), f.block("recycled")
    one = Value("i32", "1")
    f.branch(f.same(handler, NULL), plain, recycled)
    f.at(plain)
    f.ret(new_array(f, _BYTE, one, dims))
    f.at(recycled)
    f.ret(with_handler(f, handler, failed, lambda: new_array(f, _BYTE, one, dims)))
    f.at(failed)
    f.ret(NULL)
    return f


def give_scratch(layout: NdarrayLayout) -> Function:
    """`void give_scratch(array)`: into an empty slot, or in the place of the smallest block."""
    f = Function("void", "give_scratch", internal=True, array="ptr")
    (array,) = f.args
    size = _size(f, layout, array)
    drop, search = f.block("drop"), f.block("search")
    f.branch(f.compare("ule", size, _KEEP_LIMIT), search, drop)
    f.at(search)
    with f.each(SCRATCH_SLOTS) as i:
        kept = f.load("ptr", _SLOTS, i, "i64")
        look, put, next = f.block("look"), f.block("put"), f.block("next")
        f.branch(f.same(kept, NULL), put, look)
        f.at(look)
        f.branch(f.compare("ult", _size(f, layout, kept), size), put, next, likely=False)
        f.at(put)
        f.store(array, _SLOTS, i, "i64")
        with f.when(f.unlike(kept, NULL)):
            f.call("void", "Py_DecRef", kept)
        f.ret()
        f.at(next)
    f.jump(drop)
    f.at(drop)
    f.call("void", "Py_DecRef", array)
    f.ret()
    return f


_SLOTS = Value("ptr", "@scratch_slots")
_BYTE = Value("ptr", "@uint8")


def _size(f: Function, layout: NdarrayLayout, array: Value) -> Value:
    return f.load("i64", f.load("ptr", array, layout.dims))
