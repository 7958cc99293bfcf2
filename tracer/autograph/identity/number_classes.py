"""Which numbers that a loop carries as floats are ints of Python's in some of the iterations.

    best = float("inf")
    for x in ints:
        if x < best:
            best = x            # a float before the loop, an int after it

What stays a float in each iteration is carried alone, also if it is an int before the first one
(`total = 0`): a flag for each would cost vector loops and reductions. Beside containers that hold
ints and floats there are none of those.
"""

from __future__ import annotations

from typing import Any

from ...containers.kinds import current
from ...control.number_classes import check_kept_exactly, is_int, may_be_both
from ...core.tracers import weak_kind
from ..carried import CarriedVariable


def needs_flag(carried: CarriedVariable, after: Any) -> bool:
    """Whether a number can be an int at the end of an iteration, and is carried as a float."""
    if carried.missing or not carried.tree.is_leaf() or len(carried.types) != 1:
        return False
    (out,) = carried.types
    weak = out.weak
    if weak == "f":
        return weak_kind(after) == "i" or may_be_both(after)
    return weak == "i" and may_be_both(after) and _are_mixed()


def _are_mixed() -> bool:
    kinds = current()
    forms = [] if kinds is None else [kind.value for kind in kinds.sites.values()]
    return any(form is not None and form.is_mixed for form in forms)


def flag_of(x: Any) -> Any:
    """Whether it is an int, which has to be one that a float can be."""
    check_kept_exactly(x)
    return is_int(x)
