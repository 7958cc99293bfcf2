"""Names in force: the path that `jt.name_scope` has set, and how paths of one trace are made unique.

What is traced under `with jt.name_scope("encoder"):` carries that path with its source line. A loop's
body may be traced several times before it is kept, so paths are numbered as they are entered and once
more, in the order of the program, when the graph is whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from ...ir.graph import Graph, Knobs
from ...ir.record import replace


class Names:
    """The paths of scopes and of values that one trace has given."""

    def __init__(self) -> None:
        self.given: dict[str, tuple[str, str]] = {}  # path: the path around it, the name asked for
        self.numbered = False

    def give(self, outer: str, name: str) -> str:
        """A path for `name` inside of `outer` that nothing else has."""
        path = _free(joined(outer, name), self.given)
        self.numbered |= path != joined(outer, name)
        self.given[path] = (outer, name)
        return path

    def settle(self, graph: Graph) -> None:
        """Number the paths anew: only those that are left in the graph count."""
        if not self.numbered:
            return
        final: dict[str, str] = {}
        taken: set[str] = set()

        def settled(path: str) -> str:
            if path in self.given and path not in final:
                outer, name = self.given[path]
                final[path] = _free(joined(settled(outer), name), taken)
                taken.add(final[path])
            return final.get(path, path)

        for op in graph.walk():
            if op.loc is not None and op.loc.scope:
                op.loc = replace(op.loc, scope=settled(op.loc.scope))
            for value in op.results:
                value.name = settled(value.name)


class Scope(NamedTuple):
    """The path in force, the names of the trace (None outside of tracing), and what was before."""

    path: str
    names: Names | None = None
    before: Scope | None = None


NOWHERE = Scope("")
SCOPE: ContextVar[Scope] = ContextVar("jitney_scope", default=NOWHERE)

# How kernels are to run, as `jt.schedule` says it, of what is traced here.
KNOBS: ContextVar[Knobs | None] = ContextVar("jitney_knobs", default=None)


def joined(outer: str, name: str) -> str:
    """The path of `name` inside of `outer`."""
    return f"{outer}/{name}" if outer else name


def _free(path: str, taken: dict[str, tuple[str, str]] | set[str]) -> str:
    free, count = path, 0
    while free in taken:
        count += 1
        free = f"{path}_{count}"
    return free


@contextmanager
def own_names(graph: Graph) -> Iterator[None]:
    """A trace inside of no other: its names do not depend on where it is called."""
    names = Names()
    reset, knobs = SCOPE.set(Scope("", names)), KNOBS.set(None)
    try:
        yield
    finally:
        SCOPE.reset(reset)
        KNOBS.reset(knobs)
    names.settle(graph)
