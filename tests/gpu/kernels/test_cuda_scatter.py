"""Scatters on the emulated GPU: every way of doing them, against the interpreter."""

from __future__ import annotations

import re
from typing import Any

import emulated
import numpy as np
import pytest
from emulated import assembled, compiled, run
from programs import build, expected, same
from test_cuda_kernels import check

import jitney as jt
from jitney.codegen.cuda.program import Launch
from jitney.codegen.device.compile import compile_device
from jitney.codegen.module import Donation
from jitney.ir.passes import optimise
from jitney.ir.record import replace
from jitney.runtime.cuda.emulator.machine import ORDERS

rng = np.random.default_rng(5)


def scattered(combine: str, *axes: int, mode: str = "check") -> Any:
    def f(b, x, u, *indices):
        return b.op("scatter", x, u, *indices, axes=axes, mode=mode, combine=combine)

    f.__name__ = combine
    return f


def numbers(shape: Any, dtype: str) -> np.ndarray:
    x = rng.standard_normal(shape) * 3
    return np.rint(x + 3).astype(dtype) if np.dtype(dtype).kind in "iu" else x.astype(dtype)


def check_all(graph_of: Any, *arrays: np.ndarray) -> str:
    """In every order of threads; the kernels' code."""
    graph = optimise(build(graph_of, *arrays))
    program = compiled(graph, arrays)
    want = expected(graph, list(arrays))
    for order in ORDERS:
        same(run(program, arrays, order), want)
    return program.ir


