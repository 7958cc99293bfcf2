"""Products of matrices on GPUs: tiles, copies to shared memory, tensor cores, what is done at once."""

from __future__ import annotations

import re
import struct

import gpu
import numpy as np
import pytest
from emulated import compiled
from emulated import run as run_program
from programs import build, expected, same, sample, softmax
from ptxas import find_ptxas, run_ptxas

import jitney as jt
from jitney.codegen.cuda.target import CudaTarget
from jitney.codegen.device.compile import compile_device
from jitney.codegen.kernels.matmul.cuda_emitter import ProductEmitter
from jitney.codegen.kernels.matmul.cuda_products import Product
from jitney.codegen.kernels.matmul.cuda_tiles import (
    BF16,
    F16,
    F64,
    F64_LARGE,
    TF32,
    candidates,
    parts_of,
    tile_for,
    tile_of,
)
from jitney.codegen.loop_ir.kernel import Array
from jitney.codegen.loop_ir.steps import Matmul
from jitney.ir.passes import optimise
from jitney.runtime.cuda.assemble import assemble
from jitney.runtime.cuda.emulator.machine import FORWARDS, ORDERS, EmulationError

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
    e = ProductEmitter(product, tile, target, definitions, dict.fromkeys(product.arrays, 16))
    e.body()
    text = e.b.definition("NAME", tile.threads, [16] * len(product.arrays)).replace("@NAME", "@dot")
    return "\n".join([*sorted(e.b.declarations), text, ""]), e.b.dynamic_bytes


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
    module = gpu.Module(change(text))
    grid = (tile.blocks(step), 1, 1)
    module.launch("dot", grid, (tile.threads, 1, 1), packed, dynamic, ranges, order)
    return c, want


def close(got, want, element):
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want.astype(got.dtype))
        return
    tolerance = {"f8": 1e-13, "f64": 1e-13, "tf32": 2e-3}.get(element, 3e-6)
    assert np.abs(got - want).max() <= tolerance * np.abs(want).max()


PLAIN = [("f4", 32, 64), ("f8", 16, 32), ("i2", 8, 32)]
LAYOUTS = [("k", "n"), ("m", "k"), ("k", "k"), ("m", "n")]


@pytest.mark.parametrize(("a_order", "b_order"), LAYOUTS)
@pytest.mark.parametrize(("dtype", "rows", "columns"), PLAIN)
def test_ordinary_arithmetic(dtype, rows, columns, a_order, b_order):
    """Copies of 16 bytes, neighbours in every order."""
    step = matmul((1, 48, 80, 48), dtype, dtype, a_order, b_order)
    tile = tile_of(2, 1, rows, columns, step.c.dtype.itemsize, None, AMPERE)
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
@gpu.emulator_only
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


@gpu.emulator_only
@pytest.mark.parametrize(WAYS, PIPELINES, ids=NAMES)
def test_every_barrier_is_wanted(step, tile, target, element):
    text, _ = emitted(step, tile, target)
    assert text.count(BARRIER) == 1
    assert wrong(step, tile, target, element, lambda text: text.replace(BARRIER, ""))


@gpu.emulator_only
@pytest.mark.parametrize(WAYS, PIPELINES[::2], ids=NAMES[::2])
def test_every_copy_is_waited_for(step, tile, target, element):
    def later(text):
        changed, n = re.subn(
            r"(cp\.async\.wait\.group\(i32) (\d)\)", lambda m: f"{m[1]} {int(m[2]) + 1})", text
        )
        assert n == 1
        return changed

    assert wrong(step, tile, target, element, later)


def test_much_shared_memory_is_asked_for_at_the_launch():
    step = matmul((1, 70, 80, 40), "f4", "f4")
    tile = tile_of(2, 2, 64, 64, 4, TF32, AMPERE)
    assert emitted(step, tile, AMPERE)[1] == 64 << 10
    close(*run(step, tile, AMPERE, "tf32"), "tf32")


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
    cases += [(a, d, r) for a, d, r, least in ATOMS if least is target]
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


# In programs: what is done at once, and long sums.


def dot(b, x, y):
    return b.op("dot", x, y, contract=((len(x.shape) - 1,), (0,)), batch=((), ()))


def column(b, v, shape):
    return b.op("broadcast", v, shape=shape, dims=(len(shape) - 1,))


def layer(b, x, w, bias):
    h = dot(b, x, w)
    return b.tanh(b.add(h, column(b, bias, h.shape)))


