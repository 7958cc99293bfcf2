"""`jt.profile`: what ran is there, as often as it ran; afterwards all is as it was."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest

import jitney as jt

SQUARE = np.ones((16, 16))
X = np.random.default_rng(0).normal(size=(60, 40))


@jt.jit
def loop(x):
    for i in range(200):
        x = np.tanh(x @ x) + i
        if x[0, 0] > 150:
            x = x * 0.5
    return x.sum()


def counts(profile, category):
    return Counter(e.name for e in profile.events if e.category == category)


def test_events_are_what_ran():
    f = jt.jit(lambda x: np.exp(x) @ x.T)
    expected = f(X)
    with jt.profile() as profile:
        results = [f(X) for _ in range(5)]
    assert all(np.array_equal(r, expected) for r in results)
    assert counts(profile, "call") == {"<lambda>": 5}
    assert set(counts(profile, "kernel").values()) == {5}
    assert any("exp" in name for name in counts(profile, "kernel"))
    assert counts(profile, "trace") == {"<lambda>": 1}
    assert {"optimise", "generate code", "<lambda>"} <= counts(profile, "compile").keys()
    kernel = next(e for e in profile.events if e.category == "kernel" and "exp" in e.name)
    assert kernel.line.startswith("test_profile.py:")
    assert kernel.function == "<lambda>"


def test_steps_of_loops_and_branches_and_what_they_are_in():
    loop(SQUARE)
    with jt.profile() as profile:
        loop(SQUARE)
    control = counts(profile, "control")
    assert control["iteration"] in (199, 200)  # the first may stand before the loop
    assert 0 < control["if"] < 200
    (call,) = [e for e in profile.events if e.category == "call"]
    inside = [e for e in profile.events if e.category in ("kernel", "control")]
    end = call.begin + call.seconds + 1e-9
    assert all(call.begin <= e.begin and e.begin + e.seconds <= end for e in inside)
    assert sum(e.seconds for e in inside if e.leaf) <= call.seconds


def test_afterwards_functions_have_their_old_code():
    f, new = jt.jit(lambda x: x + 1), jt.jit(lambda x: x + 2)
    f(X)
    before = f.cache_info()
    with jt.profile():
        f(X)
        f(X[:3])
        new(X)
    assert f.cache_info() == before
    assert new.cache_info().misses == 0
    assert np.array_equal(f(X), X + 1)
    assert np.array_equal(new(X), X + 2)


def test_what_a_block_raises_passes_and_restores():
    f = jt.jit(lambda x, i: x[i])
    f(X, 3)
    profile = jt.profile()
    with pytest.raises(IndexError), profile:
        f(X, 7)
        f(X, 100)
    assert sum(e.category == "call" for e in profile.events) >= 1
    assert np.array_equal(f(X, 3), X[3])
    with jt.profile():
        pass


def test_profiles_are_not_nested():
    with jt.profile(), pytest.raises(RuntimeError, match="can't be nested"), jt.profile():
        pass
    with jt.profile() as profile:
        jt.jit(lambda x: x * 3)(X)
    assert counts(profile, "call")


def test_events_without_room_are_counted():
    with jt.profile(most_events=50) as profile:
        loop(SQUARE)
    assert profile.dropped > 300
    assert f"{profile.dropped:,} more events" in str(profile)
    with pytest.raises(ValueError, match="at least one event"):
        jt.profile(most_events=0)


def test_callbacks_have_their_names():
    seen = []

    def note(value):
        seen.append(value)

    @jt.jit
    def f(x):
        jt.io_callback(note, None, x.sum())
        return x * 2

    with jt.profile() as profile:
        f(X)
        f(X)
    assert len(seen) == 2
    assert sorted(counts(profile, "callback").values()) == [2, 2]  # seen from both sides
    assert "note" in " ".join(counts(profile, "callback"))


def test_every_thread_has_a_track():
    f = jt.jit(lambda x: np.tanh(x).sum())
    f(X)
    with jt.profile() as profile:
        threads = [threading.Thread(target=f, args=(X,), name=f"mine {k}") for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    used = {e.thread for e in profile.events if e.category == "call"}
    assert len(used) >= 1  # a thread's identity may be used again
    assert counts(profile, "call") == {"<lambda>": 3}


def test_pool_threads_show_what_they_work_on():
    if jt.config.threads < 2:
        pytest.skip("one thread")
    x = np.random.default_rng(0).normal(size=(400, 4000))
    f = jt.jit(lambda x: np.sin(np.exp(np.tanh(x))))
    f(x)
    for _ in range(20):  # workers may be late for all of a kernel
        with jt.profile() as profile:
            f(x)
        workers = [e for e in profile.events if e.category == "worker"]
        if workers:
            break
    (kernel,) = {e.name for e in profile.events if e.category == "kernel"}
    assert {e.name for e in workers} == {kernel}
    assert all(e.thread.startswith("pool thread") for e in workers)


def test_the_file_is_what_viewers_read(tmp_path):
    path = tmp_path / "trace.json"
    with jt.profile(path) as profile:
        loop(SQUARE)
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert {"jitney", "MainThread"} <= names
    complete = [e for e in events if e["ph"] == "X"]
    assert len(complete) == len(profile.events)
    assert all(
        {"name", "cat", "ts", "dur", "pid", "tid"} <= e.keys() and e["dur"] >= 0 for e in complete
    )
    # On each track what begins later ends within, or begins after the end.
    open_until = {}
    for e in sorted(complete, key=lambda e: (e["tid"], e["ts"], -e["dur"])):
        stack = open_until.setdefault(e["tid"], [])
        while stack and stack[-1] <= e["ts"] + 1e-3:
            stack.pop()
        assert not stack or e["ts"] + e["dur"] <= stack[-1] + 1e-3
        stack.append(e["ts"] + e["dur"])


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(OSError), jt.profile(tmp_path / "none" / "trace.json"):
        pytest.fail("nothing runs")
    with jt.profile():
        pass


def test_tables():
    with jt.profile() as profile:
        loop(SQUARE)
    text, page = str(profile), profile._repr_html_()
    assert text.splitlines()[0].split() == ["what", "where", "runs", "total", "each", "share"]
    assert "loop test_profile.py:" in text
    assert page.startswith("<div") and "loop test_profile.py:" in page
    assert repr(profile) == f"<jt.profile: {len(profile.events):,} events>"
    shares = [
        float(line.rsplit(None, 1)[1][:-1]) for line in text.splitlines() if line.endswith("%")
    ]
    assert sum(shares) == pytest.approx(100, abs=2)


def test_scopes():
    @jt.jit
    def f(x):
        with jt.name_scope("encoder"):
            with jt.name_scope("attention"):
                x = np.tanh(x @ x)
            x = np.cos(x @ x)
        return x

    with jt.profile() as profile:
        f(SQUARE)
    scopes = {e.scope for e in profile.events if e.category == "kernel"}
    assert {"encoder", "encoder/attention"} <= scopes
    assert "f/encoder/attention" in str(profile)


def test_perf_knows_names_of_kernels():
    script = """
