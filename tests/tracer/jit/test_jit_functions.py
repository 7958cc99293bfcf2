"""jit as a decorator: of methods and other callables; inspection, options, pickling, threads."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import threading
import weakref
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support import misses

import jitney as jt

pytestmark = pytest.mark.usefixtures("calls")

X = np.arange(3.0)

# Decoration


def test_ways_to_decorate() -> None:
    @jt.jit
    def f(x: Any) -> Any:
        """Doc."""
        return x + 1

    @jt.jit(backend="interpreter", static_argnames=("n",))
    def g(x, n):
        return x + n

    np.testing.assert_array_equal(f(X), X + 1)
    np.testing.assert_array_equal(g(X, 2), X + 2)
    assert f.__name__ == "f" and f.__doc__ == "Doc." and f.__module__ == __name__
    assert f.__qualname__.endswith("<locals>.f")
    assert str(inspect.signature(g)) == "(x, n)"
    assert callable(f.__wrapped__) and "jit" in repr(f)


def test_jit_of_other_callables() -> None:
    np.testing.assert_array_equal(jt.jit(np.sin)(X), np.sin(X))
    add = functools.partial(lambda c, x: x + c, 5.0)
    np.testing.assert_array_equal(jt.jit(add)(X), X + 5)
    np.testing.assert_array_equal(jt.jit(jt.jit(lambda x: x + 1))(X), X + 1)

    class Callable:
        def __call__(self, x: Any) -> Any:
            return x * 2

    np.testing.assert_array_equal(jt.jit(Callable())(X), X * 2)


@dataclass
class Scale:
    factor: Any = 3.0

    def __call__(self, given: Any, x: Any) -> Any:
        return self.factor * x


Pair = namedtuple("Pair", "a b")
GIVEN = (np.float64(2), np.float32(2), np.int64(3), np.bool_(True), Pair(1.0, X), Scale(), 2.0, X)


def test_callables_without_a_name_take_any_first_argument() -> None:
    def f(given: Any, x: Any) -> Any:
        return 3.0 * x

    callables = (functools.partial(f), functools.partial(functools.partial(f)), Scale())
    for function in callables:
        jitted = jt.jit(function)
        assert jitted.__qualname__ == type(function).__name__ and jitted.__name__ in repr(jitted)
        for given in (*GIVEN, [1.0, X], {"a": X}):
            np.testing.assert_array_equal(jitted(given, X), 3.0 * X)
            np.testing.assert_array_equal(jitted(given, x=X), 3.0 * X)
    assert jt.jit(jt.grad(functools.partial(f), argnums=1))(np.float64(2), 1.0) == 3.0
    np.testing.assert_array_equal(jt.jit(f)(np.ndarray, X), 3.0 * X)
    with pytest.raises(TypeError, match="type object"):
        jt.jit(f)(object(), X)


def test_objects_of_vectorize() -> None:
    for mapped, args in (
        (np.vectorize(lambda x: x + 1), (X,)),
        (np.vectorize(lambda x: x + 1), (2.0,)),
        (np.vectorize(lambda x: x + 1, otypes=[np.float32]), (X,)),
        (np.vectorize(lambda x, y: (x + y, x)), (X, np.ones((2, 1)))),
        (np.vectorize(lambda x, y: (x + y, x), otypes="fd"), (X, np.ones((2, 1)))),
        (np.vectorize(lambda x: x.sum(), signature="(n)->()"), (X,)),
        (np.vectorize(lambda x, p: x * p[0], excluded=[1]), (X, X + 2)),
        (np.vectorize(lambda x: x + 1, otypes="d"), (np.zeros(0),)),
    ):
        found, want = jt.jit(mapped)(*args), mapped(*args)
        if not isinstance(want, tuple):
            found, want = (found,), (want,)
        for a, b in zip(found, want, strict=True):
            assert type(a) is type(b) is np.ndarray
            np.testing.assert_array_equal(a, b, strict=True)
    with pytest.raises(ValueError, match="size 0"):
        jt.jit(np.vectorize(lambda x: x + 1))(np.zeros(0))

    def larger(x: Any) -> Any:
        return x if x > 1 else -x

    jitted = jt.jit(np.vectorize(larger), autograph=True)
    np.testing.assert_array_equal(jitted(X), np.vectorize(larger)(X))
    inside = jt.jit(lambda x: np.vectorize(larger)(x), autograph=True)
    np.testing.assert_array_equal(inside(X), np.vectorize(larger)(X))


def test_jitted_functions_nest() -> None:
    inner = jt.jit(lambda x, n=1: x * n, static_argnames="n")
    f = jt.jit(lambda x: inner(x, n=3) + inner(x))
    np.testing.assert_array_equal(f(X), X * 4)
    assert misses(inner) == 0


class Model:
    scale = 10.0

    def __init__(self, w: Any) -> None:
        self.w = np.array(w)
        self.calls = 0

    @jt.jit(backend="interpreter")
    def __call__(self, x: Any) -> Any:
        return self.apply(x) * self.scale

    @jt.jit(backend="interpreter")
    def apply(self, x: Any) -> Any:
        """Apply."""
        return x @ self.w

    @jt.jit(backend="interpreter")
    def step(self, g: Any) -> None:
        self.w -= 0.5 * g

    @staticmethod
    @jt.jit(backend="interpreter")
    def double(x: Any) -> Any:
        return x * 2

    @classmethod
    @jt.jit(backend="interpreter")
    def scaled(cls, x: Any) -> Any:
        return x * cls.scale

    @jt.jit(backend="interpreter", static_argnames="n")
    def power(self, x: Any, n: int = 2) -> Any:
        return x**n


def test_methods() -> None:
    a, b = Model(np.eye(3)), Model(2 * np.eye(3))
    np.testing.assert_array_equal(a(X), X * 10)
    np.testing.assert_array_equal(b(X), X * 20)
    a.w[0, 0] = 0
    np.testing.assert_array_equal(a.apply(X), X @ a.w)
    w = a.w
    a.step(np.ones((3, 3)))
    assert a.w is w
    np.testing.assert_array_equal(w[1], [-0.5, 0.5, -0.5])
    a.w = np.ones((3, 2))
    assert a.apply(X).shape == (2,)
    np.testing.assert_array_equal(Model.double(X), X * 2)
    np.testing.assert_array_equal(Model.scaled(X), X * 10)
    np.testing.assert_array_equal(a.power(X, n=3), X**3)
    np.testing.assert_array_equal(a.power(X, 3), X**3)
    assert a.apply.__doc__ == "Apply." and a.apply.__self__ is a
    assert "dot" in str(a.apply.trace(X))
    b = Model(np.ones((3, 2)))
    before = misses(Model.apply)
    assert b.apply(X).shape == (2,) and misses(Model.apply) == before


def test_class_attributes_read_through_self() -> None:
    a = Model(np.eye(3))
    np.testing.assert_array_equal(a(X), X * 10)
    Model.scale = 5.0
    try:
        np.testing.assert_array_equal(a(X), X * 5)
    finally:
        Model.scale = 10.0


def test_a_method_does_not_keep_its_object() -> None:
    a = Model(np.eye(3))
    a.apply(X)
    ref = weakref.ref(a)
    del a
    gc.collect()
    assert ref() is None


def test_methods_of_a_registered_class_trace_its_leaves() -> None:
    @jt.register_pytree
    @dataclass
    class Affine:
        w: Any
        b: Any

        @jt.jit
        def __call__(self, x: Any) -> Any:
            return x * self.w + self.b

        @jt.jit
        def moved(self, by: Any) -> Any:
            return Affine(self.w, self.b + by)

    for k in range(3):
        np.testing.assert_array_equal(Affine(X, float(k))(X), X * X + k)
    assert misses(Affine.__call__) == 1
    assert Affine(X, 1.0).moved(2.0).b == 3.0


def test_inheritance_and_super() -> None:
    class Base:
        gain = 2.0

        def f(self, x: Any) -> Any:
            return x * self.gain

    class Derived(Base):
        @jt.jit
        def f(self, x: Any) -> Any:
            return super().f(x) + 1

    d = Derived()
    np.testing.assert_array_equal(d.f(X), X * 2 + 1)
    d.gain = 3.0
    np.testing.assert_array_equal(d.f(X), X * 3 + 1)


# Inspection


def test_trace_lower_explain() -> None:
    @jt.jit
    def f(x, y):
        return np.exp(x) * y

    graph = f.trace(X, X)
    assert "exp" in str(graph) and "test_jit_functions.py" in str(graph)
    lowered = f.lower(X, 2.0)
    assert "define" in lowered.llvm() and lowered.asm() and lowered.kernels
    assert "exp" in f.explain(X, X) and "flops" in f.explain(X, X)
    by_shape = f.trace(jt.ShapeDtype((4,), np.float32), jt.ShapeDtype((4,), np.float32))
    assert "f32[4]" in str(by_shape)
    assert misses(f) == 0


def test_cache_info_and_clear_cache() -> None:
    f = jt.jit(lambda x, n: x + n)
    f(X, 1)
    f(X, 1)
    f(np.zeros(4), 1)
    f(np.zeros(4, np.float32), 1)
    f(np.zeros(8, np.float32)[::2], 1)
    f(np.zeros(4, np.float32), 1.0)
    info = f.cache_info()
    assert info.hits == 1 and info.misses == 5
    reasons = [e.reason for e in info.entries]
    assert reasons[0] == "first call"
    assert reasons[1] == "shape of `x` changed from f64[3] to f64[4]"
    assert reasons[2].startswith("dtype of `x` changed from f64[4] to f32[4]")
    assert reasons[3].startswith("layout of `x` changed")
    assert "kind of `n` changed from Python int to Python float" in reasons[4]
    assert info.entries[0].calls == 2 and "first call" in str(info)
    f.clear_cache()
    assert f.cache_info() == (0, 0, [])
    np.testing.assert_array_equal(f(X, 1), X + 1)


@jt.jit(backend="interpreter")
def module_level(x: Any) -> Any:
    return x + 1


def _plain(x: Any) -> Any:
    return x * 3


renamed = jt.jit(_plain, backend="interpreter")


def test_pickle_and_copy() -> None:
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    again = pickle.loads(pickle.dumps(renamed))
    np.testing.assert_array_equal(again(X), X * 3)
    assert copy.copy(module_level) is module_level
    assert copy.deepcopy({"f": module_level})["f"] is module_level
    assert weakref.ref(module_level)() is module_level


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="device"):
        jt.jit(lambda x: x, device="tpu")
    with pytest.raises(ValueError, match="backend"):
        jt.jit(lambda x: x, backend="fast")
    with pytest.raises(TypeError):
        jt.jit(lambda x: x, unknown_option=1)
    f = jt.jit(lambda x, y: x + y, donate_argnums=0)
    np.testing.assert_array_equal(f(X.copy(), X), X * 2)


# State


def test_an_exception_while_tracing_leaves_nothing_behind() -> None:
    fail = [True]

    @jt.jit
    def f(x):
        y = x + 1
        if fail[0]:
            raise KeyError("mine")
        return y

    with pytest.raises(KeyError, match="mine"):
        f(X)
    assert f.cache_info() == (0, 0, [])
    np.testing.assert_array_equal(np.sin(X) + jt.sin(X), 2 * np.sin(X))
    fail[0] = False
    np.testing.assert_array_equal(f(X), X + 1)


def test_concurrent_first_calls_trace_once() -> None:
    barrier = threading.Barrier(8)

    @jt.jit
    def f(x, y):
        return np.sin(x) * y + np.cos(x)

    results: list[Any] = [None] * 8

    def work(k: int) -> None:
        barrier.wait()
        for _ in range(20):
            results[k] = f(X, float(k))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert misses(f) == 1
    for k in range(8):
        np.testing.assert_allclose(results[k], np.sin(X) * k + np.cos(X), rtol=1e-15)


def test_threads_trace_different_functions_at_once() -> None:
    barrier = threading.Barrier(4)
    out: list[Any] = [None] * 4

    def work(k: int) -> None:
        @jt.jit
        def f(x):
            y = x
            for _ in range(50):
                y = y + k
            barrier.wait(5)  # all are in the middle of tracing
            return y * x

        out[k] = f(X)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        np.testing.assert_array_equal(out[k], (X + 50 * k) * X)


def test_tracing_state_does_not_leak_into_other_threads() -> None:
    seen = []

    @jt.jit
    def f(x):
        t = threading.Thread(target=lambda: seen.append(jt.sin(np.ones(3))))
        t.start()
        t.join()
        return x + 1

    f(X)
    assert type(seen[0]) is np.ndarray


def test_recursive_functions() -> None:
    @jt.jit(static_argnames="n")
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    np.testing.assert_array_equal(power(X, 4), X**4)


def test_native_and_interpreter_agree() -> None:
    def f(p, x, *, lr=0.5):
        h = np.tanh(x @ p["w"] + p["b"])
        p["b"] += lr
        return h.sum(axis=1), {"h": h, "n": h.shape[0]}

    def args() -> tuple[Any, ...]:
        rng = np.random.default_rng(0)
        return {"w": rng.normal(size=(3, 4)), "b": np.zeros(4)}, rng.normal(size=(5, 3))

    native, reference = args(), args()
    a = jt.jit(f)(*native, lr=0.25)
    b = f(*reference, lr=0.25)
    np.testing.assert_allclose(a[0], b[0], rtol=1e-14)
    np.testing.assert_allclose(a[1]["h"], b[1]["h"], rtol=1e-14)
    assert a[1]["n"] == 5
    np.testing.assert_array_equal(native[0]["b"], reference[0]["b"])
