"""`jt.r_` and `jt.c_`: arrays, numbers and ranges written in brackets, joined; traced ones, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.common import array, holds_tracers, kind
from ..arrays.creation import arange, linspace
from ..arrays.movement import concatenate
from ..arrays.table import ArrayFunction
from ..core.tracers import Tracer, wrap
from ..data.promotion import result_dtype


class Concatenator:
    """`jt.r_[0, x, 1:10:3]`: as np.r_, which cannot take traced arrays."""

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int) -> None:
        self._defaults = axis, ndmin, trans1d
        self._numpy: Any = getattr(np, name)
        self._function = ArrayFunction(f"{name}[...]", self._joined, self._numpy.__getitem__, None)

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        bounds = [b for s in items if isinstance(s, slice) for b in (s.start, s.stop, s.step)]
        if holds_tracers(items) or holds_tracers(bounds):
            return self._function.trace((items,), {})
        return self._numpy[key]

    def _joined(self, items: tuple[Any, ...]) -> Tracer:
        axis, ndmin, trans1d = self._defaults
        if isinstance(items[0], str):
            axis, ndmin, trans1d = _directive(items[0], self._defaults)
            items = items[1:]
        parts = [_part(item, ndmin, trans1d) for item in items]
        kinds = [
            p.dtype if isinstance(x, slice) or np.ndim(x) else kind(x)
            for x, p in zip(items, parts, strict=True)
        ]
        dtype = result_dtype(*kinds)
        return wrap_array(concatenate([p.astype(dtype) for p in parts], axis))

    def __repr__(self) -> str:
        return f"<jitney.{self._function.name}>"


def wrap_array(x: Tracer) -> Tracer:
    """The value as an array, not as a scalar."""
    return wrap(x.value, scalar=False)


def _directive(text: str, defaults: tuple[int, int, int]) -> tuple[int, int, int]:
    """ "axis", "axis,ndmin" or "axis,ndmin,place of 1-d arrays"."""
    if text in ("r", "c"):
        raise TypeError(f"{text!r} asks for a np.matrix, which compiled code does not have")
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"unknown special directive {text!r}") from None
    axis, ndmin, trans1d = (*numbers, *defaults[len(numbers) :])[:3]
    return axis, ndmin, trans1d


def _part(item: Any, ndmin: int, trans1d: int) -> Tracer:
    if isinstance(item, slice):
        made = _range(item)
        own = 1
    else:
        made = array(item)
        own = made.ndim
    if own >= ndmin:
        return made
    made = made.reshape((1,) * (ndmin - own) + made.shape)
    if trans1d == -1 or own == 0:
        return made
    gap = ndmin - own
    first = trans1d + gap + 1 if trans1d < 0 else trans1d
    axes = list(range(ndmin))
    return made.transpose(axes[:first] + axes[gap:] + axes[first:gap])


def _range(item: slice) -> Tracer:
    step, start = item.step, 0 if item.start is None else item.start
    if isinstance(step, complex):
        points: Tracer = linspace(start, item.stop, int(abs(step)))
        return points
    return arange(start, item.stop, 1 if step is None else step)


r_ = Concatenator("r_", 0, 1, -1)
c_ = Concatenator("c_", -1, 2, 0)
