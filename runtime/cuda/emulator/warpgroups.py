"""Products by warpgroups (`codegen/cuda/wgmma.py`), as emitted code.

A product reads shared memory when it is waited for and not before (in an eager launch: at once), and its
sums are nowhere until then: what the instruction gives are *tokens*, not numbers, which name a place
where sums come about. They go through the products that add to them, and become numbers in a wait for
the group of the last one. Each thread has such places, and the products that it has begun, apart.

The four warps of a group must come by the same instructions: the first to do one notes it down.
"""

from __future__ import annotations

from ....codegen.cuda import wgmma
from ...function_ir import Function, Value
from . import layout as at
from .access import I32, job_load, multiply, raise_error, word
from .boxes import swizzle
from .layout import JOB
from .mbarriers import refuse_unless

I64 = "i64"
ELEMENTS = ("bf16", "f16", "tf32")
_MOST = 128  # accumulators of a thread in one product
_MOST_K = 16
# What a thread has: the operands at hand, sums, how many products each of them waits for, products.
EXCHANGE, SUMS = 0, 4 * _MOST
SLOTS = 4
_UNDER_WAY = SUMS + 4 * _MOST * SLOTS
_PRODUCTS = _UNDER_WAY + 64
PRODUCTS = 64
_PRODUCT = 32  # two descriptors, form, slot, group, site
THREAD_BYTES = _PRODUCTS + PRODUCTS * _PRODUCT
_TOKEN = 0xFF920000  # a signalling NaN: whatever computes with it makes another number of it
# What a warpgroup has done: a ring of two words that name an instruction, its number, how many threads.
STEPS, STEP_BYTES = 256, 32
GROUPS = at.MAX_THREADS // 128


def form_number(form: wgmma.Form) -> int:
    """A product's form in one word."""
    turned = form.a_turned | form.b_turned << 1
    return form.n | ELEMENTS.index(form.element) << 12 | turned << 16


def _own(f: Function, job: Value, thread: Value) -> Value:
    linear = f.convert("zext", f.load(I32, thread, at.LINEAR), I64)
    return f.offset(f.load("ptr", job, JOB["sums"]), multiply(f, linear, THREAD_BYTES))


def _token(f: Function, slot: Value, number: Value) -> Value:
    high = f.op(I32, f"shl i32 {slot.text}, 8")
    return f.either(f.either(high, f.convert("trunc", number, I32)), _TOKEN - (1 << 32))


def _is_token(f: Function, bits: Value) -> Value:
    return f.same(f.op(I32, f"lshr i32 {bits.text}, 16"), _TOKEN >> 16)


def _slot(f: Function, own: Value, slot: Value) -> Value:
    wide = f.convert("zext", slot, I64)
    return f.offset(own, f.add(multiply(f, wide, 4 * _MOST), SUMS))


def _under_way(f: Function, own: Value, slot: Value) -> Value:
    wide = f.convert("zext", slot, I64)
    return f.offset(own, f.add(multiply(f, wide, 4), _UNDER_WAY))


def exchange() -> Function:
    """`exchange(thread)`: where accumulators are handed over."""
    f = Function("ptr", "emu_exchange", thread="ptr")
    (thread,) = f.args
    f.ret(_own(f, f.load("ptr", thread, at.THREAD_JOB), thread))
    return f


def in_step() -> Function:
    """`in_step(thread, first, second, site)`: this instruction is what the others of the group did."""
    f = Function("void", "emu_in_step", thread="ptr", first=I64, second=I64, site=I32)
    thread, first, second, site = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    number = f.load(I32, thread, at.SEQUENCE)
    f.store(f.add(number, 1), thread, at.SEQUENCE)
    linear = f.convert("zext", f.load(I32, thread, at.LINEAR), I64)
    group = f.op(I64, f"lshr i64 {linear.text}, 7")
    ring = f.convert("zext", f.both(number, STEPS - 1), I64)
    index = f.add(multiply(f, group, STEPS), ring)
    entry = f.offset(f.load("ptr", job, JOB["group_steps"]), multiply(f, index, STEP_BYTES))
    count = f.load(I32, entry, 20)
    with f.when(f.same(count, 0)):
        for value, where in ((first, 0), (second, 8), (number, 16)):
            f.store(value, entry, where)
    same = f.both(f.same(f.load(I64, entry), first), f.same(f.load(I64, entry, 8), second))
    same = f.both(same, f.same(f.load(I32, entry, 16), number))
    refuse_unless(f, same, thread, site, at.DIVERGED_GROUP)
    count = f.add(count, 1)
    f.store(f.select(f.same(count, 128), word(0), count), entry, 20)
    f.ret()
    return f


