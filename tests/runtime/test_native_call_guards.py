"""Native calls of functions that read globals, closures and attributes: each change is seen."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_calls import Model, Options, X, native_hits, same, warm

import jitney as jt

# What is read from outside

SCALE = 2.0
WEIGHTS = X + 1
TABLE = {"a": 1.0, "b": [2, 3], "c": ("x", None)}
PARAMS = {"w": np.ones(6), "layers": [X, (X, 2.0)]}


def helper(x: Any) -> Any:
    return x * SCALE


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
    same(warm(type(model).forward, model, X), X)
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


@settings(max_examples=20)
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


@pytest.mark.parametrize("dtype", ["f8", "i4", "?", "c16", "f2"])
def test_arrays_from_a_pickle_have_dtypes_of_their_own(dtype: str) -> None:
    x = pickle.loads(pickle.dumps(np.ones(3, dtype)))
    assert x.dtype is not np.ones(3, dtype).dtype
    f = jt.jit(lambda x: x + x)
    same(warm(f, x), x + x)
    before = native_hits(f)
    same(f(np.ones(3, dtype)), x + x)  # by the same program
    assert native_hits(f) == before + 1
    for other in (">f8", "f4", "q"):
        y = pickle.loads(pickle.dumps(np.ones(3, other)))
        same(f(y), y + y)
