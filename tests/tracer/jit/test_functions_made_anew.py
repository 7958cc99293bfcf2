"""Functions that are made anew by the same code of equal constants: one trace serves them all, unless
one of them holds what may change."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.arange(3.0)


def scaled(factor: Any, then: Any = None) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        return factor * x if then is None else then(factor * x)

    return apply


class Holder:
    def __init__(self, function: Any) -> None:
        self.pair = (function, np.zeros(3))


@jt.jit
def called(f: Any, x: Any) -> Any:
    return f(x)


@jt.jit
def called_of_object(holder: Any, x: Any) -> Any:
    holder.pair[1][0] += 1
    return holder.pair[0](x)


WAYS: dict[str, tuple[Any, Any]] = {
    "argument": (called, lambda f: f),
    "object": (called_of_object, Holder),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    function, wrap = WAYS[request.param]
    function.clear_cache()
    return function, lambda f, x: function(wrap(f), x)


MAKERS: list[Callable[[Any], Any]] = [
    scaled,
    lambda k: scaled(2.0, scaled(k)),
    lambda k: scaled(k, functools.partial(np.multiply, k)),
    lambda k: lambda x, factor=k, *, more=k: factor * x + more,
    lambda k: functools.wraps(scaled)(lambda x: x + k),
    lambda k: scaled((k, 1)[0], np.sin),
]


@pytest.mark.parametrize("make", MAKERS)
def test_equal_ones_are_traced_once(make: Any, way: Any) -> None:
    compiled, call = way
    for k, misses in (
        (2.0, 1),
        (2.0, 1),
        (3.0, 2),
        (3.0, 2),
        (2.0, 2),
        (2, 3),
        (0.0, 4),
        (-0.0, 5),
    ):
        np.testing.assert_array_equal(call(make(k), X), make(k)(X))
        assert compiled.cache_info().misses == misses


def test_each_has_its_own_state(way: Any) -> None:
    _, call = way

    def counting() -> tuple[Any, Any]:
        count, seen, array = 0, [0.0], np.zeros(1)

        def f(x: Any) -> Any:
            nonlocal count
            count += 1
            seen[0] += 1.0
            array[0] += 1
            return x * array[0]

        return f, lambda: (count, *seen, *array)

    for _ in range(2):
        f, state = counting()
        for n in (1, 2):
            np.testing.assert_array_equal(call(f, X), n * X)
            assert state() == (n, n, n)


def test_each_has_its_own_arrays_and_objects(way: Any) -> None:
    _, call = way

    class Setting:
        def __init__(self, k: float) -> None:
            self.k = k

    for k in (2.0, 3.0, 2.0):
        np.testing.assert_array_equal(call(scaled(np.full(3, k)), X), k * X)
        setting = Setting(k)
        np.testing.assert_array_equal(call(lambda x, s=setting: s.k * x, X), k * X)
        setting.k = 5.0
        np.testing.assert_array_equal(call(lambda x, s=setting: s.k * x, X), 5 * X)


def test_what_others_assign_to_is_seen(way: Any) -> None:
    _, call = way

    def pair() -> tuple[Any, Any]:
        factor = 2.0

        def change(value: Any) -> None:
            nonlocal factor
            factor = value

        return lambda x: factor * x, change

    (one, change_one), (other, _) = pair(), pair()
    for f in (one, other):
        np.testing.assert_array_equal(call(f, X), 2 * X)
    for value in (4.0, np.array([1.0, 2.0, 3.0])):
        change_one(value)
        np.testing.assert_array_equal(call(one, X), value * X)
        np.testing.assert_array_equal(call(other, X), 2 * X)
    other.factor = 3
    np.testing.assert_array_equal(call(other, X), 2 * X)


def test_other_modules_are_others(way: Any) -> None:
    _, call = way
    code = compile("def f(x): return k * x", "made", "exec")
    for k in (2.0, 3.0):
        module: dict[str, Any] = {"k": k, "__name__": "made"}
        exec(code, module)
        np.testing.assert_array_equal(call(module["f"], X), k * X)


def test_names_count() -> None:
    f = jt.jit(lambda f, x: (f.__name__, f(x)))
    for name in ("apply", "other", "apply"):
        function = scaled(2.0)
        function.__name__ = name
        assert f(function, X)[0] == name


def test_a_function_that_is_returned_is_the_one_that_was_given() -> None:
    f = jt.jit(lambda f, x: (f, f(x)))

    @jt.jit
    def g(holder: Any, f: Any, x: Any) -> Any:
        holder.last = f
        return f(x)

    for function in (scaled(2.0), scaled(2.0)):
        given, _ = f(function, X)
        assert given is function
        holder = Holder(None)
        g(holder, function, X)
        assert holder.last is function  # type: ignore[attr-defined]


@jt.jit
def read_of_object(holder: Any, x: Any) -> Any:
    return holder.pair[0](x)


@pytest.mark.parametrize("compiled", [called, called_of_object, read_of_object])
def test_the_latest_of_many_is_called_natively(compiled: Any) -> None:
    compiled.clear_cache()
    for _ in range(11):
        given = scaled(2.0) if compiled is called else Holder(scaled(2.0))
        for _ in range(20):
            compiled(given, X)
        (entry,) = [entry for bucket in compiled._buckets.values() for entry in bucket.entries]
        native = sum(program.hits for program in entry.programs)
        compiled(given, X)
        assert sum(program.hits for program in entry.programs) == native + compiled._native
        assert len(entry.programs) <= 8 and len(compiled._programs) <= 8
    assert compiled.cache_info().hits == 11 * 21 - 1
