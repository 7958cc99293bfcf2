"""Algebra on elements: identities of arithmetic, logic, comparisons and choices.

Each rule stands under its identity. "Exact" means equal to the bit for all inputs, infinities,
NaNs and signed zeros included; only the sign and payload of a NaN are not kept. `ALGEBRA` is exact,
or more accurate than what it replaces as noted. `INEXACT` runs only under `fastmath`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...graph import Op
from ...types import I64
from .patterns import pattern
from .rewrite import UNIFORM, Replacement, Rewriter, Rule, on, producer, uniform


def _divide_by_power_of_two(b: Rewriter, op: Op) -> Replacement:
    x, y = op.operands
    divisor = uniform(y)
    mantissa, exponent = math.frexp(divisor)
    if abs(mantissa) != 0.5 or abs(exponent) > (100 if x.dtype.itemsize == 4 else 1000):
        return None
    return b.mul(x, b.full_like(y, 1 / float(divisor)))


def _log2(divisor: Any) -> int | None:
    n = int(divisor)
    return n.bit_length() - 1 if n > 0 and n & (n - 1) == 0 else None


def _floor_divide_by_power_of_two(b: Rewriter, op: Op) -> Replacement:
    x, y = op.operands
    shift = _log2(uniform(y)) if x.dtype.kind in "iu" else None
    return None if shift is None else b.right_shift(x, b.full_like(y, shift))


def _remainder_by_power_of_two(b: Rewriter, op: Op) -> Replacement:
    x, y = op.operands
    shift = _log2(uniform(y)) if x.dtype.kind in "iu" else None
    return None if shift is None else b.bitwise_and(x, b.full_like(y, (1 << shift) - 1))


def _sign_into_constant(b: Rewriter, op: Op) -> Replacement:
    x, y = op.operands
    if producer(x, "neg") is None:
        x, y = y, x
    inner = producer(x, "neg")
    assert inner is not None
    if uniform(y) is None:
        return None
    flipped = b.neg(y)
    if op.name == "div" and x is op.operands[1]:
        return b.div(flipped, inner.operands[0])
    return b.op(op.name, inner.operands[0], flipped)


def _multiply_by_reciprocal(b: Rewriter, op: Op) -> Replacement:
    x, y = op.operands
    with np.errstate(all="ignore"):
        inverse = 1 / uniform(y)
    return b.mul(x, b.full_like(y, inverse)) if np.isfinite(inverse) else None


def _convert(b: Rewriter, op: Op) -> Replacement:
    (x,) = op.operands
    return x if x.dtype == op.attrs["dtype"] else None


def _few_to_uint32(b: Rewriter, op: Op) -> Replacement:
    """float -> uint32, as NumPy converts what its loop over groups of four leaves: by way of int64.

    That matters out of range only, where the groups get what their vector instructions give.
    """
    (x,), (result,) = op.operands, op.results
    if result.dtype != np.uint32 or x.dtype.kind != "f" or math.prod(x.shape) >= 4:
        return None
    return b.convert(b.convert(x, dtype=I64), dtype=result.dtype)


def _convert_convert(b: Rewriter, op: Op) -> Replacement:
    """x -> via -> to: directly, if `via` keeps x's value, or if bits are only dropped twice."""
    inner = producer(op.operands[0], "convert")
    assert inner is not None
    x, via, to = inner.operands[0], inner.results[0].dtype, np.dtype(op.attrs["dtype"])
    if _keeps_values(x.dtype, via) and (to.kind in "fb" or x.dtype.kind in "biu"):
        return b.convert(x, dtype=to)
    integers = all(d.kind in "iu" for d in (x.dtype, via, to))
    if integers and to.itemsize <= via.itemsize:
        return b.convert(x, dtype=to)
    return None


def _narrow_widen(b: Rewriter, op: Op) -> Replacement:
    """The bits themselves, where they are read and rounded to what they were."""
    inner = producer(op.operands[0], "widen")
    assert inner is not None
    return inner.operands[0] if inner.attrs["dtype"] == op.attrs["dtype"] else None


