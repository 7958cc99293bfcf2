"""What happens while a native call runs: memory, errors, callbacks, signals, threads; nothing leaks."""

from __future__ import annotations

import contextlib
import gc
import importlib
import operator
import signal
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from native_calls import Model, X, native_hits, same, warm

import jitney as jt
from jitney.ir.record import replace
from jitney.runtime.call import callable as callables
from jitney.runtime.call.callable import is_native
from jitney.runtime.memory.recycling import recycler
from jitney.runtime.native.layout import _agrees, ndarray_layout

# Memory


def test_big_results_are_recycled_and_scratch_is_kept_apart() -> None:
    handler_of = importlib.import_module("numpy._core.multiarray").get_handler_name
    f = jt.jit(lambda x: np.sort(x[::-1] * 2.0) + x)
    big = np.arange(300_000.0)
    for x in (big, X):
        want = x * 2 + x
        results = [warm(f, x) for _ in range(3)]
        for result in results:
            np.testing.assert_array_equal(result, want)
        assert len({result.ctypes.data for result in results}) == 3
    if recycler().enabled:
        assert handler_of(warm(f, big)) == "jitney" and handler_of(np.empty(300_000)) != "jitney"


def test_results_have_the_memory_handler_of_their_context() -> None:
    handler_of = importlib.import_module("numpy._core.multiarray").get_handler_name
    f = jt.jit(lambda x: (x + 1, x * 2, x[:0] * 2.0))
    warm(f, X)
    usual = handler_of()
    for result in f(X):
        assert handler_of(result) == usual and result.flags.owndata and result.base is None
    if recycler().enabled:
        set_handler = recycler()._set_handler
        previous = set_handler(recycler().handler)
        try:
            results = f(X)
        finally:
            set_handler(previous)
        assert [handler_of(result) for result in results] == ["jitney"] * 3
        same(results, (X + 1, X * 2, X[:0]))
        results[0].resize(50)
        same(results[0][6:], np.zeros(44))
        assert handler_of(warm(f, X)[0]) == usual


def test_results_can_be_resized_and_reshaped_in_place() -> None:
    f = jt.jit(lambda x: {f"{k}": x + k for k in range(9)})
    warm(f, X)
    for _ in range(200):
        results = f(X)
        results["1"].resize(40, refcheck=False)
        results["2"].shape = (2, 3)
        results["3"].resize(0, refcheck=False)
        results["4"].dtype = np.int8
        same(results["5"], X + 5)
        del results


def test_memory_of_results_is_traced() -> None:
    f = jt.jit(lambda x: [x + k for k in range(8)])
    x = np.zeros(4000)
    warm(f, x)
    domain = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    tracemalloc.start()
    try:
        results = f(x)
        taken = tracemalloc.take_snapshot().filter_traces([domain])
        assert sum(trace.size for trace in taken.traces) == 8 * x.nbytes
        del results
        left = tracemalloc.take_snapshot().filter_traces([domain])
        assert sum(trace.size for trace in left.traces) == 0
    finally:
        tracemalloc.stop()


def test_no_memory(calls: str) -> None:
    f = jt.jit(lambda x: (x + 1, np.broadcast_to(x, (1 << 45, 6)) + 1))
    counts = sys.getrefcount(X)
    for _ in range(3):
        with pytest.raises(MemoryError):
            f(X)
    assert sys.getrefcount(X) == counts


