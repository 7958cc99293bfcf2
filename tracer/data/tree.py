"""`jt.tree`: functions over pytrees, named as in JAX.

Objects of registered classes (`nn.Module`) are trees of their arrays here. None is no leaf.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import opened, pytree
from .objects import register_object as register_object


def flatten(tree: Any) -> tuple[list[Any], pytree.TreeDef]:
    """Leaves from left to right (dicts by sorted key) and the structure, which is hashable.

    >>> jt.tree.flatten({"b": 2, "a": (1, None)})[0]
    [1, 2]
    """
    return pytree.flatten_whole(opened.opened(tree))


def unflatten(definition: pytree.TreeDef, leaves: Any) -> Any:
    """The tree of that structure with these leaves: the inverse of `flatten`. Modules are copies.

    >>> jt.tree.unflatten(jt.tree.structure([1, (2,)]), [3, 4])
    [3, (4,)]
    """
    return opened.closed(pytree.unflatten(definition, leaves))


def leaves(tree: Any) -> list[Any]:
    """The leaves from left to right.

    >>> jt.tree.leaves({"b": 2, "a": (1, None)})
    [1, 2]
    """
    return flatten(tree)[0]


def structure(tree: Any) -> pytree.TreeDef:
    """The tree without its leaves: hashable, equal for trees of one shape.

    >>> jt.tree.structure([1, 2]) == jt.tree.structure([3, 4])
    True
    """
    return flatten(tree)[1]


def map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """`function` applied leaf by leaf to one or several trees of one structure.

    What the others have in the place of a leaf may be a tree itself, or None. Of modules those
    arrays count that the first has, by their paths; an array in several places is one leaf.

    >>> jt.tree.map(lambda x, y: x + y, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    first = opened.opened(tree)
    own, definition = pytree.flatten_whole(first)
    others = [definition.flatten_up_to(opened.open_like(first, other)) for other in rest]
    return unflatten(definition, [function(*x) for x in zip(own, *others, strict=True)])


def leaves_with_path(tree: Any) -> list[tuple[str, Any]]:
    """Each leaf with its path, as Python writes it: `layers[0].w`, `['a'][1]`.

    >>> jt.tree.leaves_with_path({"a": [1, 2]})
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return flatten_with_path(tree)[0]


def flatten_with_path(tree: Any) -> tuple[list[tuple[str, Any]], pytree.TreeDef]:
    """As `leaves_with_path`, and the structure.

    >>> jt.tree.flatten_with_path([1, 2])[0]
    [('[0]', 1), ('[1]', 2)]
    """
    first = opened.opened(tree)
    own, definition = pytree.flatten_whole(first)
    paths = [name.removeprefix(".") for name in pytree.leaf_names(first, whole=True)]
    return list(zip(paths, own, strict=True)), definition


def map_with_path(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """As `map`, of a function that gets the path of each leaf first.

    >>> jt.tree.map_with_path(lambda path, x: f"{path} is {x}", {"a": 1})
    {'a': "['a'] is 1"}
    """
    paths = iter([path for path, _ in leaves_with_path(tree)])
    return map(lambda *x: function(next(paths), *x), tree, *rest)


def reduce(function: Callable[[Any, Any], Any], tree: Any, initial: Any = None) -> Any:
    """The leaves joined from left to right, as `functools.reduce` does; None if there are none.

    >>> jt.tree.reduce(lambda a, b: a + b, {"a": 1, "b": [2, 3]})
    6
    """
    own = leaves(tree)
    if initial is not None:
        return functools.reduce(function, own, initial)
    return functools.reduce(function, own) if own else None


def trained(tree: Any) -> Any:
    """The tree as transformations differentiate it: of modules, what is not trained is None.

    >>> jt.tree.trained(jt.Variable(1.0, trainable=False)) is None
    True
    """
    return opened.closed(opened.opened(tree, gradient=True))


def partition(tree: Any, where: Any) -> tuple[Any, Any]:
    """Two trees of one structure: leaves of a kind, and the others, with None for what is not there.

    `where` is a function of a leaf, a tree of bools (or of such for whole parts of the tree), or a
    mask, bools by the paths of the leaves (`nn.select`).

    >>> jt.tree.partition({"a": 1, "b": "text"}, lambda leaf: isinstance(leaf, int))
    ({'a': 1, 'b': None}, {'a': None, 'b': 'text'})
    """
    named, definition = flatten_with_path(tree)
    own = [leaf for _, leaf in named]
    if isinstance(where, Mapping) and all(path in where for path, _ in named):
        chosen = [where[path] for path, _ in named]
    elif callable(where):
        chosen = [where(leaf) for leaf in own]
    else:
        chosen = opened.spread(where, tree)
    pairs = list(zip(own, chosen, strict=True))
    first = unflatten(definition, [leaf if on else None for leaf, on in pairs])
    return first, unflatten(definition, [None if on else leaf for leaf, on in pairs])


def combine(*trees: Any) -> Any:
    """One tree of several, of one structure: each leaf is the first that is not None.

    >>> jt.tree.combine({"a": 1, "b": None}, {"a": None, "b": 2})
    {'a': 1, 'b': 2}
    """
    return opened.combined(trees)


def ravel(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All elements of a tree's arrays as one vector, and the function that makes the tree of such a one.

    The vector has the dtype that holds all of them; the function gives each array its own again.

    >>> vector, unravel = jt.tree.ravel({"a": np.ones((2, 1)), "b": 3.0})
    >>> vector
    array([1., 1., 3.])
    >>> unravel(2 * vector)
    {'a': array([[2.],
           [2.]]), 'b': np.float64(6.0)}
    """
    own, definition = flatten(tree)
    arrays = [leaf if hasattr(leaf, "shape") else np.asarray(leaf) for leaf in own]
    numbers = [not isinstance(x, np.ndarray) and getattr(x, "scalar", True) for x in own]
    shapes = [(x.shape, x.dtype) for x in arrays]
    parts = [x.reshape(-1) for x in arrays]
    vector = np.concatenate(parts) if parts else np.zeros(0)

    def unravel(vector: Any) -> Any:
        made, start = [], 0
        for (shape, dtype), number in zip(shapes, numbers, strict=True):
            stop = start + math.prod(shape)
            part = vector[start:stop].astype(dtype)
            made.append(part[0] if number else part.reshape(shape))
            start = stop
        if start != vector.shape[0]:
            raise ValueError(f"the vector has {vector.shape[0]} elements, and the tree {start}")
        return unflatten(definition, made)

    return vector, unravel
