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
    PATTERNS,
    SHAPES,
    build,
    compiled,
    every_sum,
    expected,
    fits,
    loop,
    region,
    same,
    sample,
    softmax,
    sorted_columns,
)  # fmt: skip

from jitney.ir.graph import Graph
from jitney.ir.passes import optimise
from jitney.ir.record import replace
from jitney.ir.types import F64, I32, I64
from jitney.runtime.engine import host_target
from jitney.runtime.pool import get_threads, set_threads


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same values in other memory."""
    if array.ndim == 0 or layout == "contiguous":
        return np.asarray(array, order="C")
    if layout == "transposed":
        return np.asfortranarray(array)
    step = -1 if layout == "reversed" else 2
    room = np.zeros([2 * n for n in array.shape], array.dtype)
    view = room[(slice(None, None, step),) * array.ndim][tuple(slice(n) for n in array.shape)]
    view[...] = array
    return view


LAYOUTS = ["contiguous", "transposed", "reversed", "strided"]


def check(graph: Graph, arrays: list[np.ndarray], exact: bool = False, target=None) -> None:
    """Native results are the interpreter's; so are its errors."""
    try:
        want = expected(graph, arrays)
    except (IndexError, AssertionError) as error:
        with pytest.raises(type(error)):
            compiled(graph, arrays, target).run(arrays)
        return
    got = compiled(graph, arrays, target).run(arrays)
    if exact:
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype
            np.testing.assert_array_equal(g, w)
    else:
        same(got, want)


@settings(max_examples=40)
@given(random_graphs(max_ops=30, exact=True), st.data())
def test_random_graphs(case, data):
    graph, arrays = case
    if data.draw(st.booleans(), label="optimised"):
        graph = optimise(graph)
    layouts = [data.draw(st.sampled_from(LAYOUTS)) for _ in arrays]
    arrays = [laid_out(a, layout) for a, layout in zip(arrays, layouts, strict=True)]
    check(graph, arrays, exact=True)


@pytest.fixture
def threads():
    before = get_threads()
    yield set_threads
    set_threads(before)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.__name__)
def test_pattern(pattern, threads):
    turn = PATTERNS.index(pattern)
    for k, shape in enumerate(s for s in SHAPES if fits(pattern, s)):
        if pattern is sorted_columns and np.prod(shape) > 20_000:
            continue
        dtype = ("f4", "f8")[(k + turn) % 2]
        x = laid_out(sample(shape, dtype), LAYOUTS[k % 4] if k % 3 else "contiguous")
        graph = build(pattern, x)
        if k % 2:
            graph = optimise(graph)
        run = compiled(graph, [x]).run
        threads(2)
        got = run([x])
        # float32 sums of 200,000 elements: the interpreter's own rounding counts.
        same(got, expected(graph, [x]), ulps=4096 if dtype == "f4" else 512)
        threads(1)
        for g, alone in zip(got, run([x]), strict=True):
            np.testing.assert_array_equal(g, alone, err_msg="the number of threads shows")


NARROWER = {
    "avx2": lambda: avx2_target(),
    "sse2": lambda: replace(host_target(), cpu="x86-64", features="+sse2", vector_bits=128),
}


@pytest.mark.parametrize("name", NARROWER)
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.__name__)
def test_pattern_with_narrower_vectors(pattern, name):
    if "x86_64" not in host_target().triple or (name == "avx2" and not has_avx2()):
        pytest.skip("this machine cannot run it")
    turn = PATTERNS.index(pattern)
    shapes = [s for s in [(1003,), (37, 65), (65, 9), (3, 0)] if fits(pattern, s)]
    for k, shape in enumerate(shapes):
        x = sample(shape, ("f4", "f8")[(turn + k) % 2])
        graph = build(pattern, x)
        same(compiled(graph, [x], NARROWER[name]()).run([x]), expected(graph, [x]))


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


# Updates: in place where the old value is dead, and nowhere else.


def put(b, x, u, at, step=1):
    """x[at : at + step * len(u) : step] = u"""
    return b.update_slice(x, u, start=(at,), step=(step,))


def part(b, x, start, stop):
    return b.slice(x, start=(start,), stop=(stop,), step=(1,))


def ones(b, n, value=1.0):
    return b.full((n,), value, F64)


def total(b, x):
    return b.broadcast(b.op("sum", x, axes=(0,)), shape=x.shape, dims=())


def chain_of_updates(b, x):
    y = b.exp(x)
    for k in range(6):
        y = put(b, y, part(b, b.neg(x), k, k + 2), 5 - k)
    return y


def old_value_read_later(b, x):
    y = b.exp(x)
    z = put(b, y, ones(b, 3), 2)
    return b.add(z, y), put(b, z, ones(b, 2, 5.0), 0)


def old_value_inlined_later(b, x):
    """`half` has no memory of its own when y is updated: it must still see the old y."""
    y = b.exp(x)
    half = b.neg(part(b, y, 0, 4))
    z = put(b, y, ones(b, 4), 1)
    return put(b, z, half, 3)


