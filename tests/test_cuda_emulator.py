"""The emulated GPU: every primitive against NumPy, in every order, and every error that it must find."""

import re
import struct

import numpy as np
import pytest
from gpu import REAL, Module, emulator_only

from jitney.codegen.cuda.intrinsics import INTRINSICS
from jitney.runtime.cuda.assemble import AssembleError, assemble
from jitney.runtime.cuda.emulator import layout
from jitney.runtime.cuda.emulator.instructions import REWRITINGS
from jitney.runtime.cuda.emulator.machine import (
    BACKWARDS,
    FORWARDS,
    GREEDY,
    ORDERS,
    EmulatedModule,
    EmulationError,
    Order,
)
from jitney.runtime.cuda.emulator.text import parse_access, parse_call, size_and_alignment

N = "llvm.nvvm."
GLOBAL, SHARED = "ptr addrspace(1)", "ptr addrspace(3)"


def module(body: str, params: str, *, shared: str = "", name: str = "k") -> str:
    """A kernel. Calls are written `@shfl.sync...`; declarations are added from the table."""
    names = sorted(set(re.findall(r"@(llvm\.[\w.]+)\(", body)))
    declarations = "\n".join(INTRINSICS[n].declaration for n in names)
    return f"{shared}\n{declarations}\ndefine ptx_kernel void @{name}({params}) {{\n{body}\n}}\n"


THREAD = f"""
  %t = call i32 @{N}read.ptx.sreg.tid.x()
  %lane = call i32 @{N}read.ptx.sreg.laneid()
"""


def pack(*values) -> bytes:
    """Arrays by address, NumPy numbers by value, as the driver wants them."""
    packed = b""
    for value in values:
        data = (
            struct.pack("<q", value.ctypes.data)
            if isinstance(value, np.ndarray)
            else value.tobytes()
        )
        packed += b"\0" * (-len(packed) % len(data)) + data
    return packed


def launch(text, *values, grid=(1, 1, 1), block=(32, 1, 1), order=FORWARDS, shared=0, races=True):
    """Run kernel `k`; only the arrays given may be accessed."""
    compiled = Module(text) if isinstance(text, str) else text
    ranges = [
        (v.ctypes.data, v.ctypes.data + v.nbytes) for v in values if isinstance(v, np.ndarray)
    ]
    return compiled.launch("k", grid, block, pack(*values), shared, ranges, order, races)


def store(value: str, type: str = "i32", at: str = "%t", pointer: str = "%y") -> str:
    return f"""
  %where{at[1:]} = getelementptr {type}, {GLOBAL} {pointer}, i32 {at}
  store {type} {value}, {GLOBAL} %where{at[1:]}"""


def load(name: str, type: str = "i32", at: str = "%t", pointer: str = "%x") -> str:
    return f"""
  %at{name[1:]} = getelementptr {type}, {GLOBAL} {pointer}, i32 {at}
  {name} = load {type}, {GLOBAL} %at{name[1:]}"""


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


# Warps


def shuffled(mode, value, amount, control):
    """shfl.sync by the PTX manual."""
    clamp, segment = control & 31, control >> 8 & 31
    results, valid = [], []
    for lane in range(32):
        high = lane & segment | clamp & ~segment
        source = {
            "up": lane - amount,
            "down": lane + amount,
            "bfly": lane ^ amount,
            "idx": lane & segment | amount & ~segment,
        }[mode]
        good = source >= high if mode == "up" else source <= high
        results.append(value[source if good else lane])
        valid.append(good)
    return np.array(results), np.array(valid)


