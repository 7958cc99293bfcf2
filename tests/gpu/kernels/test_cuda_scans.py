"""Scans on the emulated GPU: along rows and down columns, short and long, from either end."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import TARGET, assembled, compiled, run
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, expected, laid_out, same, sample
from test_cuda_kernels import check

from jitney.codegen.cuda import scan_plan
from jitney.codegen.device.compile import compile_device
from jitney.ir.passes import optimise
from jitney.ir.types import TensorType
from jitney.runtime.cuda.emulator.machine import FORWARDS, ORDERS

NAMES = ("cumsum", "cumprod", "cummax", "cummin")


def scans(axis, names=("cumsum", "cummax")):
    def program(b, x):
        return [b.op(n, x, axis=axis, reverse=r) for n in names for r in (False, True)]

    return program


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


ROWS = [(1,), (3,), (5, 8), (33, 7), (4, 100), (4, 128), (9, 31), (3, 1024), (2, 5001), (9000,)]
COLUMNS = [(40, 33), (300, 64), (1000, 3), (20, 5, 40), (2, 1), (7, 130)]


@pytest.mark.parametrize("shape", ROWS, ids=str)
def test_along_rows(shape):
    names = NAMES if shape[-1] < 200 else NAMES[:1]
    check(scans(len(shape) - 1, names), numbers(shape, "f4"))


@pytest.mark.parametrize("shape", COLUMNS, ids=str)
def test_down_columns(shape):
    check(scans(max(len(shape) - 2, 0)), numbers(shape, "f8"))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_every_dtype(dtype):
    """As many elements to an access as it holds, and integers that wrap."""

    def program(b, rows, columns):  # from either end, one along each axis
        ends = [(name, k % 2 == 1) for k, name in enumerate(NAMES)]
        along = [b.op(name, rows, axis=1, reverse=back) for name, back in ends]
        return along + [b.op(name, columns, axis=0, reverse=not back) for name, back in ends]

    check(program, numbers((3, 208), dtype), numbers((60, 64), dtype))


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=3),
    st.sampled_from(["f4", "f8", "i4", "u1"]),
    st.sampled_from(["contiguous", "transposed", "reversed", "strided"]),
    st.data(),
)
def test_any_shape(shape, dtype, layout, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    check(scans(axis), laid_out(numbers(tuple(shape), dtype), layout))


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("shape", [(2, 700), (300, 40)], ids=str)
def test_threads_in_any_order(shape, order):
    for axis in (0, 1):
        check(scans(axis, NAMES[:1]), numbers(shape, "f4"), order=order)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_the_order_of_threads_changes_no_bit(order):
    x = numbers((3, 4500), "f4")
    program = compiled(optimise(build(scans(1), x)), [x])
    for got, want in zip(run(program, [x], order), run(program, [x], FORWARDS), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [17_001, 20_480])
def test_many_long_rows_are_walked_by_blocks(n, monkeypatch):
    """Tile after tile, the last one shorter than the others or not."""
    monkeypatch.setattr(scan_plan, "MANY_ROWS", 1)
    x = numbers((n,), "f4")
    graph = optimise(build(scans(0, NAMES[:1]), x))
    program = compiled(graph, [x])
    assert len(program.steps) == 2
    same(run(program, [x]), expected(graph, [x]))


@pytest.mark.parametrize("n", [8192, 12_287])
def test_few_long_rows_are_cut(n):
    x = numbers((2, n), "i4")
    check(scans(1), x)
    program = compiled(optimise(build(scans(1, NAMES[:1]), x)), [x])
    assert len(program.steps) > 2


def test_columns_are_cut_where_they_are_few():
    check(scans(0), numbers((700, 9), "i8"))
    check(scans(1), numbers((3, 515, 2), "f4"))


def test_nan_infinity_and_zeros():
    """Running maxima keep NaN; a sum that starts with -0.0 is -0.0, as NumPy's."""
    x = sample((5, 300), "f4")
    x[1, 7], x[2, 100], x[3, 50] = np.nan, np.inf, -np.inf
    x[4] = -0.0
    names = ("cumsum", "cummax", "cummin")
    check(scans(1, names), x)
    check(scans(0, names), x)
    check(scans(1, ("cumprod",)), x[:, :20])
    graph = optimise(build(scans(1, NAMES[:1]), x))
    (first, last) = run(compiled(graph, [x]), [x])
    assert np.signbit(first[4]).all() and np.signbit(last[4]).all()


def test_what_is_scanned_may_be_computed():
    def program(b, x):
        y = b.mul(b.exp(x), x)
        return [b.op("cumsum", y, axis=a, reverse=r) for a in (0, 1) for r in (False, True)]

    check(program, numbers((70, 260), "f4"))


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_kernels_fit_registers(arch):
    cases = [((8192, 8192), 1), ((8192, 8192), 0), ((10_000_001,), 0), ((100_000, 64), 0)]
    for shape, axis in cases:
        type_ = TensorType(shape, np.dtype("f4"))
        program = compile_device(build(scans(axis), types=[type_]), TARGET)
        report = assembled(program.ir, arch)
        if report is None:
            pytest.skip("there is no ptxas")
        most = max(k.registers for k in report.kernels.values())
        assert most <= 96, report.kernels
