"""Tapes: growable stacks in native memory, for what a loop of unknown length must remember.

A tape is a struct that the handle points at: the link of the call's list of tapes, the top of the stack,
and the bounds of the block that the top is in. Blocks are linked to the ones below; a block that has
become empty is freed, and all that is left is freed when the entry returns, whatever happened. So a tape
needs no owner, and one that is never read leaks nothing. An empty tape gives zeros, and for a tape in
a record a null handle, which the first push on it replaces. Records are rounded to 16 bytes and do not
cross blocks; blocks double in size up to a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kernel import Array
from ..steps import TapeNew, TapePop, TapePush

if TYPE_CHECKING:
    from .entry import EntryEmitter

_FIRST_BLOCK = 1 << 12
_LARGEST_BLOCK = 1 << 24

# %tape = { link, block, top, end, next block's size }   %block = { below, saved top, saved end }
_RUNTIME = f"""
%tape = type {{ ptr, ptr, ptr, ptr, i64 }}
%block = type {{ ptr, ptr, ptr, i64 }}
declare ptr @malloc(i64)
declare void @free(ptr)

define internal ptr @tape_new(ptr %tapes) nounwind {{
  %t = call ptr @malloc(i64 40)
  %failed = icmp eq ptr %t, null
  br i1 %failed, label %out, label %made
made:
  %link = load ptr, ptr %tapes, align 8
  store ptr %link, ptr %t, align 8
  store ptr %t, ptr %tapes, align 8
  %block = getelementptr %tape, ptr %t, i64 0, i32 1
  store ptr null, ptr %block, align 8
  %top = getelementptr %tape, ptr %t, i64 0, i32 2
  store ptr null, ptr %top, align 8
  %end = getelementptr %tape, ptr %t, i64 0, i32 3
  store ptr null, ptr %end, align 8
  %size = getelementptr %tape, ptr %t, i64 0, i32 4
  store i64 {_FIRST_BLOCK}, ptr %size, align 8
  br label %out
out:
  ret ptr %t
}}

; The tape behind a handle. A null handle is what an empty tape gave for a tape in a record: a new one.
define internal ptr @tape_open(ptr %handle, ptr %tapes) nounwind {{
entry:
  %old = load ptr, ptr %handle, align 8
  %none = icmp eq ptr %old, null
  br i1 %none, label %make, label %out
make:
  %new = call ptr @tape_new(ptr %tapes)
  store ptr %new, ptr %handle, align 8
  br label %out
out:
  %t = phi ptr [ %old, %entry ], [ %new, %make ]
  ret ptr %t
}}

; Space for n bytes on top of the tape; null if there is no memory.
define internal ptr @tape_push(ptr %t, i64 %n) nounwind {{
  %top_at = getelementptr %tape, ptr %t, i64 0, i32 2
  %end_at = getelementptr %tape, ptr %t, i64 0, i32 3
  %top = load ptr, ptr %top_at, align 8
  %end = load ptr, ptr %end_at, align 8
  %top_i = ptrtoint ptr %top to i64
  %end_i = ptrtoint ptr %end to i64
  %room = sub i64 %end_i, %top_i
  %fits = icmp uge i64 %room, %n
  br i1 %fits, label %here, label %grow
here:
  %above = getelementptr i8, ptr %top, i64 %n
  store ptr %above, ptr %top_at, align 8
  ret ptr %top
grow:
  %size_at = getelementptr %tape, ptr %t, i64 0, i32 4
  %size = load i64, ptr %size_at, align 8
  %large = icmp ugt i64 %n, %size
  %space = select i1 %large, i64 %n, i64 %size
  %bytes = add i64 %space, 32
  %b = call ptr @malloc(i64 %bytes)
  %failed = icmp eq ptr %b, null
  br i1 %failed, label %none, label %made
none:
  ret ptr null
made:
  %twice = mul i64 %size, 2
  %most = icmp ugt i64 %twice, {_LARGEST_BLOCK}
  %next = select i1 %most, i64 {_LARGEST_BLOCK}, i64 %twice
  store i64 %next, ptr %size_at, align 8
  %block_at = getelementptr %tape, ptr %t, i64 0, i32 1
  %below = load ptr, ptr %block_at, align 8
  store ptr %below, ptr %b, align 8
  %saved_top = getelementptr %block, ptr %b, i64 0, i32 1
  store ptr %top, ptr %saved_top, align 8
  %saved_end = getelementptr %block, ptr %b, i64 0, i32 2
  store ptr %end, ptr %saved_end, align 8
  store ptr %b, ptr %block_at, align 8
  %data = getelementptr i8, ptr %b, i64 32
  %new_top = getelementptr i8, ptr %data, i64 %n
  store ptr %new_top, ptr %top_at, align 8
  %new_end = getelementptr i8, ptr %data, i64 %space
  store ptr %new_end, ptr %end_at, align 8
  ret ptr %data
}}

