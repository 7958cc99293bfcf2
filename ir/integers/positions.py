"""Between which integers `range(start, stop, step)` lies, where the step is known only at run time.

    n = (stop - start + step - 1) // step           of a step above 0; of one below 0 it is + 1
    k = 0
    while k < n:
        x[k * step + start]                         start <= k * step + start < stop: no check is needed

No arithmetic of intervals tells that, as a long step takes few iterations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from ..graph import Graph, Op, Value
from ..types import I64, TensorType
from .interval_rules import ARITHMETIC, Interval, product

Known = Callable[[Value], Interval]
NUMBER = TensorType((), I64)


def positions(op: Op, known: Known) -> Iterator[tuple[Value, Interval]]:
    """The values in the body of a `while` that are such positions. `known` is asked of what is outside
    of the loop."""
    found = trips(op)
    if found is None:
        return
    counter, total, step = found
    low, high = known(step)
    if low <= 0 <= high or known(op.operands[counter])[0] < 0:
        return
    body, outside = op.regions[1], dict(zip(op.regions[1].params, op.operands, strict=True))
    for k in range(op.attrs["consts"], len(op.operands)):
        outside.pop(body.params[k])  # it changes
    for moved in _results(body, "mul"):
        if not any(a is body.params[counter] and outside.get(b) is step for a, b in _ways(moved)):
            continue
        yield moved, _between(None, total, step, known)
        for place in _results(body, "add"):
            for a, b in _ways(place):
                start = b if b.op is not None and b.op.name == "constant" else outside.get(b)
                if a is moved and start is not None:
                    yield place, _between(start, total, step, known)


def trips(op: Op) -> tuple[int, Value, Value] | None:
    """Of `while k < total // step`, which moves k by 1: the place of k among the operands, and those."""
    if op.name != "while":
        return None
    (test, body), consts = op.regions, op.attrs["consts"]
    asked = test.outputs[0].op
    if asked is None or asked.name != "lt" or not all(v in test.params for v in asked.operands):
        return None
    counter, number = map(test.params.index, asked.operands)
    division = op.operands[number].op
    if counter < consts or number >= consts or division is None:
        return None
    new = body.outputs[counter - consts].op
    if division.name != "floor_divide" or division.result.type != NUMBER or new is None:
        return None
    by = new.operands[-1].op
    moves = new.name == "add" and new.operands[0] is body.params[counter]
    if not moves or by is None or by.name != "constant" or by.attrs["value"] != 1:
        return None
    total, step = division.operands
    return counter, total, step


def _between(start: Value | None, total: Value, step: Value, known: Known) -> Interval:
    """k * step + start, for any k from 0 to total // step - 1: it lies between `start` and
    total - step + start, of which most cancels."""
    terms: Counter[Value] = Counter()
    number = _add(total, 1, terms, known) + _add(step, -1, terms, known)
    near = 0, 0
    if start is not None:
        number += _add(start, 1, terms, known)
        near = known(start)
    parts = [product(known(v), (factor, factor)) for v, factor in terms.items()]
    far = number + sum(low for low, _ in parts), number + sum(high for _, high in parts)
    return (near[0], far[1]) if known(step)[0] > 0 else (far[0], near[1])


def _add(value: Value, factor: int, terms: Counter[Value], known: Known) -> int:
    """Add a multiple of a sum to `terms` and to a number, which is returned. A sum that might wrap is a
    term by itself."""
    op = value.op
    if op is not None and op.name == "constant":
        return factor * int(op.attrs["value"])
    if op is not None and op.name in ("add", "sub") and _is_exact(op, known):
        a, b = op.operands
        other = -factor if op.name == "sub" else factor
        return _add(a, factor, terms, known) + _add(b, other, terms, known)
    terms[value] += factor
    return 0


def _is_exact(op: Op, known: Known) -> bool:
    low, high = ARITHMETIC[op.name](*map(known, op.operands)) or (-1 << 63, 1 << 63)
    return low >= -1 << 63 and high < 1 << 63


def _results(graph: Graph, name: str) -> Iterator[Value]:
    return (op.result for op in graph.ops if op.name == name and not op.result.shape)


def _ways(value: Value) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    assert value.op is not None
    a, b = value.op.operands
    return (a, b), (b, a)
