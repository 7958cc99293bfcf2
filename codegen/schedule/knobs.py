"""What the user asked of schedules (`jt.schedule`), and whether some kernel did it.

A scope has many kernels, and not each can have what is asked for. It is an error where none can, and the
message says why not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ...ir.graph import Graph, Knobs, Op
from ..loop_ir.kernel import Kernel

_Asked = dict[tuple[Knobs, str], str]  # why not; "" where it was done
_current: ContextVar[_Asked | None] = ContextVar("asked", default=None)


def knobs_of(kernel: Kernel) -> Knobs | None:
    """What is asked of a kernel."""
    return next((s.knobs for s in kernel.stages if s.knobs is not None), None)


def done(knobs: Knobs, name: str) -> None:
    """A kernel runs as asked."""
    asked = _current.get()
    if asked is not None:
        asked[knobs, name] = ""


def refused(knobs: Knobs, name: str, why: str) -> None:
    """A kernel cannot run so."""
    asked = _current.get()
    if asked is not None:
        asked.setdefault((knobs, name), why)


@contextmanager
def answered(graph: Graph) -> Iterator[None]:
    """Compile `graph` inside. Raises ValueError where nothing of it runs as the user asks."""
    wanted = dict.fromkeys(_asked_in(graph.walk()))
    asked: _Asked = {}
    token = _current.set(asked if wanted else None)
    try:
        yield
    finally:
        _current.reset(token)
    for knobs in wanted:
        for name in ("lanes", "unroll", "tile"):
            value = getattr(knobs, name)
            if value is None or asked.get((knobs, name)) == "":
                continue
            why = asked.get((knobs, name), "what is computed there are no loops that have it")
            raise ValueError(f"jt.schedule({name}={value}): {why}")


def refuse(graph: Graph, where: str) -> None:
    """Raise ValueError if the user asks something of loops, where nothing can be asked."""
    for knobs in _asked_in(graph.walk()):
        raise ValueError(f"jt.schedule({knobs}) is for loops on the CPU, not {where}: leave it out")


def _asked_in(ops: Iterable[Op]) -> Iterator[Knobs]:
    for op in ops:
        if op.loc is not None and op.loc.knobs is not None:
            yield op.loc.knobs
