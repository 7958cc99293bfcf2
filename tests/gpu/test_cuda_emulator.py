"""The emulated GPU: threads, barriers, arguments and modules, in every order, and what it refuses."""

import numpy as np
import pytest
from cuda_texts import BARRIER, BUFFER, GLOBAL, SHARED, THREAD, N, launch, load, module, store
from gpu import REAL, Module, emulator_only

from jitney.codegen.cuda.intrinsics import INTRINSICS
from jitney.runtime.cuda.assemble import AssembleError, assemble
from jitney.runtime.cuda.emulator import layout
from jitney.runtime.cuda.emulator.instructions import REWRITINGS
from jitney.runtime.cuda.emulator.machine import (
    GREEDY,
    ORDERS,
    EmulatedModule,
    EmulationError,
    Order,
)
from jitney.runtime.native.llvm_text import parse_access, parse_call, size_and_alignment


def test_every_intrinsic_is_known():
    """What the table allows can be emulated, or is one of LLVM's own functions."""
    ours = {name for name in INTRINSICS if name.startswith(N)}
    assert ours == {name for name in REWRITINGS if name.startswith(N)}


# Threads and blocks


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_every_thread_of_the_grid_runs_once(order):
    registers = [f"{r}.{axis}" for r in ("tid", "ctaid", "ntid", "nctaid") for axis in "xyz"]
    reads = "\n".join(
        f"  %{r.replace('.', '')} = call i32 @{N}read.ptx.sreg.{r}()" for r in registers
    )
    body = f"""{reads}
  %b0 = mul i32 %ctaidz, %nctaidy
  %b1 = add i32 %b0, %ctaidy
  %b2 = mul i32 %b1, %nctaidx
  %b3 = add i32 %b2, %ctaidx
  %c0 = mul i32 %b3, %ntidz
  %c1 = add i32 %c0, %tidz
  %c2 = mul i32 %c1, %ntidy
  %c3 = add i32 %c2, %tidy
  %c4 = mul i32 %c3, %ntidx
  %i = add i32 %c4, %tidx
  %p = getelementptr i32, {GLOBAL} %y, i32 %i
  %old = load i32, {GLOBAL} %p
  %new = add i32 %old, %tidx
  store i32 %new, {GLOBAL} %p
  ret void"""
    grid, block = (3, 2, 4), (5, 3, 2)
    y = np.zeros((4, 2, 3, 2, 3, 5), np.int32)
    launch(module(body, f"{GLOBAL} %y"), y, grid=grid, block=block, order=order)
    assert (y == np.arange(5)).all()


@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 8, 64, 105])
@pytest.mark.parametrize("seed", range(5))
def test_a_shuffled_order_is_a_permutation(blocks, seed):
    stride, start = Order(0, seed=seed).stride(blocks)
    assert sorted((stride * k + start) % blocks for k in range(blocks)) == list(range(blocks))


def test_nameless_values_and_blocks():
    text = f"""
define ptx_kernel void @k({GLOBAL} %0, i32 %1) {{
  %3 = icmp eq i32 %1, 7
  br i1 %3, label %4, label %5
4:
  br label %5
5:
  %6 = phi i32 [ 1, %2 ], [ 2, %4 ]
  store i32 %6, {GLOBAL} %0
  ret void
}}"""
    y = np.zeros(1, np.int32)
    for given, expected in ((7, 2), (8, 1)):
        launch(text, y, np.int32(given))
        assert y == expected


def test_arguments_are_packed_as_the_driver_packs_them():
    body = "\n".join(
        f"  %p{k} = getelementptr i8, {GLOBAL} %y, i32 {8 * k}\n  store {t} %a{k}, {GLOBAL} %p{k}"
        for k, t in enumerate(("i8", "i64", "i16", "float", "double", "i32"))
    )
    params = f"i8 %a0, i64 %a1, i16 %a2, float %a3, double %a4, i32 %a5, {GLOBAL} %y"
    y = np.zeros(6, np.int64)
    values = [
        np.int8(-1),
        np.int64(2**40),
        np.int16(-3),
        np.float32(4),
        np.float64(5),
        np.int32(-6),
    ]
    launch(module(body + "\n  ret void", params), *values, y)
    for k, value in enumerate(values):
        assert y[k : k + 1].view(value.dtype)[0] == value


