"""What is computed on a GPU: the rows of the CPU's table at sizes that fill a GPU, and a few more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..rows import ROWS as DEFINITIONS
from ..rows import Row
from ..rows.networks import images
from ..rows.row import Array, Make, Rows, normal

own = Rows()
LOOP_STEPS = 1000


@own.add(
    "negative", "-x: what an elementwise kernel copies", make=normal(("n",)), size=1, small=5000
)
def negative(x: Array) -> Array:
    return -x


@own.add("transpose", "a.T, written out", make=normal(("n", "n")), size=1, small=70)
def transpose(x: Array) -> Array:
    return x.T.copy()


@own.add(
    "while_loop",
    f"{LOOP_STEPS} steps of x = cos(x) on 1000 elements",
    make=normal((1000,)),
    size=1,
    small=1,
    passes=None,
)
def while_loop(x: Array) -> Array:
    for _ in range(LOOP_STEPS):
        x = np.cos(x)
    return x


@own.add("cumsum", "running sums of one row", make=normal(("n",)), size=1, small=9000)
def cumsum(x: Array) -> Array:
    return x.cumsum()


@own.add("argsort", "a stable argsort", make=normal(("n",)), size=1, small=2000)
def argsort(x: Array) -> Array:
    return np.argsort(x, kind="stable")


@own.add("top_8", "the 8 largest of each of 64 rows", make=normal((64, "n")), size=1, small=300)
def top_8(x: Array) -> Array:
    return np.sort(x, axis=1)[:, -8:]


def _counted(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    return rng.standard_normal(1000), np.array(n, np.int32)


@own.add(
    "while_data",
    "x = cos(x) on 1000 elements as often as a number on the device says",
    make=_counted,
    size=LOOP_STEPS,
    small=20,
    passes=None,
)
def while_data(x: Array, steps: Array) -> Array:
    for _ in range(int(steps)):
        x = np.cos(x)
    return x


def _attention_flops(n: int) -> float:
    """The two products, 16 heads of 128."""
    return 4.0 * 16 * n * n * 128


@own.add(
    "attention_full",
    "attention without a mask, 16 heads of 128",
    make=normal(*[(1, 16, "n", 128)] * 3),
    size=4096,
    small=40,
    passes=None,
    flops=_attention_flops,
)
def attention_full(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


own.variant(
    "attention_full",
    "attention_decode",
    "one query for each of 16 heads of 128, and n keys",
    make=normal((1, 16, 1, 128), *[(1, 16, "n", 128)] * 2),
    size=65536,
    small=1100,
    passes=1,
    flops=lambda n: _attention_flops(n) / n,
)


def _few(n: int, side: int, channels: int) -> tuple[int, int]:
    """Side and channels of n images: one alone is small, for it is emulated."""
    return (side, channels) if n > 1 else (side // 7, channels // 8)


def _for_conv(side: int, width: int, filters: int, cotangent: bool = False) -> Make:
    """Images, filters, and perhaps a cotangent, for the convolutions of the CPU's table."""

    def make(rng: np.random.Generator, n: int) -> tuple[Array, ...]:
        small, channels = _few(n, side, 64)
        made = images(small, channels, filters * channels // 64, width, cotangent=cotangent)
        return made(rng, n)

    return make


def _windows(x: Array, fill: float, stride: int) -> Iterator[tuple[tuple[int, int], Array]]:
    """The places of a 3 x 3 window on images NHWC, and what each sees from every `stride`-th place."""
    height, width = x.shape[1:3]
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=fill)
    for i in range(3):
        for j in range(3):
            yield (i, j), padded[:, i : i + height : stride, j : j + width : stride]


@own.add(
    "max_pool",
    "maxima over 3 x 3 by stride 2, images 112 x 112 x 64",
    make=lambda rng, n: _images_and_pooled(rng, n)[:1],
    size=32,
    small=1,
)
def max_pool(x: Array) -> Array:
    return np.max([seen for _, seen in _windows(x, -np.inf, 2)], axis=0)


