"""Matrix products: every shape, layout and dtype, what is fused around them, and threads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from native import avx2_target, has_avx2

import jitney as jt
from jitney.codegen.program.compile import compile_graph
from jitney.codegen.schedule.blocking import blocking, tile_for, tile_shapes
from jitney.codegen.target import Target
from jitney.ir.graph import Graph
from jitney.ir.record import replace
from jitney.runtime.executable import Executable
from jitney.runtime.native.engine import engine_for
from jitney.runtime.native.host import current_target
from jitney.runtime.threads import pool

rng = np.random.default_rng(7)
DTYPES = ["f4", "f8", "i4", "i8", "u1", "i2", "u8"]
SIZES = [0, 1, 2, 3, 5, 8, 13, 16, 17, 31, 33, 48, 64, 65, 97, 130]


def numbers(shape, dtype, seed=None):
    source = rng if seed is None else np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return source.standard_normal(shape).astype(dtype)
    return source.integers(0, 100, shape).astype(dtype)


def close(got, f, *arrays):
    """`got` is f(*arrays) up to the rounding of sums; integers exactly."""
    got = np.asarray(got)
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, f(*arrays))
        return
    want = np.asarray(f(*(a.astype("f8") if a.dtype.kind == "f" else a for a in arrays)))
    assert got.shape == want.shape
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    tolerance = 1e-5 if got.dtype == np.float32 else 1e-13
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * 30 * scale)


def check(f, *arrays):
    close(jt.jit(f)(*arrays), f, *arrays)


@st.composite
def products(draw):
    """An einsum of two operands with or without a batch, and how they lie."""
    m, n, k, b = (draw(st.sampled_from(SIZES)) for _ in range(4))
    b = min(b, 5)
    left, right = draw(
        st.sampled_from(
            [("ik", "kj"), ("ki", "kj"), ("ik", "jk"), ("ki", "jk"), ("bik", "bkj"), ("ibk", "bjk"),
             ("bik", "kj"), ("ik", "bkj"), ("kib", "jkb"), ("k", "kj"), ("ik", "k"), ("k", "k"),
             ("i", "j"), ("bk", "bkj")]
        )
    )  # fmt: skip
    sizes = {"i": m, "j": n, "k": k, "b": b}
    out = "".join(c for c in "bij" if c in left + right)
    layout = draw(st.sampled_from(["plain", "reversed", "every other", "Fortran", "broadcast"]))
    return left, right, out, sizes, layout, draw(st.sampled_from(DTYPES))


def laid(shape, dtype, layout, seed):
    if layout == "every other":
        return numbers([2 * n for n in shape], dtype, seed)[
            tuple(slice(None, None, 2) for _ in shape)
        ]
    if layout == "broadcast" and shape:
        return np.broadcast_to(numbers(shape[1:], dtype, seed), shape)
    x = numbers(shape, dtype, seed)
    if layout == "reversed":
        return x[::-1]
    return np.asfortranarray(x) if layout == "Fortran" else x


@settings(max_examples=40)
@given(products())
@example(("ik", "kj", "ij", {"i": 257, "k": 515, "j": 129, "b": 1}, "plain", "f4"))
@example(("ki", "jk", "ij", {"i": 130, "k": 1100, "j": 97, "b": 1}, "plain", "f8"))
@example(("ik", "kj", "ij", {"i": 5, "k": 3, "j": 3000, "b": 1}, "reversed", "f4"))
@example(("kib", "jkb", "bij", {"i": 2, "k": 64, "j": 33, "b": 1}, "plain", "f4"))
def test_products(case):
    left, right, out, sizes, layout, dtype = case
    a = laid([sizes[c] for c in left], dtype, layout, 1)
    b = laid([sizes[c] for c in right], dtype, layout, 2)
    spec = f"{left},{right}->{out}"
    check(lambda a, b: np.einsum(spec, a, b), a, b)


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (1024, 700, 64),
        (3, 2000, 900),
        (14, 600, 1500),
        (700, 3, 700),
        (64, 256, 1024),
        (2, 1 << 15, 2),
    ],
)
def test_large_products(m, k, n):
    a, b = numbers((m, k), "f4"), numbers((k, n), "f4")
    check(np.matmul, a, b)
    check(lambda a, b: a.T @ b.T, np.ascontiguousarray(a.T), np.ascontiguousarray(b.T))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_any_number_of_rows(dtype):
    """Whole tiles, and tiles of any number of rows that are left, down to one."""
    b = numbers((24, 40), dtype)
    for first in range(6, 38, 8):
        rows = [numbers((m, 24), dtype) for m in range(first, first + 8)]
        found = jt.jit(lambda rows, b: [a @ b for a in rows])(rows, b)
        for a, got in zip(rows, found, strict=True):
            close(got, np.matmul, a, b)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
@pytest.mark.parametrize(("m", "k", "n"), [(200, 1100, 400), (130, 513, 385)])
def test_blocks_that_are_copied(m, k, n, dtype):
    """Several runs along k, blocks and tiles with rests, rows of A and of B in either order."""
    a, b = numbers((m, k), dtype), numbers((k, n), dtype)
    check(np.matmul, a, b)
    check(lambda a, b: a.T @ b, np.ascontiguousarray(a.T), b)
    check(lambda a, b: a @ b.T, a[::-1], np.ascontiguousarray(b.T))
    text = jt.jit(np.matmul).lower(a, b).llvm()
    # what the caches hold is counted in bytes
    assert "%rows = alloca" in text or dtype == "u1", "the block of A is not copied"


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * (x * x * x))))


def normalised(x):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


AROUND = {
    "bias and activation": lambda a, b, c, d: gelu(a @ b / 10 + c),
    "rows": lambda a, b, c, d: softmax(a @ b / 10 + c),
    "product of the result": lambda a, b, c, d: softmax(np.maximum(a @ b / 10 + c, 0) @ d),
    "before": lambda a, b, c, d: np.tanh(normalised(a) @ b),
    "reshaped": lambda a, b, c, d: (a.reshape(10, 20, -1) @ b + c).sum(axis=2).reshape(-1) * 2,
    "two results": lambda a, b, c, d: np.concatenate([a @ b, np.tanh(a @ b)], axis=1),
}
APART = {
    "rows reversed": lambda a, b, c, d: (a @ b)[::-1] + c,
    "neighbouring rows": lambda a, b, c, d: (a @ b)[1:] - (a @ b)[:-1],
    "running sums": lambda a, b, c, d: (a @ b).cumsum(axis=0) + c,
    "columns": lambda a, b, c, d: (a @ b) - (a @ b).mean(axis=0),
    "transposed": lambda a, b, c, d: np.tanh(a @ b).T @ (a @ b),
    "gathered rows": lambda a, b, c, d: (a @ b)[np.arange(199, -1, -3)] + c,
    "in place": lambda a, b, c, d: _overwritten(a @ b, c),
}


def _overwritten(x, c):
    x = x.copy() if isinstance(x, np.ndarray) else x
    x[3:50] += x[0:47] * 2
    return x + c


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", [*AROUND, *APART])
def test_around_a_product(name, dtype):
    shapes = [(200, 300), (300, 333), (333,), (333, 70)]
    arrays = [numbers(s, dtype) for s in shapes]
    check((AROUND | APART)[name], *arrays)


@pytest.mark.parametrize("name", AROUND)
def test_what_follows_row_by_row_runs_in_blocks(name):
    arrays = [np.zeros(s, "f4") for s in ((1200, 300), (300, 333), (333,), (333, 70))]
    function = AROUND[name]
    if name == "reshaped":
        arrays[0] = np.zeros((10 * 20, 3000), "f4")
        arrays[1] = np.zeros((3000, 333), "f4")
    assert "@rows_" in jt.jit(function).lower(*arrays).llvm()


def loss_gradient(w, x, y):
    return x.T @ (1 / (1 + np.exp(-(x @ w))) - y) / len(y)


@pytest.mark.parametrize("rows", [5000, 100_003])
def test_a_matrix_and_its_transpose_in_one_pass(rows):
    x, w = numbers((rows, 100), "f8"), numbers(100, "f8") / 10
    y = (x @ w > 0).astype("f8")
    check(loss_gradient, w, x, y)
    lowered = jt.jit(loss_gradient).lower(w, x, y)
    assert "@rows_" in lowered.llvm()
    reads = [k for k in lowered.kernels if "dot" in k.ops]
    assert len(reads) == 2


def test_not_a_number_stays_in_its_row_and_column():
    a, b = numbers((70, 90), "f4"), numbers((90, 100), "f4")
    a[33, 5], b[7, 99], b[8, 0] = np.nan, np.inf, -np.inf
    got = jt.jit(np.matmul)(a, b)
    want = a.astype("f8") @ b.astype("f8")
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    zero = jt.jit(np.matmul)(np.zeros((20, 40), "f4"), np.full((40, 30), np.inf, "f4"))
    assert np.isnan(zero).all()


@pytest.mark.parametrize("name", ["bias and activation", "product of the result"])
def test_results_do_not_depend_on_threads(name):
    arrays = [numbers(s, "f4") for s in ((501, 300), (300, 333), (333,), (333, 70))]
    x, w = numbers((30_001, 50), "f4"), numbers(50, "f4")
    f, g = jt.jit(AROUND[name]), jt.jit(loss_gradient)
    before = pool.get_threads()
    results = []
    try:
        for threads in (1, 2, 5, 2):
            pool.set_threads(threads)
            results.append((f(*arrays), g(w, x, np.zeros(30_001, "f4"))))
    finally:
        pool.set_threads(before)
    for got in results[1:]:
        for one, other in zip(got, results[0], strict=True):
            np.testing.assert_array_equal(one, other)


def lstm(x, wx, wh, b):
    def step(carry, xp):
        h, c = carry
        z = xp + h @ wh
        n = h.shape[1]
        i, f, g, o = (z[:, k * n : (k + 1) * n] for k in range(4))
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        return (h, c), h

    zero = np.zeros((x.shape[1], wh.shape[0]), x.dtype)
    return jt.scan(step, (zero, zero), x @ wx + b)[1]


def network(x, w, b, v):
    return np.log(np.exp(np.maximum(x @ w + b, 0) @ v).sum(axis=1)).mean()


def test_gradients_of_networks():
    arrays = [numbers(s, "f8") / 3 for s in ((40, 30), (30, 50), (50,), (50, 20))]
    jt.check_grads(jt.jit(network), arrays, order=1, modes=["rev"])
    sizes = ((6, 20, 9), (9, 64), (16, 64), (64,))
    arrays = [numbers(s, "f8") / 3 for s in sizes]
    jt.check_grads(jt.jit(lambda *a: (lstm(*a) ** 2).mean()), arrays, order=1, modes=["rev"])


def test_weights_are_packed_before_the_loop():
    arrays = [numbers(s, "f4") / 8 for s in ((9, 64, 100), (100, 512), (128, 512), (512,))]
    f = jt.jit(lstm)
    want = jt.jit(lstm, backend="interpreter")(*arrays)
    np.testing.assert_allclose(f(*arrays), want, atol=1e-5)
    text = f.lower(*arrays).llvm()
    entry = text[text.index("define i32 @jitney_entry") :]
    before, after = entry.split("\neach", 1)
    assert before.count("@pack") == 2
    assert "@pack" not in after


SSE2 = Target("x86_64-unknown-linux-gnu", "x86-64", "+sse2", 128)
NEON = Target("aarch64-unknown-linux-gnu", "generic", "+neon,+fp-armv8", 128)


def traced(f, *arrays) -> Graph:
    return jt.jit(f).lower(*arrays).graph


@pytest.mark.parametrize("target", [SSE2, NEON], ids=["sse2", "neon"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
def test_other_machines(target, dtype):
    a, b = numbers((50, 70), dtype), numbers((70, 100), dtype)
    module = compile_graph(traced(lambda a, b: a @ b + 1, a, b), target)
    engine_for(target).verify(module.text)
    if target is SSE2:
        assert "llvm.fma" not in module.text, "a call of libm for each product"


@pytest.mark.skipif(not has_avx2(), reason="no AVX2")
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("bits", [256, 128])
def test_narrower_vectors(dtype, bits):
    target = avx2_target()
    if bits == 128:
        target = replace(target, features="+sse2", cpu="x86-64", vector_bits=128)
    for m, k, n in ((64, 64, 64), (65, 300, 70), (3, 90, 400)):
        a, b = numbers((m, k), dtype), numbers((k, n), dtype)
        module = compile_graph(traced(lambda a, b: a @ b + 1, a, b), target)
        (got,) = Executable(module, target).run([a, b])
        close(got, lambda a, b: a @ b + 1, a, b)


@pytest.mark.parametrize("target", [current_target(), SSE2, NEON], ids=["host", "sse2", "neon"])
def test_tiles_fit_the_registers(target):
    registers = 32 if target.vector_bits == 512 or "x86" not in target.triple else 16
    for rows, vectors in tile_shapes(target):
        assert rows * vectors + vectors + 1 <= registers
    for m, n, k in ((1, 1, 2), (7, 3, 9), (64, 1000, 50), (1 << 14, 1 << 14, 1 << 14)):
        rows, vectors = tile_for(target, np.dtype("f4"), 1, m, n, k)
        assert 1 <= rows <= m
        assert vectors <= math.ceil(n / target.lanes(4))


@given(st.integers(2, 3000), st.integers(2, 3000), st.integers(2, 3000), st.integers(1, 3))
def test_units_cover_a_product(m, n, k, batch):
    from jitney.codegen.loop_ir.kernel import Array
    from jitney.codegen.loop_ir.steps import Matmul

    a, b, c = (Array(s, np.dtype("f4")) for s in ((batch, m, k), (batch, k, n), (batch, m, n)))
    step = Matmul(a, b, c, batch, m, n, k, (m * k, k, 1), (k * n, n, 1))
    cut = blocking(step, current_target())
    assert cut.blocks(step) * cut.block >= m > (cut.blocks(step) - 1) * cut.block
    assert cut.groups(step) * cut.group * cut.panel >= n
    assert 1 <= cut.grain(step) <= cut.units(step)


def test_scalars_of_many_short_rows_are_computed_in_vectors():
    def f(x, w):
        return np.exp(np.tanh(x @ w))

    x, w = numbers((6000, 20), "f4"), numbers(20, "f4") / 5
    check(f, x, w)
    kernels = jt.jit(f).lower(x, w).kernels
    assert [k.extents for k in kernels] == [(6000,), (6000,)]
    assert "outer loop" in kernels[1].note
    assert len(jt.jit(f).lower(x[:99], w).kernels) == 1


@pytest.mark.parametrize(
    ("spec", "left", "right"),
    [("ij,mnj->", (0, 3), (2, 2, 3)), ("ij,mj->m", (0, 3), (2, 3)), ("ij,k->k", (2, 0), (3,))],
)
def test_a_sum_over_nothing_is_zero_whatever_stands_beside_it(spec, left, right):
    """The axis of no elements is one operand's own: summed first, it would be 0 times infinity."""
    a, b = np.zeros(left, np.float32), np.full(right, np.inf)
    got, want = jt.jit(lambda a, b: np.einsum(spec, a, b))(a, b), np.einsum(spec, a, b)
    np.testing.assert_array_equal(got, want)
    assert type(got) is type(want) and got.dtype == want.dtype


@pytest.mark.parametrize(
    ("shape", "product"),
    [
        ((200, 130), lambda x: x.T @ x),
        ((131, 97), lambda x: x @ x.T / 3),
        ((2, 40, 101), lambda x: np.einsum("bij,bik->bjk", x, x)),
        ((30, 12, 9), lambda x: np.einsum("ijk,ilm->jklm", x, x)),
        ((400, 99), lambda x: np.cov(x, rowvar=False)),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_matrix_times_its_own_transpose_is_computed_by_half(shape, product, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    f = jt.jit(product)
    got = f(x)
    np.testing.assert_allclose(got, product(x), rtol=1e-5 if dtype == "f4" else 1e-12, atol=1e-4)
    assert "mirror" in str(f.explain(x))
    x[3 % shape[0]] = np.nan
    np.testing.assert_array_equal(np.isnan(f(x)), np.isnan(product(x)))
