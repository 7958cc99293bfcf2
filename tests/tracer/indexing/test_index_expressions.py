"""Any index that NumPy takes: reading, assigning, augmenting and accumulating, with derivatives."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import _copy, run, same

import jitney as jt

EXAMPLES = int(os.environ.get("JITNEY_TEST_EXAMPLES", "50"))
SHAPES = [(), (5,), (3, 4), (2, 3, 4), (0, 3), (1, 2, 1, 3), (3, 3)]
INTEGERS = [np.int64, np.int32, np.int8, np.uint8]


class Traced:
    """The place of an argument in an index."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"argument {self.number}"


@st.composite
def indices(draw: Any, shape: tuple[int, ...]) -> tuple[tuple[Any, ...], list[Any]]:
    """An index of an array of `shape`, some of whose parts are arguments; and those."""
    batch = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 1), (2, 2), (0,)]))
    items: list[Any] = []
    given_: list[Any] = []
    axis, used = 0, draw(st.integers(0, len(shape)))

    def part(value: Any) -> Any:
        if draw(st.booleans()):
            return value
        given_.append(np.asarray(value))
        return Traced(len(given_) - 1)

    while axis < used:
        n = shape[axis]
        kind = draw(st.sampled_from(["slice", "new", "int", "array", "array", "mask", "truth"]))
        if kind == "slice" or (n == 0 and kind in ("int", "array")):
            bound = st.one_of(st.none(), st.integers(-n - 2, n + 2))
            step = draw(st.sampled_from([None, 1, 2, -1, -2]))
            items.append(slice(draw(bound), draw(bound), step))
            axis += 1
        elif kind == "new":
            items.append(None)
        elif kind == "truth":
            items.append(draw(st.sampled_from([True, np.True_, np.array(True), False])))
        elif kind == "int":
            i = draw(st.integers(-n, n - 1))
            items.append(part(draw(st.sampled_from([i, np.int64(i), np.array(i)]))))
            axis += 1
        elif kind == "mask":
            dims = draw(st.integers(1, used - axis))
            size = int(np.prod(shape[axis : axis + dims]))
            flat = draw(st.lists(st.booleans(), min_size=size, max_size=size))
            items.append(np.array(flat, bool).reshape(shape[axis : axis + dims]))
            axis += dims
        else:
            own = draw(st.sampled_from([batch, batch[1:], (1,) * len(batch)]))
            dtype = np.dtype(draw(st.sampled_from(INTEGERS)))
            low = 0 if dtype.kind == "u" else -n
            size = int(np.prod(own))
            flat = draw(st.lists(st.integers(low, n - 1), min_size=size, max_size=size))
            array = np.array(flat, dtype).reshape(own)
            # (An empty list is an array of floats.)
            items.append(array.tolist() if array.size and draw(st.booleans()) else part(array))
            axis += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    if len(items) == 1 and draw(st.booleans()):
        return items[0], given_
    return tuple(items), given_


def filled(index: Any, given_: Any) -> Any:
    """The index with its arguments."""
    if isinstance(index, tuple):
        return tuple(filled(item, given_) for item in index)
    return given_[index.number] if isinstance(index, Traced) else index


def read(x: Any, i: Any, v: Any) -> Any:
    return x[i]


def assign(x: Any, i: Any, v: Any) -> Any:
    y = x.copy()
    y[i] = v
    return y


def augment(x: Any, i: Any, v: Any) -> Any:
    y = x.copy()
    y[i] += v
    y[i] *= 2
    return y


def through_views(x: Any, i: Any, v: Any) -> Any:
    y = x.copy()
    part = y[i]
    if np.ndim(part):
        part[...] = part * 3
    return y, part


def spread(v: Any, chosen: Any) -> Any:
    """The values for what is chosen: NumPy reads behind the end of some with fewer axes (numpy 2.4)."""
    return np.broadcast_to(v, np.shape(chosen)) if np.ndim(v) <= np.ndim(chosen) else v


def accumulate(ufunc: np.ufunc) -> Any:
    def f(x: Any, i: Any, v: Any) -> Any:
        y = x.copy()
        ufunc.at(y, i, spread(v, y[i]))
        return y

    return f


