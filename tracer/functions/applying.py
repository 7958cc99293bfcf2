"""Functions that apply the user's own: along an axis, over several, at every place of a grid."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays.as_arrays import asarray
from ..arrays.common import array, axis_index, ints
from ..arrays.creation import indices
from ..arrays.movement import expand_dims, moveaxis
from ..arrays.table import function
from ..core.tracers import Tracer


@function("apply_along_axis")
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Tracer:
    """`func1d` is traced once, and batched over all rows."""
    from ..transforms.vmap import vmap  # with nine modules, which most first calls do without

    x = array(arr)
    axis = axis_index(axis, x.ndim, x)
    rows = moveaxis(x, axis, -1)
    lead = rows.shape[:-1]
    if math.prod(lead) == 0:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    flat = rows.reshape((math.prod(lead), rows.shape[-1]))
    results = array(vmap(lambda row: array(func1d(row, *args, **kwargs)))(flat))
    results = results.reshape((*lead, *results.shape[1:]))
    own = results.ndim - len(lead)
    return moveaxis(results, range(len(lead), results.ndim), range(axis, axis + own))


@function("apply_over_axes")
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Tracer:
    x = asarray(a)
    rank = x.ndim
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        axis = axis_index(axis, rank) if rank else operator.index(axis)
        result = array(func(x, axis))
        x = result if result.ndim == x.ndim else expand_dims(result, axis)
        if x.ndim != rank:
            raise ValueError("function is not returning an array of the correct shape")
    return x


@function("fromfunction", creates=True)
def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    grids = indices(ints(shape), dtype=dtype)
    return function(*(grids[i] for i in range(len(ints(shape)))), **kwargs)
