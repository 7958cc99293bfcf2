"""Which trips of a loop touch nothing of each other: by the positions of what they read and write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...loop_ir.index import Index, Var
from ...loop_ir.kernel import Array
from ...loop_ir.scalar_code import Body, Repeat, accesses, blocks


def are_apart(s: Repeat) -> bool:
    """Whether no trip touches what another trip writes.

    Where the user says so, what is written at places that the program computes is only written: what
    is read, too, may be sums over several trips.
    """
    inner = {loop.counter for block in blocks(s.body) for loop in _loops(block)}
    indices: dict[Array, list[Sequence[Index]]] = {}
    written, read = set[Array](), set[Array]()
    for block in blocks(s.body):
        for array, position, writes in accesses(block):
            indices.setdefault(array, []).append(position)
            (written if writes else read).add(array)
    met = [array for array in written if not _apart(indices[array], s.counter, inner)]
    return not met or (s.independent and not any(array in read for array in met))


def _apart(
    positions: Sequence[Sequence[Index]], counter: Var | None, inner: set[Var | None]
) -> bool:
    """Whether some dimension tells the trips of a loop apart: loops inside of it reach less far than to
    where the next trip begins."""
    for d, index in enumerate(positions[0]):
        if counter is None or any(not isinstance(a, Var) for a in index.terms):
            continue
        moving = [(a, step) for a, step in index.terms.items() if a in inner]
        reach = sum(abs(step) * (a.extent - 1) for a, step in moving if isinstance(a, Var))
        if reach < abs(index.terms.get(counter, 0)) and all(p[d] == index for p in positions):
            return True
    return False


def _loops(block: Body) -> Iterator[Repeat]:
    return (s for s in block.statements if isinstance(s, Repeat))
