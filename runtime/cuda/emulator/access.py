"""Reading and writing jobs, warps and threads in emitted code, and its arithmetic."""

from __future__ import annotations

from ....codegen.llvm.builder import Value, constant
from ....codegen.llvm.modules import Function
from . import layout as at
from .layout import JOB

I32 = "i32"


def job_load(f: Function, job: Value, name: str) -> Value:
    """A word (i64) of the job, by its field's name."""
    return f.load("i64", job, JOB[name])


def job_store(f: Function, value: Value | int, job: Value, name: str) -> None:
    """Store a word (i64) into the job, by its field's name."""
    f.store(value if isinstance(value, Value) else constant("i64", value), job, JOB[name])


def word(n: int) -> Value:
    """A literal of type i32."""
    return constant(I32, n)


def bit(position: Value) -> Value:
    """1 << position, as i32."""
    if position.type != I32:
        position = position.trunc(I32)
    return 1 << position


def lowest_bit(f: Function, mask: Value) -> Value:
    """The position of the lowest bit that is set, 0..31; 32 where none is."""
    return f.intrinsic("cttz", I32, mask, False)


def is_set(f: Function, mask: Value, position: Value) -> Value:
    """Whether the bit at a position, 0..31, of a mask is set, as i1."""
    return (mask & bit(position)).ne(0)


def warp_at(f: Function, job: Value, warp: Value) -> Value:
    """The address of the state of a warp of the block."""
    return f.offset(f.load("ptr", job, JOB["warps"]), warp * at.WARP_BYTES)


def thread_at(f: Function, job: Value, warp: Value, lane: Value) -> Value:
    """The address of the state of the thread in a lane of a warp."""
    linear = warp * at.WARP_SIZE + lane
    return f.offset(f.load("ptr", job, JOB["threads"]), linear * at.THREAD_SIZE)


def thread_count(f: Function, job: Value) -> Value:
    """How many threads the block has, as i64."""
    x, y, z = (job_load(f, job, f"block_{axis}") for axis in "xyz")
    return x * y * z


def warp_count(f: Function, job: Value) -> Value:
    """How many warps the block has, the last of which may be a part of one, as i64."""
    return (thread_count(f, job) + (at.WARP_SIZE - 1)) // at.WARP_SIZE


def set_bits(f: Function, warp: Value, state: int | Value, bits: Value) -> None:
    """Lanes get a state."""
    where = at.state_mask(state) if isinstance(state, int) else state * 4 + 4
    f.store(f.load(I32, warp, where) | bits, warp, where)


def clear_bits(f: Function, warp: Value, state: int, bits: Value) -> None:
    """Lanes lose a state."""
    where = at.state_mask(state)
    f.store(f.load(I32, warp, where) & (bits ^ -1), warp, where)


def index_of(f: Function, position: Value, job: Value) -> Value:
    """The warp or lane that stands at a position of the order, 0..31."""
    moved = job_load(f, job, "multiplier") * position + job_load(f, job, "increment")
    return moved & at.WARP_SIZE - 1


def raise_error(f: Function, thread: Value, kind: int, detail: Value | int = 0) -> None:
    """End the launch with an error of a thread: its kind, and a number that says more."""
    f.call("void", "emu_fail", thread, kind, detail)
