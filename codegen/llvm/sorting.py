"""Sorting rows of unsigned keys, as LLVM functions for each kind of element.

What is sorted has been encoded: larger keys sort later, and NaN has the largest (see `lower_sorting`).
Numbers of 4 and 8 bytes go by `quicksort` where the CPU compresses vectors. Otherwise short rows are
sorted by a stable merge sort: runs of `RUN` elements by insertion, then merged bottom-up between the
target and the keys; long rows go by `radix`. Rows are shared among threads.
"""

from __future__ import annotations

from ...ir.record import record
from ..limits import limits
from ..sort_blocks import count_words
from ..steps import Sort
from ..target import Target
from .places import DECLARATIONS as PLACES
from .places import places_functions
from .quicksort import quicksort_declarations, quicksort_functions
from .radix import radix_functions
from .row_parts import Fields
from .selection import window_functions
from .sorting_network import registers_for

RUN = 24


@record
class SortFunction:
    """`void @name(ptr keys, ptr target, ptr scratch, ptr counts, i64 rows)`, and what it needs."""

    name: str
    texts: tuple[str, ...]  # whole functions
    declarations: frozenset[str]


DECLARATIONS = frozenset(
    {
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "declare void @jitney_parallel_for(ptr, ptr, i64, i64)",
    }
)