def steps_are_left() -> Function:
    """`steps_are_left(job)`: an error if warps of a group did not come by what others of it did."""
    f = Function("void", "emu_steps_are_left", internal=True, job="ptr")
    (job,) = f.args
    with f.each(STEPS * GROUPS) as k:
        entry = f.offset(f.load("ptr", job, JOB["group_steps"]), multiply(f, k, STEP_BYTES))
        with f.when(f.unlike(f.load(I32, entry, 20), 0)):
            raise_error(f, f.load("ptr", job, JOB["threads"]), at.DIVERGED_GROUP)
            f.ret()
            f.at(f.block("unused"))
    f.ret()
    return f


def fence() -> Function:
    """`group_fence(thread, site)`: registers may be used by the products that follow."""
    f = Function("void", "emu_group_fence", thread="ptr", site=I32)
    thread, site = f.args
    zero, kind = Value(I64, "0"), Value(I64, "1")
    f.call("void", "emu_in_step", thread, zero, kind, site)
    f.store(word(1), thread, at.FENCED)
    f.ret()
    return f


def commit() -> Function:
    """`group_commit(thread, site)`: the products since the last time are a group."""
    f = Function("void", "emu_group_commit", thread="ptr", site=I32)
    thread, site = f.args
    zero, kind = Value(I64, "0"), Value(I64, "2")
    f.call("void", "emu_in_step", thread, zero, kind, site)
    f.store(f.add(f.load(I32, thread, at.PRODUCT_GROUPS), 1), thread, at.PRODUCT_GROUPS)
    f.ret()
    return f


def product() -> Function:
    """`product(thread, a, b, form, site)`: begin a product; the accumulators become tokens."""
    f = Function("void", "emu_product", thread="ptr", a=I64, b=I64, form=I32, site=I32)
    thread, a, b, form, site = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    fenced = f.unlike(f.load(I32, thread, at.FENCED), 0)
    refuse_unless(f, fenced, thread, site, at.UNFENCED_PRODUCT)
    for one in (a, b):
        f.call("void", "emu_in_step", thread, one, f.convert("zext", form, I64), site)
        known = f.both(one, ~0x3FFF_3FFF_3FC7)  # lines of an atom are not begun in its middle
        good = f.same(known, Value(I64, str(wgmma.SWIZZLED)))
        refuse_unless(f, good, thread, site, at.BAD_DESCRIPTOR)
    own = _own(f, job, thread)
    count = f.convert("zext", f.op(I32, f"lshr i32 {f.both(form, 0xFFF).text}, 1"), I64)
    first = f.load(I32, own)
    going_on = _is_token(f, first)
    old_slot = f.both(f.op(I32, f"lshr i32 {first.text}, 8"), SLOTS - 1)
    new_slot = f.both(f.load(I32, thread, at.NEXT_SUMS), SLOTS - 1)
    slot = f.select(going_on, old_slot, new_slot)
    waiting = _under_way(f, own, slot)
    free = f.either(going_on, f.same(f.load(I32, waiting), 0))
    refuse_unless(f, free, thread, site, at.TOO_MANY_PRODUCTS)
    with f.when(f.op("i1", f"xor i1 {going_on.text}, true")):
        f.store(f.add(new_slot, 1), thread, at.NEXT_SUMS)
    sums = _slot(f, own, slot)
    with f.each(count) as k:
        bits, token = f.load(I32, own, k, I32), _token(f, slot, k)
        mine = f.select(going_on, f.same(bits, token), f.same(_is_token(f, bits), Value("i1", "0")))
        refuse_unless(f, mine, thread, site, at.TOUCHED_SUMS)
        start = f.select(going_on, f.load(I32, sums, k, I32), bits)
        f.store(start, sums, k, I32)
        f.store(token, own, k, I32)
    f.store(f.add(f.load(I32, waiting), 1), waiting)
    tail, head = f.load(I32, thread, at.PRODUCTS_TAIL), f.load(I32, thread, at.PRODUCTS_HEAD)
    room = f.compare("ult", f.sub(tail, head), PRODUCTS)
    refuse_unless(f, room, thread, site, at.TOO_MANY_PRODUCTS)
    entry = _entry(f, own, tail)
    group = f.load(I32, thread, at.PRODUCT_GROUPS)
    for value, where in ((a, 0), (b, 8), (form, 16), (slot, 20), (group, 24), (site, 28)):
        f.store(value, entry, where)
    f.store(f.add(tail, 1), thread, at.PRODUCTS_TAIL)
    with f.when(f.unlike(job_load(f, job, "eager"), 0)):
        f.call("void", "emu_multiply", thread, entry)
        f.store(word(-1), entry, 16)  # its sums are to be had after the wait all the same
    f.ret()
    return f


