"""A thread's state, and its records of arrays, as emitted code. See `layout` for what they keep."""

from __future__ import annotations

from ...codegen.llvm.builder import NULL, Block, Value, constant, symbol
from ...codegen.llvm.modules import Function
from ...codegen.target import Target
from . import layout as at

NAME = Target.SANITIZER
KEY = f"{NAME}_key"  # where the number is under which a thread's state is known to libc


def check_function(result: str, name: str, **params: str) -> Function:
    """One of the functions that checked code calls."""
    return Function(result, f"{NAME}_{name}", internal=False, **params)


def word(value: int) -> Value:
    """An i64 constant."""
    return constant("i64", value)


def own_state(f: Function) -> Value:
    """The state of the thread that runs."""
    return f.call("ptr", f"{NAME}_state")


def state() -> Function:
    """`state()`: this thread's, made when it is first asked for."""
    f = check_function("ptr", "state")
    key = f.load("i32", symbol(KEY))
    own = f.call("ptr", "pthread_getspecific", key)
    missing, ready = f.block("missing"), f.block("ready")
    f.branch(own.eq(NULL), missing, ready)
    f.at(ready)
    f.ret(own)
    f.at(missing)
    made = f.call("ptr", "calloc", 1, at.STATE_BYTES)
    for value, where in ((1, at.TOP), (at.MAX_RECORDS, at.HEAP), (1, at.OWNER)):
        f.store(word(value), made, where)
    for where in (at.LEVELS, at.LEVELS + 8):
        f.store(word(1), made, where)
    f.call("i32", "pthread_setspecific", key, made)
    f.ret(made)
    return f


def report() -> Function:
    """`report(state, kind, number, site, offset, size, bytes, detail)`: keep the first fault."""
    words = dict.fromkeys((*at.ERROR_WORDS[:-1],), "i64")
    f = check_function("void", "report", state="ptr", kind="i64", **words)
    own, kind, *rest = f.args
    with f.when(f.load("i64", own, at.ERROR).eq(0)):
        f.store(kind, own, at.ERROR)
        for k, value in enumerate([*rest, f.load("i64", own, at.KERNEL)]):
            f.store(value, own, at.ERROR + 8 * (k + 1))
    f.ret()
    return f


def tell(
    f: Function, own: Value, what: Value | int, access: Value | int, *words: Value | int
) -> None:
    """`access` is what was done; then come the words of a report."""
    if isinstance(access, int):
        access = f.literal("i64", access)
    kind = access * (1 << at.ACCESS_SHIFT) + what
    f.call("void", f"{NAME}_report", own, kind, *words, *[0] * (6 - len(words)))


def failed() -> Function:
    """`failed()`: whether this thread met a fault."""
    f = check_function("i64", "failed")
    f.ret(f.load("i64", own_state(f), at.ERROR))
    return f


def kernel() -> Function:
    """`kernel(number)`: which kernel begins."""
    f = check_function("void", "kernel", number="i64")
    f.store(f.args[0], own_state(f), at.KERNEL)
    f.ret()
    return f


# Records.


def record_of(f: Function, own: Value, number: Value) -> Value:
    """Where the record of that number is."""
    return f.offset(own, number * 64 + at.RECORDS)


def tagged(f: Function, address: Value, number: Value) -> Value:
    """The pointer to an address, for the array of that record."""
    tag = number << at.TAG_SHIFT
    return (address | tag).to("inttoptr", "ptr")


def bare(f: Function, pointer: Value) -> tuple[Value, Value]:
    """(the record's number, the address) of a pointer."""
    word = pointer.to("ptrtoint", "i64")
    return word >> at.TAG_SHIFT, word & (1 << at.TAG_SHIFT) - 1


def _fill(f: Function, record: Value, fields: dict[int, Value]) -> None:
    for where, value in fields.items():
        f.store(value, record, where)


def _shadow(f: Function, nbytes: Value) -> tuple[Value, Value]:
    """(memory for the shadow of so many bytes, bytes of a plane)."""
    plane = nbytes * 4 + 64
    return f.call("ptr", "calloc", 3, plane), plane


def _next_record(f: Function, own: Value, otherwise: Block) -> Value:
    top = f.load("i64", own, at.TOP)
    f.require(top < f.load("i64", own, at.HEAP), otherwise)
    f.store(top + 1, own, at.TOP)
    return top


