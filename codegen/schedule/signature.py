"""Which kernels are the same code: equal but for the memory that they work on.

    s = signature(kernel)
    s.key        # equal keys: scheduled and emitted alike
    s.arrays     # what such code takes a pointer to, in order
    s.origins    # element that the pointer to an array points at

The twelve layers of a network, and the hundred steps of an unrolled loop, are one kernel each, called
with other pointers. An origin is the least constant offset among the accesses to an array, so that
`y[3] = x[3] * 2` and `y[7] = x[7] * 2` are the same code, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from ...ir.record import fields
from ..loop_ir.index import Div, Index, Mod, Var, data_of
from ..loop_ir.kernel import Access, Array, Bound, Demand, Kernel, Stage
from ..scalar import Expr, LoopBody, Unique
from ..sizes import Size, size_of, sizes

# All other fields of a stage are part of its key as they are.
_SPECIAL = frozenset(
    ("array", "dims", "value", "index", "reads", "ops", "sources", "loc", "cost", "where")
)
_PLAIN = attrgetter(*[name for name in fields(Stage) if name not in _SPECIAL])


class Signature(NamedTuple):
    """Kernels with equal keys are the same code; what differs is the memory, `arrays` in one order.

    `origins` are the elements that the pointers to arrays point at.
    """

    key: Hashable
    arrays: list[Array]
    origins: dict[Array, int]


def signature(kernel: Kernel) -> Signature:
    """The kernel's text but for the memory that it works on: equal kernels share code."""
    walk = _Walk(kernel)
    key = walk.kernel()
    arrays = [a for a in walk.numbers if a not in kernel.local]
    for size in sizes_of(kernel):  # the code reads how far its loops run
        assert size.array is not None
        if size.array not in walk.origins:
            arrays.append(size.array)
            walk.origins[size.array] = 0
    return Signature(key, arrays, walk.origins)


def sizes_of(kernel: Kernel) -> list[Size]:
    """The sizes that loops of a kernel go by."""
    if not sizes():
        return []
    extents = [*kernel.extents, *(n for nest in kernel.nests for n in nest.extents)]
    found = [s for n in extents if (s := size_of(n)) is not None]
    return list(dict.fromkeys(found))


def _accesses(stage: Stage) -> Iterator[tuple[Array, tuple[Index, ...]]]:
    for access in stage.reads:
        yield access.array, access.index
    yield stage.array, stage.index


def _offset(array: Array, index: tuple[Index, ...]) -> int:
    return sum([i.const * s for i, s in zip(index, array.strides, strict=True) if i.const])


def _origin(array: Array, index: tuple[Index, ...]) -> int:
    """As `_offset`; the nearest element, if it is outside: a load that its guard forbids reads there."""
    dims = zip(index, array.shape, array.strides, strict=True)
    return sum([min(max(i.const, 0), max(n - 1, 0)) * s for i, n, s in dims if i.const])


class _Walk:
    """Numbers arrays, loop variables and expressions in the order of their appearance."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.numbers: dict[Array, int] = {}
        self.origins: dict[Array, int] = {}
        self._vars: dict[Var, int] = {}
        self._unique: dict[Unique, int] = {}
        self._exprs: dict[Expr, int] = {}
        self._nodes: list[Hashable] = []
        self._accesses: dict[int, Hashable] = {}  # by identity of the index
        for stage in kernel.stages:
            for array, index in _accesses(stage):
                offset = _origin(array, index) if index else 0
                if array in self.numbers:
                    self.origins[array] = min(self.origins[array], offset)
                else:
                    self.numbers[array] = len(self.numbers)
                    self.origins[array] = offset
        for array in kernel.local:
            self.origins[array] = 0

    def kernel(self) -> Hashable:
        kernel = self._kernel
        arrays = tuple(
            [(a.dtype, a.strides, a.shape if a in kernel.local else None) for a in self.numbers]
        )
        nests = tuple(
            [(nest.outer, tuple([self._stage(s) for s in nest.stages])) for nest in kernel.nests]
        )
        return kernel.extents, kernel.ordered, arrays, nests, tuple(self._nodes)

    def _stage(self, stage: Stage) -> Hashable:
        for var in stage.dims:
            self._vars.setdefault(var, len(self._vars))
        value = self._expr(stage.value)
        where = None if stage.where is None else self._expr(stage.where)
        return (
            _PLAIN(stage),
            tuple([(self._vars[v], v.extent) for v in stage.dims]),
            value,
            where,
            self._access(stage.array, stage.index),
            tuple([self._access(a.array, a.index) for a in stage.reads]),
            tuple(stage.ops),
        )

    # Expressions: each one is a number, and a tuple of what it is and of the numbers it is made from.

    def _expr(self, root: Expr) -> int:
        numbers = self._exprs
        stack = [root]
        while stack:
            node = stack[-1]
            if node in numbers:
                stack.pop()
                continue
            missing = [a for a in _operands(node) if a not in numbers]
            if missing:
                stack += missing
                continue
            stack.pop()
            self._nodes.append(
                (node.op, node.dtype, self._attribute(node), *[numbers[a] for a in node.args])
            )
            numbers[node] = len(numbers)
        return numbers[root]

    def _attribute(self, node: Expr) -> Hashable:
        attr: Any = node.attr
        if attr is None or attr is True:
            return attr
        match attr:
            case float():
                return attr.hex()  # tells -0.0 from 0.0
            case Access():
                return self._access(attr.array, attr.index)
            case Index():
                return self._index(attr)
            case Bound():
                return attr.size, attr.site, attr.clip
            case Demand():
                return attr.site
            case LoopBody():
                numbers = self._exprs
                new = tuple([numbers[e] for e in attr.new])
                return tuple([numbers[p] for p in attr.params]), numbers[attr.test], new, attr.rare
            case Unique():
                return self._unique.setdefault(attr, len(self._unique))
            case tuple():
                return repr(attr)
        return type(attr), attr  # True is not 1

    # Indices.

    def _access(self, array: Array, index: tuple[Index, ...]) -> Hashable:
        offset = _offset(array, index) - self.origins[array] if index else 0
        terms = self._accesses.get(id(index))
        if terms is None:
            terms = self._accesses[id(index)] = tuple([self._terms(i) for i in index])
        return self.numbers[array], offset, terms

    def _index(self, index: Index) -> Hashable:
        return index.const, self._terms(index)

    def _terms(self, index: Index) -> Hashable:
        return tuple([(self._atom(atom), coeff) for atom, coeff in index.terms.items()])

    def _atom(self, atom: Any) -> Hashable:
        if isinstance(atom, Var):
            return self._vars.setdefault(atom, len(self._vars))
        if isinstance(atom, Div):
            return type(atom) is Mod, atom.n, self._index(atom.index)
        return self._expr(atom.expr), atom.lo, atom.hi


def _operands(node: Expr) -> list[Expr]:
    """What must have a number before the node: operands, a loop's body, what computes indices."""
    nodes = list(node.args)
    if node.op == "loop":
        body: LoopBody = node.attr
        nodes += (*body.params, body.test, *body.new)
    elif node.op == "load":
        for index in node.attr.index:
            nodes += (data.expr for data in data_of(index))
    elif node.op == "index":
        nodes += (data.expr for data in data_of(node.attr))
    return nodes
