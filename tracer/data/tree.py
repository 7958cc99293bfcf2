"""`jt.tree`: functions over pytrees, named as in JAX.

Objects of registered classes (`nn.Module`) are trees of their arrays here. None is no leaf.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import objects, pytree
from .objects import register_object as register_object


def flatten(tree: Any) -> tuple[list[Any], pytree.TreeDef]:
    """Leaves from left to right (dicts by sorted key) and the structure, which is hashable.

    >>> jt.tree.flatten({"b": 2, "a": (1, None)})[0]
    [1, 2]
    """
    return pytree.flatten_whole(objects.opened(tree))


def unflatten(definition: pytree.TreeDef, leaves: Any) -> Any:
    """The tree of that structure with these leaves: the inverse of `flatten`. Modules are copies.

    >>> jt.tree.unflatten(jt.tree.structure([1, (2,)]), [3, 4])
    [3, (4,)]
    """
    return objects.closed(pytree.unflatten(definition, leaves))


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
    first = objects.opened(tree)
    own, definition = pytree.flatten_whole(first)
    others = [definition.flatten_up_to(objects.open_like(first, other)) for other in rest]
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
    opened = objects.opened(tree)
    own, definition = pytree.flatten_whole(opened)
    paths = [name.removeprefix(".") for name in pytree.leaf_names(opened, whole=True)]
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
