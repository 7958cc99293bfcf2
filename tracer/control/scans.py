"""Loops over the slices of arrays: `scan`, `map_fn`, `foldl`, `foldr`.

Under jit each is one `scan` op: results are written where they belong, slices are not copied, and
reverse mode stacks what it needs. Outside of it, and on the values of an eager trace, they are
Python loops with the same results.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...ir.graph import Graph
from ...runtime.cuda.array import DeviceArray
from ..arrays.common import common_dtype
from ..arrays.whole import Rows, whole_rows
from ..core.trace import Trace, current_trace, tracing
from ..core.tracers import Tracer
from ..data import pytree
from ..data.callables import Function
from ..data.opened import closed, tree_map
from ..data.promotion import canonical
from ..devices.device_calls import compiled_on_devices
from ..messages import errors
from ..messages.errors import complain, describe
from .carries import arranger, own, parameter_name
from .control import check_callable, is_plain, unroll_count
from .loops import scan_region
from .object_carries import of_objects, opened_carry
from .regions import show_tree


@compiled_on_devices("f", "length", "reverse", "unroll")
def scan(
    f: Function,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Fold `f` over the slices of `xs`, keeping a result of each step.

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)

    `xs` is a tree of arrays that are sliced along axis 0 together; with None there are `length` steps
    with x = None. `init`, `y` and the carry are trees too, and `y` may be None. `reverse` goes from the
    last slice to the first, and each y stands where its x stood. The carry keeps its structure, shapes
    and dtypes; a Python number in `init` takes the type that `f` makes of it. `f` may assign to its
    arguments: it owns them.

    `unroll` is the number of steps in an iteration of the compiled loop (True: all, so no loop at all).

    >>> jt.scan(lambda total, x: (total + x, total), 0, np.array([1, 2, 3]))
    (np.int64(6), array([0, 1, 3]))
    """
    check_callable("scan", "f", f)
    rows = whole_rows(xs) if length is None and unroll == 1 else None
    if rows is not None:
        return _scan_rows(f, init, rows, reverse)
    count = _length(xs, length, "scan")
    steps = unroll_count(unroll, count, "scan")
    variable = parameter_name(f, 0)
    return _scan(f, init, xs, count, "scan", variable=variable, reverse=reverse, unroll=steps)


def _scan_rows(f: Function, init: Any, rows: Rows, reverse: bool) -> tuple[Any, Any]:
    """A scan of as many steps as the length of an axis: behind it the carry stays."""

    def step(carry: Any, x: Any) -> Any:
        before, (row, alive) = carry, x
        after, y = f(carry, row)
        kept = pytree.tree_map(lambda new, old: np.where(alive, new, old), after, before)
        return kept, y

    xs = rows.tree, rows.alive()
    count = _length(xs, None, "scan")
    carry, ys = _scan(step, init, xs, count, "scan", variable=parameter_name(f, 0), reverse=reverse)
    return carry, rows.counted(ys)


@compiled_on_devices("f", "dtype")
def map_fn(f: Function, xs: Any, dtype: Any = None) -> Any:
    """`f` of each slice of `xs` along axis 0, results stacked; trees in, trees out.

    `xs` may be a tree, such as a tuple, of arrays of one length; `f` takes one argument, a tree of the
    same structure. `dtype`, one for all results or a tree of them, is checked where it is given.

    >>> jt.map_fn(lambda x: x * x, np.array([1, 2, 3]))
    array([1, 4, 9])
    """
    check_callable("map_fn", "f", f)
    rows = whole_rows(xs)
    if rows is not None:
        ys = _scan_rows(lambda carry, x: (carry, f(x)), None, rows, reverse=False)[1]
    else:
        count = _length(xs, None, "map_fn")
        ys = _scan(lambda carry, x: (carry, f(x)), None, xs, count, "map_fn")[1]
    if dtype is not None:
        _check_dtypes(ys, dtype)
    return ys