@pytest.mark.parametrize("mode", ["bfly", "down", "up", "idx"])
@pytest.mark.parametrize("amount", [0, 1, 5, 16, 31])
@pytest.mark.parametrize("width", [32, 8])
def test_shuffles(mode, amount, width):
    control = (32 - width) << 8 | (0 if mode == "up" else 31)
    body = f"""{THREAD}{load("%v", "float")}
  %s = call {{ float, i1 }} @{N}shfl.sync.{mode}.f32p(i32 -1, float %v, i32 {amount}, i32 {control})
  %r = extractvalue {{ float, i1 }} %s, 0
  %i = call i32 @{N}shfl.sync.{mode}.i32(i32 -1, i32 %t, i32 {amount}, i32 {control})
  %p = extractvalue {{ float, i1 }} %s, 1
  %z = zext i1 %p to i32
  %u = add i32 %t, 32
  %w = add i32 %t, 64{store("%z", at="%u")}{store("%i", at="%w")}{store("%r", "float")}
  ret void"""
    x = np.random.default_rng(0).standard_normal(32).astype(np.float32)
    text = Module(module(body, f"{GLOBAL} %x, {GLOBAL} %y"))
    values, valid = shuffled(mode, x, amount, control)
    for order in ORDERS:
        y = np.zeros(96, np.int32)
        launch(text, x, y, order=order)
        assert (y[:32].view(np.float32) == values).all()
        assert (y[32:64] == valid).all()
        assert (y[64:] == shuffled(mode, np.arange(32), amount, control)[0]).all()


def test_groups_of_a_warp_go_their_own_ways():
    """Halves of a warp loop different numbers of times, each with its own mask."""
    body = f"""entry:{THREAD}
  %low = icmp ult i32 %lane, 16
  %mask = select i1 %low, i32 65535, i32 -65536
  %trips = select i1 %low, i32 3, i32 5
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]
  %v = phi i32 [ %t, %entry ], [ %s, %loop ]
  %o = call i32 @{N}shfl.sync.bfly.i32(i32 %mask, i32 %v, i32 1, i32 31)
  call void @{N}bar.warp.sync(i32 %mask)
  %s = add i32 %v, %o
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, %trips
  br i1 %more, label %loop, label %end
end:
  call void @{N}bar.warp.sync(i32 -1)
  %all = call i32 @{N}redux.sync.add(i32 %s, i32 -1){store("%all")}
  ret void"""
    t = np.arange(32) & ~1
    pairs = 2 * t + 1
    expected = np.where(np.arange(32) < 16, pairs * 4, pairs * 16).sum()
    text = Module(module(body, f"{GLOBAL} %y"))
    for order in ORDERS:
        y = np.zeros(32, np.int32)
        launch(text, y, order=order)
        assert (y == expected).all()


def test_votes_and_matches():
    kinds = [("all", "i1"), ("any", "i1"), ("uni", "i1"), ("ballot", "i32")]
    calls = "\n".join(
        f"  %r{k} = call {type} @{N}vote.{how}.sync(i32 %mask, i1 %c)\n"
        + (f"  %w{k} = zext i1 %r{k} to i32" if type == "i1" else f"  %w{k} = or i32 %r{k}, 0")
        + f"\n  %q{k} = add i32 %t, {32 * k}{store(f'%w{k}', at=f'%q{k}')}"
        for k, (how, type) in enumerate(kinds)
    )
    body = f"""{THREAD}{load("%v")}
  %c = icmp ne i32 %v, 0
  %odd = and i32 %lane, 1
  %one = icmp eq i32 %odd, 1
  %mask = select i1 %one, i32 -1431655766, i32 1431655765
{calls}
  %m = call i32 @{N}match.any.sync.i32(i32 %mask, i32 %v)
  %wide = sext i32 %v to i64
  %m2 = call i32 @{N}match.any.sync.i64(i32 %mask, i64 %wide)
  %same = icmp eq i32 %m, %m2
  %m3 = select i1 %same, i32 %m, i32 0
  %q4 = add i32 %t, 128{store("%m3", at="%q4")}
  ret void"""
    text = Module(module(body, f"{GLOBAL} %x, {GLOBAL} %y"))
    rng = np.random.default_rng(0)
    for x in (np.zeros(32), np.ones(32), rng.integers(0, 3, 32), np.arange(32) & 1):
        x = x.astype(np.int32)
        for order in (FORWARDS, BACKWARDS):
            y = np.zeros((5, 32), np.int32)
            launch(text, x, y, order=order)
            for lane in range(32):
                mine = x[lane & 1 :: 2]
                lanes = [k for k in range(lane & 1, 32, 2) if x[k]]
                assert y[0, lane] == mine.all() and y[1, lane] == mine.any()
                assert y[2, lane] == (mine.all() or not mine.any())
                assert y[3].view(np.uint32)[lane] == sum(1 << k for k in lanes)
                equal = [k for k in range(lane & 1, 32, 2) if x[k] == x[lane]]
                assert y[4].view(np.uint32)[lane] == sum(1 << k for k in equal)


REDUCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "umin": np.minimum, "umax": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("how", REDUCTIONS)
def test_reductions_of_a_warp(how):
    body = f"""{THREAD}{load("%v")}
  %r = call i32 @{N}redux.sync.{how}(i32 %v, i32 -1){store("%r")}
  ret void"""
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 32).astype(np.int32)
    y = np.zeros(32, np.int32)
    launch(module(body, f"{GLOBAL} %x, {GLOBAL} %y"), x, y)
    kind = np.uint32 if how.startswith("u") else np.int32
    assert (y.view(kind) == REDUCTIONS[how].reduce(x.view(kind), dtype=kind)).all()


def test_lane_masks():
    names = ("eq", "lt", "le", "gt", "ge")
    calls = "\n".join(
        f"  %m{k} = call i32 @{N}read.ptx.sreg.lanemask.{name}()\n"
        f"  %q{k} = add i32 %t, {32 * k}{store(f'%m{k}', at=f'%q{k}')}"
        for k, name in enumerate(names)
    )
    y = np.zeros((5, 32), np.uint32)
    launch(module(f"{THREAD}{calls}\n  ret void", f"{GLOBAL} %y"), y)
    one = np.uint64(1) << np.arange(32, dtype=np.uint64)
    below = one - np.uint64(1)
    full = np.uint64(2**32 - 1)
    expected = [one, below, below | one, full ^ (below | one), full ^ below]
    assert (y == np.array(expected).astype(np.uint32)).all()


# Barriers and shared memory

REVERSE = f"""{THREAD}{load("%v")}
  %s = getelementptr i32, {SHARED} @buffer, i32 %t
  store i32 %v, {SHARED} %s
  BARRIER
  %last = sub i32 63, %t
  %o = getelementptr i32, {SHARED} @buffer, i32 %last
  %r = load i32, {SHARED} %o{store("%r")}
  ret void"""
BUFFER = "@buffer = internal addrspace(3) global [64 x i32] undef, align 16"
BARRIER = f"call void @{N}barrier.cta.sync.aligned.all(i32 0)"


@pytest.mark.parametrize("optimise", [False, True], ids=["raw", "optimised"])
def test_a_block_exchanges_through_shared_memory(optimise):
    body = REVERSE.replace("BARRIER", BARRIER)
    text = module(body, f"{GLOBAL} %x, {GLOBAL} %y", shared=BUFFER)
    compiled = Module(text, optimise)
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


def race(body: str, *, shared=BUFFER, block=(64, 1, 1)) -> list[bool]:
    """Whether each order finds a race."""
    compiled = EmulatedModule(module(body, f"{GLOBAL} %x, {GLOBAL} %y", shared=shared))
    found = []
    for order in ORDERS:
        x, y = np.zeros((2, 256), np.int32)
        try:
            launch(compiled, x, y, block=block, order=order)
            found.append(False)
        except EmulationError as error:
            assert error.kind == layout.RACE, error
            found.append(True)
    return found


SHUFFLE = f"call i32 @{N}shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)"
WARP_BARRIER = f"call void @{N}bar.warp.sync(i32 -1)"
NEIGHBOUR = f"""{THREAD}
  %s = getelementptr i32, {SHARED} @buffer, i32 %t
  %n = xor i32 %t, FLIP
  %o = getelementptr i32, {SHARED} @buffer, i32 %n
  store i32 %t, {SHARED} %s
  FIRST
  %v = load i32, {SHARED} %o
  SECOND
  store i32 %v, {SHARED} %s
  ret void"""


