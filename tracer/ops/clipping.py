"""Elements, arrays and trees of arrays that are not to be larger than a bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import ufuncs
from ..arrays.common import array, axis_tuple
from ..arrays.elementwise import clip, where
from ..arrays.reductions import absolute_square, sum_
from ..arrays.table import eagerly, function
from ..core.trace import current_trace
from ..core.tracers import Tracer
from ..data import pytree
from ..linear_algebra.factored import global_norm
from .checks import floats


@function("ops.clip_by_value", composed=True)
def clip_by_value(x: Any, low: Any, high: Any) -> Tracer:
    """`x` with `low` for what is lower, `high` for what is higher: `np.clip`.

    >>> jt.ops.clip_by_value(np.array([-2.0, 0.5, 9.0]), -1, 1)
    array([-1. ,  0.5,  1. ])
    """
    return clip(x, low, high)


@function("ops.clip_by_norm", composed=True)
def clip_by_norm(x: Any, max_norm: Any, axis: Any = None) -> Tracer:
    """`x`, or where its Euclidean norm is larger than `max_norm`, x scaled to that norm.

    With `axis` (one or several) each part along these axes has a norm of its own. Integers give
    float64. Where the norm is infinite or NaN the result is NaN. The derivative is right at 0, too.

    >>> jt.ops.clip_by_norm(np.array([3.0, 4.0]), 1)
    array([0.6, 0.8])
    """
    a = floats(x)
    axes = axis_tuple(axis, a.ndim, a)
    squares = sum_(absolute_square(a), axis=axes, keepdims=True)
    bound = array(max_norm).astype(squares.dtype)
    large = ~(squares <= bound * bound)
    norm = ufuncs.apply(np.sqrt, where(large, squares, 1.0))
    return a * where(large, _share(bound, norm), 1.0).astype(a.dtype)


def _share(bound: Tracer, norm: Tracer) -> Tracer:
    """What each element is multiplied with. A norm that is no number has to be seen afterwards."""
    return where(ufuncs.apply(np.isfinite, norm), bound / norm, math.nan)


def _clip_by_global_norm(tree: Any, max_norm: Any, norm: Any = None) -> tuple[Any, Tracer]:
    """A tree of arrays, such as gradients, scaled so that all of them together have a norm of at most
    `max_norm`; and the norm that they had.

    The arrays of the tree stay as they are where the norm is small enough; where it is infinite or NaN
    they become NaN. `norm` is their norm, if it is known already.

    >>> jt.ops.clip_by_global_norm({"w": np.array([3.0]), "b": np.array([4.0])}, 1)
    ({'w': array([0.6]), 'b': array([0.8])}, np.float64(5.0))
    """
    leaves, structure = pytree.flatten(tree)
    parts = [floats(x) for x in leaves]
    total = global_norm(parts) if norm is None else array(norm)
    bound = array(max_norm).astype(total.dtype)
    large = ~(total <= bound)
    share = where(large, _share(bound, where(large, total, 1.0)), 1.0)
    clipped = [x * share.astype(x.dtype) for x in parts]
    return pytree.unflatten(structure, clipped), total


def _of_any_tree(tree: Any, max_norm: Any, norm: Any = None) -> tuple[Any, Any]:
    """Outside of traces, and for trees whose containers are classes."""
    if current_trace() is not None:
        return _clip_by_global_norm(tree, max_norm, norm)
    leaves, structure = pytree.flatten(tree)

    def flat(*parts: Any) -> tuple[Any, ...]:
        clipped, total = _clip_by_global_norm(list(parts), max_norm, norm)
        return (*clipped, total)

    *clipped, total = eagerly(flat)(*leaves)
    return pytree.unflatten(structure, clipped), total


_clip_by_global_norm.__name__ = "clip_by_global_norm"
_of_any_tree.__doc__ = _clip_by_global_norm.__doc__
function("ops.clip_by_global_norm", reference=_of_any_tree)(_clip_by_global_norm)