@compiled_on_devices("f")
def foldl(f: Function, xs: Any, initializer: Any = None) -> Any:
    """`f(...f(f(initializer, xs[0]), xs[1])..., xs[-1])`; without initializer, xs[0] is it.

    `xs` and the accumulator may be trees of arrays.

    >>> jt.foldl(lambda a, x: 10 * a + x, np.array([1, 2, 3]))
    np.int64(123)
    """
    return _fold(f, xs, initializer, "foldl", reverse=False)


@compiled_on_devices("f")
def foldr(f: Function, xs: Any, initializer: Any = None) -> Any:
    """`f(...f(f(initializer, xs[-1]), xs[-2])..., xs[0])`; without initializer, xs[-1] is it.

    >>> jt.foldr(lambda a, x: 10 * a + x, np.array([1, 2, 3]))
    np.int64(321)
    """
    return _fold(f, xs, initializer, "foldr", reverse=True)


def _fold(f: Function, xs: Any, initializer: Any, what: str, *, reverse: bool) -> Any:
    check_callable(what, "f", f)
    count = _length(xs, None, what)
    if initializer is None:
        if not count:
            complain(
                errors.ShapeError,
                f"{what} of arrays of length 0 needs an initializer",
                "pass the value that stands for no element, such as 0.0 for a sum.",
            )
        initializer = tree_map(lambda x: x[-1 if reverse else 0], xs)
        xs = tree_map(lambda x: x[:-1] if reverse else x[1:], xs)
        count -= 1
    variable = parameter_name(f, 0)

    def step(a: Any, x: Any) -> tuple[Any, None]:
        return f(a, x), None

    return _scan(step, initializer, xs, count, what, variable=variable, reverse=reverse)[0]


