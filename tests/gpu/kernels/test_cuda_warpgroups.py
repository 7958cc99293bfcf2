"""Products by warpgroups of sm_90a: boxes, rings of stages, tiles, choices, and what is refused."""

from __future__ import annotations

import re
import warnings

import gpu
import ml_dtypes
import numpy as np
import pytest
from device_programs import execute, hopper_only
from emulated import assembled
from loading import SHARED_BYTES, loaded
from programs import build, expected, sample

import jitney as jt
from jitney.codegen.cuda.program import Buffer, DeviceProgram, Ref, TensorMap
from jitney.codegen.cuda.target import CudaTarget
from jitney.codegen.cuda.tuning import Fixed
from jitney.codegen.device.build import ProgramBuilder
from jitney.codegen.device.compile import compile_device
from jitney.codegen.kernels.matmul.cuda_boxes import boxed
from jitney.codegen.kernels.matmul.cuda_products import Product
from jitney.codegen.kernels.matmul.cuda_warpgroups import WarpgroupTile, tile_of, warpgroup_tiles
from jitney.codegen.kernels.matmul.cuda_wgmma import Form, multiply, parse, wait
from jitney.codegen.loop_ir.kernel import Array
from jitney.codegen.loop_ir.steps import Matmul
from jitney.ir.passes import optimise, storable
from jitney.ir.record import replace
from jitney.runtime.cuda import tensor_maps
from jitney.runtime.cuda.client import Client
from jitney.runtime.cuda.driver import describe
from jitney.runtime.cuda.emulator import layout
from jitney.runtime.cuda.emulator.driver import EmulatedLibrary
from jitney.runtime.cuda.emulator.machine import FORWARDS, ORDERS, EmulationError
from jitney.runtime.cuda.library import DeviceError
from jitney.runtime.options import CompileOptions

HOPPER = CudaTarget(arch=90, ptx=80, sms=2, exact=True)
STORED = {"bf16": "u2", "f16": "u2", "tf32": "f4"}

pytestmark = hopper_only


