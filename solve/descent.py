"""BFGS and L-BFGS: descent along directions of a model of the second derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .common import Function
from .inverse_hessian import InverseHessian
from .line_search import wolfe_search

CONVERGED, TOO_MANY, NO_STEP, NOT_A_NUMBER, FLAT = 0, 1, 2, 3, 4


def descend(
    evaluate: Function,
    x0: Any,
    model: tuple[Any, Function, Function],
    gtol: Any,
    ftol: Any,
    xrtol: Any,
    norm: Any,
    maxiter: Any,
) -> tuple[Any, ...]:
    """`(x, f, g, state, status, iterations, evaluations)`.

    `evaluate(x)` gives f and its gradient. A model is a state, `direction(state, g)` and
    `update(state, s, y, nit)`, which give the next direction and state.
    """
    state, direction, update = model

    def size(g: Any) -> Any:
        return jt.linalg.norm(g, norm)

    def body(carry: Any) -> Any:
        x, f, g, state, _, nit, nfev = carry
        p = direction(state, g)
        p = jt.where(g @ p < 0, p, -g)
        first = jt.where(nit == 0, np.minimum(1.0, 1.0 / np.sqrt(g @ g)), 1.0)
        a, f_new, g_new, evaluations = wolfe_search(evaluate, x, f, g, p, first)
        s = a * p
        moved = a > 0
        state = update(state, s, g_new - g, nit)
        x = x + s
        small = jt.linalg.norm(s) <= xrtol * (xrtol + jt.linalg.norm(x))
        flat = (f - f_new) <= ftol * np.maximum(np.maximum(np.abs(f), np.abs(f_new)), 1.0)
        status = jt.where(nit + 1 >= maxiter, TOO_MANY, -1)
        status = jt.where(flat | small, FLAT, status)
        status = jt.where(moved, status, NO_STEP)
        status = jt.where(np.isfinite(f_new) & np.isfinite(x).all(), status, NOT_A_NUMBER)
        status = jt.where(size(g_new) <= gtol, CONVERGED, status)
        return x, f_new, g_new, state, status, nit + 1, nfev + evaluations

    f, g = evaluate(x0)
    status = jt.where(size(g) <= gtol, CONVERGED, jt.where(maxiter <= 0, TOO_MANY, -1))
    status = jt.where(np.isfinite(f), status, NOT_A_NUMBER)
    return jt.while_loop(lambda c: c[4] < 0, body, (x0, f, g, state, status, 0, 1))


def bfgs(x0: Any, inverse: Any = None) -> tuple[Any, Function, Function]:
    """The inverse of the second derivative, as a matrix."""

    def update(h: Any, s: Any, y: Any, nit: Any) -> Any:
        curvature = s @ y
        useful = curvature > 0
        rho = useful / jt.where(useful, curvature, 1.0)
        if inverse is None:  # the first guess gets the scale of what was seen
            h = jt.where((nit == 0) & useful, h * (curvature / np.maximum(y @ y, 1e-300)), h)
        hy = h @ y
        cross = jt.outer(s, hy)
        return h + rho * ((1 + rho * (y @ hy)) * jt.outer(s, s) - cross - cross.T)

    start = np.eye(x0.size, dtype=x0.dtype) if inverse is None else inverse
    return start, lambda h, g: -(h @ g), update


def lbfgs(x0: Any, pairs: int) -> tuple[Any, Function, Function]:
    """The same, by the latest `pairs` steps and changes of the gradient."""

    def update(known: InverseHessian, s: Any, y: Any, nit: Any) -> Any:
        return known.updated(s, y, np.finfo(x0.dtype).eps * (y @ y))

    empty = InverseHessian.empty(x0.size, pairs, x0.dtype)
    return empty, lambda known, g: -known.product(g), update
