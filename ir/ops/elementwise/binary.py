"""Elementwise arithmetic and comparisons of two operands of one dtype.

Conventions where a derivative does not exist:

- maximum, minimum, fmax, fmin at a tie: half to each side (JAX).
- pow: d/dy is 0 where x == 0 and y >= 0; d/dx is 0 where y == 0, also at x == 0 (JAX).
- remainder and fmod: d/dx is 1 and d/dy is minus the integer quotient, jumps included.
- hypot at (0, 0): 0, a subgradient, so that norms built on it are safe. arctan2 there: NaN (JAX).
- copysign: d/dx is the product of both signs, 0 at x == 0; d/dy is 0.
- nextafter: d/dx is 1, d/dy is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...cost import Cost
from ...graph import uniform
from ...opdef import Commutes
from ..families import ANY, IDENTITY, INEXACT, INTEGER, NUMBER, REAL, elementwise
from ..term import Term, where

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.integer[Any]]
    Bools = npt.NDArray[np.bool_]
_TWO = ("T", "T")
_APART = ((-2.0, -0.2), (0.2, 2.0))  # samples that never meet
_POSITIVE = ((0.3, 2.0), (0.3, 2.0))


def _nonzero_quotient(t: Term, x: Term, z: Term) -> Term:
    """t * x / z, and 0 where z is 0."""
    return where(z.eq(0), 0, t * (x / z))


# Arithmetic. Partials are (t, z, x, y) -> t * dz/dx and t * dz/dy.
elementwise(
    "add",
    Cost.CHEAP,
    np.add,
    [IDENTITY, IDENTITY],
    kinds=NUMBER,
    operands=_TWO,
    commutative=Commutes.BITS,
    wraps=True,
    unbounded=True,
)
elementwise(
    "sub",
    Cost.CHEAP,
    np.subtract,
    [IDENTITY, lambda t, z, x, y: -t],
    kinds=NUMBER,
    operands=_TWO,
    wraps=True,
    unbounded=True,
)
elementwise(
    "mul",
    Cost.CHEAP,
    np.multiply,
    [lambda t, z, x, y: t * y, lambda t, z, x, y: t * x],
    kinds=NUMBER,
    operands=_TWO,
    commutative=Commutes.BITS,
    wraps=True,
    unbounded=True,
)
elementwise(
    "div",
    Cost.DIVISION,
    np.true_divide,
    [lambda t, z, x, y: t / y, lambda t, z, x, y: -(t * (z / y))],
    kinds=INEXACT,
    operands=_TWO,
    domain=((-2.0, 2.0), (0.3, 2.0)),
)
elementwise(
    "floor_divide",
    Cost.LONG,
    np.floor_divide,
    [None, None],
    kinds=REAL,
    operands=_TWO,
    domain=((0.1, 0.4), (0.5, 0.9)),
    doc="rounds towards minus infinity; an integer divided by 0 gives 0",
)
elementwise(
    "remainder",
    Cost.LONG,
    np.remainder,
    [IDENTITY, lambda t, z, x, y: -(t * x.floor_divide(y))],
    kinds=REAL,
    operands=_TWO,
    domain=((1.1, 1.4), (0.5, 0.54)),
    doc="has the sign of the divisor; an integer modulo 0 gives 0",
)
elementwise(
    "fmod",
    Cost.LONG,
    np.fmod,
    [IDENTITY, lambda t, z, x, y: -(t * (x / y).trunc())],
    kinds=REAL,
    operands=_TWO,
    domain=((-1.4, -1.1), (0.5, 0.54)),
    doc="has the sign of the dividend; an integer modulo 0 gives 0",
)


def _power_by_base(t: Term, z: Term, x: Term, y: Term) -> Term:
    power = uniform(y.value)
    if power is not None:
        less = power - y.value.dtype.type(1)
        return t * (x**less * power) if power else Term(t.b, t.lift(0))
    # Where y is 0 the slope is 0, but not its derivative by y: z / x. At x = 0 it is a convention.
    level = y.eq(0)
    flat = level & (x.eq(0) | x.isnan())
    base = where(flat, 1, x)
    return where(flat, 0, t * where(level, z * (y / base), y * base ** (y - 1)))


def _power_by_exponent(t: Term, z: Term, x: Term, y: Term) -> Term:
    # z log x, which at x = 0 is 0 log 1 (or 1 log 1): its slope there is what z's slope makes of it.
    flat = x.eq(0) & (y >= 0)
    return t * (z * where(flat, 1, x).log())


POW = elementwise(
    "pow",
    Cost.FUNCTION,
    np.power,
    [_power_by_base, _power_by_exponent],
    kinds=NUMBER,
    operands=_TWO,
    domain=((0.2, 2.0), (-2.0, 2.0)),
    wraps=True,
    doc="of signed integers only to powers that are not negative; others raise ValueError as in NumPy",
)
POW.extra["natural"] = (1,)  # operands whose integer samples are not negative

# Maxima and minima. maximum and minimum propagate NaN; fmax and fmin drop it.


def _winner(wins: Term, ties: Term, t: Term) -> Term:
    return where(wins, where(ties, t * 0.5, t), 0)


def _extremum(ufunc: np.ufunc, wins: Callable[[Term, Term], Term]) -> None:
    elementwise(
        ufunc.__name__,
        Cost.CHEAP,
        ufunc,
        [
            lambda t, z, x, y: _winner(wins(x, y), x.eq(y), t),
            lambda t, z, x, y: _winner(wins(y, x), x.eq(y), t),
        ],
        kinds=NUMBER,
        operands=_TWO,
        commutative=Commutes.VALUES,
        idempotent=True,
        domain=_APART,
    )


_extremum(np.maximum, lambda x, y: x >= y)
_extremum(np.minimum, lambda x, y: x <= y)
_extremum(np.fmax, lambda x, y: (x >= y) | y.isnan())
_extremum(np.fmin, lambda x, y: (x <= y) | y.isnan())

# Floats only. h = hypot(x, y) divides twice where x*x + y*y would overflow.


def _by_radius(t: Term, x: Term, y: Term) -> Term:
    h = x.hypot(y)
    return t * ((y / h) / h)


elementwise(
    "arctan2",
    Cost.FUNCTION,
    np.arctan2,
    [lambda t, z, x, y: _by_radius(t, x, y), lambda t, z, x, y: -_by_radius(t, y, x)],
    operands=_TWO,
    domain=_POSITIVE,
)
elementwise(
    "hypot",
    Cost.FUNCTION,
    np.hypot,
    [lambda t, z, x, y: _nonzero_quotient(t, x, z), lambda t, z, x, y: _nonzero_quotient(t, y, z)],
    operands=_TWO,
    commutative=Commutes.VALUES,
)
elementwise(
    "copysign",
    Cost.CHEAP,
    np.copysign,
    [lambda t, z, x, y: t * where(y.signbit(), -x.sign(), x.sign()), None],
    idempotent=True,
    operands=_TWO,
    domain=_APART,
)
elementwise(
    "nextafter",
    Cost.LONG,
    np.nextafter,
    [IDENTITY, None],
    operands=_TWO,
    moves=True,
    idempotent=True,
)


def _share(t: Term, z: Term, x: Term, other: Term, exp: str) -> Term:
    """t * exp(x - z). What two equal infinities share is half of it each."""
    same = x.eq(z) & other.eq(z)
    return t * where(same, 0.5, getattr(where(x.eq(z), 0, x - z), exp)())


for _log, _exp in ((np.logaddexp, "exp"), (np.logaddexp2, "exp2")):
    elementwise(
        _log.__name__,
        Cost.FUNCTION,
        _log,
        [
            lambda t, z, x, y, exp=_exp: _share(t, z, x, y, exp),
            lambda t, z, x, y, exp=_exp: _share(t, z, y, x, exp),
        ],
        operands=_TWO,
        commutative=Commutes.VALUES,
    )
elementwise(
    "heaviside",
    Cost.CHEAP,
    np.heaviside,
    [None, lambda t, z, x, y: where(x.eq(0), t, 0)],
    operands=_TWO,
    domain=_APART,
)
elementwise(
    "ldexp",
    Cost.CHEAP,
    np.ldexp,
    [lambda t, z, x, n: t.ldexp(n), None],
    operands=("T", "i32"),
    doc="x * 2**n with one rounding",
)

# Integers only.
elementwise("gcd", Cost.FUNCTION, np.gcd, kinds=INTEGER, operands=_TWO, commutative=Commutes.BITS)
elementwise("lcm", Cost.FUNCTION, np.lcm, kinds=INTEGER, operands=_TWO, commutative=Commutes.BITS)


# Whether what Python's integers give is what fixed numbers of bits give.
def _sum_fits(x: Ints, y: Ints) -> Bools:
    r = x + y
    return (x ^ r) & (y ^ r) >= 0 if r.dtype.kind == "i" else r >= x


def _difference_fits(x: Ints, y: Ints) -> Bools:
    return (x ^ y) & (x ^ (x - y)) >= 0 if x.dtype.kind == "i" else x >= y


def _product_fits(x: Ints, y: Ints) -> Bools:
    product, by = x * y, np.where(x == 0, x.dtype.type(1), x)
    same = (product // by == y) & (product % by == 0)
    return (x == 0) | (same & ~((x == -1) & (product == y) & (y != 0)))


for _name, _reference in {
    "add_fits": _sum_fits,
    "sub_fits": _difference_fits,
    "mul_fits": _product_fits,
}.items():
    elementwise(
        _name,
        Cost.CHEAP,
        _reference,
        kinds=INTEGER,
        operands=_TWO,
        result="bool",
        commutative=Commutes.NO if _name == "sub_fits" else Commutes.BITS,
        doc="whether the result fits, which else wraps",
    )

# Comparisons.
for _name, _ufunc in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}.items():
    _both = Commutes.BITS if _name in ("eq", "ne") else Commutes.NO
    elementwise(
        _name, Cost.CHEAP, _ufunc, kinds=ANY, operands=_TWO, result="bool", commutative=_both
    )
