"""Tracebacks of errors end at the user's frames: those of this package are taken out.

    File "model.py", line 12, in <module>
        train(x)
    File "model.py", line 7, in train             and not the twenty frames that traced it
        return x @ weights
    jitney.tracer.errors.ShapeError: matmul: ...

Where the user's code calls ours, `shorten` the error and raise it again with a bare `raise`, which
adds no frame; a `try` costs nothing where nothing is raised. `jt.config.full_tracebacks` keeps all
frames. So does an error that looks like our own fault, whose report needs them.
"""

from __future__ import annotations

import functools
import linecache
import re
from collections.abc import Callable, Iterator
from opcode import opmap
from types import TracebackType
from typing import Any, TypeVar

from ...ir.faults import GraphError
from ...runtime.config import config
from .errors import JitneyError
from .source import is_own_frame, is_user_frame

F = TypeVar("F", bound=Callable[..., Any])

# What calls of ours do not meet, whatever they were given.
_ACCIDENTS = (AttributeError, ImportError, KeyError, NameError, SystemError)


def shortened(function: F) -> F:
    """`function`, with errors whose tracebacks end at the user's frames. For what users call."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    call.__wrapped__ = getattr(function, "__wrapped__", function)
    return call  # type: ignore[return-value]


def shorten(error: BaseException) -> None:
    """Take our frames out of the traceback of `error`, and of the errors that it names as causes."""
    if config.full_tracebacks:
        return
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if link is not error or not _is_accident(link):
            link.__traceback__ = _users_part(link)
        link = link.__cause__ or link.__context__


def _entries(error: BaseException) -> Iterator[TracebackType]:
    entry = error.__traceback__
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _users_part(error: BaseException) -> TracebackType | None:
    """The traceback without our frames; of an error of ours also without NumPy's."""
    said_by_us = isinstance(error, JitneyError)
    first: TracebackType | None = None
    last: TracebackType | None = None
    for entry in list(_entries(error)):
        frame = entry.tb_frame
        if is_user_frame(frame) if said_by_us else not is_own_frame(frame):
            if last is None:
                first = entry
            else:
                last.tb_next = entry
            last = entry
    if last is not None:
        last.tb_next = None
    return first


def _asks_for(error: AttributeError) -> bool:
    """Whether the user's line has the attribute that is not there."""
    found = re.search(r"attribute '(\w+)'", str(error))
    users = [entry for entry in _entries(error) if is_user_frame(entry.tb_frame)]
    if found is None or not users:
        return False
    line = linecache.getline(users[-1].tb_frame.f_code.co_filename, users[-1].tb_lineno)
    return re.search(rf"\.\s*{found[1]}\b", line) is not None


def _is_accident(error: BaseException) -> bool:
    """Whether an error looks like a fault of ours: raised in our code, though not by a `raise`."""
    if isinstance(error, JitneyError):
        return False
    entries = list(_entries(error))  # none where it was shortened before, as the context of another
    if not entries or not is_own_frame(entries[-1].tb_frame):
        return False
    innermost = entries[-1]
    if isinstance(error, GraphError) or (isinstance(error, AssertionError) and not error.args):
        return True
    if isinstance(error, AttributeError) and _asks_for(error):
        return False
    instruction = innermost.tb_frame.f_code.co_code[innermost.tb_lasti]
    return isinstance(error, _ACCIDENTS) and instruction != opmap["RAISE_VARARGS"]
