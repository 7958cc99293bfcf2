"""Fills of which scalar code overwrites a part before anything reads it: only the rest is filled.

    before: out[:, :] = 0                             after: the first and last row and column = 0
            for i in 1..n-2: for j in 1..m-2:                for i in 1..n-2: for j in 1..m-2:
                out[i, j] = ...                                  out[i, j] = ...

`np.zeros` that a loop fills is one pass over memory less. What is left out is one box: where a statement
that is certain to run writes, in loops that are certain to make all their trips. What is read of it must
have been written by an earlier trip, as `out[i - 1]` of a recurrence is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from ..loop_ir.index import Index, Var, of_var
from ..loop_ir.kernel import Array, Stage, indices_of
from ..loop_ir.scalar_code import Body, Repeat, Special, Write, accesses, blocks
from ..loop_ir.steps import ScalarCode, touched
from ..schedule.regions import around

Box = tuple[tuple[int, int], ...]  # the first and last element along each axis


class Cover(NamedTuple):
    """A statement that writes each element of a box, at `position`, inside of the loops `path`."""

    box: Box
    position: Sequence[Index]
    path: Sequence[Var]


def without_dead_fills(items: list[Any]) -> list[Any]:
    """The stages and steps of a program, fills being cut to what is read of them."""
    if not any(isinstance(item, ScalarCode) for item in items):
        return items
    found: list[Any] = []
    for k, item in enumerate(items):
        box = _filled(item)
        dead = box and _overwritten(item.array, box, items[k + 1 :])
        found += _rest(item, box, dead) if box and dead else [item]
    return found


def _filled(item: Any) -> Box | None:
    """The box of which all elements get the same value; None if it is another kind of step."""
    if not isinstance(item, Stage) or item.action != "store" or item.ordered or item.where:
        return None
    if item.array.kind == "input":  # an argument, which failed calls leave half done
        return None
    if any(index.terms for index in indices_of(item.value)):
        return None
    lows = [index.const for index in item.index]
    shifted = tuple(i + low for i, low in zip(item.point, lows, strict=False))
    if len(item.dims) != len(lows) or shifted != item.index:
        return None
    return tuple((low, low + n - 1) for low, n in zip(lows, item.extents, strict=True))


def _overwritten(array: Array, filled: Box, later: Sequence[Any]) -> Box | None:
    """What of a filled box is written again before anything reads it; None: little or nothing."""
    before: list[ScalarCode] = []
    for item in later:
        if isinstance(item, Stage):
            if array in (a.array for a in item.reads):
                return None
            if item.array is array and item.action != "store":
                return None
        elif isinstance(item, ScalarCode) and (array in item.writes or array in item.reads):
            if any(array in s.arrays for b in blocks(item.body) for s in _specials(b)):
                return None
            covers = [c for c in _covers(item.body, array, ()) if _reads_after(item, array, c)]
            cover = max(covers, key=lambda c: _size(c.box), default=None)
            both = None if cover is None else _common(filled, cover.box)
            if both is not None and 2 * _size(both) > _size(filled):
                return both if all(_keeps_off(s, array, both) for s in before) else None
            before.append(item)
        elif any(array in arrays for arrays in touched(item)):
            return None
    return None


def _size(box: Box) -> int:
    return prod(last - first + 1 for first, last in box)


def _common(a: Box, b: Box) -> Box | None:
    ends = [(max(i, k), min(j, m)) for (i, j), (k, m) in zip(a, b, strict=True)]
    return None if any(first > last for first, last in ends) else tuple(ends)


def _specials(block: Body) -> Iterator[Special]:
    return (s for s in block.statements if isinstance(s, Special))


def _covers(block: Body, array: Array, path: Sequence[Var]) -> Iterator[Cover]:
    """The boxes that single statements of a block are certain to write."""
    for s in block.statements:
        if isinstance(s, Write) and s.array is array:
            if _is_box(s.index, path):
                yield Cover(tuple(i.range() for i in s.index), s.index, path)
        elif isinstance(s, Repeat) and _makes_all_trips(s):
            assert s.counter is not None
            yield from _covers(s.body, array, (*path, s.counter))


def _makes_all_trips(s: Repeat) -> bool:
    return s.counter is not None and s.length > 0 and s.condition is None and s.trips is None


def _is_box(position: Sequence[Index], path: Sequence[Var]) -> bool:
    """Whether each index is a place or one of the loops, no two the same."""
    atoms = [atom for index in position for atom in index.terms]
    factors = [factor for index in position for factor in index.terms.values()]
    lone = all(len(index.terms) <= 1 for index in position)
    return (
        lone
        and len(set(atoms)) == len(atoms)
        and all(atom in path for atom in atoms)
        and all(abs(factor) == 1 for factor in factors)
    )


def _reads_after(step: ScalarCode, array: Array, cover: Cover) -> bool:
    """Whether all that scalar code reads of the box was written by an earlier trip."""
    return all(
        _apart(position, cover.box) or _is_earlier(position, cover)
        for position in _reads(step, array)
    )


def _is_earlier(position: Sequence[Index], cover: Cover) -> bool:
    """Whether an element, if it is of the box, is that of an earlier trip: the outermost of the loops
    that tells the two apart says so."""
    for loop in cover.path:
        for here, index in zip(position, cover.position, strict=True):
            factor = index.terms.get(loop)
            if factor is None:
                continue
            distance = (here - index) * factor
            if distance.terms or distance.const > 0:
                return False
            if distance.const < 0:
                return True
    return False


def _keeps_off(step: ScalarCode, array: Array, box: Box) -> bool:
    return all(_apart(position, box) for position in _reads(step, array))


def _apart(position: Sequence[Index], box: Box) -> bool:
    ends = (index.range() for index in position)
    return any(b < first or a > last for (a, b), (first, last) in zip(ends, box, strict=True))


def _reads(step: ScalarCode, array: Array) -> Iterator[Sequence[Index]]:
    return (
        position
        for block in blocks(step.body)
        for read, position, writes in accesses(block)
        if read is array and not writes
    )


def _rest(fill: Stage, box: Box, dead: Box) -> list[Stage]:
    """Fills of what is left of the box."""
    start = tuple(first - low for (first, _), (low, _) in zip(dead, box, strict=True))
    size = tuple(last - first + 1 for first, last in dead)
    stages = []
    for corner, extents in around(fill.extents, start, size):
        dims = tuple(Var(f"i{d}", n) for d, n in enumerate(extents))
        places = zip(dims, corner, box, strict=True)
        at = tuple(of_var(v) + (offset + low) for v, offset, (low, _) in places)
        one = Stage(fill.array, dims, fill.value, index=at, loc=fill.loc, whole=False)
        one.reads, one.ops, one.cost = [*fill.reads], [*fill.ops], fill.cost
        stages.append(one)
    return stages
