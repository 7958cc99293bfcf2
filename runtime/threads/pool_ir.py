"""The LLVM code of the thread pool: `jitney_parallel_for` and its workers.

The protocol. One 32-bit word says it all: generation(16) | open(1) | active(15). The caller
owns `busy`, writes the job, opens a new generation, works too, closes it and waits until
`active` is zero. A worker joins by compare-and-swap from a state that is open, so it never sees
half a job, and the caller waits only for workers that joined, never for one that still sleeps.
A job's chunks lie in ranges, one for each thread that may come, and a thread takes those of its own
range one after the other before it helps out in another: memory is read in order, and what a thread
has worked on in one job is near it in the next.
Workers spin a little after a job, then sleep on the word (futex); `sleepers` is raised before
the kernel compares the word, and read after the word is written, both sequentially consistent,
so no wake-up is lost.

Workers block all signals but those of their own faults, and are detached. Where there is no futex
(not Linux on x86-64 or AArch64) `jitney_parallel_for` runs everything inline.
"""

from __future__ import annotations

from ...codegen.llvm.builder import NULL, Value, constant
from ...codegen.llvm.modules import Function, Variable, module_ir
from ...codegen.target import Target
from .events import EVENT_BYTES, HEAD_BYTES, POOL
from .futex import FUTEX_CALL, supported

RANGES = 16  # at most; with more threads several share one
SPINS = 2000  # pauses before a worker sleeps: about 0.1 ms

_WAIT, _WAKE = constant("i32", 128), constant("i32", 129)  # FUTEX_PRIVATE
_PAUSE: dict[str, tuple[str, list[Value]]] = {
    "x86_64": ("llvm.x86.sse2.pause", []),
    "aarch64": ("llvm.aarch64.hint", [constant("i32", 1)]),
}
# Signals that a fault raises on the thread itself must stay deliverable: ILL, BUS, FPE, SEGV, TRAP.
_FAULTS = (4, 7, 8, 11, 5)
_SET_MASK = constant("i32", 2)  # SIG_SETMASK
_MASK_WORDS = 16

_STATE = Variable("state", "i32", align=64)
_GENERATION, _OPEN, _ACTIVE = 1 << 16, 1 << 15, (1 << 15) - 1  # its parts
_SLEEPERS = Variable("sleepers", "i32", align=64)
_LINE = 64  # bytes between two words that different threads write
# In each range the first chunk that nobody has claimed.
_NEXT = Variable("next", f"[{RANGES * _LINE} x i8]", align=_LINE)
_BUSY = Variable("busy", "i32", align=64)
_JOB = (
    Variable("job_fn", "ptr", align=64),
    Variable("job_ctx", "ptr"),
    Variable("job_n", "i64"),
    Variable("job_grain", "i64"),
    Variable("job_chunks", "i64"),
    Variable("job_ranges", "i64"),
)
# Workers that may join, the caller not counted; threads that exist.
_LIMIT = Variable("limit", "i32", internal=False, align=64)
_STARTED = Variable("started", "i32", internal=False)
# Jobs that ran on the pool, workers that took part in them, jobs that found the pool busy.
_FORKS, _JOINS, _INLINES = (
    Variable(name, "i64", internal=False) for name in ("forks", "joins", "inlines")
)
# Where events go (`events`), null if they are not recorded.
_RECORDER = Variable("recorder", "ptr", internal=False)
_THREAD_NAME = Variable("thread_name", "[7 x i8]", content='c"jitney\\00"')
_VARIABLES = (_STATE, _SLEEPERS, _NEXT, _BUSY, *_JOB, _LIMIT, _STARTED, _FORKS, _JOINS, _INLINES)

_ONE, _ONE_WIDE = constant("i32", 1), constant("i64", 1)


def _futex(f: Function, machine: str, how: Value, number: Value) -> None:
    state = _STATE.address
    f.call_variadic(
        "i64", "syscall", FUTEX_CALL[machine], state, how, number, NULL, NULL, constant("i32", 0)
    )