def update_reads_its_base(b, x):
    y = b.exp(x)
    y = put(b, y, b.flip(part(b, y, 0, 6), axes=(0,)), 2)
    return put(b, y, part(b, y, 1, 5), 0)


def update_with_itself(b, x):
    y = b.exp(x)
    return b.update_slice(
        b.update_slice(y, y, start=(0,), step=(1,)), b.neg(y), start=(0,), step=(1,)
    )


def strided_update(b, x):
    y = b.exp(x)
    y = put(b, y, ones(b, 4), 0, step=2)
    return put(b, y, part(b, x, 0, 3), 1, step=3)


def two_outputs_from_one_base(b, x):
    y = b.exp(x)
    return put(b, y, ones(b, 2), 0), put(b, y, ones(b, 2), 4), y


def same_output_twice(b, x):
    y = put(b, b.exp(x), ones(b, 2), 0)
    return y, y, x, x


def scattered_twice(b, x):
    index = b.const([3, 0, 3, -1, 3], I64)
    y = b.scatter(b.exp(x), part(b, x, 0, 5), index, axes=(0,), mode="check", combine="set")
    return b.scatter(y, part(b, y, 0, 5), index, axes=(0,), mode="check", combine="add")


def in_a_loop(b, x):
    def body(b, i, x):
        moved = b.dynamic_slice(x, i, sizes=(3,))
        return b.dynamic_update_slice(x, b.add(moved, ones(b, 3)), b.sub(b.const(5, I64), i))

    return loop(b, 5, body, x)


def swapped_carries(b, x):
    return loop(b, 5, lambda b, i, x, y: (y, put(b, x, ones(b, 2), 1)), x, b.exp(x))


def both_updated_and_swapped(b, x):
    def body(b, i, x, y):
        return put(b, put(b, y, part(b, x, 0, 2), 0), ones(b, 1), 3), put(b, x, part(b, y, 2, 4), 4)

    return loop(b, 4, body, x, b.exp(x))


def carry_given_twice(b, x):
    def body(b, i, x, y):
        z = put(b, x, b.add(part(b, y, 0, 2), ones(b, 2)), 4)
        return z, z

    return loop(b, 3, body, x, x)


def old_carry_kept_too(b, x):
    return loop(b, 4, lambda b, i, x, y: (put(b, x, part(b, y, 0, 3), 2), x), x, b.exp(x))


def chain_through_another_output(b, x):
    """The last update of the chain goes to another carry than the one in the middle."""

    def body(b, i, x, y, z):
        middle = put(b, z, part(b, x, 5, 6), 0)
        last = put(b, middle, part(b, z, 5, 6), 0)
        return last, last, middle

    return loop(b, 3, body, x, b.exp(x), b.neg(x))


def carry_read_after_its_update(b, x):
    def body(b, i, x, s):
        y = put(b, x, ones(b, 2, 3.0), 0)
        return b.add(y, ones(b, 8)), b.add(s, total(b, x))

    return loop(b, 3, body, x, b.exp(x))


def constant_of_loop_updated(b, x):
    def body(b, i, c, x):
        c = put(b, c, b.add(part(b, c, 0, 1), ones(b, 1)), 0)
        return b.add(x, total(b, put(b, c, ones(b, 1), 1)))

    return loop(b, 3, body, x, consts=[b.exp(x)])


def region_updates_its_carry(b, x):
    types = [x.type]

    def going(b, x):
        index = b.const([0, 1], I64)
        y = b.scatter(x, ones(b, 2), index, axes=(0,), mode="check", combine="add")
        return b.lt(b.op("sum", y, axes=(0,)), b.const(40.0, F64))

    body = region(lambda b, x: b.add(x, ones(b, 8)), *types)
    return b.op("while", x, regions=(region(going, *types), body), consts=0)


def branch_updates_what_is_read_later(b, x):
    y = b.exp(x)
    no = region(lambda b, y: put(b, put(b, y, ones(b, 1, 5.0), 0), ones(b, 1, 6.0), 1), y.type)
    yes = region(lambda b, y: b.neg(y), y.type)
    flag = b.convert(b.op("lt", b.op("sum", x, axes=(0,)), b.const(1e9, F64)), dtype=I32)
    out = [b.op("cond", f, y, regions=(no, yes)) for f in (flag, b.sub(b.const(1, I32), flag))]
    return (*out, y)


def nested_control(b, x):
    def inner(b, i, c, x):
        return put(b, x, b.add(part(b, c, 0, 3), part(b, x, 1, 4)), 2)

    def taken(b, i, c, x):
        return loop(b, 3, lambda b, j, c, x: inner(b, j, c, x), x, consts=[c])

    def body(b, i, c, x):
        types = [i.type, c.type, x.type]
        regions = (region(lambda b, i, c, x: c, *types), region(taken, *types))
        flag = b.convert(b.op("bitwise_and", i, b.const(1, I64)), dtype=I32)
        y = b.op("cond", flag, i, c, x, regions=regions)
        return b.add(scaled_half(b, y), x)

    return loop(b, 5, body, x, consts=[b.exp(x)])


def scaled_half(b, x):
    return b.mul(x, b.full_like(x, 0.5))


