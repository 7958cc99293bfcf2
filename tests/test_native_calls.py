"""Calls of jitted functions in native code: what they take, give and leave, against the Python path."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import gc
import importlib
import inspect
import operator
import pickle
import signal
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.ir.record import replace
from jitney.runtime import callable as callables
from jitney.runtime.callable import is_native
from jitney.runtime.layout import _agrees, ndarray_layout
from jitney.runtime.recycling import recycler
from jitney.tracer.jit import JitFunction


def native_hits(f: Any) -> int:
    entries = [e for bucket in f._buckets.values() for e in bucket.entries]
    return sum(program.hits for e in entries for program in e.programs)


def warm(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Call until the call is native; the result of a native one."""
    f(*args, **kwargs)
    before = native_hits(f)
    result = f(*args, **kwargs)
    assert native_hits(f) == before + 1, "the second call should have been native"
    return result


def same(got: Any, want: Any) -> None:
    """Equal in structure, types, dtypes and values."""
    assert type(got) is type(want)
    if isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            same(got[key], want[key])
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
    else:
        np.testing.assert_array_equal(got, want)
        if isinstance(want, (np.ndarray, np.generic)):
            assert got.dtype == want.dtype and got.shape == want.shape


class Pair(NamedTuple):
    first: Any
    second: Any


X = np.arange(6.0)


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (lambda x: x + 1, (X,), {}),
        (lambda x: x + 1, (X[::2],), {}),
        (lambda x: x + 1, (X[::-1],), {}),
        (lambda x: x + 1, (np.zeros((0, 3)),), {}),
        (lambda x: x + 1, (np.array(2.0),), {}),
        (lambda x: x * 2, (np.arange(12, dtype=np.int8).reshape(3, 4).T,), {}),
        (lambda x: x * 2, (np.broadcast_to(X, (3, 6)),), {}),
        (lambda x: x.sum(), (X,), {}),
        (lambda x: (x.sum(), x.argmax(), (x > 1).any()), (X.astype(np.float32),), {}),
        (lambda x, a: x * a, (X, 2.5), {}),
        (lambda x, n: x * n, (X, 3), {}),
        (lambda x, flag: np.where(flag, x, -x), (X, True), {}),
        (lambda x, s: x * s, (X, np.float32(2)), {}),
        (lambda x, s: x * s, (X.astype(np.int8), np.int8(3)), {}),
        (lambda a, b: a * b + 1, (2.0, 3.0), {}),
        (lambda a, b: (a * b, a * 2, b + 1), (2.0 + 1j, np.complex64(3 - 2j)), {}),
        (lambda x, a: (x * a, (x * a).sum()), (X.astype(np.complex128), 1j), {}),
        (lambda a, b: (a + b, a < b, a // b), (7, 2), {}),
        (lambda x, y: x - y, (X,), {"y": X + 1}),
        (lambda x, *, scale, bias: x * scale + bias, (X,), {"bias": 1.0, "scale": X}),
        (lambda x, bias=3.0: x + bias, (X,), {}),
        (lambda *xs: sum(xs), (X, X + 1, X + 2), {}),
        (lambda **named: named["b"] - named["a"], (), {"a": X, "b": X + 1}),
        (lambda d: {k: v * 2 for k, v in d.items()}, ({"w": X, "b": X[:2]},), {}),
        (lambda d: d[0] + d[7], ({7: X, 0: X},), {}),
        (lambda t: [t[0] + t[1][0], t[1][1]], ((X, [X, X * 2]),), {}),
        (lambda p: Pair(p.second, p.first + 1), (Pair(X, X * 2),), {}),
        (lambda x: (x + 1, [], {}, (), None, {"z": x, "a": [x * 2]}), (X,), {}),
        (lambda x, y: x if y is None else x + y, (X, None), {}),
        (lambda x: x, (X,), {}),
        (lambda x, a: (a, x[1:], x + 1), (X, 2.0), {}),
        (lambda x: (x + 1, "text", 3, np.float64(2.0)), (X,), {}),
        (lambda x: (lambda y: (y, y))(x + 1), (X,), {}),
        (lambda d: d["x"].sum(), ({"x": X, "empty": {}, "none": None, "list": []},), {}),
    ],
)
def test_forms(function: Any, args: Any, kwargs: Any) -> None:
    f = jt.jit(function)
    want = function(*args, **kwargs)
    for _ in range(3):
        same(warm(f, *args, **kwargs), want)


