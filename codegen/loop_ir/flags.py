"""Loops that hand on nothing but truths which, once they hold, hold for ever: a check has failed.

for i: out[i] = log(x[i])           any trips may be made in any order, parts of them with truths of
       bad = bad | x[i] <= 0        their own, if all that comes of it is that the program stops
stop if bad
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.types import BOOL
from ..scalar import Expr
from .scalar_code import (
    Body,
    Choose,
    Invoke,
    Let,
    Repeat,
    Require,
    Special,
    Write,
    blocks,
    computed,
    data_at,
)

Ways = dict[Expr, Sequence[Expr]]  # variables, and what they may become


def only_flags(loop: Repeat) -> bool:
    """Whether a loop carries nothing but such truths, which nothing in it asks."""
    if any(carry.dtype != BOOL for carry in loop.carries):
        return False
    ways = dict(_ways(loop.body))
    return _unasked(loop, ways) and all(
        _holds_on(new, {carry}, ways) for carry, new in zip(loop.carries, loop.new, strict=True)
    )


def stops(statements: Sequence[object], loop: Repeat) -> bool:
    """Whether statements after a loop do nothing but stop the program where a truth of its holds."""
    return all(
        isinstance(s, Require)
        and s.flag.op == "not"
        and s.flag.args[0] in loop.carries
        and s.taken is None
        and not s.values
        for s in statements
    )


def _ways(body: Body) -> Iterator[tuple[Expr, Sequence[Expr]]]:
    for block in blocks(body):
        for s in block.statements:
            if isinstance(s, Repeat):
                yield from zip(s.carries, zip(s.start, s.new, strict=True), strict=True)
            elif isinstance(s, Choose):
                yield from zip(s.results, zip(*s.values, strict=True), strict=False)


def _holds_on(e: Expr, assumed: set[Expr], ways: Ways) -> bool:
    """Whether a truth holds where one of `assumed` does."""
    if e in assumed:
        return True
    if e.op == "or":
        return any(_holds_on(x, assumed, ways) for x in e.args)
    parts = e.args[1:] if e.op == "select" else ways.get(e, ())
    return bool(parts) and all(_holds_on(x, assumed | {e}, ways) for x in parts)


def _unasked(loop: Repeat, ways: Ways) -> bool:
    """Whether the truths become nothing but each other."""
    inside = [*blocks(loop.body)]
    nodes = {e for block in inside for e in computed(block)}.union(ways)
    made = {*loop.carries}
    grew = True
    while grew:
        more = {
            e for e in nodes if e not in made and not made.isdisjoint((*e.args, *ways.get(e, ())))
        }
        made |= more
        grew = bool(more)
    for e in made - {*loop.carries}:
        if e not in ways and e.op != "or" and (e.op != "select" or e.args[0] in made):
            return False
    asked = [x for block in inside for s in block.statements for x in _asked(s)]
    places = (
        e.attr.index if e.op == "load" else (e.attr,) for e in nodes if e.op in ("load", "index")
    )
    asked += (x for place in places for x in data_at(place))
    return made.isdisjoint(asked)


def _asked(s: object) -> Iterator[Expr]:
    """What a statement asks for its value."""
    match s:
        case Let():
            return
        case Write():
            yield s.value
            yield from data_at(s.index)
        case Require():
            yield from (s.flag, *s.values, *(() if s.taken is None else (s.taken,)))
        case Repeat():
            yield from (e for e in (s.condition, s.trips) if e is not None)
        case Choose():
            yield s.index
        case Special() | Invoke():
            yield from s.operands
