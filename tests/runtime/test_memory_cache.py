"""Machine code in memory: shared while in use, gone with its function, and within its limit."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.runtime.cache.in_memory import CodeBudget, SharedCode, budget
from jitney.runtime.native.image import loaded_libraries


class Thing:
    nbytes = 100


def test_each_value_is_made_once() -> None:
    cache: SharedCode[Thing] = SharedCode()
    made: list[str] = []
    found: list[Thing] = []

    def make() -> Thing:
        made.append("a")
        time.sleep(0.02)
        return Thing()

    def ask() -> None:
        found.append(cache.get_or_make("a", make))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["a"] and len(set(map(id, found))) == 1 and len(cache) == 1
    found.clear()
    gc.collect()
    assert len(cache) == 0 and cache.get("a") is None


def test_after_a_failure_it_is_made_again() -> None:
    cache: SharedCode[Thing] = SharedCode()

    def fail() -> Thing:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.get_or_make("k", fail)
    kept = Thing()
    assert cache.get_or_make("k", lambda: kept) is kept


class Kept:
    """An entry that notes whether it was asked to leave."""

    def __init__(self, budget: CodeBudget, code: Thing, willing: bool = True) -> None:
        self.code, self.hits, self.here, self._willing = code, 0, True, willing
        budget.add(self)

    def evict(self) -> bool:
        self.here = not self._willing
        if self._willing:
            self.code = None  # type: ignore[assignment]
        return self._willing


def test_what_has_not_run_leaves_first() -> None:
    budget = CodeBudget()
    kept = [Kept(budget, Thing()) for _ in range(5)]
    with jt.config(memory_cache_size=500):
        budget.trim()
        assert all(entry.here for entry in kept)
        more = Kept(budget, Thing())
        budget.trim(more)
        assert [entry.here for entry in kept] == [False, True, True, True, True] and more.here
        kept[1].hits += 1
        kept[3].hits += 1
        more = [more, Kept(budget, Thing()), Kept(budget, Thing())]
        budget.trim(more[-1])
        assert [entry.here for entry in kept] == [False, True, False, True, False]
        assert all(entry.here for entry in more) and budget.nbytes() == 500


def test_shared_code_counts_once_and_the_busy_stay() -> None:
    budget = CodeBudget()
    code = Thing()
    kept = [Kept(budget, code, willing=False) for _ in range(4)]
    assert budget.nbytes() == 100
    with jt.config(memory_cache_size=0):
        budget.trim()  # ends, though nobody leaves
    assert all(entry.here for entry in kept)
    del kept
    gc.collect()
    assert budget.nbytes() == 0


def test_entries_are_counted_where_they_may_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with thousands of functions does not look at all of them for each new one."""
    budget = CodeBudget()
    counted = []
    count = budget.nbytes
    monkeypatch.setattr(budget, "nbytes", lambda: counted.append(count()) or counted[-1])
    with jt.config(memory_cache_size=1000):
        budget.trim()
        for _ in range(25):
            budget.trim(Kept(budget, Thing()))  # which is let go of at once
    assert counted == [0, 100, 100]


def make(k: int) -> Any:
    return jt.jit(lambda x: x * float(k) + 1)


def test_code_is_unloaded_with_its_function() -> None:
    x = np.ones(4)
    make(0)(x)
    gc.collect()
    before = loaded_libraries()[0]
    functions = [make(k) for k in range(1, 6)]
    for k, f in enumerate(functions, 1):
        assert f(x)[0] == k + 1 and f(x)[0] == k + 1
    assert loaded_libraries()[0] == before + 5
    twin = make(3)
    twin(x)
    assert loaded_libraries()[0] == before + 5  # its lines are the same, so is its code
    del f, functions[1:]
    gc.collect()
    assert loaded_libraries()[0] == before + 2
    del twin
    functions.clear()
    gc.collect()
    assert loaded_libraries()[0] == before


def test_functions_give_way_and_come_back() -> None:
    x = np.ones(4)
    gc.collect()
    functions = [make(k) for k in range(20, 26)]
    functions[0](x)
    each = functions[0].lower(x).executable.nbytes
    with jt.config(memory_cache_size=budget.nbytes() + 3 * each):
        for _ in range(2):
            for k, f in enumerate(functions, 20):
                assert f(x)[0] == k + 1 and f(x)[0] == k + 1
            gc.collect()
            assert budget.nbytes() <= jt.config.memory_cache_size
        alive = sum(bool(f.cache_info().entries) for f in functions)
        assert 0 < alive < 6 and functions[-1].cache_info().entries


def test_code_that_runs_is_not_unloaded() -> None:
    """One thread calls a function all the time while others push it out."""
    x = np.ones(20_000)
    busy = jt.jit(lambda x: np.exp(np.sin(x)).sum())
    want = busy(x)
    end, wrong = threading.Event(), []

    def run() -> None:
        while not end.is_set():
            if busy(x) != want:
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(2)]
    with jt.config(memory_cache_size=0):
        for thread in threads:
            thread.start()
        try:
            for k in range(40, 44):
                assert make(k)(np.ones(3))[0] == k + 1
                gc.collect()
        finally:
            end.set()
            for thread in threads:
                thread.join()
    assert not wrong
