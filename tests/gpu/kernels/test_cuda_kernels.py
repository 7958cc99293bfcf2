"""What kernels for GPUs compute, on the emulated device, against the interpreter."""

from __future__ import annotations

import emulated
import numpy as np
import pytest
from emulated import compiled, run
from graphs import random_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import (
    PATTERNS,
    build,
    centre_columns,
    cross_entropy,
    expected,
    extremes,
    fits,
    layernorm,
    loop,
    same,
    sample,
    softmax,
)  # fmt: skip
from test_native_graphs import LAYOUTS, laid_out

from jitney.codegen.cuda.target import CudaTarget
from jitney.ir.passes import optimise
from jitney.runtime.cuda.emulator.machine import FORWARDS, ORDERS


def check(f, *arrays, order=FORWARDS):
    graph = f if hasattr(f, "ops") else optimise(build(f, *arrays))
    arrays = list(arrays)
    try:
        want = expected(graph, arrays)
    except (IndexError, AssertionError) as error:
        with pytest.raises(type(error)):
            run(compiled(graph, arrays), arrays, order)
        return
    same(run(compiled(graph, arrays), arrays, order), want)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7,), (33, 40), (2, 1, 65)], ids=str)
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.__name__)
def test_patterns(pattern, shape):
    if fits(pattern, shape):
        check(pattern, sample(shape, "f4"))


@settings(max_examples=15)
@given(random_graphs(max_ops=20, exact=True), st.data())
def test_random_graphs(case, data):
    graph, arrays = case
    layouts = [data.draw(st.sampled_from(LAYOUTS)) for _ in arrays]
    arrays = [laid_out(a, layout) for a, layout in zip(arrays, layouts, strict=True)]
    check(optimise(graph), *arrays)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("columns", [3, 100, 1024, 3000, 20_000])
@pytest.mark.parametrize("pattern", [softmax, layernorm], ids=lambda p: p.__name__)
def test_rows_of_any_length(pattern, rows, columns):
    """A lane, a warp, a block; in registers, and too long for them."""
    check(pattern, sample((rows, columns), "f4"))


@pytest.mark.parametrize("columns", [3, 30, 500, 1000])
def test_rows_on_a_small_device(columns, monkeypatch):
    """As few threads for a row as hold it: there is no need for more of them."""
    monkeypatch.setattr(emulated, "TARGET", CudaTarget(sms=1))
    check(softmax, sample((21, columns), "f4"))


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("pattern", [softmax, cross_entropy, extremes], ids=lambda p: p.__name__)
def test_threads_in_any_order(pattern, order):
    check(pattern, sample((3, 1500), "f8"), order=order)


@pytest.mark.parametrize(("size", "dtype"), [(17_001, "f4"), (40_000, "f8")])
def test_long_sums_go_by_chunks(size, dtype):
    """The last chunk is shorter than the others, or not."""
    check(extremes, sample((size,), dtype))


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan])
def test_the_first_of_equals_is_the_best(value):
    """Also where no thread ever finds anything better than what it starts from."""
    check(extremes, np.full((3, 200), value, "f4"))


def columns(b, x):
    folds = [b.op(name, x, axes=(0,)) for name in ("sum", "max", "min", "prod")]
    return [*folds, *(b.op(name, x, axis=0) for name in ("argmax", "argmin"))]


@pytest.mark.parametrize("shape", [(2000, 3), (300, 64), (64, 33), (33, 5, 70)], ids=str)
@pytest.mark.parametrize("pattern", [columns, centre_columns], ids=lambda p: p.__name__)
def test_columns_are_shared_by_threads(pattern, shape):
    check(pattern, sample(shape, "f4"))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_columns_in_any_order_of_threads(order):
    check(columns, sample((300, 40), "f8"), order=order)


@pytest.mark.parametrize("value", [-np.inf, np.nan])
def test_the_first_of_equals_is_the_best_in_columns_too(value):
    check(columns, np.full((300, 40), value, "f4"))


