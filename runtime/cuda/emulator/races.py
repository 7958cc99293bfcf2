"""Races in shared memory, as emitted code: two threads at one byte, one writing, and no barrier between.

Each byte of a block's shared memory has two records: who wrote it last, and who has read it since. A
record is 64 bits: the thread (one more than its number; `_WARP` and a warp for several lanes of it;
`_MANY` for several warps), how many barriers its warp and the block had seen, and the instruction.
Accesses are in order if a barrier of the block lies between them, or one of the warp if both are of one.
Accesses that are atomic or volatile are meant to meet, and are not looked at.

An order of threads shows a race only if it changes a result; this finds it in every order.
"""

from __future__ import annotations

from ....codegen.llvm.builder import NULL, Block, Value, constant
from ....codegen.llvm.modules import Function
from . import layout as at
from .access import I32, job_load, job_store, warp_at
from .layout import JOB

RECORD_BYTES = 16  # for each byte of shared memory
READ, WRITE, MEANT = range(3)
_WARP, _MANY, _WHO = 0x8000, 0xFFFF, 0xFFFF


def _field(f: Function, record: Value, number: int) -> Value:
    """16 bits of a record: who, the warp's barriers, the block's, the instruction."""
    shifted = record if not number else record >> 16 * number
    return shifted & _WHO


def _warp_of(f: Function, who: Value) -> Value:
    """The warp of a record's threads; of several warps, one that does not exist."""
    one = (who - 1) // at.WARP_SIZE
    return f.select(who < _WARP, one, who & _WARP - 1)


def _unordered(f: Function, record: Value, mine: Value) -> Value:
    """Whether no barrier is between a record and the access of another thread."""
    who = _field(f, record, 0)
    someone = who.ne(0) & who.ne(_field(f, mine, 0))
    same_block = _field(f, record, 2).eq(_field(f, mine, 2))
    same_warp = _warp_of(f, who).eq(_warp_of(f, _field(f, mine, 0)))
    later = same_warp & _field(f, record, 1).ne(_field(f, mine, 1))
    return someone & same_block & ~later


def _readers(f: Function, record: Value, mine: Value) -> Value:
    """The record of who has read, with one more reader."""
    who, me = _field(f, record, 0), _field(f, mine, 0)
    rest = mine & ~_WHO
    warp = _warp_of(f, me)
    same_warp = _warp_of(f, who).eq(warp)
    same_time = _field(f, record, 1).eq(_field(f, mine, 1))
    lanes = rest | warp | _WARP
    in_warp = f.select(same_time, lanes, mine)
    with_others = f.select(same_warp, in_warp, rest | _MANY)
    new = who.eq(0) | _field(f, record, 2).ne(_field(f, mine, 2))
    alone = new | who.eq(me)
    return f.select(alone, mine, with_others)


def track() -> Function:
    """`track(thread, pointer, size, kind, site)`: note an access, and complain of a race."""
    f = Function("void", "emu_track", thread="ptr", pointer="ptr", size=I32, kind=I32, site=I32)
    thread, pointer, size, kind, site = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    records = f.load("ptr", job, JOB["records"])
    done = f.block("done")
    f.require(records.ne(NULL), done)
    f.require(kind.ne(MEANT), done)
    mine = _record(f, job, thread, site)
    first = pointer.to("ptrtoint", "i64") - job_load(f, job, "window")
    with f.each(size.zext("i64")) as k:
        record = f.offset(records, (first + k) * RECORD_BYTES)
        written, read = f.load("i64", record), f.load("i64", record, 8)
        _complain_if(f, _unordered(f, written, mine), job, thread, written, site, done)
        reads, writes, next = f.block("reads"), f.block("writes"), f.block("next")
        f.branch(kind.eq(READ), reads, writes, likely=True)
        f.at(reads)
        f.store(_readers(f, read, mine), record, 8)
        f.jump(next)
        f.at(writes)
        _complain_if(f, _unordered(f, read, mine), job, thread, read, site, done)
        f.store(mine, record)
        f.store(constant("i64", 0), record, 8)
        f.jump(next)
        f.at(next)
    f.jump(done)
    f.at(done)
    f.ret()
    return f


def _record(f: Function, job: Value, thread: Value, site: Value) -> Value:
    """This thread's access now."""
    who = f.load(I32, thread, at.LINEAR).zext("i64") + 1
    warp = f.load(I32, thread, at.WARP).zext("i64")
    synced = f.load(I32, warp_at(f, job, warp), at.SYNCED).zext("i64")
    fields = [synced, job_load(f, job, "epoch"), site.zext("i64")]
    for number, value in enumerate(fields, 1):
        part = value & _WHO
        who = who | part << 16 * number
    return who


def _complain_if(
    f: Function, wrong: Value, job: Value, thread: Value, record: Value, site: Value, done: Block
) -> None:
    with f.when(wrong):
        with f.when(job_load(f, job, "error").eq(0)):
            f.call("void", "emu_fail", thread, at.RACE, record)
            job_store(f, site.zext("i64"), job, "site")
        f.jump(done)
        f.at(f.block("unused"))


def describe(record: int) -> tuple[str, int]:
    """Who a record is of, in words, and the number of the instruction."""
    who, site = record & _WHO, record >> 48 & _WHO
    if who == _MANY:
        return "threads of several warps", site
    if who >= _WARP:
        return f"lanes of warp {who - _WARP}", site
    return f"thread {who - 1}", site
