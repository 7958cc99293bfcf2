"""The copy engine: boxes of an array, which a tensor map describes, to shared memory, as emitted code.

What a driver writes into a tensor map is its own secret; the emulated one writes the words of `MAP`.
Copies are under way, in one queue of the block, until no warp can go on without them; then one of them
arrives, the oldest, the youngest or any, as the order of the launch is.
"""

from __future__ import annotations

from ....codegen.llvm.builder import Value, constant
from ....codegen.llvm.modules import Function
from . import layout as at
from .access import I32, job_load, job_store, raise_error, warp_at, warp_count
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
# An entry of the queue.
TARGET, BARRIER, SOURCE, THREAD, SITE, POINT = 0, 8, 16, 24, 32, 40
ENTRY_BYTES = 56
ENTRIES = 64


def _word(f: Function, map: Value, name: str, k: int | str = "") -> Value:
    return f.load(I64, map, MAP[f"{name}{k}"])


def _entry(f: Function, job: Value, number: Value) -> Value:
    return f.offset(f.load("ptr", job, JOB["boxes"]), number * ENTRY_BYTES)


def _nbytes(f: Function, map: Value) -> Value:
    total = _word(f, map, "item")
    for k in range(MAX_RANK):
        total = total * _word(f, map, "box", k)
    return total


def copy_box() -> Function:
    """`copy_box(thread, target, barrier, map, rank, x, y, z, site)`: begin to copy a box."""
    f = Function(
        "void", "emu_copy_box",
        thread="ptr", target="ptr", barrier="ptr", map="ptr", rank=I32, x=I32, y=I32, z=I32, site=I32,
    )  # fmt: skip
    thread, target, barrier, map, rank, *point, site = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    aligned = (map.to("ptrtoint", I64) & 63).eq(0)
    refuse_unless(f, aligned, thread, site, at.NO_MAP)
    is_map = _word(f, map, "magic").eq(constant(I64, MAGIC))
    refuse_unless(f, is_map, thread, site, at.NO_MAP)
    same = _word(f, map, "rank").eq(rank.zext(I64))
    refuse_unless(f, same, thread, site, at.NO_MAP)
    refuse_unless(f, job_load(f, job, "unfenced").eq(0), thread, site, at.UNFENCED_MBARRIER)
    size = _nbytes(f, map).trunc(I32)
    align, kind = constant(I32, 128), constant(I32, MEANT)
    f.call("ptr", "emu_shared", thread, target, size, align, kind, site)
    refuse_unless(f, job_load(f, job, "error").eq(0), thread, site, at.NO_MAP)
    count = job_load(f, job, "box_count")
    with f.when(count.eq(ENTRIES)):
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
    job_store(f, count + 1, job, "box_count")
    with f.when(job_load(f, job, "eager").ne(0)):
        f.call("void", "emu_box_arrives", job)
    f.ret()
    return f


def box_arrives() -> Function:
    """`box_arrives(job)`: one of the copies that are under way is done."""
    f = Function("void", "emu_box_arrives", job="ptr")
    (job,) = f.args
    count = job_load(f, job, "box_count")
    last = count - 1
    high = job_load(f, job, "state") >> 20
    any_one = high % count
    backwards = job_load(f, job, "multiplier").eq(31)
    number = f.select(backwards, last, constant(I64, 0))
    number = f.select(job_load(f, job, "random").ne(0), any_one, number)
    entry = _entry(f, job, number)
    thread, site = f.load("ptr", entry, THREAD), f.load(I32, entry, SITE)
    map = f.load("ptr", entry, SOURCE)
    _copy(f, job, entry, map, thread, site)
    barrier, size = f.load("ptr", entry, BARRIER), _nbytes(f, map).trunc(I32)
    rest = (last - number) * ENTRY_BYTES
    following = f.offset(entry, ENTRY_BYTES)
    f.move(entry, following, rest)
    job_store(f, last, job, "box_count")
    f.call("void", "emu_bytes_arrive", thread, barrier, size, site)
    f.ret()
    return f


