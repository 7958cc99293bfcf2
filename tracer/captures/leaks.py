"""Traced values left in attributes that nobody hands on: an error, instead of a change that is lost.

class Particle:
    last = None
    def move(self, x):
        Particle.last = x       # of the class: refused; self.last = x is state of the object
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ..core.tracers import Tracer
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .free_variables import FreeVariables
from .paths import ABSENT


def refuse_leaked_attributes(target: Any, attributes: dict[str, Any]) -> None:
    """Raise LeakedTracerError for an attribute of an object that holds a tracer; it is deleted."""
    for name, value in attributes.items():
        if isinstance(value, Tracer) and value._storage.trace.parent is None:
            delattr(target, name)
            complain(
                errors.LeakedTracerError,
                f"the attribute {name!r} of a {type(target).__name__} was assigned a traced value, "
                "which means nothing after the call has been traced",
                f"return the new value of {name!r} from the function and assign it outside, or "
                "make the class a pytree with jt.register_pytree and return the new object.",
                operands={name: value},
            )


def refuse_leaks(variables: FreeVariables) -> None:
    """Raise OuterMutationError where a class or function has a traced value in an attribute now; all
    of them get what they had before."""
    left = None
    for holder, name, before in variables.of_code.values():
        now = vars(holder).get(name, ABSENT)
        if now is not before and any(isinstance(x, Tracer) for x in pytree.flatten(now)[0]):
            left = left or (holder, name, now)
            with suppress(AttributeError, TypeError):
                if before is ABSENT:
                    delattr(holder, name)
                else:
                    setattr(holder, name, before)
    if left is None:
        return
    holder, name, now = left
    kind = "class" if isinstance(holder, type) else "function"
    complain(
        errors.OuterMutationError,
        f"{holder.__name__}.{name}, an attribute of a {kind}, was assigned a traced value, which means "
        "nothing after the call has been traced",
        "keep it in an attribute of an object, in an item of a list or dict, or in a global: those are "
        "read and written at each call.",
        operands={name: now} if isinstance(now, Tracer) else None,
    )
