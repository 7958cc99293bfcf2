"""`ShapeDtype`: the shape and dtype of an array that is not there yet."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.types import TensorType
from ..messages import errors
from ..messages.errors import complain
from .promotion import canonical


class ShapeDtype:
    """Stands for an array of this shape and dtype (float64, as of np.empty) where only these matter.

    >>> ShapeDtype((2, 3), np.float32)
    ShapeDtype((2, 3), float32)

    In `f.lower` and `f.compile` the first axis may have any length: None, or a name, which is the same
    length wherever it stands.

    >>> ShapeDtype(("batch", 3), np.float32)
    ShapeDtype(('batch', 3), float32)
    """

    __slots__ = ("shape", "dtype", "length")

    def __init__(self, shape: int | Sequence[int], dtype: Any = np.float64) -> None:
        if shape is None or isinstance(shape, str):
            complain(
                errors.ArgumentError,
                f"{shape!r} is no shape",
                f"write ({shape!r},) for one axis of any length, () for a number.",
            )
        dims = shape if isinstance(shape, (tuple, list)) else (shape,)
        try:
            # Of a first axis of any length: its name, "" if it has none.
            self.length: str | None = None
            if len(dims) and (dims[0] is None or isinstance(dims[0], str)):
                self.length = dims[0] or ""
            first = dims[:1] if self.length is not None else ()
            self.shape = (*first, *(operator.index(n) for n in dims[len(first) :]))
        except TypeError:
            complain(
                errors.ArgumentError,
                f"the sizes of a shape are integers, not as in {shape!r}",
                "give one size; the first axis may have any length, None or a name.",
            )
        if any(n < 0 for n in self.inner):
            raise ValueError(f"negative dimensions are not allowed: {self.shape}")
        self.dtype = canonical(dtype)

    @classmethod
    def like(cls, array: Any) -> ShapeDtype:
        """The shape and dtype of an array, a tracer or a number."""
        if not hasattr(array, "dtype"):
            array = np.asarray(array)
        return cls(array.shape, array.dtype)

    @property
    def inner(self) -> tuple[int, ...]:
        """The sizes that are known."""
        return self.shape if self.length is None else self.shape[1:]

    @property
    def type(self) -> TensorType:
        if self.length is not None:
            complain(
                errors.DynamicShapeError,
                f"{self!r} has an axis of any length, which stands where a size must be known",
                "give a size; f.lower and f.compile take any length.",
            )
        return TensorType(self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.type.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtype):
            return False
        return self.dtype == other.dtype and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"ShapeDtype({self.shape}, {self.dtype.name})"
