"""The LLVM text of the thread pool: `jitney_parallel_for` and its workers.

The protocol. One 32-bit word says it all: generation(16) | open(1) | active(15). The caller
owns `busy`, writes the job, opens a new generation, works too, closes it and waits until
`active` is zero. A worker joins by compare-and-swap from a state that is open, so it never sees
half a job, and the caller waits only for workers that joined, never for one that still sleeps.
Workers spin a little after a job, then sleep on the word (futex); `sleepers` is raised before
the kernel compares the word, and read after the word is written, both sequentially consistent,
so no wake-up is lost.

Workers block all signals but those of their own faults, and are detached. Where there is no futex
(not Linux on x86-64 or AArch64) `jitney_parallel_for` runs everything inline.
"""

from __future__ import annotations

import platform
import sys

from ...codegen.target import Target

SPINS = 2000  # pauses before a worker sleeps: about 0.1 ms

_FUTEX_CALL = {"x86_64": 202, "aarch64": 98}
_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
# Signals that a fault raises on the thread itself must stay deliverable: ILL, BUS, FPE, SEGV, TRAP.
_FAULTS = (4, 7, 8, 11, 5)

_INLINE_IR = """
define void @jitney_parallel_for(ptr %fn, ptr %ctx, i64 %n, i64 %grain) nounwind {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %run, label %out
run:
  call void %fn(ptr %ctx, i64 0, i64 %n)
  br label %out
out:
  ret void
}

define void @jitney_watched_for(
    ptr %fn, ptr %ctx, i64 %n, i64 %grain, ptr %watch, ptr %what) nounwind {
  call void @jitney_parallel_for(ptr %fn, ptr %ctx, i64 %n, i64 %grain)
  ret void
}
"""

