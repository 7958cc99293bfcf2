"""Counts: Poisson, binomial, multinomial, negative binomial, Zipf; and von Mises' angles.

Small means by inversion (one uniform number is compared with the sums of the probabilities), large ones
by transformed rejection with squeeze (W. Hörmann, 1993: PTRS and BTRS). All in float64, each element in
loops of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.types import F64
from ..arrays.common import array, operand, shape_of, sizes
from ..arrays.elementwise import clip, where
from ..arrays.movement import broadcast_to, moveaxis
from ..control.scans import scan
from ..messages import errors
from ..messages.errors import complain
from ..special.arithmetic import each, polynomial, repeat
from .continuous import split_in
from .entry import sampler
from .gammas import chisquare, gamma_numbers
from .keys import split
from .lanes import Stream, element_keys
from .uniforms import real_dtype, shaped, spread

_SMALL = 10.0  # the mean below which numbers are found by inversion


# What Stirling's formula at k + 1 lacks, over x = 1 / (k + 1): a polynomial in x, interpolated at
# Chebyshev points of 0..1. The error is less than 4e-12.
_STIRLING = (
    *(0.0833333333208037, 3.487951873290193e-09, -0.002777940728089021, 3.019576956917022e-06),
    *(0.0007644437504706389, 0.0001674008272630436, -0.0011967398024425313),
    *(0.001348436475133154, -0.0008113432047376971, 0.0002701635869623195),
    -3.9310494349565164e-05,
)


def log_factorial(k: Any) -> Any:
    """log k! for k = 0, 1, ... in float64, to within rounding and 4e-12."""
    z = k + 1
    x = 1 / z
    rest = polynomial(x, _STIRLING) * x
    return (z - 0.5) * np.log(z) - z + 0.5 * math.log(2 * math.pi) + rest


def _transformed(stream: Stream, n: Any, a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    """A count of the n-th pair of uniform numbers, as Hörmann transforms them, and what judges it."""
    u, v = stream.uniforms(n)
    u, v = u - 0.5, 1 - v
    us = 0.5 - abs(u)
    us = where(us > 0, us, 1e-300)
    return np.floor((2 * a / us + b) * u + c), us, v


def _poisson(lam: Any, e0: Any, e1: Any) -> Any:
    stream = Stream(e0, e1, F64)
    small = (lam >= 0) & (lam < _SMALL)
    u = stream.uniforms(np.uint32(0))[0]

    def step(state: Any) -> Any:
        k, p, below, _ = state
        p = p * lam / (k + 1)
        return k + 1, p, below + p, (u > below + p) & (k < 1000)

    first = np.exp(-lam)
    count = repeat(step, (0 * lam, first, first, small & (u > first)))[0]

    large = (lam >= _SMALL) & (lam < np.inf)
    mean = where(large, lam, _SMALL)
    b = 0.931 + 2.53 * np.sqrt(mean)
    a = -0.059 + 0.02483 * b
    log_scale = np.log(1.1239 + 1.1328 / (b - 3.4))
    squeeze = 0.9277 - 3.6224 / (b - 2)
    log_mean = np.log(mean)

    def trial(state: Any) -> Any:
        n, _, _ = state
        k, us, v = _transformed(stream, n, a, b, mean + 0.43)
        possible = (k >= 0) & ((us >= 0.013) | (v <= us))
        safe = where(possible, k, 0.0)
        left = np.log(v) + log_scale - np.log(a / (us * us) + b)
        inside = left <= safe * log_mean - mean - log_factorial(safe)
        accepted = ((us >= 0.07) & (v <= squeeze)) | (possible & inside)
        return n + 1, k, np.logical_not(accepted)

    other = repeat(trial, (np.uint32(1), 0 * lam, large))[1]
    count = where(large, other, count)
    return where(lam >= 0, count, np.nan)


@sampler()
def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = np.int64) -> Any:
    """Poisson with mean `lam`. An integer dtype needs means far below its largest number.

    Inversion below a mean of 10, Hörmann's PTRS (1993) above.

    >>> jt.random.poisson(jt.random.key(42), np.array([0.5, 5.0, 500.0]))
    array([  0,   6, 522])
    """
    size = shaped(shape, lam)
    return each(_poisson, spread(lam, size, F64), *element_keys(key, size)).astype(dtype)


def _binomial(n: Any, p: Any, e0: Any, e1: Any) -> Any:
    stream = Stream(e0, e1, F64)
    good = (n >= 0) & (p >= 0) & (p <= 1) & (n < np.inf)
    q = where(good, np.minimum(p, 1 - p), 0.0)
    mean = where(good, n * q, 0.0)
    odds = q / (1 - q)
    u = stream.uniforms(np.uint32(0))[0]
    small = mean < _SMALL

    def step(state: Any) -> Any:
        k, f, below, _ = state
        f = f * odds * (n - k) / (k + 1)
        return k + 1, f, below + f, (u > below + f) & (k + 1 < n)

    first = np.exp(n * np.log1p(-q))
    start = (0 * n, first, first, good & small & (u > first) & (n > 0))
    count = repeat(step, start)[0]

    large = good & np.logical_not(small)
    n_ = where(large, n, 40.0)
    q_ = where(large, q, 0.5)
    deviation = np.sqrt(n_ * q_ * (1 - q_))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * q_
    c = n_ * q_ + 0.5
    squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    log_odds = np.log(q_ / (1 - q_))
    mode = np.floor((n_ + 1) * q_)
    top = log_factorial(mode) + log_factorial(n_ - mode)

    def trial(state: Any) -> Any:
        i, _, _ = state
        k, us, v = _transformed(stream, i, a, b, c)
        possible = (k >= 0) & (k <= n_)
        safe = where(possible, k, mode)
        left = np.log(v * alpha / (a / (us * us) + b))
        right = top - log_factorial(safe) - log_factorial(n_ - safe) + (safe - mode) * log_odds
        accepted = possible & (((us >= 0.07) & (v <= squeeze)) | (left <= right))
        return i + 1, k, np.logical_not(accepted)

    other = repeat(trial, (np.uint32(1), 0 * n, large))[1]
    count = where(large, other, count)
    count = where(p > 0.5, n - count, count)
    return where(good, count, np.nan)


@sampler("10, 0.5, (3,) -> array([4, 6, 4])")
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = np.int64) -> Any:
    """How many of `n` trials succeed, each with probability `p`.

    Inversion below a mean of 10, Hörmann's BTRS (1993) above.
    """
    size = shaped(shape, n, p)
    trials, chance = spread(n, size, F64), spread(p, size, F64)
    return each(_binomial, trials, chance, *element_keys(key, size)).astype(dtype)


def _drawn_shape(shape: Any, n: Any, batch: list[int]) -> tuple[int, ...]:
    """The shape of what is drawn, but for the categories: as asked for, or of the parameters."""
    return (
        np.broadcast_shapes(shape_of(operand(n)), tuple(batch)) if shape is None else sizes(shape)
    )


@sampler("10, [0.2, 0.8] -> array([2, 8])")
def multinomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = np.int64) -> Any:
    """How many of `n` trials fall into each category, whose probabilities `p` has along its last axis.

    The result has the shapes of `n` and, without that axis, of `p`, broadcast, or `shape`, and the
    categories last.
    """
    chances = array(p).astype(F64)
    *batch, parts = chances.shape
    size = _drawn_shape(shape, n, batch)
    trials = spread(n, size, F64)
    chances = broadcast_to(chances, (*size, parts))
    # Given those before, a category's count is binomial.
    after = np.flip(np.cumsum(np.flip(chances, -1), axis=-1), -1)
    share = clip(where(after > 0, chances / after, 0.0), 0.0, 1.0)

    def draw(left: Any, category: Any) -> Any:
        chance, k = category
        drawn = each(_binomial, left, chance, *element_keys(k, size))
        return left - drawn, drawn

    keys = split(key, parts)
    left, counts = scan(draw, trials, (moveaxis(share[..., :-1], -1, 0), keys[:-1]))
    return moveaxis(np.concatenate([counts, left[None]]), 0, -1).astype(dtype)


@sampler("10, 0.5, (3,) -> array([ 5, 22,  8])")
def negative_binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = np.int64) -> Any:
    """How many trials fail before `n` succeed, each with probability `p`; `n` may be any number > 0."""
    size = shaped(shape, n, p)
    chance = spread(p, size, F64)
    first, second = split_in(key, 2)
    rate = gamma_numbers(spread(n, size, F64), *element_keys(first, size))
    rate = rate * ((1 - chance) / chance)
    return each(_poisson, rate, *element_keys(second, size)).astype(dtype)


def _hypergeometric(good: Any, bad: Any, sample: Any, e0: Any, e1: Any) -> Any:
    """Of the rarer kind in the smaller part, by the ratio of uniforms (Stadlober, 1990: HRUA)."""
    stream = Stream(e0, e1, F64)
    total = good + bad
    valid = (good >= 0) & (bad >= 0) & (sample >= 0) & (sample <= total) & (total < 2.0**53)
    few, many = np.minimum(good, bad), np.maximum(good, bad)
    drawn = np.minimum(sample, total - sample)
    runs = valid & (few > 0) & (drawn > 0)
    few, many, drawn = (where(runs, x, 1.0) for x in (few, many, drawn))
    whole = few + many
    share = few / whole
    centre = drawn * share + 0.5
    spread_ = np.sqrt((whole - drawn) * drawn * share * (many / whole) / (whole - 1) + 0.5)
    width = 1.7155277699214135 * spread_ + 0.8989161620588988
    mode = np.floor((drawn + 1) * (few + 1) / (whole + 2))
    end = np.minimum(np.minimum(drawn, few) + 1, np.floor(centre + 16 * spread_))

    def weight(k: Any) -> Any:
        return (
            log_factorial(k)
            + log_factorial(few - k)
            + log_factorial(drawn - k)
            + log_factorial(many - drawn + k)
        )

    top = weight(mode)

    def trial(state: Any) -> Any:
        n, _, _ = state
        u, v = stream.uniforms(n)
        u = 1 - u
        x = centre + width * (v - 0.5) / u
        inside = (x >= 0) & (x < end)
        k = where(inside, np.floor(x), mode)
        accepted = inside & (2 * np.log(u) <= top - weight(k))
        return n + 1, k, np.logical_not(accepted)

    k = repeat(trial, (np.uint32(0), 0 * good, runs))[1]
    k = where(good > bad, drawn - k, k)
    k = where(sample > drawn, good - k, k)
    k = where(runs, k, where(good > 0, np.minimum(sample, good), 0.0))
    return where(valid, k, np.nan)


@sampler("5, 5, 4, (3,) -> array([2, 3, 3])")
def hypergeometric(
    key: Any, ngood: Any, nbad: Any, nsample: Any, shape: Any = None, dtype: Any = np.int64
) -> Any:
    """How many good ones there are among `nsample`, drawn without putting any back."""
    size = shaped(shape, ngood, nbad, nsample)
    numbers = (spread(x, size, F64) for x in (ngood, nbad, nsample))
    return each(_hypergeometric, *numbers, *element_keys(key, size)).astype(dtype)


@sampler("[3, 4, 5], 6 -> array([1, 2, 3])")
def multivariate_hypergeometric(
    key: Any, colors: Any, nsample: Any, shape: Any = None, dtype: Any = np.int64
) -> Any:
    """How many of each colour there are among `nsample`, drawn without putting any back.

    `colors` has along its last axis how many there are of each. The result has the shapes of `nsample`
    and, without that axis, of `colors`, broadcast, or `shape`, and the colours last.
    """
    counts = array(colors).astype(F64)
    if not counts.ndim:
        complain(
            errors.ShapeError,
            "the numbers of each colour are an array, one for each",
            "pass an array of at least one axis.",
            operands={"colors": colors},
        )
    *batch, parts = counts.shape
    size = _drawn_shape(shape, nsample, batch)
    left = spread(nsample, size, F64)
    if not parts:
        return counts.astype(dtype)
    counts = broadcast_to(counts, (*size, parts))
    # Given those before, a colour's count is hypergeometric among what remains.
    after = np.flip(np.cumsum(np.flip(counts, -1), axis=-1), -1) - counts

    def draw(left: Any, colour: Any) -> Any:
        good, bad, k = colour
        drawn = each(_hypergeometric, good, bad, left, *element_keys(k, size))
        return left - drawn, drawn

    keys = split(key, parts)
    colours = (moveaxis(counts[..., :-1], -1, 0), moveaxis(after[..., :-1], -1, 0), keys[:-1])
    left, drawn = scan(draw, left, colours)
    last = where(left <= counts[..., -1], left, np.nan)
    return moveaxis(np.concatenate([drawn, last[None]]), 0, -1).astype(dtype)


@sampler("2.0, 1.0, (2,) -> array([3.0223, 6.849 ])")
def noncentral_chisquare(key: Any, df: Any, nonc: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Chi-squared about a point at distance sqrt(nonc): a mixture over Poisson numbers."""
    real, size = real_dtype(dtype, df, nonc), shaped(shape, df, nonc)
    first, second = split_in(key, 2)
    more = each(_poisson, spread(nonc, size, F64) / 2, *element_keys(first, size))
    half = spread(df, size, real) / 2 + more.astype(real)
    return 2 * gamma_numbers(half, *element_keys(second, size))


