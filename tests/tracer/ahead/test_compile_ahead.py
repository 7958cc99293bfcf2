"""`f.lower(...).compile()`, `f.compile(...)`: the first call is a hit, here and in another process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import warm

import jitney as jt
from jitney.runtime import processes

SD = jt.ShapeDtype


class Scale:
    def __init__(self) -> None:
        self.w = np.arange(4.0)

    @jt.jit
    def __call__(self, x: Any, n: int = 2) -> Any:
        return x * self.w * n


def fill(x: Any, y: Any) -> None:
    x += y


def structured() -> Callable[..., Any]:
    return jt.jit(lambda p, *, n: {"w": p["w"] * n, "b": [p["b"][0] + 1, n]})


TABLE = {
    "array": (jt.jit(lambda x: np.sin(x) * 2), (SD(4),), {}, lambda: (np.ones(4),)),
    "float32": (jt.jit(lambda x: x @ x.T), (SD((4, 3), "f4"),), {},
                lambda: (np.ones((4, 3), "f4"),)),
    "example": (jt.jit(lambda x: x.sum(0)), (np.ones((4, 6)).T,), {}, lambda: (np.ones((4, 6)).T,)),
    "numbers": (jt.jit(lambda x, a, b: x * a + b), (SD(4), 1.0, 1), {}, lambda: (np.ones(4), 2.5, 7)),
    "trees": (structured(), ({"w": SD(3), "b": (SD(()),)},), {"n": 3},
              lambda: ({"w": np.ones(3), "b": (np.array(2.0),)},)),
    "static": (jt.jit(lambda x, n: x**n, static_argnums=1), (SD(3), 3), {}, lambda: (np.ones(3), 3)),
    "a shape": (jt.jit(lambda x, n: x.reshape(n, -1)), (SD(6), 2), {}, lambda: (np.ones(6), 2)),
    "assigned": (jt.jit(fill), (SD(3), SD(3)), {}, lambda: (np.ones(3), np.ones(3))),
    "gradient": (jt.jit(jt.grad(lambda x: (x**3).sum())), (SD(5),), {}, lambda: (np.ones(5),)),
    "method": (Scale(), (SD(4),), {}, lambda: (np.ones(4),)),
    "watched": (jt.jit(lambda x: np.log(x), check="nan"), (SD(4),), {}, lambda: (np.ones(4),)),
    "interpreted": (jt.jit(lambda x: x + 1, backend="interpreter"), (SD(4),), {},
                    lambda: (np.ones(4),)),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_the_first_call_is_a_hit(name: str) -> None:
    f, specs, kwargs, args = TABLE[name]
    of = type(f).__call__ if isinstance(f, Scale) else f
    before = of.cache_info()
    bound = (f, *specs) if isinstance(f, Scale) else specs
    assert of.lower(*bound, **kwargs).compile() is of
    assert of.cache_info()[:2] == (before.hits, before.misses + 1)
    assert "ahead of time" in of.explain_recompile()
    given, again = args(), args()
    got = f(*given, **kwargs)
    assert of.cache_info()[:2] == (before.hits + 1, before.misses + 1)
    want = (f if isinstance(f, Scale) else f.__wrapped__)(*again, **kwargs)
    for g, w in zip(jt.tree.leaves((got, given)), jt.tree.leaves((want, again)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)
    of.lower(*bound, **kwargs).compile()
    assert of.cache_info().misses == before.misses + 1


def test_several_signatures() -> None:
    f = jt.jit(lambda x, n=2: (x * n).sum())
    assert f.compile((SD(3),), SD(4), (SD(5), 3), ((SD(6),), {"n": 3}), {"x": SD(7)}) is f
    assert f.cache_info()[:2] == (0, 5)
    f(np.ones(3)), f(np.ones(4)), f(np.ones(5), 4), f(np.ones(6), n=5), f(x=np.ones(7))
    assert f.cache_info()[:2] == (5, 5)
    f.clear_cache()
    assert f.cache_info()[:2] == (0, 0)
    f(np.ones(3)), f(np.ones(3))
    assert f.cache_info()[:2] == (1, 1)


@pytest.mark.parametrize("f", [lambda x: np.tanh(x).sum(1), lambda x: np.sort(x, axis=0)])
def test_axes_of_any_length(f: Any) -> None:
    """The second function is compiled for each size after all."""
    compiled = jt.jit(f, dynamic={"x": {0: "batch"}})
    compiled.compile(SD((9, 4)))
    assert compiled.cache_info()[:2] == (0, 1)
    compiled.compile(SD((9, 4)))
    assert compiled.cache_info()[:2] == (0, 1)


def test_methods() -> None:
    class Twice:
        def __init__(self) -> None:
            self.k = 2.0

        @jt.jit
        def of(self, x: Any) -> Any:
            return x * self.k

    two = Twice()
    bound = two.of.compile(SD(3), (SD(4),))
    assert two.of.cache_info()[:2] == (0, 2)
    np.testing.assert_array_equal(bound(np.ones(3)), 2 * np.ones(3))
    assert two.of.cache_info()[:2] == (1, 2)


def test_guards_hold_for_what_is_compiled_ahead() -> None:
    w = {"k": 2}
    f = jt.jit(lambda x: x * w["k"])
    f.compile(SD(3))
    w["k"] = 5
    np.testing.assert_array_equal(f(np.ones(3)), np.full(3, 5))


PROGRAM = """
import json, sys
import numpy as np, jitney as jt
def g(x, n):
    return np.tanh(x * n) @ x
f = jt.jit(g)
if sys.argv[1] == "ahead":
    f.compile(*[(jt.ShapeDtype(n), 2.0) for n in (5, 6, 7)], processes=int(sys.argv[2]))
else:
    for n in (5, 6, 7):
        f(np.ones(n), 2.0)
entries = f.cache_info().entries
print(json.dumps(["llvmlite" in sys.modules, ["recall" in e.seconds for e in entries]]))
"""


@pytest.mark.parametrize("count", ["1", "2"])
def test_the_disk_is_filled_too(tmp_path: Any, count: str) -> None:
    def run(*arguments: str) -> Any:
        return json.loads(warm.run(PROGRAM, *arguments, JITNEY_CACHE_DIR=str(tmp_path)))

    _, recalled = run("ahead", count)
    assert recalled == [count == "2"] * 3  # forked processes made all of them
    assert run("call", "1") == [False, [True] * 3]


@pytest.mark.parametrize(
    ("setting", "count", "message"),
    [({"cache": False}, 2, "by the cache on disk, which is not used"), ({}, 0, "a number from 1")],
)
def test_processes_need_the_disk(setting: Any, count: int, message: str) -> None:
    f = jt.jit(lambda x: x + 1)
    with jt.config(**setting), pytest.raises(jt.errors.ArgumentError, match=message):
        f.compile(SD(3), SD(4), processes=count)


def test_errors_are_those_of_tracing(tmp_path: Any) -> None:
    f = jt.jit(lambda x: x @ np.ones(4))
    for many in (1, 2):
        with pytest.raises(ValueError, match="matmul"):
            f.compile(SD(4), SD(3), processes=many)


def test_children_that_wait_for_ever_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_IDLE", 0.3)
    held, done = threading.Lock(), []
    with held:
        processes.in_processes([held.acquire, lambda: done.append(1)], 2)
    assert not done  # it was done elsewhere
