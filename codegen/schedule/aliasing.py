"""Inputs that a program may overwrite, and the outputs that take their memory.

An output may live in the memory of a donated input if it is that input with updates, or if it is
computed element by element over it (`Lowering._over_parameter`). Which it is, is known after lowering.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...ir.build import Builder
from ...ir.graph import Graph, Op, Value
from ...ir.opdef import OPS
from ...ir.types import TensorType
from ..loop_ir.kernel import Array
from ..module import Donation
from .in_place import NEARBY, depends, keeps_memory, updated


class Aliases(NamedTuple):
    """For each output the input that it stays in, if it is that input with updates; which outputs
    are better computed over which inputs; and all inputs that may be overwritten."""

    stay: list[Array | None]
    over: dict[Value, Array]
    expendable: list[Array]


def with_copies(graph: Graph, donations: Sequence[Donation]) -> Graph:
    """`graph` where what becomes of a donated input is no other input, no other output, and nothing that
    is read beside the input itself: such is a copy, made in the place of that input once it is not read
    any more, and before another one is overwritten.

        graph f(%old: f64[8], %x: f64[8]) -> ... {          graph f(%old: f64[8], %x: f64[8]) -> ... {
          %y = add %x, %x                            ->       %c = stop_gradient %x
          return %x, %y                                       %y = add %x, %x
        }                                                     return %c, %y
                                                            }
    """
    if not donations:
        return graph
    outputs, uses, users = list(graph.outputs), Counter(graph.outputs), graph.users()
    ends = {graph.params[d.input]: outputs[d.output] for d in donations if d.output is not None}
    made: list[tuple[Op | None, Op]] = []  # before which op, and the copy
    for donation in donations:
        value = None if donation.output is None else outputs[donation.output]
        if value is None or donation.output is None or not isinstance(value.type, TensorType):
            continue
        param = graph.params[donation.input]
        moves = value.op is None and value is not param
        if moves or uses[value] > 1 or _is_read_with(value, param, users):
            uses[value] -= 1
            copy = Builder(Graph(graph.name)).make(OPS["stop_gradient"], [value])
            made.append((_first_update(ends.get(value), value), copy))
            outputs[donation.output] = copy.result
    if not made:
        return graph
    new = Graph(graph.name)
    new.params, new.outputs = graph.params, outputs
    for op in graph.ops:
        new.ops += [copy for before, copy in made if before is op]
        new.ops.append(op)
    new.ops += [copy for before, copy in made if before is None]
    return new


def _is_read_with(value: Value, param: Value, users: Mapping[Value, Sequence[Op]]) -> bool:
    """Whether something reads the input, and what becomes of it as well, or nearly."""
    if not users[param] or not users[value] or keeps_memory(value, param):
        return False
    pending = [op for op in users[param] if op is not value.op][:NEARBY]
    seen = {*pending}
    for op in pending:
        if value in op.operands:
            return True
        if len(seen) < NEARBY:
            more = {v.op for v in op.operands if v.op is not None} - seen
            seen |= more
            pending += more
    return False


def _first_update(end: Value | None, param: Value) -> Op | None:
    """What overwrites a parameter first on the way to what becomes of it in the end."""
    first = None
    while end is not None and end is not param and end.op is not None:
        first, end = end.op, updated(end)
    return first


def find_aliases(
    graph: Graph, inputs: Sequence[Array | None], donations: Sequence[Donation]
) -> Aliases:
    """Find an output for each donated input."""
    aliases = Aliases([None] * len(graph.outputs), {}, [])
    if not donations:
        return aliases
    returned, uses = set(graph.outputs), Counter(graph.outputs)
    for donation in donations:
        param, array = graph.params[donation.input], inputs[donation.input]
        if array is None or not array.is_injective or not array.shape or not array.size:
            continue
        candidates = range(len(graph.outputs)) if donation.output is None else [donation.output]
        values = [graph.outputs[k] for k in candidates]
        fitting = [
            (k, value)
            for k, value in zip(candidates, values, strict=True)
            if value.op is not None and value.type == param.type and uses[value] == 1
            if aliases.stay[k] is None and value not in aliases.over
        ]
        if param in returned or not fitting:
            continue
        aliases.expendable.append(array)
        updated = [k for k, value in fitting if keeps_memory(value, param)]
        if updated:
            aliases.stay[updated[0]] = array
        else:
            near = [value for _, value in fitting if depends(value, param)]
            aliases.over[near[0] if near else fitting[0][1]] = array
    return aliases


def settle(
    ends: Sequence[Array | None], inputs: Sequence[Array | None], outputs: Sequence[Array | None]
) -> list[tuple[int, int]]:
    """Which outputs ended in which inputs; the others are numbered anew, without gaps."""
    number = {array: k for k, array in enumerate(inputs) if array is not None}
    pairs: list[tuple[int, int]] = []
    for k, (end, output) in enumerate(zip(ends, outputs, strict=True)):
        if end is not None and end is not output and end in number:
            pairs.append((k, number[end]))
        elif output is not None:
            output.position -= len(pairs)
    return pairs