def _pause(f: Function, machine: str) -> None:
    name, arguments = _PAUSE[machine]
    f.call("void", name, *arguments)


def _claim_chunks() -> Function:
    """Do what is left of a range, then of the one after it, and so on, round to the first again."""
    f = Function("void", "claim_chunks", internal=True, first="i64")
    fn, ctx, n, grain, chunks, ranges = (f.load(part.type, part.address) for part in _JOB)
    visit = f.later("visit", visited="i64")
    claim, take, run, turn, out = (
        f.later(hint) for hint in ("claim", "take", "run", "turn", "out")
    )
    f.jump(visit, 0)
    (visited,) = f.at(visit)
    k = (f.first + visited) % ranges
    following, end = _next(f, k), _first_chunk(f, k + 1, chunks, ranges)
    f.jump(claim)
    f.at(claim)  # looked at first: others' lines stay where they are once nothing is left
    f.branch(f.load_atomic("i64", following, "monotonic") < end, take, turn)
    f.at(take)
    chunk = f.update_atomic("add", following, _ONE_WIDE, "monotonic")
    f.branch(chunk < end, run, turn)
    f.at(run)
    lo = chunk * grain
    f.call("void", fn, ctx, lo, f.least(lo + grain, n))
    f.jump(claim)
    f.at(turn)
    visited = visited + 1
    f.fork(visited < ranges, visit, [visited], out)
    f.at(out)
    f.ret()
    return f


def _next(f: Function, k: Value) -> Value:
    return f.offset(_NEXT.address, k * _LINE)


def _first_chunk(f: Function, k: Value, chunks: Value, ranges: Value) -> Value:
    return k * chunks // ranges


def _record() -> Function:
    """Write an event, if events are recorded and there is room for it."""
    f = Function("void", Target.RECORD, program="i64", slot="i64", begin="i64", end="i64")
    recorder = f.load("ptr", _RECORDER.address)
    with f.when(recorder.ne(NULL)):
        at = f.update_atomic("add", recorder, _ONE_WIDE, "monotonic")
        with f.when(at < f.load("i64", recorder, 8)):
            event = f.offset(f.offset(recorder, HEAD_BYTES), at * EVENT_BYTES)
            thread = f.call("i64", "pthread_self")
            for k, word in enumerate((f.program, f.slot, thread, f.begin, f.end)):
                f.store(word, event, 8 * k)
    f.ret()
    return f


def _clock() -> Function:
    f = Function("i64", "clock")
    f.ret(f.call("i64", "llvm.readcyclecounter"))
    return f


def _worker(machine: str, claim_chunks: Function, record: Function) -> Function:
    """A worker for life. It must not answer the generation that is there when it is made."""
    f = Function("ptr", "worker", internal=True, first="ptr")
    idle, look, attempt = (
        f.later("idle", seen="i32"),
        f.later("look", spins="i32"),
        f.later("attempt", state="i32"),
    )
    nothing, pause, sleep, join, work = (
        f.later(hint) for hint in ("nothing", "pause", "sleep", "join", "work")
    )
    f.jump(idle, f.first.to("ptrtoint", "i64").trunc("i32"))
    (seen,) = f.at(idle)
    f.jump(look, 0)

    (spins,) = f.at(look)
    now = f.load_atomic("i32", _STATE.address, "acquire")
    f.fork((now >> 16).ne(seen), attempt, [now], nothing)
    f.at(nothing)
    spins = spins + 1
    f.branch(spins < SPINS, pause, sleep)
    f.at(pause)
    _pause(f, machine)
    f.jump(look, spins)
    f.at(sleep)
    f.update_atomic("add", _SLEEPERS.address, _ONE, "seq_cst")
    _futex(f, machine, _WAIT, now)  # returns at once if the word is no longer `now`
    f.update_atomic("sub", _SLEEPERS.address, _ONE, "seq_cst")
    f.jump(look, 0)

    (state,) = f.at(attempt)
    generation = state >> 16
    is_open = (state & _OPEN).ne(0)
    active = state & _ACTIVE
    has_room = active < f.load_atomic("i32", _LIMIT.address, "monotonic")
    f.fork(is_open & has_room, join, (), idle, [generation])
    f.at(join)
    fresh, joined = f.swap_atomic(_STATE.address, state, state + 1, "acq_rel acquire")
    f.fork(joined, work, (), attempt, [fresh])
    f.at(work)
    f.update_atomic("add", _JOINS.address, _ONE_WIDE, "monotonic")
    begin = f.call("i64", "llvm.readcyclecounter")
    f.run(claim_chunks, active.zext("i64") + 1)
    f.run(record, POOL, 0, begin, f.call("i64", "llvm.readcyclecounter"))
    f.update_atomic("sub", _STATE.address, _ONE, "release")
    f.jump(idle, generation)
    return f


