"""What an op costs, and from what cost on a value is kept in memory rather than computed again.

Each record says its class (`OpDef.cost`); passes, derivatives, the prediction of memory and code
generation ask that class, and none has a list of names of its own.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Op, Value


class Cost(IntEnum):
    """How dear a result is, in increasing order."""

    FREE = 0  # moved, renamed, known: no instruction of its own
    CHEAP = 1  # an instruction or a few for each element
    DIVISION = 2  # the divider is busy with it
    LONG = 3  # some ten instructions
    FUNCTION = 4  # a formula, or a loop: dearer than reading the element from memory
    FOLD = 5  # as much as reading the operands, which are larger
    SCAN = 6  # one element after the other
    DEAR = 7  # products, sorts, loops, calls

    @property
    def work(self) -> int:
        """Simple instructions for one element, roughly; of a loop in each element, of any length."""
        return _WORK[self]


_WORK = {Cost.FREE: 0, Cost.CHEAP: 1, Cost.DIVISION: 4, Cost.LONG: 8, Cost.FUNCTION: 8}
_WORK.update(dict.fromkeys((Cost.FOLD, Cost.SCAN, Cost.DEAR), 64))

# What a record need not say, because its family does.
OF_FAMILY = {
    "bilinear": Cost.DEAR,
    "composition": Cost.DEAR,
    "effect": Cost.DEAR,
    "library": Cost.DEAR,
    "reduction": Cost.FOLD,
    "scan": Cost.SCAN,
    "structured": Cost.DEAR,
    "tape": Cost.DEAR,
}

MOST_INLINED = 64  # ops computed within one expression before it is cut
STORED = 4  # work from which a value that is used several times is stored
FAR = 1 << 22  # bytes of a value that caches do not hold until it is read: then this much work,
STORED_FAR = 16  # if what it is made of has a quarter of its size


def wants_memory(
    value: Value, users: Sequence[Op], work: int, inlined: int, in_memory: Container[Value]
) -> bool:
    """Whether a value that could be computed where it is used is stored, for the sake of time.

    `work` is that of an element and `inlined` counts ops, with what is computed along with it;
    `in_memory` are values that have memory, beside parameters.
    """
    if inlined > MOST_INLINED:
        return True
    if work >= STORED and len(users) > 1:
        far = value.nbytes >= FAR and work < STORED_FAR
        if not far or not _grows(value, in_memory):
            return True
    return work > 0 and any(
        user.definition.repeats and user.result.tensor.size > value.tensor.size for user in users
    )


def _grows(value: Value, in_memory: Container[Value]) -> bool:
    """Whether a value is four times as large as what it is computed of, as by broadcasting."""
    room, pending, seen = value.nbytes // 4, [value], {value}
    while pending:
        op = pending.pop().op
        for v in op.operands if op is not None else ():
            if v in seen:
                continue
            seen.add(v)
            if v.op is None or v in in_memory:
                room -= v.nbytes
                if room < 0:
                    return False
            else:
                pending.append(v)
    return True
