"""NumPy's functions of structured arrays: what moves or makes elements does so field by field."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import FUNCTIONS, Records, of_items, records


def _of(function: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(own: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[function] = own
        return own

    return enter


def _like(function: Any) -> None:
    def like(
        x: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
    ) -> Any:
        """Of the fields of `x`, or of an array of numbers with those of `dtype`."""
        of = x.dtype if dtype is None else np.dtype(dtype)
        whole = x.shape if shape is None else tuple(np.atleast_1d(shape))
        make = getattr(np, function.__name__.removesuffix("_like"))
        return make(whole, of)

    FUNCTIONS[function] = like


for _maker in (np.zeros_like, np.ones_like, np.empty_like):
    _like(_maker)


@_of(np.copy)
def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return a.copy()


@_of(np.copyto)
def _copyto(dst: Any, src: Any) -> None:
    dst[...] = src


def _method(function: Any) -> None:
    def call(a: Any, *args: Any, **options: Any) -> Any:
        return getattr(records(a), function.__name__)(*args, **options)

    FUNCTIONS[function] = call


_METHODS: tuple[Any, ...] = (np.reshape, np.ravel, np.transpose, np.take, np.argsort)
for _function in _METHODS:
    _method(_function)


@_of(np.sort)
def _sort(a: Any, axis: int = -1, kind: Any = None, order: Any = None) -> Any:
    return records(a)._sorted(axis, order)


@_of(np.array_equal)
def _array_equal(a1: Any, a2: Any) -> Any:
    one, other = records(a1), records(a2)
    if one.shape != other.shape:
        return False
    pairs = zip(one.parts, other.parts, strict=True)
    return functools.reduce(operator.and_, [np.array_equal(a, b) for a, b in pairs])


@_of(np.shape)
def _shape(a: Any) -> Any:
    return a.shape


@_of(np.size)
def _size(a: Any) -> Any:
    return a.size


@_of(np.ndim)
def _ndim(a: Any) -> Any:
    return a.ndim


def _joined(function: Any) -> None:
    def join(arrays: Any, axis: int = 0) -> Any:
        """Of arrays with the same fields."""
        parts = [records(x) for x in arrays]
        first = parts[0]
        if any(type(x) is not Records or x.dtype != first.dtype for x in parts):
            raise TypeError("structured arrays are joined with others of the same dtype")
        at = axis % (first.ndim + (function is np.stack))
        whole = [function([x.parts[i] for x in parts], axis=at) for i in range(len(first.names))]
        return Records(first.kind, whole)

    FUNCTIONS[function] = join


_joined(np.concatenate)
_joined(np.stack)


@_of(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    values = of_items(values, arr.dtype) if isinstance(values, list) else records(values)
    return np.concatenate([records(arr).reshape(-1), values.reshape(-1)])


def _by_field(function: Any) -> None:
    def call(a: Any, *args: Any, axis: Any = None, **options: Any) -> Any:
        if axis is None and a.ndim != 1:
            raise TypeError(
                f"{function.__name__} of a structured array of {a.ndim} axes needs an axis"
            )
        at = 0 if axis is None else axis % a.ndim
        return a._each(lambda part, own: function(part, *args, axis=at, **options))

    FUNCTIONS[function] = call


_by_field(np.roll)
_by_field(np.repeat)
_by_field(np.flip)


def _chosen(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`np.where` of two structured arrays with the same fields."""
    one, other = records(x), records(y)
    if type(one) is not Records or type(other) is not Records or one.dtype != other.dtype:
        raise TypeError("np.where chooses between structured arrays of the same dtype")
    parts = []
    for name, a, b in zip(one.names, one.parts, other.parts, strict=True):
        own = len(one.kind.field(name)[1])
        chosen: Any = np.reshape(condition, (*np.shape(condition), *[1] * own))
        parts.append(np.where(chosen, a, b))
    return Records(one.kind, parts)


FUNCTIONS[np.where] = _chosen


@_of(np.array)
def _array(a: Any, dtype: Any = None, *, copy: bool | None = True, **options: Any) -> Any:
    if type(a) is not Records or (dtype is not None and np.dtype(dtype) != a.dtype):
        raise TypeError("a structured array is made of tuples, or of one with the same fields")
    return a.copy() if copy else a


@_of(np.asarray)
def _asarray(a: Any, dtype: Any = None, **options: Any) -> Any:
    return _array(a, dtype, copy=None)


FUNCTIONS[np.asanyarray] = FUNCTIONS[np.ascontiguousarray] = _asarray
