"""`raise` where it depends on a traced value whether it is reached: the compiled function raises then.

if x < 0:                            while tracing, `raised` marks the exception; the branch that
    raise ValueError(f"{x} < 0")     raises it becomes an `assert` op with its class and message
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...ir.ops.control.effects import ERRORS
from ...ir.passes.failures import failures
from ...ir.record import record
from ..control.control import cond
from ..core.effects import check
from ..core.trace import Trace, require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..messages import errors
from ..messages.expressions import tell_of_traced
from ..messages.source import is_internal, raised_line
from .texts import Text, call_with

# What code raises that comes to an element, a key, a number or a variable that is not there. Others may
# be about traced values, and so they are refusals.
_PYTHONS = (IndexError, KeyError, ZeroDivisionError, ValueError, AssertionError, UnboundLocalError)


def raised(error: Any) -> Any:
    """An exception that a `raise` statement raises."""
    if isinstance(error, type) and issubclass(error, BaseException):
        error = error()
    if isinstance(error, Exception) and not isinstance(error, errors.JitneyError):
        with suppress(AttributeError):  # of exceptions with slots
            setattr(error, errors.RAISED, True)
    return error


def compiled_in(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that is compiled: where it always raises something that traced values stand in, or
    after something else has happened, it ends, and its code raises that."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raised = Raised.of(error)
            tell_of_traced(error)
            refused = getattr(error, errors.RAISED, None) is None and hasattr(error, "__notes__")
            if raised is None or refused or not (raised.values or _has_begun(require_trace())):
                raise
            if not raised.emitted:
                raised.emit(wrap(as_value(False)))
            return None

    return call


def _has_begun(trace: Trace) -> bool:
    """Whether something has happened before, or another exception may come before."""
    return trace.token is not None or next(failures(trace.graph.ops), None) is not None


@record
class Raised:
    """What a branch raises at its end."""

    error: Exception
    emitted: bool = False  # what raises it when the function runs is in the graph

    @staticmethod
    def by_now(raised: Raised | None) -> Exception:
        """Its exception, for the end of a branch all of whose branches raise."""
        assert raised is not None
        setattr(raised.error, errors.RAISED, "emitted")
        return raised.error

    @staticmethod
    def of(error: BaseException) -> Raised | None:
        """None unless a `raise` statement raised it, or Python itself, and the compiled function can."""
        mark = getattr(error, errors.RAISED, None)
        if mark is None and isinstance(error, errors.BoundsError):
            return Raised(IndexError(error.what))
        if not isinstance(error, Exception):
            return None
        if mark is None and (type(error) not in _PYTHONS or is_internal(error)):
            return None
        return Raised(error, mark == "emitted")

    @property
    def values(self) -> list[Tracer]:
        """The traced values in its arguments."""
        given = [arg.values if isinstance(arg, Text) else arg for arg in self.error.args]
        return [leaf for leaf in pytree.flatten(given)[0] if isinstance(leaf, Tracer)]

    def emit(self, pred: Any) -> None:
        """Raise unless `pred` holds when the current trace runs."""
        kind, args = type(self.error), self.error.args
        first, line = args[0] if args else "", raised_line(self.error)
        if ERRORS.get(kind.__name__) is kind and len(args) <= 1:
            if isinstance(first, Text) and first.template is not None:
                check(pred, first.template, *first.values, error=kind.__name__, line=line)
                return
            if isinstance(first, str):
                check(pred, first, error=kind.__name__, line=line)
                return
        cond(pred, lambda: None, self._raise)

    def _raise(self) -> None:
        """Any other exception is Python's to raise: a copy, as the function may run again."""
        error, args = self.error, self.error.args
        texts = [arg for arg in args if isinstance(arg, Text)]
        values = (
            *(text.values for text in texts),
            [None if isinstance(a, Text) else a for a in args],
        )

        def fail(*known: Any) -> None:
            shown = (text.shown(found) for text, found in zip(texts, known, strict=False))
            raised = copy.copy(error)
            raised.__dict__.pop(errors.RAISED, None)
            raised.args = tuple(
                next(shown) if isinstance(old, Text) else new
                for old, new in zip(args, known[-1], strict=True)
            )
            raise raised

        fail.__name__ = type(error).__name__
        call_with(values, fail, error)
