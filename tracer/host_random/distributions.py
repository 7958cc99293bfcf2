"""The distributions that NumPy's Generator and RandomState have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import F64, I64
from ..arrays.common import array, axis_index
from ..arrays.creation import known_number
from ..core.tracers import Tracer, as_value
from ..messages import errors
from ..messages.errors import complain
from .drawing import StandIn, floats, picked, require, require_that, result, shape_of, whole

_LIMITS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "beta": (("a", "> 0", "a <= 0"), ("b", "> 0", "b <= 0")),
    "chisquare": (("df", "> 0", "df <= 0"),),
    "f": (("dfnum", "> 0", "dfnum <= 0"), ("dfden", "> 0", "dfden <= 0")),
    "noncentral_chisquare": (("df", "> 0", "df <= 0"), ("nonc", "not < 0", "nonc < 0")),
    "noncentral_f": (
        ("dfnum", "> 0", "dfnum <= 0"), ("dfden", "> 0", "dfden <= 0"),
        ("nonc", "not < 0", "nonc < 0"),
    ),
    "standard_t": (("df", "> 0", "df <= 0"),),
    "vonmises": (("mu", "any", ""), ("kappa", "not < 0", "kappa < 0")),
    "pareto": (("a", "> 0", "a <= 0"),),
    "weibull": (("a", ">= 0", "a < 0"),),
    "power": (("a", "> 0", "a <= 0"),),
    "lognormal": (("mean", "any", ""), ("sigma", ">= 0", "sigma < 0")),
    "wald": (("mean", "> 0", "mean <= 0"), ("scale", "> 0", "scale <= 0")),
}  # fmt: skip
_COUNT_LIMITS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "poisson": (("lam", "a rate", "lam < 0 or lam is NaN, or lam is too large"),),
    "geometric": (("p", "in (0, 1]", "p <= 0, p > 1 or p contains NaNs"),),
    "zipf": (("a", "> 1", "a <= 1 or a is NaN"),),
    "logseries": (("p", "in [0, 1)", "p < 0, p >= 1 or p is NaN"),),
    "negative_binomial": (
        ("n", "> 0", "n <= 0"), ("p", "in (0, 1]", "p <= 0, p > 1 or p is NaN"),
    ),
}  # fmt: skip


class Distributions(StandIn):
    """What both classes draw. Ints are Python's where NumPy gives such."""

    # With parameters that only move and stretch, in front of which derivatives end

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        low, high = floats(low), floats(high)
        span = high - low
        require(span, "finite", "high - low range exceeds valid bounds", "OverflowError")
        return self._moved("random", low, span, size, scaled_by="")

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._moved("standard_normal", loc, scale, size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        scale = floats(scale)
        require(scale, ">= 0", "scale < 0")
        drawn = self._draw("standard_exponential", shape_of(size, scale), F64)
        return result(_times(drawn, scale), size, "f")

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._moved("laplace", loc, scale, size, 0.0, 1.0)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._moved("gumbel", loc, scale, size, 0.0, 1.0)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._moved("logistic", loc, scale, size, 0.0, 1.0)

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Any:
        scale = floats(scale)
        require(scale, ">= 0", "scale < 0")
        return result(
            _times(self._draw("rayleigh", shape_of(size, scale), F64, 1.0), scale), size, "f"
        )

    def _moved(
        self, law: str, loc: Any, scale: Any, size: Any, *params: float, scaled_by: str = "scale"
    ) -> Any:
        loc, scale = floats(loc), floats(scale)
        if scaled_by:
            require(scale, ">= 0", f"{scaled_by} < 0")
        drawn = self._draw(law, shape_of(size, loc, scale), F64, *params)
        return result(loc + _times(drawn, scale), size, "f")

    # Others

    def beta(self, a: Any, b: Any, size: Any = None) -> Any:
        return self._floats("beta", size, a, b)

    def chisquare(self, df: Any, size: Any = None) -> Any:
        return self._floats("chisquare", size, df)

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Any:
        return self._floats("f", size, dfnum, dfden)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Any:
        return self._floats("noncentral_chisquare", size, df, nonc)

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Any:
        return self._floats("noncentral_f", size, dfnum, dfden, nonc)

    def standard_cauchy(self, size: Any = None) -> Any:
        return result(self._draw("standard_cauchy", shape_of(size), F64), size, "f")

    def standard_t(self, df: Any, size: Any = None) -> Any:
        return self._floats("standard_t", size, df)

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Any:
        return self._floats("vonmises", size, mu, kappa)

    def pareto(self, a: Any, size: Any = None) -> Any:
        return self._floats("pareto", size, a)

    def weibull(self, a: Any, size: Any = None) -> Any:
        return self._floats("weibull", size, a)

    def power(self, a: Any, size: Any = None) -> Any:
        return self._floats("power", size, a)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
        return self._floats("lognormal", size, mean, sigma)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Any:
        return self._floats("wald", size, mean, scale)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Any:
        left, mode, right = map(floats, (left, mode, right))
        require_that(np.all(left <= mode), "left > mode")
        require_that(np.all(mode <= right), "mode > right")
        require_that(np.all(left != right), "left == right")
        params = left, mode, right
        drawn = self._draw("triangular", shape_of(size, *params), F64, *map(_value, params))
        return result(drawn, size, "f")

    def _floats(self, law: str, size: Any, *params: Any) -> Any:
        params = tuple(map(floats, params))
        for x, (_, how, message) in zip(params, _LIMITS[law], strict=True):
            if how != "any":
                require(x, how, message)
        return result(
            self._draw(law, shape_of(size, *params), F64, *map(_value, params)), size, "f"
        )

    # Counts

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        return self._counts("poisson", size, lam)

    def geometric(self, p: Any, size: Any = None) -> Any:
        return self._counts("geometric", size, p)

    def zipf(self, a: Any, size: Any = None) -> Any:
        return self._counts("zipf", size, a)

    def logseries(self, p: Any, size: Any = None) -> Any:
        return self._counts("logseries", size, p)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        return self._counts("negative_binomial", size, n, p)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        n, p = whole(n), floats(p)
        require_that(np.all(n >= 0), "n < 0")
        require(p, "in 0..1", "p < 0, p > 1 or p is NaN")
        params = as_value(n, I64), _value(p)
        return result(self._draw("binomial", shape_of(size, n, p), I64, *params), size, "i")

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Any:
        params = tuple(map(whole, (ngood, nbad, nsample)))
        for x, name in zip(params, ("ngood", "nbad", "nsample"), strict=True):
            require_that(np.all(x >= 0), f"{name} < 0")
            require_that(np.all(x < 10**9), f"{name} is too large")
        require_that(np.all(params[0] + params[1] >= params[2]), "ngood + nbad < nsample")
        values = [as_value(x, I64) for x in params]
        return result(
            self._draw("hypergeometric", shape_of(size, *params), I64, *values), size, "i"
        )

    def _counts(self, law: str, size: Any, *params: Any) -> Any:
        params = tuple(map(floats, params))
        for x, (_, how, message) in zip(params, _COUNT_LIMITS[law], strict=True):
            require(x, how, message)
        return result(
            self._draw(law, shape_of(size, *params), I64, *map(_value, params)), size, "i"
        )

    # Vectors

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8,
        **options: Any,
    ) -> Any:  # fmt: skip
        mean, cov = array(mean, F64), array(cov, F64)
        options = {"check_valid": check_valid, "tol": tol, **options}
        shape = (*shape_of(size), mean.shape[0])
        return self._vectors("multivariate_normal", shape, F64, options, mean, cov)

    def dirichlet(self, alpha: Any, size: Any = None) -> Any:
        alpha = array(alpha, F64)
        return self._vectors("dirichlet", (*shape_of(size), alpha.shape[0]), F64, {}, alpha)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        n, pvals = whole(n), array(pvals, F64)
        if np.ndim(n) or pvals.ndim != 1:
            complain(
                errors.UnsupportedFunctionError,
                "multinomial with several n, or several rows of pvals, is not there in a compiled "
                "function",
                "draw for one n and one row at a time.",
            )
        shape = (*shape_of(size), pvals.shape[0])
        return self._vectors("multinomial", shape, I64, {}, as_value(n, I64), pvals)

    def _vectors(
        self, law: str, shape: tuple[int, ...], dtype: Any, options: Any, *params: Any
    ) -> Any:
        return self._draw(law, shape, dtype, *params, options=tuple(sorted(options.items())))

    # Orders

    def shuffle(self, x: Any, axis: int = 0) -> None:
        if isinstance(x, list):
            order = self._draw("permutation", (len(x),), I64)
            x[:] = picked(x, [order[i] for i in range(len(x))])
            return
        if not isinstance(x, Tracer):
            complain(
                errors.UnsupportedFunctionError,
                f"shuffle of a {type(x).__name__} that was made by NumPy while tracing",
                "write x = rng.permutation(x), which gives a shuffled copy.",
            )
        axis = axis_index(axis, x.ndim, x)
        x[...] = np.take(x, self._draw("permutation", (x.shape[axis],), I64), axis=axis)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        x = known_number(x)
        if isinstance(x, (int, np.integer)):
            return self._draw("permutation", (max(int(x), 0),), I64)  # of arange(x), as NumPy's
        x = array(x)
        if not x.shape:
            complain(
                errors.DynamicShapeError,
                "permutation(n) of a traced n has a length that is not known while tracing",
                "make n static, or permute an array.",
                asks=[x],
            )
        axis = axis_index(axis, x.ndim, x)
        return np.take(x, self._draw("permutation", (x.shape[axis],), I64), axis=axis)

    def bytes(self, length: int) -> Any:
        complain(
            errors.UnsupportedFunctionError,
            "bytes that are drawn when the code runs cannot be a value of a compiled function",
            "draw numbers: rng.integers(0, 256, length, dtype=np.uint8).",
        )

    def _places(self, size: Any, count: int, p: Any) -> Any:
        """Places among `count`, drawn again and again with chances `p`, as `choice` draws them."""
        chances = array(p, F64)
        if chances.shape != (count,):
            raise ValueError("a and p must have same size")
        if isinstance(p, Tracer) or not isinstance(p, (list, tuple, np.ndarray)):
            sums = _sums_of(chances)
        else:
            plain = np.asarray(p, F64) if not any(isinstance(x, Tracer) for x in p) else None
            sums = _sums_of(chances) if plain is None else _checked_sums(plain)
        drawn = self._draw("random", shape_of(size), F64)
        return np.searchsorted(array(sums), drawn, side="right")

    def _population(self, a: Any) -> tuple[Any, int]:
        """What `choice` chooses from, None for numbers, and how many there are."""
        a = known_number(a)
        if isinstance(a, (int, np.integer)):
            if a <= 0:
                require_that(False, "a must be a positive integer unless no samples are taken")
                return None, 1
            return None, int(a)
        a = array(a)
        if not a.shape:
            complain(
                errors.DynamicShapeError,
                "choice(n) of a traced n is not there in a compiled function",
                "draw rng.integers(0, n).",
                asks=[a],
            )
        return a, a.shape[0]


def _times(drawn: Tracer, scale: Any) -> Any:
    """The product as NumPy has it; 1.0 makes no op."""
    return drawn if type(scale) is float and scale == 1.0 else drawn * scale


def _value(x: Any) -> Any:
    return as_value(x, F64)


def _checked_sums(p: Any) -> Any:
    """NumPy's checks of chances, and their running sums."""
    if np.isnan(p).any():
        raise ValueError("Probabilities contain NaN")
    if (p < 0).any():
        raise ValueError("Probabilities are not non-negative")
    if abs(p.sum() - 1.0) > np.sqrt(np.finfo(F64).eps):
        raise ValueError(
            "Probabilities do not sum to 1. See Notes section of docstring for more information."
        )
    sums = p.cumsum()
    return sums / sums[-1]


def _sums_of(p: Any) -> Any:
    """The same of chances that are known when the code runs, by NumPy, as the last digit counts."""
    from ..control.callbacks import pure_callback
    from ..data.shapes import ShapeDtype

    return pure_callback(_checked_sums, ShapeDtype(p.shape, F64), p)
