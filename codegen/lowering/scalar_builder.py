"""Building scalar code: where each value of a region is, and statements in the order of the program.

Small values are taken apart into elements, expressions that live in registers; large ones stay in
memory. An array that is overwritten in place holds one version at a time, the latest: a program that
reads an older one is `Unfit`, and is left to kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import count

import numpy as np

from ...ir.cost import Cost
from ...ir.graph import Graph, Op, Value
from ...ir.integers.intervals import remembered
from ...ir.record import record, replace
from ...ir.types import BOOL, I64, TensorType
from ..loop_ir.index import Index, Var
from ..loop_ir.kernel import Array
from ..loop_ir.scalar_code import Body, Let, Require, Routine, Write
from ..scalar import Expr, const
from ..schedule.in_place import Carried, carried, reads_first
from .elements import Elements, at, pick
from .extents import below, has_counts
from .lower import Lowering, memory_type
from .pointwise import IndexTuple, Pointwise, folded, index_value
from .reaches import Interval, both, known_test
from .searched import searched

SMALL = 64  # elements of a value that is taken apart
FEW = 8  # the same where the program computes which of them it wants
FAR = 1 << 40  # positions that are surely farther from overflow than divisions shift them
MOST_DEFERRED = 8  # operations of an element that is computed again wherever it is read
MOST_ELEMENTS = 256  # operands of a reduction or a product


class Unfit(Exception):
    """This loop cannot be scalar code, or should not be."""


@record
class Stored:
    """A value in memory: the part of an array at the positions in `prefix`, of which those that are
    None are the value's own axes, as those behind are. `owned`: may be overwritten when nobody reads it.

    Memory that is overwritten in place holds one version of its array after the other: this value is
    there as long as that is `version`. `origin` is the version that a part was taken of.
    """

    array: Array
    prefix: tuple[Index | None, ...] = ()
    owned: bool = False
    version: int = 0
    origin: int = -1

    def at(self, index: IndexTuple) -> IndexTuple:
        """Where in the array a position of the value is."""
        rest = iter(index)
        return (*(next(rest) if i is None else i for i in self.prefix), *rest)

    def pinned(self, axes: Sequence[int], index: IndexTuple) -> tuple[Index | None, ...]:
        """The prefix of the part that is at positions along some of the value's axes."""
        indices = [*self.prefix]
        free = [d for d, i in enumerate(indices) if i is None]
        indices += [None] * (max(axes, default=-1) + 1 - len(free))
        free = [d for d, i in enumerate(indices) if i is None]
        for axis, i in zip(axes, index, strict=True):
            indices[free[axis]] = i
        while indices and indices[-1] is None:
            indices.pop()
        return tuple(indices)


@record
class Deferred:
    """A value of a region around, computed where it is read: a cheap function of its position."""

    around: _Elements
    value: Value


