"""Of which classes numbers are that a loop carries as floats: some are integers after some iterations.

    best = float("inf")
    for x in ints:
        if x < best:
            best = x            # a float before the loop, an int after it

What is a float after each iteration is carried alone, also if it is an int before the first one
(`total = 0`): its class would cost vector loops and reductions. It is carried where another variable
gets the number that the iteration began with (`before, s = s, s / 2`). Beside containers that hold
ints and floats all have it.
"""

from __future__ import annotations

from typing import Any

from ...containers.kinds import current
from ...control.number_classes import Class, class_of, classes_of, may_be_both
from ...core.tracers import Tracer, as_value, weak_kind
from ..carried import CarriedVariable
from ..variables import is_traceable


def is_number(carried: CarriedVariable) -> bool:
    """Whether what is carried is one number, which has a value before the loop."""
    return (
        not carried.missing
        and carried.tree.is_leaf()
        and len(carried.types) == 1
        and carried.types[0].scalar
    )


def classes_at_end(carried: CarriedVariable, after: Any) -> tuple[Class, ...]:
    """The classes of a number, if its class at the end of an iteration has to be carried."""
    if not is_number(carried) or not is_traceable(after):
        return ()
    (out,) = carried.types
    found = classes_of(after) or (class_of(after),)
    if out.weak == "i":
        return found if may_be_both(after) and _are_mixed() else ()
    promotes = weak_kind(after) == "i" or as_value(after).dtype.kind == "f"
    if out.type.dtype.kind != "f" or not promotes:
        return ()
    return found if any(dtype.kind in "iu" for _, dtype in found) else ()


def is_handed_on(carried: CarriedVariable, entered: Any, after: Any) -> bool:
    """Whether an int before the loop, a float after an iteration, is what another variable gets."""
    if not is_number(carried) or carried.types[0].type.dtype.kind != "f":
        return False
    (before,) = carried.leaves
    is_entered = isinstance(after, Tracer) and after.value is entered.value
    return is_entered and weak_kind(before) == "i"


def _are_mixed() -> bool:
    kinds = current()
    forms = [] if kinds is None else [kind.value for kind in kinds.sites.values()]
    return any(form is not None and form.is_mixed for form in forms)
