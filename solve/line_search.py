"""A step along a direction that satisfies the strong conditions of Wolfe."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .common import Function

DECREASE, CURVATURE = 1e-4, 0.9
MOST = 30  # evaluations in a search


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
