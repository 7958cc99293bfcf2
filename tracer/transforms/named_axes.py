"""Names of axes, and what the members along a named axis exchange: `psum`, `all_gather`, `ppermute`, ...

    def normalised(x):                                    # of one example, or of one shard
        return x / jt.psum(x, "i")

    jt.vmap(normalised, axis_name="i")(np.ones(4))

Names, arguments and meaning are JAX's. A name is bound by `jt.vmap(axis_name=)`; its members are the
examples. Derivatives are those of the function of all members together, so the transpose of `psum` is
`psum`. Where a name goes, a communicator of `jt.distributed` goes as well; then members are processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from ...ir.record import record
from ..core.trace import require_trace
from ..core.tracers import as_value, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line

Names = Any  # a name, a communicator, or a tuple of these


class Axis(Protocol):
    """What a name is bound to: members, of whom this one exchanges arrays with the others."""

    @property
    def size(self) -> int:
        """How many members there are."""

    def exchange(self, name: str, x: Any, **attrs: Any) -> Any:
        """The result of the collective `name` of `ir.ops.collectives`, of an array-like."""

    def index(self) -> Any:
        """The number of this member."""


@record
class Examples:
    """The axis of a vmap. `label` is what ops call it: inner axes may have the name of outer ones."""

    label: str
    size: int

    def exchange(self, name: str, x: Any, **attrs: Any) -> Any:
        builder = require_trace().builder
        with builder.at(user_line()):
            value = builder.op(name, as_value(x), group=self.label, size=self.size, **attrs)
        return wrap(value)

    def index(self) -> Any:
        builder = require_trace().builder
        with builder.at(user_line()):
            return wrap(builder.op("axis_index", group=self.label, size=self.size))


_AXES: ContextVar[dict[str, Any]] = ContextVar("jitney_named_axes", default={})  # noqa: B039


@contextmanager
def bound(name: str | None, axis: Callable[[str], Axis]) -> Iterator[None]:
    """Inside, `name` is the axis that `axis` makes of a label that no other axis has."""
    if name is None:
        yield
        return
    axes = _AXES.get()
    made = axis(name if name not in axes else f"{name}.{len(axes)}")
    # A name that is bound again hides the outer one, whose label must stay taken.
    hidden = {} if name not in axes else {f"{name}.{len(axes)}": made}
    reset = _AXES.set({**axes, **hidden, name: made})
    try:
        yield
    finally:
        _AXES.reset(reset)


def axis_of(name: Any) -> Axis:
    """What the name is bound to; UnboundAxisError if nothing."""
    axes = _AXES.get()
    if hasattr(name, "exchange"):
        itself: Axis = name  # a communicator
        return itself
    if not isinstance(name, str) or name not in axes:
        known = ", ".join(map(repr, axes)) or "none"
        complain(
            errors.UnboundAxisError,
            f"no axis is named {name!r} here; bound {'is' if len(axes) < 2 else 'are'} {known}",
            f"call the function by jt.vmap(f, axis_name={name!r}), or by jt.shard_map over a mesh that "
            "has that axis.",
        )
    found: Axis = axes[name]
    return found


def _axes_of(names: Any) -> list[Axis]:
    return [axis_of(n) for n in (names if isinstance(names, (tuple, list)) else (names,))]


def _ungrouped(groups: Any, what: str) -> None:
    if groups is not None:
        complain(
            errors.UnsupportedFunctionError,
            f"jt.{what} over parts of an axis (axis_index_groups)",
            "make two axes of it: jt.vmap inside of jt.vmap, a mesh with two axes.",
        )


def axis_size(axis_name: Names) -> int:
    """How many members the axis has, a Python int: of several axes the product.

    >>> jt.vmap(lambda x: x / jt.axis_size("i"), axis_name="i")(np.ones(4))
    array([0.25, 0.25, 0.25, 0.25])
    """
    size = 1
    for axis in _axes_of(axis_name):
        size *= axis.size
    return size


def axis_index(axis_name: Names) -> Any:
    """Which member this is, from 0, an int64; of several axes, the first one counts slowest.

    >>> jt.vmap(lambda x: x + jt.axis_index("i"), axis_name="i")(np.zeros(3))
    array([0., 1., 2.])
    """
    first, *rest = _axes_of(axis_name)
    index = first.index()
    for axis in rest:
        index = index * axis.size + axis.index()
    return index


def psum(x: Any, axis_name: Names, *, axis_index_groups: None = None) -> Any:
    """The sum of all members' `x`, for all of them. `x` is an array, or a tree of arrays.

    Bools are counted as int64. A Python number is multiplied by the size of the axis, at once: so
    `jt.psum(1, "i")` is that size. The transpose is `psum`.

    >>> jt.vmap(lambda x: x / jt.psum(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    _ungrouped(axis_index_groups, "psum")
    return _reduced("psum", "sum", x, axis_name)


def pmean(x: Any, axis_name: Names, *, axis_index_groups: None = None) -> Any:
    """The mean of all members' `x`, for all of them.

    >>> jt.vmap(lambda x: x - jt.pmean(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    _ungrouped(axis_index_groups, "pmean")
    size = axis_size(axis_name)
    return pytree.tree_map(lambda total: total / size, _reduced("pmean", "sum", x, axis_name))


def pmax(x: Any, axis_name: Names, *, axis_index_groups: None = None) -> Any:
    """The largest of all members' `x`, element by element. Members with equal ones share a derivative.

    >>> jt.vmap(lambda x: jt.pmax(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([3., 3.])
    """
    _ungrouped(axis_index_groups, "pmax")
    return _reduced("pmax", "max", x, axis_name)


def pmin(x: Any, axis_name: Names, *, axis_index_groups: None = None) -> Any:
    """The smallest of all members' `x`, element by element.

    >>> jt.vmap(lambda x: jt.pmin(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([1., 1.])
    """
    _ungrouped(axis_index_groups, "pmin")
    return _reduced("pmin", "min", x, axis_name)


def _reduced(what: str, kind: str, x: Any, names: Names) -> Any:
    axes = _axes_of(names)

    def one(leaf: Any) -> Any:
        if type(leaf) in (int, float, complex) or (type(leaf) is bool and kind == "sum"):
            factor = 1
            for axis in axes:
                factor *= axis.size
            return leaf * factor if kind == "sum" else leaf
        value, small = leaf, False
        if _dtype(leaf) == np.bool_:
            small = kind != "sum"
            value = _cast(leaf, np.uint8 if small else np.int64)
        if kind != "sum" and _dtype(leaf).kind == "c":
            complain(
                errors.DTypeError,
                f"jt.{what} of {errors.describe(leaf)}: complex numbers have no order",
                "take the extreme of their absolute values, or of each part.",
            )
        for axis in axes:
            value = axis.exchange("axis_reduce", value, kind=kind)
        return _cast(value, np.bool_) if small else value

    return pytree.tree_map(one, x)


def all_gather(
    x: Any, axis_name: Names, *, axis_index_groups: None = None, axis: int = 0, tiled: bool = False
) -> Any:
    """All members' `x`, stacked along a new `axis`; with `tiled` concatenated along that axis.

    The transpose is `psum_scatter`.

    >>> jt.vmap(lambda x: jt.all_gather(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([[1., 3.],
           [1., 3.]])
    """
    _ungrouped(axis_index_groups, "all_gather")
    group = axis_of(axis_name)

    def one(leaf: Any) -> Any:
        rank = np.ndim(leaf)
        k = _axis(axis, rank + (not tiled), "all_gather", leaf)
        rows = group.exchange("axis_gather", leaf)
        moved = np.moveaxis(rows, 0, k)
        if not tiled:
            return moved
        shape = np.shape(leaf)
        return np.reshape(moved, (*shape[:k], group.size * shape[k], *shape[k + 1 :]))

    return pytree.tree_map(one, x)


def psum_scatter(
    x: Any,
    axis_name: Names,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: None = None,
    tiled: bool = False,
) -> Any:
    """The sum of all members' `x`, of which each member gets one part along `scatter_dimension`.

    That dimension is as long as the axis, and goes away; with `tiled` it is a multiple of that, and
    each gets a block of it. The transpose is `all_gather`.

    >>> jt.vmap(lambda x: jt.psum_scatter(x, "i"), axis_name="i")(np.ones((2, 2)))
    array([2., 2.])
    """
    _ungrouped(axis_index_groups, "psum_scatter")
    group = axis_of(axis_name)

    def one(leaf: Any) -> Any:
        k = _axis(scatter_dimension, np.ndim(leaf), "psum_scatter", leaf)
        value = _cast(leaf, np.int64) if _dtype(leaf) == np.bool_ else leaf
        rows = _rows(value, k, group.size, tiled, "psum_scatter")
        part = group.exchange("axis_scatter", rows)
        return part if not tiled else np.moveaxis(part, 0, k)

    return pytree.tree_map(one, x)


def all_to_all(
    x: Any,
    axis_name: Names,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: None = None,
    tiled: bool = False,
) -> Any:
    """Part j of `x` along `split_axis` goes to member j, who puts what it gets along `concat_axis`.

    `split_axis` is as long as the axis and goes away, `concat_axis` is new; with `tiled` parts are
    blocks of `split_axis`, and are concatenated. The transpose is `all_to_all` the other way.

    >>> jt.vmap(lambda x: jt.all_to_all(x, "i", 0, 0), axis_name="i")(np.arange(4).reshape(2, 2))
    array([[0, 2],
           [1, 3]])
    """
    _ungrouped(axis_index_groups, "all_to_all")
    group = axis_of(axis_name)

    def one(leaf: Any) -> Any:
        rank = np.ndim(leaf)
        split = _axis(split_axis, rank, "all_to_all", leaf)
        concat = _axis(concat_axis, rank, "all_to_all", leaf)
        rows = _rows(leaf, split, group.size, tiled, "all_to_all")
        got = group.exchange("axis_exchange", rows)
        if not tiled:
            return np.moveaxis(got, 0, concat)
        # got: [n, block, rest]; the block goes back to where it was, the members before `concat`.
        blocks = np.moveaxis(np.moveaxis(got, 1, split + 1), 0, concat)
        shape = np.shape(blocks)
        joined = (*shape[:concat], shape[concat] * shape[concat + 1], *shape[concat + 2 :])
        return np.reshape(blocks, joined)

    return pytree.tree_map(one, x)


def ppermute(x: Any, axis_name: Names, perm: Sequence[tuple[int, int]]) -> Any:
    """For each pair (i, j) of `perm`, member j gets the `x` of member i; who gets nothing has zeros.

    No member is twice on the same side, else TransformError. The transpose is the inverse.

    >>> jt.vmap(lambda x: jt.ppermute(x, "i", [(0, 1), (1, 0)]), axis_name="i")(np.array([1.0, 3.0]))
    array([3., 1.])
    """
    group = axis_of(axis_name)
    pairs = tuple((int(source), int(target)) for source, target in perm)
    for side, word in enumerate(("gives to", "gets from")):
        ends = [pair[side] for pair in pairs]
        if len(set(ends)) < len(ends) or any(not 0 <= e < group.size for e in ends):
            complain(
                errors.TransformError,
                f"perm={list(pairs)} of an axis of {group.size} members: each {word} one other at most, "
                f"and is a number from 0 to {group.size - 1}",
                "give pairs (from, to), as in [(i, (i + 1) % n) for i in range(n)].",
            )
    return pytree.tree_map(lambda leaf: group.exchange("axis_permute", leaf, perm=pairs), x)


def pshuffle(x: Any, axis_name: Names, perm: Sequence[int]) -> Any:
    """Member i gets the `x` of member `perm[i]`.

    >>> jt.vmap(lambda x: jt.pshuffle(x, "i", [1, 0]), axis_name="i")(np.array([1.0, 3.0]))
    array([3., 1.])
    """
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def pbroadcast(x: Any, axis_name: Names, source: int) -> Any:
    """The `x` of member `source`, for all members. TransformError if there is none of that number.

    >>> jt.vmap(lambda x: jt.pbroadcast(x, "i", 1), axis_name="i")(np.array([1.0, 3.0]))
    array([3., 3.])
    """
    group = axis_of(axis_name)
    root = int(source)
    if not 0 <= root < group.size:
        complain(
            errors.TransformError,
            f"source={root} of an axis of {group.size} members",
            f"members are counted from 0 to {group.size - 1}.",
        )
    return pytree.tree_map(lambda leaf: group.exchange("axis_spread", leaf, root=root), x)


def _dtype(leaf: Any) -> np.dtype[Any]:
    return as_value(leaf).dtype if not hasattr(leaf, "dtype") else np.dtype(leaf.dtype)


def _cast(leaf: Any, dtype: Any) -> Any:
    return leaf.astype(dtype) if hasattr(leaf, "astype") else np.asarray(leaf, dtype)


def _axis(axis: int, rank: int, what: str, leaf: Any) -> int:
    if not -rank <= axis < rank:
        complain(
            errors.AxisBoundsError,
            f"axis {axis} in jt.{what} of {errors.describe(leaf)}",
            f"axes go from {-rank} to {rank - 1} here."
            if rank
            else "an array without axes has none: reshape it.",
        )
    return axis % rank


def _rows(x: Any, k: int, size: int, tiled: bool, what: str) -> Any:
    """`x` with a part for each member in front: [n, ...], with `tiled` [n, block, ...]."""
    length = np.shape(x)[k]
    if length % size if tiled else length != size:
        complain(
            errors.ShapeError,
            f"axis {k} of {errors.describe(x)} has {length} elements, and jt.{what} shares them out "
            f"among {size} members",
            f"it has to have {'a multiple of ' if tiled else ''}{size}"
            + ("." if tiled else "; or say tiled=True for blocks of it."),
        )
    moved = np.moveaxis(x, k, 0)
    if not tiled:
        return moved
    return np.reshape(moved, (size, length // size, *np.shape(moved)[1:]))