@sampler("2.0, 3.0, 1.0, (2,) -> array([2.4081, 0.5258])")
def noncentral_f(
    key: Any, dfnum: Any, dfden: Any, nonc: Any, shape: Any = None, dtype: Any = None
) -> Any:
    """The ratio of a noncentral chi-squared number to a central one, over their degrees of freedom."""
    real, size = real_dtype(dtype, dfnum, dfden, nonc), shaped(shape, dfnum, dfden, nonc)
    first, second = split_in(key, 2)
    n, m = spread(dfnum, size, real), spread(dfden, size, real)
    above = noncentral_chisquare(first, n, nonc, size, real)
    return above / n / (chisquare(second, m, size, real) / m)


def _zipf(a: Any, e0: Any, e1: Any) -> Any:
    stream = Stream(e0, e1, F64)
    b = np.exp2(a - 1)

    def trial(state: Any) -> Any:
        n, _, _ = state
        u, v = stream.uniforms(n)
        x = np.floor((1 - u) ** (-1 / (a - 1)))
        ratio = (1 + 1 / x) ** (a - 1)
        accepted = (x < 2.0**63) & (v * x * (ratio - 1) / (b - 1) <= ratio / b)
        return n + 1, x, np.logical_not(accepted)

    count = repeat(trial, (np.uint32(0), a * 0, (a > 1) & (a < 1000)))[1]
    return where(a > 1, np.maximum(count, 1.0), np.nan)


