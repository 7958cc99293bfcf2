"""The method of Nelder and Mead, which asks for values alone."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .common import Function


def nelder_mead(
    f: Function, x0: Any, options: dict[str, Any], adaptive: bool, maxiter: Any, maxfev: Any
) -> tuple[Any, ...]:
    """`(simplex, values, status, iterations, evaluations)`, the best corner first; SciPy's steps."""
    n = x0.size
    rho, chi, psi, sigma = 1.0, 2.0, 0.5, 0.5
    if adaptive:
        chi, psi, sigma = 1 + 2 / n, 0.75 - 1 / (2 * n), 1 - 1 / n
    if options["initial_simplex"] is None:
        moved = jt.where(x0 != 0, 1.05 * x0, 0.00025)
        corners = jt.where(np.eye(n, dtype=bool), moved, x0)
        simplex = jt.concatenate([x0[None], corners])
    else:
        simplex = jt.asarray(options["initial_simplex"]).astype(x0.dtype)

    def each(points: Any) -> Any:
        return jt.map_fn(f, points)

    def ordered(simplex: Any, values: Any) -> Any:
        order = jt.argsort(values)
        return simplex[order], values[order]

    def body(carry: Any) -> Any:
        simplex, values, nit, nfev = carry
        center = jt.sum(simplex[:-1], axis=0) / n
        worst = simplex[-1]
        reflected = (1 + rho) * center - rho * worst
        f_reflected = f(reflected)
        best, second, last = values[0], values[-2], values[-1]
        good = (f_reflected >= best) & (f_reflected < second)

        def try_another() -> Any:
            outside = f_reflected < last
            step = jt.where(f_reflected < best, rho * chi, jt.where(outside, psi * rho, -psi))
            point = (1 + step) * center - step * worst
            value = f(point)
            expands = f_reflected < best
            bound = jt.where(expands, f_reflected, jt.where(outside, f_reflected, last))
            better = jt.where(
                expands, value < bound, jt.where(outside, value <= bound, value < bound)
            )
            take = better | expands
            x = jt.where(better, point, reflected)
            return x, jt.where(better, value, f_reflected), take, 2

        x, value, take, evaluations = jt.cond(
            good, lambda: (reflected, f_reflected, True, 1), try_another
        )

        def replaced() -> Any:
            return (
                jt.concatenate([simplex[:-1], x[None]]),
                jt.concatenate([values[:-1], value[None]]),
            )

        def shrunk() -> Any:
            points = simplex[:1] + sigma * (simplex[1:] - simplex[:1])
            return jt.concatenate([simplex[:1], points]), jt.concatenate([values[:1], each(points)])

        simplex, values = ordered(*jt.cond(take, replaced, shrunk))
        return simplex, values, nit + 1, nfev + evaluations + jt.where(take, 0, n)

    def spread(carry: Any) -> Any:
        simplex, values, *_ = carry
        near = np.max(np.abs(simplex[1:] - simplex[0])) <= options["xatol"]
        return ~(near & (np.max(np.abs(values[0] - values[1:])) <= options["fatol"]))

    simplex, values = ordered(simplex, each(simplex))
    carry = (simplex, values, 1, n + 1)
    simplex, values, nit, nfev = jt.while_loop(
        lambda c: (c[3] < maxfev) & (c[2] < maxiter) & spread(c), body, carry
    )
    status = jt.where(nfev >= maxfev, 1, jt.where(nit >= maxiter, 2, 0))
    return simplex, values, status, nit, nfev