def update(name: str, ufunc: np.ufunc | None) -> Any:
    def f(x: Any, i: Any, v: Any) -> Any:
        if isinstance(x, np.ndarray):  # by NumPy
            y = x.copy()
            if ufunc is None:
                y[i] = v
            else:
                ufunc.at(y, i, spread(v, y[i]))
            return y
        return getattr(jt.at(x)[i], name)(v)

    return f


PROGRAMS = {
    "read": read,
    "get": lambda x, i, v: x[i] if isinstance(x, np.ndarray) else jt.at(x)[i].get(),
    "assign": assign,
    "augment": augment,
    "views": through_views,
    **{
        u.__name__: accumulate(u) for u in (np.add, np.subtract, np.multiply, np.divide, np.maximum)
    },
    "at.set": update("set", None),
    "at.add": update("add", np.add),
    "at.subtract": update("subtract", np.subtract),
    "at.multiply": update("multiply", np.multiply),
    "at.divide": update("divide", np.divide),
    "at.power": update("power", np.power),
    "at.min": update("min", np.minimum),
    "at.max": update("max", np.maximum),
}


@st.composite
def cases(draw: Any) -> tuple[str, Any, Any, list[Any], Any]:
    name = draw(st.sampled_from(list(PROGRAMS)))
    shape = draw(st.sampled_from(SHAPES))
    index, given_ = draw(indices(shape))
    x = np.asarray(np.random.default_rng(1).random(shape) + 0.5)
    try:
        part = np.shape(x[filled(index, given_)])
    except IndexError:
        part = ()
    drop = draw(st.integers(0, len(part)))
    kept = tuple(n if draw(st.booleans()) else 1 for n in part[drop:])
    value = np.asarray(np.random.default_rng(2).random(kept) + 0.5)
    return name, x, index, given_, value


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases())
def test_as_numpy(case: Any) -> None:
    name, x, index, given_, value = case

    def f(x: Any, v: Any, *given_: Any) -> Any:
        return PROGRAMS[name](x, filled(index, given_), v)

    arguments = (x, value, *given_)
    try:
        with np.errstate(all="ignore"):
            want = f(*_copy(arguments))
    except (IndexError, ValueError, TypeError) as error:
        kinds = tuple(k for k in (IndexError, ValueError, TypeError) if isinstance(error, k))
        # (A mask that the function closes over is an argument first.)
        with pytest.raises((*kinds, jt.errors.DynamicShapeError)):
            run(f, *_copy(arguments))
        return
    got = run(f, *_copy(arguments))
    if name == "get" or (name == "views" and np.ndim(want[1]) == 0):
        got, want = _arrays(got), _arrays(want)
    same(got, want)


def _arrays(result: Any) -> Any:
    return tuple(map(np.asarray, result)) if isinstance(result, tuple) else np.asarray(result)


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(cases())
def test_derivatives(case: Any) -> None:
    """Along a direction: central differences of NumPy's program against the gradient of ours."""
    name, x, index, given_, value = case
    if name in ("at.min", "at.max", "maximum", "views"):
        return

    def loss(x: Any, v: Any, *given_: Any) -> Any:
        return np.sum(np.cos(PROGRAMS[name](x, filled(index, given_), v)))

    dx, dv = (np.random.default_rng(3).normal(size=a.shape) for a in (x, value))
    step = 1e-5
    try:
        ends = [loss(x + s * dx, value + s * dv, *given_) for s in (step, -step)]
    except (IndexError, ValueError, TypeError):
        return
    want = (ends[0] - ends[1]) / (2 * step)
    gradient = jt.grad(loss, argnums=(0, 1))
    gx, gv = run(lambda x, v, *i: gradient(x, v, *i), x, value, *given_)
    got = np.sum(gx * dx) + np.sum(gv * dv)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7 * (1 + x.size + value.size))


def test_indices_that_numpy_refuses() -> None:
    x = np.zeros((3, 4))
    for index in ((True, False, 1.5), (0, 0, True, 0), (np.ones(2, bool),), ([0, 3],), (True, 9)):
        with pytest.raises(IndexError):
            x[index]
        with pytest.raises(IndexError):
            run(lambda x, i=index: x[i], x)
