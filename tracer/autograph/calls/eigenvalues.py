"""Eigenvalues (before NumPy 2.5) and roots are real numbers where all are: NumPy looks at them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.common import array
from ...arrays.table import BY_NUMPY, holds_tracer
from ...core.trace import current_trace
from ...data import pytree
from ..logic import if_exp


def replaced_eigenvalues(function: Any) -> Callable[..., Any] | None:
    """What is called in place of a function whose results are complex only if eigenvalues are."""
    looks = (np.roots,) if _always_complex() else (np.roots, np.linalg.eig, np.linalg.eigvals)
    return _looking(function) if function in looks else None


@functools.cache
def _always_complex() -> bool:
    """Whether eigenvalues do not depend on values for their dtype: since NumPy 2.5."""
    return np.linalg.eigvals(np.eye(1)).dtype.kind == "c"


def _looking(function: Any) -> Callable[..., Any]:
    @functools.wraps(function, updated=())
    def call(x: Any) -> Any:
        if not holds_tracer((x,)):
            return function(x)
        result = BY_NUMPY[function](x)
        if array(x).dtype.kind == "c" or _is_one_of_many():
            return result
        values = pytree.flatten(result)[0][0]
        return _real_if_all_are(values, result)

    return call


def _real_if_all_are(values: Any, result: Any) -> Any:
    are_real = np.all(values.imag == 0)
    return if_exp(are_real, lambda: pytree.tree_map(lambda z: z.real, result), lambda: result)


def complex_eig(x: Any) -> tuple[Any, Any]:
    """Complex eigenvalues, with vectors as NumPy has them."""
    values, vectors = BY_NUMPY[np.linalg.eig](x)
    if array(x).dtype.kind == "c" or _is_one_of_many():
        return values, vectors
    return values, _real_if_all_are(values, vectors)


def _is_one_of_many() -> bool:
    """Whether this is an example under `vmap`: results of all examples are of one dtype."""
    trace = current_trace()
    while trace is not None and trace.what not in ("vmap", "vectorize"):
        trace = trace.parent
    return trace is not None
