"""Elements are trees: how several become one batch, and one batch its rows.

Trees are walked by their first element, a whole column of leaves at a time. Numbers and arrays are
stacked; texts and bytes become arrays of dtype object, which keep them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitney as jt

from .errors import DataError, describe

Array = np.ndarray[Any, Any]
Column = Callable[[Sequence[Any], str], Any]  # leaves of one place and its path, to one leaf


def stack(elements: Sequence[Any]) -> Any:
    """Elements as one tree whose leaves have one more axis, the first."""
    _refuse_ragged(elements[0])
    return columns(elements, stacked)


def _refuse_ragged(x: Any) -> None:
    """What has a length of its own in each element, as `Ragged`, cannot be stacked part by part."""
    if getattr(x, "stacks", True) is False:
        raise DataError(
            f"a batch of {type(x).__name__} cannot be stacked: make it an array (.padded(), or "
            'layout="padded"), or read batches at once (parse_examples)'
        )
    if isinstance(x, (dict, list, tuple)):
        for part in x.values() if isinstance(x, dict) else x:
            _refuse_ragged(part)


def columns(elements: Sequence[Any], make: Column, path: str = "") -> Any:
    """One tree of what `make` makes of the leaves at each place of the elements' trees."""
    first = elements[0]
    kind = type(first)
    if kind is dict:
        _check(elements, path, lambda x: type(x) is dict and x.keys() == first.keys())
        return {k: columns([x[k] for x in elements], make, f"{path}[{k!r}]") for k in first}
    if kind is tuple or kind is list:
        _check(elements, path, lambda x: type(x) is kind and len(x) == len(first))
        parts = [columns([x[i] for x in elements], make, f"{path}[{i}]") for i in range(len(first))]
        return kind(parts)
    if first is None:
        _check(elements, path, lambda x: x is None)
        return None
    if is_leaf(first):
        return make(elements, path)
    leaves, structure = jt.tree.flatten(first)  # of the less common containers
    if len(leaves) == 1 and leaves[0] is first:
        return make(elements, path)
    _check(elements, path, lambda x: jt.tree.structure(x) == structure)
    across = list(zip(*(jt.tree.leaves(x) for x in elements), strict=True))
    return jt.tree.unflatten(
        structure, [columns(c, make, f"{path}.{i}") for i, c in enumerate(across)]
    )


def _check(elements: Sequence[Any], path: str, same: Callable[[Any], bool]) -> None:
    for i, x in enumerate(elements):
        if not same(x):
            raise DataError(
                f"element {i} of a batch{_at(path)} is {describe(x)}, element 0 is "
                f"{describe(elements[0])}: they are different trees. A list is a tree of its items; "
                "a sequence of numbers of any length is np.asarray(list), for padded_batch"
            )


def _at(path: str) -> str:
    return f" at {path}" if path else ""


def is_leaf(x: Any) -> bool:
    """Whether it is of the common classes of leaves."""
    return isinstance(x, (np.ndarray, np.generic, bool, int, float, complex, str, bytes))


def stacked(leaves: Sequence[Any], path: str = "") -> Array:
    """Leaves of one shape as one array."""
    if isinstance(leaves[0], (str, bytes)) or not is_leaf(leaves[0]):
        return texts(leaves)
    try:
        found = np.array(leaves)
    except ValueError:
        raise _other_shape(leaves, path) from None
    except OverflowError as error:
        raise DataError(f"a batch{_at(path)}: {error}") from None
    if found.dtype.kind in "OUS" and not isinstance(leaves[0], np.ndarray):
        raise DataError(f"a batch{_at(path)} has {describe(list(leaves))}: let them be of one kind")
    return found


def texts(leaves: Sequence[Any]) -> Array:
    """Texts, bytes and other objects as an array of objects."""
    out = np.empty(len(leaves), object)
    out[:] = leaves
    return out


def _other_shape(leaves: Sequence[Any], path: str) -> DataError:
    shape = np.shape(leaves[0])
    i = next((i for i, x in enumerate(leaves) if np.shape(x) != shape), 0)
    return DataError(
        f"element {i} of a batch{_at(path)} has shape {np.shape(leaves[i])}, element 0 has {shape}: "
        "padded_batch(n), or batch(n, pad=0), fills up to the longest"
    )


