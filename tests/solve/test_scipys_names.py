"""SciPy's own functions in compiled code are those of `jt.solve`; densities are SciPy's."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt
from jitney.solve import stats

pytest.importorskip("scipy")
import scipy.integrate
import scipy.optimize
import scipy.sparse.linalg
import scipy.stats


def used(a):
    x = scipy.optimize.minimize(lambda x: np.sum((x - a) ** 2), np.zeros(2), tol=1e-10).x
    b = scipy.optimize.brentq(lambda x: x**3 - a, 0, 200)
    o = scipy.integrate.solve_ivp(lambda t, y, k: -k * y, [0, 1], [1.0], args=(a,), t_eval=[1.0])
    c, _ = scipy.sparse.linalg.cg(np.eye(2) * a, np.ones(2))
    p = scipy.stats.gamma.logpdf(a, 2.0) + scipy.stats.poisson.logpmf(3, a)
    return x, b, o.y[0], c, p + scipy.stats.expon.pdf(a, scale=2.0)


def test_solvers_and_densities_in_compiled_code() -> None:
    for found, wanted in zip(jt.jit(used)(3.0), used(3.0), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    grad = jt.jit(jt.grad(lambda a: scipy.integrate.quad(lambda x: np.exp(-a * x), 0, np.inf)[0]))
    assert np.isclose(grad(2.0), -0.25)


def test_numbers_are_of_scipys_classes() -> None:
    def f(x):
        a = float(x[0])
        root = scipy.optimize.root_scalar(lambda x: x * x - a, bracket=[0.0, 9.0])
        least = scipy.optimize.minimize(lambda x: np.sum((x - a) ** 2), np.zeros(2))
        found = scipy.optimize.brentq(lambda x: x * x - a, 0.0, 9.0, full_output=True)
        numbers = scipy.optimize.bisect(lambda x: x * x - a, 0.0, 9.0), found[0]
        area = scipy.integrate.quad(lambda x: np.exp(-a * x), 0.0, 1.0)
        counts = root.iterations, root.converged, found[1].converged, least.nit, least.success
        return *numbers, root.root, *area, *counts, least.fun

    x = np.array([2.0])
    assert list(map(type, jt.jit(f)(x))) == list(map(type, f(x)))


def test_arguments_that_are_not_taken() -> None:
    def f(a):
        return scipy.optimize.minimize(lambda x: np.sum(x - a), np.zeros(2), bounds=[(0, 1)] * 2).x

    says = r"scipy's minimize takes no bounds= in compiled code\n.*test_scipys_names.py"
    with pytest.raises(jt.errors.UnsupportedFunctionError, match=says):
        jt.jit(f)(1.0)


OF_NUMBERS = {
    "poisson": (2.2,),
    "bernoulli": (0.3,),
    "binom": (4, 0.3),
    "geom": (0.3,),
    "nbinom": (2.5, 0.4),
}
CONTINUOUS = [d for d in vars(stats).values() if isinstance(d, stats.Continuous)]


def test_densities_are_scipys() -> None:
    x = np.concatenate([np.linspace(-2, 4, 13), [0.0, 1.0, np.nan]])
    assert len(CONTINUOUS) > 18
    for ours in CONTINUOUS:
        theirs, shapes = getattr(scipy.stats, ours.name), (1.7, 2.3)[: ours.shapes]
        assert ours.logpdf(np.inf, *shapes) == -np.inf
        for options in ({}, {"loc": 0.3, "scale": 1.4}, {"scale": -1.0}):
            with np.errstate(all="ignore"):
                found, wanted = (
                    ours.logpdf(x, *shapes, **options),
                    theirs.logpdf(x, *shapes, **options),
                )
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12, err_msg=ours.name)
    k = np.array([-1, 0, 1, 2, 5, 2.5])
    for name, shapes in OF_NUMBERS.items():
        found, wanted = (getattr(s, name).logpmf(k, *shapes) for s in (stats, scipy.stats))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=name)
        assert np.isnan(getattr(stats, name).logpmf(1, *shapes[:-1], -2.0))
    assert stats.poisson.logpmf(3, 2.0, 1) == stats.poisson.logpmf(2, 2.0)
    cov, rows = np.array([[2.0, 0.3], [0.3, 1.0]]), np.arange(6.0).reshape(3, 2)
    for x, mean, c in (
        (rows, np.ones(2), cov),
        (rows[0], np.zeros(2), np.array([1.0, 2.0])),
        (1.5, None, 2.0),
    ):
        wanted = scipy.stats.multivariate_normal.logpdf(x, mean, c)
        np.testing.assert_allclose(stats.multivariate_normal.logpdf(x, mean, c), wanted)
    share = np.array([0.2, 0.8])
    wanted = scipy.stats.dirichlet.logpdf(share, [2.0, 3.0])
    assert np.isclose(stats.dirichlet.logpdf(share, np.array([2.0, 3.0])), wanted)


def test_derivatives_of_densities_by_all_parameters() -> None:
    @jt.jit
    def both(x, a, b, loc, scale):
        def total(x, a, b, loc, scale):
            shapes = (a, b)
            return sum(
                d.logpdf(x, *shapes[: d.shapes], loc=loc, scale=scale) * (i + 1)
                for i, d in enumerate((stats.gamma, stats.beta, stats.t, stats.weibull_min))
            )

        return total(x, a, b, loc, scale), jt.grad(total, argnums=(0, 1, 2, 3, 4))(
            x, a, b, loc, scale
        )

    at = np.array([0.7, 1.7, 2.3, 0.1, 1.4])
    grads = both(*at)[1]
    for i, step in enumerate(1e-5 * np.eye(5)):
        numeric = (both(*(at + step))[0] - both(*(at - step))[0]) / 2e-5
        assert np.isclose(grads[i], numeric, rtol=1e-6)
    edge = jt.jit(jt.grad(lambda x: stats.gamma.logpdf(x, 2.0)))
    assert edge(-1.0) == 0
    with pytest.raises(TypeError, match="it takes x, 1 shape parameters by position"):
        stats.gamma.logpdf(1.0)
