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
    """Whether some dimension tells the trips of a loop apart."""
    for d, index in enumerate(positions[0]):
        atoms = index.terms
        if counter not in atoms or any(not isinstance(a, Var) or a in inner for a in atoms):
            continue
        if all(position[d] == index for position in positions):
            return True
    return False


def _loops(block: Body) -> Iterator[Repeat]:
    return (s for s in block.statements if isinstance(s, Repeat))