def padded(
    leaves: Sequence[Any], path: str, shape: Sequence[int | None] | None, value: Any
) -> Array:
    """Leaves as one array, each filled up with `value` to `shape`, whose None is the longest."""
    if isinstance(leaves[0], (str, bytes)):
        return texts(leaves)
    arrays = [np.asarray(x) for x in leaves]
    shapes = [a.shape for a in arrays]
    rank = len(shapes[0])
    wanted = (None,) * rank if shape is None else tuple(shape)
    for i, got in enumerate(shapes):
        known = zip(got, wanted, strict=False)
        if len(got) != len(wanted) or any(w is not None and n > w for n, w in known):
            raise DataError(
                f"element {i} of a batch{_at(path)} has shape {got}, which cannot be filled up to "
                f"{list(wanted)}: give larger shapes, with None for the longest, and arrays of one rank"
            )
    size = tuple(max(s[d] for s in shapes) if w is None else w for d, w in enumerate(wanted))
    dtype = np.result_type(*{a.dtype for a in arrays})
    fill = np.asarray(value)
    if dtype.kind != "O" and not _fits(fill, dtype):
        raise DataError(
            f"{value!r} does not fill up a batch{_at(path)} of {dtype}: give values= of that dtype"
        )
    out = np.full((len(arrays), *size), value, dtype)
    for i, a in enumerate(arrays):
        out[i][tuple(slice(n) for n in a.shape)] = a
    return out


def _fits(fill: Array, dtype: np.dtype[Any]) -> bool:
    if dtype.kind not in "iub":
        return fill.dtype.kind in "iubfcV"
    with np.errstate(invalid="ignore"):
        return fill.dtype.kind in "iubf" and bool((fill.astype(dtype) == fill).all())


def pad(elements: list[Any], shapes: Any, values: Any) -> Any:
    """One tree of elements filled up to `shapes` (None: to the longest) with `values`.

    Both are trees as the elements are, or one for all.
    """
    _refuse_ragged(elements[0])
    chosen: dict[str, tuple[Any, Any]] = {}

    def choose(x: Any, shape: Any, value: Any, path: str) -> None:
        if isinstance(x, (dict, list, tuple)):
            named = x.items() if isinstance(x, dict) else enumerate(x)
            for k, inner in named:
                one = shape[k] if isinstance(shape, type(x)) else shape
                other = value[k] if isinstance(value, type(x)) else value
                choose(inner, one, other, f"{path}[{k!r}]")
        else:
            chosen[path] = shape, value

    try:
        choose(elements[0], shapes, values, "")
    except (KeyError, IndexError) as error:
        raise DataError(
            f"padded_batch: shapes and values are trees as {describe(elements[0])} is; there is no "
            f"{error} in them"
        ) from None
    return columns(elements, lambda leaves, path: padded(leaves, path, *chosen[path]))


def joined(blocks: Sequence[Any]) -> Any:
    """Blocks as one block."""
    if len(blocks) == 1:
        return blocks[0]
    return columns(blocks, lambda parts, path: np.concatenate(parts))


def getter(tree: Any) -> Callable[[int], Any]:
    """Of a tree of arrays, the function that gives the tree of their i-th rows."""
    kind = type(tree)
    if kind is dict:
        named = [(k, getter(v)) for k, v in tree.items()]
        return lambda i: {k: get(i) for k, get in named}
    if kind is tuple or kind is list:
        parts = [getter(v) for v in tree]
        return lambda i: kind([get(i) for get in parts])
    if isinstance(tree, np.ndarray):
        return tree.__getitem__
    leaves, structure = jt.tree.flatten(tree)
    return lambda i: jt.tree.unflatten(structure, [leaf[i] for leaf in leaves])


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """A tree of what `function` makes of each leaf; of the common containers without the compiler."""
    return columns([tree], lambda leaves, path: function(leaves[0]))


def length_of(tree: Any, what: str) -> int:
    """The length of the first axis, which all arrays of a tree have. Raises DataError."""
    sizes: dict[str, int] = {}

    def see(leaves: Sequence[Any], path: str) -> None:
        if np.ndim(leaves[0]) == 0:
            raise DataError(
                f"{what}: {describe(leaves[0])}{_at(path)} has no axis of elements: give an array of "
                "rows"
            )
        sizes[path] = np.shape(leaves[0])[0]

    columns([tree], see)
    if not sizes:
        raise DataError(f"{what}: there is no array in {describe(tree)}")
    if len(set(sizes.values())) > 1:
        each = ", ".join(f"{path or 'it'}: {n}" for path, n in sizes.items())
        raise DataError(
            f"{what}: the first axes have different lengths ({each}): give arrays with a row for each "
            "element"
        )
    return next(iter(sizes.values()))


def spec(element: Any) -> Any:
    """Shapes and dtypes of an element; `str` or `bytes` where it has texts."""

    def leaf(x: Any) -> Any:
        if isinstance(x, (str, bytes)):
            return type(x)
        if isinstance(x, np.ndarray) and x.dtype.kind == "O":
            return type(x.flat[0]) if x.size else object
        return jt.ShapeDtype.like(x)

    return mapped(leaf, element)