@pytest.mark.parametrize("shape", [(5000,), (3, 2049), (40, 3)], ids=str)
def test_scans_are_cut_where_they_are_long(shape):
    def scans(b, x):
        last = len(x.shape) - 1
        return [
            b.op("cumsum", x, axis=last, reverse=False),
            b.op("cummax", x, axis=last, reverse=True),
            b.op("cumsum", x, axis=0, reverse=False),
        ]

    check(scans, sample(shape, "f8"))


def turn(b, x):
    return b.transpose(x, perm=tuple(reversed(range(len(x.shape)))))


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "?"])
@pytest.mark.parametrize("shape", [(33, 40), (64, 64), (9, 100), (5, 33, 12)], ids=str)
def test_transposes(shape, dtype):
    check(turn, sample(shape, "f4").astype(dtype))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_a_matrix_beside_a_transposed_one(order):
    def both(b, x, y):
        z = b.transpose(x, perm=(1, 0))
        return [b.add(z, y), b.mul(b.exp(y), z)]

    check(both, sample((70, 33), "f4"), sample((33, 70), "f4"), order=order)


def dot(b, x, y):
    return b.op("dot", x, y, contract=((1,), (0,)), batch=((), ()))


def dots(b, x, y):
    return b.op("dot", x, y, contract=((1,), (2,)), batch=((0,), (0,)))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
@pytest.mark.parametrize(("m", "k", "n"), [(33, 40, 70), (130, 17, 129), (5, 300, 7), (64, 16, 64)])
def test_products(m, k, n, dtype):
    x, y = sample((m, k), dtype), sample((k, n), dtype, 1)
    check(dot, x, y)
    check(dot, x[::-1], np.asfortranarray(y))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_batches_of_products(order):
    check(dots, sample((3, 33, 20), "f4"), sample((3, 12, 33), "f4"), order=order)


def test_loops_of_numbers_are_one_kernel_of_one_thread():
    def rounds(b, x):
        return loop(b, 50, lambda b, i, x: b.mul(x, b.sin(x)), x)

    x = np.array([0.7, 0.3])
    check(rounds, x)
    (step,) = compiled(optimise(build(rounds, x)), [x]).steps
    assert step.grid == (1, 1, 1)


@pytest.mark.parametrize("combine", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("dtype", ["f4", "i4", "u1"])
def test_updates_happen_in_order(combine, dtype):
    """Several of them go to one place, negative indices among them; each is a row, or a number."""

    def rows(b, x, u, i):
        return b.op("scatter", x, u, i, axes=(0,), mode="check", combine=combine)

    def numbers(b, x, u, i, j):
        return b.op("scatter", x, u, i, j, axes=(0, 2), mode="check", combine=combine)

    rng = np.random.default_rng(0)
    x, u = (sample((n, 3), "f4", n).astype(dtype) for n in (50, 200))
    check(rows, x, u, rng.integers(-50, 50, 200))
    x, u = sample((5, 3, 4), "f4").astype(dtype), sample((20, 5, 3), "f4").astype(dtype)
    check(numbers, x, u, rng.integers(-5, 5, (20, 5)), rng.integers(0, 4, (20, 5)))


def test_an_update_out_of_bounds_is_an_error():
    def add(b, x, u, i):
        return b.op("scatter", x, u, i, axes=(0,), mode="check", combine="add")

    check(add, np.zeros(50), np.ones(100), np.full(100, 50))


def test_loops_of_arrays():
    def rounds(b, x):
        return loop(b, 7, lambda b, i, x: b.mul(x, b.sin(x)), x)

    check(rounds, sample((1000,), "f8"))


@pytest.mark.parametrize("bad", [False, True])
def test_indices_are_checked(bad):
    def take(b, x, i):
        return b.op("gather", x, i, axes=(0,), mode="check")

    index = np.array([0, -1, 49, 50 if bad else 3] * 30)
    check(take, sample((50, 3), "f4"), index)
