"""Lowering of collectives between processes: a call back, which reads and fills the arrays in place.

The call is made by the thread that runs the program and holds the GIL while it is in Python, and not
while it waits. It costs a few microseconds beside those of the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.graph import Op, SourceLine
from ....ir.groups import group as find_group
from ....ir.record import record
from ....ir.types import TensorType
from ...loop_ir.steps import Callback
from ...lowering.lower import Lowering, lowering
from ...lowering.lower_control import bind, contiguous, operand_array, result_array

Array = np.ndarray[Any, Any]


@record
class Exchange:
    """What native code calls: the collective `name` of a group. It can lie in the cache on disk."""

    name: str
    group: str
    size: int
    attrs: dict[str, Any]
    results: tuple[TensorType, ...]
    loc: SourceLine | None = None

    portable = True

    def fill(self, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Carry it out: `results` are filled."""
        x = operands[0] if operands else None
        out = results[0] if results else None
        members = find_group(self.group, self.size)
        members.collective(self.name, x, out, line=self.loc, **self.attrs)


@lowering(
    *(
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "ppermute",
        "send_all",
        "reduce_to",
    ),
    *("send", "receive", "barrier"),
)
def _exchange(low: Lowering, op: Op) -> None:
    operands = [contiguous(low, operand_array(low, v)) for v in op.operands]
    results = [result_array(low, v) for v in op.results]
    types = tuple(v.type for v in op.operands if isinstance(v.type, TensorType))
    given = tuple(v.type for v in op.results if isinstance(v.type, TensorType))
    attrs = {k: v for k, v in op.attrs.items() if k not in ("group", "size", "shape", "dtype")}
    made = Exchange(op.name, op.attrs["group"], op.attrs["size"], attrs, given, op.loc)
    number = low.context.python(made, types, op)
    present = [a for a in operands if a is not None]
    low.items.append(Callback(number, present, [a for a in results if a is not None]))
    bind(low, op, results)
