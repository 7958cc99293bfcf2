"""The user's line: the innermost stack frame that is no library's (jitney, NumPy, ...)."""

from __future__ import annotations

import linecache
import sys
from types import FrameType

from ..ir.graph import SourceLine

# Frames of these packages never are the user's line. Tests, notebooks and `__main__` are users.
_HIDDEN = frozenset(
    {"jitney", "numpy", "scipy", "optree", "llvmlite", "functools", "contextlib", "threading"}
)
_PACKAGE = __name__.partition(".")[0]
_DEMO = f"{_PACKAGE}.demo."  # in the package, but written as a user writes


def is_user_frame(frame: FrameType) -> bool:
    module = frame.f_globals.get("__name__")
    if not isinstance(module, str):
        return True
    top = module.partition(".")[0]
    return (top not in _HIDDEN and top != _PACKAGE) or module.startswith(_DEMO)


def user_line(depth: int = 1) -> SourceLine | None:
    """The line of the user's code that is executing, or None when no frame is the user's."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if is_user_frame(frame):
            code = frame.f_code
            return SourceLine(code.co_filename, frame.f_lineno, code.co_qualname)
        frame = frame.f_back
    return None


def source_text(line: SourceLine | None) -> str:
    """The text of that line, stripped; empty when the source cannot be found."""
    return linecache.getline(line.file, line.line).strip() if line else ""
