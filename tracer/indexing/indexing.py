"""`x[index]` and `x[index] = value` for every index that NumPy knows and whose result is static.

An index is resolved (`index_plan`) in two steps. Its slices, `None`s and, when nothing else is
there, integers make a *view* (`views.basic_index`). Integer arrays and traced integers then `gather`
from that view or `scatter` into it, with NumPy's rule for the place of their dims. A boolean array
that is known while tracing becomes integer arrays; a traced mask selects by element (see `masked`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Value
from ...ir.types import BOOL, TensorType, is_inexact
from ..arrays.common import array, build, known_array, operand, shape_of
from ..arrays.python_integers import check_stored
from ..arrays.table import FUNCTIONS, ArrayFunction
from ..control.scans import scan
from ..core import views
from ..core.trace import current_trace, lifted, require_trace
from ..core.tracers import Tracer, as_value, method, weak_kind, wrap
from ..data.layout import c_strides, k_order
from ..data.promotion import check_python_int
from ..messages import errors
from ..messages.errors import complain
from .bounded import RULES, Bounded
from .cuts import is_cut
from .index_items import is_asked, is_fixed
from .index_plan import (
    DEFAULT,
    IndexPlan,
    Subscript,
    basic_items,
    resolve,
)
from .masked import Masked, same_mask, spread

# Reading


@method("__getitem__")
def getitem(x: Tracer, index: Any) -> Any:
    """`x[index]`: a view of x, or a gathered copy, as in NumPy."""
    return _READ.trace((x, index), {})


def _read(x: Tracer, index: Any) -> Any:
    if _has_values_length(index):
        return RULES["x[index]"](_READ, x, index)
    plan = resolve(x, index)
    if plan.mask is not None:
        mask = wrap(as_value(plan.mask), scalar=False)
        return Masked(wrap(as_value(plan.base), scalar=False), mask, plan.position)
    if not plan.indices:
        if plan.copied:
            return wrap(as_value(plan.base), scalar=False)
        return wrap(as_value(plan.base)) if plan.scalar else plan.base
    if plan.view and plan.here:
        return _dynamic_view(plan)
    elements = _taken(plan)
    if not plan.view:
        return elements
    part = views.outer_part(plan.base, elements.value)
    part._strides = _strides_left(plan)
    return part


def read(x: Tracer, index: Any, mode: str, fill_value: Any = None) -> Tracer:
    """A copy of `x[index]`; `mode` says what an index that is out of range gives (see `index_plan`).

    With mode "fill" it gives `fill_value`, by default NaN, the lowest signed or the highest unsigned
    number, or True.
    """
    plan = resolve(x, index, mode)
    if plan.mask is not None or not plan.indices:
        elements = _read(x, index)
        return elements.copy() if plan.mask is None else elements
    if plan.valid is None:
        return _taken(plan)
    fill = _default_fill(x.dtype) if fill_value is None else fill_value
    shape = _indexed_shape(plan)
    if any(plan.base.shape[a] == 0 for a in plan.axes):
        return wrap(build().full(shape, fill, x.dtype), scalar=plan.scalar)
    b, rank = build(), len(plan.indices[0].shape)
    dims = tuple(range(plan.position, plan.position + rank))
    valid = b.broadcast(plan.valid, shape=shape, dims=dims)
    filler = b.broadcast_to(as_value(array(fill), x.dtype), shape)
    return wrap(b.select(valid, as_value(_taken(plan)), filler), scalar=plan.scalar)


def _default_fill(dtype: Any) -> Any:
    if is_inexact(dtype):
        return math.nan
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


def _taken(plan: IndexPlan) -> Tracer:
    base, index = plan.base, plan.indices[0].shape
    value = build().gather(as_value(base), *plan.indices, **plan.options)
    rank = len(index)
    perm = _moving(len(value.shape), range(rank), range(plan.position, plan.position + rank))
    elements = wrap(_transposed(value, perm), scalar=plan.scalar)
    if base._strides is not None or perm != tuple(range(len(perm))):
        # In memory the axes of the index come first, in order "C", the others follow in order "K".
        rest = tuple(s for i, s in enumerate(base.element_strides) if i not in plan.axes)
        ones = (1,) * len(rest)
        layouts = [((*index, *ones), c_strides((*index, *ones))), (value.shape[rank:], rest)]
        strides = k_order(value.shape, layouts)
        elements._strides = tuple(strides[axis] for axis in perm)
    return elements


def _moving(rank: int, source: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    """The permutation that moves axes, given that source and target are runs."""
    perm = [i for i in range(rank) if i not in source]
    for axis, to in zip(source, target, strict=True):
        perm.insert(to, axis)
    return tuple(perm)


def _transposed(value: Value, perm: tuple[int, ...]) -> Value:
    return value if perm == tuple(range(len(perm))) else build().transpose(value, perm=perm)


def _dynamic_view(plan: IndexPlan) -> Tracer:
    """`x[i]` with a traced i is a view, as with an int: `x[i][j] = v` writes to x."""
    options, here = plan.options, require_trace()

    def indices(b: Builder) -> list[Value]:
        return lifted(b, plan.indices, here)

    def forward(b: Builder, base: Value) -> Value:
        return b.gather(base, *indices(b), **options)

    def inverse(b: Builder, base: Value, new: Value) -> Value:
        return b.scatter(base, new, *indices(b), combine="set", **options)

    return views.view(plan.base, forward, inverse, strides=_strides_left(plan))


def _strides_left(plan: IndexPlan) -> tuple[int, ...]:
    return tuple(s for i, s in enumerate(plan.base.element_strides) if i not in plan.axes)


# Writing


@method("__setitem__")
def setitem(x: Tracer, index: Any, value: Any) -> None:
    """`x[index] = value`, in x's storage."""
    _WRITE.trace((x, index, value), {})


