"""What the functions of `cpu_sorting` share: rows cut into parts, which threads take from each other.

ROW = Fields(keys="ptr", n="i64")           what the starter of a parallel loop hands to its parts
context = ROW.allocate(f)                   in the starter: memory for it
context.store(keys=f.keys, n=f.n)           and what is there
run_parts(f, part, context, blocks)         the loop itself
row = ROW.load(part.ctx)                    in the part: row.keys and row.n
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from ...limits import limits
from ...llvm.builder import Number, Value
from ...llvm.modules import Function
from ...schedule.sort_blocks import MOST_BLOCKS


class Fields:
    """The context of a parallel loop over parts of a row: typed names, eight bytes for each."""

    def __init__(self, **types: str) -> None:
        self.types = types

    def allocate(self, f: Function) -> StoredFields:
        memory = f.alloca(f"[{len(self.types)} x i64]", align=8)
        addresses = {name: f.offset(memory, k, "i64") for k, name in enumerate(self.types)}
        return StoredFields(f, memory, self.types, addresses)

    def load(self, f: Function) -> SimpleNamespace:
        """All of them, in a function made by `part`."""
        addresses = (
            (n, t, f.offset(f.ctx, k, "i64")) for k, (n, t) in enumerate(self.types.items())
        )
        return SimpleNamespace(**{name: f.load(type, address) for name, type, address in addresses})


class StoredFields:
    """Fields in memory on the stack, which the caller of a parallel loop fills in."""

    def __init__(
        self, f: Function, memory: Value, types: dict[str, str], addresses: dict[str, Value]
    ) -> None:
        self.f, self.memory, self.types, self.addresses = f, memory, types, addresses

    def store(self, **values: Value | Number) -> None:
        for name, value in values.items():
            number = (
                self.f.literal(self.types[name], value) if not isinstance(value, Value) else value
            )
            self.f.store(number, self.addresses[name])


def part(name: str) -> Function:
    """A function that does parts lo..hi of a parallel loop."""
    return Function("void", name, internal=True, ctx="ptr", lo="i64", hi="i64")


def run_parts(
    f: Function, each: Function, context: StoredFields, n: Value | Number, grain: int = 1
) -> None:
    """Let threads do the parts 0 <= i < n of a loop, `grain` at a time, by the function `each`."""
    f.call("void", "jitney_parallel_for", each.address, context.memory, n, grain)


def sort_row(name: str) -> Function:
    """A function that sorts one row of n elements into the target."""
    memory = dict.fromkeys(("keys", "target", "scratch", "counts"), "ptr")
    return Function("void", f"{name}_row", internal=True, **memory, n="i64")


def cut_row(f: Function, n: Value | Number) -> tuple[Value, Value]:
    """How many blocks a row has, and how long they are: by the row alone, not by threads."""
    row = n if isinstance(n, Value) else f.literal("i64", n)
    wanted = row // limits().sort_block
    wanted = f.select(wanted.ult(MOST_BLOCKS), wanted, MOST_BLOCKS)
    blocks = f.select(wanted.eq(0), 1, wanted)
    return blocks, (row + blocks - 1) // blocks


@contextmanager
def each_block(
    f: Function, n: Value | Number, length: Value
) -> Iterator[tuple[Value, Value, Value]]:
    """Walk the blocks lo..hi of a row: the block's number, where it starts and where it stops."""
    with f.loop(b=f.lo) as loop:
        loop.going(loop.b < f.hi)
        start = loop.b * length
        yield loop.b, start, f.least(start + length, n)
        loop.next(loop.b + 1)


def gather_bits(f: Function, pairs: Value, blocks: Value) -> Value:
    """The bits in which any two keys differ, from what is set in any and in all keys of each block."""
    with f.loop(b=0, any=0, all=-1) as loop:
        address = f.offset(pairs, loop.b * 2, "i64")
        any_here = f.load("i64", address)
        any = loop.any | any_here
        all = loop.all & f.load("i64", address, 1, "i64")
        after = loop.b + 1
        loop.repeat(after < blocks, after, any, all)
    return any ^ all


def put_pair(f: Function, pairs: Value, number: Value, first: Value, second: Value) -> None:
    """Store two words (i64) of block `number`, which are side by side in `pairs`."""
    address = f.offset(pairs, number * 2, "i64")
    f.store(first, address)
    f.store(second, address, 1, "i64")


LoadKey = Callable[[Function, Value, Value], Value]  # of element i of a row


def load_word(f: Function, row: Value, i: Value) -> Value:
    """A key that is a word."""
    return f.load("i64", row, i, "i64")


def varying_bits(name: str, fields: Fields, word: LoadKey) -> Function:
    """The bits that are set in any key of a block, and those that are set in all."""
    f = part(name)
    row = fields.load(f)
    with each_block(f, row.n, row.length) as (b, start, stop):
        with f.loop(i=start, any=0, all=-1) as loop:
            loop.going(loop.i < stop)
            key = word(f, row.source, loop.i)
            loop.next(loop.i + 1, loop.any | key, loop.all & key)
        put_pair(f, row.to, b, loop.any, loop.all)
    f.ret()
    return f
