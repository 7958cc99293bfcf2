"""The functions that checked code calls, as emitted code. See `layout` for what they keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...codegen.module import SANITIZER_ERROR
from ...codegen.target import Target
from ..function_ir import NULL, Block, Function, Value
from . import layout as at

NAME = Target.SANITIZER
KEY = f"{NAME}_key"  # where the number is under which a thread's state is known to libc


def _function(result: str, name: str, **params: str) -> Function:
    return Function(result, f"{NAME}_{name}", internal=False, **params)


def _word(value: int) -> Value:
    return Value("i64", str(value))


def _state(f: Function) -> Value:
    return f.call("ptr", f"{NAME}_state")


def state() -> Function:
    """`state()`: this thread's, made when it is first asked for."""
    f = _function("ptr", "state")
    key = f.load("i32", Value("ptr", f"@{KEY}"))
    known = f.call("ptr", "pthread_getspecific", key)
    missing, ready = f.block("missing"), f.block("ready")
    f.branch(f.same(known, Value("ptr", "null")), missing, ready, likely=False)
    f.at(ready)
    f.ret(known)
    f.at(missing)
    made = f.call("ptr", "calloc", 1, at.STATE_BYTES)
    for value, where in ((1, at.TOP), (at.MAX_RECORDS, at.HEAP), (1, at.OWNER)):
        f.store(_word(value), made, where)
    for where in (at.LEVELS, at.LEVELS + 8):
        f.store(_word(1), made, where)
    f.call("i32", "pthread_setspecific", key, made)
    f.ret(made)
    return f


def report() -> Function:
    """`report(state, kind, number, site, offset, size, bytes, detail)`: keep the first fault."""
    words = dict.fromkeys((*at.ERROR_WORDS[:-1],), "i64")
    f = _function("void", "report", state="ptr", kind="i64", **words)
    own, kind, *rest = f.args
    with f.when(f.same(f.load("i64", own, at.ERROR), 0)):
        f.store(kind, own, at.ERROR)
        for k, value in enumerate([*rest, f.load("i64", own, at.KERNEL)]):
            f.store(value, own, at.ERROR + 8 * (k + 1))
    f.ret()
    return f


def _report(
    f: Function, own: Value, what: Value | int, access: Value | int, *words: Value | int
) -> None:
    """`access` is what was done; then come the words of a report."""
    if isinstance(access, int):
        access = _word(access)
    kind = f.add(f.mul(access, 1 << at.ACCESS_SHIFT), what)
    f.call("void", f"{NAME}_report", own, kind, *words, *[0] * (6 - len(words)))


def failed() -> Function:
    """`failed()`: whether this thread met a fault."""
    f = _function("i64", "failed")
    f.ret(f.load("i64", _state(f), at.ERROR))
    return f


def kernel() -> Function:
    """`kernel(number)`: which kernel begins."""
    f = _function("void", "kernel", number="i64")
    f.store(f.args[0], _state(f), at.KERNEL)
    f.ret()
    return f


# Records.


def _record(f: Function, own: Value, number: Value) -> Value:
    return f.offset(own, f.add(f.mul(number, 64), at.RECORDS))


def _tagged(f: Function, address: Value, number: Value) -> Value:
    tag = f.op("i64", f"shl i64 {number.text}, {at.TAG_SHIFT}")
    return f.convert("inttoptr", f.either(address, tag), "ptr")


def _bare(f: Function, pointer: Value) -> tuple[Value, Value]:
    """(the record's number, the address) of a pointer."""
    word = f.convert("ptrtoint", pointer, "i64")
    return f.shift_right(word, at.TAG_SHIFT), f.both(word, (1 << at.TAG_SHIFT) - 1)


def _fill(f: Function, record: Value, fields: dict[int, Value]) -> None:
    for where, value in fields.items():
        f.store(value, record, where)


def _shadow(f: Function, nbytes: Value) -> tuple[Value, Value]:
    """(memory for the shadow of so many bytes, bytes of a plane)."""
    plane = f.add(f.mul(nbytes, 4), 64)
    return f.call("ptr", "calloc", 3, plane), plane


