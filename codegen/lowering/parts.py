"""Sums over independent iterations, in parts that threads can share.

    before: t, i = scan ... t0, i0 length=n independent        t += f(i), i += 1 in each iteration
    after:  p = scan ... length=parts independent              each iteration makes a sum of its own,
                { t, i = scan ... 0, i0 + j * m length=m }     over m iterations, which is stacked
            t = scan t0, p length=parts                        the sums are added in their order
            t, i = scan ... t, i0 + parts * m                  iterations that are left

How many parts there are depends on the length alone, so results do not depend on threads. Products,
extremes and bits go as sums do. An extreme begins in each part with the value before the loop: it does
not matter how often that is met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...ir.build import Builder
from ...ir.chains import Broken, chain_of, depends, step_of, through
from ...ir.graph import Graph, Op, Value
from ...ir.passes.dead import eliminate_dead_code
from ...ir.passes.regions import map_regions, substituted
from ...ir.subgraphs import between
from ...ir.types import I64, TensorType, is_float
from .scalar_work import is_shared

PARTS = 256  # a number that any thread's share divides well into
_STARTS = {
    "add": 0,
    "mul": 1,
}  # sums and products; all others are not changed by meeting a value again
_AGAIN = ("minimum", "maximum", "bitwise_and", "bitwise_or", "logical_and", "logical_or")
_COMPARISONS = ("lt", "gt", "le", "ge")

Join = Callable[[Builder, Value, Value], Value]  # a running value, and that of a part


class Fold(NamedTuple):
    """What a loop makes of a carry: where a part begins (None: with the value before the loop), and
    how parts are joined."""

    start: float | int | None
    join: Join


def in_parts(graph: Graph) -> Graph:
    """`graph` with its long sums over independent iterations in parts."""
    new = _in_parts(graph)
    return graph if new is graph else eliminate_dead_code(new)


def _in_parts(graph: Graph) -> Graph:
    if not any(op.regions for op in graph.ops):
        return graph

    def expand(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
        if is_shared(op):
            sums = Sums.of(op)
            return None if sums is None else sums.emit(b, operands)
        return None

    return substituted(map_regions(graph, _in_parts), expand)


class Sums:
    """A loop over independent iterations that makes sums: what becomes of each carry."""

    def __init__(self, op: Op, steps: dict[int, int], folds: dict[int, Fold]) -> None:
        self.op, self.steps, self.folds = op, steps, folds
        self.first, self.count = op.attrs["consts"], op.attrs["carries"]
        self.parts = min(PARTS, op.attrs["length"])
        self.trips, self.left = divmod(op.attrs["length"], self.parts)

    @staticmethod
    def of(op: Op) -> Sums | None:
        """None if there is no sum, or something else than sums, counters and elements."""
        first, count, (body,) = op.attrs["consts"], op.attrs["carries"], op.regions
        if op.attrs["reverse"] or len(op.operands) > first + count or len(op.results) > count:
            return None
        if any(not isinstance(v.type, TensorType) for v in op.operands):
            return None
        steps: dict[int, int] = {}
        folds: dict[int, Fold] = {}
        for k, output in enumerate(body.outputs):
            param = body.params[first + k]
            if output.shape or output is param:
                continue
            step = step_of(output, param)
            fold = None
            if step is not None and param.dtype == I64:
                steps[k] = step
                continue
            others = [v for v in body.outputs if v is not output]
            if not any(depends(v, {param}) for v in others):
                fold = _fold(output, param)
            if fold is None:
                return None
            folds[k] = fold
        return Sums(op, steps, folds) if folds else None

    def emit(self, b: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        consts, starts = operands[: self.first], list(operands[self.first :])
        arrays = [k for k, v in enumerate(starts) if v.shape]
        outer = Graph("part")
        ob = Builder(outer, self.op.loc)
        inner = [outer.add_param(v.type, v.name) for v in consts]
        own: dict[int, Value] = {}
        scalars = [k for k, v in enumerate(starts) if not v.shape]
        for k in scalars:
            own[k] = outer.add_param(starts[k].type)
        number = outer.add_param(TensorType((), I64))
        for k in arrays:
            own[k] = outer.add_param(starts[k].type)
        for k, fold in self.folds.items():
            if fold.start is not None:
                own[k] = ob.const(fold.start, starts[k].dtype)
        for k, step in self.steps.items():
            own[k] = self._moved(ob, own[k], ob.mul(number, ob.const(self.trips * step, I64)))
        ends = self._loop(ob, inner, [own[k] for k in range(self.count)], self.trips)
        following = ob.add(number, ob.const(1, I64))
        outer.outputs = [following, *(ends[k] for k in (*arrays, *self.folds))]
        attrs = {"consts": self.first + len(scalars), "carries": 1 + len(arrays)}
        attrs |= {"length": self.parts, "reverse": False, "independent": True}
        given = [*consts, *(starts[k] for k in scalars), b.const(0, I64)]
        given += [starts[k] for k in arrays]
        made = b.append(self.op.definition, given, attrs, (outer,)).results[1:]
        values = dict(enumerate(starts)) | dict(zip(arrays, made, strict=False))
        joined = self._joined(b, [starts[k] for k in self.folds], made[len(arrays) :])
        values |= dict(zip(self.folds, joined, strict=True))
        for k, step in self.steps.items():
            values[k] = self._moved(b, starts[k], b.const(self.parts * self.trips * step, I64))
        if self.left:
            last = [values[k] for k in range(self.count)]
            return self._loop(b, consts, last, self.left)
        return [values[k] for k in range(self.count)]

    def _loop(
        self, b: Builder, consts: Sequence[Value], starts: Sequence[Value], length: int
    ) -> Sequence[Value]:
        body = Graph(self.op.regions[0].name)
        params = [body.add_param(p.type, p.name) for p in self.op.regions[0].params]
        body.outputs = Builder(body, self.op.loc).inline(self.op.regions[0], params)
        attrs = {**self.op.attrs, "length": length}
        return b.append(self.op.definition, [*consts, *starts], attrs, (body,)).results

    def _joined(
        self, b: Builder, starts: Sequence[Value], parts: Sequence[Value]
    ) -> Sequence[Value]:
        body = Graph("joined")
        running = [body.add_param(v.type) for v in starts]
        new = [body.add_param(v.type) for v in starts]
        inside = Builder(body, self.op.loc)
        folds = zip(self.folds.values(), running, new, strict=True)
        body.outputs = [fold.join(inside, t, p) for fold, t, p in folds]
        attrs = {"consts": 0, "carries": len(starts), "length": self.parts, "reverse": False}
        return b.append(self.op.definition, [*starts, *parts], attrs, (body,)).results

    @staticmethod
    def _moved(b: Builder, start: Value, by: Value) -> Value:
        moved: Value = b.add(start, by)
        return moved


def _fold(output: Value, param: Value) -> Fold | None:
    """How a carry is made of what iterations give; None if it is no sum and its kin."""
    if not depends(output, {param}):  # the last one counts
        return Fold(None, lambda b, t, p: p)
    extreme = _extreme(output, param)
    if extreme is not None:
        return extreme
    try:
        chain = chain_of(output, param)
    except Broken:
        return None
    if chain.guarded or len(chain.groups) != 1:
        return None
    (group,) = chain.groups
    if group in _STARTS:
        start: float | int = _STARTS[group]
        if group == "add" and is_float(param.dtype):
            start = -0.0  # which added to 0.0 or to -0.0 gives that
        return Fold(start, lambda b, t, p: b.op(group, t, p))
    return Fold(None, lambda b, t, p: b.op(group, t, p)) if group in _AGAIN else None


class Test(NamedTuple):
    """How a step to an extreme compares: `name`, whether the running value is on the left, and whether
    it is what is taken if that holds."""

    name: str
    left: bool
    taken: bool


def _extreme(output: Value, param: Value) -> Fold | None:
    """`v if v < t else t`, which is Python's `min` and its kin, in any order of both, and again."""
    tests = _tests(output, param)
    if tests is None or len(tests) != 1:
        return None
    ((name, left, taken),) = tests

    def join(b: Builder, t: Value, p: Value) -> Value:
        flag = b.op(name, t, p) if left else b.op(name, p, t)
        chosen: Value = b.op("select", flag, t, p) if taken else b.op("select", flag, p, t)
        return chosen

    return Fold(None, join)


