"""Calls that ask the world, or tell it something: clocks, logs, warnings, files, the keyboard.

    t = time.perf_counter()      # each time that the compiled function comes here, in the order of its
    log.info("%s", x)            # effects, by a call back into Python

What gives no number, or goes on from where the last call left it, is refused: it would be what it was
while the function was traced, at every later call.
"""

from __future__ import annotations

import builtins
import datetime
import io
import os
import pathlib
import sys
import time
import warnings
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NoReturn

import numpy as np

from ..control.callbacks import io_callback
from ..core.tracers import as_value, wrap
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .texts import Text, call_with
from .variables import in_graph

_CLOCKS: dict[Any, type] = {
    **dict.fromkeys((time.time, time.perf_counter, time.monotonic, time.process_time), float),
    time.thread_time: float,
    **dict.fromkeys((time.time_ns, time.perf_counter_ns, time.monotonic_ns), int),
    **dict.fromkeys((time.process_time_ns, time.thread_time_ns), int),
}
_FILES = "read it outside, and pass what it holds as an argument"
_ASKED: dict[Any, str] = {  # what is refused, and the remedy
    **dict.fromkeys((builtins.open, io.open, os.open, np.loadtxt, np.genfromtxt, np.load), _FILES),
    **dict.fromkeys((np.fromfile, np.save, np.savez, np.savetxt), _FILES),
    **dict.fromkeys((os.listdir, os.scandir, os.walk, os.stat, os.getcwd), _FILES),
    **dict.fromkeys((os.path.exists, os.path.isfile, os.path.isdir), _FILES),
    **dict.fromkeys((os.path.getsize, os.path.getmtime), _FILES),
    builtins.input: "ask outside, and pass the answer as an argument",
}
_DATES = "use time.time(), which is read at each call, or pass the date as an argument"
_TEXTS_OF_NOW = (time.localtime, time.gmtime, time.ctime, time.asctime, time.strftime)
_LEVELS = frozenset("debug info warning warn error critical exception log".split())


def replaced_world(function: Any) -> Callable[..., Any] | None:
    """What is called in place of a function that asks the world; None for all others."""
    if not in_graph():
        return None
    kind = type(function)
    if kind is BuiltinFunctionType or kind is MethodType:
        method = _method(function.__self__, function.__name__, function)
        if method is not None:
            return method
    try:
        clock = _CLOCKS.get(function)
        remedy = _ASKED.get(function)
    except TypeError:  # unhashable
        return None
    if clock is not None:
        return _read(function, clock)
    if remedy is not None:
        return _refused(function, function.__name__, remedy)
    if function in _TEXTS_OF_NOW:
        return _unless_given(function)
    if kind is FunctionType and function.__module__ == "glob":
        return _refused(function, function.__name__, _FILES)
    if function is time.sleep or (kind is FunctionType and _logs(function)):
        return _told(function)
    return _warn if function is warnings.warn else None


def _method(owner: Any, name: str, function: Any) -> Callable[..., Any] | None:
    if isinstance(owner, type):
        if issubclass(owner, datetime.date) and name in ("now", "today", "utcnow"):
            return _refused(function, f"{owner.__name__}.{name}", _DATES)
        return None
    logging = sys.modules.get("logging")  # of those who log
    if logging is not None and isinstance(owner, logging.Logger) and name in _LEVELS:
        return _told(function)
    if (owner is sys.stdout or owner is sys.stderr) and name in ("write", "writelines", "flush"):
        return _told(function)
    if owner is sys.stdin:
        return _refused(function, f"stdin.{name}", "read it outside, and pass it as an argument")
    if isinstance(owner, io.IOBase) and not isinstance(owner, (io.StringIO, io.BytesIO)):
        return _refused(function, f"{type(owner).__name__}.{name}", _FILES)
    if isinstance(owner, pathlib.Path) and not hasattr(pathlib.PurePath, name):
        return _refused(function, f"Path.{name}", _FILES)
    return None


def _logs(function: Any) -> bool:
    return function.__module__ == "logging" and function.__name__ in _LEVELS


def _read(clock: Callable[[], Any], kind: type) -> Callable[[], Any]:
    like, weak = (np.float64(0), "f") if kind is float else (np.int64(0), "i")

    def read() -> Any:
        return wrap(as_value(io_callback(clock, like)), weak)

    return read


def _refused(function: Any, name: str, remedy: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        complain(
            errors.ImpureFunctionError,
            f"{name}(...) asks what is outside of the program, and would be asked once, while the "
            "function is traced",
            f"{remedy}; or call it in jt.io_callback, which happens at each call.",
        )

    return call


def _unless_given(function: Callable[..., Any]) -> Callable[..., Any]:
    """Functions of a time, by default of the present."""
    given = 1 if function is not time.strftime else 2
    return lambda *args: (
        function if len(args) >= given else _refused(function, function.__name__, _DATES)
    )(*args)


def _told(function: Callable[..., Any]) -> Callable[..., Any]:
    """What tells the world something is called each time that the compiled function comes here."""

    def call(*args: Any, **kwargs: Any) -> None:
        texts = [x if isinstance(x, Text) else None for x in args]

        def tell(*known: Any) -> None:
            *values, named = known
            shown = (
                value if text is None else text.shown(value)
                for text, value in zip(texts, values, strict=True)
            )
            function(*shown, **named)

        tell.__name__ = function.__name__
        call_with((*(x.values if isinstance(x, Text) else x for x in args), kwargs), tell)

    return call


def _warn(message: Any, category: Any = UserWarning, *_: Any, **options: Any) -> None:
    """`warnings.warn`, of the line that says so."""
    line = user_line(2)
    if line is None:
        _told(warnings.warn)(message, category)
        return
    registry: dict[Any, Any] = {}

    def warn(text: Any) -> None:
        if isinstance(text, Warning):
            warnings.warn_explicit(text, None, line.file, line.line, registry=registry)
        else:
            warnings.warn_explicit(text, category, line.file, line.line, registry=registry)

    _told(warn)(message)
