"""The work that is checked: its parts, what other libraries do of it, and its end, as emitted code."""

from __future__ import annotations

from ...codegen.llvm.builder import NULL, Value, constant
from ...codegen.llvm.modules import Function
from ...codegen.module import SANITIZER_ERROR
from . import layout as at
from .accesses import has
from .records import NAME, bare, check_function, own_state, record_of, tell, word

# What other libraries are given: addresses.


def lend() -> Function:
    """`lend(words, k, size, kind, site)`: the k-th pointer of a block, all of which is accessed."""
    f = check_function("void", "lend", words="ptr", k="i64", size="i64", kind="i64", site="i64")
    words, k, size, kind, site = f.args
    _, address = bare(f, words)
    slot = f.offset(address.to("inttoptr", "ptr"), k, "ptr")
    f.store(f.call("ptr", f"{NAME}_checked", f.load("ptr", slot), size, kind, site), slot)
    f.ret()
    return f


def lend_items() -> Function:
    """`lend_items(words, k, sizes, steps, size, dim0, step0, dim1, step1, kind, site)`: the k-th
    pointer, as a loop of a ufunc goes through it: items, and in each up to two dims; -1 for none."""
    names = ("size", "dim0", "step0", "dim1", "step1", "kind", "site")
    f = check_function(
        "void", "lend_items", words="ptr", k="i64", sizes="ptr", steps="ptr",
        **dict.fromkeys(names, "i64"),
    )  # fmt: skip
    words, k, sizes, steps, size, dim0, step0, dim1, step1, kind, site = f.args
    words, sizes, steps = (bare(f, p)[1].to("inttoptr", "ptr") for p in (words, sizes, steps))
    slot = f.offset(words, k, "ptr")
    pointer = f.load("ptr", slot)

    def item(block: Value, number: Value, default: int) -> Value:
        none = f.compare("slt", number, 0)
        lent = f.load("i64", f.offset(block, f.select(none, word(0), number), "i64"))
        return f.select(none, word(default), lent)

    dims = ((word(0), k), (dim0, step0), (dim1, step1))
    counts = [item(sizes, dim, 1) for dim, _ in dims]
    strides = [item(steps, step, 0) for _, step in dims]
    with f.each(counts[0]) as a, f.each(counts[1]) as b, f.each(counts[2]) as c:
        offset = a * strides[0]
        for index, stride in ((b, strides[1]), (c, strides[2])):
            offset = offset + index * stride
        f.call("ptr", f"{NAME}_checked", f.offset(pointer, offset), size, kind, site)
    f.store(bare(f, pointer)[1].to("inttoptr", "ptr"), slot)
    f.ret()
    return f


def parallel() -> Function:
    """`parallel(function, context, n, grain)`: the parts that threads would share, one by one."""
    f = check_function("void", "parallel", function="ptr", context="ptr", n="i64", grain="i64")
    function, context, n, grain = f.args
    own = own_state(f)
    grain = f.select(grain < 1, word(1), grain)
    depth = f.load("i64", own, at.DEPTH) + 1
    f.store(depth, own, at.DEPTH)
    level = f.offset(own, depth * 16 + at.LEVELS)
    f.store(f.load("i64", own, at.OWNER) + 1, level)
    units = (n + grain - 1) // grain
    with f.each(units) as i, f.when(f.load("i64", own, at.ERROR).eq(0), likely=True):
        owner = f.load("i64", own, at.OWNER) + 1
        f.store(owner, own, at.OWNER)
        f.store(owner, level, 8)
        low = i * grain
        end = low + grain
        high = f.select(end < n, end, n)
        f.call("void", function, context, low, high)
        f.call("void", f"{NAME}_settle", own)
    f.store(depth - 1, own, at.DEPTH)
    f.ret()
    return f


def fullness() -> Function:
    """`fullness(state, record)`: report a byte that nobody wrote."""
    f = check_function("void", "fullness", state="ptr", record="ptr")
    own, record = f.args
    total, number = f.load("i64", record, at.BYTES), f.load("i64", record, at.NUMBER)
    shadow = f.load("ptr", record, at.SHADOW)
    with f.each(total) as i, f.when(f.load("i32", shadow, i, "i32").eq(0)):
        tell(f, own, at.UNFILLED, at.WRITE, number, 0, i, 1, total)
    f.ret()
    return f


def leave() -> Function:
    """`leave(mark, code, status)`: the end of an entry that began with `mark`; its result."""
    f = check_function("i32", "leave", mark="i64", code="i32", status="ptr")
    first, code, status = f.args
    own = own_state(f)
    f.call("void", f"{NAME}_settle", own)
    top = f.load("i64", own, at.TOP)
    fine = code.eq(0) & f.load("i64", own, at.ERROR).eq(0)
    with f.when(fine, likely=True), f.each(top - first) as i:
        record = record_of(f, own, first + i)
        has_shadow = f.load("ptr", record, at.SHADOW).ne(NULL)
        filled = has(f, f.load("i64", record, at.FLAGS), at.FILLED)
        with f.when(filled & has_shadow):
            f.call("void", f"{NAME}_fullness", own, record)
    f.call("void", f"{NAME}_release", first)
    f.store(word(0), own, at.KERNEL)
    good = f.block("good")
    f.require(f.load("i64", own, at.ERROR).ne(0), good)
    for k in range(8):
        f.store(f.load("i64", own, at.ERROR + 8 * k), status, 8 * k)
    f.store(word(0), own, at.ERROR)
    f.ret(constant("i32", SANITIZER_ERROR))
    f.at(good)
    f.ret(code)
    return f