@pytest.mark.parametrize("combine", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f4", "f8"])
def test_updates_that_meet(combine: str, dtype: str) -> None:
    """A few rows, and many numbers, several of them to one place."""
    x, u = numbers((40, 3), dtype), numbers((30, 3), dtype)
    check(scattered(combine, 0), x, u, rng.integers(-40, 40, 30))
    u = numbers(300, dtype) if combine != "multiply" else np.ones(300, dtype)
    u[::3] = 2
    check(scattered(combine, 0), numbers(50, dtype), u, rng.integers(-50, 50, 300))


@pytest.mark.parametrize("count", [65, 4000, 6000])
@pytest.mark.parametrize("combine", ["add", "multiply", "set"])
def test_long_runs_at_one_place(count: int, combine: str) -> None:
    """Sums of whole spans, and of spans of spans; runs that begin and end anywhere."""
    index = np.where(rng.random(count) < 0.9, 7, rng.integers(0, 30, count))
    u = numbers(count, "f8") if combine != "multiply" else 1 + rng.standard_normal(count) / 100
    check(scattered(combine, 0), numbers(30, "f8"), u, index)
    check(scattered(combine, 0), numbers(30, "f8"), u, np.sort(index))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_sorted_updates_in_any_order_of_threads(order: Any) -> None:
    """Rows of several numbers, in two indices; the bits are the same each time."""
    x, u = numbers((9, 3, 8), "f4"), numbers((20, 30, 3), "f4")
    where = rng.integers(-9, 9, (20, 30)), rng.integers(0, 8, (20, 1))
    f = scattered("add", 0, 2)
    arrays = [x, u, where[0], np.broadcast_to(where[1], (20, 30)).copy()]
    graph = optimise(build(f, *arrays))
    program = compiled(graph, arrays)
    (first,), (got,) = run(program, arrays), run(program, arrays, order)
    assert first.tobytes() == got.tobytes()
    same([got], expected(graph, arrays))


@pytest.mark.parametrize("rest", [(), (5,)], ids=str)
def test_few_places_look_at_all_updates(rest: tuple[int, ...]) -> None:
    x, u, i = numbers((7, *rest), "f4"), numbers((2500, *rest), "f4"), rng.integers(-7, 7, 2500)
    u[3] = np.inf
    check_all(scattered("add", 0), x, u, i)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("combine", ["min", "max"])
def test_extremes_of_floats(combine: str, dtype: str) -> None:
    """NaN of either sign, from the base or an update, is never lost; nor is infinity."""
    x, u = numbers(40, dtype), numbers(2000, dtype)
    index = rng.integers(0, 40, 2000)
    x[3], x[4], x[5] = np.nan, -np.nan, np.inf
    u[[5, 9]], u[50:53] = [np.nan, -np.nan], [np.inf, -np.inf, 0.0]
    ir = check_all(scattered(combine, 0), x, u, index)
    assert "atomicrmw" in ir and "shared" in ir
    check_all(scattered(combine, 0), x, u[:100], index[:100])


def test_zeros_of_both_signs_have_an_order() -> None:
    graph = build(
        scattered("max", 0), x := -np.ones(2), u := np.zeros(4), i := np.array([0, 1] * 2)
    )
    u[0] = u[3] = -0.0
    for order in ORDERS:
        (got,) = run(compiled(graph, [x, u, i]), [x, u, i], order)
        assert not np.signbit(got).any()


@pytest.mark.parametrize("places", [40, 5000])
def test_the_last_of_several_assignments_stays(places: int) -> None:
    """The numbers of updates are kept for all places, or for those that are written."""
    index = rng.integers(-20, 20, 300)
    check_all(scattered("set", 0), numbers(places, "f4"), numbers(300, "f4"), index)
    check_all(scattered("set", 0), numbers((places, 3), "i2"), numbers((300, 3), "i2"), index)


@pytest.mark.parametrize("dtype", ["i2", "i4", "u8", "f4"])
def test_histograms_have_tables_in_shared_memory(dtype: str) -> None:
    """Of counts, where all updates are one number; and of integers."""

    def count(b, x, i):
        u = b.full(i.shape, 3, x.dtype)
        return b.op("scatter", x, u, i, axes=(0,), mode="check", combine="add")

    index = rng.integers(-10, 10, 3000)
    ir = check_all(count, numbers(10, dtype), index)
    assert "addrspace(3)" in ir and re.search(r"atomicrmw add ptr addrspace\(3\) \S+ i32 1 ", ir)
    if dtype != "f4":
        u = numbers(3000, dtype)
        ir = check_all(scattered("add", 0), numbers(10, dtype), u, index)
        assert "addrspace(3)" in ir
        check(
            scattered("multiply", 0), numbers(10, dtype), np.where(u > 4, 3, 1).astype(dtype), index
        )


def test_sums_of_floats_by_atomics_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    x, u, i = numbers(200, "f4"), numbers(900, "f4"), rng.integers(0, 200, 900)
    assert "atomicrmw" not in check_all(scattered("add", 0), x, u, i)
    monkeypatch.setattr(emulated, "TARGET", replace(emulated.TARGET, deterministic=False))
    assert "atomicrmw fadd" in check_all(scattered("add", 0), x, u, i)
    ir = check_all(scattered("add", 0), x[:9], np.resize(u, 4000), np.resize(i, 4000) % 9)
    assert "atomicrmw fadd ptr addrspace(3)" in ir


def inverse(b, x, u):
    """u goes to the places that would sort x."""
    i = b.argsort(x, axis=0, stable=True)
    return b.op("scatter", x, u, i, axes=(0,), mode="check", combine="multiply")


def rows_in_order(b, x, u):
    """The same row by row, and in the order of the columns."""
    i = b.argsort(u, axis=1, stable=True)
    row = b.op("iota", shape=u.shape, dtype=np.dtype(np.int64), axis=0)
    return b.op("scatter", x, u, row, i, axes=(0, 1), mode="check", combine="add")


def columns_twice(b, x, u):
    """Each row's order by itself does not say which places of the whole are different."""
    i = b.argsort(u, axis=1, stable=True)
    return b.op("scatter", x, u, i, axes=(0,), mode="check", combine="set")


@pytest.mark.parametrize("f", [inverse, rows_in_order, columns_twice], ids=lambda f: f.__name__)
def test_places_that_are_known_to_differ(f: Any) -> None:
    shape = {inverse: (100,), rows_in_order: (9, 20), columns_twice: (9, 20)}[f]
    x = numbers(20, "f4") if f is columns_twice else numbers(shape, "f4")
    ir = check_all(f, x, numbers(shape, "f4"))
    assert ("atomicrmw" in ir) == (f is columns_twice)


def test_what_is_given_is_updated_where_it_is() -> None:
    """Nothing passes over the base: all that is written is the updates' places, and scratch memory."""
    for dtype in ("i4", "f4"):
        for combine in ("add", "set"):
            arrays = [numbers(10_000, dtype), numbers(100, dtype), rng.integers(0, 10_000, 100)]
            graph = optimise(build(scattered(combine, 0), *arrays))
            program = compile_device(graph, emulated.TARGET, donations=[Donation(0, None)])
            assert program.in_place == [(0, 0)] and not program.outputs
            threads = [
                step.grid[0] * program.kernels[step.kernel].threads[0]
                for step in program.steps
                if isinstance(step, Launch)
            ]
            assert len(threads) == len(program.steps) and max(threads) <= 1024
            (want,) = expected(graph, arrays)
            run(program, arrays)
            np.testing.assert_allclose(arrays[0], want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["i4", "f4"])
@pytest.mark.parametrize("combine", ["add", "set"])
def test_an_index_out_of_bounds(combine: str, dtype: str) -> None:
    index = rng.integers(0, 50, 300)
    index[7] = 50
    check(scattered(combine, 0), numbers(50, dtype), numbers(300, dtype), index)
    check(scattered(combine, 0, mode="clip"), numbers(50, dtype), numbers(300, dtype), index)


def test_no_index_is_out_of_bounds_of_none() -> None:
    """That all of no indices are inside is known, and goes from lane to lane all the same."""
    x, none = numbers(6, "i1").reshape(2, 3), np.zeros(0, np.int64)
    check(scattered("set", 0), x, np.zeros((0, 3), np.int8), none)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_every_kernel_is_assembled(arch: str) -> None:
    """Atomics of all widths, in both memories, and what is sorted; nothing spills."""

    def everything(b, *values):
        found = []
        for x, u, i in zip(*[iter(values)] * 3, strict=True):
            for combine in ("set", "add", "multiply", "max"):
                attrs = {"axes": (0,), "mode": "check", "combine": combine}
                found.append(b.op("scatter", x, u, i, **attrs))
        return found

    arrays: list[np.ndarray] = []
    for dtype in ("i1", "u2", "i4", "i8", "f4", "f8"):
        for n, count in ((30, 4000), (300, 5000)):
            arrays += [numbers(n, dtype), numbers(count, dtype), np.zeros(count, np.int64)]
    graph = optimise(build(everything, *arrays))
    target = replace(emulated.TARGET, arch=int(arch[3:]), deterministic=arch != "sm_90")
    assembled(compile_device(graph, target).ir, arch)


def test_the_order_of_sums_is_an_option_of_jit() -> None:
    """Its value is part of what compiled code is kept under."""

    def f(x, u, i):
        x = x.copy()
        np.add.at(x, i, u)
        return x

    arrays = numbers(200, "f4"), numbers(900, "f4"), rng.integers(0, 200, 900)
    assert "red.global.add.f32" not in jt.jit(f).ptx(*arrays)
    loose = jt.jit(f, deterministic=False)
    assert re.search(r"(red|atom)\S*\.add\.f32", loose.ptx(*arrays))
    with jt.config(cuda="emulate"):
        x = jt.device_put(arrays[0], "cuda")
        texts = {jt.jit(f, deterministic=d).lower(x, *arrays[1:]).llvm() for d in (True, False)}
        assert len(texts) == 2
        want = jt.jit(f)(*arrays)
        np.testing.assert_allclose(np.asarray(loose(x, *arrays[1:])), want, rtol=1e-4, atol=1e-4)
