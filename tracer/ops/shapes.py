"""The same elements in another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..arrays.common import array, axis_index
from ..arrays.movement import broadcast_to
from ..arrays.table import function
from ..core.tracers import Tracer
from .checks import refuse_shapes


@function("ops.reshape_dims", composed=True)
def reshape_dims(x: Any, dims: Sequence[Any]) -> Tracer:
    """`x` with neighbouring axes merged: [0, [1, 2]] keeps axis 0 and makes one of the axes 1 and 2.

    `dims` names every axis of x once, in order. An empty list is a new axis of size 1.

    >>> jt.ops.reshape_dims(np.zeros((2, 3, 4)), [0, [1, 2]]).shape
    (2, 12)
    """
    a = array(x)
    named = [d if isinstance(d, (list, tuple)) else [d] for d in dims]
    groups = [[axis_index(d, a.ndim, a) for d in group] for group in named]
    if [d for group in groups for d in group] != list(range(a.ndim)):
        refuse_shapes(
            f"reshape_dims: dims={list(dims)} does not name each of {a.ndim} axes once, in order",
            "merge neighbours, [0, [1, 2]]; transpose first to merge others.",
            x=a,
        )
    return a.reshape([math.prod(a.shape[d] for d in group) for group in groups])


@function("ops.grayscale_to_rgb", composed=True)
def grayscale_to_rgb(images: Any, axis: int = -1) -> Tracer:
    """Images of one channel as images of three equal channels; `axis` is that of the channels.

    >>> jt.ops.grayscale_to_rgb(np.zeros((8, 6, 1))).shape
    (8, 6, 3)
    """
    a = array(images)
    axis = axis_index(axis, a.ndim, a)
    if a.shape[axis] != 1:
        refuse_shapes(
            f"grayscale_to_rgb: there are {a.shape[axis]} channels along axis {axis}",
            "give images of one channel, images[..., None] if they have no axis for it.",
            images=a,
        )
    return broadcast_to(a, (*a.shape[:axis], 3, *a.shape[axis + 1 :])).copy()
