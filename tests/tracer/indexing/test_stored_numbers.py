"""Numbers that are assigned to integers which cannot hold them: NumPy makes a scalar of its own a Python
integer first, where the destination has a sign, and casts whatever comes as an array."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

Array = np.ndarray[Any, Any]


def whole(a: Array, v: Any) -> Array:
    a.reshape(3, 1)[1][()] = v
    return a


def element(a: Array, v: Any) -> Array:
    a[1] = v
    return a


def part(a: Array, v: Any) -> Array:
    a[1:] = v
    return a


def picked(a: Array, v: Any) -> Array:
    a[[0, 2]] = v
    return a


def masked(a: Array, v: Any) -> Array:
    a[a == 0] = v
    return a


def in_a_loop(a: Array, v: Any) -> Array:
    for i in range(len(a)):
        a[i] = v * i
    return a


def of_a_list(a: Array, v: Any) -> Array:
    return np.array([v, v], dtype=a.dtype)


def as_array(a: Array, v: Any) -> Array:
    return np.asarray(v, dtype=a.dtype)


WAYS = (whole, element, part, picked, masked, in_a_loop, of_a_list, as_array)
COMPILED = {way: jt.jit(way) for way in WAYS}
VALUES = (
    *(np.float64(x) for x in (np.nan, np.inf, -np.inf, 127.9, 128.0, -128.9, -129.0, 2.0**63)),
    *(np.float64(-(2.0**63)), np.float32(-(2.0**31)), np.float32(np.nan)),
    *(np.int64(300), np.int64(-129), np.int64(-1), np.uint64(2**64 - 1), np.uint64(100)),
    *(300, -129, 100, np.array(300.0), np.array(np.nan)),
)
CASES = [*((way, dtype) for way in WAYS for dtype in ("i1", "u1")), (element, "i8"), (part, "i4")]


def outcome(f: Callable[..., Any], dtype: str, value: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = f(np.zeros(3, dtype), value)
    except (ValueError, OverflowError) as error:
        return type(error).__name__
    return result.dtype, result.tolist()


@pytest.mark.parametrize(("way", "dtype"), CASES)
def test_numbers_that_integers_cannot_hold(way: Callable[..., Any], dtype: str) -> None:
    for value in VALUES:
        if dtype == "u1" and not np.isfinite(value):
            continue  # C does not say what they become
        assert outcome(COMPILED[way], dtype, value) == outcome(way, dtype, value), value


def number(x: Any) -> Any:
    return int(x[0])


def item(x: Any) -> Any:
    return x[0].item()


def listed(x: Any) -> Any:
    return x.tolist()


@pytest.mark.parametrize("f", [number, item, listed])
def test_unsigned_numbers_as_pythons(f: Callable[..., Any]) -> None:
    compiled = jt.jit(f)
    small = compiled(np.array([2**63 - 1], np.uint64))
    assert small in (2**63 - 1, [2**63 - 1])
    assert type(np.ravel(np.array(small, object))[0]) is int
    with pytest.raises(OverflowError, match="18446744073709551615"):
        compiled(np.array([2**64 - 1], np.uint64))


def test_which_part_of_an_index_is_looked_at_first() -> None:
    def mixed(x: Any) -> Any:
        return x[0.0:, 0.0]

    def sliced(x: Any) -> Any:
        return x[0.0:]

    with pytest.raises(IndexError, match="only integers, slices"):
        jt.jit(mixed)(np.ones((2, 2)))
    with pytest.raises(TypeError, match="slice indices must be integers"):
        jt.jit(sliced)(np.ones((2, 2)))