def _next_record(f: Function, own: Value, otherwise: Block) -> Value:
    top = f.load("i64", own, at.TOP)
    f.require(f.less(top, f.load("i64", own, at.HEAP)), otherwise)
    f.store(f.add(top, 1), own, at.TOP)
    return top


def array() -> Function:
    """`array(pointer, low, bytes, number, flags)`: the pointer, now to an array: bytes from `low` on.

    When there are no records left, the pointer as it is: it will not be checked.
    """
    f = _function("ptr", "array", pointer="ptr", low="i64", bytes="i64", number="i64", flags="i64")
    pointer, low, nbytes, number, flags = f.args
    own, full = _state(f), f.block("full")
    top = _next_record(f, own, full)
    address = f.convert("ptrtoint", pointer, "i64")
    record = _record(f, own, top)
    fixed, free = f.block("fixed"), f.block("free")
    done = f.block("done", shadow="ptr", stride="i64")
    f.branch(f.unlike(f.both(flags, at.FIXED), 0), fixed, free)
    f.at(fixed)
    f.jump(done, NULL, 0)
    f.at(free)
    f.jump(done, *_shadow(f, nbytes))
    shadow, stride = f.at(done)
    fields = {at.START: f.add(address, low), at.BYTES: nbytes, at.FLAGS: flags, at.NUMBER: number}
    fields |= {at.SHADOW: shadow, at.STRIDE: stride, at.OWNED: shadow}
    _fill(f, record, fields)
    f.ret(_tagged(f, address, top))
    f.at(full)
    f.ret(pointer)
    return f


def part() -> Function:
    """`part(pointer, bytes, number)`: a pointer to an array in the memory of another, here."""
    f = _function("ptr", "part", pointer="ptr", bytes="i64", number="i64")
    pointer, nbytes, number = f.args
    own, out = _state(f), f.block("out")
    tag, address = _bare(f, pointer)
    f.require(f.unlike(tag, 0), out)
    top = _next_record(f, own, out)
    whole, record = _record(f, own, tag), _record(f, own, top)
    cells = f.load("ptr", whole, at.SHADOW)
    offset, room = f.sub(address, f.load("i64", whole, at.START)), f.load("i64", whole, at.BYTES)
    inside = f.both(f.compare("sge", offset, 0), f.compare("sge", f.sub(room, offset), nbytes))
    with f.when(f.same(inside, Value("i1", "false"))):
        _report(f, own, at.OUT_OF_BOUNDS, at.READ, number, 0, offset, nbytes, room)
    cells = f.select(f.same(cells, NULL), NULL, f.offset(cells, f.mul(offset, 4)))
    size = f.select(inside, nbytes, _word(0))  # of one that is not, all is out of bounds
    fields = {at.START: address, at.BYTES: size, at.FLAGS: _word(0), at.NUMBER: number}
    fields |= {at.SHADOW: cells, at.STRIDE: f.load("i64", whole, at.STRIDE), at.OWNED: NULL}
    _fill(f, record, fields)
    f.ret(_tagged(f, address, top))
    f.at(out)
    f.ret(pointer)
    return f


def mark() -> Function:
    """`mark()`: what `release` wants to know."""
    f = _function("i64", "mark")
    f.ret(f.load("i64", _state(f), at.TOP))
    return f


def release() -> Function:
    """`release(mark)`: forget the arrays that were made since."""
    f = _function("void", "release", mark="i64")
    own = _state(f)
    top = f.load("i64", own, at.TOP)
    with f.each(f.sub(top, f.args[0])) as i:
        f.call("void", "free", f.load("ptr", _record(f, own, f.add(f.args[0], i)), at.OWNED))
    f.store(f.args[0], own, at.TOP)
    f.ret()
    return f


