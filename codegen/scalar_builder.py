"""Building scalar code: where each value of a region is, and statements in the order of the program.

Small values are taken apart into elements, expressions that live in registers; large ones stay in
memory. An array that is overwritten in place holds one version at a time, the latest: a program that
reads an older one is `Unfit`, and is left to kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..ir.graph import Graph, Op, Value
from ..ir.types import TensorType
from .elements import Elements, at, pick
from .kernel import Array
from .lower import Lowering, memory_type
from .pointwise import IndexTuple, Pointwise
from .scalar import Expr
from .scalar_code import Block, Let, Write

SMALL = 64  # elements of a value that is taken apart
MOST_ELEMENTS = 256  # operands of a reduction or a product


class Unfit(Exception):
    """This loop cannot be scalar code, or should not be."""


class _Elements(Pointwise):
    """Values by element: taken apart (`known`), or in memory from some position on (`views`)."""

    def __init__(self, low: Lowering, latest: dict[Array, Value]) -> None:
        super().__init__(low.arrays, low.context.site)
        self.latest = latest
        self.known: dict[Value, Elements] = {}
        self.views: dict[Value, Stored] = {}

    def _build(self, value: Value, index: IndexTuple, mask: Expr | None) -> Expr:
        elements = self.known.get(value)
        if elements is not None:
            return pick(elements, index)
        view = self.views.get(value)
        if view is None:
            return super()._build(value, index, mask)
        if self.latest.get(view.array, value) is not value:
            raise Unfit  # it has been overwritten by now
        return self.load(view.array, (*view.prefix, *index), mask)

    def forget(self, array: Array) -> None:
        """`array` has been written: what was loaded from it may be old."""
        for key in [k for k in self.loads if k[0] == id(array)]:
            del self.loads[key]


@dataclass(frozen=True, slots=True)
class Stored:
    """A value in memory, from position `prefix` on. `owned`: may be overwritten when nobody reads it."""

    array: Array
    prefix: IndexTuple = ()
    owned: bool = False


Held = Elements | Stored | None  # where a value is; None: an order token is nowhere


class ScalarBuilder:
    """The scalar code of one loop op while it is built."""

    def __init__(self, low: Lowering, op: Op) -> None:
        self.low, self.op = low, op
        self.latest: dict[Array, Value] = {}  # of arrays written in place: the version they hold
        self.p = _Elements(low, self.latest)
        self.block = Block()
        self.reads: dict[Array, None] = {}
        self.writes: dict[Array, None] = {}
        self.copies: list[tuple[Value, Array]] = []
        self._written: set[int] = set()  # regions, by id

    # Where values are.

    def bind(self, value: Value, held: Held) -> None:
        if isinstance(held, Stored):
            self.p.views[value] = held
            if held.array in self.latest:
                self.latest[held.array] = value
        elif held is not None:
            self.p.known[value] = held

    def get(self, value: Value) -> Held:
        """Where a value is: taken apart if it is small, else it must be in memory."""
        if memory_type(value) is None:
            return None
        if not isinstance(value.type, TensorType):
            raise Unfit  # a tape
        view = self.p.views.get(value)
        if view is not None and (value.tensor.size > SMALL or view.owned):
            return view
        if value.tensor.size <= SMALL:
            return self.elements(value)
        if value.op is None or value in self.low.arrays or value in self.low.inlined:
            return Stored(self.low.materialise(value))
        raise Unfit

    def elements(self, value: Value) -> Elements:
        """The elements of a value, computed where we stand."""
        found = self.p.known.get(value)
        if found is None:
            if value.tensor.size > MOST_ELEMENTS:
                raise Unfit
            found = np.empty(value.shape, object)
            for place in np.ndindex(*value.shape):
                found[place] = self.p.at(value, at(place))
            self.let(found)
            if value not in self.p.views:
                self.p.known[value] = found
        return found

    def scalar(self, value: Value) -> Expr:
        return pick(self.elements(value), ())

    def let(self, elements: Elements) -> None:
        values = [e for e in elements.flat if e.op not in ("const", "var")]
        if values:
            self.block.statements.append(Let(values))

    def write(self, array: Array, prefix: IndexTuple, values: Elements) -> None:
        for place in np.ndindex(*values.shape):
            self.put(array, (*prefix, *at(place)), values.item(place))

    def put(self, array: Array, index: IndexTuple, value: Expr) -> None:
        self.block.statements.append(Write(array, index, value))
        self.writes[array] = None
        self.p.forget(array)

    def result(self, op: Op, found: Elements) -> None:
        self.let(found)
        self.bind(op.result, found)

    # Regions.

    def region(self, graph: Graph, arguments: Sequence[Held]) -> list[Held]:
        if id(graph) in self._written:
            self._forget(graph)  # two ops share it (an unrolled `cond`): its values are others now
        self._written.add(id(graph))
        for param, held in zip(graph.params, arguments, strict=True):
            self.bind(param, held)
        for op in graph.ops:
            self._op(op)
        return [self.get(v) for v in graph.outputs]

    def _forget(self, graph: Graph) -> None:
        """Drop what is known of the values of a region, as it was written for other arguments."""
        values = {*graph.params, *(v for op in graph.ops for v in op.results)}
        for value in values:
            self.p.known.pop(value, None)
            self.p.views.pop(value, None)
        for key in [key for key in self.p.memo if key[0] in values]:
            del self.p.memo[key]

    def inside(self) -> Block:
        """Begin an inner block: what was loaded from arrays that change is forgotten."""
        outer, self.block = self.block, Block()
        for array in self.latest:
            self.p.forget(array)
        return outer

    def _op(self, op: Op) -> None:
        rule = RULES.get(op.name)
        if rule is not None:
            rule(self, op)
        elif op.name == "optimization_barrier":
            for result, operand in zip(op.results, op.operands, strict=True):
                self.bind(result, self.get(operand))
        else:
            for v in op.results:
                if v.tensor.size <= SMALL:
                    self.elements(v)


Rule = Callable[[ScalarBuilder, Op], None]
RULES: dict[str, Rule] = {}  # ops that are not pointwise; see `scalar_rules` and `lower_scalars`


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Make the decorated function what builds the ops called `names`."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register
