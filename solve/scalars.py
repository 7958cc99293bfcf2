"""Roots of functions of one number, with the arguments and results of `scipy.optimize`."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from . import common
from .common import Function, refuse
from .results import OptimizeResult

_XTOL, _RTOL = 2e-12, 8.881784197001252e-16
_MESSAGES = {0: "converged", -1: "sign error", -2: "convergence error"}
_SIGNS = "f(a) and f(b) must have different signs: give ends with one root between them"
_BRACKETS, _OTHERS = ("brentq", "bisect"), ("newton", "secant")


def root_scalar(
    f: Function,
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
) -> OptimizeResult:
    """`scipy.optimize.root_scalar`: a root of `f(x, *args)`, a number for a number.

    Methods are "brentq" and "bisect" between the ends of `bracket`, where f has different signs, and
    "newton" (with the exact derivative, or `fprime`) and "secant" from `x0`. The result has `root`,
    `iterations`, `function_calls`, `converged` and `message`; `root` is a function of `args` and of what
    `f` closes over, by the implicit function theorem.

    Raises ValueError for a bracket without a change of sign.

    >>> res = jt.solve.root_scalar(lambda x, a: x**3 - a, (8.0,), bracket=[0.0, 5.0])
    >>> float(round(res.root, 6)), bool(res.converged)
    (2.0, True)
    """
    if method is None:
        method = "brentq" if bracket is not None else "secant" if x1 is not None else "newton"
    common.function_of(f, "f", "a number")
    common.choose("method", method, _BRACKETS + _OTHERS, "root_scalar")
    if method in _BRACKETS:
        if bracket is None:
            refuse(f"method={method!r} needs a bracket", "give bracket=(a, b).")
        ends: Any = common.pair_of(bracket, "bracket")
    else:
        if x0 is None:
            refuse(f"method={method!r} needs x0", "give a first guess.")
        ends = (common.floats(x0)[()], None if x1 is None else common.floats(x1)[()])
    brackets = method in _BRACKETS
    xtol = (_XTOL if brackets else 1.48e-8) if xtol is None else xtol
    rtol = (_RTOL if brackets else 0.0) if rtol is None else rtol
    most = (100 if brackets else 50) if maxiter is None else maxiter
    fields = _root_scalar(f, ends, common.arguments(args), method, fprime, xtol, rtol, most)
    return OptimizeResult(_MESSAGES, **fields)


def _checked(res: OptimizeResult, full_output: bool, disp: bool) -> Any:
    what = "Failed to converge after {} iterations"
    if disp and jt.is_traced(res.converged):
        jt.check(np.all(res.converged), f"{what}.", res.iterations, error=RuntimeError)
    elif disp and not np.all(res.converged):
        remedy = (
            "give a nearer first guess, or more of them with maxiter=; disp=False lets it pass."
        )
        refuse(what.format(res.iterations), remedy, RuntimeError)
    return (res.root, res) if full_output else res.root


def brentq(
    f: Function,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """`scipy.optimize.brentq`: a root of f between a and b, where it has different signs, by the method
    of Brent: inverse interpolation, and bisection where that does not help.

    Raises ValueError for equal signs, RuntimeError without convergence if `disp`.

    >>> float(round(jt.solve.brentq(lambda x: np.cos(x) - x, 0.0, 1.0), 6))
    0.739085
    """
    res = root_scalar(f, args, "brentq", (a, b), xtol=xtol, rtol=rtol, maxiter=maxiter)
    return _checked(res, full_output, disp)


def bisect(
    f: Function,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """`scipy.optimize.bisect`: as `brentq`, by halving.

    >>> float(round(jt.solve.bisect(lambda x: x * x - 2, 0.0, 2.0), 6))
    1.414214
    """
    res = root_scalar(f, args, "bisect", (a, b), xtol=xtol, rtol=rtol, maxiter=maxiter)
    return _checked(res, full_output, disp)


def newton(
    func: Function,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    x1: Any = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """`scipy.optimize.newton`: a root near x0, of each element of an array, by Newton's steps with the
    exact derivative, or `fprime`; by secants where `x1` is given.

    Raises RuntimeError without convergence if `disp`.

    >>> np.round(jt.solve.newton(lambda x, a: x * x - a, np.ones(2), args=(np.array([2.0, 3.0]),)), 6)
    array([1.414214, 1.732051])
    """
    method = "newton" if x1 is None else "secant"
    res = root_scalar(
        func, args, method, None, fprime, x0, x1, xtol=tol, rtol=rtol, maxiter=maxiter
    )
    return _checked(res, full_output, disp)


@jt.jit(static_argnames=("method", "fprime"))
def _root_scalar(
    f: Function,
    ends: Any,
    args: Any,
    method: str,
    fprime: Any,
    xtol: Any,
    rtol: Any,
    most: Any,
) -> dict[str, Any]:
    def value(x: Any) -> Any:
        return f(x, *args)

    if method in _BRACKETS:
        a, b = ends
        fa, fb = value(a), value(b)
        jt.check(np.all(fa * fb <= 0), _SIGNS, error=ValueError)
        search = between if method == "brentq" else _halved
        x, k, calls, done = search(value, a, b, fa, fb, xtol, rtol, most)
        calls = calls + 2
    elif ends[1] is None and method == "newton":
        x, k, calls, done = _newton(value, fprime, args, ends[0], xtol, rtol, most)
    else:
        first = ends[0]
        second = first * (1 + 1e-4) + np.copysign(1e-4, first)
        second = second if ends[1] is None else ends[1]
        x, k, calls, done = _secant(value, first, second, xtol, rtol, most)
    return common.numbers(
        {
            "root": jt.implicit(value, x, common.elementwise_solve),
            "iterations": k,
            "function_calls": calls,
            "converged": done,
            "status": jt.where(np.all(done), 0, -2),
        }
    )


def between(
    f: Function, a: Any, b: Any, fa: Any, fb: Any, xtol: Any, rtol: Any, most: Any
) -> tuple[Any, Any, Any, Any]:
    """Brent's method: `(root, iterations, calls, converged)`, of numbers.

    `cur` is the best so far, `pre` the one before, `far` on the other side of the root; `step` is the
    latest step and `last` the one before.
    """

    def arranged(pre: Any, cur: Any, far: Any, last: Any, step: Any) -> Any:
        (xp, fp), (xc, fc), (xf, ff) = pre, cur, far
        crossed = fp * fc < 0
        xf, ff = jt.where(crossed, xp, xf), jt.where(crossed, fp, ff)
        last = jt.where(crossed, xc - xp, last)
        step = jt.where(crossed, xc - xp, step)
        swap = np.abs(ff) < np.abs(fc)
        xp, fp = jt.where(swap, xc, xp), jt.where(swap, fc, fp)
        xc, fc, xf, ff = (
            jt.where(swap, xf, xc),
            jt.where(swap, ff, fc),
            jt.where(swap, xc, xf),
            jt.where(swap, fc, ff),
        )
        return (xp, fp), (xc, fc), (xf, ff), last, step

    def near(cur: Any, far: Any) -> tuple[Any, Any, Any]:
        tolerance = (xtol + rtol * np.abs(cur[0])) / 2
        half = (far[0] - cur[0]) / 2
        return tolerance, half, (cur[1] == 0) | (np.abs(half) < tolerance)

    def body(carry: Any) -> Any:
        pre, cur, far, last, step, k = carry
        (xp, fp), (xc, fc), (xf, ff) = pre, cur, far
        tolerance, half, _ = near(cur, far)
        to_pre, to_far = _slope(fp, fc, xp, xc), _slope(ff, fc, xf, xc)
        linear = -fc / to_pre
        bent = -fc * (ff * to_far - fp * to_pre) / (to_far * to_pre * (ff - fp))
        tried = jt.where(xp == xf, linear, bent)
        fit = (np.abs(last) > tolerance) & (np.abs(fc) < np.abs(fp))
        fit = fit & (2 * np.abs(tried) < np.minimum(np.abs(last), 3 * np.abs(half) - tolerance))
        last = jt.where(fit, step, half)
        step = jt.where(fit, tried, half)
        least = jt.where(half > 0, tolerance, -tolerance)
        x = xc + jt.where(np.abs(step) > tolerance, step, least)
        return (*arranged(cur, (x, f(x)), far, last, step), k + 1)

    def going(carry: Any) -> Any:
        return ~near(carry[1], carry[2])[2] & (carry[-1] < most)

    start = arranged((a, fa), (b, fb), (a, fa), b - a, b - a)
    _, cur, far, *_, k = jt.while_loop(going, body, (*start, 0))
    return cur[0], k, k, near(cur, far)[2]


def _slope(f1: Any, f0: Any, x1: Any, x0: Any) -> Any:
    same = x1 == x0
    slope = (f1 - f0) / jt.where(same, 1.0, x1 - x0)
    return jt.where(slope == 0, 1e-300, slope)


def _halved(
    f: Function, a: Any, b: Any, fa: Any, fb: Any, xtol: Any, rtol: Any, most: Any
) -> tuple[Any, Any, Any, Any]:
    def body(carry: Any) -> Any:
        a, width, k, _ = carry
        width = width * 0.5
        middle = a + width
        fm = f(middle)
        a = jt.where(fm * fa >= 0, middle, a)
        done = (fm == 0) | (np.abs(width) < xtol + rtol * np.abs(middle))
        return jt.where(fm == 0, middle, a), width, k + 1, done

    ready = (fa == 0) | (fb == 0)
    at = jt.where(fb == 0, b, a)
    carry = (at, b - a, 0, ready)
    x, _, k, done = jt.while_loop(lambda c: ~c[3] & (c[2] < most), body, carry)
    return x, k, k, done


def _newton(
    f: Function, fprime: Any, args: Any, x: Any, xtol: Any, rtol: Any, most: Any
) -> tuple[Any, Any, Any, Any]:
    def both(x: Any) -> tuple[Any, Any]:
        if callable(fprime):
            return f(x), fprime(x, *args)
        return jt.jvp(f, (x,), (jt.ones_like(x),))

    def body(carry: Any) -> Any:
        x, k, _ = carry
        value, slope = both(x)
        step = jt.where(value == 0, 0.0, value / jt.where(slope == 0, 1.0, slope))
        x_new = x - jt.where((slope == 0) & (value != 0), 0.0, step)
        close = np.abs(x_new - x) <= xtol + rtol * np.abs(x)
        return x_new, k + 1, close & ((slope != 0) | (value == 0))

    carry = (x, 0, jt.zeros(x.shape, bool))
    x, k, done = jt.while_loop(lambda c: ~np.all(c[2]) & (c[1] < most), body, carry)
    return x, k, 2 * k, done


def _secant(
    f: Function, x0: Any, x1: Any, xtol: Any, rtol: Any, most: Any
) -> tuple[Any, Any, Any, Any]:
    def body(carry: Any) -> Any:
        x0, f0, x1, f1, k, _ = carry
        step = f1 * (x1 - x0) / jt.where(f1 == f0, 1.0, f1 - f0)
        stuck = (f1 == f0) & (f1 != 0)
        x = x1 - jt.where(f1 == f0, 0.0, step)
        done = (np.abs(x - x1) <= xtol + rtol * np.abs(x1)) & ~stuck
        return x1, f1, x, f(x), k + 1, done

    carry = (x0, f(x0), x1, f(x1), 0, jt.zeros(x0.shape, bool))
    _, _, x, _, k, done = jt.while_loop(lambda c: ~np.all(c[5]) & (c[4] < most), body, carry)
    return x, k, k + 2, done
