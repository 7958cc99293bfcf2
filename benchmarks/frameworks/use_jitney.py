"""jitney: `jt.jit` of the NumPy programs of `rows`, unchanged where they have no loop over steps and
no derivative written out by hand; those are written as its users would write them."""

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from ..rows import ROWS as DEFINITIONS
from ..rows import Array, Row, learning, loops, matrices, pointwise, sampling
from ..rows.indexing import BINS, VALUES
from ..rows.networks import sigmoid

ROWS: dict[str, Callable[..., Any]] = {
    row.implementation: row.program for row in DEFINITIONS.values()
}
ROWS["black_scholes"] = pointwise.black_scholes_with(jt.erf)


def version() -> str:
    return jt.__version__


def prepare(row: Row, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    return jt.jit(ROWS[row.implementation]), inputs


def wait(result: Any) -> Any:
    return result


def arrays(result: Any) -> Any:
    return result


def row(function: Callable[..., Any]) -> Callable[..., Any]:
    ROWS[function.__name__] = function
    return function


cross_entropy = matrices.cross_entropy
ROWS["cross_entropy_grad"] = jt.value_and_grad(cross_entropy)


@row
def heat(u: Array) -> Array:
    def step(_: Any, u: Array) -> Array:
        middle = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = middle + 0.1 * (around - 4 * middle)
        return u

    return jt.fori_loop(0, loops.HEAT_STEPS, step, u)


@row
def mandelbrot(cx: Array, cy: Array) -> Array:
    """One point at a time; `vmap` makes each lane of a vector stop at its own step."""

    def escape(cx: Any, cy: Any) -> Any:
        def bounded(state: Any) -> Any:
            count, x, y = state
            return (count < loops.MANDELBROT_STEPS) & (x * x + y * y <= 4)

        def step(state: Any) -> Any:
            count, x, y = state
            return count + 1, x * x - y * y + cx, 2 * x * y + cy

        return jt.while_loop(bounded, step, (np.int32(0), cx * 0, cy * 0))[0]

    return jt.vmap(jt.vmap(escape))(cx, cy)


@row
def newton(x: Array, n: int) -> Array:
    return jt.fori_loop(0, n, lambda _, x: 0.5 * (x + 2 / x), x)


@row
def fibonacci(a: Array, b: Array, n: int) -> Array:
    return jt.fori_loop(0, n, lambda _, pair: (pair[1], pair[0] + pair[1]), (a, b))[0]


@row
def scalar_scan_grad(a: Array, b: Array, xs: Array) -> tuple[Array, Array, Array]:
    def mean_square(a: Array, b: Array) -> Array:
        def step(state: tuple[Any, ...], x: Any) -> Any:
            new = tuple(np.tanh(a[k] * state[k - 1] + b[k] * x) for k in range(len(state)))
            return new, new

        start = tuple(a[0] * 0 for _ in range(loops.SCALARS))
        states = jt.scan(step, start, xs)[1]
        return sum(np.mean(s * s) for s in states) / loops.SCALARS

    value, (da, db) = jt.value_and_grad(mean_square, argnums=(0, 1))(a, b)
    return value, da, db


@row
def matrix_scan(start: Array, changes: Array) -> Array:
    def step(r: Array, change: Array) -> tuple[Array, None]:
        r = r + r @ (change - change.T)
        return r / np.sqrt((r * r).sum(axis=0)), None

    return jt.scan(step, start, changes)[0]


def regression_loss(w: Array, x: Array, y: Array) -> Array:
    z = x @ w
    return (np.logaddexp(0, z) - y * z).mean()


@row
def logistic_grad(w: Array, x: Array, y: Array) -> Array:
    return jt.grad(regression_loss)(w, x, y)


@row
def logistic_descent(w: Array, x: Array, y: Array) -> Array:
    def step(_: Any, w: Array) -> Array:
        return w - learning.RATE * jt.grad(regression_loss)(w, x, y)

    return jt.fori_loop(0, learning.DESCENT_STEPS, step, w)


def mlp_loss(weights: list[Array], x: Array, labels: Array) -> Array:
    layers = len(weights) // 2
    for i in range(layers):
        x = x @ weights[2 * i] + weights[2 * i + 1]
        x = np.maximum(x, 0) if i < layers - 1 else x
    return cross_entropy(x, labels)


@row
def mlp_adam(
    weights: list[Array], first: list[Array], second: list[Array], x: Array, labels: Array
) -> Any:
    loss, gradients = jt.value_and_grad(mlp_loss)(weights, x, labels)
    return loss, *learning.adam(weights, first, second, gradients)


@row
def lstm(x: Array, wx: Array, wh: Array, bias: Array) -> Array:
    def step(state: tuple[Array, Array], projected: Array) -> Any:
        h, c = state
        i, f, g, o = np.split(projected + h @ wh, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h, c), h

    zeros = np.zeros((x.shape[1], len(wh)), x.dtype)
    return jt.scan(step, (zeros, zeros), x @ wx + bias)[1]


@row
def lstm_grad(x: Array, wx: Array, wh: Array, bias: Array) -> tuple[Array, ...]:
    def loss(weights: Any) -> Array:
        return (lstm(x, *weights) ** 2).mean()

    value, gradients = jt.value_and_grad(loss)((wx, wh, bias))
    return (value, *gradients)


@row
def conv(x: Array, w: Array) -> Array:
    return jt.conv(x, w, padding="SAME")


@row
def conv_grad(x: Array, w: Array, cotangent: Array) -> tuple[Array, ...]:
    y, pull_back = jt.vjp(conv, x, w)
    return (y, *pull_back(cotangent))


@row
def conv_transpose(x: Array, w: Array) -> Array:
    return jt.conv_transpose(x, w, 2, padding=((2, 1), (2, 1)))


def causal(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


ROWS["attention"] = causal


@row
def attention_grad(q: Array, k: Array, v: Array, cotangent: Array) -> tuple[Array, ...]:
    out, pull_back = jt.vjp(causal, q, k, v)
    return (out, *pull_back(cotangent))


@row
def scatter_add(values: Array, bins: Array) -> Array:
    out = jt.zeros(BINS, values.dtype)
    np.add.at(out, bins, values)
    return out


@row
def unique(x: Array) -> Array:
    return jt.unique(x, size=VALUES)


@row
def bincount(x: Array) -> Array:
    return jt.bincount(x, length=BINS)


@row
def mean_of_exp(seed: Array) -> Array:
    key = jt.random.key(seed[0])
    return np.exp(jt.random.normal(key, (sampling.COUNT,), np.float32)).mean()


@row
def pi_by_chance(seed: Array) -> Array:
    x, y = jt.random.uniform(jt.random.key(seed[0]), (2, sampling.COUNT), np.float32)
    return (x * x + y * y < 1).mean()
