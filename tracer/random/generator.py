"""`default_rng`: a generator of random numbers like NumPy's, with a state.

The state is a key and a count. The n-th draw takes its numbers from `fold_in(key, n)`, so that a
generator gives the same stream in Python, in compiled functions and in loops of them, and which numbers
come in a draw does not depend on how many came before. Compiled functions read the state of generators
that they reach (globals, closures, attributes, arguments) when they are called, and write it back when
they return (`streams`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..core import Tracer, as_value, refuse_leaked, wrap
from ..errors import complain
from ..functions.common import array, build
from ..streams import advance, count_draw, refuse_examples, stand_in
from ..trace import Trace, current_trace
from . import continuous, counts, discrete, gammas, uniforms, vectors
from .entry import sampler
from .keys import U32, U64, joined, key, split, stacked, threefry, words_of

_STEP = np.array([0, 1], np.uint64)
_lock = threading.Lock()
Array = np.ndarray[Any, Any]


def default_rng(seed: Any = None) -> Generator:
    """A generator made of an integer or a key; of None: of what the operating system gives.

    >>> rng = jt.random.default_rng(0)
    >>> noisy = jt.jit(lambda x: x + rng.integers(0, 10, 4))
    >>> noisy(100), noisy(100)                 # the state advances, in compiled functions too
    (array([109, 103, 106, 109]), array([100, 109, 107, 105]))
    >>> rng.state                              # the key, and how many draws there were
    array([0, 2], dtype=uint64)

    What is a generator already is returned as it is.
    """
    if isinstance(seed, Generator):
        return seed
    if seed is None:
        if current_trace() is not None:
            complain(
                errors.ImpureFunctionError,
                "default_rng() without a seed, in a function that is traced, would be seeded once "
                "and for all",
                "make the generator outside, where compiled functions find it, or give it a seed.",
            )
        seed = int.from_bytes(os.urandom(8), "little")
    known_key = getattr(seed, "dtype", None) == U32 and tuple(seed.shape) == (2,)
    return Generator(_start(seed if known_key else key(seed)))


@sampler()
def _start(key: Any) -> Any:
    """The state of a generator that has drawn nothing: the key's 64 bits, and 0."""
    b = build()
    first = joined(*words_of(key))
    return wrap(stacked(first, wrap(b.full((), 0, U64))), scalar=False)


@sampler()
def _draw_key(key: Any) -> Any:
    """The key of the next draw of a generator with the state `key`."""
    b, state = build(), as_value(key)
    words = []
    for i in (0, 1):
        part = b.reshape(b.slice(state, start=(i,), stop=(i + 1,), step=(1,)), shape=())
        high = b.right_shift(part, b.full((), 32, U64))
        words += [wrap(b.convert(v, dtype=U32)) for v in (high, part)]
    return wrap(stacked(*threefry(*words)), scalar=False)


