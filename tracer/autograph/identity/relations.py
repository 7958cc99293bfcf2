"""What a loop carries of which arrays are one: before it, and after an iteration, as booleans beside
the arrays; and which array from outside an attribute holds, as a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....ir.record import record
from ...core.sharing import Steps, relate
from ...core.trace import require_trace
from ...core.tracers import Storage
from ...data import pytree
from ..carried import CarriedVariable
from ..surroundings import Slot
from ..syntax.jumps import RESULT
from .arrays import Link, between, links_of, storage_of


@record
class Which:
    """Which array a slot, or an attribute among the variables, holds is carried, too."""

    of: int | Slot


@record
class Classes:
    """Of which class a number is that is carried as a float is carried, too (`number_classes`)."""

    of: int | Slot


@record
class Alike:
    """Whether two arrays are one is carried, too: `one` is a leaf of what is carried, by its key and
    position, `other` such a leaf, or an array from outside of the loop. See `core.sharing.Relation`."""

    one: tuple[Any, int]
    other: Any
    steps: Steps
    from_other: bool


Key = int | str | Slot | Which | Classes | Alike


def arrays_of(
    carried: Mapping[Key, CarriedVariable], values: Callable[[Key], Any]
) -> list[tuple[tuple[Key, int], list[Link]]]:
    """The arrays that are carried as they are now, each with its key, its position and its links."""
    return [
        ((key, i), links_of(leaf))
        for key, variable in carried.items()
        if variable.name != RESULT and not isinstance(key, (Which, Classes, Alike))
        for i, leaf in enumerate(pytree.flatten(values(key))[0])
        if i < len(variable.outs) and variable.outs[i] is not None and storage_of(leaf) is not None
    ]


def alike(arrays: Sequence[tuple[tuple[Key, int], list[Link]]]) -> dict[Alike, Any]:
    """Which of these arrays are one, and which are one of those outside of the loop."""
    here, found = require_trace(), {}
    for k, (one, links) in enumerate(arrays):
        for other, theirs in arrays[:k]:
            for x in between(links, theirs):
                found[Alike(one, other, x.steps, x.from_other)] = x.holds
        for x in links:
            if not isinstance(x.other, Storage):
                continue
            owner = x.other.trace
            adopted = here.adoption is not None and any(
                s is x.other for s, _, _ in here.adoption.owners
            )
            if adopted or (owner is not here and not owner.done):
                found[Alike(one, x.other, x.steps, x.from_other)] = x.holds
    return found


def relate_leaves(key: Alike, holds: Any, built: Mapping[Key, Any]) -> None:
    """Note whether the two arrays of `key` are one, among the values that were `built` of the carry."""
    one, other = (_storage_in(x, built) for x in (key.one, key.other))
    if one is not None and other is not None and one is not other:
        relate(one, other, holds, key.steps, key.from_other)


def _storage_in(place: Any, built: Mapping[Key, Any]) -> Storage | None:
    if isinstance(place, Storage):
        return place
    key, position = place
    return storage_of(pytree.flatten(built[key])[0][position])
