"""Why code is as it is: what passes over steps note down where they decide, for who asks `explain`.

    refusal = _refusal(group, stage)        a pass finds a reason where it decides
    note("fusion", stage, refusal)          and tells it, if somebody listens

Only code that is made to be looked at (`Target.probe`) has a journal: without one a note is a look at a
variable. Reasons are values that the decision itself gives back, so none is made up afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from ..ir.graph import SourceLine
from .limits import limits
from .module import Reason

# A dynamic scope, as limits have: leaves of every pass note.
_current: ContextVar[dict[Reason, None] | None] = ContextVar("journal", default=None)


class Refusal(NamedTuple):
    """Why something was not done, and what would change that."""

    why: str
    remedy: str = ""


def too_little() -> Refusal:
    """One thread does it all, since others would begin when it is nearly over."""
    least = limits().parallel_ns / 1e3
    return Refusal(
        f"it is too little to share: below about {least:.3g} us, waking other threads costs more "
        "than they save",
        "nothing needs to be changed, with larger arrays threads share it",
    )


class Subject(NamedTuple):
    """What a note is about: a name, and the user's line."""

    name: str
    loc: SourceLine | None


def listening() -> bool:
    """Whether somebody wants to know."""
    return _current.get() is not None


def note(kind: str, subject: Subject, refusal: Refusal, other: Subject | None = None) -> None:
    """Note a reason; `kind` is "fusion", "lanes", "threads" or "scalar"."""
    journal = _current.get()
    if journal is not None:
        beside = other or Subject("", None)
        journal[Reason(kind, *subject, *refusal, *beside)] = None


@contextmanager
def written(wanted: bool) -> Iterator[dict[Reason, None]]:
    """Notes made inside of the block, each once, if they are wanted."""
    journal: dict[Reason, None] = {}
    token = _current.set(journal if wanted else None)
    try:
        yield journal
    finally:
        _current.reset(token)
