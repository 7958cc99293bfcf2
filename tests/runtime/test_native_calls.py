"""Calls of jitted functions in native code: the arguments that they take, and what they give."""

from __future__ import annotations

import collections
import dataclasses
import functools
import threading
from typing import Any

import numpy as np
import pytest
from native_calls import Options, Pair, X, native_hits, same, warm

import jitney as jt


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
        assert go_on.wait(60)
        return x * 2

    thread = threading.Thread(target=lambda: jt.jit(traced)(X))
    thread.start()
    assert inside.wait(60)  # emulated processors are slow
    hits = native_hits(f)
    same(f(X), X + 1)
    assert native_hits(f) == hits + 1
    go_on.set()
    thread.join()


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


def test_no_two_opcodes_have_one_number():
    from jitney.runtime.call.opcodes import Opcode

    numbers = [number for name, number in vars(Opcode).items() if name.isupper()]
    assert len(set(numbers)) == len(numbers)
