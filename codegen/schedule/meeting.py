"""Values that are used several times, but all for one update at the same places: they stay in its loop.

    number = ...; below = x < edges[number]; counts[number - below] += 1

An update shares its loop with no other stage, so what has memory here would be written for it and read
again. Each of its points computes `number` once, however often the expression has it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ...ir.graph import Op, Value

MOST_BETWEEN = 32  # ops between a value and the update


class Meeting(NamedTuple):
    """An update, and the values that only lead to it."""

    values: set[Value]
    update: Op


def meeting(
    value: Value, users: Mapping[Value, Sequence[Op]], outputs: Collection[Value]
) -> Meeting | None:
    """The update of single elements to which all uses of `value` come, and the values by which they do,
    `value` included; None if there is no such update."""
    met = {value}
    pending = [value]
    updates: set[Op] = set()
    while pending:
        current = pending.pop()
        if current in outputs:
            return None
        for op in users[current]:
            if op.name == "scatter":
                updates.add(op)
                if len(updates) > 1 or not _takes_elements(op, current):
                    return None
            elif not _stays_in_place(op, current):
                return None
            elif op.result not in met:
                met.add(op.result)
                pending.append(op.result)
        if len(met) > MOST_BETWEEN:
            return None
    return Meeting(met, updates.pop()) if updates else None


def _takes_elements(op: Op, value: Value) -> bool:
    """Whether a scatter reads the value once for each element that it updates."""
    base, update, *_ = op.operands
    return base is not value and update.shape == value.shape


def _stays_in_place(op: Op, value: Value) -> bool:
    """Whether an element of the op's result is computed from that of `value` at the same place."""
    if op.name == "gather":
        return op.operands[0] is not value and op.result.shape == value.shape
    return op.definition.family == "elementwise"