def _images_and_pooled(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    side, channels = _few(n, 112, 64)
    half = side // 2
    return (
        rng.standard_normal((n, side, side, channels)),
        rng.standard_normal((n, half, half, channels)),
    )


@own.add(
    "max_pool_grad",
    "its gradient, images 112 x 112 x 64",
    make=_images_and_pooled,
    size=32,
    small=1,
)
def max_pool_grad(x: Array, cotangent: Array) -> Array:
    n, height, width, channels = x.shape
    best, wide = max_pool(x), np.zeros((n, height + 2, width + 2, channels))
    for (i, j), seen in _windows(x, -np.inf, 2):
        wide[:, i : i + height : 2, j : j + width : 2] += np.where(seen == best, cotangent, 0)
    return wide[:, 1:-1, 1:-1]


def _images_and_taps(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    side, channels = _few(n, 56, 256)
    return rng.standard_normal((n, side, side, channels)), rng.standard_normal((3, 3, 1, channels))


@own.add(
    "depthwise",
    "depthwise convolution 3 x 3, images 56 x 56 x 256",
    make=_images_and_taps,
    size=32,
    small=1,
)
def depthwise(x: Array, w: Array) -> Array:
    return np.sum([seen * w[tap][0] for tap, seen in _windows(x, 0, 1)], axis=0)


HISTOGRAM_BINS = 256


@own.add(
    "histogram",
    "bytes counted in 256 bins",
    make=lambda rng, n: (rng.integers(0, HISTOGRAM_BINS, n).astype(np.uint8),),
    size=1 << 26,
    small=9000,
)
def histogram(x: Array) -> Array:
    return np.bincount(x, minlength=HISTOGRAM_BINS)


@own.add(
    "embedding_grad",
    "rows of 128 added up in a table of as many",
    make=lambda rng, n: (rng.standard_normal((n, 128)), rng.integers(0, n, n).astype(np.int32)),
    size=1 << 17,
    small=90,
)
def embedding_grad(rows: Array, places: Array) -> Array:
    table = np.zeros_like(rows)
    np.add.at(table, places, rows)
    return table


UNORDERED = {"embedding_grad_unordered"}  # rows for which jitney may add floats in any order

# Products whose operands are other numbers than the row's: elements of 16 bits, or rounded to TF32.
# Frameworks are given the operands as such; answers are compared in float32.
ELEMENTS = {
    "matmul_4096_f16": "float16",
    "matmul_4096_bf16": "bfloat16",
    "matmul_4096_tf32": "tf32",
    "attention_f16": "float16",
    "attention_bf16": "bfloat16",
    "attention_full_bf16": "bfloat16",
    "attention_grad_bf16": "bfloat16",
    "attention_decode_bf16": "bfloat16",
    "conv_bf16": "bfloat16",
    "conv_grad_bf16": "bfloat16",
    "depthwise_bf16": "bfloat16",
}

# name: (definition, size, fields that differ). In the order of what one wants to know first.
_SIZES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "negative": ("negative", 1 << 26, {}),
    "axpb": ("axpb", 1 << 26, {}),
    "gelu": ("gelu", 1 << 26, {}),
    "softmax": ("softmax", 1 << 15, {}),
    "sum_all": ("sum_all", 8192, {}),
    "matmul_4096": ("matmul_1024", 4096, {}),
    "matmul_4096_bf16": ("matmul_1024", 4096, {"tolerance": 2e-2}),
    "matmul_4096_f16": ("matmul_1024", 4096, {"tolerance": 2e-3}),
    "matmul_4096_tf32": ("matmul_1024", 4096, {"tolerance": 2e-3}),
    "matmul_4096_f64": ("matmul_1024_f64", 4096, {}),
    "call_1": ("call_1", 10, {}),
    "transpose": ("transpose", 8192, {}),
    "layernorm": ("layernorm", 1 << 15, {}),
    "cross_entropy_grad": ("cross_entropy_grad", 1 << 15, {}),
    "attention": ("attention", 1024, {"small": 40}),
    "attention_bf16": ("attention", 4096, {"tolerance": 2e-2, "small": 40}),
    "attention_full_bf16": ("attention_full", 8192, {"tolerance": 2e-2}),
    "attention_grad_bf16": ("attention_grad", 4096, {"tolerance": 4e-2, "small": 40}),
    "attention_decode_bf16": ("attention_decode", 65536, {"tolerance": 2e-2}),
    "while_loop": ("while_loop", 1, {}),
    "while_data": ("while_data", LOOP_STEPS, {}),
    "mlp_adam": ("mlp_adam", 256, {}),
    "black_scholes": ("black_scholes", 1 << 24, {}),
    "sum_rows": ("sum_rows", 8192, {}),
    "sum_columns": ("sum_columns", 8192, {}),
    "argmax": ("argmax", 8192, {}),
    "cumsum": ("cumsum", 1 << 26, {}),
    "cumsum_rows": ("cumsum_rows", 8192, {}),
    "cumsum_columns": ("cumsum_columns", 8192, {}),
    "matmul_1024": ("matmul_1024", 1024, {}),
    "matmul_8192": ("matmul_1024", 8192, {}),
    "dense": ("dense", 4096, {}),
    "gather": ("gather", 10_000_000, {}),
    "scatter_add": ("scatter_add", 10_000_000, {}),
    "histogram": ("histogram", 1 << 26, {}),
    "embedding_grad": ("embedding_grad", 1 << 17, {}),
    "embedding_grad_unordered": ("embedding_grad", 1 << 17, {}),
    "sort": ("sort", 10_000_000, {}),
    "argsort": ("argsort", 10_000_000, {}),
    "top_100": ("top_100", 10_000_000, {}),
    "top_8": ("top_8", 1 << 20, {}),
    "conv": ("conv", 32, {"make": _for_conv(56, 3, 64)}),
    "conv_bf16": ("conv", 32, {"make": _for_conv(56, 3, 64), "tolerance": 2e-2}),
    "conv_grad": ("conv_grad", 32, {"make": _for_conv(56, 3, 64, True)}),
    "conv_grad_bf16": (
        "conv_grad",
        32,
        {"make": _for_conv(56, 3, 64, True), "tolerance": 2e-2},
    ),
    "conv_transpose": ("conv_transpose", 32, {"make": _for_conv(28, 5, 32)}),
    "depthwise": ("depthwise", 32, {}),
    "depthwise_bf16": ("depthwise", 32, {"tolerance": 2e-2}),
    "max_pool": ("max_pool", 32, {}),
    "max_pool_grad": ("max_pool_grad", 32, {}),
    "attention_grad": ("attention_grad", 1024, {"small": 40}),
    "attention_f16": ("attention", 4096, {"tolerance": 3e-3, "small": 40}),
    "attention_full": ("attention_full", 4096, {}),
    "attention_decode": ("attention_decode", 65536, {}),
    "call_3": ("call_3", 10, {}),
    "call_dict": ("call_dict", 10, {}),
    "logsumexp": ("logsumexp", 1 << 15, {}),
    "variance": ("variance", 8192, {}),
    "black_scholes_f64": ("black_scholes_f64", 1 << 24, {}),
    "matmul_2048": ("matmul_1024", 2048, {}),
    "matmul_1024_f64": ("matmul_1024_f64", 1024, {}),
    "matmul_batched": ("matmul_batched", 8192, {}),
    "matvec_8192": ("matvec_4096", 8192, {}),
    "distances": ("distances", 10_000, {}),
    "n_body": ("n_body", 10_000, {}),
    "heat": ("heat", 1024, {}),
    "mandelbrot": ("mandelbrot", 2000, {}),
    "newton": ("newton", 100_000, {"title": "x = (x + 2 / x) / 2, 100,000 times"}),
    "logistic_grad": ("logistic_grad", 100_000, {}),
    "lstm": ("lstm", 64, {}),
    "lstm_grad": ("lstm_grad", 64, {}),
}


def _at(name: str, definition: str, size: int, fields: dict[str, Any]) -> Row:
    row = own.get(definition) or DEFINITIONS[definition]
    title = row.title if size <= 10 else f"{row.title.partition(',')[0]}, n = {size:,}"
    if name in ELEMENTS:
        title = f"{title}, {ELEMENTS[name]}"
    return replace(row, **{"name": name, "size": size, "title": title, "goal": None, **fields})


def _is_known(name: str) -> bool:
    """Whether this jitney has the dtype that a row needs."""
    from jitney.ir.types import DTYPE_NAMES

    short = {"float16": "f16", "bfloat16": "bf16"}.get(ELEMENTS.get(name, ""), "f32")
    return short in DTYPE_NAMES


ROWS: dict[str, Row] = {
    name: _at(name, *entry) for name, entry in _SIZES.items() if _is_known(name)
}
