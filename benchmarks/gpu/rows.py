"""What is computed on a GPU: the rows of the CPU's table at sizes that fill a GPU, and a few more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..rows import ROWS as DEFINITIONS
from ..rows import Row
from ..rows.row import Array, Rows, normal

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
    "cumsum_rows": ("cumsum_rows", 8192, {}),
    "cumsum_columns": ("cumsum_columns", 8192, {}),
    "matmul_1024": ("matmul_1024", 1024, {}),
    "matmul_8192": ("matmul_1024", 8192, {}),
    "dense": ("dense", 4096, {}),
    "gather": ("gather", 10_000_000, {}),
    "scatter_add": ("scatter_add", 10_000_000, {}),
    "sort": ("sort", 10_000_000, {}),
    "top_100": ("top_100", 10_000_000, {}),
    "conv": ("conv", 32, {}),
    "conv_grad": ("conv_grad", 32, {}),
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
