"""Objects that are trees where one asks for a tree: modules, variables.

For compiled code they are objects like others: it reads and changes them where they are. For `jt.tree`
and for transformations an object of a class that was registered here is a node whose
children are its arrays: those of its attributes, and of the registered objects and containers in these
(`opened`). One array in two places, or in two of the objects, is one child.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from ...ir.forks import renewed
from ...ir.record import field, record
from ...ir.types import is_inexact, is_supported
from ...runtime.cuda.array import DeviceArray
from ..messages.errors import TracerBase
from . import pytree

standing_in = renewed(threading.RLock())  # held while tracers stand in objects of the user's


@record
class Kind:
    """What is known of a class. `untrained` gives the names of attributes that are not differentiated;
    `check` is asked before an object is differentiated; a `cell` is its attribute `value` alone."""

    untrained: Callable[[Any], Container[str]]
    check: Callable[[Any], None]
    cell: bool


_kinds: dict[type, Kind] = {}
_known: dict[type, Kind | None] = {}  # of subclasses, and of others
CONTAINERS = (list, tuple, dict)


def register_object(
    cls: type,
    untrained: Callable[[Any], Container[str]] = lambda obj: (),
    check: Callable[[Any], None] = lambda obj: None,
    *,
    cell: bool = False,
) -> None:
    """Let objects of `cls` and its subclasses be trees for `jt.tree` and transformations.

    Their leaves are the arrays among their attributes, in the order of these, and in the lists,
    tuples, dicts and registered objects there. They have to have a `__dict__`. `untrained(obj)` names
    attributes whose arrays have no derivative; those of integers have none either. `check(obj)` may
    raise before one is differentiated. A `cell` stands for the array in its attribute `value`.

    >>> class Line:
    ...     def __init__(self):
    ...         self.slope, self.name = np.ones(2), "line"
    >>> jt.tree.register_object(Line)
    >>> jt.tree.leaves_with_path(Line())
    [('slope', array([1., 1.]))]
    """
    _kinds[cls] = Kind(untrained, check, cell)
    pytree.keep_whole(cls)
    _known.clear()


def kind_of(value: Any) -> Kind | None:
    """What is known of the class of a value; None if nobody registered it."""
    cls = type(value)
    try:
        return _known[cls]
    except KeyError:
        found = next((_kinds[base] for base in cls.__mro__ if base in _kinds), None)
        _known[cls] = found
        return found


def registered() -> bool:
    """Whether there are such classes at all."""
    return bool(_kinds)


def in_cell(value: Any) -> Any:
    """The array that a value stands for, if it is a cell; else the value."""
    kind = kind_of(value)
    return value.value if kind is not None and kind.cell else value


def is_leaf_array(value: Any) -> bool:
    """Whether an attribute is an array, and no setting: NumPy's floats are arrays without axes, Python's
    numbers are settings."""
    if isinstance(value, TracerBase):
        return getattr(value, "weak", None) is None
    if isinstance(value, np.generic):
        return is_supported(value.dtype) and is_inexact(value.dtype)
    return type(value) is DeviceArray or (type(value) is np.ndarray and is_supported(value.dtype))


@record
class Place:
    """Where an array is: an attribute, or an element; `inner` leads on into tuples."""

    holder: Any
    key: Any
    inner: tuple[int, ...] = ()

    def get(self) -> Any:
        """What is there."""
        value = self._outer()
        for index in self.inner:
            value = value[index]
        return value

    def put(self, value: Any) -> None:
        """Let `value` be there."""
        new = _replaced(self._outer(), self.inner, value)
        if isinstance(self.holder, (list, dict)):
            self.holder[self.key] = new
        else:
            vars(self.holder)[self.key] = new

    def _outer(self) -> Any:
        held = self.holder if isinstance(self.holder, (list, dict)) else vars(self.holder)
        return held[self.key]


def _replaced(value: Any, inner: Sequence[int], new: Any) -> Any:
    """A tuple with something else in one place."""
    if not inner:
        return new
    items = list(value)
    items[inner[0]] = _replaced(items[inner[0]], inner[1:], new)
    return type(value)._make(items) if hasattr(value, "_fields") else type(value)(items)


@record(frozen=False, eq=False)
class Parameter:
    """An array of an object: its names, its places."""

    array: Any
    paths: list[str]
    places: list[Place]
    trained: bool

    @property
    def has_derivative(self) -> bool:
        """Whether it is differentiated."""
        return self.trained and is_inexact(self.array.dtype)


@record(frozen=False, eq=False)
class Walk:
    """Arrays found on the way through objects, each once."""

    found: list[Parameter] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    by_id: dict[int, Parameter] = field(default_factory=dict)

    def enter(self, value: Any, path: str, place: Place | None, trained: bool) -> None:
        kind = kind_of(value)
        if place is not None and is_leaf_array(value):
            self._array(value, path, place, trained)
        elif kind is not None and id(value) not in self.seen:
            self.seen.add(id(value))
            untrained = kind.untrained(value)
            if kind.cell:
                own = trained and "value" not in untrained
                self.enter(value.value, path, Place(value, "value"), own)
                return
            for name, item in list(vars(value).items()):
                own = trained and name not in untrained
                self.enter(item, f"{path}.{name}" if path else name, Place(value, name), own)
        elif isinstance(value, CONTAINERS) and place is not None:
            inside = isinstance(value, tuple)
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            for key, item in list(pairs):
                there = Place(value, key)
                if inside:
                    there = Place(place.holder, place.key, (*place.inner, key))
                self.enter(item, f"{path}[{key!r}]", there, trained)

    def _array(self, value: Any, path: str, place: Place, trained: bool) -> None:
        one = self.by_id.get(id(value))
        if one is None:
            one = self.by_id[id(value)] = Parameter(value, [path], [place], trained)
            self.found.append(one)
            return
        one.paths.append(path)
        one.places.append(place)
        one.trained &= trained


def parameters(obj: Any) -> list[Parameter]:
    """The arrays of a registered object, each once, with the names of all its places."""
    walk = Walk()
    walk.enter(obj, "", None, True)
    return walk.found
