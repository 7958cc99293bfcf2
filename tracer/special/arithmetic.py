"""What formulas are made of: polynomials, numbers of twice the digits, slow paths.

A *pair* is an unevaluated sum (high, low) whose low part is below an ulp of the high one. Its rounding
errors are made known by `fma` (Dekker 1971; Knuth, The Art of Computer Programming 2, 4.2.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.common import broadcast_values, build
from ..arrays.elementwise import where
from ..control.control import while_loop
from ..core.trace import require_trace
from ..core.tracers import as_value, wrap
from ..transforms.vmap import vmap

Pair = tuple[Any, Any]

BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798),
    *(-174611 / 330, 854513 / 138, -236364091 / 2730),
)  # B_2, B_4, ...
# Of the series of log(gamma(x)) and of digamma(x) in 1 / x**2.
STIRLING = tuple(b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(BERNOULLI[:10]))
DIGAMMA_TAIL = tuple(b / (2 * k + 2) for k, b in enumerate(BERNOULLI[:10]))

_THIRD = (1 / 3, 1.850371707708594e-17)


def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding; at least one of them is traced."""
    dtype = next(v.dtype for v in (x, y, z) if hasattr(v, "dtype"))
    return wrap(build().fma(*broadcast_values((x, y, z), (dtype,) * 3, "operands")))


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """c0 + c1 x + c2 x**2 + ..."""
    *rest, total = coefficients
    for c in reversed(rest):
        total = fma(total, x, c)
    return total


def sin_pi(x: Any) -> Any:
    """sin(pi x), exactly 0 at integers."""
    nearest = np.rint(x)
    sine = np.sin(math.pi * (x - nearest))
    return where(np.remainder(nearest, 2.0) == 1, -sine, sine)


def log1p_rest(u: Any) -> Any:
    """log(1 + u) - u, without cancellation near 0.

    With v = u / (2 + u) it is 2 artanh(v) - u = 2 v**3 (1/3 + v**2/5 + ...) - u v.
    """
    near = abs(u) < 0.5
    w = where(near, u, 0.0)
    v = w / (2.0 + w)
    series = polynomial(v * v, [1 / k for k in range(3, 41, 2)])
    return where(near, 2.0 * v * v * v * series - w * v, np.log1p(u) - u)


def two_sum(a: Any, b: Any) -> Pair:
    """a + b, exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def fast_two_sum(a: Any, b: Any) -> Pair:
    """a + b, exactly, where |a| >= |b|."""
    s = a + b
    return s, b - (s - a)


def two_product(a: Any, b: Any) -> Pair:
    """a * b, exactly."""
    p = a * b
    return p, fma(a, b, -p)


def pair_product(a: Pair, b: Any) -> Pair:
    """A pair times a number."""
    p, low = two_product(a[0], b)
    return fast_two_sum(p, fma(a[1], b, low))


def pair_sum(a: Pair, b: Pair) -> Pair:
    s, low = two_sum(a[0], b[0])
    return fast_two_sum(s, low + (a[1] + b[1]))


def quotient(a: Pair, b: Any) -> Pair:
    """A pair divided by a number."""
    q = a[0] / b
    return q, (fma(-q, b, a[0]) + a[1]) / b


def log_pair(x: Pair) -> Pair:
    """The logarithm of a positive pair, to about 68 bits; its tables are the code generator's."""
    from ...codegen.math.exponential import LN2_64
    from ...codegen.math.power import POW_64

    fraction, exponent = np.frexp(x[0])
    k = exponent.astype(x[0].dtype)
    low_half = fraction < math.sqrt(0.5)
    f = where(low_half, 2.0 * fraction, fraction) - 1.0
    k = where(low_half, k - 1.0, k)
    # s = f / (2 + f); log(1 + f) = 2 s (1 + z/3 + z**2 Q(z)) for z = s**2
    d, d_low = fast_two_sum(2.0 + 0.0 * f, f)
    s = f / d
    s_low = fma(-s, d_low, fma(-s, d, f)) / d
    z, z_low = two_product(s, s)
    z_low = fma(2.0 * s, s_low, z_low)
    t, t_low = two_product(z, _THIRD[0] + 0.0 * z)
    t_low = fma(z, _THIRD[1], fma(z_low, _THIRD[0], t_low))
    t, t_low = fast_two_sum(t, fma(z * z, polynomial(z, POW_64), t_low))
    u, u_low = fast_two_sum(1.0 + 0.0 * t, t)
    u_low = u_low + t_low
    h, h_low = two_product(2.0 * s, u)
    h_low = fma(2.0 * s, u_low, fma(2.0 * s_low, u, h_low))
    total, low = two_sum(k * LN2_64[0], h)
    return fast_two_sum(total, low + fma(k, LN2_64[1], h_low) + x[1] / x[0])


