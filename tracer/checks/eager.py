"""Transformations outside of jit, which run op by op, are watched under `jt.config.check`, too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...runtime.config import config
from ..core.current import current_trace
from ..data import pytree

F = TypeVar("F", bound=Callable[..., Any])
_KINDS = ("nan", "inf", "overflow")


def watched_outside(function: F) -> F:
    """`function`, a transformation or what one gives, watched for what `jt.config.check` names where it
    is called outside of tracing."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        asked = config.check
        if not asked or current_trace() is not None:
            return function(*args, **kwargs)
        kinds = [kind for kind in _KINDS if kind in asked]
        return _watched(function, kinds, args, kwargs) if kinds else function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _watched(function: Callable[..., Any], kinds: list[str], args: Any, kwargs: Any) -> Any:
    from ...ir.culprit import Found, Search
    from ...ir.interpreter import watching
    from .traps import is_allowed, refuse

    search, result = Search(kinds, lambda op: None, is_allowed), None
    try:
        with watching(search):
            result = function(*args, **kwargs)
    except Found:
        pass
    else:
        leaves = pytree.flatten(result)[0]
        numbers = (np.ndarray, np.generic, float, complex)
        search.given_as_copies([np.asarray(x) for x in leaves if isinstance(x, numbers)])
    if search.earliest is not None:
        refuse(search.earliest)
    return result
