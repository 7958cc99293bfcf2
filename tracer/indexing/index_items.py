"""The items of an index, classified: one for each axis, their ranges and shapes checked."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.record import record
from ...ir.types import BOOL, I64, is_integer
from ..arrays.common import array, known_array, static_array
from ..containers.stand_ins import Container
from ..core.linear_forms import distance
from ..core.trace import Array
from ..core.tracers import Tracer, as_value
from ..messages import errors
from ..messages.errors import complain


@record(frozen=False)
class Integers:
    """An integer index: an array, or an int (`constant` has its elements while tracing)."""

    value: Any
    constant: Array | None  # None for a traced one
    fixed: bool  # cannot change from call to call
    ndim: int


@record(frozen=False)
class SliceWindow:
    """A slice of fixed length at a start that is known at run time."""

    start: Value
    length: int
    step: int


@record(frozen=False)
class Mask:
    """A traced boolean array, over as many axes as it has."""

    mask: Tracer


@record(frozen=False)
class Truth:
    """True or False: an index array, [0] or [], of an axis of its own, which has size 1."""

    value: bool


def as_tuple(index: Any) -> tuple[Any, ...]:
    """The parts of an index, as the user wrote them."""
    return index if isinstance(index, tuple) else (index,)


def classified(index: Any, x: Tracer) -> list[Any]:
    """What each part of an index is; as in NumPy, slices are looked at when all others are right."""
    parts = as_tuple(index)
    order = sorted(range(len(parts)), key=lambda k: isinstance(parts[k], slice))
    items = {k: _classify(parts[k], x) for k in order}
    return [items[k] for k in range(len(parts))]


def _classify(item: Any, x: Tracer) -> Any:
    """None, Ellipsis, a slice of ints, an int, `Integers`, a list of `Integers`, or `Mask`."""
    if item is None or item is Ellipsis:
        return item
    if isinstance(item, slice):
        return _static_slice(item, x)
    if isinstance(item, (bool, np.bool_)):
        return Truth(bool(item))
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
            return Mask(item)
        _require_integer(item)
        return Integers(item, static, False, item.ndim)
    if isinstance(item, np.ndarray):
        return _static_index(item, fixed=False)
    if isinstance(item, Container):  # a list to Python, which takes it
        complain(
            errors.DynamicShapeError,
            f"an array is indexed by a {item.kind} that grows in compiled code, which has as many "
            "elements as it has at run time",
            "read the elements one by one, in a loop over it: `for i in indices: ... x[i] ...`.",
            operands={"x": x},
        )
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
            return Truth(bool(item))
        return [Integers(i, i, True, 1) for i in np.nonzero(item)] + [item.shape]
    _require_integer(item)
    if item.ndim == 0 and fixed:
        return int(item)
    return Integers(item, item, fixed, item.ndim)


def _static_slice(item: slice, x: Tracer) -> slice | SliceWindow:
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
            if not behind or not behind <= root.singles:
                return False
    return True


def _window(item: slice) -> SliceWindow | None:
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
    return SliceWindow(start, -(-length // step), step)


def expand(x: Tracer, entries: Sequence[Any]) -> tuple[list[Any], int]:
    """One item per axis: lists flattened, the ellipsis expanded, boolean shapes checked.

    Also where an ellipsis stood that stands for no axis: it still separates index arrays.
    """
    flat: list[Any] = []
    shapes: dict[int, tuple[int, ...]] = {}  # position in flat -> shape of a boolean array
    used = 0
    dots = 0
    for item in entries:
        if isinstance(item, list):
            *indices, shape = item
            shapes[len(flat)] = shape
            flat += indices
            used += len(indices)
            continue
        flat.append(item)
        dots += item is Ellipsis
        used += width(item)
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
        if isinstance(item, Mask):
            _check_mask(x, item.mask.shape, axis)
        axis += width(item)
        items.append(item)
    return (items if dots else items + missing), gap


def width(item: Any) -> int:
    """How many axes an item indexes."""
    if isinstance(item, Mask):
        return item.mask.ndim
    return int(not (item is None or item is Ellipsis or isinstance(item, Truth)))


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


def in_range(index: int, n: int, axis: int, x: Tracer) -> int:
    """The int counted from the front; BoundsError if the axis, of size n, has no such element."""
    if not -n <= index < n:
        complain(
            errors.BoundsError,
            f"index {index} is out of bounds for axis {axis} with size {n}",
            f"valid are {-n} to {n - 1}." if n else "the axis is empty.",
            operands={"x": x},
        )
    return index + n if index < 0 else index
