"""Regions: the elements that accesses touch, as sets of integers, and what is certain about them.

    before: for i in 0..4: for j in 0..3: x[10 * i + j + 2]
    region: {2 + 10 * i + j : 0 <= i < 4, 0 <= j < 3}

An answer "yes" is certain. Of affine indices, "no" to `apart` and `one_to_one` is certain too: these
solve the equation that says that two accesses meet, in integers within bounds (and say "no" to puzzles
that would take too long). Any other index, of divisions or of values read from memory, is taken for all
that lies within its range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, prod
from typing import NamedTuple

from ..loop_ir.index import Index, Var, contiguous_strides, of_var

Step = tuple[int, int]  # a stride and a count: 0, stride .. stride * (count - 1)
LOOKS = 1 << 12  # steps of the search for a solution: where that does not do, there may be one


class Region(NamedTuple):
    """{low + sum of s * k over `steps` : 0 <= k < n}; longest strides first, none of them 0.

    `exact`: all of it is touched. Else it is more than that.
    """

    low: int
    steps: tuple[Step, ...] = ()
    exact: bool = True

    @property
    def high(self) -> int:
        return self.low + _reach(self.steps)


def interval(low: int, count: int) -> Region:
    """low .. low + count - 1."""
    return Region(low, _joined([(1, count)]))


def region(index: Index) -> Region:
    """All values of an index while its loops run."""
    steps: list[Step] = []
    for atom, coeff in index.terms.items():
        first, last = Index(0, {atom: 1}).range()
        steps.append((abs(coeff), last - first + 1))
    return Region(index.range()[0], _joined(steps), index.affine)


def apart(a: Region, b: Region) -> bool:
    """Whether two regions have no element in common."""
    return not _sums_to(b.high - a.low, (*a.steps, *b.steps))


def covers(a: Region, b: Region) -> bool:
    """Whether all of `b` is touched where `a` is. (Of regions with holes that do not repeat each other
    the answer may be "no", for want of looking.)"""
    return a.exact and _covers(b.low - a.low, a.steps, b.steps)


def within(position: Sequence[Index], shape: Sequence[int]) -> bool:
    """Whether a position is in an array of `shape`, wherever its loops are."""
    ends = (i.range() for i in position)
    return all(low >= 0 and high < n for (low, high), n in zip(ends, shape, strict=True))


def one_to_one(index: Index, loops: Iterable[Var]) -> bool:
    """Whether an index has another value at each point of the loops; what else is in it stays."""
    loops = [v for v in loops if v.extent > 1]
    if not all(index.is_affine_in(v) for v in loops):
        return False
    steps = [(abs(index.coeff(v)), v.extent) for v in loops]
    steps.sort(reverse=True)
    for k, (stride, count) in enumerate(steps):
        # Two points that are the same before loop k, and differ there by 1 to count - 1 iterations.
        back = [(s, 2 * n - 1) for s, n in steps[k + 1 :]]
        if not stride or _sums_to(_reach(back) // 2 - stride, [(stride, count - 1), *back]):
            return False
    return True


def aligned(index: Index, loop: Var, count: int) -> bool:
    """Whether iterations n*count .. n*count + count - 1 of a loop are elements side by side, for each n,
    of which the first is a multiple of `count`; what the index reads from memory may not follow the loop
    (`follows`)."""
    rest = [coeff for atom, coeff in index.terms.items() if atom is not loop]
    return index.stride(loop) == 1 and not any(n % count for n in (index.const, *rest))


def in_rows(index: Index, rows: Sequence[Var], first: int, last: int) -> list[Region]:
    """All values of an index in the rows first..last, which the loops `rows` count as one."""
    boxes = _boxes(tuple(v.extent for v in rows), first, last)
    positions = ([of_var(Var("row", count)) + low for low, count in box] for box in boxes)
    return [region(index.substitute(dict(zip(rows, at, strict=True)))) for at in positions]


def slab(index: Index, rows: Sequence[Var]) -> int | None:
    """The n for which row number r touches elements n*r .. n*r + n-1 only; None if there is none.

    The loops `rows` count rows as one.
    """
    weights = contiguous_strides(tuple(v.extent for v in rows))
    strides = [(index.stride(v), w) for v, w in zip(rows, weights, strict=True) if v.extent > 1]
    size = strides[-1][0] if strides else None
    if size is None or size <= 0 or any(s != size * w for s, w in strides):
        return None
    rest = Index(index.const, {a: c for a, c in index.terms.items() if a not in rows})
    low, high = rest.range()
    return size if low >= 0 and high < size else None


def distance(index: tuple[Index, ...], loop: Var) -> int | None:
    """The k of a position that is `loop + k` in the first dim; None if there is none."""
    offset = index[0] - of_var(loop) if index else None
    return None if offset is None or offset.terms else offset.const


def around(
    shape: tuple[int, ...], start: tuple[int, ...], size: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Boxes (low corner, extents) that tile `shape` without the box of `size` at `start`."""
    boxes = []
    for d in range(len(shape)):
        end = start[d] + size[d]
        for low, extent in ((0, start[d]), (end, shape[d] - end)):
            box = (*size[:d], extent, *shape[d + 1 :])
            if extent and 0 not in box:
                boxes.append(((*start[:d], low, *(0 for _ in shape[d + 1 :])), box))
    return boxes


