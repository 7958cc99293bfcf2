"""Are two traced integers a fixed distance apart? `x[i : i + 3]` has three rows, wherever they are.

A value is read as a sum of multiples of others and a constant. What is no sum is compared by how it was
computed, so that `x[k * n : k * n + 4]` is understood as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...ir.graph import Op, Value
from ...ir.integers.interval_rules import Interval
from ...ir.integers.intervals import remembered
from .trace import require_trace
from .tracers import Tracer, as_value

_DEPTH = 12
_ANYWHERE = (-(1 << 63), (1 << 63) - 1)


def distance(a: Value, b: Value) -> int | None:
    """b - a for 0-d integers of the current trace, if it is the same whatever they are."""
    left, right = _form(a, _DEPTH), _form(b, _DEPTH)
    rest = [(value, -factor) for value, factor in left[0]]
    for value, factor in right[0]:
        for i, (term, old) in enumerate(rest):
            if same_value(term, value):
                rest[i] = (term, old + factor)
                break
        else:
            rest.append((value, factor))
    return None if any(factor for _, factor in rest) else right[1] - left[1]


def plain(value: Value) -> Value:
    """Of `(n - 1) + 1` and its like n; else the value itself."""
    terms, rest = _form(value, _DEPTH)
    return terms[0][0] if rest == 0 and [factor for _, factor in terms] == [1] else value


def _form(value: Value, depth: int) -> tuple[list[tuple[Value, int]], int]:
    """Values with their factors, and a constant: `value` is their sum."""
    value = _origin(value)
    op = value.op
    alone = [(value, 1)], 0
    if op is None or depth == 0:
        return alone
    if op.name == "constant":
        return [], int(op.attrs["value"])
    if op.name not in ("add", "sub", "mul", "neg", "reshape"):
        return alone
    forms = [_form(v, depth - 1) for v in op.operands]
    if op.name == "reshape":
        return forms[0]
    if op.name == "neg":
        return _times(forms[0], -1)
    if op.name == "mul":
        for one, other in (forms, forms[::-1]):
            if not one[0]:
                return _times(other, one[1])
        return alone
    second = _times(forms[1], -1) if op.name == "sub" else forms[1]
    return [*forms[0][0], *second[0]], forms[0][1] + second[1]


def _times(
    form: tuple[list[tuple[Value, int]], int], by: int
) -> tuple[list[tuple[Value, int]], int]:
    return [(value, factor * by) for value, factor in form[0]], form[1] * by


def _origin(value: Value) -> Value:
    """What a region's hidden parameter stands for, in the enclosing traces."""
    trace: Any = require_trace()
    while trace is not None and value.op is None:
        outer = next((c.outer for c in trace.captures if c.param is value), None)
        value = outer if isinstance(outer, Value) else value
        trace = trace.parent
    return value


def reach(x: Tracer, known: Mapping[Value, Interval] | None = None) -> Interval:
    """Between which numbers a traced integer lies, as far as its computation tells, and what is `known`
    of values of the traces around."""
    bounds: dict[Value, Interval] = {}
    chain, trace = [], require_trace()
    while trace is not None:
        chain.append(trace)
        trace = trace.parent  # type: ignore[assignment]
    for trace in reversed(chain):
        if known is None:
            bounds.update(trace.reaches)
        else:  # what was found out without knowing them is left out
            bounds.update((v, r) for v, r in trace.reaches.items() if r != _ANYWHERE)
            bounds.update(known)
        for capture in trace.captures:
            if isinstance(capture.outer, Value) and capture.outer.dtype.kind in "biu":
                found = remembered(capture.outer, bounds)
                low, high = bounds.get(capture.param, found)
                bounds[capture.param] = max(low, found[0]), min(high, found[1])
    return remembered(as_value(x), bounds)


def same_value(a: Value, b: Value, depth: int = _DEPTH) -> bool:
    """Whether two values are one: the same value, or the same computation."""
    if a is b:
        return True
    p, q = a.op, b.op
    if depth == 0 or p is None or q is None or a.type != b.type or p.definition is not q.definition:
        return False
    if (
        p.regions
        or p.definition.effect
        or len(p.operands) != len(q.operands)
        or not _same_attrs(p, q)
    ):
        return False
    pairs = zip(p.operands, q.operands, strict=True)
    return a.index == b.index and all(same_value(u, v, depth - 1) for u, v in pairs)


def _same_attrs(p: Op, q: Op) -> bool:
    for name, value in p.attrs.items():
        other = q.attrs.get(name)
        if isinstance(value, np.ndarray):
            if other is None or value.shape != other.shape or value.tobytes() != other.tobytes():
                return False
        elif value != other:
            return False
    return True