def array() -> Function:
    """`array(pointer, low, bytes, number, flags)`: the pointer, now to an array: bytes from `low` on.

    When there are no records left, the pointer as it is: it will not be checked.
    """
    f = check_function(
        "ptr", "array", pointer="ptr", low="i64", bytes="i64", number="i64", flags="i64"
    )
    pointer, low, nbytes, number, flags = f.args
    own, full = own_state(f), f.block("full")
    top = _next_record(f, own, full)
    address = pointer.to("ptrtoint", "i64")
    record = record_of(f, own, top)
    fixed, free = f.block("fixed"), f.block("free")
    done = f.block("done", shadow="ptr", stride="i64")
    f.branch((flags & at.FIXED).ne(0), fixed, free, likely=True)
    f.at(fixed)
    f.jump(done, NULL, 0)
    f.at(free)
    f.jump(done, *_shadow(f, nbytes))
    shadow, stride = f.at(done)
    fields = {at.START: address + low, at.BYTES: nbytes, at.FLAGS: flags, at.NUMBER: number}
    fields |= {at.SHADOW: shadow, at.STRIDE: stride, at.OWNED: shadow}
    _fill(f, record, fields)
    f.ret(tagged(f, address, top))
    f.at(full)
    f.ret(pointer)
    return f


def part() -> Function:
    """`part(pointer, bytes, number, flags)`: a pointer to an array in the memory of another, here."""
    f = check_function("ptr", "part", pointer="ptr", bytes="i64", number="i64", flags="i64")
    pointer, nbytes, number, flags = f.args
    own, out = own_state(f), f.block("out")
    tag, address = bare(f, pointer)
    f.require(tag.ne(0), out)
    top = _next_record(f, own, out)
    whole, record = record_of(f, own, tag), record_of(f, own, top)
    cells = f.load("ptr", whole, at.SHADOW)
    offset, room = address - f.load("i64", whole, at.START), f.load("i64", whole, at.BYTES)
    inside = (offset >= 0) & (room - offset >= nbytes)
    with f.when(inside.eq(constant("i1", False))):
        tell(f, own, at.OUT_OF_BOUNDS, at.READ, number, 0, offset, nbytes, room)
    cells = f.select(cells.eq(NULL), NULL, f.offset(cells, offset * 4))
    size = f.select(inside, nbytes, word(0))  # of one that is not, all is out of bounds
    fields = {at.START: address, at.BYTES: size, at.FLAGS: flags, at.NUMBER: number}
    fields |= {at.SHADOW: cells, at.STRIDE: f.load("i64", whole, at.STRIDE), at.OWNED: NULL}
    _fill(f, record, fields)
    f.ret(tagged(f, address, top))
    f.at(out)
    f.ret(pointer)
    return f


def mark() -> Function:
    """`mark()`: what `release` wants to know."""
    f = check_function("i64", "mark")
    f.ret(f.load("i64", own_state(f), at.TOP))
    return f


def release() -> Function:
    """`release(mark)`: forget the arrays that were made since."""
    f = check_function("void", "release", mark="i64")
    own = own_state(f)
    top = f.load("i64", own, at.TOP)
    with f.each(top - f.args[0]) as i:
        f.call("void", "free", f.load("ptr", record_of(f, own, f.args[0] + i), at.OWNED))
    f.store(f.args[0], own, at.TOP)
    f.ret()
    return f


def allocate() -> Function:
    """`malloc(bytes)`: memory that lives until it is freed."""
    f = check_function("ptr", "malloc", bytes="i64")
    (nbytes,) = f.args
    own, out = own_state(f), f.block("out")
    pointer = f.call("ptr", "malloc", nbytes)
    f.require(pointer.ne(NULL), out)
    reused, fresh = f.block("reused"), f.block("fresh")
    made = f.block("made", number="i64")
    free = f.load("i64", own, at.FREE)
    f.branch(free.ne(0), reused, fresh, likely=True)
    f.at(reused)
    f.store(f.load("i64", record_of(f, own, free), at.LINK), own, at.FREE)
    f.jump(made, free)
    f.at(fresh)
    heap = f.load("i64", own, at.HEAP) - 1
    f.require(f.load("i64", own, at.TOP) < heap, out)
    f.store(heap, own, at.HEAP)
    f.jump(made, heap)
    (number,) = f.at(made)
    address = pointer.to("ptrtoint", "i64")
    shadow, stride = _shadow(f, nbytes)
    fields = {at.START: address, at.BYTES: nbytes, at.FLAGS: word(0), at.NUMBER: word(-1)}
    fields |= {at.SHADOW: shadow, at.STRIDE: stride, at.OWNED: shadow}
    _fill(f, record_of(f, own, number), fields)
    f.ret(tagged(f, address, number))
    f.at(out)
    f.ret(pointer)
    return f


def free() -> Function:
    """`free(pointer)`: of what `malloc` has given."""
    f = check_function("void", "free", pointer="ptr")
    own = own_state(f)
    tag, address = bare(f, f.args[0])
    with f.when(tag.ne(0)):
        record = record_of(f, own, tag)
        f.call("void", "free", f.load("ptr", record, at.OWNED))
        f.store(NULL, record, at.SHADOW)
        f.store(word(0), record, at.BYTES)  # whoever comes late is out of bounds
        f.store(f.load("i64", own, at.FREE), record, at.LINK)
        f.store(tag, own, at.FREE)
    f.call("void", "free", address.to("inttoptr", "ptr"))
    f.ret()
    return f
