"""Addresses are checked, and asynchronous copies arrive as late as they may, as emitted code.

An address that is out of bounds is replaced by the launch's sink, so that the kernel goes on without
harm until it stops next; then the launch ends with the error.
"""

from __future__ import annotations

from ....codegen.llvm.builder import NULL, Block, Value
from ....codegen.llvm.modules import Function
from . import layout as at
from .access import I32, job_load, job_store, raise_error, word
from .layout import JOB
from .races import WRITE, track


def _refuse(
    f: Function, job: Value, thread: Value, kind: int, address: Value, size: Value, site: Value
) -> None:
    with f.when(job_load(f, job, "error").eq(0)):
        raise_error(f, thread, kind)
        job_store(f, address, job, "address")
        job_store(f, size.zext("i64"), job, "size")
        job_store(f, site.zext("i64"), job, "site")


def _access(name: str) -> tuple[Function, Value, Value, Value, Block]:
    f = Function("ptr", name, thread="ptr", pointer="ptr", size=I32, align=I32, kind=I32, site=I32)
    thread, pointer, size, align, _, site = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    address = pointer.to("ptrtoint", "i64")
    rest = address & align.zext("i64") - 1
    with f.when(rest.ne(0)):
        _refuse(f, job, thread, at.MISALIGNED, address, size, site)
        f.ret(f.load("ptr", job, JOB["sink"]))
        f.at(f.block("unused"))
    end = address + size.zext("i64")
    return f, job, address, end, f.block("outside")


def _finish(f: Function, job: Value, address: Value, outside: Block) -> Function:
    thread, pointer, size, _, _, site = f.args
    f.ret(pointer)
    f.at(outside)
    _refuse(f, job, thread, at.OUT_OF_BOUNDS, address, size, site)
    f.ret(f.load("ptr", job, JOB["sink"]))
    return f


def global_access() -> Function:
    """`global(thread, pointer, size, align, kind, site)`: the pointer, if the launch may access it.

    The ranges of a launch are sorted and do not overlap; none at all means that all is allowed.
    """
    f, job, address, end, outside = _access("emu_global")
    pointer = f.args[1]
    ranges = f.load("ptr", job, JOB["ranges"])
    count = job_load(f, job, "range_count")
    free = f.block("free")
    f.require(ranges.ne(NULL), free)

    def inside(index: Value) -> Value:
        entry = f.offset(ranges, index * 16)
        starts = f.load("i64", entry).ule(address)
        return starts & end.ule(f.load("i64", entry, 8))

    found = f.block("found")
    miss = f.block("miss")
    f.branch(inside(job_load(f, job, "last_range")), found, miss, likely=True)
    f.at(found)
    f.ret(pointer)
    f.at(free)
    f.ret(pointer)
    f.at(miss)  # the last range that does not start behind the address
    search, look, done = f.block("search", low="i64", high="i64"), f.block("look"), f.block("done")
    f.jump(search, 0, count)
    low, high = f.at(search)
    f.branch(low + 1 < high, look, done, likely=True)
    f.at(look)
    middle = (low + high) // 2
    entry = f.offset(ranges, middle * 16)
    before = f.load("i64", entry).ule(address)
    f.jump(search, f.select(before, middle, low), f.select(before, high, middle))
    f.at(done)
    f.require(inside(low), outside)
    job_store(f, low, job, "last_range")
    return _finish(f, job, address, outside)


def shared_access() -> Function:
    """`shared(thread, pointer, size, align, kind, site)`: the pointer, if it is the block's memory."""
    f, job, address, end, outside = _access("emu_shared")
    thread, pointer, size, _, kind, site = f.args
    start = job_load(f, job, "window")
    f.require(address.uge(start), outside)
    f.require(end.ule(start + job_load(f, job, "window_used")), outside)
    f.call("void", "emu_track", thread, pointer, size, kind, site)
    return _finish(f, job, address, outside)


