"""What counts the trips of a loop of scalar code: carries that each trip moves by the same number.

    before: i = start; while i < n: ... i + 1           a carry, and a test of each trip
    after:  for trip in range(n - start): ...           i is the position start + trip, and no carry

    before: while j >= 0 and a[j] > v: ... j - 1
    after:  for trip in range(start + 1): if not a[j] > v: break; ...

Positions are affine in the trips, so that accesses at them can be known to be in bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ir.graph import Graph, Op, Value
from ...ir.types import BOOL, I64
from ..loop_ir.index import Index, Var
from ..loop_ir.scalar_code import Body, Let, nodes
from ..math import EXPANSIONS
from ..scalar import PRIMITIVES, Expr, binary, select
from .pointwise import as_index, folded, index_value

UNKNOWN = 1 << 62  # trips that no loop will make
_INT64 = np.iinfo(np.int64)
_PLAIN = PRIMITIVES.keys() - {"load", "call", "loop", "result"}  # and neither are checks


class Counter(NamedTuple):
    """A carry that is `start`, and `step` more after each trip."""

    start: Index
    step: int

    def after(self, trips: Index) -> Expr:
        """Its value after so many trips."""
        return index_value(self.start + trips * self.step)

    def last(self, counter: Var, trips: Expr | None) -> Expr:
        """Its value after the loop."""
        if trips is None:
            return index_value(self.start + counter.extent * self.step)
        moved = folded(binary("mul", trips, self.step)) if self.step != 1 else trips
        return folded(binary("add", index_value(self.start), moved))


def counters(body: Graph, first: int, init: Sequence[Any]) -> dict[int, Counter]:
    """The carries of a loop that count its trips. They are the body's parameters from `first` on."""
    by_position = {}
    for k, held in enumerate(init):
        if not isinstance(held, np.ndarray) or held.shape or held.item().dtype != I64:
            continue
        param, op = body.params[first + k], body.outputs[k].op
        if op is None or op.name not in ("add", "sub") or param not in op.operands:
            continue
        other = op.operands[1] if op.operands[0] is param else op.operands[0]
        if other.op is None or other.op.name != "constant":
            continue
        step = int(other.op.attrs["value"])
        if op.name == "sub":
            if op.operands[0] is not param:
                continue
            step = -step
        if 0 < abs(step) < 1 << 31:
            by_position[k] = Counter(as_index(held.item(), _INT64.min, _INT64.max), step)
    return by_position


def trips_of(
    condition: Expr, test: Body, own: Mapping[int, Counter], carried: Sequence[Any]
) -> tuple[Var, Expr] | None:
    """The trips of `while counter < limit`, and the variable that counts them; None if only the
    condition tells. The counter moves by one: then it meets the limit, and no sum overflows."""
    if condition.op not in ("lt", "gt") or condition.args[0].dtype != I64:
        return None
    if not all(isinstance(s, Let) for s in test.statements):
        return None
    if any(node.op not in _PLAIN for node in nodes(test)):
        return None
    changing = {e for held in carried if isinstance(held, np.ndarray) for e in held.flat}
    less, more = condition.args if condition.op == "lt" else reversed(condition.args)
    for here, limit, step in ((less, more, 1), (more, less, -1)):
        for k, way in own.items():
            if carried[k].item() is here and way.step == step and _is_invariant(limit, changing):
                return _distance(way.start, limit, step)
    return None


def most_trips(
    test: Graph, own: Mapping[int, Counter], first: int, inputs: Sequence[Any]
) -> tuple[Var, Expr] | None:
    """The trips that a `while` makes at most, since its test first asks whether its counter is short of
    a limit, and nothing that can fail before; the variable that counts them.

    `test` has parameters that are `inputs`: constants, and from `first` on what is carried.
    """
    if any(op.name not in EXPANSIONS and op.name not in ("constant", "cond") for op in test.ops):
        return None
    flag: Value | None = test.outputs[0]
    while flag is not None and flag.op is not None and flag.op.name == "cond":
        flag = _asked_first(flag.op)
    op = None if flag is None else flag.op
    if op is None or op.name not in _SHORT_OF:
        return None
    step, beyond = _SHORT_OF[op.name]
    for (counter, limit), sign in ((op.operands, step), (reversed(op.operands), -step)):
        position = test.params.index(counter) - first if counter in test.params else -1
        stop = _position(test, limit, inputs)
        if position in own and own[position].step == sign and stop is not None:
            way = (stop - own[position].start) * sign + beyond
            least, most = way.reach()
            if least > -UNKNOWN and most < UNKNOWN and all(map(_is_loop, way.terms)):
                trips = index_value(way)
                counted = Var("trip", max(most, 1), way)
                return counted, trips if least >= 0 else binary("max", trips, 0)
    return None


# Comparisons of a counter with a limit: by which step it comes there, and how many trips beyond.
_SHORT_OF = {"lt": (1, 0), "le": (1, 1), "gt": (-1, 0), "ge": (-1, 1)}


def _asked_first(op: Op) -> Value | None:
    """The condition of `first and second`, which is a branch."""
    index, short = op.operands[0].op, op.regions[0].outputs[0]
    if index is None or index.name != "convert" or len(op.regions) != 2:
        return None
    (first,) = index.operands
    if first.dtype != BOOL:
        return None
    if short.op is None:
        return first if op.operands[1 + op.regions[0].params.index(short)] is first else None
    is_false = short.op.name == "constant" and not short.op.attrs["value"].any()
    return first if is_false else None


def _position(graph: Graph, value: Value, inputs: Sequence[Any]) -> Index | None:
    """A limit that is the same in each trip, as a position."""
    if value.op is not None:
        if value.op.name != "constant" or value.shape or value.dtype != I64:
            return None
        return Index(int(value.op.attrs["value"]))
    held = inputs[graph.params.index(value)]
    if not isinstance(held, np.ndarray) or held.shape or held.item().dtype != I64:
        return None
    limit = held.item()
    return as_index(limit, 0, 0) if limit.op in ("index", "const") else None


def _is_loop(atom: Any) -> bool:
    return isinstance(atom, Var)


def _is_invariant(limit: Expr, changing: set[Expr]) -> bool:
    pending, seen = [limit], set()
    while pending:
        node = pending.pop()
        if node in changing or node.op not in _PLAIN:
            return False
        if node not in seen:
            seen.add(node)
            pending += node.args
    return True


def _distance(start: Index, limit: Expr, step: int) -> tuple[Var, Expr]:
    if limit.op in ("index", "const"):
        way = (as_index(limit, 0, 0) - start) * step
        least, most = way.reach()
        if least > -UNKNOWN and most < UNKNOWN:
            trips = index_value(way)
            counter = Var("trip", max(most, 1), way)
            return counter, trips if least >= 0 else binary("max", trips, 0)
    first = index_value(start)
    low, high = (first, limit) if step > 0 else (limit, first)
    return Var("trip", UNKNOWN), select(low < high, binary("sub", high, low), 0)