def layer_and_product(b, x, w, bias):
    h = dot(b, x, w)
    return h, b.maximum(h, column(b, bias, h.shape))


def residual(b, x, w, bias):
    return b.add(b.mul(dot(b, x, w), column(b, bias, (*x.shape[:-1], w.shape[-1]))), x)


def heads(b, x, w, bias):
    """The result is taken apart and turned over."""
    h = b.add(dot(b, x, w), column(b, bias, (*x.shape[:-1], w.shape[-1])))
    rows, n = h.shape[0], h.shape[1]
    return b.exp(b.transpose(b.reshape(h, shape=(rows, n // 4, 4)), perm=(1, 0, 2)))


def two(b, x, w, bias):
    """Both products are read by one kernel: the later one takes it."""
    return b.add(b.sin(dot(b, x, w)), dot(b, w, x))


FUSED = [
    (layer, 1, "f8"),
    (layer_and_product, 1, "f4"),
    (residual, 1, "f4"),
    (heads, 1, "f8"),
    (two, 2, "f4"),
]


@pytest.mark.parametrize(
    ("program", "launches", "dtype"), FUSED, ids=lambda p: getattr(p, "__name__", "")
)
def test_elementwise_consumers_are_part_of_the_product(program, launches, dtype):
    arrays = [sample((36, 36), dtype, 0), sample((36, 36), dtype, 1), sample((36,), dtype, 2)]
    graph = optimise(build(program, *arrays))
    compiled_program = compiled(graph, arrays)
    assert len(compiled_program.steps) == launches
    same(run_program(compiled_program, arrays), expected(graph, arrays))


def test_batches_of_rows_have_epilogues():
    arrays = [sample((3, 7, 40), "f4"), sample((40, 33), "f4", 1), sample((33,), "f4", 2)]
    graph = optimise(build(layer, *arrays))
    program = compiled(graph, arrays)
    assert len(program.steps) == 1
    same(run_program(program, arrays), expected(graph, arrays))


def test_rows_that_are_reduced_are_not_part_of_the_product():
    def normalised(b, x, w):
        return softmax(b, dot(b, x, w))

    arrays = [sample((33, 20), "f4"), sample((20, 40), "f4", 1)]
    graph = optimise(build(normalised, *arrays))
    program = compiled(graph, arrays)
    assert len(program.steps) == 2
    same(run_program(program, arrays), expected(graph, arrays))


def test_operands_are_not_overwritten_at_once():
    """The first product's operand is what the second's result is stored over."""

    def body(b, x, w):
        for _ in range(3):
            x = b.tanh(dot(b, x, w))
        return x

    arrays = [sample((40, 40), "f4"), sample((40, 40), "f4", 1)]
    graph = optimise(build(body, *arrays))
    program = compiled(graph, arrays)
    assert len(program.steps) == 3
    same(run_program(program, arrays), expected(graph, arrays))


@pytest.mark.parametrize("k", [1024, 1531])
def test_long_sums_are_cut_into_parts(k):
    """Also where the last part is shorter."""
    parts, length = parts_of(20, 24, k)
    assert parts > 1 and (parts - 1) * length < k <= parts * length
    arrays = [sample((20, k), "f4"), sample((k, 24), "f4", 1)]
    graph = optimise(build(dot, *arrays))
    program = compiled(graph, arrays)
    assert len(program.steps) == 2
    same(run_program(program, arrays), expected(graph, arrays))
    turned = [np.asfortranarray(a) for a in arrays]
    same(run_program(compiled(graph, turned), turned), expected(graph, arrays))


def test_fastmath_asks_for_tf32():
    def f(x, y):
        return x @ y

    x = np.ones((64, 64), np.float32)
    assert "mma.sync" not in jt.jit(f).ptx(x, x, arch="sm_80")
    assert "tf32" in jt.jit(f, fastmath=True).ptx(x, x, arch="sm_80")
    assert "mma.sync" not in jt.jit(f, fastmath=True).ptx(x, x, arch="sm_75")
    assert "m16n8k16.row.col.f64" in jt.jit(f).ptx(x.astype("f8"), x.astype("f8"), arch="sm_90")


# What is done with operands before, on the way to shared memory.


def ahead(b, x, w, bias):
    """A bias and an activation before, a conversion on the other side."""
    h = b.maximum(b.add(x, column(b, bias, x.shape)), b.full_like(x, 0))
    return dot(b, h, b.convert(w, dtype=x.dtype))


def turned(b, x, w, bias):
    """Both operands moved: what was rows are columns, backwards, and parts of rows."""
    m, k = x.shape
    left = b.flip(b.mul(x, b.full_like(x, 3)), axes=(1,))
    right = b.reshape(
        b.transpose(b.reshape(w, shape=(4, k // 4, w.shape[1])), perm=(1, 0, 2)), shape=w.shape
    )
    return dot(b, left, right)


def padded(b, x, w, bias):
    """Zeros around an operand are not stored."""
    zero = b.const(0, x.dtype)
    wide = b.pad(x, zero, low=(1, 0), high=(2, 0), interior=(0, 0))
    return dot(b, wide, w)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("program", [ahead, turned, padded], ids=lambda p: p.__name__)
@pytest.mark.parametrize("k", [36, 1028], ids=["whole", "in parts"])
def test_elementwise_operands_are_computed_on_the_way(program, k, order):
    arrays = [sample((37, k), "f4"), sample((k, 40), "f8" if program is ahead else "f4", 1)]
    arrays.append(sample((k,), "f4", 2))
    graph = optimise(build(program, *arrays))
    found = compiled(graph, arrays)
    assert len(found.steps) == (2 if k > 1024 else 1)
    same(run_program(found, arrays, order), expected(graph, arrays))


@pytest.mark.parametrize("mode", ["clip", "check"])
def test_rows_that_are_looked_up(mode):
    def looked_up(b, x, w, rows):
        return dot(b, b.op("gather", x, rows, axes=(0,), mode=mode), w)

    rows = np.random.default_rng(0).integers(-37, 37, 50)
    arrays = [sample((37, 40), "f4"), sample((40, 36), "f4", 1), rows]
    graph = optimise(build(looked_up, *arrays))
    found = compiled(graph, arrays)
    assert len(found.steps) == 1
    same(run_program(found, arrays), expected(graph, arrays))
    rows[17] = 50
    if mode == "check":
        with pytest.raises(IndexError):
            run_program(found, arrays)


def test_columns_that_are_looked_up_in_a_view():
    """What the index reads stands under divisions: neighbours in a row come from different rows of x."""

    def product(b, x, i, w):
        view = b.reshape(b.transpose(x, perm=(1, 0, 2)), shape=(8, 64))
        columns = b.broadcast(
            b.op("iota", shape=(64,), dtype=np.dtype("i8"), axis=0), shape=(64, 64), dims=(1,)
        )
        return dot(b, b.gather(view, i, columns, axes=(0, 1), mode="check"), w)

    rows = np.random.default_rng(0).integers(0, 8, (64, 64))
    arrays = [sample((4, 2, 64), "f4"), rows, sample((64, 64), "f4", 1)]
    graph = optimise(build(product, *arrays))
    same(run_program(compiled(graph, arrays), arrays), expected(graph, arrays))


def test_batches_with_both_operands_computed():
    def scores(b, x, y):
        return b.op("dot", b.neg(x), b.mul(y, y), contract=((2,), (2,)), batch=((0,), (0,)))

    arrays = [sample((3, 37, 20), "f8"), sample((3, 33, 20), "f8", 1)]
    graph = optimise(build(scores, *arrays))
    found = compiled(graph, arrays)
    assert len(found.steps) == 1
    same(run_program(found, arrays), expected(graph, arrays))


@pytest.mark.parametrize("turned", [False, True])
def test_threads_without_a_part_of_a_computed_operand_read_nothing_beyond_it(turned):
    """A device of few multiprocessors takes tiles that are smaller than a block's threads."""

    def product(b, x, y):
        axis = 1 if turned else 2
        return b.op("dot", b.neg(x), y, contract=((axis,), (1,)), batch=((0,), (0,)))

    arrays = [sample((12, 16, 16), "f4"), sample((12, 16, 128), "f4", 1)]
    graph = optimise(build(product, *arrays))
    found = compile_device(graph, CudaTarget(sms=4))
    assert len(found.steps) == 1 and found.steps[0].grid == (12, 1, 1)
    same(run_program(found, arrays), expected(graph, arrays))


def test_what_many_tiles_would_compute_is_stored():
    def dear(b, x, w):
        return dot(b, b.tanh(x), w)

    arrays = [sample((64, 40), "f4"), sample((40, 700), "f4", 1)]
    graph = optimise(build(dear, *arrays))
    found = compiled(graph, arrays)
    assert len(found.steps) == 2
    same(run_program(found, arrays), expected(graph, arrays))