def allocate() -> Function:
    """`malloc(bytes)`: memory that lives until it is freed."""
    f = _function("ptr", "malloc", bytes="i64")
    (nbytes,) = f.args
    own, out = _state(f), f.block("out")
    pointer = f.call("ptr", "malloc", nbytes)
    f.require(f.unlike(pointer, NULL), out)
    reused, fresh = f.block("reused"), f.block("fresh")
    made = f.block("made", number="i64")
    known = f.load("i64", own, at.FREE)
    f.branch(f.unlike(known, 0), reused, fresh)
    f.at(reused)
    f.store(f.load("i64", _record(f, own, known), at.LINK), own, at.FREE)
    f.jump(made, known)
    f.at(fresh)
    heap = f.sub(f.load("i64", own, at.HEAP), 1)
    f.require(f.less(f.load("i64", own, at.TOP), heap), out)
    f.store(heap, own, at.HEAP)
    f.jump(made, heap)
    (number,) = f.at(made)
    address = f.convert("ptrtoint", pointer, "i64")
    shadow, stride = _shadow(f, nbytes)
    fields = {at.START: address, at.BYTES: nbytes, at.FLAGS: _word(0), at.NUMBER: _word(-1)}
    fields |= {at.SHADOW: shadow, at.STRIDE: stride, at.OWNED: shadow}
    _fill(f, _record(f, own, number), fields)
    f.ret(_tagged(f, address, number))
    f.at(out)
    f.ret(pointer)
    return f


def free() -> Function:
    """`free(pointer)`: of what `malloc` has given."""
    f = _function("void", "free", pointer="ptr")
    own = _state(f)
    tag, address = _bare(f, f.args[0])
    with f.when(f.unlike(tag, 0)):
        record = _record(f, own, tag)
        f.call("void", "free", f.load("ptr", record, at.OWNED))
        f.store(NULL, record, at.SHADOW)
        f.store(_word(0), record, at.BYTES)  # whoever comes late is out of bounds
        f.store(f.load("i64", own, at.FREE), record, at.LINK)
        f.store(tag, own, at.FREE)
    f.call("void", "free", f.convert("inttoptr", address, "ptr"))
    f.ret()
    return f


# Accesses.


@contextmanager
def _cells(f: Function, record: Value, start: Value, n: Value) -> Iterator[list[Value]]:
    """For each of n bytes from `start` on: the addresses of its cells in the three planes."""
    shadow, stride = f.load("ptr", record, at.SHADOW), f.load("i64", record, at.STRIDE)
    first = f.offset(shadow, f.mul(start, 4))
    planes = [first, f.offset(first, stride), f.offset(first, f.mul(stride, 2))]
    with f.each(n) as i:
        yield [f.offset(p, i, "i32") for p in planes]


def _is(f: Function, kind: Value, bit: int) -> Value:
    return f.unlike(f.both(kind, bit), 0)


def _level(f: Function, own: Value, depth: Value) -> tuple[Value, Value]:
    """(first unit, running unit) of a parallel loop."""
    level = f.offset(own, f.add(f.mul(depth, 16), at.LEVELS))
    return f.load("i64", level), f.load("i64", level, 8)


def racing() -> Function:
    """`racing(state, unit)`: whether a unit is another one of a parallel loop that runs now."""
    f = _function("i1", "racing", state="ptr", unit="i64")
    own, unit = f.args
    with f.each(f.add(f.load("i64", own, at.DEPTH), 1)) as d:
        first, running = _level(f, own, d)
        sibling = f.both(f.compare("sge", unit, first), f.compare("slt", unit, running))
        with f.when(sibling):
            f.ret(Value("i1", "true"))
            f.at(f.block("unused"))
    f.ret(Value("i1", "false"))
    return f


