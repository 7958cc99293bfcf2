"""Equal operations on several numbers of scalar code as one operation on a vector.

    before:  three scalar `tanh`, nine scalar divisions
    after:   one `tanh` of four lanes, four divisions of two lanes and a scalar one

Putting numbers into lanes and taking them out again costs about as much as an addition. So only what
takes much longer is packed: functions, and divisions and roots, of which a CPU does as many at a time as
a short register holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...math.functions import Elementwise
from ...scalar import Expr
from ..builder import poison
from ..instructions import INSTRUCTIONS, type_text
from ..text import Operand

if TYPE_CHECKING:
    from .statements import ScalarCodeEmitter

SHORT_BITS = 128  # a division of a longer register takes as much longer


def emit_packed(e: ScalarCodeEmitter, values: Sequence[Expr]) -> None:
    """Emit those of `values` that can be packed; the others are left to be emitted one by one."""
    groups: dict[Any, dict[Expr, None]] = {}
    for value in values:
        if value.op == "call" or (value.op in ("div", "sqrt") and value.dtype.kind == "f"):
            groups.setdefault((value.op, value.dtype, value.attr), {})[value] = None
    for (op, dtype, _), members in groups.items():
        if len(members) == 1:
            continue
        for value in members:
            for a in value.args:
                e.exprs.operand(a)
        group = [value for value in members if not e.exprs.has(value)]
        bits = e.b.target.vector_bits if op == "call" else SHORT_BITS
        most = bits // (8 * dtype.itemsize)
        for k in range(0, len(group), most):
            part = group[k : k + most]
            if len(part) > 1:
                _emit(e, part, 1 << (len(part) - 1).bit_length())


def _emit(e: ScalarCodeEmitter, values: list[Expr], lanes: int) -> None:
    """Emit equal operations as one of `lanes` lanes; there may be more lanes than operations."""
    first = values[0]
    operands = [
        _gathered(e, column, lanes) for column in zip(*(v.args for v in values), strict=True)
    ]
    wide = e.exprs.narrower(lanes)
    if first.op == "call":
        function: Elementwise = first.attr
        if function in e.calls.called:
            result = e.calls.call(function, operands, e.b, wide.b)
        else:
            result = wide.call_function(function, operands)
        packed = wide.b.spread(result, first.dtype)
    else:
        spread = [wide.b.spread(x, first.dtype) for x in operands]
        packed = INSTRUCTIONS[first.op](wide.b, first, lanes, *spread)
    for k, value in enumerate(values):
        e.exprs.bind(value, e.b.extract(packed, k), uniform=True)


def _gathered(e: ScalarCodeEmitter, numbers: Sequence[Expr], lanes: int) -> Operand:
    """Numbers side by side in a vector; the last lanes repeat the first number."""
    values = [e.exprs.operand(x).value for x in numbers]
    if len(set(values)) == 1:
        return Operand(values[0], True)
    vector = poison(type_text(numbers[0].dtype, lanes))
    for k, value in enumerate([*values, *values[:1] * (lanes - len(values))]):
        vector = e.b.insert(vector, value, k)
    return Operand(vector, False)
