"""`x.flat`: the elements of an array in C order, to be read, written and iterated over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrays.common import as_elements, build
from ..arrays.movement import resize
from ..core.tracers import Tracer, as_value, attribute, wrap


class Flat:
    """What `x.flat` gives: one-dimensional, and as wide as `x` has elements."""

    __slots__ = ("base",)
    _jitney_lazy = True  # where an array is wanted it is a copy of the elements
    __array_priority__ = 1001.0

    def __init__(self, base: Tracer) -> None:
        self.base = base

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.copy())

    def __getitem__(self, index: Any) -> Any:
        element = self.copy()[index]
        return element if element.scalar else element.copy()

    def __setitem__(self, index: Any, value: Any) -> None:
        """As NumPy, which takes a value's elements one after the other, from the start again if
        there are too few of them."""
        elements, value = self.copy(), self._taken(value, index)
        part = elements[index]
        if getattr(type(part), "_jitney_lazy", False):  # of a mask, which takes single numbers
            elements[index] = value
        else:
            elements[index] = resize(value, part.shape) if value.size else value
        shape = self.base.shape
        self.base.assign(build().reshape(as_value(elements), shape=shape))

    def _taken(self, value: Any, index: Any) -> Tracer:
        try:
            return as_elements(value, self.base.dtype)
        except (TypeError, ValueError, OverflowError):
            if isinstance(index, (int, np.integer)):
                raise ValueError("Error setting single item of array.") from None
            raise

    def copy(self) -> Tracer:
        size = self.base.size
        return wrap(build().reshape(as_value(self.base), shape=(size,)), scalar=False)

    materialise = copy

    def __array_ufunc__(self, ufunc: Any, how: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, how)(*map(_elements, inputs), **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        elements = {name: _elements(value) for name, value in options.items()}
        return function(*map(_elements, args), **elements)

    @property
    def dtype(self) -> Any:
        return self.base.dtype


def _elements(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(_elements, x))
    return x.copy() if isinstance(x, Flat) else x


def _compare(name: str) -> None:
    setattr(Flat, name, lambda self, other: getattr(self.copy(), name)(_elements(other)))


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    _compare(_name)


def _put(x: Tracer, value: Any) -> None:
    Flat(x)[...] = value


@attribute("flat")
def flat(x: Tracer) -> Flat:
    """x in C order, to read and assign by one index."""
    return Flat(x)


Tracer.flat = Tracer.flat.setter(_put)  # type: ignore[attr-defined]