class _Elements(Pointwise):
    """The values of one copy of a region, by element: taken apart (`known`), in memory (`views`), or
    computed when they are asked for (`deferred`).

    A region captures nothing, so that its values mean something only here. Graphs may share values, and
    one graph may be written several times: each time has an `_Elements` of its own.
    """

    def __init__(self, low: Lowering, versions: Mapping[Array, int]) -> None:
        super().__init__(low.arrays, low.context.site)
        self.versions = versions
        self.known: dict[Value, Elements] = {}
        self.reaches: dict[Value, Interval] = {}  # of parameters, and what was found out by them
        self.views: dict[Value, Stored] = {}
        self.deferred: dict[Value, Deferred] = {}
        self.live: dict[Var, frozenset[Value]] = {}  # counts that are above a loop's positions

    def within(self, low: Lowering) -> _Elements:
        """For a region: it knows none of our values, and reads the same memory."""
        inner = _Elements(low, self.versions)
        inner.arrays = {}
        inner.reads, inner.loads, inner.masks = self.reads, self.loads, self.masks
        return inner

    def anew(self) -> _Elements:
        """The same values, of which no element was computed yet: what was may have been overwritten."""
        again = copy(self)
        again.memo, again.loops = {}, {}
        return again

    def cheap_reads(self, value: Value) -> set[Array] | None:
        """The memory that elements of a value are computed from; None if that takes long, or checks
        something that has to be checked of all elements."""
        arrays: set[Array] = set()
        pending, work = [(self, value)], 0
        while pending:
            p, v = pending.pop()
            view, given = p.views.get(v), p.deferred.get(v)
            if view is not None:
                arrays.add(view.array)
            elif given is not None:
                pending.append((given.around, given.value))
            elif v not in p.known:
                if v.op is None or not _defers(v.op):
                    return None
                work += v.op.definition.cost.work
                pending += [(p, x) for x in v.op.operands]
            if work > MOST_DEFERRED:
                return None
        return arrays

    def _build(self, value: Value, index: IndexTuple, mask: Expr | None) -> Expr:
        elements = self.known.get(value)
        if elements is not None:
            # Of an array without elements one is named where no trip of a loop comes.
            return pick(elements, index) if elements.size else const(0, value.dtype)
        view = self.views.get(value)
        given = self.deferred.get(value) if view is None else None
        if given is not None:
            return given.around.anew().at(given.value, index, mask)
        if view is None:
            expr = self._position(value, index, mask)
            expr = self._there(value, index, mask) if expr is None else expr
            expr = known_test(self, value, index, mask) if expr is None else expr
            op = value.op
            if expr is None and op is not None and op.has_effect and value not in self.arrays:
                raise Unfit  # it is done in its order, not where it is asked for
            return folded(super()._build(value, index, mask)) if expr is None else expr
        self.check(view)
        return self.load(view.array, view.at(index), mask)

    def _there(self, value: Value, index: IndexTuple, mask: Expr | None) -> Expr | None:
        """What is known where a loop runs over the elements before a count alone."""
        op = value.op
        if op is None or value in self.arrays or not self.live:
            return None
        if op.name == "lt" and (bound := below(op)) is not None:
            return const(True, BOOL) if self.is_below(index[bound[0]], bound[1]) else None
        if op.name == "bitwise_and" and value.dtype == BOOL:
            a, b = (self.at(v, index, mask) for v in op.operands)
            return b if _holds(a) else a if _holds(b) else None
        if op.name == "select":
            test = self.at(op.operands[0], index, mask)
            return self.at(op.operands[1], index, mask) if _holds(test) else None
        return None

    def is_below(self, index: Index, count: Value) -> bool:
        """Whether a position is that of a loop that runs over the first `count` elements."""
        bound = self.live.get(lone_variable(index))  # type: ignore[arg-type]
        return bound is not None and count in bound

    def _position(self, value: Value, index: IndexTuple, mask: Expr | None) -> Expr | None:
        """A quotient or remainder of a position by a number is a position."""
        op = value.op
        if op is None or op.name not in ("floor_divide", "remainder") or value.dtype != I64:
            return None
        over, by = (self.at(v, index, mask) for v in op.operands)
        if over.op != "index" or by.op != "const" or by.attr <= 0:
            return None
        if max(map(abs, over.attr.range())) > FAR:
            return None
        return index_value(
            over.attr // by.attr if op.name == "floor_divide" else over.attr % by.attr
        )

    def interval(self, value: Value) -> tuple[int, int]:
        return remembered(value, self.reaches)

    def check(self, held: Stored) -> None:
        """Unfit if the memory of a value has been overwritten by now."""
        if self.versions.get(held.array, held.version) != held.version:
            raise Unfit

    def forget(self, array: Array) -> None:
        """`array` holds something else: what was loaded from it may be old."""
        for key in [k for k in self.loads if k[0] == id(array)]:
            del self.loads[key]


def _defers(op: Op) -> bool:
    """Whether elements of an op's result may be computed as often as they are read."""
    facts, checked = op.definition, op.attrs.get("mode") == "check"
    return facts.pointwise and facts.total and facts.cost <= Cost.DIVISION and not checked


def _holds(test: Expr) -> bool:
    return test.op == "const" and bool(test.attr)


def lone_variable(index: Index) -> Var | None:
    """The loop variable that an index is."""
    if index.const or len(index.terms) != 1:
        return None
    ((atom, factor),) = index.terms.items()
    return atom if factor == 1 and isinstance(atom, Var) else None


Held = Elements | Stored | None  # where a value is; None: an order token is nowhere
Given = Held | Deferred  # where a region finds an argument


