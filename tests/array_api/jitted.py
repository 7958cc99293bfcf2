"""`xp`: jitney's namespace, each function compiled for the arguments of each call.

What the conformance suite calls is then what compiled programs call; creation, dtypes and inspection
stay as they are.
"""

from __future__ import annotations

import functools
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

import jitney as jt

PLAIN = frozenset(
    "asarray can_cast finfo from_dlpack iinfo isdtype result_type __array_namespace_info__".split()
)


def compiled(function: Any) -> Any:
    """`function`, its arrays as arguments of a compiled function and all else as constants."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = jt.tree.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if isinstance(x, (np.ndarray, np.generic))]
        if not places:
            return function(*args, **kwargs)

        def program(*arrays: Any) -> Any:
            full = list(leaves)
            for i, x in zip(places, arrays, strict=True):
                full[i] = x
            given, options = jt.tree.unflatten(tree, full)
            return function(*given, **options)

        return jt.jit(program)(*(leaves[i] for i in places))

    return call


class Namespace:
    """The attributes of another namespace, its functions compiled."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if isinstance(found, SimpleNamespace):
            return Namespace(found)
        return compiled(found) if isinstance(found, FunctionType) and name not in PLAIN else found


xp = Namespace(jt)
