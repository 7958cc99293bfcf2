"""What the lanes of an emulated warp do together, and numbers, against NumPy."""

import numpy as np
import pytest
from cuda_texts import (
    GLOBAL,
    SHARED,
    THREAD,
    N,
    launch,
    load,
    module,
    store,
)
from gpu import Module

from jitney.runtime.cuda.emulator.machine import (
    BACKWARDS,
    FORWARDS,
    ORDERS,
)

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
