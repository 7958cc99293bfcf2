"""`raise` where it depends on a traced value whether it is reached: the compiled function raises then.

if x < 0:                            while tracing, `raised` marks the exception; the branch that
    raise ValueError(f"{x} < 0")     raises it becomes an `assert` op with its class and message
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.ops.control.effects import ERRORS
from ...ir.record import record
from ..core.effects import check
from ..core.tracers import Tracer
from .variables import is_traced

_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"": lambda x: x, "r": repr, "s": str, "a": ascii}
_MARK = "_jitney_raised"


class Text(str):
    """A formatted string in which traced values stand: `template` shows `values`."""

    template: str
    values: tuple[Any, ...]


def text(*parts: Any) -> str:
    """An f-string: literal parts, and tuples of a value, a conversion and a format."""
    shown, template, values = "", "", []
    for part in parts:
        if isinstance(part, str):
            shown += part
            template += part.replace("{", "{{").replace("}", "}}")
            continue
        value, conversion, spec = part
        if is_traced(value) and not value.shape:
            shown += repr(value)
            template += "{:" + spec + "}" if spec else "{}"
            values.append(value)
            continue
        made = format(_CONVERSIONS[conversion](value), spec)
        shown += made
        template += made.replace("{", "{{").replace("}", "}}")
    if not values:
        return shown
    result = Text(shown)
    result.template, result.values = template, tuple(values)
    return result


def raised(error: Any) -> Any:
    """An exception that a `raise` statement raises."""
    if isinstance(error, type) and issubclass(error, BaseException):
        error = error()
    if isinstance(error, Exception) and type(error) in ERRORS.values():
        setattr(error, _MARK, True)
    return error


@record
class Raised:
    """What a branch raises at its end."""

    name: str
    message: str
    values: tuple[Tracer, ...]
    error: Exception
    emitted: bool = False  # what raises it when the function runs is in the graph

    @staticmethod
    def by_now(raised: Raised | None) -> Exception:
        """Its exception, for the end of a branch all of whose branches raise."""
        assert raised is not None
        setattr(raised.error, _MARK, "emitted")
        return raised.error

    @staticmethod
    def of(error: BaseException) -> Raised | None:
        """None unless a `raise` statement raised it, and the compiled function can."""
        mark = getattr(error, _MARK, None)
        if mark is None or not isinstance(error, Exception):
            return None
        name = type(error).__name__
        first = error.args[0] if error.args else ""
        if isinstance(first, Text):
            return Raised(name, first.template, first.values, error, mark == "emitted")
        message = str(first) if len(error.args) == 1 else str(error)  # KeyError quotes it
        return Raised(name, message, (), error, mark == "emitted")

    def emit(self, pred: Any) -> None:
        """Raise unless `pred` holds when the current trace runs."""
        check(pred, self.message, *self.values, error=self.name)
