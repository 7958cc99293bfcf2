"""Views: tracers that share storage with another, and assignment through them.

NumPy's basic slicing, transposes and most reshapes give views: writing to one changes the other. In
the graph, where values never change, a view is a pair of functions: `forward` computes it from its
base, `inverse` computes the base after the view was overwritten. An assignment walks from the view
to the storage, one inverse per step; the other views of that storage read it anew afterwards.

Strides are tracked as NumPy's arrays would have them, because whether `reshape` and `ravel` give a
view or a copy depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Value
from ..data.layout import c_strides
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from . import threaded_state
from .kept import check_not_kept
from .sharing import write_to_others
from .trace import Array, Trace, current_trace, lifted, require_trace
from .tracers import Storage, Tracer, ViewStep, as_value, method, wrap

Forward = Callable[[Builder, Value], Value]
Inverse = Callable[[Builder, Value, Value], Value]


def view(
    base: Tracer,
    forward: Forward,
    inverse: Inverse | None,
    *,
    strides: tuple[int, ...] | None = None,
    numpy: Callable[[Array], Array] | None = None,
    any_length: bool = False,
) -> Tracer:
    """A tracer that shares its storage with `base`.

    `forward(b, base_value)` computes the view's value. `inverse(b, base_value, new)` computes the
    base's value after the view was overwritten with `new`; None makes the view read-only. `numpy`
    makes the same view of an ndarray, with `any_length` of one whose axes have other lengths, too.
    `strides` count elements; default C order.

    NumPy's scalars cannot change: an array that is made of one has memory of its own.
    """
    if base.scalar:
        base = wrap(as_value(base), scalar=False)
    trace = base._storage.trace
    if trace is not current_trace():
        # A view of an array of an enclosing trace: reading is lifted, writing is refused there.
        as_value(base)
    with trace.builder.at(user_line(2)):
        value = forward(trace.builder, base.value)
    step = ViewStep(_as_it_is(base), forward, inverse, numpy, value)
    if any_length and numpy is not None:
        step.subscript = numpy, step.base
    return Tracer(base._storage, value.tensor, base.weak, False, step, strides)


def _as_it_is(x: Tracer) -> Tracer:
    """The same array: the shape of `x` may be assigned to, and its views stay what they are."""
    return Tracer(x._storage, x.type, x.weak, x.scalar, x._view, x._strides)


def is_view_of(x: Tracer, base: Tracer) -> bool:
    """Whether `x` was made of `base`, in one step."""
    of = None if x._view is None else x._view.base
    return of is not None and of._view is base._view and of._storage is base._storage


def assign_shape(x: Tracer, shape: Sequence[int]) -> bool:
    """Give `x` itself, under all of its names, another shape; False if it would be a copy."""
    after = reshape(_as_it_is(x), shape)
    if after._storage is not x._storage:
        return False
    x.type, x._view, x._strides = after.type, after._view, after._strides
    return True


@method("assign")
def assign(x: Tracer, new: Value) -> None:
    """Overwrite all elements of `x` with `new`, a value of the current trace of x's type."""
    storage = x._storage
    if x.scalar:
        complain(
            errors.DTypeError,
            "a NumPy scalar does not support item assignment: it is a value, not an array",
            "compute a new value (s = s + 1), or keep the array: x[0:1], or x[0, ...].",
            operands={"scalar": x},
        )
    if storage.trace is not current_trace():
        as_value(x)  # names a leak
        here = current_trace()
        if here is None or not (here.adopt(storage) or threaded_state.take_over(storage)):
            complain(
                errors.OuterMutationError,
                f"assignment, inside {here.what if here else 'this function'}, to an array that "
                "lives outside of it",
                "pass the array in as an operand or as part of the carry, and return it.",
                operands={"array": x},
            )
    if storage.part is not None:
        _refuse_part(x, storage.part)
    check_not_kept(x)
    if not x.writeable:
        complain(
            errors.ReadOnlyError,
            "assignment destination is read-only",
            "assign to a copy: x = x.copy().",
            operands={"destination": x},
        )
    if new.tensor != x.type:
        raise TypeError(f"assign needs a value of type {x.type}, not {new.type}")
    chain = []
    builder = storage.trace.builder
    with builder.at(user_line(2)):
        current, value = x, new
        while current._view is not None:
            step = current._view
            assert step.inverse is not None
            chain.append((step, value))
            value = step.inverse(builder, step.base.value, value)
            current = step.base
    before, storage.value = storage.value, value
    storage.version += 1
    if storage.box is not None:
        storage.box.write(x if x._view is None else Tracer(storage, value.tensor))
    for step, value in chain:  # what was written need not be computed back
        step.value, step.version = value, storage.version
    if storage.perhaps:
        write_to_others(storage, before, x, new)


