"""What a stencil is given for an array: its elements by how far they are from the one at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..core.tracers import Tracer
from ..messages import errors
from ..messages.errors import complain, describe

Offset = tuple[int, ...]


class Neighbours:
    """Indexed by known integers, one for each axis; `at` gives the element."""

    def __init__(self, array: Any, at: Callable[[Offset], Any]) -> None:
        self.shape, self.dtype, self.ndim = np.shape(array), array.dtype, np.ndim(array)
        self._at = at

    def __getitem__(self, index: Any) -> Any:
        offset = index if isinstance(index, tuple) else (index,)
        for k in offset:
            if isinstance(k, (slice, list, np.ndarray)) or k is None or k is Ellipsis:
                self._refuse(index)
        if len(offset) != self.ndim:
            self._refuse(index)
        return self._at(tuple(_number(k) for k in offset))

    def _refuse(self, index: Any) -> NoReturn:
        complain(
            errors.TransformError,
            f"a stencil of {self.ndim} axes is indexed by {describe(index)}",
            f"write {self.ndim} known integers, counted from the element: "
            f"a[{', '.join('0' * self.ndim)}].",
        )

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        complain(
            errors.TransformError,
            "a stencil assigns to its array",
            "return the new value of the element.",
        )

    def __iter__(self) -> NoReturn:
        self._refuse(...)


def _number(k: Any) -> int:
    if isinstance(k, Tracer) and k.dtype.kind not in "iu":
        complain(
            errors.TransformError,
            f"a neighbour is counted by an integer, not {describe(k)}",
            "write known integers: a[-1].",
        )
    return k.__index__()
