"""Of several values one for each element, by conditions or by number: select, choose, piecewise."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.types import BOOL
from ..arrays.common import (
    array,
    broadcast_shape,
    build,
    common_dtype,
    finish,
    index_array,
    kind,
    operand,
    shape_of,
    static_array,
)
from ..arrays.elementwise import clip, where, wrapped
from ..arrays.movement import broadcast_to, stack
from ..arrays.table import function
from ..core import views
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from .selection import check_mode, take_along_axis


@function("select")
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    for i, c in enumerate(condlist):
        if kind(c) != BOOL:
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    choices = [operand(c) for c in choicelist]
    dtype = common_dtype(*choices, operand(default))
    shape = broadcast_shape([*condlist, *choices, operand(default)])
    b = build()
    result = b.broadcast_to(as_value(wrapped(operand(default), dtype), dtype), shape)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        mask = b.broadcast_to(as_value(operand(condition)), shape)
        result = b.select(
            mask, b.broadcast_to(as_value(wrapped(choice, dtype), dtype), shape), result
        )
    return wrap(result, scalar=False)


@function("choose")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    index, mode = index_array(array(a)), check_mode(mode)
    if not isinstance(choices, (list, tuple)):
        choices = list(array(choices))
    choices = [operand(c) for c in choices]
    dtype = common_dtype(*choices)
    parts = [array(c).astype(dtype) for c in choices]
    count = len(parts)
    if mode == "wrap":
        index = index % count
    elif mode == "clip":
        index = clip(index, 0, count - 1)
    else:
        constant = static_array(a)
        if constant is None:
            return _chosen_into(out, _choose_checked(index, parts))
        if constant.size and (constant.min() < 0 or constant.max() >= count):
            raise ValueError("invalid entry in choice array")
    shape = broadcast_shape([index, *parts])
    result = parts[-1]
    for k in range(count - 2, -1, -1):
        result = where(index == k, parts[k], result)
    if result.shape != shape:
        result = broadcast_to(result, shape)
    return _chosen_into(out, result)


def _chosen_into(out: Any, result: Tracer) -> Tracer:
    if isinstance(out, Tracer) and out.shape != result.shape:
        raise TypeError("choose: invalid shape for output array.")
    return finish(wrap(as_value(result)), out)


def _choose_checked(index: Tracer, parts: Sequence[Tracer]) -> Tracer:
    """Chosen by index arrays, which are checked when the compiled function runs."""
    shape = broadcast_shape([index, *parts])
    choices = stack([broadcast_to(p, shape) for p in parts])
    return take_along_axis(choices, broadcast_to(index, shape)[None], 0)[0]


@function("piecewise")
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Each function is given all of x, and its values are taken where the condition holds."""
    a = array(x)
    conditions = [_mask_of(a, c) for c in array([condlist] if _sole(condlist, a) else condlist)]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    if len(funclist) > len(conditions):
        conditions.append(~functools.reduce(operator.or_, conditions))
    result: Any = wrap(build().full(a.shape, 0, a.dtype), scalar=False)
    for condition, f in zip(conditions, funclist, strict=True):
        value = array(f(a, *args, **kw) if callable(f) else f)
        result = where(condition, value.astype(a.dtype), result)
    return wrap_like(as_value(result), (a,), scalar=False, copy=True)


def _sole(condlist: Any, x: Tracer) -> bool:
    """Whether it is one condition, and no list of them, to NumPy."""
    if not shape_of(condlist):
        return True
    first = condlist[0]
    scalar = (
        first.scalar if isinstance(first, Tracer) else not isinstance(first, (list, np.ndarray))
    )
    return scalar and x.ndim != 0


def _mask_of(x: Tracer, condition: Tracer) -> Tracer:
    """A condition as a mask of x's shape: one of its first dims stands for all that follow."""
    mask = condition.astype(bool)
    if mask.shape != x.shape[: mask.ndim]:
        raise IndexError(
            f"boolean index of shape {mask.shape} does not match an array of shape {x.shape}"
        )
    return views.broadcast_to(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), x.shape)
