"""`jt.tree`: functions over pytrees, named as in JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from . import pytree

flatten = pytree.flatten


def unflatten(definition: pytree.TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of that structure with these leaves: the inverse of `flatten`."""
    return pytree.unflatten(definition, leaves)


def leaves(tree: Any) -> list[Any]:
    """The leaves from left to right."""
    return pytree.flatten(tree)[0]


def structure(tree: Any) -> pytree.TreeDef:
    """The tree without its leaves: hashable, equal for trees of one shape."""
    return pytree.flatten(tree)[1]


def map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """`function` applied leaf by leaf to one or several trees of one structure."""
    return pytree.tree_map(function, tree, *rest)
