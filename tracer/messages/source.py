"""The user's line: the innermost stack frame that is no library's (jitney, NumPy, Python's own, ...)."""

from __future__ import annotations

import functools
import linecache
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from types import FrameType
from typing import Any

from ...ir.graph import Knobs, SourceLine, cell_name
from .scopes import KNOBS, SCOPE

# Frames of these packages never are the user's line. Tests, notebooks and `__main__` are users.
_HIDDEN = frozenset("jitney numpy scipy optree llvmlite pandas sklearn matplotlib".split())
# Where Python's own modules are, and packages.
_STANDARD = f"{os.path.dirname(os.__file__)}{os.sep}"
_PACKAGES = ("site-packages", "dist-packages")
_PACKAGE = __name__.partition(".")[0]
_BELOW = tuple(f"{_PACKAGE}.{room}." for room in ("ir", "codegen", "runtime"))
_REFERENCES = f"{_PACKAGE}.ir.ops."  # which raise as NumPy does
_DEMO = f"{_PACKAGE}.demo."  # in the package, but written as a user writes


_users: dict[Any, bool] = {}  # by module name: whether its frames are the user's


def shown_file(file: str) -> str:
    """A file as messages name it in short: without its folders; a notebook's cell as `In[3]`."""
    return cell_name(file) or os.path.basename(file)


def is_user_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's: not jitney's, nor that of a library it runs under."""
    module = frame.f_globals.get("__name__")
    if not isinstance(module, str):
        return True
    is_users = _users.get(module)
    if is_users is None:
        top = module.partition(".")[0]
        is_users = (top not in _HIDDEN and top != _PACKAGE) or module.startswith(_DEMO)
        if is_users and top in sys.stdlib_module_names:
            is_users = not _is_pythons(frame.f_code.co_filename)
        _users[module] = is_users
    return is_users


def _is_pythons(file: str) -> bool:
    """Whether a file is of Python's own library; a module of the user's may have the name of one."""
    if file.startswith("<frozen "):
        return True
    inside = file.removeprefix(_STANDARD) if file.startswith(_STANDARD) else ""
    return bool(inside) and not inside.startswith(_PACKAGES)


def is_pythons_module(name: str) -> bool:
    """Whether a module is of Python's own library; a user's `wave.py` has the name of one, too."""
    if name.partition(".")[0] not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return not file.endswith(".py") or _is_pythons(file)


def is_own_frame(frame: FrameType) -> bool:
    """Whether a frame is this package's, and not a user's, NumPy's or another library's."""
    module = frame.f_globals.get("__name__")
    own = isinstance(module, str) and module.partition(".")[0] == _PACKAGE
    return own and not is_user_frame(frame)


def hands_on(frame: FrameType) -> bool:
    """Whether a frame of ours only hands on what it is given to Python's function."""
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and module.endswith(("calls.streams", "calls.generators"))


def is_internal(error: BaseException) -> bool:
    """Whether an exception comes out of the rooms that know graphs only: it is a fault of ours, about no
    element, key or number of the user's."""
    import traceback  # that takes time, and few processes have errors

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = str(frames[-1].f_globals.get("__name__")) if frames else ""
    return module.startswith(_BELOW) and not module.startswith(_REFERENCES)


class _Formula(threading.local):
    """The user's line while one of our formulas is traced for it."""

    line: SourceLine | None = None


_formula = _Formula()


@contextmanager
def one_line() -> Iterator[None]:
    """Inside runs no code of the user's: the line is the one that it is now. Formulas of hundreds of ops
    that call each other through transformations are deep, and each op asks."""
    before, _formula.line = _formula.line, user_line(3)
    try:
        yield
    finally:
        _formula.line = before


def user_line(depth: int = 1) -> SourceLine | None:
    """The line of the user's code that is executing, or None when no frame is the user's."""
    if _formula.line is not None:
        return _formula.line
    frame: FrameType | None = sys._getframe(depth)
    users = _users
    while frame is not None:
        # Asked several times for every op: what is known is looked up here.
        is_users = users.get(frame.f_globals.get("__name__"))
        if is_users or (is_users is None and is_user_frame(frame)):
            code = frame.f_code  # equal to that of the same text in another file: no key
            scope = SCOPE.get().path
            place = code.co_filename, frame.f_lineno, code.co_qualname
            column = _column(frame) if code.co_name == "<lambda>" else 0
            return _source_line(*place, scope, KNOBS.get(), column)
        frame = frame.f_back
    return None


def raised_line(error: BaseException) -> SourceLine | None:
    """The innermost line of the user's code that an exception came through on its way here."""
    line = None
    import traceback

    for frame, number in traceback.walk_tb(error.__traceback__):
        if is_user_frame(frame):
            line = _source_line(frame.f_code.co_filename, number, frame.f_code.co_qualname)
    return line


def user_level() -> int:
    """The `stacklevel` with which the caller's `warnings.warn` is about the user's line."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and not is_user_frame(frame):
        frame, level = frame.f_back, level + 1
    return level


@functools.lru_cache(maxsize=1024)
def _source_line(
    file: str,
    line: int,
    function: str,
    scope: str = "",
    knobs: Knobs | None = None,
    column: int = 0,
) -> SourceLine:
    return SourceLine(file, line, function, scope, knobs=knobs, column=column)


_columns: dict[tuple[bytes, int], int] = {}  # each op asks, and finding one walks the code


def _column(frame: FrameType) -> int:
    """Where in its line the expression begins that a frame evaluates, from 1 on; 0 if Python does not
    know (`-X no_debug_ranges`)."""
    code, at = frame.f_code, frame.f_lasti
    column = _columns.get((code.co_linetable, at))
    if column is None:
        position = next(islice(code.co_positions(), at // 2, None), None)
        column = 0 if position is None or position[2] is None else position[2] + 1
        if len(_columns) > 4096:
            _columns.clear()
        _columns[code.co_linetable, at] = column
    return column


def source_text(line: SourceLine | None) -> str:
    """The text of that line, stripped; empty when the source cannot be found."""
    return linecache.getline(line.file, line.line).strip() if line else ""
