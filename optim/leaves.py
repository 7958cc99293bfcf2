"""What is done with each leaf, in one place: the rule, dtypes, writing where an array is.

There is no loop or branch over traced values here, so compiled code takes these functions as they are:
it would look at each of their lines for each of the leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .trees import Array, dtype_of

__autograph__ = False


class Numbers:
    """The numbers of one step, in each dtype that is asked for."""

    def __init__(self, numbers: tuple[Any, ...]) -> None:
        self._numbers = numbers
        self._cast: dict[Any, tuple[Any, ...]] = {}

    def beside(self, dtype: np.dtype[Any]) -> tuple[Any, ...]:
        """The numbers with which arrays of a dtype are multiplied and keep it."""
        if dtype not in self._cast:
            real = np.finfo(dtype).dtype
            self._cast[dtype] = tuple([x if _is_weak(x) else cast(x, real) for x in self._numbers])
        return self._cast[dtype]


def applied(
    rule: Callable[..., tuple[Any, ...]], columns: Sequence[Sequence[Any]], numbers: Numbers
) -> list[list[Any]]:
    """A rule for each leaf. `columns` are gradients, parameters, and what each slot has; the results are
    updates, and what each slot has then."""
    rows = [_apply(rule, row, numbers) for row in zip(*columns, strict=True)]
    return [[row[k] for row in rows] for k in range(len(columns) - 1)]


def _apply(
    rule: Callable[..., tuple[Any, ...]], row: Sequence[Any], numbers: Numbers
) -> tuple[Any, ...]:
    g, p, *kept = row
    if g is None:
        return (None, *kept)
    dtypes = {x.dtype if hasattr(x, "dtype") else dtype_of(x) for x in row if x is not None}
    if all(dtype.itemsize >= 4 for dtype in dtypes):
        return rule(*row, *numbers.beside(dtype_of(g)))
    wide = [x if x is None else cast(x, working(dtype_of(x))) for x in row]
    new, *after = rule(*wide, *numbers.beside(dtype_of(wide[0])))
    return (new, *[cast(x, dtype_of(old)) for x, old in zip(after, kept, strict=True)])


def downhill(grads: Sequence[Any]) -> list[Any]:
    """What rules take for gradients: steps go against them, so those of complex numbers conjugated."""
    return [g.conj() if g is not None and dtype_of(g).kind == "c" else g for g in grads]


def overwrite(arrays: Sequence[Array], values: Sequence[Any]) -> None:
    """Writes values into arrays, but for an array into itself."""
    for array, value in zip(arrays, values, strict=True):
        if value is not array:
            array[...] = value


def moved(leaf: Array, delta: Array) -> Array:
    """A parameter and its update, added in the wider of their dtypes, as the parameter's dtype."""
    return cast(leaf + delta, dtype_of(leaf))


def moved_all(leaves: Sequence[Any], deltas: Sequence[Any]) -> list[Any]:
    """Parameters with their updates; those without one as they are."""
    return [p if u is None else moved(p, u) for p, u in zip(leaves, deltas, strict=True)]


def working(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """In which dtype a rule computes: float32 for smaller floats."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


def real_of(x: Any) -> np.dtype[Any]:
    """The dtype of the real numbers with which a rule multiplies an array or number."""
    return np.finfo(working(dtype_of(x))).dtype


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """`x` as that dtype; itself where it has that."""
    if dtype_of(x) == dtype:
        return x
    return x.astype(dtype) if hasattr(x, "astype") else dtype.type(x)


def _is_weak(x: Any) -> bool:
    """Whether a number takes the dtype of the array that it meets."""
    return isinstance(x, (int, float)) and not isinstance(x, np.generic)
