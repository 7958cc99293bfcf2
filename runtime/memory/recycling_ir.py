"""The LLVM text of the recycling allocator: NumPy's four memory functions over a table of blocks.

    page with the header | data, 2 MiB-aligned ... | end

The header holds the capacity, 64 bytes before the data. `slots` are the blocks that wait for an
array, `kept` the bytes in them; both change under `mutex` only. Nobody waits for it: who does not get
it asks the system for memory, or gives memory back to it. So it can be held by a thread that waits for
the GIL, or by one that a forked child does not have. No system call runs with the lock held.
"""

from __future__ import annotations

SLOTS = 64  # blocks that may wait at the same time
_SLOT_BYTES = 24

_IR = """
%slot = type {{ i64, ptr, i64 }}                  ; capacity (0: empty), data, age stamp
@slots = internal global [{slots} x %slot] zeroinitializer, align 64
@mutex = internal global i32 0, align 64
@clock = internal global i64 0
@kept = global i64 0, align 64                    ; bytes in the table
@limit = global i64 0
@reused = global i64 0
@mapped = global i64 0

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64, i64)

define internal i1 @try_lock() nounwind {{
  %swap = cmpxchg ptr @mutex, i32 0, i32 1 acquire monotonic
  %won = extractvalue {{ i32, i1 }} %swap, 1
  ret i1 %won
}}

define internal void @unlock() nounwind {{
  store atomic i32 0, ptr @mutex release, align 4
  ret void
}}

; In the child after fork(): a table that another thread was changing is forgotten, with its blocks.
define void @forked() nounwind {{
entry:
  %held = load i32, ptr @mutex
  %torn = icmp ne i32 %held, 0
  br i1 %torn, label %forget, label %out
forget:
  call void @llvm.memset.p0.i64(ptr @slots, i8 0, i64 {table_bytes}, i1 false)
  store i64 0, ptr @kept
  call void @unlock()
  br label %out
out:
  ret void
}}

; Sizes that are worth sharing: multiples of 2 MiB, below that of 64 KiB. 0: there is no such size.
define internal i64 @round_up(i64 %size) nounwind {{
  %big = icmp uge i64 %size, 2097152
  %unit = select i1 %big, i64 2097152, i64 65536
  %less = sub i64 %unit, 1
  %most = icmp ult i64 %size, 9223372036850581504
  %padded = add i64 %size, %less
  %negative = sub i64 0, %unit
  %rounded = and i64 %padded, %negative
  %zero = icmp eq i64 %size, 0
  %positive = select i1 %zero, i64 65536, i64 %rounded
  %result = select i1 %most, i64 %positive, i64 0
  ret i64 %result
}}

; Header: the capacity, 64 bytes before the data, in a page of its own.
define internal i64 @capacity(ptr %data) nounwind {{
  %at = getelementptr i8, ptr %data, i64 -64
  %capacity = load i64, ptr %at
  ret i64 %capacity
}}

define internal void @unmap(ptr %data, i64 %capacity) nounwind {{
  %base = getelementptr i8, ptr %data, i64 -4096
  %total = add i64 %capacity, 4096
  %done = call i32 @munmap(ptr %base, i64 %total)
  ret void
}}

; A new block: header page, then data aligned to 2 MiB. Null if the system has no memory.
define internal ptr @map(i64 %capacity) nounwind {{
entry:
  %room = add i64 %capacity, 2101248              ; header page and 2 MiB to align in
  %at = call ptr @mmap(ptr null, i64 %room, i32 3, i32 34, i32 -1, i64 0)
  %start = ptrtoint ptr %at to i64
  %failed = icmp eq i64 %start, -1
  br i1 %failed, label %none, label %align
none:
  ret ptr null
align:
  %first = add i64 %start, 4096
  %padded = add i64 %first, 2097151
  %data_int = and i64 %padded, -2097152
  %base = sub i64 %data_int, 4096
  %before = sub i64 %base, %start
  %some_before = icmp ne i64 %before, 0
  br i1 %some_before, label %cut_before, label %tail
cut_before:
  %cut1 = call i32 @munmap(ptr %at, i64 %before)
  br label %tail
tail:
  %end = add i64 %data_int, %capacity
  %room_end = add i64 %start, %room
  %after = sub i64 %room_end, %end
  %some_after = icmp ne i64 %after, 0
  br i1 %some_after, label %cut_after, label %ready
cut_after:
  %end_ptr = inttoptr i64 %end to ptr
  %cut2 = call i32 @munmap(ptr %end_ptr, i64 %after)
  br label %ready
ready:
  %data = inttoptr i64 %data_int to ptr
  %advised = call i32 @madvise(ptr %data, i64 %capacity, i32 14)
  %header = getelementptr i8, ptr %data, i64 -64
  store i64 %capacity, ptr %header
  %count = atomicrmw add ptr @mapped, i64 1 monotonic
  ret ptr %data
}}

; Drop the oldest blocks until at most %target bytes are kept, and a slot is empty if one is needed.
; The lock is held on entry, and on return if the result says so; not while memory is given back.
define internal i1 @make_room(i64 %target, i1 %need_slot) nounwind {{
entry:
  br label %again
again:
  br label %scan
scan:
  %i = phi i64 [ 0, %again ], [ %i_next, %scan_next ]
  %oldest = phi i64 [ -1, %again ], [ %oldest_next, %scan_next ]
  %oldest_age = phi i64 [ -1, %again ], [ %age_next, %scan_next ]
  %hole = phi i1 [ false, %again ], [ %hole_next, %scan_next ]
  %capacity_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %i, i32 0
  %capacity = load i64, ptr %capacity_at
  %is_empty = icmp eq i64 %capacity, 0
  %age_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %i, i32 2
  %age = load i64, ptr %age_at
  %older = icmp ult i64 %age, %oldest_age
  %is_full = xor i1 %is_empty, true
  %better = and i1 %is_full, %older
  br label %scan_next
scan_next:
  %oldest_next = select i1 %better, i64 %i, i64 %oldest
  %age_next = select i1 %better, i64 %age, i64 %oldest_age
  %hole_next = or i1 %hole, %is_empty
  %i_next = add i64 %i, 1
  %more = icmp ult i64 %i_next, {slots}
  br i1 %more, label %scan, label %judge
judge:
  %kept = load i64, ptr @kept
  %over = icmp ugt i64 %kept, %target
  %no_hole = xor i1 %hole_next, true
  %crowded = and i1 %need_slot, %no_hole
  %too_much = or i1 %over, %crowded
  %have_one = icmp ne i64 %oldest_next, -1
  %drop = and i1 %too_much, %have_one
  br i1 %drop, label %evict, label %out
evict:
  %old_capacity_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %oldest_next, i32 0
  %old_capacity = load i64, ptr %old_capacity_at
  %old_data_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %oldest_next, i32 1
  %old_data = load ptr, ptr %old_data_at
  store i64 0, ptr %old_capacity_at
  %kept_less = sub i64 %kept, %old_capacity
  store i64 %kept_less, ptr @kept
  call void @unlock()
  call void @unmap(ptr %old_data, i64 %old_capacity)
  %locked = call i1 @try_lock()
  br i1 %locked, label %again, label %lost
lost:
  ret i1 false
out:
  ret i1 true
}}

; Drop blocks until at most %target bytes are kept.
define void @trim(i64 %target) nounwind {{
entry:
  %locked = call i1 @try_lock()
  br i1 %locked, label %drop, label %out
drop:
  %still = call i1 @make_room(i64 %target, i1 false)
  br i1 %still, label %done, label %out
done:
  call void @unlock()
  br label %out
out:
  ret void
}}

define ptr @recycling_malloc(ptr %ctx, i64 %size) nounwind {{
entry:
  %wanted = call i64 @round_up(i64 %size)
  %absurd = icmp eq i64 %wanted, 0
  br i1 %absurd, label %none, label %search
none:
  ret ptr null
search:
  %eighth = lshr i64 %wanted, 3
  %most = add i64 %wanted, %eighth
  %locked = call i1 @try_lock()
  br i1 %locked, label %scan, label %map
scan:                                             ; the smallest that fits; of equals the newest
  %i = phi i64 [ 0, %search ], [ %i_next, %scan ]
  %best = phi i64 [ -1, %search ], [ %best_next, %scan ]
  %best_size = phi i64 [ -1, %search ], [ %size_next, %scan ]
  %best_age = phi i64 [ 0, %search ], [ %age_next, %scan ]
  %capacity_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %i, i32 0
  %capacity = load i64, ptr %capacity_at
  %age_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %i, i32 2
  %age = load i64, ptr %age_at
  %enough = icmp uge i64 %capacity, %wanted
  %not_wasteful = icmp ule i64 %capacity, %most
  %fits = and i1 %enough, %not_wasteful
  %smaller = icmp ult i64 %capacity, %best_size
  %equal = icmp eq i64 %capacity, %best_size
  %newer = icmp ugt i64 %age, %best_age
  %equal_newer = and i1 %equal, %newer
  %preferred = or i1 %smaller, %equal_newer
  %better = and i1 %fits, %preferred
  %best_next = select i1 %better, i64 %i, i64 %best
  %size_next = select i1 %better, i64 %capacity, i64 %best_size
  %age_next = select i1 %better, i64 %age, i64 %best_age
  %i_next = add i64 %i, 1
  %more = icmp ult i64 %i_next, {slots}
  br i1 %more, label %scan, label %found
found:
  %hit = icmp ne i64 %best_next, -1
  br i1 %hit, label %take, label %miss
take:
  %taken_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %best_next, i32 0
  %taken_data_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %best_next, i32 1
  %data = load ptr, ptr %taken_data_at
  store i64 0, ptr %taken_at
  %kept = load i64, ptr @kept
  %kept_less = sub i64 %kept, %size_next
  store i64 %kept_less, ptr @kept
  %reused = load i64, ptr @reused
  %reused_more = add i64 %reused, 1
  store i64 %reused_more, ptr @reused
  call void @unlock()
  ret ptr %data
miss:
  call void @unlock()
  br label %map
map:
  %fresh = call ptr @map(i64 %wanted)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %squeeze, label %ok
squeeze:                                          ; what we keep may be what the system lacks
  call void @trim(i64 0)
  %second = call ptr @map(i64 %wanted)
  ret ptr %second
ok:
  ret ptr %fresh
}}

define void @recycling_free(ptr %ctx, ptr %data, i64 %size) nounwind {{
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %out, label %look
look:
  %capacity = call i64 @capacity(ptr %data)
  %limit = load i64, ptr @limit
  %too_big = icmp ugt i64 %capacity, %limit
  br i1 %too_big, label %drop, label %ask
drop:
  call void @unmap(ptr %data, i64 %capacity)
  br label %out
ask:
  %locked = call i1 @try_lock()
  br i1 %locked, label %keep, label %drop
keep:
  %target = sub i64 %limit, %capacity
  %still = call i1 @make_room(i64 %target, i1 true)
  br i1 %still, label %scan, label %drop
scan:
  %i = phi i64 [ 0, %keep ], [ %i_next, %next ]
  %capacity_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %i, i32 0
  %there = load i64, ptr %capacity_at
  %is_empty = icmp eq i64 %there, 0
  br i1 %is_empty, label %put, label %next
next:
  %i_next = add i64 %i, 1
  br label %scan                                  ; make_room left an empty slot
put:
  %data_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %i, i32 1
  %age_at = getelementptr [{slots} x %slot], ptr @slots, i64 0, i64 %i, i32 2
  %clock = load i64, ptr @clock
  %tick = add i64 %clock, 1
  store i64 %tick, ptr @clock
  store i64 %capacity, ptr %capacity_at
  store ptr %data, ptr %data_at
  store i64 %tick, ptr %age_at
  %kept = load i64, ptr @kept
  %kept_more = add i64 %kept, %capacity
  store i64 %kept_more, ptr @kept
  call void @unlock()
  br label %out
out:
  ret void
}}

define ptr @recycling_calloc(ptr %ctx, i64 %count, i64 %item) nounwind {{
entry:
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %count, i64 %item)
  %size = extractvalue {{ i64, i1 }} %product, 0
  %overflow = extractvalue {{ i64, i1 }} %product, 1
  br i1 %overflow, label %none, label %allocate
allocate:
  %data = call ptr @recycling_malloc(ptr %ctx, i64 %size)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %none, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %size, i1 false)
  ret ptr %data
none:
  ret ptr null
}}

define ptr @recycling_realloc(ptr %ctx, ptr %data, i64 %size) nounwind {{
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %fresh, label %look
fresh:
  %new = call ptr @recycling_malloc(ptr %ctx, i64 %size)
  ret ptr %new
look:
  %capacity = call i64 @capacity(ptr %data)
  %wanted = call i64 @round_up(i64 %size)
  %half = lshr i64 %capacity, 1
  %fits = icmp ule i64 %size, %capacity
  %tight = icmp uge i64 %wanted, %half
  %stay = and i1 %fits, %tight
  br i1 %stay, label %same, label %move
same:
  ret ptr %data
move:
  %other = call ptr @recycling_malloc(ptr %ctx, i64 %size)
  %failed = icmp eq ptr %other, null
  br i1 %failed, label %none, label %copy
none:
  ret ptr null
copy:
  %bytes = call i64 @llvm.umin.i64(i64 %capacity, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %other, ptr %data, i64 %bytes, i1 false)
  call void @recycling_free(ptr %ctx, ptr %data, i64 %capacity)
  ret ptr %other
}}
"""


def recycling_ir() -> str:
    """The module's text."""
    return _IR.format(slots=SLOTS, table_bytes=SLOTS * _SLOT_BYTES)
