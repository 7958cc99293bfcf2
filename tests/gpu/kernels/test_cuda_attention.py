"""Attention on GPUs: its kernels against NumPy and the interpreter, and what they need of a GPU."""

from __future__ import annotations

import struct

import gpu
import numpy as np
import pytest
from emulated import compiled
from emulated import run as run_program
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, expected, same
from ptxas import find_ptxas, run_ptxas

import jitney as jt
from jitney.codegen.cuda.program import Launch
from jitney.codegen.cuda.target import CudaTarget
from jitney.codegen.kernels.attention.cuda_kernels import attention_emitter
from jitney.codegen.kernels.attention.cuda_lowering import parts_of_keys
from jitney.codegen.kernels.attention.cuda_plan import (
    AttentionStep,
    AttentionTile,
    Matrices,
    shared_bytes,
    tiles_for,
)
from jitney.codegen.kernels.matmul.cuda_tiles import BF16, F16, F64, F64_LARGE, TF32
from jitney.codegen.loop_ir.kernel import Array
from jitney.ir.autodiff.transform import vjp_graph
from jitney.ir.passes import optimise, storable
from jitney.runtime.cuda.assemble import assemble
from jitney.runtime.cuda.emulator.machine import FORWARDS, ORDERS, EmulationError

TURING, AMPERE, HOPPER = (CudaTarget(a, p) for a, p in ((75, 65), (80, 70), (90, 78)))
STORED = {"f16": "u2", "bf16": "u2", "f32": "f4", "f64": "f8"}
KINDS = ["forward", "queries", "keys"]


