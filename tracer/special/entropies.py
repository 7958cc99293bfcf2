"""Logistic functions, x log y and entropies, and the softmax family."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.types import F32, F64, is_float, is_small
from ..arrays.common import array, check_real
from ..arrays.elementwise import where
from ..arrays.reductions import max_, sum_
from ..arrays.table import function
from ..core.tracers import as_value, wrap
from .arithmetic import log1p_rest, value_of
from .formulas import formula
from .operands import special


@special("expit", wide=False, example="0.0 -> 0.5")
@formula
def _expit(x: Any) -> Any:
    """The logistic function 1 / (1 + exp(-x))."""
    e = np.exp(-abs(x))
    return where(x < 0, e, 1.0) / (1.0 + e)


@special("log_expit", wide=False, example="0.0 -> -0.6931471805599453")
@formula
def _log_expit(x: Any) -> Any:
    """The logarithm of `expit`."""
    return np.minimum(x, 0.0) - np.log1p(np.exp(-abs(x)))


@special("logit", wide=False, example="0.25 -> -1.0986122886681098")
@formula
def _logit(p: Any) -> Any:
    """log(p / (1 - p)), the inverse of `expit`; NaN outside of 0..1."""
    middle = (p > 0.3) & (p < 0.65)
    s = 2.0 * (where(middle, p, 0.5) - 0.5)
    near = np.log1p(s) - np.log1p(-s)
    q = where(middle, 0.25, p)
    return where(middle, near, np.log(q / (1.0 - q)))


_expit.defjvps(lambda t, z, x: t * (z * _expit(-x)))
_log_expit.defjvps(lambda t, z, x: t * _expit(-x))
_logit.defjvps(lambda t, z, p: t / (p * (1.0 - p)))


def _x_log(x: Any, y: Any, plus: float) -> Any:
    """x log(plus + y), 0 where x is 0 and y is no NaN."""
    zero = (x == 0) & np.logical_not(np.isnan(y))
    y = where(zero, 1.0, y)
    return where(zero, 0.0, x * (np.log1p(y) if plus else np.log(y)))


def _complex_xlogy(x: Any, y: Any) -> Any:
    return where(x == 0, where(np.isnan(y), y, 0.0), x * np.log(where(x == 0, 1.0, y)))


def _complex_xlog1py(x: Any, y: Any) -> Any:
    return where(x == 0, where(np.isnan(y), y, 0.0), x * np.log1p(where(x == 0, 0.0, y)))


@special("xlogy", wide=False, of_complex=_complex_xlogy, example="2.0, 1.0 -> 0.0")
@formula
def _xlogy(x: Any, y: Any) -> Any:
    """x log(y); 0 where x is 0, unless y is NaN."""
    return _x_log(x, y, 0.0)


@special("xlog1py", wide=False, of_complex=_complex_xlog1py, example="2.0, 0.0 -> 0.0")
@formula
def _xlog1py(x: Any, y: Any) -> Any:
    """x log1p(y); 0 where x is 0, unless y is NaN."""
    return _x_log(x, y, 1.0)


@formula
def _over(x: Any, y: Any) -> Any:
    """x / y; 0 where both are, though its derivative by x is infinite there."""
    return x / where((x == 0) & (y == 0), 1.0, y)


_over.defjvps(lambda t, z, x, y: t / y, lambda t, z, x, y: -(t * _over(z, y)))


_xlogy.defjvps(lambda t, z, x, y: t * np.log(y), lambda t, z, x, y: t * _over(x, y))
_xlog1py.defjvps(lambda t, z, x, y: t * np.log1p(y), lambda t, z, x, y: t * _over(x, 1.0 + y))


def _log_quotient(x: Any, y: Any) -> Any:
    """log(x / y) of positive numbers, with its digits where they are nearly equal."""
    q = x / y
    plain = (q > 0) & (q < math.inf)
    near = (x > 0.5 * y) & (x < 2.0 * y)
    apart = np.log(where(plain, q, 1.0))
    split = np.log(x) - np.log(y)
    close = np.log1p(where(near, (x - y) / where(near, y, 1.0), 0.0))
    return where(near, close, where(plain, apart, split))


@special("rel_entr", wide=False, example="1.0, 2.0 -> -0.6931471805599453")
@formula
def _rel_entr(x: Any, y: Any) -> Any:
    """x log(x / y) of positive numbers; 0 for x = 0 <= y, else infinite."""
    inside = (x > 0) & (y > 0)
    a, b = where(inside, x, 1.0), where(inside, y, 1.0)
    value = where(inside, a * _log_quotient(a, b), math.inf)
    value = where((x == 0) & (y >= 0), 0.0, value)
    return where(np.isnan(x) | np.isnan(y), math.nan, value)


_rel_entr.defjvps(
    lambda t, z, x, y: t * (np.log(x / y) + 1.0), lambda t, z, x, y: t * (-_over(x, y))
)


@special("kl_div", wide=False, example="1.0, 2.0 -> 0.3068528194400546")
@formula
def _kl_div(x: Any, y: Any) -> Any:
    """x log(x / y) - x + y of positive numbers; y for x = 0 <= y, else infinite."""
    near = (x > 0) & (x > 0.7 * y) & (x < 1.4 * y) & (x < math.inf)
    a = where(near, x, 1.0)
    close = -a * log1p_rest((where(near, y, 1.0) - a) / a)
    value = _rel_entr(x, y)
    return where(near, close, where(value == math.inf, value, value - x + y))


_kl_div.defjvps(lambda t, z, x, y: t * np.log(x / y), lambda t, z, x, y: t * (1.0 - _over(x, y)))


@special("entr", wide=False, example="0.5 -> 0.34657359027997264")
def entr(x: Any) -> Any:
    """-x log(x); 0 at 0, and -inf below."""
    return where(x < 0, -math.inf, -_xlogy(x, where(x < 0, 1.0, x)))


def _floats(name: str, x: Any) -> tuple[Any, Any]:
    """The array, wide enough for sums, and the dtype of the result."""
    a = array(x)
    check_real(name, a)
    dtype = a.dtype if is_float(a.dtype) else F64
    return a.astype(F32 if is_small(dtype) else dtype), dtype


def _top(a: Any, axis: Any) -> Any:
    """The largest elements, 0 where they are infinite; they have no derivative."""
    if a.size == 0:
        return sum_(a, axis=axis, keepdims=True)
    top = value_of(max_(a, axis=axis, keepdims=True))
    return where(np.isfinite(top), top, 0.0)


def _log_of_sum(a: Any, weights: Any, axis: Any) -> tuple[Any, Any]:
    """log |sum(weights exp(a))| and the sum's sign, with the axes that were summed kept."""
    if weights is not None:
        a = where(weights == 0, -math.inf, a)
    top = _top(a, axis)
    terms = np.exp(a - top)
    total = sum_(terms if weights is None else weights * terms, axis=axis, keepdims=True)
    some = total != 0
    logarithm = np.log(abs(where(some, total, 1.0)))
    return where(some, logarithm + top, -math.inf), np.sign(value_of(total))


