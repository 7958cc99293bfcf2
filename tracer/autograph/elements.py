"""Elements and attributes that transformed code reads, elements that it assigns to (`syntax.stores`).

An array that NumPy made becomes a traced one when a traced value goes in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from ..arrays.common import array
from ..arrays.table import holds_tracer
from ..containers.arrays import is_grown_index, of_array, put_into
from ..containers.elements.varied import is_array
from ..containers.growing import (
    has_all,
    joined,
    list_of,
    look_up,
    may_be_missing,
    native_if_wanted,
    site_of,
)
from ..containers.kinds import CLASSES, inherit, make_classes_native, make_native, note_made
from ..containers.packed import Packed
from ..containers.sequences import List
from ..containers.sequences import Sequence as Row
from ..containers.stand_ins import Container
from ..control.choices import choose, choose_by_key, require_item
from ..control.unions import Union, only
from ..core.constants import is_undecided, known_array
from ..core.effects import check
from ..core.tracers import WEAK_DTYPES, Tracer, as_value, weak_kind, wrap
from ..indexing.concatenators import c_, r_
from ..messages import errors
from ..messages.errors import complain
from .calls.generators import taken
from .users.operators import in_place, of_users
from .uses import use
from .variables import in_graph, is_own_array, put, taken_over

_WIDEST = 64  # numbers of a list that are read one by one
_MOST = 4096  # numbers in a list that is indexed as an array is


def own(root: Any, indices: Sequence[Any], value: Any) -> Any:
    """What `root` has to be before `root[indices[0]][indices[1]]... = value`."""
    holder: Any = None
    key, inner = None, root
    for k, index in enumerate(indices):
        look_up(inner, index)
        if type(index) is Union:
            return root
        if is_own_array(inner) and _hold_tracers(value, indices[k:]):
            made = taken_over(inner)
            if holder is None:
                return made
            holder[key] = made
            return root
        if not isinstance(inner, (list, dict)) or k + 1 == len(indices):
            return root
        holder, key, inner = inner, index, inner[index]
    return root


def own_viewed(x: Any, indices: Sequence[Any], value: Any) -> Any:
    """What `x` has to be before an assignment to elements of `x.T`, or another view of all of it."""
    return taken_over(x) if is_own_array(x) and _hold_tracers(value, indices) else x


def writing(function: Any, *args: Any, **options: Any) -> Callable[[Any], None]:
    """`function(x, ...)`, which writes into x, as a function of x."""

    def write(x: Any) -> None:
        function(x, *args, **options)

    drawn = isinstance(function, MethodType) and function.__name__ == "shuffle"
    write.traced = drawn or holds_tracer((*args, *options.values()))  # type: ignore[attr-defined]
    return write


def own_first(x: Any, write: Any) -> Any:
    """What `x` has to be before what `writing` made writes into it."""
    return taken_over(x) if write.traced and is_own_array(x) and in_graph() else x


def hold(base: Any, name: str, array: Any) -> None:
    """`base.name = array`, but for the views of an array, which are made anew each time."""
    if type(base) is Union:
        setattr(base, name, array)
    elif not isinstance(base, (Tracer, np.ndarray)):
        put(base, name, array)


def delete_item(x: Any, index: Any) -> None:
    """`del x[index]`"""
    if type(index) is Union and type(x) in CLASSES:
        make_native([x])
    look_up(x, index)
    with may_be_missing(x):
        del x[index]


def item(x: Any, index: Any) -> Any:
    """`x[index]`; an array of NumPy's that is indexed by traced values becomes a constant, and numbers
    of one kind in a list, which nobody else sees, an array."""
    if type(index) is Union and isinstance(x, (Tracer, np.ndarray)):
        index = only(index, message="an index may be None here, which would add an axis")
    if type(x) is Union or (type(index) is Union and not isinstance(x, Container)):
        if type(index) is Union and isinstance(x, dict):
            look_up(x, index)
            if isinstance(x, defaultdict) and not has_all(x, index):
                hash(index)  # no key: which one is added, is not known
        return use(item, x, index)
    if type(x) is dict and is_undecided(index):
        chosen = choose_by_key(x, index)
        if chosen is not None:
            return chosen[0]
    if is_grown_index(x, index):
        return of_array(x if isinstance(x, Tracer) else array(x), index)
    look_up(x, index, reads=True)
    if x is np.r_ or x is np.c_:
        return (r_ if x is np.r_ else c_)[index]
    if x is np.mgrid or x is np.ogrid:
        return x[tuple(map(_range, index)) if isinstance(index, tuple) else _range(index)]
    if type(x) in (np.ndarray, np.recarray) and _holds_tracer(index):
        return array(x)[index]
    if type(x) in (list, tuple, str) and _is_undecided_integer(index):
        chosen = _chosen(x, index)
        if chosen is not None:
            return chosen[0]
        if not any(map(is_array, x)):  # which array is read is better known while tracing
            look_up(x, index)
    if type(x) in CLASSES:
        with may_be_missing(x):
            found = x[index]
        note_made(x, found)
        if isinstance(index, slice):
            inherit(x, found)
        return found
    own = of_users(x, "__getitem__")
    return x[index] if own is None else own(x, index)


def _is_undecided_integer(index: Any) -> bool:
    return is_undecided(index) and index.dtype.kind in "iu" and not index.shape


def store(x: Any, index: Any, value: Any) -> None:
    """`x[index] = value`"""
    if isinstance(value, Row) and isinstance(x, Tracer):
        value = _row(x[index], value)
    if type(index) is Union and (not isinstance(x, dict) or has_all(x, index)):
        use(store, x, index, value)
        return
    if type(x) in CLASSES and is_undecided(index):
        make_classes_native([value])
        look_up(x, index)
    if is_grown_index(x, index):
        put_into(x, index, value)
        return
    own = of_users(x, "__setitem__")
    if own is None:
        x[index] = value
    else:
        own(x, index, value)


def _chosen(x: Any, index: Tracer) -> tuple[Any] | None:
    """The item at a traced place, in a tuple; None where it takes a native list, or cannot be."""
    kind = None if type(x) is str else _kind_of_all(x)
    columns = None if kind is not None or type(x) is str else _columns(x)
    if kind is None and columns is None:
        return choose(x, index, checked=False)
    require_item(x, index)
    if kind is not None:
        return (wrap(as_value(array(x, kind[1])[index]), kind[0]),)
    return (tuple([item(column, index) for column in columns or ()]),)


def _row(place: Any, items: Row) -> Any:
    """A native list of numbers as what is assigned to a place in an array, which says how many."""
    width = place.shape[-1] if place.ndim else None
    if (
        type(width) is not int
        or width > _WIDEST
        or not items.is_known
        or not items.form.tree.is_leaf()
    ):
        return items
    text = f"could not broadcast input array from shape ({{0}},) into shape ({width},)"
    check(items.length() == width, text, items.length(), error="ValueError")
    return array([items[i] for i in range(width)])


def unpacked(value: Any, count: int) -> Any:
    """What is bound to `count` names: of a native list its elements, if there are as many."""
    value = taken(value)
    if not isinstance(value, Row):
        return value
    length = value.length()
    few = f"not enough values to unpack (expected {count}, got {{0}})"
    check(length >= count, few, length, error="ValueError")
    check(length <= count, f"too many values to unpack (expected {count})", error="ValueError")
    return tuple([value[i] for i in range(count)])


def unpacked_around(value: Any, before: int, after: int) -> Any:
    """The same for names `before` and `after` one with a star, which gets a list of the others."""
    value, least = taken(value), before + after
    few = f"not enough values to unpack (expected at least {least}, got {{0}})"
    if not isinstance(value, Row):
        [*items] = value
        end = len(items) - after
        if end < before:
            raise ValueError(few.format(len(items)))
        return (*items[:before], native_if_wanted(items[before:end], site_of()), *items[end:])
    length = value.length()
    check(length >= least, few, length, error="ValueError")
    items = value if isinstance(value, (List, Packed)) else list_of(value, site_of())
    between = items[before:] if not after else items[before:-after]
    return (
        *(value[i] for i in range(before)),
        between,
        *(value[i] for i in range(-after, 0)),
    )


def _columns(x: Any) -> list[list[Any]] | None:
    """Of tuples of numbers, of one length and of one kind at each place of theirs, the numbers by place;
    None for all else."""
    if not x or any(type(part) is not tuple or len(part) != len(x[0]) for part in x):
        return None
    columns = list(map(list, zip(*x, strict=True)))
    return columns if columns and all(map(_kind_of_all, columns)) else None


def _kind_of_all(items: Sequence[Any]) -> tuple[str | None, Any] | None:
    """The kind of all numbers in a list or tuple, weak kind and dtype, if they are such of one kind."""
    kinds = {_kind(item) for item in items[:_MOST]}
    return kinds.pop() if len(kinds) == 1 and len(items) <= _MOST else None


def _kind(item: Any) -> tuple[str | None, Any] | None:
    weak = weak_kind(item)
    if weak is not None:
        fits = type(item) is not int or -(2**63) <= item < 2**63
        return (weak, WEAK_DTYPES[weak]) if fits else None
    if isinstance(item, Tracer) and not item.scalar:
        return None
    return (None, item.dtype) if isinstance(item, (Tracer, np.generic)) else None


def _hold_tracers(value: Any, indices: Sequence[Any]) -> bool:
    return holds_tracer((value,)) or any(map(_holds_tracer, indices))


def _holds_tracer(index: Any) -> bool:
    """Whether traced values are in an index, or bounds of its slices."""
    items = index if isinstance(index, tuple) else (index,)
    bounds = [b for i in items if isinstance(i, slice) for b in (i.start, i.stop, i.step)]
    return holds_tracer((*items, *bounds))


def _range(part: Any) -> Any:
    """The bounds of a grid as numbers, for which traced ones are asked: they decide its shape."""
    if not isinstance(part, slice):
        return part
    bounds = (part.start, part.stop, part.step)
    return slice(*(_number(b) if isinstance(b, Tracer) else b for b in bounds))


def _number(x: Tracer) -> Any:
    constant = known_array(x)
    if constant is not None:
        return constant.item()
    complain(
        errors.TracerIndexError,
        "the bounds of np.mgrid and np.ogrid decide the result's shape, and a traced value is known "
        "only when the compiled function runs",
        "compute them before the call and pass them as arguments: numbers are compiled in where they "
        "are needed; or scale a grid of known size, start + step * np.arange(n).",
        operands={"bound": x},
    )


def elements(root: Any, indices: Sequence[Any]) -> Any:
    """`root[indices[0]][indices[1]]...`, to be updated and put back: no view of an array of NumPy's,
    which `own` may replace."""
    for index in indices:
        part = item(root, index)
        copied = is_own_array(root) and isinstance(part, type(root))
        if isinstance(part, Tracer) and part._view is not None and part._storage.box is not None:
            copied = True  # the array is read once more where this is put back
        root = part.copy() if copied else part
    return root


def update(name: str, old: Any, value: Any) -> Any:
    """`old += value`, or with another operator: what the variable is afterwards."""
    if is_own_array(old) and holds_tracer((value,)):
        old = taken_over(old)
    joined(old, value)
    return in_place(name[1:], old, value)


def update_elements(name: str, old: Any, value: Any) -> Any:
    """`update` of what `elements` gave."""
    if is_own_array(old) and holds_tracer((value,)):
        old = array(old).copy()
    return in_place(name[1:], old, value)
