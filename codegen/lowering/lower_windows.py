"""Lowering of window reductions: what a window covers, as expressions of the position that it is put to.

A small window becomes one expression over all of its elements, which is vectorised over neighbouring
positions; a large one a reduction over loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from ...ir.graph import Op, Value
from ...ir.ops.folds.reductions import identity
from ...ir.types import I64
from ..loop_ir.index import Index, Var, of_var
from ..loop_ir.kernel import Array, Stage
from ..math import EXPANSIONS
from ..scalar import Expr, binary, compare, const, eq, select
from .lower import Lowering, indices, lowering, variables
from .pointwise import Pointwise, as_index, index_value

UNROLLED = 32  # elements of a window up to which they all stand in one expression
REPEATED = 24  # cost of recomputing an operand for each element, up to which it is not stored first


class WindowElement:
    """An element of an array that a window reaches: where it is, and whether it exists."""

    def __init__(self) -> None:
        self.index: list[Index] = []
        self.inside: Expr | None = None  # None: always
        self.between: Expr | None = None  # not between two elements of a dilated array

    def add(self, at: Index, size: int, dilation: int = 1) -> None:
        """One dim: position `at` of `size` elements that stand `dilation` apart."""
        low, high = at.range()
        last = (size - 1) * dilation
        if low < 0:
            self.inside = both(self.inside, compare("ge", index_value(at), 0))
        if high > last:
            self.inside = both(self.inside, compare("le", index_value(at), last))
        if dilation > 1:
            rest = at % dilation
            if rest.terms or rest.const:
                self.between = both(self.between, eq(index_value(rest), 0))
            at = at // dilation
        self.index.append(at)

    @property
    def exists(self) -> Expr | None:
        return both(self.inside, self.between)


def both(a: Expr | None, b: Expr | None) -> Expr | None:
    """The conjunction of two masks, of which None holds everywhere."""
    if a is None or b is None:
        return a if b is None else b
    return a & b


def read(p: Pointwise, value: Value, element: WindowElement, fill: object) -> Expr:
    """The value of an element of `value`, or `fill` where it does not exist."""
    exists = element.exists
    if exists is None:
        return p.at(value, tuple(element.index), None)
    p.masks.append(exists)
    return select(exists, p.at(value, tuple(element.index), exists), const(fill, value.dtype))


def prepare(low: Lowering, value: Value, times: int) -> None:
    """Store an operand that would cost too much to compute `times` times."""
    if value not in low.arrays and low.cost.get(value, 0) * times > REPEATED:
        low.materialise(value)


Elements = list[tuple[int, tuple[Index, ...]]]


class _Windows:
    """The windows of one op: result dims, and the elements of a window or loops over them."""

    def __init__(self, low: Lowering, op: Op, dims: Sequence[Var]) -> None:
        attrs = op.attrs
        self.low, self.op, self.dims = low, op, tuple(dims)
        self.window: tuple[int, ...] = attrs["window"]
        self.per_dim = tuple(zip(attrs["strides"], attrs["low"], attrs["dilation"], strict=True))
        self.count = math.prod(self.window)
        self.unrolled = self.count <= UNROLLED

    def elements(self) -> Elements:
        """Number in the window and position along each dim, of every element."""
        ranges = product(*(range(n) for n in self.window))
        return [(k, tuple(map(Index, at))) for k, at in enumerate(ranges)]

    def loops(self) -> tuple[tuple[Var, ...], tuple[Index, ...]]:
        """Loops over the dims in which a window has more than one element; the position there."""
        loops = tuple(Var(f"w{d}", n) for d, n in enumerate(self.window))
        return tuple(v for v in loops if v.extent > 1), indices(loops)

    def number(self, at: Sequence[Index]) -> Index:
        """The number in the window of the element at a position."""
        total = Index()
        for i, n in zip(at, self.window, strict=True):
            total = total * n + i
        return total

    def covered(self, at: Sequence[Index], shape: Sequence[int]) -> WindowElement:
        """The element of the operand that the window covers with its element `at`."""
        element = WindowElement()
        for v, k, n, (stride, before, gap) in zip(self.dims, at, shape, self.per_dim, strict=True):
            element.add(of_var(v) * stride + k * gap - before, n)
        return element

    def covering(self, at: Sequence[Index], positions: Sequence[int]) -> WindowElement:
        """The position at which the window covers an element of the operand with its element `at`."""
        element = WindowElement()
        for v, k, n, (stride, before, gap) in zip(
            self.dims, at, positions, self.per_dim, strict=True
        ):
            element.add(of_var(v) + before - k * gap, n, stride)
        return element

    @property
    def apart(self) -> bool:
        """Whether no two windows cover the same element."""
        pairs = zip(self.window, self.per_dim, strict=True)
        return all((k - 1) * gap < stride and 1 in (k, gap) for k, (stride, _, gap) in pairs)

    def only(self, positions: Sequence[int]) -> tuple[Index, WindowElement]:
        """Of windows that are apart: the number in its window of an element of the operand, and the
        position at which one covers it."""
        number, element = Index(), WindowElement()
        for v, k, n, (stride, before, _) in zip(
            self.dims, self.window, positions, self.per_dim, strict=True
        ):
            at = of_var(v) + before
            rest = at % stride
            if rest.range()[1] >= k:
                element.inside = both(element.inside, compare("lt", index_value(rest), k))
            element.add(at // stride, n)
            number = number * k + rest
        return number, element

    def store(self, p: Pointwise, array: Array, value: Expr) -> None:
        stage = Stage(array, self.dims, value, ops=[self.op.name], loc=self.op.loc)
        stage.cost += self.count
        self.low.emit(p, stage)

    def reduce(
        self, p: Pointwise, array: Array, loops: tuple[Var, ...], value: Expr, how: str
    ) -> None:
        dims = (*self.dims, *loops)
        stage = Stage(
            array, dims, value, "reduce", how, len(self.dims), ops=[self.op.name], loc=self.op.loc
        )
        self.low.emit(p, stage)


_COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


@lowering("window_sum", "window_prod", "window_max", "window_min")
def _window_reduction(low: Lowering, op: Op) -> None:
    (source,) = op.operands
    array = low.array_for(op.result)
    _reduced(low, op, source, array, op.name.removeprefix("window_"))
    low.arrays[op.result] = array


def _reduced(low: Lowering, op: Op, source: Value, array: Array, how: str) -> None:
    """Fill `array` with each window's elements of `source`, reduced."""
    w = _Windows(low, op, variables(array.shape))
    prepare(low, source, w.count)
    fill = identity(how, source.dtype)
    p = low.point()
    if not w.unrolled:
        loops, at = w.loops()
        w.reduce(p, array, loops, read(p, source, w.covered(at, source.shape), fill), how)
        return
    total: Expr | None = None
    for _, at in w.elements():
        value = read(p, source, w.covered(at, source.shape), fill)
        total = value if total is None else EXPANSIONS[_COMBINE[how]](total, value)
    assert total is not None
    w.store(p, array, total)


