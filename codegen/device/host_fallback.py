"""What a GPU leaves to the host: decompositions of matrices, by NumPy's LAPACK.

The operands are copied to the host, which waits for them, and the results back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.graph import Op
from ...ir.opdef import OPS
from ...ir.record import record
from ...ir.types import TensorType
from ..loop_ir.steps import Callback
from ..lowering.lower import HOMES, Lowering
from ..lowering.lower_control import contiguous
from ..module import CallbackSite

HOSTED = tuple(
    n
    for n, module in HOMES.items()
    if module in ("lowering.lower_library", "kernels.factor.lower_factors")
)


@record
class HostedOp:
    """The reference of an op as a function of arrays; unlike other callbacks it can be stored."""

    name: str
    attrs: dict[str, Any]
    line: str  # the user's

    def __call__(self, *arrays: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
        try:
            result = OPS[self.name].reference(*arrays, **self.attrs)
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(f"{error}\n  {self.line}") from None
        return result if isinstance(result, tuple) else (result,)


def hosted(low: Lowering, op: Op) -> None:
    """A step in which the host computes the op."""
    types = tuple(v.tensor for v in op.results)
    operands = [contiguous(low, low.materialise(v)) for v in op.operands]
    results = [low.array_for(v) for v in op.results]
    line = f"at {op.loc}{op.loc.inside}" if op.loc else ""
    operand_types = tuple(v.type for v in op.operands if isinstance(v.type, TensorType))
    low.context.callbacks.append(
        CallbackSite(HostedOp(op.name, dict(op.attrs), line), operand_types, types)
    )
    number = len(low.context.callbacks) - 1
    low.items.append(Callback(number, [a for a in operands if a is not None], results))
    low.arrays.update(zip(op.results, results, strict=True))
