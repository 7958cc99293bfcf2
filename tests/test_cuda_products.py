"""Products of matrices on GPUs: tiles, copies to shared memory, tensor cores, what is done at once."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest

from jitney.codegen.cuda.products import Product
from jitney.codegen.cuda.target import CudaTarget
from jitney.codegen.cuda.tensor_cores import product_emitter
from jitney.codegen.cuda.tiles import (
    BF16,
    F16,
    F64,
    F64_LARGE,
    TF32,
    candidates,
    tile_for,
    tile_of,
)
from jitney.codegen.kernel import Array
from jitney.codegen.steps import Matmul
from jitney.runtime.cuda.assemble import assemble
from jitney.runtime.cuda.emulator.machine import FORWARDS, ORDERS, EmulatedModule, EmulationError
from jitney.runtime.cuda.ptxas import find_ptxas, run_ptxas

AMPERE, HOPPER = CudaTarget(arch=80, ptx=70), CudaTarget(arch=90, ptx=78)
TURING = CudaTarget(arch=75, ptx=65)


def matmul(shape, element, result, a_order="k", b_order="n", offset=0):
    """c[b, m, n] of operands that lie with k or with their rows side by side."""
    batch, m, n, k = shape
    a_strides = (m * k, k, 1) if a_order == "k" else (m * k, 1, m)
    b_strides = (n * k, n, 1) if b_order == "n" else (n * k, 1, k)
    a = Array((batch * m * k + offset,), np.dtype(element), "input", position=0)
    b = Array((batch * n * k + offset,), np.dtype(element), "input", position=1)
    c = Array((batch, m, n), np.dtype(result), "output", position=0)
    return Matmul(a, b, c, batch, m, n, k, a_strides, b_strides, offset, offset)


def emitted(step, tile, target):
    """The text of a kernel, and its dynamic shared memory."""
    product = Product(step)
    definitions = {}
    e = product_emitter(product, tile, target, definitions, dict.fromkeys(product.arrays, 16))
    e.body()
    text = e.definition("NAME", tile.threads, [16] * len(product.arrays)).replace("@NAME", "@dot")
    return "\n".join([*sorted(e.declarations), text, ""]), e.dynamic_bytes


def aligned(array):
    memory = np.zeros(array.nbytes + 256, np.uint8)
    start = -memory.ctypes.data % 256
    found = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def words(values, element):
    """Numbers as words of 16 bits, and the numbers that these are."""
    if element == "f16":
        half = values.astype(np.float16)
        return half.view(np.uint16), half.astype(np.float64)
    word = ((values.astype(np.float32).view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
    return word, (word.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


KINDS = {"bf16": "f4", "f16": "f4", "tf32": "f4", "f64": "f8"}


def data(step, element):
    """Random operands as they lie in memory, and the product."""
    rng = np.random.default_rng(0)
    held, sides = [], []
    strides = zip((step.a, step.b), (step.a_strides, step.b_strides), strict=True)
    shapes = [(step.batch, step.m, step.k), (step.batch, step.k, step.n)]
    offset = step.a_offset
    for (array, steps), shape in zip(strides, shapes, strict=True):
        kind = np.dtype(KINDS.get(element, element))
        if kind.kind == "f":
            flat = rng.standard_normal(array.size).astype(kind)
        else:
            flat = rng.integers(0, 100, array.size).astype(kind)
        numbers = flat
        if array.dtype.itemsize == 2 and element in ("bf16", "f16"):
            flat, numbers = words(flat, element)
        held.append(aligned(flat))
        bytes_ = tuple(s * numbers.itemsize for s in steps)
        sides.append(np.lib.stride_tricks.as_strided(numbers[offset:], shape, bytes_))
    wide = np.float64 if sides[0].dtype.kind == "f" else sides[0].dtype
    return held, sides[0].astype(wide) @ sides[1].astype(wide)


def run(step, tile, target, element, order=FORWARDS, change=lambda text: text):
    text, dynamic = emitted(step, tile, target)
    held, want = data(step, element)
    c = aligned(np.full(step.c.shape, 99, step.c.dtype))
    packed = b"".join(struct.pack("<Q", x.ctypes.data) for x in (*held, c))
    ranges = sorted(np.lib.array_utils.byte_bounds(x) for x in (*held, c))
    module = EmulatedModule(change(text))
    grid = (tile.blocks(step), 1, 1)
    module.launch("dot", grid, (tile.threads, 1, 1), packed, dynamic, ranges, order)
    return c, want


def close(got, want, element):
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want.astype(got.dtype))
        return
    tolerance = {"f8": 1e-13, "f64": 1e-13, "tf32": 2e-3}.get(element, 3e-6)
    assert np.abs(got - want).max() <= tolerance * np.abs(want).max()


PLAIN = [("f4", 32, 64), ("f8", 16, 64), ("i2", 16, 32), ("i8", 8, 32)]
LAYOUTS = [("k", "n"), ("m", "k"), ("k", "k"), ("m", "n")]


@pytest.mark.parametrize(("a_order", "b_order"), LAYOUTS)
@pytest.mark.parametrize(("dtype", "rows", "columns"), PLAIN)
def test_ordinary_arithmetic(dtype, rows, columns, a_order, b_order):
    """Copies of 16 bytes, neighbours in every order."""
    step = matmul((1, 48, 80, 48), dtype, dtype, a_order, b_order)
    tile = tile_of(1, 2, rows, columns, step.c.dtype.itemsize, None, AMPERE)
    close(*run(step, tile, AMPERE, dtype), dtype)


@pytest.mark.parametrize("target", [TURING, AMPERE], ids=lambda t: t.name)
def test_copies_of_single_elements(target):
    """No dim is a multiple of anything, and operands begin anywhere."""
    step = matmul((2, 37, 41, 19), "f4", "f4", offset=3)
    tile = tile_of(1, 2, 32, 32, 4, None, target)
    close(*run(step, tile, target, "f4"), "f4")


ATOMS = [
    (BF16, "u2", "f4", AMPERE),
    (F16, "u2", "f4", AMPERE),
    (TF32, "f4", "f4", AMPERE),
    (F64, "f8", "f8", AMPERE),
    (F64_LARGE, "f8", "f8", HOPPER),
]
EVERY_ATOM = pytest.mark.parametrize(
    ("atom", "dtype", "result", "target"), ATOMS, ids=["bf16", "f16", "tf32", "f64", "f64_large"]
)


@pytest.mark.parametrize(("a_order", "b_order"), LAYOUTS)
@EVERY_ATOM
def test_tensor_cores(atom, dtype, result, target, a_order, b_order):
    """Operands in every order, tiles that end beyond the result, five stages of the sum."""
    step = matmul((1, 72, 80, 136), dtype, result, a_order, b_order)
    tile = tile_of(2, 1, 32, 32, np.dtype(dtype).itemsize, atom, target)
    close(*run(step, tile, target, atom.element), atom.element)


@EVERY_ATOM
def test_tensor_cores_with_odd_shapes(atom, dtype, result, target):
    """Elements that are not aligned are copied one by one; 16 bits of them by way of registers."""
    step = matmul((2, 35, 29, 21), dtype, result, offset=1)
    tile = tile_of(1, 1, 16, 32, np.dtype(dtype).itemsize, atom, target)
    close(*run(step, tile, target, atom.element), atom.element)


PIPELINES = [
    (matmul((1, 64, 64, 100), "f4", "f4"), tile_of(1, 2, 32, 32, 4, None, AMPERE), AMPERE, "f4"),
    (matmul((1, 64, 64, 100), "f4", "f4"), tile_of(1, 2, 32, 32, 4, None, TURING), TURING, "f4"),
    (matmul((1, 64, 64, 160), "u2", "f4"), tile_of(2, 2, 32, 32, 2, BF16, AMPERE), AMPERE, "bf16"),
]
NAMES = ["async", "registers", "bf16"]
WAYS = "step", "tile", "target", "element"


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize(WAYS, PIPELINES, ids=NAMES)
def test_threads_in_any_order(step, tile, target, element, order):
    close(*run(step, tile, target, element, order), element)


BARRIER = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"


def wrong(step, tile, target, element, change):
    """Whether some order of the threads shows that a kernel is wrong."""
    for order in ORDERS:
        try:
            got, want = run(step, tile, target, element, order, change)
            close(got, want, element)
        except (AssertionError, EmulationError):
            return True
    return False


@pytest.mark.parametrize(WAYS, PIPELINES, ids=NAMES)
def test_every_barrier_is_wanted(step, tile, target, element):
    text, _ = emitted(step, tile, target)
    assert text.count(BARRIER) == 1
    assert wrong(step, tile, target, element, lambda text: text.replace(BARRIER, ""))


@pytest.mark.parametrize(WAYS, PIPELINES[::2], ids=NAMES[::2])
def test_every_copy_is_waited_for(step, tile, target, element):
    def later(text):
        changed, n = re.subn(
            r"(cp\.async\.wait\.group\(i32) (\d)\)", lambda m: f"{m[1]} {int(m[2]) + 1})", text
        )
        assert n == 1
        return changed

    assert wrong(step, tile, target, element, later)


def test_results_do_not_depend_on_the_device():
    """Tiles follow from the number of multiprocessors; what is summed in which order does not."""
    step = matmul((1, 70, 130, 65), "f4", "f4")
    few, many = CudaTarget(arch=80, ptx=70, sms=1), CudaTarget(arch=80, ptx=70, sms=500)
    tiles = tile_for(step, few), tile_for(step, many)
    assert tiles[0] != tiles[1]
    first, second = (run(step, t, AMPERE, "f4")[0] for t in tiles)
    np.testing.assert_array_equal(first, second)


def test_large_products_have_large_tiles():
    step = matmul((1, 4096, 4096, 4096), "f4", "f4")
    assert (tile_for(step, AMPERE).m, tile_for(step, AMPERE).n) == (128, 128)
    assert tile_for(step, AMPERE).atom is None
    fast = CudaTarget(arch=80, ptx=70, tf32=True)
    assert tile_for(step, fast).atom is TF32


@pytest.mark.parametrize("target", [TURING, AMPERE, HOPPER], ids=lambda t: t.name)
def test_kernels_are_assembled_without_spills(target):
    cases = [(None, "f4", "f4"), (None, "f8", "f8")]
    if target is not TURING:
        cases += [(a, d, r) for a, d, r, least in ATOMS if target.arch >= least.arch]
    for atom, dtype, result in cases:
        step = matmul((1, 4096, 4096, 4096), dtype, result)
        largest = max(
            (t for t, _ in candidates(step.a.dtype.itemsize, atom, target)),
            key=lambda t: (t.m * t.n // t.threads, t.threads),
        )
        ptx = assemble(emitted(step, largest, target)[0], target.name, target.ptx)
        assert ".entry dot" in ptx
        if find_ptxas() is not None:
            report = run_ptxas(ptx, target.name)
            assert not report.kernels["dot"].spills, (atom, largest)