_POOL_IR = """
@state = internal global i32 0, align 64          ; generation << 16 | open << 15 | active
@sleepers = internal global i32 0, align 64
@next = internal global i64 0, align 64           ; first index that nobody has claimed
@busy = internal global i32 0, align 64
@job_fn = internal global ptr null, align 64
@job_ctx = internal global ptr null
@job_n = internal global i64 0
@job_grain = internal global i64 0
@limit = global i32 0, align 64                   ; workers that may join, the caller not counted
@started = global i32 0                           ; threads that exist
@forks = global i64 0                             ; jobs that ran on the pool
@joins = global i64 0                             ; workers that took part in them
@inlines = global i64 0                           ; jobs that found the pool busy

declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_setname_np(i64, ptr)
declare i32 @sched_yield()
declare i64 @llvm.readcyclecounter()
{declare_pause}
@thread_name = internal constant [7 x i8] c"jitney\\00"

define internal void @claim_chunks() nounwind {{
entry:
  %fn = load ptr, ptr @job_fn
  %ctx = load ptr, ptr @job_ctx
  %n = load i64, ptr @job_n
  %grain = load i64, ptr @job_grain
  br label %claim
claim:
  %lo = atomicrmw add ptr @next, i64 %grain monotonic
  %some = icmp slt i64 %lo, %n
  br i1 %some, label %run, label %out
run:
  %end = add i64 %lo, %grain
  %whole = icmp slt i64 %end, %n
  %hi = select i1 %whole, i64 %end, i64 %n
  call void %fn(ptr %ctx, i64 %lo, i64 %hi)
  br label %claim
out:
  ret void
}}

; A worker for life. %arg is the generation that it must not answer.
define internal ptr @worker(ptr %arg) nounwind {{
entry:
  %arg_int = ptrtoint ptr %arg to i64
  %first = trunc i64 %arg_int to i32
  br label %idle
idle:
  %seen = phi i32 [ %first, %entry ], [ %generation, %too_late ], [ %generation, %work ]
  br label %look
look:
  %spins = phi i32 [ 0, %idle ], [ %spins_next, %pause ], [ 0, %sleep ]
  %now = load atomic i32, ptr @state acquire, align 4
  %now_generation = lshr i32 %now, 16
  %news = icmp ne i32 %now_generation, %seen
  br i1 %news, label %try, label %nothing
nothing:
  %spins_next = add i32 %spins, 1
  %patient = icmp slt i32 %spins_next, {spins}
  br i1 %patient, label %pause, label %sleep
pause:
  {pause}
  br label %look
sleep:
  %before = atomicrmw add ptr @sleepers, i32 1 seq_cst
  ; FUTEX_WAIT | FUTEX_PRIVATE: returns at once if the word is no longer %now
  %waited = call i64 (i64, ...) @syscall(
      i64 {futex}, ptr @state, i32 128, i32 %now, ptr null, ptr null, i32 0)
  %after = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %look
try:
  %seen_state = phi i32 [ %now, %look ], [ %fresh, %retry ]
  %generation = lshr i32 %seen_state, 16
  %open_bit = and i32 %seen_state, 32768
  %open = icmp ne i32 %open_bit, 0
  %active = and i32 %seen_state, 32767
  %cap = load atomic i32, ptr @limit monotonic, align 4
  %room = icmp slt i32 %active, %cap
  %welcome = and i1 %open, %room
  br i1 %welcome, label %join, label %too_late
too_late:
  br label %idle
join:
  %joined_state = add i32 %seen_state, 1
  %swap = cmpxchg ptr @state, i32 %seen_state, i32 %joined_state acq_rel acquire
  %fresh = extractvalue {{ i32, i1 }} %swap, 0
  %joined = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %joined, label %work, label %retry
retry:
  br label %try
work:
  %joins_before = atomicrmw add ptr @joins, i64 1 monotonic
  call void @claim_chunks()
  %left = atomicrmw sub ptr @state, i32 1 release
  br label %idle
}}

; Start threads until %wanted exist. Only the owner of @busy calls this.
define internal void @start(i32 %wanted) nounwind {{
entry:
  %thread = alloca i64
  %blocked = alloca [16 x i64]
  %saved = alloca [16 x i64]
{block_signals}
  %masked = call i32 @pthread_sigmask(i32 2, ptr %blocked, ptr %saved)
  br label %more
more:
  %have = load i32, ptr @started
  %lacking = icmp slt i32 %have, %wanted
  br i1 %lacking, label %create, label %out
create:
  %now = load atomic i32, ptr @state monotonic, align 4
  %generation = lshr i32 %now, 16
  %generation_wide = zext i32 %generation to i64
  %arg = inttoptr i64 %generation_wide to ptr
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %arg)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %refused, label %created
created:
  %id = load i64, ptr %thread
  %named = call i32 @pthread_setname_np(i64 %id, ptr @thread_name)
  %detached = call i32 @pthread_detach(i64 %id)
  %have_more = add i32 %have, 1
  store i32 %have_more, ptr @started
  br label %more
refused:                                          ; the system has no more threads for us
  store atomic i32 %have, ptr @limit monotonic, align 4
  br label %out
out:
  %unmasked = call i32 @pthread_sigmask(i32 2, ptr %saved, ptr null)
  ret void
}}

define void @jitney_parallel_for(ptr %fn, ptr %ctx, i64 %n, i64 %grain) nounwind {{
  tail call void @jitney_watched_for(
      ptr %fn, ptr %ctx, i64 %n, i64 %grain, ptr null, ptr null)
  ret void
}}

define void @jitney_watched_for(
    ptr %fn, ptr %ctx, i64 %n, i64 %grain0, ptr %watch, ptr %what) nounwind {{
entry:
  %clock = alloca i64, align 8
  %watched = icmp ne ptr %watch, null
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %size, label %out
size:
  %sane = icmp sgt i64 %grain0, 0
  %grain = select i1 %sane, i64 %grain0, i64 1
  %small = icmp sle i64 %n, %grain
  %limit = load atomic i32, ptr @limit monotonic, align 4
  %alone = icmp sle i32 %limit, 0
  %serial = or i1 %small, %alone
  br i1 %serial, label %inline, label %ask
ask:
  %swap = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %won = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %won, label %own, label %taken
taken:
  %inlines_before = atomicrmw add ptr @inlines, i64 1 monotonic
  br label %inline
inline:
  call void %fn(ptr %ctx, i64 0, i64 %n)
  br label %out
own:
  %have = load i32, ptr @started
  %lacking = icmp slt i32 %have, %limit
  br i1 %lacking, label %grow, label %publish
grow:
  call void @start(i32 %limit)
  br label %publish
publish:
  store ptr %fn, ptr @job_fn
  store ptr %ctx, ptr @job_ctx
  store i64 %n, ptr @job_n
  store i64 %grain, ptr @job_grain
  store atomic i64 0, ptr @next monotonic, align 8
  %forks = load i64, ptr @forks
  %forks_next = add i64 %forks, 1
  store i64 %forks_next, ptr @forks
  %old = load atomic i32, ptr @state monotonic, align 4
  %new = add i32 %old, 98304                      ; generation + 1, open; active is 0
  store atomic i32 %new, ptr @state seq_cst, align 4
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %wake_any = icmp sgt i32 %asleep, 0
  br i1 %wake_any, label %wake, label %work
wake:
  ; no more workers than there are chunks for
  %n_less = sub i64 %n, 1
  %others = sdiv i64 %n_less, %grain              ; chunks beside the caller's first
  %limit_wide = zext i32 %limit to i64
  %few = icmp slt i64 %others, %limit_wide
  %count_wide = select i1 %few, i64 %others, i64 %limit_wide
  %count = trunc i64 %count_wide to i32
  ; FUTEX_WAKE | FUTEX_PRIVATE
  %woken = call i64 (i64, ...) @syscall(
      i64 {futex}, ptr @state, i32 129, i32 %count, ptr null, ptr null, i32 0)
  br label %work
work:
  call void @claim_chunks()
  %closed = atomicrmw and ptr @state, i32 -32769 seq_cst
  br i1 %watched, label %begin, label %join
begin:
  %began = call i64 @llvm.readcyclecounter()
  store i64 %began, ptr %clock, align 8
  br label %join
join:
  %spins = phi i32 [ 0, %work ], [ 0, %begin ], [ %spins_next, %spin ], [ 0, %yield ], [ 0, %look ]
  %now = load atomic i32, ptr @state acquire, align 4
  %active = and i32 %now, 32767
  %finished = icmp eq i32 %active, 0
  br i1 %finished, label %release, label %wait
wait:
  %spins_next = add i32 %spins, 1
  %patient = icmp slt i32 %spins_next, {spins}
  br i1 %patient, label %spin, label %yield
spin:
  {pause}
  br label %join
yield:                                            ; a worker may be waiting for this very core
  %yielded = call i32 @sched_yield()
  br i1 %watched, label %look, label %join
look:
  %stopped = call i1 %watch(ptr %what, ptr %clock)
  br label %join
release:
  store atomic i32 0, ptr @busy release, align 4
  br label %out
out:
  ret void
}}

; In the child after fork(): no worker has come along, and whoever held the pool is gone.
define void @reset() nounwind {{
  store i32 0, ptr @started
  store i32 0, ptr @sleepers
  store i32 0, ptr @state
  store i32 0, ptr @busy
  ret void
}}
"""


def supported(triple: str = "") -> bool:
    """Whether there is a pool for a target triple (default: this machine)."""
    if not triple:
        return sys.platform == "linux" and platform.machine() in _FUTEX_CALL
    return "linux" in triple and triple.partition("-")[0] in _FUTEX_CALL


def pool_ir(target: Target) -> str:
    """LLVM text of the pool for `target`: the real one on Linux, an inline loop elsewhere."""
    if not supported(target.triple):
        return _INLINE_IR
    machine = target.triple.partition("-")[0]
    faults = sum(1 << (signal - 1) for signal in _FAULTS)
    masks = [~faults] + [-1] * 15
    block_signals = "\n".join(
        f"  %mask{i} = getelementptr i64, ptr %blocked, i64 {i}\n  store i64 {mask}, ptr %mask{i}"
        for i, mask in enumerate(masks)
    )
    declare_pause, pause = _PAUSE[machine]
    return _POOL_IR.format(
        futex=_FUTEX_CALL[machine],
        spins=SPINS,
        declare_pause=declare_pause,
        pause=pause,
        block_signals=block_signals,
    )
