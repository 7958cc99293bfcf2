"""Functions that are called with opened objects, and see the objects.

While such a function runs, what is computed with stands in the very objects, where their arrays are.
So whatever else it assigns stays assigned, and two names of one object are two names of one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .callables import Function
from .objects import Place, Walk, standing_in
from .opened import Opened, Setting, map_opened, opened, opened_in


def open_call(
    fun: Function,
    args: Sequence[Any],
    positions: Sequence[int] | None = None,
    gradient: bool = True,
) -> tuple[Function, tuple[Any, ...]]:
    """`fun` and its arguments, with the objects among those at `positions` (all of them if None) opened,
    for derivatives if `gradient`: the function enters them. Both as they were if there are none."""
    count = len(args)
    chosen = [
        p % count for p in (range(count) if positions is None else positions) if -count <= p < count
    ]
    walk = Walk()
    parts = [opened(args[p], gradient, True, walk) for p in chosen]
    found = opened_in(parts)
    if not found:
        return fun, tuple(args)
    full = list(args)
    for position, part in zip(chosen, parts, strict=True):
        full[position] = part
    return entering(fun, found), tuple(full)


def entering(fun: Function, found: Sequence[Opened | Setting]) -> Function:
    """`fun`, which is called with opened objects and sees the objects."""

    @functools.wraps(fun)
    def entered(*args: Any, **kwargs: Any) -> Any:
        with standing(args, kwargs) as (own, named):
            return fun(*own, **named)

    objects = tuple(one for one in found if isinstance(one, Opened))
    entered.__jitney_opened__ = objects  # type: ignore[attr-defined]
    return entered


def opened_for(function: Function) -> tuple[Opened, ...]:
    """The opened objects that a function is called with."""
    return getattr(function, "__jitney_opened__", ())


@contextmanager
def standing(args: Any, kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """The arguments with objects in the place of opened ones, in which the leaves stand meanwhile.
    What the function has put in their place stays there."""
    with standing_in:
        before: list[tuple[Place, Any, Any]] = []
        whole = False
        try:
            for one in opened_in((args, kwargs)):
                if isinstance(one, Setting):
                    continue
                for parameter, leaf in zip(one.plan.parameters, one.leaves, strict=True):
                    for place in parameter.places:
                        before.append((place, place.get(), leaf))
                        place.put(leaf)
            yield map_opened(lambda one: one.plan.obj, (args, kwargs))
            whole = True
        finally:
            for place, held, leaf in reversed(before):
                if not whole or place.get() is leaf:
                    place.put(held)
