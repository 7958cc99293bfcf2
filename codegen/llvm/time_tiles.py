"""Time tiles as LLVM functions: some trips of a loop on blocks of rows, or at the edges between them.

    for u in range(lo, hi):
        for trip in range(trips):
            first(context of the trip, what it has to do of its rows)
            second(...)

The context begins with the number of trips. Then come the pointers of all kernels for even trips, and
those for odd trips, in which the buffers of each carry have traded places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..kernel import Array
from ..steps import Scan, TimeTiles
from ..target import Target

if TYPE_CHECKING:
    from .entry import EntryEmitter


class _Call(NamedTuple):
    """A kernel's function, and the word of a trip's context where its pointers begin."""

    name: str
    place: int


def tiled_trips(e: EntryEmitter, step: Scan, over: str) -> str:
    """Emit the next few trips of a scan of which `over` are done; returns how many these are."""
    tiles = step.tiles
    assert tiles is not None
    calls: list[_Call] = []
    words: list[tuple[Array | None, int]] = []
    for part in tiles.parts:
        done, pointers = e._kernel(part.step, part.plan)
        calls.append(_Call(done.name, len(words)))
        words += pointers
    left = e.op(f"sub i64 {step.length}, {over}")
    last = e.op(f"icmp slt i64 {left}, {tiles.trips}")
    trips = e.op(f"select i1 {last}, i64 {left}, i64 {tiles.trips}")
    e.line(f"store i64 {trips}, ptr %ctx, align 8")
    other = {c.now: c.next for c in step.carries if c.spare is not None}
    other |= {c.next: c.now for c in step.carries if c.spare is not None}
    both = words + [(other.get(a, a) if a is not None else None, by) for a, by in words]
    e.context_words = max(e.context_words, 1 + len(both))
    for position, (array, offset) in enumerate(both):
        pointer = e.op(f"getelementptr i8, ptr {e.pointer(array)}, i64 {offset}")
        place = e.op(f"getelementptr ptr, ptr %ctx, i64 {1 + position}")
        e.line(f"store ptr {pointer}, ptr {place}, align 8")
    e.imports.add(Target.PARALLEL_FOR)
    e.declarations |= {
        f"declare void @{Target.PARALLEL_FOR}(ptr, ptr, i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
        "declare i64 @llvm.smin.i64(i64, i64)",
    }
    for upright, units in ((True, tiles.units), (False, tiles.units - 1)):
        if upright or tiles.reach:
            name = e.function(_function(tiles, calls, len(words), upright), "trips")
            grain = e._grain(min(tiles.grain, units))
            e.line(
                f"call void @{Target.PARALLEL_FOR}(ptr @{name}, ptr %ctx, i64 {units}, i64 {grain})"
            )
    return trips


def _function(tiles: TimeTiles, calls: list[_Call], words: int, upright: bool) -> str:
    """The function's text, from its parameter list on."""
    lines = [
        "(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {",
        "entry:",
        "  %trips = load i64, ptr %ctx, align 8",
        "  %even = getelementptr ptr, ptr %ctx, i64 1",
        f"  %odd = getelementptr ptr, ptr %ctx, i64 {1 + words}",
        "  br label %head",
        "head:",
        "  %u = phi i64 [ %lo, %entry ], [ %next, %done ]",
        "  %more = icmp slt i64 %u, %hi",
        "  br i1 %more, label %unit, label %end",
        "unit:",
        "  %next = add nsw i64 %u, 1",
        *_edge("from", "%u", tiles),
        *_edge("to", "%next", tiles),
        "  %lowest = icmp eq i64 %u, 0",
        f"  %highest = icmp eq i64 %next, {tiles.units}",
        "  br label %trip",
        "trip:",
        "  %t = phi i64 [ 0, %unit ], [ %following, %go ]",
        "  %going = icmp slt i64 %t, %trips",
        "  br i1 %going, label %go, label %done",
        "go:",
        "  %following = add nsw i64 %t, 1",
        "  %parity = trunc i64 %t to i1",
        "  %now = select i1 %parity, ptr %odd, ptr %even",
        f"  %shrunk = mul nsw i64 %t, {tiles.shrink}",
    ]
    for k, (part, call) in enumerate(zip(tiles.parts, calls, strict=True)):
        first, end = part.first, part.first + part.rows
        lines.append(f"  %by{k} = add nsw i64 %shrunk, {tiles.reach * part.level + tiles.margin}")
        if upright:
            lines += [
                f"  %a{k}s = add nsw i64 %from, %by{k}",
                f"  %b{k}s = sub nsw i64 %to, %by{k}",
                f"  %a{k}i = select i1 %lowest, i64 {tiles.first}, i64 %a{k}s",
                f"  %b{k}i = select i1 %highest, i64 {tiles.first + tiles.rows}, i64 %b{k}s",
            ]
            if not tiles.reach:  # there are no edges
                lines[-4:-2] = [f"  %a{k}s = add i64 %from, 0", f"  %b{k}s = add i64 %to, 0"]
        else:
            lines += [
                f"  %a{k}i = sub nsw i64 %to, %by{k}",
                f"  %b{k}i = add nsw i64 %to, %by{k}",
            ]
        lines += [
            f"  %a{k} = call i64 @llvm.smax.i64(i64 %a{k}i, i64 {first})",
            f"  %b{k}c = call i64 @llvm.smin.i64(i64 %b{k}i, i64 {end})",
            f"  %b{k} = call i64 @llvm.smax.i64(i64 %a{k}, i64 %b{k}c)",
            f"  %lo{k}r = sub nsw i64 %a{k}, {first}",
            f"  %hi{k}r = sub nsw i64 %b{k}, {first}",
            f"  %lo{k} = mul nsw i64 %lo{k}r, {part.each}",
            f"  %hi{k} = mul nsw i64 %hi{k}r, {part.each}",
            f"  %ctx{k} = getelementptr ptr, ptr %now, i64 {call.place}",
            f"  call void @{call.name}(ptr %ctx{k}, i64 %lo{k}, i64 %hi{k})",
        ]
    lines += ["  br label %trip", "done:", "  br label %head", "end:", "  ret void", "}", ""]
    return "\n".join(lines)


def _edge(name: str, unit: str, tiles: TimeTiles) -> list[str]:
    """The row where a unit begins."""
    return [
        f"  %{name}m = mul nsw i64 {unit}, {tiles.rows}",
        f"  %{name}d = udiv i64 %{name}m, {tiles.units}",
        f"  %{name} = add nsw i64 %{name}d, {tiles.first}",
    ]