def _entry(f: Function, own: Value, number: Value) -> Value:
    ring = f.convert("zext", f.both(number, PRODUCTS - 1), I64)
    return f.offset(own, f.add(multiply(f, ring, _PRODUCT), _PRODUCTS))


def wait() -> Function:
    """`product_wait(thread, groups, count, site)`: all groups but the last so many are done, and
    tokens of theirs become sums."""
    f = Function("void", "emu_product_wait", thread="ptr", groups=I32, count=I32, site=I32)
    thread, groups, count, site = f.args
    zero = Value(I64, "0")
    kind = f.add(f.convert("zext", groups, I64), 16)
    f.call("void", "emu_in_step", thread, zero, kind, site)
    job = f.load("ptr", thread, at.THREAD_JOB)
    own = _own(f, job, thread)
    limit = f.sub(f.load(I32, thread, at.PRODUCT_GROUPS), groups)
    tail = f.load(I32, thread, at.PRODUCTS_TAIL)
    loop, look, go, stop = (
        f.block("loop", head=I32),
        f.block("look"),
        f.block("go"),
        f.block("stop"),
    )
    f.jump(loop, f.load(I32, thread, at.PRODUCTS_HEAD))
    (head,) = f.at(loop)
    f.branch(f.unlike(head, tail), look, stop)
    f.at(look)
    entry = _entry(f, own, head)
    f.branch(f.less(f.load(I32, entry, 24), limit), go, stop)
    f.at(go)
    with f.when(f.unlike(f.load(I32, entry, 16), -1)):
        f.call("void", "emu_multiply", thread, entry)
    waiting = _under_way(f, own, f.load(I32, entry, 20))
    f.store(f.sub(f.load(I32, waiting), 1), waiting)
    f.jump(loop, f.add(head, 1))
    f.at(stop)
    f.store(head, thread, at.PRODUCTS_HEAD)
    with f.each(f.convert("zext", count, I64)) as k:
        bits = f.load(I32, own, k, I32)
        slot = f.both(f.op(I32, f"lshr i32 {bits.text}, 8"), SLOTS - 1)
        done = f.same(f.load(I32, _under_way(f, own, slot)), 0)
        number = f.convert("zext", f.both(bits, 0xFF), I64)
        value = f.load(I32, _slot(f, own, slot), number, I32)
        done = f.both(_is_token(f, bits), done)
        f.store(f.select(done, value, bits), own, k, I32)
    f.store(word(0), thread, at.FENCED)
    f.ret()
    return f


def _field(f: Function, descriptor: Value, shift: int) -> Value:
    """A field in bytes."""
    moved = f.op(I64, f"lshr i64 {descriptor.text}, {shift}") if shift else descriptor
    return f.op(I64, f"shl i64 {f.both(moved, 0x3FFF).text}, 4")