def _start(worker: Function) -> Function:
    """Start threads until as many exist as are wanted. Only the owner of `busy` calls this."""
    f = Function("void", "start", internal=True, wanted="i32")
    thread = f.alloca("i64", align=8)
    blocked, saved = (f.alloca(f"[{_MASK_WORDS} x i64]", align=8) for _ in range(2))
    faults = sum(1 << (signal - 1) for signal in _FAULTS)
    for k in range(_MASK_WORDS):
        f.store(constant("i64", -1 if k else ~faults), blocked, k, "i64")
    f.call("i32", "pthread_sigmask", _SET_MASK, blocked, saved)
    more, create, created, refused, out = (
        f.later(hint) for hint in ("more", "create", "created", "refused", "out")
    )
    f.jump(more)
    f.at(more)
    count = f.load("i32", _STARTED.address)
    f.branch(count < f.wanted, create, out)
    f.at(create)
    generation = f.load_atomic("i32", _STATE.address, "monotonic") >> 16
    first = generation.zext("i64").to("inttoptr", "ptr")
    error = f.call("i32", "pthread_create", thread, NULL, worker.address, first)
    f.branch(error.ne(0), refused, created)
    f.at(created)
    identity = f.load("i64", thread)
    f.call("i32", "pthread_setname_np", identity, _THREAD_NAME.address)
    f.call("i32", "pthread_detach", identity)
    f.store(count + 1, _STARTED.address)
    f.jump(more)
    f.at(refused)  # the system has no more threads for us
    f.store_atomic(count, _LIMIT.address, "monotonic")
    f.jump(out)
    f.at(out)
    f.call("i32", "pthread_sigmask", _SET_MASK, saved, NULL)
    f.ret()
    return f


def _watched() -> Function:
    job = {"fn": "ptr", "ctx": "ptr", "n": "i64", "grain": "i64", "watch": "ptr", "what": "ptr"}
    return Function("void", Target.WATCHED_FOR, internal=False, **job)