def _has_values_length(index: Any) -> bool:
    """Whether an index has slices, or arrays, whose length is known only at run time."""
    if type(index) is not tuple:
        index = (index,)
    for item in index:
        if type(item) is slice:
            if is_cut(item) and not is_fixed(item) and not is_asked(item):
                return True
        elif isinstance(item, Bounded):
            return True
    return False


def _write(x: Tracer, index: Any, value: Any) -> None:
    if isinstance(value, Bounded) or _has_values_length(index) or _is_spread(x, index, value):
        RULES["x[index] = value"](_WRITE, x, index, value)
    elif _is_masked_scalar(x, index):
        # NumPy's scalars take no assignments. Code for arrays of any library, which asks every array
        # for its namespace, assigns to parts of what it has computed, 0-d or not.
        new = as_value(FUNCTIONS["where"].trace((index, value, x), {}), x.dtype)
        x._storage.value = new
        x._storage.version += 1
    elif not _is_own_view(x, index, value):
        if _is_element(x, index) and shape_of(value):
            if x.dtype != BOOL or array(value).size != 1:  # a bool asks for the truth of an array
                raise ValueError("setting an array element with a sequence.")
            value = array(value).reshape(())
        if weak_kind(value) is not None or not _has_arrays(index):
            check_stored(value, x.dtype)
        update(x, index, value, "set")


def _is_spread(x: Tracer, index: Any, value: Any) -> bool:
    """Whether this is `x[mask] = values`, one for each element that the mask chooses."""
    if not isinstance(index, Tracer) or index.dtype != BOOL or index.ndim != x.ndim or not x.ndim:
        return False
    shape = () if isinstance(value, Masked) else shape_of(value)
    return len(shape) == 1 and shape[0] != 1 and known_array(index) is None


def _is_masked_scalar(x: Tracer, index: Any) -> bool:
    """Whether `x[index] = value` is, for a scalar that was computed in this trace, "if `index`"."""
    own = x._storage.trace is require_trace() and x._storage.parameter is None
    mask = isinstance(index, Tracer) and index.type == TensorType((), BOOL)
    return mask and x.scalar and x.weak is None and x._view is None and own


