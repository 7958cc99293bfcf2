"""What only sm_90 has, on the emulated GPU: barriers in memory, boxes, and what goes wrong there."""

import re

import numpy as np
import pytest
from cuda_texts import BARRIER, GLOBAL, SHARED, THREAD, N, launch, module, refused, store
from device_programs import execute, hopper_only
from gpu import emulator_only

from jitney.codegen.cuda.program import (
    Buffer,
    DeviceProgram,
    KernelShape,
    Launch,
    Ref,
    Scalar,
    TensorMap,
)
from jitney.codegen.kernels.matmul.cuda_wgmma import SWIZZLED, Form, multiply, wait
from jitney.runtime.cuda.emulator import layout
from jitney.runtime.cuda.emulator.machine import FORWARDS, ORDERS, EmulationError
from jitney.runtime.cuda.library import DeviceError

pytestmark = hopper_only
WORDS = "@full = internal addrspace(3) global i64 undef, align 8\n"
WORDS += "@empty = internal addrspace(3) global i64 undef, align 8\n"
WORDS += "@place = internal addrspace(3) global [32 x i32] undef, align 16"
CTA = ".scope.cta.space.cta"


def first(body: str, label: str = "first") -> str:
    """What thread 0 does."""
    return f"""
  %is_{label} = icmp eq i32 %t, 0
  br i1 %is_{label}, label %{label}, label %after_{label}
{label}:{body}
  br label %after_{label}
after_{label}:"""


def initialised(word: str, count: int) -> str:
    return f"\n  call void @{N}mbarrier.init.shared({SHARED} @{word}, i32 {count})"


def arrival(word: str, name: str, count: int = 1) -> str:
    return f"\n  %{name} = call i64 @{N}mbarrier.arrive{CTA}({SHARED} @{word}, i32 {count})"


def waiting(word: str, parity: str, label: str) -> str:
    """Until the phase of that parity has ended."""
    return f"""
  br label %{label}
{label}:
  %{label}_ok = call i1 @{N}mbarrier.try.wait.parity{CTA}({SHARED} @{word}, i32 {parity})
  br i1 %{label}_ok, label %after_{label}, label %{label}
after_{label}:"""


HANDED = f"""start:{THREAD}
  %warp = lshr i32 %t, 5
  %at = getelementptr i32, {SHARED} @place, i32 %lane{
    first(initialised("full", 32) + initialised("empty", 32))
}
  {BARRIER}
  %role = icmp eq i32 %warp, 0
  br i1 %role, label %writer, label %reader
writer:
  %i = phi i32 [ 0, %after_first ], [ %i_next, %after_room ]
  %parity = and i32 %i, 1
  %before = xor i32 %parity, 1{waiting("empty", "%before", "room")}
  %scaled = mul i32 %i, 100
  %value = add i32 %scaled, %lane
  store i32 %value, {SHARED} %at{arrival("full", "a")}
  %i_next = add i32 %i, 1
  %more = icmp ult i32 %i_next, 5
  br i1 %more, label %writer, label %end
reader:
  %j = phi i32 [ 0, %after_first ], [ %j_next, %after_data ]
  %sum = phi i32 [ 0, %after_first ], [ %sum_next, %after_data ]
  %its = and i32 %j, 1{waiting("full", "%its", "data")}
  %other = xor i32 %lane, 1
  %from = getelementptr i32, {SHARED} @place, i32 %other
  %v = load i32, {SHARED} %from{arrival("empty", "b")}
  %sum_next = add i32 %sum, %v
  %j_next = add i32 %j, 1
  %again = icmp ult i32 %j_next, 5
  br i1 %again, label %reader, label %done
done:{store("%sum_next", at="%lane")}
  br label %end
end:
  ret void"""


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_one_warp_hands_over_to_another(order):
    """Five rounds through one place, in step by two barriers in memory."""
    y = np.zeros(32, np.int32)
    launch(module(HANDED, f"{GLOBAL} %y", shared=WORDS), y, block=(64, 1, 1), order=order)
    np.testing.assert_array_equal(y, 1000 + 5 * (np.arange(32) ^ 1))


@emulator_only
@pytest.mark.parametrize("word", ["empty", "full"])
def test_a_wait_that_is_missing_is_seen(word):
    """The reader is early, or the writer is."""
    loop = waiting(
        word, "%before" if word == "empty" else "%its", "room" if word == "empty" else "data"
    )
    label = "room" if word == "empty" else "data"
    text = HANDED.replace(loop, f"\n  br label %after_{label}\nafter_{label}:")
    assert text != HANDED
    wrong = 0
    for order in ORDERS:
        y = np.zeros(32, np.int32)
        try:
            launch(module(text, f"{GLOBAL} %y", shared=WORDS), y, block=(64, 1, 1), order=order)
        except EmulationError:
            wrong += 1
        else:
            wrong += not np.array_equal(y, 1000 + 5 * (np.arange(32) ^ 1))
    assert wrong


