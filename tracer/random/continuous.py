"""Distributions whose quantiles have formulas: one uniform or normal number makes one of theirs.

Parameters broadcast, and are differentiated through the formula. Numbers without parameters are
`jax.random`'s to within rounding: exponential, laplace, logistic, gumbel, cauchy, truncated_normal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.types import F64
from ..arrays.common import array, build, shape_of
from ..arrays.elementwise import clip, erf, erfinv, where
from ..control.control import cond
from ..core.tracers import Tracer, as_value, wrap
from ..special.error_functions import log_normal_cdf, upper_normal_quantile
from .entry import sampler
from .keys import split
from .uniforms import between, real_dtype, shaped, spread, standard_normal, unit


def positive(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Uniform in 0 < u < 1: the smallest is the smallest normal number."""
    return between(unit(key, shape, dtype), np.finfo(dtype).tiny, dtype.type(1))


def exponentials(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """-log(1 - u) of uniform u: exponential numbers of scale 1."""
    return -np.log1p(-unit(key, shape, dtype))


@sampler("(2,) -> array([0.5564, 0.0151])")
def exponential(key: Any, shape: Any = None, dtype: Any = None, scale: Any = 1.0) -> Any:
    """Exponential with mean `scale`: -scale log(1 - u)."""
    real, size = real_dtype(dtype, scale), shaped(shape, scale)
    return exponentials(key, size, real) * spread(scale, size, real)


@sampler("(2,) -> array([0.1585, 3.5059])")
def laplace(
    key: Any, shape: Any = None, dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Any:
    """Laplace's, density exp(-|x - loc| / scale) / (2 scale)."""
    real, size = real_dtype(dtype, loc, scale), shaped(shape, loc, scale)
    low = real.type(-1) + np.finfo(real).epsneg
    u = between(unit(key, size, real), low, real.type(1))
    return moved(np.sign(u) * np.log1p(-abs(u)), loc, scale)


@sampler("(2,) -> array([-0.2952, -4.1839])")
def logistic(
    key: Any, shape: Any = None, dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Any:
    """Logistic: log(u / (1 - u))."""
    real, size = real_dtype(dtype, loc, scale), shaped(shape, loc, scale)
    u = positive(key, size, real)
    return moved(np.log(u) - np.log1p(-u), loc, scale)


@sampler("(2,) -> array([ 0.1606, -1.4349])")
def gumbel(
    key: Any,
    shape: Any = None,
    dtype: Any = None,
    mode: str | None = None,
    *,
    loc: Any = 0.0,
    scale: Any = 1.0,
) -> Any:
    """Gumbel's, of maxima: -log(-log u).

    With mode="high" twice as many random bits are taken, so that large numbers are as rare as they are.
    """
    real, size = real_dtype(dtype, loc, scale), shaped(shape, loc, scale)
    return moved(gumbels(key, size, real, mode), loc, scale)


def gumbels(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any], mode: str | None) -> Any:
    """Standard Gumbel numbers, by `jax.random`'s formulas of both modes."""
    if not precise(mode):
        return -np.log(-np.log(positive(key, shape, dtype)))
    both = unit(key, (2, *shape), dtype)
    high, low = both[0], both[1]
    step = dtype.type(2.0 ** -np.finfo(dtype).nmant)
    return -np.log(-np.log1p(-where(high >= 0.5, high, high + step * low)))


def precise(mode: str | None) -> bool:
    """Whether twice as many random bits are asked for."""
    if mode not in (None, "low", "high"):
        raise ValueError(f"mode={mode!r}: the modes are 'low' and 'high'")
    return mode == "high"


@sampler("(2,) -> array([ -0.2343, -21.1907])")
def cauchy(key: Any, shape: Any = None, dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Cauchy's: tan(pi (u - 1/2))."""
    real, size = real_dtype(dtype, loc, scale), shaped(shape, loc, scale)
    u = between(unit(key, size, real), np.finfo(real).eps, real.type(1))
    return moved(np.tan(real.type(math.pi) * (u - real.type(0.5))), loc, scale)


@sampler("shape=(2,) -> array([0.8313, 0.1142])")
def lognormal(
    key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None, mean: Any = 0.0
) -> Any:
    """exp of a normal number with mean `mean` and standard deviation `sigma`."""
    real, size = real_dtype(dtype, sigma, mean), shaped(shape, sigma, mean)
    return np.exp(moved(standard_normal(key, size, real), mean, sigma))


@sampler("0.0, 1.0, (2,) -> array([0.3736, 0.0128])")
def truncated_normal(
    key: Any, lower: Any = -2.0, upper: Any = 2.0, shape: Any = None, dtype: Any = None
) -> Any:
    """A standard normal number, given that lower < x < upper, also far from 0."""
    real, size = real_dtype(dtype, lower, upper), shaped(shape, lower, upper)
    low, high = spread(lower, size, real), spread(upper, size, real)
    u = unit(key, size, real)
    if type(lower) in (int, float) and type(upper) in (int, float):
        x = (_tail if lower > _FAR or upper < -_FAR else _middle)(u, low, high)
    elif shape_of(lower) == shape_of(upper) == ():
        first, last = array(lower), array(upper)
        x = cond((first > _FAR) | (last < -_FAR), _tail, _middle, u, low, high)
    else:
        far = (low > _FAR) | (high < -_FAR)
        x = where(far, _tail(u, low, high), _middle(u, low, high))
    inside = (
        np.nextafter(_fixed(low), real.type(np.inf)),
        np.nextafter(_fixed(high), real.type(-np.inf)),
    )
    return clip(x, *inside)


_FAR = 4.0  # beyond which erf has few digits left


def _middle(u: Any, low: Any, high: Any) -> Any:
    """The truncated normal number of a uniform one, for bounds that are not both far on one side."""
    root = low.dtype.type(math.sqrt(2.0))
    return root * erfinv(between(u, erf(low / root), erf(high / root)))


def _tail(u: Any, low: Any, high: Any) -> Any:
    """The same for bounds far from 0 on one side, by logarithms of what lies beyond them."""
    left = high < -_FAR
    near, other = where(left, -high, low).astype(F64), where(left, -low, high).astype(F64)
    last = log_normal_cdf(-near)
    bounded = other < np.inf
    end = where(bounded, log_normal_cdf(-where(bounded, other, near)), -np.inf)
    share = u.astype(F64)
    share = where(left, 1 - 2.0**-53 - share, share)
    beyond = last + np.log1p(share * np.expm1(end - last))
    x = upper_normal_quantile(beyond)
    return where(left, -x, x).astype(low.dtype)


@sampler("2.0, (2,) -> array([2.1098, 0.3478])")
def rayleigh(key: Any, scale: Any = 1.0, shape: Any = None, dtype: Any = None) -> Any:
    """The length of a vector of two normal numbers of standard deviation `scale`."""
    real, size = real_dtype(dtype, scale), shaped(shape, scale)
    return np.sqrt(2 * exponentials(key, size, real)) * spread(scale, size, real)


@sampler("(2,) -> array([2.1857, 0.8665])")
def maxwell(key: Any, shape: Any = None, dtype: Any = None) -> Any:
    """The length of a vector of three standard normal numbers."""
    real, size = real_dtype(dtype), shaped(shape)
    z = standard_normal(key, (*size, 3), real)
    return np.sqrt((z * z).sum(axis=-1))


@sampler("2.0, (2,) -> array([0.7459, 0.123 ])")
def weibull(
    key: Any, concentration: Any, shape: Any = None, dtype: Any = None, scale: Any = 1.0
) -> Any:
    """Weibull's: scale (-log(1 - u)) ** (1 / concentration)."""
    real, size = real_dtype(dtype, concentration, scale), shaped(shape, concentration, scale)
    power = 1 / spread(concentration, size, real)
    return exponentials(key, size, real) ** power * spread(scale, size, real)


@sampler("1.0, 2.0, (2,) -> array([0.7459, 0.123 ])")
def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Any = None, dtype: Any = None
) -> Any:
    """`weibull`, with JAX's order of parameters."""
    return weibull(key, concentration, shape, dtype, scale)


@sampler("3.0, (2,) -> array([1.2038, 1.0051])")
def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Pareto's with minimum 1: density b / x ** (b + 1) for x >= 1. (NumPy's is this less 1.)"""
    real, size = real_dtype(dtype, b), shaped(shape, b)
    return np.exp(exponentials(key, size, real) / spread(b, size, real))


@sampler("3.0, (2,) -> array([0.7529, 0.2467])")
def power(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Density a x ** (a - 1) for 0 <= x <= 1."""
    real, size = real_dtype(dtype, a), shaped(shape, a)
    return (-np.expm1(-exponentials(key, size, real))) ** (1 / spread(a, size, real))


@sampler("0.0, 1.0, 2.0, (2,) -> array([0.9238, 0.1733])")
def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None
) -> Any:
    """A density that rises from `left` to `mode` and falls to `right`, along straight lines."""
    real, size = real_dtype(dtype, left, mode, right), shaped(shape, left, mode, right)
    a, c, b = (spread(p, size, real) for p in (left, mode, right))
    u = unit(key, size, real)
    up = a + np.sqrt(u * (b - a) * (c - a))
    down = b - np.sqrt((1 - u) * (b - a) * (b - c))
    return where(u * (b - a) < c - a, up, down)


