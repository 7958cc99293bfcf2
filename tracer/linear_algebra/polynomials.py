"""NumPy's functions of polynomials, given by their coefficients, the highest power first."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...ir.types import F64, is_complex, is_inexact, is_small
from ..arrays import ufuncs
from ..arrays.common import array, build, check_values
from ..arrays.creation import vander
from ..arrays.elementwise import i0
from ..arrays.movement import concatenate
from ..arrays.table import function
from ..core.tracers import Tracer, wrap
from ..data.promotion import float_dtype, result_dtype
from ..functions.padding import pad
from ..functions.scans import cumprod
from .contraction import convolve
from .linalg import eigvals, inv, lstsq
from .products import matmul


def _coefficients(p: Any) -> Tracer:
    x = array(p)
    return x.reshape(1) if x.ndim == 0 else x


def _longer(p: Tracer, n: int) -> Tracer:
    return pad(p, [(n - len(p), 0)])


@function("polyadd")
def polyadd(a1: Any, a2: Any) -> Tracer:
    x, y = _coefficients(a1), _coefficients(a2)
    n = max(len(x), len(y))
    return _longer(x, n) + _longer(y, n)


@function("polysub")
def polysub(a1: Any, a2: Any) -> Tracer:
    x, y = _coefficients(a1), _coefficients(a2)
    n = max(len(x), len(y))
    return _longer(x, n) - _longer(y, n)


@function("polymul")
def polymul(a1: Any, a2: Any) -> Tracer:
    x, y = (_coefficients(a) for a in (a1, a2))
    none = np.zeros(1)
    return convolve(x if x.size else none, y if y.size else none)


@function("polydiv")
def polydiv(u: Any, v: Any) -> tuple[Tracer, Tracer]:
    """Quotient and remainder, from which leading zeros are stripped: how many is a value."""
    x, y = _coefficients(u), _coefficients(v)
    dtype = result_dtype(*(float_dtype(p.dtype) for p in (x, y)))
    rest, divisor = x.astype(dtype), y.astype(dtype)
    m, n = len(rest) - 1, len(divisor) - 1
    factors, scale = [], 1.0 / divisor[0]
    for k in range(m - n + 1):
        factor = scale * rest[k]
        factors.append(factor.reshape(1))
        rest = concatenate([rest[:k], rest[k : k + n + 1] - factor * divisor, rest[k + n + 1 :]])
    small = ufuncs.apply(np.absolute, rest[:-1]) <= 1e-8
    zeros = cumprod(small).sum() if len(rest) > 1 else 0
    return concatenate(factors) if factors else array(np.zeros(1, dtype)), rest[zeros:]


@function("polyder")
def polyder(p: Any, m: int = 1) -> Tracer:
    m = operator.index(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    x = _coefficients(p)
    for _ in range(m):
        n = len(x) - 1
        x = x[:-1] * np.arange(n, 0, -1)
    return x


@function("polyint")
def polyint(p: Any, m: int = 1, k: Any = None) -> Tracer:
    m = operator.index(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = array(np.zeros(max(m, 1)) if k is None else k).reshape(-1)
    if len(constants) == 1 and m > 1:
        constants = constants * np.ones(m)
    if len(constants) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    x = _coefficients(p)
    for i in range(m):
        n = len(x)
        x = concatenate([x / np.arange(n, 0, -1), constants[i : i + 1]])
    return x


@function("poly")
def poly(seq_of_zeros: Any) -> Tracer:
    """Of real numbers, or a real matrix, real coefficients; of complex ones always complex ones."""
    x = array(seq_of_zeros)
    if x.shape == (0,):
        return wrap(build().const(1.0))
    if not is_inexact(x.dtype) or is_small(x.dtype):
        x = x.astype(F64)
    real = not is_complex(x.dtype)
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.shape[0]:
        x = eigvals(x)
    elif x.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    one = array(np.ones(1, x.dtype))
    coefficients = one
    for i in range(len(x)):
        coefficients = convolve(coefficients, concatenate([one, -x[i : i + 1]]))
    return coefficients.real if real and is_complex(coefficients.dtype) else coefficients


@function("roots")
def roots(p: Any) -> Tracer:
    """Complex always, and all `len(p) - 1` of them: NumPy strips zeros at both ends by value. A leading
    zero is a ValueError, a trailing one gives a root 0."""
    x = _coefficients(p)
    if x.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    n = len(x) - 1
    if n < 1:
        return array(np.zeros(0, np.complex128))
    check_values(x[0] != 0, "the first coefficient is 0: the number of roots depends on values")
    x = x if is_inexact(x.dtype) else x.astype(F64)
    first = (-x[1:] / x[0]).reshape(1, n)
    companion = concatenate([first, np.eye(n - 1, n, dtype=x.dtype)], 0)
    return eigvals(companion)


@function("polyfit")
def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """np.polyfit; the degree is an int."""
    order = operator.index(deg) + 1
    a, b = array(x) + 0.0, array(y) + 0.0
    if order < 1:
        raise ValueError("expected deg >= 0")
    if a.ndim != 1 or a.size == 0:
        raise TypeError("expected non-empty vector for x")
    if b.ndim not in (1, 2) or len(a) != len(b):
        raise TypeError("expected x and y to have same length, y of one or two dims")
    if rcond is None:
        rcond = len(a) * float(np.finfo(a.dtype).eps)
    left, right = vander(a, order), b
    if w is not None:
        weights = array(w) + 0.0
        left = left * weights[:, None]
        right = right * (weights[:, None] if right.ndim == 2 else weights)
    scale = (left * left).sum(axis=0) ** 0.5
    left = left / scale
    c, residuals, rank, s = lstsq(left, right, rcond)
    c = (c.T / scale).T
    if full:
        return c, residuals, rank, s, rcond
    if not cov:
        return c
    base = inv(matmul(left.T, left)) / (scale[:, None] * scale[None, :])
    factor: Any = 1.0
    if cov != "unscaled":
        if len(a) <= order:
            raise ValueError(
                "the number of data points must exceed order to scale the covariance matrix"
            )
        factor = residuals / (len(a) - order)
    if b.ndim == 1:
        return c, base * factor
    return c, base[:, :, None] * factor


# Windows of signals, and functions by place


def _enter_window(name: str) -> None:
    plain = getattr(np, name)
    function(name, creates=True)(lambda M: array(plain(operator.index(M))))


for _name in ("bartlett", "blackman", "hamming", "hanning"):
    _enter_window(_name)


@function("kaiser", creates=True)
def kaiser(M: int, beta: Any) -> Tracer:
    count = operator.index(M)
    if count == 1:
        return array(np.ones(1))
    middle = (count - 1) / 2.0
    shape = np.sqrt(1 - ((np.arange(0, count) - middle) / middle) ** 2.0)
    strength = array(beta) + 0.0
    window: Tracer = i0(strength * shape) / i0(strength)
    return window
