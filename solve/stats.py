"""`jt.solve.stats`: log-densities of the usual distributions, by SciPy's names and parameters.

    jt.solve.stats.gamma.logpdf(x, a, loc=0, scale=1)
    jt.solve.stats.poisson.logpmf(k, mu)

They broadcast, are differentiated with respect to x and the parameters, give -inf where there is no
density and NaN for parameters that are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .common import floats, refuse

_ROOT = 0.5 * math.log(2 * math.pi)


def _broadcast(values: Any) -> list[Any]:
    arrays = [floats(v) for v in values]
    return list(jt.broadcast_arrays(*arrays))


class Continuous:
    """A distribution with `logpdf(x, *shapes, loc=0, scale=1)` and `pdf`.

    It is made of the log-density for loc 0 and scale 1, a function of x and the shape parameters, and of
    the ends of where there is one. Shape parameters are positive.
    """

    def __init__(
        self, name: str, log_density: Callable[..., Any], low: float, high: float, shapes: int
    ) -> None:
        self.name, self.shapes = name, shapes
        self._log_density, self._low, self._high = log_density, low, high

    def __repr__(self) -> str:
        return f"<jt.solve.stats.{self.name}>"

    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the density at x.

        >>> float(np.round(jt.solve.stats.norm.logpdf(1.0, loc=1.0, scale=2.0), 6))
        -1.612086
        """
        *shapes, loc, scale = _parameters(self.name, self.shapes, ("loc", "scale"), args, kwargs)
        x, loc, scale, *shapes = _broadcast((x, loc, scale, *shapes))
        valid = scale > 0
        for shape in shapes:
            valid = valid & (shape > 0)
        scale, *shapes = (jt.where(valid, v, 1.0) for v in (scale, *shapes))
        z = (x - loc) / scale
        inside = (z >= self._low) & (z <= self._high) & np.isfinite(z)
        within = 0.5 if math.isinf(self._low) else self._low + 0.5
        value = self._log_density(jt.where(inside, z, within), *shapes) - np.log(scale)
        return jt.where(valid & ~np.isnan(z), jt.where(inside, value, -np.inf), np.nan)[()]

    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The density at x.

        >>> float(jt.solve.stats.expon.pdf(0.0))
        1.0
        """
        return np.exp(self.logpdf(x, *args, **kwargs))


class Discrete:
    """A distribution of integers, with `logpmf(k, *shapes, loc=0)` and `pmf`."""

    def __init__(
        self,
        name: str,
        log_mass: Callable[..., Any],
        inside: Callable[..., Any],
        valid: Callable[..., Any],
        shapes: int,
    ) -> None:
        self.name, self.shapes = name, shapes
        self._log_mass, self._inside, self._valid = log_mass, inside, valid

    def __repr__(self) -> str:
        return f"<jt.solve.stats.{self.name}>"

    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the probability of k.

        >>> float(np.round(jt.solve.stats.poisson.logpmf(2, 3.0), 6))
        -1.495923
        """
        *shapes, loc = _parameters(self.name, self.shapes, ("loc",), args, kwargs)
        k, loc, *shapes = _broadcast((k, loc, *shapes))
        k = k - loc
        inside = self._inside(k, *shapes) & (np.floor(k) == k)
        valid = self._valid(*shapes)
        shapes = [jt.where(valid, v, 0.5) for v in shapes]
        value = self._log_mass(jt.where(inside, k, 1.0), *shapes)
        return jt.where(valid, jt.where(inside, value, -np.inf), np.nan)[()]

    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of k.

        >>> float(jt.solve.stats.bernoulli.pmf(1, 0.25))
        0.25
        """
        return np.exp(self.logpmf(k, *args, **kwargs))


def _parameters(
    name: str, shapes: int, rest: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    """Shape parameters, then loc and scale; those that are not given are 0 and 1."""
    defaults = {"loc": 0.0, "scale": 1.0}
    unknown = [n for n in kwargs if n not in rest]
    if not shapes <= len(args) <= shapes + len(rest) or unknown:
        refuse(
            f"{name} was given {len(args)} numbers beside x" + "".join(f", {n}=" for n in unknown),
            f"it takes x, {shapes} shape parameters by position, and {', '.join(rest)}.",
            TypeError,
        )
    values = list(args)
    for k, n in enumerate(rest):
        if len(args) <= shapes + k:
            values.append(kwargs.get(n, defaults[n]))
    return values


def _special(name: str) -> Callable[..., Any]:
    return lambda *args: getattr(jt.special, name)(*args)


gammaln, betaln, xlogy = _special("gammaln"), _special("betaln"), _special("xlogy")
xlog1py, log_ndtr, i0e = _special("xlog1py"), _special("log_ndtr"), _special("i0e")
_INF = math.inf


def _t(z: Any, df: Any) -> Any:
    top = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * math.pi)
    return top - (df + 1) / 2 * np.log1p(z * z / df)


def _f(z: Any, m: Any, n: Any) -> Any:
    top = m / 2 * np.log(m) + n / 2 * np.log(n) - betaln(m / 2, n / 2)
    return top + xlogy(m / 2 - 1, z) - (m + n) / 2 * np.log(n + m * z)


def _logistic(z: Any) -> Any:
    return -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z)))


def _lognorm(z: Any, s: Any) -> Any:
    log = np.log(jt.where(z > 0, z, 1.0))
    return jt.where(z > 0, -log * log / (2 * s * s) - log - np.log(s) - _ROOT, -np.inf)


def _invgamma(z: Any, a: Any) -> Any:
    safe = jt.where(z > 0, z, 1.0)
    return jt.where(z > 0, -(a + 1) * np.log(safe) - gammaln(a) - 1 / safe, -np.inf)


norm = Continuous("norm", lambda z: -z * z / 2 - _ROOT, -_INF, _INF, 0)
expon = Continuous("expon", lambda z: -z, 0, _INF, 0)
gamma = Continuous("gamma", lambda z, a: xlogy(a - 1, z) - z - gammaln(a), 0, _INF, 1)
beta = Continuous(
    "beta", lambda z, a, b: xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b), 0, 1, 2
)
uniform = Continuous("uniform", lambda z: 0 * z, 0, 1, 0)
t = Continuous("t", _t, -_INF, _INF, 1)
cauchy = Continuous("cauchy", lambda z: -np.log1p(z * z) - math.log(math.pi), -_INF, _INF, 0)
halfcauchy = Continuous(
    "halfcauchy", lambda z: -np.log1p(z * z) + math.log(2 / math.pi), 0, _INF, 0
)
laplace = Continuous("laplace", lambda z: -np.abs(z) - math.log(2), -_INF, _INF, 0)
logistic = Continuous("logistic", _logistic, -_INF, _INF, 0)
lognorm = Continuous("lognorm", _lognorm, 0, _INF, 1)
chi2 = Continuous(
    "chi2",
    lambda z, df: xlogy(df / 2 - 1, z) - z / 2 - gammaln(df / 2) - math.log(2) * df / 2,
    *(0, _INF, 1),
)
f = Continuous("f", _f, 0, _INF, 2)
weibull_min = Continuous("weibull_min", lambda z, c: np.log(c) + xlogy(c - 1, z) - z**c, 0, _INF, 1)
pareto = Continuous("pareto", lambda z, b: np.log(b) - (b + 1) * np.log(z), 1, _INF, 1)
gumbel_r = Continuous("gumbel_r", lambda z: -z - np.exp(-z), -_INF, _INF, 0)
gumbel_l = Continuous("gumbel_l", lambda z: z - np.exp(z), -_INF, _INF, 0)
halfnorm = Continuous("halfnorm", lambda z: 0.5 * math.log(2 / math.pi) - z * z / 2, 0, _INF, 0)
rayleigh = Continuous("rayleigh", lambda z: xlogy(1.0, z) - z * z / 2, 0, _INF, 0)
invgamma = Continuous("invgamma", _invgamma, 0, _INF, 1)
vonmises = Continuous(
    "vonmises",
    lambda z, kappa: kappa * (np.cos(z) - 1) - np.log(2 * math.pi * i0e(kappa)),
    *(-_INF, _INF, 1),
)


def _fraction(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _binom(k: Any, n: Any, p: Any) -> Any:
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return ways + xlogy(k, p) + xlog1py(n - k, -p)


def _nbinom(k: Any, n: Any, p: Any) -> Any:
    ways = gammaln(n + k) - gammaln(k + 1) - gammaln(n)
    return ways + n * np.log(p) + xlog1py(k, -p)


poisson = Discrete(
    "poisson",
    lambda k, mu: xlogy(k, mu) - gammaln(k + 1) - mu,
    lambda k, mu: k >= 0,
    lambda mu: mu >= 0,
    1,
)
bernoulli = Discrete(
    "bernoulli",
    lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
    lambda k, p: (k >= 0) & (k <= 1),
    _fraction,
    1,
)
binom = Discrete(
    "binom",
    _binom,
    lambda k, n, p: (k >= 0) & (k <= n),
    lambda n, p: _fraction(p) & (n >= 0) & (np.floor(n) == n),
    2,
)
geom = Discrete(
    "geom",
    lambda k, p: np.log(p) + xlog1py(k - 1, -p),
    lambda k, p: k >= 1,
    lambda p: (p > 0) & (p <= 1),
    1,
)
nbinom = Discrete(
    "nbinom",
    _nbinom,
    lambda k, n, p: k >= 0,
    lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    2,
)


class _Normal:
    """The normal distribution of vectors."""

    name = "multivariate_normal"

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
        """The logarithm of the density at x, of shape (..., n); mean (n,); cov (n, n), (n,) or a number.
        With `allow_singular` it is the density on the subspace that cov spans, and -inf off it.

        >>> float(np.round(jt.solve.stats.multivariate_normal.logpdf(np.zeros(2), cov=np.eye(2)), 6))
        -1.837877
        """
        x, cov = floats(x), floats(cov)
        n = cov.shape[0] if cov.ndim else (1 if x.ndim == 0 else x.shape[-1])
        x = x[..., None] if n == 1 and (x.ndim == 0 or x.shape[-1] != 1) else x
        cov = jt.eye(n) * cov if cov.ndim < 2 else cov
        away = x - (0.0 if mean is None else floats(mean))
        if away.shape[-1] != n or cov.shape != (n, n):
            what = f"x has {away.shape[-1]} numbers in each row, and cov the shape {cov.shape}"
            refuse(what, "give rows of n numbers, and cov of shape (n, n).", jt.errors.ShapeError)
        rows = jt.reshape(away, (-1, n))
        value = (_singular if allow_singular else _regular)(rows, cov)
        return jt.reshape(value, away.shape[:-1])[()]

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
        """The density at x."""
        return np.exp(self.logpdf(x, mean, cov, allow_singular))


def _regular(rows: Any, cov: Any) -> Any:
    """The logarithms of the densities at rows, of a covariance with a Cholesky factor."""
    lower = np.linalg.cholesky(cov)
    white = jt.linalg.solve_triangular(lower, rows.T, lower=True)
    log_size = jt.sum(np.log(jt.diagonal(lower)))
    return -0.5 * jt.sum(white * white, axis=0) - log_size - rows.shape[1] * _ROOT


def _singular(rows: Any, cov: Any) -> Any:
    """The same by eigenvalues, those that are nearly 0 left out, as SciPy leaves them out."""
    sizes, axes = np.linalg.eigh(cov)
    least = 1e6 * np.finfo(np.float64).eps * jt.max(np.abs(sizes))
    kept = sizes > least
    safe = jt.where(kept, sizes, 1.0)
    along = rows @ axes
    distance = jt.sum(jt.where(kept, along * along / safe, 0.0), axis=1)
    off = np.sqrt(jt.sum(jt.where(kept, 0.0, along * along), axis=1))
    value = -0.5 * (distance + jt.sum(np.log(safe))) - jt.sum(kept) * _ROOT
    return jt.where((off < 1e3 * least) | np.all(kept), value, -np.inf)


class _Dirichlet:
    """The distribution of Dirichlet."""

    name = "dirichlet"

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """The logarithm of the density at x, of shape (n,) or, as in SciPy, (n, ...).

        >>> float(np.round(jt.solve.stats.dirichlet.logpdf(np.array([0.5, 0.5]), np.ones(2)), 6))
        0.0
        """
        x, alpha = floats(x), floats(alpha)
        top = gammaln(jt.sum(alpha)) - jt.sum(gammaln(alpha))
        weights = jt.reshape(alpha - 1, (-1,) + (1,) * (x.ndim - 1))
        return (top + jt.sum(xlogy(weights, x), axis=0))[()]

    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density at x."""
        return np.exp(self.logpdf(x, alpha))


multivariate_normal, dirichlet = _Normal(), _Dirichlet()
