"""Integers, coins, categories; permutations and choices.

Integers in a range come from 64 random bits for ranges up to 2**32, whose probabilities then differ by
less than 2**-32 of themselves, and by rejection beyond.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.types import F64, I64, is_integer
from ..arrays.common import array, axis_index, build, shape_of, sizes
from ..arrays.elementwise import where
from ..arrays.movement import moveaxis
from ..arrays.reductions import argmax
from ..control.control import while_loop
from ..core.tracers import Tracer, as_value, wrap
from ..functions.scans import cumsum
from ..functions.selection import take, take_along_axis
from ..functions.sorting import argsort, searchsorted, sort
from ..messages import errors
from ..messages.errors import complain
from ..special.arithmetic import each, repeat
from .continuous import exponentials, gumbels, precise
from .entry import sampler
from .keys import U32, U64, fold_in, joined, raw_bits, split, threefry
from .uniforms import real_dtype, shaped, spread, unit

WIDE = 2**32


def integers(
    key: Any,
    low: Any,
    high: Any = None,
    shape: Any = None,
    dtype: Any = np.int64,
    endpoint: bool = False,
) -> Any:
    """Integers in low <= n < high (n <= high with `endpoint`); with one bound, in 0 <= n < low.

    >>> jt.random.integers(jt.random.key(42), 1, 6, (8,), endpoint=True)
    array([3, 1, 4, 5, 5, 4, 4, 4])

    An empty range is an error if its bounds are Python's, and otherwise gives `low`.
    """
    low, high, endpoint, small = integer_range(low, high, dtype, endpoint)
    return integers_between(key, low, high, shape, np.dtype(dtype), endpoint, small)


def integer_range(low: Any, high: Any, dtype: Any, endpoint: bool) -> tuple[Any, Any, bool, bool]:
    """The bounds as `integers_between` takes them: the last two say whether the upper one belongs to the
    range, and whether 32 bits suffice."""
    whole = np.dtype(dtype)
    if not is_integer(whole):
        complain(
            errors.DTypeError,
            f"random integers of dtype {whole}",
            "take an integer dtype, or bits.",
        )
    if high is None:
        low, high = 0, low
    small = whole.itemsize <= 4
    if _is_int(low) and _is_int(high):
        first, last = operator.index(low), operator.index(high) - (not endpoint)
        info = np.iinfo(whole)
        if first > last:
            raise ValueError(f"low >= high: there is no integer from {low} to {high}")
        if first < info.min or last > info.max:
            raise ValueError(f"the range from {low} to {high} does not fit {whole}")
        low, high = (np.array(n, whole)[()] for n in (first, last))
        small, endpoint = last - first < WIDE, True
    return low, high, endpoint, small


def _is_int(x: Any) -> bool:
    return isinstance(x, (int, np.integer))


@sampler(static=("small",))
def integers_between(
    key: Any, low: Any, high: Any, shape: Any, dtype: Any, endpoint: bool, small: bool
) -> Any:
    """`small` promises that there are at most 2**32 integers in the range."""
    size, b = shaped(shape, low, high), build()
    wide = U64 if dtype == U64 else I64
    start, stop = (b.broadcast_to(as_value(array(x), wide), size) for x in (low, high))
    empty = b.lt(stop, start) if endpoint else b.le(stop, start)
    start, stop = b.bitcast(start, dtype=U64), b.bitcast(stop, dtype=U64)
    span = b.sub(stop, start)
    if endpoint:
        span = b.add(span, b.full_like(span, 1))
    span = wrap(b.select(empty, b.full_like(span, 1), span))
    offset = _scaled(key, size, span) if small else _rejected(key, size, span)
    bits = b.bitcast(b.add(start, as_value(offset)), dtype=wide)
    return wrap(b.convert(bits, dtype=dtype) if dtype != wide else bits)


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = np.int64) -> Any:
    """`integers`, with JAX's order of parameters (and numbers of its own).

    >>> jt.random.randint(jt.random.key(42), (3,), 0, 10)
    array([4, 0, 5])
    """
    return integers(key, minval, maxval, sizes(shape), dtype)


def _scaled(key: Any, size: tuple[int, ...], spans: Tracer) -> Tracer:
    """The upper half of 64 random bits times a span of at most 2**32."""
    r = raw_bits(key, size, 64)
    low = (r & 0xFFFFFFFF) * spans
    return ((r >> 32) * spans + (low >> 32)) >> 32


def _rejected(key: Any, size: tuple[int, ...], spans: Tracer) -> Tracer:
    """The upper half of 64 random bits times a span, again where the lower half is less than 2**64
    modulo the span (D. Lemire, 2019). A span of 0 is 2**64."""
    divisor = where(spans == 0, np.uint64(1), spans)
    threshold = (0 - divisor) % divisor

    def one(bits: Any, span: Any, threshold: Any) -> Any:
        e0, e1 = bits >> 32, bits & 0xFFFFFFFF
        first, low = _product(bits, span)

        def again(state: Any) -> Any:
            n, _, _ = state
            number, low = _product(joined(*threefry(_word(e0), _word(e1), _word(e0 * 0), n)), span)
            return n + 1, number, low < threshold

        return repeat(again, (np.uint32(0), first, low < threshold))[1]

    random = raw_bits(key, size, 64)
    numbers = each(one, random, spans, threshold)
    return where(spans == 0, random, numbers)


def _word(x: Any) -> Tracer:
    return wrap(as_value(x, U32))


def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """Both halves of the product of uint64s."""
    a1, a0, b1, b0 = a >> 32, a & 0xFFFFFFFF, b >> 32, b & 0xFFFFFFFF
    cross, other = a1 * b0, a0 * b1
    middle = ((a0 * b0) >> 32) + (cross & 0xFFFFFFFF) + (other & 0xFFFFFFFF)
    return a1 * b1 + (cross >> 32) + (other >> 32) + (middle >> 32), a * b


@sampler("0.5, (3,) -> array([ True,  True, False])")
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str | None = None) -> Any:
    """True with probability `p`: u < p. The coins are `jax.random`'s.

    With mode="high" twice as many random bits are taken, which small probabilities in float32 need.
    """
    real, size = real_dtype(None, p), shaped(shape, p)
    chance = spread(p, size, real)
    if not precise(mode):
        return unit(key, size, real) < chance
    both = unit(key, (2, *size), real)
    return both[1] * real.type(2.0 ** -np.finfo(real).nmant) < chance - both[0]


@sampler("(3,) -> array([-1,  1,  1])")
def rademacher(key: Any, shape: Any = (), dtype: Any = np.int64) -> Any:
    """-1 or 1, with equal probabilities."""
    coin = raw_bits(key, sizes(shape), 8) & 1
    return (coin.astype(np.int8) * 2 - 1).astype(dtype)


@sampler("0.5, (3,) -> array([1, 1, 2])")
def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = np.int64) -> Any:
    """How many trials it takes until one succeeds, each with probability `p`: 1, 2, ..."""
    size = shaped(shape, p)
    e = exponentials(key, size, F64)
    trials = np.floor(e / -np.log1p(-spread(p, size, F64))) + 1
    limit = float(np.iinfo(np.dtype(dtype)).max) if is_integer(np.dtype(dtype)) else np.inf
    return np.minimum(trials, np.nextafter(limit, 0.0)).astype(dtype)


@sampler()
def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
) -> Any:
    """An index along `axis` with probability proportional to exp(logits).

    The result has the shape of the other axes, or `shape`, which ends with it. Without `replace` the
    indices that `shape` has in front are different from each other. With it they are `jax.random`'s:
    the largest of the logits plus Gumbel noise, whose `mode` is that of `gumbel`.

    >>> jt.random.categorical(jt.random.key(42), np.log([0.2, 0.5, 0.3]), shape=(8,))
    array([2, 1, 1, 1, 1, 2, 1, 2])
    """
    x = array(logits)
    if x.dtype.kind != "f":
        x = x.astype(F64)
    axis = axis_index(axis, x.ndim, x)
    batch = tuple(n for d, n in enumerate(x.shape) if d != axis)
    size = batch if shape is None else sizes(shape)
    lead = size[: len(size) - len(batch)]
    if size[len(lead) :] != batch:
        complain(
            errors.ShapeError,
            f"categorical of shape {size} for logits with other axes {batch}",
            "end the shape with the shape of the other axes.",
        )
    last = moveaxis(x, axis, -1)
    if replace:
        # Noise is laid out with the categories where the logits have them, as in JAX.
        position = axis + len(lead) if lead else axis
        whole = list(size)
        whole.insert(position, x.shape[axis])
        noise = gumbels(key, tuple(whole), x.dtype, mode)
        return argmax(moveaxis(noise, position, -1) + last, axis=-1)
    count = math.prod(lead)
    if count > x.shape[axis]:
        raise ValueError(f"{count} different categories of {x.shape[axis]} cannot be chosen")
    noisy = last + gumbels(key, last.shape, x.dtype, mode)
    best = argsort(-noisy, axis=-1)[..., :count]
    return moveaxis(best, -1, 0).reshape(size)


_PACKED = 20  # bits of an index that may stand instead of random bits


def _order(key: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Permutations of the indices along an axis: the order of random numbers."""
    count = shape[axis]
    random = raw_bits(key, shape, 64)
    width = max(count - 1, 0).bit_length()
    if width > _PACKED:
        return argsort(random, axis=axis, stable=True)
    # Numbers that carry their index are sorted faster than indices by numbers.
    index = wrap(build().iota(shape=shape, dtype=U64, axis=axis))
    packed = (random << width) | index
    return (sort(packed, axis=axis) & ((1 << width) - 1)).astype(I64)


