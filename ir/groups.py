"""Groups of processes that collectives name: who carries a collective out, by the group's name.

Graphs hold a name and a size only, so that they print, parse back and lie in caches; the communicator of
this process enters itself here (`jitney.distributed`).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .graph import SourceLine
from .opdef import GraphError

Array = np.ndarray[Any, Any]


class Group(Protocol):
    """The members of a group as one of them sees it."""

    rank: int
    size: int

    def collective(
        self,
        name: str,
        x: Array | None,
        out: Array | None,
        line: SourceLine | None = None,
        **attrs: Any,
    ) -> None:
        """Carry out the op of that name: `x` (C-contiguous) goes in, `out` is filled. Raises where
        a member fails. `line` is the user's."""


GROUPS: dict[str, Group] = {}


def group(name: str, size: int) -> Group:
    """The group of that name; GraphError where this process is in none, or in one of another size."""
    found = GROUPS.get(name)
    if found is None:
        raise GraphError(
            f"the program talks to the group {name!r}, which this process has not joined; call "
            "jt.distributed.init() first"
        )
    if found.size != size:
        raise GraphError(
            f"the program was made for a group {name!r} of {size}, and this process is in one of "
            f"{found.size}; trace it again"
        )
    return found
