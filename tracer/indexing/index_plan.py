"""What an index of NumPy means for an array of known shape: `resolve(x, index) -> Plan`.

Items are classified, the ellipsis is expanded, ranges and shapes are checked. What remains is a view
for the basic part, and for the rest index arrays with the position of their dims in the result.

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
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.record import record, replace
from ...ir.types import BOOL, I64, is_integer
from ..arrays.common import array, build, known_array, shape_of, static_array
from ..core import views
from ..core.effects import check
from ..core.linear_forms import distance
from ..core.trace import Array, bounds_checked, current_trace
from ..core.tracers import Tracer, as_value, wrap
from ..messages import errors
from ..messages.errors import complain


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
    items, gap = _expand(x, _classified(index, x))
    if mode not in (DEFAULT, "check"):
        items = _outside_as_arrays(x, items)
    copied = any(isinstance(i, _Integers) and _is_array(i.value) for i in items)
    if any(isinstance(i, _SliceWindow) for i in items) or _is_window(x, items, mode):
        x, items = _windows(x, items, mode)
    advanced = [i for i in items if isinstance(i, (_Integers, _Mask, _Truth))]
    dots = any(i is Ellipsis for i in _as_tuple(index))
    if not advanced:
        return replace(_basic(x, items, dots), copied=copied)
    masks = [i for i in advanced if isinstance(i, _Mask)]
    if masks:
        return _masked_plan(x, items, masks)
    return _advanced(x, items, dots, gap, mode)


def _outside_as_arrays(x: Tracer, items: Sequence[Any]) -> list[Any]:
    """The items with ints that are out of range as index arrays, which have modes."""
    entries, axis = [], 0
    for item in items:
        if isinstance(item, int) and not -x.shape[axis] <= item < x.shape[axis]:
            item = _Integers(np.asarray(item), np.asarray(item), True, 0)
        axis += _width(item)
        entries.append(item)
    return entries


@record(frozen=False)
class _Integers:
    """An integer index: an array, or an int (`constant` has its elements while tracing)."""

    value: Any
    constant: Array | None  # None for a traced one
    fixed: bool  # cannot change from call to call
    ndim: int


@record(frozen=False)
class _SliceWindow:
    """A slice of fixed length at a start that is known at run time."""

    start: Value
    length: int
    step: int


@record(frozen=False)
class _Mask:
    mask: Tracer


@record(frozen=False)
class _Truth:
    """True or False: an index array, [0] or [], of an axis of its own, which has size 1."""

    value: bool


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _classified(index: Any, x: Tracer) -> list[Any]:
    """What each part of an index is; as in NumPy, slices are looked at when all others are right."""
    parts = _as_tuple(index)
    order = sorted(range(len(parts)), key=lambda k: isinstance(parts[k], slice))
    found = {k: _classify(parts[k], x) for k in order}
    return [found[k] for k in range(len(parts))]


def _classify(item: Any, x: Tracer) -> Any:
    """None, Ellipsis, a slice of ints, an int, `_Integers`, a list of `_Integers`, or `_Mask`."""
    if item is None or item is Ellipsis:
        return item
    if isinstance(item, slice):
        return _static_slice(item, x)
    if isinstance(item, (bool, np.bool_)):
        return _Truth(bool(item))
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, (list, tuple, range)):
        item = np.asarray(item) if static_array(item) is not None else array(item)
        if isinstance(item, np.ndarray):
            item = item.astype(np.int64) if item.size == 0 and item.dtype.kind == "f" else item
            return _static_index(item, fixed=True)
    if getattr(type(item), "_jitney_lazy", False):
        item = item.materialise()
    if isinstance(item, Tracer):
        static = known_array(item) if item.dtype == BOOL and item.ndim else static_array(item)
        if static is not None and static.dtype.kind == "b":
            return _static_index(static, fixed=True)
        if item.dtype == BOOL:
            return _Mask(item)
        _require_integer(item)
        return _Integers(item, static, False, item.ndim)
    if isinstance(item, np.ndarray):
        return _static_index(item, fixed=False)
    if hasattr(item, "__index__"):
        return operator.index(item)
    _require_integer(item)


def _require_integer(item: Any) -> None:
    if getattr(getattr(item, "dtype", None), "kind", "") not in tuple("iu"):
        complain(
            errors.BoundsError,
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
            "boolean arrays are valid indices",
            "convert a float index with .astype(np.int64).",
            operands={"index": item},
        )


def _static_index(item: Array, fixed: bool) -> Any:
    if item.dtype.kind == "b":
        if item.ndim == 0:
            return _Truth(bool(item))
        return [_Integers(i, i, True, 1) for i in np.nonzero(item)] + [item.shape]
    _require_integer(item)
    if item.ndim == 0 and fixed:
        return int(item)
    return _Integers(item, item, fixed, item.ndim)


def _static_slice(item: slice, x: Tracer) -> slice | _SliceWindow:
    bounds = (item.start, item.stop, item.step)
    if any(isinstance(i, Tracer) and known_array(i) is None for i in bounds):
        window = _window(item)
        if window is not None:
            return window if window.length else slice(0, 0)  # x[i:i] is empty wherever i is
        complain(
            errors.TracerIndexError,
            "the bounds of a slice decide the result's shape, and a traced value is known only "
            "when the compiled function runs",
            "write x[i : i + 3], with one traced i and a length that is known, for a window of fixed "
            "size at a traced place (or jt.dynamic_slice(x, starts, sizes)); select with jt.where "
            "what else depends on values; or make the bound static.",
            operands={"array": x},
        )
    if any(i is not None and not hasattr(i, "__index__") for i in bounds):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    if item.step is not None and operator.index(item.step) == 0:
        raise ValueError("slice step cannot be zero")
    return slice(*(None if i is None else operator.index(i) for i in bounds))


def is_fixed(item: slice) -> bool:
    """Whether a slice with traced bounds has a length that is known."""
    return _window(item) is not None


def is_asked(item: slice) -> bool:
    """Whether the bounds of a slice depend on single numbers among the arguments alone. Python is
    asked for these, and the function traced again with them compiled in."""
    for bound in (item.start, item.stop, item.step):
        if isinstance(bound, Tracer) and known_array(bound) is None:
            behind = bound._behind()
            root = bound._storage.trace
            while root.parent is not None:
                root = root.parent
            if not behind or any(root.graph.params[k].shape for k in behind):
                return False
    return True


def _window(item: slice) -> _SliceWindow | None:
    """The slice as a window; None if its length is not known, or it goes backwards."""
    step = 1 if item.step is None else item.step
    if item.start is None or item.stop is None or isinstance(step, Tracer):
        return None
    step = operator.index(step)
    for bound in (item.start, item.stop):
        if isinstance(bound, Tracer) and not (is_integer(bound.dtype) and bound.shape == ()):
            return None
    start, stop = (as_value(bound, I64) for bound in (item.start, item.stop))
    length = distance(start, stop)
    if length is None or length < 0 or step < 1:
        return None  # x[i : i - 2] is empty, but for a negative end, which counts from behind
    return _SliceWindow(start, -(-length // step), step)


def _is_window(x: Tracer, items: Sequence[Any], mode: str) -> bool:
    """Whether an index is traced ints beside parts of axes: the start of a window of known size. So
    an update writes that window, and what it costs does not depend on the size of `x`."""
    parts = any(i is None or (isinstance(i, slice) and i != slice(None)) for i in items)
    return parts and any(isinstance(i, _Integers) for i in items) and _are_starts(x, items, mode)


def _are_starts(x: Tracer, items: Sequence[Any], mode: str) -> bool:
    """Whether ints in an index only say where its axes are cut: beside arrays they are arrays, too.
    (A window of an axis of size 1 has no start, which could be checked.)"""
    if any(isinstance(i, (_Mask, _Truth)) or (isinstance(i, _Integers) and i.ndim) for i in items):
        return False
    axes = zip((i for i in items if _width(i)), x.shape, strict=True)
    small = any(n == 1 and isinstance(i, _Integers) for i, n in axes)
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
        if item is None or isinstance(item, _Truth):
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
        elif as_starts and isinstance(item, (int, _Integers)):
            starts.append(_start(x, axis, item, mode))
            sizes.append(1)
            rest.append(0)
            axis += 1
        elif isinstance(item, _SliceWindow):
            size = (item.length - 1) * item.step + 1 if item.length else 0
            if size > n:
                complain(
                    errors.BoundsError,
                    f"a window of {size} rows is cut out of an axis of size {n}",
                    "in compiled code slices with traced bounds lie inside of the array.",
                    operands={"x": x},
                )
            if mode in (DEFAULT, "check") and bounds_checked():
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
            axes = item.mask.ndim if isinstance(item, _Mask) else 1
            starts += [zero] * axes
            sizes += x.shape[axis : axis + axes]
            rest.append(item)
            axis += axes
    return views.window(x, starts, tuple(sizes)), rest


def _start(x: Tracer, axis: int, item: int | _Integers, mode: str) -> Value:
    """The position on an axis that an int means: which element of 0, 1, ... it names."""
    n, b = x.shape[axis], build()
    if isinstance(item, int):
        return b.const(_in_range(item, n, axis, x), I64)
    if mode in (DEFAULT, "check"):
        _check_constant(item, n, axis, x)
    chosen = _index_values([item], [n], mode)
    options = {"mode": "check", "names": (axis,)} if chosen.mode == "check" else {"mode": "clip"}
    return b.gather(b.iota(shape=(n,), dtype=I64, axis=0), *chosen.indices, axes=(0,), **options)


def _expand(x: Tracer, classified: Sequence[Any]) -> tuple[list[Any], int]:
    """One item per axis: lists flattened, the ellipsis expanded, boolean shapes checked.

    Also where an ellipsis stood that stands for no axis: it still separates index arrays.
    """
    flat: list[Any] = []
    shapes: dict[int, tuple[int, ...]] = {}  # position in flat -> shape of a boolean array
    used = 0
    dots = 0
    for item in classified:
        if isinstance(item, list):
            *indices, shape = item
            shapes[len(flat)] = shape
            flat += indices
            used += len(indices)
            continue
        flat.append(item)
        dots += item is Ellipsis
        used += _width(item)
    if dots > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > x.ndim:
        complain(
            errors.BoundsError,
            f"too many indices for array: array is {x.ndim}-dimensional, but {used} were indexed",
            f"x has {x.ndim} axes.",
            operands={"x": x},
        )
    missing = [slice(None)] * (x.ndim - used)
    items: list[Any] = []
    axis, gap = 0, len(flat) + x.ndim
    for position, item in enumerate(flat):
        if position in shapes and 0 not in shapes[position]:  # as NumPy
            _check_mask(x, shapes[position], axis)
        if item is Ellipsis:
            gap = gap if missing else len(items)
            items += missing
            axis += len(missing)
            continue
        if isinstance(item, _Mask):
            _check_mask(x, item.mask.shape, axis)
        axis += _width(item)
        items.append(item)
    return (items if dots else items + missing), gap


def _width(item: Any) -> int:
    """How many axes an item indexes."""
    if isinstance(item, _Mask):
        return item.mask.ndim
    return int(not (item is None or item is Ellipsis or isinstance(item, _Truth)))


def _check_mask(x: Tracer, shape: tuple[int, ...], axis: int) -> None:
    for i, n in enumerate(shape):
        if x.shape[axis + i] != n:
            complain(
                errors.BoundsError,
                f"boolean index did not match indexed array along axis {axis + i}; size of axis "
                f"is {x.shape[axis + i]} but size of corresponding boolean axis is {n}",
                "the mask must have the shape of the axes that it selects from.",
                operands={"x": x},
            )


def _in_range(index: int, n: int, axis: int, x: Tracer) -> int:
    if not -n <= index < n:
        complain(
            errors.BoundsError,
            f"index {index} is out of bounds for axis {axis} with size {n}",
            f"valid are {-n} to {n - 1}." if n else "the axis is empty.",
            operands={"x": x},
        )
    return index + n if index < 0 else index


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
    arrays = any(isinstance(i, _Truth) or (isinstance(i, _Integers) and i.ndim) for i in items)
    basic: list[Any] = []
    integers: list[_Integers] = []
    axes, names, spots, axis, source = [], [], [], 0, 0
    for spot, item in enumerate(items):
        if isinstance(item, int):  # beside other indices, one of the same kind
            item = _in_range(item, x.shape[source], source, x)
            item = _Integers(item, np.asarray(item), True, 0)
        if isinstance(item, _Truth):
            only = np.zeros(int(item.value), np.int64)
            integers.append(_Integers(only, only, True, 1))
            axes.append(axis)
            names.append(source)
            spots.append(spot + (spot >= gap))
            basic.append(None)
            axis += 1
            continue
        if isinstance(item, _Integers):
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
    single = all(isinstance(i, (int, _Integers)) for i in items)
    scalar = single and not arrays and not dots
    # NumPy copies where one of the ints is an array without dims.
    plain = not any(isinstance(i, _Integers) and _is_array(i.value) for i in items)
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


def _check_constant(item: _Integers, n: int, axis: int, x: Tracer) -> None:
    if item.constant is not None and item.constant.size:
        for extreme in (item.constant.min(), item.constant.max()):
            _in_range(int(extreme), n, axis, x)


@record(frozen=False)
class _Chosen:
    """Index arrays of one shape as int64 values, and the gather mode that they need."""

    indices: tuple[Value, ...]
    mode: str
    valid: Value | None = None
    constant: tuple[Array, ...] | None = None


def _index_values(integers: Sequence[_Integers], sizes: Sequence[int], mode: str) -> _Chosen:
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


def _masked_plan(x: Tracer, items: Sequence[Any], masks: Sequence[_Mask]) -> IndexPlan:
    if len(masks) > 1 or any(isinstance(item, (_Integers, _Truth)) for item in items):
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
        if isinstance(item, _Mask):
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
    classified = _classified(index, x)
    if any(isinstance(i, (list, _Integers, _Mask, _Truth)) for i in classified):
        return None
    return _checked(x, _expand(x, classified)[0])


def _checked(x: Tracer, items: Sequence[Any]) -> tuple[Any, ...]:
    """The items with ints in range and non-negative."""
    axis, checked = 0, []
    for item in items:
        if isinstance(item, int):
            item = _in_range(item, x.shape[axis], axis, x)
        axis += item is not None
        checked.append(item)
    return tuple(checked)
