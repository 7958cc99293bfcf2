"""Sorting rows, as an LLVM function per dtype: a stable merge sort.

Runs of `RUN` elements are sorted by insertion, then merged bottom-up between the target and a scratch
row. NaN sorts after every number, as in NumPy; equal elements keep their order. For argsort the
elements that move are int64 positions, compared by the keys they point at.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.types import BOOL, I64, dtype_name
from ..scalar import DType
from .instructions import SCALAR_TYPES

RUN = 24


@dataclass(frozen=True)
class SortFunction:
    """`void @name(ptr source, ptr target, ptr scratch, i64 rows, i64 n)` and what it needs."""

    name: str
    texts: tuple[str, ...]  # whole functions
    declarations: frozenset[str]


def sort_function(dtype: DType, indices: bool) -> SortFunction:
    """The function that sorts rows of `dtype`, or (`indices`) finds the permutation that does."""
    name = f"{'argsort' if indices else 'sort'}_{dtype_name(dtype)}"
    key = "i8" if dtype == BOOL else SCALAR_TYPES[dtype]
    element = "i64" if indices else key
    size = I64.itemsize if indices else dtype.itemsize
    fields = {
        "name": name,
        "E": element,
        "size": size,
        "key_size": dtype.itemsize,
        "run": RUN,
        "begin_block": "number" if indices else "row",
        "begin": _BEGIN_INDICES if indices else _BEGIN_VALUES.format(size=size),
    }
    before = (_less_of_indices if indices else _less_of_values)(dtype, key)
    texts = (
        f"define internal i1 @{name}_before{before}",
        f"define internal void @{name}_insertion{_INSERTION.format(**fields)}",
        f"define internal void @{name}_merge{_MERGE.format(**fields)}",
        f"define internal void @{name}{_ROWS.format(**fields)}",
    )
    return SortFunction(
        name, texts, frozenset({"declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"})
    )


def _comparison(dtype: DType, key: str) -> str:
    """LLVM text that sets %r: whether key %x sorts strictly before key %y."""
    if dtype.kind == "f":
        return (
            f"  %lt = fcmp olt {key} %x, %y\n"
            f"  %ynan = fcmp uno {key} %y, %y\n"
            f"  %xnum = fcmp ord {key} %x, %x\n"
            "  %last = and i1 %ynan, %xnum\n"
            "  %r = or i1 %lt, %last\n"
        )
    return f"  %r = icmp {'slt' if dtype.kind == 'i' else 'ult'} {key} %x, %y\n"


def _less_of_values(dtype: DType, key: str) -> str:
    return (
        f"(ptr %keys, {key} %x, {key} %y) alwaysinline nounwind {{\n"
        f"entry:\n{_comparison(dtype, key)}  ret i1 %r\n}}\n"
    )


def _less_of_indices(dtype: DType, key: str) -> str:
    return (
        "(ptr %keys, i64 %i, i64 %j) alwaysinline nounwind {\nentry:\n"
        f"  %px = getelementptr {key}, ptr %keys, i64 %i\n"
        f"  %x = load {key}, ptr %px, align {dtype.itemsize}\n"
        f"  %py = getelementptr {key}, ptr %keys, i64 %j\n"
        f"  %y = load {key}, ptr %py, align {dtype.itemsize}\n"
        f"{_comparison(dtype, key)}  ret i1 %r\n}}\n"
    )


_BEGIN_VALUES = """  %row_bytes = mul i64 %n, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %s, i64 %row_bytes, i1 false)
  br label %runs
"""

_BEGIN_INDICES = """  br label %number
number:
  %q = phi i64 [ 0, %row ], [ %qn, %number ]
  %pq = getelementptr i64, ptr %d, i64 %q
  store i64 %q, ptr %pq, align 8
  %qn = add i64 %q, 1
  %qc = icmp slt i64 %qn, %n
  br i1 %qc, label %number, label %runs
"""

# Sort a[lo..hi) by insertion.
_INSERTION = """(ptr %keys, ptr %a, i64 %lo, i64 %hi) nounwind {{
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
  %less = call i1 @{name}_before(ptr %keys, {E} %v, {E} %u)
  br i1 %less, label %move, label %place
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
_MERGE = """(ptr %keys, ptr %a, ptr %b, i64 %lo, i64 %mid, i64 %hi) nounwind {{
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
  %c = call i1 @{name}_before(ptr %keys, {E} %y, {E} %x)
  %v = select i1 %c, {E} %y, {E} %x
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

_ROWS = """(ptr %source, ptr %target, ptr %scratch, i64 %rows, i64 %n) nounwind {{
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %head, label %end
head:
  %r = phi i64 [ 0, %entry ], [ %rn, %next ]
  %go = icmp slt i64 %r, %rows
  br i1 %go, label %row, label %end
row:
  %at = mul i64 %r, %n
  %sb = mul i64 %at, {key_size}
  %s = getelementptr i8, ptr %source, i64 %sb
  %db = mul i64 %at, {size}
  %d = getelementptr i8, ptr %target, i64 %db
{begin}runs:
  %lo = phi i64 [ %hi0, %one ], [ 0, %{begin_block} ]
  %some = icmp slt i64 %lo, %n
  br i1 %some, label %one, label %pass
one:
  %hi0 = add i64 %lo, {run}
  %over = icmp slt i64 %hi0, %n
  %hi = select i1 %over, i64 %hi0, i64 %n
  call void @{name}_insertion(ptr %s, ptr %d, i64 %lo, i64 %hi)
  br label %runs
pass:
  %w = phi i64 [ {run}, %runs ], [ %w2, %merged ]
  %a = phi ptr [ %d, %runs ], [ %b, %merged ]
  %b = phi ptr [ %scratch, %runs ], [ %a, %merged ]
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
  call void @{name}_merge(ptr %s, ptr %a, ptr %b, i64 %l, i64 %m, i64 %h)
  br label %pairs
merged:
  %w2 = mul i64 %w, 2
  br label %pass
finish:
  %there = icmp eq ptr %a, %d
  br i1 %there, label %next, label %back
back:
  %bytes = mul i64 %n, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %a, i64 %bytes, i1 false)
  br label %next
next:
  %rn = add i64 %r, 1
  br label %head
end:
  ret void
}}
"""
