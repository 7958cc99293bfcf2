"""Reading and writing jobs, warps and threads in emitted code, and its arithmetic."""

from __future__ import annotations

from ....codegen.llvm.builder import Value, constant
from ....codegen.llvm.modules import Function
from . import layout as at
from .layout import JOB

I32 = "i32"


def job_load(f: Function, job: Value, name: str) -> Value:
    return f.load("i64", job, JOB[name])


def job_store(f: Function, value: Value | int, job: Value, name: str) -> None:
    f.store(value if isinstance(value, Value) else constant("i64", value), job, JOB[name])


def word(n: int) -> Value:
    return constant(I32, n)


def bit(position: Value) -> Value:
    """1 << position, as i32."""
    if position.type != I32:
        position = position.trunc(I32)
    return 1 << position


def lowest_bit(f: Function, mask: Value) -> Value:
    return f.intrinsic("cttz", I32, mask, False)


def is_set(f: Function, mask: Value, position: Value) -> Value:
    return (mask & bit(position)).ne(0)


def warp_at(f: Function, job: Value, warp: Value) -> Value:
    return f.offset(f.load("ptr", job, JOB["warps"]), warp * at.WARP_BYTES)


def thread_at(f: Function, job: Value, warp: Value, lane: Value) -> Value:
    linear = warp * at.WARP_SIZE + lane
    return f.offset(f.load("ptr", job, JOB["threads"]), linear * at.THREAD_SIZE)


def thread_count(f: Function, job: Value) -> Value:
    x, y, z = (job_load(f, job, f"block_{axis}") for axis in "xyz")
    return x * y * z


def warp_count(f: Function, job: Value) -> Value:
    return (thread_count(f, job) + (at.WARP_SIZE - 1)) // at.WARP_SIZE


def set_bits(f: Function, warp: Value, state: int | Value, bits: Value) -> None:
    """Lanes get a state."""
    where = at.state_mask(state) if isinstance(state, int) else state * 4 + 4
    f.store(f.load(I32, warp, where) | bits, warp, where)


def clear_bits(f: Function, warp: Value, state: int, bits: Value) -> None:
    where = at.state_mask(state)
    f.store(f.load(I32, warp, where) & (bits ^ -1), warp, where)


def index_of(f: Function, position: Value, job: Value) -> Value:
    """The warp or lane that stands at a position of the order, 0..31."""
    moved = job_load(f, job, "multiplier") * position + job_load(f, job, "increment")
    return moved & at.WARP_SIZE - 1


def raise_error(f: Function, thread: Value, kind: int, detail: Value | int = 0) -> None:
    f.call("void", "emu_fail", thread, kind, detail)
