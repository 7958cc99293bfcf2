"""Special functions outside of compiled functions: the same compiled code, on blocks of elements.

An elementwise function is compiled for a few lengths, whatever the shapes of its operands: large
blocks first, then small ones, of which the last is filled up. So the second call with any shape compiles
nothing, and eager and compiled results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_BLOCKS = (1 << 18, 1 << 12, 64)


class Blockwise:
    """`function` of arrays of one length, elementwise, for operands of any shapes that broadcast."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.compiled: Any = None

    def __call__(self, *operands: np.ndarray[Any, Any]) -> Any:
        """The result, or a tuple of results; operands without dims give scalars."""
        from ..jit.decorator import jit

        if self.compiled is None:
            self.compiled = jit(self.function)
            self.compiled.is_formula = True
        shape = np.broadcast_shapes(*(x.shape for x in operands))
        flat = [np.broadcast_to(x, shape).reshape(-1) for x in operands]
        size = flat[0].size
        outputs: list[np.ndarray[Any, Any]] = []
        single = False
        start = 0
        for block in _BLOCKS:
            while size - start >= block or (block == _BLOCKS[-1] and (start < size or not outputs)):
                stop = min(start + block, size)
                parts = self.compiled(*(_filled(x[start:stop], block) for x in flat))
                single = not isinstance(parts, tuple)
                parts = (parts,) if single else parts
                outputs = outputs or [np.empty(size, p.dtype) for p in parts]
                for whole, part in zip(outputs, parts, strict=True):
                    whole[start:stop] = part[: stop - start]
                start = stop
        results = tuple(x.reshape(shape)[()] for x in outputs)
        return results[0] if single else results


def _filled(x: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    """x, made longer with ones."""
    if x.size == length:
        return x
    longer = np.ones(length, x.dtype)
    longer[: x.size] = x
    return longer
