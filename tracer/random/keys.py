"""Keys, and the bits that belong to them: `key`, `split`, `fold_in`, `bits`.

A key is an array of two uint32. Element i of an array of random bits is the block of Threefry-2x32 for
the key and the counter i: no element depends on another, so arrays of any shape are computed in any
order and by any number of threads. Keys, their children and bits are those of `jax.random` (its default
implementation, with the default `jax_threefry_partitionable`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ...ir.types import DTYPE_NAMES
from ..arrays.common import array, build, sizes
from ..core.tracers import Tracer, as_value, wrap
from ..messages import errors
from ..messages.errors import complain
from .entry import sampler

U32, U64 = np.dtype(np.uint32), np.dtype(np.uint64)
Words = tuple[Tracer, Tracer]


def key(seed: Any, *, impl: str | None = None) -> Any:
    """A key made of an integer: its upper and its lower 32 bits. `impl`, if given, is "threefry2x32".

    The same key gives the same numbers. So keys are used once: `split` makes new ones of a key.
    `jax.random.key_data(jax.random.key(seed))` is the same array.

    >>> key = jt.random.key(42)
    >>> key
    array([ 0, 42], dtype=uint32)
    >>> jt.random.uniform(key, (2,))
    array([0.42672757, 0.01501007])
    """
    _check_implementation(impl)
    if isinstance(seed, int) and not isinstance(seed, bool):
        seed = np.uint64(seed & (2**64 - 1))
    return _key(seed)


def PRNGKey(seed: Any, *, impl: str | None = None) -> Any:
    """`key`, by its older name in `jax.random`.

    >>> jt.random.PRNGKey(42)
    array([ 0, 42], dtype=uint32)
    """
    return key(seed, impl=impl)


def key_data(keys: Any) -> Any:
    """The words of keys: here a key is its words, so these are the keys themselves.

    >>> jt.random.key_data(jt.random.key(42))
    array([ 0, 42], dtype=uint32)
    """
    return _checked_keys(keys)


def wrap_key_data(key_bits_array: Any, *, impl: str | None = None) -> Any:
    """Keys made of arrays of two uint32 along the last axis: these arrays themselves.

    >>> jt.random.wrap_key_data(np.array([0, 42], np.uint32))
    array([ 0, 42], dtype=uint32)
    """
    _check_implementation(impl)
    return _checked_keys(key_bits_array)


def key_impl(keys: Any) -> str:
    """The name of what makes bits of keys: "threefry2x32".

    >>> jt.random.key_impl(jt.random.key(42))
    'threefry2x32'
    """
    _checked_keys(keys)
    return _IMPLEMENTATION


def clone(key: Any) -> Any:
    """A copy of a key, which gives the same numbers once more.

    >>> jt.random.clone(jt.random.key(42))
    array([ 0, 42], dtype=uint32)
    """
    return _checked_keys(key).copy()


_IMPLEMENTATION = "threefry2x32"


def _check_implementation(impl: str | None) -> None:
    if impl not in (None, _IMPLEMENTATION):
        raise ValueError(f"impl={impl!r}: keys are of {_IMPLEMENTATION!r}")


def _checked_keys(keys: Any) -> Any:
    if getattr(keys, "dtype", None) != U32 or tuple(keys.shape)[-1:] != (2,):
        _refuse_key(keys)
    return keys


@sampler()
def _key(seed: Any) -> Any:
    x = array(seed)
    if x.ndim or x.dtype.kind not in "iu":
        complain(
            errors.DTypeError,
            "the seed of a key must be an integer",
            "pass an int; jt.random.fold_in(key, n) makes further keys of a key.",
            operands={"seed": seed},
        )
    b = build()
    wide = as_value(x, U64 if x.dtype.itemsize == 8 or x.dtype.kind == "i" else x.dtype)
    wide = as_value(wrap(wide), U64)
    high = b.right_shift(wide, b.full((), 32, U64))
    low = b.bitwise_and(wide, b.full((), 0xFFFFFFFF, U64))
    return _pair(b.convert(high, dtype=U32), b.convert(low, dtype=U32))


@sampler()
def split(key: Any, num: int | Sequence[int] = 2) -> Any:
    """`num` new keys, as the rows of an array of shape (num, 2); `num` may be a shape.

    >>> key, once = jt.random.split(jt.random.key(42))
    >>> once
    array([  64467757, 2916123636], dtype=uint32)
    >>> keys = jt.random.split(key, 3)                # a stream of each example's own
    >>> jt.vmap(lambda k: jt.random.normal(k, (2,)))(keys).shape
    (3, 2)
    """
    shape = sizes(num)
    first, second = blocks(key, shape)
    return wrap(stacked(first, second), scalar=False)


@sampler()
def fold_in(key: Any, data: Any) -> Any:
    """A new key made of a key and an integer (an epoch, a layer's number), of which 32 bits count.

    >>> jt.random.fold_in(jt.random.key(42), 7)
    array([2547012911, 1371500959], dtype=uint32)
    """
    k0, k1 = words_of(key)
    x = array(data)
    if x.ndim or x.dtype.kind not in "iu":
        complain(
            errors.DTypeError,
            "fold_in takes an integer scalar",
            "call it under jt.vmap for an array of integers.",
            operands={"data": data},
        )
    zero = wrap(build().full((), 0, U32))
    first, second = threefry(k0, k1, zero, wrap(as_value(x, U32)))
    return _pair(as_value(first), as_value(second))


@sampler()
def bits(key: Any, shape: int | Sequence[int] = (), dtype: Any = np.uint64) -> Any:
    """Uniform random unsigned integers of any width.

    >>> jt.random.bits(jt.random.key(42), (3,), np.uint8)
    array([162, 217, 249], dtype=uint8)
    """
    wanted = np.dtype(dtype)
    if wanted.kind != "u":
        complain(
            errors.DTypeError,
            f"random bits have an unsigned dtype, not {wanted}",
            "take uint8, uint16, uint32 or uint64, or jt.random.integers for a range.",
        )
    return raw_bits(key, sizes(shape), 8 * wanted.itemsize)


def raw_bits(key: Any, shape: tuple[int, ...], width: int) -> Tracer:
    """Random bits of 8, 16, 32 or 64."""
    first, second = blocks(key, shape)
    if width == 64:
        return joined(first, second)
    return wrap(as_value(first ^ second, DTYPE_NAMES[f"u{width}"]), scalar=not shape)


def joined(first: Tracer, second: Tracer) -> Tracer:
    """The two words of blocks as 64 bits."""
    b = build()
    high, low = as_value(first, U64), as_value(second, U64)
    high = b.left_shift(high, b.full_like(high, 32))
    return wrap(b.bitwise_or(high, low), scalar=first.scalar)


def blocks(key: Any, shape: tuple[int, ...]) -> Words:
    """The two words of each counter 0, 1, 2, ..., laid out in `shape`."""
    k0, k1 = words_of(key)
    return threefry(k0, k1, *counters(shape))


def counters(shape: tuple[int, ...]) -> Words:
    """The positions in an array, in C order, as pairs of words: the upper and the lower half."""
    b = build()
    size = math.prod(shape)
    if not shape or size == 0:
        zero = wrap(b.full(shape, 0, U32), scalar=not shape)
        return zero, zero
    if size <= 2**32:
        low = b.iota(shape=(size,), dtype=U32, axis=0)
        return wrap(b.full(shape, 0, U32)), wrap(b.reshape(low, shape=shape))
    index = b.reshape(b.iota(shape=(size,), dtype=U64, axis=0), shape=shape)
    high = b.right_shift(index, b.full_like(index, 32))
    return wrap(b.convert(high, dtype=U32)), wrap(b.convert(index, dtype=U32))


def threefry(k0: Tracer, k1: Tracer, x0: Tracer, x1: Tracer) -> Words:
    """Both words of the blocks of counters under keys; the four are broadcast to one shape."""
    operands = (k0, k1, x0, x1)
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    b = build()
    values = [b.broadcast_to(as_value(x, U32), shape) for x in operands]
    first, second = (b.threefry(*values, word=word) for word in (0, 1))
    return wrap(first, scalar=not shape), wrap(second, scalar=not shape)


def words_of(key: Any) -> Words:
    """The two words of a key, as scalars; an error for what is no key."""
    if not hasattr(key, "dtype") or key.dtype != U32 or tuple(key.shape) != (2,):
        _refuse_key(key)
    value, b = as_value(key), build()
    first, second = (
        b.reshape(b.slice(value, start=(i,), stop=(i + 1,), step=(1,)), shape=()) for i in (0, 1)
    )
    return wrap(first), wrap(second)


def _refuse_key(key: Any) -> NoReturn:
    many = getattr(key, "dtype", None) == U32 and getattr(key, "ndim", 0) > 1
    complain(
        errors.ArgumentError,
        "the first argument must be a key, an array of two uint32",
        "call it for each of several keys with jt.vmap, or take one: keys[0]."
        if many
        else "make one with jt.random.key(seed), or of another one with jt.random.split(key).",
        operands={"key": key},
    )


def _pair(first: Value, second: Value) -> Tracer:
    return wrap(stacked(wrap(first), wrap(second)), scalar=False)


def stacked(first: Tracer, second: Tracer) -> Value:
    """Two arrays, side by side along a new last axis."""
    b = build()
    shape = (*first.shape, 1)
    return b.concat(
        b.reshape(as_value(first), shape=shape),
        b.reshape(as_value(second), shape=shape),
        axis=len(first.shape),
    )


__all__ = [
    "PRNGKey", "bits", "clone", "fold_in", "key", "key_data", "key_impl", "split", "wrap_key_data",
]  # fmt: skip