def _watched_for(machine: str, claim_chunks: Function, start: Function) -> Function:
    f = _watched()
    fn, ctx, n, grain, watch, what = f.args
    clock = f.alloca("i64", align=8)
    is_watched = watch.ne(NULL)
    size, ask, taken, inline, own = (
        f.later(hint) for hint in ("size", "ask", "taken", "inline", "own")
    )
    grow, publish, wake, work, begin = (
        f.later(hint) for hint in ("grow", "publish", "wake", "work", "begin")
    )
    join = f.later("join", spins="i32")
    wait, spin, give_way, look, release, out = (
        f.later(hint) for hint in ("wait", "spin", "give_way", "look", "release", "out")
    )
    f.branch(n > 0, size, out)

    f.at(size)
    grain = f.select(grain > 0, grain, 1)
    is_small = n <= grain
    limit = f.load_atomic("i32", _LIMIT.address, "monotonic")
    f.branch(is_small | (limit <= 0), inline, ask)
    f.at(ask)
    _, won = f.swap_atomic(_BUSY.address, constant("i32", 0), _ONE, "acquire monotonic")
    f.branch(won, own, taken)
    f.at(taken)
    f.update_atomic("add", _INLINES.address, _ONE_WIDE, "monotonic")
    f.jump(inline)
    f.at(inline)
    f.call("void", fn, ctx, 0, n)
    f.jump(out)

    f.at(own)
    f.branch(f.load("i32", _STARTED.address) < limit, grow, publish)
    f.at(grow)
    f.run(start, limit)
    f.jump(publish)
    f.at(publish)
    chunks = (n - 1) // grain + 1
    ranges = f.least(f.least(limit.zext("i64") + 1, chunks), RANGES)
    for part, value in zip(_JOB, (fn, ctx, n, grain, chunks, ranges), strict=True):
        f.store(value, part.address)
    with f.each(ranges) as k:
        f.store_atomic(_first_chunk(f, k, chunks, ranges), _next(f, k), "monotonic")
    f.store(f.load("i64", _FORKS.address) + 1, _FORKS.address)
    # The next generation, open, and nobody is active in it.
    state = f.load_atomic("i32", _STATE.address, "monotonic") + (_GENERATION | _OPEN)
    f.store_atomic(state, _STATE.address, "seq_cst")
    f.branch(f.load_atomic("i32", _SLEEPERS.address, "seq_cst") > 0, wake, work)
    f.at(wake)  # no more workers than there are chunks beside the caller's first
    _futex(f, machine, _WAKE, f.least(chunks - 1, limit.zext("i64")).trunc("i32"))
    f.jump(work)
    f.at(work)
    f.run(claim_chunks, 0)
    f.update_atomic("and", _STATE.address, constant("i32", ~_OPEN), "seq_cst")
    f.fork(is_watched, begin, (), join, [0])
    f.at(begin)
    f.store(f.call("i64", "llvm.readcyclecounter"), clock, align=8)
    f.jump(join, 0)

    (spins,) = f.at(join)
    active = f.load_atomic("i32", _STATE.address, "acquire") & _ACTIVE
    f.branch(active.eq(0), release, wait)
    f.at(wait)
    spins = spins + 1
    f.branch(spins < SPINS, spin, give_way)
    f.at(spin)
    _pause(f, machine)
    f.jump(join, spins)
    f.at(give_way)  # a worker may be waiting for this very core
    f.call("i32", "sched_yield")
    f.fork(is_watched, look, (), join, [0])
    f.at(look)
    f.call("i1", watch, what, clock)
    f.jump(join, 0)
    f.at(release)
    f.store_atomic(constant("i32", 0), _BUSY.address, "release")
    f.jump(out)
    f.at(out)
    f.ret()
    return f


def _inline_for() -> Function:
    """What serves where there is no pool: nobody waits, so nobody watches."""
    f = _watched()
    with f.when(f.n > 0):
        f.call("void", f.fn, f.ctx, 0, f.n)
    f.ret()
    return f


def _parallel_for(watched_for: Function) -> Function:
    f = Function("void", Target.PARALLEL_FOR, fn="ptr", ctx="ptr", n="i64", grain="i64")
    f.leave_to(watched_for, *f.args, NULL, NULL)
    return f


def _reset() -> Function:
    """In the child after fork(): no worker has come along, and whoever held the pool is gone."""
    f = Function("void", "reset")
    for variable in (_STARTED, _SLEEPERS, _STATE, _BUSY):
        f.store(constant("i32", 0), variable.address)
    f.ret()
    return f


def pool_ir(target: Target) -> str:
    """LLVM text of the pool for `target`: the real one on Linux, an inline loop elsewhere."""
    if not supported(target.triple):
        inline_for = _inline_for()
        functions = [_parallel_for(inline_for), inline_for, _record(), _clock()]
        return module_ir(functions, variables=(_RECORDER,))
    machine = target.triple.partition("-")[0]
    claim_chunks = _claim_chunks()
    record = _record()
    worker = _worker(machine, claim_chunks, record)
    start = _start(worker)
    watched_for = _watched_for(machine, claim_chunks, start)
    functions = [claim_chunks, worker, start, _parallel_for(watched_for), watched_for, _reset()]
    functions += [record, _clock()]
    return module_ir(functions, variables=(*_VARIABLES, _RECORDER, _THREAD_NAME))
