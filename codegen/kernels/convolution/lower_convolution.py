"""Lowering of convolutions: micro-kernels over tiles of positions, or a sum for each element."""

from __future__ import annotations

import math
from typing import Any

from ....ir.graph import Op, Value
from ....ir.ops.products.convolution import Window, windows
from ...limits import limits
from ...loop_ir.index import Index, Var, linear, of_var
from ...loop_ir.kernel import Array, Stage
from ...lowering.lower import Lowering, indices, lowering, variables
from ...lowering.lower_windows import WindowElement, both
from ...lowering.pointwise import index_value
from ...scalar import Expr, compare, const, select
from ...schedule.conv_plan import Cut, axis, cut, long_cut, meets, reach
from ...schedule.tiled import Convolution, LongConvolution
from ..matmul.lower_contraction import strided_view


@lowering("conv")
def _conv(low: Lowering, op: Op) -> None:
    x, w = op.operands
    dims = windows(x.shape, w.shape, op.attrs)
    if _meets(op, dims) and _wants_tiles(op):
        dims = [Window(1, 1, 1, 0, 0, 1, 1)] * (3 - len(dims)) + dims
        if (
            math.prod(d.taps for d in dims) > math.prod(d.positions for d in dims)
            and x.shape[1] > 1
        ):
            _as_long_sums(low, op, dims)
        else:
            _as_tiles(low, op, dims)
    else:
        conv_as_reduction(low, op)


def conv_as_reduction(low: Lowering, op: Op) -> None:
    """Each element of the result as a sum over taps and channels."""
    x, w = op.operands
    array = low.arrays[op.result] = low.array_for(op.result)
    if _meets(op, windows(x.shape, w.shape, op.attrs)):
        _as_reduction(low, op, array)
    else:
        low.emit(low.point(), _zeros(op, array))


def _meets(op: Op, dims: list[Window]) -> bool:
    """Whether any product is summed at all."""
    x, w = op.operands
    return 0 not in (x.tensor.size, w.tensor.size, op.result.tensor.size) and all(map(meets, dims))


def _zeros(op: Op, array: Array) -> Stage:
    dims = variables(array.shape)
    return Stage(array, dims, const(0, array.dtype), ops=["conv"], loc=op.loc)


def _wants_tiles(op: Op) -> bool:
    """Whether there is enough to do for vectors of features, however few they are: sums for each
    element are of scalars, but for one feature."""
    x, w = op.operands
    channels, features = w.shape[-2:]
    work = op.result.tensor.size * channels * math.prod(w.shape[1:-2])
    return len(x.shape) <= 6 and work > limits().small_convolution and features > 1


def _as_tiles(low: Lowering, op: Op, dims: list[Window]) -> None:
    x, w = op.operands
    groups, images, *_, channels = x.shape
    features = w.shape[-1]
    phased = [axis(d) for d in dims]
    axes = tuple(a for a, _ in phased)
    how = cut(axes, channels, features, images * groups, x.dtype, low.context.target)
    source, x_strides, offset = adjacent(low, x, -1, "images")
    kernel = _packed(low, w, how, channels, features)
    target, y_dims, index = low.destination(op.result, adjacent=True)
    flat = linear(index, target.strides)
    y_strides = tuple(flat.coeff(v) for v in y_dims)
    if any(gaps for _, gaps in phased):
        low.emit(low.point(), _zeros(op, target))
    low.items.append(
        Convolution(
            source,
            kernel,
            target,
            groups,
            images,
            channels,
            features,
            axes,
            how,
            _three(x_strides),
            _three(y_strides),
            offset,
            loc=op.loc,
        )
    )