def matmul(shape, element="bf16", turned=(False, True), parts=1):
    """c[b, m, n]; an operand that is turned lies with its rows (b's: its columns) side by side."""
    batch, m, n, k = shape
    dtype = np.dtype(STORED[element])
    a_shape = (batch, k, m) if turned[0] else (batch, m, k)
    b_shape = (batch, k, n) if turned[1] else (batch, n, k)
    a = Array(a_shape, dtype, kind="input", position=0)
    b = Array(b_shape, dtype, kind="input", position=1)
    c = Array((batch * parts, m, n), np.dtype("f4"), kind="output", position=0)
    a_strides = (m * k, 1, m) if turned[0] else (m * k, k, 1)
    b_strides = (k * n, n, 1) if turned[1] else (k * n, 1, k)
    if parts > 1:
        length = -(-k // (64 * parts)) * 64
        a_strides = (length * a_strides[2], *a_strides[1:])
        b_strides = (length * b_strides[1], *b_strides[1:])
        return Product(Matmul(a, b, c, parts, m, n, length, a_strides, b_strides), total=k)
    return Product(Matmul(a, b, c, batch, m, n, k, a_strides, b_strides))


def program(product, tile, target=HOPPER):
    builder = ProgramBuilder(target, [16, 16])
    launch = builder.multiplied(product, tile)
    step = product.matmul
    inputs = [Buffer(x.shape, x.dtype, x.strides, 16) for x in (step.a, step.b)]
    output = Buffer(step.c.shape, step.c.dtype, step.c.strides, 256)
    return DeviceProgram(
        builder.ir(), builder.kernels, (launch,), inputs, [output], arch=builder.arch
    )


def encoded(numbers, element):
    """What lies in memory, and the numbers that it stands for."""
    if element == "tf32":
        return numbers, numbers
    if element == "f16":
        halves = numbers.astype("f2")
        return halves.view("u2"), halves.astype("f4")
    bits = (numbers.view("u4") + 0x8000 >> 16).astype("u2")
    return bits, (bits.astype("u4") << 16).view("f4")


def data(product, element):
    step = product.matmul
    (a, left), (b, right) = (
        encoded(sample(x.shape, "f4", k), element) for k, x in enumerate((step.a, step.b))
    )
    left = left.swapaxes(1, 2) if step.a_strides[2] != 1 else left
    right = right.swapaxes(1, 2) if step.b_strides[1] == 1 else right
    return [a, b], left.astype("f8"), right.astype("f8")


def close(got, want, element="bf16"):
    assert np.isfinite(got).all()
    assert np.abs(got - want).max() <= (2e-3 if element == "tf32" else 2e-6) * np.abs(want).max()


def check(product, tile, order=FORWARDS, target=HOPPER, change=lambda ir: ir):
    arrays, left, right = data(product, tile.element)
    found = program(product, tile, target)
    (got,) = execute(replace(found, ir=change(found.ir)), arrays, order)
    if product.total:
        got = got.sum(axis=0, keepdims=True)
    close(got, left @ right, tile.element)
    return got


SMALL = WarpgroupTile(1, 16, 3, "bf16")  # both operands along k


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_operands_lie_as_they_like(turned):
    """Rows, columns and the sum end inside tiles, and there are more tiles than blocks."""
    check(matmul((1, 136, 136, 136), "bf16", turned), WarpgroupTile(1, 64, 2, "bf16"))


@pytest.mark.parametrize(("element", "k"), [("f16", 72), ("tf32", 100)])
def test_elements(element, k):
    check(matmul((1, 130, 36, k), element, (False, False)), WarpgroupTile(1, 32, 3, element))


@pytest.mark.parametrize("rows", [1, 2])
def test_batches_and_more_rows(rows):
    check(matmul((2, 264, 20, 72), "bf16", (False, False)), WarpgroupTile(rows, 16, 3, "bf16"))


def test_matrices_that_are_the_same_for_the_whole_batch():
    product = matmul((3, 130, 16, 72), "bf16", (False, False))
    step = product.matmul
    shared = replace(product, matmul=replace(step, b_strides=(0, *step.b_strides[1:])))
    arrays, left, right = data(shared, "bf16")
    (got,) = execute(program(shared, SMALL), arrays)
    close(got, left @ right[:1])


def test_parts_of_long_sums():
    """The last part is shorter, and no part reads what belongs to the next."""
    product = matmul((1, 130, 16, 264), "bf16", (False, False), parts=2)
    assert product.total % product.matmul.k
    check(product, SMALL)


@gpu.emulator_only
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_threads_in_any_order(order):
    """Stages go round several times, and into the next tile."""
    check(matmul((1, 264, 20, 456), "bf16", (False, False)), SMALL, order)


def test_results_do_not_depend_on_the_device():
    """Tiles and blocks follow from it; what is summed in which order does not."""
    product = matmul((1, 260, 20, 136), "bf16", (False, False))
    ways = [(SMALL, 1), (WarpgroupTile(2, 8, 2, "bf16"), 100)]
    results = [check(product, tile, target=replace(HOPPER, sms=n)) for tile, n in ways]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


# What would be wrong, and what the emulation says of it.

FULL_WAIT = re.compile(r"(%\w+) = call i1 @llvm\.nvvm\.mbarrier\.try\.wait\.parity\S+\((.*)\)")


def without_waits(ir, which):
    """Waits of the producer (0) or of the consumers (1) say at once that all is there."""
    places = list(FULL_WAIT.finditer(ir))
    assert len(places) == 2
    found = places[which]
    return ir[: found.start()] + f"{found[1]} = icmp eq i32 0, 0" + ir[found.end() :]


def changed(old, new, count=1):
    def change(ir):
        assert ir.count(old) >= 1, old
        return ir.replace(old, new, count)

    return change


ARRIVE = "@llvm.nvvm.mbarrier.arrive.scope.cta.space.cta(ptr addrspace(3) "
BYTES = (128 + 16) * 128
WRONG = {
    "no wait for what is full": (lambda ir: without_waits(ir, 1), None),
    "no wait for what is empty": (lambda ir: without_waits(ir, 0), None),
    "a wait that is not repeated": (
        lambda ir: re.sub(r"br i1 (%\w+), label %(done\w+), label %wait\w+", r"br label %\2", ir),
        None,
    ),
    "too few bytes": (changed(f"i32 {BYTES})", f"i32 {BYTES - 16})"), layout.UNANNOUNCED_BYTES),
    "too many bytes": (changed(f"i32 {BYTES})", f"i32 {BYTES + 16})"), layout.MISSING_ARRIVALS),
    "nobody fences the barriers": (
        changed("  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()\n", ""),
        layout.UNFENCED_MBARRIER,
    ),
    "one warp arrives for two": (
        lambda ir: re.sub(r"(cta\.space\.cta\(ptr addrspace\(3\) %\w+, i32) 1\)", r"\1 2)", ir),
        None,
    ),
    "no fence before products": (
        changed("  call void @llvm.nvvm.wgmma.fence.sync.aligned()\n", ""),
        layout.UNFENCED_PRODUCT,
    ),
    "products that nobody waits for": (
        changed("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;"),
        None,
    ),
    "a stage is given back too early": (
        changed("wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;"),
        None,
    ),
    "products without a group": (
        changed("  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n", ""),
        None,
    ),
    "more registers than there are": (
        changed(
            "setmaxnreg.inc.sync.aligned.u32(i32 232)", "setmaxnreg.inc.sync.aligned.u32(i32 240)"
        ),
        layout.MISSING_ARRIVALS,
    ),
    "another swizzle": (changed(str(1 << 62 | 64 << 32 | 1 << 16), str(64 << 32 | 1 << 16)), None),
}


@gpu.emulator_only
@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_found(name):
    change, kind = WRONG[name]
    product = matmul((1, 264, 16, 328), "bf16", (False, False))
    for order in ORDERS:
        try:
            check(product, SMALL, order, change=change)
        except AssertionError:
            if kind is None:
                return
        except DeviceError as error:
            assert isinstance(error.__cause__, EmulationError), error
            assert kind is None or error.__cause__.kind == kind
            return
    raise AssertionError(f"no order shows it: {name}")


@gpu.emulator_only
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, True)])
def test_a_ring_begins_at_a_whole_atom_wherever_its_memory_does(turned):
    """The emulated block's dynamic memory begins at a multiple of 16 and no more; a kernel that took
    it as it comes would be found out."""
    product, tile = matmul((1, 136, 64, 200), "f16", turned), tile_of(1, 64, "f16")
    (entry,) = program(product, tile).kernels.values()
    assert entry.shared_bytes > 48 << 10
    check(product, tile)

    def as_it_comes(ir):
        ir, count = re.subn(r"(%\w+) = and i32 (%\w+), 1023", r"\1 = and i32 \2, 0", ir)
        assert count == 1
        return ir

    with pytest.raises(DeviceError, match="misaligned|descriptor"):
        check(product, tile, change=as_it_comes)