def transpose(x: Tracer, perm: Sequence[int]) -> Tracer:
    """`x.transpose(perm)`, perm complete and non-negative."""
    perm = tuple(perm)
    if perm == tuple(range(x.ndim)):
        return identity(x)
    back = tuple(int(i) for i in np.argsort(perm))
    strides = x.element_strides
    return view(
        x,
        lambda b, v: b.transpose(v, perm=perm),
        lambda b, v, new: b.transpose(new, perm=back),
        strides=tuple(strides[i] for i in perm),
        numpy=lambda a: a.transpose(perm),
        any_length=True,
    )


def identity(x: Tracer) -> Tracer:
    """A view of all of `x`: `x.view()`. Of a NumPy scalar it is the scalar."""
    if x.scalar and x.weak is None:
        return x
    return view(
        x, lambda b, v: v, lambda b, v, new: new, strides=x.element_strides, numpy=lambda a: a[...]
    )


def part(x: Tracer, name: str) -> Tracer:
    """`x.real` or `x.imag` of a complex array: a view of every second number in its memory."""

    def inverse(b: Builder, v: Value, new: Value) -> Value:
        both = (new, b.imag(v)) if name == "real" else (b.real(v), new)
        made: Value = b.complex(*both)
        return made

    return view(
        x,
        lambda b, v: b.op(name, v),
        inverse,
        strides=tuple(2 * s for s in x.element_strides),
        numpy=lambda a: getattr(a, name),
        any_length=True,
    )


def read_only(x: Tracer) -> Tracer:
    """A view of all of `x` that cannot be written."""

    def locked(a: Array) -> Array:
        a = a[...]
        a.flags.writeable = False
        return a

    return view(x, lambda b, v: v, None, strides=x.element_strides, numpy=locked)


def diagonal(x: Tracer) -> Tracer:
    """The elements x[..., i, i] of square matrices."""
    *lead, n, _ = x.shape
    flat, rank = (*lead, n * n), len(lead)
    # In the flat square, the next element of the diagonal is one row and one column further.
    start, step = (0,) * (rank + 1), (1,) * rank + (n + 1,)

    def forward(b: Builder, v: Value) -> Value:
        return b.slice(b.reshape(v, shape=flat), start=start, stop=flat, step=step)

    def inverse(b: Builder, v: Value, new: Value) -> Value:
        whole = b.update_slice(b.reshape(v, shape=flat), new, start=start, step=step)
        return b.reshape(whole, shape=x.shape)

    *outer, row, column = x.element_strides
    return view(
        x,
        forward,
        inverse,
        strides=(*outer, row + column),
        numpy=lambda a: np.einsum("...ii->...i", a),
    )


def reshape(x: Tracer, shape: Sequence[int]) -> Tracer:
    """`x.reshape(shape)`, sizes checked, -1 resolved: a view where NumPy gives one, or a copy."""
    shape = tuple(shape)
    strides = reshaped_strides(x.shape, x.element_strides, shape)
    if strides is None or x.scalar:
        value = as_value(x)
        trace = current_trace()
        assert trace is not None
        with trace.builder.at(user_line(2)):
            value = value if value.shape == shape else trace.builder.reshape(value, shape=shape)
        return wrap(value, scalar=False)
    if shape == x.shape:
        return identity(x)
    old = x.shape
    return view(
        x,
        lambda b, v: b.reshape(v, shape=shape),
        lambda b, v, new: b.reshape(new, shape=old),
        strides=strides,
        numpy=lambda a: a.reshape(shape),
    )


def reshaped_strides(
    shape: Sequence[int], strides: Sequence[int], new: Sequence[int]
) -> tuple[int, ...] | None:
    """The strides of a reshape without a copy, or None where NumPy would copy."""
    if 0 in shape:
        return c_strides(new)
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result = [0] * len(new)
    i = j = 0
    while i < len(axes) and j < len(new):
        # Grow both sides until they cover the same number of elements.
        i_end, j_end = i + 1, j + 1
        have, want = axes[i][0], new[j]
        while have != want:
            if have < want:
                have *= axes[i_end][0]
                i_end += 1
            else:
                want *= new[j_end]
                j_end += 1
        for k in range(i, i_end - 1):
            if axes[k][1] != axes[k + 1][0] * axes[k + 1][1]:
                return None
        result[j_end - 1] = axes[i_end - 1][1]
        for k in range(j_end - 1, j, -1):
            result[k - 1] = result[k] * new[k]
        i, j = i_end, j_end
    last = result[j - 1] if j else 1
    for k in range(j, len(new)):  # the remaining dims are 1
        result[k] = last
    return tuple(result)


