"""Between which integers the values of loops and branches lie that become scalar code.

    lo, hi = 0, n                      a[middle] needs no check, nor the sum one that it fits 64 bits
    while lo < hi:
        middle = (lo + hi) // 2

`ir.integers.intervals` finds out; here is when it is worth asking, and what is made of the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from ...ir.graph import Graph, Op, Value
from ...ir.integers.interval_rules import LEAVES, Interval
from ...ir.integers.intervals import OfLoop, of_loop
from ...ir.integers.positions import trips
from ...ir.types import BOOL, I64, TensorType
from ..scalar import Expr, compare, const
from .pointwise import IndexTuple, Pointwise

TESTS = frozenset((*LEAVES, "add_fits", "sub_fits", "mul_fits"))
NOTHING = OfLoop({}, {}, {})


def both(a: Interval, b: Interval | None) -> Interval:
    """What is known by two ways."""
    if b is None:
        return a
    return max(a[0], b[0]), min(a[1], b[1])


def reaches_of_loop(op: Op, positions: Container[int], known: dict[Value, Interval]) -> OfLoop:
    """What is known of the values in a loop and of its results, of which some carries are positions
    anyway; `known` is what is around it. Nothing where no check asks for it."""
    first = op.attrs["consts"]
    carries = op.attrs.get("carries", len(op.operands) - first)
    others = [v for k, v in enumerate(op.operands[first : first + carries]) if k not in positions]
    some = any(map(_is_number, others)) or trips(op) is not None
    if not some or not any(map(_checks, op.regions)):
        return NOTHING
    return of_loop(op, known)


def reaches_of_branch(
    region: Graph, operands: Sequence[Value], known: Callable[[Value], Interval]
) -> Mapping[Value, Interval]:
    """What is known of the parameters of a branch."""
    if not _checks(region):
        return {}
    pairs = zip(region.params, operands, strict=True)
    return {p: known(v) for p, v in pairs if _is_number(v)}


def _is_number(value: Value) -> bool:
    return isinstance(value.type, TensorType) and not value.shape and value.dtype.kind in "iu"


def _checks(graph: Graph) -> bool:
    """Whether a region checks something of numbers."""
    return any(
        op.name == "assert"
        or op.attrs.get("mode") == "check"
        or any(_checks(region) for region in op.regions)
        for op in graph.ops
    )


def known_test(p: Pointwise, value: Value, index: IndexTuple, mask: Expr | None) -> Expr | None:
    """A comparison of integers that is known, or half known: whether x lies between two numbers."""
    op = value.op
    if op is None or value.dtype != BOOL or op.name not in TESTS or value in p.arrays:
        return None
    if op.operands[0].dtype.kind not in "iu":
        return None
    low, high = p.interval(value)
    if low == high:
        return const(bool(low), BOOL)
    ends = _between(value)
    if ends is None or p.interval(ends[0])[0] < ends[1]:
        return None
    return compare("le", p.at(ends[0], index, mask), ends[2])


def _between(test: Value) -> tuple[Value, int, int] | None:
    """x, and the least and the largest number that it may be, if a test asks that by one comparison of
    unsigned numbers."""
    op = test.op
    if op is None or op.name != "le" or test.shape:
        return None
    moved, width = op.operands
    if moved.op is None or moved.op.name != "bitcast" or moved.dtype.kind != "u":
        return None
    total = moved.op.operands[0].op
    if total is None or total.name != "add" or total.result.dtype != I64:
        return None
    x, by = total.operands
    numbers = [_constant(v) for v in (by, width)]
    if None in numbers:
        return None
    low, high = -numbers[0], numbers[1] - numbers[0]  # type: ignore[operator]
    return (x, low, high) if -(1 << 63) <= low <= high < 1 << 63 else None


def _constant(value: Value) -> int | None:
    constant = value.op is not None and value.op.name == "constant"
    return int(value.op.attrs["value"]) if constant and value.op is not None else None
