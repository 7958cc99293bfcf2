"""Natively called functions are Python objects: methods, pickling, cycles, subclasses."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import operator
import pickle
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest
from native_calls import Model, X, native_hits, same, warm

import jitney as jt
from jitney.ir.ops.control.python_sets import layout as sets_layout
from jitney.runtime.call.callable import is_native
from jitney.runtime.call.entering_ir import entering_ir
from jitney.runtime.native import layout
from jitney.tracer.jit.function import JitFunction


class Deeper(Model):
    def twice(self, x: Any) -> Any:
        return super().forward(x) * 2


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
    Model.forward.clear_cache()  # other tests call it in other forms, and the attempts are limited
    first, second = Model(), Deeper()
    second.rate = 4.0
    for _ in range(3):
        same(second.twice(X), X * 16.0)
    for model, want in ((first, X * 1.0), (second, X * 8.0)):
        same(model.forward(X), want)
        same(model.forward(X), want)
        before = native_hits(Model.forward)
        same(model.forward(X), want)
        same(model.forward(x=X), want)
        same(model.forward(x=X), want)
        assert native_hits(Model.forward) >= before + 2
    same(first.forward(X), X * 1.0)
    kept = weakref.ref(first)
    del first, model
    gc.collect()
    assert kept() is None
    with pytest.raises(TypeError):
        Model.forward()


class Point(NamedTuple):
    x: float
    y: float

    @jt.jit
    def length(self) -> Any:
        return np.sqrt(self.x * self.x + self.y * self.y)


def test_a_method_of_a_named_tuple_takes_its_fields() -> None:
    same(warm(Point.length, Point(3.0, 4.0)), np.float64(5.0))
    before = native_hits(Point.length)
    same(Point(6.0, 8.0).length(), np.float64(10.0))  # no other values are compiled in
    assert native_hits(Point.length) == before + 1


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


@pytest.mark.parametrize("unknown", ["ints", "items", "where", "instances"])
def test_objects_enter_where_a_python_keeps_them_in_another_way(unknown: str) -> None:
    """Python 3.12 and later keep attributes elsewhere than 3.11: none of their objects could enter."""
    layouts = {
        "ints": layout.int_layout(),
        "items": layout.list_items(),
        "where": sets_layout(),
        "instances": layout.instance_layout(),
    }
    arrays = layout.ndarray_layout()
    assert arrays is not None
    text = entering_ir(arrays, **{**layouts, unknown: None})  # type: ignore[arg-type]
    assert "@jitney_enter(" in text