def _copy(f: Function, job: Value, entry: Value, map: Value, thread: Value, site: Value) -> None:
    """All lines of a box, zeros where the array is not."""
    base, item = f.load("ptr", entry, TARGET), _word(f, map, "item")
    x, y, z = (f.load(I32, entry, POINT + 4 * k).sext(I64) for k in range(3))
    line_bytes = _word(f, map, "box", 0) * item
    zero = f.literal(I64, 0)
    low = f.select(x < 0, zero - x, zero)
    high = _word(f, map, "size", 0) - x
    low, high = low * item, high * item
    high = f.select(line_bytes < high, line_bytes, high)
    some = low < high
    with f.each(_word(f, map, "box", 2)) as k, f.each(_word(f, map, "box", 1)) as j:
        row, plane = y + j, z + k
        inside = some & row.ult(_word(f, map, "size", 1))
        inside = inside & plane.ult(_word(f, map, "size", 2))
        start = _word(f, map, "address") + row * _word(f, map, "stride", 1)
        start = start + plane * _word(f, map, "stride", 2)
        start = start + x * item
        source = start.to("inttoptr", "ptr")
        with f.when(inside):
            first = f.offset(source, low)
            size = (high - low).trunc(I32)
            align, kind = constant(I32, 1), constant(I32, READ)
            f.call("ptr", "emu_global", thread, first, size, align, kind, site)
        good = job_load(f, job, "error").eq(0)
        line = k * _word(f, map, "box", 1) + j
        target = f.offset(base, line * line_bytes)
        with f.when(good), f.each(line_bytes // 4) as n:
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
        offset = n * 4 + 2 * half
        there = inside & ((offset >= low) & (offset < high))
        take, done = f.block("take"), f.block("taken", value="i16")
        skip = f.block("skip")
        f.branch(there, take, skip, likely=True)
        f.at(take)
        f.jump(done, f.load("i16", source, offset))
        f.at(skip)
        f.jump(done, 0)
        (value,) = f.at(done)
        halves.append(value.zext(I32))
    bits = halves[0] | halves[1] << 16
    special = (bits & 0x7F800000).eq(0x7F800000)
    rounded = f.select(special, bits, bits + 0x1000) & -0x2000
    bits = f.select(_word(f, map, "tf32").ne(0), rounded, bits)
    in_window = target.to("ptrtoint", I64) + n * 4 - job_load(f, job, "window")
    swizzled = _word(f, map, "swizzle").ne(0)
    in_window = f.select(swizzled, swizzle(f, in_window), in_window)
    f.store(bits, f.load("ptr", job, JOB["window"]), in_window)


def swizzle(f: Function, offset: Value) -> Value:
    """Where a byte of lines of 128 bytes is: chunks of 16 bytes are exchanged, by the line's number."""
    line = offset >> 7 & 7
    return offset ^ line << 4


def boxes_are_left() -> Function:
    """`boxes_are_left(job)`: an error if all threads have gone while copies are under way."""
    f = Function("void", "emu_boxes_are_left", internal=True, job="ptr")
    (job,) = f.args
    with f.when(job_load(f, job, "box_count").eq(0)):
        f.ret()
        f.at(f.block("unused"))
    waiting = f.alloca(I32)
    f.store(constant(I32, 0), waiting)
    with f.each(warp_count(f, job)) as number:
        warp = warp_at(f, job, number)
        gone = f.load(I32, warp, at.state_mask(at.EXITED))
        here = f.load(I32, warp, at.EXISTING) ^ gone
        f.store(f.load(I32, waiting) | here, waiting)
    with f.when(f.load(I32, waiting).eq(0)):
        entry = _entry(f, job, f.literal(I64, 0))
        thread = f.load("ptr", entry, THREAD)
        f.store(f.load(I32, entry, SITE), thread, at.SITE)
        raise_error(f, thread, at.UNFINISHED_BOXES)
    f.ret()
    return f


BOXES = (copy_box, box_arrives, boxes_are_left)
