"""Reading and writing jobs, warps and threads in emitted code, and its arithmetic."""

from __future__ import annotations

from ...function_ir import Function, Value
from . import layout as at
from .layout import JOB

I32 = "i32"


def job_load(f: Function, job: Value, name: str) -> Value:
    return f.load("i64", job, JOB[name])


def job_store(f: Function, value: Value | int, job: Value, name: str) -> None:
    f.store(value if isinstance(value, Value) else Value("i64", str(value)), job, JOB[name])


def word(n: int) -> Value:
    return Value(I32, str(n))


def multiply(f: Function, a: Value, b: Value | int) -> Value:
    return f.op(a.type, f"mul {a.type} {a.text}, {b.text if isinstance(b, Value) else b}")


def remainder(f: Function, a: Value, b: Value | int) -> Value:
    return f.op(a.type, f"urem {a.type} {a.text}, {b.text if isinstance(b, Value) else b}")


def quotient(f: Function, a: Value, b: Value | int) -> Value:
    return f.op(a.type, f"udiv {a.type} {a.text}, {b.text if isinstance(b, Value) else b}")


def bit(f: Function, position: Value) -> Value:
    """1 << position, as i32."""
    if position.type != I32:
        position = f.convert("trunc", position, I32)
    return f.op(I32, f"shl i32 1, {position.text}")


def lowest_bit(f: Function, mask: Value) -> Value:
    f.callees["llvm.cttz.i32"] = "declare i32 @llvm.cttz.i32(i32, i1)"
    return f.op(I32, f"call i32 @llvm.cttz.i32(i32 {mask.text}, i1 false)")


def count_bits(f: Function, mask: Value) -> Value:
    return f.call(I32, "llvm.ctpop.i32", mask)


def is_set(f: Function, mask: Value, position: Value) -> Value:
    return f.unlike(f.both(mask, bit(f, position)), 0)


def warp_at(f: Function, job: Value, warp: Value) -> Value:
    return f.offset(f.load("ptr", job, JOB["warps"]), multiply(f, warp, at.WARP_BYTES))


def thread_at(f: Function, job: Value, warp: Value, lane: Value) -> Value:
    linear = f.add(multiply(f, warp, at.WARP_SIZE), lane)
    return f.offset(f.load("ptr", job, JOB["threads"]), multiply(f, linear, at.THREAD_SIZE))


def thread_count(f: Function, job: Value) -> Value:
    x, y, z = (job_load(f, job, f"block_{axis}") for axis in "xyz")
    return multiply(f, multiply(f, x, y), z)


def warp_count(f: Function, job: Value) -> Value:
    return quotient(f, f.add(thread_count(f, job), at.WARP_SIZE - 1), at.WARP_SIZE)


def set_bits(f: Function, warp: Value, state: int | Value, bits: Value) -> None:
    """Lanes get a state."""
    where = at.state_mask(state) if isinstance(state, int) else f.add(multiply(f, state, 4), 4)
    f.store(f.either(f.load(I32, warp, where), bits), warp, where)


def clear_bits(f: Function, warp: Value, state: int, bits: Value) -> None:
    where = at.state_mask(state)
    f.store(f.both(f.load(I32, warp, where), f.differ(bits, -1)), warp, where)


def place_of(f: Function, position: Value, job: Value) -> Value:
    """The warp or lane that stands at a position of the order, 0..31."""
    moved = f.add(
        multiply(f, job_load(f, job, "multiplier"), position), job_load(f, job, "increment")
    )
    return f.both(moved, at.WARP_SIZE - 1)


def raise_error(f: Function, thread: Value, kind: int, detail: Value | int = 0) -> None:
    f.call("void", "emu_fail", thread, kind, detail)