class Generator:
    """A stream of random numbers: NumPy's `Generator`, by Threefry. Make one with `default_rng`.

    Methods, parameters and dtypes are NumPy's; the numbers are `jt.random`'s. Everything that draws
    floats takes `dtype=np.float32`, too. Threads may draw from one generator; compiled functions that do
    so, and run at the same time, need one each: `spawn`.
    """

    _jitney_state = "_state"  # the attribute that compiled functions read and update

    def __init__(self, state: Any) -> None:
        self._state = state

    def __repr__(self) -> str:
        return f"Generator(Threefry) at 0x{id(self):X}"

    @property
    def state(self) -> Array:
        """The key's 64 bits and the number of draws so far; may be assigned to, to go back."""
        if isinstance(self._state, Tracer):
            complain(
                errors.TracerConversionError,
                "the state of a generator is known only when the compiled function runs",
                "read it outside of the compiled function.",
            )
        return np.array(self._state)

    @state.setter
    def state(self, value: Any) -> None:
        with _lock:
            self._state[...] = value

    def key(self) -> Any:
        """A key for the functions of `jt.random`, another one each time."""
        return _draw_key(self._now())

    def spawn(self, n_children: int) -> list[Generator]:
        """Generators whose streams are independent of each other and of this one."""
        rows = split(self.key(), n_children)
        return [Generator(_start(rows[i])) for i in range(n_children)]

    def _now(self) -> Any:
        """The state, which goes on to the next draw."""
        state, trace = self._state, current_trace()
        count_draw()
        known = None if trace is None else stand_in(state)
        state = state if known is None else known
        if isinstance(state, Tracer):
            if trace is None:
                refuse_leaked(state)
            return advance(state, _STEP)
        if trace is not None and not trace.eager:
            if _under_vmap(trace):
                refuse_examples()
            complain(
                errors.ImpureFunctionError,
                "the function that is traced draws from a generator that compiled code cannot reach",
                "pass the generator as an argument, or let the function find it by a name: a global, "
                "a variable of an enclosing function, an attribute such as self.rng.",
            )
        with _lock:
            now = state.copy()
            state += _STEP
        return now

    def _draw(self, function: Callable[..., Any], **given: Any) -> Any:
        """What a function of `jt.random` makes of this generator's next key."""
        now = self._now()
        if current_trace() is None:
            return _compiled(function)(now, **given)
        return function(_draw_key(now), **given)

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
        """Elements of 0..a-1, or slices of an array along `axis`; always in random order."""
        shape = () if size is None else size
        return self._draw(discrete.choice, a=a, shape=shape, replace=replace, p=p, axis=axis)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """The numbers 0..x-1, or the slices of an array along `axis`, in random order."""
        return self._draw(discrete.permutation, x=x, axis=axis)

    def permuted(self, x: Any, *, axis: int | None = None) -> Any:
        """A copy in which each line along `axis`, or all elements, are in random order."""
        x = array(x) if current_trace() is not None else np.asarray(x)
        if axis is None:
            return self._draw(discrete.permutation, x=x.reshape(-1)).reshape(x.shape)
        return self._draw(discrete.permutation, x=x, axis=axis, independent=True)

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

    def random(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """Uniform in 0 <= u < 1."""
        return self._draw(uniforms.uniform, shape=size, dtype=dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
        """Uniform in low <= x < high."""
        return self._draw(uniforms.uniform, shape=size, dtype=dtype, minval=low, maxval=high)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """Normal with mean 0 and standard deviation 1."""
        return self._draw(uniforms.normal, shape=size, dtype=dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
        """Normal with mean `loc` and standard deviation `scale`."""
        return self._draw(uniforms.normal, shape=size, dtype=dtype, loc=loc, scale=scale)

    def standard_exponential(self, size: Any = None, dtype: Any = np.float64) -> Any:
        """Exponential with mean 1."""
        return self._draw(continuous.exponential, shape=size, dtype=dtype)

    def exponential(self, scale: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
        """Exponential with mean `scale`."""
        return self._draw(continuous.exponential, shape=size, dtype=dtype, scale=scale)

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = None) -> Any:
        """Gamma with the parameter `shape`."""
        return self._draw(gammas.gamma, a=shape, shape=size, dtype=dtype)

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

    def multivariate_normal(self, mean: Any, cov: Any, size: Any = None, dtype: Any = None) -> Any:
        """Normal vectors; `cov` has to be positive definite."""
        return self._draw(vectors.multivariate_normal, mean=mean, cov=cov, shape=size, dtype=dtype)


def _under_vmap(trace: Trace | None) -> bool:
    while trace is not None:
        if trace.what == "vmap":
            return True
        trace = trace.parent
    return False


_functions: dict[Callable[..., Any], Callable[..., Any]] = {}


def _compiled(function: Any) -> Callable[..., Any]:
    """A function of `jt.random` as a compiled function of a generator's state instead of a key."""
    found = _functions.get(function)
    if found is None:
        found = _functions.setdefault(function, function.advancing(_draw_key))
    return found
