"""Looking at values while compiled code runs: `debug_print`, `debug_callback`, `breakpoint`.

They happen each time that the program comes there, in program order, in loops and branches, under `vmap`
for each example.
"""

from __future__ import annotations

import itertools
import string
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TextIO

import numpy as np

from ..core.trace import current_trace
from ..core.tracers import Tracer
from ..data import pytree
from ..data.callables import Function, check_callable
from ..messages.source import is_user_frame, user_line
from .callbacks import called_for_effect


class Fields(string.Formatter):
    """Finds the values that a template names; how they print is known when the numbers are."""

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        return value

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""


def debug_print(
    template: str,
    *args: Any,
    first_n: int | None = None,
    every: int | None = None,
    summarize: int | None = None,
    file: TextIO | None = None,
    **kwargs: Any,
) -> None:
    """`print(template.format(*args, **kwargs))` with the values that the program has here.

        jt.debug_print("step {i}: loss {}", loss, i=i, every=100)

    It happens each time, in program order, also in loops and branches. With `first_n` only the first so
    many times, whatever the function was compiled for meanwhile (until its `clear_cache()`), with
    `every` only each so many times, from the first on. Arrays are
    shown with `summarize` elements at most. `file` is where it is written; None: what `sys.stdout` is
    then. Raises ValueError for numbers that are none.

    >>> jt.debug_print("loss {:.2f}", 0.125)
    loss 0.12
    >>> jt.debug_print("{}", np.arange(100), summarize=4)
    [ 0  1 ... 98 99]
    """
    Fields().vformat(template, args, kwargs)  # a wrong template is an error here
    for option, value in (("first_n", first_n), ("every", every), ("summarize", summarize)):
        if value is not None and (type(value) is not int or value < (option != "first_n")):
            raise ValueError(f"{option} of jt.debug_print is a number of times, not {value!r}")
    times = _times(template)

    def show(*values: Any, **named: Any) -> None:
        if first_n is not None or every is not None:
            time = next(times)
            if (every is not None and time % every) or (
                first_n is not None and time // (every or 1) >= first_n
            ):
                return
        if summarize is None:
            print(template.format(*values, **named), file=file)
            return
        edge = max(summarize // 2, 1)
        with np.printoptions(threshold=summarize, edgeitems=edge):
            print(template.format(*values, **named), file=file)

    called_for_effect(show, args, kwargs)


def _times(template: str) -> Iterator[int]:
    """How often the program was here. A loop's first iteration may be traced apart from the others."""
    trace, line = current_trace(), user_line(2)
    if trace is None or line is None:
        return itertools.count()
    return trace.times.setdefault((line.file, line.line, template), itertools.count())


def debug_callback(function: Function, *args: Any, **kwargs: Any) -> None:
    """Call `function(*args, **kwargs)` with the values that the program has here, for what it does.

    It is called each time, in program order; what it returns is dropped, and what it raises comes out of
    the compiled function. Unlike `jt.io_callback` it is called for each example under `jt.vmap`, and
    derivatives leave it in its place.

    >>> seen = []
    >>> jt.jit(lambda x: debug_callback(lambda y: seen.append(y), x * 2))(3.0)
    >>> seen
    [np.float64(6.0)]
    """
    check_callable(function, "debug_callback")

    def call(*values: Any, **named: Any) -> None:
        function(*values, **named)

    call.__qualname__ = getattr(function, "__qualname__", "function")
    called_for_effect(call, args, kwargs, getattr(function, "__name__", "function"))


def breakpoint(condition: Any = True) -> None:
    """Python's `breakpoint()`, with the variables of this place as they are when the program comes here.

    What `breakpoint` runs is asked (`sys.breakpointhook`, PYTHONBREAKPOINT): `pdb`, or the debugger that
    is attached to a notebook; if none is, the cell asks. Variables can be looked at, not changed: the
    compiled program goes on with its own. With a condition it stops only if that is true.

    >>> jt.breakpoint(False)
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_user_frame(frame):
        frame = frame.f_back
    if frame is None:
        return
    variables = _variables(frame)
    leaves = {name: pytree.flatten(value)[0] for name, value in variables.items()}
    known = {
        name for name, found in leaves.items() if not any(isinstance(x, Tracer) for x in found)
    }
    traced = {name: value for name, value in variables.items() if name not in known}
    stop = _stop_at(frame, {name: variables[name] for name in known})
    called_for_effect(stop, (condition,), {"values": traced})


def _debugger() -> Callable[[], Any]:
    """What stops: the hook for it; but notebooks have debugpy's, which does nothing unless a debugger is
    attached, and there `pdb` is what asks in the cell."""
    hook = sys.breakpointhook
    if getattr(hook, "__name__", "") != "debugpy_breakpointhook":
        return hook
    attached = getattr(sys.modules.get("debugpy"), "is_client_connected", lambda: False)
    if attached():
        return hook
    import pdb  # only those who stop need it

    return pdb.set_trace


def _variables(frame: FrameType) -> dict[str, Any]:
    """Those of a frame of the user's; where it is a loop's body or a branch, of the function around it,
    too."""
    code, found = frame.f_code, dict[str, Any]()
    outer: FrameType | None = frame
    while outer is not None:
        own = outer.f_code
        if (own.co_filename, own.co_name) == (code.co_filename, code.co_name):
            found = {**outer.f_locals, **found}
        elif is_user_frame(outer):
            break
        outer = outer.f_back
    return {k: v for k, v in found.items() if not k.startswith("_jt_")}


def _stop_at(frame: FrameType, known: dict[str, Any]) -> Any:
    """What stops the debugger in a frame that looks like the user's, with these variables and others."""
    file, line, world = frame.f_code.co_filename, frame.f_lineno, frame.f_globals
    # Python's debugger stops in the line after the one that called it.
    text = "\n" * (line - 1) + "__breakpoint__()\npass"
    code = compile(text, file, "exec").replace(co_name=frame.f_code.co_name)

    def breakpoint(condition: Any, values: dict[str, Any]) -> None:
        if condition:
            hook = {"__breakpoint__": _debugger()}
            exec(code, {**world, **hook}, {**known, **values})

    return breakpoint