def test_many_arguments() -> None:
    arrays = {f"a{k}": np.full(3, float(k)) for k in range(300)}
    total = jt.jit(lambda d, *rest: sum(d.values()) + sum(rest))
    want = np.full(3, float(sum(range(300))) + 20.0)
    same(warm(total, arrays, *[1.0] * 20), want)

    @jt.jit
    def bump(*xs: Any) -> None:
        for x in xs:
            x += 1

    xs = [np.zeros(2) for _ in range(120)]
    for _ in range(3):
        bump(*xs)
    assert all((x == 3).all() for x in xs)


def test_results_are_what_numpy_gives() -> None:
    f = jt.jit(lambda x: (x + 1, x.sum()))
    first, second = warm(f, X), f(X)
    assert first[0].flags.owndata and first[0].flags.writeable and first[0].flags.c_contiguous
    assert not np.shares_memory(first[0], second[0])
    assert type(first[1]) is np.float64
    identity = jt.jit(lambda x: (x, x[1:]))
    got = warm(identity, X)
    assert got[0] is X and got[1].base is X


def test_a_result_that_comes_twice_is_one_object(calls: str) -> None:
    def function(x: Any) -> Any:
        y = x + 1
        return y, {"again": y}

    f = jt.jit(function)
    for _ in range(3):
        y, named = f(X)
        assert named["again"] is y


def test_static_arguments() -> None:
    f = jt.jit(lambda x, how, axis, n: getattr(x, how)(axis=axis) * n, static_argnums=(1, 2, 3))
    x = np.arange(6.0).reshape(2, 3)
    for how, axis, n in (("sum", 0, 2), ("max", (0, 1), 2), ("sum", None, 2.0), ("sum", 0, True)):
        same(warm(f, x, how, axis, n), getattr(x, how)(axis=axis) * n)
    before = len(f.cache_info().entries)
    spelled = "".join(["su", "m"])  # equal, another object
    assert (f(x, spelled, 0, 2) == x.sum(axis=0) * 2).all()
    assert (f(x, "sum", axis=0, n=2) == x.sum(axis=0) * 2).all()
    assert len(f.cache_info().entries) == before
    sign = jt.jit(lambda x, s: np.copysign(x, s), static_argnames="s")
    assert warm(sign, X + 1, 0.0)[0] == 1 and warm(sign, X + 1, -0.0)[0] == -1
    assert warm(jt.jit(lambda x, n: x * n, static_argnames="n"), X, 1)[1] == 1.0


class Options:  # hashable by identity
    scale = 3.0


def test_static_arguments_that_native_code_does_not_compare() -> None:
    f = jt.jit(lambda x, o: x * o.scale, static_argnames="o")
    options = Options()
    for _ in range(3):
        assert (f(X, options) == X * 3).all()
    assert native_hits(f) == 0
    options.scale = 4.0  # a static argument is its value at the time of tracing
    f(X, Options())
    assert len(f.cache_info().entries) == 2


def test_keywords_in_any_order_share_the_code() -> None:
    f = jt.jit(lambda x, a, b: x * a - b)
    want = X * 2.0 - 3.0
    same(warm(f, X, a=2.0, b=3.0), want)
    hits = native_hits(f)
    same(f(X, b=3.0, a=2.0), want)
    assert native_hits(f) == hits + 1
    for _ in range(2):
        same(f(b=3.0, a=2.0, x=X), want)
        same(f(X, 2.0, b=3.0), want)
        same(f(**{"".join(["b", ""]): 3.0, "a": 2.0, "x": X}), want)
        same(f(X, **{"ab"[k]: v for k, v in ((1, 3.0), (0, 2.0))}), want)
    assert len(f.cache_info().entries) == 1
    for wrong in (lambda: f(X, a=2.0, c=3.0), lambda: f(X, 2.0, 3.0, a=2.0), lambda: f(X)):
        with pytest.raises(TypeError):
            wrong()


