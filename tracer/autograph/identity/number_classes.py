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

from collections.abc import Mapping
from typing import Any, TypeVar

from ...containers.kinds import current
from ...control.number_classes import Class, class_of, classes_of, may_be_both
from ...core.tracers import Tracer, as_value, weak_kind
from ..carried import CarriedVariable
from ..variables import is_traceable

K = TypeVar("K")


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


def more_classes(
    carried: Mapping[Any, CarriedVariable],
    entered: Mapping[Any, Any],
    ends: Mapping[K, Any],
    known: Mapping[Any, tuple[Class, ...]],
) -> dict[K, tuple[Class, ...]]:
    """The numbers of which the class is to be carried, or more classes than are `known` to be: by what
    an iteration begins with (`entered`) and what it ends with (`ends`)."""
    more: dict[K, tuple[Class, ...]] = {}
    for key, end in ends.items():
        number = carried[key]
        classes = classes_at_end(number, end)
        others = [end for other, end in ends.items() if other != key]
        if any(is_handed_on(number, entered[key], end) for end in others):
            classes += (class_of(entered[key]),)
        if classes:
            before = known.get(key) or classes_of(number.value) or (class_of(number.value),)
            every = tuple(dict.fromkeys(before + classes))
            if every != known.get(key):
                more[key] = every
    return more


def _are_mixed() -> bool:
    kinds = current()
    forms = [] if kinds is None else [kind.value for kind in kinds.sites.values()]
    return any(form is not None and form.is_mixed for form in forms)
