"""The table of rows: the name of each, and what makes its compiled function from a float type."""

from collections.abc import Callable
from typing import Any

from numba import njit

ROWS: dict[str, Callable[..., Any]] = {}

parallel = njit(parallel=True, fastmath=True)


def row(make: Callable[..., Any]) -> Callable[..., Any]:
    ROWS[make.__name__] = make
    return make
