"""What an index of NumPy means for an array of known shape: `resolve(x, index) -> Plan`.

Of the items of an index (`index_items`) the basic ones make a view; for the rest there are index arrays,
and the position of their dims in the result.

A mode says what an index that is out of range means. Negative ones count from the end first.

    check                an IndexError; of traced indices when the compiled function runs
    clip                 the nearest index that is in range
    wrap                 the index modulo the size of the axis
    fill                 no element: reading gives a fill value, writing does nothing
    promise_in_bounds    there is none: nothing is checked, and negative ones are not counted from
                         the end. (What is out of range all the same is clipped, no memory is at risk)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.record import record, replace
from ...ir.types import I64
from ..arrays.common import build, shape_of
from ..arrays.late_checks import make_certain
from ..core import views
from ..core.effects import check
from ..core.trace import Array, bounds_checked, current_trace
from ..core.tracers import Tracer, as_value, wrap
from ..messages import errors
from ..messages.errors import complain
from .index_items import (
    Integers,
    Mask,
    SliceWindow,
    Truth,
    as_tuple,
    classified,
    expand,
    in_range,
    width,
)


class Subscript:
    """How NumPy makes a view, remembered so that `x[i] += v` need not store twice."""

    __slots__ = ("index",)

    def __init__(self, index: tuple[Any, ...]) -> None:
        self.index = index

    def __call__(self, a: Array) -> Array:
        return a[(*self.index, ...)]  # a view also when only ints are given


@record(frozen=False)
class IndexPlan:
    """A resolved index: `base` is a view with all slices applied; what is left indexes its `axes`.

    `indices` are int64 values of one shape, or empty. Their dims stand at `position` in the result.
    `mask` is a traced boolean array over the axes from `position` on.
    """

    base: Tracer
    items: tuple[Any, ...]  # the basic part
    axes: tuple[int, ...] = ()
    names: tuple[int, ...] = ()  # the axes of x, as the user numbers them
    indices: tuple[Value, ...] = ()
    mode: str = "check"
    position: int = 0
    mask: Tracer | None = None
    valid: Value | None = None  # with mode "fill": which indices are in range
    constant: tuple[Array, ...] | None = None  # the indices, if they are constants and in range
    copied: bool = False  # without index arrays all the same: NumPy copies the base
    scalar: bool = False  # integers for all axes: the result is a NumPy scalar
    view: bool = False  # only 0-d indices: NumPy gives a view
    here: bool = True  # the array is of the current trace

    @property
    def options(self) -> dict[str, Any]:
        """The attributes of a gather."""
        options: dict[str, Any] = {"axes": self.axes, "mode": self.mode}
        return {**options, "names": self.names} if self.mode == "check" else options


MODES = {
    "check": "check",
    "raise": "check",
    "clip": "clip",
    "wrap": "wrap",
    "fill": "fill",
    "drop": "fill",
    "promise_in_bounds": "promise_in_bounds",
}
DEFAULT = "default"  # "check", or "clip" in functions compiled without


def mode_of(mode: Any) -> str:
    """The mode of that name; NumPy's and JAX's names are taken, too."""
    if mode is None:
        return DEFAULT
    if mode not in MODES:
        raise ValueError(f"mode={mode!r}: choose one of {', '.join(map(repr, MODES))}")
    return MODES[mode]


def resolve(x: Tracer, index: Any, mode: str = DEFAULT) -> IndexPlan:
    """Resolve an index of `x`, or raise IndexError or TypeError as NumPy would, with the line."""
    items, gap = expand(x, classified(index, x))
    if mode not in (DEFAULT, "check"):
        items = _outside_as_arrays(x, items)
    copied = any(isinstance(i, Integers) and _is_array(i.value) for i in items)
    if any(isinstance(i, SliceWindow) for i in items) or _is_window(x, items, mode):
        x, items = _windows(x, items, mode)
    advanced = [i for i in items if isinstance(i, (Integers, Mask, Truth))]
    dots = any(i is Ellipsis for i in as_tuple(index))
    if not advanced:
        return replace(_basic(x, items, dots), copied=copied)
    masks = [i for i in advanced if isinstance(i, Mask)]
    if masks:
        return _masked_plan(x, items, masks)
    return _advanced(x, items, dots, gap, mode)


def _outside_as_arrays(x: Tracer, items: Sequence[Any]) -> list[Any]:
    """The items with ints that are out of range as index arrays, which have modes."""
    entries, axis = [], 0
    for item in items:
        if isinstance(item, int) and not -x.shape[axis] <= item < x.shape[axis]:
            item = Integers(np.asarray(item), np.asarray(item), True, 0)
        axis += width(item)
        entries.append(item)
    return entries


def _is_window(x: Tracer, items: Sequence[Any], mode: str) -> bool:
    """Whether an index is traced ints beside parts of axes: the start of a window of known size. So
    an update writes that window, and what it costs does not depend on the size of `x`."""
    parts = any(i is None or (isinstance(i, slice) and i != slice(None)) for i in items)
    return parts and any(isinstance(i, Integers) for i in items) and _are_starts(x, items, mode)


def _are_starts(x: Tracer, items: Sequence[Any], mode: str) -> bool:
    """Whether ints in an index only say where its axes are cut: beside arrays they are arrays, too.
    (A window of an axis of size 1 has no start, which could be checked.)"""
    if any(isinstance(i, (Mask, Truth)) or (isinstance(i, Integers) and i.ndim) for i in items):
        return False
    axes = zip((i for i in items if width(i)), x.shape, strict=True)
    small = any(n == 1 and isinstance(i, Integers) for i, n in axes)
    return not small and mode != "fill" and 0 not in x.shape


def _windows(x: Tracer, items: Sequence[Any], mode: str) -> tuple[Tracer, list[Any]]:
    """A view of `x` with the windows in place, and the items that are left to do."""
    starts: list[Value] = []
    sizes: list[int] = []
    rest: list[Any] = []
    axis = 0
    b = build()
    zero = b.const(0, I64)
    as_starts = _are_starts(x, items, mode)
    for item in items:
        if item is None or isinstance(item, Truth):
            rest.append(item)
            continue
        n = x.shape[axis]
        if isinstance(item, slice):
            numbers = range(n)[item]
            span = sorted((numbers[0], numbers[-1])) if numbers else (0, -1)
            starts.append(b.const(span[0], I64))
            sizes.append(span[1] - span[0] + 1)
            rest.append(slice(None, None, item.step))
            axis += 1
        elif as_starts and isinstance(item, (int, Integers)):
            starts.append(_start(x, axis, item, mode))
            sizes.append(1)
            rest.append(0)
            axis += 1
        elif isinstance(item, SliceWindow):
            size = (item.length - 1) * item.step + 1 if item.length else 0
            if size > n:
                complain(
                    errors.BoundsError,
                    f"a window of {size} rows is cut out of an axis of size {n}",
                    "in compiled code slices with traced bounds lie inside of the array.",
                    operands={"x": x},
                )
            if mode in (DEFAULT, "check") and bounds_checked():
                make_certain([item.start])
                last = b.const(n - size, I64)
                inside = b.bitwise_and(b.ge(item.start, zero), b.le(item.start, last))
                text = (
                    f"the slice that starts at {{0}}, {size} long, leaves axis {axis} of size {n}"
                )
                check(wrap(inside), text, wrap(item.start), error="IndexError")
            starts.append(item.start)
            sizes.append(size)
            rest.append(slice(None, None, item.step))
            axis += 1
        else:
            axes = item.mask.ndim if isinstance(item, Mask) else 1
            starts += [zero] * axes
            sizes += x.shape[axis : axis + axes]
            rest.append(item)
            axis += axes
    return views.window(x, starts, tuple(sizes)), rest


def _start(x: Tracer, axis: int, item: int | Integers, mode: str) -> Value:
    """The position on an axis that an int means: which element of 0, 1, ... it names."""
    n, b = x.shape[axis], build()
    if isinstance(item, int):
        return b.const(in_range(item, n, axis, x), I64)
    if mode in (DEFAULT, "check"):
        _check_constant(item, n, axis, x)
    chosen = _index_values([item], [n], mode)
    options = {"mode": "check", "names": (axis,)} if chosen.mode == "check" else {"mode": "clip"}
    return b.gather(b.iota(shape=(n,), dtype=I64, axis=0), *chosen.indices, axes=(0,), **options)


def _basic(x: Tracer, items: Sequence[Any], dots: bool) -> IndexPlan:
    checked = _checked(x, items)
    scalar = not dots and all(isinstance(i, int) for i in checked)
    return IndexPlan(_view(x, checked), checked, scalar=scalar)


def _view(x: Tracer, items: Sequence[Any]) -> Tracer:
    base = views.basic_index(x, items)
    assert base._view is not None
    base._view.numpy = Subscript(tuple(items))
    return base


def _advanced(x: Tracer, items: Sequence[Any], dots: bool, gap: int, mode: str) -> IndexPlan:
    arrays = any(isinstance(i, Truth) or (isinstance(i, Integers) and i.ndim) for i in items)
    basic: list[Any] = []
    integers: list[Integers] = []
    axes, names, spots, axis, source = [], [], [], 0, 0
    for spot, item in enumerate(items):
        if isinstance(item, int):  # beside other indices, one of the same kind
            item = in_range(item, x.shape[source], source, x)
            item = Integers(item, np.asarray(item), True, 0)
        if isinstance(item, Truth):
            only = np.zeros(int(item.value), np.int64)
            integers.append(Integers(only, only, True, 1))
            axes.append(axis)
            names.append(source)
            spots.append(spot + (spot >= gap))
            basic.append(None)
            axis += 1
            continue
        if isinstance(item, Integers):
            if mode in (DEFAULT, "check"):
                _check_constant(item, x.shape[source], source, x)
            integers.append(item)
            axes.append(axis)
            names.append(source)
            spots.append(spot + (spot >= gap))
            basic.append(slice(None))
            axis += 1
        else:
            basic.append(item)
            axis += 1
        source += item is not None
    base = x if _whole(basic) else _view(x, basic)
    together = spots == list(range(spots[0], spots[0] + len(spots)))
    position = axes[0] if together else 0
    chosen = _index_values(integers, [base.shape[a] for a in axes], mode)
    single = all(isinstance(i, (int, Integers)) for i in items)
    scalar = single and not arrays and not dots
    # NumPy copies where one of the ints is an array without dims.
    plain = not any(isinstance(i, Integers) and _is_array(i.value) for i in items)
    here = base._storage.trace is current_trace()
    return IndexPlan(
        base,
        tuple(basic),
        tuple(axes),
        tuple(names),
        chosen.indices,
        chosen.mode,
        position,
        valid=chosen.valid,
        constant=chosen.constant,
        scalar=scalar,
        view=not arrays and not scalar and plain,
        here=here,
    )


def _is_array(index: Any) -> bool:
    return isinstance(index, np.ndarray) or (isinstance(index, Tracer) and not index.scalar)


def _whole(items: Sequence[Any]) -> bool:
    return all(isinstance(i, slice) and i == slice(None) for i in items)


def _check_constant(item: Integers, n: int, axis: int, x: Tracer) -> None:
    if item.constant is not None and item.constant.size:
        for extreme in (item.constant.min(), item.constant.max()):
            in_range(int(extreme), n, axis, x)


@record(frozen=False)
class _Chosen:
    """Index arrays of one shape as int64 values, and the gather mode that they need."""

    indices: tuple[Value, ...]
    mode: str
    valid: Value | None = None
    constant: tuple[Array, ...] | None = None


def _index_values(integers: Sequence[Integers], sizes: Sequence[int], mode: str) -> _Chosen:
    shapes = [shape_of(i.value) for i in integers]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError as error:
        text = " ".join(str(s).replace(" ", "") for s in shapes)
        complain(
            errors.BoundsError,
            "shape mismatch: indexing arrays could not be broadcast together with shapes " + text,
            "index arrays must have equal shapes, or sizes of 1.",
            cause=error,
        )
    if mode == DEFAULT:
        mode = "check" if bounds_checked() else "clip"
    b, fixed = build(), all(i.fixed for i in integers)
    if mode == "check" and fixed:
        indices = [np.asarray(i.constant, dtype=np.int64) for i in integers]
        indices = [np.where(k < 0, k + n, k) for k, n in zip(indices, sizes, strict=True)]
        indices = [np.broadcast_to(k, shape) for k in indices]
        return _Chosen(tuple(b.const(k) for k in indices), "clip", constant=tuple(indices))
    values = tuple(b.broadcast_to(as_value(i.value, I64), shape) for i in integers)
    if mode == "check":
        make_certain(values)
    if mode in ("check", "promise_in_bounds"):
        return _Chosen(values, "check" if mode == "check" else "clip")
    if mode != "fill" and math.prod(shape) and 0 in sizes:
        raise IndexError("cannot index an axis of size 0")
    if mode == "wrap":
        pairs = zip(values, sizes, strict=True)
        return _Chosen(tuple(b.remainder(v, b.full_like(v, max(n, 1))) for v, n in pairs), "clip")
    clipped, valid = [], None
    for value, n in zip(values, sizes, strict=True):
        negative = b.lt(value, b.full_like(value, 0))
        value = b.select(negative, b.add(value, b.full_like(value, n)), value)
        clipped.append(value)
        above = b.ge(value, b.full_like(value, 0))
        inside = b.bitwise_and(above, b.lt(value, b.full_like(value, n)))
        valid = inside if valid is None else b.bitwise_and(valid, inside)
    return _Chosen(tuple(clipped), "clip", valid if mode == "fill" else None)


def _masked_plan(x: Tracer, items: Sequence[Any], masks: Sequence[Mask]) -> IndexPlan:
    if len(masks) > 1 or any(isinstance(item, (Integers, Truth)) for item in items):
        complain(
            errors.DynamicShapeError,
            "a traced boolean mask beside other index arrays cannot be traced: the number of "
            "selected elements is known only when the compiled function runs",
            "use the mask alone, or jt.where(mask, a, b) on the whole array.",
            operands={"x": x, "mask": masks[0].mask},
        )
    basic: list[Any] = []
    position = axis = 0
    for item in items:
        if isinstance(item, Mask):
            position = axis
            basic += [slice(None)] * item.mask.ndim
            axis += item.mask.ndim
        else:
            basic.append(item)
            axis += not isinstance(item, int)
    checked = _basic(x, basic, True)
    base = x if _whole(basic) else checked.base
    return IndexPlan(base, checked.items, position=position, mask=masks[0].mask)


def basic_items(x: Tracer, index: Any) -> tuple[Any, ...] | None:
    """The items of a basic index, one per axis; None if the index has arrays or masks."""
    items = classified(index, x)
    if any(isinstance(i, (list, Integers, Mask, Truth)) for i in items):
        return None
    return _checked(x, expand(x, items)[0])


def _checked(x: Tracer, items: Sequence[Any]) -> tuple[Any, ...]:
    """The items with ints in range and non-negative."""
    axis, checked = 0, []
    for item in items:
        if isinstance(item, int):
            item = in_range(item, x.shape[axis], axis, x)
        axis += item is not None
        checked.append(item)
    return tuple(checked)
