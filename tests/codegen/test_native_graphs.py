"""Whole graphs as native code against the interpreter: random ones, and patterns in shapes that matter.

What each op computes is tested in test_codegen.py. Here it is what the compiler does between ops:
fusion, updates in place, memory, vector tails, shared loops, loop carries.
"""

from __future__ import annotations

import numpy as np
import pytest
from graphs import random_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from native import avx2_target, has_avx2
from programs import (
    LAYOUTS,
    PATTERNS,
    SHAPES,
    build,
    check,
    compiled,
    each,
    every_sum,
    expected,
    fits,
    laid_out,
    loop,
    region,
    same,
    sample,
    softmax,
    sorted_columns,
)

from jitney.ir.passes import optimise
from jitney.ir.record import replace
from jitney.ir.types import F64, I64
from jitney.runtime.native.host import current_target


@settings(max_examples=20)
@given(random_graphs(max_ops=30, exact=True), st.data())
def test_random_graphs(case, data):
    graph, arrays = case
    if data.draw(st.booleans(), label="optimised"):
        graph = optimise(graph)
    layouts = [data.draw(st.sampled_from(LAYOUTS)) for _ in arrays]
    arrays = [laid_out(a, layout) for a, layout in zip(arrays, layouts, strict=True)]
    check(graph, arrays, exact=True)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.__name__)
def test_pattern(pattern, threads):
    turn = PATTERNS.index(pattern)
    arrays: dict[str, list[np.ndarray]] = {"f4": [], "f8": []}
    for k, shape in enumerate(s for s in SHAPES if fits(pattern, s)):
        if pattern is not sorted_columns or np.prod(shape) <= 20_000:
            dtype = ("f4", "f8")[(k + turn) % 2]
            x = laid_out(sample(shape, dtype), LAYOUTS[k % 4] if k % 3 else "contiguous")
            arrays[dtype].append(x)
    for dtype, alike in arrays.items():
        graph = build(each(pattern), *alike)
        if dtype == "f4":
            graph = optimise(graph)
        run = compiled(graph, alike).run
        threads(2)
        got = run(alike)
        # float32 sums of 200,000 elements: the interpreter's own rounding counts.
        same(got, expected(graph, alike), ulps=4096 if dtype == "f4" else 512)
        threads(1)
        for g, alone in zip(got, run(alike), strict=True):
            np.testing.assert_array_equal(g, alone, err_msg="the number of threads shows")


NARROWER = {
    "avx2": lambda: avx2_target(),
    "sse2": lambda: replace(current_target(), cpu="x86-64", features="+sse2", vector_bits=128),
}


@pytest.mark.parametrize("name", NARROWER)
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.__name__)
def test_pattern_with_narrower_vectors(pattern, name):
    if "x86_64" not in current_target().triple or (name == "avx2" and not has_avx2()):
        pytest.skip("this machine cannot run it")
    turn = PATTERNS.index(pattern)
    shapes = [s for s in [(1003,), (37, 65), (65, 9), (3, 0)] if fits(pattern, s)]
    arrays = [sample(shape, ("f4", "f8")[(turn + k) % 2]) for k, shape in enumerate(shapes)]
    graph = build(each(pattern), *arrays)
    same(compiled(graph, arrays, NARROWER[name]()).run(arrays), expected(graph, arrays))


def test_extremes_with_nan_and_ties():
    rng = np.random.default_rng(5)
    for shape in [(1,), (5,), (64,), (130,), (9, 70), (70, 9), (4, 3, 50)]:
        for dtype in "f4", "f8", "i1", "u8", "?":
            x = rng.integers(0, 4, shape).astype(dtype)
            if dtype[0] == "f":
                x[rng.random(shape) < 0.02] = np.nan
            graph = build(
                lambda b, x: [
                    b.op(n, x, axis=a) for n in ("argmax", "argmin") for a in range(len(x.shape))
                ],
                x,
            )
            check(graph, [x], exact=True)


# Large reductions go by chunks.


def all_sum(b, x):
    return b.op("sum", x, axes=tuple(range(len(x.shape))))


def cut(b, x, axis, start, stop):
    low = tuple(start if d == axis else 0 for d in range(len(x.shape)))
    high = tuple(stop if d == axis else n for d, n in enumerate(x.shape))
    return b.slice(x, start=low, stop=high, step=(1,) * len(x.shape))