UPDATING = [
    chain_of_updates, old_value_read_later, old_value_inlined_later, update_reads_its_base,
    update_with_itself, strided_update, two_outputs_from_one_base, same_output_twice,
    scattered_twice, in_a_loop, swapped_carries, both_updated_and_swapped, carry_given_twice,
    old_carry_kept_too, chain_through_another_output, carry_read_after_its_update,
    constant_of_loop_updated, region_updates_its_carry, branch_updates_what_is_read_later,
    nested_control,
]  # fmt: skip


@pytest.mark.parametrize("program", UPDATING, ids=lambda p: p.__name__)
def test_update(program):
    x = np.random.default_rng(3).standard_normal(8)
    graph = build(program, x)
    before = x.copy()
    check(graph, [x])
    check(optimise(graph), [x])
    check(graph, [laid_out(x, "reversed")])
    np.testing.assert_array_equal(x, before)


@settings(max_examples=40)
@given(st.data())
def test_random_updates_in_loops(data):
    """Bodies of updates, reads and swaps over three carries of one type, nested in conds."""
    n, draw = 6, data.draw
    slots = st.integers(0, 3)

    def steps(b, i, values, depth):
        values = list(values)
        for _ in range(draw(st.integers(1, 5))):
            x, y = values[draw(slots) % len(values)], values[draw(slots) % len(values)]
            kind, at, k = (
                draw(st.integers(0, 7)),
                draw(st.integers(0, n - 1)),
                draw(st.integers(1, n)),
            )
            k = min(k, n - at)
            if kind <= 1:
                new = put(b, x, part(b, y, n - k, n), at)
            elif kind == 2:
                new = put(b, x, b.neg(b.flip(part(b, y, 0, k), axes=(0,))), at)
            elif kind == 3:
                new = b.dynamic_update_slice(x, part(b, y, 0, k), b.add(i, b.const(at - 2, I64)))
            elif kind == 4:
                index = b.const([(at + 2 * j) % n for j in range(k)], I64)
                how = draw(st.sampled_from(["set", "add", "max"]))
                u = part(b, y, 0, k)
                new = b.scatter(x, u, index, axes=(0,), mode="check", combine=how)
            elif kind == 5:
                new = scaled_half(b, b.add(x, b.flip(y, axes=(0,))))
            elif kind == 6 and depth:
                types = [i.type, *(v.type for v in values[:3])]
                regions = [
                    region(lambda b, i, *v: steps(b, i, v, depth - 1)[:2], *types) for _ in range(2)
                ]
                flag = b.convert(b.op("lt", i, b.const(1, I64)), dtype=I32)
                new, other = b.op("cond", flag, i, *values[:3], regions=regions)
                values.append(other)
            else:
                new = b.exp(b.op("minimum", x, b.full_like(x, 0.5)))
            values.append(new)
            if draw(st.booleans()):
                values = values[-4:] if len(values) > 6 else values
        return [values[-1 - draw(slots) % len(values)] for _ in range(3)]

    def program(b, x, y, z):
        trips = draw(st.integers(0, 4))
        out = loop(b, trips, lambda b, i, *v: steps(b, i, v, 1), x, b.exp(y), z)
        return steps(b, b.const(1, I64), out, 0)

    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = [rng.standard_normal(n) for _ in range(3)]
    graph = build(program, *arrays)
    if draw(st.booleans()):
        graph = optimise(graph)
    check(graph, arrays)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_updates_of_empty_arrays(shape):
    x = np.zeros(shape)

    def program(b, x):
        y = b.update_slice(b.exp(x), x, start=(0,) * len(shape), step=(1,) * len(shape))
        start = [b.const(0, I64)] * len(shape)
        z = b.dynamic_update_slice(y, x, *start)
        return z, loop(
            b, 2, lambda b, i, z: b.concat(z, z, axis=0) if shape[0] == 0 else b.neg(z), z
        )

    check(build(program, x), [x])


@pytest.mark.parametrize("combine", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u8", "i8"])
def test_scatter_of_rows(combine, dtype):
    """Duplicate rows, in order; payloads along the last axis, the first axis, and both."""
    rng = np.random.default_rng(8)
    x = rng.integers(0, 5, (9, 37)).astype(dtype)
    index = np.array([3, 3, -1, 0, 3, 8, 7, 3])
    rows = rng.integers(1, 4, (8, 37)).astype(dtype)
    columns = rng.integers(1, 4, (8, 9)).astype(dtype)

    def program(b, x, rows, columns, index):
        y = b.scatter(x, rows, index, axes=(0,), mode="check", combine=combine)
        z = b.scatter(y, columns, index, axes=(1,), mode="clip", combine=combine)
        w = b.scatter(
            z, b.slice(rows, start=(0, 0), stop=(8, 1), step=(1, 1)),
            b.reshape(index, shape=(8, 1)), b.reshape(index, shape=(8, 1)),
            axes=(0, 1), mode="check", combine=combine,
        )  # fmt: skip
        return w, b.gather(z, index, axes=(0,), mode="check")

    arrays = [x, rows, columns, index]
    check(build(program, *arrays), arrays, exact=dtype[0] != "f")


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
