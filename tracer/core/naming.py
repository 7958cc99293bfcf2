"""`jt.name_scope` and `jt.name`: names for parts of a program and for values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from ..data import opened
from ..messages.scopes import NOWHERE, SCOPE, Scope, joined
from .tracers import Tracer

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class name_scope:
    """A name for what is computed inside, as a context manager or a decorator.

    Scopes nest: `name` inside of "encoder" is "encoder/name", and so is a name with slashes. A second
    scope of a name in the same place is "name_1". Ops keep the path beside their source line, through
    derivatives, `vmap`, calls of jitted functions, loops and branches; it is shown where graphs are
    printed, by `f.explain`, and in errors. It changes nothing that is computed. A jitted function that
    is called outside of tracing begins with no scope.

    Raises TypeError for a name that is no string, ValueError for an empty one.

    >>> @jt.jit
    ... def f(x):
    ...     with jt.name_scope("encoder"):
    ...         return np.tanh(x)
    >>> f.trace(1.0).ops[0].loc.scope
    'encoder'
    """

    def __init__(self, name: str) -> None:
        self.name = _checked(name)

    def __enter__(self) -> str:
        before = SCOPE.get()
        path = _path(before, self.name)
        SCOPE.set(Scope(path, before.names, before))
        return path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        SCOPE.set(SCOPE.get().before or NOWHERE)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function`, each call of which is in a scope of its own."""
        name = self.name

        @functools.wraps(function)
        def named(*args: P.args, **kwargs: P.kwargs) -> R:
            with name_scope(name):
                return function(*args, **kwargs)

        return named


def name(x: T, name: str) -> T:
    """`x`, a tree of arrays, the traced ones among which are called `name` from now on.

    The name, after the path of the scopes around it, is shown where graphs are printed, and found by
    `graph["encoder/h"]` and `tracer.name`. Several arrays are `h`, `h_1`, and so on. Outside of
    tracing nothing happens.

    >>> jt.name(2.0, "h")
    2.0
    """
    path = _checked(name)
    for leaf in opened.leaves(x):
        if isinstance(leaf, Tracer):
            leaf.value.name = _path(SCOPE.get(), path)
    return x


def _path(scope: Scope, name: str) -> str:
    """A path for `name` in a scope; of a trace one that nothing else has."""
    if scope.names is None:
        return joined(scope.path, name)
    return scope.names.give(scope.path, name)


def _checked(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a name is a string, not {name!r}")
    path = "/".join(part for part in name.split("/") if part)
    if not path:
        raise ValueError(f"{name!r} names nothing")
    return path