def test_assembly_is_a_closed_set():
    for form in (Form(256, "f16", True, False), Form(8, "tf32"), Form(64, "bf16", False, True)):
        assert parse(multiply(form).text) == form
    assert parse(wait(1, 8).text) == 1
    text = multiply(Form(16, "bf16")).text
    for other in (text.replace("n16", "n24"), text.replace("$2", "$3"), text + " exit;", "exit;"):
        assert parse(other) is None
    with pytest.raises(ValueError, match="columns"):
        Form(12, "bf16")
    with pytest.raises(ValueError, match="along k"):
        Form(16, "tf32", True)


@pytest.mark.parametrize(
    ("tile", "turned", "shape"),
    [
        (tile_of(1, 256, "bf16"), (False, True), (1, 4096, 4096, 4096)),
        (tile_of(2, 128, "f16"), (True, True), (1, 4096, 4096, 4096)),
        (tile_of(1, 192, "bf16"), (True, False), (2, 1000, 1000, 1000)),
        (tile_of(1, 128, "tf32"), (False, False), (2, 1000, 1000, 1000)),
        (tile_of(1, 64, "f16"), (False, False), (1, 1000, 1000, 1000)),
    ],
    ids=repr,
)
def test_kernels_are_assembled_without_spills_and_in_parallel(tile, turned, shape):
    """ptxas would say C7508 or C7510 where products wait for each other, C7504 where registers are not
    handed over; `loaded` looks for that. Nothing lies before the ring."""
    found = program(matmul(shape, tile.element, turned), tile, replace(HOPPER, sms=132))
    assert found.arch == "sm_90a"
    text, report = loaded(found)
    assert ".target sm_90a" in text and re.findall(r"\.shared \.align (\d+)", text) == ["16"]
    assert re.search(r"and\.b32 .*, 1023;", text)  # the rounding, which a promise would fold away
    if report is not None:
        (kernel,) = report.kernels.values()
        assert kernel.registers == 168 and kernel.stack == 0 and kernel.shared == 0
    (entry,) = found.kernels.values()
    assert entry.shared_bytes <= SHARED_BYTES and entry.threads == (384, 1, 1)


