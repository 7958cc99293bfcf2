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
    """

    __slots__ = ("shape", "dtype")

    def __init__(self, shape: int | Sequence[int], dtype: Any = np.float64) -> None:
        dims = shape if isinstance(shape, (tuple, list)) else (shape,)
        try:
            self.shape = tuple(operator.index(n) for n in dims)
        except TypeError:
            complain(
                errors.ArgumentError,
                f"the sizes of a shape are integers, not as in {shape!r}",
                "give one size: there is no sign for any size, and each is compiled for itself.",
            )
        if any(n < 0 for n in self.shape):
            raise ValueError(f"negative dimensions are not allowed: {self.shape}")
        self.dtype = canonical(dtype)

    @classmethod
    def like(cls, array: Any) -> ShapeDtype:
        """The shape and dtype of an array, a tracer or a number."""
        if not hasattr(array, "dtype"):
            array = np.asarray(array)
        return cls(array.shape, array.dtype)

    @property
    def type(self) -> TensorType:
        return TensorType(self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.type.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtype) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"ShapeDtype({self.shape}, {self.dtype.name})"
