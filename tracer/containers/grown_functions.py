"""NumPy's functions of arrays that grew, and of native lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...ir.types import F64, I64
from ..arrays.common import array
from ..arrays.reductions import as_count
from ..control.control import cond, fori_loop
from ..core.tracers import Tracer, as_value, wrap
from .arrays import (
    METHODS,
    GrownArray,
    append,
    called,
    elementwise,
    fresh,
    grown,
    is_grown,
    listed,
    mapped,
    nothing,
    reduced,
    require_same,
)
from .sequences import Sequence
from .stand_ins import Container, for_each

Function = Callable[..., Any]
_TABLE: dict[Any, Function] = {}


def is_asked_of(x: Any) -> bool:
    """Whether an argument is a container that grows, an array of one, or a few of them."""
    if isinstance(x, (list, tuple)):
        return any(map(is_grown, x))
    return is_grown(x) or (isinstance(x, Container) and not isinstance(x, Sequence))


def call(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A function of NumPy's with such an argument."""
    first = args[0]
    if function in (np.array, np.asarray, np.asanyarray, np.copy):
        return grown(*args, **options)
    number = reduced(function, first, *args[1:], **options) if is_single(first) else None
    if number is not None:
        return number
    found: Any = _TABLE.get(function)
    if found is None:
        whole = next(x for x in (*args, *_parts(args)) if is_single(x))
        (whole if isinstance(whole, GrownArray) else _whole(whole)).refuse()
    return found(*args, **options)


def is_single(x: Any) -> bool:
    """Whether it is one list or array."""
    return isinstance(x, (Container, GrownArray))


def _parts(args: tuple[Any, ...]) -> list[Any]:
    return [part for x in args if isinstance(x, (list, tuple)) for part in x]


def _whole(x: Any) -> Any:
    return grown(x) if isinstance(x, Sequence) else x


def _for(*functions: Any) -> Callable[[Function], Function]:
    def enter(function: Function) -> Function:
        _TABLE.update(dict.fromkeys(functions, function))
        return function

    return enter


def _number(value: Any, dtype: Any = I64) -> Any:
    return wrap(as_value(value, dtype), scalar=True)


def _by_elements(function: Any) -> None:
    _TABLE[function] = lambda *args: elementwise(function, *args)


for _function in (np.clip, np.round, np.around, np.nan_to_num, np.isclose, np.real):
    _by_elements(_function)


@_for(np.sort)
def _sort(x: Any) -> GrownArray:
    x = _whole(x)
    if x.numbers is None:
        return nothing()
    made = mapped(x, lambda v: v)
    if x.dtype.kind == "f":
        made.items.sort(key=lambda v: (v != v, v))
    else:
        made.items.sort()
    return made


@_for(np.argsort)
def _argsort(x: Any, kind: Any = None) -> GrownArray:
    x = _whole(x)
    if x.numbers is None:
        return nothing()
    places = listed(x.length(), lambda i: _number(i))
    places.items.sort(key=lambda i: (x.at(i) != x.at(i), x.at(i)))
    return places


@_for(np.unique)
def _unique(x: Any, return_counts: bool = False) -> Any:
    ordered = _sort(x)
    if ordered.numbers is None:
        return (nothing(), nothing()) if return_counts else nothing()
    made, counts = fresh(), fresh(np.int64(1))

    def look(i: Any, before: Any) -> Any:
        v = ordered.at(i)
        is_new = (i == 0) | ((v != before) & ((v == v) | (before == before)))

        def add() -> None:
            append(made, v)
            append(counts, np.int64(1))

        def count() -> None:
            last = counts.length() - 1
            counts[last] = counts.at(last) + np.int64(1)

        cond(is_new, add, count)
        return v

    fori_loop(0, ordered.length(), look, ordered.dtype.type(0))
    return (GrownArray(made), GrownArray(counts)) if return_counts else GrownArray(made)


@_for(np.median)
def _median(x: Any) -> Any:
    return _quantile(x, 0.5, middle=True)


@_for(np.percentile)
def _percentile(x: Any, q: Any) -> Any:
    if isinstance(q, (list, tuple, np.ndarray)):
        return array([_quantile(x, p / 100) for p in q])
    return _quantile(x, q / 100)


@_for(np.quantile)
def _quantiles(x: Any, q: Any) -> Any:
    if isinstance(q, (list, tuple, np.ndarray)):
        return array([_quantile(x, p) for p in q])
    return _quantile(x, q)