def _byte(f: Function, own: Value, record: Value, cells: list[Value], kind: Value) -> None:
    """Look at one byte, and say what is wrong: the words of `tell` follow."""
    site, offset, size = f.args[3:6]
    writer, through, reader = (f.convert("zext", f.load("i32", c), "i64") for c in cells)
    number = f.both(f.load("i64", record, at.NUMBER), (1 << 32) - 1)
    nobody = f.same(writer, 0)
    total = f.load("i64", record, at.BYTES)

    def tell(what: int, detail: Value | int) -> None:
        owner = f.load("i64", record, at.NUMBER)
        _report(f, own, what, kind, owner, site, offset, size, total, detail)

    useful = f.both(_is(f, kind, at.READ), f.same(f.both(kind, at.VAIN), 0))
    fresh = f.same(f.both(f.load("i64", record, at.FLAGS), at.PRESET), 0)
    with f.when(f.both(f.both(useful, fresh), nobody)):
        tell(at.UNWRITTEN, 0)
    strange = f.both(f.compare("ne", through, number), f.unlike(writer, 0))
    with f.when(f.both(useful, strange)):
        tell(at.OVERLAP, through)
    with f.when(f.call("i1", f"{NAME}_racing", own, writer)):
        tell(at.RACE, writer)
    read_before = f.call("i1", f"{NAME}_racing", own, reader)
    with f.when(f.both(_is(f, kind, at.WRITE), read_before)):
        tell(at.RACE, reader)


def judge() -> Function:
    """`judge(state, record, kind, site, offset, size)`: report what is wrong about these bytes."""
    f = _function(
        "void", "judge", state="ptr", record="ptr", kind="i64", site="i64", offset="i64", size="i64"
    )
    own, record, kind, _, offset, size = f.args
    with _cells(f, record, offset, size) as cells:
        _byte(f, own, record, cells, kind)
    f.ret()
    return f


def _splat(f: Function, value: Value, lanes: int) -> Value:
    """A word as so many cells."""
    cell = f.convert("trunc", value, "i32")
    if lanes == 1:
        return cell
    type = f"<{lanes} x i32>"
    one = f.op(type, f"insertelement {type} poison, i32 {cell.text}, i64 0")
    zeros = f"<{lanes} x i32> zeroinitializer"
    return f.op(type, f"shufflevector {type} {one.text}, {type} poison, {zeros}")


def _any(f: Function, flags: list[Value], lanes: int) -> Value:
    bits = "i1" if lanes == 1 else f"<{lanes} x i1>"
    total = flags[0]
    for flag in flags[1:]:
        total = f.op(bits, f"or {bits} {total.text}, {flag.text}")
    if lanes == 1:
        return total
    return f.unlike(f.op(f"i{lanes}", f"bitcast {bits} {total.text} to i{lanes}"), 0)


