"""What nothing traced can reach runs as Python: asked before a function's twin begins, see autograph."""

from __future__ import annotations

from typing import Any

from ..core.trace import current_trace
from .closed import ClosedCode
from .running import without_watching

_ROOM = 4096  # elements of containers looked at before a call


def as_python(function: Any, args: tuple[Any, ...]) -> Any:
    """What is to be called in place of a twin: its original, if nothing traced can be reached from there
    and from what it is given. Else None."""
    if current_trace() is None:
        return function
    code, conditional = closed_code()
    if not code.consists_of_data(args, _ROOM):
        return None
    closed = code.closed(function, _ROOM)
    if closed is None or (
        closed.raises and conditional
    ):  # there it is the compiled function that raises
        return None
    return without_watching(closed.codes, function)


def closed_code() -> tuple[ClosedCode, bool]:
    """What is known of code in this trace, and whether what is traced may be skipped when it runs."""
    root, conditional = current_trace(), False
    assert root is not None
    while root.parent is not None:
        conditional |= root.conditional
        root = root.parent
    if root.closed is None:
        root.closed = ClosedCode()
    return root.closed, conditional


def is_closed(function: Any) -> bool:
    """Whether a function may turn out to run as Python."""
    if current_trace() is None:
        return False
    return closed_code()[0].closed(function, _ROOM) is not None