# Barriers and shared memory

REVERSE = f"""{THREAD}{load("%v")}
  %s = getelementptr i32, {SHARED} @buffer, i32 %t
  store i32 %v, {SHARED} %s
  BARRIER
  %last = sub i32 63, %t
  %o = getelementptr i32, {SHARED} @buffer, i32 %last
  %r = load i32, {SHARED} %o{store("%r")}
  ret void"""


def test_a_block_exchanges_through_shared_memory():
    body = REVERSE.replace("BARRIER", BARRIER)
    text = module(body, f"{GLOBAL} %x, {GLOBAL} %y", shared=BUFFER)
    compiled = Module(text)
    for order in ORDERS:
        x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
        launch(compiled, x, y, block=(64, 1, 1), order=order)
        assert (y == x[::-1]).all()


@emulator_only
def test_a_removed_barrier_is_found():
    text = module(REVERSE.replace("BARRIER", ""), f"{GLOBAL} %x, {GLOBAL} %y", shared=BUFFER)
    compiled = Module(text)
    found = []
    for order in (*ORDERS, GREEDY):
        x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
        launch(compiled, x, y, block=(64, 1, 1), order=order, races=False)
        found.append((y != x[::-1]).any())
        with pytest.raises(EmulationError, match="no barrier since the access of") as caught:
            launch(compiled, x, y, block=(64, 1, 1), order=order)
        assert caught.value.kind == layout.RACE
    assert all(found)


def test_each_kernel_has_shared_memory_to_itself():
    """A module's variables may be more than a block can have; those of one kernel may not."""
    shared = "".join(
        f"@{name} = internal addrspace(3) global [{size} x i8] undef, align 16\n"
        for name, size in (("a", 40_000), ("b", 30_000), ("both", 100))
    )
    store = "  store i8 1, ptr addrspace(3) @{}\n"
    kernels = "".join(
        f"define ptx_kernel void @{kernel}() {{\n{''.join(map(store.format, used))}  ret void\n}}\n"
        for kernel, used in (("first", ("both", "a")), ("second", ("b", "both")), ("third", ()))
    )
    compiled = EmulatedModule(shared + kernels)
    sizes = compiled.host.static_shared
    assert 40_100 <= sizes["first"] < 40_128 and sizes["third"] == 0
    assert 30_100 <= sizes["second"] < 70_128
    compiled.launch("second", (1, 1, 1), (1, 1, 1), b"")


def test_dynamic_shared_memory_follows_the_static():
    shared = BUFFER + "\n@dynamic = external addrspace(3) global [0 x i8], align 128"
    body = (
        REVERSE.replace("@buffer, i32 %last", "@dynamic, i32 %last")
        .replace("@buffer, i32 %t", "@dynamic, i32 %t")
        .replace("BARRIER", f"store volatile i32 5, {SHARED} @buffer\n  {BARRIER}")
    )
    text = Module(module(body, f"{GLOBAL} %x, {GLOBAL} %y", shared=shared))
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    launch(text, x, y, block=(64, 1, 1), shared=256)
    assert (y == x[::-1]).all()
    if REAL:
        return
    with pytest.raises(EmulationError, match="4 bytes.*out of bounds"):
        launch(text, x, y, block=(64, 1, 1), shared=252)
    with pytest.raises(ValueError, match="a block can have"):
        launch(text, x, y, block=(64, 1, 1), shared=1 << 20)


