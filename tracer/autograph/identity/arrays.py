"""Two variables may be one array. An op gives values: which arrays its results are is no longer known.

A result remembers which other arrays it perhaps is, as `tracer.core.sharing` asks at assignments; where
that matters, the op tells it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

from ....ir.record import record
from ...core.sharing import Relation, Steps, steps_of
from ...core.tracers import Storage, Tracer
from ..syntax.jumps import RESULT
from ..variables import is_own_array


def storage_of(x: Any) -> Storage | None:
    """The storage of an array that can be assigned into."""
    return x._storage if isinstance(x, Tracer) and not x.scalar else None


@record(eq=False)
class Link:
    """An array is another one, or a view of it that `steps` lead to (`from_other`; or they lead from it
    to the other), if that `holds`: True, a traced bool, or None where nobody knows."""

    other: Any  # a storage, or an array that NumPy made
    steps: Steps
    holds: Any
    from_other: bool = True


def is_outside(x: Any) -> bool:
    """Whether a storage is one of those that are left when regions have been traced."""
    return isinstance(x, Storage) and not x.trace.done


def links_of(x: Any) -> list[Link]:
    """What an array is to the storages around: first to its own, then to what that perhaps is."""
    if is_own_array(x):
        return [Link(x, (), True)]
    storage = storage_of(x)
    if storage is None:
        return []
    own = steps_of(x)
    links = [Link(storage, own or (), None if own is None else True)]
    for relation in storage.perhaps:
        other = relation.other()
        if not relation.is_alive or not isinstance(other, Storage):
            continue
        holds = None if own is None else relation.holds
        if relation.from_other:
            links.append(Link(other, (*relation.steps, *(own or ())), holds))
        elif not own:
            links.append(Link(other, relation.steps, holds, False))
    return links


def between(one: Sequence[Link], other: Sequence[Link]) -> list[Link]:
    """What one array is to another: links of the one to the other's storage, of the links of both."""
    if not one or not other:
        return []
    own, others = one[0], other[0]
    if own.other is others.other and own.steps == others.steps:
        return [Link(others.other, (), own.holds and others.holds)]
    found = [x for x in one if x.other is others.other and not others.steps]
    if not own.steps:
        # What one is may know nothing of the other, which was made later.
        back = [x for x in other if x.other is own.other and (x.steps or not found)]
        found += [Link(others.other, x.steps, x.holds, not x.from_other) for x in back]
    if not found and own.other is others.other:
        return [Link(others.other, (), None)]  # two views of one array
    return found


@record(frozen=False, eq=False)
class Merged:
    """An array that an op gives, the name of its variable, and the links of what it is made of, for each
    branch, or before and after an iteration."""

    name: str
    links: list[list[Link]]
    result: Tracer | None = None


def confuse(results: Sequence[Merged]) -> None:
    """Note that results of an op may be arrays that others still see; those of which one storage is made
    may be the same array.

    A returned value does not mind what becomes of the others: nothing runs after a `return`.
    """
    rows = [
        (m.name, m.result, [x[0].other for x in m.links if x], m.links)
        for m in results
        if m.result is not None
    ]
    inside: dict[int, list[Storage]] = {}
    for name, result, operands, _ in rows:
        for storage in operands:
            found = inside.setdefault(id(storage), [])
            if name != RESULT:
                found.append(result._storage)
    for name, result, operands, links in rows:
        own = result._storage
        perhaps = {id(x.other) for some in links for x in some}
        others = [s for number in perhaps for s in inside.get(number, ()) if s is not own]
        storages = [s for s in operands if isinstance(s, Storage)]
        earlier = [r.other() for storage in storages for r in storage.perhaps if r.is_alive]
        for other in {id(x): x for x in [*operands, *others, *earlier]}.values():
            if other is not own:
                own.perhaps = (*own.perhaps, Relation(ref(other)))
        for storage in storages:  # nor may what they perhaps are be assigned into unseen
            if name != RESULT and storage is not own:
                storage.perhaps = (*storage.perhaps, Relation(ref(own)))