def basic_index(x: Tracer, items: Sequence[Any]) -> Tracer:
    """`x[items]` for ints, slices and None (Ellipsis already expanded, one item per axis of x).

    Ints must be in range and non-negative. Always a view, also when nothing is left but ints: the
    caller makes the scalar of that (see `indexing`).
    """
    start, stop, step, flips, selected, shape, strides = [], [], [], [], [], [], []
    axis = 0
    old = x.element_strides
    for item in items:
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        n = x.shape[axis]
        if isinstance(item, slice):
            first, last, by = item.indices(n)
            count = len(range(first, last, by))
            if by < 0 and count:
                flips.append(axis)
                first, by = first + (count - 1) * by, -by
            by = by if count else 1
            first = first if count else 0
            start.append(first)
            stop.append(first + (count - 1) * by + 1 if count else first)
            step.append(by)
            selected.append(count)
            shape.append(count)
            strides.append(-old[axis] * by if axis in flips else old[axis] * by)
        else:
            start.append(item)
            stop.append(item + 1)
            step.append(1)
            selected.append(1)
        axis += 1
    starts, stops, steps = tuple(start), tuple(stop), tuple(step)
    mid, flipped, final = tuple(selected), tuple(flips), tuple(shape)
    whole = mid == x.shape

    def forward(b: Builder, v: Value) -> Value:
        if not whole:
            v = b.slice(v, start=starts, stop=stops, step=steps)
        if flipped:
            v = b.flip(v, axes=flipped)
        return v if v.shape == final else b.reshape(v, shape=final)

    def inverse(b: Builder, v: Value, new: Value) -> Value:
        if new.shape != mid:
            new = b.reshape(new, shape=mid)
        if flipped:
            new = b.flip(new, axes=flipped)
        return new if whole else b.update_slice(v, new, start=starts, step=steps)

    index = (*items, ...)  # a view also when only ints are given
    return view(x, forward, inverse, strides=tuple(strides), numpy=lambda a: a[index])


def window(x: Tracer, starts: Sequence[Value], sizes: Sequence[int]) -> Tracer:
    """The part of `x` of `sizes` that begins at `starts`, values of the current trace."""
    trace = require_trace()
    if x._storage.trace is not trace:
        with trace.builder.at(user_line(2)):
            value = trace.builder.dynamic_slice(as_value(x), *starts, sizes=tuple(sizes))
        return outer_part(x, value)
    return view(
        x,
        lambda b, v: b.dynamic_slice(v, *lifted(b, starts, trace), sizes=tuple(sizes)),
        lambda b, v, new: b.dynamic_update_slice(v, new, *lifted(b, starts, trace)),
        strides=x.element_strides,
    )


def outer_part(x: Tracer, value: Value) -> Tracer:
    """`value`, a copy of a part of the array `x` of an enclosing trace, where NumPy has a view."""
    part = wrap(value, scalar=False)
    part._storage.part, part._storage.writeable = x._storage, False
    require_trace().parts.append((ref(part._storage), x._storage))
    return part


def refuse_stale(storage: Storage, trace: Trace) -> None:
    """Raise OuterPartError where a copy of a part of an array is still about that is assigned to now."""
    if any(base is storage and part() is not None for part, base in trace.parts):
        _refuse_part(Tracer(storage, storage.value.tensor), storage)


class OuterPartError(errors.OuterMutationError):
    """An assignment to an `outer_part`. Autograph traces the region again, which adopts `storage`."""

    storage: Storage


def _refuse_part(x: Tracer, storage: Storage) -> None:
    try:
        complain(
            OuterPartError,
            "this assigns, inside of a branch or the body of a loop, into a part of an array that lives "
            "outside of it",
            "pass the array in as an operand or as part of the carry, and return it.",
            operands={"part": x},
        )
    except OuterPartError as error:
        error.storage = storage
        raise


def broadcast_to(x: Tracer, shape: Sequence[int]) -> Tracer:
    """`np.broadcast_to(x, shape)`: a read-only view."""
    shape = tuple(shape)
    lead = len(shape) - x.ndim
    axes = zip(x.shape, shape[lead:], x.element_strides, strict=True)
    own = (s if n == m else 0 for n, m, s in axes)
    return view(
        x,
        lambda b, v: b.broadcast_to(v, shape),
        None,
        strides=(0,) * lead + tuple(own),
        numpy=lambda a: np.broadcast_to(a, shape),
    )
