"""Graphs as programs for GPUs: what is emitted, that it assembles, and what is refused.

What the kernels compute is tested on the emulated device.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from programs import PATTERNS, build, fits, loop, sample, sorted_columns

from jitney.codegen.cuda.program import Launch, While
from jitney.codegen.cuda.target import CudaTarget
from jitney.codegen.device.compile import compile_device
from jitney.ir.passes import optimise
from jitney.runtime.cuda.assemble import assemble

ARCHITECTURES = ["sm_75", "sm_80", "sm_90"]
TARGET = CudaTarget()
MANY = (1 << 19,)


def program(f, *arrays, **options):
    return compile_device(optimise(build(f, *arrays)), TARGET, **options)


def ptx(program, arch="sm_80"):
    return assemble(program.ir, arch, 78)


@pytest.mark.parametrize("shape", [(), (3, 50), (257, 12), MANY], ids=str)
@pytest.mark.parametrize(
    "pattern", [p for p in PATTERNS if p is not sorted_columns], ids=lambda p: p.__name__
)
def test_patterns_assemble(pattern, shape):
    if not fits(pattern, shape):
        pytest.skip("the pattern takes no such shape")
    made = program(pattern, sample(shape, "f4"))
    for arch in ARCHITECTURES:
        text = ptx(made, arch)
        assert text.count(".entry") == len(made.kernels)


def square(b, x):
    return b.add(b.mul(x, x), x)


@pytest.mark.parametrize(
    ("dtype", "access"), [("f4", "v4.b32"), ("f8", "v2.b64"), ("i4", "v4.b32"), ("i1", "v4.b32")]
)
def test_neighbours_are_moved_128_bits_at_a_time(dtype, access):
    text = ptx(program(square, np.zeros(MANY, dtype)))
    assert f"ld.global.nc.{access}" in text
    assert f"st.global.{access}" in text


@pytest.mark.parametrize("case", ["unaligned", "strided", "few"])
def test_what_cannot_be_moved_so_is_moved_one_by_one(case):
    x = np.zeros(100 if case == "few" else MANY, "f4")
    options = {"strided": {"input_strides": [(2,)]}, "unaligned": {"input_alignment": [4]}}
    text = ptx(program(square, x, **options.get(case, {})))
    assert "ld.global.nc.b32" in text and "ld.global.nc.v4" not in text


def test_positions_are_32_bits_wide_where_that_is_enough():
    small, large = (program(square, np.broadcast_to(np.float32(0), n)) for n in (MANY, 1 << 32))
    assert "getelementptr float, ptr addrspace(1) %p0, i32" in small.ir
    assert "getelementptr float, ptr addrspace(1) %p0, i64" in large.ir
    (launch,) = large.steps
    assert launch.grid[0] * large.kernels[launch.kernel].threads[0] * 4 == 1 << 32
    ptx(large)


def test_nothing_is_contracted():
    """Products and sums round as on the CPU; `fma` stands only where the loop IR has one."""
    text = ptx(program(square, np.zeros(MANY, "f4")))
    assert "mul.rn.f32" in text and "add.rn.f32" in text and "fma" not in text


def test_equal_kernels_are_one():
    def twice(b, x, y):
        return [square(b, x), square(b, y)]

    made = program(twice, np.zeros(MANY, "f4"), np.zeros(MANY, "f4"))
    assert len(made.kernels) == 1 and len(made.steps) in (1, 2)


def test_an_index_out_of_bounds_is_noted_in_the_status_block():
    def take(b, x, i):
        return b.op("gather", x, i, axes=(0,), mode="check")

    made = program(take, np.zeros(50), np.zeros(33, np.int64))
    (launch,) = made.steps
    assert launch.arguments[-1].space == "status"
    assert made.errors[0].kind == "index"
    assert "atom" in ptx(made) and "cas" in ptx(made)


def test_loops_are_steps_and_programs_pickle():
    def rounds(b, x):
        return loop(b, 5, lambda b, i, x: b.mul(x, b.sin(x)), x)

    made = program(rounds, np.zeros(1000))
    (step,) = [s for s in made.steps if isinstance(s, While)]
    assert all(isinstance(s, Launch) for s in (*step.test, *step.body))
    assert pickle.loads(pickle.dumps(made)) == made