@emulator_only
@pytest.mark.parametrize(
    ("flip", "first", "second", "races"),
    [
        (1, WARP_BARRIER, WARP_BARRIER, False),
        (1, BARRIER, BARRIER, False),
        (1, WARP_BARRIER, BARRIER, False),
        (32, BARRIER, BARRIER, False),
        (0, "", "", False),  # its own element
        (1, "", WARP_BARRIER, True),
        (1, WARP_BARRIER, "", True),
        (32, WARP_BARRIER, BARRIER, True),  # another warp's element
        (32, BARRIER, WARP_BARRIER, True),
        (
            1,
            f"%z = {N.join(['call i32 @', 'shfl.sync.bfly.i32'])}(i32 -1, i32 %t, i32 1, i32 31)",
            BARRIER,
            True,
        ),
    ],
)
def test_what_a_barrier_orders(flip, first, second, races):
    """Reading what a neighbour wrote, then overwriting what the neighbour may still read."""
    body = NEIGHBOUR.replace("FLIP", str(flip)).replace("FIRST", first).replace("SECOND", second)
    assert race(body) == [races] * len(ORDERS)


@emulator_only
def test_one_writer_and_many_readers():
    body = f"""entry:{THREAD}
  %z = icmp eq i32 %t, WRITER
  br i1 %z, label %write, label %read
write:
  store i32 1, {SHARED} @buffer
  br label %read
read:
  FIRST
  %v = load i32, {SHARED} @buffer
  SECOND
  br i1 %z, label %again, label %end
again:
  store i32 2, {SHARED} @buffer
  br label %end
end:
  ret void"""
    for writer in (0, 40, 63):
        for first, second, races in (
            (BARRIER, BARRIER, False),
            (BARRIER, "", True),
            ("", BARRIER, True),
        ):
            text = body.replace("WRITER", str(writer))
            text = text.replace("FIRST", first).replace("SECOND", second)
            assert race(text) == [races] * len(ORDERS), (writer, first, second)


@emulator_only
def test_accesses_that_are_meant_to_meet_are_no_race():
    body = f"""{THREAD}
  %a = atomicrmw add {SHARED} @buffer, i32 1 monotonic
  store volatile i32 %t, {SHARED} @buffer
  %v = load volatile i32, {SHARED} @buffer
  ret void"""
    assert race(body) == [False] * len(ORDERS)


@emulator_only
def test_races_of_bytes_and_of_copies():
    """Neighbouring bytes do not meet; a copy writes when it begins and when it arrives."""
    body = f"""{THREAD}
  %s = getelementptr i8, {SHARED} @buffer, i32 %t
  store i8 1, {SHARED} %s
  ret void"""
    assert race(body) == [False] * len(ORDERS)
    body = f"""{THREAD}
  %s = getelementptr i32, {SHARED} @buffer, i32 %t
  %g = getelementptr i32, {GLOBAL} %x, i32 %t
  %n = xor i32 %t, 1
  %o = getelementptr i32, {SHARED} @buffer, i32 %n
  call void @{N}cp.async.ca.shared.global.4({SHARED} %s, {GLOBAL} %g)
  FIRST
  call void @{N}cp.async.wait.all()
  SECOND
  %v = load i32, {SHARED} %o
  ret void"""
    for first, second, races in (("", BARRIER, False), (BARRIER, "", True), ("", "", True)):
        text = body.replace("FIRST", first).replace("SECOND", second)
        eager = [races if second or not first else False] * len(ORDERS)
        late = [races] * len(ORDERS)
        expected = [e if o.eager else n for o, e, n in zip(ORDERS, eager, late, strict=True)]
        assert race(text) == expected, (first, second)


