"""Which trips of a loop touch nothing of each other: by the positions of what they read and write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ...loop_ir.index import Index, Var
from ...loop_ir.kernel import Array
from ...loop_ir.scalar_code import Body, Choose, Let, Repeat, Write, data_at, within
from ...scalar import Expr


def are_apart(s: Repeat) -> bool:
    """Whether no trip touches what another trip writes.

    Where the user says so, what is written at places that the program computes is only written: what
    is read, too, may be sums over several trips.
    """
    inner = {loop.counter for block in blocks(s.body) for loop in _loops(block)}
    found: dict[Array, list[Sequence[Index]]] = {}
    written, read = set[Array](), set[Array]()
    for block in blocks(s.body):
        for array, position, writes in accesses(block):
            found.setdefault(array, []).append(position)
            (written if writes else read).add(array)
    met = [array for array in written if not _apart(found[array], s.counter, inner)]
    return not met or (s.independent and not any(array in read for array in met))


def _apart(
    positions: Sequence[Sequence[Index]], counter: Var | None, inner: set[Var | None]
) -> bool:
    """Whether some dimension tells the trips of a loop apart."""
    for d, index in enumerate(positions[0]):
        atoms = index.terms
        if counter not in atoms or any(not isinstance(a, Var) or a in inner for a in atoms):
            continue
        if all(position[d] == index for position in positions):
            return True
    return False


def blocks(block: Body) -> Iterator[Body]:
    """A block and all blocks inside it."""
    yield block
    for inner in block.inner():
        yield from blocks(inner)


def _loops(block: Body) -> Iterator[Repeat]:
    return (s for s in block.statements if isinstance(s, Repeat))


def computed(block: Body) -> Iterator[Expr]:
    """All that the statements of a block compute, positions in arrays too; each once."""
    places = (data_at(s.index) for s in block.statements if isinstance(s, Write))
    return within([*_roots(block), *chain.from_iterable(places)])


def _roots(block: Body) -> Iterator[Expr]:
    """What the statements of a block compute."""
    for s in block.statements:
        if isinstance(s, Let):
            yield from s.values
        elif isinstance(s, Write):
            yield s.value
        elif isinstance(s, Repeat):
            yield from (*s.start, *s.new)
            yield from (x for x in (s.condition, s.trips) if x is not None)
        elif isinstance(s, Choose):
            yield s.index
            for values in s.values:
                yield from values


def accesses(block: Body) -> Iterator[tuple[Array, Sequence[Index], bool]]:
    """The accesses of a block, not of those inside; whether they write."""
    for node in computed(block):
        if node.op == "load":
            yield node.attr.array, node.attr.index, False
    for s in block.statements:
        if isinstance(s, Write):
            yield s.array, s.index, True