import os, jitney as jt, numpy as np
jt.jit(lambda x: np.sin(x).sum())(np.ones(1000))
path = f"/tmp/perf-{os.getpid()}.map"
print(open(path).read())
os.remove(path)
"""
    environment = {**os.environ, "JITNEY_PERF": "1"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    lines = [line.split() for line in done.stdout.splitlines() if line]
    assert any("sin" in name for _, _, name in lines)
    assert all(int(start, 16) and int(size, 16) for start, size, _ in lines)


def test_kernels_of_a_gpu_are_events(gpu):
    @jt.jit(autograph=True)
    def f(x, n):
        with jt.name_scope("layer"):
            x = np.tanh(x @ x)
        for _ in range(n):
            x = np.sin(x) * 2
        return x.sum(axis=0)

    x = jt.device_put(np.eye(16, dtype=np.float32), jt.devices("cuda")[0])
    want = np.asarray(f(x, 3))
    with jt.profile() as profile:
        got = np.asarray(f(x, 3))
    assert np.array_equal(got, want) and np.array_equal(np.asarray(f(x, 3)), want)
    kernels = [event for event in profile.events if event.category == "kernel"]
    assert {event.function for event in kernels} == {"f"}
    dot = next(event for event in kernels if "dot" in event.name)
    assert dot.scope == "layer" and dot.line.startswith("test_profile.py:") and dot.leaf
    assert sum("sin" in event.name for event in kernels) == 3
    (run,) = (event for event in profile.events if event.category == "device")
    assert not run.leaf and run.seconds >= sum(event.seconds for event in kernels)
