"""The copy engine: boxes of an array, which a tensor map describes, to shared memory, as emitted code.

What a driver writes into a tensor map is its own secret; the emulated one writes the words of `MAP`.
Copies are under way, in one queue of the block, until no warp can go on without them; then one of them
arrives, the oldest, the youngest or any, as the order of the launch is.
"""

from __future__ import annotations

from ...function_ir import Function, Value
from . import layout as at
from .access import I32, job_load, job_store, multiply, raise_error, remainder, warp_at, warp_count
from .layout import JOB
from .mbarriers import refuse_unless
from .races import MEANT, READ

I64 = "i64"
MAGIC = 0x6D617020746F2061
MAX_RANK = 3
# Words of a map: so many bytes of an element, whether 32-bit floats are rounded to TF32, the swizzle
# (0, or 128 bytes); the array's and the box's elements, bytes from one to the next, fastest first.
MAP = {
    name: 8 * k
    for k, name in enumerate(
        "magic address rank item tf32 swizzle "
        "size0 size1 size2 stride0 stride1 stride2 box0 box1 box2".split()
    )
}
_CHUNK = 16
# An entry of the queue.
TARGET, BARRIER, SOURCE, THREAD, SITE, POINT = 0, 8, 16, 24, 32, 40
ENTRY_BYTES = 56
ENTRIES = 64


def _word(f: Function, map: Value, name: str, k: int | str = "") -> Value:
    return f.load(I64, map, MAP[f"{name}{k}"])


def _entry(f: Function, job: Value, number: Value) -> Value:
    return f.offset(f.load("ptr", job, JOB["boxes"]), multiply(f, number, ENTRY_BYTES))


def _nbytes(f: Function, map: Value) -> Value:
    total = _word(f, map, "item")
    for k in range(MAX_RANK):
        total = f.mul(total, _word(f, map, "box", k))
    return total


def copy_box() -> Function:
    """`copy_box(thread, target, barrier, map, rank, x, y, z, site)`: begin to copy a box."""
    f = Function(
        "void", "emu_copy_box",
        thread="ptr", target="ptr", barrier="ptr", map="ptr", rank=I32, x=I32, y=I32, z=I32, site=I32,
    )  # fmt: skip
    thread, target, barrier, map, rank, *point, site = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    aligned = f.same(f.both(f.convert("ptrtoint", map, I64), 63), 0)
    refuse_unless(f, aligned, thread, site, at.NO_MAP)
    known = f.same(_word(f, map, "magic"), Value(I64, str(MAGIC)))
    refuse_unless(f, known, thread, site, at.NO_MAP)
    same = f.same(_word(f, map, "rank"), f.convert("zext", rank, I64))
    refuse_unless(f, same, thread, site, at.NO_MAP)
    refuse_unless(f, f.same(job_load(f, job, "unfenced"), 0), thread, site, at.UNFENCED_MBARRIER)
    size = f.convert("trunc", _nbytes(f, map), I32)
    align, kind = Value(I32, "128"), Value(I32, str(MEANT))
    f.call("ptr", "emu_shared", thread, target, size, align, kind, site)
    refuse_unless(f, f.same(job_load(f, job, "error"), 0), thread, site, at.NO_MAP)
    count = job_load(f, job, "box_count")
    with f.when(f.same(count, ENTRIES)):
        f.call("void", "emu_box_arrives", job)
    count = job_load(f, job, "box_count")
    entry = _entry(f, job, count)
    for value, where in (
        (target, TARGET),
        (barrier, BARRIER),
        (map, SOURCE),
        (thread, THREAD),
        (site, SITE),
        *((p, POINT + 4 * k) for k, p in enumerate(point)),
    ):
        f.store(value, entry, where)
    job_store(f, f.add(count, 1), job, "box_count")
    with f.when(f.unlike(job_load(f, job, "eager"), 0)):
        f.call("void", "emu_box_arrives", job)
    f.ret()
    return f


def box_arrives() -> Function:
    """`box_arrives(job)`: one of the copies that are under way is done."""
    f = Function("void", "emu_box_arrives", job="ptr")
    (job,) = f.args
    f.callees["llvm.memmove.p0.p0.i64"] = "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)"
    count = job_load(f, job, "box_count")
    last = f.sub(count, 1)
    high = f.op(I64, f"lshr i64 {job_load(f, job, 'state').text}, 20")
    any_one = remainder(f, high, count)
    backwards = f.same(job_load(f, job, "multiplier"), 31)
    number = f.select(backwards, last, Value(I64, "0"))
    number = f.select(f.unlike(job_load(f, job, "random"), 0), any_one, number)
    entry = _entry(f, job, number)
    thread, site = f.load("ptr", entry, THREAD), f.load(I32, entry, SITE)
    map = f.load("ptr", entry, SOURCE)
    _copy(f, job, entry, map, thread, site)
    barrier, size = f.load("ptr", entry, BARRIER), f.convert("trunc", _nbytes(f, map), I32)
    rest = multiply(f, f.sub(last, number), ENTRY_BYTES)
    following = f.offset(entry, ENTRY_BYTES)
    operands = f"ptr {entry.text}, ptr {following.text}, i64 {rest.text}, i1 false"
    f._line(f"call void @llvm.memmove.p0.p0.i64({operands})")
    job_store(f, last, job, "box_count")
    f.call("void", "emu_bytes_arrive", thread, barrier, size, site)
    f.ret()
    return f