def test_scratch_of_calls_within_calls(calls: str) -> None:
    box: list[Any] = []

    def again(x: Any) -> Any:
        return np.asarray(box[0](x[: x.size // 2], x[0])) if x.size > 4 else x.sum()

    def function(x: Any, start: Any) -> Any:
        y = np.sort(x[::-1])
        z = jt.py_func(again, jt.ShapeDtype((), np.float64), y)
        return (np.sort(y + z)).sum() + start

    def plain(x: Any, start: float) -> float:
        z = plain(x[: x.size // 2], x[0]) if x.size > 4 else x.sum()
        return float((x + z).sum() + start)

    box.append(jt.jit(function))
    for _ in range(3):
        assert box[0](np.arange(64.0), 1.0) == plain(np.arange(64.0), 1.0)


# Where calls cannot be native


def test_unknown_layouts_and_builds_without_a_gil(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(native: bool) -> None:
        f = jt.jit(lambda d, y=1.0: {"sum": (d["x"] + y).sum()})
        assert is_native(f) == native
        for _ in range(3):
            same(f({"x": X}, y=2.0), {"sum": (X + 2).sum()})
            same(Model().forward(X), X * 1.0)

    check(True)
    with monkeypatch.context() as patch:
        patch.setattr(callables, "ndarray_layout", lambda: None)
        check(False)
    with monkeypatch.context() as patch:
        patch.setattr(callables, "free_threaded", lambda: True)
        check(False)
    with jt.config(native_calls=False):
        check(False)
    check(True)


def test_the_probe_notices_another_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = ndarray_layout()
    assert layout is not None
    for name in ("data", "ndim", "dims", "strides", "descr", "flags", "ob_type", "handler"):
        moved = replace(layout, **{name: getattr(layout, name) ^ 8})
        assert not _agrees(moved, np.zeros((3, 4), order="F")), name


# Errors


def test_errors_name_the_line(calls: str) -> None:
    @jt.jit
    def f(x: Any, i: Any) -> Any:
        return x[i]

    for _ in range(3):
        assert f(X, 2) == 2.0
        with pytest.raises(IndexError, match="test_native_call_runs.py"):
            f(X, 17)
    with pytest.raises(IndexError, match="test_native_call_runs.py"):
        f(X, 2**70)


def test_callbacks_and_what_they_raise(calls: str) -> None:
    seen: list[float] = []

    def look(x: Any) -> Any:
        seen.append(float(x[0]))
        if x[0] > 5:
            raise KeyError("too much")
        return x * 2

    f = jt.jit(lambda d: jt.py_func(look, jt.ShapeDtype((6,), np.float64), d["x"]) + 1)
    for k in range(4):
        same(f({"x": X + k}), (X + k) * 2 + 1)
    for _ in range(2):
        with pytest.raises(KeyError, match="too much"):
            f({"x": X + 10})
    assert seen == [0.0, 1.0, 2.0, 3.0, 10.0, 10.0]


def test_a_callback_may_call_the_function_and_drop_its_code(calls: str) -> None:
    def again(x: Any) -> Any:
        if x[0] < 3:
            box[0].clear_cache()
            held.clear()
            return np.asarray(box[0]([x + 1]))
        return x

    box: list[Any] = []
    f = jt.jit(lambda xs: jt.py_func(again, jt.ShapeDtype((6,), np.float64), xs[0]) * 1.0)
    box.append(f)
    for _ in range(3):
        held = [X.copy()]
        same(f(held), X + 3)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_interrupts(calls: str) -> None:
    f = jt.jit(lambda n: jt.while_loop(lambda i: i < n, lambda i: i + 1, 0))
    for _ in range(3):
        assert f(10) == 10

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            f(10**15)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert f(10) == 10


def test_many_specialisations() -> None:
    f = jt.jit(lambda x: x * 2)
    for _ in range(3):
        for n in range(100):
            assert f(X[:1].repeat(n)).shape == (n,)
    assert len(f._programs) <= 64
    before = native_hits(f)
    for n in range(90, 100):
        f(np.ones(n))
    assert native_hits(f) == before + 10
    assert len(f.cache_info().entries) == 100


# Leaks and threads


def test_no_references_are_lost_or_kept() -> None:
    class Failing:
        def __array__(self) -> Any:
            raise ValueError

    tree = {"a": X.copy(), "b": [X.copy(), 2.5, 7]}
    constant = ("static", object())

    def function(t: Any, n: Any, *, k: Any) -> Any:
        y = t["a"] * n + t["b"][0] * t["b"][1] + k
        return {"y": y, "sum": y.sum(), "same": t["b"][0], "t": (y, t["b"][2] + 1)}

    f = jt.jit(function)
    inplace = jt.jit(lambda x: operator.setitem(x, 0, x[1]))
    fails = jt.jit(lambda x, i: x[i])
    watched = [tree, tree["a"], tree["b"], tree["b"][0], constant, np.dtype(np.float64), None, True]

    def once() -> None:
        f(tree, 3, k=2.0)
        inplace(tree["a"])
        with contextlib.suppress(IndexError):
            fails(X, 99)
        with pytest.raises(jt.errors.ArgumentError):
            fails(X, Failing())

    for _ in range(20):
        once()

    def run(n: int) -> None:
        for _ in range(n):
            f(tree, 3, k=2.0)
            inplace(tree["a"])
            f(tree, 3, k=2.0)
            with contextlib.suppress(IndexError):
                fails(X, 99)

    run(100)
    gc.collect()
    counts = [sys.getrefcount(value) for value in watched]
    tracemalloc.start()
    try:
        run(200)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        run(5000)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    drift = [sys.getrefcount(value) - n for value, n in zip(watched, counts, strict=True)]
    assert all(abs(d) < 50 for d in drift), drift
    assert abs(after - before) < 40_000  # what Python keeps of errors that it raised itself


def test_hundred_thousand_calls() -> None:
    f = jt.jit(lambda x, a: x + a)
    warm(f, X, 1.0)
    counts = [sys.getrefcount(v) for v in (X, np.dtype(np.float64), np.ndarray)]
    for _ in range(100_000):
        f(X, 1.0)
    now = [sys.getrefcount(v) for v in (X, np.dtype(np.float64), np.ndarray)]
    assert max(abs(a - b) for a, b in zip(counts, now, strict=True)) < 20


def test_threads() -> None:
    f = jt.jit(lambda d, a: {"y": d["x"] * a, "s": d["x"].sum()})
    wrong: list[Any] = []

    def hammer(seed: int) -> None:
        try:
            strike(seed)
        except Exception as error:  # a thread's own would only be printed
            wrong.append(error)

    def strike(seed: int) -> None:
        for k in range(400):
            n = 1 + (k * 7 + seed) % 23
            x = np.arange(float(n)) + seed
            got = f({"x": x}, float(k))
            if not (got["y"] == x * k).all() or got["s"] != x.sum():
                wrong.append((n, got))
            if k % 97 == 0 and seed == 0:
                f.clear_cache()

    threads = [threading.Thread(target=hammer, args=(seed,)) for seed in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_containers_that_change_while_native_code_runs() -> None:
    f = jt.jit(lambda d: np.sin(d["x"]).sum())  # long enough to give up the GIL
    size = 200_000
    shared = {"x": np.ones(size)}
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            shared["x"] = np.ones(size)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(30):
            assert abs(f(shared) - size * np.sin(1.0)) < 1e-6 * size
    finally:
        stop.set()
        thread.join()


def test_generators_and_recursion(calls: str) -> None:
    f = jt.jit(lambda x: x + 1)

    def steps(x: Any) -> Iterator[Any]:
        while True:
            x = f(x)
            yield x

    generator = steps(X)
    for k in range(1, 6):
        same(next(generator), X + k)

    def depth(x: Any, n: int) -> Any:
        return x if n == 0 else f(depth(x, n - 1))

    same(depth(X, 200), X + 200)
