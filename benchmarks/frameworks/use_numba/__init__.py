"""Numba: explicit loops under `njit(parallel=True, fastmath=True)`, constants in the row's dtype.

A bare 0.5 is a float64 there and would turn a float32 kernel into double arithmetic; so a row is a
function of its float type. Small calls and scalar loops are plain `njit`: a parallel region costs more
than their work. There is no automatic differentiation; gradients that a user would write out by hand
are, the others are left out.
"""

from typing import Any

import numba
import numpy as np

from ...rows import Row
from . import (  # noqa: F401  (they fill the table)
    calls,
    decompositions,
    indexing,
    learning,
    loops,
    matrices,
    networks,
    pointwise,
    products,
    sampling,
)
from .table import ROWS

__all__ = ["ROWS", "arrays", "prepare", "version", "wait"]


def version() -> str:
    return str(numba.__version__)


def prepare(row: Row, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    function = ROWS[row.implementation](np.dtype(row.dtype).type)
    if row.implementation == "call_dict":
        return function, (tuple(inputs[0][key] for key in sorted(inputs[0])),)
    return function, tuple(a[()] if getattr(a, "ndim", 1) == 0 else a for a in inputs)


def wait(result: Any) -> Any:
    return result


def arrays(result: Any) -> Any:
    return result
