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

from ..llvm.builder import Value, constant, symbol
from ..llvm.modules import Function
from ..loop_ir.kernel import Array
from ..loop_ir.steps import Scan, TimeTiles
from ..target import Target
from .calls import store_words

if TYPE_CHECKING:
    from .entry import EntryEmitter


class _Call(NamedTuple):
    """A kernel's function, and the word of an iteration's context where its pointers begin."""

    name: str
    word: int


def tiled_iterations(e: EntryEmitter, step: Scan, over: Value) -> Value:
    """Emit the next few iterations of a scan of which `over` are done; returns how many these are."""
    tiles = step.tiles
    assert tiles is not None
    calls: list[_Call] = []
    words: list[tuple[Array | None, int]] = []
    for part in tiles.parts:
        done, pointers = e._kernel(part.step, part.plan)
        calls.append(_Call(done.name, len(words)))
        words += pointers
    f = e.f
    left = step.length - over
    iterations = f.select(left < tiles.iterations, left, tiles.iterations)
    f.store(iterations, e.ctx, align=8)
    other = {c.now: c.next for c in step.carries if c.spare is not None}
    other |= {c.next: c.now for c in step.carries if c.spare is not None}
    both = words + [(other.get(a, a) if a is not None else None, by) for a, by in words]
    e.context_words = max(e.context_words, 1 + len(both))
    moved = (f.offset(e.pointer(array), constant("i64", by)) for array, by in both)
    store_words(f, e.ctx, moved, 1)
    e.imports.add(Target.PARALLEL_FOR)
    for upright, units in ((True, tiles.units), (False, tiles.units - 1)):
        if upright or tiles.reach:
            function = _function(tiles, calls, len(words), upright)
            e.declarations.update(function.callees.values())
            name = e.function(function.unnamed(noalias=("ctx",)), "trips")
            grain = e._grain(min(tiles.grain, units))
            f.call("void", Target.PARALLEL_FOR, symbol(name), e.ctx, units, grain)
    return iterations


def _function(tiles: TimeTiles, calls: list[_Call], words: int, upright: bool) -> Function:
    """The trips of upright blocks, or of those at the edges between them."""
    f = Function("void", "trips", ctx="ptr", lo="i64", hi="i64")
    trips = f.load("i64", f.ctx)
    even, odd = f.offset(f.ctx, 1, "ptr"), f.offset(f.ctx, 1 + words, "ptr")

    def edge(unit: Value) -> Value:
        """The row where a unit begins."""
        return f.stepped(f.binary("mul nsw", unit, tiles.rows) // tiles.units, tiles.first)

    def between(low: Value, high: Value, first: int, end: int) -> tuple[Value, Value]:
        """The rows low..high that are among first..end."""
        start = f.intrinsic("smax", "i64", low, first)
        stop = f.intrinsic("smin", "i64", high, end)
        return start, f.intrinsic("smax", "i64", start, stop)

    with f.loop(u=f.lo) as units:
        units.going(units.u < f.hi)
        following = f.stepped(units.u, 1)
        start, stop = edge(units.u), edge(following)
        lowest, highest = units.u.eq(0), following.eq(tiles.units)
        with f.loop(t=0) as loop:
            loop.going(loop.t < trips)
            next_trip = f.stepped(loop.t, 1)
            now = f.select(loop.t.trunc("i1"), odd, even)
            shrunk = f.binary("mul nsw", loop.t, tiles.shrink)
            for part, call in zip(tiles.parts, calls, strict=True):
                first, end = part.first, part.first + part.rows
                by = f.stepped(shrunk, tiles.reach * part.level + tiles.margin)
                if not upright:
                    low, high = f.binary("sub nsw", stop, by), f.binary("add nsw", stop, by)
                else:
                    low, high = start, stop
                    if tiles.reach:  # there are edges
                        low, high = f.binary("add nsw", start, by), f.binary("sub nsw", stop, by)
                    low = f.select(lowest, tiles.first, low)
                    high = f.select(highest, tiles.first + tiles.rows, high)
                rows = between(low, high, first, end)
                moved = [f.binary("sub nsw", row, first) for row in rows]
                bounds = [f.binary("mul nsw", row, part.each) for row in moved]
                kernel = symbol(call.name)
                f.call("void", kernel, f.offset(now, call.word, "ptr"), *bounds)
            loop.next(next_trip)
        units.next(following)
    f.ret()
    return f