def test_keys_of_dicts_that_are_other_objects() -> None:
    f = jt.jit(lambda d: d["a"] - d["b"] + d[1000])
    warm(f, {"a": X, "b": X + 1, 1000: X})
    hits = native_hits(f)
    same(f({"".join(["a"]): X, "".join(["b"]): X + 2, int("1000"): X}), X - (X + 2) + X)
    assert native_hits(f) == hits + 1
    for other in ({"a": X}, {"a": X, "c": X, 1000: X}, {"a": X, "b": X, 1001: X}):
        with pytest.raises(KeyError):
            f(other)
    same(f({"a": X, "b": X, 1000.0: X}), X - X + X)
    same(f({"a": X, "b": X + 1, 1000: X, "c": X}), X - (X + 1) + X)
    same(f(collections.OrderedDict([("b", X + 1), ("a", X), (1000, X)])), X - (X + 1) + X)


def test_arguments_that_look_alike_do_not_share_programs(calls: str) -> None:
    f = jt.jit(lambda x, y: x + y)
    described = X.astype(np.dtype(np.float64, metadata={"unit": "m"}))
    raw = np.zeros(49, np.uint8)
    misaligned = raw[1:].view(np.float64)
    misaligned[:] = X
    frozen = X.copy()
    frozen.setflags(write=False)
    others = [
        *(X, X.astype(">f8"), X.astype(np.float32), X.astype(np.longlong), X.astype(np.int64)),
        *(described, misaligned, frozen, X[:, None], X[::-1]),
        *(np.repeat(X, 2)[::2], 2.0, 2, True, np.float64(2), np.float32(2), np.int64(2)),
        *(np.longlong(2), np.bool_(True), np.array(2.0), 2**62),
    ]
    for _ in range(3):
        for y in others:
            same(f(X, y), X + y)


class Sub(np.ndarray):
    pass


def test_subclasses_are_refused(calls: str) -> None:
    f = jt.jit(lambda x: x + 1)
    for _ in range(3):
        same(f(X), X + 1)
        with pytest.raises(jt.errors.ArgumentError, match="subclass"):
            f(X.view(Sub))


def test_calls_while_tracing_are_inlined(calls: str) -> None:
    inner = jt.jit(lambda x: np.sin(x) * 2)
    inner(X), inner(X)
    outer = jt.jit(lambda x: inner(x) + inner(np.ones(6)))
    np.testing.assert_allclose(outer(X), np.sin(X) * 2 + np.sin(1.0) * 2)
    assert outer.trace(X).ops[0].name != "call"
    np.testing.assert_allclose(jt.grad(lambda x: inner(x).sum())(X), 2 * np.cos(X))
    np.testing.assert_allclose(jt.vmap(inner)(X), np.sin(X) * 2)


def test_a_trace_in_another_thread_does_not_matter() -> None:
    f = jt.jit(lambda x: x + 1)
    warm(f, X)
    inside, go_on = threading.Event(), threading.Event()

    def traced(x: Any) -> Any:
        inside.set()
        assert go_on.wait(10)
        return x * 2

    thread = threading.Thread(target=lambda: jt.jit(traced)(X))
    thread.start()
    assert inside.wait(10)
    hits = native_hits(f)
    same(f(X), X + 1)
    assert native_hits(f) == hits + 1
    go_on.set()
    thread.join()


# What is read from outside

SCALE = 2.0
WEIGHTS = X + 1
TABLE = {"a": 1.0, "b": [2, 3], "c": ("x", None)}
PARAMS = {"w": np.ones(6), "layers": [X, (X, 2.0)]}


def helper(x: Any) -> Any:
    return x * SCALE


class Model:
    def __init__(self) -> None:
        self.w = np.ones(6)
        self.rate = 0.5
        self.sizes = [1, 2]

    @jt.jit
    def forward(self, x: Any, scale: Any = 1.0) -> Any:
        return x * self.w * self.rate * len(self.sizes) * scale


class Deeper(Model):
    def twice(self, x: Any) -> Any:
        return super().forward(x) * 2


def check_globals(f: Any, want: Callable[[], Any], change: Callable[[], Any]) -> None:
    same(warm(f, X), want())
    change()
    same(f(X), want())
    same(warm(f, X), want())