@sampler("2.0, (3,) -> array([1, 3, 1])")
def zipf(key: Any, a: Any, shape: Any = None, dtype: Any = np.int64) -> Any:
    """Zipf's: probabilities proportional to 1 / n ** a for n = 1, 2, ..., a > 1 (Devroye, 1986)."""
    size = shaped(shape, a)
    return each(_zipf, spread(a, size, F64), *element_keys(key, size)).astype(dtype)


@sampler("0.6, (3,) -> array([1, 2, 1])")
def logseries(key: Any, p: Any, shape: Any = None, dtype: Any = np.int64) -> Any:
    """Probabilities proportional to p ** n / n for n = 1, 2, ... (Kemp, 1981)."""
    size = shaped(shape, p)
    chance = spread(p, size, F64)
    words = element_keys(key, size)
    u, v = Stream(*words, F64).uniforms(np.full(size, 0, np.uint32))
    v = 1 - v
    q = -np.expm1(np.log1p(-chance) * u)
    long = np.floor(1 + np.log(v) / np.log(q))
    count = where(v <= q * q, long, where(v >= q, 1.0, 2.0))
    return where(v >= chance, 1.0, count).astype(dtype)


def _von_mises(kappa: Any, e0: Any, e1: Any) -> Any:
    stream = Stream(e0, e1, F64)
    r = 1 + np.sqrt(1 + 4 * kappa * kappa)
    rho = (r - np.sqrt(2 * r)) / (2 * kappa)
    s = where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho * rho) / (2 * rho))
    sign, around = stream.uniforms(np.uint32(0))
    normal = stream.normal_and_uniform(np.uint32(0))[0]

    def trial(state: Any) -> Any:
        n, _, _ = state
        u, v = stream.uniforms(n)
        z = np.cos(math.pi * u)
        w = (1 + s * z) / (s + z)
        y = kappa * (s - w)
        accepted = (y * (2 - y) - v >= 0) | (np.log(y / v) + 1 - y >= 0)
        return n + 1, w, np.logical_not(accepted)

    w = repeat(trial, (np.uint32(1), kappa * 0, (kappa > 1e-8) & (kappa < 1e6)))[1]
    angle = np.arccos(clip(w, -1.0, 1.0))
    angle = where(sign < 0.5, -angle, angle)
    # Nearly uniform, or nearly normal
    angle = where(kappa <= 1e-8, math.pi * (2 * around - 1), angle)
    angle = where(kappa >= 1e6, normal / np.sqrt(np.maximum(kappa, 1.0)), angle)
    return where(kappa >= 0, angle, np.nan)


@sampler("0.0, 1.0, (2,) -> array([-2.8437,  0.0916])")
def vonmises(key: Any, mu: Any, kappa: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Von Mises', angles in -pi..pi about `mu` (Best and Fisher, 1979); normal from kappa = 1e6 on."""
    real, size = real_dtype(dtype, mu, kappa), shaped(shape, mu, kappa)
    angle = each(_von_mises, spread(kappa, size, F64), *element_keys(key, size))
    moved = angle + spread(mu, size, F64)
    return (np.remainder(moved + math.pi, 2 * math.pi) - math.pi).astype(real)


__all__ = [
    "binomial", "hypergeometric", "logseries", "multinomial", "multivariate_hypergeometric",
    "negative_binomial", "noncentral_chisquare", "noncentral_f", "poisson", "vonmises", "zipf",
]  # fmt: skip
