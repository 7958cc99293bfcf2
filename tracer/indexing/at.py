"""`jt.at(x)[index].set(value)`, `.add`, `.multiply`, ..., `.get`: updates as values.

Each gives a new array and leaves x alone. Repeated indices accumulate, as with `np.add.at`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...ir.ops.movement.indexing import takes
from ...runtime.cuda.array import DeviceArray
from ..arrays import ufuncs
from ..arrays.common import array, operand
from ..arrays.table import eagerly, function
from ..core.trace import current_trace
from ..core.tracers import as_value, wrap
from ..devices.device_calls import run
from ..devices.devices import holds_device_arrays
from .bounded import Bounded, refuse
from .bounded_index import combine_at
from .index_plan import mode_of
from .indexing import read, update, update_each

_UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
_NATIVE = ("set", "add", "multiply", "min", "max")


class At:
    """`x` about to be indexed."""

    __slots__ = ("x", "traced")

    def __init__(self, x: Any, traced: bool) -> None:
        self.x = x
        self.traced = traced

    def __getitem__(self, index: Any) -> AtIndex:
        return AtIndex(self.x, index, self.traced)


class AtIndex:
    """The part `x[index]`, and what can be made of it.

    Options of all methods, as in JAX:

    mode
        What an index that is out of range means; negative ones count from the end first.
        "check" (or "raise"): IndexError. "clip": the nearest in range. "wrap": modulo the size of the
        axis. "fill" (or "drop"): nothing: reading gives `fill_value`, writing leaves it out.
        "promise_in_bounds": there is none, and none is negative; nothing is checked. Default: "check",
        unless the function is compiled with `boundscheck=False`.
    unique_indices
        A promise that no element is indexed twice: divide, power and apply then need no loop.
    indices_are_sorted
        A promise that nothing makes use of today.
    """

    __slots__ = ("x", "index", "traced")

    def __init__(self, x: Any, index: Any, traced: bool) -> None:
        self.x = x
        self.index = index
        self.traced = traced

    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: Any = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
    ) -> Any:
        """A copy of `x[index]`. `fill_value` is what mode "fill" gives for indices out of range: by
        default NaN, the lowest signed or the highest unsigned integer, or True."""
        if mode is None and not self.traced and not self._on_device(None):
            part = self.x[self.index]
            return part.copy() if hasattr(part, "copy") else part
        _checked(mode=mode)
        return self._run("get", _get, mode=mode, fill_value=fill_value)

    def set(self, value: Any, **options: Any) -> Any:
        """x with `value` at the index; the last of several for one element stays."""
        return self._updated("set", value, **options)

    def add(self, value: Any, **options: Any) -> Any:
        return self._updated("add", value, **options)

    def subtract(self, value: Any, **options: Any) -> Any:
        return self._updated("subtract", value, **options)

    def multiply(self, value: Any, **options: Any) -> Any:
        return self._updated("multiply", value, **options)

    mul = multiply

    def divide(self, value: Any, **options: Any) -> Any:
        return self._updated("divide", value, **options)

    def power(self, value: Any, **options: Any) -> Any:
        return self._updated("power", value, **options)

    def min(self, value: Any, **options: Any) -> Any:
        return self._updated("min", value, **options)

    def max(self, value: Any, **options: Any) -> Any:
        return self._updated("max", value, **options)

    def apply(self, function: Callable[[Any], Any], **options: Any) -> Any:
        """x with `function`, of arrays and elementwise, applied at the index: as often to an element
        as it is indexed."""
        return self._run("apply", _applied, each=function, **_checked(**options))

    def _updated(self, how: str, value: Any, **options: Any) -> Any:
        chosen = _checked(**options)
        plain = not self.traced and chosen["mode"] is None and not self._on_device(value)
        if plain and how in _NATIVE:
            result = self.x.copy()
            if how == "set":
                result[self.index] = value
            else:
                value = np.asarray(value).astype(result.dtype)
                chosen_shape = np.shape(result[self.index])
                if value.ndim <= len(chosen_shape):  # NumPy reads behind a value of fewer axes
                    value = np.broadcast_to(value, chosen_shape)
                _UFUNCS[how].at(result, self.index, value)
            return result
        if isinstance(value, (bool, int, float, complex)) and not self.traced:
            value = np.asarray(value).astype(self.x.dtype)
        return self._run(how, partial(_updated, how), value, **chosen)

    def _on_device(self, value: Any) -> bool:
        """Whether this is about DeviceArrays, outside of tracing."""
        if self.traced or current_trace() is not None:
            return False
        return holds_device_arrays((self.x, self.index, value))

    def _run(self, name: str, function: Callable[..., Any], *value: Any, **options: Any) -> Any:
        if self.traced:
            return function(self.x, self.index, *value, **options)
        if not self._on_device(value):

            def now(x: Any, index: Any, *value: Any) -> Any:
                return function(x, index, *value, **options)

            return eagerly(now)(self.x, self.index, *value)
        return run(f"at.{name}", function, (self.x, self.index, *value), options)


def _checked(
    *, mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False
) -> dict[str, Any]:
    mode_of(mode)
    return {"mode": mode, "unique": unique_indices}


def _get(x: Any, index: Any, *, mode: str | None, fill_value: Any) -> Any:
    if isinstance(x, Bounded):
        _require_no_mode(x, mode)
        return x[index]
    return read(array(x), index, mode_of(mode), fill_value)


def _applied(
    x: Any, index: Any, *, each: Callable[[Any], Any], mode: str | None, unique: bool
) -> Any:
    if isinstance(x, Bounded):
        refuse(x, "jt.at(x)[...].apply")
    result = wrap(as_value(array(x)), scalar=False)
    update_each(result, index, None, lambda old, _: each(old), mode_of(mode), once=unique)
    return result


def _updated(how: str, x: Any, index: Any, value: Any, *, mode: str | None, unique: bool) -> Any:
    if isinstance(x, Bounded):
        _require_no_mode(x, mode)
        return _updated_bounded(how, x, index, value)
    result, bounds = wrap(as_value(array(x)), scalar=False), mode_of(mode)
    combine = "add" if how == "subtract" else how
    if combine in _NATIVE and takes(result.dtype, combine):
        if how == "subtract":
            value = ufuncs.apply(np.negative, array(value).astype(result.dtype))
        update(result, index, value, combine, bounds)
    else:
        ufunc = _UFUNCS[how]
        value = value if getattr(type(value), "_jitney_lazy", False) else operand(value)
        update_each(
            result,
            index,
            value,
            lambda old, new: ufuncs.apply(ufunc, old, new.astype(result.dtype)),
            bounds,
            once=unique,
        )
    return result


def _require_no_mode(x: Bounded, mode: str | None) -> None:
    if mode_of(mode) != mode_of(None):
        refuse(x, f"jt.at with mode={mode!r}")


def _is_index_array(item: Any) -> bool:
    if isinstance(item, (list, range)):
        item = np.asarray(item)
    return bool(getattr(item, "ndim", 0)) and item.dtype != np.bool_


def _updated_bounded(how: str, x: Bounded, index: Any, value: Any) -> Any:
    """The same for an array whose length is a value, by its own assignments."""
    result: Any = x.copy()
    value = value if getattr(type(value), "_jitney_lazy", False) else operand(value)
    items = index if isinstance(index, tuple) else (index,)
    if how == "set":
        result[index] = value
    elif any(_is_index_array(i) for i in items):
        combine = "add" if how == "subtract" else how
        if combine not in _NATIVE or not takes(result.dtype, combine):
            refuse(x, f"jt.at(x)[indices].{how}")
        if how == "subtract":
            value = -value
        combine_at(result, index, value, combine)
    else:
        result[index] = _UFUNCS[how](result[index], value).astype(result.dtype)
    return result


def _reference(x: Any) -> At:
    """`jt.at(x)[index].set(value)`, or add, multiply, ...: x with a part replaced, as a copy.

    >>> jt.at(np.arange(3))[1].add(10)
    array([ 0, 11,  2])
    """
    return At(x if isinstance(x, DeviceArray) else np.asarray(x), traced=False)


@function("at", reference=_reference, computes=False)
def at(x: Any) -> At:
    """`jt.at` while tracing."""
    return At(array(x), traced=True)
