"""A list that is one of two is a third one while the function is traced: neither it nor those may
change; if one does, they become native lists, of which a branch chooses the handle."""

from __future__ import annotations

import operator
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ....ir.graph import SourceLine
from ...containers.kinds import fits, is_outside, make_native
from ...control.unions import Union
from ...core.trace import require_trace
from ...data import pytree
from ...messages import errors
from ...messages.errors import complain
from ..syntax.jumps import RESULT
from ..variables import Containers

CONTAINERS = (list, dict, set, deque)


def _references(x: Any) -> int:
    return sys.getrefcount(x)


def _added() -> int:
    """What a call with a variable adds: 2, or nothing where Python lends references (3.14)."""
    x: list[Any] = []
    return _references(x) - 1


_ADDED = _added()


def seen_by_others(x: Any, own: int) -> list[Any]:
    """The lists, dicts, sets, deques and dataclasses in `x` to which there are more references than
    `own` of the caller's to `x`, which is a variable of it, and one to each in it."""
    if type(x) is Union:
        return [c for option in x.options.values() for c in seen_by_others(option, 2)]
    is_changeable = isinstance(x, CONTAINERS) or _is_open(x)
    if not is_changeable and not isinstance(x, tuple):
        return []
    found = [x] if is_changeable and sys.getrefcount(x) > own + _ADDED else []
    parts = vars(x) if is_changeable and not isinstance(x, CONTAINERS) else x
    for part in parts.values() if isinstance(parts, dict) else parts:
        found += seen_by_others(part, 2)  # the element, and the variable of the loop
    return found


def _is_open(x: Any) -> bool:
    """Whether it is an object that is a structure of its attributes, which may be assigned to."""
    params = getattr(type(x), "__dataclass_params__", None)
    return params is not None and not params.frozen and hasattr(x, "__dict__")


def belonging(values: Sequence[Any], names: Sequence[str]) -> dict[int, str]:
    """The containers, by their ids, that nothing but one variable refers to. `values` is the only
    reference to what it holds besides the variables."""
    owners: dict[int, str] = {}
    for i, name in enumerate(names):
        value = values[i]
        shared = {id(x) for x in seen_by_others(value, 3)}  # the variable, `values` and `value`
        owners |= {id(x): name for x in _containers(value) if id(x) not in shared}
    return owners


def outer_ids(values: Sequence[Any]) -> set[int]:
    """The ids of containers that are there before a branch or loop: of one of them, what a variable has
    afterwards, without a value otherwise, is this one, and not another of the same content."""
    return {id(x) for value in values for x in _containers(value)}


def _containers(x: Any) -> list[Any]:
    if type(x) is Union:
        x = tuple(x.options.values())
    if not isinstance(x, (*CONTAINERS, tuple)):
        return []
    inner = [c for part in (x.values() if isinstance(x, dict) else x) for c in _containers(part)]
    return [x, *inner] if isinstance(x, CONTAINERS) else inner


class OfOthers:
    """Containers that others see, too, and that variables of a loop hold before it: an iteration begins
    with copies of them.

    What the body changes in a copy the others would not see. Where a variable only holds one container
    that does not matter, as its content is carried; but one that the body also binds anew (`d["a"] += 1;
    d = {**d}`) is that of the others in the first iteration, and another one later.
    `held`: the name of each variable, what it has before the loop, and the copy.
    """

    def __init__(
        self, held: Iterable[tuple[str, Any, Any]], are_others: Callable[[Any], bool]
    ) -> None:
        self._contents = _Contents(
            (name, copy)
            for name, before, whole in held
            for old, copy in zip(pytree.nodes(before), pytree.nodes(whole), strict=False)
            if not isinstance(old, tuple) and are_others(old)
        )

    def changed(self) -> str:
        """The name of a variable whose container was changed; "" if none was."""
        return next(self._contents.changed(), "")


class _Contents:
    """What is in containers now, each with a name."""

    def __init__(self, containers: Iterable[tuple[str, Any]]) -> None:
        self._saved = [(name, x, pytree.children(x)) for name, x in containers]

    def changed(self) -> Iterator[str]:
        """The names of those that hold other objects since."""
        for name, container, before in self._saved:
            now = pytree.children(container)
            if len(now) != len(before) or any(map(operator.is_not, now, before)):
                yield name


def is_callers(x: Any) -> bool:
    """Whether a container, or an object, was there before the call."""
    heap = require_trace().watched
    return is_outside(x) or (heap is not None and heap.has(x))


def watch(name: str, chosen: Any, among: Sequence[Any], line: SourceLine | None) -> None:
    """From now on `chosen` stands for one of the containers `among`, to be known at run time: at the end
    of the trace, none of them may have been changed. The trace of a function that only returns it need
    not care."""
    if name == RESULT:
        return
    before = _Contents(("", node) for x in (chosen, *among) for node in pytree.nodes(x))
    sets = Containers([chosen, *among])

    def check() -> None:
        if sets.changed() or any(True for _ in before.changed()):
            if all(isinstance(x, CONTAINERS) and fits(x) for x in among):
                make_native(list(among))  # there a branch chooses between handles
            complain(
                errors.OuterMutationError,
                f"{name or 'a value'} is one of several {type(among[0]).__name__}s, which one is known "
                "only when the compiled function runs, and one of them is changed afterwards",
                "copy it before that (list(x), dict(x)), or change it in each branch.",
                line=line,
            )

    require_trace().checks.append(check)
