"""Attributes of objects of users' classes: properties, descriptors and `__getattr__` are transformed."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from ...containers.objects import python_class
from ...control.unions import Union
from ...core.tracers import Tracer
from ...messages import errors
from ..answers import class_of
from .operators import of_users, twin

_NOTHING: Any = object()


def _of_class(kind: type, name: str) -> Any:
    """What the class says of an attribute: itself, not what a descriptor makes of it."""
    for cls in kind.__mro__:
        if name in cls.__dict__:
            return cls.__dict__[name]
    return _NOTHING


def attribute(x: Any, name: str) -> Any:
    """`x.name`"""
    kind = type(x)
    if x is None:
        return _of_none(name)
    if (kind is Tracer and name != "__class__") or kind is ModuleType or kind is np.ndarray:
        return getattr(x, name)
    kind = python_class(x)
    if name == "__class__":
        return class_of(x)
    found = _of_class(kind, name)
    if type(found) is property:
        return getattr(x, name) if found.fget is None else twin(found.fget)(x)
    if found is _NOTHING:
        return _looked_up(x, name)
    read = of_users(found, "__get__")
    if read is None:
        return getattr(x, name)
    kept = getattr(x, "__dict__", {})
    if not hasattr(type(found), "__set__") and name in kept:
        return kept[name]
    return read(found, x, kind)


def _of_none(name: str) -> Any:
    """`None.name`: what Python raises for it is raised when the program comes here."""
    try:
        return getattr(None, name)
    except AttributeError as error:
        setattr(error, errors.RAISED, True)
        raise


def _looked_up(x: Any, name: str) -> Any:
    """An attribute of which the class says nothing: `__getattr__` is asked where it is not there."""
    own = of_users(x, "__getattr__")
    if own is None or type(x) is type or of_users(x, "__getattribute__") is not None:
        return getattr(x, name)
    try:
        return object.__getattribute__(x, name)
    except AttributeError:
        return own(x, name)


def set_attribute(value: Any, x: Any, name: str) -> None:
    """`x.name = value`"""
    kind = type(x)
    if kind is Union:
        setattr(x, name, value)
        return
    own = of_users(x, "__setattr__")
    if own is not None:
        own(x, name, value)
        return
    found = _of_class(python_class(x), name)
    if type(found) is property and found.fset is not None:
        twin(found.fset)(x, value)
        return
    write = None if found is _NOTHING else of_users(found, "__set__")
    if write is None:
        setattr(x, name, value)
    else:
        write(found, x, value)
