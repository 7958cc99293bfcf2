"""Products by warpgroups (`codegen/kernels/matmul/cuda_wgmma.py`), as emitted code.

A product reads shared memory when it is waited for and not before (in an eager launch: at once), and its
sums are nowhere until then: what the instruction gives are *tokens*, not numbers, which name a place
where sums come about. They go through the products that add to them, and become numbers in a wait for
the group of the last one. Each thread has such places, and the products that it has begun, apart.

The four warps of a group must come by the same instructions: the first to do one notes it down.
"""

from __future__ import annotations

from ....codegen.kernels.matmul import cuda_wgmma as wgmma
from ....codegen.llvm.builder import Value, constant
from ....codegen.llvm.modules import Function
from . import layout as at
from .access import I32, job_load, raise_error, word
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
    linear = f.load(I32, thread, at.LINEAR).zext(I64)
    return f.offset(f.load("ptr", job, JOB["sums"]), linear * THREAD_BYTES)


def _token(f: Function, slot: Value, number: Value) -> Value:
    high = slot << 8
    return high | number.trunc(I32) | _TOKEN - (1 << 32)


def _is_token(f: Function, bits: Value) -> Value:
    return (bits >> 16).eq(_TOKEN >> 16)


def _slot(f: Function, own: Value, slot: Value) -> Value:
    wide = slot.zext(I64)
    return f.offset(own, wide * (4 * _MOST) + SUMS)


def _under_way(f: Function, own: Value, slot: Value) -> Value:
    wide = slot.zext(I64)
    return f.offset(own, wide * 4 + _UNDER_WAY)


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
    f.store(number + 1, thread, at.SEQUENCE)
    linear = f.load(I32, thread, at.LINEAR).zext(I64)
    group = linear >> 7
    ring = (number & STEPS - 1).zext(I64)
    index = group * STEPS + ring
    entry = f.offset(f.load("ptr", job, JOB["group_steps"]), index * STEP_BYTES)
    count = f.load(I32, entry, 20)
    with f.when(count.eq(0)):
        for value, where in ((first, 0), (second, 8), (number, 16)):
            f.store(value, entry, where)
    same = f.load(I64, entry).eq(first) & f.load(I64, entry, 8).eq(second)
    same = same & f.load(I32, entry, 16).eq(number)
    refuse_unless(f, same, thread, site, at.DIVERGED_GROUP)
    count = count + 1
    f.store(f.select(count.eq(128), word(0), count), entry, 20)
    f.ret()
    return f


def steps_are_left() -> Function:
    """`steps_are_left(job)`: an error if warps of a group did not come by what others of it did."""
    f = Function("void", "emu_steps_are_left", internal=True, job="ptr")
    (job,) = f.args
    with f.each(STEPS * GROUPS) as k:
        entry = f.offset(f.load("ptr", job, JOB["group_steps"]), k * STEP_BYTES)
        with f.when(f.load(I32, entry, 20).ne(0)):
            raise_error(f, f.load("ptr", job, JOB["threads"]), at.DIVERGED_GROUP)
            f.ret()
            f.at(f.block("unused"))
    f.ret()
    return f


def fence() -> Function:
    """`group_fence(thread, site)`: registers may be used by the products that follow."""
    f = Function("void", "emu_group_fence", thread="ptr", site=I32)
    thread, site = f.args
    zero, kind = f.literal(I64, 0), f.literal(I64, 1)
    f.call("void", "emu_in_step", thread, zero, kind, site)
    f.store(word(1), thread, at.FENCED)
    f.ret()
    return f


def commit() -> Function:
    """`group_commit(thread, site)`: the products since the last time are a group."""
    f = Function("void", "emu_group_commit", thread="ptr", site=I32)
    thread, site = f.args
    zero, kind = f.literal(I64, 0), f.literal(I64, 2)
    f.call("void", "emu_in_step", thread, zero, kind, site)
    f.store(f.load(I32, thread, at.PRODUCT_GROUPS) + 1, thread, at.PRODUCT_GROUPS)
    f.ret()
    return f


