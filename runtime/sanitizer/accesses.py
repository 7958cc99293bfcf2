"""What an access must fulfil, and what the shadow learns of it, as emitted code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...codegen.llvm.builder import NULL, Block, Value, constant, vector
from ...codegen.llvm.modules import Function
from . import layout as at
from .records import NAME, bare, check_function, own_state, record_of, tell, word


@contextmanager
def _cells(
    f: Function, record: Value, start: Value, n: Value
) -> Iterator[tuple[Value, list[Value]]]:
    """For each of n bytes from `start` on: which, and the addresses of its cells in the three planes."""
    shadow, stride = f.load("ptr", record, at.SHADOW), f.load("i64", record, at.STRIDE)
    first = f.offset(shadow, start * 4)
    planes = [first, f.offset(first, stride), f.offset(first, stride * 2)]
    with f.each(n) as i:
        yield i, [f.offset(p, i, "i32") for p in planes]


def has(f: Function, kind: Value, bit: int) -> Value:
    """Whether a flag is set."""
    return (kind & bit).ne(0)


def _level(f: Function, own: Value, depth: Value) -> tuple[Value, Value]:
    """(first unit, running unit) of a parallel loop."""
    level = f.offset(own, depth * 16 + at.LEVELS)
    return f.load("i64", level), f.load("i64", level, 8)


def racing() -> Function:
    """`racing(state, unit)`: whether a unit is another one of a parallel loop that runs now."""
    f = check_function("i1", "racing", state="ptr", unit="i64")
    own, unit = f.args
    with f.each(f.load("i64", own, at.DEPTH) + 1) as d:
        first, running = _level(f, own, d)
        sibling = (unit >= first) & (unit < running)
        with f.when(sibling):
            f.ret(constant("i1", True))
            f.at(f.block("unused"))
    f.ret(constant("i1", False))
    return f


def _byte(
    f: Function, own: Value, record: Value, cells: list[Value], kind: Value, index: Value
) -> None:
    """Look at one byte, and say what is wrong: the words of `say` follow."""
    site, offset, size = f.args[3:6]
    writer, through, reader = (f.load("i32", c).zext("i64") for c in cells)
    number = f.load("i64", record, at.NUMBER) & (1 << 32) - 1
    nobody = writer.eq(0)
    total = f.load("i64", record, at.BYTES)

    def say(what: int, detail: Value | int) -> None:
        owner = f.load("i64", record, at.NUMBER)
        tell(f, own, what, kind, owner, site, offset, size, total, detail)

    flags = f.load("i64", record, at.FLAGS)
    useful = has(f, kind, at.READ) & (flags & at.LOOSE).eq(0)
    fresh = (flags & at.PRESET).eq(0)
    with f.when(useful & fresh & nobody):
        say(at.UNWRITTEN, 0)
    strange = through.ne(number) & writer.ne(0)
    with f.when(useful & strange):
        say(at.OVERLAP, through)
    wrote = f.call("i1", f"{NAME}_racing", own, writer)
    with f.when(has(f, kind, at.READ) & wrote):
        say(at.RACE, writer)
    read = f.call("i1", f"{NAME}_racing", own, reader)
    with f.when(has(f, kind, at.WRITE) & (wrote | read)):
        count = f.load("i64", own, at.PENDING)
        with f.when(count < at.MAX_PENDING, likely=True):
            entry = f.offset(own, count * 64 + (at.PENDING + 64))
            where = f.load("i64", record, at.START) + (offset + index)
            old = f.load("i8", where.to("inttoptr", "ptr"))
            words = (f.load("i64", record, at.NUMBER), site, offset, size, total, writer)
            for k, value in enumerate((where, old.zext("i64"), *words)):
                f.store(value, entry, 8 * k)
            f.store(count + 1, own, at.PENDING)


def settle() -> Function:
    """`settle(state)`: report what units have changed that another one had touched.

    What all of them would write is no fault: the last vector of a row is moved back where it does not
    fit, and writes what its neighbour has written.
    """
    f = check_function("void", "settle", state="ptr")
    (own,) = f.args
    count = f.load("i64", own, at.PENDING)
    with f.when(count.ne(0)):
        with f.each(count) as i:
            entry = f.offset(own, i * 64 + (at.PENDING + 64))
            where, old, *words = (f.load("i64", entry, 8 * k) for k in range(8))
            now = f.load("i8", where.to("inttoptr", "ptr")).zext("i64")
            with f.when(now.ne(old)):
                tell(f, own, at.RACE, at.WRITE, *words)
        f.store(word(0), own, at.PENDING)
    f.ret()
    return f


def judge() -> Function:
    """`judge(state, record, kind, site, offset, size)`: report what is wrong about these bytes."""
    f = check_function(
        "void", "judge", state="ptr", record="ptr", kind="i64", site="i64", offset="i64", size="i64"
    )
    own, record, kind, _, offset, size = f.args
    with _cells(f, record, offset, size) as (i, cells):
        _byte(f, own, record, cells, kind, i)
    f.ret()
    return f


def _splat(f: Function, value: Value, lanes: int) -> Value:
    """A word as so many cells."""
    cell = value.trunc("i32")
    if lanes == 1:
        return cell
    return f.splat(cell, lanes)


def _any(f: Function, flags: list[Value], lanes: int) -> Value:
    total = flags[0]
    for flag in flags[1:]:
        total = total | flag
    return total if lanes == 1 else total.to("bitcast", f"i{lanes}").ne(0)


def touch(lanes: int) -> Function:
    """`touch(state, record, kind, site, offset, size)`: so many bytes at a time; `judge` has a look
    at what may be wrong. Then the shadow knows of the access."""
    f = check_function(
        "void", f"touch{lanes}", state="ptr", record="ptr", kind="i64", site="i64", offset="i64",
        size="i64",
    )  # fmt: skip
    own, record, kind, site, offset, size = f.args
    type = vector(lanes, "i32")
    depth = f.load("i64", own, at.DEPTH)
    first, running = _level(f, own, depth)
    outermost, _ = _level(f, own, f.select(depth.eq(0), depth, word(1)))
    from_ = _splat(f, outermost, lanes)
    span = _splat(f, running - outermost, lanes)
    newest = _splat(f, first, lanes)
    owner = _splat(f, f.load("i64", own, at.OWNER), lanes)
    number = _splat(f, f.load("i64", record, at.NUMBER), lanes)
    shadow, stride = f.load("ptr", record, at.SHADOW), f.load("i64", record, at.STRIDE)
    start = f.offset(shadow, offset * 4)
    flags = f.load("i64", record, at.FLAGS)
    useful = has(f, kind, at.READ) & (flags & at.LOOSE).eq(0)
    fresh = (flags & at.PRESET).eq(0)
    writes, reads = has(f, kind, at.WRITE), has(f, kind, at.READ)

    def all_if(condition: Value, flags: Value) -> Value:
        return f.select(condition, flags, 0)

    def sibling(units: Value) -> Value:
        return (units - from_).ult(span)

    with f.each(size // lanes) as i:
        cell = f.offset(start, i * (4 * lanes))
        planes = [cell, f.offset(cell, stride), f.offset(cell, stride * 2)]
        writer, through, reader = (f.load(type, p, align=4) for p in planes)
        nobody = writer.eq(0)
        strange = through.ne(number) & writer.ne(0)
        wrong = [
            all_if(useful & fresh, nobody),
            all_if(useful, strange),
            sibling(writer),
            all_if(writes, sibling(reader)),
        ]
        with f.when(_any(f, wrong, lanes)):
            position = offset + i * lanes
            f.call("void", f"{NAME}_judge", own, record, kind, site, position, lanes)
        with f.when(writes, likely=True):
            f.store(owner, planes[0], align=4)
            f.store(number, planes[1], align=4)
        with f.when(reads, likely=True):
            f.store(f.select(reader.uge(newest), reader, owner), planes[2], align=4)
    f.ret()
    return f


def access() -> Function:
    """`access(pointer, size, kind, site)`: `checked` of an instruction that accesses nothing else."""
    f = check_function("ptr", "access", pointer="ptr", size="i64", kind="i64", site="i64")
    f.call("void", f"{NAME}_settle", own_state(f))
    f.ret(f.call("ptr", f"{NAME}_checked", *f.args))
    return f


def checked() -> Function:
    """`checked(pointer, size, kind, site)`: the address, if all is well with the access."""
    f = check_function("ptr", "checked", pointer="ptr", size="i64", kind="i64", site="i64")
    pointer, size, kind, site = f.args
    own = own_state(f)
    tag, address = bare(f, pointer)
    nothing = f.block("nothing")
    f.require(size.ne(0), nothing)
    plain, wild, outside, good = (f.block(n) for n in ("plain", "wild", "outside", "good"))
    sink = f.block("sink", kind="i64", number="i64", offset="i64", bytes="i64")
    f.require(tag.ne(0), plain)
    low = tag < f.load("i64", own, at.TOP)
    high = tag >= f.load("i64", own, at.HEAP)
    f.require(low | high, wild)
    record = record_of(f, own, tag)
    offset = address - f.load("i64", record, at.START)
    total = f.load("i64", record, at.BYTES)
    f.require(offset >= 0, outside)
    f.require(total - size >= offset, outside)
    fixed = f.block("fixed")
    f.require(f.load("ptr", record, at.SHADOW).ne(NULL), fixed)
    f.require((kind & at.QUIET).eq(0), good)
    narrow, wide = f.block("narrow"), f.block("wide")
    f.branch((size & 3).eq(0), wide, narrow, likely=True)
    for block, lanes in ((narrow, 1), (wide, 4)):
        f.at(block)
        f.call("void", f"{NAME}_touch{lanes}", own, record, kind, site, offset, size)
        f.jump(good)
    f.at(good)
    f.ret(address.to("inttoptr", "ptr"))
    f.at(nothing)  # a copy of no bytes, wherever to
    f.jump(good)
    f.at(fixed)
    forbidden = has(f, kind, at.WRITE) & has(f, f.load("i64", record, at.FLAGS), at.FIXED)
    f.require(forbidden.eq(0), _to_sink(f, sink, at.READ_ONLY, record, offset, total))
    f.jump(good)
    f.at(outside)
    number = f.load("i64", record, at.NUMBER)
    f.jump(sink, at.OUT_OF_BOUNDS, number, offset, total)
    f.at(plain)
    f.require(address.ult(1 << 16), good)
    f.jump(sink, at.NULL, 0, address, 0)
    f.at(wild)
    f.jump(sink, at.WILD, 0, address, 0)
    what, number, offset, total = f.at(sink)
    tell(f, own, what, kind, number, site, offset, size, total)
    f.ret(f.offset(own, at.SINK))
    return f


def _to_sink(
    f: Function, sink: Block, kind: int, record: Value, offset: Value, total: Value
) -> Block:
    """A block that goes to the sink."""
    here, block = f.current, f.block("refused")
    f.at(block)
    f.jump(sink, kind, f.load("i64", record, at.NUMBER), offset, total)
    f.at(here)
    return block


def _lane(f: Function, bits: Value, lane: Value) -> Value:
    return (bits >> lane & 1).ne(0)


def masked() -> Function:
    """`masked(pointer, size, lanes, bits, kind, site)`: an access of those elements whose bit is set."""
    f = check_function(
        "ptr", "masked", pointer="ptr", size="i64", lanes="i64", bits="i64", kind="i64", site="i64"
    )
    pointer, size, lanes, bits, kind, site = f.args
    own = own_state(f)
    f.call("void", f"{NAME}_settle", own)
    before = f.load("i64", own, at.ERROR)
    with f.each(lanes) as i, f.when(_lane(f, bits, i), likely=True):
        element = f.offset(pointer, i * size)
        f.call("ptr", f"{NAME}_checked", element, size, kind, site)
    wrong = before.eq(0) & f.load("i64", own, at.ERROR).ne(0)
    _, address = bare(f, pointer)
    element = address.to("inttoptr", "ptr")
    f.ret(f.select(wrong, f.offset(own, at.SINK), element))
    return f


def gather() -> Function:
    """`gather(pointers, size, lanes, bits, kind, site)`: each pointer becomes the address."""
    f = check_function(
        "void", "gather", pointers="ptr", size="i64", lanes="i64", bits="i64", kind="i64",
        site="i64",
    )  # fmt: skip
    pointers, size, lanes, bits, kind, site = f.args
    f.call("void", f"{NAME}_settle", own_state(f))
    with f.each(lanes) as i, f.when(_lane(f, bits, i), likely=True):
        slot = f.offset(pointers, i, "ptr")
        address = f.call("ptr", f"{NAME}_checked", f.load("ptr", slot), size, kind, site)
        f.store(address, slot)
    f.ret()
    return f