@emulator_only
def test_shared_memory_is_poison_in_each_block():
    body = f"""{THREAD}
  %b = call i32 @{N}read.ptx.sreg.ctaid.x()
  %s = getelementptr i32, {SHARED} @buffer, i32 %t
  %r = load i32, {SHARED} %s
  store i32 1, {SHARED} %s
  %base = mul i32 %b, 64
  %i = add i32 %base, %t{store("%r", at="%i")}
  ret void"""
    y = np.zeros(192, np.int32)
    text = module(body, f"{GLOBAL} %y", shared=BUFFER)
    launch(text, y, grid=(3, 1, 1), block=(64, 1, 1))
    assert (y == -1).all()
    launch(text, y, grid=(3, 1, 1), block=(64, 1, 1), order=BACKWARDS)
    assert (y == 0x7F7F7F7F).all()


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


# Asynchronous copies

COPIES = f"""{THREAD}
  %s0 = getelementptr [4 x i32], {SHARED} @buffer, i32 %t
  %g0 = getelementptr [4 x i32], {GLOBAL} %x, i32 %t
  %u = add i32 %t, 32
  %s1 = getelementptr [4 x i32], {SHARED} @buffer, i32 %u
  %g1 = getelementptr [4 x i32], {GLOBAL} %x, i32 %u
  call void @{N}cp.async.cg.shared.global.16({SHARED} %s0, {GLOBAL} %g0)
  call void @{N}cp.async.commit.group()
  call void @{N}cp.async.ca.shared.global.16.s({SHARED} %s1, {GLOBAL} %g1, i32 8)
  call void @{N}cp.async.commit.group()
  call void @{N}cp.async.wait.group(i32 GROUPS)
  {BARRIER}
  %v0 = load <4 x i32>, {SHARED} %s0, align 16
  %v1 = load <4 x i32>, {SHARED} %s1, align 16
  %y0 = getelementptr [4 x i32], {GLOBAL} %y, i32 %t
  %y1 = getelementptr [4 x i32], {GLOBAL} %y, i32 %u
  store <4 x i32> %v0, {GLOBAL} %y0, align 16
  store <4 x i32> %v1, {GLOBAL} %y1, align 16
  ret void"""
TILE = "@buffer = internal addrspace(3) global [256 x i32] undef, align 16"


@emulator_only
@pytest.mark.parametrize("groups", [0, 1, 2])
def test_copies_land_as_late_as_the_waits_let_them(groups):
    body = COPIES.replace("GROUPS", str(groups))
    text = Module(module(body, f"{GLOBAL} %x, {GLOBAL} %y", shared=TILE))
    x = np.arange(256, dtype=np.int32)
    expected = x.copy()
    expected[128:].reshape(32, 4)[:, 2:] = 0
    for order in (*ORDERS, GREEDY):
        y = np.zeros(256, np.int32)
        launch(text, x, y, order=order)
        landed = 2 if order.eager else 2 - groups
        assert (y[: 128 * landed] == expected[: 128 * landed]).all()
        poison = int.from_bytes([order.fill] * 4, "little", signed=False)
        assert (y[128 * landed :].view(np.uint32) == poison).all()


@emulator_only
def test_more_copies_than_a_thread_may_have_under_way():
    n = layout.QUEUE_ENTRIES + 40
    body = f"""entry:{THREAD}
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]
  %s = getelementptr i32, {SHARED} @buffer, i32 %k
  %g = getelementptr i32, {GLOBAL} %x, i32 %k
  call void @{N}cp.async.ca.shared.global.4({SHARED} %s, {GLOBAL} %g)
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, {n}
  br i1 %more, label %loop, label %wait
wait:
  call void @{N}cp.async.wait.all()
  br label %out
out:
  %j = phi i32 [ 0, %wait ], [ %j1, %out ]
  %q = getelementptr i32, {SHARED} @buffer, i32 %j
  %v = load i32, {SHARED} %q
  %p = getelementptr i32, {GLOBAL} %y, i32 %j
  store i32 %v, {GLOBAL} %p
  %j1 = add i32 %j, 1
  %on = icmp ult i32 %j1, {n}
  br i1 %on, label %out, label %end
end:
  ret void"""
    x, y = np.arange(n, dtype=np.int32), np.zeros(n, np.int32)
    shared = f"@buffer = internal addrspace(3) global [{n} x i32] undef, align 16"
    launch(module(body, f"{GLOBAL} %x, {GLOBAL} %y", shared=shared), x, y, block=(1, 1, 1))
    assert (x == y).all()


