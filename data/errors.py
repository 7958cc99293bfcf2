"""What goes wrong with data, and the words for it: which file, which element, whose line."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any, NoReturn

import jitney as jt


class DataError(ValueError):
    """Data is not what it says it is, or not what was asked for: truncated, corrupted, of other shapes.

    The message names the file and the record, line or element.

    >>> raise jt.data.DataError("a.txt, line 3: not UTF-8")
    Traceback (most recent call last):
    jitney.data.errors.DataError: a.txt, line 3: not UTF-8
    """


class WorkerError(RuntimeError):
    """A worker process died: killed, out of memory, or by `os._exit`. The message names its element.

    >>> issubclass(jt.data.WorkerError, RuntimeError)
    True
    """


def describe(element: Any, room: int = 300) -> str:
    """An element in few words: arrays by dtype and shape, texts by their beginning.

    >>> describe({"x": np.zeros((2, 3)), "y": "abc", "z": (1, None)})
    "{'x': float64[2, 3], 'y': 'abc', 'z': (1, None)}"
    """
    text = _words(element)
    return text if len(text) <= room else f"{text[: room - 3]}..."


def _words(x: Any) -> str:
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k!r}: {_words(v)}" for k, v in x.items()) + "}"
    if isinstance(x, (tuple, list)):
        inside = ", ".join(map(_words, x[:8])) + (", ..." if len(x) > 8 else "")
        return f"[{inside}]" if isinstance(x, list) else f"({inside})"
    if getattr(x, "shape", None) is not None and hasattr(x, "dtype") and x.shape != ():
        return f"{x.dtype}[{', '.join(map(str, x.shape))}]"
    text = repr(x)
    return text if len(text) <= 60 else f"{text[:57]}..."


def refuse(what: str, remedy: str, kind: type[Exception] = ValueError) -> NoReturn:
    """Raise an error about arguments, with the user's line."""
    jt.errors.complain(kind, what, remedy)


def _users(function: Any) -> Any:
    """The function that the user gave, of what was made of it."""
    while (below := getattr(function, "func", getattr(function, "__wrapped__", None))) is not None:
        function = below
    return function


def place(function: Callable[..., Any]) -> str:
    """A function's name, and the file and line that define it."""
    inner = _users(function)
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    return f"{name} at {_line(code, code.co_firstlineno)}" if code else name


def blame(
    error: BaseException, what: str, function: Callable[..., Any], number: int, x: Any
) -> None:
    """Note on an exception of a user's function which element it had, and the user's line."""
    line = _user_line(error.__traceback__, getattr(_users(function), "__code__", None))
    error.add_note(f"in {what}({place(function)}), element {number}: {describe(x)}{line}")


def _user_line(trace: TracebackType | None, code: CodeType | None) -> str:
    """The innermost line in the file of the function; without a file, the first that is not ours."""
    found = ""
    while trace is not None:
        frame = trace.tb_frame.f_code
        if frame.co_filename == (code.co_filename if code else None):
            text = linecache.getline(frame.co_filename, trace.tb_lineno).strip()
            found = f"\n  {_line(frame, trace.tb_lineno)}, in {frame.co_name}: {text}"
        trace = trace.tb_next
    return found


def _line(code: CodeType, number: int) -> str:
    return str(jt.errors.SourceLine(code.co_filename, number))