def test_barriers_that_reduce():
    calls = "\n".join(
        f"  %r{k} = call {t} @{N}barrier.cta.red.{how}.aligned.all(i32 {k}, i1 %c)\n"
        + (f"  %w{k} = zext i1 %r{k} to i32" if t == "i1" else f"  %w{k} = or i32 %r{k}, 0")
        + f"\n  %q{k} = add i32 %t, {96 * k}{store(f'%w{k}', at=f'%q{k}')}"
        for k, (how, t) in enumerate((("and", "i1"), ("or", "i1"), ("popc", "i32")))
    )
    body = f"{THREAD}{load('%v')}\n  %c = icmp ne i32 %v, 0\n{calls}\n  ret void"
    text = Module(module(body, f"{GLOBAL} %x, {GLOBAL} %y"))
    for x in (np.zeros(96), np.ones(96), np.arange(96) % 3):
        x = x.astype(np.int32)
        for order in ORDERS:
            y = np.full((3, 96), -1, np.int32)
            launch(text, x, y, block=(96, 1, 1), order=order)
            assert (y[0] == x.all()).all() and (y[1] == x.any()).all()
            assert (y[2] == np.count_nonzero(x)).all()


PIPE = f"""entry:{THREAD}
  %producer = icmp ult i32 %t, 32
  %s = getelementptr i32, {SHARED} @buffer, i32 %lane
  br i1 %producer, label %write, label %read
write:
  store i32 %t, {SHARED} %s
  call void @{N}barrier.cta.arrive.aligned.count(i32 1, i32 64)
  br label %end
read:
  call void @{N}barrier.cta.sync.aligned.count(i32 1, i32 64)
  %o = xor i32 %lane, 31
  %q = getelementptr i32, {SHARED} @buffer, i32 %o
  %r = load i32, {SHARED} %q
  %p = getelementptr i32, {GLOBAL} %y, i32 %lane
  store i32 %r, {GLOBAL} %p
  br label %end
end:
  ret void"""


def test_named_barriers():
    """One warp arrives and goes on, the other waits for it."""
    text = Module(module(PIPE, f"{GLOBAL} %y", shared=BUFFER))
    for order in ORDERS:
        y = np.zeros(32, np.int32)
        launch(text, y, block=(64, 1, 1), order=order)
        assert (y == np.arange(32)[::-1]).all()
    if REAL:
        return
    text = module(
        PIPE.replace("i32 1, i32 64)\n  br", "i32 2, i32 64)\n  br"), f"{GLOBAL} %y", shared=BUFFER
    )
    with pytest.raises(EmulationError) as caught:
        launch(text, np.zeros(32, np.int32), block=(64, 1, 1))
    assert caught.value.kind == layout.MISSING_THREADS


def test_atomics_and_a_flag_between_warps():
    """Blocks add up; in each, one warp waits for a word that the other writes."""
    body = f"""entry:{THREAD}
  %old = atomicrmw add {GLOBAL} %y, i32 %t syncscope("device") monotonic
  %second = icmp uge i32 %t, 32
  br i1 %second, label %wait, label %set
set:
  call void @{N}bar.warp.sync(i32 -1)
  store atomic i32 1, {SHARED} @buffer syncscope("block") release, align 4
  br label %end
wait:
  %f = load atomic i32, {SHARED} @buffer syncscope("block") acquire, align 4
  %yes = icmp eq i32 %f, 1
  br i1 %yes, label %end, label %wait
end:
  fence syncscope("device") acq_rel
  %z = getelementptr float, {GLOBAL} %y, i32 1
  %m = atomicrmw fadd {GLOBAL} %z, float 0.5 monotonic
  ret void"""
    text = Module(module(body, f"{GLOBAL} %y", shared=BUFFER))
    for order in ORDERS:
        y = np.zeros(2, np.int32)
        launch(text, y, grid=(3, 1, 1), block=(64, 1, 1), order=order)
        assert y[0] == 3 * np.arange(64).sum() and y[1:].view(np.float32) == 96


@emulator_only
def test_bad_launches():
    text = Module(module("  ret void", ""))
    with pytest.raises(ValueError, match="1025 threads"):
        text.launch("k", (1, 1, 1), (1025, 1, 1), b"")
    with pytest.raises(ValueError, match="no blocks"):
        text.launch("k", (0, 1, 1), (32, 1, 1), b"")
    text.launch("k", (1, 1, 1), (1024, 1, 1), b"")