; Make room for the pop: drop the block that a pop has emptied. Then take n bytes off. Null if the tape
; is empty.
define internal ptr @tape_pop(ptr %t, i64 %n) nounwind {{
entry:
  %absent = icmp eq ptr %t, null
  br i1 %absent, label %nothing, label %begin
begin:
  %top_at = getelementptr %tape, ptr %t, i64 0, i32 2
  %end_at = getelementptr %tape, ptr %t, i64 0, i32 3
  %block_at = getelementptr %tape, ptr %t, i64 0, i32 1
  br label %look
look:
  %b = load ptr, ptr %block_at, align 8
  %bare = icmp eq ptr %b, null
  br i1 %bare, label %nothing, label %look_in
look_in:
  %top = load ptr, ptr %top_at, align 8
  %data = getelementptr i8, ptr %b, i64 32
  %empty = icmp eq ptr %top, %data
  br i1 %empty, label %drop, label %take
drop:
  %below = load ptr, ptr %b, align 8
  %saved_top = getelementptr %block, ptr %b, i64 0, i32 1
  %old_top = load ptr, ptr %saved_top, align 8
  %saved_end = getelementptr %block, ptr %b, i64 0, i32 2
  %old_end = load ptr, ptr %saved_end, align 8
  store ptr %below, ptr %block_at, align 8
  store ptr %old_top, ptr %top_at, align 8
  store ptr %old_end, ptr %end_at, align 8
  call void @free(ptr %b)
  br label %look
take:
  %minus = sub i64 0, %n
  %record = getelementptr i8, ptr %top, i64 %minus
  store ptr %record, ptr %top_at, align 8
  ret ptr %record
nothing:
  ret ptr null
}}

define internal void @tapes_free(ptr %tapes) nounwind {{
entry:
  %first = load ptr, ptr %tapes, align 8
  br label %head
head:
  %t = phi ptr [ %first, %entry ], [ %link, %done ]
  %last = icmp eq ptr %t, null
  br i1 %last, label %end, label %tape
tape:
  %block_at = getelementptr %tape, ptr %t, i64 0, i32 1
  %top_block = load ptr, ptr %block_at, align 8
  br label %blocks
blocks:
  %b = phi ptr [ %top_block, %tape ], [ %below, %block ]
  %none = icmp eq ptr %b, null
  br i1 %none, label %done, label %block
block:
  %below = load ptr, ptr %b, align 8
  call void @free(ptr %b)
  br label %blocks
done:
  %link = load ptr, ptr %t, align 8
  call void @free(ptr %t)
  br label %head
end:
  ret void
}}
"""


def wrapper(name: str) -> str:
    """The entry around the body: it owns the list of tapes."""
    return f"""
define i32 @{name}(ptr %args) nounwind {{
entry:
  %tapes = alloca ptr, align 8
  store ptr null, ptr %tapes, align 8
  %code = call i32 @body(ptr %args, ptr %tapes)
  call void @tapes_free(ptr %tapes)
  ret i32 %code
}}
"""


def new(e: EntryEmitter, step: TapeNew) -> None:
    e.uses_tapes = True
    e.helpers[_RUNTIME] = None
    tape = e.op("call ptr @tape_new(ptr %tapes)")
    e.fail_if(e.op(f"icmp eq ptr {tape}, null"), str(step.site))
    e.line(f"store ptr {tape}, ptr {e.pointer(step.handle)}, align 8")


def push(e: EntryEmitter, step: TapePush) -> None:
    tape = e.op(f"call ptr @tape_open(ptr {e.pointer(step.handle)}, ptr %tapes)")
    e.fail_if(e.op(f"icmp eq ptr {tape}, null"), str(step.site))
    record = e.op(f"call ptr @tape_push(ptr {tape}, i64 {_record_bytes(step)})")
    e.fail_if(e.op(f"icmp eq ptr {record}, null"), str(step.site))
    for at, array, nbytes in _places(e, record, step):
        e.copy(at, e.pointer(array), nbytes)


def pop(e: EntryEmitter, step: TapePop) -> None:
    tape = e.op(f"load ptr, ptr {e.pointer(step.handle)}, align 8")
    record = e.op(f"call ptr @tape_pop(ptr {tape}, i64 {_record_bytes(step)})")
    full, empty, end = e.label("record"), e.label("zeros"), e.label("popped")
    e.line(f"br i1 {e.op(f'icmp eq ptr {record}, null')}, label %{empty}, label %{full}")
    e.start(full)
    for at, array, nbytes in _places(e, record, step):
        e.copy(e.pointer(array), at, nbytes)
    e.line(f"br label %{end}")
    e.start(empty)
    for array in step.values:
        if array.nbytes:
            e.clear(e.pointer(array), array.nbytes)
    e.line(f"br label %{end}")
    e.start(end)


def _places(e: EntryEmitter, record: str, step: TapePush | TapePop) -> list[tuple[str, Array, int]]:
    """Where in a record each value is."""
    places, offset = [], 0
    for array in step.values:
        if array.nbytes:
            at = e.op(f"getelementptr i8, ptr {record}, i64 {offset}")
            places.append((at, array, array.nbytes))
        offset += _rounded(array.nbytes)
    return places


def _record_bytes(step: TapePush | TapePop) -> int:
    return max(sum(_rounded(v.nbytes) for v in step.values), 16)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // 16) * 16
