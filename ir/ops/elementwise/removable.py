"""Functions whose formula loses its derivatives at a point: `sinc` divides by 0, `i0` has a kink.

Their values are those of NumPy's formulas. Their derivatives, of any order, are those of a power series
near the point, and of the formula elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...build import Builder
from ...graph import Value
from ..composed import composed_rules, composition
from ..term import Term, where

Formula = Callable[[Term], Term]


def _function(name: str, formula: Formula, series: Formula, near: float, kinds: str) -> None:
    """Define the op `formula(x)`, with the derivatives of `series(x)` where |x| < near."""

    def compose(b: Builder, x: Value, **_: Any) -> list[Value]:
        return [formula(Term(b, x)).value]

    def smooth(b: Builder, x: Value, **_: Any) -> Value:
        t = Term(b, x)
        return where(t.abs() < near, series(t), formula(t)).value

    jvp, vjp = composed_rules(smooth)
    composition(name, compose, jvp, vjp, kinds=kinds, doc=f"NumPy's {name}")


def _polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """c0 + c1 x + c2 x**2 + ..."""
    *rest, last = coefficients
    total = x * 0 + last
    for c in reversed(rest):
        total = total * x + c
    return total


# sinc(x) = sin(pi x) / (pi x) = 1 - (pi x)**2 / 3! + (pi x)**4 / 5! - ...


def _sinc(x: Term) -> Term:
    y = x * math.pi
    flat = y.eq(0)
    y = where(flat, 1, y)
    return where(flat, 1, y.sin() / y)


_SINC = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(17))


def _sinc_series(x: Term) -> Term:
    y = x * math.pi
    return _polynomial(y * y, _SINC)


_function("sinc", _sinc, _sinc_series, 1.0, "fc")

# i0(x) = 1 + (x/2)**2 + (x/2)**4 / 2!**2 + ...


def _i0(x: Term) -> Term:
    from numpy.lib import _function_base_impl

    tables: Any = _function_base_impl  # of coefficients, which are private
    a = x.abs()
    small = a.exp() * _chebyshev(a / 2.0 - 2, tables._i0A)
    safe = where(a > 8.0, a, 16.0)
    large = a.exp() * _chebyshev(32.0 / safe - 2.0, tables._i0B) / safe.sqrt()
    return where(a <= 8.0, small, large)


def _chebyshev(x: Term, coefficients: Sequence[float]) -> Term:
    b0: Any = coefficients[0]
    b1: Any = 0.0
    b2: Any = 0.0
    for c in coefficients[1:]:
        b0, b1, b2 = x * b0 - b1 + c, b0, b1
    return (b0 - b2) * 0.5


_I0 = tuple(1 / math.factorial(k) ** 2 for k in range(33))


def _i0_series(x: Term) -> Term:
    half = x * 0.5
    return _polynomial(half * half, _I0)


_function("i0", _i0, _i0_series, 8.0, "f")
