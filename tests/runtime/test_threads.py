"""The thread pool: every index once, whatever else goes on. Risky things run in child processes."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from folders import HELPERS

import jitney as jt
from jitney.codegen.target import Target
from jitney.runtime.native.engine import engine_for, host_engine
from jitney.runtime.native.image import LoadedImage
from jitney.runtime.threads import pool
from jitney.runtime.threads.futex import supported
from jitney.runtime.threads.pool_ir import pool_ir

needs_pool = pytest.mark.skipif(not supported(), reason="no thread pool for this system")

# count(counts, n, grain): adds 1 to counts[i] for each i that the pool hands out.
# nested(counts, n, m): for each i of n, a parallel loop over the m counts of row i.
# slow(counts, n): one slow index per chunk, so that workers surely join.
# meet(counts, n): who takes the first chunk of all waits for another; where the two began is left.
JOBS = """
declare void @jitney_parallel_for(ptr, ptr, i64, i64)
define internal void @count_body(ptr %counts, i64 %lo, i64 %hi) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %next, %loop ]
  %p = getelementptr i64, ptr %counts, i64 %i
  %old = load i64, ptr %p
  %new = add i64 %old, 1
  store i64 %new, ptr %p
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %out
out:
  ret void
}
define void @count(ptr %counts, i64 %n, i64 %grain) {
  call void @jitney_parallel_for(ptr @count_body, ptr %counts, i64 %n, i64 %grain)
  ret void
}
define internal void @rows_body(ptr %ctx, i64 %lo, i64 %hi) {
entry:
  %counts = load ptr, ptr %ctx
  %m_at = getelementptr i64, ptr %ctx, i64 1
  %m = load i64, ptr %m_at
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, %m
  %row = getelementptr i64, ptr %counts, i64 %offset
  call void @jitney_parallel_for(ptr @count_body, ptr %row, i64 %m, i64 3)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %out
out:
  ret void
}
define void @nested(ptr %counts, i64 %n, i64 %m) {
  %ctx = alloca [2 x i64]
  store ptr %counts, ptr %ctx
  %m_at = getelementptr i64, ptr %ctx, i64 1
  store i64 %m, ptr %m_at
  call void @jitney_parallel_for(ptr @rows_body, ptr %ctx, i64 %n, i64 1)
  ret void
}
define internal void @slow_body(ptr %counts, i64 %lo, i64 %hi) {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %loop ]
  %p = getelementptr i64, ptr %counts, i64 %lo
  store volatile i64 %k, ptr %p
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, 3000000
  br i1 %more, label %loop, label %out
