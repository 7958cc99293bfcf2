"""The scheduler, as emitted code: all blocks of a grid, one after the other, their warps in turns.

A *step* runs the ready lanes of one warp, each until it waits for others. Which warp comes next, and in
which order its lanes run, is the launch's order: positions 0..31 stand for warps and lanes
`(multiplier * position + increment) mod 32`, drawn anew for each step where the order is random. A
greedy launch stays with a warp until the whole of it waits, which is the most unfair that a GPU may
be: whatever the other warps should have written by then is missing.

When no warp is ready, threads that spin get another try, or a barrier is complete, or there is an error.
"""

from __future__ import annotations

from ....codegen.llvm.builder import NULL, Block, Value, constant
from ....codegen.llvm.modules import Function
from . import layout as at
from .access import (
    I32,
    bit,
    clear_bits,
    index_of,
    is_set,
    job_load,
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
from .barriers import at_barrier, at_operation, at_shuffle, barrier, spins
from .layout import JOB
from .races import RECORD_BYTES
from .warpgroups import GROUPS, STEP_BYTES, STEPS, THREAD_BYTES
from .warps import WARP_SYNC


def fail() -> Function:
    """`fail(thread, kind, detail)`: note the first error of a launch."""
    f = Function("void", "emu_fail", thread="ptr", kind="i64", detail="i64")
    thread, kind, detail = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    with f.when(job_load(f, job, "error").eq(0)):
        job_store(f, kind, job, "error")
        job_store(f, detail, job, "detail")
        for name, where in (("thread", at.LINEAR), ("site", at.SITE)):
            job_store(f, f.load(I32, thread, where).zext("i64"), job, name)
        for axis, name in enumerate("xyz"):
            block = f.load(I32, thread, at.CTAID + 4 * axis)
            job_store(f, block.zext("i64"), job, f"ctaid_{name}")
    f.ret()
    return f


def draw() -> Function:
    """`draw(job)`: another order of positions, where the order is random."""
    f = Function("void", "emu_draw", internal=True, job="ptr")
    (job,) = f.args
    with f.when(job_load(f, job, "random").ne(0)):
        state = job_load(f, job, "state")
        for how, bits in (("shl", 13), ("lshr", 7), ("shl", 17)):
            state = state ^ f.binary(how, state, bits)
        job_store(f, state, job, "state")
        high = state >> 33
        job_store(f, high & 31 | 1, job, "multiplier")
        higher = state >> 47
        job_store(f, higher & 31, job, "increment")
    f.ret()
    return f


def pick() -> Function:
    """`pick(job)`: the warp that comes next, -1 if none is ready."""
    f = Function("i64", "emu_pick", internal=True, job="ptr")
    (job,) = f.args
    warps = warp_count(f, job)
    with f.when(job_load(f, job, "greedy").ne(0)):
        last = job_load(f, job, "current")
        ready = f.load(I32, warp_at(f, job, last), at.state_mask(at.READY))
        with f.when(ready.ne(0)):
            f.ret(last)
            f.at(f.block("unused"))
    position = job_load(f, job, "position") + 1
    with f.each(at.WARP_SIZE) as k:
        here = position + k & at.WARP_SIZE - 1
        warp = index_of(f, here, job)
        with f.when(warp < warps):
            ready = f.load(I32, warp_at(f, job, warp), at.state_mask(at.READY))
            with f.when(ready.ne(0)):
                job_store(f, here, job, "position")
                job_store(f, warp, job, "current")
                f.ret(warp)
                f.at(f.block("unused"))
    f.ret(constant("i64", -1))
    return f


def step() -> Function:
    """`step(job, warp)`: run the ready lanes of a warp, each until it waits."""
    f = Function("void", "emu_step", internal=True, job="ptr", number="i64")
    job, number = f.args
    warp = warp_at(f, job, number)
    ready = f.load(I32, warp, at.state_mask(at.READY))
    f.store(word(0), warp, at.state_mask(at.READY))
    failed = f.block("failed")
    with f.each(at.WARP_SIZE) as k:
        lane = index_of(f, k, job)
        with f.when(is_set(f, ready, lane)):
            thread = thread_at(f, job, number, lane)
            f.store(word(at.READY), thread, at.STATE)
            _run_thread(f, job, thread)
            f.require(job_load(f, job, "error").eq(0), failed)
            state = f.load(I32, thread, at.STATE)
            set_bits(f, warp, state.zext("i64"), bit(lane))
            with f.when(state.ne(at.SPINNING)):
                job_store(f, 0, job, "idle")
    job_store(f, job_load(f, job, "steps") + 1, job, "steps")
    f.call("void", "emu_resolve", job, number)
    f.ret()
    f.at(failed)
    f.ret()
    return f


def _run_thread(f: Function, job: Value, thread: Value) -> None:
    """Start a thread, or let it go on: a coroutine's first word is where it goes on."""
    start, go_on, end = f.block("start"), f.block("go_on"), f.block("ran")
    handle = f.load("ptr", thread, at.HANDLE)
    f.branch(handle.eq(NULL), start, go_on, likely=True)
    f.at(start)
    f.call("void", f.load("ptr", job, JOB["entry"]), thread, f.load("ptr", job, JOB["args"]))
    f.jump(end)
    f.at(go_on)
    resume = f.load("ptr", handle)
    f.resume(resume, handle)
    f.jump(end)
    f.at(end)


def resolve() -> Function:
    """`resolve(job, warp)`: groups of lanes that have all come to one operation do it and go on."""
    f = Function("void", "emu_resolve", internal=True, job="ptr", number="i64")
    job, number = f.args
    warp = warp_at(f, job, number)
    base = thread_at(f, job, number, f.literal("i64", 0))
    existing = f.load(I32, warp, at.EXISTING)
    came = f.alloca(I32)
    loop, look, done = f.block("groups", left=I32), f.block("look"), f.block("done")
    f.jump(loop, f.load(I32, warp, at.state_mask(at.AT_OPERATION)))
    (left,) = f.at(loop)
    f.branch(left.ne(0), look, done, likely=True)
    f.at(look)
    lane = lowest_bit(f, left)
    thread = f.offset(base, lane.zext("i64") * at.THREAD_SIZE)
    group = f.load(I32, thread, at.MASK) & existing
    stranger = f.block("stranger")
    f.require(is_set(f, group, lane), stranger)
    waiting = f.load(I32, warp, at.state_mask(at.AT_OPERATION))
    f.store(waiting & group, came)
    with f.each(at.WARP_SIZE) as k, f.when(is_set(f, f.load(I32, came), k)):
        other = f.offset(base, k * at.THREAD_SIZE)
        with f.when(f.load(I32, other, at.MASK).ne(f.load(I32, thread, at.MASK))):
            # It is in another group first.
            f.store(f.load(I32, came) & (bit(k) ^ -1), came)
    complete, incomplete = f.block("complete"), f.block("incomplete")
    f.branch(f.load(I32, came).eq(group), complete, incomplete, likely=True)
    f.at(incomplete)
    f.jump(loop, left & (bit(lane) ^ -1))
    f.at(complete)
    with f.each(at.WARP_SIZE) as k, f.when(is_set(f, group, k)):
        other = f.offset(base, k * at.THREAD_SIZE)
        with f.when(f.load(I32, other, at.SITE).ne(f.load(I32, thread, at.SITE))):
            raise_error(f, other, at.DIVERGED_OPERATION, lane.zext("i64"))
            f.ret()
            f.at(f.block("unused"))
    f.call("void", "emu_warp_operation", base, f.load(I32, thread, at.OPERATION), group)
    with f.when(f.load(I32, thread, at.OPERATION).eq(WARP_SYNC)):
        f.store(f.load(I32, warp, at.SYNCED) + 1, warp, at.SYNCED)
    clear_bits(f, warp, at.AT_OPERATION, group)
    set_bits(f, warp, at.READY, group)
    f.jump(loop, left & (group ^ -1))
    f.at(stranger)
    raise_error(f, thread, at.NOT_IN_MASK)
    f.ret()
    f.at(done)
    f.ret()
    return f


def release() -> Function:
    """`release(job)`, when no warp is ready: 1 if some are now, 0 if all threads have exited.

    A failed launch also gives 0.
    """
    f = Function("i64", "emu_release", internal=True, job="ptr")
    (job,) = f.args
    warps = warp_count(f, job)
    done = f.block("done")
    job_store(f, 0, job, "moved")
    f.call("void", "emu_answer_waits", job, constant("i1", False))
    f.call("void", "emu_boxes_are_left", job)
    under_way = job_load(f, job, "box_count").ne(0)
    still = job_load(f, job, "moved").eq(0)
    with f.when(under_way & still):  # copies are later than all that needs none
        _try_barriers(f, job, done)
        with f.when(job_load(f, job, "moved").eq(0)):
            f.call("void", "emu_box_arrives", job)
            f.call("void", "emu_answer_waits", job, constant("i1", True))
            job_store(f, 1, job, "moved")
            job_store(f, 0, job, "idle")
    f.require(job_load(f, job, "error").eq(0), done)
    with f.when(job_load(f, job, "moved").ne(0)):
        f.ret(constant("i64", 1))
        f.at(f.block("unused"))
    with f.each(warps) as number:  # those that spin try again
        warp = warp_at(f, job, number)
        spinning = f.load(I32, warp, at.state_mask(at.SPINNING))
        with f.when(spinning.ne(0)):
            f.store(word(0), warp, at.state_mask(at.SPINNING))
            set_bits(f, warp, at.READY, spinning)
            job_store(f, number + 1, job, "moved")
    moved = job_load(f, job, "moved")
    with f.when(moved.ne(0)):
        idle = job_load(f, job, "idle") + 1
        job_store(f, idle, job, "idle")
        with f.when(idle.eq(at.IDLE_LIMIT)):
            last = moved - 1
            ready = f.load(I32, warp_at(f, job, last), at.state_mask(at.READY))
            lane = lowest_bit(f, ready).zext("i64")
            raise_error(f, thread_at(f, job, last, lane), at.LIVELOCK)
            f.ret(constant("i64", 0))
            f.at(f.block("unused"))
        f.ret(constant("i64", 1))
        f.at(f.block("unused"))
    with f.each(warps) as number:  # a warp that still waits for its own lanes waits for ever
        warp = warp_at(f, job, number)
        waiting = f.load(I32, warp, at.state_mask(at.AT_OPERATION))
        with f.when(waiting.ne(0)):
            lane = lowest_bit(f, waiting).zext("i64")
            elsewhere = f.load(I32, warp, at.EXISTING) ^ waiting
            detail = elsewhere.zext("i64")
            raise_error(f, thread_at(f, job, number, lane), at.MISSING_LANES, detail)
            f.jump(done)
            f.at(f.block("unused"))
    _try_barriers(f, job, done)
    with f.when(job_load(f, job, "moved").ne(0)):
        f.ret(constant("i64", 1))
        f.at(f.block("unused"))
    with f.each(warps) as number:  # whoever is still at a barrier
        warp = warp_at(f, job, number)
        waiting = f.load(I32, warp, at.state_mask(at.AT_BARRIER))
        with f.when(waiting.ne(0)):
            lane = lowest_bit(f, waiting).zext("i64")
            raise_error(f, thread_at(f, job, number, lane), at.MISSING_THREADS)
            f.jump(done)
            f.at(f.block("unused"))
        waiting = f.load(I32, warp, at.state_mask(at.AT_PHASE))
        with f.when(waiting.ne(0)):
            lane = lowest_bit(f, waiting).zext("i64")
            _raise_missing(f, thread_at(f, job, number, lane))
            f.jump(done)
            f.at(f.block("unused"))
    with f.when(f.load("ptr", job, JOB["group_steps"]).ne(NULL)):
        f.call("void", "emu_steps_are_left", job)
    f.jump(done)
    f.at(done)
    f.ret(constant("i64", 0))
    return f


def _try_barriers(f: Function, job: Value, failed: Block) -> None:
    """Let the threads at complete barriers go on; `moved` says whether there were some."""
    with f.each(at.BARRIERS) as barrier:
        f.call("void", "emu_barrier", job, barrier.trunc(I32))
        f.require(job_load(f, job, "error").eq(0), failed)
    with f.when(job_load(f, job, "moved").ne(0)):
        job_store(f, job_load(f, job, "epoch") + 1, job, "epoch")


def _raise_missing(f: Function, thread: Value) -> None:
    """What a thread waits for does not come; the error says what the mbarrier's word is."""
    barrier = f.load("ptr", thread, at.PHASE_BARRIER)
    look, complain = f.block("look"), f.block("complain", state="i64")
    none = f.block("none")
    f.branch(barrier.ne(NULL), look, none, likely=True)
    f.at(look)
    f.jump(complain, f.load("i64", barrier))
    f.at(none)
    f.jump(complain, 0)
    (state,) = f.at(complain)
    raise_error(f, thread, at.MISSING_ARRIVALS, state)


def prepare_block() -> Function:
    """`prepare_block(job, x, y, z)`: threads and warps of a block at their start, poison in `window`."""
    f = Function("void", "emu_prepare_block", internal=True, job="ptr", x="i64", y="i64", z="i64")
    job, *block = f.args
    fill = job_load(f, job, "fill").trunc("i8")
    window, used = f.load("ptr", job, JOB["window"]), job_load(f, job, "window_used")
    f.fill(window, fill, used)
    records = f.load("ptr", job, JOB["records"])
    with f.when(records.ne(NULL)):
        nbytes = used * RECORD_BYTES
        f.fill(records, 0, nbytes)
    n = thread_count(f, job)
    sizes = [job_load(f, job, f"block_{axis}") for axis in "xyz"]
    grid = [job_load(f, job, f"grid_{axis}") for axis in "xyz"]
    with f.each(n) as linear:
        thread = f.offset(f.load("ptr", job, JOB["threads"]), linear * at.THREAD_SIZE)
        row = linear // sizes[0]
        tid = [
            linear % sizes[0],
            row % sizes[1],
            row // sizes[1],
        ]
        for first, values in (
            (at.TID, tid),
            (at.CTAID, block),
            (at.NTID, sizes),
            (at.NCTAID, grid),
        ):
            for axis, value in enumerate(values):
                f.store(value.trunc(I32), thread, first + 4 * axis)
        lane, number = linear % at.WARP_SIZE, linear // at.WARP_SIZE
        for where, value in ((at.LANE, lane), (at.WARP, number), (at.LINEAR, linear)):
            f.store(value.trunc(I32), thread, where)
        f.store(job, thread, at.THREAD_JOB)
        f.store(NULL, thread, at.HANDLE)
        counts = (at.SITE, at.QUEUE_HEAD, at.QUEUE_TAIL, at.QUEUE_GROUPS)
        for where in (*counts, *range(at.UNFENCED, at.PRODUCT_GROUPS + 4, 4)):
            f.store(word(0), thread, where)
        limit = job_load(f, job, "registers").trunc(I32)
        f.store(limit, thread, at.REGISTERS)
    with f.each(warp_count(f, job)) as number:
        warp = warp_at(f, job, number)
        rest = n - number * at.WARP_SIZE
        some = 1 << (rest & 63)
        lanes = f.select(rest < at.WARP_SIZE, some - 1, constant("i64", 2**32 - 1))
        for state in range(at.STATES):
            f.store(word(0), warp, at.state_mask(state))
        f.store(lanes.trunc(I32), warp, at.EXISTING)
        f.store(word(0), warp, at.SYNCED)
        f.store(lanes.trunc(I32), warp, at.state_mask(at.READY))
    zeros = ("idle", "current", "epoch", "box_count", "unfenced", "pool")
    for name, at_start in (*dict.fromkeys(zeros, 0).items(), ("position", -1)):
        job_store(f, at_start, job, name)
    steps = constant("i64", GROUPS * STEPS * STEP_BYTES)
    for name, nbytes in (("sums", n * THREAD_BYTES), ("group_steps", steps)):
        room = f.load("ptr", job, JOB[name])
        with f.when(room.ne(NULL)):
            f.fill(room, 0, nbytes)
    with f.each(at.BARRIERS) as k:
        f.store(constant("i64", 0), job, k * 8 + JOB["arrivals"])
    f.ret()
    return f


def run_block() -> Function:
    """`run_block(job)`: until all threads have exited, or the launch has failed."""
    f = Function("void", "emu_run_block", internal=True, job="ptr")
    (job,) = f.args
    loop, stuck, done = f.block("loop"), f.block("stuck"), f.block("done")
    f.jump(loop)
    f.at(loop)
    f.require(job_load(f, job, "error").eq(0), done)
    f.call("void", "emu_draw", job)
    warp = f.call("i64", "emu_pick", job)
    run = f.block("run")
    f.branch(warp < 0, stuck, run)
    f.at(run)
    f.call("void", "emu_step", job, warp)
    f.jump(loop)
    f.at(stuck)
    f.branch(f.call("i64", "emu_release", job).ne(0), loop, done, likely=True)
    f.at(done)
    f.ret()
    return f


def run() -> Function:
    """`run(job)`: a whole launch; what went wrong is in the job."""
    f = Function("void", "emu_run", job="ptr")
    (job,) = f.args
    x, y, z = (job_load(f, job, f"grid_{axis}") for axis in "xyz")
    blocks = x * y * z
    failed = f.block("failed")
    with f.each(blocks) as k:
        moved = job_load(f, job, "stride") * k + job_load(f, job, "start")
        linear = moved % blocks
        row = linear // x
        f.call(
            "void",
            "emu_prepare_block",
            job,
            linear % x,
            row % y,
            row // y,
        )
        f.call("void", "emu_run_block", job)
        f.require(job_load(f, job, "error").eq(0), failed)
    f.ret()
    f.at(failed)
    f.ret()
    return f


def frame() -> Function:
    """`frame(thread, nbytes)`: memory for what a thread holds while it waits, kept for later blocks."""
    f = Function("ptr", "emu_frame", thread="ptr", nbytes="i64")
    thread, nbytes = f.args
    enough, grow = f.block("enough"), f.block("grow")
    f.branch(f.load("i64", thread, at.FRAME_SIZE) < nbytes, grow, enough)
    f.at(enough)
    f.ret(f.load("ptr", thread, at.FRAME))
    f.at(grow)
    f.call("void", "free", f.load("ptr", thread, at.FRAME))
    size = nbytes + 63 & -64
    block = f.call("ptr", "aligned_alloc", constant("i64", 64), size)
    f.store(block, thread, at.FRAME)
    f.store(size, thread, at.FRAME_SIZE)
    f.ret(block)
    return f


SCHEDULER = (
    *(fail, draw, pick, step, resolve, release, prepare_block, run_block, run, frame),
    *(at_barrier, at_operation, at_shuffle, spins, barrier),
)