@lowering("window_argmax", "window_argmin")
def _window_argument(low: Lowering, op: Op) -> None:
    """The first element that equals the extreme, NaN equal to NaN; -1 if there is none."""
    (source,) = op.operands
    array = low.array_for(op.result)
    w = _Windows(low, op, variables(array.shape))
    prepare(low, source, w.count)
    how = op.name.removeprefix("window_arg")
    if w.unrolled:
        _unrolled_argument(w, source, array, how)
    else:
        extreme = Array(array.shape, source.dtype, name="extreme")
        _reduced(low, op, source, extreme, how)
        p = low.point()
        loops, at = w.loops()
        element = w.covered(at, source.shape)
        value = read(p, source, element, 0)
        best = p.load(extreme, indices(w.dims), None)
        hit = both(element.inside, compare("eq", value, best) | _is_nan(value))
        assert hit is not None
        number = select(hit, index_value(w.number(at)), const(w.count, I64))
        first = Array(array.shape, I64, name="first")
        w.reduce(p, first, loops, number, "min")
        p = low.point()
        number = p.load(first, indices(w.dims), None)
        w.store(p, array, select(number < w.count, number, -1))
    low.arrays[op.result] = array


def _unrolled_argument(w: _Windows, source: Value, array: Array, how: str) -> None:
    p = w.low.point()
    number, best = const(-1, I64), const(0, source.dtype)
    for k, at in w.elements():
        element = w.covered(at, source.shape)
        value = read(p, source, element, 0)
        wins = compare("gt" if how == "max" else "lt", value, best) | (number < 0)
        if source.dtype.kind == "f":
            wins = wins | (_is_nan(value) & compare("eq", best, best))
        wins = wins if element.inside is None else wins & element.inside
        number, best = select(wins, const(k, I64), number), select(wins, value, best)
    w.store(p, array, number)


def _is_nan(x: Expr) -> Expr:
    return compare("ne", x, x)


@lowering("window_pick")
def _window_pick(low: Lowering, op: Op) -> None:
    source, which = op.operands
    array = low.array_for(op.result)
    w = _Windows(low, op, variables(array.shape))
    p = low.point()
    if w.unrolled:
        prepare(low, source, w.count)
        number = p.at(which, indices(w.dims))
        out = const(0, source.dtype)
        for k, at in w.elements():
            value = read(p, source, w.covered(at, source.shape), 0)
            out = select(eq(number, k), value, out)
    else:
        out = _picked(p, w, source, p.at(which, indices(w.dims)))
    w.store(p, array, out)
    low.arrays[op.result] = array


def _picked(p: Pointwise, w: _Windows, source: Value, number: Expr) -> Expr:
    """The element of that number, read where it is; zero if there is none."""
    exists = (number >= 0) & (number < w.count)
    rest = binary("min", binary("max", number, 0), w.count - 1)
    at: list[Index] = []
    for v, k, n, (stride, before, gap) in reversed(
        list(zip(w.dims, w.window, source.shape, w.per_dim, strict=True))
    ):
        here = index_value(of_var(v) * stride - before) + binary("rem", rest, k) * gap
        rest = binary("div", rest, k)
        exists = exists & (here >= 0) & (here < n)
        inside = binary("min", binary("max", here, 0), max(n - 1, 0))
        at.append(as_index(inside, 0, max(n - 1, 0)))
    p.masks.append(exists)
    value = p.at(source, tuple(reversed(at)), exists)
    return select(exists, value, const(0, source.dtype))


@lowering("window_put")
def _window_put(low: Lowering, op: Op) -> None:
    source, which = op.operands
    array = low.array_for(op.result)
    w = _Windows(low, op, variables(array.shape))
    for operand in op.operands:
        prepare(low, operand, w.count)
    p = low.point()

    def put(number: Index, element: WindowElement) -> Expr:
        chosen = eq(read(p, which, element, -1), index_value(number))
        return select(chosen, read(p, source, element, 0), const(0, source.dtype))

    if w.apart:
        w.store(p, array, put(*w.only(source.shape)))
    elif w.unrolled:
        parts = [put(Index(k), w.covering(at, source.shape)) for k, at in w.elements()]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        w.store(p, array, total)
    else:
        loops, at = w.loops()
        w.reduce(p, array, loops, put(w.number(at), w.covering(at, source.shape)), "sum")
    low.arrays[op.result] = array