def bad(body: str) -> str:
    return f"start:{THREAD}{body}\n  ret void"


@emulator_only
def test_mistakes_with_barriers_in_memory():
    once = f"\n  %c = call i64 @{N}mbarrier.arrive.expect.tx{CTA}({SHARED} @full, i32 1048575)"
    together = f"\n  {BARRIER}" + waiting("full", "0", "w")
    cases = [
        (arrival("full", "a"), layout.NO_MBARRIER, "not initialised"),
        (first(initialised("full", 0)), layout.NO_MBARRIER, "with no count"),
        (
            first(initialised("full", 1) + arrival("full", "a", 2)),
            layout.TOO_MANY_ARRIVALS,
            "expects",
        ),
        (
            first(initialised("full", 9) + once + once.replace("%c", "%d")),
            layout.TOO_MANY_BYTES,
            "more bytes are announced",
        ),
        (
            first(initialised("full", 3) + arrival("full", "a")) + together,
            layout.MISSING_ARRIVALS,
            "2 arrivals and 0 bytes are missing",
        ),
        (
            first(initialised("full", 1) + once) + together,
            layout.MISSING_ARRIVALS,
            "0 arrivals and 1048575 bytes",
        ),
    ]
    for body, kind, match in cases:
        refused(bad(body), kind, match, shared=WORDS, block=(32, 1, 1))


def test_the_phase_before_the_first_has_ended():
    body = first(initialised("full", 1)) + f"\n  {BARRIER}" + waiting("full", "1", "w")
    y = np.zeros(32, np.int32)
    launch(module(bad(body + store("%t")), f"{GLOBAL} %y", shared=WORDS), y)
    np.testing.assert_array_equal(y, np.arange(32))


def test_one_lane_is_elected():
    body = f"""start:{THREAD}
  %both = call {{ i32, i1 }} @{N}elect.sync(i32 -1)
  %who = extractvalue {{ i32, i1 }} %both, 0
  %mine = extractvalue {{ i32, i1 }} %both, 1
  %one = zext i1 %mine to i32
  %high = shl i32 %one, 8
  %v = or i32 %who, %high{store("%v")}
  ret void"""
    for order in ORDERS:
        y = np.zeros(64, np.int32)
        launch(module(body, f"{GLOBAL} %y"), y, block=(64, 1, 1), order=order)
        for warp in y.reshape(2, 32):
            (lane,) = np.flatnonzero(warp >> 8)
            assert (warp & 255 == lane).all()


# Boxes

BOX_BYTES = 16 * 128


