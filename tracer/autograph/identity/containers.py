"""A list that is one of two is a third one while the function is traced: neither it nor those may
change; if one does, they become native lists, of which a branch chooses the handle."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

from ....ir.graph import SourceLine
from ...containers.kinds import fits, make_native
from ...control.unions import Union
from ...core.trace import require_trace
from ...messages import errors
from ...messages.errors import complain
from ..syntax.jumps import RESULT
from ..variables import Containers

CONTAINERS = (list, dict, set, deque)


def seen_by_others(x: Any, own: int) -> list[Any]:
    """The lists, dicts, sets and deques in `x` to which there are more references than `own` of the
    caller's to `x`, and one to each in it."""
    if type(x) is Union:
        return [c for option in x.options.values() for c in seen_by_others(option, 2)]
    if not isinstance(x, (*CONTAINERS, tuple)):
        return []
    here = 2  # the parameter, and that of getrefcount
    found = [x] if sys.getrefcount(x) > own + here and isinstance(x, CONTAINERS) else []
    for part in x.values() if isinstance(x, dict) else x:
        found += seen_by_others(part, 2)  # the element, and the variable of the loop
    return found


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


def watch(name: str, chosen: Any, among: Sequence[Any], line: SourceLine | None) -> None:
    """From now on `chosen` stands for one of the containers `among`, to be known at run time: at the end
    of the trace, none of them may have been changed. The trace of a function that only returns it need
    not care."""
    if name == RESULT:
        return
    before = Containers([chosen, *among])

    def check() -> None:
        if before.changed():
            if all(map(fits, among)):
                make_native(list(among))  # there a branch chooses between handles
            complain(
                errors.OuterMutationError,
                f"{name or 'a value'} is one of several {type(among[0]).__name__}s, which one is known "
                "only when the compiled function runs, and one of them is changed afterwards",
                "copy it before that (list(x), dict(x)), or change it in each branch.",
                line=line,
            )

    require_trace().checks.append(check)