def touch(lanes: int) -> Function:
    """`touch(state, record, kind, site, offset, size)`: so many bytes at a time; `judge` has a look
    at what may be wrong. Then the shadow knows of the access."""
    f = _function(
        "void", f"touch{lanes}", state="ptr", record="ptr", kind="i64", site="i64", offset="i64",
        size="i64",
    )  # fmt: skip
    own, record, kind, site, offset, size = f.args
    type = "i32" if lanes == 1 else f"<{lanes} x i32>"
    bits = "i1" if lanes == 1 else f"<{lanes} x i1>"
    depth = f.load("i64", own, at.DEPTH)
    first, running = _level(f, own, depth)
    outermost, _ = _level(f, own, f.select(f.same(depth, 0), depth, _word(1)))
    from_ = _splat(f, outermost, lanes)
    span = _splat(f, f.sub(running, outermost), lanes)
    newest = _splat(f, first, lanes)
    owner = _splat(f, f.load("i64", own, at.OWNER), lanes)
    number = _splat(f, f.load("i64", record, at.NUMBER), lanes)
    shadow, stride = f.load("ptr", record, at.SHADOW), f.load("i64", record, at.STRIDE)
    start = f.offset(shadow, f.mul(offset, 4))
    useful = f.both(_is(f, kind, at.READ), f.same(f.both(kind, at.VAIN), 0))
    fresh = f.same(f.both(f.load("i64", record, at.FLAGS), at.PRESET), 0)
    writes, reads = _is(f, kind, at.WRITE), _is(f, kind, at.READ)

    def all_if(condition: Value, flags: Value) -> Value:
        return f.op(
            bits, f"select i1 {condition.text}, {bits} {flags.text}, {bits} zeroinitializer"
        )

    def compare(how: str, a: Value, b: Value) -> Value:
        return f.op(bits, f"icmp {how} {type} {a.text}, {b.text}")

    zero = Value(type, "0" if lanes == 1 else "zeroinitializer")

    def sibling(units: Value) -> Value:
        away = f.op(type, f"sub {type} {units.text}, {from_.text}")
        return compare("ult", away, span)

    def load(pointer: Value) -> Value:
        return f.op(type, f"load {type}, ptr {pointer.text}, align 4")

    with f.each(f.divide(size, lanes)) as i:
        cell = f.offset(start, f.mul(i, 4 * lanes))
        planes = [cell, f.offset(cell, stride), f.offset(cell, f.mul(stride, 2))]
        writer, through, reader = (load(p) for p in planes)
        nobody = compare("eq", writer, zero)
        strange = compare("ne", through, number)
        somebody = compare("ne", writer, zero)
        strange = f.op(bits, f"and {bits} {strange.text}, {somebody.text}")
        wrong = [
            all_if(f.both(useful, fresh), nobody),
            all_if(useful, strange),
            sibling(writer),
            all_if(writes, sibling(reader)),
        ]
        with f.when(_any(f, wrong, lanes)):
            place = f.add(offset, f.mul(i, lanes))
            f.call("void", f"{NAME}_judge", own, record, kind, site, place, lanes)
        with f.when(writes, likely=True):
            f.store(owner, planes[0], align=4)
            f.store(number, planes[1], align=4)
        with f.when(reads, likely=True):
            known = compare("uge", reader, newest)
            keep = f"{type} {reader.text}, {type} {owner.text}"
            f.store(f.op(type, f"select {bits} {known.text}, {keep}"), planes[2], align=4)
    f.ret()
    return f


def access() -> Function:
    """`access(pointer, size, kind, site)`: the address, if all is well with the access."""
    f = _function("ptr", "access", pointer="ptr", size="i64", kind="i64", site="i64")
    pointer, size, kind, site = f.args
    own = _state(f)
    tag, address = _bare(f, pointer)
    bare, wild, outside, good = (f.block(n) for n in ("bare", "wild", "outside", "good"))
    sink = f.block("sink", kind="i64", number="i64", offset="i64", bytes="i64")
    f.require(f.unlike(tag, 0), bare)
    low = f.less(tag, f.load("i64", own, at.TOP))
    high = f.compare("sge", tag, f.load("i64", own, at.HEAP))
    f.require(f.either(low, high), wild)
    record = _record(f, own, tag)
    offset = f.sub(address, f.load("i64", record, at.START))
    total = f.load("i64", record, at.BYTES)
    f.require(f.compare("sge", offset, 0), outside)
    f.require(f.compare("sge", f.sub(total, size), offset), outside)
    fixed = f.block("fixed")
    f.require(f.unlike(f.load("ptr", record, at.SHADOW), NULL), fixed)
    f.require(f.same(f.both(kind, at.QUIET), 0), good)
    narrow, wide = f.block("narrow"), f.block("wide")
    f.branch(f.same(f.both(size, 3), 0), wide, narrow)
    for block, lanes in ((narrow, 1), (wide, 4)):
        f.at(block)
        f.call("void", f"{NAME}_touch{lanes}", own, record, kind, site, offset, size)
        f.jump(good)
    f.at(good)
    f.ret(f.convert("inttoptr", address, "ptr"))
    f.at(fixed)
    forbidden = f.both(_is(f, kind, at.WRITE), _is(f, f.load("i64", record, at.FLAGS), at.FIXED))
    f.require(f.same(forbidden, 0), _to_sink(f, sink, at.READ_ONLY, record, offset, total))
    f.jump(good)
    f.at(outside)
    number = f.load("i64", record, at.NUMBER)
    f.jump(sink, at.OUT_OF_BOUNDS, number, offset, total)
    f.at(bare)
    f.require(f.compare("ult", address, 1 << 16), good)
    f.jump(sink, at.NULL, 0, address, 0)
    f.at(wild)
    f.jump(sink, at.WILD, 0, address, 0)
    what, number, offset, total = f.at(sink)
    _report(f, own, what, kind, number, site, offset, size, total)
    f.ret(f.offset(own, at.SINK))
    return f


