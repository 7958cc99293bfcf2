"""What a kernel keeps a processor busy with, for who predicts its time: operations, weighted, and reads
at places that data tell.

A division or a root keeps its unit from all else as long as many additions do. What elementwise
functions are made of counts, one by one, as it does in `flops`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from ..loop_ir.index import data_of
from ..loop_ir.kernel import Access, Kernel, Stage
from ..loop_ir.scalar_code import data_at, within
from ..module import Work
from ..scalar import FREE, Expr, nodes_of

_SLOW = 12  # additions in the time of a division
_WEIGHTS = {"div": _SLOW, "sqrt": _SLOW, "rem": 2 * _SLOW, "mulhi": 2, "convert": 2, "load": 1}


def work_of(kernel: Kernel) -> Work:
    """The work of one run of a kernel."""
    slots = turns = 0.0
    accesses: dict[int, int] = {}
    points = prod(kernel.extents)
    for nest in kernel.nests:
        n = points * prod(nest.extents)
        for stage in nest.stages:
            nodes = list(_nodes(stage))
            inner = [node for node in nodes if node.op == "loop" and not node.attr.rare]
            slots += n * (_weight(nodes) + (stage.action != "store"))
            turns += n * sum(_weight(nodes_of(x.attr.test, *x.attr.new)) for x in inner)
            for access in _apart(stage, nodes):
                accesses[access.array.nbytes] = accesses.get(access.array.nbytes, 0) + n
    return Work(slots, turns, tuple(accesses.items()))


def _nodes(stage: Stage) -> Iterator[Expr]:
    """All that a stage computes at a point, positions too; bodies of loops apart. Each node once."""
    where = [] if stage.where is None else [stage.where]
    return within([stage.value, *where, *data_at(stage.index)])


def _weight(nodes: Iterable[Expr]) -> int:
    total = 0
    for node in nodes:
        if node.op == "call":
            total += _weight(nodes_of(node.attr.root))
        elif node.op == "or" and {a.op for a in node.args} == {"shl", "lshr"}:
            total -= 1  # a rotation is one operation
        else:
            total += _WEIGHTS.get(node.op, node.op not in FREE)
    return total


def _apart(stage: Stage, nodes: Iterable[Expr]) -> Iterator[Access]:
    """The accesses of a stage whose places the program computes."""
    if any(data_of(index) for index in stage.index):
        yield stage.write
    for node in nodes:
        if node.op == "load" and any(data_of(index) for index in node.attr.index):
            yield node.attr
