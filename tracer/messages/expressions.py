"""What was the user's code doing? The expression that a frame is evaluating, as it was written."""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
import textwrap
from types import FrameType

from .errors import JitneyError, TracerBase
from .source import hands_on, is_own_frame, is_user_frame

_LONGEST = 60


def users_call(depth: int = 1) -> ast.Call | None:
    """The call that the user's code is waiting for, in which something asks for a value."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and not is_user_frame(frame):
        frame = frame.f_back
    node = None if frame is None else expression(frame, frame.f_lasti)
    return node if isinstance(node, ast.Call) else None


def expression(frame: FrameType, instruction: int) -> ast.expr | None:
    """The expression that `instruction` of the frame's code evaluates; None where none is found."""
    positions = itertools.islice(frame.f_code.co_positions(), instruction // 2, None)
    first, last, start, end = next(positions, (None, None, None, None))
    if first is None or last is None or start is None or end is None:
        return None
    lines = [
        linecache.getline(frame.f_code.co_filename, k).encode() for k in range(first, last + 1)
    ]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        return ast.parse(f"({b''.join(lines).decode()})", mode="eval").body
    except (SyntaxError, ValueError):  # part of a statement, or the file has changed
        return None


def written(node: ast.expr) -> str:
    """An expression's text on one line, shortened."""
    return textwrap.shorten(ast.unparse(node), _LONGEST, placeholder=" ...")


def called(node: ast.Call) -> list[str]:
    """The names of what is called in an expression, without what they are attributes of: `list`, then
    `filter` of `list(filter(f, xs))`."""
    functions = [child.func for child in ast.walk(node) if isinstance(child, ast.Call)]
    names = [f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in functions]
    return [name for name in names if name]


def tell_of_traced(error: BaseException) -> None:
    """Add to Python's own error that the call which raised it was given traced values, if it was."""
    if isinstance(error, JitneyError):
        return
    user_entry = None
    entry = error.__traceback__
    while entry is not None:
        if is_user_frame(entry.tb_frame):
            user_entry = entry
        last, entry = entry, entry.tb_next
    if user_entry is None or getattr(error, "__notes__", None):
        return
    if is_own_frame(last.tb_frame) and not hands_on(last.tb_frame):
        return
    node = expression(user_entry.tb_frame, user_entry.tb_lasti)
    if not isinstance(node, ast.Call):
        return
    values = user_entry.tb_frame.f_locals
    names = [child.id for child in ast.walk(node) if isinstance(child, ast.Name)]
    if any(isinstance(values.get(name), TracerBase) for name in names):
        function = written(node.func)
        error.add_note(
            f"{function} was called while the function was traced, with values that are known only "
            "when the compiled function runs.\nCompute it before the call; or have it called at each "
            f"run, with jt.py_func({function}, jt.ShapeDtype(shape, dtype), ...)."
        )