def _is_element(x: Tracer, index: Any) -> bool:
    """Whether an index is one integer for each axis: what is assigned to an element is a number."""
    items = index if isinstance(index, tuple) else (index,)
    if len(items) != x.ndim:
        return False
    return all(
        isinstance(i, (int, np.integer))
        if not isinstance(i, (Tracer, np.ndarray))
        else i.ndim == 0 and i.dtype.kind in "iu"
        for i in items
    ) and not any(isinstance(i, bool) for i in items)


def _has_arrays(index: Any) -> bool:
    """Whether there is an index array or a mask: what is assigned is made an array then, and cast as
    one, where a number would have to fit."""
    items = index if isinstance(index, tuple) else (index,)
    return any(
        isinstance(i, (list, bool, np.bool_))
        or (isinstance(i, (Tracer, np.ndarray)) and (i.ndim > 0 or i.dtype == BOOL))
        for i in items
    )


_READ = ArrayFunction("x[index]", _read, operator.getitem, None)
_WRITE = ArrayFunction("x[index] = value", _write, operator.setitem, None)


def _is_own_view(x: Tracer, index: Any, value: Any) -> bool:
    """Whether `value` is the view x[index] itself, which `x[index] += v` has written already."""
    if not isinstance(value, Tracer) or not views.is_view_of(value, x):
        return False
    view = value._view
    if view is None or view.version != x._storage.version or not isinstance(view.numpy, Subscript):
        return False
    return view.numpy.index == basic_items(x, index)


def update(x: Tracer, index: Any, value: Any, combine: str, mode: str = DEFAULT) -> None:
    """Combine `value` into `x[index]` in place: set, add, multiply, min, max.

    Where an index array names an element twice, "set" keeps the last value and the others
    accumulate (as `np.add.at` does). `mode` says what becomes of indices that are out of range.
    """
    plan = _destination(x, index, mode)
    base = plan.base
    lines = _lines(x, index, plan) if combine == "set" and mode == DEFAULT else None
    if lines is not None:
        # Parts of a few lines: these are taken out and put back, instead of all that the slices leave.
        whole, part = lines
        rows = array(x[whole])
        update(rows, part, value, "set")
        update(x, whole, rows, "set")
    elif plan.mask is not None:
        _update_masked(plan, value, combine)
    elif not plan.indices:
        new = _cast(value, base, base.shape)
        base.assign(_combine(combine, as_value(base), new))
    else:
        room = _Room(plan)
        new = _indexed_first(plan, _cast(value, base, _indexed_shape(plan)))
        base.assign(room.back(room.scatter(room.whole, new, room.indices, combine)))


def _lines(x: Tracer, index: Any, plan: IndexPlan) -> tuple[Any, Any] | None:
    """For index arrays beside slices, `x[rows, 1:-1]`: the index of the whole lines, and the one of the
    part in these; None where it is another index, or the lines are no less than all."""
    items = index if isinstance(index, tuple) else (index,)
    slices = [k for k, i in enumerate(items) if isinstance(i, slice)]
    others = [i for i in items if not isinstance(i, slice)]
    if plan.mask is not None or not plan.indices or len(plan.indices) != len(others):
        return None
    if all(items[k] == slice(None) for k in slices) or any(i is None for i in others):
        return None
    whole = tuple(slice(None) if isinstance(i, slice) else i for i in items)
    shape = plan.indices[0].shape
    lines = math.prod(shape) * math.prod(n for a, n in enumerate(x.shape) if a not in plan.axes)
    if not shape or 2 * lines > plan.base.size:
        return None
    part: list[Any] = [items[k] for k in slices]
    part[plan.position : plan.position] = [slice(None)] * len(shape)
    return whole, tuple(part)