def test_guarded_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    here = sys.modules[__name__]

    def function(x: Any) -> Any:
        scaled = helper(x) + WEIGHTS + PARAMS["w"] * PARAMS["layers"][1][1]
        return scaled * TABLE["a"] + TABLE["b"][1]

    f = jt.jit(function)

    def replace(name: str, value: Any) -> Callable[[], None]:
        return lambda: monkeypatch.setattr(here, name, value)

    def want() -> Any:
        return function(X)

    check_globals(f, want, replace("SCALE", 3.0))
    check_globals(f, want, replace("SCALE", 3))
    check_globals(f, want, replace("WEIGHTS", X * 7))
    check_globals(f, want, replace("WEIGHTS", X.astype(np.float32)))
    check_globals(f, want, replace("TABLE", {**TABLE, "b": [2, 4]}))
    TABLE["b"].append(5)  # type: ignore[attr-defined]
    same(f(X), want())
    TABLE["b"][1] = 9  # type: ignore[index]
    check_globals(f, want, replace("helper", lambda x: x * 10))
    check_globals(f, want, lambda: setattr(here.helper, "__code__", (lambda x: x - 1).__code__))
    monkeypatch.setitem(PARAMS, "w", np.full(6, 5.0))
    same(f(X), want())
    PARAMS["w"][:] += 1  # type: ignore[index]
    same(f(X), want())
    monkeypatch.setitem(PARAMS, "layers", [X, (X, 4.0)])
    check_globals(f, want, lambda: None)


def test_guarded_cells_and_attributes() -> None:
    scale, w = 2.0, np.ones(6)

    @jt.jit
    def f(x: Any) -> Any:
        return x * w * scale

    same(warm(f, X), X * 2)
    w = w * 3
    same(warm(f, X), X * 6)
    scale = 4.0
    same(warm(f, X), X * 12)
    w[:] = 1
    same(warm(f, X), X * 4)

    model, other = Model(), Model()
    bound = type(model).forward._for(model)
    same(warm(bound, X), X)
    model.rate = 2.0
    same(model.forward(X), X * 4)
    model.w = np.full(6, 2.0)
    same(model.forward(X), X * 8)
    model.w[:] = 1
    model.sizes.append(3)
    same(model.forward(X, scale=2.0), X * 12)
    same(other.forward(X), X)


def test_values_that_python_compares() -> None:
    settings_ = Options()
    flag = np.float32(3)

    @jt.jit
    def f(x: Any) -> Any:
        return x * settings_.scale * np.asarray(flag)

    same(f(X), X * 9)
    settings_.scale = 5.0
    same(f(X), X * 15)
    flag = np.float32(1)
    same(f(X), X * 5)
    same(f(X), X * 5)


def test_layouts_that_python_copies_get_no_programs() -> None:
    f = jt.jit(lambda x: x + 1)
    for _ in range(10):
        same(f(np.arange(6, dtype=np.longlong)), np.arange(6) + 1)
        same(f(X.astype(">f8")), X + 1)
    assert len(f._programs) == 2 and native_hits(f) == 0
    assert (warm(f, X) == X + 1).all()


# In-place


def test_arguments_that_are_written(calls: str) -> None:
    @jt.jit
    def f(x: Any, y: Any) -> Any:
        x[1:] += y[1:]
        return x.sum()

    for n in range(1, 4):
        x, y = X.copy(), X.copy()
        for _ in range(n):
            total = f(x, y)
        np.testing.assert_array_equal(x, X * (n + 1))
        assert total == x.sum()
    long = np.zeros(12)
    for _ in range(3):
        f(long[::2], X)
        f(long[1::2][::-1], X)
    np.testing.assert_array_equal(long[::2], X * 3)
    x = X.copy()
    for _ in range(3):
        f(x, x)  # one array
    base = np.arange(8.0)
    want = base.copy()
    for _ in range(3):
        f(base[:6], base[2:])  # they overlap
        want[1:6] = want[1:6] + want[3:]
    np.testing.assert_array_equal(base, want)
    frozen = X.copy()
    frozen.setflags(write=False)
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            f(frozen, X)
    np.testing.assert_array_equal(frozen, X)


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
    for name in ("data", "ndim", "dims", "strides", "descr", "flags", "ob_type"):
        moved = replace(layout, **{name: getattr(layout, name) ^ 8})
        assert not _agrees(moved, np.zeros((3, 4), order="F")), name


