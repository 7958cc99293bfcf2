"""`x[index]` and `x[index] = value` for every index that NumPy knows and whose result is static.

An index is resolved (`index_plan`) in two steps. Its slices, `None`s and, when nothing else is
there, integers make a *view* (`views.basic_index`). Integer arrays and traced integers then `gather`
from that view or `scatter` into it, with NumPy's rule for the place of their dims. A boolean array
that is known while tracing becomes integer arrays; a traced mask selects by element (see `masked`).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..ir.build import Builder
from ..ir.graph import Value
from . import errors, views
from .core import Tracer, as_value, method, wrap
from .errors import complain
from .functions.common import array, build, operand, shape_of
from .functions.table import ArrayFunction
from .index_plan import Plan, Subscript, basic_items, resolve
from .promotion import check_python_int

# Reading


@method("__getitem__")
def getitem(x: Tracer, index: Any) -> Any:
    return _READ.trace((x, index), {})


def _read(x: Tracer, index: Any) -> Any:
    plan = resolve(x, index)
    if plan.mask is not None:
        from .masked import Masked

        mask = wrap(as_value(plan.mask), scalar=False)
        return Masked(wrap(as_value(plan.base), scalar=False), mask, plan.place)
    if not plan.indices:
        return wrap(as_value(plan.base)) if plan.scalar else plan.base
    if plan.view:
        return _dynamic_view(plan)
    value = build().gather(as_value(plan.base), *plan.indices, axes=plan.axes, mode=plan.mode)
    rank = len(plan.indices[0].shape)
    value = _move(value, range(rank), range(plan.place, plan.place + rank))
    return wrap(value, scalar=plan.scalar)


def _move(value: Value, source: Sequence[int], target: Sequence[int]) -> Value:
    """Move axes, given that source and target are runs."""
    if list(source) == list(target):
        return value
    rank = len(value.shape)
    perm = [i for i in range(rank) if i not in source]
    for axis, place in zip(source, target, strict=True):
        perm.insert(place, axis)
    return build().transpose(value, perm=tuple(perm))


def _dynamic_view(plan: Plan) -> Tracer:
    """`x[i]` with a traced i is a view, as with an int: `x[i][j] = v` writes to x."""
    axes, mode, indices = plan.axes, plan.mode, plan.indices

    def forward(b: Builder, base: Value) -> Value:
        return b.gather(base, *indices, axes=axes, mode=mode)

    def inverse(b: Builder, base: Value, new: Value) -> Value:
        return b.scatter(base, new, *indices, axes=axes, mode=mode, combine="set")

    kept = [s for i, s in enumerate(plan.base.element_strides) if i not in axes]
    return views.view(plan.base, forward, inverse, strides=tuple(kept))


# Writing


@method("__setitem__")
def setitem(x: Tracer, index: Any, value: Any) -> None:
    _WRITE.trace((x, index, value), {})


def _write(x: Tracer, index: Any, value: Any) -> None:
    if not _is_own_view(x, index, value):
        update(x, index, value, "set")


_READ = ArrayFunction("x[index]", _read, operator.getitem, None)
_WRITE = ArrayFunction("x[index] = value", _write, operator.setitem, None)


def _is_own_view(x: Tracer, index: Any, value: Any) -> bool:
    """Whether `value` is the view x[index] itself, which `x[index] += v` has written already."""
    if not isinstance(value, Tracer) or value._view is None or value._view.base is not x:
        return False
    how = value._view.numpy
    if value._view.version != x._storage.version or not isinstance(how, Subscript):
        return False
    return how.index == basic_items(x, index)


def update(x: Tracer, index: Any, value: Any, combine: str) -> None:
    """Combine `value` into `x[index]` in place: set, add, multiply, min, max.

    Where an index array names an element twice, "set" keeps the last value and the others
    accumulate (as `np.add.at` does).
    """
    if x.scalar or not x.writeable:
        x.assign(as_value(x))  # says why not
    plan = resolve(x, index)
    base = plan.base
    if plan.mask is not None:
        _update_masked(plan, value, combine)
    elif not plan.indices:
        new = _cast(value, base, base.shape)
        base.assign(_combine(combine, as_value(base), new))
    else:
        rank = len(plan.indices[0].shape)
        rest = [n for i, n in enumerate(base.shape) if i not in plan.axes]
        shape = (*rest[: plan.place], *plan.indices[0].shape, *rest[plan.place :])
        new = _cast(value, base, shape)
        new = _move(new, range(plan.place, plan.place + rank), range(rank))
        b = build()
        options = {"axes": plan.axes, "mode": plan.mode, "combine": combine}
        base.assign(b.scatter(as_value(base), new, *plan.indices, **options))


_COMBINE = {"add": "add", "multiply": "mul", "min": "minimum", "max": "maximum"}


def _combine(combine: str, old: Value, new: Value) -> Value:
    return new if combine == "set" else build().op(_COMBINE[combine], old, new)


def _cast(value: Any, target: Tracer, shape: tuple[int, ...]) -> Value:
    """`value` in the target's dtype and `shape`, as an assignment casts and broadcasts."""
    value = operand(value)
    if type(value) is int:
        check_python_int(value, target.dtype)
    new = as_value(value, target.dtype)
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


def _update_masked(plan: Plan, value: Any, combine: str) -> None:
    from .masked import Masked, same_mask, spread

    base, mask = plan.base, plan.mask
    assert mask is not None
    if isinstance(value, Masked):
        if not same_mask(value, mask, plan.place):
            complain(
                errors.DynamicShapeError,
                "x[mask] = y[other]: the number of selected elements is known only when the "
                "compiled function runs",
                "use one mask variable on both sides, or jt.where on the whole arrays.",
                operands={"mask": mask, "other": value.mask},
            )
        new = _cast(value.values, base, base.shape)
    else:
        new = _cast(_across_mask(operand(value), plan), base, base.shape)
    old = as_value(base)
    chosen = build().broadcast_to(spread(mask, plan.place, base.ndim), base.shape)
    base.assign(build().select(chosen, _combine(combine, old, new), old))


def _across_mask(value: Any, plan: Plan) -> Any:
    """A value for x[mask] = value that does not depend on how many elements are selected."""
    assert plan.mask is not None
    shape = shape_of(value)
    after = plan.base.ndim - plan.place - plan.mask.ndim
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