def update_each(
    x: Tracer,
    index: Any,
    value: Any,
    function: Callable[[Any, Any], Any],
    mode: str = DEFAULT,
    *,
    once: bool = False,
) -> None:
    """`x[i] = function(x[i], value[i])` in place, for one element of the index after the other.

    An element that is named twice is updated twice, in order. `value` is broadcast to x[index], or
    None; results are cast to x's dtype. `once` promises that no element is named twice.
    """
    plan = _destination(x, index, mode)
    base = plan.base
    if plan.mask is not None:
        other = None if value is None else wrap(_over_mask(plan, value, None), scalar=False)
        _put_masked(plan, as_value(function(base, other), base.dtype))
        return
    if not plan.indices:
        other = None if value is None else wrap(_spread(value, base, base.shape), scalar=False)
        base.assign(as_value(function(base, other), base.dtype))
        return
    room = _Room(plan)
    if value is not None:
        value = _indexed_first(plan, _spread(value, base, _indexed_shape(plan)))
    if once or _distinct(plan):
        old = wrap(room.gather(room.whole, room.indices), scalar=False)
        other = None if value is None else wrap(value, scalar=False)
        new = as_value(function(old, other), base.dtype)
        base.assign(room.back(room.scatter(room.whole, new, room.indices, "set")))
    else:
        base.assign(room.back(_one_by_one(room, value, function)))


def _destination(x: Tracer, index: Any, mode: str) -> IndexPlan:
    if x.scalar or not x.writeable:
        x.assign(as_value(x))  # says why not
    here, items = current_trace(), index if isinstance(index, tuple) else (index,)
    outer = x._storage.trace is not here and any(i is None or isinstance(i, slice) for i in items)
    if outer and (here is None or not here.adopt(x._storage)):
        x.assign(as_value(x))  # so here
    return resolve(x, index, mode)


class _Room:
    """The base of a plan, with one place more at the end for what is dropped."""

    def __init__(self, plan: IndexPlan) -> None:
        self.options = plan.options
        self.plan = plan
        self.whole = as_value(plan.base)
        self.indices = plan.indices
        if plan.valid is not None:
            b = build()
            high = [int(axis in plan.axes) for axis in range(plan.base.ndim)]
            none = (0,) * plan.base.ndim
            zero = b.const(0, plan.base.dtype)
            self.whole = b.pad(self.whole, zero, low=none, high=tuple(high), interior=none)
            sizes = [plan.base.shape[axis] for axis in plan.axes]
            self.indices = tuple(
                b.select(plan.valid, index, b.full_like(index, n))
                for index, n in zip(plan.indices, sizes, strict=True)
            )

    def back(self, whole: Value) -> Value:
        if self.plan.valid is None:
            return whole
        shape = self.plan.base.shape
        return build().slice(whole, start=(0,) * len(shape), stop=shape, step=(1,) * len(shape))

    def gather(self, whole: Value, indices: Sequence[Value]) -> Value:
        return build().gather(whole, *indices, **self.options)

    def scatter(
        self, whole: Value, new: Value, indices: Sequence[Value], combine: str = "set"
    ) -> Value:
        return build().scatter(whole, new, *indices, combine=combine, **self.options)


def _one_by_one(room: _Room, value: Value | None, function: Callable[[Any, Any], Any]) -> Value:
    """A loop over the indexed places, in order."""
    b, rank = build(), len(room.indices[0].shape)
    count = room.indices[0].tensor.size
    each: list[Any] = [wrap(b.reshape(i, shape=(count,)), scalar=False) for i in room.indices]
    if value is not None:
        shape = (count, *value.shape[rank:])
        each.append(wrap(b.reshape(value, shape=shape), scalar=False))

    def iteration(whole: Any, entries: Any) -> Any:
        indices = [as_value(index) for index in entries[: len(room.indices)]]
        old = wrap(room.gather(as_value(whole), indices))
        new = as_value(function(old, None if value is None else entries[-1]), whole.dtype)
        return wrap(room.scatter(as_value(whole), new, indices), scalar=False), None

    return as_value(scan(iteration, wrap(room.whole, scalar=False), each)[0])


def _distinct(plan: IndexPlan) -> bool:
    """Whether the indices are constants that name each element once."""
    if plan.constant is None:
        return False
    flat = np.ravel_multi_index(plan.constant, [plan.base.shape[a] for a in plan.axes])
    return len(np.unique(flat)) == np.size(flat)


_COMBINE = {"add": "add", "multiply": "mul", "min": "minimum", "max": "maximum"}