def _keeps_values(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether each value of `source` is one of `target` (NumPy calls int64 to float64 safe)."""
    if source.kind in "iu" and target.kind == "f":
        return source.itemsize * 8 <= (24 if target.itemsize == 4 else 53)
    if target.kind in "iu" and source.kind == "f":
        return False
    return np.can_cast(source, target, "safe")


def _rules(*lines: str | Rule) -> list[Rule]:
    return [
        rule for line in lines for rule in ([line] if isinstance(line, Rule) else pattern(line))
    ]


NEUTRAL = (
    # x * 1 = x / 1 = x. Exact.
    "mul(x, 1) -> x",
    "div(x, 1) -> x",
    "floor_divide(x:int, 1) -> x",
    # x + 0 = x: exact for integers; for floats only with -0.0, because -0.0 + 0.0 is 0.0.
    "add(x:int, 0) -> x",
    "add(x, -0.0) -> x",
    # x - 0 = x. Exact, also for x = -0.0.
    "sub(x, 0) -> x",
    # x | 0 = x ^ 0 = x << 0 = x >> 0 = x. Exact.
    "bitwise_or(x, 0) -> x",
    "bitwise_xor(x, 0) -> x",
    "left_shift(x, 0) -> x",
    "right_shift(x, 0) -> x",
    # x & ~0 = x. Exact.
    "bitwise_and(x, -1) -> x",
    # Logic. Exact.
    "bitwise_and(x, true) -> x",
    "bitwise_or(x, false) -> x",
    "bitwise_xor(x, false) -> x",
    "bitwise_xor(x, true) -> invert(x)",
    "eq(x, true) -> x",
    "ne(x, false) -> x",
    "eq(x, false) -> invert(x)",
    "ne(x, true) -> invert(x)",
)
ABSORBING = (
    # x * 0 = 0: exact for integers; a float may be NaN, infinite or negative.
    "mul(x:int, 0) -> 0",
    # x & 0 = 0, x % 1 = 0. Exact.
    "bitwise_and(x, 0) -> 0",
    "bitwise_and(x, false) -> false",
    "bitwise_or(x, true) -> true",
    "remainder(x:int, 1) -> 0",
    "fmod(x:int, 1) -> 0",
    # Nothing unsigned is below 0. Exact.
    "lt(x:uint, 0) -> false",
    "ge(x:uint, 0) -> true",
)
EQUAL_OPERANDS = (
    # x - x = x ^ x = 0: exact for integers; inf - inf is NaN.
    "sub(x:int, x) -> 0",
    "bitwise_xor(x:int, x) -> 0",
    "bitwise_xor(x:bool, x) -> false",
    # x & x = x | x = max(x, x) = min(x, x) = x. Exact.
    "bitwise_and(x, x) -> x",
    "bitwise_or(x, x) -> x",
    "maximum(x, x) -> x",
    "minimum(x, x) -> x",
    "fmax(x, x) -> x",
    "fmin(x, x) -> x",
    # x == x: exact for integers and bools; NaN differs from itself.
    "eq(x:int, x) -> true",
    "le(x:int, x) -> true",
    "ge(x:int, x) -> true",
    "ne(x:int, x) -> false",
    # x < x = false. Exact, also for NaN.
    "lt(x, x) -> false",
    "gt(x, x) -> false",
)
SIGNS = (
    # x * -1 = x / -1 = 0 - x = -x: exact; for floats -0.0 - x, because 0.0 - 0.0 is 0.0.
    "mul(x, -1) -> neg(x)",
    "div(x, -1) -> neg(x)",
    "sub(-0.0, x) -> neg(x)",
    "sub(0, x:int) -> neg(x)",
    # -(-x) = x, ||x|| = |x|, |-x| = |x| unless unsigned. Exact (integers wrap the same way).
    "neg(neg(x)) -> x",
    "abs(neg(x:signed)) -> abs(x)",
    "abs(neg(x:float)) -> abs(x)",
    "abs(abs(x)) -> abs(x)",
    # x + -y = x - y, x - -y = x + y. Exact.
    "add(x, neg(y)) -> sub(x, y)",
    "sub(x, neg(y)) -> add(x, y)",
    # -(x - y) = y - x: exact for integers; floats would lose the sign of zero.
    "neg(sub(x:int, y)) -> sub(y, x)",
    # -x * -y = x * y, -x / -y = x / y, |x| * |x| = x * x. Exact.
    "mul(neg(x), neg(y)) -> mul(x, y)",
    "div(neg(x), neg(y)) -> div(x, y)",
    "mul(abs(x), abs(x)) -> mul(x, x)",
    # -x * c = x * -c, -x / c = x / -c, c / -x = -c / x for a constant c. Exact.
    on("mul", _sign_into_constant, of="neg", at=0),
    on("mul", _sign_into_constant, of="neg", at=1),
    on("div", _sign_into_constant, of="neg", at=0),
    on("div", _sign_into_constant, of="neg", at=1),
)
IDEMPOTENT = (
    # f(f(x)) = f(x). Exact.
    "floor(floor(x)) -> floor(x)",
    "ceil(ceil(x)) -> ceil(x)",
    "trunc(trunc(x)) -> trunc(x)",
    "rint(rint(x)) -> rint(x)",
    "sign(sign(x)) -> sign(x)",
)
LOGIC = (
    # ~~x = x. Exact.
    "invert(invert(x)) -> x",
    # not (x == y) = (x != y). Exact, also for NaN.
    "invert(eq(x, y)) -> ne(x, y)",
    "invert(ne(x, y)) -> eq(x, y)",
    # not (x < y) = (x >= y): exact for integers; with a NaN both comparisons are false.
    "invert(lt(x:int, y)) -> ge(x, y)",
    "invert(le(x:int, y)) -> gt(x, y)",
    "invert(gt(x:int, y)) -> le(x, y)",
    "invert(ge(x:int, y)) -> lt(x, y)",
)
CHOICES = (
    # A choice that is known. Exact.
    "select(true, x, y) -> x",
    "select(false, x, y) -> y",
    "select(c, x, x) -> x",
    # A choice among truths is the condition. Exact.
    "select(c, true, false) -> c",
    "select(c, false, true) -> invert(c)",
    # not c ? x : y = c ? y : x. Exact.
    "select(invert(c), x, y) -> select(c, y, x)",
    # The same condition again. Exact.
    "select(c, select(c, x, y), z) -> select(c, x, z)",
    "select(c, x, select(c, y, z)) -> select(c, x, z)",
)
POWERS = (
    # x ** 0 = 1, also for NaN, as in NumPy. Exact.
    "pow(x, 0) -> 1",
    "pow(x, -0.0) -> 1",
    # x ** 1 = x. Exact.
    "pow(x, 1) -> x",
    # x ** 2 = x * x: exact for integers; rounded once, as NumPy does it, and better than any pow.
    "pow(x, 2) -> mul(x, x)",
    # x ** -1 = 1 / x: rounded once, as NumPy does it.
    "pow(x:float, -1) -> div(1, x)",
    # x ** 3 = x * x * x: exact for integers; for floats at most 1.3 ULP, overflow and underflow as
    # in pow (only a result that is already 0 or infinite has a factor that is).
    "pow(x, 3) -> mul(mul(x, x), x)",
    # x ** 4 = (x * x) ** 2: exact for integers.
    "pow(x:int, 4) -> mul(mul(x, x), mul(x, x))",
    # 1 ** x = 1, also for NaN, as in NumPy. Exact.
    "pow(1, x:float) -> 1",
)
DIVISIONS = (
    # x / 2^k = x * 2^-k: both round the same real number once. Exact, where 2^-k is normal.
    on("div", _divide_by_power_of_two, of=UNIFORM, at=1),
    # x // 2^k = x >> k and x % 2^k = x & (2^k - 1) for integers, negative ones too. Exact.
    on("floor_divide", _floor_divide_by_power_of_two, of=UNIFORM, at=1),
    on("remainder", _remainder_by_power_of_two, of=UNIFORM, at=1),
)
CONVERSIONS = (
    # A conversion to the dtype that x has. Exact.
    on("convert", _convert),
    # A few floats as uint32. Exact: what is in range is in range of int64.
    on("convert", _few_to_uint32),
    # A detour over a wider dtype, or dropping bits in two steps. Exact.
    on("convert", _convert_convert, of="convert"),
    # narrow(widen(x)) = x, but for what tells one NaN from another
    on("narrow", _narrow_widen, of="widen"),
)
ALGEBRA = _rules(
    *NEUTRAL,
    *ABSORBING,
    *EQUAL_OPERANDS,
    *SIGNS,
    *IDEMPOTENT,
    *LOGIC,
    *CHOICES,
    *POWERS,
    *DIVISIONS,
    *CONVERSIONS,
)

INEXACT = _rules(
    # x + 0 = x: loses that -0.0 + 0.0 is 0.0.
    "add(x, 0) -> x",
    # x * 0 = 0, x - x = 0: wrong where x is infinite or NaN.
    "mul(x, 0) -> 0",
    "sub(x, x) -> 0",
    # x / c = x * (1 / c): two roundings.
    on("div", _multiply_by_reciprocal, of=UNIFORM, at=1),
    # x ** 0.5 = sqrt(x): differs at -0.0 and -inf.
    "pow(x, 0.5) -> sqrt(x)",
    # x ** 4, x ** -2: a few ULP, and overflow of x * x.
    "pow(x, 4) -> mul(mul(x, x), mul(x, x))",
    "pow(x:float, -2) -> div(1, mul(x, x))",
    # exp(log x) = x, log(exp x) = x: rounding, and x outside of the domain.
    "exp(log(x)) -> x",
    "log(exp(x)) -> x",
    # -(x - y) = y - x: the sign of zero.
    "neg(sub(x, y)) -> sub(y, x)",
)
