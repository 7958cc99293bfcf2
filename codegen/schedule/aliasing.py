"""Inputs that a program may overwrite, and the outputs that take their memory.

An output may live in the memory of a donated input if it is that input with updates, or if it is
computed element by element over it (`Lowering._over_parameter`). Which it is, is known after lowering.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ...ir.graph import Graph, Value
from ..loop_ir.kernel import Array
from ..module import Donation
from .in_place import depends, keeps_memory


class Aliases(NamedTuple):
    """For each output the input that it stays in, if it is that input with updates; which outputs
    are better computed over which inputs; and all inputs that may be overwritten."""

    stay: list[Array | None]
    over: dict[Value, Array]
    expendable: list[Array]


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