def _quantile(x: Any, q: Any, middle: bool = False) -> Any:
    """By linear interpolation; NaN if there is one, or nothing at all."""
    ordered = _sort(x)
    if ordered.numbers is None:
        return np.float64(np.nan)
    n = _number(ordered.length())

    def find() -> Any:
        place = (n - 1).astype(np.float64) * q
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, n - 1)
        a, b = (ordered.at(i).astype(np.float64) for i in (low, high))
        part = place - low
        if middle:
            found = np.where(part > 0, (a + b) / 2, a)
        else:
            found = np.where(part < 0.5, a + (b - a) * part, b - (b - a) * (1 - part))
        last = ordered.at(n - 1).astype(np.float64)
        return _number(np.where(last != last, np.nan, found), F64)

    return cond(n > 0, find, lambda: _number(np.nan, F64))


def _running(name: str, start: int, join: Function) -> Function:
    def run(x: Any) -> GrownArray:
        x = _whole(x)
        if x.numbers is None:
            return nothing()
        kind = getattr(np, name)(np.zeros(1, x.dtype)).dtype.type
        made, first = fresh(), np.full(x.row_shape, start, kind)[()]

        def step(i: Any, so_far: Any) -> Any:
            so_far = join(so_far, x.at(i).astype(kind))
            append(made, so_far)
            return so_far

        fori_loop(0, x.length(), step, first)
        return GrownArray(made)

    return run


_TABLE[np.cumsum] = METHODS["cumsum"] = _running("sum", 0, lambda a, b: a + b)
_TABLE[np.cumprod] = METHODS["cumprod"] = _running("prod", 1, lambda a, b: a * b)


@_for(np.diff)
def _diff(x: Any) -> GrownArray:
    x = _whole(x)
    if x.numbers is None:
        return nothing()
    count = _number(np.maximum(_number(x.length()) - 1, 0))
    return listed(wrap(as_value(count), "i"), lambda i: x.at(i + 1) - x.at(i))


@_for(np.roll)
def _roll(x: Any, shift: Any, axis: Any = None) -> GrownArray:
    x = _whole(x)
    if axis not in ((None, 0, -1) if not x.row_shape else (0,)) or np.ndim(shift):
        x.refuse()
    if x.numbers is None:
        return nothing()
    n = x.length()
    return listed(n, lambda i: x.at(wrap(as_value(np.remainder(i - shift, n), I64), "i")))


@_for(np.dot, np.inner, np.vdot)
def _dot(x: Any, y: Any) -> Any:
    products = elementwise(np.multiply, x, y)
    if products.ndim > 1:
        products.refuse()
    return products.folded("sum")


@_for(np.concatenate, np.hstack)
def _concatenate(parts: Any, axis: int = 0) -> GrownArray:
    wholes = [_whole(part) for part in parts]
    known = [x for x in wholes if not isinstance(x, GrownArray) or x.numbers is not None]
    if not known:
        return nothing()
    if axis:
        next(x for x in wholes if isinstance(x, GrownArray)).refuse()
    dtype = np.result_type(*(x.dtype if hasattr(x, "dtype") else np.asarray(x) for x in wholes))
    made = fresh()
    for x in known:
        source = x if isinstance(x, (GrownArray, Tracer)) else array(x)
        length = x.length() if isinstance(x, GrownArray) else len(x)
        at = source.at if isinstance(source, GrownArray) else source.__getitem__
        for_each(length, partial(_append_as, made, at, dtype))
    return GrownArray(made)


def _append_as(made: Any, at: Callable[[Any], Any], dtype: Any, i: Any) -> None:
    append(made, at(i).astype(dtype))


@_for(np.append)
def _append(x: Any, more: Any) -> GrownArray:
    many = isinstance(more, (list, tuple, Sequence, GrownArray)) or np.ndim(more)
    return _concatenate([x, more if many else array([more])])


@_for(np.vstack, np.row_stack if hasattr(np, "row_stack") else np.vstack)
def _vstack(items: Any) -> GrownArray:
    found = _whole(items)
    if not isinstance(found, GrownArray) or not found.row_shape:
        _refused(items)
    return _concatenate([found]) if len(found.row_shape) == 1 else found.refuse()


@_for(np.stack)
def _stack(items: Any, axis: int = 0) -> GrownArray:
    if isinstance(items, Sequence) and axis == 0:
        return grown(items)
    return _column_stack(items) if axis in (1, -1) else _refused(items)