out:
  ret void
}
define void @slow(ptr %counts, i64 %n, i64 %grain) {
  call void @jitney_parallel_for(ptr @slow_body, ptr %counts, i64 %n, i64 %grain)
  ret void
}
declare i32 @sched_yield()
define internal void @meet_body(ptr %counts, i64 %lo, i64 %hi) {
  %k = atomicrmw add ptr %counts, i64 1 seq_cst
  %early = icmp slt i64 %k, 2
  br i1 %early, label %note, label %out
note:
  %at = add i64 %k, 1
  %p = getelementptr i64, ptr %counts, i64 %at
  store i64 %lo, ptr %p
  br label %wait
wait:
  %yields = phi i64 [ 0, %note ], [ %more, %wait ]
  call i32 @sched_yield()
  %more = add i64 %yields, 1
  %came = load atomic i64, ptr %counts seq_cst, align 8
  %alone = icmp slt i64 %came, 2
  %patient = icmp slt i64 %more, 3000000
  %again = and i1 %alone, %patient
  br i1 %again, label %wait, label %out
out:
  ret void
}
define void @meet(ptr %counts, i64 %n, i64 %grain) {
  call void @jitney_parallel_for(ptr @meet_body, ptr %counts, i64 %n, i64 %grain)
  ret void
}
"""
JOB = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Jobs:
    def __init__(self) -> None:
        address = pool.thread_pool().parallel_for
        exports = ["count", "nested", "slow", "meet"]
        self._library: LoadedImage = host_engine().load(
            JOBS, exports, {"jitney_parallel_for": address}
        )
        found = (JOB(self._library.address(e)) for e in exports)
        self.count, self.nested, self.slow, self.meet = found


@pytest.fixture(scope="module")
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def four_threads() -> object:
    """More threads than this machine may have cores: the hard case."""
    before = pool.get_threads()
    pool.thread_pool()
    pool.set_threads(4)
    yield
    pool.set_threads(before)


def counts_after(job: object, n: int, *arguments: int) -> np.ndarray:
    counts = np.zeros(n + 16, np.int64)
    job(counts[8:].ctypes.data, *arguments)  # type: ignore[operator]
    assert (counts[:8] == 0).all() and (counts[n + 8 :] == 0).all()
    return counts[8 : n + 8]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000, 99_991])
@pytest.mark.parametrize("grain", [1, 2, 5, 63, 64, 65, 10**6, 2**62])
def test_every_index_once(jobs: Jobs, four_threads: None, n: int, grain: int) -> None:
    if n // grain > 5000:
        grain *= 100
    assert (counts_after(jobs.count, n, n, grain) == 1).all()


@pytest.mark.parametrize("n", [0, -1, -(2**63)])
def test_nothing_to_do(jobs: Jobs, n: int) -> None:
    assert (counts_after(jobs.count, 8, n, 1) == 0).all()


@pytest.mark.parametrize("grain", [0, -5])
def test_a_senseless_grain_is_one(jobs: Jobs, grain: int) -> None:
    assert (counts_after(jobs.count, 100, 100, grain) == 1).all()


@needs_pool
def test_workers_take_part(jobs: Jobs, four_threads: None) -> None:
    before = pool.pool_stats()
    for _ in range(10):
        counts_after(jobs.slow, 8, 8, 1)
    after = pool.pool_stats()
    assert after.started == max(3, before.started)  # other tests may have wanted more
    assert after.forks - before.forks == 10
    assert after.joins - before.joins >= 10


@needs_pool
def test_threads_begin_at_ranges_of_their_own(jobs: Jobs) -> None:
    before = pool.get_threads()
    try:
        for threads in (2, 4):
            pool.set_threads(threads)
            count, first, second = counts_after(jobs.meet, 100, 100, 1)[:3]
            assert count == 100 and first != second
            assert {first, second} <= set(range(0, 100, 100 // threads))
    finally:
        pool.set_threads(before)


@needs_pool
def test_one_thread_runs_inline(jobs: Jobs) -> None:
    before = pool.get_threads()
    try:
        pool.set_threads(1)
        stats = pool.pool_stats()
        assert (counts_after(jobs.count, 100, 100, 1) == 1).all()
        assert pool.pool_stats().forks == stats.forks
    finally:
        pool.set_threads(before)


def test_nested(jobs: Jobs, four_threads: None) -> None:
    for n, m in ((1, 1), (2, 50), (40, 40), (5, 1000)):
        for _ in range(20):
            assert (counts_after(jobs.nested, n * m, n, m) == 1).all()


def test_many_callers(jobs: Jobs, four_threads: None) -> None:
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(400):
            if not (counts_after(jobs.count, 3000 + k, 3000 + k, 50) == 1).all():
                wrong.append(k)
            if not (counts_after(jobs.nested, 30, 5, 6) == 1).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_after_sleep(jobs: Jobs, four_threads: None) -> None:
    """Workers that sleep on the futex are woken, or the caller does it all: never a hang."""
    for pause in (0.0, 0.0001, 0.0005, 0.002, 0.02) * 20:
        time.sleep(pause)
        assert (counts_after(jobs.count, 5000, 5000, 10) == 1).all()


def test_changing_the_number_of_threads_while_running(jobs: Jobs, four_threads: None) -> None:
    stop = threading.Event()

    def change() -> None:
        k = 0
        while not stop.is_set():
            pool.set_threads(1 + k % 6)
            k += 1
            time.sleep(0.0002)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(1500):
            assert (counts_after(jobs.count, 2000, 2000, 20) == 1).all()
    finally:
        stop.set()
        changer.join()


@needs_pool
def test_more_generations_than_the_word_counts(jobs: Jobs, four_threads: None) -> None:
    counts = np.zeros(8, np.int64)
    address = counts.ctypes.data
    for _ in range(70_000):  # the generation has 16 bits
        jobs.count(address, 8, 4)
    assert (counts == 70_000).all()


def child(code: str, **environment: str) -> str:
    """Run code after the definitions above in a fresh process; its output."""
    head = f"import sys; sys.path[:0] = {[str(HELPERS), str(Path(__file__).parent)]!r}\n"
    head += "from test_threads import *\njobs = Jobs()\n"
    done = subprocess.run(
        [sys.executable, "-c", head + dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=40,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.strip()


@needs_pool
def test_fork_in_every_state() -> None:
    """Fork while the pool is idle, asleep, and busy in other threads; parallel loops in the child."""
    code = """
    import os
    pool.set_threads(4)
    stop = threading.Event()
    def busy():
        while not stop.is_set():
            assert (counts_after(jobs.count, 4000, 4000, 40) == 1).all()
    threads = [threading.Thread(target=busy) for _ in range(2)]
    def once():
        pid = os.fork()
        if pid == 0:
            ok = all((counts_after(jobs.count, 4000, 4000, 40) == 1).all() for _ in range(20))
            counts_after(jobs.slow, 8, 8, 1)
            ok = ok and pool.pool_stats().started == 3
            os._exit(0 if ok else 1)
        return os.waitpid(pid, 0)[1]
    codes = [once()]
    counts_after(jobs.count, 4000, 4000, 40)
    codes += [once() for _ in range(5)]
    for thread in threads: thread.start()
    codes += [once() for _ in range(15)]
    stop.set()
    for thread in threads: thread.join()
    codes.append(once())
    print(set(codes))
    """
    assert child(code) == "{0}"


@needs_pool
def test_no_thread_before_the_first_parallel_call() -> None:
    code = """
    print(pool.pool_stats().started, len(os.listdir('/proc/self/task')) - os_threads)
    counts_after(jobs.count, 100, 100, 200)
    print(pool.pool_stats().started)
    counts_after(jobs.count, 100, 100, 10)
    print(pool.pool_stats().started)
    """
    code = "    os_threads = len(os.listdir('/proc/self/task'))\n" + code
    assert child(code, JITNEY_NUM_THREADS="3").split() == ["0", "0", "0", "2"]


@needs_pool
def test_signals_reach_the_main_thread() -> None:
    code = """
    import signal
    pool.set_threads(4)
    counts_after(jobs.slow, 8, 8, 1)
    def blocked(task, number):
        status = open(f'/proc/self/task/{task}/status').read()
        return int(status.split('SigBlk:')[1].split()[0], 16) >> (number - 1) & 1
    for task in os.listdir('/proc/self/task'):
        if 'Name:\\tjitney' in open(f'/proc/self/task/{task}/status').read():
            while blocked(task, signal.SIGSEGV):  # all are, until a new thread has run
                time.sleep(0.001)
            assert blocked(task, signal.SIGINT) and blocked(task, signal.SIGTERM)
            print('worker')
    """
    assert child(code).split() == ["worker"] * 3


@needs_pool
def test_a_system_that_has_no_threads_left() -> None:
    code = """
    import resource
    pool.set_threads(4)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))   # no room for four stacks of 512 MiB
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 29, resource.RLIM_INFINITY))
    print(all((counts_after(jobs.count, 4000, 4000, 40) == 1).all() for _ in range(20)))
    """
    assert child(code) == "True"


@needs_pool
def test_the_process_ends_while_workers_run() -> None:
    code = """
    pool.set_threads(4)
    def forever():
        while True: counts_after(jobs.slow, 8, 8, 1)
    for _ in range(2): threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.2)
    print('done', flush=True)
    """
    assert child(code) == "done"


# ------------------------------------------------------------------------------- number of threads


def test_threads_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITNEY_NUM_THREADS", " 3 ")
    assert pool.default_threads() == 3
    for wrong in ("0", "-1", "many", "1.5", "5000"):
        monkeypatch.setenv("JITNEY_NUM_THREADS", wrong)
        with pytest.raises(ValueError, match="JITNEY_NUM_THREADS is a number from 1"):
            pool.default_threads()
    monkeypatch.setenv("JITNEY_NUM_THREADS", "")
    assert 1 <= pool.default_threads() <= (os.cpu_count() or 1)


def test_affinity_and_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JITNEY_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(48)), raising=False)
    for quota, threads in ((float("inf"), 48), (2.0, 2), (2.5, 3), (0.1, 1), (100.0, 48)):
        monkeypatch.setattr(pool, "_cgroup_cpus", lambda quota=quota: quota)
        assert pool.default_threads() == threads


def test_cgroup_files(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert pool._folder_quota(tmp_path) == 1.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert pool._folder_quota(tmp_path) == float("inf")
    (tmp_path / "cpu.max").write_text("nonsense")
    assert pool._folder_quota(tmp_path) == float("inf")
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu.cfs_quota_us").write_text("400000")
    (tmp_path / "cpu.cfs_period_us").write_text("100000")
    assert pool._folder_quota(tmp_path) == 4
    (tmp_path / "cpu.cfs_quota_us").write_text("-1")
    assert pool._folder_quota(tmp_path) == float("inf")


@pytest.mark.parametrize("wrong", [0, -1, 1025])
def test_set_threads_refuses(wrong: int) -> None:
    with pytest.raises(ValueError, match="number of threads"):
        pool.set_threads(wrong)
    for value in (True, 2.0, "2"):
        with pytest.raises(TypeError, match="number of threads"):
            pool.set_threads(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("triple", "real"),
    [
        ("x86_64-unknown-linux-gnu", True),
        ("aarch64-unknown-linux-gnu", True),
        ("x86_64-unknown-linux-musl", True),
        ("arm64-apple-darwin23", False),
        ("x86_64-pc-windows-msvc", False),
        ("riscv64-unknown-linux-gnu", False),
    ],
)
def test_the_pool_compiles_for(triple: str, real: bool) -> None:
    target = Target(triple, "", "", 128)
    assert supported(triple) is real
    text = engine_for(target).asm(pool_ir(target))
    assert "jitney_parallel_for" in text and ("syscall" in text) is real


@needs_pool
def test_threads_as_setting_and_block():
    before = pool.get_threads()
    try:
        jt.threads(3)
        assert pool.get_threads() == 3
        with jt.threads(1) as one, jt.threads(2):
            assert (one.n, pool.get_threads()) == (1, 2)
        assert pool.get_threads() == 3
        with pytest.raises(ZeroDivisionError), jt.threads(1):
            1 / 0  # noqa: B018
        assert pool.get_threads() == 3
        for wrong in (0, -1, 10**6):
            with pytest.raises(ValueError, match="number of threads"):
                jt.threads(wrong)
        with pytest.raises(TypeError):
            jt.threads(1.5)  # type: ignore[arg-type]
    finally:
        pool.set_threads(before)


@needs_pool
def test_blocks_of_several_threads_overlap():
    before = pool.get_threads()
    first, second = threading.Event(), threading.Event()

    def other():
        with jt.threads(4):
            first.set()
            second.wait(10)

    thread = threading.Thread(target=other)
    try:
        with jt.threads(1):
            thread.start()
            assert first.wait(10)
            assert pool.get_threads() == 4
        assert pool.get_threads() == 4, "the other block still counts"
        second.set()
        thread.join()
        assert pool.get_threads() == before
    finally:
        second.set()
        pool.set_threads(before)
