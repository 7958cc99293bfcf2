"""The LLVM code of the recycling allocator: NumPy's four memory functions over a table of blocks.

    page with the header | data, 2 MiB-aligned ... | end

The header holds the capacity, 64 bytes before the data. `slots` are the blocks that wait for an
array, `kept` the bytes in them; both change under `mutex` only. Nobody waits for it: who does not get
it asks the system for memory, or gives memory back to it. So it can be held by a thread that waits for
the GIL, or by one that a forked child does not have. No system call runs with the lock held.
"""

from __future__ import annotations

from ...codegen.llvm.builder import NULL, Value, constant
from ...codegen.llvm.modules import Defined, Function, Variable, module_ir

SLOTS = 64  # blocks that may wait at the same time
_SLOT = "{ i64, ptr, i64 }"  # a block's capacity (0: empty), its data, its age
_DATA, _AGE, _SLOT_BYTES = 8, 16, 24
_SLOTS = Variable("slots", f"[{SLOTS} x {_SLOT}]", align=64)
_MUTEX = Variable("mutex", "i32", align=64)
_CLOCK = Variable("clock", "i64")
_KEPT = Variable("kept", "i64", internal=False, align=64)  # bytes in the table
_LIMIT, _REUSED, _MAPPED = (
    Variable(name, "i64", internal=False) for name in ("limit", "reused", "mapped")
)
_VARIABLES = (_SLOTS, _MUTEX, _CLOCK, _KEPT, _LIMIT, _REUSED, _MAPPED)

_PAGE, _SMALL, _HUGE = 1 << 12, 1 << 16, 1 << 21
_HEADER = -64
_READ_WRITE, _PRIVATE_ANONYMOUS, _HUGE_PAGES = (constant("i32", flag) for flag in (3, 34, 14))

_TRY_LOCK = Defined("try_lock", (), "i1")
_UNLOCK = Defined("unlock", ())
_ROUND_UP = Defined("round_up", ("i64",), "i64")
_UNMAP = Defined("unmap", ("ptr", "i64"))
_MAP = Defined("map", ("i64",), "ptr")
_MAKE_ROOM = Defined("make_room", ("i64", "i1"), "i1")
_TRIM = Defined("trim", ("i64",))
_MALLOC = Defined("recycling_malloc", ("ptr", "i64"), "ptr")
_FREE = Defined("recycling_free", ("ptr", "ptr", "i64"))


def _try_lock() -> Function:
    f = Function("i1", _TRY_LOCK.name, internal=True)
    free, taken = constant("i32", 0), constant("i32", 1)
    f.ret(f.swap_atomic(_MUTEX.address, free, taken, "acquire monotonic")[1])
    return f


def _unlock() -> Function:
    f = Function("void", _UNLOCK.name, internal=True)
    f.store_atomic(constant("i32", 0), _MUTEX.address, "release")
    f.ret()
    return f


def _forked() -> Function:
    """In the child after fork(): a table that another thread was changing is forgotten, with its
    blocks."""
    f = Function("void", "forked")
    with f.when(f.load("i32", _MUTEX.address).ne(0)):
        f.fill(_SLOTS.address, 0, SLOTS * _SLOT_BYTES)
        f.store(constant("i64", 0), _KEPT.address)
        f.run(_UNLOCK)
    f.ret()
    return f


def _round_up() -> Function:
    """Sizes that are worth sharing: multiples of 2 MiB, below that of 64 KiB. 0: there is none."""
    f = Function("i64", _ROUND_UP.name, internal=True, size="i64")
    unit = f.select(f.size.uge(_HUGE), f.literal("i64", _HUGE), _SMALL)
    rounded = f.size + (unit - 1) & 0 - unit
    rounded = f.select(f.size.eq(0), f.literal("i64", _SMALL), rounded)
    f.ret(f.select(f.size.ult((1 << 63) - 2 * _HUGE), rounded, 0))
    return f


def _capacity(f: Function, data: Value) -> Value:
    return f.load("i64", data, _HEADER)


def _slot(f: Function, number: Value) -> Value:
    return f.offset(_SLOTS.address, number, _SLOT)


def _add_to(f: Function, counter: Variable, by: Value | int) -> Value:
    total = f.load("i64", counter.address) + by
    f.store(total, counter.address)
    return total


def _unmap() -> Function:
    f = Function("void", _UNMAP.name, internal=True, data="ptr", capacity="i64")
    f.call("i32", "munmap", f.offset(f.data, -_PAGE), f.capacity + _PAGE)
    f.ret()
    return f


