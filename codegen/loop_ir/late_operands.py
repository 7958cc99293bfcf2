"""Of the smallest of several integers, what the trip before has made is asked last.

    before: for j: d[j] = min(min(a[j], d[j - 1] + 1), b[j])
    after:  for j: d[j] = min(min(a[j], b[j]), d[j - 1] + 1)

Each trip of such a loop waits for the one before, and then for all that is done with what it gave. So it
is with tables that are filled from their own entries. Integers have one smallest in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial, reduce
from itertools import chain

from ..scalar import Expr, binary
from .index import of_var
from .scalar_code import Body, Choose, Let, Repeat, Require, Write, blocks, computed, within

_EXTREMES = ("min", "max")


def late_last(loop: Repeat) -> None:
    """Put what comes of the trip before last, in a loop with no loops inside."""
    if any(isinstance(s, Repeat) for s in loop.body.statements):
        return
    asked = Body([s for b in blocks(loop.body) for s in b.statements if not isinstance(s, Let)])
    nodes = dict.fromkeys([*computed(asked), *within(loop.new)])
    found = [e for e in nodes if e.op in _EXTREMES and e.dtype.kind in "iu"]
    if not found:
        return
    late = {*loop.carries, *_of_the_trip_before(loop)}
    uses = Counter(chain(loop.new, *(e.args for e in nodes)))
    inner = {x for e in found for x in e.args if x.op == e.op and uses[x] == 1}
    renewed: dict[Expr, Expr] = {}
    for e in found:
        leaves = [*_leaves(e, inner)]
        waits = [x for x in leaves if not late.isdisjoint(within([x]))]
        if e not in inner and len(waits) == 1 < len(leaves) - 1 and waits[0] not in e.args:
            first = [x for x in leaves if x is not waits[0]]
            renewed[e] = reduce(partial(binary, e.op), [*first, *waits])
    if renewed:
        _renew(loop.body, renewed)
        loop.new = [_renewed(x, renewed) for x in loop.new]


def _of_the_trip_before(loop: Repeat) -> Iterator[Expr]:
    """What is read where the trip before has written."""
    counter = loop.counter
    if counter is None:
        return
    before = {counter: of_var(counter) - 1}
    written = {
        (s.array, tuple(i.substitute(before) for i in s.index))
        for s in loop.body.statements
        if isinstance(s, Write)
    }
    for e in computed(loop.body):
        if e.op == "load" and (e.attr.array, tuple(e.attr.index)) in written:
            yield e


def _leaves(e: Expr, inner: set[Expr]) -> Iterator[Expr]:
    """What an extreme is the extreme of."""
    for arg in e.args:
        if arg.op == e.op and arg in inner:
            yield from _leaves(arg, inner)
        else:
            yield arg


def _renew(block: Body, renewed: dict[Expr, Expr]) -> None:
    """Compute other expressions; what was computed on the way to those before still is, at its time."""
    for s in block.statements:
        match s:
            case Let():
                s.values = [_renewed(x, renewed) for x in s.values]
            case Write():
                s.value = _renewed(s.value, renewed)
            case Require():
                s.flag = _renewed(s.flag, renewed)
            case Choose():
                s.index = _renewed(s.index, renewed)
                s.values = [[_renewed(x, renewed) for x in values] for values in s.values]
                for inner in s.blocks:
                    _renew(inner, renewed)


def _renewed(e: Expr, renewed: dict[Expr, Expr]) -> Expr:
    """An expression with others in it."""
    new = renewed.get(e)
    if new is None:
        args = tuple(_renewed(x, renewed) for x in e.args)
        same = all(a is b for a, b in zip(args, e.args, strict=True))
        new = renewed[e] = e if same else Expr(e.op, args, e.dtype, e.attr, e.free)
    return new
