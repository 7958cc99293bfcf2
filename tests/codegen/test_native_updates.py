"""Updates in place where the old value is dead, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, check, laid_out, loop, region
from updates import UPDATING, part, put, scaled_half

import jitney as jt
from jitney.ir.passes import optimise
from jitney.ir.types import I32, I64


@pytest.mark.parametrize("program", UPDATING, ids=lambda p: p.__name__)
def test_update(program):
    x = np.random.default_rng(3).standard_normal(8)
    graph = build(program, x)
    before = x.copy()
    check(graph, [x])
    check(optimise(graph), [x])
    check(graph, [laid_out(x, "reversed")])
    np.testing.assert_array_equal(x, before)


@settings(max_examples=20)
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


@pytest.mark.parametrize("step", [2, -1])
def test_branches_leave_strided_arguments_what_lies_between(step):
    """A loop of a branch computes a small array in variables; they go back by the argument's strides."""

    def fill(x, b):
        if x[0] > -100.0:
            for _, v in zip(b, b):  # noqa: B905
                x[-2:] = 7.0
                b[0] = v + 1
        return x.max()

    want, got = np.arange(24.0), np.arange(24.0)
    compiled = jt.jit(fill)
    at = slice(6, 18, step) if step > 0 else slice(17, 11, step)
    assert compiled(got[at], np.arange(5)) == fill(want[at], np.arange(5))
    np.testing.assert_array_equal(got, want)
