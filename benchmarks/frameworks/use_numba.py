"""Numba: explicit loops under `njit(parallel=True, fastmath=True)`, constants in the row's dtype.

A bare 0.5 is a float64 there and would turn a float32 kernel into double arithmetic; so a row is a
function of its float type. Small calls and scalar loops are plain `njit`: a parallel region costs more
than their work. There is no automatic differentiation; gradients that a user would write out by hand
are, the others are left out.
"""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from ..rows import Row, loops
from ..rows.indexing import BINS, LARGEST
from ..rows.learning import DESCENT_STEPS, RATE

ROWS: dict[str, Callable[..., Any]] = {}
"""Float type -> the compiled function."""

parallel = njit(parallel=True, fastmath=True)


def version() -> str:
    return str(numba.__version__)


def prepare(row: Row, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    function = ROWS[row.implementation](np.dtype(row.dtype).type)
    if row.implementation == "call_dict":
        return function, (tuple(inputs[0][key] for key in sorted(inputs[0])),)
    return function, tuple(a[()] if getattr(a, "ndim", 1) == 0 else a for a in inputs)


def wait(result: Any) -> Any:
    return result


def arrays(result: Any) -> Any:
    return result


def row(make: Callable[..., Any]) -> Callable[..., Any]:
    ROWS[make.__name__] = make
    return make


# Calls, elementwise


@row
def call_1(f):
    one = f(1)
    return njit(lambda x: x + one)


@row
def call_3(f):
    return njit(lambda x, y, z: x * y + z)


@row
def call_dict(f):
    """A tuple of 20: Numba has no cheap dict of arrays. Written out, as a loop is slower."""
    results = ", ".join(f"t[{i}] * two" for i in range(20))
    scope = {"two": f(2)}
    exec(f"def double(t): return ({results})", scope)
    return njit(scope["double"])


@row
def slices_500(f):
    @njit
    def run(x):
        total = np.zeros_like(x[0])
        for i in range(500):
            total += x[i]
        return total

    return run


@row
def axpb(f):
    one, two = f(1), f(2)

    @parallel
    def run(x):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = x[i] * two + one
        return out

    return run


def gelu_of(f):
    half, one, root, cube = f(0.5), f(1), f(0.79788456), f(0.044715)
    return njit(fastmath=True)(
        lambda v: half * v * (one + math.tanh(root * (v + cube * v * v * v)))
    )


@row
def gelu(f):
    function = gelu_of(f)

    @parallel
    def run(x):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = function(x[i])
        return out

    return run


@row
def black_scholes(f):
    half, one, root_half = f(0.5), f(1), f(0.5**0.5)
    rate, sigma, drift = f(0.02), f(0.3), f(0.02 + 0.5 * 0.3 * 0.3)

    @parallel
    def run(spot, strike, years):
        call, put = np.empty_like(spot), np.empty_like(spot)
        for i in prange(spot.size):
            spread = sigma * math.sqrt(years[i])
            d1 = (math.log(spot[i] / strike[i]) + drift * years[i]) / spread
            d2 = d1 - spread
            discounted = strike[i] * math.exp(-rate * years[i])
            price = spot[i] * (half * (one + math.erf(d1 * root_half))) - discounted * (
                half * (one + math.erf(d2 * root_half))
            )
            call[i] = price
            put[i] = price + discounted - spot[i]
        return call, put

    return run


# Matrices


@row
def softmax(f):
    zero, one = f(0), f(1)

    @parallel
    def run(x):
        out = np.empty_like(x)
        for i in prange(x.shape[0]):
            largest = x[i, 0]
            for j in range(x.shape[1]):
                largest = max(largest, x[i, j])
            total = zero
            for j in range(x.shape[1]):
                e = math.exp(x[i, j] - largest)
                out[i, j] = e
                total += e
            scale = one / total
            for j in range(x.shape[1]):
                out[i, j] *= scale
        return out

    return run


@row
def layernorm(f):
    zero, one, epsilon = f(0), f(1), f(1e-5)

    @parallel
    def run(x, gain, bias):
        out = np.empty_like(x)
        n = f(x.shape[1])
        for i in prange(x.shape[0]):
            total = zero
            for j in range(x.shape[1]):
                total += x[i, j]
            mean = total / n
            squares = zero
            for j in range(x.shape[1]):
                squares += (x[i, j] - mean) ** 2
            scale = one / math.sqrt(squares / n + epsilon)
            for j in range(x.shape[1]):
                out[i, j] = (x[i, j] - mean) * scale * gain[j] + bias[j]
        return out

    return run


def row_logsumexp(f):
    zero = f(0)

    @njit(fastmath=True)
    def run(x, i):
        largest = x[i, 0]
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = zero
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - largest)
        return largest + math.log(total)

    return run