def _to_sink(
    f: Function, sink: Block, kind: int, record: Value, offset: Value, total: Value
) -> Block:
    """A block that goes to the sink."""
    here, block = f._here, f.block("refused")
    f.at(block)
    f.jump(sink, kind, f.load("i64", record, at.NUMBER), offset, total)
    f.at(here)
    return block


def _lane(f: Function, bits: Value, lane: Value) -> Value:
    return f.unlike(f.both(f.op("i64", f"lshr i64 {bits.text}, {lane.text}"), 1), 0)


def masked() -> Function:
    """`masked(pointer, size, lanes, bits, kind, site)`: an access of those elements whose bit is set."""
    f = _function(
        "ptr", "masked", pointer="ptr", size="i64", lanes="i64", bits="i64", kind="i64", site="i64"
    )
    pointer, size, lanes, bits, kind, site = f.args
    own = _state(f)
    before = f.load("i64", own, at.ERROR)
    with f.each(lanes) as i, f.when(_lane(f, bits, i), likely=True):
        place = f.offset(pointer, f.mul(i, size))
        f.call("ptr", f"{NAME}_access", place, size, kind, site)
    wrong = f.both(f.same(before, 0), f.unlike(f.load("i64", own, at.ERROR), 0))
    _, address = _bare(f, pointer)
    place = f.convert("inttoptr", address, "ptr")
    f.ret(f.select(wrong, f.offset(own, at.SINK), place))
    return f


def gather() -> Function:
    """`gather(pointers, size, lanes, bits, kind, site)`: each pointer becomes the address."""
    f = _function(
        "void", "gather", pointers="ptr", size="i64", lanes="i64", bits="i64", kind="i64",
        site="i64",
    )  # fmt: skip
    pointers, size, lanes, bits, kind, site = f.args
    with f.each(lanes) as i, f.when(_lane(f, bits, i), likely=True):
        place = f.offset(pointers, i, "ptr")
        address = f.call("ptr", f"{NAME}_access", f.load("ptr", place), size, kind, site)
        f.store(address, place)
    f.ret()
    return f


# What other libraries are given: addresses.


def lend() -> Function:
    """`lend(words, k, size, kind, site)`: the k-th pointer of a block, all of which is accessed."""
    f = _function("void", "lend", words="ptr", k="i64", size="i64", kind="i64", site="i64")
    words, k, size, kind, site = f.args
    _, address = _bare(f, words)
    place = f.offset(f.convert("inttoptr", address, "ptr"), k, "ptr")
    f.store(f.call("ptr", f"{NAME}_access", f.load("ptr", place), size, kind, site), place)
    f.ret()
    return f


def lend_items() -> Function:
    """`lend_items(words, k, sizes, steps, size, dim0, step0, dim1, step1, kind, site)`: the k-th
    pointer, as a loop of a ufunc goes through it: items, and in each up to two dims; -1 for none."""
    names = ("size", "dim0", "step0", "dim1", "step1", "kind", "site")
    f = _function(
        "void", "lend_items", words="ptr", k="i64", sizes="ptr", steps="ptr",
        **dict.fromkeys(names, "i64"),
    )  # fmt: skip
    words, k, sizes, steps, size, dim0, step0, dim1, step1, kind, site = f.args
    words, sizes, steps = (
        f.convert("inttoptr", _bare(f, p)[1], "ptr") for p in (words, sizes, steps)
    )
    place = f.offset(words, k, "ptr")
    pointer = f.load("ptr", place)

    def word(block: Value, number: Value, default: int) -> Value:
        none = f.less(number, 0)
        known = f.load("i64", f.offset(block, f.select(none, _word(0), number), "i64"))
        return f.select(none, _word(default), known)

    dims = ((_word(0), k), (dim0, step0), (dim1, step1))
    counts = [word(sizes, dim, 1) for dim, _ in dims]
    strides = [word(steps, step, 0) for _, step in dims]
    with f.each(counts[0]) as a, f.each(counts[1]) as b, f.each(counts[2]) as c:
        offset = f.mul(a, strides[0])
        for index, stride in ((b, strides[1]), (c, strides[2])):
            offset = f.add(offset, f.mul(index, stride))
        f.call("ptr", f"{NAME}_access", f.offset(pointer, offset), size, kind, site)
    f.store(f.convert("inttoptr", _bare(f, pointer)[1], "ptr"), place)
    f.ret()
    return f


