"""Objects that a call is given: what stands for them in paths, and which arguments are such objects."""

from __future__ import annotations

import threading
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from ...ir.record import record
from ..data.foreign import is_borrowable
from .frozen import attributes_of, is_random_state
from .paths import is_user_module, state_of

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement
_VALUES = (
    *(int, float, complex, str, bytes, list, tuple, dict, set, frozenset),
    *(BaseException, Enum),
)
# Python's own classes for attributes of the user's; argparse would take long to import.
_NAMESPACES = (("types", "SimpleNamespace"), ("argparse", "Namespace"))
_NO_OBJECTS = (type, FunctionType, MethodType, BuiltinFunctionType, ModuleType)


class Subject:
    """Stands for the object in one place among the arguments: called, it gives the object of the call
    that this thread is making. So paths from it are the same for all objects of a class."""

    def __init__(self) -> None:
        self._local = threading.local()

    def __call__(self) -> Any:
        return getattr(self._local, "value", None)

    def put(self, value: Any) -> None:
        self._local.value = value


@record
class ObjectLeaf:
    """An object on its way through the pytree functions, which might look inside."""

    value: Any


@record
class Object:
    """What the signature of a call says of an argument that is an object: its class."""

    cls: type


def is_object(value: Any) -> bool:
    """Whether a value is an object with attributes, of a class of the user's."""
    cls = type(value)
    of_user = is_user_module(cls.__module__) or _is_nameless(cls)
    of_user = of_user or (cls.__module__, cls.__qualname__) in _NAMESPACES
    if not of_user or isinstance(value, _NO_OBJECTS):
        return False
    if state_of(value) is not None or is_random_state(value):
        return False
    if isinstance(value, _VALUES) or attributes_of(value) is None:
        return False
    return not is_borrowable(value)  # an array by some protocol


def _is_nameless(cls: type) -> bool:
    """Whether a class was made by code that has no module."""
    return cls.__module__ == "builtins" and bool(cls.__flags__ & _HEAP_TYPE)