class ScalarBuilder:
    """The scalar code of one loop op while it is built."""

    def __init__(self, low: Lowering, op: Op) -> None:
        self.low, self.op = low, op
        self.versions: dict[Array, int] = {}  # that arrays written in place hold
        self.p = self.outermost = _Elements(low, self.versions)
        self.block = Body()
        self.reads: dict[Array, None] = {}
        self.writes: dict[Array, None] = {}
        self.places: dict[Value, Stored] = {}  # where loops inside write what they stack
        self.placed: set[Value] = set()  # what has been written there
        self.homes: list[Carried] = []  # of the large carries of the outermost loop
        # The functions that we are in, by name, and where what is the same in all their calls is.
        self.routines: dict[str, tuple[Routine, list[Held]]] = {}
        self.routine: Routine | None = None  # the innermost of them
        self.locals: set[Array] = set()  # memory that each call of a function has for itself
        self.tape_list: Array | None = (
            None  # where the list of the call's tapes is, if it is asked for
        )
        self.taken: Expr | None = None  # where what is computed counts; None: always
        self.checks: dict[Op, Require] = {}  # what asserts have become
        self._numbers = count(1)
        self._searched = searched(op)
        self.counted = has_counts(op)  # values are then taken apart if they are small

    # Where values are.

    def bind(self, value: Value, held: Given) -> None:
        if isinstance(held, Stored):
            self.p.views[value] = held
        elif isinstance(held, Deferred):
            self.p.deferred[value] = held
        elif held is not None:
            self.p.known[value] = held

    def in_memory(self, value: Value) -> bool:
        """Whether a value is better not taken apart."""
        most = FEW if self.counted or value in self._searched else SMALL
        return isinstance(value.type, TensorType) and value.tensor.size > most

    def get(self, value: Value, searched: bool = False) -> Held:
        """Where a value is: taken apart if it is small, else it must be in memory. `searched`: it is
        there if it is more than a few elements, as code that is met later may look for one of them."""
        if memory_type(value) is None:
            return None
        if not isinstance(value.type, TensorType):
            return self.handle(value)
        view = self.p.views.get(value)
        if view is not None and (self.in_memory(value) or view.owned or value in self.placed):
            self.p.check(view)
            return view
        searched = searched and value.tensor.size > FEW and self.p is self.outermost
        if not self.in_memory(value) and not searched:
            return self.elements(value)
        if self.p is self.outermost and (
            value.op is None or value in self.low.arrays or value in self.low.inlined
        ):
            return Stored(self.low.materialise(value))
        if self.counted or self.routine is not None:
            return self.spill(value)
        raise Unfit

    def home(self, op: Op, value: Value, result: Value, others: Sequence[Value]) -> Stored:
        """Memory in which the step of `op` changes an array in place, until it is `result`; `others` are
        operands that are read meanwhile."""
        home = carried(self.low, op, value, result, others, strided=True)
        self.homes.append(home)
        return self.renew(Stored(home.array, owned=True))

    def taken_apart(self, value: Value, held: Held) -> Held:
        """A small value as its elements, wherever it is."""
        if not isinstance(held, Stored) or self.in_memory(value):
            return held
        elements: Elements = np.empty(value.shape, object)
        for index in np.ndindex(*value.shape):
            elements[index] = self.p.load(held.array, held.at(at(index)), None)
        self.let(elements)
        return elements

    def handle(self, tape: Value) -> Elements:
        """The number that stands for a tape."""
        if tape not in self.p.known:
            if tape not in self.p.arrays or not self.low.context.tapes_in_code:
                raise Unfit
            held = np.empty((), object)
            held[()] = self.p.load(self.p.arrays[tape], (), None)
            self.let(held)
            self.p.known[tape] = held
        return self.p.known[tape]

    def tapes(self) -> Expr:
        """Where the call's list of tapes is."""
        if not self.low.context.tapes_in_code:
            raise Unfit
        if self.tape_list is None:
            self.tape_list = Array((), I64, name="tapes")
        return self.outermost.load(self.tape_list, (), None)

    def given(self, values: Sequence[Value], written: Sequence[Held] | None = None) -> list[Given]:
        """Where values are that a region is given, which may write to the memory of `written`; None: to
        that of all the values.

        Cheap functions of the position are computed in the region, as far as it asks for them. Of a
        window that bounds a loop these are a few elements; in memory it would be as long as its axis.
        """
        reads = {v: self.p.cheap_reads(v) for v in values if self._is_function(v)}
        held: dict[Value, Given] = {v: self.get(v) for v in values if reads.get(v) is None}
        homes = [*held.values()] if written is None else written
        taken = {h.array for h in homes if isinstance(h, Stored) and h.owned}
        for v, arrays in reads.items():
            if arrays is not None:
                held[v] = self.get(v) if arrays & taken else Deferred(self.p, v)
        return [held[v] for v in values]

    def _is_function(self, value: Value) -> bool:
        """Whether a large value is nowhere yet, but a function of its position."""
        known = value in self.p.views or value in self.p.known or value in self.p.arrays
        large = isinstance(value.type, TensorType) and self.in_memory(value)
        return self.counted and large and not known and self.p is not self.outermost

    def spill(self, value: Value) -> Stored:
        """A value that is a function of its position, written to memory."""
        if memory_type(value) is None or not isinstance(value.type, TensorType):
            raise Unfit
        return SPILL[0](self, value)

    def elements(self, value: Value) -> Elements:
        """The elements of a value, computed where we stand."""
        if not isinstance(value.type, TensorType):
            return self.handle(value)
        elements = self.p.known.get(value)
        if elements is None:
            if value.tensor.size > MOST_ELEMENTS:
                raise Unfit
            elements = np.empty(value.shape, object)
            for index in np.ndindex(*value.shape):
                elements[index] = self.p.at(value, at(index))
            self.let(elements)
            self.p.known[value] = elements
        return elements

    def scalar(self, value: Value) -> Expr:
        return pick(self.elements(value), ())

    def let(self, elements: Elements) -> None:
        values = [e for e in elements.flat if e.op not in ("const", "var", "index")]
        if values:
            self.block.statements.append(Let(values))

    def write(self, array: Array, prefix: IndexTuple, values: Elements) -> None:
        for index in np.ndindex(*values.shape):
            self.put(array, (*prefix, *at(index)), values.item(index))

    def put(self, array: Array, index: IndexTuple, value: Expr) -> None:
        self.block.statements.append(Write(array, index, value))
        self.writes[array] = None

    def result(self, op: Op, elements: Elements) -> None:
        self.let(elements)
        self.bind(op.result, elements)

    # Regions.

    def region(
        self,
        graph: Graph,
        arguments: Sequence[Given],
        known: Mapping[Value, Interval] | None = None,
    ) -> list[Held]:
        """Write what a region computes; gives where its outputs are. `known` is of its parameters."""
        outer, self.p = self.p, self.p.within(self.low)
        self.p.reaches.update(known or {})
        for param, held in zip(graph.params, arguments, strict=True):
            self.bind(param, held)
            position = held.item() if isinstance(held, np.ndarray) and held.size == 1 else None
            if position is not None and position.op == "index":
                self.p.reaches[param] = both(position.attr.reach(), self.p.reaches.get(param))
            elif position is not None and position.op == "const" and position.dtype.kind == "i":
                self.p.reaches[param] = position.attr, position.attr
        for op in reads_first(graph, graph.users()):
            self._op(op)
        outputs = [self.get(v) for v in graph.outputs]
        self.p = outer
        return outputs

    @contextmanager
    def inside(self) -> Iterator[Body]:
        """An inner block, which the statements made meanwhile go to."""
        outer, self.block = self.block, Body()
        yield self.block
        self.block = outer

    @contextmanager
    def only_if(self, taken: Expr) -> Iterator[None]:
        """What is checked meanwhile is of a branch that is computed, taken or not."""
        outer = self.taken
        self.taken = taken if outer is None else outer & taken
        yield
        self.taken = outer

    # Versions.

    def renew(self, held: Stored) -> Stored:
        """The memory of `held` holds a new version from here on: the value that is there now."""
        self._hold(held.array, next(self._numbers))
        return self.newest(held)

    def newest(self, held: Stored) -> Stored:
        return replace(held, version=self.versions[held.array])

    def rewind(self, versions: Mapping[Array, int]) -> None:
        """Go back to where arrays held these versions, to write another branch."""
        for array, version in versions.items():
            if self.versions[array] != version:
                self._hold(array, version)

    def _hold(self, array: Array, version: int) -> None:
        self.versions[array] = version
        self.p.forget(array)

    def _op(self, op: Op) -> None:
        rule = RULES.get(op.name)
        if rule is not None:
            rule(self, op)
        elif op.name == "optimization_barrier":
            for result, operand in zip(op.results, op.operands, strict=True):
                self.bind(result, self.get(operand))
        else:
            for v in op.results:
                if v.tensor.size <= (FEW if self.counted else SMALL):
                    self.elements(v)


SPILL: list[Callable[[ScalarBuilder, Value], Stored]] = []  # by loops, which are built above
Rule = Callable[[ScalarBuilder, Op], None]
RULES: dict[str, Rule] = {}  # ops that are not pointwise; see `scalar_rules` and `lower_scalars`


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Make the decorated function what builds the ops called `names`."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register