@sampler("1.0, (2,) -> array([2.025 , 0.7711])")
def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, scale: Any = 1.0) -> Any:
    """Wald's, the inverse Gaussian (Michael, Schucany and Haas, The American Statistician, 1976)."""
    real, size = real_dtype(dtype, mean, scale), shaped(shape, mean, scale)
    m, lam = spread(mean, size, real), spread(scale, size, real)
    first, second = split_in(key, 2)
    z, u = standard_normal(first, size, real), unit(second, size, real)
    y = m * z * z
    # The smaller root of the quadratic, without cancellation.
    x = m * (1 - 2 * y / (y + np.sqrt(y * (4 * lam + y))))
    x = where(y == 0, m, x)
    return where(u <= m / (m + x), x, m * m / x)


@sampler("0.0, 1.0, (2,) -> array([1.8478, 2.3439])")
def double_sided_maxwell(
    key: Any, loc: Any, scale: Any, shape: Any = None, dtype: Any = None
) -> Any:
    """Maxwell's with a random sign, moved by `loc` and scaled."""
    real, size = real_dtype(dtype, loc, scale), shaped(shape, loc, scale)
    first, second = split_in(key, 2)
    signs = where(unit(second, size, real) < 0.5, real.type(-1), real.type(1))
    return moved(maxwell(first, size, real) * signs, loc, scale)


def moved(z: Any, loc: Any, scale: Any) -> Any:
    """z scale + loc; standard numbers stay as they are."""
    if not (type(scale) in (int, float) and scale == 1):
        z = z * spread(scale, z.shape, z.dtype)
    if not (type(loc) in (int, float) and loc == 0):
        z = z + spread(loc, z.shape, z.dtype)
    return z


def split_in(key: Any, count: int) -> list[Tracer]:
    """`count` keys of a key, one by one."""
    rows = split(key, count)
    return [rows[i] for i in range(count)]


def _fixed(x: Tracer) -> Tracer:
    return wrap(build().stop_gradient(as_value(x)))
