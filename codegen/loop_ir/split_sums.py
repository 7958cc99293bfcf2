"""Sums into neighbours, one neighbour after the other: how the adjoint of a stencil runs in vectors.

    before: for j: v = f(j)                 after: for j: t[j] = f(j)
                   d[i, j + 1] += v                for j: d[i, j - 1] += t[j]
                   d[i - 1, j] += v                for j: d[i - 1, j] += t[j]
                   d[i, j - 1] += v                for j: d[i, j + 1] += t[j]

A trip that adds to what the one before has added to waits for it; LLVM makes vectors of none of it. An
element gets its parts in the same order as before: sums are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.record import record
from ..scalar import Expr
from .index import Index, Var, of_var
from .kernel import Access, Array
from .scalar_code import Body, Let, Repeat, Write, computed, within

PLACES = 12  # loops that are made of one, at the most
LEAST, MOST = 16, 1 << 13  # trips: for few it does not pay, and what many keep leaves the cache


@record(eq=False)
class _Sum:
    """`array[index] += part`, `behind` elements behind the first of such statements."""

    write: Write
    part: Expr
    behind: int


def split_sums(loop: Repeat) -> tuple[list[Repeat], list[Array]]:
    """Loops that do what a loop does, and the memory that they need: one loop, if it is as good."""
    counter, statements = loop.counter, loop.body.statements
    plain = counter is not None and loop.condition is None and not loop.carries
    if counter is None or not (plain and LEAST <= loop.length <= MOST):
        return [loop], []
    writes: dict[Array, list[Write]] = {}
    for s in statements:
        if isinstance(s, Write):
            writes.setdefault(s.array, []).append(s)
        elif not isinstance(s, Let):
            return [loop], []
    found = {a: _sums(a, own, loop.body, counter) for a, own in writes.items()}
    sums = {array: own for array, own in found.items() if own}
    if not sums:
        return [loop], []
    kept: dict[Expr, Array] = {}
    first: list[Let | Write] = []
    parts = {s.write: s.part for own in sums.values() for s in own}
    for s in statements:
        if isinstance(s, Let):
            first.append(Let([v for v in s.values if not _reads(v, sums.keys())]))
        elif isinstance(s, Write) and s in parts:
            part = parts[s]
            if part not in kept and part.op != "const":
                kept[part] = Array((loop.length,), part.dtype)
                first.append(Write(kept[part], (of_var(counter),), part))
        elif isinstance(s, Write):
            first.append(s)
    loops = [_again(loop, counter, first)]
    for own in sums.values():
        loops += _one_by_one(loop, own, kept)
    return loops, [*kept.values()]


def _sums(array: Array, writes: Sequence[Write], body: Body, counter: Var) -> list[_Sum]:
    """The statements that write an array, if they add to neighbours, and nothing else touches it."""
    parts = [part_added(w) for w in writes]
    olds = [node for node in computed(body) if node.op == "load" and node.attr.array is array]
    moving = [d for d, i in enumerate(writes[0].index) if counter in i.terms]
    if len(moving) != 1 or any(not i.affine for w in writes for i in w.index):
        return []
    (along,) = moving
    places = {w.index for w in writes}
    if any(old.attr.index not in places for old in olds):
        return []
    sums: list[_Sum] = []
    sign = 1 if writes[0].index[along].coeff(counter) > 0 else -1
    apart = set()
    for w, part in zip(writes, parts, strict=True):
        away = [i - j for i, j in zip(w.index, writes[0].index, strict=True)]
        if part is None or _reads(part, {array}) or any(i.terms for i in away):
            return []
        sums.append(_Sum(w, part, sign * away[along].const))
        apart.add(tuple(i.const for d, i in enumerate(away) if d != along))
    rows = len(apart) > 1 or len(array.shape) == 1  # else trips of an outer loop may be independent
    if not rows or len({s.behind for s in sums}) < 2 or len(places) > PLACES:
        return []
    return sorted(sums, key=lambda s: -s.behind)


def part_added(w: Write) -> Expr | None:
    """What a statement adds to an element."""
    if w.value.op != "add":
        return None
    for old, part in (w.value.args, w.value.args[::-1]):
        if old.op == "load" and not old.args:
            access: Access = old.attr
            if access.array is w.array and access.index == w.index:
                return part
    return None


def _reads(value: Expr, arrays: object) -> bool:
    nodes = within([value])
    return any(n.op == "load" and n.attr.array in arrays for n in nodes)  # type: ignore[operator]


def _one_by_one(loop: Repeat, sums: Sequence[_Sum], kept: dict[Expr, Array]) -> list[Repeat]:
    """A loop for each place, with all that is added there."""
    places: dict[tuple[Index, ...], list[_Sum]] = {}
    for s in sums:
        places.setdefault(s.write.index, []).append(s)
    loops = []
    for place, own in places.items():
        assert loop.counter is not None
        counter = Var(loop.counter.name, loop.counter.extent, loop.counter.limit)
        index = tuple(i.substitute({loop.counter: of_var(counter)}) for i in place)
        array = own[0].write.array
        total = _load(array, index)
        for s in own:
            part = s.part
            if part in kept:
                part = _load(kept[part], (of_var(counter),))
            total = Expr("add", (total, part), total.dtype, s.write.value.attr)
        loops.append(_again(loop, counter, [Write(array, index, total)]))
    return loops


def _load(array: Array, index: tuple[Index, ...]) -> Expr:
    return Expr("load", (), array.dtype, Access(array, index))


def _again(loop: Repeat, counter: Var, statements: Sequence[Let | Write]) -> Repeat:
    body = Body([*statements])
    trips, word, loc = loop.trips, loop.independent, loop.loc
    return Repeat([], [], body, [], counter, None, None, trips, word, loc)