def product() -> Function:
    """`product(thread, a, b, form, site)`: begin a product; the accumulators become tokens."""
    f = Function("void", "emu_product", thread="ptr", a=I64, b=I64, form=I32, site=I32)
    thread, a, b, form, site = f.args
    job = f.load("ptr", thread, at.THREAD_JOB)
    fenced = f.load(I32, thread, at.FENCED).ne(0)
    refuse_unless(f, fenced, thread, site, at.UNFENCED_PRODUCT)
    for one in (a, b):
        f.call("void", "emu_in_step", thread, one, form.zext(I64), site)
        word_bits = one & ~0x3FFF_3FFF_3FC7  # lines of an atom are not begun in its middle
        good = word_bits.eq(constant(I64, wgmma.SWIZZLED))
        refuse_unless(f, good, thread, site, at.BAD_DESCRIPTOR)
    own = _own(f, job, thread)
    count = ((form & 0xFFF) >> 1).zext(I64)
    first = f.load(I32, own)
    going_on = _is_token(f, first)
    old_slot = first >> 8 & SLOTS - 1
    new_slot = f.load(I32, thread, at.NEXT_SUMS) & SLOTS - 1
    slot = f.select(going_on, old_slot, new_slot)
    waiting = _under_way(f, own, slot)
    free = going_on | f.load(I32, waiting).eq(0)
    refuse_unless(f, free, thread, site, at.TOO_MANY_PRODUCTS)
    with f.when(~going_on):
        f.store(new_slot + 1, thread, at.NEXT_SUMS)
    sums = _slot(f, own, slot)
    with f.each(count) as k:
        bits, token = f.load(I32, own, k, I32), _token(f, slot, k)
        mine = f.select(going_on, bits.eq(token), _is_token(f, bits).eq(constant("i1", 0)))
        refuse_unless(f, mine, thread, site, at.TOUCHED_SUMS)
        start = f.select(going_on, f.load(I32, sums, k, I32), bits)
        f.store(start, sums, k, I32)
        f.store(token, own, k, I32)
    f.store(f.load(I32, waiting) + 1, waiting)
    tail, head = f.load(I32, thread, at.PRODUCTS_TAIL), f.load(I32, thread, at.PRODUCTS_HEAD)
    room = (tail - head).ult(PRODUCTS)
    refuse_unless(f, room, thread, site, at.TOO_MANY_PRODUCTS)
    entry = _entry(f, own, tail)
    group = f.load(I32, thread, at.PRODUCT_GROUPS)
    for value, where in ((a, 0), (b, 8), (form, 16), (slot, 20), (group, 24), (site, 28)):
        f.store(value, entry, where)
    f.store(tail + 1, thread, at.PRODUCTS_TAIL)
    with f.when(job_load(f, job, "eager").ne(0)):
        f.call("void", "emu_multiply", thread, entry)
        f.store(word(-1), entry, 16)  # its sums are to be had after the wait all the same
    f.ret()
    return f


def _entry(f: Function, own: Value, number: Value) -> Value:
    ring = (number & PRODUCTS - 1).zext(I64)
    return f.offset(own, ring * _PRODUCT + _PRODUCTS)


def wait() -> Function:
    """`product_wait(thread, groups, count, site)`: all groups but the last so many are done, and
    tokens of theirs become sums."""
    f = Function("void", "emu_product_wait", thread="ptr", groups=I32, count=I32, site=I32)
    thread, groups, count, site = f.args
    zero = f.literal(I64, 0)
    kind = groups.zext(I64) + 16
    f.call("void", "emu_in_step", thread, zero, kind, site)
    job = f.load("ptr", thread, at.THREAD_JOB)
    own = _own(f, job, thread)
    limit = f.load(I32, thread, at.PRODUCT_GROUPS) - groups
    tail = f.load(I32, thread, at.PRODUCTS_TAIL)
    loop, look, go, stop = (
        f.block("loop", head=I32),
        f.block("look"),
        f.block("go"),
        f.block("stop"),
    )
    f.jump(loop, f.load(I32, thread, at.PRODUCTS_HEAD))
    (head,) = f.at(loop)
    f.branch(head.ne(tail), look, stop, likely=True)
    f.at(look)
    entry = _entry(f, own, head)
    f.branch(f.load(I32, entry, 24) < limit, go, stop, likely=True)
    f.at(go)
    with f.when(f.load(I32, entry, 16).ne(-1)):
        f.call("void", "emu_multiply", thread, entry)
    waiting = _under_way(f, own, f.load(I32, entry, 20))
    f.store(f.load(I32, waiting) - 1, waiting)
    f.jump(loop, head + 1)
    f.at(stop)
    f.store(head, thread, at.PRODUCTS_HEAD)
    with f.each(count.zext(I64)) as k:
        bits = f.load(I32, own, k, I32)
        slot = bits >> 8 & SLOTS - 1
        done = f.load(I32, _under_way(f, own, slot)).eq(0)
        number = (bits & 0xFF).zext(I64)
        value = f.load(I32, _slot(f, own, slot), number, I32)
        done = _is_token(f, bits) & done
        f.store(f.select(done, value, bits), own, k, I32)
    f.store(word(0), thread, at.FENCED)
    f.ret()
    return f


