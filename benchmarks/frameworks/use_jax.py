"""JAX: `jax.jit` of the idiomatic program on arrays that are on the device already."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erf

from ..rows import Row, learning, loops, map_arrays, sampling
from ..rows.indexing import BINS, EDGES, LARGEST, VALUES

Array = jax.Array
ROWS: dict[str, Callable[..., Any]] = {}


def version() -> str:
    return jax.__version__


def prepare(row: Row, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    jax.config.update("jax_enable_x64", row.dtype == "float64")
    function = ROWS[row.implementation]
    on_device = tuple(map_arrays(jax.device_put, part) for part in inputs)
    static = tuple(i for i, part in enumerate(inputs) if isinstance(part, int))
    return jax.jit(function, static_argnums=static), on_device


def wait(result: Any) -> Any:
    return jax.block_until_ready(result)


def arrays(result: Any) -> Any:
    return jax.tree.map(np.asarray, result)


def row(function: Callable[..., Any]) -> Callable[..., Any]:
    ROWS[function.__name__] = function
    return function


# Calls, elementwise


@row
def call_1(x: Array) -> Array:
    return x + 1


@row
def call_3(x: Array, y: Array, z: Array) -> Array:
    return x * y + z


@row
def call_dict(tree: dict[str, Array]) -> dict[str, Array]:
    return {key: value * 2 for key, value in tree.items()}


@row
def slices_500(x: Array) -> Array:
    total = jnp.zeros_like(x[0])
    for i in range(500):
        total = total + x[i]
    return total


@row
def axpb(x: Array) -> Array:
    return x * 2 + 1


@row
def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + jnp.tanh(0.79788456 * (x + 0.044715 * x**3)))


@row
def black_scholes(spot: Array, strike: Array, years: Array) -> tuple[Array, Array]:
    rate, sigma = 0.02, 0.3
    spread = sigma * jnp.sqrt(years)
    d1 = (jnp.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / spread
    discounted = strike * jnp.exp(-rate * years)

    def cdf(d: Array) -> Array:
        return 0.5 * (1 + erf(d * 0.5**0.5))

    call = spot * cdf(d1) - discounted * cdf(d1 - spread)
    return call, call + discounted - spot


# Matrices


@row
def softmax(x: Array) -> Array:
    return jax.nn.softmax(x, axis=1)


@row
def layernorm(x: Array, gain: Array, bias: Array) -> Array:
    d = x - x.mean(axis=1, keepdims=True)
    return d * lax.rsqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * gain + bias


@row
def logsumexp(x: Array) -> Array:
    return jax.nn.logsumexp(x, axis=1)


@row
def cross_entropy(x: Array, labels: Array) -> Array:
    chosen = jnp.take_along_axis(x, labels[:, None], axis=1)[:, 0]
    return (jax.nn.logsumexp(x, axis=1) - chosen).mean()


ROWS["cross_entropy_grad"] = jax.value_and_grad(cross_entropy)


@row
def sum_rows(x: Array) -> Array:
    return x.sum(axis=1)


@row
def sum_columns(x: Array) -> Array:
    return x.sum(axis=0)


@row
def sum_all(x: Array) -> Array:
    return x.sum()


@row
def variance(x: Array) -> Array:
    return x.var()


@row
def argmax(x: Array) -> Array:
    return x.argmax(axis=1)


@row
def cumsum_columns(x: Array) -> Array:
    return x.cumsum(axis=0)


@row
def cumsum_rows(x: Array) -> Array:
    return x.cumsum(axis=1)


@row
def matmul_1024(a: Array, b: Array) -> Array:
    return a @ b


@row
def dense(a: Array, b: Array, c: Array) -> Array:
    return gelu(a @ b + c)


@row
def distances(x: Array) -> Array:
    """Coordinate by coordinate: several times faster here than one array of three."""
    squares: Any = 0
    for k in range(3):
        d = x[:, None, k] - x[None, :, k]
        squares = squares + d * d
    return jnp.sqrt(squares)


@row
def n_body(x: Array, mass: Array) -> Array:
    """`lax.map` over the bodies: more than ten times faster here than broadcasting."""

    def force(p: Array) -> Array:
        d = x - p
        squares = (d * d).sum(axis=1) + 1e-2
        return (mass / (squares * jnp.sqrt(squares))) @ d

    return lax.map(force, x)


# Loops


@row
def heat(u: Array) -> Array:
    """Padding the change of the interior is faster on a CPU than `u.at[1:-1, 1:-1].add`."""

    def step(_: Any, u: Array) -> Array:
        middle = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u + jnp.pad(0.1 * (around - 4 * middle), 1)

    return lax.fori_loop(0, loops.HEAT_STEPS, step, u)


@row
def mandelbrot(cx: Array, cy: Array) -> Array:
    """Over whole arrays: faster here than `vmap` of a scalar loop."""

    def unfinished(state: Any) -> Array:
        i, x, y, _ = state
        return (i < loops.MANDELBROT_STEPS) & jnp.any(x * x + y * y <= 4)

    def step(state: Any) -> Any:
        i, x, y, count = state
        live = x * x + y * y <= 4
        new_x, new_y = x * x - y * y + cx, 2 * x * y + cy
        return i + 1, jnp.where(live, new_x, x), jnp.where(live, new_y, y), count + live

    zeros = jnp.zeros_like(cx)
    return lax.while_loop(unfinished, step, (0, zeros, zeros, jnp.zeros(cx.shape, jnp.int32)))[3]


@row
def newton(x: Array, n: int) -> Array:
    return lax.fori_loop(0, n, lambda _, x: 0.5 * (x + 2 / x), x)


@row
def fibonacci(a: Array, b: Array, n: int) -> Array:
    return lax.fori_loop(0, n, lambda _, pair: (pair[1], pair[0] + pair[1]), (a, b))[0]


@row
def scalar_scan_grad(a: Array, b: Array, xs: Array) -> tuple[Array, Array, Array]:
    def mean_square(a: Array, b: Array) -> Array:
        def step(state: tuple[Any, ...], x: Any) -> Any:
            new = tuple(jnp.tanh(a[k] * state[k - 1] + b[k] * x) for k in range(len(state)))
            return new, new

        start = tuple(jnp.zeros((), a.dtype) for _ in range(loops.SCALARS))
        states = lax.scan(step, start, xs)[1]
        return jnp.stack([jnp.mean(s * s) for s in states]).mean()

    value, (da, db) = jax.value_and_grad(mean_square, argnums=(0, 1))(a, b)
    return value, da, db


@row
def matrix_scan(start: Array, changes: Array) -> Array:
    def step(r: Array, change: Array) -> tuple[Array, None]:
        r = r + r @ (change - change.T)
        return r / jnp.sqrt((r * r).sum(axis=0)), None

    return lax.scan(step, start, changes)[0]


# Learning, networks


def regression_loss(w: Array, x: Array, y: Array) -> Array:
    z = x @ w
    return (jax.nn.softplus(z) - y * z).mean()


ROWS["logistic_grad"] = jax.grad(regression_loss)


@row
def logistic_descent(w: Array, x: Array, y: Array) -> Array:
    def step(_: Any, w: Array) -> Array:
        return w - learning.RATE * jax.grad(regression_loss)(w, x, y)

    return lax.fori_loop(0, learning.DESCENT_STEPS, step, w)


def mlp_loss(weights: list[Array], x: Array, labels: Array) -> Array:
    layers = len(weights) // 2
    for i in range(layers):
        x = x @ weights[2 * i] + weights[2 * i + 1]
        x = jax.nn.relu(x) if i < layers - 1 else x
    return cross_entropy(x, labels)


@row
def mlp_adam(
    weights: list[Array], first: list[Array], second: list[Array], x: Array, labels: Array
) -> Any:
    loss, gradients = jax.value_and_grad(mlp_loss)(weights, x, labels)
    return loss, *learning.adam(weights, first, second, gradients, jnp.sqrt)


@row
def lstm(x: Array, wx: Array, wh: Array, bias: Array) -> Array:
    def step(state: tuple[Array, Array], projected: Array) -> Any:
        h, c = state
        i, f, g, o = jnp.split(projected + h @ wh, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[1], wh.shape[0]), x.dtype)
    return lax.scan(step, (zeros, zeros), x @ wx + bias)[1]


@row
def lstm_grad(x: Array, wx: Array, wh: Array, bias: Array) -> tuple[Array, ...]:
    loss = jax.value_and_grad(lambda weights: (lstm(x, *weights) ** 2).mean())
    value, gradients = loss((wx, wh, bias))
    return (value, *gradients)


NHWC = ("NHWC", "HWIO", "NHWC")


@row
def conv(x: Array, w: Array) -> Array:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)


@row
def conv_grad(x: Array, w: Array, cotangent: Array) -> tuple[Array, ...]:
    y, pull_back = jax.vjp(conv, x, w)
    return (y, *pull_back(cotangent))


@row
def conv_transpose(x: Array, w: Array) -> Array:
    pads = ((2, 3), (2, 3))
    return lax.conv_general_dilated(
        x, w[::-1, ::-1], (1, 1), pads, lhs_dilation=(2, 2), dimension_numbers=NHWC
    )


@row
def attention(q: Array, k: Array, v: Array) -> Array:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)


@row
def attention_grad(q: Array, k: Array, v: Array, cotangent: Array) -> tuple[Array, ...]:
    out, pull_back = jax.vjp(attention, q, k, v)
    return (out, *pull_back(cotangent))


# Indices


@row
def sort(x: Array) -> Array:
    return jnp.sort(x)


@row
def top_100(x: Array) -> Array:
    return lax.top_k(x, LARGEST)[0]


@row
def gather(x: Array, indices: Array) -> Array:
    return x[indices]


@row
def scatter_add(values: Array, bins: Array) -> Array:
    return jnp.zeros(BINS, values.dtype).at[bins].add(values)


@row
def argsort(x: Array) -> Array:
    return jnp.argsort(x)


@row
def searchsorted(table: Array, x: Array) -> Array:
    return jnp.searchsorted(table, x, method="sort")


@row
def unique(x: Array) -> Array:
    return jnp.unique(x, size=VALUES)


@row
def bincount(x: Array) -> Array:
    return jnp.bincount(x, length=BINS)


@row
def histogram(x: Array) -> Array:
    return jnp.histogram(x, EDGES, (-4, 4))[0]


# Linear algebra, Fourier transforms


@row
def solve(a: Array, b: Array) -> Array:
    return jnp.linalg.solve(a, b)


@row
def inverses(a: Array) -> Array:
    return jnp.linalg.inv(a)


@row
def cholesky(a: Array) -> Array:
    return jnp.linalg.cholesky(a)


@row
def eigenvalues(a: Array) -> Array:
    return jnp.linalg.eigvalsh(a)


@row
def singular_values(a: Array) -> Array:
    return jnp.linalg.svd(a, compute_uv=False)


@row
def spectra(x: Array) -> Array:
    z = jnp.fft.rfft(x)
    return z.real**2 + z.imag**2


@row
def low_pass(image: Array) -> Array:
    z = jnp.fft.rfft2(image)
    near = jnp.abs(jnp.fft.fftfreq(image.shape[0])) < 0.1
    return jnp.fft.irfft2(jnp.where(near[:, None], z, 0), image.shape)


# Random numbers


@row
def mean_of_exp(seed: Array) -> Array:
    key = jax.random.key(seed[0])
    return jnp.exp(jax.random.normal(key, (sampling.COUNT,), jnp.float32)).mean()


@row
def pi_by_chance(seed: Array) -> Array:
    x, y = jax.random.uniform(jax.random.key(seed[0]), (2, sampling.COUNT), jnp.float32)
    return (x * x + y * y < 1).mean()
