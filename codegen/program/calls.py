"""Calls of kernels: a few as code, many as a table that one small loop works through.

    for call in table:                          five words of a call, then two for each pointer
        for k, (base, offset) in pointers:
            ctx[k] = bases[base] + offset       or arguments[~base] + offset
        functions[call.function](ctx, 0, call.length)       or on the thread pool

LLVM takes a fifth of a millisecond over the instructions of one call, and nothing over a row of a table.
So a program of a thousand small steps compiles as fast as its distinct kernels do.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from ...ir.record import record
from ..limits import limits
from ..llvm.builder import NULL, Builder, Value, constant, symbol
from ..loop_ir.kernel import Array
from ..sizes import Size, sizes
from ..target import Target

if TYPE_CHECKING:
    from .entry import EntryEmitter

STOPPED = symbol("stopped")  # see `control`
_HEAD = 5  # words of a call: function, length, grain, whether to look at the status, pointers


Word = Value | int
Pointers = tuple[tuple[Array | None, int], ...]


@record
class Bound:
    """`times` for each `per` of the length of an axis times `factor`, the last of which may be fewer."""

    size: Size
    factor: int
    per: int = 1
    times: int = 1


@record
class Call:
    """`name(ctx, 0, length)`, or its parts of `grain` on the thread pool if that is less.

    `pointers` are the arrays in ctx, None being the status block, and bytes from where they begin.
    `checks`: it may write to the status block. `polls`: it may take long, and look for signals.
    `bound`: how long it is where the length of an axis says so; `length` is the most then.
    """

    name: str
    pointers: Pointers
    length: int
    grain: int
    checks: bool
    polls: bool = False
    bound: Bound | None = None

    @property
    def shared(self) -> bool:
        return self.grain < self.length


def emit_calls(e: EntryEmitter, calls: Sequence[Call]) -> None:
    """The calls, one after the other."""
    for call in calls:
        e.context_words = max(e.context_words, len(call.pointers))
    if any(call.shared for call in calls):
        e.imports.add(Target.PARALLEL_FOR)
    if any(call.shared and call.polls for call in calls):
        e.imports.add(Target.WATCHED_FOR)
    if len(calls) >= limits().table_calls and not sizes():
        _table(e, calls)
        return
    for call in calls:
        _straight(e, call)


def _straight(e: EntryEmitter, call: Call) -> None:
    f = e.f
    words = [e.status if a is None else f.offset(e.pointer(a), by) for a, by in call.pointers]
    store_words(f, e.ctx, words)
    watch = STOPPED if call.polls else None
    length = call.length if call.bound is None else _length(e, call.bound)
    _run(e, symbol(call.name), length, call.grain, call.shared, watch)
    if call.checks:
        site = f.load("i64", e.site_at, align=8)
        e.fail_if(site.ne(0), site.trunc("i32"))


def _length(e: EntryEmitter, bound: Bound) -> Value:
    n = e.f.load("i64", e.pointer(bound.size.array), align=8) * bound.factor
    if bound.per > 1:
        n = (n + (bound.per - 1)) // bound.per
    return n * bound.times


def store_words(f: Builder, block: Value, words: Iterable[Value], first: int = 0) -> None:
    """Pointers side by side, from word `first` of a block on."""
    for position, word in enumerate(words):
        f.store(word, f.offset(block, constant("i64", first + position), "ptr"), align=8)


def _run(
    e: EntryEmitter, function: Value, length: Word, grain: Word, shared: bool, watch: Value | None
) -> None:
    """`watch` is the function that looks for signals while the caller waits for other threads."""
    f = e.f
    if shared and watch is not None:
        f.call("void", Target.WATCHED_FOR, function, e.ctx, length, grain, watch, e.status)
    elif shared:
        f.call("void", Target.PARALLEL_FOR, function, e.ctx, length, grain)
    else:
        f.call("void", function, e.ctx, 0, length)


def _table(e: EntryEmitter, calls: Sequence[Call]) -> None:
    bases: dict[Value, int] = {}  # what is no argument of the entry, whose numbers are negative
    functions: dict[Value, int] = {}
    pointers: dict[Array | None, Value] = {}
    words: list[int] = []
    for call in calls:
        function = functions.setdefault(symbol(call.name), len(functions))
        words += (function, call.length, call.grain, call.checks, len(call.pointers))
        for array, offset in call.pointers:
            where = None if e.is_watched(array) else e.argument(array)
            if where is not None:
                words += (~e.arguments[where[0]], where[1] + offset)
                continue
            assert array is not None, "the status block is an argument"
            base = pointers.get(array)
            if base is None:
                base = pointers[array] = e.pointer(array)
            words += (bases.setdefault(base, len(bases)), offset)
    table = e.data(struct.pack(f"<{len(words)}q", *words))
    _loop(e, table, len(words), _block(e, bases), _block(e, functions), calls)


def _block(e: EntryEmitter, pointers: Collection[Value]) -> Value:
    """An array of these pointers, on the stack."""
    if not pointers:
        return e.f.args[0]
    block = e.f.stack(f"[{len(pointers)} x ptr]", align=16)
    store_words(e.f, block, pointers)
    return block


def _loop(
    e: EntryEmitter,
    table: Value,
    length: int,
    bases: Value,
    functions: Value,
    calls: Sequence[Call],
) -> None:
    f = e.f
    head, end = f.later("call", at="i64"), f.later("called")
    f.jump(head, 0)
    (at,) = f.at(head)
    row = f.offset(table, at, "i64")
    function, count, grain, checks, pointers = (
        _word(f, f.offset(row, constant("i64", n), "i64")) for n in range(_HEAD)
    )
    _pointers(e, row, pointers, bases)
    loaded = f.load("ptr", f.offset(functions, function, "ptr"))
    watch = None
    if any(
        call.shared and call.polls for call in calls
    ):  # only such a call may be ended, whose status is read
        watch = f.select(checks.ne(0), STOPPED, NULL)
    if all(call.shared for call in calls) or not any(call.shared for call in calls):
        _run(e, loaded, count, grain, calls[0].shared, watch)
    else:
        alone, together, done = (f.later(hint) for hint in ("alone", "together", "done"))
        f.branch(grain < count, together, alone)
        for block, shared in ((alone, False), (together, True)):
            f.at(block)
            _run(e, loaded, count, grain, shared, watch)
            f.jump(done)
        f.at(done)
    if any(call.checks for call in calls):
        site = _word(f, e.site_at) & (0 - checks)
        e.fail_if(site.ne(0), site.trunc("i32"))
    following = at + ((pointers << 1) + _HEAD)
    f.fork(following < length, head, (following,), end)
    f.at(end)


def _pointers(e: EntryEmitter, row: Value, pointers: Value, bases: Value) -> None:
    """The context of the call that is described from `row` on."""
    f = e.f
    each, run = f.later("pointer", k="i64"), f.later("run")
    f.jump(each, 0)
    (k,) = f.at(each)
    entry = f.offset(row, (k << 1) + _HEAD, "i64")
    base = _word(f, entry)
    is_argument = base < 0
    block = f.select(is_argument, f.args[0], bases)
    slot = f.offset(block, f.select(is_argument, ~base, base), "ptr")
    offset = _word(f, f.offset(entry, 1, "i64"))
    pointer = f.load("ptr", slot, align=8)
    f.store(f.offset(pointer, offset), f.offset(e.ctx, k, "ptr"), align=8)
    following = k + 1
    f.fork(following < pointers, each, (following,), run)
    f.at(run)


def _word(f: Builder, address: Value) -> Value:
    return f.load("i64", address, align=8)