def differences(b, x):
    """Along each axis; every access walks the array otherwise than its flat order."""
    return [
        all_sum(b, b.abs(b.sub(cut(b, x, a, 1, n), cut(b, x, a, 0, n - 1))))
        for a, n in enumerate(x.shape)
        if n > 1
    ]


def weighted(b, x):
    return [
        all_sum(b, b.mul(x, b.broadcast(b.op("max", x, axes=(a,)), shape=x.shape, dims=kept)))
        for a in range(len(x.shape))
        for kept in [tuple(d for d in range(len(x.shape)) if d != a)]
    ]


def turned_sums(b, x):
    perm = (*range(1, len(x.shape)), 0)
    t = b.transpose(x, perm=perm)
    return (
        all_sum(b, b.neg(t)),
        b.op("max", t, axes=(0,)),
        b.op("min", b.neg(t), axes=tuple(sorted(perm[1:]))),
    )


def overlapping_pair(b, x):
    """Two sums over nearly the same elements: chunks of equal length, but not of equal totals."""
    flat = b.reshape(x, shape=(x.tensor.size,))
    return (
        all_sum(b, flat),
        all_sum(b, cut(b, flat, 0, 1, x.tensor.size)),
        all_sum(b, b.mul(flat, flat)),
    )


def folded(b, x):
    flat = b.reshape(x, shape=(x.tensor.size,))
    half = x.tensor.size // 2 * 2
    return b.op("sum", b.reshape(cut(b, flat, 0, 0, half), shape=(2, half // 2)), axes=(1,))


LARGE = [
    (100_000,), (65_537,), (300, 301), (2, 50_001), (50_001, 2), (3, 70, 401), (70_000, 3),
    (401, 2, 101),
]  # fmt: skip


@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_large_reductions(shape, threads):
    x = laid_out(sample(shape, "f8"), LAYOUTS[(len(shape) + shape[0] % 2) % 4])
    for program in [every_sum, differences, weighted, turned_sums, overlapping_pair, folded]:
        graph = build(program, x)
        run = compiled(graph, [x]).run
        threads(2)
        got = run([x])
        same(got, expected(graph, [x]), ulps=100_000)
        threads(1)
        for g, alone in zip(got, run([x]), strict=True):
            np.testing.assert_array_equal(g, alone, err_msg="the number of threads shows")


def test_large_reductions_of_other_kinds():
    x = np.random.default_rng(0).integers(0, 256, (300, 301)).astype("u1")

    def program(b, x):
        kinds = [b.op(n, cut(b, x, 1, 1, 301), axes=(0, 1)) for n in ("sum", "prod", "max", "min")]
        odd = b.op("ne", x, b.transpose(b.flip(cut(b, x, 0, 0, 300), axes=(1,)), perm=(0, 1)))
        return [*kinds, b.op("any", odd, axes=(0, 1)), b.op("all", odd, axes=(0, 1))]

    check(build(program, x), [x], exact=True)


def test_large_sums_of_overlapping_windows():
    """Rows that overlap in memory: the offsets of chunks and of columns could be taken for one loop."""
    base = np.random.default_rng(0).standard_normal(4 * 70_000 + 256)
    x = np.lib.stride_tricks.as_strided(base, (70_000, 256), (32, 8))
    graph = build(plain_columns, x)
    same(compiled(graph, [x]).run([x]), [x.sum(axis=0)], ulps=100_000)


def plain_columns(b, x):
    return b.op("sum", x, axes=(0,))


# Error sites.


def raises(graph, arrays, message):
    executable = compiled(graph, arrays)
    for _ in range(2):
        with pytest.raises(IndexError, match=message):
            executable.run(arrays)
    return executable


def test_bad_index_in_a_shared_kernel(threads):
    threads(2)
    x, index = np.arange(50.0), np.zeros(300_000, np.int64)

    def f(b, x, i):
        return b.exp(b.gather(x, i, axes=(0,), mode="check"))

    graph = build(f, x, index)
    bad = index.copy()
    bad[[5, 77_777, 299_999]] = 50, -51, 1 << 40
    executable = raises(graph, [x, bad], "out of bounds for axis of size 50")
    same(executable.run([x, index]), expected(graph, [x, index]))


@pytest.mark.parametrize("start", [0, 1, 2])
def test_indices_that_are_counted_are_checked_unless_all_fit(start):

    def f(b, x):
        counted = b.iota(shape=(17,), dtype=I64, axis=0)
        at = b.slice(counted, start=(start,), stop=(start + 5,), step=(1,))
        return b.gather(x, at, axes=(0,), mode="check")

    x = np.arange(6.0)
    if start < 2:
        check(build(f, x), [x])
    else:
        raises(build(f, x), [x], "index 6 is out of bounds")


def test_the_first_bad_index_is_reported():
    x, index = np.arange(5.0), np.array([0, -5, 4, 7, -9, 5])
    raises(
        build(lambda b, x, i: b.gather(x, i, axes=(0,), mode="check"), x, index),
        [x, index],
        "index 7 is out of bounds for axis of size 5",
    )

    def f(b, x, i):
        u = b.exp(b.convert(i, dtype=F64))
        return b.scatter(x, u, i, axes=(0,), mode="check", combine="add")

    raises(build(f, x, index), [x, index], "index 7 ")


@pytest.mark.parametrize("mode", ["check", "clip"])
def test_bad_index_in_a_loop(mode):
    def program(b, x, i):
        def body(b, k, x, i, s):
            at = b.reshape(b.dynamic_slice(i, k, sizes=(1,)), shape=())
            return x, i, b.add(s, b.gather(x, at, axes=(0,), mode=mode))

        return loop(b, 6, body, x, i, b.const(0.0, F64))[2]

    x, index = np.arange(5.0), np.array([0, 1, 2, 9, 1, 1])
    graph = build(program, x, index)
    if mode == "clip":
        check(graph, [x, index])
    else:
        executable = raises(graph, [x, index], "index 9 ")
        same(executable.run([x, index % 5]), expected(graph, [x, index % 5]))


def test_bad_index_in_a_branch_that_is_not_taken():
    def program(b, flag, x, i):
        def wild(b, x, i):
            return b.gather(x, i, axes=(0,), mode="check")

        types = [x.type, i.type]
        calm = region(lambda b, x, i: b.neg(x), *types)
        return b.op("cond", flag, x, i, regions=(calm, region(wild, *types)))

    x, index = np.arange(3.0), np.array([0, 3, 1])
    graph = build(program, np.int32(0), x, index)
    executable = raises(graph, [np.asarray(np.int32(1)), x, index], "index 3 ")
    arrays = [np.asarray(np.int32(0)), x, index]
    same(executable.run(arrays), expected(graph, arrays))


@pytest.mark.parametrize(
    ("shape", "axis", "index"),
    [((0,), 0, [0]), ((3, 0), 0, [1, 5]), ((3, 0), 1, [-1]), ((0,), 0, [])],
)
def test_indices_are_checked_where_nothing_moves(shape, axis, index):
    x, index = np.zeros(shape), np.array(index, np.int64)
    check(build(lambda b, x, i: b.gather(x, i, axes=(axis,), mode="check"), x, index), [x, index])
    rest = tuple(n for d, n in enumerate(shape) if d != axis)
    u = np.ones((*index.shape, *rest))
    for combine in "set", "add":

        def f(b, x, u, i, how=combine):
            return b.scatter(x, u, i, axes=(axis,), mode="check", combine=how)

        check(build(f, x, u, index), [x, u, index])


def test_assertion_shows_its_values():
    def program(b, x):
        token = b.op("create_token")
        fine = b.op("lt", x, b.const(2.0, F64))
        return b.exp(x), b.op("assert", fine, x, token, message="x is {0}")

    graph = build(program, np.float64(0))
    with pytest.raises(AssertionError, match="x is 3.5"):
        compiled(graph).run([np.asarray(3.5)])
    same(compiled(graph).run([np.asarray(1.0)]), [np.exp(np.asarray(1.0))])


def test_large_row_buffers_stay_within_the_stack():
    """A row of 256 KiB and more is not kept on the stack of a worker thread."""
    for n in (1 << 14, 1 << 15, 1 << 16, 1 << 17):
        x = sample((20, n), "f8")
        graph = build(softmax, x)
        same(compiled(graph).run([x]), expected(graph, [x]))
