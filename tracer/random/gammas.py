"""Gamma numbers, and what is made of them: beta, Dirichlet, chi-squared, F, Student's t.

Gamma by Marsaglia and Tsang ("A simple method for generating gamma variables", 2000), each element in a
loop of its own. Its derivative is implicit (Figurnov, Mohamed and Mnih, 2018): with the probability of
being smaller held fixed, dx/da = -(dP(a, x)/da) / p(a, x).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import F64
from ..arrays.common import array, sizes
from ..arrays.elementwise import where
from ..core.tracers import Tracer
from ..messages import errors
from ..messages.errors import complain
from ..special.arithmetic import each, repeat
from ..transforms.custom import custom_jvp
from .continuous import split_in
from .entry import sampler
from .lanes import Stream, element_keys
from .uniforms import real_dtype, shaped, spread, standard_normal

# From which Wilson and Hilferty's cube gives dx/da: its error is of the order of 1/a**1.5.
_LARGE = 1e5


@custom_jvp
def log_gamma_numbers(a: Any, e0: Any, e1: Any) -> Any:
    """log x for gamma numbers x with shape parameters `a`, by the keys (e0, e1) of the elements.

    a = 0 gives -inf; what is negative or NaN gives NaN.
    """
    return _logarithm(*each(_one, a, e0, e1))


@custom_jvp
def gamma_numbers(a: Any, e0: Any, e1: Any) -> Any:
    """The numbers x themselves."""
    return _product(*each(_one, a, e0, e1))


def _logarithm(x: Any, exponent: Any, factor: Any) -> Any:
    return np.log(x) + exponent


def _product(x: Any, exponent: Any, factor: Any) -> Any:
    return where(factor == 0, factor, x * factor)


def _one(a: Any, e0: Any, e1: Any) -> Any:
    """A gamma number, but for a factor, which is 1 where a >= 1; the logarithm of that, and itself."""
    stream = Stream(e0, e1, a.dtype)
    one = a.dtype.type(1)
    d = where(a < 1, a + 1, a) - a.dtype.type(1 / 3)
    c = 1 / np.sqrt(9 * d)

    def trial(state: Any) -> Any:
        n, _, _ = state
        z, u = stream.normal_and_uniform(n)
        root = 1 + c * z
        v = root * root * root
        square = z * z
        squeezed = u > a.dtype.type(0.0331) * square * square

        def test(state: Any) -> Any:  # a slow path
            log_v = np.log(where(v > 0, v, one))
            return np.log1p(-u) < 0.5 * square + d * (1 - v + log_v), v != v

        accepted = repeat(test, (squeezed, (v > 0) & np.logical_not(squeezed)))[0]
        return n + 1, v, np.logical_not((v > 0) & accepted)

    v = repeat(trial, (np.uint32(1), one, (a >= 0) & (a < np.inf)))[1]

    def boost(state: Any) -> Any:  # one iteration, of those only that need it
        exponent = np.log1p(-stream.uniforms(np.uint32(0))[0]) / a
        return exponent, np.exp(exponent), a != a

    exponent, factor, _ = repeat(boost, (one * 0, one, a < 1))
    gamma = where(a == np.inf, a, d * v)
    return where(a >= 0, gamma, a.dtype.type(np.nan)), exponent, factor


@log_gamma_numbers.defjvp
def _log_tangent(primals: Any, tangents: Any) -> Any:
    a, e0, e1 = primals
    log_x = _logarithm(*each(_one, a, e0, e1))
    return log_x, tangents[0] * _slope(a, log_x)


@gamma_numbers.defjvp
def _tangent(primals: Any, tangents: Any) -> Any:
    a, e0, e1 = primals
    parts = each(_one, a, e0, e1)
    x = _product(*parts)
    return x, tangents[0] * (x * _slope(a, _logarithm(*parts)))


def _slope(a: Any, log_x: Any) -> Any:
    return each(implicit_slope, a.astype(F64), log_x.astype(F64)).astype(a.dtype)


def implicit_slope(a: Any, log_x: Any) -> Any:
    """d log x / da of a gamma number, in float64.

    P(a, x) = x**a exp(-x) sum_n x**n / gamma(a + n + 1) is differentiated term by term. With
    t_n = x**n gamma(a) / gamma(a + n + 1) and the digamma function psi it is
    -sum_n t_n (log x - psi(a + n + 1)).
    """
    x = np.exp(log_x)
    large = a > _LARGE
    usual = (a > 0) & np.logical_not(large) & (log_x < np.inf)
    psi = digamma(where(usual, a, 1.0) + 1)

    def term(state: Any) -> Any:
        n, t, psi, total, _ = state
        total = total + t * (log_x - psi)
        below = a + n + 1
        following = t * x / below
        # Past the largest term the rest is less than a geometric series.
        ends = (x < below) & (
            following * below * (1 + abs(log_x)) < 1e-17 * abs(total) * (below - x)
        )
        return n + 1, following, psi + 1 / below, total, np.logical_not(ends) & (n < 1e6)

    total = repeat(term, (0.0 * a, 1 / a, psi, 0.0 * a, usual))[3]
    # x = a w**3, w = 1 - 1 / (9a) + z / (3 sqrt(a)), with z normal and fixed.
    w = np.exp((log_x - np.log(a)) / 3)
    z = 3 * np.sqrt(a) * (w - 1 + 1 / (9 * a))
    cube = 1 / a + 3 / w * (1 / (9 * a * a) - z / (6 * a * np.sqrt(a)))
    return where(large, cube, -total)


def digamma(x: Any) -> Any:
    """For x >= 1 in float64: ten steps of the recurrence, and the asymptotic series."""
    y, below = x + 10, 1 / x
    for k in range(1, 10):
        below = below + 1 / (x + k)
    r = 1 / (y * y)
    tail = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132)))))
    return np.log(y) - 0.5 / y - tail - below


def _log_gammas(key: Any, a: Tracer) -> Any:
    return log_gamma_numbers(a, *element_keys(key, a.shape))


def _gammas(key: Any, a: Tracer) -> Any:
    return gamma_numbers(a, *element_keys(key, a.shape))


@sampler("2.0, (2,) -> array([ 1.5926, -1.0301])")
def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """The logarithm of a gamma number, which for small `a` often is no float itself."""
    real, size = real_dtype(dtype, a), shaped(shape, a)
    return _log_gammas(key, spread(a, size, real))


@sampler()
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, scale: Any = 1.0) -> Any:
    """Gamma with the shape parameter `a`: density x ** (a - 1) exp(-x) / gamma(a), times `scale`.

    By Marsaglia and Tsang (2000). Differentiable in both, in `a` implicitly (Figurnov et al., 2018).

    >>> jt.random.gamma(jt.random.key(42), np.array([0.5, 2.0, 8.0])).round(4)
    array([ 2.3885,  0.357 , 10.2716])
    """
    real, size = real_dtype(dtype, a, scale), shaped(shape, a, scale)
    x = _gammas(key, spread(a, size, real))
    return x if type(scale) in (int, float) and scale == 1 else x * spread(scale, size, real)


@sampler("2.0, (2,) -> array([6.3958, 0.0648])")
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Any:
    """The sum of the squares of `df` standard normal numbers."""
    real, size = real_dtype(dtype, df), shaped(shape, df)
    return 2 * _gammas(key, spread(df, size, real) / 2)


@sampler("2.0, 3.0, (2,) -> array([0.0418, 0.5396])")
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Beta: x / (x + y) of gamma numbers, by their logarithms, so that small parameters do no harm."""
    real, size = real_dtype(dtype, a, b), shaped(shape, a, b)
    first, second = split_in(key, 2)
    x = _log_gammas(first, spread(a, size, real))
    y = _log_gammas(second, spread(b, size, real))
    return np.exp(x - np.logaddexp(x, y))


