"""What goes wrong with graphs: processes that only call code from the disk know these, too."""

from __future__ import annotations

from typing import Any


class GraphError(Exception):
    """An op was given operands or attributes that its type rule refuses.

    Raised while building a graph. The tracer checks what users write first and raises TypeError or
    ValueError with their line, so a user who meets this one has met a bug in jitney.
    """


class DerivativeError(TypeError):
    """A derivative was asked for that does not exist. A user's error: it names their line.

    Rules raise it with the reason alone; `ir.autodiff` adds the op and the source line.
    """

    op: Any = None  # the innermost op without the derivative


class LoweringError(TypeError):
    """No code can be made of an op. A user's error: the message is what happened, and they have to write
    `remedy` instead."""

    def __init__(self, op: Any, what: str, remedy: str) -> None:
        super().__init__(what)
        self.op, self.remedy = op, remedy