@_for(np.column_stack)
def _column_stack(parts: Any) -> GrownArray:
    if isinstance(parts, Sequence):
        _refused(parts)
    wholes = [_whole(part) for part in parts]
    if any(not isinstance(x, GrownArray) or x.row_shape for x in wholes):
        _refused(parts)
    if any(x.numbers is None for x in wholes):
        return nothing()
    for other in wholes[1:]:
        require_same(wholes[0].length(), other.length())
    return listed(wholes[0].length(), lambda i: array([x.at(i) for x in wholes]))


def _refused(items: Any) -> Any:
    whole = next(
        x for x in (items, *(items if isinstance(items, (list, tuple)) else ())) if is_single(x)
    )
    return _whole(whole).refuse()


@_for(np.where)
def _where(test: Any, *choices: Any) -> Any:
    return elementwise(np.where, test, *choices) if choices else _nonzero(test)


@_for(np.nonzero)
def _nonzero(x: Any) -> tuple[GrownArray]:
    return (_flatnonzero(x),)


@_for(np.flatnonzero)
def _flatnonzero(x: Any) -> GrownArray:
    x = _whole(x)
    if x.numbers is None:
        return nothing()
    made = fresh()

    def look(i: Any) -> None:
        cond(x.at(i) != 0, lambda: append(made, _number(i)), lambda: None)

    for_each(x.length(), look)
    return GrownArray(made)


@_for(np.count_nonzero)
def _count_nonzero(x: Any) -> Any:
    found = _whole(x)
    if found.numbers is None:
        return np.count_nonzero(())
    return as_count(_number(elementwise(np.not_equal, found, 0).folded("sum")))


@_for(np.bincount)
def _bincount(x: Any, weights: Any = None, minlength: Any = 0) -> GrownArray:
    x = _whole(x)
    if weights is not None or x.dtype.kind not in "iu":
        x.refuse()
    if x.numbers is None:
        return listed(minlength, lambda i: np.int64(0))
    most = fori_loop(
        0, x.length(), lambda i, m: np.maximum(m, x.at(i).astype(np.int64)), np.int64(-1)
    )
    size = wrap(as_value(np.maximum(most + 1, np.int64(minlength)), I64), "i")
    made = listed(size, lambda i: np.int64(0))

    def count(k: Any) -> None:
        place = wrap(as_value(x.at(k), I64), "i")
        made.items[place] = made.items.at(place) + np.int64(1)

    for_each(x.length(), count)
    return made


@_for(np.delete)
def _delete(x: Any, places: Any) -> GrownArray:
    if isinstance(x, (Sequence, GrownArray)) or x.ndim != 1:
        _refused([y for y in (x, places) if is_single(y)])
    x = x if isinstance(x, Tracer) else array(x)
    places = _whole(places)

    def drop(i: Any, kept: Any) -> Any:
        kept[wrap(as_value(places.at(i)), scalar=True)] = False
        return kept

    kept = array(np.ones(len(x), np.bool_))
    if places.numbers is not None:
        kept = fori_loop(0, places.length(), drop, kept)
    made = fresh()

    def look(i: Any) -> None:
        cond(kept[i], lambda: append(made, x[i]), lambda: None)

    for_each(len(x), look)
    return GrownArray(made)


@_for(np.isin)
def _isin(x: Any, items: Any) -> Any:
    items = _whole(items)
    if isinstance(x, (Sequence, GrownArray)):
        return mapped(_whole(x), lambda v: _isin(v, items))
    nowhere = (
        array(np.zeros(np.shape(x), np.bool_)) if np.ndim(x) else _number(False, np.dtype(np.bool_))
    )
    if not isinstance(items, GrownArray):
        return (x[..., None] == array(items)).any(axis=-1)
    if items.numbers is None:
        return nowhere
    return fori_loop(0, items.length(), lambda i, found: found | (x == items.at(i)), nowhere)


@_for(np.linalg.norm)
def _norm(x: Any) -> Any:
    return np.sqrt(elementwise(np.multiply, x, x).folded("sum"))


@_for(np.zeros_like)
def _zeros_like(x: Any) -> GrownArray:
    return mapped(_whole(x), lambda v: v * 0)


@_for(np.ones_like)
def _ones_like(x: Any) -> GrownArray:
    return mapped(_whole(x), lambda v: v * 0 + v.dtype.type(1))


@_for(np.flip)
def _flip(x: Any) -> GrownArray:
    return _whole(x)[::-1]


@_for(np.shape)
def _shape(x: Any) -> Any:
    return _whole(x).shape


METHODS |= {"dot": _dot, "argsort": _argsort, "nonzero": _nonzero, "clip": _TABLE[np.clip]}
METHODS |= {"round": _TABLE[np.round]}
called.append(call)
