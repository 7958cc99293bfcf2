"""Random numbers: keys and functions of them, distributions, and generators with a state.

    keys        Threefry's keys and bits
    uniforms    uniform and normal numbers, of which all others are made; shapes and parameters
    continuous  distributions with a formula for one number
    gammas      gamma and what is made of it, with implicit derivatives
    counts      Poisson, binomial and others that are found by rejection
    discrete    integers, categories, permutations, choices
    vectors     multivariate normal, balls, orthogonal matrices
    generator   generators like NumPy's, with a state (how it is threaded: `tracer.core.threaded_state`)
    draws       their methods;  limits: what parameters may be
    lanes       a loop of each element's own
    entry       how a function of this package runs, traced or not

All but the generators' methods are pure: the same key gives the same numbers, in compiled functions
and outside, on any number of threads, on every machine, on GPUs. Parameters broadcast as in NumPy;
`shape` is the result's, by default the parameters'. `dtype` is float64 unless parameters are float32
arrays, or it is given.
"""

from .continuous import (
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    power,
    rayleigh,
    triangular,
    truncated_normal,
    wald,
    weibull,
    weibull_min,
)
from .counts import (
    binomial,
    hypergeometric,
    logseries,
    multinomial,
    multivariate_hypergeometric,
    negative_binomial,
    noncentral_chisquare,
    noncentral_f,
    poisson,
    vonmises,
    zipf,
)
from .discrete import (
    bernoulli,
    categorical,
    choice,
    geometric,
    integers,
    permutation,
    rademacher,
    randint,
)
from .gammas import beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from .generator import Generator, default_rng
from .keys import PRNGKey, bits, clone, fold_in, key, key_data, key_impl, split, wrap_key_data
from .uniforms import normal, uniform
from .vectors import ball, multivariate_normal, orthogonal

__all__ = [
    "Generator",
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "default_rng",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "hypergeometric",
    "integers",
    "key",
    "key_data",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "logseries",
    "maxwell",
    "multinomial",
    "multivariate_hypergeometric",
    "multivariate_normal",
    "negative_binomial",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "power",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
    "weibull_min",
    "wrap_key_data",
    "zipf",
]
