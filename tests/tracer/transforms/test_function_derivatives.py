"""Derivatives of every call of the table: both modes against central differences, and their dtypes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls import Array, Call
from function_calls import CALLS
from samples import by_eights, told

import jitney as jt
from jitney.ir.types import C128, F32, F64, is_inexact
from jitney.tracer.data import pytree

# Whose derivative is not found by moving arguments a little, and why.
UNMOVED = {
    "float32": "rounds more than that",
    "complex64": "rounds more than that",
    "result_type": "gives a dtype",
    "x.dtype": "gives a dtype",
    "einsum_path": "gives text",
    "special.": "see test_special",
    "segment_max": "is infinite where a segment is empty",
    "segment_min": "is infinite where a segment is empty",
}
REAL = ("histogram", "period")  # of real numbers, and of others only in NumPy


def named(text: str, names: Any) -> bool:
    return any(name in text for name in names)


MOVED = [call for call in CALLS if not named(call.expression, UNMOVED)]


def takes(call: Call, arrays: list[Array]) -> bool:
    """Whether NumPy computes the call."""
    try:
        call.function(*(x.copy() for x in arrays))
    except (TypeError, ValueError, AttributeError):
        return False
    return True


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@by_eights(MOVED)
def test_derivatives_are_those_of_differences(calls: list[Call]) -> None:
    for call in calls:
        arrays = call.arguments(F64, seed=3)
        if any(x.dtype == F64 for x in arrays):
            with told(call):
                jt.check_grads(call.function, arrays)


@by_eights([c for c in MOVED if not named(c.expression, REAL)])
def test_complex_derivatives_are_those_of_differences(calls: list[Call]) -> None:
    for call in calls:
        arrays = call.arguments(C128, seed=3)
        if any(x.dtype == C128 for x in arrays) and takes(call, arrays):
            with told(call):
                jt.check_grads(call.function, arrays)


@by_eights([c for c in MOVED if not named(c.expression, ("choose",))])
def test_gradients_have_the_dtype_of_the_arguments(calls: list[Call]) -> None:
    for call in calls:
        with told(call):
            check_dtypes(call, call.arguments(F32, seed=3))


def check_dtypes(call: Call, arrays: list[Array]) -> None:
    moved = [i for i, x in enumerate(arrays) if x.dtype == F32]
    if not moved or not takes(call, arrays):
        return
    out, backward = jt.vjp(floats_of(call, arrays, moved), *(arrays[i] for i in moved))
    if out:
        for gradient in backward([np.ones_like(y) for y in out]):
            assert np.asarray(gradient).dtype == F32


def floats_of(call: Call, arrays: list[Array], moved: list[int]) -> Callable[..., list[Any]]:
    """The results of the call that can be differentiated, as a function of some of its arguments."""

    def f(*given: Any) -> list[Any]:
        whole: list[Any] = list(arrays)
        for i, x in zip(moved, given, strict=True):
            whole[i] = x
        leaves = pytree.flatten(call.function(*whole))[0]
        return [y for y in leaves if hasattr(y, "shape") and is_inexact(np.dtype(y.dtype))]

    return f