def _combine(combine: str, old: Value, new: Value) -> Value:
    return new if combine == "set" else build().op(_COMBINE[combine], old, new)


def _indexed_shape(plan: IndexPlan) -> tuple[int, ...]:
    """The shape of x[index]."""
    rest = [n for i, n in enumerate(plan.base.shape) if i not in plan.axes]
    return (*rest[: plan.position], *plan.indices[0].shape, *rest[plan.position :])


def _indexed_first(plan: IndexPlan, value: Value) -> Value:
    """A value of the shape of x[index] with the dims of the index in front, as scatter takes it."""
    rank = len(plan.indices[0].shape)
    indexed = range(plan.position, plan.position + rank)
    return _transposed(value, _moving(len(value.shape), indexed, range(rank)))


def _cast(value: Any, target: Tracer, shape: tuple[int, ...]) -> Value:
    """`value` in the target's dtype and `shape`, as an assignment casts and broadcasts."""
    value = operand(value)
    if type(value) is int:
        check_python_int(value, target.dtype)
    return _spread(value, target, shape, target.dtype)


def _spread(value: Any, target: Tracer, shape: tuple[int, ...], dtype: Any = None) -> Value:
    """`value` broadcast to `shape`; axes of size 1 in front are left out, as in an assignment."""
    new = as_value(operand(value), dtype)
    while len(new.shape) > len(shape) and new.shape[0] == 1:
        new = build().reshape(new, shape=new.shape[1:])
    pairs = zip(new.shape[::-1], shape[::-1], strict=False)
    if len(new.shape) > len(shape) or any(n not in (1, m) for n, m in pairs):
        text = str(new.shape).replace(" ", "")
        complain(
            errors.ShapeError,
            f"could not broadcast input array from shape {text} into shape "
            f"{str(shape).replace(' ', '')}",
            "the value must have the shape of the indexed part, or sizes of 1.",
            operands={"destination": target, "value": value},
        )
    return build().broadcast_to(new, shape)


def _update_masked(plan: IndexPlan, value: Any, combine: str) -> None:
    new = _over_mask(plan, value, plan.base.dtype)
    _put_masked(plan, _combine(combine, as_value(plan.base), new))


def _put_masked(plan: IndexPlan, new: Value) -> None:
    """Assign `new`, of the base's shape, where the mask is true."""
    base = plan.base
    assert plan.mask is not None
    chosen = build().broadcast_to(spread(plan.mask, plan.position, base.ndim), base.shape)
    base.assign(build().select(chosen, new, as_value(base)))


def _over_mask(plan: IndexPlan, value: Any, dtype: Any) -> Value:
    """A value for x[mask], spread over all of x."""
    base, mask = plan.base, plan.mask
    assert mask is not None
    if isinstance(value, Masked):
        if not same_mask(value, mask, plan.position):
            complain(
                errors.DynamicShapeError,
                "x[mask] = y[other]: the number of selected elements is known only when the "
                "compiled function runs",
                "use one mask variable on both sides, or jt.where on the whole arrays.",
                operands={"mask": mask, "other": value.mask},
            )
        return _spread(value.values, base, base.shape, dtype)
    spread = _across_mask(operand(value), plan)
    return _spread(spread, base, base.shape) if dtype is None else _cast(spread, base, base.shape)


def _across_mask(value: Any, plan: IndexPlan) -> Any:
    """A value for x[mask] = value that does not depend on how many elements are selected."""
    assert plan.mask is not None
    shape = shape_of(value)
    after = plan.base.ndim - plan.position - plan.mask.ndim
    if len(shape) <= after:
        return value
    if shape[len(shape) - after - 1] != 1:
        complain(
            errors.DynamicShapeError,
            f"x[mask] = value with a value of shape {shape}: the number of selected elements is "
            "known only when the compiled function runs",
            "assign a number, or choose from a full-shape array: x[...] = jt.where(mask, value, x).",
            operands={"mask": plan.mask, "value": value},
        )
    cut = len(shape) - after - 1
    ones = (1,) * plan.mask.ndim
    return array(value).reshape((*shape[:cut], *ones, *shape[cut + 1 :]))