def _boxes(shape: tuple[int, ...], first: int, last: int) -> list[tuple[tuple[int, int], ...]]:
    """Boxes, a start and a count per dim, that tile the elements first..last of `shape` in C order."""
    if len(shape) == 1:
        return [((first, last - first + 1),)]
    size = prod(shape[1:])
    (top, begin), (bottom, end) = divmod(first, size), divmod(last + 1, size)
    if top == bottom:
        return [((top, 1), *box) for box in _boxes(shape[1:], begin, end - 1)]
    boxes: list[tuple[tuple[int, int], ...]] = []
    if begin:
        boxes += [((top, 1), *box) for box in _boxes(shape[1:], begin, size - 1)]
        top += 1
    if top < bottom:
        boxes.append(((top, bottom - top), *((0, n) for n in shape[1:])))
    if end:
        boxes += [((bottom, 1), *box) for box in _boxes(shape[1:], 0, end - 1)]
    return boxes


def _reach(steps: Iterable[Step]) -> int:
    return sum(s * (n - 1) for s, n in steps)


def _joined(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The same sums with fewer steps: those that go on where shorter ones end, or sooner, are one.

    before: 4 iterations of 3, 3 iterations of 1      after: 12 iterations of 1
    """
    joined: list[Step] = []
    for stride, count in sorted(steps):
        if count > 1 and stride:
            below, times_below = joined[-1] if joined else (stride + 1, 1)
            times, rest = divmod(stride, below)
            if not rest and times <= times_below:
                joined[-1] = below, times_below + times * (count - 1)
            else:
                joined.append((stride, count))
    return tuple(reversed(joined))


def _sums_to(total: int, steps: Iterable[Step]) -> bool:
    """Whether some sum of steps is `total`; yes if that takes too long to find out."""
    steps = _joined(steps)
    reaches = [_reach(steps[k:]) for k in range(len(steps) + 1)]
    units = [gcd(*(s for s, _ in steps[k:])) for k in range(len(steps) + 1)]
    pending, looks = [(total, 0)], 0
    while pending and looks < LOOKS:
        left, k = pending.pop()
        looks += 1
        if k == len(steps):
            if left == 0:
                return True
        elif 0 <= left <= reaches[k] and left % units[k] == 0:
            stride, count = steps[k]
            least = max(-(-(left - reaches[k + 1]) // stride), 0)
            most = min(left // stride, count - 1, least + LOOKS)  # so many are too many anyhow
            pending += [(left - stride * x, k + 1) for x in range(least, most + 1)]
    return bool(pending)


def _covers(low: int, outer: Sequence[Step], inner: Sequence[Step]) -> bool:
    """Whether `low` and all sums of `inner` are sums of `outer`."""
    if not outer:
        return low == 0 and not inner
    (stride, count), *rest = outer
    along = [(s // stride, n) for s, n in inner if s % stride == 0]
    first, low = divmod(low, stride)
    if first < 0 or first + _reach(along) >= count:
        return False
    return _covers(low, rest, [(s, n) for s, n in inner if s % stride])
