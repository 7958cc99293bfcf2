"""Donated arrays on a GPU: results have their memory, and they are gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.runtime.cuda.library import DeviceError


@pytest.fixture(autouse=True)
def on_gpu() -> Iterator[None]:
    with jt.config(cuda="emulate"):
        yield


def put(x: Any) -> jt.DeviceArray:
    return jt.device_put(np.asarray(x), "cuda")


def step(p: Any, g: Any) -> Any:
    return p - 0.5 * g


def test_a_result_has_the_memory_of_a_donated_array() -> None:
    f = jt.jit(step, donate_argnums=0)
    p, g = put(np.ones(100)), put(np.full(100, 2.0))
    where = p.buffer.address
    for k in range(3):
        old, p = p, f(p, g)
        assert p.buffer.address == where
        np.testing.assert_array_equal(np.asarray(p), np.full(100, -float(k)))
        for use in (np.asarray, lambda x: x + 1, jt.jit(lambda x: x), str, lambda x: f(x, g)):
            with pytest.raises(DeviceError, match="the array was donated"):
                use(old)
        assert old.shape == (100,) and old.dtype == np.float64
    np.testing.assert_array_equal(np.asarray(g), 2.0)


def test_updates_of_a_donated_array_touch_what_they_update() -> None:
    @jt.jit(donate_argnums=0)
    def f(x: Any, i: Any, u: Any) -> Any:
        return jt.at(x)[i].add(u)

    x = np.zeros(1000, np.int64)
    i, u = np.array([3, 3, 7]), np.array([1, 2, 3])
    d = put(x)
    where = d.buffer.address
    d = f(d, put(i), put(u))
    np.add.at(x, i, u)
    np.testing.assert_array_equal(np.asarray(d), x)
    assert d.buffer.address == where


def test_one_array_in_two_places_is_copied_first() -> None:
    f = jt.jit(lambda x, y: x * 2 + y[::-1], donate_argnums=0)
    x = put(np.arange(6.0))
    np.testing.assert_array_equal(np.asarray(f(x, x)), np.arange(6.0) * 2 + np.arange(6.0)[::-1])
    np.testing.assert_array_equal(np.asarray(x), np.arange(6.0))
    both = jt.jit(lambda x, y: (x + 1, y + 2), donate_argnums=(0, 1))
    one, two = both(x, x)
    np.testing.assert_array_equal(np.asarray(one), np.arange(6.0) + 1)
    np.testing.assert_array_equal(np.asarray(two), np.arange(6.0) + 2)


def test_trees_and_arrays_that_no_result_fits() -> None:
    """Gone as well: what is donated means nothing after the call. What is returned itself stays."""
    f = jt.jit(lambda d, x: ({k: v + x for k, v in d.items()}, x), donate_argnums=(0, 1))
    d, x = {"a": put(np.ones(3)), "b": put(np.ones((2, 3)))}, put(np.arange(3.0))
    new, same = f(d, x)
    assert same is x and np.asarray(x)[2] == 2
    np.testing.assert_array_equal(np.asarray(new["b"]), 1 + np.arange(3.0) * np.ones((2, 1)))
    for gone in d.values():
        with pytest.raises(DeviceError, match="donated"):
            gone.block_until_ready()
    total = jt.jit(np.sum, donate_argnums=0)
    assert float(total(x)) == 3
    with pytest.raises(DeviceError, match="donated"):
        x.tolist()


def test_numpy_arrays_may_be_donated_too() -> None:
    f = jt.jit(step, donate_argnums=0, device="cuda")
    p = np.ones(5)
    np.testing.assert_array_equal(np.asarray(f(p, np.ones(5))), 0.5)
    np.testing.assert_array_equal(p, 1)


def test_assignment_into_numpy_arrays() -> None:
    """They are updated in the memory that they were copied to."""

    @jt.jit(device="cuda")
    def f(x: Any) -> Any:
        x[2:] *= 2
        return x.sum()

    x = np.arange(5.0)
    assert float(f(x)) == 19
    np.testing.assert_array_equal(x, [0, 1, 4, 6, 8])


def test_an_argument_that_is_overwritten_and_returned() -> None:
    v = np.ones(4, np.float32)
    f = jt.jit(lambda m, v: jt.sum(m, axis=0, out=v), device="cuda")
    np.testing.assert_array_equal(np.asarray(f(np.ones((3, 4), np.float32), v)), 3)
    np.testing.assert_array_equal(v, 3)


def test_a_call_that_fails_takes_what_was_donated() -> None:
    f = jt.jit(lambda x, i: jt.at(x)[i].add(1.0), donate_argnums=0)
    x = put(np.zeros(4))
    y = f(x, put(np.array([9])))
    for array, error in ((x, DeviceError), (y, IndexError)):
        with pytest.raises(error):
            np.asarray(array)
    np.testing.assert_array_equal(np.asarray(f(put(np.zeros(4)), put(np.array([1])))), [0, 1, 0, 0])


def test_in_place_can_be_required() -> None:
    def f(x: Any, i: Any) -> Any:
        return jt.at(x)[i].set(1.0)

    x, i = put(np.zeros(4)), put(np.array([1]))
    with pytest.raises(ValueError, match="belongs to somebody else"):
        jt.jit(f, inplace="require")(x, i)
    y = jt.jit(f, inplace="require", donate_argnums=0)(x, i)
    np.testing.assert_array_equal(np.asarray(y), [0, 1, 0, 0])