# Errors


def test_errors_name_the_line(calls: str) -> None:
    @jt.jit
    def f(x: Any, i: Any) -> Any:
        return x[i]

    for _ in range(3):
        assert f(X, 2) == 2.0
        with pytest.raises(IndexError, match="test_native_calls.py"):
            f(X, 17)
    with pytest.raises(jt.errors.ArgumentError):
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


# Being a Python object


@jt.jit
def module_level(x: Any, y: Any = 1.0) -> Any:
    """Adds."""
    return x + y


def test_it_is_a_function_like_any_other(calls: str) -> None:
    @jt.jit
    def f(x: Any, y: Any = 1.0) -> Any:
        """Adds."""
        return x + y

    assert is_native(f) == (calls == "native") and isinstance(f, JitFunction)
    assert f.__name__ == "f" and f.__doc__ == "Adds." and "f>" in repr(f)
    assert str(inspect.signature(f)) == "(x: 'Any', y: 'Any' = 1.0) -> 'Any'"
    assert callable(f) and type(f).__name__ == "JitFunction"
    f.note = "attributes are free"
    assert f.note == "attributes are free" and f.__dict__["note"]
    assert copy.copy(f) is f and copy.deepcopy(f) is f
    assert {f: 1}[f] == 1 and f == f and f != module_level
    for _ in range(3):
        same(functools.partial(f, y=2.0)(X), X + 2)
        same(next(map(f, [X])), X + 1)
        same(operator.methodcaller("__call__", X)(f), X + 1)
        same(functools.reduce(f, [X, X, X]), X + X + X)
        same(np.vectorize(f)(X), X + 1)
        assert sorted([3.0, 1.0, 2.0], key=f) == [1.0, 2.0, 3.0]
        same(f(*[X], y=2.0), X + 2)
        same(f.__call__(X), X + 1)


def test_pickling() -> None:
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    assert type(copy.copy(jt.jit(np.sin))) is type(module_level)
    anonymous = pickle.loads(pickle.dumps(jt.jit(np.sin)))
    np.testing.assert_array_equal(warm(anonymous, X), jt.jit(np.sin)(X))


class Kinds:
    factor = 3.0

    @staticmethod
    @jt.jit
    def static(x: Any) -> Any:
        return x + 1

    @classmethod
    @jt.jit
    def of_class(cls, x: Any) -> Any:
        return x * cls.factor

    @jt.jit
    def method(self, x: Any) -> Any:
        return x * self.factor

    @property
    @jt.jit
    def size(self) -> Any:
        return np.ones(3) * self.factor


def test_methods_of_every_kind(calls: str) -> None:
    for _ in range(3):
        kinds = Kinds()
        for _ in range(3):
            same(kinds.static(X), X + 1)
            same(Kinds.static(X), X + 1)
            same(kinds.of_class(X), X * 3)
            same(kinds.method(X), X * 3)
            same(kinds.method(x=X), X * 3)
            same(Kinds.method(kinds, X), X * 3)
            same(kinds.size, np.ones(3) * 3)
    method = kinds.method
    assert method.__self__ is kinds and method.__name__ == "method"
    same(list(map(method, [X, X]))[1], X * 3)
    kept = weakref.ref(kinds)
    del kinds, method
    gc.collect()
    assert kept() is None


def test_methods_are_called_natively() -> None:
    first, second = Model(), Deeper()
    second.rate = 4.0
    for _ in range(3):
        same(second.twice(X), X * 16.0)
    for model, want in ((first, X * 1.0), (second, X * 8.0)):
        same(model.forward(X), want)
        same(model.forward(X), want)
        child = Model.forward._bound[id(model)][1]
        before = native_hits(child)
        same(model.forward(X), want)
        same(model.forward(x=X), want)
        same(model.forward(x=X), want)
        assert native_hits(child) >= before + 2
    same(first.forward(X), X * 1.0)
    where = id(first)
    del first, model, child
    gc.collect()
    assert where not in Model.forward._bound
    with pytest.raises(TypeError):
        Model.forward()