def _as_long_sums(low: Lowering, op: Op, dims: list[Window]) -> None:
    """Partial sums by chunks of taps and channels, then their sum."""
    x, w = op.operands
    groups, images, *_, channels = x.shape
    features = w.shape[-1]
    reaches = tuple(reach(d) for d in dims)
    how = long_cut(reaches, images, channels, features, groups, x.dtype, low.context.target)
    source, x_strides, x_offset = adjacent(low, x, 1, "images")
    kernel, w_strides, w_offset = adjacent(low, w, -1, "kernel")
    positions = op.result.shape[2:-1]
    partial = Array((how.chunks, groups, *positions, images, features), x.dtype, name="partial")
    zeros = variables(partial.shape)
    low.emit(low.point(), Stage(partial, zeros, const(0, x.dtype), ops=["conv"], loc=op.loc))
    low.items.append(
        LongConvolution(
            source,
            kernel,
            partial,
            groups,
            images,
            channels,
            features,
            reaches,
            how,
            (*_three(x_strides), x_strides[-1]),
            (w_strides[0], *[0] * (6 - len(w_strides)), *w_strides[1:-1]),
            x_offset,
            w_offset,
            loc=op.loc,
        )
    )
    target, y_dims, at = low.destination(op.result)
    g, n, *p_, o = y_dims
    p = low.point()
    parts = [p.load(partial, (Index(k), *indices((g, *p_, n, o))), None) for k in range(how.chunks)]
    while len(parts) > 1:
        pairs = [a + b for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    stage = Stage(target, (g, *p_, n, o), parts[0], index=at, ops=["conv"], loc=op.loc)
    low.emit(p, stage)


def _three(strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of group, image and three spatial dims, the first of which may be trivial."""
    group, image, *spatial, _ = strides
    return (group, image, *[0] * (3 - len(spatial)), *spatial)


def adjacent(
    low: Lowering, value: Value, axis: int, name: str
) -> tuple[Array, tuple[int, ...], int]:
    """Where a value lies (array, strides, offset): in its own memory if its elements along `axis`
    lie side by side there, else in a copy where they do."""
    view = strided_view(low, value)
    if view is not None and (view[1][axis] == 1 or value.shape[axis] == 1):
        return view
    dims = variables(value.shape)
    order = list(dims)
    order.append(order.pop(axis))
    array = Array(tuple(v.extent for v in order), value.dtype, name=name)
    p = low.point()
    stage = Stage(array, tuple(order), p.at(value, indices(dims)), ops=["pack"], loc=_line(value))
    low.emit(p, stage)
    strides = dict(zip(order, array.strides, strict=True))
    return array, tuple(strides[v] for v in dims), 0


def _line(value: Value) -> Any:
    return value.op.loc if value.op else None


def _packed(low: Lowering, w: Value, how: Cut, channels: int, features: int) -> Array:
    """The kernel in panels: [group, block of channels, panel, *taps, channel, feature]."""
    groups, *taps, _, _ = w.shape
    blocks, panels = -(-channels // how.channels), -(-features // how.panel)
    array = Array((groups, blocks, panels, *taps, how.channels, how.panel), w.dtype, name="kernel")
    dims = variables(array.shape)
    g, b, p_, *k, c, j = indices(dims)
    channel, feature = b * how.channels + c, p_ * how.panel + j
    p = low.point()
    exists: Expr | None = None
    for at, size, whole in (
        (channel, channels, blocks * how.channels),
        (feature, features, panels * how.panel),
    ):
        if size != whole:
            exists = both(exists, compare("lt", index_value(at), size))
    position = (g, *k, channel, feature)
    if exists is None:
        value = p.at(w, position)
    else:
        p.masks.append(exists)
        value = select(exists, p.at(w, position, exists), const(0, w.dtype))
    low.emit(p, Stage(array, dims, value, ops=["pack"], loc=_line(w)))
    return array


def _as_reduction(low: Lowering, op: Op, array: Array) -> None:
    """A sum over the kernel's taps and channels, for each element of the result."""
    x, w = op.operands
    for operand in (x, w):
        if operand not in low.arrays and low.cost.get(operand, 0) > 0:
            low.materialise(operand)
    dims = windows(x.shape, w.shape, op.attrs)
    g, n, *positions, o = variables(array.shape)
    taps = [Var(f"k{i}", d.taps) for i, d in enumerate(dims)]
    c = Var("c", x.shape[-1])
    element = WindowElement()
    for d, v, k in zip(dims, positions, taps, strict=True):
        at = of_var(v) * d.stride + of_var(k) * d.rhs_dilation - d.low
        element.add(at, d.size, d.lhs_dilation)
    p = low.point()
    exists = element.exists
    if exists is not None:
        p.masks.append(exists)
    value = p.at(x, (of_var(g), of_var(n), *element.index, of_var(c)), exists)
    zero = const(0, array.dtype)
    if element.inside is not None:
        value = select(element.inside, value, zero)
    term: Expr = value * p.at(w, (of_var(g), *indices(taps), of_var(c), of_var(o)))
    if element.between is not None:
        term = select(element.between, term, zero)
    outer = (g, n, *positions, o)
    stage = Stage(
        array,
        (*outer, *taps, c),
        term,
        "reduce",
        "sum",
        len(outer),
        loc=op.loc,
        ops=["conv"],
        cost=1,
    )
    low.emit(p, stage)
