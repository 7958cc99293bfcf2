"""`jt.at(x)[index].set(value)`, `.add`, `.multiply`, `.min`, `.max`, `.get`: updates as values.

Each gives a new array and leaves x alone. Repeated indices accumulate, as with `np.add.at`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...runtime.cuda.array import DeviceArray
from ..devices import holds_device_arrays
from ..trace import current_trace
from .common import array
from .table import function

_UFUNCS = {
    "add": np.add,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


class At:
    """`x` about to be indexed."""

    __slots__ = ("x", "traced")

    def __init__(self, x: Any, traced: bool) -> None:
        self.x = x
        self.traced = traced

    def __getitem__(self, index: Any) -> AtIndex:
        return AtIndex(self.x, index, self.traced)


class AtIndex:
    """The part `x[index]`, and what can be made of it."""

    __slots__ = ("x", "index", "traced")

    def __init__(self, x: Any, index: Any, traced: bool) -> None:
        self.x = x
        self.index = index
        self.traced = traced

    def get(self) -> Any:
        """A copy of `x[index]`."""
        if self._on_device(None):
            return self._run("get", lambda x, index: At(x, traced=True)[index].get())
        part = self.x[self.index]
        return part.copy() if hasattr(part, "copy") else part

    def set(self, value: Any) -> Any:
        return self._updated(value, "set")

    def add(self, value: Any) -> Any:
        return self._updated(value, "add")

    def multiply(self, value: Any) -> Any:
        return self._updated(value, "multiply")

    def min(self, value: Any) -> Any:
        return self._updated(value, "min")

    def max(self, value: Any) -> Any:
        return self._updated(value, "max")

    def _updated(self, value: Any, combine: str) -> Any:
        if self._on_device(value):
            if isinstance(value, (bool, int, float, complex)):  # an input of the program
                value = np.asarray(value).astype(self.x.dtype)
            return self._run(
                combine,
                lambda x, index, value: At(array(x), traced=True)[index]._updated(value, combine),
                value,
            )
        result = self.x.copy()
        if self.traced or not isinstance(result, np.ndarray):
            from ..indexing import update

            update(result, self.index, value, combine)
        elif combine == "set":
            result[self.index] = value
        else:
            _UFUNCS[combine].at(result, self.index, np.asarray(value).astype(result.dtype))
        return result

    def _on_device(self, value: Any) -> bool:
        """Whether this is about DeviceArrays, outside of tracing."""
        if self.traced or current_trace() is not None:
            return False
        return holds_device_arrays((self.x, self.index, value))

    def _run(self, name: str, function: Callable[..., Any], *value: Any) -> Any:
        from ..device_functions import run

        return run(f"at.{name}", function, (self.x, self.index, *value), {})


def _reference(x: Any) -> At:
    """`jt.at(x)[index].set(value)` (or add, multiply, min, max): x with a part replaced, as a copy."""
    return At(x if isinstance(x, DeviceArray) else np.asarray(x), traced=False)


@function("at", reference=_reference, computes=False)
def at(x: Any) -> At:
    return At(array(x), traced=True)
