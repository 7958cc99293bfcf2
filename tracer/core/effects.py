"""Effects happen in program order: each trace has one thread of order tokens.

An effectful op takes the newest token of its trace and gives the next. A region starts a thread of
its own while it is traced (`Trace.token`); when it becomes part of a `cond`, `while` or `scan`, that op
takes the outer token in, hands it through its regions, and gives it back (`regions.Region.close`). So
the order holds across branches and loops, and no pass can change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ...ir.graph import Op, SourceLine, Value
from ...ir.types import BOOL, TOKEN
from ..messages.source import user_line
from .trace import require_trace
from .tracers import as_value

_WATCHING: ContextVar[Callable[[Op], None] | None] = ContextVar("jitney_checks", default=None)


@contextmanager
def watching(checks: Callable[[Op], None]) -> Iterator[None]:
    """Inside, `checks` is called with each check when it is made."""
    reset = _WATCHING.set(checks)
    try:
        yield
    finally:
        _WATCHING.reset(reset)


def order_token() -> Value:
    """The newest token of the current trace; the first effect starts the thread."""
    trace = require_trace()
    if trace.token is None:
        trace.token = trace.builder.op("create_token")
    return trace.token


def advance(results: Any) -> None:
    """The trace goes on with the token among the results of an op just appended."""
    for value in results if isinstance(results, tuple) else (results,):
        if value.type is TOKEN:
            require_trace().token = value


def check(
    pred: Any,
    message: str,
    *values: Any,
    error: str = "AssertionError",
    line: SourceLine | None = None,
) -> None:
    """AssertionError at run time unless `pred`, a traced scalar bool, holds; or another exception of
    `ir.ops.control.effects.ERRORS`. It is about the user's current line, or another one.

    With values, `message` is a format string for them. An eager trace checks at once.
    """
    trace = require_trace()
    operands = [as_value(v) for v in values]
    test = as_value(pred, BOOL)
    token = order_token()
    with trace.builder.at(line or user_line(2)):
        attrs: dict[str, Any] = {"message": message} | (
            {} if error == "AssertionError" else {"error": error}
        )
        made = trace.builder.op("assert", test, *operands, token, **attrs)
        advance(made)
    watch = _WATCHING.get()
    if watch is not None:
        watch(made.op)
