"""Second derivatives where formulas meet, divide by zero or lose digits, against mpmath's.

Each in three ways: forward over forward, reverse over reverse, forward over reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from gradients import interpreted

import jitney as jt

mp = mpmath.mp
S = jt.special
Function = Callable[[Any], Any]

NEAR_0 = (0.0, -0.0, 1e-20, -1e-12, 1e-8, 1e-5, -1e-3, 0.1, -0.9, 1.1)
LINE = (*NEAR_0, 1.0, -1.0, 0.5, 2.0, -3.0, 5.5)
RIGHT = (1e-3, 0.1, 0.5, 1.0 - 1e-9, 1.0, 1.0 + 1e-6, 2.0, 3.0, 8.0, 30.0)

# A function, what mpmath calls it, and where.
CASES: dict[str, tuple[Function, Function, tuple[float, ...]]] = {
    "sinc": (np.sinc, lambda x: mp.sinc(mp.pi * x), LINE),
    "i0": (np.i0, lambda x: mp.besseli(0, x), (*LINE, 8.5, -9.0)),
    "special.i0": (S.i0, lambda x: mp.besseli(0, x), LINE),
    "i1": (S.i1, lambda x: mp.besseli(1, x), LINE),
    "i1e": (S.i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), (0.1, -0.5, 0.9, 1.0, 2.0, -8.5)),
    "j0": (S.j0, lambda x: mp.besselj(0, x), LINE),
    "j1": (S.j1, lambda x: mp.besselj(1, x), LINE),
    "rgamma": (S.rgamma, mp.rgamma, (*LINE, -2.0, -8.0, -2.5)),
    "gamma": (S.gamma, mp.gamma, RIGHT),
    "factorial": (S.factorial, mp.factorial, RIGHT),
    "spence": (S.spence, lambda x: mp.polylog(2, 1 - x), (1e-12, *RIGHT)),
    "zeta": (S.zeta, mp.zeta, (-20.0, -7.3, -4.0, -2.1, -2.0, -1.0, -0.3, -1e-3, 0.5, 2.0, 9.0)),
    "sici": (lambda x: S.sici(x)[0], mp.si, LINE),
    "exprel": (S.exprel, lambda x: mp.expm1(x) / x if x else mp.mpf(1), LINE),
    "boxcox": (lambda x: S.boxcox(x, 2.0), lambda x: (x * x - 1) / 2, (1e-12, *RIGHT)),
    "boxcox by power": (
        lambda p: S.boxcox(3.0, p),
        lambda p: (mp.mpf(3) ** p - 1) / p if p else mp.log(3),
        LINE,
    ),
    "pseudo_huber": (
        lambda x: S.pseudo_huber(2.0, x),
        lambda x: 4 * (mp.sqrt(1 + x * x / 4) - 1),
        LINE,
    ),
    "xlogy": (lambda x: S.xlogy(x, x + 4), lambda x: x * mp.log(x + 4), LINE),
    "xlog1py": (lambda x: S.xlog1py(x, x + 4), lambda x: x * mp.log(x + 5), LINE),
    "rel_entr": (
        lambda x: S.rel_entr(x + 4, x * x + 4),
        lambda x: (x + 4) * mp.log((x + 4) / (x * x + 4)),
        LINE,
    ),
    "erfinv": (jt.erfinv, mp.erfinv, NEAR_0[:-1]),
    "arctan2": (lambda x: np.arctan2(x, 2.0), lambda x: mp.atan(x / 2), LINE),
    "hypot": (lambda x: np.hypot(x, 2.0), lambda x: mp.sqrt(x * x + 4), LINE),
    "logaddexp": (lambda x: np.logaddexp(x, -x), lambda x: mp.log(mp.exp(x) + mp.exp(-x)), LINE),
    "power": (lambda x: x**2, lambda x: x * x, LINE),
    "power to a float": (lambda x: np.power(x, 3.0), lambda x: x**3, LINE),
    "power to 1": (lambda x: np.float_power(x, 1), lambda x: x, LINE),
    "power to 0": (lambda x: np.float_power(x, 0), lambda x: mp.mpf(1), LINE),
    "power of a number": (lambda x: 2.0**x, lambda x: mp.mpf(2) ** x, LINE),
    "x to the x": (lambda x: x**x, lambda x: x**x, RIGHT),
    "prod": (lambda x: jt.prod([x, x, x + 1], axis=0), lambda x: x * x * (x + 1), LINE),
}


def second(function: Function, x: float) -> float:
    """mpmath's second derivative, by differences with many digits."""
    at = mp.mpf(x)
    with mp.workdps(60):
        return float(
            mp.diff(function, at, 2, h=max(abs(at), mp.mpf(10) ** -12) * mp.mpf(10) ** -10)
        )