def _arrive(f: Function, thread: Value, entry: Value) -> None:
    """Do one copy: so many bytes from the source, zeros up to the number to write."""
    target, source = f.load("ptr", entry), f.load("ptr", entry, 8)
    written, read = f.load(I32, entry, 16), f.load(I32, entry, 20)
    f.call("void", "emu_track", thread, target, written, word(WRITE), f.load(I32, entry, 28))
    with f.each(written.zext("i64")) as i:
        take = f.block("take")
        store = f.block("store", value="i8")
        small = i.trunc(I32)
        zero = f.block("zero")
        f.branch(small.ult(read), take, zero, likely=True)
        f.at(take)
        f.jump(store, f.load("i8", source, i))
        f.at(zero)
        f.jump(store, 0)
        (value,) = f.at(store)
        f.store(value, target, i)


def _queue_entry(f: Function, job: Value, thread: Value, number: Value) -> Value:
    linear = f.load(I32, thread, at.LINEAR).zext("i64")
    slot = (number & at.QUEUE_ENTRIES - 1).zext("i64")
    index = linear * at.QUEUE_ENTRIES + slot
    return f.offset(f.load("ptr", job, JOB["queues"]), index * at.QUEUE_ENTRY)


def async_copy() -> Function:
    """`copy(thread, target, source, bytes to write, bytes to read, site)`: begin a copy."""
    f = Function(
        "void",
        "emu_copy",
        thread="ptr",
        target="ptr",
        source="ptr",
        written=I32,
        read=I32,
        site=I32,
    )
    thread, target, source, written, read, site = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    head, tail = f.load(I32, thread, at.QUEUE_HEAD), f.load(I32, thread, at.QUEUE_TAIL)
    with f.when((tail - head).eq(at.QUEUE_ENTRIES)):
        _arrive(f, thread, _queue_entry(f, job, thread, head))
        f.store(head + 1, thread, at.QUEUE_HEAD)
    entry = _queue_entry(f, job, thread, tail)
    for value, where in ((target, 0), (source, 8), (written, 16), (read, 20), (site, 28)):
        f.store(value, entry, where)
    f.store(f.load(I32, thread, at.QUEUE_GROUPS), entry, 24)
    eager, late = f.block("eager"), f.block("late")
    f.branch(job_load(f, job, "eager").ne(0), eager, late, likely=True)
    f.at(eager)
    _arrive(f, thread, entry)
    f.ret()
    f.at(late)
    f.store(tail + 1, thread, at.QUEUE_TAIL)
    f.ret()
    return f


def commit_group() -> Function:
    """`commit(thread)`: the copies begun since the last time are a group."""
    f = Function("void", "emu_commit", thread="ptr")
    (thread,) = f.args
    f.store(f.load(I32, thread, at.QUEUE_GROUPS) + 1, thread, at.QUEUE_GROUPS)
    f.ret()
    return f


def wait_group() -> Function:
    """`wait(thread, n)`: all groups but the last n arrive; all copies whatsoever if n is negative."""
    f = Function("void", "emu_wait", thread="ptr", n=I32)
    thread, n = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    groups = f.load(I32, thread, at.QUEUE_GROUPS)
    everything = n < 0
    limit = f.select(everything, word(2**31 - 1), groups - n)
    tail = f.load(I32, thread, at.QUEUE_TAIL)
    loop, look, go, done = (
        f.block("loop", head=I32), f.block("look"), f.block("go"), f.block("done", head=I32)
    )  # fmt: skip
    f.jump(loop, f.load(I32, thread, at.QUEUE_HEAD))
    (head,) = f.at(loop)
    stop = f.block("stop")
    f.branch(head.ne(tail), look, stop, likely=True)
    f.at(look)
    entry = _queue_entry(f, job, thread, head)
    f.branch(f.load(I32, entry, 24) < limit, go, stop, likely=True)
    f.at(go)
    _arrive(f, thread, entry)
    f.jump(loop, head + 1)
    f.at(stop)
    f.jump(done, head)
    (head,) = f.at(done)
    f.store(head, thread, at.QUEUE_HEAD)
    f.ret()
    return f


def arrive() -> Function:
    """`arrive(thread, barrier)`: count a thread that does not wait."""
    f = Function("void", "emu_arrive", thread="ptr", barrier=I32)
    thread, barrier = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    where = barrier.zext("i64") * 8 + JOB["arrivals"]
    f.store(f.load("i64", job, where) + 1, job, where)
    f.ret()
    return f


MEMORY = (track, global_access, shared_access, async_copy, commit_group, wait_group, arrive)