@functools.partial(jt.register_pytree, static_fields=("name", "sizes"))
@dataclasses.dataclass
class Layer:
    w: Any
    b: Any = None
    name: str = "layer"
    sizes: tuple[int, ...] = (1, 2)

    @jt.jit
    def apply(self, x: Any) -> Any:
        return x * self.w + (0.0 if self.b is None else self.b)


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: Any
    y: Any


def test_dataclasses() -> None:
    f = jt.jit(lambda p, s: Point(p.y * s, Layer(p.x, p.y + 1)))
    for scale in (2.0, 3.0):
        got = warm(f, Point(X, X + 1), scale)
        assert type(got) is Point and type(got.y) is Layer and got.y.name == "layer"
        same([got.x, got.y.w, got.y.b], [(X + 1) * scale, X, X + 2])
    layer = Layer(X, X + 1)
    same(layer.apply(X), X * X + X + 1)
    same(layer.apply(X), X * X + X + 1)
    layer.b = None
    same(layer.apply(X), X * X)
    layer.w = 2.0
    same(layer.apply(X), X * 2)
    same(layer.apply(X), X * 2)


@functools.partial(jt.register_pytree, static_fields=("power", "how"))
@dataclasses.dataclass
class Power:
    base: Any
    power: int = 2
    how: tuple[str, float] = ("x", 1.0)


@jt.register_pytree
@dataclasses.dataclass
class Computed:
    x: Any

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


def test_static_fields_and_odd_dataclasses() -> None:
    f = jt.jit(lambda p: p.base**p.power * p.how[1])
    same(warm(f, Power(X)), X**2)
    same(warm(f, Power(X, 3)), X**3)
    same(f(Power(X)), X**2)
    same(warm(f, Power(X, 2, ("x", -0.0))), X**2 * -0.0)
    same(warm(f, Power(X, 2, ("x", 0.0))), X**2 * 0.0)
    g = jt.jit(lambda c: c.x + 1)
    for _ in range(3):
        same(g(Computed(X)), X + 1)
    assert native_hits(g) == 0


def test_no_subclass_of_the_native_type_but_of_its_base() -> None:
    with pytest.raises(TypeError):
        type("Sub", (type(module_level),), {})

    class Loud(JitFunction):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return super().__call__(*args, **kwargs), "!"

    f = Loud(lambda x: x + 1)
    for _ in range(3):
        same(f(X)[0], X + 1)


def test_cycles_are_collected() -> None:
    gone: list[Any] = []
    for _ in range(3):
        big = np.ones(1000)

        held: list[Any] = [big]

        def function(x: Any, held: Any = held) -> Any:
            return x + held[0]

        f = jt.jit(function)
        f.me = f
        held.append(f)
        warm(f, X[:1])
        gone += [weakref.ref(f), weakref.ref(big), weakref.ref(function)]
        del f, function, big, held
    gc.collect()
    assert [ref() for ref in gone] == [None] * len(gone)


def test_code_goes_with_the_function() -> None:
    weights = np.ones(6)
    f = jt.jit(lambda x: {"y": x * weights})
    warm(f, X)
    (bucket,) = f._buckets.values()
    gone = [weakref.ref(f), weakref.ref(bucket.entries[0])]
    del bucket
    gc.disable()
    try:
        del f
        assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()


def test_a_cleared_object_still_does_not_crash() -> None:
    f = jt.jit(lambda x: x + 1)
    warm(f, X)
    del f._chain
    same(f(X), X + 1)
    f.clear_cache()
    same(f(X), X + 1)


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
    assert abs(after - before) < 20_000


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


# Random calls, native against Python


_DTYPES = [np.dtype(name) for name in ("f8", "f4", "i8", "i4", "u1", "?", ">f8", ">i4")]