@sampler(counts=("x",))
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """The numbers 0..x-1, or the slices of the array `x` along `axis`, in random order.

    `independent` orders each line along the axis by itself. The order is that of random numbers of 64
    bits; of 64 less those of an index for up to 2**20 slices.

    >>> jt.random.permutation(jt.random.key(42), 6)
    array([1, 5, 0, 4, 2, 3])
    """
    if not shape_of(x):
        if isinstance(x, Tracer):
            raise TypeError("the length of a permutation must be a Python int, known while tracing")
        return _order(key, (operator.index(x),), 0)
    a = array(x)
    axis = axis_index(axis, a.ndim, a)
    if not independent:
        return take(a, _order(key, (a.shape[axis],), 0), axis=axis)
    return take_along_axis(a, _order(key, a.shape, axis), axis)


@sampler(counts=("a",))
def choice(
    key: Any,
    a: Any,
    shape: int | Sequence[int] = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
    *,
    ordered: bool = False,
) -> Any:
    """Elements of 0..a-1, or slices of the array `a` along `axis`, in an array of `shape`.

    `p` are the probabilities of the slices, in any unit. Without `replace` no slice is taken twice: the
    largest of log p plus Gumbel noise, of that `mode`, are taken (Efraimidis and Spirakis, 2006). What
    is `ordered` has ascending indices.

    >>> jt.random.choice(jt.random.key(42), np.array([10, 20, 30]), (4,), p=[0.1, 0.2, 0.7])
    array([30, 10, 30, 30])
    """
    source = None if not shape_of(a) else array(a)
    axis = 0 if source is None else axis_index(axis, source.ndim, source)
    n = operator.index(a) if source is None else source.shape[axis]
    size = sizes(shape)
    count = math.prod(size)
    if n <= 0 and count:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and count > n:
        raise ValueError(
            f"Cannot take a larger sample (size {count}) than population (size {n}) when "
            "replace is False"
        )
    if p is not None and shape_of(array(p)) != (n,):
        raise ValueError(f"p must have one probability for each of {n} slices")
    if count == 0:
        index = wrap(build().full(size, 0, I64))
    elif p is None:
        index = integers(key, 0, n, size) if replace else _different(key, n, count).reshape(size)
    elif replace:
        index = _weighted(key, array(p), size, n)
    else:
        index = _distinct(key, array(p), count, mode).reshape(size)
    if ordered:
        index = sort(index.reshape(-1)).reshape(size)
    if source is None:
        return index
    chosen = take(source, index.reshape(-1), axis=axis)
    return chosen.reshape((*source.shape[:axis], *size, *source.shape[axis + 1 :]))