def _scan(
    f: Function,
    init: Any,
    xs: Any,
    length: int,
    what: str,
    *,
    variable: str = "carry",
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    first, rows = opened_carry(init), opened_carry(xs)
    if first is not init or rows is not xs:
        step = of_objects(f, what, pair=True)
        carry, ys = _scan(
            step, first, rows, length, what, variable=variable, reverse=reverse, unroll=unroll
        )
        return closed(carry), closed(ys)
    xs = pytree.tree_map(lambda x: x if isinstance(x, Tracer) else np.asarray(x), xs)
    if not is_plain():
        return scan_region(
            f, init, xs, length, what, variable=variable, reverse=reverse, unroll=unroll
        )
    if not length:
        return _no_steps(f, init, xs, what)
    carry, ys, arranged = own(init), [], arranger(init)
    order = range(length)
    for i in reversed(order) if reverse else order:
        pair = f(carry, own(pytree.tree_map(lambda x: x[i], xs)))  # noqa: B023
        if not isinstance(pair, tuple) or len(pair) != 2:
            complain(
                errors.CarryError,
                f"f of {what} must return a pair (carry, y); it returned {_show(pair)}",
                "return the new carry and the result of this step, which may be None.",
            )
        carry, y = arranged(pair[0]), pair[1]
        ys.append(own(y))  # the next step may write into what it is made of
    if reverse:
        ys.reverse()
    return carry, _stacked(ys, what)


def _stacked(ys: list[Any], what: str) -> Any:
    leaves, tree = pytree.flatten(ys[0])
    columns: list[list[Any]] = [[leaf] for leaf in leaves]
    for i, y in enumerate(ys[1:], 1):
        row, other = pytree.flatten(y)
        if not pytree.same_as_written(other, tree):
            complain(
                errors.CarryError,
                f"f of {what} gives results of different structures:\n"
                f"  result 0: {show_tree(tree)}\n  result {i}: {show_tree(other)}",
                "return the same containers with the same keys, in one order, at every step.",
            )
        for column, leaf in zip(columns, row, strict=True):
            column.append(leaf)
    return pytree.unflatten(tree, [_stack(column, what) for column in columns])


def _stack(column: list[Any], what: str) -> Any:
    shapes = {np.shape(x) for x in column}
    if len(shapes) > 1:
        complain(
            errors.CarryError,
            f"f of {what} gives results of different shapes: "
            + " and ".join(map(str, sorted(shapes))),
            "every step gives arrays of one shape; pad the smaller ones.",
        )
    dtype = common_dtype(*column)
    traced = current_trace() is not None and any(isinstance(x, Tracer) for x in column)
    if traced or any(isinstance(x, DeviceArray) for x in column):
        return np.stack([_converted(x, dtype) for x in column])
    return np.stack([np.asarray(x, dtype) for x in column])


def _converted(x: Any, dtype: Any) -> Any:
    return x.astype(dtype) if hasattr(x, "astype") else np.asarray(x, dtype)


def _no_steps(f: Function, init: Any, xs: Any, what: str) -> tuple[Any, Any]:
    """A scan of no step: what the results look like is found by tracing `f`."""
    trace = Trace(Graph(what), parent=current_trace(), what=what)
    with tracing(trace):
        carry, ys = scan_region(f, init, xs, 0, what)
        dtypes = pytree.tree_map(lambda x: () if x.weak else (x.dtype,), carry)
        stacks = pytree.tree_map(lambda y: np.zeros(y.shape, y.dtype), ys)
    return own(pytree.tree_map(_started, init, dtypes)), stacks


def _started(x: Any, dtype: tuple[Any, ...]) -> Any:
    """`x` with the dtype on which the carry settled; `()` for a Python number that stays one."""
    if not dtype or getattr(x, "dtype", None) == dtype[0]:
        return x
    return x.astype(*dtype) if hasattr(x, "astype") else dtype[0].type(x)


def _length(xs: Any, length: Any, what: str) -> int:
    """The number of steps, on which all arrays of `xs` agree."""
    xs = opened_carry(xs)
    leaves, _ = pytree.flatten(xs)
    names = pytree.leaf_names(xs, "xs")
    for name, leaf in zip(names, leaves, strict=True):
        if np.ndim(leaf) == 0:
            complain(
                errors.ShapeError,
                f"{what} goes over the first axis of its arrays, and {name} has none",
                "pass arrays (a list is a tree of its elements: np.array([...])); what does not "
                "change from step to step is closed over.",
                operands={name: leaf},
            )
    sizes = [leaf.shape[0] for leaf in leaves]
    if length is not None:
        try:
            sizes.insert(0, operator.index(length))
        except TypeError:
            complain(
                errors.TransformError,
                f"length of {what} must be an int, not {describe(length)}",
                "for a number of steps known only at run time use jt.fori_loop.",
            )
        names.insert(0, "length")
    if not sizes:
        complain(
            errors.ShapeError,
            f"{what} does not know its number of steps: there is no array to go over",
            f"pass length=n to {what}." if what == "scan" else "give it at least one array.",
        )
    if len(set(sizes)) > 1 or sizes[0] < 0:
        complain(
            errors.ShapeError,
            f"{what} goes over arrays of different lengths: "
            + ", ".join(f"{name} has {n}" for name, n in zip(names, sizes, strict=True)),
            "all have the same number of slices along axis 0.",
        )
    return sizes[0]


def _check_dtypes(ys: Any, dtype: Any) -> None:
    leaves, tree = pytree.flatten(ys)
    wanted, structure = pytree.flatten(dtype)
    if structure.num_nodes == 1:
        wanted, structure = wanted * len(leaves), tree
    if structure != tree:
        complain(
            errors.CarryError,
            f"f of map_fn returns {show_tree(tree)}, and dtype is {show_tree(structure)}",
            "give dtype the structure of the result, or leave it out.",
        )
    names = pytree.leaf_names(ys, "result")
    for name, leaf, want in zip(names, leaves, wanted, strict=True):
        if leaf.dtype != canonical(want):
            complain(
                errors.DTypeError,
                f"f of map_fn gives {leaf.dtype} at {name}, not dtype={canonical(want)}",
                f"convert it in f with .astype({str(canonical(want))!r}).",
            )


def _show(value: Any) -> str:
    return show_tree(pytree.flatten(value)[1])
