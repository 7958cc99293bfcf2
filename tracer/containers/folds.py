"""What Python makes of all elements of a native container: sum, min, max, any, all; and iterators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.types import BOOL
from ..arrays.python_integers import require_fits
from ..control.control import cond, fori_loop, while_loop
from ..core.tracers import Tracer, as_value, weak_kind, wrap
from .mixed import apart, form_among, together
from .stand_ins import fail, require
from .walking import walked


def total(items: Any, start: Any = 0) -> Any:
    """`sum`"""
    return _folded(_added, items, start)


def product(items: Any, start: Any = 1) -> Any:
    """`math.prod`"""
    return _folded(_multiplied, items, start)


def _folded(join: Callable[[Any, Any], Any], items: Any, start: Any) -> Any:
    found = walked(items)
    assert found is not None
    length, item = found
    if isinstance(length, int) and length == 0:
        return start
    form = form_among(items, start)

    def add(i: Any, so_far: Any) -> Any:
        return apart(form, join(together(form, so_far), item(i)))

    return together(form, fori_loop(0, length, add, apart(form, start)))


def _added(x: Any, y: Any) -> Any:
    return _fitting("add", x + y, x, y)


def _multiplied(x: Any, y: Any) -> Any:
    return _fitting("multiply", x * y, x, y)


def _fitting(op: str, result: Any, *operands: Any) -> Any:
    if weak_kind(result) == "i" and isinstance(result, Tracer) and not result.shape:
        require_fits(op, operands, as_value(result))
    return result


def sure(key: Any) -> Any:
    """A function that orders items: `d.get` gives None for none of them, or Python would raise."""
    return getattr(getattr(key, "__self__", None), "value_of", key)


def extreme(items: Any, builtin: Any, *, key: Any = None, default: Any = None) -> Any:
    """`min` or `max`: of equals the first."""
    found = walked(items)
    assert found is not None
    length, item = found
    message = f"{builtin.__name__}() arg is an empty sequence"
    if isinstance(length, int) and length == 0:
        if default is not None:
            return default
        fail(ValueError(message))
    by = sure(key) or (lambda x: x)
    form = form_among(items, *(() if default is None else (default,)))

    def first() -> Any:
        return apart(form, item(0))

    def better(i: Any, so_far: Any) -> Any:
        x, best = item(i), together(form, so_far)
        less, more = by(x), by(best)
        if builtin is max:
            less, more = more, less
        return cond(is_less(less, more), lambda: apart(form, x), lambda: so_far)

    if default is not None:
        found = cond(
            length > 0,
            lambda: fori_loop(1, length, better, first()),
            lambda: apart(form, default),
        )
        return together(form, found)
    require(as_value(length > 0), message, "ValueError")
    return together(form, fori_loop(1, length, better, first()))


def is_less(a: Any, b: Any) -> Any:
    """`a < b`, of numbers or tuples."""
    if not isinstance(a, tuple):
        return a < b
    if not a or not b:
        return len(a) < len(b)
    (x, *rest), (y, *others) = a, b
    if not rest:
        return is_less(x, y) if others == [] else (x < y) | (x == y)
    return (x < y) | ((x == y) & is_less(tuple(rest), tuple(others)))


def some(items: Any, truth: Callable[[Any], Any], wanted: bool) -> Any:
    """`any` (True wanted), `all` (False wanted)."""
    found = walked(items)
    assert found is not None
    length, item = found
    if isinstance(length, int) and length == 0:
        return not wanted

    def go_on(state: Any) -> Any:
        return (state[0] < length) & (state[1] ^ wanted)

    def step(state: Any) -> Any:
        return state[0] + 1, wrap(as_value(truth(item(state[0])), BOOL), "b")

    found = while_loop(go_on, step, (0, not wanted))[1]
    return wrap(as_value(found), "b")


class Iterator:
    """`iter(container)`, for `next`. The first item is looked for, the others are found with all."""

    def __init__(self, items: Any) -> None:
        self._items, self._taken = items, 0

    def take(self, *default: Any) -> Any:
        """`next`"""
        found = self._items.first() if not self._taken else walked(self._items)
        assert found is not None
        i = self._taken
        length, item = found
        if isinstance(length, int) and length <= i:
            if default:
                return default[0]
            fail(StopIteration())
        self._taken += 1
        if default:
            return cond(length > i, lambda: item(i), lambda: default[0])
        require(as_value(length > i), "", "StopIteration")
        return item(i)

    def __iter__(self) -> Any:
        raise TypeError("an iterator over a container that grows is for next() only")
