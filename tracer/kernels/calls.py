"""Functions that compile themselves where nothing is traced, and arrays for their results."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..core.trace import current_trace
from ..data.callables import Function
from ..jit.decorator import jit
from ..messages import errors
from ..messages.errors import complain


def compiled_outside(function: Function) -> Function:
    """`function`, compiled where nothing is traced; in what is traced a part of that."""
    compiled = jit(function)

    @functools.wraps(function, updated=())
    def call(*args: Any) -> Any:
        return (compiled if current_trace() is None else function)(*args)

    return call


def stored(results: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """Write results to the arrays that the caller gave."""
    into = out if isinstance(out, tuple) else (out,)
    if len(into) != len(results):
        complain(
            errors.TransformError,
            f"out= has {len(into)} arrays for {len(results)} results",
            "give one array for each result, or None.",
        )
    stored = []
    for x, target in zip(results, into, strict=True):
        if target is not None:
            refuse_shape(x, target)
            np.copyto(target, x, casting="same_kind")
        stored.append(x if target is None else target)
    return tuple(stored)


def refuse_shape(x: Any, target: Any) -> None:
    """ShapeError unless a result like `x` fits into the array `target`."""
    if np.shape(x) != np.shape(target):
        complain(
            errors.ShapeError,
            f"a result of shape {np.shape(x)} does not fit into out= of shape {np.shape(target)}",
            "give an array of the result's shape.",
        )
