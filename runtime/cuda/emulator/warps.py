"""What a warp does together, as emitted code: `warp_operation(base, operation, group)`.

All lanes of `group` have come to the operation and shown their operands (`INPUT`); each finds its
result in `OUTPUT` when it goes on. `base` is the first thread of the warp. What an instruction leaves
undefined is poison (all bits 1), so that whoever uses it notices.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from ....codegen.llvm.builder import Value
from ....codegen.llvm.modules import Function
from . import layout as at
from .access import I32, bit, is_set, job_load, lowest_bit, word

_numbers = count(1)
(
    SHUFFLE_BFLY, SHUFFLE_DOWN, SHUFFLE_UP, SHUFFLE_IDX, WARP_SYNC, VOTE_ALL, VOTE_ANY, VOTE_UNI,
    VOTE_BALLOT, MATCH_ANY, REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_UMIN, REDUX_UMAX, REDUX_AND, REDUX_OR,
    REDUX_XOR, LDMATRIX, LDMATRIX_TRANS, MMA_BF16, MMA_F16, MMA_TF32, MMA_F64_K4, MMA_F64_K16,
    ELECT, PRODUCT_WAIT,
) = (next(_numbers) for _ in range(27))  # fmt: skip

_INDEX = "i64"


class _Warp:
    """The emitted function, with the lanes of the group."""

    def __init__(self) -> None:
        self.f = Function("void", "emu_warp_operation", base="ptr", operation=I32, group=I32)
        self.base, self.operation, self.group = self.f.args

    def thread(self, lane: Value) -> Value:
        return self.f.offset(self.base, lane * at.THREAD_SIZE)

    @contextmanager
    def lanes(self) -> Iterator[tuple[Value, Value]]:
        """The code inside is run for each lane of the group: its number (i64) and its thread."""
        f = self.f
        with f.each(at.WARP_SIZE) as lane, f.when(is_set(f, self.group, lane)):
            yield lane, self.thread(lane)

    def input(self, thread: Value, word_number: int, type: str = I32) -> Value:
        return self.f.load(type, thread, at.INPUT + 4 * word_number)

    def output(self, value: Value, thread: Value, word_number: int = 0) -> None:
        self.f.store(value, thread, at.OUTPUT + 4 * word_number)


def _wide(f: Function, value: Value) -> Value:
    return value.zext(_INDEX)


def _shuffle(w: _Warp, operation: int) -> None:
    """Operands: value, lane or distance, clamp and segments, as PTX's shfl.sync has them."""
    f = w.f
    with w.lanes() as (lane64, thread):
        lane = lane64.trunc(I32)
        amount, control = w.input(thread, 1), w.input(thread, 2)
        segment = control >> 8 & 31
        clamp = control & 31
        outside = segment ^ 31
        low = lane & segment
        high = low | clamp & outside
        amount = amount & 31
        if operation == SHUFFLE_UP:
            source = lane - amount
            valid = source >= high
        elif operation == SHUFFLE_IDX:
            source = low | amount & outside
            valid = source <= high
        else:
            source = lane + amount if operation == SHUFFLE_DOWN else lane ^ amount
            valid = source <= high
        source = f.select(valid, source, lane)
        other = w.thread(_wide(f, source))
        shown = f.select(is_set(f, w.group, source), w.input(other, 0), word(-1))
        w.output(shown, thread)
        w.output(valid.zext(I32), thread, 1)


def _ballot(w: _Warp) -> Value:
    """The lanes whose predicate is true."""
    f = w.f
    votes = f.alloca(I32)
    f.store(word(0), votes)
    with w.lanes() as (lane, thread):
        true = w.input(thread, 0) << lane.trunc(I32)
        f.store(f.load(I32, votes) | true, votes)
    return f.load(I32, votes)


def _vote(w: _Warp, operation: int) -> None:
    votes = _ballot(w)
    every, none = votes.eq(w.group), votes.eq(0)
    if operation == VOTE_BALLOT:
        result = votes
    else:
        how = {
            VOTE_ALL: every,
            VOTE_ANY: ~none,
            VOTE_UNI: every | none,
        }[operation]
        result = how.zext(I32)
    with w.lanes() as (_, thread):
        w.output(result, thread)