def _different(key: Any, n: int, count: int) -> Any:
    """`count` different numbers of 0..n-1, every such list as likely as any other."""
    if 4 * count > n:
        return _order(key, (n,), 0)[:count]
    # Numbers that are there already are drawn again, until there are none. Which ones these are has to
    # do with which are equal only, and not with what they are, so that all lists stay equally likely.
    keys = split(key, 2)

    def again(state: Any) -> Any:
        iteration, numbers, repeated = state
        numbers = where(repeated, integers(fold_in(keys[1], iteration), 0, n, (count,)), numbers)
        return iteration + 1, numbers, _repeated(numbers, n)

    first = integers(keys[0], 0, n, (count,))
    start = (np.uint32(0), first, _repeated(first, n))
    return while_loop(lambda state: state[2].any(), again, start)[1]


def _repeated(x: Tracer, n: int) -> Any:
    """Which elements, all in 0..n-1, are equal to one before them."""
    width = max(x.size - 1, 0).bit_length()
    if width + n.bit_length() <= 64:  # numbers that carry their indices, in order
        index = wrap(build().iota(shape=x.shape, dtype=U64, axis=0))
        ordered = sort((x.astype(U64) << width) | index)
        order, values = (ordered & ((1 << width) - 1)).astype(I64), ordered >> width
    else:
        order = argsort(x, stable=True)
        values = take(x, order)
    equal = np.concatenate([np.zeros(1, np.bool_), values[1:] == values[:-1]])
    repeated = equal.copy()
    repeated[order] = equal
    return repeated


def _weighted(key: Any, p: Tracer, size: tuple[int, ...], n: int) -> Any:
    total = cumsum(p.astype(F64))
    u = unit(key, size, F64) * total[-1]
    index = searchsorted(total, u.reshape(-1), side="right").reshape(size)
    return np.minimum(index, n - 1)


def _distinct(key: Any, p: Tracer, count: int, mode: str | None) -> Any:
    """The largest of log p plus Gumbel noise (Efraimidis and Spirakis, 2006)."""
    weights = p.astype(F64)
    noisy = np.log(weights) + gumbels(key, p.shape, F64, mode)
    return argsort(-noisy)[:count]
