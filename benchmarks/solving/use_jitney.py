"""The problems in jitney; each takes the solver's tolerance as its last argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from . import problems as p

FORMS: dict[str, Callable[..., Any]] = {}


def form(function: Callable[..., Any]) -> Callable[..., Any]:
    FORMS[function.__name__] = function
    return function


@form
def cg(b: Any, tolerance: float) -> Any:
    return jt.solve.cg(lambda v: p.diffusion(np, v), b, rtol=tolerance)[0]


@form
def gmres(b: Any, tolerance: float) -> Any:
    return jt.solve.gmres(lambda v: p.convection(np, v), b, rtol=tolerance)[0]


@form
def bicgstab(b: Any, tolerance: float) -> Any:
    return jt.solve.bicgstab(lambda v: p.convection(np, v), b, rtol=tolerance)[0]


@form
def root(k: Any, tolerance: float) -> Any:
    equations = lambda x: p.tridiagonal(np, x, k)  # noqa: E731
    return jt.solve.root(equations, -np.ones(p.UNKNOWNS), tol=tolerance).x


@form
def roots(mean: Any, eccentricity: Any, tolerance: float) -> Any:
    def one(m: Any, e: Any) -> Any:
        start = np.stack([m, 1 + 0 * m])
        return jt.solve.root(lambda x: p.orbits(np, x, m, e), start, tol=tolerance).x

    return jt.vmap(one)(mean, eccentricity)


@form
def bfgs(x: Any, tolerance: float) -> Any:
    return jt.solve.minimize(lambda x: p.rosenbrock(np, x), x, tol=tolerance).x


@form
def fit(t: Any, y: Any, tolerance: float) -> Any:
    options = dict.fromkeys(("ftol", "xtol", "gtol"), tolerance)
    residuals = lambda q: p.peak(np, q, t) - y  # noqa: E731
    return jt.solve.least_squares(residuals, np.ones(4), **options).x


@form
def hunt(parameters: Any, tolerance: float) -> Any:
    return _hunted(parameters, p.MOMENTS, tolerance, "steps")


@form
def robertson(rates: Any, tolerance: float) -> Any:
    options = {
        "method": "Rodas4",
        "t_eval": p.LATE,
        "rtol": 100 * tolerance,
        "atol": tolerance / 100,
    }
    f = lambda t, y: p.robertson(np, t, y, rates)  # noqa: E731
    return jt.solve.solve_ivp(f, (0.0, p.LATE[-1]), np.array([1.0, 0.0, 0.0]), **options).y


def _hunted(parameters: Any, at: Any, tolerance: float, gradient: str) -> Any:
    return jt.solve.solve_ivp(
        lambda t, y, q: p.hunt(np, t, y, q),
        p.SPAN,
        p.ANIMALS,
        t_eval=at,
        args=(parameters,),
        rtol=tolerance,
        atol=tolerance,
        gradient=gradient,
    ).y


def _at_end(parameters: Any, tolerance: float, gradient: str) -> Any:
    end = np.array([p.SPAN[1]])
    return jt.grad(lambda q: np.sum(_hunted(q, end, tolerance, gradient) ** 2))(parameters)


@form
def steps_grad(parameters: Any, tolerance: float) -> Any:
    return _at_end(parameters, tolerance, "steps")


@form
def adjoint_grad(parameters: Any, tolerance: float) -> Any:
    return _at_end(parameters, tolerance, "adjoint")


@form
def root_grad(k: Any, tolerance: float) -> Any:
    return jt.grad(lambda k: np.sum(root(k, tolerance) ** 2))(k)[None]


@form
def linear_grad(a: Any, b: Any, tolerance: float) -> Any:
    by_a, by_b = jt.grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2), argnums=(0, 1))(a, b)
    return np.concatenate([by_a, by_b[:, None]], axis=1)


def ready(name: str, inputs: tuple[Any, ...], tolerance: float) -> Callable[[], Any]:
    """A call of the compiled program."""
    compiled = jt.jit(lambda *inputs: FORMS[name](*inputs, tolerance))
    arguments = [np.asarray(x, np.float64) for x in inputs]
    return lambda: compiled(*arguments)