def _map() -> Function:
    """A new block: header page, then data aligned to 2 MiB. Null if the system has no memory."""
    f = Function("ptr", _MAP.name, internal=True, capacity="i64")
    none = f.later("none")
    room = f.capacity + (_PAGE + _HUGE)
    nowhere = constant("i32", -1)
    base = f.call("ptr", "mmap", NULL, room, _READ_WRITE, _PRIVATE_ANONYMOUS, nowhere, 0)
    start = base.to("ptrtoint", "i64")
    align = f.later("align")
    f.branch(start.eq(-1), none, align)
    f.at(none)
    f.ret(NULL)
    f.at(align)
    aligned = start + _PAGE + (_HUGE - 1) & -_HUGE
    before = aligned - _PAGE - start
    with f.when(before.ne(0)):
        f.call("i32", "munmap", base, before)
    end = aligned + f.capacity
    after = start + room - end
    with f.when(after.ne(0)):
        f.call("i32", "munmap", end.to("inttoptr", "ptr"), after)
    data = aligned.to("inttoptr", "ptr")
    f.call("i32", "madvise", data, f.capacity, _HUGE_PAGES)
    f.store(f.capacity, data, _HEADER)
    f.update_atomic("add", _MAPPED.address, constant("i64", 1), "monotonic")
    f.ret(data)
    return f


def _make_room() -> Function:
    """Drop the oldest blocks until at most `target` bytes are kept, and a slot is empty if one is
    needed. The lock is held on entry, and on return if the result says so; not while memory is given
    back."""
    f = Function("i1", _MAKE_ROOM.name, internal=True, target="i64", needs_slot="i1")
    again, evict, lost, out = (f.later(hint) for hint in ("again", "evict", "lost", "out"))
    f.jump(again)
    f.at(again)
    no, none = constant("i1", False), constant("i64", -1)
    with f.loop(i=0, oldest=none, oldest_age=none, has_hole=no) as scan:
        slot = _slot(f, scan.i)
        is_empty = f.load("i64", slot).eq(0)
        age = f.load("i64", slot, _AGE)
        is_older = (is_empty ^ True) & age.ult(scan.oldest_age)
        oldest = f.select(is_older, scan.i, scan.oldest)
        oldest_age = f.select(is_older, age, scan.oldest_age)
        has_hole = scan.has_hole | is_empty
        i = scan.i + 1
        scan.repeat(i.ult(SLOTS), i, oldest, oldest_age, has_hole)
    kept = f.load("i64", _KEPT.address)
    is_too_much = kept.ugt(f.target) | f.needs_slot & (has_hole ^ True)
    f.branch(is_too_much & oldest.ne(-1), evict, out)
    f.at(evict)
    slot = _slot(f, oldest)
    capacity, data = f.load("i64", slot), f.load("ptr", slot, _DATA)
    f.store(constant("i64", 0), slot)
    f.store(kept - capacity, _KEPT.address)
    f.run(_UNLOCK)
    f.run(_UNMAP, data, capacity)
    f.branch(f.run(_TRY_LOCK), again, lost)
    f.at(lost)
    f.ret(no)
    f.at(out)
    f.ret(constant("i1", True))
    return f


def _trim() -> Function:
    """Drop blocks until at most `target` bytes are kept."""
    f = Function("void", _TRIM.name, target="i64")
    drop, done, out = (f.later(hint) for hint in ("drop", "done", "out"))
    f.branch(f.run(_TRY_LOCK), drop, out)
    f.at(drop)
    f.branch(f.run(_MAKE_ROOM, f.target, False), done, out)
    f.at(done)
    f.run(_UNLOCK)
    f.jump(out)
    f.at(out)
    f.ret()
    return f


