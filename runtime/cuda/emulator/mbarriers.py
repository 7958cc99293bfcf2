"""Barriers that are words of shared memory, and registers that warps pass on, as emitted code.

A word holds the phase's parity, arrivals that are still expected of it and of each phase, and bytes that
have been announced and have not arrived. A GPU does not tell how; here it is

    bits 0-19 pending arrivals, 20-39 arrivals of a phase, 40-61 bytes, 62 parity; 63 is 0

A thread that waits for a phase stops until it is complete; a wait may also end without that, as a GPU's
may, so kernels must look at what it says.
"""

from __future__ import annotations

from ....codegen.llvm.builder import NULL, Value, constant
from ....codegen.llvm.modules import Function
from . import layout as at
from .access import (
    I32,
    bit,
    clear_bits,
    is_set,
    job_load,
    job_store,
    raise_error,
    set_bits,
    thread_at,
    warp_at,
    warp_count,
    word,
)

I64 = "i64"
_COUNT = (1 << 20) - 1
_BYTES = (1 << 20) - 1  # the most that may be announced


def _bits(f: Function, state: Value, shift: int, mask: int) -> Value:
    moved = state >> shift if shift else state
    return moved & mask


def _pack(f: Function, pending: Value, expected: Value, nbytes: Value, parity: Value) -> Value:
    state = pending
    for value, shift in ((expected, 20), (nbytes, 40), (parity, 62)):
        state = state | f.binary("shl", value, shift)
    return state


def refuse_unless(f: Function, good: Value, thread: Value, site: Value, kind: int) -> None:
    """End the function with an error unless `good`."""
    fine = ~good
    with f.when(fine):
        f.store(site, thread, at.SITE)
        raise_error(f, thread, kind)
        f.ret(None if f.result == "void" else constant(f.result, 0))
        f.at(f.block("unused"))


def _checked(f: Function, thread: Value, barrier: Value, site: Value) -> tuple[Value, ...]:
    """(pending, expected, bytes, parity) of a word that was initialised."""
    state = f.load(I64, barrier)
    pending, expected = _bits(f, state, 0, _COUNT), _bits(f, state, 20, _COUNT)
    good = (state >= 0) & pending.ule(expected)
    good = good & expected.ne(0)
    refuse_unless(f, good, thread, site, at.NO_MBARRIER)
    return pending, expected, _bits(f, state, 40, _BYTES), _bits(f, state, 62, 1)


def _settle(
    f: Function, barrier: Value, pending: Value, expected: Value, nbytes: Value, parity: Value
) -> None:
    """Write the word; a phase of which nothing is missing gives way to the next."""
    done = (pending | nbytes).eq(0)
    pending = f.select(done, expected, pending)
    parity = f.select(done, parity ^ 1, parity)
    f.store(_pack(f, pending, expected, nbytes, parity), barrier)


def init() -> Function:
    """`init(thread, place, count, site)`. The copy engine knows of it after a fence."""
    f = Function("void", "emu_mbarrier_init", thread="ptr", barrier="ptr", count=I32, site=I32)
    thread, barrier, count, site = f.args
    wide = count.zext(I64)
    good = wide.ne(0) & wide.ule(_COUNT)
    refuse_unless(f, good, thread, site, at.NO_MBARRIER)
    zero = f.literal(I64, 0)
    f.store(_pack(f, wide, wide, zero, zero), barrier)
    f.store(f.load(I32, thread, at.UNFENCED) + 1, thread, at.UNFENCED)
    job = f.load("ptr", thread, at.THREAD_JOB)
    job_store(f, job_load(f, job, "unfenced") + 1, job, "unfenced")
    f.ret()
    return f


def fence() -> Function:
    """`fence(thread)`: what the thread has initialised may be used by the copy engine."""
    f = Function("void", "emu_mbarrier_fence", thread="ptr")
    (thread,) = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    own = f.load(I32, thread, at.UNFENCED).zext(I64)
    job_store(f, job_load(f, job, "unfenced") - own, job, "unfenced")
    f.store(word(0), thread, at.UNFENCED)
    f.ret()
    return f


def arrive() -> Function:
    """`arrive(thread, place, count, bytes, site)`: announce bytes, then arrive so many times."""
    f = Function(
        I64, "emu_mbarrier_arrive", thread="ptr", barrier="ptr", count=I32, nbytes=I32, site=I32
    )
    thread, barrier, count, nbytes, site = f.args
    before = f.load(I64, barrier)
    pending, expected, missing, parity = _checked(f, thread, barrier, site)
    count, nbytes = count.zext(I64), nbytes.zext(I64)
    missing = missing + nbytes
    refuse_unless(f, missing.ule(_BYTES), thread, site, at.TOO_MANY_BYTES)
    refuse_unless(f, count.ule(pending), thread, site, at.TOO_MANY_ARRIVALS)
    _settle(f, barrier, pending - count, expected, missing, parity)
    f.ret(before)
    return f