def step_of(kind, element, shape, causal=False, bias=False, part=0, turned=False, scale=0.3):
    """A kernel's task for [batch, queries, keys, depth, width]; `turned` operands lie the other way."""
    batch, queries, keys, depth, width = shape
    real = "f8" if element == "f64" else "f4"
    parts = -(-keys // part) if part else 1
    count = {"input": 0, "output": 0}

    def matrices(rows, columns, kind="input", dtype=STORED[element], lead=()):
        rows_of_vectors = columns is None
        order = (rows,) if rows_of_vectors else (columns, rows) if turned else (rows, columns)
        array = Array((*lead, batch, *order), np.dtype(dtype), kind, position=count[kind])
        count[kind] += 1
        if rows_of_vectors:
            return Matrices(array, array.strides[:-1], 1, 0)
        *steps, row, column = array.strides
        return Matrices(array, tuple(steps), *((column, row) if turned else (row, column)))

    q, k, v = (matrices(*s) for s in ((queries, depth), (keys, depth), (keys, width)))
    extra = matrices(queries, keys) if bias else None
    held = ()
    if kind != "forward":
        vectors = [matrices(queries, None, dtype=real) for _ in range(2)]
        held = (matrices(queries, width), *vectors)
    lead = (parts,) if part else ()
    dtype = real if part else STORED[element]
    results = {
        "forward": lambda: (
            matrices(queries, width, "output", dtype, lead),
            matrices(queries, None, "output", real, lead),
        ),
        "queries": lambda: (matrices(queries, depth, "output"),),
        "keys": lambda: (matrices(keys, depth, "output"), matrices(keys, width, "output")),
    }[kind]()
    return AttentionStep(
        kind, element, q, k, v, extra, held, results, (batch,), queries, keys, depth, width,
        scale, causal, parts, part,
    )  # fmt: skip


def tile_of(atom, warps, rows, columns, width, whole=True):
    return AttentionTile(warps, rows, columns, width, 2, whole, atom)


def emitted(step, tile, target):
    arrays = list(dict.fromkeys([*step.reads, *step.writes]))
    definitions = {}
    e = attention_emitter(step, tile, target, definitions, dict.fromkeys(arrays, 16))
    e.body()
    text = e.b.definition("NAME", tile.threads, [16] * len(arrays)).replace("@NAME", "@attention")
    names = [f"{name} = {body}" for body, name in definitions.items()]
    return "\n".join([*names, *sorted(e.b.declarations), text, ""]), e.b.dynamic_bytes


# Operands and results, as they lie in memory and as numbers.


def numbers(words, element):
    if words.dtype != np.uint16:
        return words.astype(np.float64)
    if element == "f16":
        return words.view(np.float16).astype(np.float64)
    return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def words(values, element):
    if element == "f16":
        return values.astype(np.float16).view(np.uint16)
    if element == "bf16":
        return ((values.astype(np.float32).view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
    return values.astype(STORED[element])


def aligned(array):
    memory = np.zeros(array.nbytes + 256, np.uint8)
    start = -memory.ctypes.data % 256
    found = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def window(view, memory, rows, columns, element):
    """What a view of an array stands for."""
    item = memory.itemsize
    lead = memory.shape[: len(view.batch)]
    shape = (*lead, rows) if columns is None else (*lead, rows, columns)
    strides = [*view.batch, view.row] + ([] if columns is None else [view.column])
    return numbers(
        np.lib.stride_tricks.as_strided(memory, shape, [s * item for s in strides]), element
    )


def attention(step, q, k, v, bias):
    s = q @ k.swapaxes(-1, -2) * step.scale + bias
    if step.causal:
        s = np.where(np.arange(s.shape[-1]) <= np.arange(s.shape[-2])[:, None], s, -np.inf)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True)
    return e / total, e / total @ v, (top + np.log(total))[..., 0]


def data(step):
    """Operands in memory, and what the kernel should give."""
    rng = np.random.default_rng(0)
    element, sizes = step.element, (step.queries, step.keys, step.depth, step.width)
    n, m, depth, width = sizes
    views = [(step.q, n, depth), (step.k, m, depth), (step.v, m, width)]
    views += [(step.bias, n, m)] if step.bias else []
    views += [(step.backward_inputs[0], n, width)] if step.backward_inputs else []
    memory = {
        view.array: words(rng.standard_normal(view.array.shape), element) for view, *_ in views
    }
    found = [window(view, memory[view.array], r, c, element) for view, r, c in views]
    q, k, v = found[:3]
    bias = found[3] if step.bias else 0.0
    p, y, lse = attention(step, q, k, v, bias)
    if step.kind == "forward":
        return memory, [y, lse]
    ct = found[-1]
    share = (ct * y).sum(-1)
    ds = p * (ct @ v.swapaxes(-1, -2) - share[..., None]) * step.scale
    for view, values in zip(step.backward_inputs[1:], (lse, share), strict=True):
        memory[view.array] = values.astype(view.array.dtype)
    turned = ds.swapaxes(-1, -2)
    return memory, [ds @ k] if step.kind == "queries" else [turned @ q, p.swapaxes(-1, -2) @ ct]


TOLERANCES = {"f16": 2e-3, "bf16": 1.5e-2, "f32": 2e-6, "f64": 1e-13}


def run(step, tile, target, order=FORWARDS, change=lambda text: text):
    text, dynamic = emitted(step, tile, target)
    memory, want = data(step)
    for view in step.results:
        memory[view.array] = np.full(view.array.shape, 99, view.array.dtype)
    arrays = [aligned(memory[a]) for a in dict.fromkeys([*step.reads, *step.writes])]
    packed = b"".join(struct.pack("<Q", a.ctypes.data) for a in arrays)
    ranges = sorted(np.lib.array_utils.byte_bounds(a) for a in arrays)
    module = gpu.Module(change(text))
    grid, block = (tile.blocks(step), 1, 1), (tile.threads, 1, 1)
    module.launch("attention", grid, block, packed, dynamic, ranges, order)
    found = arrays[-len(step.results) :]
    shapes = [w.shape[-2:] if w.ndim == 3 else (w.shape[-1], None) for w in want]
    return [
        window(view, a, *shape, step.element)
        for view, a, shape in zip(step.results, found, shapes, strict=True)
    ], want


def joined(y, lse):
    """The results of all keys from those of parts."""
    with np.errstate(invalid="ignore"):
        weights = np.exp(lse - lse.max(0))
    return (y * weights[..., None]).sum(0) / weights.sum(0)[..., None], lse.max(0) + np.log(
        weights.sum(0)
    )


def check(step, tile, target, order=FORWARDS, tolerance=None, change=lambda text: text):
    got, want = run(step, tile, target, order, change)
    if step.parts > 1:
        got = joined(*got)
    slack = tolerance or TOLERANCES[step.element]
    for g, w in zip(got, want, strict=True):
        assert np.isfinite(g).all() and np.abs(g - w).max() <= slack * max(1.0, np.abs(w).max())
    return got


WAYS = {
    "f32": ("f32", None, AMPERE),
    "f64": ("f64", None, AMPERE),
    "f64 tensor": ("f64", F64, AMPERE),
    "f64 large": ("f64", F64_LARGE, HOPPER),
    "tf32": ("f32", TF32, CudaTarget(80, 70, tf32=True)),
    "f16": ("f16", F16, AMPERE),
    "bf16": ("bf16", BF16, AMPERE),
    "registers": ("f32", None, TURING),
    "bf16 registers": ("bf16", None, TURING),
}


COMMON = ("f32", "f64 tensor", "bf16")
CASES = [(way, kind) for way in COMMON for kind in KINDS]
CASES += [(way, KINDS[k % 3]) for k, way in enumerate(w for w in WAYS if w not in COMMON)]


@pytest.mark.parametrize(("way", "kind"), CASES)
def test_ways_of_multiplying(way, kind):
    """Rows and columns that end inside a block; what is hidden, and what all see."""
    element, atom, target = WAYS[way]
    causal = len(way + kind) % 2 == 0
    width = 32 if atom is None and element != "f64" else 16
    step = step_of(kind, element, (2, 41, 37, 16, 16), causal, bias=kind != "keys" or not causal)
    check(step, tile_of(atom, 2, 16, 16, width), target, tolerance=2e-3 if way == "tf32" else None)


SHAPES = {
    "columns in their own order": ("f32", None, (2, 20, 50, 5, 7), True),
    "elements of 16 bits": ("bf16", BF16, (1, 20, 50, 5, 7), False),
    "turned": ("bf16", BF16, (1, 20, 33, 24, 8), True),
}


@pytest.mark.parametrize(
    ("name", "kind"), [(n, k) for n in SHAPES for k in KINDS if "turned" not in n or k == "keys"]
)
def test_operands_that_lie_badly(name, kind):
    element, atom, shape, causal = SHAPES[name]
    step = step_of(kind, element, shape, causal, turned=name == "turned")
    check(step, tile_of(atom, 1, 16, 16, 32), AMPERE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element, atom", [("f32", None), ("f16", F16)])
def test_wide_operands_pass_in_panels_and_are_summed_in_slices(element, atom, kind):
    step = step_of(kind, element, (1, 20, 40, 70, 40), causal=kind == "keys")
    tile = tile_of(atom, 2, 16, 16, 32, whole=False)
    assert tile.slices(step) > 1
    check(step, tile, AMPERE)


@pytest.mark.parametrize("kind", KINDS)
def test_slices_of_whole_operands(kind):
    step = step_of(kind, "bf16", (1, 20, 40, 40, 60))
    tile = tile_of(BF16, 2, 16, 16, 32)
    assert tile.slices(step) == 2
    check(step, tile, AMPERE)


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_queries_than_keys(kind):
    """Blocks of keys that nobody sees bring nothing."""
    step = step_of(kind, "f16", (1, 16, 70, 16, 16), causal=True)
    check(step, tile_of(F16, 1, 16, 16, 16), AMPERE)


@pytest.mark.parametrize("causal", [False, True])
def test_keys_in_parts(causal):
    """Also parts of which a row sees nothing."""
    step = step_of("forward", "f16", (2, 20, 150, 16, 16), causal, part=64)
    check(step, tile_of(F16, 1, 16, 32, 16), AMPERE)


@pytest.mark.parametrize(("kind", "way"), [("forward", "f32"), ("keys", "bf16")])
def test_large_arrays_are_indexed_by_64_bits(monkeypatch, kind, way):
    element, atom, target = WAYS[way]
    monkeypatch.setattr(
        "jitney.codegen.kernels.attention.cuda_attention.fits_32_bits", lambda sizes: False
    )
    step = step_of(kind, element, (2, 41, 37, 16, 16), causal=True, bias=True)
    tile = tile_of(atom, 2, 16, 16, 32 if atom is None else 16)
    assert "i64" in emitted(step, tile, target)[0]
    check(step, tile, target)


PIPELINES = [("f32", None, AMPERE), ("f32", None, TURING), ("bf16", BF16, AMPERE)]
NAMES = ["async", "registers", "bf16"]


@gpu.emulator_only
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element, atom, target", PIPELINES, ids=NAMES)
def test_threads_in_any_order(element, atom, target, kind):
    step = step_of(kind, element, (1, 20, 50, 16, 16), causal=kind == "keys")
    tile = tile_of(atom, 2, 8 if atom is None else 16, 16, 32)
    first = None
    for order in ORDERS:
        found = check(step, tile, target, order)
        first = first or found
        assert all(np.array_equal(a, b) for a, b in zip(first, found, strict=True))


BARRIERS = (
    "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n",
    "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n",
    "  call void @llvm.nvvm.cp.async.wait.group(i32 0)\n",
)


@gpu.emulator_only
@pytest.mark.parametrize("barrier", BARRIERS, ids=["block", "warp", "copies"])
def test_every_barrier_is_wanted(barrier):
    step, tile = step_of("forward", "f32", (1, 20, 50, 16, 16)), tile_of(None, 2, 8, 16, 32)
    text, _ = emitted(step, tile, AMPERE)
    for k in range(text.count(barrier)):

        def without(text, k=k):
            before = text.split(barrier)
            return (
                barrier.join(before[: k + 1]) + barrier.join(["", *before[k + 1 :]])[len(barrier) :]
            )

        wrong = False
        for order in ORDERS:
            try:
                check(step, tile, AMPERE, order, change=without)
            except (AssertionError, EmulationError):
                wrong = True
        assert wrong, k


# Programs


def attention_of(scale=0.5, causal=False):
    return lambda b, *x: b.op("attention", *x, scale=scale, causal=causal)


def array(*shape, dtype="f4"):
    return np.random.default_rng(len(shape) + shape[-1]).standard_normal(shape).astype(dtype)


@st.composite
def problems(draw):
    batch = draw(st.sampled_from([(), (2,), (1, 3)]))
    rows, columns = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    depth, width = draw(st.sampled_from([1, 3, 16])), draw(st.sampled_from([1, 5, 16]))
    dtype = draw(st.sampled_from(["f4", "f4", "f8"]))
    shapes = [(*batch, rows, depth), (*batch, columns, depth), (*batch, columns, width)]
    if draw(st.booleans()):
        shapes.append((*(draw(st.sampled_from([1, n])) for n in batch), rows, columns))
    return [array(*s, dtype=dtype) for s in shapes], draw(st.booleans()), draw(st.booleans())


@settings(max_examples=3, deadline=None)
@given(problems())
def test_programs(problem):
    arrays, causal, derivative = problem
    graph = build(attention_of(causal=causal), *arrays)
    if derivative:
        graph.outputs = graph.outputs[:1]
        graph = vjp_graph(graph, [0, 1, 2])
        arrays = [*arrays, array(*arrays[0].shape[:-1], arrays[2].shape[-1], dtype=arrays[0].dtype)]
    graph = optimise(graph)
    got, want = run_program(compiled(graph, arrays), arrays), expected(graph, arrays)
    same(got, want, 2048)


def test_rows_that_see_nothing():
    """As 0 / 0; and rows that see only what is in a late block."""
    q, k, v = array(3, 4), array(60, 4), array(60, 4)
    bias = np.full((3, 60), -np.inf, "f4")
    bias[1, 50] = bias[2, 3] = 0
    graph = build(attention_of(), q, k, v, bias)
    y, lse = run_program(compiled(graph, [q, k, v, bias]), [q, k, v, bias])
    assert np.isnan(y[0]).all() and np.isnan(lse[0])
    np.testing.assert_allclose(y[1:], v[[50, 3]])


def launches(program):
    return [s.kernel for s in program.steps if isinstance(s, Launch)]


@pytest.mark.parametrize("shared", [False, True])
def test_few_queries_and_many_keys(shared):
    """Keys in parts; queries that share keys are rows of one block."""
    heads = 4
    q, k, v = array(heads, 1, 8), array(1 if shared else heads, 1300, 8), array(1, 1300, 4)
    v = np.repeat(v, k.shape[0], 0)

    def program(b, q, k, v):
        if shared:
            k, v = (
                b.broadcast(
                    b.reshape(x, shape=x.shape[1:]), shape=(heads, *x.shape[1:]), dims=(1, 2)
                )
                for x in (k, v)
            )
        return b.op("attention", q, k, v, scale=0.5, causal=False)

    graph = optimise(build(program, q, k, v))
    found = compiled(graph, [q, k, v])
    assert launches(found)[0].startswith("attention_forward")
    assert found.steps[0].grid[0] == (1 if shared else heads) * parts_of_keys(heads, 1, 1300)[0]
    same(run_program(found, [q, k, v]), expected(graph, [q, k, v]))


@pytest.mark.parametrize(("dtype", "heads"), [(np.float16, 2), (jt.bfloat16, 1)])
def test_elements_of_16_bits_are_read_and_written_as_they_lie(dtype, heads):
    """Whatever views there are between them and the kernel, heads that share keys included."""
    q, ct = (array(2, 20, 2, 16, dtype=dtype) for _ in range(2))
    k, v = (array(2, 18, heads, 16, dtype=dtype) for _ in range(2))

    def loss(q, k, v, ct):
        y, pull = jt.vjp(lambda *x: jt.dot_product_attention(*x, is_causal=True), q, k, v)
        return y, *pull(ct)

    graph = optimise(storable(jt.jit(loss).trace(q, k, v, ct)))
    arrays = [a.view(np.uint16) for a in (q, k, v, ct)]
    program = compiled(graph, arrays)
    others = [name for name in launches(program) if "attention" not in name]
    assert len(others) <= 3 and not any("narrow" in name and "sum" not in name for name in others)
    wanted = jt.jit(loss)(q, k, v, ct)
    slack = 4 * 2.0 ** (-10 if dtype is np.float16 else -7)
    for got, want in zip(run_program(program, arrays), wanted, strict=True):
        got, want = got.view(dtype).astype("f4"), want.astype("f4")
        np.testing.assert_allclose(got, want, rtol=slack, atol=slack * np.abs(want).max())


def test_attention_of_16_bits_that_is_written_out():
    def written(q, k, v):
        scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ v

    x = array(2, 40, 16, dtype=np.float16)
    graph = optimise(storable(jt.jit(written).trace(x, x, x)))
    names = [op.name for op in graph.ops]
    assert "attention" in names and "exp" not in names
    got, want = jt.jit(written)(x, x, x), written(*(x.astype("f4") for _ in range(3)))
    np.testing.assert_allclose(got.astype("f4"), want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("shape", [(0, 4), (2, 0)])
def test_nothing(shape):
    batch, rows = shape
    arrays = [array(batch, rows, 3), array(batch, 5, 3), array(batch, 5, 2), array(batch, rows, 2)]
    graph = build(attention_of(), *arrays[:3])
    graph.outputs = graph.outputs[:1]
    graph = vjp_graph(graph, [0, 1, 2])
    same(run_program(compiled(graph, arrays), arrays), expected(graph, arrays))


def test_scores_do_not_stand_in_memory():
    arrays = [array(4, 512, 32) for _ in range(3)]
    graph = build(attention_of(causal=True), *arrays)
    graph.outputs = graph.outputs[:1]
    whole = 4 * 512 * 512 * 4
    for g in (graph, vjp_graph(graph, [0, 1, 2])):
        given = arrays if g is graph else [*arrays, arrays[0]]
        assert compiled(optimise(g), given).arena_bytes < whole / 3


# What kernels need of a GPU


TARGETS = [TURING, AMPERE, HOPPER]


LARGE = [
    ("forward", "bf16", 128, HOPPER),
    ("keys", "bf16", 64, AMPERE),
    ("queries", "f32", 64, HOPPER),
    ("keys", "f64", 64, HOPPER),
    ("forward", "f32", 64, TURING),
]


@pytest.mark.parametrize(("kind", "element", "depth", "target"), LARGE, ids=str)
def test_kernels_are_assembled_without_spills(kind, element, depth, target):
    step = step_of(kind, element, (64, 4096, 4096, depth, depth), causal=True)
    tile = tiles_for(step, target)[0]
    ptx = assemble(emitted(step, tile, target)[0], target.name, target.ptx)
    assert ".entry attention" in ptx
    if find_ptxas() is not None:
        assert not run_ptxas(ptx, target.name).kernels["attention"].spills, tile


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("element", STORED)
def test_tiles_fit(element, target):
    for depth in (1, 40, 64, 128, 256, 1000):
        for kind in KINDS:
            step = step_of(kind, element, (4, 300, 300, depth, depth), bias=True)
            tile = tiles_for(step, target)[0]
            assert shared_bytes(step, tile) <= {75: 64, 80: 163, 90: 227}[target.arch] << 10
            assert tile.slices(step) * tile.width >= depth


def test_results_depend_neither_on_the_device_nor_on_the_tile():
    step = step_of("forward", "f32", (2, 40, 20, 8, 8))
    few, many = (tiles_for(step, CudaTarget(80, 70, sms=n))[0] for n in (1, 500))
    assert few.warps > many.warps
    assert {t.columns for t in tiles_for(step, AMPERE)} == {few.columns}
    np.testing.assert_array_equal(run(step, few, AMPERE)[0][0], run(step, many, AMPERE)[0][0])