# Matrices


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_matrices_are_loaded(count, transposed):
    struct_type = "i32" if count == 1 else "{ " + ", ".join(["i32"] * count) + " }"
    name = f"{N}ldmatrix.sync.aligned.m8n8.x{count}{'.trans' * transposed}.b16.p3"
    parts = "\n".join(
        (f"  %w{k} = extractvalue {struct_type} %r, {k}" if count > 1 else "  %w0 = or i32 %r, 0")
        + f"\n  %q{k} = add i32 %t, {32 * k}{store(f'%w{k}', at=f'%q{k}')}"
        for k in range(count)
    )
    body = f"""{THREAD}
  %g = getelementptr [8 x i16], {GLOBAL} %x, i32 %t
  %v = load <8 x i16>, {GLOBAL} %g, align 16
  %s = getelementptr [8 x i16], {SHARED} @buffer, i32 %t
  store <8 x i16> %v, {SHARED} %s, align 16
  call void @{N}bar.warp.sync(i32 -1)
  %r = call {struct_type} @{name}({SHARED} %s)
{parts}
  ret void"""
    x = np.arange(256, dtype=np.uint16).reshape(4, 8, 8)
    y = np.zeros((count, 32, 2), np.uint16)
    shared = "@buffer = internal addrspace(3) global [256 x i16] undef, align 16"
    launch(module(body, f"{GLOBAL} %x, {GLOBAL} %y", shared=shared), x, y, order=BACKWARDS)
    source = x.transpose(0, 2, 1) if transposed else x
    assert (y == source[:count].reshape(count, 32, 2)).all()


