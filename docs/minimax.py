"""How the polynomial coefficients of this package were made: weighted minimax fits in mpmath.

    coefficients(lambda r: (exp(r) - 1 - r) / r**2, degree=4, interval=(-0.35, 0.35),
                 weight=lambda r: r**2 / exp(r), bits=24)

gives a polynomial whose largest weighted error is nearly the smallest possible, and its coefficients
rounded to `bits`: they are fixed one by one, lowest order first, and the others are fitted anew each
time (which may leave no Haar system, so the fit is Lawson's reweighted least squares, not Remez
exchange). Not used when compiling; needs mpmath. (Lawson 1961; Muller, Elementary Functions, ch. 3.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def coefficients(
    function: Callable[[Any], Any],
    degree: int,
    interval: tuple[Any, Any],
    weight: Callable[[Any], Any] = lambda x: 1,
    bits: int = 53,
    digits: int = 50,
) -> tuple[list[float], float]:
    """Coefficients, lowest order first, and the largest weighted error of the rounded polynomial."""
    from mpmath import mp

    with mp.workdps(digits):
        low, high = mp.mpf(interval[0]), mp.mpf(interval[1])

        def chebyshev(size: int) -> list[Any]:
            middle, half = (low + high) / 2, (high - low) / 2
            return [middle - half * mp.cos(mp.pi * (k + mp.mpf("0.4")) / size) for k in range(size)]

        grid = chebyshev(8 * (degree + 2))
        target = [mp.mpf(function(x)) for x in grid]
        weights = [mp.mpf(weight(x)) for x in grid]
        fixed: list[Any] = []
        for _ in range(degree + 1):
            best = _lawson(grid, target, weights, fixed, degree)
            with mp.workprec(bits):
                fixed.append(+best[0])
        worst = max(
            abs((mp.polyval(fixed[::-1], x) - function(x)) * weight(x))
            for x in chebyshev(50 * (degree + 2))
        )
        return [float(c) for c in fixed], float(worst)


def _lawson(
    grid: list[Any], target: list[Any], weights: list[Any], fixed: list[Any], degree: int
) -> list[Any]:
    """The coefficients after the `fixed` ones: least squares whose weights grow where it errs."""
    from mpmath import mp

    start, count = len(fixed), degree + 1 - len(fixed)
    rest = [
        (y - mp.polyval(fixed[::-1], x)) if fixed else y for x, y in zip(grid, target, strict=True)
    ]
    share = [mp.mpf(1)] * len(grid)
    best: list[Any] = []
    best_error = mp.inf
    for _ in range(14):
        moments = [mp.mpf(0)] * (2 * count - 1)
        right = [mp.mpf(0)] * count
        for x, y, w, s in zip(grid, rest, weights, share, strict=True):
            term = s * w * w * x ** (2 * start)
            product = s * w * w * y * x**start
            for j in range(2 * count - 1):
                moments[j] += term
                if j < count:
                    right[j] += product
                    product *= x
                term *= x
        rows = [[moments[i + j] for j in range(count)] for i in range(count)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix(right))
        coefficients = [solution[j] for j in range(count)]
        errors = [
            abs((mp.polyval(coefficients[::-1], x) * x**start - y) * w)
            for x, y, w in zip(grid, rest, weights, strict=True)
        ]
        worst = max(errors)
        if worst < best_error:
            best, best_error = coefficients, worst
        if not worst:
            break
        share = [s * e / worst for s, e in zip(share, errors, strict=True)]
        total = mp.fsum(share) / len(grid)
        share = [s / total for s in share]
    return best