def _match(w: _Warp) -> None:
    f = w.f
    equal = f.alloca(I32)
    with w.lanes() as (_, thread):
        value = w.input(thread, 0, "i64")
        f.store(word(0), equal)
        with w.lanes() as (lane, other):
            same = w.input(other, 0, "i64").eq(value)
            one = f.select(same, bit(lane), word(0))
            f.store(f.load(I32, equal) | one, equal)
        w.output(f.load(I32, equal), thread)


def _elect(w: _Warp) -> None:
    """One lane, and whether it is this one. Which one, a GPU does not say: the first or the last."""
    f = w.f
    job = f.load("ptr", w.base, at.THREAD_JOB)
    last = f.intrinsic("ctlz", I32, w.group, False) ^ at.WARP_SIZE - 1
    backwards = job_load(f, job, "multiplier").eq(31)
    chosen = f.select(backwards, last, lowest_bit(f, w.group))
    with w.lanes() as (lane, thread):
        w.output(chosen, thread)
        w.output(lane.trunc(I32).eq(chosen).zext(I32), thread, 1)


def _wait_for_products(w: _Warp) -> None:
    """Operands: how many groups may be under way, how many accumulators are in the exchange."""
    with w.lanes() as (_, thread):
        site = w.f.load(I32, thread, at.SITE)
        groups, count = w.input(thread, 0), w.input(thread, 1)
        w.f.call("void", "emu_product_wait", thread, groups, count, site)


_REDUCTIONS = {
    REDUX_ADD: "add", REDUX_AND: "and", REDUX_OR: "or", REDUX_XOR: "xor",
    REDUX_MIN: "slt", REDUX_MAX: "sgt", REDUX_UMIN: "ult", REDUX_UMAX: "ugt",
}  # fmt: skip


def _reduce(w: _Warp, operation: int) -> None:
    f = w.f
    total = f.alloca(I32)
    first = lowest_bit(f, w.group)
    f.store(w.input(w.thread(_wide(f, first)), 0), total)
    how = _REDUCTIONS[operation]
    with w.lanes() as (lane, thread), f.when(lane.ne(_wide(f, first))):
        so_far, value = f.load(I32, total), w.input(thread, 0)
        if operation in (REDUX_ADD, REDUX_AND, REDUX_OR, REDUX_XOR):
            f.store(f.binary(how, so_far, value), total)
        else:
            f.store(f.select(f.compare(how, so_far, value), so_far, value), total)
    result = f.load(I32, total)
    with w.lanes() as (_, thread):
        w.output(result, thread)


def _load_matrices(w: _Warp, transposed: bool) -> None:
    """Operands: the address of a row of eight 16-bit numbers (two words), how many matrices.

    Lane 8 k + r shows row r of matrix k. Lane l gets numbers 2 (l mod 4) and the next of row l / 4, or
    of column l / 4 if transposed.
    """
    f = w.f
    with w.lanes() as (lane, thread):
        matrices = _wide(f, w.input(thread, 2))
        row = lane >> 2
        pair = (lane & 3) * 2
        with f.each(matrices) as k:
            base = k * 8
            if transposed:
                halves = []
                for h in range(2):
                    source = w.thread(base + pair + h)
                    value = f.load("i16", w.input(source, 0, "ptr"), row, "i16")
                    halves.append(value.zext(I32))
                high = halves[1] << 16
                both = halves[0] | high
            else:
                source = w.thread(base + row)
                address = f.offset(w.input(source, 0, "ptr"), pair, "i16")
                both = f.load(I32, address, align=2)
            f.store(both, thread, k * 4 + at.OUTPUT)


