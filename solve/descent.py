"""BFGS and L-BFGS: descent along directions of a model of the second derivative, by steps that satisfy
the strong conditions of Wolfe."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import jitney as jt

from .common import Function

CONVERGED, TOO_MANY, NO_STEP, NOT_A_NUMBER, FLAT = 0, 1, 2, 3, 4
DECREASE, CURVATURE = 1e-4, 0.9
MOST = 30  # evaluations in a search


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


class InverseHessian(NamedTuple):
    """The latest steps and the changes of the gradient along them, from which L-BFGS makes an
    approximation of the inverse of the second derivative: arrays of shape (pairs, n), used as rings.

    `scale` times the identity is what the pairs correct: the scale that the newest one shows.

    >>> known = jt.solve.InverseHessian.empty(2, 5)
    >>> for s in np.eye(2):
    ...     known = known.updated(s, np.array([2.0, 4.0]) * s)
    >>> known.product(np.array([2.0, 2.0]))
    array([1. , 0.5])
    """

    steps: Any
    changes: Any
    rho: Any  # one over the product of step and change
    scale: Any
    count: Any

    @staticmethod
    def empty(n: int, pairs: int, dtype: Any = np.float64) -> InverseHessian:
        """The identity, with memory for so many pairs."""
        steps, changes = (np.zeros((pairs, n), dtype) for _ in "sy")
        return InverseHessian(
            steps, changes, np.zeros(pairs, dtype), np.ones((), dtype), np.int64(0)
        )

    def updated(self, s: Any, y: Any, least: Any = 0.0) -> InverseHessian:
        """With one pair more, in the place of the oldest, if its product `s @ y` is above `least` and is
        not 0."""
        curvature = s @ y
        useful = (curvature > least) & (curvature != 0)
        safe = jt.where(useful, curvature, 1.0)
        i = self.count % self.rho.shape[0]
        steps, changes, rho = (np.copy(x) for x in self[:3])
        steps[i] = jt.where(useful, s, steps[i])
        changes[i] = jt.where(useful, y, changes[i])
        rho[i] = jt.where(useful, 1 / safe, rho[i])
        scale = jt.where(useful, safe / jt.where(useful, y @ y, 1.0), self.scale)
        return InverseHessian(steps, changes, rho, scale, self.count + useful)

    def product(self, g: Any, scale: Any = None) -> Any:
        """Its product with a vector; `scale` replaces that of the identity."""
        steps, changes, rho, own, count = self
        pairs = rho.shape[0]
        kept = np.minimum(count, pairs)

        def newest_first(k: Any, carry: Any) -> Any:
            q, parts = carry
            i = (count - 1 - k) % pairs
            parts[i] = rho[i] * (steps[i] @ q)
            return q - parts[i] * changes[i], parts

        def oldest_first(k: Any, r: Any) -> Any:
            i = (count - kept + k) % pairs
            return r + (parts[i] - rho[i] * (changes[i] @ r)) * steps[i]

        q, parts = jt.fori_loop(0, kept, newest_first, (g, jt.zeros_like(rho)))
        return jt.fori_loop(0, kept, oldest_first, (own if scale is None else scale) * q)


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


def wolfe_search(
    evaluate: Function, x: Any, f0: Any, g0: Any, p: Any, first: Any = 1.0, most: Any = MOST
) -> Any:
    """`(step, f, g, evaluations)` along p from x, where `evaluate(x)` gives f and its gradient, f0 and
    g0 at x: f falls enough, and its slope is small enough, for the strong conditions of Wolfe.

    `first` is the step that is tried first, `most` the number of evaluations. If none of them will do,
    the step is the best of them, or 0.

    >>> evaluate = jt.value_and_grad(lambda x: np.sum((x - 3.0) ** 2))
    >>> x = np.zeros(1)
    >>> a, f, g, evaluations = jt.solve.wolfe_search(evaluate, x, *evaluate(x), np.ones(1))
    >>> float(a), int(evaluations)
    (1.0, 1)
    """
    # The interval [low, high] holds such a step as soon as `high` is finite; before, the step grows. The
    # best so far is `low`. Where f is so flat that rounding hides the decrease, the slope decides.
    slope = g0 @ p
    noise = 10 * np.finfo(f0.dtype).eps * np.abs(f0)

    def body(carry: Any) -> Any:
        low, high, a, k, _ = carry
        f, g = evaluate(x + a * p)
        d = g @ p
        enough = f <= f0 + DECREASE * a * slope
        flat = (f <= f0 + noise) & (d <= (2 * DECREASE - 1) * slope)
        bad = ~((enough & (f < low[1])) | flat)
        done = ~bad & (np.abs(d) <= -CURVATURE * slope)
        back = ~bad & ~done & (d * (high[0] - low[0]) >= 0)
        trial = (a, f, d, g)
        new_high = _pick(bad, trial[:3], _pick(back, low[:3], high))
        new_low = _pick(bad, low, trial)
        return new_low, new_high, _next(new_low, new_high), k + 1, done

    def going(carry: Any) -> Any:
        low, high, _, k, done = carry
        return ~done & (k < most) & (np.abs(high[0] - low[0]) > 1e-14 * np.abs(low[0]))

    zero = f0 * 0
    low = (zero, f0, slope, g0)
    high = (zero + np.inf, zero, zero)
    low, _, _, k, _ = jt.while_loop(going, body, (low, high, zero + first, 0, False))
    return low[0], low[1], low[3], k


def _pick(condition: Any, one: Any, other: Any) -> Any:
    return jt.tree.map(lambda a, b: jt.where(condition, a, b), one, other)


def _next(low: Any, high: Any) -> Any:
    """The minimum of the cubic through both ends, off both; a longer step while one end is known."""
    (a, f, d, *_), (b, fb, db) = low, high
    width = b - a
    finite = np.isfinite(width) & np.isfinite(fb) & np.isfinite(db)
    span = jt.where(finite, width, 1.0)
    one = d + db - 3 * (f - fb) / -span
    two = np.sign(span) * np.sqrt(np.maximum(one * one - d * db, 0))
    below = db - d + 2 * two
    cubic = 1 - (db + two - one) / jt.where(below == 0, 1.0, below)
    part = jt.where(finite & (below != 0) & np.isfinite(cubic), np.clip(cubic, 0.1, 0.9), 0.5)
    return jt.where(np.isfinite(width), a + part * width, 4 * a)
