"""`math` and `cmath` of traced numbers beside Python: every function, the numbers and their classes."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

FRACTIONS = (
    "acos asin atan atanh asinh cos cosh sin sinh tan tanh erf erfc exp exp2 expm1 log1p cbrt"
)
POSITIVE = "sqrt log log2 log10 gamma lgamma degrees radians fabs ulp ceil floor frexp modf trunc"
ASKED = "isfinite isinf isnan"
PAIRS = "atan2 copysign fmod hypot pow remainder nextafter isclose log"
COMPLEX = "acos acosh asin asinh atan atanh cos cosh exp log log10 sin sinh sqrt tan tanh"
STATIC = {"comb", "perm"}  # they ask for the numbers
NEWER = {"fma", "sumprod", "cbrt", "exp2"}  # Pythons that have them are not all


def reals(x: float, y: float) -> list[Any]:
    names = [n for n in f"{FRACTIONS} {POSITIVE} {ASKED}".split() if hasattr(math, n)]
    two = [getattr(math, n)(a, b) for n in PAIRS.split() for a, b in ((x, y), (y, x), (2.5 * y, x))]
    return [
        *(getattr(math, n)(x) for n in names),
        *two,
        math.acosh(1 + x),
        math.ldexp(x, 3),
        math.dist((x, y), (y, 0.5)),
        math.hypot(x, y, 2.0),
        math.fsum([1e16, x, -1e16, y]),
        math.isclose(x, y, rel_tol=0.9),
        math.remainder(x, math.inf),
        cmath.rect(x, y),
    ]


def integers(n: int, k: int) -> list[Any]:
    return [
        math.isqrt(n),
        math.isqrt(n * n),
        math.isqrt(n * n - 1),
        math.factorial(k),
        math.gcd(n, k, 6),
        math.lcm(n, k),
        math.gcd(-k, 0),
        math.prod([n, k, k]),
        math.floor(n),
        math.sqrt(n),
        math.comb(k, 2),
        math.perm(k, 2),
    ]


def complexes(z: complex, w: complex) -> list[Any]:
    return [
        *(getattr(cmath, n)(z) for n in COMPLEX.split()),
        cmath.log(z, 3),
        cmath.phase(z),
        cmath.polar(z),
        *(getattr(cmath, n)(z) for n in ASKED.split()),
        cmath.isclose(z, w, rel_tol=0.5),
        math.prod([z, w], start=2),
    ]


def classes(x: Any) -> Any:
    return tuple(map(classes, x)) if isinstance(x, (list, tuple)) else type(x)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (reals, (0.3, 0.75)),
        (reals, (np.float32(0.3), np.float64(0.75))),
        (integers, (3037000499, 7)),
        (integers, (10, 0)),
        (complexes, (0.3 + 0.4j, 0.5 + 0.4j)),
        (complexes, (-1.5, 2)),
        (complexes, (np.complex64(1 - 2j), -1j)),
    ],
)
def test_they_are_pythons(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    if function is reals and not isinstance(arguments[0], float):
        expected = function(*map(float, arguments))  # NumPy's scalars have no __trunc__
    else:
        expected = function(*arguments)
    result = jt.jit(function)(*arguments)
    assert classes(result) == classes(expected)
    flat = [np.hstack(x) for x in (result, expected)]
    single = any(isinstance(x, np.generic) for x in arguments)  # among the results, too
    np.testing.assert_allclose(*flat, rtol=1e-6 if single else 1e-14)


def test_every_function_is_tried() -> None:
    tried = {name for f in (reals, integers, complexes) for name in f.__code__.co_names}
    tried |= set(f"{FRACTIONS} {POSITIVE} {ASKED} {PAIRS} {COMPLEX}".split())
    for module in (math, cmath):
        names = {n for n in dir(module) if callable(getattr(module, n)) and n[0] != "_"}
        assert names <= tried | NEWER


def test_they_promote_as_pythons_numbers() -> None:
    def f(x: Any, y: Any) -> Any:
        return math.sqrt(x) * y

    y = np.ones(2, np.float32)
    assert jt.jit(f)(np.float64(2), y).dtype == f(np.float64(2), y).dtype == np.float32
    assert jt.jit(lambda x: math.exp(x))(np.float32(100)) == math.exp(np.float32(100))


def test_arguments_are_single_real_numbers() -> None:
    with pytest.raises(TypeError, match="single numbers"):
        jt.jit(lambda x: math.sin(x))(np.ones(2))
    with pytest.raises(TypeError, match="must be real number, not complex"):
        jt.jit(lambda x: math.sin(x))(1j)
    with pytest.raises(OverflowError, match="64 bits"):
        jt.jit(lambda n: math.factorial(n))(21)
    with pytest.raises(ValueError, match="not defined for negative values"):
        jt.jit(lambda n: math.factorial(n))(-1)
    with pytest.raises(ValueError, match="nonnegative"):
        jt.jit(lambda n: math.isqrt(n))(-1)
