"""Lowering of convolutions for a GPU: products whose left operand is the pixels under the kernel.

    y[g, (n, *p), o] = sum over q = (*taps, c) of pixels[g, (n, *p), q] * w[g, q, o]

    pixels[g, (n, *p), (*t, c)] = x[g, n, *(p * stride + t * dilation - low), c], zero beyond the edges

The matrix of pixels is in no memory: its elements are addresses in x, found on the way to shared memory
(`matmul.cuda_sources`). The same holds for both gradients, which are convolutions as well: of a kernel,
sums are long and results few, so sums are cut into parts. A dilated x is met by some taps at some
positions only: each such *phase* (`conv_plan`) is a product of its own. Rows, and positions of the sum,
are in the order in which elements lie in memory.

Few features with few taps, as of depthwise convolutions, are no product: the sum is written out. Nor
are few features and positions with many taps, as of the gradient of a depthwise kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from ....ir.graph import Op, Value
from ....ir.ops.products.convolution import Window, windows
from ...limits import limits
from ...loop_ir.index import Index, Var, contiguous_strides, delinearise, linear, of_var
from ...loop_ir.kernel import Array, Kernel, Nest, Stage
from ...loop_ir.steps import Matmul
from ...lowering.lower import Lowering, indices, variables
from ...lowering.lower_chunks import sum_partials
from ...lowering.lower_windows import WindowElement
from ...lowering.pointwise import FEW, IndexTuple, Pointwise
from ...scalar import Expr, const, fma, select
from ...schedule.conv_plan import Phase, axis, meets
from ..matmul.cuda_lowering import is_cheap, small_floats
from ..matmul.cuda_products import Product
from ..matmul.cuda_tiles import CHUNK, atom_for, parts_of
from .lower_convolution import conv_as_reduction

WRITTEN_OUT = 64  # taps times channels of a sum that is one expression
FEW_FEATURES = 8  # for which tiles of a product would stay mostly empty


def convolution(low: Lowering, op: Op) -> None:
    """y[g, n, *p, o] of x[g, n, *s, c] and w[g, *t, c, o]: written out, as a reduction, or as products.

    Which of them is decided by the shapes alone (see the module).
    """
    x, w = op.operands
    dims = windows(x.shape, w.shape, op.attrs)
    sizes = (x.tensor.size, w.tensor.size, op.result.tensor.size)
    if 0 in sizes or not all(map(meets, dims)):
        conv_as_reduction(low, op)
        return
    taps, channels, features = math.prod(w.shape[1:-2]), *w.shape[-2:]
    work = op.result.tensor.size * channels * taps
    positions = math.prod(d.positions for d in dims)
    if taps * channels <= WRITTEN_OUT and (
        features < FEW_FEATURES or work <= limits().small_convolution
    ):
        _written_out(low, op, dims)
    elif work <= limits().small_convolution:
        conv_as_reduction(low, op)
    elif features < FEW_FEATURES and taps * channels > x.shape[1] * positions:
        _by_parts(low, op, dims)
    else:
        _as_products(low, op, dims)


def root(value: Value) -> Value:
    """What a value is but for movements of its elements."""
    while value.op is not None and value.op.name in ("transpose", "reshape", "flip"):
        (value,) = value.op.operands
    return value


def stored_if_dear(low: Lowering, value: Value, times: float) -> None:
    """Give memory to what would cost too much to compute so many times for each element."""
    if value not in low.arrays and not is_cheap(low, value, times):
        low.materialise(root(value))


class _Order(NamedTuple):
    """Dims in an order, and those that are walked backwards; `shape` in that order."""

    dims: tuple[int, ...]
    shape: tuple[int, ...]

    def position(self, flat: Index) -> dict[int, Index]:
        """Each dim's position at a position in all of them."""
        return dict(zip(self.dims, delinearise(flat, self.shape), strict=True))


def _by_strides(shape: Sequence[int], strides: Sequence[int]) -> _Order:
    """The order in which dims lie in memory, the fastest one last."""
    dims = sorted(range(len(shape)), key=lambda d: (-abs(strides[d]), d))
    return _Order(tuple(dims), tuple(shape[d] for d in dims))