# In programs.


def layer(b, x, w, bias):
    """y = tanh(x @ w.T + bias) and the product itself."""
    h = b.op("dot", x, w, contract=((1,), (1,)), batch=((), ()))
    return h, b.tanh(b.add(h, b.broadcast(bias, shape=h.shape, dims=(1,))))


FAST = replace(HOPPER, tf32=True)


NARROW = WarpgroupTile(1, 24, 8, "tf32")


def layer_program(target=FAST, tile=NARROW, alignment=None, rows=140):
    arrays = [sample((rows, 48), "f4"), sample((44, 48), "f4", 1) / 8, sample((44,), "f4", 2)]
    graph = optimise(build(layer, *arrays))
    chooser = Fixed({"product": repr(tile)}) if tile else None
    found = compile_device(graph, target, None, alignment, chooser=chooser)
    return found, arrays, expected(graph, arrays)


def by_warpgroups(program):
    return [any(isinstance(a, TensorMap) for a in s.arguments) for s in program.steps]


def test_epilogues(monkeypatch):
    monkeypatch.setitem(tile_shapes(), (1, 24), 1.0)
    found, arrays, want = layer_program()
    assert by_warpgroups(found) == [True]
    assembled(found.ir, "sm_90a")
    for got, right in zip(execute(found, arrays), want, strict=True):
        close(got, right, "tf32")


def tile_shapes():
    from jitney.codegen.kernels.matmul import cuda_warpgroups as warpgroups

    return warpgroups.SHAPES


def test_maps_are_made_for_each_launch_and_kept_by_graphs(monkeypatch):
    """Three runs of three products: the first runs, the second is recorded, the third is replayed."""
    monkeypatch.setitem(tile_shapes(), (1, 24), 1.0)
    found, arrays, want = layer_program(rows=10)
    found = replace(found, steps=found.steps * 3)
    asked = []
    encode = tensor_maps.encode
    monkeypatch.setattr(tensor_maps, "encode", lambda *args: asked.append(args) or encode(*args))
    for got, right in zip(execute(found, arrays, runs=3), want, strict=True):
        close(got, right, "tf32")
    assert len(asked) == 2


def test_slices_of_a_scan(monkeypatch):
    """The operand moves from trip to trip: its map does, too."""
    monkeypatch.setitem(tile_shapes(), (1, 24), 1.0)

    def f(x, w):
        return jt.scan(lambda c, row: (c, row @ w.T), np.float32(0), x)[1]

    x, w = sample((3, 20, 32), "f4"), sample((24, 32), "f4", 1)
    graph = optimise(jt.jit(f).lower(x, w).graph)
    found = compile_device(graph, FAST, chooser=Fixed({"product": repr(NARROW)}))
    assert "wgmma" in found.ir
    (got,) = execute(found, [x, w])
    close(got, x @ w.T, "tf32")


def test_16_bit_floats():
    """As users write it: both operands as they lie, the sum in float32, each result rounded once."""
    dtype, tile = ml_dtypes.bfloat16, tile_of(1, 64, "bf16")
    graph_of = jt.jit(lambda x, y, bias: np.maximum(x @ y + bias, 0))
    x, y = (sample(shape, "f4", k).astype(dtype) for k, shape in enumerate([(140, 136), (136, 72)]))
    bias = sample((72,), "f4", 2).astype(dtype)
    graph = optimise(storable(graph_of.lower(x, y, bias).graph))
    found = compile_device(graph, HOPPER, chooser=Fixed({"product": repr(tile)}))
    assert "wgmma" in found.ir and found.arch == "sm_90a"
    (got,) = execute(found, [a.view("u2") for a in (x, y, bias)])
    want = np.maximum(x.astype("f8") @ y.astype("f8") + bias.astype("f8"), 0)
    error = np.abs(got.view(dtype).astype("f8") - want).max()
    assert error <= 1.1 * float(ml_dtypes.finfo(dtype).eps) * np.abs(want).max()