@st.composite
def leaves(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["array", "array", "array", "float", "int", "bool", "generic"]))
    if kind == "float":
        return draw(st.floats(-8, 8))
    if kind == "int":
        return draw(st.integers(-8, 8))
    if kind == "bool":
        return draw(st.booleans())
    dtype = draw(st.sampled_from(_DTYPES))
    if kind == "generic":
        return dtype.newbyteorder("=").type(draw(st.integers(0, 5)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    layout = draw(st.sampled_from(["c", "f", "reversed", "strided", "misaligned", "frozen"]))
    if layout == "f":
        array = np.asfortranarray(array)
    elif layout == "reversed" and shape:
        array = array[::-1]
    elif layout == "strided" and shape:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    elif layout == "misaligned" and dtype.itemsize > 1:
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:].view(dtype).reshape(shape)
        raw[...] = array
        array = raw
    elif layout == "frozen":
        array.setflags(write=False)
    return array


trees = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(Pair, inner, inner),
        st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), inner, max_size=3),
        st.none(),
    ),
    max_leaves=6,
)


keywords = st.dictionaries(st.sampled_from("xyz"), trees, max_size=2)


def touch(*args: Any, **kwargs: Any) -> Any:
    """A function of any tree: every leaf changed, the structure kept."""

    def visit(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: visit(item) for key, item in value.items()}
        if isinstance(value, Pair):
            return Pair(*map(visit, value))
        if isinstance(value, (tuple, list)):
            return type(value)(map(visit, value))
        return None if value is None else np.multiply(value, 2)

    return visit(args), visit(kwargs)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.lists(trees, max_size=3), keywords), min_size=1, max_size=3))
def test_random_calls(forms: list[tuple[list[Any], dict[str, Any]]]) -> None:
    f, reference = jt.jit(touch), jt.jit(touch, backend="interpreter")
    wants = [reference(*args, **kwargs) for args, kwargs in forms]
    for _ in range(3):
        for (args, kwargs), want in zip(forms, wants, strict=True):
            same(f(*args, **kwargs), want)
            backwards = dict(reversed(kwargs.items()))
            got = f(*args, **backwards)
            same(got[0], want[0])
            for name in kwargs:
                same(got[1][name], want[1][name])


_VALUES = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 1, 1.0, True, None, "a", "b", 2**70, np.float32(1.5), float("nan")]
    ),
    st.sampled_from([X, X[::2], X.astype(np.float32), np.array(3.0)]).map(np.copy),
    st.lists(st.integers(0, 2), max_size=2),
    st.tuples(st.integers(0, 2), st.booleans()),
    st.dictionaries(st.sampled_from("pq"), st.sampled_from([1, 2.0]), max_size=2),
)


def digest(value: Any) -> Any:
    """A number of any value, which a trace can follow."""
    if isinstance(value, (tuple, list)):
        return sum((digest(item) * (k + 2) for k, item in enumerate(value)), len(value))
    if isinstance(value, dict):
        return sum((digest(item) * (k + 2) for k, item in enumerate(value.values())), 0.5)
    if value is None or isinstance(value, str):
        return -3.0 if value is None else float(len(value) + ord(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return value % 1009
    return np.sum(np.multiply(value, 1.0))


@settings(max_examples=40)
@given(
    st.lists(_VALUES, min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), _VALUES), max_size=5),
)
def test_random_values_from_outside(start: list[Any], changes: list[tuple[int, Any]]) -> None:
    owner = Options()
    owner.a, owner.b = start[0], start[1]  # type: ignore[attr-defined]
    cell = start[2]

    def function(x: Any) -> Any:
        return x * 1.0 + digest(owner.a) + digest(owner.b) * 10 + digest(cell) * 100  # type: ignore[attr-defined]

    f = jt.jit(function)
    for where, value in [(0, start[0]), *changes]:
        if where == 0:
            owner.a = value  # type: ignore[attr-defined]
        elif where == 1:
            owner.b = value  # type: ignore[attr-defined]
        else:
            cell = value
        for _ in range(3):
            np.testing.assert_allclose(f(X), function(X), rtol=1e-12)
        if isinstance(value, np.ndarray):
            value[...] = 7
        elif isinstance(value, list):
            value.append(4)
        elif isinstance(value, dict):
            value["r"] = 5.0
        for _ in range(2):
            np.testing.assert_allclose(f(X), function(X), rtol=1e-12)
