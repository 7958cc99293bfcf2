"""Slots outside of a function, attributes and elements, that functions under transformations assign to.

    def loss(w):
        self.count += 1             # jt.grad(loss), jt.scan(step, ...), jt.cond(p, yes, no)

The heap of a compiled function (`captures.heap`) is watched while it is traced. In a region that runs
never or often, a slot is carried as states are (`threaded_state`); a function that runs once where it
stands hands its values on to where it is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ...ir.graph import Value
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .trace import Trace
from .tracers import Storage, Tracer, as_value, weak_kind, wrap


class Slot(Protocol):
    """A place that holds a value."""

    name: str

    def get(self) -> Any: ...
    def put(self, value: Any) -> None: ...


class Watched(Protocol):
    """What can tell which of its slots were assigned to."""

    def snapshot(self) -> Any: ...
    def restore(self, before: Any) -> None: ...
    def undone(self, before: Any) -> AbstractContextManager[None]: ...
    def changed(self, before: Any, what: str, growth: bool = False) -> list[Any]: ...
    def has(self, value: Any) -> bool: ...


class SlotState:
    """A slot whose number or array a region assigns to: in place of a `Storage` among its states."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        value = slot.get()
        if not isinstance(value, Tracer):
            try:
                as_value(value)
            except errors.JitneyError:
                complain(
                    errors.OuterMutationError,
                    f"{slot.name} is {value!r} outside of a function that runs never or often, and is "
                    "assigned to in it",
                    f"give {slot.name} a number or an array before, of the type that it has later.",
                )
        self.weak = weak_kind(value)
        self.scalar = value.scalar if isinstance(value, Tracer) else not hasattr(value, "strides")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlotState) and self.slot == other.slot

    __hash__ = None  # type: ignore[assignment]

    def now(self) -> Tracer:
        """What the slot holds, as a tracer of the current trace."""
        value = self.slot.get()
        if isinstance(value, Tracer) and value._view is None:
            return wrap(as_value(value), value.weak, scalar=value.scalar)
        return wrap(as_value(value), weak_kind(value), scalar=self.scalar)

    def settle(self, value: Tracer | Value) -> None:
        if isinstance(value, Value):
            value = wrap(value, self.weak, scalar=self.scalar)
        self.slot.put(value)


def hand_on(changed: Iterable[Slot], trace: Trace, advanced: list[tuple[Storage, Value]]) -> None:
    """Let slots that a function has assigned to hold tracers of the enclosing trace. Their values, and
    those of the function, join `advanced`."""
    assert trace.parent is not None
    for slot in changed:
        leaves, tree = pytree.flatten(slot.get())
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Tracer) and leaf._storage.trace is trace:
                value = as_value(leaf)
                storage = Storage(trace.parent, value)  # which is another one when that is settled
                leaves[i] = Tracer(storage, leaf.type, leaf.weak, leaf.scalar, None, leaf._strides)
                advanced.append((storage, value))
        slot.put(pytree.unflatten(tree, leaves))
