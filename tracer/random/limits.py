"""What the parameters of a distribution may be: NumPy's errors, for numbers that are known.

Generators check what is known when they are called, in Python and while a function is traced; what is
known only when compiled code runs gives NaN where it is wrong (in integers: their smallest).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.tracers import Tracer

Test = Callable[[Any], Any]


# As in NumPy, NaN passes for scales and the like, and gives NaN; it is no chance and no rate.


def _at_least_0(x: Any) -> Any:
    return (x < 0) ^ True


def _above_0(x: Any) -> Any:
    return (x <= 0) ^ True


def _rate(x: Any) -> Any:
    return x >= 0


def _above_1(x: Any) -> Any:
    return x > 1


def _chance(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _some_chance(p: Any) -> Any:
    return (p > 0) & (p <= 1)


def _no_certainty(p: Any) -> Any:
    return (p >= 0) & (p < 1)


_WORDS: dict[Test, str] = {
    _at_least_0: "at least 0",
    _above_0: "greater than 0",
    _rate: "at least 0",
    _above_1: "greater than 1",
    _chance: "in 0..1",
    _some_chance: "greater than 0 and at most 1",
    _no_certainty: "at least 0 and less than 1",
}

# distribution -> parameter of `jt.random` -> what it must be
_LIMITS: dict[str, dict[str, Test]] = {
    "normal": {"scale": _at_least_0},
    "exponential": {"scale": _at_least_0},
    "gamma": {"a": _at_least_0, "scale": _at_least_0},
    "beta": {"a": _above_0, "b": _above_0},
    "dirichlet": {"alpha": _at_least_0},
    "chisquare": {"df": _above_0},
    "f": {"dfnum": _above_0, "dfden": _above_0},
    "t": {"df": _above_0},
    "laplace": {"scale": _at_least_0},
    "logistic": {"scale": _at_least_0},
    "gumbel": {"scale": _at_least_0},
    "lognormal": {"sigma": _at_least_0},
    "rayleigh": {"scale": _at_least_0},
    "weibull": {"concentration": _at_least_0},
    "pareto": {"b": _above_0},
    "power": {"a": _above_0},
    "wald": {"mean": _above_0, "scale": _above_0},
    "vonmises": {"kappa": _at_least_0},
    "poisson": {"lam": _rate},
    "binomial": {"n": _at_least_0, "p": _chance},
    "multinomial": {"n": _at_least_0, "p": _chance},
    "negative_binomial": {"n": _above_0, "p": _some_chance},
    "hypergeometric": {"ngood": _at_least_0, "nbad": _at_least_0, "nsample": _at_least_0},
    "multivariate_hypergeometric": {"colors": _at_least_0, "nsample": _at_least_0},
    "noncentral_chisquare": {"df": _above_0, "nonc": _at_least_0},
    "noncentral_f": {"dfnum": _above_0, "dfden": _above_0, "nonc": _at_least_0},
    "geometric": {"p": _some_chance},
    "zipf": {"a": _above_1},
    "logseries": {"p": _no_certainty},
}


def check(distribution: str, parameters: dict[str, Any]) -> None:
    """Raise ValueError for a parameter that is known and cannot be."""
    for name, test in _LIMITS.get(distribution, {}).items():
        value = parameters.get(name)
        if value is None or isinstance(value, Tracer):
            continue
        good = test(value) if type(value) in (int, float) else _all(test, value)
        if not good:
            raise ValueError(f"{name} of {distribution} must be {_WORDS[test]}, not {value!r}")
    joint = _JOINT.get(distribution)
    if joint is not None and not any(isinstance(x, Tracer) for x in parameters.values()):
        joint(parameters)


def _all(test: Test, value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        if any(isinstance(x, Tracer) for x in value):
            return True
        value = np.asarray(value)
    return bool(np.all(test(value))) if isinstance(value, (np.ndarray, np.generic)) else True


def _triangle(parameters: dict[str, Any]) -> None:
    left, mode, right = (np.asarray(parameters[name]) for name in ("left", "mode", "right"))
    if not ((left <= mode) & (mode <= right) & (left < right)).all():
        raise ValueError("the parameters of triangular must be left <= mode <= right, left < right")


def _urn(parameters: dict[str, Any]) -> None:
    if (
        np.asarray(parameters["ngood"]) + np.asarray(parameters["nbad"])
        < np.asarray(parameters["nsample"])
    ).any():
        raise ValueError("ngood + nbad < nsample")


def _colours(parameters: dict[str, Any]) -> None:
    if (np.sum(parameters["colors"], axis=-1) < np.asarray(parameters["nsample"])).any():
        raise ValueError("nsample > sum(colors)")


def _chances(parameters: dict[str, Any]) -> None:
    p = np.asarray(parameters["p"], np.float64)
    if p.ndim and (p[..., :-1].sum(axis=-1) > 1 + 1e-12).any():
        raise ValueError("sum(pvals[:-1]) > 1.0")


def _choice(parameters: dict[str, Any]) -> None:
    if parameters["p"] is None:
        return
    p = np.asarray(parameters["p"], np.float64)
    if not (p >= 0).all():
        raise ValueError("probabilities are not non-negative")
    if not abs(p.sum() - 1) < 1e-8:
        raise ValueError("probabilities do not sum to 1")
    if not parameters["replace"] and (p > 0).sum() < np.prod(parameters["shape"], dtype=int):
        raise ValueError("fewer non-zero entries in p than size")


_JOINT: dict[str, Callable[[dict[str, Any]], None]] = {
    "triangular": _triangle,
    "hypergeometric": _urn,
    "multivariate_hypergeometric": _colours,
    "multinomial": _chances,
    "choice": _choice,
}


def check_covariance(cov: Any, tol: float, answer: str) -> None:
    """Warn, or raise ValueError, if a matrix is not symmetric and positive-semidefinite."""
    matrix = np.asarray(cov, np.float64)
    turned = np.swapaxes(matrix, -1, -2) if matrix.ndim > 1 else matrix
    good = np.allclose(matrix, turned, rtol=tol, atol=tol)
    if good and matrix.ndim > 1 and matrix.shape[-1] == matrix.shape[-2]:
        w = np.linalg.eigvalsh(matrix)
        good = bool(
            (w >= -tol * np.maximum(abs(w).max(axis=-1, keepdims=True, initial=0), 1)).all()
        )
    if good:
        return
    words = "covariance is not symmetric positive-semidefinite."
    if answer == "raise":
        raise ValueError(words)
    warnings.warn(words, RuntimeWarning, stacklevel=4)
