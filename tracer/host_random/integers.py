"""Between which integers is drawn: NumPy's rules for low, high, dtypes and what may come."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import I64
from ..arrays.common import array
from ..core.tracers import Tracer, as_value
from .drawing import require_that

_U64 = np.dtype(np.uint64)


def bounds(low: Any, high: Any, dtype: Any, endpoint: bool) -> tuple[Value, Value, np.dtype[Any]]:
    """The first and the last number that may be drawn, and the dtype of the draw."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "biu":
        raise TypeError(f"Unsupported dtype {dtype!r} for integers")
    if high is None:
        low, high = 0, low
    low, high = _plain(low), _plain(high)
    if isinstance(low, int) and isinstance(high, int):
        last = high if endpoint else high - 1
        _check_known(low, last, dtype, endpoint)
        if low > last or not _fits(low, dtype) or not _fits(last, dtype):
            low = last = 0  # an error comes before it is drawn
        return _constant(low, dtype), _constant(last, dtype), dtype
    first, end = _traced(low, dtype), _traced(high, dtype)
    final = end if endpoint else end - 1
    if isinstance(high, int) and not endpoint:
        final = _traced(high - 1, dtype)
    order = "low > high" if endpoint else "low >= high"
    require_that(np.all(first <= end if endpoint else first < end), order)
    if dtype not in (I64, _U64):
        span = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        require_that(np.all(first >= int(span[0])), f"low is out of bounds for {dtype}")
        require_that(np.all(final <= int(span[1])), f"high is out of bounds for {dtype}")
    return as_value(first), as_value(final), dtype


def _plain(x: Any) -> Any:
    """An int where the value is known."""
    if isinstance(x, (int, np.integer, np.bool_)):
        return int(x)
    if isinstance(x, float) and x == int(x):
        return int(x)
    return x


def _fits(x: int, dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "b":
        return 0 <= x <= 1
    return int(np.iinfo(dtype).min) <= x <= int(np.iinfo(dtype).max)


def _check_known(low: int, last: int, dtype: np.dtype[Any], endpoint: bool) -> None:
    if not _fits(low, dtype):
        require_that(False, f"low is out of bounds for {dtype}")
    elif not _fits(last, dtype) and low <= last:
        require_that(False, f"high is out of bounds for {dtype}")
    elif low > last:
        require_that(False, "low > high" if endpoint else "low >= high")


def _constant(x: int, dtype: np.dtype[Any]) -> Value:
    return as_value(np.uint64(x) if dtype == _U64 else np.int64(x))


def _traced(x: Any, dtype: np.dtype[Any]) -> Any:
    wide = _U64 if dtype == _U64 else I64
    if isinstance(x, int):
        return wide.type(x)
    x = array(x)
    if x.dtype.kind not in "biu":
        raise TypeError(f"integers between numbers of dtype {x.dtype}")
    return array(x, wide) if isinstance(x, Tracer) else x