def boxed(rank: int, words: int = BOX_BYTES // 4) -> str:
    """A kernel that copies the box at (%a, %b, %c) and shows the shared memory as it is."""
    point = ", ".join(f"i32 %{n}" for n in "abc"[:rank])
    operands = f"ptr addrspace(7) %to, {SHARED} @full, ptr %map, {point}, i16 0, i64 0"
    copy = f"cp.async.bulk.tensor.g2s.tile.{rank}d({operands}, i1 0, i1 0, i32 0)"
    begin = f"""{initialised("full", 1)}
  call void @{N}fence.mbarrier_init.release.cluster()
  %s = call i64 @{N}mbarrier.arrive.expect.tx{CTA}({SHARED} @full, i32 {BOX_BYTES})
  %to = addrspacecast {SHARED} @box to ptr addrspace(7)
  call void @{N}{copy}"""
    body = f"""start:{THREAD}{first(begin)}
  {BARRIER}{waiting("full", "0", "w")}
  br label %show
show:
  %i = phi i32 [ %t, %after_w ], [ %next, %show ]
  %from = getelementptr i32, {SHARED} @box, i32 %i
  %v = load i32, {SHARED} %from{store("%v", at="%i")}
  %next = add i32 %i, 32
  %more = icmp ult i32 %next, {words}
  br i1 %more, label %show, label %end
end:
  ret void"""
    shared = f"@box = internal addrspace(3) global [{BOX_BYTES} x i8] undef, align 1024\n{WORDS}"
    map = 'ptr byval([128 x i8]) align 64 "nvvm.grid_constant" %map'
    return module(body, f"{map}, {GLOBAL} %y, i32 %a, i32 %b, i32 %c", shared=shared)


def box_program(array, element, box, point, change=lambda text: text):
    rank = array.ndim
    strides = array.strides[::-1][1:]
    map = TensorMap(Ref("input"), element, array.shape[::-1], strides, box)
    arguments = (map, Ref("output"), *(Scalar("i32", n) for n in (*point, 0)[:3]))
    steps = tuple(array.strides[k] // array.itemsize for k in range(rank))
    return DeviceProgram(
        change(boxed(rank)),
        {"k": KernelShape((32, 1, 1))},
        (Launch("k", (1, 1, 1), arguments),),
        [Buffer(array.shape, array.dtype, steps, 16)],
        [Buffer((BOX_BYTES // 4,), np.dtype(np.int32), (1,), 256)],
    )


def box_of(array, box, point):
    """The elements of a box, zeros outside of the array, its lines swizzled."""
    slices = [np.arange(n) + p for n, p in zip(box, point, strict=True)][::-1]
    grid = np.meshgrid(*slices, indexing="ij")
    inside = np.all([(g >= 0) & (g < n) for g, n in zip(grid, array.shape, strict=True)], axis=0)
    found = np.where(inside, array[tuple(np.where(inside, g, 0) for g in grid)], 0)
    chunks = found.astype(array.dtype).reshape(-1, 128 // array.itemsize)
    chunks = chunks.view(np.int32).reshape(-1, 8, 4)
    line, chunk = np.meshgrid(np.arange(len(chunks)), np.arange(8), indexing="ij")
    return chunks[line, chunk ^ line % 8].reshape(-1)


BOXES = [
    ((40, 88), "u2", "bf16", (64, 16), (16, 8)),
    ((40, 88), "u2", "f16", (64, 16), (-5, 30)),
    ((40, 88), "u2", "bf16", (64, 16), (80, -3)),
    ((40, 44), "f4", "tf32", (32, 16), (20, 9)),
    ((3, 40, 72), "u2", "bf16", (64, 16, 1), (8, 30, 2)),
    ((3, 20, 36), "f4", "tf32", (32, 8, 2), (6, 15, 2)),
]


@pytest.mark.parametrize(("shape", "dtype", "element", "box", "point"), BOXES)
def test_boxes_are_copied_swizzled_and_filled_with_zeros(shape, dtype, element, box, point):
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(shape) * 1000
    array = numbers.astype("i4").astype("u2") if dtype == "u2" else numbers.astype("f4")
    (got,) = execute(box_program(array, element, box, point), [array])
    want = box_of(array, box, point)
    if element != "tf32":
        np.testing.assert_array_equal(got, want)
        return
    assert not np.any(got & 0x1FFF)  # 10 bits after the point are left
    np.testing.assert_allclose(got.view("f4"), want.view("f4"), rtol=2.0**-10, atol=0)


def announced(text: str, nbytes: int) -> str:
    return text.replace(f"@full, i32 {BOX_BYTES})", f"@full, i32 {nbytes})")


FENCE = f"  call void @{N}fence.mbarrier_init.release.cluster()\n"


def of_another_rank(text: str) -> str:
    text = text.replace("tile.2d", "tile.3d").replace(
        "ptr, i32, i32, i16", "ptr, i32, i32, i32, i16"
    )
    return text.replace("i32 %b, i16", "i32 %b, i32 %c, i16")


def beside_a_line(text: str) -> str:
    place = f"getelementptr (i8, {SHARED} @box, i32 16)"
    return text.replace(f"addrspacecast {SHARED} @box", f"addrspacecast {SHARED} {place}")


def without_a_wait(text: str) -> str:
    text = re.sub(r"%w_ok = call .*", "%w_ok = icmp eq i32 0, 0", text)
    return text.replace("br i1 %w_ok, label %after_w", "br i1 %w_ok, label %end")


MISTAKES = {
    "more bytes": (lambda text: announced(text, BOX_BYTES + 16), layout.MISSING_ARRIVALS),
    "fewer bytes": (lambda text: announced(text, BOX_BYTES - 16), layout.UNANNOUNCED_BYTES),
    "no fence": (lambda text: text.replace(FENCE, ""), layout.UNFENCED_MBARRIER),
    "another rank": (of_another_rank, layout.NO_MAP),
    "beside a line": (beside_a_line, layout.MISALIGNED),
    "nobody waits": (without_a_wait, layout.UNFINISHED_BOXES),
}


@emulator_only
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_with_boxes(name):
    change, kind = MISTAKES[name]
    array = np.zeros((40, 88), np.uint16)
    found = box_program(array, "bf16", (64, 16), (0, 0), change)
    assert found.ir != boxed(2)
    with pytest.raises(DeviceError) as caught:
        execute(found, [array])
    assert isinstance(caught.value.__cause__, EmulationError)
    assert caught.value.__cause__.kind == kind


# Warpgroups

FORM = Form(8, "bf16")
PLACED = SWIZZLED | 64 << 32 | 1 << 16  # a descriptor of lines along k
ZEROS = ("0.0",) * FORM.accumulators
WGMMA = f"""
  call void @{N}wgmma.fence.sync.aligned()
  %address = ptrtoint {SHARED} @box to i64
  %units = lshr i64 %address, 4
  %d = or i64 %units, {PLACED}"""
COMMIT = f"\n  call void @{N}wgmma.commit_group.sync.aligned()"
TILE = "@box = internal addrspace(3) global [8192 x i8] undef, align 1024"


def call(assembly, *operands) -> str:
    """Accumulators come last; what comes before them are descriptors."""
    first = len(operands) - assembly.accumulators
    types = ["i64"] * first + ["float"] * assembly.accumulators
    given = ", ".join(f"{t} {x}" for t, x in zip(types, operands, strict=True))
    text = f'asm sideeffect "{assembly.text}", "{assembly.constraints}"({given})'
    return f"call {assembly.result} {text} convergent nounwind"


def product(name: str, *sums: str) -> str:
    texts = [f"%{name}{k}" for k in range(FORM.accumulators)]
    struct = multiply(FORM)
    taken = "".join(
        f"\n  {t} = extractvalue {struct.result} %{name}, {k}" for k, t in enumerate(texts)
    )
    return f"\n  %{name} = {call(struct, '%d', '%d', *sums)}{taken}"


def finished(name: str, *sums: str) -> str:
    struct = wait(0, FORM.accumulators)
    return f"""
  %{name} = {call(struct, *sums)}
  %{name}0 = extractvalue {struct.result} %{name}, 0
  %{name}w = bitcast float %{name}0 to i32{store(f"%{name}w")}"""


def names(name: str) -> list[str]:
    return [f"%{name}{k}" for k in range(FORM.accumulators)]


FILL = f"""start:{THREAD}
  br label %fill
fill:
  %i = phi i32 [ %t, %start ], [ %next, %fill ]
  %to = getelementptr i32, {SHARED} @box, i32 %i
  store i32 {0x3F803F80}, {SHARED} %to
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 2048
  br i1 %more, label %fill, label %filled
filled:
  {BARRIER}"""


def group_kernel(body: str) -> str:
    return module(f"{FILL}{body}\n  ret void", f"{GLOBAL} %y", shared=TILE)


def run_group(body: str, order=FORWARDS) -> np.ndarray:
    y = np.zeros(128, np.int32)
    launch(group_kernel(body), y, block=(128, 1, 1), order=order)
    return y.view(np.float32)


@emulator_only  # a GPU wants a fence of the proxy between the stores and the product
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_products_of_a_warpgroup_add_up(order):
    """Of ones: two products of 16 places each, in one group."""
    body = WGMMA + product("p", *ZEROS) + product("q", *names("p")) + COMMIT
    np.testing.assert_array_equal(run_group(body + finished("r", *names("q")), order), 32)


@emulator_only
def test_sums_are_no_numbers_before_they_are_waited_for():
    body = WGMMA + product("p", *ZEROS) + COMMIT
    assert np.isnan(run_group(body + "\n  %w = bitcast float %p0 to i32" + store("%w"))).all()
    np.testing.assert_array_equal(run_group(body + finished("r", *names("p"))), 16)


@emulator_only
def test_mistakes_with_warpgroups():
    half = f"""
  %upper = icmp ult i32 %t, 64
  br i1 %upper, label %some, label %others
some:{COMMIT}
  br label %others
others:"""
    changed = "\n  %s = fadd float %p1, 1.0"
    swapped = [*names("p")[1:], "%p0"]
    touched = ["%p0", "%s", *names("p")[2:]]
    begun = WGMMA + product("p", *ZEROS)
    outside = begun.replace("lshr i64 %address, 4", "or i64 16383, 0")
    cases = [
        (begun.replace(f"call void @{N}wgmma.fence.sync.aligned()", ""), layout.UNFENCED_PRODUCT),
        (begun + product("q", *swapped), layout.TOUCHED_SUMS),
        (begun + changed + product("q", *touched), layout.TOUCHED_SUMS),
        (begun + half, layout.DIVERGED_GROUP),
        (begun.replace(str(PLACED), str(PLACED ^ SWIZZLED)), layout.BAD_DESCRIPTOR),
        (outside + COMMIT + finished("r", *names("p")), layout.BAD_DESCRIPTOR),
    ]
    for body, kind in cases:
        with pytest.raises(EmulationError) as caught:
            run_group(body)
        assert caught.value.kind == kind, caught.value
