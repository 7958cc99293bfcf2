"""Row blocks: what runs block by block of rows computes what the steps compute one after the other.

Programs of real sizes, since small ones have one block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.loop_ir.index import Var
from jitney.codegen.loop_ir.kernel import Array, Kernel, Nest, Stage
from jitney.codegen.loop_ir.steps import Part, RowBlocks
from jitney.codegen.scalar import const
from jitney.codegen.schedule.rowblocks import _keep_local

Arrays = list[np.ndarray]


def drawn(*shapes: tuple[int, ...], dtype: Any = np.float64) -> Arrays:
    rng = np.random.default_rng(0)
    return [rng.normal(size=s).astype(dtype) / np.sqrt(s[0]) for s in shapes]


def close(got: Any, want: Any) -> None:
    for a, b in zip(got, want, strict=True):
        bound = 1e-4 if a.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(a, b, rtol=bound, atol=bound * max(np.abs(b).max(), 1e-30))


@pytest.mark.parametrize(
    ("dtype", "batch", "width"),
    [
        (np.float64, 128, 512),
        (np.float64, 256, 512),
        (np.float32, 256, 512),
        (np.float64, 200, 100),
    ],
)
def test_gradients_of_networks(dtype: Any, batch: int, width: int) -> None:
    """The bias of two layers is one array: a value that many steps read is no block's own."""
    shapes = ((64, width), (width,), (width, width), (width, 10), (batch, 64), (batch, 10))
    arguments = drawn(*shapes, dtype=dtype)

    def loss(w: Any, b: Any, w2: Any, v: Any, x: Any, y: Any) -> Any:
        h = np.maximum(x @ w + b, 0)
        h = np.maximum(h @ w2 + b, 0)
        return ((h @ v - y) ** 2).sum()

    slope = jt.grad(loss, (0, 1, 2, 3))
    close(jt.jit(lambda *a: slope(*a))(*arguments), slope(*arguments))


def mixture(count: int) -> tuple[Callable[..., Any], Arrays]:
    def f(x: Any, mean: Any, factor: Any) -> Any:
        return np.matmul(x - mean[:, None, :], factor)

    return f, drawn((100, 10), (count, 10), (count, 10, 10))


def projected(x: Any, p: Any, q: Any) -> Any:
    return np.sin(np.exp(np.einsum("cab,bd->adc", x, p)[:, None] / 9 - q)).sum()


def chained(x: Any, p: Any, q: Any) -> Any:
    return np.sin(np.einsum("bce,eac->abe", np.einsum("abc,eba->bce", x, p), q)).sum()


def normalised(x: Any, p: Any) -> Any:
    y = np.einsum("cba,bf->acf", x * x, p)
    return np.sin((y - y.mean(0)) / np.sqrt(y.var(0) + 0.1)).sum()


@pytest.mark.parametrize("count", [24, 25, 50, 100])
def test_batched_products_of_turned_operands(count: int) -> None:
    """A kernel that goes by squares writes more rows at a time than a block has."""
    f, arguments = mixture(count)
    close([jt.jit(f)(*arguments)], [f(*arguments)])


def summed(x: Any, p: Any, q: Any, r: Any) -> Any:
    """Its gradient multiplies, in squares, the product that lies where the kernel writes."""
    y = np.sin(np.einsum("abc,da->bdc", x, p))
    return np.sin(np.einsum("abc,bc->a", np.cumsum(np.matmul(y, q), 0), r)).sum()


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (summed, ((25, 10, 100), (64, 25), (10, 100, 2), (64, 2))),
        (projected, ((20, 40, 75), (75, 64), (40, 32, 64, 20))),
        (chained, ((12, 100, 8), (16, 100, 12), (16, 12, 8))),
        (normalised, ((16, 32, 128), (32, 8))),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_gradients_of_batched_products(f: Callable[..., Any], shapes: Any) -> None:
    arguments = drawn(*shapes)
    slope = jt.grad(f, argnums=tuple(range(len(arguments))))
    close(jt.jit(lambda *a: slope(*a))(*arguments), slope(*arguments))


def test_local_arrays_are_in_the_order_of_the_steps() -> None:
    """Those of one size too, or the same program would not have the same text every time."""
    arrays = [Array((8, 4), np.dtype(np.float64)) for _ in range(20)]
    loops = Var("i", 8), Var("j", 4)
    stages = [Stage(a, loops, const(0, a.dtype)) for a in arrays]
    parts = [Part(Kernel((8, 4), [Nest([s], 2)]), 2, 8, None) for s in stages]
    blocks = RowBlocks(4, parts, 1, dict.fromkeys(arrays, 8))
    _keep_local(blocks, Counter(arrays), ())
    assert list(blocks.local) == arrays
