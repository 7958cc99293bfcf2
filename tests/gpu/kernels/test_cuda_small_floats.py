"""Products of floats of 16 bits on GPUs: tensor cores take their bits, and sum in float32."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from gpu import REAL
from programs import sample

import jitney as jt
from jitney.codegen.cuda.target import CudaTarget
from jitney.codegen.kernels.matmul.cuda_tiles import BF16, F16, tile_for
from jitney.codegen.loop_ir.kernel import Array
from jitney.codegen.loop_ir.steps import Matmul

DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
KINDS = pytest.mark.parametrize("kind", DTYPES)
ON = "on tensor cores"
pytestmark = pytest.mark.usefixtures("gpu")


def check(function, kind, *shapes, by=ON, times=1, **options):
    """Results differ from the CPU's by the rounding of float32 sums at the most, then by an ULP."""
    dtype = DTYPES[kind]
    arrays = [sample(s, "f4", n).astype(dtype) for n, s in enumerate(shapes)]
    program, plain = jt.jit(function, device="cuda", **options), jt.jit(function)
    for found, want in zip(leaves(program(*arrays)), leaves(plain(*arrays)), strict=True):
        assert found.dtype == want.dtype and found.shape == want.shape
        x, y = np.asarray(found).astype("f4"), np.asarray(want).astype("f4")
        ulp = float(ml_dtypes.finfo(want.dtype).eps)
        np.testing.assert_allclose(x, y, 2 * ulp, 1e-4)
    notes = [k.note for k in program.lower(*arrays).kernels]
    assert sum(by in note for note in notes) == times, notes
    return notes


def leaves(result):
    return result if isinstance(result, tuple) else (result,)


CASES = {
    "plain": (lambda a, b: a @ b, (70, 48), (48, 50)),
    "left turned": (lambda a, b: a.T @ b, (48, 70), (48, 50)),
    "right turned": (lambda a, b: a @ b.T, (70, 48), (50, 48)),
    "odd": (lambda a, b: a @ b, (33, 37), (37, 51)),
    "batch": (lambda a, b: a @ b, (3, 20, 33), (3, 33, 17)),
    "backwards": (lambda a, b: a[:, ::-1] @ b, (40, 48), (48, 50)),
    "computed": (lambda a, b: np.tanh(a) @ (b * 2), (40, 48), (48, 50)),
    "used": (lambda a, b: np.tanh(a @ b) + 1, (40, 48), (48, 50)),
    "long": (lambda a, b: a @ b, (20, 1501), (1501, 24)),
}


@pytest.mark.parametrize(("name", "kind"), list(zip(CASES, 5 * ["f16", "bf16"], strict=False)))
def test_products(kind, name):
    function, *shapes = CASES[name]
    check(function, kind, *shapes)


def test_gradients():
    function = jt.grad(lambda a, b: np.tanh(a @ b).astype("f4").sum(), argnums=(0, 1))
    check(function, "bf16", (40, 32), (32, 48), times=3)


def test_sums_that_are_wanted_in_float32_are_rounded_to_the_nearest():
    """Tensor cores do not: they are for results of few bits, and for `fastmath`."""

    def wide(a, b):
        return a.astype("f4") @ b.astype("f4")

    check(wide, "bf16", (40, 48), (48, 50), times=0)
    check(wide, "bf16", (40, 48), (48, 50), fastmath=True)
    check(lambda a, b: a @ b.astype("f4"), "bf16", (40, 48), (48, 50), times=0)


@KINDS
def test_by_cublas(kind):
    from jitney.runtime.cuda.client import client_of
    from jitney.runtime.cuda.cublas import blas_reason

    if reason := blas_reason(client_of(jt.devices("cuda")[0]).context):
        pytest.skip(reason)
    with jt.config(cublas="on"):
        for name in ("plain", "left turned", "right turned", "batch", "long"):
            function, *shapes = CASES[name]
            notes = check(function, kind, *shapes, by="by cuBLASLt")
            assert len(notes) == 1  # rounding is the library's
        check(lambda a, b: (a @ b, np.tanh(a @ b)), kind, (40, 48), (48, 50), by="by cuBLASLt")


@pytest.mark.skipif(REAL, reason="about code for other devices")
@KINDS
def test_what_is_generated(kind):
    a = sample((256, 256), "f4").astype(DTYPES[kind])
    product = jt.jit(lambda a, b: a @ b)
    short = {"f16": "f32.f16.f16.f32", "bf16": "f32.bf16.bf16.f32"}[kind]
    assert f"mma.sync.aligned.m16n8k16.row.col.{short}" in product.ptx(a, a, arch="sm_80")
    assert "mma." not in product.ptx(a, a, arch="sm_75")
    large = jt.ShapeDtype((4096, 4096), DTYPES[kind])
    assert f"wgmma.mma_async.sync.aligned.m64n256k16.f32.{kind}" in product.ptx(
        large, large, arch="sm_90a"
    )
    shape = (4096, 4096), np.dtype("u2")
    x, y = (Array(*shape, "input", position=n) for n in range(2))
    c = Array((4096, 4096), np.dtype("f4"), "output", position=0)
    strides = (0, 4096, 1)
    step = Matmul(x, y, c, 1, 4096, 4096, 4096, strides, strides, element=kind)
    tile = tile_for(step, CudaTarget())
    assert tile.atom == {"f16": F16, "bf16": BF16}[kind] and (tile.m, tile.n) >= (128, 128)