def _tests(output: Value, param: Value) -> set[Test] | None:
    """How the steps from a carry to its next value compare, if they are nothing else."""
    moving, value, found = between([param], [output]), output, set[Test]()
    while value is not param:
        op = value.op
        assert op is not None
        if op.name == "scan":
            try:
                inside, (own,), _ = through(op, value.index, moving)
            except Broken:
                return None
            tests = _tests(inside, own)
            value = op.operands[own.index]
        else:
            step = _test(value, moving)
            if step is None:
                return None
            test, value = step
            tests = {test}
        if tests is None:
            return None
        found |= tests
    return found


def _test(value: Value, moving: set[Value]) -> tuple[Test, Value] | None:
    """How a step compares, and the running value before it."""
    op = value.op
    if op is None or op.name not in ("select", "cond"):
        return None
    flag, chosen = op.operands[0], _choices(op, value)
    while flag.op is not None and flag.op.name == "convert":
        flag = flag.op.operands[0]
    test = flag.op
    if chosen is None or test is None or test.name not in _COMPARISONS:
        return None
    running = [v for v in chosen if v in moving]
    if len(running) != 1 or {*test.operands} != {*chosen}:
        return None
    (before,) = running
    return Test(test.name, test.operands[0] is before, chosen[0] is before), before


def _choices(op: Op, output: Value) -> tuple[Value, Value] | None:
    """What a branch gives if its condition holds, and if not."""
    if op.name == "select":
        return op.operands[1], op.operands[2]
    values = []
    for region in op.regions:
        inside = region.outputs[output.index]
        if len(op.regions) != 2 or inside not in region.params:
            return None
        values.append(op.operands[1 + region.params.index(inside)])
    return values[1], values[0]
