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
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...ir.record import record
from ..limits import limits
from ..loop_ir.kernel import Array
from ..target import Target

if TYPE_CHECKING:
    from .entry import EntryEmitter

_HEAD = 5  # words of a call: function, length, grain, whether to look at the status, pointers


Pointers = tuple[tuple[Array | None, int], ...]


@record
class Call:
    """`name(ctx, 0, length)`, or its parts of `grain` on the thread pool if that is less.

    `pointers` are the arrays in ctx, None being the status block, and bytes from where they begin.
    `checks`: it may write to the status block. `polls`: it may take long, and look for signals.
    """

    name: str
    pointers: Pointers
    length: int
    grain: int
    checks: bool
    polls: bool = False

    @property
    def shared(self) -> bool:
        return self.grain < self.length


def emit_calls(e: EntryEmitter, calls: Sequence[Call]) -> None:
    """The calls, one after the other."""
    for call in calls:
        e.context_words = max(e.context_words, len(call.pointers))
    if any(call.shared for call in calls):
        e.imports.add(Target.PARALLEL_FOR)
        e.declarations.add(f"declare void @{Target.PARALLEL_FOR}(ptr, ptr, i64, i64)")
    if any(call.shared and call.polls for call in calls):
        e.imports.add(Target.WATCHED_FOR)
        e.declarations.add(f"declare void @{Target.WATCHED_FOR}(ptr, ptr, i64, i64, ptr, ptr)")
    if len(calls) >= limits().table_calls:
        _table(e, calls)
        return
    for call in calls:
        _straight(e, call)


def _straight(e: EntryEmitter, call: Call) -> None:
    words = ["%status" if a is None else _moved(e, e.pointer(a), by) for a, by in call.pointers]
    for position, word in enumerate(words):
        place = e.op(f"getelementptr ptr, ptr %ctx, i64 {position}")
        e.line(f"store ptr {word}, ptr {place}, align 8")
    watch = "@stopped" if call.polls else ""
    _run(e, f"@{call.name}", str(call.length), str(call.grain), call.shared, watch)
    if call.checks:
        site = e.op("load i64, ptr %site_at, align 8")
        e.fail_if(e.op(f"icmp ne i64 {site}, 0"), e.op(f"trunc i64 {site} to i32"))


def _moved(e: EntryEmitter, pointer: str, nbytes: int) -> str:
    return e.op(f"getelementptr i8, ptr {pointer}, i64 {nbytes}") if nbytes else pointer


def _run(e: EntryEmitter, function: str, length: str, grain: str, shared: bool, watch: str) -> None:
    """`watch` is the function that looks for signals while the caller waits for other threads."""
    work = f"ptr {function}, ptr %ctx, i64 {length}, i64 {grain}"
    if shared and watch:
        e.line(f"call void @{Target.WATCHED_FOR}({work}, ptr {watch}, ptr %status)")
    elif shared:
        e.line(f"call void @{Target.PARALLEL_FOR}({work})")
    else:
        e.line(f"call void {function}(ptr %ctx, i64 0, i64 {length})")


def _table(e: EntryEmitter, calls: Sequence[Call]) -> None:
    bases: dict[str, int] = {}  # what is no argument of the entry, whose numbers are negative
    functions: dict[str, int] = {}
    pointers: dict[Array | None, str] = {}
    words: list[int] = []
    for call in calls:
        function = functions.setdefault(f"@{call.name}", len(functions))
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


def _block(e: EntryEmitter, pointers: dict[str, int]) -> str:
    """An array of these pointers, on the stack."""
    if not pointers:
        return "%args"
    name = f"%block{next(e.names)}"
    e.allocas.append(f"  {name} = alloca [{len(pointers)} x ptr], align 16")
    for pointer, position in pointers.items():
        place = e.op(f"getelementptr ptr, ptr {name}, i64 {position}")
        e.line(f"store ptr {pointer}, ptr {place}, align 8")
    return name


