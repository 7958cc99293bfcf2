"""Which axis of each argument of `vmap` counts the examples, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.record import record
from ..control.regions import show_tree
from ..core.specs import is_array
from ..core.tracers import Tracer
from ..data import pytree
from ..data.accept import check_array
from ..data.callables import Function, function_name, parameter_name
from ..messages import errors
from ..messages.errors import complain

Axis = int | None


class _First(int):
    """Axis 0 of a keyword argument, which no in_axes speaks of."""


_KEYWORD = _First(0)


@record
class Argument:
    """One leaf of the arguments: its name, and its axis of examples (normal, or None)."""

    leaf: Any
    name: str
    axis: Axis


def arguments(
    fun: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    leaves: Sequence[Any],
    in_axes: Any,
) -> list[Argument]:
    """The leaves of `(args, kwargs)` with their names and axes, checked."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        complain(
            errors.TransformError,
            f"in_axes={in_axes!r} has {len(in_axes)} entries, and {function_name(fun)} was called "
            f"with {len(args)} positional arguments",
            "give one entry per positional argument; keyword arguments are taken along axis 0.",
        )
    names: list[str] = []
    axes: list[Axis] = []
    for i, arg in enumerate(args):
        name = parameter_name(fun, i)
        names += pytree.leaf_names(arg, name)
        entry = in_axes[i] if isinstance(in_axes, tuple) else in_axes
        entries = spread_axes(entry, arg)
        if entries is None:
            complain(
                errors.TransformError,
                f"in_axes has {entry!r} for {name}, which is no upper part of the structure "
                f"{show_tree(pytree.flatten(arg)[1])}",
                "give an int or None for the whole argument, or a tree of them like it.",
            )
        axes += entries
    for key in sorted(kwargs):
        found_names = pytree.leaf_names(kwargs[key], key)
        names += found_names
        axes += [_KEYWORD] * len(found_names)
    triples = zip(leaves, names, axes, strict=True)
    return [Argument(leaf, name, _normal(leaf, name, axis)) for leaf, name, axis in triples]


def spread_axes(prefix: Any, tree: Any) -> list[Axis] | None:
    """One axis per leaf of `tree`, whose upper part `prefix` is; None if it is not."""
    if prefix is None or isinstance(prefix, int):
        return [prefix] * len(pytree.flatten(tree)[0])
    entries, structure = pytree.flatten_with_none(prefix)
    try:
        subtrees = structure.flatten_up_to(tree)
    except ValueError:
        return None
    axes: list[Axis] = []
    for entry, subtree in zip(entries, subtrees, strict=True):
        axes += [entry] * len(pytree.flatten(subtree)[0])
    return axes


def _normal(leaf: Any, name: str, axis: Axis) -> Axis:
    """`axis` as a non-negative axis of `leaf`."""
    if axis is None:
        return None
    remedy = "give it the axis None in in_axes, as in in_axes=(0, None): the same for all examples."
    if axis is _KEYWORD:
        remedy = (
            "keyword arguments are taken along axis 0: pass it by position with the axis None, or "
            f"bind it with functools.partial(f, {name}=...)."
        )
    if not is_array(leaf) and not isinstance(
        leaf, (bool, int, float, complex, np.generic, np.ndarray)
    ):
        complain(
            errors.ArgumentError,
            f"vmap cannot take examples from {name}, which is no array",
            remedy,
            operands={name: leaf},
        )
    if isinstance(leaf, np.ndarray):
        check_array(leaf)
    rank = leaf.ndim if isinstance(leaf, Tracer) else np.ndim(leaf)
    if rank == 0:
        complain(
            errors.AxisBoundsError,
            f"vmap was given the axis {axis} for {name}, a scalar: it has no axis of examples",
            remedy,
            operands={name: leaf},
        )
    if not -rank <= axis < rank:
        complain(
            errors.AxisBoundsError,
            f"vmap was given the axis {axis} for {name}, which has {rank} "
            f"{'axis' if rank == 1 else 'axes'}",
            f"axes go from {-rank} to {rank - 1} there.",
            operands={name: leaf},
        )
    return axis % rank


def common_size(fun: Function, arguments: Sequence[Argument], axis_size: int | None) -> int:
    """How many examples the arguments have; errors where they disagree, or none tells."""
    sized = [(a, a.leaf.shape[a.axis]) for a in arguments if a.axis is not None]
    if axis_size is not None:
        for argument, n in sized:
            if n != axis_size:
                complain(
                    errors.ShapeError,
                    f"axis_size={axis_size}, and {argument.name} has {n} examples along axis "
                    f"{argument.axis}",
                    "leave axis_size out, or pass as many examples.",
                    operands={argument.name: argument.leaf},
                )
        return axis_size
    if not sized:
        complain(
            errors.TransformError,
            f"vmap of {function_name(fun)} was given no argument with an axis of examples",
            "give some argument an axis in in_axes, or the number of examples: axis_size=n.",
        )
    (first, size), *others = sized
    for argument, n in others:
        if n != size:
            _refuse_sizes(first, size, argument, n)
    return size


def _refuse_sizes(first: Argument, size: int, other: Argument, n: int) -> NoReturn:
    complain(
        errors.ShapeError,
        f"the arguments of vmap have different numbers of examples: {first.name} has {size} along "
        f"axis {first.axis}, and {other.name} has {n} along axis {other.axis}",
        "pass arrays of equal length, or in_axes with the right axis for each; None for what is "
        "the same for all examples.",
        operands={first.name: first.leaf, other.name: other.leaf},
    )
