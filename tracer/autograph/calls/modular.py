"""Remainders and masks of products and sums of Python's integers, which may pass 64 bits on the way.

    r = r * a % m               the product has up to 126 bits, the remainder no more than m
    h = (h * 31 + c) & mask     only the last 64 bits matter

Where the number fits, as nearly always, it is computed as it stands; elsewhere in two words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.integers.intervals import Interval, remembered
from ....ir.types import I64
from ...arrays.python_errors import check_divisor
from ...arrays.python_integers import LEAST, MOST, note_exact, note_reach, surely_fits
from ...control.control import cond, while_loop
from ...core.effects import check
from ...core.trace import require_trace
from ...core.tracers import Tracer, as_value, wrap
from ..users.operators import binary
from ..variables import in_graph, is_traced

Tree = Any  # the number of a leaf, or an operation and two trees
_FIT = {"add": "add_fits", "sub": "sub_fits", "mul": "mul_fits"}
_LONG = {"add": "add", "sub": "subtract", "mul": "multiply"}
_WRAPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "xor": np.bitwise_xor,
    "or": np.bitwise_or,
    "lshift": lambda x, n: np.where(n < 64, x << (n & 63), 0)[()],
}


def reduced(name: str, tree: Tree, leaves: tuple[Any, ...], by: Any) -> Any:
    """`tree % by` or `tree & by` (`name` is mod or and) of an expression of `leaves`."""
    numbers = (*leaves, by)
    if in_graph() and any(map(is_traced, numbers)) and all(map(_is_integer, numbers)):
        power = type(by) is int and by > 0 and by & (by - 1) == 0
        if name == "and" or power:
            mask = by - 1 if name == "mod" else by
            if _reach(mask)[0] >= 0 and all(_reach(n)[0] >= 0 for n in _shifts(tree, leaves)):
                return _exact(_evaluated(tree, leaves, _WRAPS) & _number(mask))
        elif _MODULAR.issuperset(_operations(tree)) and (is_traced(by) or by != 0):
            return _exact(_remainder(tree, leaves, by))
    return binary(name, _as_written(tree, leaves), by)


def pow_(base: Any, exponent: Any, *modulus: Any) -> Any:
    """`pow`"""
    numbers = (base, exponent, *modulus)
    if not in_graph() or not any(map(is_traced, numbers)):
        return pow(*numbers)
    if not modulus:
        return binary("pow", base, exponent)  # which looks whether it fits
    if not all(map(_is_integer, numbers)):
        return pow(*numbers)  # which says what is wrong
    check(_number(modulus[0]) != 0, "pow() 3rd argument cannot be 0", error="ValueError")

    def step(carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        power, square, left = carry
        power = cond(left & 1 == 1, lambda: _product(power, square, m), lambda: power)
        return power, _product(square, square, m), left >> 1

    m, times = _number(modulus[0]), _number(exponent)
    square = np.remainder(_number(base), m)
    if _reach(exponent)[0] < 0:
        fits = (times >= 0) | ((times >= LEAST + 1) & (m >= LEAST + 1))
        check(fits, "pow() of an exponent or a modulus of -2**63", error="OverflowError")
        square = cond(times < 0, lambda: np.remainder(_inverse(square, m), m), lambda: square)
        times = abs(times)
    start = (np.remainder(_number(1), m), square, times)
    return _exact(while_loop(lambda carry: carry[2] > 0, step, start)[0])


def _inverse(x: Any, m: Any) -> Any:
    """The number that gives 1 with `x` modulo `m`, by Euclid's algorithm, or ValueError."""

    def step(carry: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        before, rest, last, factor = carry
        times = before // rest
        return rest, before - times * rest, factor, last - times * factor

    start = abs(m), np.remainder(x, abs(m)), _number(0), _number(1)
    divisor, _, factor, _ = while_loop(lambda carry: carry[1] != 0, step, start)
    check(divisor == 1, "base is not invertible for the given modulus", error="ValueError")
    return factor


_MODULAR = frozenset(_FIT)


def _is_integer(x: Any) -> bool:
    if type(x) is int:
        return LEAST <= x <= MOST + 1
    return isinstance(x, Tracer) and x.weak == "i" and not x.shape


def _number(x: Any) -> Tracer:
    """A Python integer as one of NumPy's, which wraps."""
    return wrap(as_value(x, I64), None, scalar=True)


def _exact(x: Tracer) -> Tracer:
    """A Python integer that is what Python's would be, whatever it was computed of."""
    note_exact(x.value)
    return wrap(x.value, "i")


def _reach(x: Any) -> Interval:
    return (x, x) if isinstance(x, int) else remembered(x.value, require_trace().reaches)


def _operations(tree: Tree) -> list[str]:
    if isinstance(tree, int):
        return []
    return [tree[0], *_operations(tree[1]), *_operations(tree[2])]


def _shifts(tree: Tree, leaves: tuple[Any, ...]) -> list[Any]:
    """By how much it is shifted: a tree itself, which may be anything, as -1."""
    if isinstance(tree, int):
        return []
    own = []
    if tree[0] == "lshift":
        own = [leaves[tree[2]] if isinstance(tree[2], int) else -1]
    return [*own, *_shifts(tree[1], leaves), *_shifts(tree[2], leaves)]


def _as_written(tree: Tree, leaves: tuple[Any, ...]) -> Any:
    if isinstance(tree, int):
        return leaves[tree]
    return binary(tree[0], _as_written(tree[1], leaves), _as_written(tree[2], leaves))


def _evaluated(tree: Tree, leaves: tuple[Any, ...], how: dict[str, Callable[..., Any]]) -> Any:
    if isinstance(tree, int):
        return _number(leaves[tree])
    parts = (_evaluated(part, leaves, how) for part in tree[1:])
    return how[tree[0]](*parts)


def _remainder(tree: Tree, leaves: tuple[Any, ...], by: Any) -> Tracer:
    fits: list[Any] = []

    def checked(name: str) -> Callable[[Any, Any], Any]:
        def compute(x: Any, y: Any) -> Any:
            trace = require_trace()
            if not surely_fits(trace, _LONG[name], x.value, y.value):
                fits.append(wrap(trace.builder.op(_FIT[name], x.value, y.value), None))
            return _WRAPS[name](x, y)

        return compute

    m = _number(by)
    check_divisor("remainder", by, "i")
    value = _evaluated(tree, leaves, {name: checked(name) for name in _FIT})
    if not fits:
        return np.remainder(value, m)
    fit = fits[0]
    for other in fits[1:]:
        fit = fit & other
    how = {
        "add": lambda x, y: _sum(x, y, m),
        "sub": lambda x, y: _sum(x, _negative(y, m), m),
        "mul": lambda x, y: _product(x, y, m),
    }
    found: Tracer = cond(
        fit,
        lambda: np.remainder(value, m),
        lambda: np.remainder(_evaluated(tree, leaves, how), m),
    )
    if type(by) is int:
        note_reach(found.value, (0, by - 1) if by > 0 else (by + 1, 0))
    return found


def _negative(x: Any, m: Any) -> Any:
    rest = np.remainder(x, m)
    return np.where(rest == 0, 0, m - rest)[()]


def _sum(x: Any, y: Any, m: Any) -> Any:
    """`(x + y) % m`"""
    a, b = np.remainder(x, m), np.remainder(y, m)
    room = m - b
    passes = np.where(m > 0, a >= room, a <= room) & (b != 0)
    return np.where(passes, a - room, a + b)[()]


def _product(x: Any, y: Any, m: Any) -> Any:
    """`x * y % m`, of 128 bits."""
    divisor = _magnitude(m)
    rest = _rest_of_product(_magnitude(x), _magnitude(y), divisor)
    opposite = ((x < 0) != (y < 0)) != (m < 0)
    rest = np.where(opposite & (rest != 0), divisor - rest, rest).view(np.int64)[()]
    return np.where(m < 0, -rest, rest)[()]


def _magnitude(x: Any) -> Any:
    return np.where(x < 0, -x, x).view(np.uint64)[()]


_HALF = 32
_LOW = (1 << _HALF) - 1


def _rest_of_product(x: Any, y: Any, m: Any) -> Any:
    """`x * y % m` of unsigned numbers: the product in two words, then a long division by digits of 32
    bits (Knuth's algorithm D)."""
    high, low = _words(x, y)
    high = high % m
    # The divisor has its first bit set. Its place is the exponent of a float that is not rounded up.
    shift = 63 + 1023 - ((m & ~(m >> 1)).astype(np.float64).view(np.uint64)[()] >> 52)
    m = m << shift
    carried = np.where(shift == 0, 0, low >> ((64 - shift) & 63))[()]
    high, low = (high << shift) | carried, low << shift
    rest = _digit(high, low >> _HALF, m)
    return _digit(rest, low & _LOW, m) >> shift


def _words(x: Any, y: Any) -> tuple[Any, Any]:
    """A product of 128 bits: its words."""
    a, b, c, d = x >> _HALF, x & _LOW, y >> _HALF, y & _LOW
    first = b * d
    middle = a * d + (first >> _HALF)
    other = b * c + (middle & _LOW)
    high = a * c + (middle >> _HALF) + (other >> _HALF)
    return high, (other << _HALF) | (first & _LOW)


def _digit(rest: Any, digit: Any, m: Any) -> Any:
    """What is left of `rest * 2**32 + digit` for a divisor whose first bit is set, where rest < m."""
    first, second = m >> _HALF, m & _LOW
    quotient, left = rest // first, rest % first
    for _ in range(2):
        over = (quotient > _LOW) | (quotient * second > ((left << _HALF) | digit))
        over = over & (left <= _LOW)
        quotient = np.where(over, quotient - 1, quotient)[()]
        left = np.where(over, left + first, left)[()]
    return (rest << _HALF) + digit - quotient * m