@sampler("[1.0, 2.0, 3.0] -> array([0.4066, 0.0454, 0.5481])")
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Proportions that sum to 1 along the last axis, which is that of `alpha`.

    `shape` is the result's without that axis. Differentiable.
    """
    concentrations = array(alpha)
    if not concentrations.ndim:
        complain(
            errors.ShapeError,
            "the parameters of a Dirichlet distribution are an array, one for each part",
            "pass an array of at least one axis.",
            operands={"alpha": alpha},
        )
    real = real_dtype(dtype, concentrations)
    *batch, parts = concentrations.shape
    size = tuple(batch) if shape is None else sizes(shape)
    x = _log_gammas(key, spread(concentrations, (*size, parts), real))
    x = x - x.max(axis=-1, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


@sampler("2.0, 3.0, (2,) -> array([0.0023, 0.618 ])")
def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Fisher's F: the ratio of two chi-squared numbers, each over its degrees of freedom."""
    real, size = real_dtype(dtype, dfnum, dfden), shaped(shape, dfnum, dfden)
    first, second = split_in(key, 2)
    n, m = spread(dfnum, size, real), spread(dfden, size, real)
    ratio = _log_gammas(first, n / 2) - _log_gammas(second, m / 2)
    return np.exp(ratio) * (m / n)


@sampler("3.0, (2,) -> array([-0.5936, -0.1939])")
def t(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Student's t with `df` degrees of freedom."""
    real, size = real_dtype(dtype, df), shaped(shape, df)
    first, second = split_in(key, 2)
    half = spread(df, size, real) / 2
    z = standard_normal(first, size, real)
    return z * np.sqrt(half) * np.exp(-0.5 * _log_gammas(second, half))


@sampler("1.5, (2,) -> array([ 0.1222, -1.0012])")
def generalized_normal(key: Any, p: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Density proportional to exp(-|x| ** p): a gamma number to the power 1/p, with a random sign."""
    real, size = real_dtype(dtype, p), shaped(shape, p)
    first, second = split_in(key, 2)
    power = 1 / spread(p, size, real)
    x = np.exp(_log_gammas(first, power) * power)
    signs = element_keys(second, size)[0] & 1
    return where(signs == 1, x, -x)


__all__ = [
    "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t",
]  # fmt: skip
