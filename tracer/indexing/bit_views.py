"""`x.view(dtype)`: the memory of an array as numbers of another dtype, a view that can be written.

Numbers are cut into words, unsigned integers of the smaller of the two sizes, and words are joined:
the lowest first, as they lie in memory. Complex numbers are pairs, so views of complex arrays as
floats of their parts, and back, have derivatives; bits have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Value
from ...ir.types import BOOL, is_complex, real_dtype
from ..core import views
from ..core.tracers import Tracer
from ..messages import errors
from ..messages.errors import complain

DType = np.dtype[Any]
_WORDS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def bit_view(x: Tracer, dtype: DType) -> Tracer:
    """`x.view(dtype)`, with NumPy's rules for shapes and layouts."""
    old, shape = x.dtype, x.shape
    ratio = old.itemsize / dtype.itemsize
    new_shape = shape if ratio == 1 else _new_shape(x, dtype)
    steps = x.element_strides
    if ratio != 1:
        steps = (*(int(step * ratio) for step in steps[:-1]), 1)

    def forward(b: Builder, v: Value) -> Value:
        return _as_dtype(b, v, dtype, new_shape)

    def inverse(b: Builder, v: Value, new: Value) -> Value:
        return _as_dtype(b, new, old, shape)

    return views.view(x, forward, inverse, strides=steps, numpy=lambda a: a.view(dtype))


def _new_shape(x: Tracer, dtype: DType) -> tuple[int, ...]:
    """The shape of a view with elements of another size, or NumPy's ValueError."""
    if x.ndim == 0:
        raise ValueError(
            "Changing the dtype of a 0d array is only supported if the itemsize is unchanged"
        )
    count, size = x.shape[-1], x.dtype.itemsize
    if x.element_strides[-1] != 1 and count != 1 and x.size:
        complain(
            errors.ShapeError,
            "To change to a dtype of a different size, the last axis must be contiguous",
            "view a copy: np.ascontiguousarray(x).",
            operands={"x": x},
        )
    if count * size % dtype.itemsize:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in "
            "bytes of the last axis of the array."
        )
    return (*x.shape[:-1], count * size // dtype.itemsize)


def _as_dtype(b: Builder, v: Value, dtype: DType, shape: tuple[int, ...]) -> Value:
    if v.dtype == dtype:
        return v
    if 0 in shape:
        return b.full(shape, 0, dtype)
    parts = _parts(b, v)
    unit = real_dtype(dtype)
    if parts.dtype != unit:
        word = _WORDS[min(parts.dtype.itemsize, unit.itemsize)]
        parts = _from_words(b, _to_words(b, parts, word), unit)
    return _joined(b, parts, dtype, shape)


def _parts(b: Builder, v: Value) -> Value:
    """Real numbers in the order of memory, as one axis."""
    if not is_complex(v.dtype):
        return b.reshape(v, shape=(v.tensor.size,))
    pair = [b.reshape(b.op(name, v), shape=(v.tensor.size, 1)) for name in ("real", "imag")]
    return b.reshape(b.concat(*pair, axis=1), shape=(2 * v.tensor.size,))


def _joined(b: Builder, parts: Value, dtype: DType, shape: tuple[int, ...]) -> Value:
    if not is_complex(dtype):
        return b.reshape(parts, shape=shape)
    n = parts.shape[0]
    both = [b.slice(parts, start=(i,), stop=(max(n - 1 + i, i),), step=(2,)) for i in (0, 1)]
    return b.reshape(b.complex(*both), shape=shape)


def _to_words(b: Builder, v: Value, word: DType) -> Value:
    """Numbers as unsigned integers of `word`, the lowest of each first."""
    size, bits = v.dtype.itemsize, _bits(b, v)
    if size == word.itemsize:
        return bits
    count, n = size // word.itemsize, v.shape[0]
    wide = b.broadcast(bits, shape=(n, count), dims=(0,))
    number = b.op("iota", shape=(n, count), dtype=bits.dtype, axis=1)
    shifts = b.mul(number, b.full_like(number, 8 * word.itemsize))
    return b.reshape(b.convert(b.right_shift(wide, shifts), dtype=word), shape=(n * count,))


def _from_words(b: Builder, words: Value, dtype: DType) -> Value:
    count = dtype.itemsize // words.dtype.itemsize
    if count > 1:
        wide, n = _WORDS[dtype.itemsize], words.shape[0]
        whole: Value | None = None
        for i in range(count):
            part = b.slice(words, start=(i,), stop=(max(n - count + 1 + i, i),), step=(count,))
            part = b.convert(part, dtype=wide)
            part = b.left_shift(part, b.full_like(part, 8 * words.dtype.itemsize * i))
            whole = part if whole is None else b.bitwise_or(whole, part)
        assert whole is not None
        words = whole
    if dtype == BOOL:
        return b.ne(words, b.full_like(words, 0))
    return words if dtype == words.dtype else b.bitcast(words, dtype=dtype)


def _bits(b: Builder, v: Value) -> Value:
    word = _WORDS[v.dtype.itemsize]
    if v.dtype == BOOL:
        return b.convert(v, dtype=word)
    return v if v.dtype == word else b.bitcast(v, dtype=word)
