"""Native sort and argsort against NumPy's stable sort: lengths around the runs, order of equals."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, compiled

import jitney as jt
from jitney.codegen.kernels.sort import cpu_quicksort as quicksort
from jitney.codegen.kernels.sort.cpu_selection import SAMPLE
from jitney.codegen.kernels.sort.cpu_sorting import RUN
from jitney.codegen.limits import DEFAULT
from jitney.codegen.target import Target
from jitney.ir.record import replace
from jitney.ir.types import BASIC, is_small
from jitney.runtime.native.host import host_target

# Complex: test_complex_ops; small floats: test_small_floats.
DTYPES = [d for d in BASIC.values() if d.kind != "c" and not is_small(d)]
SHORT = DEFAULT.short_row
LENGTHS = [1, 3, RUN - 1, RUN, RUN + 1, 5 * RUN + 7, SHORT, SHORT + 1, 4097]
SHAPES = [(3, 40, 29), (26, 2, 1), (1, 1, 60), (30, 30, 30), (0, 3, 2), (2, 0, 5)]


def both(b: Any, x: Any, axis: int) -> list[Any]:
    return [b.sort(x, axis=axis, stable=True), b.argsort(x, axis=axis, stable=True)]


def narrow() -> Target:
    """The host without vectors that compress: values are sorted by merging and by digits."""
    host = host_target()
    return replace(host, vector_bits=min(host.vector_bits, 256))


def another() -> Target:
    """The host as if it were of the other make: vectors are compressed into memory, or in registers."""
    return replace(host_target(), cpu="cascadelake" if host_target().zen else "znver4")


def check(x: np.ndarray, axis: int = -1, target: Target | None = None) -> None:
    axis %= x.ndim
    graph = build(lambda b, v: both(b, v, axis), x)
    check_order(x, *compiled(graph, [x], target).run([x]), axis)


def check_together(arrays: list[np.ndarray], target: Target | None = None) -> None:
    """The same of several arrays in one program, which sorts all of a dtype by the same functions."""
    graph = build(lambda b, *all: [found for v in all for found in both(b, v, 0)], *arrays)
    found = iter(compiled(graph, arrays, target).run(arrays))
    for x, values, places in zip(arrays, found, found, strict=True):
        check_order(x, values, places, 0)


def check_order(x: np.ndarray, values: np.ndarray, places: np.ndarray, axis: int) -> None:
    np.testing.assert_array_equal(places, np.argsort(x, axis=axis, kind="stable"))
    want = np.sort(x, axis=axis, kind="stable")
    np.testing.assert_array_equal(values, want)
    if x.dtype.kind == "f":
        number = ~np.isnan(want)
        signs = np.signbit(values[number]), np.signbit(want[number])
        np.testing.assert_array_equal(*signs, "zeros keep their order")
    assert places.dtype == np.int64 and values.dtype == x.dtype


def sample(rng: np.random.Generator, shape: Any, dtype: np.dtype[Any], kinds: int) -> np.ndarray:
    """Few different values, so that many are equal; the ends of the range among them."""
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "f":
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
        pool = np.concatenate([special, rng.standard_normal(kinds).astype(dtype)])
    else:
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.max, 0], dtype)
        pool = np.concatenate([ends, rng.integers(0, 100, kinds).astype(dtype)])
    return rng.choice(pool, shape)


def wide(x: np.ndarray) -> np.ndarray:
    """float16 as float32, for references: on CPUs with AVX-512 NumPy may leave float16 unsorted."""
    return x.astype("f4") if x.dtype == "f2" else x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lengths(dtype):
    rng = np.random.default_rng(1)
    check_together([sample(rng, n, dtype, kinds=n // 3 + 1) for n in LENGTHS])
    lengths = (SHORT, SHORT + 1)
    for target in (narrow(), another()):
        check_together([sample(rng, n, dtype, kinds=n // 3 + 1) for n in lengths], target)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_axes(shape, axis):
    rng = np.random.default_rng(2)
    check(sample(rng, shape, np.dtype("f4"), kinds=9), axis)
    strided = np.asfortranarray(sample(rng, shape, np.dtype("i2"), kinds=9))
    check(strided, axis)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: np.arange(float(n)),
        lambda n: np.arange(float(n))[::-1],
        lambda n: np.zeros(n),
        lambda n: np.full(n, np.nan),
        lambda n: np.tile([1.0, 0.0], n)[:n],
        lambda n: np.concatenate([np.arange(n // 2), np.arange(n - n // 2)]).astype(float),
    ],
    ids=["sorted", "reversed", "equal", "nan", "alternating", "two runs"],
)
def test_orders(make):
    check_together([make(n) for n in (RUN + 1, 777)])


@pytest.mark.parametrize("depth", [1, 3])
def test_pivots_that_cut_badly(monkeypatch, depth):
    """After so many partitions what is left is merged; a length that no other test compiles."""
    monkeypatch.setattr(quicksort, "DEPTH", depth)
    rng = np.random.default_rng(6)
    for dtype in ("f4", "f8", "u4"):
        check(sample(rng, 3000 + depth, np.dtype(dtype), kinds=900))
        check(sample(rng, 100_000 + depth, np.dtype(dtype), kinds=40_000))


KEYS = {"f4": st.floats(width=32), "f8": st.floats()}
KEYS |= {d: st.integers(np.iinfo(d).min, np.iinfo(d).max) for d in ("i4", "u4", "i8", "u8")}


@settings(max_examples=30, deadline=None)
@given(
    st.data(),
    st.sampled_from(sorted(KEYS)),
    st.sampled_from([16, 31, 50, 128, 129, 300, 1111, 140_000]),
)
def test_rows_of_any_few_values(data, dtype, n):
    """Blocks, parts and segments of a few arbitrary values: duplicates, zeros, ends of the range."""
    values = data.draw(st.lists(KEYS[dtype], min_size=1, max_size=12))
    seed = data.draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    x = rng.choice(np.array(values, dtype), n)
    few = rng.choice([0, n // 50, n])  # all of them different otherwise
    x[:few] = rng.integers(-(10**6), 10**6, few).astype(dtype)
    got, want = jt.jit(np.sort)(x), np.sort(x, kind="stable")
    np.testing.assert_array_equal(got, want)
    if dtype[0] == "f":
        number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


@settings(max_examples=12)
@given(st.lists(st.floats(width=32), min_size=1, max_size=80), st.booleans())
def test_any_floats(values, double):
    check(np.array(values, "f8" if double else "f4"))


def test_the_source_stays_as_it_was():
    x = np.array([3.0, 1.0, 2.0])
    check(x)
    np.testing.assert_array_equal(x, [3.0, 1.0, 2.0])


def test_sorts_of_computed_and_reversed_values():
    """Descending order is composed: flip of a sort of a flip."""
    x = np.random.default_rng(4).integers(0, 9, (7, 50)).astype("f8")

    def descending(b, x):
        return b.flip(b.sort(b.flip(b.neg(x), axes=(1,)), axis=1, stable=True), axes=(1,))

    (got,) = compiled(build(descending, x)).run([x])
    np.testing.assert_array_equal(got, -np.sort(x, axis=1))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u2"])
def test_blocks(dtype, threads):
    """Long enough to be sorted in several blocks, by several threads; several such rows."""
    rng = np.random.default_rng(5)
    sizes = ((200_003, 50_000, None), ((3, 70_001), 9, None), (70_001, 9, narrow()))
    for shape, kinds, target in sizes:
        x = sample(rng, shape, np.dtype(dtype), kinds)
        run = compiled(build(lambda b, v: both(b, v, len(v.shape) - 1), x), [x], target).run
        for count in (1, 3):
            threads(count)
            check_order(x, *run([x]), x.ndim - 1)


def test_a_sort_fuses_with_what_is_around_it():
    f = jt.jit(lambda x: np.sort(x * x)[:, ::-1] + 1)
    x = np.random.default_rng(3).standard_normal((7, 600)).astype("f4")
    np.testing.assert_array_equal(f(x), np.sort(x * x)[:, ::-1] + 1)
    assert f.explain(x).count("parallel") <= 2


PARTS = {
    "largest": lambda x: np.sort(x)[-100:],
    "smallest": lambda x: np.sort(x)[:37],
    "middle": lambda x: np.sort(x)[len(x) // 2 - 3 : len(x) // 2 + 5],
    "places": lambda x: np.argsort(x, kind="stable")[-50:],
    "two parts": lambda x: (np.sort(x)[100:300], np.sort(x)[200:3000:3]),
}
PART = {name: jt.jit(part) for name, part in PARTS.items()}  # for all orders
ORDERS = {
    "random": lambda x, rng: x,
    "sorted": lambda x, rng: np.sort(x),
    "reversed": lambda x, rng: np.sort(x)[::-1],
    "zeros": lambda x, rng: np.where(rng.random(len(x)) < 0.5, -0.0, 0.0),
    "mostly equal": lambda x, rng: np.where(np.arange(len(x)) % 7 == 0, 1e3, np.round(x / 9)),
    "nan": lambda x, rng: np.where(rng.random(len(x)) < 0.5, np.nan, x),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u2", "i1"])
def test_parts_of_a_sorted_row(dtype, order):
    """A part is selected: exactly what sorting all of it gives, the signs of zeros included."""
    rng = np.random.default_rng(9)
    x = ORDERS[order](rng.standard_normal(100_003) * 10, rng)
    if dtype[0] == "f" or order != "nan":
        x = x.astype(dtype)
        for name, part in PARTS.items():
            found, want = PART[name](x), part(x)
            pairs = zip(found, want, strict=True) if name == "two parts" else [(found, want)]
            for a, b in pairs:
                np.testing.assert_array_equal(a, b)
                assert a.dtype == b.dtype


def test_parts_keep_the_order_of_zeros():
    x = np.where(np.random.default_rng(2).random(40_000) < 0.5, -0.0, 0.0)
    got = jt.jit(lambda x: np.sort(x)[20_000:20_100])(x)
    want = np.sort(x, kind="stable")[20_000:20_100]
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_a_sample_that_misleads():
    """Where the sample is taken all is small: the rest is not forgotten."""
    n = 1 << 16
    stride = n // SAMPLE
    x = np.arange(n, dtype="f8")[::-1].copy() + 10
    at = [s * stride + s * 7919 % stride for s in range(SAMPLE)]
    x[at] = np.arange(SAMPLE) / SAMPLE
    for name in ("largest", "smallest", "middle"):
        np.testing.assert_array_equal(PART[name](x), PARTS[name](x))


def test_rows_of_which_parts_are_wanted():
    x = np.random.default_rng(3).standard_normal((3, 20_000)).astype("f4")
    for f in (lambda x: np.sort(x, axis=1)[:, -9:], lambda x: np.sort(x.T, axis=0)[5:50] * 2):
        np.testing.assert_array_equal(jt.jit(f)(x), f(x))
    k = jt.jit(lambda x: np.partition(x, 19_990, axis=1)[:, 19_990:].min(axis=1))
    np.testing.assert_array_equal(k(x), np.sort(x, axis=1)[:, 19_990])


@pytest.mark.parametrize(
    "dtype", ["bool", "i1", "u1", "i2", "u2", "i4", "u8", "f2", "f4", "f8", "c16"]
)
@pytest.mark.parametrize("count", [0, 1, 40, 300])
def test_isin(dtype, count):
    """By comparisons, by a table and by searching, as NumPy says."""
    rng = np.random.default_rng(count)
    x, tests = (rng.integers(0, 200, n).astype(dtype) for n in (500, count))
    if dtype[0] == "f":
        x[:4], tests[:4] = (
            [np.nan, 0.0, -0.0, np.inf],
            np.array([np.nan, -0.0, -np.inf, 7.0])[:count],
        )
    both = jt.jit(lambda x, t: [np.isin(x, t, invert=invert) for invert in (False, True)])
    for invert, got in enumerate(both(x.reshape(50, 10), tests)):
        want = np.isin(wide(x).reshape(50, 10), wide(tests), invert=bool(invert))
        np.testing.assert_array_equal(got, want)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.sampled_from([0.0, -0.0, 1.0, 2.5, np.inf, -np.inf, np.nan]) | st.floats(), max_size=40
    ),
    st.lists(st.floats(), max_size=10),
    st.sampled_from(["f4", "f8", "i8"]),
)
def test_searches(table, keys, dtype):
    with np.errstate(all="ignore"):
        table, keys = (np.nan_to_num(v) if dtype == "i8" else v for v in (table, keys))
        table = np.sort(np.array(table, "f8").astype(dtype))
        keys = np.concatenate([np.array(keys, "f8").astype(dtype), table])
    check_searches([(table, keys)])


def check_searches(pairs: list[Any]) -> None:
    def found(pairs: Any) -> list[Any]:
        return [np.searchsorted(*pair, side) for pair in pairs for side in ("left", "right")]

    for got, want in zip(jt.jit(found)(pairs), found(pairs), strict=True):
        np.testing.assert_array_equal(got, want)


LONG_ROW = 1 << 12  # from here on a partition is no sort


@lru_cache
def partitions(kth: int, axis: int, backend: str = "native") -> Any:
    """One function for all orders and dtypes."""
    both = lambda x: (np.partition(x, kth, axis), np.argpartition(x, kth, axis))  # noqa: E731
    return jt.jit(both, backend=backend)


def check_partition(x: np.ndarray, kth: int, axis: int = -1) -> None:
    """The order that NumPy asks for, and elements and places that belong together."""
    values, places = partitions(kth, axis)(x)
    want = np.sort(wide(x), axis)
    rows, order, s = (np.moveaxis(v, axis, -1) for v in (wide(values), places, want))
    np.testing.assert_array_equal(rows[..., kth], s[..., kth])
    np.testing.assert_array_equal(np.sort(rows[..., :kth]), s[..., :kth])
    np.testing.assert_array_equal(np.sort(rows[..., kth:]), s[..., kth:])
    np.testing.assert_array_equal(np.sort(order), np.broadcast_to(np.arange(s.shape[-1]), s.shape))
    np.testing.assert_array_equal(np.take_along_axis(x, places, axis), values)
    for a, b in zip(partitions(kth, axis, "interpreter")(x), (values, places), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i8", "u2", "i1"])
def test_partitions(dtype, order):
    rng = np.random.default_rng(9)
    n = 20_003
    x = ORDERS[order](rng.standard_normal(n) * 10, rng)
    if dtype[0] == "f" or order != "nan":
        x = x.astype(dtype)
        for kth in (0, 7, n // 2, -3):
            check_partition(x, kth % n)


def test_partitions_of_rows():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 4000, (3, LONG_ROW + 1)).astype("f4")
    check_partition(x, 2000)
    check_partition(x.T, 4000, axis=0)
    check_partition(np.asfortranarray(x)[:, ::-1], 11)
    check_partition(np.broadcast_to(x[0], (2, LONG_ROW + 1)), 3)


def test_partitions_by_any_number_of_threads():
    x = np.round(np.random.default_rng(4).standard_normal(200_003), 2)
    f = jt.jit(lambda x: (np.partition(x, 100_000), np.argpartition(x, 77)))
    found = []
    for threads in (1, 3):
        with jt.threads(threads):
            found.append(f(x))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_derivatives_of_partitions():
    rng = np.random.default_rng(6)
    x, w = rng.permutation(LONG_ROW + 5).astype("f8"), rng.standard_normal(LONG_ROW + 5)
    for kth in (5, 2000, LONG_ROW):
        loss = jt.jit(lambda x, kth=kth: (np.partition(x, kth) * w).sum())
        places = jt.jit(lambda x, kth=kth: np.argpartition(x, kth))(x)
        want = np.empty_like(w)
        want[places] = w
        np.testing.assert_array_equal(jt.grad(loss)(x), want)
        _, tangent = jt.jvp(loss, (x,), (w,))
        np.testing.assert_allclose(tangent, (w[places] * w).sum())


def test_partitions_that_are_refused():
    with pytest.raises(ValueError, match="out of bounds"):
        jt.jit(lambda x: np.partition(x, 5))(np.zeros(5))


def test_partitions_at_traced_places():
    x = np.random.default_rng(3).permutation(100.0 * np.arange(50))
    got = jt.jit(lambda x, k: np.partition(x, k))(x, np.array(7))
    assert got[7] == np.sort(x)[7]


@pytest.mark.parametrize("n", [1, 31, 32, 33, 48, 49, 100, 255, 256, 257, 1000, 4097])
def test_searches_in_tables_of_all_lengths(n):
    table, keys = np.sort(np.random.default_rng(n).integers(0, 2 * n, n)), np.arange(-2, 2 * n + 2)
    check_searches([(table.astype(dtype), keys.astype(dtype)) for dtype in ("f4", "i8")])


CLUSTERS = {
    "outlier": lambda rng, n: np.where(np.arange(n) == n // 3, 2**62, rng.integers(0, 99, n)),
    "ends": lambda rng, n: rng.choice(np.array([-(2**63), 2**63 - 1, 0, -1]), n),
    "low bits": lambda rng, n: 1.0 + rng.integers(0, n // 2 + 1, n) * 2.0**-52,
    "high and low": lambda rng, n: (rng.integers(0, 3, n) << 61) + rng.integers(0, n, n),
    "three levels": lambda rng, n: (
        (rng.integers(0, 2, n) << 62) + (rng.integers(0, 2, n) << 30) + rng.integers(0, 2, n)
    ),
    "one value": lambda rng, n: np.full(n, -7.25),
    "zeros": lambda rng, n: rng.choice(np.array([0.0, -0.0, np.nan, 1e-320, -1e-320]), n),
}


PLACES = jt.jit(lambda x: np.argsort(x, kind="stable"))


@pytest.mark.parametrize("kind", CLUSTERS)
@pytest.mark.parametrize("n", [1, 2, 3, 65, 300, 5000, 140_003])
def test_places_of_elements_that_differ_in_few_bits(kind, n):
    """Keys of which no prefix that fits beside a place tells all apart."""
    x = CLUSTERS[kind](np.random.default_rng(n), n)
    want = np.argsort(x, kind="stable")
    for threads in (1, 3):
        with jt.threads(threads):
            np.testing.assert_array_equal(PLACES(x), want)


def test_places_without_vectors_that_compress():
    rng = np.random.default_rng(8)
    for n in (40, 600):
        check(rng.choice(rng.standard_normal(n), n), target=narrow())
