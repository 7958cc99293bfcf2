"""How much work scalar code is, about."""

from __future__ import annotations

from collections.abc import Iterator

from ...loop_ir.scalar_code import Body, Choose, Repeat, nodes
from ...scalar import FREE

UNKNOWN = 1 << 10  # trips of a loop that nobody can count


def outer_loops(block: Body) -> Iterator[Repeat]:
    """The loops in a block that are in no other loop there."""
    for s in block.statements:
        if isinstance(s, Repeat):
            yield s
        elif isinstance(s, Choose):
            for inner in s.blocks:
                yield from outer_loops(inner)


def own_heft(block: Body) -> int:
    """Scalar operations of a block, about, its loops and branches left out."""
    return sum(node.op not in FREE for node in nodes(block)) + len(block.statements)


def heft(block: Body, unknown: int = UNKNOWN) -> int:
    """Scalar operations of a block, about, with so many trips of loops where nobody can count them."""
    total = own_heft(block)
    for s in block.statements:
        if isinstance(s, Repeat):
            trips = unknown if s.counter is None else s.length
            if s.trips is not None:
                trips = min(trips, unknown)
            test = 0 if s.test is None else heft(s.test, unknown)
            total += trips * (heft(s.body, unknown) + test)
        elif isinstance(s, Choose):
            total += max(heft(inner, unknown) for inner in s.blocks)
    return total
