"""How large an integer can be that a loop computes, for arrays that are as long as it says.

    for i in range(len(counts)):
        z = np.zeros(counts[i])         # no longer than the largest of counts

What it is computed of comes from outside of the loop. Between which powers of two the elements of that
lie are numbers that can be computed before the call (`computations`): tracing asks for them, and is
given them when the function is traced again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.build import Builder
from ...ir.graph import Graph, Value
from ...ir.integers.interval_rules import Interval
from ...ir.integers.intervals import interval
from ...ir.types import I64, TensorType
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .constants import known_array
from .linear_forms import reach
from .trace import Trace, require_trace
from .tracers import Storage, Tracer, as_value

_FIRST, _LAST = 4, 62  # powers of two between which numbers are told apart


def outer_reach(x: Tracer, most: int) -> Interval | None:
    """Between which numbers `x`, of a loop, lies; None if it is of none, or that cannot be computed.
    UnboundedLengthError where it can, and is not known yet. What is surely within `most` is not asked
    for."""
    root = trace = require_trace()
    while root.parent is not None:
        root = root.parent
    if trace is root or root.eager:
        return None
    leaves = [v for v in _outside(as_value(x), trace, root) if not _is_within(v, most)]
    ends = {v: _ends(v, root) for v in leaves}
    unknown = [end for pair in ends.values() for end in pair if known_array(end) is None]
    if not leaves:
        return None
    if unknown:
        complain(
            errors.UnboundedLengthError,
            "how long an array is depends on values that a loop looks at, and no bound can be computed "
            "before it",
            "give it the largest length that it can have, and use a part of it: x = np.zeros(n), x[:k].",
            operands={"length": x},
            asks=unknown,
        )
    known = {}
    for v, pair in ends.items():
        below, above = (63 if n == _LAST else n for n in map(_number, pair))
        known[v] = -(1 << below) if below else 0, (1 << above) - (above == 63)
    return reach(x, known)


def _number(x: Tracer) -> int:
    known = known_array(x)
    assert known is not None
    return int(known)


def _is_within(value: Value, most: int) -> bool:
    low, high = interval(value)
    return -most <= low and high <= most


def _outside(value: Value, trace: Trace, root: Trace) -> Iterator[Value]:
    """The integers of the outermost trace that a value is computed of."""
    pending, seen = [(value, trace)], {value}
    while pending:
        value, trace = pending.pop()
        if trace is root:
            if (
                isinstance(value.type, TensorType)
                and value.dtype.kind in "iu"
                and value.tensor.size
            ):
                yield value
            continue
        outer: list[tuple[Value, Trace]] = []
        if value.op is not None:
            outer = [(v, trace) for v in value.op.operands]
        elif trace.parent is not None:
            captured = (c.outer for c in trace.captures if c.param is value)
            found = trace.lent.get(value) or next(captured, None)
            outer = [(found, trace.parent)] if isinstance(found, Value) else []
        pending += [each for each in outer if each[0] not in seen]
        seen.update(v for v, _ in outer)


def _ends(value: Value, root: Trace) -> tuple[Tracer, Tracer]:
    """The powers of two that the elements do not fall below, negated, 0 if they are not negative, and do
    not pass: as ops that are part of no graph yet."""
    b = Builder(Graph("ends"))
    with b.at(user_line(4)):
        axes = tuple(range(len(value.shape)))
        value = value if value.dtype == I64 else b.convert(value, dtype=I64)
        least, most = (b.op(name, value, axes=axes) if axes else value for name in ("min", "max"))
        below, above = _power(b, b.neg(least), 0), _power(b, most, _FIRST)
    one, other = (Tracer(Storage(root, v), v.tensor, None, True) for v in (below, above))
    return one, other


def _power(b: Builder, value: Value, first: int) -> Value:
    """The least power of two that is no less than a number, `first` at the least: 0 for what is not
    positive, and 1 for 1, where that is 0."""
    power = b.const(first, I64)
    for k in range(first, _LAST):
        limit = b.const(1 << k if k else 0, I64)
        power = b.add(power, b.convert(b.gt(value, limit), dtype=I64))
    return power
