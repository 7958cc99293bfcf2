"""Assigning into an array that perhaps is another one.

    z = y = x + 1
    if p:
        y = y * 2
    y[0] = 5        # is z[0] 5 now? only if p is false

Which arrays one perhaps is (`Storage.perhaps`) the ops of branches and loops say. Assigning into it is
refused while one of those can still be seen. That is judged when the outermost branch or loop is
complete: until then its own bookkeeping refers to arrays that the program has let go of.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import ReferenceType

from ...ir.graph import SourceLine
from ...ir.record import record
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .trace import require_trace
from .tracers import Storage


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
