"""Numba: explicit loops under `njit(parallel=True, fastmath=True)`, constants in float32.

A bare 0.5 is a float64 there and would turn the kernel into double arithmetic. The small calls are
plain `njit`: a parallel region costs more than their work.
"""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import njit, prange

ROWS: dict[str, Callable[..., Any]] = {}

f4 = np.float32
HALF, ONE, FOUR, TENTH, EPSILON = f4(0.5), f4(1), f4(4), f4(0.1), f4(1e-5)
ROOT, CUBE = f4(0.79788456), f4(0.044715)
RATE, SIGMA, DRIFT, ROOT_HALF = f4(0.02), f4(0.3), f4(0.02 + 0.5 * 0.3 * 0.3), f4(0.5**0.5)


def version() -> str:
    return str(numba.__version__)


def prepare(row: str, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    return ROWS[row], inputs


def wait(result: Any) -> Any:
    return result


def row(parallel: bool = True) -> Callable[[Callable[..., Any]], Any]:
    def register(function: Callable[..., Any]) -> Any:
        compiled = njit(parallel=parallel, fastmath=True)(function)
        ROWS[function.__name__] = compiled
        return compiled

    return register


@row(parallel=False)
def call_1(x):
    return x + ONE


@row(parallel=False)
def call_3(x, y, z):
    return x * y + z


@row()
def gelu(x):
    out = np.empty_like(x)
    for i in prange(x.size):
        v = x[i]
        out[i] = HALF * v * (ONE + math.tanh(ROOT * (v + CUBE * v * v * v)))
    return out


@row()
def black_scholes(spot, strike, years):
    call, put = np.empty_like(spot), np.empty_like(spot)
    for i in prange(spot.size):
        spread = SIGMA * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + DRIFT * years[i]) / spread
        d2 = d1 - spread
        discounted = strike[i] * math.exp(-RATE * years[i])
        price = spot[i] * (HALF * (ONE + math.erf(d1 * ROOT_HALF))) - discounted * (
            HALF * (ONE + math.erf(d2 * ROOT_HALF))
        )
        call[i] = price
        put[i] = price + discounted - spot[i]
    return call, put


@row()
def softmax(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        largest = x[i, 0]
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = f4(0)
        for j in range(x.shape[1]):
            e = math.exp(x[i, j] - largest)
            out[i, j] = e
            total += e
        scale = ONE / total
        for j in range(x.shape[1]):
            out[i, j] *= scale
    return out


@row()
def layernorm(x, gain, bias):
    out = np.empty_like(x)
    n = f4(x.shape[1])
    for i in prange(x.shape[0]):
        total = f4(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / n
        squares = f4(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) ** 2
        scale = ONE / math.sqrt(squares / n + EPSILON)
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * scale * gain[j] + bias[j]
    return out


@row()
def logsumexp(x):
    out = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        largest = x[i, 0]
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = f4(0)
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - largest)
        out[i] = largest + math.log(total)
    return out


@row()
def sum_rows(x):
    out = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        total = f4(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total
    return out


@row()
def sum_columns(x):
    parts = numba.get_num_threads()
    partial = np.zeros((parts, x.shape[1]), x.dtype)
    for t in prange(parts):
        for i in range(t * x.shape[0] // parts, (t + 1) * x.shape[0] // parts):
            for j in range(x.shape[1]):
                partial[t, j] += x[i, j]
    return partial.sum(axis=0)


@row()
def distances(x):
    n = x.shape[0]
    out = np.empty((n, n), x.dtype)
    for i in prange(n):
        for j in range(n):
            a, b, c = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
            out[i, j] = math.sqrt(a * a + b * b + c * c)
    return out


@row()
def heat(u):
    u, new = u.copy(), u.copy()
    for _ in range(20):
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                new[i, j] = u[i, j] + TENTH * (around - FOUR * u[i, j])
        u, new = new, u
    return u


@row()
def dense(a, b, c):
    out = a @ b
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            v = out[i, j] + c[j]
            out[i, j] = HALF * v * (ONE + math.tanh(ROOT * (v + CUBE * v * v * v)))
    return out
