"""`x[lo:hi]` with traced bounds: the view of a window whose length is a value.

Bounds mean what they mean in Python: negative ones count from the end, and what leaves the array is
cut off. The static index beside such slices is applied first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Value
from ...ir.record import record
from ...ir.types import I64, is_integer
from ..arrays.common import build, known_array
from ..core import views
from ..core.effects import check
from ..core.linear_forms import same_value
from ..core.trace import lifted, require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..messages import errors
from ..messages.errors import complain
from .bounded import Bounded, bounded, number


def is_cut(item: Any) -> bool:
    """Whether an item of an index is a slice with a bound that is known only at run time."""
    if not isinstance(item, slice):
        return False
    return any(isinstance(i, Tracer) and known_array(i) is None for i in _bounds(item))


def _bounds(item: slice) -> tuple[Any, Any, Any]:
    return item.start, item.stop, item.step


@record(frozen=False)
class Window:
    """A part of an axis: where it starts, how many elements it has, and how far they are apart."""

    start: Value
    count: Value
    step: int


def window(item: slice, size: Any) -> Window:
    """What a slice means for an axis of a size, which may be a traced int, too."""
    step = 1 if item.step is None else item.step
    if isinstance(step, Tracer):
        constant = known_array(step)
        if constant is None:
            complain(
                errors.TracerIndexError,
                "the step of a slice is a traced value, known only when the compiled function runs",
                "make it static, or index with jt.arange(n) * step + start.",
                operands={"step": step},
            )
        step = int(constant)
    step = operator.index(step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    b = build()
    least, most = (0, size) if step > 0 else (-1, _minus(b, size, 1))
    first, last = (least, most) if step > 0 else (most, least)
    start = _bound(b, item.start, size, least, most, first)
    stop = _bound(b, item.stop, size, least, most, last)
    way = _minus(b, stop, start) if step > 0 else _minus(b, start, stop)
    if abs(step) > 1:
        way = _plus(b, way, abs(step) - 1)
        way = _apply(b, "floor_divide", way, abs(step))
    dropped = _dropped(item, size) if step == 1 else None
    if dropped is not None:  # one form for all: x[1:] is as long as x[:-1]
        way = _minus(b, size, dropped)
    count = _apply(b, "maximum", way, 0)
    return Window(_value(b, start), _value(b, count), step)


def _dropped(item: slice, size: Any) -> int | None:
    """How many elements of an axis whose size is traced `x[2:-1]` leaves out, if it has as many."""
    start, stop = item.start, item.stop
    if isinstance(size, int) or any(isinstance(i, Tracer) for i in (start, stop)):
        return None
    before = 0 if start is None else operator.index(start)
    behind = 0 if stop is None else -operator.index(stop)
    fits = before >= 0 and (stop is None or behind > 0)
    return before + behind if fits else None


def has_traced_step(item: Any) -> bool:
    """Whether an item of an index is a slice with a step that is known only at run time."""
    step = item.step if isinstance(item, slice) else None
    return isinstance(step, Tracer) and known_array(step) is None


def strided(item: slice, size: Any, most: int) -> Any:
    """The positions that are assigned to by a slice with a traced step, which has to be positive, of an
    axis of a size, `most` at the most."""
    b, step = build(), as_value(item.step, I64)
    check(item.step != 0, "slice step cannot be zero", error="ValueError")
    check(
        item.step > 0,
        "a step of a slice that is a value must not be negative",
        error="ValueError",
    )
    start = _bound(b, item.start, size, 0, size, 0)
    way = _minus(b, _minus(b, _bound(b, item.stop, size, 0, size, size), start), 1)
    count = _apply(b, "maximum", _plus(b, b.op("floor_divide", _value(b, way), step), 1), 0)
    each = b.mul(b.iota(shape=(most,), dtype=I64, axis=0), b.broadcast_to(step, (most,)))
    places = b.add(each, b.broadcast_to(_value(b, start), (most,)))
    return bounded(wrap(places, scalar=False), {0: number(wrap(_value(b, count)))})


def _bound(b: Builder, bound: Any, size: Any, least: Any, most: Any, default: Any) -> Any:
    if bound is None:
        return default
    constant = known_array(bound) if isinstance(bound, Tracer) else None
    if constant is not None:
        bound = int(constant)
    if not isinstance(bound, Tracer):
        bound = operator.index(bound)
        if isinstance(size, int):
            bound = bound + size if bound < 0 else bound
            return min(max(bound, least), most)
        bound = _plus(b, size, bound) if bound < 0 else bound
        return _apply(b, "minimum", _apply(b, "maximum", bound, least), most)
    if not (is_integer(bound.dtype) and bound.shape == ()):
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method"
            if bound.shape == ()
            else "only integer scalar arrays can be converted to a scalar index"
        )
    value = as_value(bound, I64)
    from_end = b.add(value, _value(b, size))
    value = b.select(b.lt(value, b.const(0, I64)), from_end, value)
    return _apply(b, "minimum", _apply(b, "maximum", value, least), most)


def _value(b: Builder, x: Any) -> Value:
    if isinstance(x, Value):
        return x
    return b.const(x, I64) if isinstance(x, int) else as_value(x, I64)


_OF_INTS: dict[str, Callable[[int, int], int]] = {
    "maximum": max,
    "minimum": min,
    "add": operator.add,
    "sub": operator.sub,
    "floor_divide": operator.floordiv,
}


def _apply(b: Builder, name: str, x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int):
        return _OF_INTS[name](x, y)
    if name in ("add", "sub") and isinstance(y, int) and y == 0:
        return x
    return b.op(name, _value(b, x), _value(b, y))


def _minus(b: Builder, x: Any, y: Any) -> Any:
    return _apply(b, "sub", x, y)


def _plus(b: Builder, x: Any, y: Any) -> Any:
    return _apply(b, "add", x, y)


def cut(x: Tracer, windows: Mapping[int, Window], counts: Mapping[int, Any] = {}) -> Any:
    """The view of windows of an array. `counts` are those of the other axes that are bounded."""
    axes = tuple(sorted(windows))
    chosen = [windows[a] for a in axes]
    steps = tuple(w.step for w in chosen)
    ends = [w.start for w in chosen] + [w.count for w in chosen]
    attrs: dict[str, Any] = {"axes": axes, "steps": steps}
    new = {**counts, **{a: number(wrap(w.count)) for a, w in windows.items()}}
    trace = require_trace()
    if x._storage.trace is not trace:
        value = build().bounded_slice(as_value(x), *ends, **attrs)
        return bounded(views.outer_part(x, value), new)
    by = {a: w.step for a, w in windows.items()}
    strides = tuple(s * by.get(a, 1) for a, s in enumerate(x.element_strides))
    part = views.view(
        x,
        lambda b, v: b.bounded_slice(v, *lifted(b, ends, trace), **attrs),
        lambda b, v, u: b.bounded_update_slice(v, u, *lifted(b, ends, trace), **attrs),
        strides=strides,
    )
    return bounded(part, new)


def same_index(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two indices are equal, item by item: what is traced is the same value."""
    return len(a) == len(b) and all(_same_item(x, y) for x, y in zip(a, b, strict=True))


def _same_item(x: Any, y: Any) -> bool:
    if isinstance(x, slice) and isinstance(y, slice):
        return all(_same_item(p, q) for p, q in zip(_bounds(x), _bounds(y), strict=True))
    if isinstance(x, Tracer) and isinstance(y, Tracer):
        return x.ndim == y.ndim == 0 and same_value(as_value(x), as_value(y))
    if isinstance(x, (Tracer, np.ndarray, Bounded)) or isinstance(y, (Tracer, np.ndarray, Bounded)):
        return False
    return type(x) is type(y) and bool(x == y)