def _malloc() -> Function:
    f = Function("ptr", _MALLOC.name, ctx="ptr", size="i64")
    none, search, scanning, take, miss, map, squeeze, ok = (
        f.later(hint) for hint in ("none", "search", "scan", "take", "miss", "map", "squeeze", "ok")
    )
    wanted = f.run(_ROUND_UP, f.size)
    f.branch(wanted.eq(0), none, search)
    f.at(none)
    f.ret(NULL)
    f.at(search)
    most = wanted + (wanted >> 3)
    f.branch(f.run(_TRY_LOCK), scanning, map)

    f.at(scanning)  # the smallest that fits; of equals the newest
    none_yet = constant("i64", -1)
    with f.loop(i=0, best=none_yet, best_size=none_yet, best_age=0) as scan:
        slot = _slot(f, scan.i)
        capacity, age = f.load("i64", slot), f.load("i64", slot, _AGE)
        fits = capacity.uge(wanted) & capacity.ule(most)
        is_smaller = capacity.ult(scan.best_size)
        is_newer = capacity.eq(scan.best_size) & age.ugt(scan.best_age)
        is_better = fits & (is_smaller | is_newer)
        best = f.select(is_better, scan.i, scan.best)
        best_size = f.select(is_better, capacity, scan.best_size)
        best_age = f.select(is_better, age, scan.best_age)
        i = scan.i + 1
        scan.repeat(i.ult(SLOTS), i, best, best_size, best_age)
    f.branch(best.ne(-1), take, miss)

    f.at(take)
    slot = _slot(f, best)
    data = f.load("ptr", slot, _DATA)
    f.store(constant("i64", 0), slot)
    f.store(f.load("i64", _KEPT.address) - best_size, _KEPT.address)
    _add_to(f, _REUSED, 1)
    f.run(_UNLOCK)
    f.ret(data)
    f.at(miss)
    f.run(_UNLOCK)
    f.jump(map)
    f.at(map)
    fresh = f.run(_MAP, wanted)
    f.branch(fresh.eq(NULL), squeeze, ok)
    f.at(squeeze)  # what we keep may be what the system lacks
    f.run(_TRIM, 0)
    f.ret(f.run(_MAP, wanted))
    f.at(ok)
    f.ret(fresh)
    return f


def _free() -> Function:
    f = Function("void", _FREE.name, ctx="ptr", data="ptr", size="i64")
    look, drop, ask, keep, scanning, out = (
        f.later(hint) for hint in ("look", "drop", "ask", "keep", "scan", "out")
    )
    f.branch(f.data.eq(NULL), out, look)
    f.at(look)
    capacity, limit = _capacity(f, f.data), f.load("i64", _LIMIT.address)
    f.branch(capacity.ugt(limit), drop, ask)
    f.at(drop)
    f.run(_UNMAP, f.data, capacity)
    f.jump(out)
    f.at(ask)
    f.branch(f.run(_TRY_LOCK), keep, drop)
    f.at(keep)
    f.branch(f.run(_MAKE_ROOM, limit - capacity, True), scanning, drop)
    f.at(scanning)
    with f.loop(i=0) as scan:  # make_room left an empty slot
        slot = _slot(f, scan.i)
        scan.going(f.load("i64", slot).ne(0))
        scan.next(scan.i + 1)
    tick = _add_to(f, _CLOCK, 1)
    f.store(capacity, slot)
    f.store(f.data, slot, _DATA)
    f.store(tick, slot, _AGE)
    _add_to(f, _KEPT, capacity)
    f.run(_UNLOCK)
    f.jump(out)
    f.at(out)
    f.ret()
    return f


def _calloc() -> Function:
    f = Function("ptr", "recycling_calloc", ctx="ptr", count="i64", item="i64")
    allocate, clear, none = (f.later(hint) for hint in ("allocate", "clear", "none"))
    product = f.call("{ i64, i1 }", "llvm.umul.with.overflow.i64", f.count, f.item)
    size = f.field(product, 0)
    f.branch(f.field(product, 1), none, allocate)
    f.at(allocate)
    data = f.run(_MALLOC, f.ctx, size)
    f.branch(data.eq(NULL), none, clear)
    f.at(clear)
    f.fill(data, 0, size)
    f.ret(data)
    f.at(none)
    f.ret(NULL)
    return f


def _realloc() -> Function:
    f = Function("ptr", "recycling_realloc", ctx="ptr", data="ptr", size="i64")
    fresh, look, same, move, none, copy = (
        f.later(hint) for hint in ("fresh", "look", "same", "move", "none", "copy")
    )
    f.branch(f.data.eq(NULL), fresh, look)
    f.at(fresh)
    f.ret(f.run(_MALLOC, f.ctx, f.size))
    f.at(look)
    capacity = _capacity(f, f.data)
    wanted = f.run(_ROUND_UP, f.size)
    f.branch(f.size.ule(capacity) & wanted.uge(capacity >> 1), same, move)
    f.at(same)
    f.ret(f.data)
    f.at(move)
    other = f.run(_MALLOC, f.ctx, f.size)
    f.branch(other.eq(NULL), none, copy)
    f.at(none)
    f.ret(NULL)
    f.at(copy)
    f.copy(other, f.data, f.intrinsic("umin", "i64", capacity, f.size))
    f.run(_FREE, f.ctx, f.data, capacity)
    f.ret(other)
    return f


def recycling_ir() -> str:
    """The module's text."""
    makers = (
        *(_try_lock, _unlock, _forked, _round_up, _unmap, _map, _make_room, _trim),
        *(_malloc, _free, _calloc, _realloc),
    )
    return module_ir([make() for make in makers], variables=_VARIABLES)