def bytes_arrive() -> Function:
    """`bytes_arrive(thread, place, bytes, site)`: a copy that `thread` began is there."""
    f = Function("void", "emu_bytes_arrive", thread="ptr", barrier="ptr", nbytes=I32, site=I32)
    thread, barrier, nbytes, site = f.args
    pending, expected, missing, parity = _checked(f, thread, barrier, site)
    nbytes = nbytes.zext(I64)
    refuse_unless(f, nbytes.ule(missing), thread, site, at.UNANNOUNCED_BYTES)
    _settle(f, barrier, pending, expected, missing - nbytes, parity)
    f.ret()
    return f


def _answer(f: Function, job: Value, thread: Value) -> Value:
    """Whether what a thread waits for is there: a phase, or registers, which the first lane of a warp
    gets for the whole warp."""
    barrier = f.load("ptr", thread, at.PHASE_BARRIER)
    phase, registers = f.block("phase"), f.block("registers")
    first, other = f.block("first_lane"), f.block("other_lane")
    take, keep, done = f.block("take"), f.block("keep"), f.block("answered", yes="i1")
    f.branch(barrier.ne(NULL), phase, registers, likely=True)
    f.at(phase)
    parity = _bits(f, f.load(I64, barrier), 62, 1).trunc(I32)
    f.jump(done, parity.ne(f.load(I32, thread, at.COUNT)))
    f.at(registers)
    lane = f.load(I32, thread, at.LANE).zext(I64)
    leader = f.offset(thread, lane * -at.THREAD_SIZE)
    wanted, parked = f.load(I32, thread, at.COUNT), f.load(I32, leader, at.REGISTERS)
    f.branch(lane.eq(0), first, other, likely=True)
    f.at(other)
    f.jump(done, wanted.eq(parked))
    f.at(first)
    more = (wanted - parked).sext(I64) * at.WARP_SIZE
    pool = job_load(f, job, "pool")
    f.branch(more <= pool, take, keep, likely=True)
    f.at(take)
    job_store(f, pool - more, job, "pool")
    f.store(wanted, thread, at.REGISTERS)
    f.jump(done, constant("i1", True))
    f.at(keep)
    f.jump(done, constant("i1", False))
    (yes,) = f.at(done)
    return yes


def _ask(f: Function, thread: Value) -> None:
    """Stop the thread, unless there is nothing to wait for."""
    job = f.load("ptr", thread, at.THREAD_JOB)
    yes = _answer(f, job, thread)
    f.store(yes.zext(I32), thread, at.OUTPUT)
    f.store(f.select(yes, word(at.READY), word(at.AT_PHASE)), thread, at.STATE)
    f.ret()


def try_wait() -> Function:
    """`try_wait(thread, place, parity, site)`: wait for the end of the phase of that parity."""
    f = Function("void", "emu_try_wait", thread="ptr", barrier="ptr", parity=I32, site=I32)
    thread, barrier, parity, site = f.args
    _checked(f, thread, barrier, site)
    for value, where in ((barrier, at.PHASE_BARRIER), (parity, at.COUNT), (site, at.SITE)):
        f.store(value, thread, where)
    _ask(f, thread)
    return f


def registers() -> Function:
    """`registers(thread, count, site)`: give registers to the block, or wait for more from it."""
    f = Function("void", "emu_registers", thread="ptr", count=I32, site=I32)
    thread, count, site = f.args
    good = count.uge(24) & count.ule(256)
    good = good & (count & 7).eq(0)
    good = good & f.load(I32, thread, at.REGISTERS).ne(0)
    refuse_unless(f, good, thread, site, at.NO_REGISTERS)
    f.store(NULL, thread, at.PHASE_BARRIER)
    f.store(count, thread, at.COUNT)
    f.store(site, thread, at.SITE)
    _ask(f, thread)
    return f


def answer_waits() -> Function:
    """`answer_waits(job, all)`: threads whose phase is complete go on; with `all`, the others too, and
    are told that it is not. Sets `moved` if some do."""
    f = Function("void", "emu_answer_waits", internal=True, job="ptr", all="i1")
    job, everyone = f.args
    with f.each(warp_count(f, job)) as number:
        warp = warp_at(f, job, number)
        waiting = f.load(I32, warp, at.state_mask(at.AT_PHASE))
        with f.each(at.WARP_SIZE) as lane, f.when(is_set(f, waiting, lane)):
            thread = thread_at(f, job, number, lane)
            yes = _answer(f, job, thread)
            phase = f.load("ptr", thread, at.PHASE_BARRIER).ne(NULL)
            with f.when(yes | everyone & phase):
                f.store(yes.zext(I32), thread, at.OUTPUT)
                f.store(word(at.READY), thread, at.STATE)
                clear_bits(f, warp, at.AT_PHASE, bit(lane))
                set_bits(f, warp, at.READY, bit(lane))
                job_store(f, 1, job, "moved")
    f.ret()
    return f


MBARRIERS = (init, fence, arrive, bytes_arrive, try_wait, registers, answer_waits)
