"""What Python tells of a value, its class for one, told of what a traced value stands for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..containers.stand_ins import Container
from ..control.unions import Union, exact, is_one_of, possible
from ..core.tracers import Tracer
from ..records.arrays import Records
from .texts import Text

_STAND_INS = (Tracer, Text, Container, Records)
_PYTHON: dict[str, type] = {"b": bool, "i": int, "f": float, "c": complex}


def class_of(x: Any) -> type:
    """The class that a value has when the function is called as Python."""
    if isinstance(x, Text):
        return str
    if isinstance(x, Container):
        return x.kind.cls
    if isinstance(x, Records):
        return x.kind.cls
    if not isinstance(x, Tracer):
        return type(x)
    if x.weak is not None:
        return _PYTHON[x.weak]
    return x.dtype.type if x.scalar else np.ndarray


def isinstance_(x: Any, classes: Any) -> Any:
    """`isinstance`"""
    x = exact(x)
    if type(x) is Union:
        return is_one_of(x, [n for n in possible(x) if isinstance_(x.options[n], classes)])
    if isinstance(x, _STAND_INS):
        return isinstance(x, classes) or issubclass(class_of(x), classes)
    return isinstance(x, classes)


def type_(*args: Any, **options: Any) -> Any:
    """`type`"""
    if len(args) != 1:
        return type(*args, **options)
    x = exact(args[0])
    if type(x) is Union:
        return Union(x.tag, {n: class_of(option) for n, option in x.options.items()})
    return class_of(x)


def hasattr_(x: Any, name: str) -> Any:
    """`hasattr`"""
    if type(x) is Union:
        return is_one_of(x, [n for n in possible(x) if hasattr_(x.options[n], name)])
    if isinstance(x, _STAND_INS):  # not what the class itself has, as its __name__
        return any(name in vars(cls) for cls in class_of(x).__mro__)
    return hasattr(x, name)
