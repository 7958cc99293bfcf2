"""Two variables may be one array. An op gives values: which arrays its results are is no longer known.

A result remembers which other arrays it perhaps is, as `tracer.core.sharing` asks before assignments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

from ..core.tracers import Storage, Tracer
from .syntax.jumps import RESULT


def storage_of(x: Any) -> Storage | None:
    """The storage of an array that can be assigned into."""
    return x._storage if isinstance(x, Tracer) and not x.scalar else None


def confuse(groups: Sequence[tuple[str, Tracer, Sequence[Storage | None]]]) -> None:
    """Note that results of an op may be arrays that others still see. Each comes with its variable and
    the storages that this had, inside or outside; results that share one may be the same array.

    A returned value does not mind what becomes of the others: nothing runs after a `return`.
    """
    rows = [(n, result._storage, [s for s in operands if s]) for n, result, operands in groups]
    inside: dict[Storage, list[Storage]] = {}
    for name, result, operands in rows:
        for storage in operands:
            results = inside.setdefault(storage, [])
            if name != RESULT:
                results.append(result)
    for _, result, operands in rows:
        others = [s for storage in operands for s in inside[storage] if s is not result]
        earlier = [r for storage in operands for r in storage.perhaps]
        result.perhaps = (*(ref(s) for s in dict.fromkeys([*operands, *others])), *earlier)
    for name, result, operands in rows:  # nor may what they perhaps are be assigned into unseen
        for storage in operands:
            if name != RESULT and storage is not result:
                storage.perhaps = (*storage.perhaps, ref(result))
