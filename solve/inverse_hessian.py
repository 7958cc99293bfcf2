"""What L-BFGS knows of the inverse of a second derivative."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import jitney as jt


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
