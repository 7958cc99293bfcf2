"""`quad`: integrals of functions of one number, adaptively, with the arguments of
`scipy.integrate.quad`."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .common import Function, above_zero, arguments, floats, function_of, numbers, refuse

# Kronrod's rule of 21 points, of which each other one is Gauss's of 10: points from the middle outwards.
_POINTS = np.array(
    [
        0.0,
        0.148874338981631210884826001129719985,
        0.294392862701460198131126603103865566,
        0.433395394129247190799265943165784162,
        0.562757134668604683339000099272694141,
        0.679409568299024406234327365114873576,
        0.780817726586416897063717578345042377,
        0.865063366688984510732096688423493049,
        0.930157491355708226001207180059508346,
        0.973906528517171720077964012084452053,
        0.995657163025808080735527280689002848,
    ]
)
_KRONROD = np.array(
    [
        0.149445554002916905664936468389821204,
        0.147739104901338491374841515972068046,
        0.142775938577060080797094273138717061,
        0.134709217311473325928054001771706833,
        0.123491976262065851077958109585166000,
        0.109387158802297641899210590325804960,
        0.093125454583697605535065465083366344,
        0.075039674810919952767043140916190009,
        0.054755896574351996031381300244580176,
        0.032558162307964727478818972459390048,
        0.011694638867371874278064396062192048,
    ]
)
_GAUSS = np.array(
    [
        0.295524224714752870173815619188769270,
        0.269266719309996355091226921569469353,
        0.219086362515982043995534934228163192,
        0.149451349150580593145863396957658,
        0.066671344308688137593568809893331793,
    ]
)
NODES = np.concatenate([-_POINTS[:0:-1], _POINTS])
WEIGHTS = np.concatenate([_KRONROD[:0:-1], _KRONROD])
OF_GAUSS = np.zeros(21)
OF_GAUSS[1:10:2], OF_GAUSS[11::2] = _GAUSS[::-1], _GAUSS


def quad(
    func: Function,
    a: Any,
    b: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
) -> tuple[Any, Any]:
    """`scipy.integrate.quad`: the integral of `func(x, *args)` from a to b, which may be infinite, and
    an estimate of its error.

    The part with the greatest error is halved until the sum of errors is at most
    `max(epsabs, epsrel * abs(integral))`, or there are `limit` parts: then the error that is given is
    greater. `func` is called with numbers, for many of them at once.

    The integral is a function of a, b, `args` and of what `func` closes over.

    >>> value, error = jt.solve.quad(lambda x: np.exp(-x * x), 0.0, np.inf)
    >>> float(np.round(value, 6)), bool(error < 1e-8)
    (0.886227, True)
    """
    function_of(func, "func", "a number")
    ends = floats(a)[()], floats(b)[()]
    if any(np.shape(end) for end in ends):
        shapes = " to ".join(str(np.shape(end)) for end in ends)
        refuse(f"the ends have the shapes {shapes}", "give two numbers; use jt.vmap for several.")
    above_zero(limit=limit)
    return _quad(func, *ends, arguments(args), epsabs, epsrel, int(limit))


@jt.jit(static_argnames="limit")
def _quad(
    func: Function, a: Any, b: Any, args: Any, epsabs: Any, epsrel: Any, limit: int
) -> tuple[Any, Any]:
    def integrand(t: Any, ends: Any) -> Any:
        """In t, from 0 to 1. Infinite ends are far away at the ends, by x = a + t / (1 - t)."""
        a, b = ends
        endless_a, endless_b = np.isinf(a), np.isinf(b)
        both = endless_a & endless_b
        middle = jt.where(both, 0.0, jt.where(endless_a, b, a))
        sign = jt.where(a <= b, 1.0, -1.0)
        way = jt.where(endless_a & ~endless_b, -sign, sign)
        finite = ~(endless_a | endless_b)
        start, stop = (jt.where(np.isinf(x), 0.0, x) for x in (a, b))
        left = jt.where(finite, 1.0, 1 - t)
        far = t / left
        x = jt.where(finite, start + (stop - start) * t, middle + way * far)
        scale = jt.where(finite, stop - start, sign / (left * left))
        value = jt.asarray(func(x, *args))
        if value.shape:
            refuse(f"func gives an array of shape {value.shape}", "let it give a number.")
        value = value + jt.cond(both, lambda: func(-x, *args) + 0 * value, lambda: 0 * value)
        return value * scale

    ends = (a, b)
    each = jt.vmap(lambda t: integrand(t, ends))

    def rule(low: Any, high: Any) -> tuple[Any, Any]:
        half = (high - low) / 2
        values = each((low + high) / 2 + half * NODES)
        fine, coarse = values @ WEIGHTS * half, values @ OF_GAUSS * half
        spread = np.abs(values - fine / (2 * half)) @ WEIGHTS * half
        error = np.abs(fine - coarse)
        shrunk = np.minimum(1.0, (200 * error / jt.where(spread > 0, spread, 1.0)) ** 1.5)
        return fine, jt.where((spread > 0) & (error > 0), spread * shrunk, error)

    def body(carry: Any) -> Any:
        lows, highs, values, errors, k = carry
        worst = jt.argmax(errors)
        low, high = lows[worst], highs[worst]
        middle = (low + high) / 2
        left, left_error = rule(low, middle)
        right, right_error = rule(middle, high)
        highs[worst], values[worst], errors[worst] = middle, left, left_error
        lows[k], highs[k], values[k], errors[k] = middle, high, right, right_error
        return lows, highs, values, errors, k + 1

    def going(carry: Any) -> Any:
        _, _, values, errors, k = carry
        goal = np.maximum(epsabs, epsrel * np.abs(jt.sum(values)))
        return (jt.sum(errors) > goal) & (k < limit)

    first, error = rule(0.0, 1.0)
    zeros = jt.zeros(limit, first.dtype)
    lows, highs, values, errors = zeros + 0, zeros + 0, zeros + 0, zeros + 0
    highs[0], values[0], errors[0] = 1.0, first, error
    lows, highs, values, errors, k = jt.while_loop(going, body, (lows, highs, values, errors, 1))
    parts = jt.stop_gradient((lows, highs))

    def again() -> Any:
        """The same sum by the same parts, for derivatives. Those that were not made count nothing."""
        made = np.arange(limit) < k
        low = jt.where(made, parts[0], 0.0)
        high = jt.where(made, parts[1], 1.0)
        sums = jt.vmap(lambda low, high: rule(low, high)[0])(low, high)
        return jt.sum(jt.where(made, sums, 0.0))

    total = jt.sum(values)
    value = jt.implicit(lambda x: x - again(), total, lambda matvec, b: b)
    return numbers((value, jt.stop_gradient(jt.sum(errors))))
