"""What is known of the signs of traced numbers, from how they are computed: x * x + 1 is positive.

NaN counts as everything, as it raises nothing.
"""

from __future__ import annotations

from ...ir.graph import Value
from ..core.trace import Trace, require_trace

_DEPTH = 12  # ops looked at, one behind the other


def is_nonnegative(value: Value) -> bool:
    return _is(value, False, require_trace(), _DEPTH)


def is_positive(value: Value) -> bool:
    return _is(value, True, require_trace(), _DEPTH)


def _is(value: Value, strictly: bool, trace: Trace | None, depth: int) -> bool:
    """Whether a value of a trace is positive, or `strictly` is False and it is not negative."""
    if depth < 0 or trace is None:
        return False
    op = value.op
    if op is None:
        if value in trace.counters:
            return not strictly
        outer = next((v for v, inner in trace.lifted() if inner is value), None)
        return outer is not None and _is(outer, strictly, trace.parent, depth)
    if op.name == "constant":
        number = op.attrs["value"]
        if number.dtype.kind not in "biuf":
            return False
        return bool((number > 0 if strictly else number >= 0).all())

    def known(operand: Value, strictly: bool) -> bool:
        return _is(operand, strictly, trace, depth - 1)

    floats = value.dtype.kind == "f"
    first, *others = op.operands
    other = others[0] if others else first
    if op.name in ("sqrt", "reshape", "broadcast"):
        return known(first, strictly)
    if op.name == "convert":  # 0.5 becomes the integer 0
        return known(first, strictly) and (not strictly or floats or first.dtype.kind != "f")
    if op.name == "add":
        if strictly and known(first, True):
            return known(other, False)
        return known(first, False) and known(other, strictly)
    if op.name == "mul":  # small floats have a product that is 0
        if first is other:
            return not strictly
        if strictly and floats and not (_is_large(first) or _is_large(other)):
            return False
        return known(first, strictly) and known(other, strictly)
    if op.name == "div":
        return not strictly and known(first, False) and known(other, False)
    if op.name == "maximum":
        return known(first, strictly) or known(other, strictly)
    if op.name == "pow" and other.op is not None and other.op.name == "constant":
        return not strictly and bool((other.op.attrs["value"] % 2 == 0).all())
    return not strictly and op.name in ("abs", "exp", "exp2")


def _is_large(value: Value) -> bool:
    """Whether it is a constant of at least 1."""
    op = value.op
    return op is not None and op.name == "constant" and bool((op.attrs["value"] >= 1).all())