def test_choices():
    """Large products whose operands lie well; not without the architecture, the leave, the alignment."""

    def chosen(target=FAST, shape=(1, 4096, 4096, 4096), element="tf32", **changes):
        product = matmul(shape, element, (False, False))
        product.matmul = replace(product.matmul, **changes)
        return [t for t, _ in warpgroup_tiles(product, replace(target, sms=132), lambda a, n: 16)]

    assert len(chosen()) == 5
    assert not chosen(replace(FAST, exact=False)) and not chosen(HOPPER)
    assert not chosen(replace(FAST, arch=100)) and not chosen(shape=(1, 512, 512, 514))
    assert not chosen(a_strides=(0, 1, 4096)) and not chosen(a_strides=(0, -4096, 1))
    assert chosen(b_offset=1) is not chosen(b_offset=4)
    large, _, _ = layer_program(replace(FAST, sms=132), None, rows=140)
    assert by_warpgroups(large) == [False]
    x = np.ones((2048, 1024), np.float32)
    text = jt.jit(lambda x: x @ x.T, fastmath=True).ptx(x, arch="sm_90a")
    assert "wgmma.mma_async" in text
    assert "wgmma" not in jt.jit(lambda x: x @ x.T, fastmath=True).ptx(x, arch="sm_90")
    assert "wgmma" not in jt.jit(lambda x: x @ x.T).ptx(x, arch="sm_90a")


def test_operands_that_begin_anywhere_are_left_to_others():
    found, _, _ = layer_program(alignment=[4, 16, 16])
    assert by_warpgroups(found) == [False]


@gpu.emulator_only
@pytest.mark.parametrize("refused", ["cuModuleLoadDataEx", "cuTensorMapEncodeTiled"])
def test_a_driver_that_refuses(monkeypatch, refused):
    """One warning, and the other instructions from then on."""
    library = EmulatedLibrary(64 << 20)
    call = getattr(library, refused)

    def refuse(first, second, *rest):
        if refused != "cuModuleLoadDataEx" or b"wgmma" in second:
            raise DeviceError(f"{refused}: CUDA_ERROR_NOT_SUPPORTED", 801)
        call(first, second, *rest)

    setattr(library, refused, refuse)
    monkeypatch.setitem(tile_shapes(), (1, 8), 1e6)
    client = Client(describe(library)[0])
    assert client.target.exact
    x = sample((130, 32), "f4")
    graph = jt.jit(lambda x: x @ x.T).lower(x).graph
    with pytest.warns(RuntimeWarning, match="without warpgroups.*NOT_SUPPORTED"):
        compiled = client.compile(graph, CompileOptions(fastmath=True))
    (got,) = compiled.run([client.put(x)])
    close(np.asarray(got), x @ x.T, "tf32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.compile(graph, CompileOptions(fastmath=True))
        assert not client.target.exact


@gpu.emulator_only
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"strides": (24,)}, "a stride is a multiple of 16"),
        ({"box": (128, 8)}, "a swizzled line has 128 bytes"),
        ({"box": (64, 264)}, "a box has 1 to 256"),
        ({"sizes": (0, 8)}, "elements along a dim"),
        ({"address": 8}, "an address is a multiple of 16"),
    ],
)
def test_maps_that_a_driver_refuses(changes, why):
    good = TensorMap(Ref("input"), "bf16", (64, 8), (128,), (64, 8))
    library = EmulatedLibrary(1 << 20)
    tensor_maps.encode(library, good, 0x1000)
    others = {name: value for name, value in changes.items() if name != "address"}
    with pytest.raises(DeviceError, match=re.escape(why)):
        tensor_maps.encode(library, good._replace(**others), 0x1000 + changes.get("address", 0))


def test_boxes_of_operands():
    """Bytes, boxes and descriptors of both ways in which an operand can lie."""
    left, right = boxed(matmul((2, 256, 128, 512), "bf16"), 128, 128, "bf16", lambda a, n: 16)
    assert (left.turned, left.boxes, left.nbytes) == (False, [0], 128 * 128)
    assert (right.turned, right.boxes, right.box_bytes) == (True, [0, 64], 64 * 128)
    assert (left.ahead(64, 16), right.ahead(64, 16)) == (
        (64 * 128 + 32) >> 4,
        (64 * 128 + 16 * 128) >> 4,
    )
    map = right.map(lambda array, nbytes: Ref("input", 1, nbytes))
    assert map.sizes == (128, 512, 2) and map.strides == (256, 512 * 256) and map.box == (64, 64, 1)