@function("special.logsumexp", composed=True)
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b * exp(a))) along `axis` (None: all), where exp(a) may be too large for a float.

    b: weights, broadcast against `a`. A negative sum gives NaN, or with `return_sign` a pair: the
    logarithm of its size, and its sign.

        >>> jt.special.logsumexp(np.array([1000.0, 1000.0]))
        np.float64(1000.6931471805599)
    """
    x, dtype = _floats("logsumexp", a)
    weights = None
    if b is not None:
        weights, other = _floats("logsumexp", b)
        dtype = np.promote_types(dtype, other)
        both = np.promote_types(x.dtype, weights.dtype)
        x, weights = np.broadcast_arrays(x.astype(both), weights.astype(both))
    logarithm, sign = _log_of_sum(x, weights, axis)
    if not keepdims:
        axes = tuple(range(x.ndim)) if axis is None else axis
        logarithm, sign = np.squeeze(logarithm, axes), np.squeeze(sign, axes)
    if return_sign:
        return wrap(as_value(logarithm, dtype)), wrap(as_value(sign, dtype))
    value = where(sign < 0, math.nan, logarithm) if b is not None else logarithm
    return wrap(as_value(value, dtype))


@function("special.softmax", composed=True)
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along `axis` (None: all).

    >>> jt.special.softmax(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """
    a, dtype = _floats("softmax", x)
    terms = np.exp(a - value_of(_peak(a, axis)))
    return (terms / sum_(terms, axis=axis, keepdims=True)).astype(dtype)


@function("special.log_softmax", composed=True)
def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of `softmax`, with all its digits.

    >>> jt.special.log_softmax(np.array([0.0, 0.0]))
    array([-0.69314718, -0.69314718])
    """
    a, dtype = _floats("log_softmax", x)
    shifted = a - _top(a, axis)
    return (shifted - np.log(sum_(np.exp(shifted), axis=axis, keepdims=True))).astype(dtype)


def _peak(a: Any, axis: Any) -> Any:
    return max_(a, axis=axis, keepdims=True) if a.size else 0.0 * sum_(a, axis, keepdims=True)
