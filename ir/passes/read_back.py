"""What was written into an array is read there, where the array is read beside it anyway."""

from __future__ import annotations

from collections.abc import Sequence

from ..build import Builder
from ..graph import Graph, Op, Value
from .regions import map_regions, substituted

_LARGE = 1 << 15  # bytes: below it all of it is in the first cache


def read_back(graph: Graph) -> Graph:
    """Read a value that was written into an array from there, if the array is read at other places, too.

        %u = update_slice %x, %v start=[1]            %u = update_slice %x, %v start=[1]
        %a = slice %u start=[0] ...              ->   %a = slice %u start=[0] ...
        %y = add %a, %v                               %w = slice %u start=[1] ...
                                                      %y = add %a, %w

    A step of a stencil has this form when the next one follows: `simplify` has it read the inside as
    it was computed, and the neighbours from the array. So the inside would be in memory twice, as the
    computed value and as a part of the array; now it is computed into the array.
    """
    graph = map_regions(graph, read_back)
    if not any(op.name == "update_slice" for op in graph.ops):
        return graph
    users = graph.users()
    order = {op: k for k, op in enumerate(graph.ops)}
    planned = {op: _readers(graph, users, order, op) for op in graph.ops}
    readers = {reader for several in planned.values() for reader in several}
    if not readers:
        return graph
    windows: dict[Value, Value] = {}  # where what was written is read from now on

    def moved(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
        if op in readers:
            operands = [windows.get(v, v) for v in operands]
        if planned[op]:
            results = b.put(op.with_operands(operands))
            windows[operands[1]] = _window(b, op, [results[0], operands[1]])
            return results
        return b.put(op.with_operands(operands)) if op in readers else None

    return substituted(graph, moved)


def _window(b: Builder, op: Op, operands: Sequence[Value]) -> Value:
    """What the op has written, read from its result."""
    again = op.with_operands(operands)
    read = op.definition.overwritten
    assert read is not None
    window: Value = read(b, again)
    return window


def _readers(graph: Graph, users: dict[Value, list[Op]], order: dict[Op, int], op: Op) -> list[Op]:
    """The later readers of what an update writes, if all of them should read its result instead."""
    if op.name != "update_slice":
        return []
    written, result = op.operands[1], op.result
    maker = written.op
    if maker is None or maker.definition.family != "elementwise" or written in graph.outputs:
        return []
    size = written.tensor.nbytes
    if size < _LARGE or 4 * size < result.tensor.nbytes:
        return []
    others = [user for user in users[written] if user is not op]
    shifted = [user for user in users.get(result, []) if user.name == "slice"]
    if not others or not shifted:
        return []
    fits = all(u.definition.family == "elementwise" and order[u] > order[op] for u in others)
    return others if fits and users[written].count(op) == 1 else []
