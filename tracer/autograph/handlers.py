"""`try` around traced code: its handlers are gone when the compiled function runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...ir.graph import Op
from ...ir.ops.control.effects import ERRORS
from ..core.trace import current_trace
from ..messages import errors
from ..messages.errors import complain


@contextmanager
def tried(handled: Callable[[], tuple[Any, ...]]) -> Iterator[None]:
    """The body of a `try` with handlers for these exceptions: what compiled code may raise in it,
    and a handler would take, is refused."""
    trace = current_trace()
    start = len(trace.graph.ops) if trace is not None else 0
    yield
    if trace is None or trace.eager:
        return
    kinds = [kind for kind in _flat(handled()) if isinstance(kind, type)]
    for op, raised in _failures(trace.graph.ops[start:]):
        if any(issubclass(raised, kind) or issubclass(kind, raised) for kind in kinds):
            name = raised.__name__ if raised is not Exception else "whatever the callback raises"
            where = f", at line {op.loc.line}" if op.loc is not None else ""
            complain(
                errors.TransformError,
                f"a handler is there for {name}, which `{op.name}`{where} raises when the compiled "
                "function runs: the handler is gone then",
                "move the `try` out of the compiled function, or test for the failure with `if`.",
            )


def _flat(kinds: Any) -> Iterator[Any]:
    for kind in kinds:
        if isinstance(kind, tuple):
            yield from _flat(kind)
        else:
            yield kind


def _failures(ops: Iterable[Op]) -> Iterator[tuple[Op, type[BaseException]]]:
    """The ops that may raise, and what."""
    for op in ops:
        for region in op.regions:
            yield from _failures(region.ops)
        if op.name == "assert":
            yield op, ERRORS[op.attrs.get("error", "AssertionError")]
        elif op.attrs.get("mode") == "check":
            yield op, IndexError if "axes" in op.attrs else np.linalg.LinAlgError
        elif "function" in op.attrs and op.attrs["function"].name not in ("print", "debug_print"):
            yield op, Exception