def ways(f: Function) -> list[Function]:
    def forward(f: Function) -> Function:
        return lambda x: jt.jvp(f, (x,), (np.ones_like(x),))[1]

    def reverse(f: Function) -> Function:
        return jt.grad(lambda x: np.sum(f(x)))

    return [forward(forward(f)), reverse(reverse(f)), forward(reverse(f))]


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name: str) -> None:
    function, of_mpmath, points = CASES[name]
    expected = [second(of_mpmath, x) for x in points]
    for found in ways(function):
        np.testing.assert_allclose(found(np.array(points)), expected, rtol=1e-7, atol=1e-11)


def mp_binom(n: Any, k: Any) -> Any:
    return mp.gamma(n + 1) * mp.rgamma(k + 1) * mp.rgamma(n - k + 1)


def mp_poch(z: Any, m: Any) -> Any:
    return mp.gammaprod([z + m], [z])


# Functions of two operands where what gammas have poles is 0, and where formulas meet.
PAIRS: dict[str, tuple[Function, Function, list[tuple[float, float]]]] = {
    "beta": (S.beta, mp.beta, [(0.5, -0.5), (-2.5, 0.5), (-0.5, -0.5), (2.0, 3.0)]),
    "binom": (
        S.binom,
        mp_binom,
        [(3.0, 5.0), (5.0, 2.0), (2.0, -1.0), (2.5, -1.0), (0.001, -1.0), (-2.5, 0.5)],
    ),
    "poch": (S.poch, mp_poch, [(-0.5, -3.0), (-2.5, 1.0), (-2.0, 0.5), (-2.0, 2.5), (3.0, 2.0)]),
    "pseudo_huber": (
        S.pseudo_huber,
        lambda d, r: d * mp.sqrt(d * d + r * r) - d * d,
        [(0.0, 3.0), (0.0, -0.5), (2.0, 0.0), (1e-9, 1.0)],
    ),
    "xlogy": (S.xlogy, lambda x, y: x * mp.log(y), [(0.0, 2.0), (1.0, 1.0)]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_of_two_operands(name: str) -> None:
    function, of_mpmath, points = PAIRS[name]
    x, y = np.array(points).T
    # These nest the same rules, at a second each: every operand is moved once in each mode, and every
    # derivative is taken, the first ones on the way to the second; of the mixed ones one, backwards
    # over forwards.
    ways = {
        ((1, 0), (2, 0)): both_along(function, 0)(x, y),
        ((0, 1), (0, 2)): both_slopes(function, 1)(x, y),
        ((1, 1),): [slope(along(function, 0), 1)(x, y)],
    }
    for orders, derivatives in ways.items():
        for order, found in zip(orders, derivatives, strict=True):
            with mp.workdps(60):
                expected = [
                    float(mp.diff(of_mpmath, tuple(map(mp.mpf, at)), order, h=mp.mpf(10) ** -18))
                    for at in points
                ]
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9, err_msg=f"{order}")


def with_change(f: Function, i: int) -> Function:
    """What f gives, and its derivative by operand i, in forward mode; the others do not vary."""

    def both(*operands: Any) -> Any:
        def of_one(x: Any) -> Any:
            return f(*operands[:i], x, *operands[i + 1 :])

        return jt.jvp(of_one, (operands[i],), (np.ones_like(operands[i]),))

    return both


def along(f: Function, i: int) -> Function:
    return lambda *operands: with_change(f, i)(*operands)[1]


def both_along(f: Function, i: int) -> Function:
    """The first and the second derivative."""
    return with_change(along(f, i), i)


def slope(f: Function, i: int) -> Function:
    return jt.grad(lambda *operands: np.sum(f(*operands)), i)


def both_slopes(f: Function, i: int) -> Function:
    """The first and the second derivative, in reverse mode."""

    def first(*operands: Any) -> Any:
        found = slope(f, i)(*operands)
        return np.sum(found), found

    return lambda *operands: jt.grad(first, i, has_aux=True)(*operands)[::-1]


def test_poles_are_those_of_polynomials() -> None:
    x = np.array([-2.0, -1.0, 0.0])
    # (x)_3 = x (x + 1) (x + 2), and 1 / ((x - 1) (x - 2)).
    first, second = both_along(S.poch, 0)(x, 3.0)
    np.testing.assert_allclose(first, 3 * x * x + 6 * x + 2)
    np.testing.assert_allclose(second, 6 * x + 6, atol=1e-12)
    below = (x - 1) * (x - 2)
    np.testing.assert_allclose(slope(S.poch, 0)(x, -2.0), (3 - 2 * x) / below**2)
    assert S.poch(-1.0, -1e-9) == 0
    assert jt.jit(S.poch)(-1.0, -1e-9) == 0


def test_operands_that_do_not_vary_make_no_nan() -> None:
    weights = np.array([0.0, 0.0, 2.0])
    y = np.array([0.0, -1.0, 4.0])
    for f in (S.xlogy, lambda x, y: S.xlog1py(x, y - 1), S.rel_entr):
        with np.errstate(all="ignore"):
            slopes = along(f, 1)(weights, y)
            seconds = np.diag(jt.hessian(lambda y, f=f: f(weights, y).sum())(y))
        size = -1 if f is S.rel_entr else 1
        np.testing.assert_allclose(slopes, size * np.array([0, 0, 0.5]))
        np.testing.assert_allclose(seconds, -size * np.array([0, 0, 0.125]))


def test_correlations_of_lines() -> None:
    def plain(x: Any) -> Any:
        c = np.cov(x)
        return c / np.sqrt(np.outer(np.diag(c), np.diag(c)))

    x = np.outer([1.0, 2.0, -3.0], [1.0, -1.0, 2.0])
    weights = np.arange(9.0).reshape(3, 3)
    found, expected = (
        jt.hessian(lambda x, f=f: np.sum(weights * f(x)))(x) for f in (np.corrcoef, plain)
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_what_does_not_exist_is_no_number() -> None:
    at_0 = np.zeros(1)
    with np.errstate(all="ignore"):
        for step in (along, slope):
            assert not np.isfinite(step(step(S.xlogy, 1), 0)(at_0, at_0))
            assert not np.isfinite(step(step(np.power, 1), 0)(at_0, np.array([0.5])))


def power(v: Any) -> Any:
    return v[0] ** v[1]


@pytest.mark.parametrize("f", [power, lambda v: np.float_power(v[0], v[1])])
@pytest.mark.parametrize("x, y", [(4.0, 0.0), (1.0, 0.0), (1e-300, 0.0), (2.0, 1.0), (0.5, -2.0)])
def test_mixed_derivatives_of_powers(f: Function, x: float, y: float) -> None:
    log = np.log(x)
    mixed = x ** (y - 1) * (1 + y * log)
    by_base = y * (y - 1) * x ** (y - 2) if y else 0.0
    expected = [[by_base, mixed], [mixed, x**y * log * log]]
    at = np.array([x, y])
    for hessian in (jt.hessian(f), jt.jacrev(jt.jacrev(f)), jt.jacfwd(jt.jacfwd(f))):
        np.testing.assert_allclose(hessian(at), expected, rtol=1e-12)
    np.testing.assert_allclose(interpreted(jt.hessian(f))(at), expected, rtol=1e-12)
    if y == 0:
        np.testing.assert_allclose(jt.jit(jt.hessian(f))(at), expected, rtol=1e-12)


def test_powers_of_zero() -> None:
    for y in (0.0, 1.0, 2.0, 3.0):
        found = jt.hessian(power)(np.array([0.0, y]))
        assert np.isfinite(found).all() and found[0, 0] == 2.0 * (y == 2)
    for x in (0.0, np.nan, np.inf, 5e-324):
        assert jt.grad(lambda x: x**0.0)(x) == 0
        assert jt.grad(power)(np.array([x, 0.0]))[0] == 0


def test_first_derivatives_at_whole_numbers() -> None:
    for n in (0.0, 1.0, 5.0, 20.0):
        slope = float(mpmath.diff(mpmath.factorial, n))
        assert jt.grad(S.factorial)(n) == pytest.approx(slope, rel=1e-10)
    for n in (0.0, -1.0, -2.0, -7.0):
        slope = float(mpmath.diff(mpmath.rgamma, n))
        assert jt.grad(S.rgamma)(n) == pytest.approx(slope, rel=1e-10)


def test_the_formulas_that_hide_a_point_keep_their_values() -> None:
    x = np.array([0.0, -0.0, 1e-320, 1e-20, 0.3, -2.5, 9.7, np.inf, np.nan])
    with np.errstate(all="ignore"):
        for f in (np.sinc, np.i0):
            for dtype in (np.float64, np.float32, np.float16):
                v = x.astype(dtype)
                want = f(v)
                np.testing.assert_allclose(interpreted(f)(v), want, rtol=2e-3, strict=True)
                np.testing.assert_allclose(jt.jit(f)(v), want, rtol=2e-3, strict=True)
            assert jt.jit(f)(3) == f(3)
        z = np.array([0j, 1e-9j, 0.3 + 1j])
        np.testing.assert_allclose(jt.jit(np.sinc)(z), np.sinc(z), rtol=1e-14, strict=True)
        assert jt.jit(np.sinc)(np.float16(0)) == 1
    second_at_0 = jt.grad(jt.grad(np.sinc, holomorphic=True), holomorphic=True)(0j)
    assert second_at_0 == pytest.approx(-(np.pi**2) / 3)
    np.testing.assert_allclose(jt.vmap(jt.grad(jt.grad(np.sinc)))(np.zeros(3)), -(np.pi**2) / 3)
    assert jt.jit(jt.grad(jt.grad(np.sinc)))(0.0) == pytest.approx(-(np.pi**2) / 3)
    assert jt.jit(jt.grad(jt.grad(np.i0)))(0.0) == pytest.approx(0.5)


def test_a_root_at_a_constant_zero_is_the_same_compiled_or_not():
    """Forward mode has 0 * inf there, as JAX has; with the root inside, nothing has."""

    def outside(x):
        root = np.sqrt(np.concatenate([np.zeros(1), x]))
        return np.sum(1 / (root[1:] + root[:-1]))

    def inside(x):
        root = np.concatenate([np.zeros(1), np.sqrt(x)])
        return np.sum(1 / (root[1:] + root[:-1]))

    x = np.array([1.0, 2.0])
    for transform in (jt.grad, jt.jacfwd, jt.hessian):
        for f in (outside, inside):
            found = transform(f)(x)
            np.testing.assert_allclose(jt.jit(transform(f))(x), found, rtol=1e-13)
            safe = f is inside or transform is jt.grad
            assert np.isfinite(found).all() == safe