@emulator_only
def test_what_cannot_be_emulated_is_said():
    helper = f"""
declare i32 @{N}read.ptx.sreg.tid.x()
define i32 @f() {{
  %t = call i32 @{N}read.ptx.sreg.tid.x()
  ret i32 %t
}}"""
    with pytest.raises(AssembleError, match="in kernels only"):
        EmulatedModule(helper)
    with pytest.raises(AssembleError, match="may not call llvm.exp.f32"):
        EmulatedModule("declare float @llvm.exp.f32(float)")


def test_functions_and_tables_of_a_module():
    text = """
@table = internal addrspace(1) constant [4 x float] [float 1.0, float 2.0, float 3.0, float 4.0]
@counter = internal addrspace(1) global i32 5
define internal float @twice(float %v) {
  %r = fmul float %v, 2.0
  ret float %r
}
""" + module(
        f"""{THREAD}
  %p = getelementptr [4 x float], {GLOBAL} @table, i32 0, i32 %t
  %v = load float, {GLOBAL} %p
  %w = call float @twice(float %v){store("%w", "float")}
  %old = atomicrmw add {GLOBAL} @counter, i32 1 monotonic
  ret void""",
        f"{GLOBAL} %y",
    )
    assemble(text, "sm_80")
    compiled = Module(text)
    y = np.zeros(8, np.float32)
    launch(compiled, y, block=(4, 1, 1))
    assert (y == [2, 4, 6, 8, 0, 0, 0, 0]).all()
    if REAL:
        return
    with pytest.raises(EmulationError, match="out of bounds"):
        launch(compiled, y, block=(5, 1, 1))


# Reading LLVM's text


def test_sizes_of_types():
    named = {"%pair": "{ i8, i32 }"}
    cases = {
        "i1": (1, 1), "i8": (1, 1), "i64": (8, 8), "ptr addrspace(3)": (8, 8), "half": (2, 2),
        "<4 x float>": (16, 16), "<3 x float>": (12, 16), "<8 x i1>": (1, 1), "[3 x double]": (24, 8),
        "{ i8, double, i16 }": (24, 8), "<{ i8, double }>": (9, 1), "%pair": (8, 4),
        "[2 x %pair]": (16, 4), "[2 x [3 x i16]]": (12, 2),
    }  # fmt: skip
    assert {text: size_and_alignment(text, named) for text in cases} == cases


def test_calls_and_accesses_are_read():
    call = parse_call(
        "  %r = tail call contract afn range(i32 0, 8) { i32, i1 } @llvm.x("
        "i32 noundef range(i32 0, 5) %a, ptr addrspace(3) align 16 getelementptr inbounds "
        "(i8, ptr addrspace(3) @s, i64 4)) #3, !tbaa !1"
    )
    assert call is not None
    assert (call.result, call.name, call.type) == ("%r", "llvm.x", "{ i32, i1 }")
    assert call.flags == "contract afn" and call.value(0) == "%a"
    assert call.operands[1] == (
        SHARED, "getelementptr inbounds (i8, ptr addrspace(3) @s, i64 4)"
    )  # fmt: skip
    line = (
        "  %v = load atomic volatile <4 x float>, ptr addrspace(1) %p "
        'syncscope("device") acquire, align 16'
    )
    access = parse_access(line)
    assert access is not None
    assert (access.type, access.space, access.pointer) == ("<4 x float>", 1, "%p")
    assert (access.align, access.volatile) == (16, True)
    assert access.before + f"ptr addrspace(1) {access.pointer}" + access.after == line
    for line, type, pointer in (
        ("  store i32 %t, ptr addrspace(3) @s, align 4, !x !0", "i32", "@s"),
        (
            "  %o = atomicrmw volatile fadd ptr addrspace(1) %p, float 1.0 monotonic, align 4",
            "float",
            "%p",
        ),
        (
            "  %o = cmpxchg weak ptr addrspace(1) %p, i64 %a, i64 %b acquire acquire, align 8",
            "i64",
            "%p",
        ),
    ):
        access = parse_access(line)
        assert access is not None and (access.type, access.pointer) == (type, pointer)
        assert access.before + f"ptr addrspace({access.space}) {pointer}" + access.after == line
    assert parse_access("  %x = add i32 1, 2") is None and parse_call("  ret void") is None
