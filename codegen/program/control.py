"""Branches and loops of a program, as branches and loops of the entry function."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from ..llvm.builder import NULL, constant
from ..llvm.modules import Function
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
from ..target import Target
from .time_tiles import tiled_iterations

if TYPE_CHECKING:
    from .entry import EntryEmitter


@contextmanager
def counted(e: EntryEmitter, n: int) -> Iterator[str]:
    """`with counted(e, n) as i:` emits the body n times over, in a loop over i."""
    head, body, end = e.label("each"), e.label("item"), e.label("after")
    i, before = f"%i{next(e.names)}", e.block
    e.line(f"br label %{head}")
    e.start(head)
    phi = len(e.lines)
    e.line(f"{i}c = icmp slt i64 {i}, {n}")
    e.line(f"br i1 {i}c, label %{body}, label %{end}")
    e.start(body)
    yield i
    e.line(f"{i}n = add nsw i64 {i}, 1")
    e.line(f"br label %{head}")
    e.lines.insert(phi, f"  {i} = phi i64 [ 0, %{before} ], [ {i}n, %{e.block} ]")
    e.start(end)


def branch(e: EntryEmitter, step: Branch) -> None:
    """Emit a `cond`: one of the branches, by the index in memory."""
    index = e.op(f"load i32, ptr {e.pointer(step.index)}, align 4")
    end = e.label("joined")
    labels = [e.label("branch") for _ in step.branches]
    # Out of range is clamped, as the op says: below 0 the first branch, above the last.
    low = e.op(f"icmp slt i32 {index}, 0")
    index = e.op(f"select i1 {low}, i32 0, i32 {index}")
    cases = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(labels[:-1]))
    e.line(f"switch i32 {index}, label %{labels[-1]} [ {cases} ]")
    for label, program in zip(labels, step.branches, strict=True):
        e.start(label)
        e.program(program)
        e.line(f"br label %{end}")
    e.start(end)


def loop(e: EntryEmitter, step: Loop) -> None:
    """Emit a `while`: the test's program, then the body's."""
    homes = _start(e, step.carries)
    head, body, end = e.label("while"), e.label("body"), e.label("done")
    e.line(f"br label %{head}")
    e.start(head)
    e.program(step.test)
    flag = e.op(f"load i8, ptr {e.pointer(step.flag)}, align 1")
    going = e.op(f"icmp ne i8 {flag}, 0")
    e.line(f"br i1 {going}, label %{body}, label %{end}")
    e.start(body)
    poll(e, _work(step.body) + _work(step.test))
    e.program(step.body)
    _swap(e, step.carries)
    e.line(f"br label %{head}")
    e.start(end)
    _finish(e, step.carries, homes)


def scan(e: EntryEmitter, step: Scan) -> None:
    """Emit a `scan`: the body's program for each slice, by pointers that move."""
    homes = _start(e, step.carries)
    moving = [*step.xs, *step.ys]
    for part in moving:
        _slot(e, part.slice)
    bases = [e.pointer(part.whole) for part in moving]
    work = _work(step.body)
    if step.tiles is not None:
        with counted(e, -(-step.length // step.tiles.iterations)) as i:
            if step.length * work > POLLED_WORK:
                poll(e, work * step.tiles.iterations)
            trips = tiled_iterations(e, step, e.op(f"mul i64 {i}, {step.tiles.iterations}"))
            _swap(e, step.carries, e.op(f"trunc i64 {trips} to i1"))
        _finish(e, step.carries, homes)
        return
    with counted(e, step.length) as i:
        if step.length * work > POLLED_WORK:
            poll(e, work)
        if step.reverse:
            i = e.op(f"sub i64 {step.length - 1}, {i}")
        for part, base in zip(moving, bases, strict=True):
            offset = e.op(f"mul i64 {i}, {_stride(part)}")
            at = e.op(f"getelementptr i8, ptr {base}, i64 {offset}")
            e.line(f"store ptr {at}, ptr {e.slots[part.slice]}, align 8")
        e.program(step.body)
        _swap(e, step.carries)
    _finish(e, step.carries, homes)


POLLED_WORK = 1 << 20  # scalar operations between two looks at the clock
POLL_CYCLES = 100_000_000  # clock ticks between two looks for signals: tens of milliseconds


@cache
def _poll() -> Function:
    """Has enough time passed to look for signals, and was there one that raised?"""
    f = Function("i1", "poll", internal=True, attributes="noinline nounwind", last_at="ptr")
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
        attributes="noinline nounwind",
        status="ptr",
        last_at="ptr",
    )
    own, look, tell, go_on, stop = (f.later(n) for n in ("own", "look", "tell", "go_on", "stop"))
    site_at = f.offset(f.status, 7, "i64")
    site = f.fresh("i64", f"load volatile i64, {site_at!r}, align 8")
    f.branch(site.eq(PYTHON_ERROR), stop, own)
    f.at(own)
    f.branch(f.call("ptr", "PyGILState_GetThisThreadState").eq(NULL), go_on, look)
    f.at(look)
    f.branch(f.run(_poll(), f.last_at), tell, go_on)
    f.at(tell)
    f.line(f"store volatile i64 {PYTHON_ERROR}, {site_at!r}, align 8")
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
    clock = "%poll_clock"
    if f"  {clock} = alloca i64, align 8" not in e.allocas:
        e.allocas.append(f"  {clock} = alloca i64, align 8")
        e.allocas.append(f"  store i64 0, ptr {clock}, align 8")
    every = max(POLLED_WORK // max(work, 1), 1)
    countdown = f"%left{next(e.names)}"
    e.allocas.append(f"  {countdown} = alloca i64, align 8")
    e.allocas.append(f"  store i64 {every}, ptr {countdown}, align 8")
    left = e.op(f"load i64, ptr {countdown}, align 8")
    less = e.op(f"sub i64 {left}, 1")
    e.line(f"store i64 {less}, ptr {countdown}, align 8")
    due, on = e.label("due"), e.label("on")
    e.line(f"br i1 {e.op(f'icmp eq i64 {less}, 0')}, label %{due}, label %{on}")
    e.start(due)
    e.line(f"store i64 {every}, ptr {countdown}, align 8")
    e.fail_if(e.op(f"call i1 @poll(ptr {clock})"), str(PYTHON_ERROR))
    e.line(f"br label %{on}")
    e.start(on)


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
    e.declarations.add(f"declare i32 @{symbol}(i64, ptr)")
    arrays = [*step.operands, *step.results]
    e.context_words = max(e.context_words, len(arrays))
    for position, array in enumerate(arrays):
        place = e.op(f"getelementptr ptr, ptr %ctx, i64 {position}")
        e.line(f"store ptr {e.pointer(array)}, ptr {place}, align 8")
    failed = e.op(f"call i32 @{symbol}(i64 {step.number}, ptr %ctx)")
    e.fail_if(e.op(f"icmp ne i32 {failed}, 0"), str(CALLBACK_ERROR))


def _stride(part: Moving) -> int:
    """Bytes between slices."""
    whole = part.whole
    return whole.strides[0] * whole.dtype.itemsize


def _slot(e: EntryEmitter, array: Array) -> str:
    slot = e.slots[array] = f"%slot{next(e.names)}"
    e.allocas.append(f"  {slot} = alloca ptr, align 8")
    return slot


def _start(e: EntryEmitter, carries: Sequence[Carry]) -> list[str]:
    """Copy the initial values to where the results are going to be, and point the slots there."""
    homes = []
    for carry in carries:
        home = e.pointer(carry.result)
        homes.append(home)
        if carry.result.nbytes and carry.init is not carry.result:
            assert carry.init.contiguous, "a loop's initial value is contiguous"
            e.copy(home, e.pointer(carry.init), carry.result.nbytes)
        e.line(f"store ptr {home}, ptr {_slot(e, carry.now)}, align 8")
        if carry.spare is not None:
            spare = e.pointer(carry.spare)
            if carry.both and carry.result.nbytes:
                e.copy(spare, e.pointer(carry.init), carry.result.nbytes)
            e.line(f"store ptr {spare}, ptr {_slot(e, carry.next)}, align 8")
    return homes


def _swap(e: EntryEmitter, carries: Sequence[Carry], where: str = "true") -> None:
    """Let the buffers of each carry trade places, if `where`."""
    for carry in carries:
        if carry.spare is not None:
            now, following = e.slots[carry.now], e.slots[carry.next]
            old = e.op(f"load ptr, ptr {now}, align 8")
            new = e.op(f"load ptr, ptr {following}, align 8")
            if where != "true":
                old, new = (
                    e.op(f"select i1 {where}, ptr {a}, ptr {b}")
                    for a, b in ((old, new), (new, old))
                )
            e.line(f"store ptr {new}, ptr {now}, align 8")
            e.line(f"store ptr {old}, ptr {following}, align 8")


def _finish(e: EntryEmitter, carries: Sequence[Carry], homes: Sequence[str]) -> None:
    """Copy the final values to where the results are, if they are not there."""
    for carry, home in zip(carries, homes, strict=True):
        if carry.spare is None or not carry.result.nbytes:
            continue
        away, there = e.label("away"), e.label("home")
        here = e.op(f"load ptr, ptr {e.slots[carry.now]}, align 8")
        same = e.op(f"icmp eq ptr {here}, {home}")
        e.line(f"br i1 {same}, label %{there}, label %{away}")
        e.start(away)
        e.copy(home, here, carry.result.nbytes)
        e.line(f"br label %{there}")
        e.start(there)