def _loop(
    e: EntryEmitter, table: str, length: int, bases: str, functions: str, calls: Sequence[Call]
) -> None:
    head, each, run, end = (e.label(hint) for hint in ("call", "pointer", "run", "called"))
    at, following, k, k_next = (f"%c{next(e.names)}" for _ in range(4))
    before = e.block
    e.line(f"br label %{head}")
    e.start(head)
    at_head = len(e.lines)
    row = e.op(f"getelementptr i64, ptr {table}, i64 {at}")
    function, count, grain, checks, pointers = (
        _word(e, e.op(f"getelementptr i64, ptr {row}, i64 {n}")) for n in range(_HEAD)
    )
    e.line(f"br label %{each}")
    e.start(each)
    e.line(f"{k} = phi i64 [ 0, %{head} ], [ {k_next}, %{each} ]")
    twice = e.op(f"shl i64 {k}, 1")
    base_at = e.op(f"add i64 {twice}, {_HEAD}")
    entry = e.op(f"getelementptr i64, ptr {row}, i64 {base_at}")
    base = _word(e, entry)
    given = e.op(f"icmp slt i64 {base}, 0")
    block = e.op(f"select i1 {given}, ptr %args, ptr {bases}")
    number = e.op(f"select i1 {given}, i64 {e.op(f'xor i64 {base}, -1')}, i64 {base}")
    base = e.op(f"getelementptr ptr, ptr {block}, i64 {number}")
    offset = _word(e, e.op(f"getelementptr i64, ptr {entry}, i64 1"))
    pointer = e.op(f"load ptr, ptr {base}, align 8")
    pointer = e.op(f"getelementptr i8, ptr {pointer}, i64 {offset}")
    e.line(f"store ptr {pointer}, ptr {e.op(f'getelementptr ptr, ptr %ctx, i64 {k}')}, align 8")
    e.line(f"{k_next} = add i64 {k}, 1")
    e.line(f"br i1 {e.op(f'icmp slt i64 {k_next}, {pointers}')}, label %{each}, label %{run}")
    e.start(run)
    known = e.op(f"load ptr, ptr {e.op(f'getelementptr ptr, ptr {functions}, i64 {function}')}")
    watch = ""
    if any(
        call.shared and call.polls for call in calls
    ):  # only such a call may be ended, whose status is read
        watch = e.op(f"select i1 {e.op(f'icmp ne i64 {checks}, 0')}, ptr @stopped, ptr null")
    if all(call.shared for call in calls) or not any(call.shared for call in calls):
        _run(e, known, count, grain, calls[0].shared, watch)
    else:
        alone, together, done = (e.label(hint) for hint in ("alone", "together", "done"))
        less = e.op(f"icmp slt i64 {grain}, {count}")
        e.line(f"br i1 {less}, label %{together}, label %{alone}")
        for label, shared in ((alone, False), (together, True)):
            e.start(label)
            _run(e, known, count, grain, shared, watch)
            e.line(f"br label %{done}")
        e.start(done)
    if any(call.checks for call in calls):
        site = e.op(f"and i64 {_word(e, '%site_at')}, {e.op(f'sub i64 0, {checks}')}")
        e.fail_if(e.op(f"icmp ne i64 {site}, 0"), e.op(f"trunc i64 {site} to i32"))
    size = e.op(f"add i64 {e.op(f'shl i64 {pointers}, 1')}, {_HEAD}")
    e.line(f"{following} = add i64 {at}, {size}")
    more = e.op(f"icmp slt i64 {following}, {length}")
    e.line(f"br i1 {more}, label %{head}, label %{end}")
    e.lines.insert(at_head, f"  {at} = phi i64 [ 0, %{before} ], [ {following}, %{e.block} ]")
    e.start(end)


def _word(e: EntryEmitter, address: str) -> str:
    return e.op(f"load i64, ptr {address}, align 8")