def fragments(m, n, k, pair):
    """Which element each number of each lane is, by the figures of the PTX manual."""
    lane = np.arange(32)
    g, t = lane >> 2, lane & 3
    a = []
    for number in range(m * k // 32):
        register, half = divmod(number, pair)
        rows = m // 8
        a.append((g + 8 * (register % rows), 4 * pair * (register // rows) + pair * t + half))
    b = []
    for number in range(k * n // 32):
        register, half = divmod(number, pair)
        b.append((4 * pair * register + pair * t + half, g))
    c = [(g + 8 * (number // 2), 2 * t + number % 2) for number in range(m * n // 32)]
    return a, b, c


PRODUCTS = {
    "mma.m16n8k16.row.col.bf16": (16, 8, 16, "bf16", "i32", "float"),
    "mma.m16n8k16.row.col.f32.f32": (16, 8, 16, "f16", "<2 x half>", "float"),
    "mma.m16n8k8.row.col.tf32": (16, 8, 8, "tf32", "i32", "float"),
    "mma.m8n8k4.row.col.f64": (8, 8, 4, "f64", "double", "double"),
    "mma.m16n8k16.row.col.f64": (16, 8, 16, "f64", "double", "double"),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_matrices(name):
    m, n, k, kind, operand, result = PRODUCTS[name]
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-8, 8, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
    if kind == "f64":
        words = {"f64": lambda v: v.astype(np.float64)}[kind]
    elif kind == "f16":
        words = lambda v: v.astype(np.float16)  # noqa: E731
    elif kind == "bf16":
        words = lambda v: (v.view(np.uint32) >> 16).astype(np.uint16)  # noqa: E731
    else:
        words = lambda v: (v.view(np.uint32) | 0xFFF).astype(np.uint32)  # noqa: E731  # ignored bits
    at_a, at_b, at_c = fragments(m, n, k, 2 if kind in ("f16", "bf16") else 1)
    spread = lambda v, places: np.ascontiguousarray(  # noqa: E731
        np.stack([v[where] for where in places], axis=1)
    )
    packs = [spread(words(a), at_a), spread(words(b), at_b), spread(c, at_c)]
    packs[2] = packs[2].astype(np.float64 if kind == "f64" else np.float32)
    loads, operands = "", []
    size = 8 if kind == "f64" else 4
    for array, pointer, type in zip(
        packs, ("%a", "%b", "%c"), (operand, operand, result), strict=True
    ):
        for r in range(array.nbytes // 32 // size):
            value = f"{pointer}{r}"
            loads += (
                f"\n  {value}i = add i32 %{pointer[1]}base, {r}"
                f"\n  {value}p = getelementptr {type}, {GLOBAL} {pointer}, i32 {value}i"
                f"\n  {value} = load {type}, {GLOBAL} {value}p"
            )
            operands.append(f"{type} {value}")
        loads = f"\n  %{pointer[1]}base = mul i32 %t, {array.nbytes // 32 // size}" + loads
    count = len(at_c)
    struct_type = "{ " + ", ".join([result] * count) + " }"
    parts = "\n".join(
        f"  %r{j} = extractvalue {struct_type} %r, {j}\n  %o{j} = add i32 %cbase, {j}"
        + store(f"%r{j}", result, at=f"%o{j}")
        for j in range(count)
    )
    body = f"""{THREAD}{loads}
  %r = call {struct_type} @{N}{name}({", ".join(operands)})
{parts}
  ret void"""
    y = np.zeros_like(packs[2])
    launch(module(body, f"{GLOBAL} %a, {GLOBAL} %b, {GLOBAL} %c, {GLOBAL} %y"), *packs, y)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    expected = spread(exact, at_c)
    np.testing.assert_allclose(y, expected, rtol=0, atol=0)


def test_rounding_to_tf32():
    body = f"""{THREAD}{load("%v", "float")}
  %r = call i32 @{N}f2tf32.rna(float %v){store("%r")}
  ret void"""
    bits = np.array(
        [0x3F800FFF, 0x3F801000, 0x3F800000, 0xBF801000, 0x7F800000, 0xFF800000], np.uint32
    )
    expected = np.array(
        [0x3F800000, 0x3F802000, 0x3F800000, 0xBF802000, 0x7F800000, 0xFF800000], np.uint32
    )
    y = np.zeros(6, np.uint32)
    launch(module(body, f"{GLOBAL} %x, {GLOBAL} %y"), bits, y, block=(6, 1, 1))
    assert (y == expected).all()


def test_approximations_are_close():
    names = {
        "ex2.approx.ftz.f32": np.exp2, "lg2.approx.ftz.f": np.log2, "sin.approx.ftz.f": np.sin,
        "cos.approx.ftz.f": np.cos, "rsqrt.approx.ftz.f": lambda v: 1 / np.sqrt(v),
        "rsqrt.approx.f": lambda v: 1 / np.sqrt(v), "rcp.approx.ftz.f": lambda v: 1 / v,
    }  # fmt: skip
    calls = "\n".join(
        f"  %r{k} = call float @{N}{name}(float %v)\n  %q{k} = add i32 %t, {32 * k}"
        + store(f"%r{k}", "float", at=f"%q{k}")
        for k, name in enumerate(names)
    )
    body = f"""{THREAD}{load("%v", "float")}
{calls}
  %h = call afn float @llvm.tanh.f32(float %v)
  %q7 = add i32 %t, 224{store("%h", "float", at="%q7")}
  %d = call float @{N}div.full(float %v, float %h)
  %q8 = add i32 %t, 256{store("%d", "float", at="%q8")}
  ret void"""
    x = np.linspace(0.1, 3, 32).astype(np.float32)
    y = np.zeros((9, 32), np.float32)
    launch(module(body, f"{GLOBAL} %x, {GLOBAL} %y"), x, y)
    expected = [
        f(x.astype(np.float64)) for f in (*names.values(), np.tanh, lambda v: v / np.tanh(v))
    ]
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


# Errors


def refused(body, kind, match, *, block=(64, 1, 1), params=f"{GLOBAL} %y", shared=BUFFER, y=None):
    y = np.zeros(64, np.int32) if y is None else y
    text = Module(module(body, params, shared=shared))
    for order in (FORWARDS, GREEDY, BACKWARDS):
        with pytest.raises(EmulationError, match=match) as caught:
            launch(text, y, block=block, order=order)
        assert caught.value.kind == kind
        assert "kernel k, block (0, 0, 0), thread" in str(caught.value)


@emulator_only
def test_accesses_out_of_bounds_are_found():
    body = f"{THREAD}\n  %u = add i32 %t, 1{store('%t', at='%u')}\n  ret void"
    refused(body, layout.OUT_OF_BOUNDS, "4 bytes at .* out of bounds(?s:.*)thread 63")
    body = f"{THREAD}{load('%v', at='%n', pointer='%y')}\n  ret void".replace(
        "%atv =", "%n = sub i32 0, 1\n  %atv ="
    )
    refused(body, layout.OUT_OF_BOUNDS, r"out of bounds(?s:.*)load i32")
    body = f"""{THREAD}
  %i = add i32 %t, 1
  %s = getelementptr i32, {SHARED} @buffer, i32 %i
  store i32 0, {SHARED} %s
  ret void"""
    refused(body, layout.OUT_OF_BOUNDS, "out of bounds(?s:.*)thread 63")


@emulator_only
def test_a_hole_between_buffers_is_out_of_bounds():
    memory = np.zeros(100, np.int32)
    body = f"{THREAD}{store('%t')}\n  ret void"
    text = Module(module(body, f"{GLOBAL} %y"))
    start = memory.ctypes.data
    holes = [(start, start + 128), (start + 132, start + 400)]
    text.launch("k", (1, 1, 1), (32, 1, 1), pack(memory), ranges=holes)
    with pytest.raises(EmulationError, match=f"at {start + 128:#x}"):
        text.launch("k", (1, 1, 1), (33, 1, 1), pack(memory), ranges=holes)


@emulator_only
def test_misaligned_accesses_are_found():
    body = f"""{THREAD}
  %p = getelementptr i32, {GLOBAL} %y, i32 1
  store <4 x i32> zeroinitializer, {GLOBAL} %p, align 16
  ret void"""
    whole = np.zeros(72, np.int32)
    y = whole[(-whole.ctypes.data // 4) % 4 :][:64]
    refused(body, layout.MISALIGNED, "16 bytes at .* misaligned", y=y)


def halves(first: str, second: str, end: str = "") -> str:
    """Lanes below 16 and the others of each warp do different things."""
    return f"""entry:{THREAD}
  %c = icmp ult i32 %lane, 16
  br i1 %c, label %first, label %second
first:
  {first}
  br label %end
second:
  {second}
  br label %end
end:
  {end}
  ret void"""


@emulator_only
def test_divergence_is_found():
    refused(
        halves(f"%a = {SHUFFLE}", f"%b = {SHUFFLE}"),
        layout.DIVERGED_OPERATION,
        "different instructions",
    )
    refused(halves(f"%a = {SHUFFLE}", ""), layout.MISSING_LANES, "mask 0xffff0000")
    refused(halves(f"%a = {SHUFFLE}", BARRIER), layout.MISSING_LANES, "never come")
    refused(halves(BARRIER, BARRIER), layout.DIVERGED_BARRIER, "two barrier instructions")
    refused(halves(BARRIER, ""), layout.MISSING_THREADS, "as many of the 64 threads")
    other = SHUFFLE.replace("i32 -1", "i32 1")
    refused(f"{THREAD}\n  %a = {other}\n  ret void", layout.NOT_IN_MASK, "leaves it out")


@emulator_only
def test_a_livelock_is_found():
    body = f"""entry:{THREAD}
  br label %loop
loop:
  %f = load volatile i32, {GLOBAL} %y
  %yes = icmp eq i32 %f, 1
  br i1 %yes, label %end, label %loop
end:
  ret void"""
    refused(body, layout.LIVELOCK, "never happens", block=(2, 1, 1))


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
