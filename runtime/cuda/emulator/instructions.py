"""How each intrinsic of `codegen/cuda/intrinsics.py` is rewritten for the CPU.

Each rewriting gets the kernel under construction and the call. Special registers are words of the
thread; what a warp does together shows its operands, waits, and takes its results (`warps.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from ...native.llvm_text import ParsedCall
from . import barriers, warps
from . import layout as at
from .races import READ, WRITE


class KernelText(Protocol):
    """What rewritings write to."""

    def line(self, text: str) -> None: ...
    def value(self, text: str) -> str: ...
    def field(self, offset: int) -> str:
        """A pointer into the thread."""
        ...

    def set_word(self, offset: int, value: str | int) -> None: ...
    def wait(self, how: str, *operands: str | int) -> None:
        """Stop here: `emu_HOW(thread, operands, site)` says for what."""
        ...

    def stop(self) -> None:
        """Stop here; for what has been said already."""
        ...

    def unused(self) -> str:
        """A name for a result that nobody wants."""
        ...

    def address(self, space: int, pointer: str, size: str, align: int, kind: int) -> str: ...
    def site(self) -> int: ...


Rewriting = Callable[[KernelText, ParsedCall], None]
REWRITINGS: dict[str, Rewriting] = {}
WAITING: set[str] = set()
"""Intrinsics at which a thread may wait for others: kernels that call one are coroutines."""


def rewrites(*names: str, waits: bool = False) -> Callable[[Rewriting], Rewriting]:
    """The decorated function emulates these NVVM intrinsics; in those that `waits`, threads meet."""

    def register(rewriting: Rewriting) -> Rewriting:
        for name in names:
            REWRITINGS[f"llvm.nvvm.{name}"] = rewriting
            if waits:
                WAITING.add(f"llvm.nvvm.{name}")
        return rewriting

    return register


def _nothing(kernel: KernelText, call: ParsedCall) -> None:
    return None


def _register(offset: int) -> Rewriting:
    def rewrite(kernel: KernelText, call: ParsedCall) -> None:
        kernel.line(f"{call.result} = load i32, ptr {kernel.field(offset)}")

    return rewrite


for _name, _offset in (
    ("tid", at.TID),
    ("ctaid", at.CTAID),
    ("ntid", at.NTID),
    ("nctaid", at.NCTAID),
):
    for _axis, _letter in enumerate("xyz"):
        rewrites(f"read.ptx.sreg.{_name}.{_letter}")(_register(_offset + 4 * _axis))
rewrites("read.ptx.sreg.laneid")(_register(at.LANE))


def _lane_bit(kernel: KernelText) -> str:
    lane = kernel.value(f"load i32, ptr {kernel.field(at.LANE)}")
    return kernel.value(f"shl i32 1, {lane}")


@rewrites(*(f"read.ptx.sreg.lanemask.{which}" for which in ("eq", "lt", "le", "gt", "ge")))
def _lane_mask(kernel: KernelText, call: ParsedCall) -> None:
    own = _lane_bit(kernel)
    below = kernel.value(f"sub i32 {own}, 1")
    which = call.name.rpartition(".")[2]
    if which in ("eq", "lt"):
        kernel.line(f"{call.result} = or i32 {own if which == 'eq' else below}, 0")
    elif which == "le":
        kernel.line(f"{call.result} = or i32 {own}, {below}")
    elif which == "ge":
        kernel.line(f"{call.result} = xor i32 {below}, -1")
    else:
        up_to = kernel.value(f"or i32 {own}, {below}")
        kernel.line(f"{call.result} = xor i32 {up_to}, -1")


@rewrites("activemask")
def _active_mask(kernel: KernelText, call: ParsedCall) -> None:
    """Only that a lane itself is active is certain: the least answer a GPU may give."""
    kernel.line(f"{call.result} = or i32 {_lane_bit(kernel)}, 0")


@rewrites("read.ptx.sreg.clock64")
def _clock(kernel: KernelText, call: ParsedCall) -> None:
    kernel.line(f"{call.result} = call i64 @llvm.readcyclecounter()")


# Barriers


@rewrites("barrier.cta.sync.aligned.all", "barrier.cta.sync.aligned.count", waits=True)
def _barrier(kernel: KernelText, call: ParsedCall) -> None:
    count = call.value(1) if len(call.operands) > 1 else 0
    kernel.wait("at_barrier", call.value(0), count, barriers.SYNC, 0)


@rewrites(*(f"barrier.cta.red.{how}.aligned.all" for how in ("and", "or", "popc")), waits=True)
def _reducing_barrier(kernel: KernelText, call: ParsedCall) -> None:
    how = call.name.split(".")[5]
    operation = {"and": barriers.AND, "or": barriers.OR, "popc": barriers.POPC}[how]
    predicate = kernel.value(f"zext i1 {call.value(1)} to i32")
    kernel.wait("at_barrier", call.value(0), 0, operation, predicate)
    take(kernel, call.result, call.type)


@rewrites("barrier.cta.arrive.aligned.count")
def _arrive(kernel: KernelText, call: ParsedCall) -> None:
    kernel.line(f"call void @emu_arrive(ptr %emu.thread, i32 {call.value(0)})")


rewrites("membar.cta", "membar.gl")(_nothing)  # one thread runs at a time


# What a warp does together


def _together(kernel: KernelText, mask: str, operation: int) -> None:
    kernel.wait("at_operation", mask, operation)


def take(kernel: KernelText, result: str, type: str, word: int = 0) -> None:
    """`result` is what stands in an output word."""
    where = kernel.field(at.OUTPUT + 4 * word)
    if type == "i1":
        bits = kernel.value(f"load i32, ptr {where}")
        kernel.line(f"{result} = trunc i32 {bits} to i1")
    else:
        kernel.line(f"{result} = load {type}, ptr {where}")


def take_fields(kernel: KernelText, call: ParsedCall, words: int = 1) -> None:
    """The result is a struct: its fields stand in output words, one after the other."""
    fields = [field.strip() for field in call.type.strip("{} ").split(",")]
    struct = "poison"
    for k, type in enumerate(fields):
        where = kernel.field(at.OUTPUT + 4 * words * k)
        word = kernel.value(f"load {'i32' if type == 'i1' else type}, ptr {where}")
        if type == "i1":
            word = kernel.value(f"trunc i32 {word} to i1")
        text = f"insertvalue {call.type} {struct}, {type} {word}, {k}"
        if k + 1 == len(fields):
            kernel.line(f"{call.result} = {text}")
        else:
            struct = kernel.value(text)


_SHUFFLES = {
    "bfly": warps.SHUFFLE_BFLY,
    "down": warps.SHUFFLE_DOWN,
    "up": warps.SHUFFLE_UP,
    "idx": warps.SHUFFLE_IDX,
}


@rewrites(
    *(f"shfl.sync.{mode}.{type}" for mode in _SHUFFLES for type in ("f32", "i32", "f32p", "i32p")),
    waits=True,
)
def _shuffle(kernel: KernelText, call: ParsedCall) -> None:
    _, _, _, _, mode, type = call.name.split(".")
    kind, value = call.operands[1]
    if kind == "float":
        value = kernel.value(f"bitcast float {value} to i32")
    mask, amount, control = call.value(0), call.value(2), call.value(3)
    kernel.wait("at_shuffle", mask, _SHUFFLES[mode], value, amount, control)
    if type.endswith("p"):
        take_fields(kernel, call)
    else:
        take(kernel, call.result, call.type)


@rewrites("bar.warp.sync", waits=True)
def _warp_sync(kernel: KernelText, call: ParsedCall) -> None:
    _together(kernel, call.value(0), warps.WARP_SYNC)


_VOTES = {
    "all": warps.VOTE_ALL,
    "any": warps.VOTE_ANY,
    "uni": warps.VOTE_UNI,
    "ballot": warps.VOTE_BALLOT,
}


@rewrites(*(f"vote.{how}.sync" for how in _VOTES), waits=True)
def _vote(kernel: KernelText, call: ParsedCall) -> None:
    kernel.set_word(at.INPUT, kernel.value(f"zext i1 {call.value(1)} to i32"))
    _together(kernel, call.value(0), _VOTES[call.name.split(".")[3]])
    take(kernel, call.result, call.type)


@rewrites("match.any.sync.i32", "match.any.sync.i64", waits=True)
def _match(kernel: KernelText, call: ParsedCall) -> None:
    type, value = call.operands[1]
    wide = value if type == "i64" else kernel.value(f"zext i32 {value} to i64")
    kernel.line(f"store i64 {wide}, ptr {kernel.field(at.INPUT)}")
    _together(kernel, call.value(0), warps.MATCH_ANY)
    take(kernel, call.result, call.type)


_REDUCTIONS = ("add", "min", "max", "umin", "umax", "and", "or", "xor")


@rewrites(*(f"redux.sync.{how}" for how in _REDUCTIONS), waits=True)
def _redux(kernel: KernelText, call: ParsedCall) -> None:
    kernel.set_word(at.INPUT, call.value(0))
    how = _REDUCTIONS.index(call.name.rpartition(".")[2])
    _together(kernel, call.value(1), warps.REDUX_ADD + how)
    take(kernel, call.result, call.type)


# Matrices

_FULL = "-1"


@rewrites(
    *(
        f"ldmatrix.sync.aligned.m8n8.x{n}{trans}.b16.p3"
        for n in (1, 2, 4)
        for trans in ("", ".trans")
    ),
    waits=True,
)
def _load_matrices(kernel: KernelText, call: ParsedCall) -> None:
    count = int(re.search(r"\.x(\d)", call.name)[1])  # type: ignore[index]
    # Only the lanes whose rows are read have to show a good address.
    pointer = call.value(0)
    if count == 4:
        pointer = kernel.address(3, pointer, "16", 16, READ)
    kernel.line(f"store ptr {pointer}, ptr {kernel.field(at.INPUT)}")
    kernel.set_word(at.INPUT + 8, count)
    transposed = ".trans" in call.name
    _together(kernel, _FULL, warps.LDMATRIX_TRANS if transposed else warps.LDMATRIX)
    if count == 1:
        take(kernel, call.result, call.type)
    else:
        take_fields(kernel, call)


_PRODUCTS = {
    "mma.m16n8k16.row.col.bf16": warps.MMA_BF16,
    "mma.m16n8k16.row.col.f32.f32": warps.MMA_F16,
    "mma.m16n8k8.row.col.tf32": warps.MMA_TF32,
    "mma.m8n8k4.row.col.f64": warps.MMA_F64_K4,
    "mma.m16n8k16.row.col.f64": warps.MMA_F64_K16,
}


@rewrites(*_PRODUCTS, waits=True)
def _multiply(kernel: KernelText, call: ParsedCall) -> None:
    words = 2 if call.operands[0][0] == "double" else 1
    for k, (type, value) in enumerate(call.operands):
        kernel.line(f"store {type} {value}, ptr {kernel.field(at.INPUT + 4 * words * k)}")
    _together(kernel, _FULL, _PRODUCTS[call.name.removeprefix("llvm.nvvm.")])
    take_fields(kernel, call, words)


@rewrites("f2tf32.rna")
def _round_to_tf32(kernel: KernelText, call: ParsedCall) -> None:
    bits = kernel.value(f"bitcast float {call.value(0)} to i32")
    exponent = kernel.value(f"and i32 {bits}, 2139095040")
    special = kernel.value(f"icmp eq i32 {exponent}, 2139095040")
    rounded = kernel.value(f"add i32 {bits}, 4096")
    chosen = kernel.value(f"select i1 {special}, i32 {bits}, i32 {rounded}")
    kernel.line(f"{call.result} = and i32 {chosen}, -8192")


@rewrites("ff2bf16x2.rn")
def _round_to_bf16(kernel: KernelText, call: ParsedCall) -> None:
    """The first operand becomes the second element."""
    halves = []
    for number in (1, 0):
        value = call.value(number)
        bits = kernel.value(f"bitcast float {value} to i32")
        last = kernel.value(f"and i32 {kernel.value(f'lshr i32 {bits}, 16')}, 1")
        rounded = kernel.value(f"add i32 {kernel.value(f'add i32 {bits}, 32767')}, {last}")
        quiet = kernel.value(f"or i32 {bits}, 4194304")
        nan = kernel.value(f"fcmp uno float {value}, {value}")
        halves.append(kernel.value(f"select i1 {nan}, i32 {quiet}, i32 {rounded}"))
    low = kernel.value(f"lshr i32 {halves[0]}, 16")
    word = kernel.value(f"or i32 {low}, {kernel.value(f'and i32 {halves[1]}, -65536')}")
    kernel.line(f"{call.result} = bitcast i32 {word} to <2 x bfloat>")


# Asynchronous copies


@rewrites(
    *(
        f"cp.async.{cache}.shared.global.{n}{some}"
        for cache, sizes in (("ca", (4, 8, 16)), ("cg", (16,)))
        for n in sizes
        for some in ("", ".s")
    )
)
def _copy(kernel: KernelText, call: ParsedCall) -> None:
    size = int(re.search(r"\.global\.(\d+)", call.name)[1])  # type: ignore[index]
    read = call.value(2) if len(call.operands) > 2 else str(size)
    target = kernel.address(3, call.value(0), str(size), size, WRITE)
    source = kernel.address(1, call.value(1), read, size, READ)
    sizes = f"i32 {size}, i32 {read}, i32 {kernel.site()}"
    kernel.line(f"call void @emu_copy(ptr %emu.thread, ptr {target}, ptr {source}, {sizes})")


@rewrites("cp.async.commit.group")
def _commit(kernel: KernelText, call: ParsedCall) -> None:
    kernel.line("call void @emu_commit(ptr %emu.thread)")


@rewrites("cp.async.wait.group", "cp.async.wait.all")
def _wait(kernel: KernelText, call: ParsedCall) -> None:
    groups = call.value(0) if call.operands else "-1"
    kernel.line(f"call void @emu_wait(ptr %emu.thread, i32 {groups})")


# Approximations: the exact function, rounded

_FUNCTIONS = {
    "ex2.approx.ftz.f32": "exp2f",
    "lg2.approx.ftz.f": "log2f",
    "sin.approx.ftz.f": "sinf",
    "cos.approx.ftz.f": "cosf",
}


@rewrites(*_FUNCTIONS)
def _approximation(kernel: KernelText, call: ParsedCall) -> None:
    function = _FUNCTIONS[call.name.removeprefix("llvm.nvvm.")]
    kernel.line(f"{call.result} = call float @{function}(float {call.value(0)})")


def _tanh(kernel: KernelText, call: ParsedCall) -> None:
    kernel.line(f"{call.result} = call float @tanhf(float {call.value(0)})")


REWRITINGS["llvm.tanh.f32"] = _tanh


@rewrites("rsqrt.approx.ftz.f", "rsqrt.approx.f")
def _reciprocal_root(kernel: KernelText, call: ParsedCall) -> None:
    root = kernel.value(f"call float @llvm.sqrt.f32(float {call.value(0)})")
    kernel.line(f"{call.result} = fdiv float 1.0, {root}")


@rewrites("rcp.approx.ftz.f")
def _reciprocal(kernel: KernelText, call: ParsedCall) -> None:
    kernel.line(f"{call.result} = fdiv float 1.0, {call.value(0)}")


@rewrites("div.full")
def _divide(kernel: KernelText, call: ParsedCall) -> None:
    kernel.line(f"{call.result} = fdiv float {call.value(0)}, {call.value(1)}")


DECLARATIONS = {
    f"declare float @{name}(float)" for name in (*_FUNCTIONS.values(), "tanhf", "llvm.sqrt.f32")
} | {
    "declare i64 @llvm.readcyclecounter()",
    "declare void @emu_at_barrier(ptr, i32, i32, i32, i32, i32)",
    "declare void @emu_at_operation(ptr, i32, i32, i32)",
    "declare void @emu_at_shuffle(ptr, i32, i32, i32, i32, i32, i32)",
    "declare void @emu_spins(ptr, i32)",
    "declare void @emu_arrive(ptr, i32)",
    "declare void @emu_copy(ptr, ptr, ptr, i32, i32, i32)",
    "declare void @emu_commit(ptr)",
    "declare void @emu_wait(ptr, i32)",
    "declare ptr @emu_global(ptr, ptr, i32, i32, i32, i32)",
    "declare ptr @emu_shared(ptr, ptr, i32, i32, i32, i32)",
    "declare ptr @emu_frame(ptr, i64)",
    "declare token @llvm.coro.id(i32, ptr, ptr, ptr)",
    "declare i64 @llvm.coro.size.i64()",
    "declare ptr @llvm.coro.begin(token, ptr)",
    "declare i8 @llvm.coro.suspend(token, i1)",
    "declare void @llvm.coro.end(ptr, i1, token)",
}
