"""`jt.tree`: functions over pytrees, named as in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import pytree

flatten, unflatten = pytree.flatten, pytree.unflatten


def leaves(tree: Any) -> list[Any]:
    """The leaves from left to right.

    >>> jt.tree.leaves({"b": 2, "a": (1, None)})
    [1, 2]
    """
    return pytree.flatten(tree)[0]


def structure(tree: Any) -> pytree.TreeDef:
    """The tree without its leaves: hashable, equal for trees of one shape.

    >>> jt.tree.structure([1, 2]) == jt.tree.structure([3, 4])
    True
    """
    return pytree.flatten(tree)[1]


def map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """`function` applied leaf by leaf to one or several trees of one structure.

    >>> jt.tree.map(lambda x, y: x + y, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    return pytree.tree_map(function, tree, *rest)
