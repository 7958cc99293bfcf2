"""Two variables may be one array. An op gives values: which arrays its results are is no longer known.

    z = y = x + 1
    if p:
        y = y * 2
    y[0] = 5        # is z[0] 5 now? only if p is false

A result remembers which other arrays it perhaps is (`Storage.perhaps`). Assigning into it is refused
while one of those can still be seen. That is judged when the outermost branch or loop is complete: until
then its own bookkeeping refers to arrays that the program has let go of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ReferenceType, ref

from ...ir.graph import SourceLine
from ...ir.record import record
from .. import errors
from ..core import Storage, Tracer
from ..errors import complain
from ..source import user_line
from ..trace import require_trace
from .jumps import RESULT


@record
class Doubt:
    """An assignment into an array that perhaps is one of others."""

    others: tuple[ReferenceType[Storage], ...]
    line: SourceLine | None
    name: str  # of the variable, where that is known

    def settle(self) -> None:
        if all(other() is None for other in self.others):
            return
        name = self.name or "x"
        complain(
            errors.OuterMutationError,
            f"this assigns into an array{' of ' + repr(self.name) if self.name else ''} that may be "
            "the same as another one that is still in use, or not, as conditions decide that are known "
            "only when the compiled function runs",
            f"assign to a copy: {name} = {name}.copy() where they part.",
            line=self.line,
        )


def doubt(others: tuple[ReferenceType[Storage], ...], name: str = "") -> None:
    """Note an assignment into what perhaps is one of `others`."""
    settle_doubts([Doubt(others, user_line(2), name)])


def settle_doubts(doubts: Sequence[Doubt]) -> None:
    """Judge doubts, or leave that to the branch or loop around."""
    adoption = require_trace().adoption
    if adoption is not None:
        adoption.doubts += doubts
        return
    for one in doubts:
        one.settle()


def storage_of(x: Any) -> Storage | None:
    """The storage of an array that can be assigned into."""
    return x._storage if isinstance(x, Tracer) and not x.scalar else None


def confuse(groups: Sequence[tuple[str, Tracer, Sequence[Storage | None]]]) -> None:
    """Note that results of an op may be arrays that others still see. Each comes with its variable and
    the storages that this had, inside or outside; results that share one may be the same array.

    A returned value does not mind what becomes of the others: nothing runs after a `return`.
    """
    known = [(n, result._storage, [s for s in given if s]) for n, result, given in groups]
    inside: dict[Storage, list[Storage]] = {}
    for name, result, given in known:
        for storage in given:
            found = inside.setdefault(storage, [])
            if name != RESULT:
                found.append(result)
    for _, result, given in known:
        others = [s for storage in given for s in inside[storage] if s is not result]
        earlier = [r for storage in given for r in storage.perhaps]
        result.perhaps = (*(ref(s) for s in dict.fromkeys([*given, *others])), *earlier)
