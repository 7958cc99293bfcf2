"""Sorting on the emulated GPU: rows of all lengths, in one tile or merged from several."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import TARGET, assembled, compiled, run
from programs import build, expected, laid_out, sample, sorted_columns
from test_cuda_kernels import check

from jitney.codegen.device.compile import compile_device
from jitney.codegen.kernels.sort import cuda_radix_plan as radix_plan
from jitney.codegen.kernels.sort import lower_sorting
from jitney.ir.types import TensorType
from jitney.runtime.cuda.emulator.machine import ORDERS


def both(b, x):
    axis = len(x.shape) - 1
    return [b.sort(x, axis=axis, stable=True), b.argsort(x, axis=axis, stable=True)]


def numbers(shape, dtype):
    """With ties, NaN and zeros of both signs."""
    rng = np.random.default_rng(3)
    if np.dtype(dtype).kind != "f":
        return rng.integers(0, 250, shape).astype(dtype)
    x = np.rint(rng.standard_normal(shape) * 20).astype(dtype)
    x[rng.random(shape) < 0.01] = np.nan
    x[rng.random(shape) < 0.01] = np.inf
    return np.where(rng.random(shape) < 0.5, x, -x)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((1,), "f4"),
        ((5, 1), "i4"),
        ((70, 3), "f8"),
        ((9, 100), "u1"),
        ((3, 1024), "f4"),
        ((1025,), "i8"),
        ((2, 5000), "f8"),
        ((2, 3000), "?"),
        ((10_000,), "f4"),
        ((7000,), "i2"),
    ],
    ids=str,
)
def test_rows_of_any_length(shape, dtype):
    check(both, numbers(shape, dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_equal_elements_keep_their_order(dtype):
    """Zeros of both signs are equal, and come as they came."""
    x = np.zeros(3000, dtype)
    x[::3] = -0.0
    graph = build(both, x)
    got, places = run(compiled(graph, [x]), [x])
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
    np.testing.assert_array_equal(places, np.arange(x.size))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_threads_in_any_order(order):
    check(both, numbers((2, 2100), "f4"), order=order)


@pytest.fixture
def by_digits(monkeypatch):
    """Rows of any length are sorted by digits, a few elements to a thread."""
    monkeypatch.setattr(radix_plan, "TILE_OF_MERGE", 1)
    monkeypatch.setattr(radix_plan, "MERGE", 100.0)
    monkeypatch.setattr(radix_plan, "HELD", 2)


DIGITS = [((900,), "f4"), ((2, 1000), "f8"), ((3, 769), "?"), ((1600,), "i2"), ((2, 800), "u8")]


@pytest.mark.parametrize(("shape", "dtype"), DIGITS, ids=str)
def test_sorting_by_digits(shape, dtype, by_digits):
    x = numbers(shape, dtype)
    program = compiled(build(both, x), [x])
    assert any(name.startswith("sweep") for name in program.kernels)
    check(both, x)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_digits_in_any_order_of_threads(order, by_digits):
    check(lambda b, x: b.sort(x, axis=0, stable=True), numbers((2000,), "i4"), order=order)


def test_all_digits_are_equal_or_all_of_a_tile_is_of_one_value(by_digits):
    for x in (np.full(2000, 7, "i4"), np.arange(2000, dtype="i4"), np.arange(2000)[::-1] << 40):
        check(both, np.ascontiguousarray(x))


def test_zeros_of_both_signs_are_one_digit(by_digits):
    x = np.zeros(1000, "f4")
    x[::3] = -0.0
    got, places = run(compiled(build(both, x), [x]), [x])
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
    np.testing.assert_array_equal(places, np.arange(x.size))


def test_long_rows_are_sorted_by_digits_short_ones_merged():
    def kernels(shape, dtype):
        program = compile_device(
            build(lambda b, x: b.sort(x, axis=1, stable=True), types=[TensorType(shape, dtype)]),
            TARGET,
        )
        return {name.partition("_")[0] for name in program.kernels}

    assert "sweep" in kernels((3, 1_000_000), np.dtype("f4"))
    assert "sweep" in kernels((3, 20_000), np.dtype("i2"))
    assert "merge" in kernels((3, 10_000), np.dtype("f4"))
    assert "merge" in kernels((300, 100_000), np.dtype("f8"))


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_kernels_fit_registers(arch):
    for dtype, program in (("f4", both), ("f8", both), ("f4", part("sort", 10, 100))):
        graph = build(program, types=[TensorType((10_000_000,), np.dtype(dtype))])
        report = assembled(compile_device(graph, TARGET).ir, arch)
        if report is None:
            pytest.skip("there is no ptxas")
        most = max(k.registers for k in report.kernels.values())
        assert most <= 80, "two blocks of 384 threads, or three of 256, share a multiprocessor"


def test_along_other_axes_and_in_other_memory():
    for layout in ("transposed", "reversed", "strided"):
        check(sorted_columns, laid_out(sample((40, 33), "f4"), layout))


def part(op, start, stop):
    """Some places of each sorted row."""

    def program(b, x):
        last = len(x.shape) - 1
        low, high = [0] * last, list(x.shape[:-1])
        ordered = b.op(op, x, axis=last, stable=True)
        ends = {"start": (*low, start), "stop": (*high, stop)}
        return b.slice(ordered, **ends, step=(1,) * (last + 1))

    return program


@pytest.fixture
def parts(monkeypatch):
    """Parts are looked for in rows of any length."""
    monkeypatch.setattr(lower_sorting, "LONG", 64)


def ends(n):
    return [(0, 9), (n - 9, n), (n // 2, n // 2 + 1), (n // 3, n // 3 + 150)]


@pytest.mark.parametrize("op", ["sort", "argsort"])
@pytest.mark.parametrize(("shape", "dtype"), [((2, 2000), "f4"), ((700,), "f8"), ((3, 2500), "i2")])
def test_parts_of_sorted_rows(shape, dtype, op, parts):
    """The first few, the last few, those in the middle: only they are sorted."""
    x = numbers(shape, dtype)
    for start, stop in ends(shape[-1])[len(shape) % 2 :: 2]:
        graph = build(part(op, start, stop), x)
        program = compiled(graph, [x])
        assert any(name.startswith("gather") for name in program.kernels)
        np.testing.assert_array_equal(run(program, [x])[0], expected(graph, [x])[0])


@pytest.mark.parametrize("op", ["sort", "argsort"])
def test_parts_among_equal_elements(op, parts):
    """Those that come first are taken first; zeros of both signs are equal."""
    x = np.zeros(5000, "f4")
    x[::3] = -0.0
    x[[17, 4100]] = np.nan, -1.0
    for start, stop in ends(x.size):
        graph = build(part(op, start, stop), x)
        got, want = run(compiled(graph, [x]), [x])[0], expected(graph, [x])[0]
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_parts_in_any_order_of_threads(order, parts):
    check(part("sort", 3000, 3100), numbers((2, 4200), "i4"), order=order)


def test_the_largest_few_of_a_long_row():
    check(part("sort", 16_380, 16_384), sample((16_384,), "f4"))


def test_a_sort_takes_two_buffers():
    x = sample((9000,), "f4")
    program = compiled(build(lambda b, x: b.sort(x, axis=0, stable=True), x), [x])
    assert 2 * x.nbytes <= program.arena_bytes <= 2 * x.nbytes + 512


@pytest.mark.parametrize("kth", [0, 100, 299])
@pytest.mark.parametrize("dtype", ["f4", "i2"])
def test_partitions(kth, dtype):
    """Places by class, as the interpreter has them; the rest is gathers and sorts."""
    x = numbers((2, 300), dtype)

    def partitioned(b, x):
        return [b.op(name, x, axis=-1, kth=kth) for name in ("partition", "argpartition")]

    graph = build(partitioned, x)
    for got, want in zip(run(compiled(graph, [x]), [x]), expected(graph, [x]), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("size", [0, 20, 90])
def test_true_indices(size):
    codes = np.random.default_rng(1).integers(0, 5, (3, 70)).astype("u1")

    def places(b, x):
        mask = b.eq(x, b.full_like(x, 1))
        classes = b.op("true_indices", x, size=size, classes=3)
        return [classes, b.op("true_indices", mask, size=size, classes=1)]

    graph = build(places, codes)
    for got, want in zip(
        run(compiled(graph, [codes]), [codes]), expected(graph, [codes]), strict=True
    ):
        np.testing.assert_array_equal(got, want)
