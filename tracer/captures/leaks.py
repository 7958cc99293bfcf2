"""Traced values left where nobody hands them on: an error, instead of a change that is lost.

class Particle:
    last = None
    def move(self, x):
        Particle.last = x       # of the class: refused; self.last = x is state of the object
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
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


def refuse_in_containers(variables: FreeVariables) -> None:
    """The same of a container of outside that is no state: in an attribute of a class, of a class that
    is no list or dict itself, in a queue. What a function puts there is not put there at each call."""
    paths = [path for path, _ in variables.values.values()]
    for path in [*paths, *variables.added.values()]:
        with suppress(Exception):  # nothing is there any more
            value = path.find()
            for holder in _containers_in(value):
                left = _taken_out(holder)
                if left is not None:
                    break
            else:
                continue
            break
    else:
        return
    made = left._storage.value.op
    where = f" (made at {made.loc})" if made is not None and made.loc else ""
    complain(
        errors.OuterMutationError,
        f"{path}, a {type(value).__name__} that was there before the call, was given a traced value"
        f"{where}, which means nothing after the call has been traced",
        "return the value; or keep it in a list or dict of Python's own that is a global, a variable of "
        "an enclosing function, an argument, or an attribute of an object: these are read and written "
        "at each call.",
        operands={"value": left},
    )


def _containers_in(value: Any) -> Iterator[Any]:
    if isinstance(value, _CONTAINERS):
        yield value
    elif type(value).__module__ in ("collections", "queue", "_queue"):
        for part in list(vars(value).values()) if hasattr(value, "__dict__") else ():
            if isinstance(part, _CONTAINERS):
                yield part
                yield from (inner for inner in part if isinstance(inner, _CONTAINERS))


_CONTAINERS = (list, dict, set, deque)
_LAST = 1000  # elements among which those are that a function has just added


def _taken_out(holder: Any) -> Tracer | None:
    """A traced value among the last elements of a container, which is without it then."""
    if isinstance(holder, dict):
        for key in [*islice(reversed(holder), _LAST)]:
            left = _tracer_in(holder[key])
            if left is not None:
                del holder[key]
                return left
    elif isinstance(holder, (list, deque)):
        for i in range(len(holder) - 1, max(len(holder) - _LAST, 0) - 1, -1):
            left = _tracer_in(holder[i])
            if left is not None:
                del holder[i]
                return left
    return None


def _tracer_in(value: Any) -> Tracer | None:
    parts = value if isinstance(value, tuple) else (value,)
    return next((x for x in parts if isinstance(x, Tracer)), None)
