"""How threads say what they wait for, and how a barrier lets them go, as emitted code."""

from __future__ import annotations

from collections.abc import Callable

from ....codegen.llvm.builder import Value, constant
from ....codegen.llvm.modules import Function
from . import layout as at
from .access import (
    I32,
    bit,
    clear_bits,
    is_set,
    job_store,
    lowest_bit,
    raise_error,
    set_bits,
    thread_at,
    thread_count,
    warp_at,
    warp_count,
    word,
)
from .layout import JOB

SYNC, AND, OR, POPC = range(4)  # what a barrier gives to a thread


def _note(f: Function, state: int, *fields: int) -> Function:
    """Write the function: what a thread waits for goes to its places, the last one is the site."""
    thread, *values = f.args
    for value, where in zip(values, (*fields, at.SITE), strict=True):
        f.store(value, thread, where)
    f.store(word(state), thread, at.STATE)
    f.ret()
    return f


def at_barrier() -> Function:
    """A thread at a barrier; `operation` says what it wants to know of all predicates."""
    f = Function(
        "void", "emu_at_barrier",
        thread="ptr", barrier=I32, count=I32, operation=I32, predicate=I32, site=I32,
    )  # fmt: skip
    return _note(f, at.AT_BARRIER, at.BARRIER, at.COUNT, at.OPERATION, at.INPUT)


def at_operation() -> Function:
    """A lane at an operation of its warp; the operands have been shown already."""
    f = Function("void", "emu_at_operation", thread="ptr", mask=I32, operation=I32, site=I32)
    return _note(f, at.AT_OPERATION, at.MASK, at.OPERATION)


def at_shuffle() -> Function:
    """The same with the operands of a shuffle."""
    f = Function(
        "void", "emu_at_shuffle",
        thread="ptr", mask=I32, operation=I32, value=I32, amount=I32, control=I32, site=I32,
    )  # fmt: skip
    operands = (at.INPUT, at.INPUT + 4, at.INPUT + 8)
    return _note(f, at.AT_OPERATION, at.MASK, at.OPERATION, *operands)


def spins() -> Function:
    """A thread that has looked at memory and may look again: when all others wait."""
    return _note(Function("void", "emu_spins", thread="ptr", site=I32), at.SPINNING)


def barrier() -> Function:
    """`barrier(job, number)`: let the threads at a barrier go on, if as many have come as it wants.

    Sets `moved` then. What they brought (`INPUT`, 0 or 1) is counted, and each gets what it asked for.
    """
    f = Function("void", "emu_barrier", internal=True, job="ptr", id=I32)
    job, id = f.args
    warps = warp_count(f, job)
    totals = f.alloca("i64", 3)  # waiting, of them with a true predicate, wanted
    for k in range(3):
        f.store(constant("i64", 0), totals, 8 * k)

    def each_waiting(body: Callable[[Value, Value, Value], None]) -> None:
        with f.each(warps) as number:
            warp = warp_at(f, job, number)
            waiting = f.load(I32, warp, at.state_mask(at.AT_BARRIER))
            with f.each(at.WARP_SIZE) as lane, f.when(is_set(f, waiting, lane)):
                thread = thread_at(f, job, number, lane)
                with f.when(f.load(I32, thread, at.BARRIER).eq(id)):
                    body(waiting, lane, thread)

    def count_it(waiting: Value, lane: Value, thread: Value) -> None:
        true = f.load(I32, thread, at.INPUT).zext("i64")
        wanted = f.load(I32, thread, at.COUNT).zext("i64")
        f.store(f.load("i64", totals) + 1, totals)
        f.store(f.load("i64", totals, 8) + true, totals, 8)
        f.store(wanted, totals, 16)

    each_waiting(count_it)
    waiting, true, wanted = (f.load("i64", totals, 8 * k) for k in range(3))
    with f.when(waiting.eq(0)):
        f.ret()
        f.at(f.block("unused"))
    everyone = thread_count(f, job)
    wanted = f.select(wanted.eq(0), everyone, wanted)
    arrivals = f.offset(job, id.zext("i64") * 8 + JOB["arrivals"])
    with f.when((waiting + f.load("i64", arrivals)).ne(wanted)):
        f.ret()
        f.at(f.block("unused"))
    f.store(constant("i64", 0), arrivals)

    def let_go(waiting: Value, lane: Value, thread: Value) -> None:
        first = lowest_bit(f, waiting).zext("i64")
        base = f.offset(thread, (first - lane) * at.THREAD_SIZE)
        with f.when(f.load(I32, thread, at.SITE).ne(f.load(I32, base, at.SITE))):
            raise_error(f, thread, at.DIVERGED_BARRIER, first)
        operation = f.load(I32, thread, at.OPERATION)
        every = true.eq(f.load("i64", totals)).zext(I32)
        some = true.ne(0).zext(I32)
        total = true.trunc(I32)
        result = f.select(operation.eq(AND), every, f.select(operation.eq(OR), some, total))
        f.store(result, thread, at.OUTPUT)
        f.store(word(at.READY), thread, at.STATE)
        job_store(f, 1, job, "moved")

    each_waiting(let_go)
    with f.each(warps) as number:
        warp = warp_at(f, job, number)
        stopped = f.load(I32, warp, at.state_mask(at.AT_BARRIER))
        with f.each(at.WARP_SIZE) as lane, f.when(is_set(f, stopped, lane)):
            thread = thread_at(f, job, number, lane)
            with f.when(f.load(I32, thread, at.STATE).eq(at.READY)):
                clear_bits(f, warp, at.AT_BARRIER, bit(lane))
                set_bits(f, warp, at.READY, bit(lane))
    f.ret()
    return f
