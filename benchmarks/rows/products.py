"""Matrix products, alone and with what surrounds them."""

from __future__ import annotations

from .pointwise import gelu
from .row import Array, Rows, normal

rows = Rows()


@rows.add(
    "matmul_1024",
    "a @ b, 1024 cubed",
    make=normal(("n", "n"), ("n", "n")),
    size=1024,
    small=32,
    goal=0.95,
    passes=None,
    flops=lambda n: 2 * n**3,
)
def matmul(a: Array, b: Array) -> Array:
    return a @ b


rows.variant(
    "matmul_1024",
    "matmul_1024_f64",
    "a @ b, 1024 cubed, float64",
    dtype="float64",
    tolerance=1e-10,
)
rows.variant("matmul_1024", "matmul_64", "a @ b, 64 cubed", size=64, goal=1.5)
rows.variant(
    "matmul_1024",
    "matmul_batched",
    "a @ b, 512 times 32 cubed",
    make=normal(("n", 32, 32), ("n", 32, 32)),
    size=512,
    small=4,
    goal=1.1,
    flops=lambda n: 2 * n * 32**3,
)
rows.variant(
    "matmul_1024",
    "matvec_4096",
    "a @ x, 4096 squared",
    make=normal(("n", "n"), ("n",)),
    size=4096,
    goal=1.0,
    passes=1,
    flops=lambda n: 2 * n * n,
)


@rows.add(
    "dense",
    "gelu(a @ b + c), 1024 cubed",
    make=lambda rng, n: (
        rng.standard_normal((n, n)),
        rng.standard_normal((n, n)) / n**0.5,
        rng.standard_normal(n),
    ),
    size=1024,
    small=32,
    goal=1.05,
    passes=None,
    flops=lambda n: 2 * n**3,
)
def dense(a: Array, b: Array, c: Array) -> Array:
    return gelu(a @ b + c)