def sort_function(step: Sort, target: Target) -> SortFunction:
    """The function that sorts the rows of a step."""
    n = step.keys.shape[step.axis]
    key_bits = step.key_bits
    size = {"packed": 8, "pairs": 16}.get(step.kind, step.keys.dtype.itemsize)
    element, key = f"i{8 * size}", f"i{key_bits}"
    long = n > limits().short_row
    quick = n > 1 and size >= 4 and step.kind in ("value", "float", "places") and target.compresses
    if step.kind == "packed" and target.compresses and n > 1 and (key_bits == 32 or not long):
        quick, key_bits = True, 64  # places differ: no element equals another
    name = f"sort_{step.kind}{key_bits}_{'quick' if quick else 'long' if long else 'short'}"
    zeros = step.kind == "float"
    declarations = DECLARATIONS
    if quick:
        registers = registers_for(n, 512 // key_bits)
        name = f"{name}{registers}"
        merge = f"{name}_merge"
        texts = _merge_functions(merge, element, size, zeros)
        texts += quicksort_functions(name, merge, key_bits, registers, zeros)
        declarations |= quicksort_declarations(key_bits)
    elif long:
        texts = radix_functions(name, element, key, _load_key(step.kind, size, key_bits))
    else:
        texts = _merge_functions(name, element, size, zeros)
    if step.kind == "places":
        row, name = name, f"{name}_{n}_places"
        texts += places_functions(name, row, n)
        declarations |= PLACES
    if long and step.window is not None:
        row, name = name, f"{name}_{step.window[0]}_{step.window[1]}"
        texts += window_functions(name, row, size, n, *step.window, step.kind == "float")
        lanes = 64 // size
        vector = f"<{lanes} x {element}>"
        declarations |= {
            "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
            f"declare {vector} @llvm.masked.load.v{lanes}{element}.p0(ptr, <{lanes} x i1>, {vector})",
            f"declare i{lanes} @llvm.ctpop.i{lanes}(i{lanes})",
            f"declare i{lanes} @llvm.cttz.i{lanes}(i{lanes}, i1)",
        }
    words = count_words(n)
    rows = _ROWS.format(
        name=name,
        size=size,
        words=words,
        fixed=n,
        grain=max(1, limits().sorted_at_once // max(n, 1)),
    )
    return SortFunction(f"{name}_{n}", (*texts, rows), declarations)


def _merge_functions(name: str, element: str, size: int, zeros: bool) -> tuple[str, ...]:
    """`void @name_row(ptr keys, ptr target, ptr scratch, ptr counts, i64 n)`; see the module."""
    less = _LESS_ZEROS if zeros else _LESS
    fields = {"name": name, "E": element, "size": size, "run": RUN, "top": 8 * size - 1}
    insertion = _INSERTION.replace("{less}", less.replace("{x}", "v").replace("{y}", "u"))
    merge = _MERGE.replace("{less}", less.replace("{x}", "y").replace("{y}", "x"))
    return tuple(t.format(**fields) for t in (insertion, merge, _SHORT_ROW))


def _load_key(kind: str, size: int, key_bits: int) -> str:
    """Text that sets %key to the key of element %i of %from."""
    offset = {"packed": 4, "pairs": 8}.get(kind, 0)
    text = (
        f"  %key_byte = mul i64 %i, {size}\n"
        f"  %key_half = getelementptr i8, ptr %from, i64 {offset}\n"
        "  %key_at = getelementptr i8, ptr %key_half, i64 %key_byte\n"
    )
    name = "raw" if kind == "float" else "key"
    text += f"  %{name} = load i{key_bits}, ptr %key_at, align {key_bits // 8}\n"
    if kind == "float":
        text += (
            f"  %upper = lshr i{key_bits} %raw, {key_bits - 1}\n"
            f"  %lower = xor i{key_bits} %upper, 1\n"
            f"  %key = add i{key_bits} %raw, %lower\n"
        )
    return text


# Whether element x sorts strictly before element y.
_LESS = "  %c = icmp ult {E} %{x}, %{y}\n"

# The same for encoded floats: the keys below the middle move up by one, so that -0.0 equals 0.0.
_LESS_ZEROS = """  %{x}_up = lshr {E} %{x}, {top}
  %{x}_low = xor {E} %{x}_up, 1
  %{x}_key = add {E} %{x}, %{x}_low
  %{y}_up = lshr {E} %{y}, {top}
  %{y}_low = xor {E} %{y}_up, 1
  %{y}_key = add {E} %{y}, %{y}_low
  %c = icmp ult {E} %{x}_key, %{y}_key
"""

# Sort a[lo..hi) by insertion.
_INSERTION = """define internal void @{name}_insertion(ptr %a, i64 %lo, i64 %hi) nounwind {{
entry:
  %first = add i64 %lo, 1
  br label %outer
outer:
  %i = phi i64 [ %first, %entry ], [ %in, %place ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %pick, label %done
pick:
  %pi = getelementptr {E}, ptr %a, i64 %i
  %v = load {E}, ptr %pi, align {size}
  br label %shift
shift:
  %j = phi i64 [ %i, %pick ], [ %jn, %move ]
  %room = icmp sgt i64 %j, %lo
  br i1 %room, label %look, label %place
look:
  %jn = add i64 %j, -1
  %pj = getelementptr {E}, ptr %a, i64 %jn
  %u = load {E}, ptr %pj, align {size}
{less}  br i1 %c, label %move, label %place
move:
  %to = getelementptr {E}, ptr %a, i64 %j
  store {E} %u, ptr %to, align {size}
  br label %shift
place:
  %pp = getelementptr {E}, ptr %a, i64 %j
  store {E} %v, ptr %pp, align {size}
  %in = add i64 %i, 1
  br label %outer
done:
  ret void
}}
"""

# Merge a[lo..mid) and a[mid..hi) into b[lo..hi).
_MERGE = """define internal void @{name}_merge(ptr %a, ptr %b, i64 %lo, i64 %mid, i64 %hi) nounwind {{
entry:
  br label %head
head:
  %i = phi i64 [ %lo, %entry ], [ %in, %take ]
  %j = phi i64 [ %mid, %entry ], [ %jn, %take ]
  %k = phi i64 [ %lo, %entry ], [ %kn, %take ]
  %left = icmp slt i64 %i, %mid
  %right = icmp slt i64 %j, %hi
  %both = and i1 %left, %right
  br i1 %both, label %take, label %rest
take:
  %px = getelementptr {E}, ptr %a, i64 %i
  %x = load {E}, ptr %px, align {size}
  %py = getelementptr {E}, ptr %a, i64 %j
  %y = load {E}, ptr %py, align {size}
{less}  %v = select i1 %c, {E} %y, {E} %x
  %pk = getelementptr {E}, ptr %b, i64 %k
  store {E} %v, ptr %pk, align {size}
  %step = zext i1 %c to i64
  %stay = xor i64 %step, 1
  %in = add i64 %i, %stay
  %jn = add i64 %j, %step
  %kn = add i64 %k, 1
  br label %head
rest:
  %pi = getelementptr {E}, ptr %a, i64 %i
  %pj = getelementptr {E}, ptr %a, i64 %j
  %pb = getelementptr {E}, ptr %b, i64 %k
  %ni = sub i64 %mid, %i
  %nj = sub i64 %hi, %j
  %src = select i1 %left, ptr %pi, ptr %pj
  %count = select i1 %left, i64 %ni, i64 %nj
  %bytes = mul i64 %count, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %pb, ptr %src, i64 %bytes, i1 false)
  ret void
}}
"""

_SHORT_ROW = """define internal void @{name}_row(ptr %keys, ptr %target, ptr %scratch, ptr %counts,
    i64 %n) nounwind {{
entry:
  %row_bytes = mul i64 %n, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %keys, i64 %row_bytes, i1 false)
  br label %runs
runs:
  %lo = phi i64 [ %hi0, %one ], [ 0, %entry ]
  %some = icmp slt i64 %lo, %n
  br i1 %some, label %one, label %pass
one:
  %hi0 = add i64 %lo, {run}
  %over = icmp slt i64 %hi0, %n
  %hi = select i1 %over, i64 %hi0, i64 %n
  call void @{name}_insertion(ptr %target, i64 %lo, i64 %hi)
  br label %runs
pass:
  %w = phi i64 [ {run}, %runs ], [ %w2, %merged ]
  %a = phi ptr [ %target, %runs ], [ %b, %merged ]
  %b = phi ptr [ %keys, %runs ], [ %a, %merged ]
  %short = icmp slt i64 %w, %n
  br i1 %short, label %pairs, label %finish
pairs:
  %l = phi i64 [ 0, %pass ], [ %l2, %pair ]
  %ml = icmp slt i64 %l, %n
  br i1 %ml, label %pair, label %merged
pair:
  %m0 = add i64 %l, %w
  %mc = icmp slt i64 %m0, %n
  %m = select i1 %mc, i64 %m0, i64 %n
  %l2 = add i64 %m0, %w
  %hc = icmp slt i64 %l2, %n
  %h = select i1 %hc, i64 %l2, i64 %n
  call void @{name}_merge(ptr %a, ptr %b, i64 %l, i64 %m, i64 %h)
  br label %pairs
merged:
  %w2 = mul i64 %w, 2
  br label %pass
finish:
  %there = icmp eq ptr %a, %target
  br i1 %there, label %out, label %back
back:
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %a, i64 %row_bytes, i1 false)
  br label %out
out:
  ret void
}}
"""

_ROW_FIELDS = Fields("ptr keys, ptr target, ptr scratch, ptr counts")

_ROWS = (
    """define internal void @{name}_{fixed}_rows(ptr %ctx, i64 %lo, i64 %hi) nounwind {{
entry:
"""
    + _ROW_FIELDS.load()
    + """  br label %head
head:
  %r = phi i64 [ %lo, %entry ], [ %r_next, %row ]
  %more = icmp slt i64 %r, %hi
  br i1 %more, label %row, label %out
row:
  %row_bytes = mul i64 {fixed}, {size}
  %at = mul i64 %r, %row_bytes
  %k = getelementptr i8, ptr %keys, i64 %at
  %t = getelementptr i8, ptr %target, i64 %at
  %s = getelementptr i8, ptr %scratch, i64 %at
  %words = mul i64 %r, {words}
  %c = getelementptr i32, ptr %counts, i64 %words
  call void @{name}_row(ptr %k, ptr %t, ptr %s, ptr %c, i64 {fixed})
  %r_next = add i64 %r, 1
  br label %head
out:
  ret void
}}

define internal void @{name}_{fixed}(ptr %keys, ptr %target, ptr %scratch, ptr %counts, i64 %rows)
    nounwind {{
entry:
"""
    + _ROW_FIELDS.allocate()
    + _ROW_FIELDS.store(keys="%keys", target="%target", scratch="%scratch", counts="%counts")
    + """  call void @jitney_parallel_for(ptr @{name}_{fixed}_rows, ptr %ctx, i64 %rows, i64 {grain})
  ret void
}}
"""
)