# Work.


def parallel() -> Function:
    """`parallel(function, context, n, grain)`: the parts that threads would share, one by one."""
    f = _function("void", "parallel", function="ptr", context="ptr", n="i64", grain="i64")
    function, context, n, grain = f.args
    own = _state(f)
    grain = f.select(f.less(grain, 1), _word(1), grain)
    depth = f.add(f.load("i64", own, at.DEPTH), 1)
    f.store(depth, own, at.DEPTH)
    level = f.offset(own, f.add(f.mul(depth, 16), at.LEVELS))
    f.store(f.add(f.load("i64", own, at.OWNER), 1), level)
    units = f.divide(f.sub(f.add(n, grain), 1), grain)
    with f.each(units) as i, f.when(f.same(f.load("i64", own, at.ERROR), 0), likely=True):
        owner = f.add(f.load("i64", own, at.OWNER), 1)
        f.store(owner, own, at.OWNER)
        f.store(owner, level, 8)
        low = f.mul(i, grain)
        end = f.add(low, grain)
        high = f.select(f.less(end, n), end, n)
        f.call("void", function, context, low, high)
    f.store(f.sub(depth, 1), own, at.DEPTH)
    f.ret()
    return f


def fullness() -> Function:
    """`fullness(state, record)`: report a byte that nobody wrote."""
    f = _function("void", "fullness", state="ptr", record="ptr")
    own, record = f.args
    total, number = f.load("i64", record, at.BYTES), f.load("i64", record, at.NUMBER)
    shadow = f.load("ptr", record, at.SHADOW)
    with f.each(total) as i, f.when(f.same(f.load("i32", shadow, i, "i32"), 0)):
        _report(f, own, at.UNFILLED, at.WRITE, number, 0, i, 1, total)
    f.ret()
    return f


def leave() -> Function:
    """`leave(mark, code, status)`: the end of an entry that began with `mark`; its result."""
    f = _function("i32", "leave", mark="i64", code="i32", status="ptr")
    first, code, status = f.args
    own = _state(f)
    top = f.load("i64", own, at.TOP)
    fine = f.both(f.same(code, 0), f.same(f.load("i64", own, at.ERROR), 0))
    with f.when(fine, likely=True), f.each(f.sub(top, first)) as i:
        record = _record(f, own, f.add(first, i))
        kept = f.unlike(f.load("ptr", record, at.SHADOW), NULL)
        filled = _is(f, f.load("i64", record, at.FLAGS), at.FILLED)
        with f.when(f.both(filled, kept)):
            f.call("void", f"{NAME}_fullness", own, record)
    f.call("void", f"{NAME}_release", first)
    f.store(_word(0), own, at.KERNEL)
    good = f.block("good")
    f.require(f.unlike(f.load("i64", own, at.ERROR), 0), good)
    for k in range(8):
        f.store(f.load("i64", own, at.ERROR + 8 * k), status, 8 * k)
    f.store(_word(0), own, at.ERROR)
    f.ret(Value("i32", str(SANITIZER_ERROR)))
    f.at(good)
    f.ret(code)
    return f


CHECKS: tuple[Callable[[], Function], ...] = (
    *(state, report, failed, kernel, array, part, mark, release, allocate, free, racing, judge),
    *(lambda: touch(1), lambda: touch(4), access, masked, gather, lend, lend_items),
    *(parallel, fullness, leave),
)