def exp_pair(x: Pair) -> Any:
    """The exponential of a pair, as a number."""
    e = np.exp(x[0])
    return fma(e, x[1], e)


def value_of(x: Any) -> Any:
    """x without its derivative."""
    return wrap(build().stop_gradient(as_value(x)))


def each(function: Callable[..., Any], *arrays: Any) -> Any:
    """`function` of the elements of arrays of one shape; its loops are each element's own."""
    shape = arrays[0].shape
    if not shape:
        return function(*arrays)
    trace: Any = require_trace()
    while trace.parent is not None:
        trace = trace.parent
    if trace.lengths:  # loops over an axis of any length stay apart from those within
        for _ in shape:
            function = vmap(function)
        return function(*arrays)
    b = build()
    flat = [wrap(b.reshape(as_value(a), shape=(a.size,))) for a in arrays]
    results = vmap(function)(*flat)
    several = isinstance(results, tuple)
    shaped = [
        wrap(build().reshape(as_value(x), shape=shape))
        for x in (results if several else (results,))
    ]
    return tuple(shaped) if several else shaped[0]


def repeat(step: Callable[[Any], Any], state: Any) -> Any:
    """The state after `step` for as long as its last part holds."""
    return while_loop(lambda s: s[-1], step, state)


def lentz(
    first: Any,
    terms: Callable[[Any], Any],
    going: Any,
    size: Callable[[Any], Any] | None = None,
) -> Any:
    """The continued fraction first + t1 / (b1 + t2 / (b2 + ...)) by Lentz's algorithm.

    terms(n) gives (t_n, b_n) for n = 1.0, 2.0, ... If it is differentiated by a parameter, size(n) is
    |t_n|, but where this vanishes for whole parameters, that of its derivative: there the fraction
    ends, and its derivative does not.
    """

    def step(state: Any) -> Any:
        n, f, before, d, rest, _ = state
        t, b = terms(n)
        d = b + t * d
        d = 1.0 / where(d == 0, 1e-300, d)
        c = b + t / before
        c = where(c == 0, 1e-300, c)
        change = c * d
        more = abs(change - 1.0) > 1e-16
        if size is not None:
            # |change - 1| is the one before times |t d / before|.
            rest = rest * size(value_of(n)) * value_of(abs(d / before))
            more = more | (rest > 1e-17)
        return n + 1.0, f * change, c, d, rest, more & (n < 1e6)

    zero = 0.0 * first
    start = where(first == 0, 1e-300, first)
    return repeat(step, (zero + 1.0, start, start, zero, value_of(zero) + 1.0, going))[1]


def slow_path(needed: Any, function: Callable[..., Any], *arrays: Any) -> Any:
    """`function` of the elements that need it, else 0: a loop that no lane enters otherwise."""

    def one(needed: Any, *elements: Any) -> Any:
        def step(state: Any) -> Any:
            # What does not depend on the state would be computed before the loop.
            return function(*(where(state[1], x, 1.0) for x in elements)), state[1] & False

        return repeat(step, (0.0 * elements[0], needed))[0]

    return each(one, needed, *arrays)
