"""Names of other frameworks: who asks a module or an object for one is told what is written here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

from .errors import complain


def of_modules(module: str, **remedies: str) -> Callable[[str], NoReturn]:
    """A `__getattr__` for a library's module: an AttributeError that says what to write instead of the
    name. Names of its own are found in other spellings, `ReLU`."""
    shown = module.replace("jitney", "jt", 1)

    def missing(name: str) -> NoReturn:
        spellings = (
            {} if name.startswith("_") else {_folded(own): own for own in dir(sys.modules[module])}
        )
        if name in remedies:
            _refuse(shown, name, remedies[name])
        if _folded(name) in spellings:
            _refuse(shown, name, f"{shown}.{spellings[_folded(name)]}")
        why = f"module {module!r} has no attribute {name!r}"
        raise AttributeError(
            why, name=name, obj=sys.modules[module]
        )  # Python adds names that are near

    return missing


def of_objects(**remedies: str) -> Callable[[Any, str], Any]:
    """As `of_modules`, for the class of an object."""

    def missing(asked: Any, name: str) -> Any:
        if name not in remedies or hasattr(type(asked), name):
            return object.__getattribute__(asked, name)  # as Python says it, or as a property fails
        return _refuse(type(asked).__name__, name, remedies[name])

    return missing


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def _refuse(owner: str, name: str, remedy: str) -> NoReturn:
    try:
        complain(AttributeError, f"{owner} has no {name!r}", f"write {remedy}.")
    except AttributeError as error:
        error.name = name  # else Python 3.12 fills it in, and adds names that are near
        raise
