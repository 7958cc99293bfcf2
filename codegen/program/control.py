"""Branches and loops of a program, as branches and loops of the entry function."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from ..llvm.builder import NULL, Builder, Value, constant
from ..llvm.modules import Function
from ..llvm.values import COLD
from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.steps import (
    Branch,
    Callback,
    Carry,
    Loop,
    Matmul,
    Moving,
    Program,
    RowBlocks,
    ScalarCode,
    Scan,
    Tiled,
    inner_programs,
    steps_within,
)
from ..module import CALLBACK_ERROR, PYTHON_ERROR
from ..sizes import size_of
from ..target import Target
from .calls import store_words
from .time_tiles import tiled_iterations

if TYPE_CHECKING:
    from .entry import EntryEmitter


@contextmanager
def counted(f: Builder, n: Value | int) -> Iterator[Value]:
    """`with counted(f, n) as i:` emits the body n times over, in a loop over i."""
    head, body, end = f.later("each", i="i64"), f.later("item"), f.later("after")
    f.jump(head, 0)
    (i,) = f.at(head)
    f.branch(i < n, body, end)
    f.at(body)
    yield i
    f.jump(head, f.stepped(i, 1))
    f.at(end)


def branch(e: EntryEmitter, step: Branch) -> None:
    """Emit a `cond`: one of the branches, by the index in memory."""
    f = e.f
    index = f.load("i32", e.pointer(step.index), align=4)
    end = f.later("joined")
    *blocks, last = (f.later("branch") for _ in step.branches)
    # Out of range is clamped, as the op says: below 0 the first branch, above the last.
    index = f.select(index < 0, 0, index)
    f.switch(index, last, dict(enumerate(blocks)))
    for block, program in zip((*blocks, last), step.branches, strict=True):
        f.at(block)
        e.program(program)
        f.jump(end)
    f.at(end)


def loop(e: EntryEmitter, step: Loop) -> None:
    """Emit a `while`: the test's program, then the body's."""
    f = e.f
    homes = _start(e, step.carries)
    head, body, end = f.later("while"), f.later("body"), f.later("done")
    f.jump(head)
    f.at(head)
    e.program(step.test)
    flag = f.load("i8", e.pointer(step.flag), align=1)
    f.branch(flag.ne(0), body, end)
    f.at(body)
    poll(e, _work(step.body) + _work(step.test))
    e.program(step.body)
    _swap(e, step.carries)
    f.jump(head)
    f.at(end)
    _finish(e, step.carries, homes)


def scan(e: EntryEmitter, step: Scan) -> None:
    """Emit a `scan`: the body's program for each slice, by pointers that move."""
    f = e.f
    homes = _start(e, step.carries)
    moving = [*step.xs, *step.ys]
    for part in moving:
        _slot(e, part.slice)
    bases = [e.pointer(part.whole) for part in moving]
    work = _work(step.body)
    if step.tiles is not None:
        with counted(f, -(-step.length // step.tiles.iterations)) as i:
            if step.length * work > POLLED_WORK:
                poll(e, work * step.tiles.iterations)
            trips = tiled_iterations(e, step, i * step.tiles.iterations)
            _swap(e, step.carries, trips.trunc("i1"))
        _finish(e, step.carries, homes)
        return
    size = size_of(step.length)
    length: Value | int = step.length
    if size is not None:
        length = f.load("i64", e.pointer(size.array), align=8)
    with counted(f, length) as i:
        if step.length * work > POLLED_WORK:
            poll(e, work)
        if step.reverse:
            i = length - 1 - i
        for part, base in zip(moving, bases, strict=True):
            f.store(f.offset(base, i * _stride(part)), e.slots[part.slice], align=8)
        e.program(step.body)
        _swap(e, step.carries)
    _finish(e, step.carries, homes)


POLLED_WORK = 1 << 20  # scalar operations between two looks at the clock
POLL_CYCLES = 100_000_000  # clock ticks between two looks for signals: tens of milliseconds


@cache
def _poll() -> Function:
    """Has enough time passed to look for signals, and was there one that raised?"""
    f = Function("i1", "poll", internal=True, attributes=COLD, last_at="ptr")
    go_on, look = f.later("go_on"), f.later("look")
    now = f.call("i64", "llvm.readcyclecounter")
    passed = now - f.load("i64", f.last_at)
    f.branch(passed.ult(POLL_CYCLES), go_on, look)
    f.at(go_on)
    f.ret(constant("i1", False))
    f.at(look)
    f.store(now, f.last_at)
    state = f.call("i32", "PyGILState_Ensure")
    raised = f.call("i32", "PyErr_CheckSignals")
    f.call("void", "PyGILState_Release", state)
    f.ret(raised.ne(0))
    return f


@cache
def _stopped() -> Function:
    """The same for loops inside of kernels, which may run on any thread: only one that Python knows can
    look, and it leaves word for the others in the status block."""
    f = Function(
        *("i1", "stopped"),
        internal=True,
        attributes=COLD,
        status="ptr",
        last_at="ptr",
    )
    own, look, tell, go_on, stop = (f.later(n) for n in ("own", "look", "tell", "go_on", "stop"))
    site_at = f.offset(f.status, 7, "i64")
    site = f.load_volatile("i64", site_at)
    f.branch(site.eq(PYTHON_ERROR), stop, own)
    f.at(own)
    f.branch(f.call("ptr", "PyGILState_GetThisThreadState").eq(NULL), go_on, look)
    f.at(look)
    f.branch(f.run(_poll(), f.last_at), tell, go_on)
    f.at(tell)
    f.store_volatile(constant("i64", PYTHON_ERROR), site_at)
    f.jump(stop)
    f.at(go_on)
    f.ret(constant("i1", False))
    f.at(stop)
    f.ret(constant("i1", True))
    return f


def polling(e: EntryEmitter) -> None:
    """Add what polls to the module."""
    e.add((_poll(),))
    e.imports.update(Target.PYTHON_SYMBOLS)


def polling_kernels(e: EntryEmitter) -> None:
    """Add what loops inside of kernels poll to the module."""
    polling(e)
    e.add((_poll(), _stopped()))


def poll(e: EntryEmitter, work: int) -> None:
    """Once in a while, let Python handle signals: Ctrl-C ends a long loop with KeyboardInterrupt."""
    polling(e)
    f = e.f
    every = max(POLLED_WORK // max(work, 1), 1)
    with f.at_start():
        if e.clock is None:
            e.clock = f.word_at(0)
        countdown = f.word_at(every)
    less = f.load("i64", countdown, align=8) - 1
    f.store(less, countdown, align=8)
    due, on = f.later("due"), f.later("on")
    f.branch(less.eq(0), due, on)
    f.at(due)
    f.store(constant("i64", every), countdown, align=8)
    e.fail_if(f.run(_poll(), e.clock), PYTHON_ERROR)
    f.jump(on)
    f.at(on)


def _work(program: Program) -> int:
    """Scalar operations that one run of a program takes, roughly; loops count once."""
    total = 1
    for step in steps_within(program):
        if isinstance(step, Kernel):
            points = sum(math.prod(s.extents) * (1 + s.cost) for s in step.stages)
            total += 4 + points
        elif isinstance(step, Matmul):
            total += step.batch * step.m * step.n * step.k
        elif isinstance(step, Tiled):
            total += step.flops // 2
        elif isinstance(step, ScalarCode):
            total += step.work
        elif isinstance(step, Scan):
            total += step.length * _work(step.body)
        elif not inner_programs(step) and not isinstance(step, RowBlocks):
            total += 16
    return total


def callback(e: EntryEmitter, step: Callback) -> None:
    """Pointers to operands and results in a block; the runtime's trampoline does the rest."""
    symbol = Target.CALLBACK
    e.imports.add(symbol)
    arrays = [*step.operands, *step.results]
    e.context_words = max(e.context_words, len(arrays))
    store_words(e.f, e.ctx, (e.pointer(array) for array in arrays))
    failed = e.f.call("i32", symbol, step.number, e.ctx)
    e.fail_if(failed.ne(0), CALLBACK_ERROR)


def _stride(part: Moving) -> int:
    """Bytes between slices."""
    whole = part.whole
    return whole.strides[0] * whole.dtype.itemsize


def _slot(e: EntryEmitter, array: Array) -> Value:
    slot = e.slots[array] = e.f.stack("ptr", align=8)
    return slot


def _start(e: EntryEmitter, carries: Sequence[Carry]) -> list[Value]:
    """Copy the initial values to where the results are going to be, and point the slots there."""
    homes = []
    for carry in carries:
        home = e.pointer(carry.result)
        homes.append(home)
        if carry.result.nbytes and carry.init is not carry.result:
            assert carry.init.contiguous, "a loop's initial value is contiguous"
            e.copy(home, e.pointer(carry.init), carry.result.nbytes)
        e.f.store(home, _slot(e, carry.now), align=8)
        if carry.spare is not None:
            spare = e.pointer(carry.spare)
            if carry.both and carry.result.nbytes:
                e.copy(spare, e.pointer(carry.init), carry.result.nbytes)
            e.f.store(spare, _slot(e, carry.next), align=8)
    return homes


def _swap(e: EntryEmitter, carries: Sequence[Carry], where: Value | None = None) -> None:
    """Let the buffers of each carry trade places; with a condition, if it holds."""
    f = e.f
    for carry in carries:
        if carry.spare is not None:
            now, following = e.slots[carry.now], e.slots[carry.next]
            old, new = f.load("ptr", now, align=8), f.load("ptr", following, align=8)
            if where is not None:
                old, new = f.select(where, old, new), f.select(where, new, old)
            f.store(new, now, align=8)
            f.store(old, following, align=8)


def _finish(e: EntryEmitter, carries: Sequence[Carry], homes: Sequence[Value]) -> None:
    """Copy the final values to where the results are, if they are not there."""
    f = e.f
    for carry, home in zip(carries, homes, strict=True):
        if carry.spare is None or not carry.result.nbytes:
            continue
        away, there = f.later("away"), f.later("home")
        here = f.load("ptr", e.slots[carry.now], align=8)
        f.branch(here.eq(home), there, away)
        f.at(away)
        e.copy(home, here, carry.result.nbytes)
        f.jump(there)
        f.at(there)
