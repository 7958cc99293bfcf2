"""`np.testing`'s assertions of traced values: they hold, or fail, at each call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ...arrays.common import array, check_values
from ...arrays.table import holds_tracer
from ..answers import class_of

_MODULE = "numpy.testing._private.utils"


def replaced_assertion(function: Any) -> Callable[..., Any] | None:
    """What is called in place of an assertion of NumPy's."""
    if type(function) is not FunctionType or function.__module__ != _MODULE:
        return None
    formula = _ASSERTIONS.get(function.__name__)
    if formula is None or getattr(sys.modules[_MODULE], function.__name__) is not function:
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        return (formula if holds_tracer((*args[:2], *kwargs.values())) else function)(
            *args, **kwargs
        )

    return call


def _both(x: Any, y: Any, strict: bool = False) -> tuple[Any, Any]:
    x, y = array(x), array(y)
    loose = () in (x.shape, y.shape) and not strict
    if (x.shape != y.shape and not loose) or (strict and x.dtype != y.dtype):
        shown = f"(shapes {x.shape}, {y.shape} mismatch)"
        raise AssertionError(f"\nArrays are not equal\n\n{shown}")
    return x, y


def _check(holds: Any, what: str, message: Any) -> None:
    said = f": {message}" if isinstance(message, str) and message else ""
    check_values(np.all(holds), f"{what}{said}", AssertionError)


def _alike(x: Any, y: Any, near: Any, nan: bool = True) -> Any:
    """Whether elements are near each other, or the same infinity, or both NaN."""
    alike = (x == y) | (near & np.isfinite(x) & np.isfinite(y))
    return alike | (np.isnan(x) & np.isnan(y)) if nan else alike


def _allclose(
    actual: Any,
    desired: Any,
    rtol: Any = 1e-07,
    atol: Any = 0,
    equal_nan: bool = True,
    err_msg: Any = "",
    verbose: bool = True,
    *,
    strict: bool = False,
) -> None:
    x, y = _both(actual, desired, strict)
    near = np.abs(x - y) <= atol + rtol * np.abs(y)
    _check(_alike(x, y, near, equal_nan), f"Not equal to tolerance {rtol=}, {atol=}", err_msg)


def _equal(
    x: Any, y: Any, err_msg: Any = "", verbose: bool = True, *, strict: bool = False
) -> None:
    x, y = _both(x, y, strict)
    _check(_alike(x, y, x == y), "Arrays are not equal", err_msg)


def _almost_equal(
    x: Any, y: Any, decimal: int = 6, err_msg: Any = "", verbose: bool = True
) -> None:
    x, y = _both(x, y)
    near = np.abs(x - y) < 1.5 * 10.0**-decimal
    _check(_alike(x, y, near), f"Arrays are not almost equal to {decimal} decimals", err_msg)


def _less(x: Any, y: Any, err_msg: Any = "", verbose: bool = True, *, strict: bool = False) -> None:
    x, y = _both(x, y, strict)
    _check(
        (x < y) | (np.isnan(x) & np.isnan(y)), "Arrays are not strictly ordered `x < y`", err_msg
    )


def _equal_trees(
    actual: Any, desired: Any, err_msg: Any = "", verbose: bool = True, *, strict: bool = False
) -> None:
    for kind in (dict, (list, tuple)):
        if isinstance(desired, kind) and isinstance(actual, kind):
            keys = desired if kind is dict else range(len(desired))
            if len(actual) != len(desired) or any(kind is dict and k not in actual for k in keys):
                raise AssertionError(f"\nItems are not equal: {err_msg}")
            for key in keys:
                _equal_trees(actual[key], desired[key], err_msg, verbose)
            return
    classes = class_of(actual), class_of(desired)
    if np.ndarray in classes:
        _equal(actual, desired, err_msg, verbose, strict=strict)
    elif not all(issubclass(c, (int, float, complex, np.generic)) for c in classes):
        raise AssertionError(f"\nItems are not equal: {err_msg}")
    else:
        for x, y in _real_parts(actual, desired):  # of numbers 0.0 is not -0.0
            same = (x == y) & ((x != 0) | (np.signbit(x * 1.0) == np.signbit(y * 1.0)))
            _check(same | (np.isnan(x) & np.isnan(y)), "Items are not equal", err_msg)


def _almost_equal_parts(
    actual: Any, desired: Any, decimal: int = 7, err_msg: Any = "", verbose: bool = True
) -> None:
    for x, y in _real_parts(actual, desired):
        _almost_equal(x, y, decimal, err_msg)


def _real_parts(x: Any, y: Any) -> list[tuple[Any, Any]]:
    x, y = array(x), array(y)
    return [(x.real, y.real), (x.imag, y.imag)] if "c" in x.dtype.kind + y.dtype.kind else [(x, y)]


def _true(val: Any, msg: Any = "") -> None:
    check_values(array(val) != 0, msg if isinstance(msg, str) else "", AssertionError)


_ASSERTIONS: dict[str, Callable[..., Any]] = {
    "assert_": _true,
    "assert_equal": _equal_trees,
    "assert_almost_equal": _almost_equal_parts,
    "assert_allclose": _allclose,
    "assert_array_equal": _equal,
    "assert_array_almost_equal": _almost_equal,
    "assert_array_less": _less,
}