class _Operand:
    """An operand as its descriptor says."""

    def __init__(self, f: Function, descriptor: Value, turned: Value) -> None:
        self.f, self.turned = f, turned
        self.start = _field(f, descriptor, 0)
        self.leading, self.stride = _field(f, descriptor, 16), _field(f, descriptor, 32)

    def place(self, row: Value, k: Value, item: Value) -> Value:
        """Where in the window an element is."""
        f = self.f
        low_row, low_k = f.both(row, 7), f.both(k, 7)
        high_row = f.op(I64, f"lshr i64 {row.text}, 3")
        high_k = f.op(I64, f"lshr i64 {k.text}, 3")
        along = f.add(f.mul(low_row, wgmma.LINE), f.mul(high_row, self.stride))
        along = f.add(along, f.mul(k, item))
        across = f.add(f.mul(f.both(row, 63), 2), f.mul(low_k, wgmma.LINE))
        across = f.add(across, f.mul(high_k, self.stride))
        next_rows = f.op(I64, f"lshr i64 {row.text}, 6")
        across = f.add(across, f.mul(next_rows, self.leading))
        return swizzle(f, f.add(self.start, f.select(self.turned, across, along)))


def _number(f: Function, job: Value, place: Value, element: Value) -> Value:
    """An element as a float."""
    window = f.load("ptr", job, JOB["window"])
    kinds = [f.block(name) for name in ELEMENTS]
    done = f.block("number", value="float")
    f.switch(element, kinds[0], {1: kinds[1], 2: kinds[2]})
    f.at(kinds[0])
    bits = f.convert("zext", f.load("i16", window, place), I32)
    bits = f.op(I32, f"shl i32 {bits.text}, 16")
    f.jump(done, f.convert("bitcast", bits, "float"))
    f.at(kinds[1])
    f.jump(done, f.convert("fpext", f.load("half", window, place), "float"))
    f.at(kinds[2])
    bits = f.both(f.load(I32, window, place), -0x2000)
    f.jump(done, f.convert("bitcast", bits, "float"))
    (value,) = f.at(done)
    return value


def multiply_now() -> Function:
    """`multiply(thread, product)`: this thread's sums of a product. They go in the order of k, each
    step rounded once; a GPU's own order is not known."""
    f = Function("void", "emu_multiply", thread="ptr", product="ptr")
    thread, entry = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    left = f.alloca("float", 2 * _MOST_K)
    right = f.alloca("float", _MOST_K)
    form = f.load(I32, entry, 16)
    element = f.both(f.op(I32, f"lshr i32 {form.text}, 12"), 15)
    wide = f.same(element, 2)
    item = f.select(wide, Value(I64, "4"), Value(I64, "2"))
    depth = f.select(wide, Value(I64, "8"), Value(I64, "16"))
    a, b = (
        _Operand(f, f.load(I64, entry, 8 * side), f.unlike(f.both(form, 1 << 16 + side), 0))
        for side in range(2)
    )
    lane = f.convert("zext", f.load(I32, thread, at.LANE), I64)
    warp = f.both(f.convert("zext", f.load(I32, thread, at.WARP), I64), 3)
    g, t = f.op(I64, f"lshr i64 {lane.text}, 2"), f.both(lane, 3)
    first_row = f.add(multiply(f, warp, 16), g)
    used = job_load(f, job, "window_used")

    def take(operand: _Operand, row: Value, into: Value, at_number: Value) -> None:
        with f.each(depth) as k:
            place = operand.place(row, k, item)
            inside = f.compare("ule", f.add(place, item), used)
            refuse_unless(f, inside, thread, f.load(I32, entry, 28), at.BAD_DESCRIPTOR)
            f.store(_number(f, job, place, element), into, f.add(at_number, k), "float")

    for row in range(2):
        take(a, f.add(first_row, 8 * row), left, Value(I64, str(_MOST_K * row)))
    sums = _slot(f, _own(f, job, thread), f.load(I32, entry, 20))
    columns = f.convert("zext", f.both(form, 0xFFF), I64)
    with f.each(f.divide(columns, 8)) as j, f.each(2) as c:
        column = f.add(f.add(multiply(f, j, 8), multiply(f, t, 2)), c)
        take(b, column, right, Value(I64, "0"))
        with f.each(2) as half:
            place = f.add(f.add(multiply(f, j, 4), multiply(f, half, 2)), c)
            with f.each(depth) as k:
                x = f.load("float", left, f.add(multiply(f, half, _MOST_K), k), "float")
                y = f.load("float", right, k, "float")
                total = f.call("float", "llvm.fma.f32", x, y, f.load("float", sums, place, "float"))
                f.store(total, sums, place, "float")
    f.ret()
    return f


WARPGROUPS = (exchange, in_step, steps_are_left, fence, commit, product, wait, multiply_now)