def _as_products(low: Lowering, op: Op, dims: list[Window]) -> None:
    x, w, element = small_floats(low, op)
    reuse = math.prod(d.taps / (d.stride * d.rhs_dilation) for d in dims)
    stored_if_dear(low, x, max(reuse, 1.0) * -(-w.shape[-1] // 64))
    stored_if_dear(low, w, x.shape[1] * math.prod(d.positions for d in dims) / 64)
    products = _Products(low, op, x, w, element, dims)
    for phases in product(*(a.phases for a in products.axes)):
        products.phase(phases)


def _lie(low: Lowering, value: Value) -> tuple[int, ...]:
    """How the elements lie in memory of which a value is made, or most of them: strides."""
    dims = variables(value.shape)
    p = low.point()
    p.at(value, indices(dims))
    largest = max(p.reads, key=lambda a: a.array.size, default=None)
    flat = linear(largest.index, largest.array.strides) if largest else Index()
    if largest is None or not flat.affine:
        return contiguous_strides(value.shape)
    return tuple(flat.coeff(v) for v in dims)


def _seen(low: Lowering, x: Value, dims: list[Window], tensor_cores: bool) -> tuple[int, ...]:
    """Strides of x in memory, which is turned over if channels should lie side by side.

    Neighbours along a dim that the kernel moves over are rarely aligned, so they are copied one by one:
    on tensor cores, for which operands hardly come fast enough, that takes too long.
    """
    strides = _lie(low, x)
    moved = any(
        s == 1 and n > 1 and (d.taps > 1 or d.stride > 1 or d.low > 0)
        for s, n, d in zip(strides[2:-1], x.shape[2:-1], dims, strict=True)
    )
    chunks = x.shape[-1] * x.dtype.itemsize % CHUNK == 0
    if moved and chunks and tensor_cores and x not in low.arrays:
        low.materialise(x)
        return contiguous_strides(x.shape)
    return strides


class _Products:
    """The products of one convolution."""

    def __init__(
        self, low: Lowering, op: Op, x: Value, w: Value, element: str, dims: list[Window]
    ) -> None:
        self.low, self.op, self.x, self.w, self.element = low, op, x, w, element
        self.groups, self.images, *_, self.channels = x.shape
        self.features = w.shape[-1]
        tensor_cores = bool(element) or atom_for(x.dtype, low.context.target) is not None
        self.seen = _seen(low, x, dims, tensor_cores)
        phased = [axis(d) for d in dims]
        self.axes = [a for a, _ in phased]
        self.target, self.y_dims, self.y_index = low.destination(op.result, adjacent=True)
        if any(gaps for _, gaps in phased):
            loops = variables(self.target.shape)
            zero = const(0, self.target.dtype)
            low.emit(low.point(), Stage(self.target, loops, zero, ops=["conv"], loc=op.loc))

    def phase(self, phases: tuple[Phase, ...]) -> None:
        """One product, and what brings its result to where it belongs."""
        groups, op = self.groups, self.op
        rows, taps = self._rows(phases), self._taps(phases)
        m, k = math.prod(rows.shape), math.prod(taps.shape)
        parts, length = parts_of(64 * groups * -(-m // 64), self.features, k)
        b, q = Var("b", parts * groups), Var("q", length)
        whole = of_var(q) + (of_var(b) // groups) * length if parts > 1 else of_var(q)
        group, at_tap = of_var(b) % groups, taps.position(whole)
        left = self._pixels(b, Var("r", m), q, group, rows, at_tap, phases)
        right = self._kernel(b, Var("o", self.features), q, group, at_tap, phases)
        results, index = self._results(rows, phases)
        shape = tuple(v.extent for v in results)
        c = Array((parts, *shape) if parts > 1 else shape, op.result.dtype, name="positions")
        in_place = parts == 1 and self._contiguous(results, index)
        step = Matmul(
            left.array,
            right.array,
            self.target if in_place else c,
            parts * groups,
            m,
            self.features,
            length,
            (0, 0, 0),
            (0, 0, 0),
            loc=op.loc,
            element=self.element,
        )
        computed = {s.array: s for s in (left, right)}
        done = Product(step, kind="conv", computed=computed, loc=op.loc)
        self.low.items.append(done)
        if parts > 1:
            done.total = k
            self._sum_parts(c, results, index)
        elif not in_place:
            done.epilogue, done.stored = self._moved(c, results, index), False

    def _rows(self, phases: tuple[Phase, ...]) -> _Order:
        """Images and positions, as they lie in the result."""
        flat = linear(self.y_index, self.target.strides)
        sizes = (self.images, *(p.positions for p in phases))
        return _by_strides(sizes, [flat.coeff(v) for v in self.y_dims[1:-1]])

    def _taps(self, phases: tuple[Phase, ...]) -> _Order:
        """Taps and channels, as they lie in x."""
        spatial = zip(self.axes, self.seen[2:-1], strict=True)
        steps = [a.source_tap * s for a, s in spatial]
        return _by_strides((*(p.taps for p in phases), self.channels), [*steps, self.seen[-1]])

    def _pixels(
        self,
        b: Var,
        r: Var,
        q: Var,
        group: Index,
        rows: _Order,
        at_tap: dict[int, Index],
        phases: tuple[Phase, ...],
    ) -> Stage:
        """The left operand: what a tap of the kernel meets at a position."""
        x, at_row = self.x, rows.position(of_var(r))
        element = WindowElement()
        for i, (a, phase) in enumerate(zip(self.axes, phases, strict=True)):
            at = at_row[i + 1] * a.source_step + at_tap[i] * a.source_tap + phase.source
            element.add(at, a.size)
        p = self.low.point()
        exists = element.exists
        if exists is not None:
            p.masks.append(exists)
        value = p.at(x, (group, at_row[0], *element.index, at_tap[len(phases)]), exists)
        if exists is not None:
            value = select(exists, value, const(0, x.dtype))
        return self._operand("pixels", (b, r, q), value, p)

    def _kernel(
        self,
        b: Var,
        o: Var,
        q: Var,
        group: Index,
        at_tap: dict[int, Index],
        phases: tuple[Phase, ...],
    ) -> Stage:
        """The right operand: the taps of a phase."""
        pairs = enumerate(zip(self.axes, phases, strict=True))
        taps = [at_tap[i] * a.tap_step + phase.tap for i, (a, phase) in pairs]
        p = self.low.point()
        return self._operand(
            "taps", (b, o, q), p.at(self.w, (group, *taps, at_tap[len(taps)], of_var(o))), p
        )

    def _operand(self, name: str, dims: tuple[Var, ...], value: Expr, p: Pointwise) -> Stage:
        array = Array(tuple(v.extent for v in dims), value.dtype, name=name)
        ops = [op.name for op in p.ops]
        return Stage(array, dims, value, reads=p.reads, ops=ops, loc=self.op.loc, cost=p.cost)

    # The result.

    def _results(
        self, rows: _Order, phases: tuple[Phase, ...]
    ) -> tuple[tuple[Var, ...], IndexTuple]:
        """Loops over groups, rows and features of a phase, and where their elements go."""
        loops = [Var(f"r{d}", n) for d, n in zip(rows.dims, rows.shape, strict=True)]
        at = dict(zip(rows.dims, indices(loops), strict=True))
        y = self.y_dims
        moved = {
            v: at[i + 1] * a.step + phase.first
            for i, (v, a, phase) in enumerate(zip(y[2:-1], self.axes, phases, strict=True))
        }
        moved[y[1]] = at[0]
        loops = [y[0], *loops, y[-1]]
        return tuple(loops), tuple(i.substitute(moved) for i in self.y_index)

    def _contiguous(self, results: tuple[Var, ...], index: IndexTuple) -> bool:
        """Whether the elements of a phase lie as they are counted, and are all that there are."""
        shape = tuple(v.extent for v in results)
        flat = linear(indices(results), contiguous_strides(shape))
        whole = math.prod(shape) == self.target.size and self.target.contiguous
        return whole and linear(index, self.target.strides) == flat

    def _moved(self, c: Array, results: tuple[Var, ...], index: IndexTuple) -> Kernel:
        """What stores each element where it belongs."""
        p = self.low.point()
        value = p.load(c, indices(results), None)
        stage = Stage(
            self.target, results, value, index=index, reads=p.reads, loc=self.op.loc, whole=False
        )
        return Kernel(stage.extents, [Nest([stage], len(results))])

    def _sum_parts(self, partial: Array, results: tuple[Var, ...], index: IndexTuple) -> None:
        part = Var("part", partial.shape[0])
        p = self.low.point()
        value = p.load(partial, (of_var(part), *indices(results)), None)
        loops, rank = (*results, part), len(results)
        stage = Stage(self.target, loops, value, "reduce", "sum", rank, index=index, ops=["sum"])
        stage.loc, stage.whole = self.op.loc, math.prod(stage.extents[:rank]) == self.target.size
        self.low.emit(p, stage)


def _written_out(low: Lowering, op: Op, dims: list[Window]) -> None:
    """Each element of the result as one expression: where it is used, or in a kernel of its own."""
    x, w = op.operands
    stored_if_dear(low, x, math.prod(d.taps for d in dims) * w.shape[-1])
    stored_if_dear(low, w, op.result.tensor.size)
    if low.inline_sum(op, math.prod(w.shape[1:-1])):
        return
    target, y_dims, index = low.destination(op.result)
    strides = [linear(index, target.strides).coeff(v) for v in y_dims]
    if target.kind == "temp":  # it may lie as x does
        loops = _fastest_last(y_dims, [*_lie(low, x)[:-1], 1])  # positions are dims of both
        packed = contiguous_strides(tuple(v.extent for v in loops))
        strides = [packed[loops.index(v)] for v in y_dims]
        target = Array(target.shape, target.dtype, strides=tuple(strides), name=op.result.name)
        low.arrays[op.result] = target
    p = low.point()
    total = _sum(p, op, indices(y_dims), None)
    loops = _fastest_last(y_dims, strides)
    stage = Stage(target, loops, total, index=index, ops=["conv"], loc=op.loc)
    stage.cost += math.prod(w.shape[1:-1])
    low.emit(p, stage)


def _sum(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    """An element of a convolution, all of its products written out."""
    x, w = op.operands
    dims = windows(x.shape, w.shape, op.attrs)
    g, n, *positions, o = index
    total: Expr = const(0, op.result.dtype)
    for k in product(*(range(d.taps) for d in dims)):
        for c in range(x.shape[-1]):
            tap = tuple(map(Index, k))
            pixel = _met(p, x, dims, (g, n, *positions, Index(c)), tap, mask)
            weight = p.at(w, (g, *tap, Index(c), o), mask)
            total = fma(pixel, weight, total) if total.dtype.kind == "f" else pixel * weight + total
    return total


FEW["conv"] = _sum


def _fastest_last(dims: Sequence[Var], strides: Sequence[int]) -> tuple[Var, ...]:
    """Loops in the order of memory; those of one iteration, which have no stride, first."""
    steps = {v: abs(s) if v.extent > 1 else math.inf for v, s in zip(dims, strides, strict=True)}
    return tuple(sorted(dims, key=lambda v: -steps[v]))


def _met(
    p: Pointwise,
    x: Value,
    dims: list[Window],
    where: Sequence[Index],
    tap: Sequence[Index],
    mask: Expr | None = None,
) -> Expr:
    """What a tap meets at a position (group, image, *position, channel), or zero."""
    g, n, *positions, c = where
    at = WindowElement()
    for d, v, k in zip(dims, positions, tap, strict=True):
        at.add(v * d.stride + k * d.rhs_dilation - d.low, d.size, d.lhs_dilation)
    exists = at.exists
    if exists is None:
        return p.at(x, (g, n, *at.index, c), mask)
    guard = exists if mask is None else exists & mask
    p.masks.append(guard)
    return select(exists, p.at(x, (g, n, *at.index, c), guard), const(0, x.dtype))


def _by_parts(low: Lowering, op: Op, dims: list[Window]) -> None:
    """Each element of the result as a sum over loops, which is cut into parts: few features and many
    taps, as of gradients of depthwise kernels.

    before: y[p] = sum over t, c                after: z[t0, p] = sum over the others; y[p] = sum over t0
    """
    x, w = op.operands
    stored_if_dear(low, x, math.prod(d.positions for d in dims))
    stored_if_dear(low, w, math.prod(d.positions for d in dims))
    strides = _lie(low, x)
    taps = tuple(Var(f"k{i}", d.taps) for i, d in enumerate(dims))
    c = Var("c", x.shape[-1])
    steps = [d.rhs_dilation * s for d, s in zip(dims, strides[2:-1], strict=True)]
    cut, *summed = _fastest_last((*taps, c), [*steps, strides[-1]])
    y = variables(op.result.shape)
    moved = [d.stride * s for d, s in zip(dims, strides[2:-1], strict=True)]
    outer = (cut, *_fastest_last(y, [*strides[:2], *moved, 0]))
    p = low.point()
    pixel = _met(p, x, dims, (*indices(y[:-1]), of_var(c)), indices(taps))
    tap = p.at(w, (of_var(y[0]), *indices(taps), of_var(c), of_var(y[-1])))
    partial = Array((cut.extent, *op.result.shape), x.dtype, name="partial")
    stage = Stage(partial, (*outer, *summed), pixel * tap, "reduce", "sum", len(outer))
    stage.index, stage.loc, stage.ops = indices((cut, *y)), op.loc, ["conv"]
    low.emit(p, stage)
    array = low.arrays[op.result] = low.array_for(op.result)
    sum_partials(low, op, partial, array)
