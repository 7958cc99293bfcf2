"""Minima, roots and fits: SciPy's values, and the derivatives of what solves the equation."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt
from jitney import solve

X0 = np.array([1.3, 0.7, 0.8, 1.9])
A = np.array([1.0, 2.0, 3.0])


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def bowl(x, a):
    return np.sum((x - a) ** 2 * np.arange(1, 4)) + np.sum(x**4) * 0.1


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Nelder-Mead"])
def test_minima(method: str) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    res = solve.minimize(rosenbrock, X0, method=method)
    theirs = optimize.minimize(rosenbrock, X0, method=method)
    assert res.success and res.status == 0 and res["nit"] == res.nit
    np.testing.assert_allclose(res.x, theirs.x, atol=1e-4 if method != "Nelder-Mead" else 1e-13)
    if method == "Nelder-Mead":  # step by step the same
        assert (res.nit, res.nfev, res.message) == (theirs.nit, theirs.nfev, theirs.message)
    else:
        assert res.nfev * 3 < theirs.nfev  # as gradients are exact
        assert abs(res.jac).max() < 1e-4
    short = solve.minimize(rosenbrock, X0, method=method, options={"maxiter": 3})
    assert not short.success and short.nit == 3
    assert short.message == "Maximum number of iterations has been exceeded."


def test_minima_with_other_gradients() -> None:
    def both(x, a):
        return bowl(x, a), 2 * (x - a) * np.arange(1, 4) + 0.4 * x**3

    expected = solve.minimize(bowl, np.zeros(3), A).x
    np.testing.assert_allclose(solve.minimize(both, np.zeros(3), (A,), jac=True).x, expected)
    given = solve.minimize(bowl, np.zeros(3), (A,), jac=lambda x, a: both(x, a)[1])
    np.testing.assert_allclose(given.x, expected)
    assert solve.minimize(bowl, np.zeros(3, np.float32), A.astype(np.float32)).x.dtype == np.float32
    lost = solve.minimize(lambda x: np.log(-1 - x[0] ** 2), np.ones(1))
    assert not lost.success and lost.message == "NaN result encountered."


def test_derivatives_of_minima() -> None:
    def minimum(a, method="BFGS"):
        return solve.minimize(bowl, np.zeros(3), (a,), method=method, tol=1e-12).x @ a

    def newton(a):
        x = a
        for _ in range(6):
            x = x - np.linalg.solve(jt.hessian(bowl)(x, a), jt.grad(bowl)(x, a))
        return x @ a

    def everything(f):
        def of(a):
            return f(a), jt.grad(f)(a), jt.jacfwd(jt.grad(f))(a), jt.vmap(f)(np.stack([a, 2 * a]))

        return jt.jit(of)(A)

    expected = everything(newton)
    for found, wanted in zip(everything(minimum), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    grad = jt.jit(jt.grad(lambda a: minimum(a, "L-BFGS-B")))(A)
    np.testing.assert_allclose(grad, expected[1], atol=1e-5)


def test_results_go_in_and_out_of_compiled_functions() -> None:
    @jt.jit
    def f(a):
        res = solve.minimize(bowl, np.zeros(3), a)
        return jt.cond(res.success, lambda: res, lambda: res)

    res = f(A)
    assert res.message == "Optimization terminated successfully." and res.success
    assert next(iter(res)) == "x" and "success: True" in repr(res)
    with pytest.raises(KeyError):
        res["nothing"]


def curved(x, a):
    return np.array([x[0] * np.cos(x[1]) - a, x[0] * x[1] - x[1] - 5])


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1"])
def test_roots(method: str) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    # From [1, 1] Broyden's method wanders: the last bit of a cosine decides which root it finds.
    start = [6.0, 1.0] if method == "broyden1" else [1.0, 1.0]
    res = solve.root(curved, start, (4.0,), method=method)
    theirs = optimize.root(curved, start, (4.0,), method=method)
    assert res.success and theirs.success and abs(res.fun).max() < 1e-5
    np.testing.assert_allclose(res.x, theirs.x, rtol=1e-5)
    lost = solve.root(lambda x: np.stack([x[0] ** 2 + 1, x[1] - 1]), [1.0, 1.0], method=method)
    assert not lost.success and ("progress" in lost.message or "limit" in lost.message)


def test_roots_from_where_the_jacobian_is_singular() -> None:
    """In [1, 1] it has rank 1, in [0, 0] rank 0."""

    def circle(x, a):
        return np.array([x[0] * x[1] - a, x[0] ** 2 + x[1] ** 2 - 5])

    res = solve.root(circle, [1.0, 1.0], (2.0,))
    assert res.success and np.abs(res.fun).max() < 1e-10
    res = solve.root(circle, [0.0, 0.0], (2.0,))  # was a LinAlgError
    assert not res.success and "progress" in res.message


def test_derivatives_of_roots() -> None:
    def found(a):
        return solve.root(curved, [1.0, 1.0], (a,), tol=1e-13).x @ np.array([1.0, 2.0])

    step = 1e-5
    numeric = (found(4.0 + step) - found(4.0 - step)) / (2 * step)
    np.testing.assert_allclose(jt.jit(jt.vmap(jt.grad(found)))(np.full(2, 4.0)), numeric, rtol=1e-7)
    assert np.isclose(jt.jvp(found, (4.0,), (1.0,))[1], numeric, rtol=1e-7)  # not compiled
    assert np.isclose(solve.fsolve(lambda x: x**2 - 2, 1.0)[0], np.sqrt(2))


def test_scalar_roots() -> None:
    optimize = pytest.importorskip("scipy.optimize")

    def f(x, a):
        return np.cos(x) - a * x

    for method in ("brentq", "bisect"):
        res = solve.root_scalar(f, (1.5,), method, (0.0, 3.0))
        theirs = optimize.root_scalar(f, (1.5,), method, (0.0, 3.0))
        assert res.converged and abs(res.root - theirs.root) < 1e-11
        assert abs(res.function_calls - theirs.function_calls) <= 1
    assert np.isclose(solve.newton(f, 1.0, args=(1.5,)), res.root)
    assert np.isclose(solve.newton(f, 1.0, args=(1.5,), x1=0.9), res.root)
    assert np.isclose(solve.newton(f, 1.0, lambda x, a: -np.sin(x) - a, (1.5,)), res.root)

    def root(a):
        return solve.brentq(lambda x: f(x, a), 0.0, 3.0)

    slope = -res.root / (1.5 + np.sin(res.root))
    grads = jt.jit(jt.vmap(jt.grad(root)))(np.array([1.5, 0.5]))
    assert np.isclose(grads[0], slope)
    for a, b in ((0.0, 1.0), (-1.0, 0.0)):  # a root at an end
        assert solve.brentq(lambda x: x, a, b) == solve.bisect(lambda x: x, a, b) == 0


T = np.linspace(0, 5, 40)
Y = 4 / (1 + np.exp(-2 * (T - 2))) + np.random.default_rng(1).normal(size=40) * 0.1
Y[20] += 0.5


def logistic(p, t):
    return p[0] / (1 + np.exp(-p[1] * (t - p[2])))


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_fits(loss: str) -> None:
    optimize = pytest.importorskip("scipy.optimize")

    def residual(p, y):
        return logistic(p, T) - y

    res = solve.least_squares(residual, np.ones(3), args=(Y,), loss=loss, f_scale=0.1)
    theirs = optimize.least_squares(residual, np.ones(3), args=(Y,), loss=loss, f_scale=0.1)
    assert res.success and res.message == "`ftol` termination condition is satisfied."
    np.testing.assert_allclose(res.x, theirs.x, rtol=1e-4)
    np.testing.assert_allclose(res.cost, theirs.cost, rtol=1e-7)
    if loss != "soft_l1":
        return

    def fitted(y):
        tolerances = {"xtol": 1e-14, "ftol": 1e-15, "gtol": 1e-10}
        return solve.least_squares(residual, np.ones(3), args=(y,), loss=loss, **tolerances).x

    step = 1e-5 * np.eye(40)[7]
    numeric = (fitted(Y + step) - fitted(Y - step)) / 2e-5
    np.testing.assert_allclose(jt.jit(jt.jacrev(fitted))(Y)[:, 7], numeric, rtol=1e-4, atol=1e-7)


def test_curves() -> None:
    optimize = pytest.importorskip("scipy.optimize")

    def curve(t, a, b, c):
        return logistic((a, b, c), t)

    for options in ({}, {"sigma": np.linspace(1, 2, 40), "absolute_sigma": True}):
        found = solve.curve_fit(curve, T, Y, **options)
        theirs = optimize.curve_fit(curve, T, Y, **options)
        np.testing.assert_allclose(found[0], theirs[0], rtol=1e-4)
        np.testing.assert_allclose(found[1], theirs[1], rtol=1e-3)