def _field(f: Function, descriptor: Value, shift: int) -> Value:
    """A field in bytes."""
    moved = descriptor >> shift if shift else descriptor
    return (moved & 0x3FFF) << 4


class _Operand:
    """An operand as its descriptor says."""

    def __init__(self, f: Function, descriptor: Value, turned: Value) -> None:
        self.f, self.turned = f, turned
        self.start = _field(f, descriptor, 0)
        self.leading, self.stride = _field(f, descriptor, 16), _field(f, descriptor, 32)

    def offset(self, row: Value, k: Value, item: Value) -> Value:
        """Where in the window an element is."""
        f = self.f
        low_row, low_k = row & 7, k & 7
        high_row = row >> 3
        high_k = k >> 3
        along = low_row * wgmma.LINE + high_row * self.stride
        along = along + k * item
        across = (row & 63) * 2 + low_k * wgmma.LINE
        across = across + high_k * self.stride
        next_rows = row >> 6
        across = across + next_rows * self.leading
        return swizzle(f, self.start + f.select(self.turned, across, along))


def _number(f: Function, job: Value, offset: Value, element: Value) -> Value:
    """An element as a float."""
    window = f.load("ptr", job, JOB["window"])
    kinds = [f.block(name) for name in ELEMENTS]
    done = f.block("number", value="float")
    f.switch(element, kinds[0], {1: kinds[1], 2: kinds[2]})
    f.at(kinds[0])
    bits = f.load("i16", window, offset).zext(I32)
    bits = bits << 16
    f.jump(done, bits.to("bitcast", "float"))
    f.at(kinds[1])
    f.jump(done, f.load("half", window, offset).to("fpext", "float"))
    f.at(kinds[2])
    bits = f.load(I32, window, offset) & -0x2000
    f.jump(done, bits.to("bitcast", "float"))
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
    element = form >> 12 & 15
    wide = element.eq(2)
    item = f.select(wide, constant(I64, 4), constant(I64, 2))
    depth = f.select(wide, constant(I64, 8), constant(I64, 16))
    a, b = (
        _Operand(f, f.load(I64, entry, 8 * side), (form & 1 << 16 + side).ne(0))
        for side in range(2)
    )
    lane = f.load(I32, thread, at.LANE).zext(I64)
    warp = f.load(I32, thread, at.WARP).zext(I64) & 3
    g, t = lane >> 2, lane & 3
    first_row = warp * 16 + g
    used = job_load(f, job, "window_used")

    def take(operand: _Operand, row: Value, into: Value, at_number: Value) -> None:
        with f.each(depth) as k:
            offset = operand.offset(row, k, item)
            inside = (offset + item).ule(used)
            refuse_unless(f, inside, thread, f.load(I32, entry, 28), at.BAD_DESCRIPTOR)
            f.store(_number(f, job, offset, element), into, at_number + k, "float")

    for row in range(2):
        take(a, first_row + 8 * row, left, constant(I64, _MOST_K * row))
    sums = _slot(f, _own(f, job, thread), f.load(I32, entry, 20))
    columns = (form & 0xFFF).zext(I64)
    with f.each(columns // 8) as j, f.each(2) as c:
        column = j * 8 + t * 2 + c
        take(b, column, right, constant(I64, 0))
        with f.each(2) as half:
            offset = j * 4 + half * 2 + c
            with f.each(depth) as k:
                x = f.load("float", left, half * _MOST_K + k, "float")
                y = f.load("float", right, k, "float")
                total = f.call(
                    "float", "llvm.fma.f32", x, y, f.load("float", sums, offset, "float")
                )
                f.store(total, sums, offset, "float")
    f.ret()
    return f


WARPGROUPS = (exchange, in_step, steps_are_left, fence, commit, product, wait, multiply_now)