@row
def logsumexp(f):
    of_row = row_logsumexp(f)

    @parallel
    def run(x):
        out = np.empty(x.shape[0], x.dtype)
        for i in prange(x.shape[0]):
            out[i] = of_row(x, i)
        return out

    return run


@row
def cross_entropy(f):
    of_row = row_logsumexp(f)

    @parallel
    def run(x, labels):
        loss = 0.0
        for i in prange(x.shape[0]):
            loss += of_row(x, i) - x[i, labels[i]]
        return loss / x.shape[0]

    return run


@row
def cross_entropy_grad(f):
    zero, one = f(0), f(1)

    @parallel
    def run(x, labels):
        loss, gradient, n = 0.0, np.empty_like(x), f(x.shape[0])
        for i in prange(x.shape[0]):
            largest = x[i, 0]
            for j in range(x.shape[1]):
                largest = max(largest, x[i, j])
            total = zero
            for j in range(x.shape[1]):
                e = math.exp(x[i, j] - largest)
                gradient[i, j] = e
                total += e
            loss += largest + math.log(total) - x[i, labels[i]]
            scale = one / (total * n)
            for j in range(x.shape[1]):
                gradient[i, j] *= scale
            gradient[i, labels[i]] -= one / n
        return loss / x.shape[0], gradient

    return run


@row
def sum_rows(f):
    zero = f(0)

    @parallel
    def run(x):
        out = np.empty(x.shape[0], x.dtype)
        for i in prange(x.shape[0]):
            total = zero
            for j in range(x.shape[1]):
                total += x[i, j]
            out[i] = total
        return out

    return run