class _Fragments:
    """How a matrix is spread over a warp: lane 4 g + t has element (row, column) at `number`.

    The PTX manual's figures of m16n8k16 and so on. A: (m, k), B: (k, n), C: (m, n).
    """

    def __init__(self, m: int, n: int, k: int, kind: str) -> None:
        self.m, self.n, self.k, self.kind = m, n, k, kind
        self.words = 2 if kind == "f64" else 1  # that a number, or a pair of 16 bits, takes
        self.pair = 2 if kind in ("f16", "bf16") else 1
        self.a_numbers = m * k // at.WARP_SIZE
        self.b_numbers = k * n // at.WARP_SIZE
        self.c_numbers = m * n // at.WARP_SIZE

    def a(self, number: int) -> tuple[int, int]:
        """(row - g, column - pair * t) of a lane's number."""
        register, half = divmod(number, self.pair)
        rows = self.m // 8
        return 8 * (register % rows), 4 * self.pair * (register // rows) + half

    def b(self, number: int) -> int:
        """row - pair * t; the column is g."""
        register, half = divmod(number, self.pair)
        return 4 * self.pair * register + half

    def c(self, number: int) -> tuple[int, int]:
        """(row - g, column - 2 t)."""
        return 8 * (number // 2), number % 2


_PRODUCTS = {
    MMA_BF16: _Fragments(16, 8, 16, "bf16"),
    MMA_F16: _Fragments(16, 8, 16, "f16"),
    MMA_TF32: _Fragments(16, 8, 8, "tf32"),
    MMA_F64_K4: _Fragments(8, 8, 4, "f64"),
    MMA_F64_K16: _Fragments(16, 8, 16, "f64"),
}


def _number(w: _Warp, thread: Value, at_word: int, half: int, kind: str) -> Value:
    """A number of a fragment, as float (or double)."""
    f = w.f
    if kind == "f64":
        return w.input(thread, at_word, "double")
    if kind == "f16":
        value = f.load("half", thread, at.INPUT + 4 * at_word + 2 * half)
        return value.to("fpext", "float")
    bits = w.input(thread, at_word)
    if kind == "tf32":
        bits = bits & -0x2000  # the low 13 bits do not count
    elif half:
        bits = bits & -0x10000
    else:
        bits = bits << 16
    return bits.to("bitcast", "float")


def _multiply_matrices(w: _Warp, fragments: _Fragments) -> None:
    """C + A B. Sums go in the order of k, each step rounded once; a GPU's own order is not known."""
    f = w.f
    type = "double" if fragments.kind == "f64" else "float"
    left = f.alloca(type, fragments.m * fragments.k)
    right = f.alloca(type, fragments.k * fragments.n)
    words, pair = fragments.words, fragments.pair
    b_start = fragments.a_numbers // pair * words
    c_start = b_start + fragments.b_numbers // pair * words
    with w.lanes() as (lane, thread):
        g, t = lane >> 2, lane & 3
        t_pair = t * pair
        for n in range(fragments.a_numbers):
            row, column = fragments.a(n)
            value = _number(w, thread, n // pair * words, n % pair, fragments.kind)
            index = (g + row) * fragments.k + (t_pair + column)
            f.store(value, left, index, type)
        for n in range(fragments.b_numbers):
            value = _number(w, thread, b_start + n // pair * words, n % pair, fragments.kind)
            row_index = t_pair + fragments.b(n)
            f.store(value, right, row_index * fragments.n + g, type)
    total = f.alloca(type)
    with w.lanes() as (lane, thread):
        g, t = lane >> 2, lane & 3
        for n in range(fragments.c_numbers):
            row, column = fragments.c(n)
            f.store(w.input(thread, c_start + n * words, type), total)
            a_start = (g + row) * fragments.k
            b_column = t * 2 + column
            with f.each(fragments.k) as k:
                x = f.load(type, left, a_start + k, type)
                y = f.load(type, right, k * fragments.n + b_column, type)
                name = "llvm.fma.f64" if type == "double" else "llvm.fma.f32"
                f.store(f.call(type, name, x, y, f.load(type, total)), total)
            w.output(f.load(type, total), thread, n * words)


def warp_operation() -> Function:
    """The function: one case for each operation."""
    w = _Warp()
    f = w.f
    cases = {
        **{op: (_shuffle, op) for op in (SHUFFLE_BFLY, SHUFFLE_DOWN, SHUFFLE_UP, SHUFFLE_IDX)},
        **{op: (_vote, op) for op in (VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT)},
        **{op: (_reduce, op) for op in _REDUCTIONS},
        **{op: (_load_matrices, op == LDMATRIX_TRANS) for op in (LDMATRIX, LDMATRIX_TRANS)},
        **{op: (_multiply_matrices, fragments) for op, fragments in _PRODUCTS.items()},
    }
    alone = {MATCH_ANY: _match, ELECT: _elect, PRODUCT_WAIT: _wait_for_products}
    blocks = {op: f.block(f"operation{op}_") for op in (*cases, *alone)}
    done = f.block("done")
    f.switch(w.operation, done, blocks)
    for op, block in blocks.items():
        f.at(block)
        if op in alone:
            alone[op](w)
        else:
            write, detail = cases[op]
            write(w, detail)  # type: ignore[operator]
        f.jump(done)
    f.at(done)
    f.ret()
    return f