def _copy(f: Function, job: Value, entry: Value, map: Value, thread: Value, site: Value) -> None:
    """All lines of a box, zeros where the array is not."""
    base, item = f.load("ptr", entry, TARGET), _word(f, map, "item")
    x, y, z = (f.convert("sext", f.load(I32, entry, POINT + 4 * k), I64) for k in range(3))
    line_bytes = f.mul(_word(f, map, "box", 0), item)
    zero = Value(I64, "0")
    low = f.select(f.less(x, 0), f.sub(zero, x), zero)
    high = f.sub(_word(f, map, "size", 0), x)
    low, high = f.mul(low, item), f.mul(high, item)
    high = f.select(f.less(line_bytes, high), line_bytes, high)
    some = f.less(low, high)
    with f.each(_word(f, map, "box", 2)) as k, f.each(_word(f, map, "box", 1)) as j:
        row, plane = f.add(y, j), f.add(z, k)
        inside = f.both(some, f.compare("ult", row, _word(f, map, "size", 1)))
        inside = f.both(inside, f.compare("ult", plane, _word(f, map, "size", 2)))
        start = f.add(_word(f, map, "address"), f.mul(row, _word(f, map, "stride", 1)))
        start = f.add(start, f.mul(plane, _word(f, map, "stride", 2)))
        start = f.add(start, f.mul(x, item))
        source = f.convert("inttoptr", start, "ptr")
        with f.when(inside):
            first = f.offset(source, low)
            size = f.convert("trunc", f.sub(high, low), I32)
            align, kind = Value(I32, "1"), Value(I32, str(READ))
            f.call("ptr", "emu_global", thread, first, size, align, kind, site)
        good = f.same(job_load(f, job, "error"), 0)
        line = f.add(f.mul(k, _word(f, map, "box", 1)), j)
        target = f.offset(base, f.mul(line, line_bytes))
        with f.when(good), f.each(f.divide(line_bytes, 4)) as n:
            _copy_word(f, job, map, target, source, n, (inside, low, high))


def _copy_word(
    f: Function,
    job: Value,
    map: Value,
    target: Value,
    source: Value,
    n: Value,
    bounds: tuple[Value, Value, Value],
) -> None:
    """Four bytes of a line; of 16-bit elements each may be outside."""
    inside, low, high = bounds
    halves = []
    for half in range(2):
        offset = f.add(f.mul(n, 4), 2 * half)
        there = f.both(inside, f.both(f.compare("sge", offset, low), f.less(offset, high)))
        take, done = f.block("take"), f.block("taken", value="i16")
        skip = f.block("skip")
        f.branch(there, take, skip)
        f.at(take)
        f.jump(done, f.load("i16", source, offset))
        f.at(skip)
        f.jump(done, 0)
        (value,) = f.at(done)
        halves.append(f.convert("zext", value, I32))
    bits = f.either(halves[0], f.op(I32, f"shl i32 {halves[1].text}, 16"))
    special = f.same(f.both(bits, 0x7F800000), 0x7F800000)
    rounded = f.both(f.select(special, bits, f.add(bits, 0x1000)), -0x2000)
    bits = f.select(f.unlike(_word(f, map, "tf32"), 0), rounded, bits)
    place = f.sub(
        f.add(f.convert("ptrtoint", target, I64), f.mul(n, 4)), job_load(f, job, "window")
    )
    swizzled = f.unlike(_word(f, map, "swizzle"), 0)
    place = f.select(swizzled, swizzle(f, place), place)
    f.store(bits, f.load("ptr", job, JOB["window"]), place)


def swizzle(f: Function, place: Value) -> Value:
    """Where a byte of lines of 128 bytes is: chunks of 16 bytes are exchanged, by the line's number."""
    line = f.both(f.op(I64, f"lshr i64 {place.text}, 7"), 7)
    return f.differ(place, f.op(I64, f"shl i64 {line.text}, 4"))


def boxes_are_left() -> Function:
    """`boxes_are_left(job)`: an error if all threads have gone while copies are under way."""
    f = Function("void", "emu_boxes_are_left", internal=True, job="ptr")
    (job,) = f.args
    with f.when(f.same(job_load(f, job, "box_count"), 0)):
        f.ret()
        f.at(f.block("unused"))
    waiting = f.alloca(I32)
    f.store(Value(I32, "0"), waiting)
    with f.each(warp_count(f, job)) as number:
        warp = warp_at(f, job, number)
        gone = f.load(I32, warp, at.state_mask(at.EXITED))
        here = f.differ(f.load(I32, warp, at.EXISTING), gone)
        f.store(f.either(f.load(I32, waiting), here), waiting)
    with f.when(f.same(f.load(I32, waiting), 0)):
        entry = _entry(f, job, Value(I64, "0"))
        thread = f.load("ptr", entry, THREAD)
        f.store(f.load(I32, entry, SITE), thread, at.SITE)
        raise_error(f, thread, at.UNFINISHED_BOXES)
    f.ret()
    return f


BOXES = (copy_box, box_arrives, boxes_are_left)
