"""Trees side by side: parameters, gradients, and what an optimiser keeps for each of them.

A place of the parameters that is not trained has None in the gradients and in the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

import jitney as jt

__autograph__ = False  # see `leaves`
Tree = Any
Array = np.ndarray[Any, Any]


def refuse(
    what: str, remedy: str, kind: type[Exception] = jt.errors.SettingError, **operands: Any
) -> NoReturn:
    """Raise an error about what a user set or gave, with the user's line, and what to write instead."""
    jt.errors.complain(kind, what, remedy, operands=operands)


def beside(tree: Tree, other: Tree, name: str) -> list[Any]:
    """What stands in `other`, called `name` in messages, where `tree` has its leaves; None is allowed.

    Raises ShapeError if `other` is built otherwise.
    """
    found: list[Any] = []
    try:
        jt.tree.map(lambda _, part: found.append(part), tree, other)
    except (ValueError, TypeError) as error:
        _refuse(tree, other, name, error)
    if any(isinstance(part, (dict, list, tuple)) for part in found):
        _refuse(tree, other, name)
    return found


def map_beside(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """`function` of each leaf and of what stands in its place in `others`, None included."""
    names = ["gradients", *["state"] * len(others)]
    columns = [jt.tree.leaves(tree), *map(beside, [tree] * len(others), others, names)]
    return jt.tree.unflatten(
        jt.tree.structure(tree), [function(*row) for row in zip(*columns, strict=True)]
    )


def dtype_of(x: Any) -> np.dtype[Any]:
    """The dtype of an array, or the one that NumPy gives a Python number."""
    return getattr(x, "dtype", None) or np.result_type(type(x))


def is_trained(leaf: Any) -> bool:
    """Whether a leaf can have a gradient: its numbers are floats, of any size, or complex."""
    dtype = dtype_of(leaf)
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float"))


def check_some(grads: Sequence[Any]) -> None:
    """There is a gradient, at least one."""
    if all(g is None for g in grads):
        refuse(
            "there is no gradient: every place in the tree of gradients is None",
            "give what jt.grad returns for the parameters; if all of them are frozen, thaw some.",
            jt.errors.ArgumentError,
        )


def check_each(tree: Tree, grads: Sequence[Any], params: Sequence[Any]) -> None:
    """Gradients are floats with the shapes of their parameters; `tree` is one with their places."""
    for place, (g, p) in enumerate(zip(grads, params, strict=True)):
        if g is None or (is_trained(g) and (p is None or np.shape(g) == np.shape(p))):
            continue
        path = jt.tree.leaves_with_path(tree)[place][0] or "the only leaf"
        if not is_trained(g):
            refuse(
                f"the gradient at {path} is of {dtype_of(g)}, and gradients are floats",
                "give what jt.grad returns, or None where nothing is trained.",
                jt.errors.DTypeError,
                gradient=g,
            )
        refuse(
            f"the gradient at {path} has another shape than its parameter",
            "give the gradients of these very parameters, summed over what was broadcast.",
            jt.errors.ShapeError,
            gradient=g,
            parameter=p,
        )


def _refuse(tree: Tree, other: Tree, name: str, error: Exception | None = None) -> None:
    jt.errors.complain(
        jt.errors.ShapeError,
        f"the tree of {name} is another one than that of the parameters",
        f"give {name} for these very parameters, with None where there is nothing.",
        details=[_difference(tree, other, "") or str(error)],
        cause=error,
    )


def _difference(tree: Tree, other: Tree, path: str) -> str:
    """Where two trees of dicts, lists and tuples part, in words; "" if that is nowhere in those."""
    at = path or "at the top"
    containers = (list, tuple, dict)
    if not (isinstance(tree, containers) or isinstance(other, containers)):
        return ""
    if type(tree) is not type(other):
        return f"{at}: {type(tree).__name__}, and {type(other).__name__}"
    if len(tree) != len(other) and not isinstance(tree, dict):
        return f"{at}: {len(tree)} parts, and {len(other)}"
    if isinstance(tree, dict) and tree.keys() != other.keys():
        return f"{at}: the keys {list(tree)}, and {list(other)}"
    keys = tree if isinstance(tree, dict) else range(len(tree))
    pairs = [(f"{path}[{key!r}]", tree[key], other[key]) for key in keys]
    return next(filter(None, (_difference(a, b, p) for p, a, b in pairs)), "")