@row
def sum_columns(f):
    @parallel
    def run(x):
        parts = 16
        partial = np.zeros((parts, x.shape[1]), x.dtype)
        for t in prange(parts):
            into = partial[t]
            for i in range(t * x.shape[0] // parts, (t + 1) * x.shape[0] // parts):
                for j in range(x.shape[1]):
                    into[j] += x[i, j]
        return partial.sum(axis=0)

    return run


@row
def sum_all(f):
    zero = f(0)

    @parallel
    def run(x):
        total = 0.0
        for i in prange(x.shape[0]):
            part = zero
            for j in range(x.shape[1]):
                part += x[i, j]
            total += part
        return f(total)

    return run


@row
def variance(f):
    zero = f(0)
    sum_of = sum_all(f)

    @parallel
    def run(x):
        mean = f(sum_of(x) / x.size)
        total = 0.0
        for i in prange(x.shape[0]):
            part = zero
            for j in range(x.shape[1]):
                d = x[i, j] - mean
                part += d * d
            total += part
        return f(total / x.size)

    return run


@row
def argmax(f):
    @parallel
    def run(x):
        out = np.empty(x.shape[0], np.int64)
        for i in prange(x.shape[0]):
            largest, where = x[i, 0], 0
            for j in range(x.shape[1]):
                if x[i, j] > largest:
                    largest, where = x[i, j], j
            out[i] = where
        return out

    return run


@row
def cumsum_columns(f):
    @parallel
    def run(x):
        out = np.empty_like(x)
        width = 256
        for block in prange((x.shape[1] + width - 1) // width):
            low, high = block * width, min((block + 1) * width, x.shape[1])
            out[0, low:high] = x[0, low:high]
            for i in range(1, x.shape[0]):
                for j in range(low, high):
                    out[i, j] = out[i - 1, j] + x[i, j]
        return out

    return run


@row
def cumsum_rows(f):
    zero = f(0)

    @parallel
    def run(x):
        out = np.empty_like(x)
        for i in prange(x.shape[0]):
            total = zero
            for j in range(x.shape[1]):
                total += x[i, j]
                out[i, j] = total
        return out

    return run


@row
def matmul_1024(f):
    @parallel
    def batched(a, b):
        out = np.zeros((a.shape[0], a.shape[1], b.shape[2]), a.dtype)
        for t in prange(a.shape[0]):
            for i in range(a.shape[1]):
                for k in range(a.shape[2]):
                    scale = a[t, i, k]
                    for j in range(b.shape[2]):
                        out[t, i, j] += scale * b[t, k, j]
        return out

    plain = njit(lambda a, b: np.dot(a, b))
    return lambda a, b: batched(a, b) if a.ndim == 3 else plain(a, b)


@row
def dense(f):
    function = gelu_of(f)

    @parallel
    def run(a, b, c):
        out = np.dot(a, b)
        for i in prange(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = function(out[i, j] + c[j])
        return out

    return run


@row
def distances(f):
    @parallel
    def run(x):
        n = x.shape[0]
        out = np.empty((n, n), x.dtype)
        xs, ys, zs = x[:, 0].copy(), x[:, 1].copy(), x[:, 2].copy()
        for i in prange(n):
            for j in range(n):
                a, b, c = xs[i] - xs[j], ys[i] - ys[j], zs[i] - zs[j]
                out[i, j] = math.sqrt(a * a + b * b + c * c)
        return out

    return run


@row
def n_body(f):
    zero, soft = f(0), f(1e-2)

    @parallel
    def run(x, mass):
        n = x.shape[0]
        out = np.empty((n, 3), x.dtype)
        xs, ys, zs = x[:, 0].copy(), x[:, 1].copy(), x[:, 2].copy()
        for i in prange(n):
            fx = fy = fz = zero
            for j in range(n):
                a, b, c = xs[j] - xs[i], ys[j] - ys[i], zs[j] - zs[i]
                squares = a * a + b * b + c * c + soft
                w = mass[j] / (squares * math.sqrt(squares))
                fx += w * a
                fy += w * b
                fz += w * c
            out[i, 0], out[i, 1], out[i, 2] = fx, fy, fz
        return out

    return run


# Loops


@row
def heat(f):
    tenth, four, steps = f(0.1), f(4), loops.HEAT_STEPS

    @parallel
    def run(u):
        u, new = u.copy(), u.copy()
        for _ in range(steps):
            for i in prange(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                    new[i, j] = u[i, j] + tenth * (around - four * u[i, j])
            u, new = new, u
        return u

    return run


@row
def mandelbrot(f):
    zero, two, four, limit = f(0), f(2), f(4), loops.MANDELBROT_STEPS

    @parallel
    def run(cx, cy):
        out = np.empty(cx.shape, np.int32)
        for i in prange(cx.shape[0]):
            for j in range(cx.shape[1]):
                x = y = zero
                n = 0
                while n < limit and x * x + y * y <= four:
                    x, y = x * x - y * y + cx[i, j], two * x * y + cy[i, j]
                    n += 1
                out[i, j] = n
        return out

    return run


@row
def newton(f):
    half, two = f(0.5), f(2)

    @njit
    def run(x, n):
        for _ in range(n):
            x = half * (x + two / x)
        return x

    return run


@row
def fibonacci(f):
    @njit
    def run(a, b, n):
        for _ in range(n):
            a, b = b, np.int32(a + b)
        return a

    return run


@row
def matrix_scan(f):
    @njit(fastmath=True)
    def run(start, changes):
        r, new = start.copy(), np.empty_like(start)
        for change in changes:
            for i in range(3):
                for j in range(3):
                    total = r[i, j]
                    for k in range(3):
                        total += r[i, k] * (change[k, j] - change[j, k])
                    new[i, j] = total
            for j in range(3):
                norm = math.sqrt(new[0, j] ** 2 + new[1, j] ** 2 + new[2, j] ** 2)
                for i in range(3):
                    r[i, j] = new[i, j] / norm
        return r

    return run


# Learning, networks


@row
def logistic_grad(f):
    """By hand, reading the matrix once."""
    zero, one = f(0), f(1)

    @parallel
    def run(w, x, y):
        parts, width = 16, x.shape[1]
        partial = np.zeros((parts, width), x.dtype)
        for t in prange(parts):
            into = partial[t]
            for i in range(t * x.shape[0] // parts, (t + 1) * x.shape[0] // parts):
                z = zero
                for j in range(width):
                    z += x[i, j] * w[j]
                residual = one / (one + math.exp(-z)) - y[i]
                for j in range(width):
                    into[j] += residual * x[i, j]
        return partial.sum(axis=0) / f(x.shape[0])

    return run


@row
def logistic_descent(f):
    gradient, rate, steps = logistic_grad(f), f(RATE), DESCENT_STEPS

    @njit
    def run(w, x, y):
        for _ in range(steps):
            w = w - rate * gradient(w, x, y)
        return w

    return run


@row
def lstm(f):
    one = f(1)

    @parallel
    def run(x, wx, wh, bias):
        steps, batch, features = x.shape
        hidden = wh.shape[0]
        projected = np.dot(x.reshape(steps * batch, features), wx)
        h, c = np.zeros((batch, hidden), x.dtype), np.zeros((batch, hidden), x.dtype)
        outputs = np.empty((steps, batch, hidden), x.dtype)
        for t in range(steps):
            z = np.dot(h, wh)
            for i in prange(batch):
                p = projected[t * batch + i]
                for j in range(hidden):
                    zi = z[i, j] + p[j] + bias[j]
                    zf = z[i, j + hidden] + p[j + hidden] + bias[j + hidden]
                    zg = z[i, j + 2 * hidden] + p[j + 2 * hidden] + bias[j + 2 * hidden]
                    zo = z[i, j + 3 * hidden] + p[j + 3 * hidden] + bias[j + 3 * hidden]
                    cell = c[i, j] / (one + math.exp(-zf))
                    cell += math.tanh(zg) / (one + math.exp(-zi))
                    c[i, j] = cell
                    out = math.tanh(cell) / (one + math.exp(-zo))
                    h[i, j] = out
                    outputs[t, i, j] = out
        return outputs

    return run


@row
def conv(f):
    """The neighbourhoods of an image as rows of a matrix, then one product per image."""

    @parallel
    def run(x, w):
        n, height, width, channels = x.shape
        filters = w.shape[3]
        flat = w.reshape(9 * channels, filters)
        out = np.empty((n, height, width, filters), x.dtype)
        for t in prange(n):
            seen = np.zeros((height * width, 9 * channels), x.dtype)
            for r in range(height):
                for c in range(width):
                    for i in range(3):
                        for j in range(3):
                            rr, cc = r + i - 1, c + j - 1
                            if 0 <= rr < height and 0 <= cc < width:
                                at = (i * 3 + j) * channels
                                seen[r * width + c, at : at + channels] = x[t, rr, cc]
            out[t] = np.dot(seen, flat).reshape(height, width, filters)
        return out

    return run


# Indices


@row
def sort(f):
    return njit(lambda x: np.sort(x))


@row
def top_100(f):
    count = LARGEST
    return njit(lambda x: np.sort(np.partition(x, len(x) - count)[-count:])[::-1])


@row
def gather(f):
    @parallel
    def run(x, indices):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = x[indices[i]]
        return out

    return run


@row
def scatter_add(f):
    """Bins of its own for each of two threads."""
    bins_count = BINS

    @parallel
    def run(values, bins):
        parts = 2
        partial = np.zeros((parts, bins_count), values.dtype)
        for t in prange(parts):
            into = partial[t]
            for i in range(t * values.size // parts, (t + 1) * values.size // parts):
                into[bins[i]] += values[i]
        return partial[0] + partial[1]

    return run
