"""Callbacks that look at what compiled code changes meanwhile: refused, for they would see it as it was.

What a function changes of outside is written back when the call ends. A callback runs before that. So
it may not be bound to a container that compiled code changes, nor read or change, by any name that its
code mentions, attributes that compiled code changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from ...core.tracers import Tracer
from ...messages import errors
from ...messages.errors import complain
from ..effects.recipes import Effects
from ..heap_nodes import Inner, Input

if TYPE_CHECKING:
    from ..heap import Heap


def names_in(function: FunctionType, owner: Any) -> set[str]:
    """The names that a callback's code mentions, and that of the methods of its object that it names."""
    found: set[str] = set()
    open_codes = [function.__code__]
    while open_codes:
        for name in _names(open_codes.pop()):
            member = getattr(type(owner), name, None)
            if name not in found and isinstance(member, FunctionType):
                open_codes.append(member.__code__)
            found.add(name)
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def refuse_conflicts(heap: Heap, effects: Effects, tracers: Sequence[Any]) -> None:
    """Raise TransformError where a callback has an object or container of the heap, and looks at what
    the traced code has changed of it. `tracers` are those of the heap's inputs."""
    writes = [write for write in effects.writes if write.kind != "root"]
    search = _Search(heap, {w.target for w in writes}, {(w.target, w.key) for w in writes}, tracers)
    for number, (_, names) in heap.kept.items():
        search.node(number, names, set())


class _Search:
    def __init__(
        self,
        heap: Heap,
        written: Collection[int],
        slots: Collection[tuple[int, Any]],
        tracers: Sequence[Any],
    ) -> None:
        self._heap, self._written, self._slots = heap, written, slots
        self._tracers = tracers

    def node(self, number: int, names: Collection[str], seen: set[int]) -> None:
        """Look at a node that a callback has, and at those that it reaches by these names."""
        if number in seen:
            return
        seen.add(number)
        node = self._heap.nodes[number]
        if not node.is_object and number in self._written:
            refuse(node.name)
        for key, content in node.slots.items():
            if node.is_object and key not in names:
                continue
            name = f"{node.name}.{key}" if node.is_object else node.name
            if (number, key) in self._slots:
                refuse(name)
            if isinstance(content, Inner):
                self.node(content.node, names, seen)
            elif isinstance(content, Input) and self._changes(content.number):
                refuse(name)

    def _changes(self, number: int) -> bool:
        """Whether an input is a container that is native meanwhile, or an array that is written."""
        tracer = self._tracers[number]
        written = isinstance(tracer, Tracer) and bool(tracer._storage.version)
        return written or number in self._heap.natives


def refuse(name: str) -> NoReturn:
    """Raise TransformError for a callback that has something which compiled code changes."""
    complain(
        errors.TransformError,
        f"a callback has `{name}`, which the compiled function changes: it would see it as it was when "
        "the call began",
        "give the callback the new value as an argument, and let either the callback or the function "
        "change it.",
    )
