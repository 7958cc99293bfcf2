"""The methods of generators that draw: NumPy's names and parameters, for functions of `jt.random`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays.common import array, ints
from ..core.trace import current_trace
from ..core.tracers import Tracer
from ..messages import errors
from ..messages.errors import complain, describe
from . import continuous, counts, discrete, gammas, limits, uniforms, vectors

Array = np.ndarray[Any, Any]


class Draws(ABC):
    """What a generator draws, by its `_draw`."""

    @abstractmethod
    def _draw(self, function: Callable[..., Any], **parameters: Any) -> Any:
        """What a function of `jt.random` makes of this generator's next key."""

    def _fill(self, out: Any, function: Callable[..., Any], shape: Any, **parameters: Any) -> Any:
        """What is drawn, in the array `out` if that is given."""
        if out is None:
            return self._draw(function, shape=shape, **parameters)
        if not isinstance(out, (Tracer, np.ndarray)) or out.dtype != np.dtype(parameters["dtype"]):
            raise TypeError(
                f"out must be an array of dtype {np.dtype(parameters['dtype'])}, not {describe(out)}"
            )
        if shape is not None and ints(shape) != out.shape:
            raise ValueError("size must match out.shape when used together")
        out[...] = self._draw(function, shape=out.shape, **parameters)
        return out

    # Integers, and what is chosen

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Any:
        """Integers in low <= n < high, or n <= high with `endpoint`."""
        low, high, endpoint, small = discrete.integer_range(low, high, dtype, endpoint)
        return self._draw(
            discrete.integers_between,
            low=low, high=high, shape=size, dtype=np.dtype(dtype), endpoint=endpoint, small=small,
        )  # fmt: skip

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        """Elements of 0..a-1, or slices of an array along `axis`.

        Without `replace` and `shuffle`, they come in ascending order of their indices.
        """
        shape = () if size is None else size
        ordered = not (replace or shuffle)
        return self._draw(
            discrete.choice, a=a, shape=shape, replace=replace, p=p, axis=axis, ordered=ordered
        )

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """The numbers 0..x-1, or the slices of an array along `axis`, in random order."""
        return self._draw(discrete.permutation, x=x, axis=axis)

    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        """A copy in which each line along `axis`, or all elements, are in random order."""
        x = array(x) if current_trace() is not None else np.asarray(x)
        if axis is None:
            permuted = self._draw(discrete.permutation, x=x.reshape(-1)).reshape(x.shape)
        else:
            permuted = self._draw(discrete.permutation, x=x, axis=axis, independent=True)
        if out is None:
            return permuted
        out[...] = permuted
        return out

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put the slices of the array `x` along `axis` into random order, in place."""
        if not isinstance(x, (Tracer, np.ndarray)):
            complain(
                errors.ArgumentError,
                "shuffle changes an array in place",
                "pass an ndarray, or take x = rng.permutation(x).",
                operands={"x": x},
            )
        x[...] = self._draw(discrete.permutation, x=x, axis=axis)

    def bytes(self, length: int) -> bytes:
        """Random bytes; outside of compiled functions only."""
        drawn: Array = self.integers(0, 256, length, np.uint8)
        return drawn.tobytes()

    # Distributions

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Uniform in 0 <= u < 1."""
        return self._fill(out, uniforms.uniform, shape=size, dtype=dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
        """Uniform in low <= x < high."""
        return self._draw(uniforms.uniform, shape=size, dtype=dtype, minval=low, maxval=high)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Normal with mean 0 and standard deviation 1."""
        return self._fill(out, uniforms.normal, shape=size, dtype=dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
        """Normal with mean `loc` and standard deviation `scale`."""
        return self._draw(uniforms.normal, shape=size, dtype=dtype, loc=loc, scale=scale)

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> Any:
        """Exponential with mean 1, by inversion whatever the `method`."""
        if method not in ("zig", "inv"):
            raise ValueError(f"method={method!r}: the methods are 'zig' and 'inv'")
        return self._fill(out, continuous.exponential, shape=size, dtype=dtype)

    def exponential(self, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
        """Exponential with mean `scale`."""
        return self._draw(continuous.exponential, shape=size, dtype=dtype, scale=scale)

    def standard_gamma(
        self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None
    ) -> Any:
        """Gamma with the parameter `shape`."""
        return self._fill(out, gammas.gamma, a=shape, shape=size, dtype=dtype)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
        """Gamma with the parameter `shape`, times `scale`."""
        return self._draw(gammas.gamma, a=shape, shape=size, dtype=dtype, scale=scale)

    def beta(self, a: Any, b: Any, size: Any = None, dtype: Any = None) -> Any:
        """Beta."""
        return self._draw(gammas.beta, a=a, b=b, shape=size, dtype=dtype)

    def dirichlet(self, alpha: Any, size: Any = None, dtype: Any = None) -> Any:
        """Proportions that sum to 1."""
        return self._draw(gammas.dirichlet, alpha=alpha, shape=size, dtype=dtype)

    def chisquare(self, df: Any, size: Any = None, dtype: Any = None) -> Any:
        """Chi-squared with `df` degrees of freedom."""
        return self._draw(gammas.chisquare, df=df, shape=size, dtype=dtype)

    def f(self, dfnum: Any, dfden: Any, size: Any = None, dtype: Any = None) -> Any:
        """Fisher's F."""
        return self._draw(gammas.f, dfnum=dfnum, dfden=dfden, shape=size, dtype=dtype)

    def standard_t(self, df: Any, size: Any = None, dtype: Any = None) -> Any:
        """Student's t."""
        return self._draw(gammas.t, df=df, shape=size, dtype=dtype)

    def standard_cauchy(self, size: Any = None, dtype: Any = None) -> Any:
        """Cauchy's."""
        return self._draw(continuous.cauchy, shape=size, dtype=dtype)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
        """Laplace's, the double exponential."""
        return self._draw(continuous.laplace, shape=size, dtype=dtype, loc=loc, scale=scale)

    def logistic(
        self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None
    ) -> Any:
        """Logistic."""
        return self._draw(continuous.logistic, shape=size, dtype=dtype, loc=loc, scale=scale)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
        """Gumbel's, of maxima."""
        return self._draw(continuous.gumbel, shape=size, dtype=dtype, loc=loc, scale=scale)

    def lognormal(
        self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: Any = None
    ) -> Any:
        """exp of normal numbers."""
        return self._draw(continuous.lognormal, shape=size, dtype=dtype, mean=mean, sigma=sigma)

    def rayleigh(self, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
        """Rayleigh's."""
        return self._draw(continuous.rayleigh, scale=scale, shape=size, dtype=dtype)

    def weibull(self, a: Any, size: Any = None, dtype: Any = None) -> Any:
        """Weibull's with scale 1."""
        return self._draw(continuous.weibull, concentration=a, shape=size, dtype=dtype)

    def pareto(self, a: Any, size: Any = None, dtype: Any = None) -> Any:
        """Pareto's of the second kind (Lomax's), which starts at 0, as in NumPy."""
        return self._draw(continuous.pareto, b=a, shape=size, dtype=dtype) - 1

    def power(self, a: Any, size: Any = None, dtype: Any = None) -> Any:
        """Density a x ** (a - 1)."""
        return self._draw(continuous.power, a=a, shape=size, dtype=dtype)

    def triangular(
        self, left: Any, mode: Any, right: Any, size: Any = None, dtype: Any = None
    ) -> Any:
        """Triangular."""
        return self._draw(
            continuous.triangular, left=left, mode=mode, right=right, shape=size, dtype=dtype
        )

    def wald(self, mean: Any, scale: Any, size: Any = None, dtype: Any = None) -> Any:
        """Wald's, the inverse Gaussian."""
        return self._draw(continuous.wald, mean=mean, scale=scale, shape=size, dtype=dtype)

    def vonmises(self, mu: Any, kappa: Any, size: Any = None, dtype: Any = None) -> Any:
        """Von Mises' angles."""
        return self._draw(counts.vonmises, mu=mu, kappa=kappa, shape=size, dtype=dtype)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """Poisson."""
        return self._draw(counts.poisson, lam=lam, shape=size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """How many of `n` trials succeed."""
        return self._draw(counts.binomial, n=n, p=p, shape=size)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """How many of `n` trials fall into each category."""
        return self._draw(counts.multinomial, n=n, p=pvals, shape=size)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """How many trials fail before `n` succeed."""
        return self._draw(counts.negative_binomial, n=n, p=p, shape=size)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Any:
        """How many good ones there are among `nsample`, drawn without putting any back."""
        return self._draw(
            counts.hypergeometric, ngood=ngood, nbad=nbad, nsample=nsample, shape=size
        )

    def multivariate_hypergeometric(
        self, colors: Any, nsample: Any, size: Any = None, method: str = "marginals"
    ) -> Any:
        """How many of each colour there are among `nsample`; by marginals whatever the `method`."""
        if method not in ("marginals", "count"):
            raise ValueError(f"method={method!r}: the methods are 'marginals' and 'count'")
        return self._draw(
            counts.multivariate_hypergeometric, colors=colors, nsample=nsample, shape=size
        )

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None, dtype: Any = None) -> Any:
        """Chi-squared about a point at distance sqrt(nonc)."""
        return self._draw(counts.noncentral_chisquare, df=df, nonc=nonc, shape=size, dtype=dtype)

    def noncentral_f(
        self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None, dtype: Any = None
    ) -> Any:
        """Fisher's F with a noncentral numerator."""
        return self._draw(
            counts.noncentral_f, dfnum=dfnum, dfden=dfden, nonc=nonc, shape=size, dtype=dtype
        )

    def geometric(self, p: Any, size: Any = None) -> Any:
        """How many trials it takes until one succeeds."""
        return self._draw(discrete.geometric, p=p, shape=size)

    def zipf(self, a: Any, size: Any = None) -> Any:
        """Zipf's."""
        return self._draw(counts.zipf, a=a, shape=size)

    def logseries(self, p: Any, size: Any = None) -> Any:
        """The logarithmic series'."""
        return self._draw(counts.logseries, p=p, shape=size)

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "cholesky",
        dtype: Any = None,
    ) -> Any:
        """Normal vectors; how `cov` is decomposed: "cholesky", "eigh" or "svd".

        A `cov` that is known outside of compiled functions is checked as NumPy does.
        """
        if check_valid not in ("warn", "raise", "ignore"):
            raise ValueError(f"check_valid={check_valid!r}: choose 'warn', 'raise' or 'ignore'")
        if check_valid != "ignore" and not isinstance(cov, Tracer):
            limits.check_covariance(cov, tol, check_valid)
        return self._draw(
            vectors.multivariate_normal, mean=mean, cov=cov, shape=size, dtype=dtype, method=method
        )
