"""Memory of the emulated GPU: poison, late copies, races, and the errors that it must find."""

import numpy as np
import pytest
from cuda_texts import (
    BARRIER,
    BUFFER,
    GLOBAL,
    SHARED,
    THREAD,
    N,
    launch,
    load,
    module,
    pack,
    refused,
    store,
)
from gpu import Module, emulator_only

from jitney.runtime.cuda.emulator import layout
from jitney.runtime.cuda.emulator.machine import (
    BACKWARDS,
    GREEDY,
    ORDERS,
    EmulatedModule,
    EmulationError,
)


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
