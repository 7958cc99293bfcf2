"""Graph -> stages: decides which values get memory, and builds a stage for each of them.

A value is *inlined* into its consumers (recomputed at each use, by `Pointwise`) or *materialised*:
given an `Array` and a stage that fills it. Materialised are

- results of ops that are not pointwise (reductions, contractions, loops, ...), and graph outputs;
- what is used more than once and costs something to compute;
- what would be recomputed because a broadcast repeats it;
- what has grown past `MAX_INLINE` ops.

Materialising is not yet a store to memory: fusion (see `fusion`) keeps a value in registers or in a
row buffer where its consumers share its loops. The result of this pass is a flat list of stages and
steps in execution order; branches and loop bodies are lowered to programs of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.graph import Graph, Op, Value
from ..ir.types import BOOL, dtype_name
from .fusion import fuse
from .index import Index, Var, delinearise, linear, of_var
from .kernel import (
    Access,
    Array,
    Branch,
    Carry,
    Check,
    Loop,
    Matmul,
    Program,
    Sort,
    Stage,
)
from .module import ErrorSite
from .pointwise import (
    EXPENSIVE,
    INLINE,
    Pointwise,
    gathered,
    op_cost,
    window_starts,
)
from .scalar import Expr, const

MAX_INLINE = 64  # ops inlined into one expression before it is cut
CHUNK = 1 << 14  # elements that one partial result of a split reduction covers, at the least
SMALL_MATMUL = 1 << 12  # multiply-adds up to which a contraction is a plain reduction
REDUCTIONS = frozenset(("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"))
SCANS = {"cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min"}


class Context:
    """What the lowerings of a graph and of its regions share: error sites, options."""

    def __init__(self, use_blas: bool) -> None:
        self.use_blas = use_blas
        self.errors: list[ErrorSite] = []
        self.constants: dict[int, Array] = {}

    def site(self, kind: str, message: str, op: Op, values: Sequence[Value] = ()) -> int:
        """A new error site, whose message shows `values`; returns its number, counted from 1."""
        names = tuple(dtype_name(v.dtype) for v in values)
        self.errors.append(ErrorSite(kind, message, op.loc, names))
        return len(self.errors)

    def constant(self, value: np.ndarray[Any, Any]) -> Array:
        found = self.constants.get(id(value))
        if found is None:
            data = np.ascontiguousarray(value)
            found = Array(data.shape, data.dtype, "const", data=data, name="const")
            self.constants[id(value)] = found
        return found


def lower(
    graph: Graph,
    params: Sequence[Array | None],
    targets: Sequence[Array | None],
    context: Context,
    stay: Sequence[Array | None] | None = None,
) -> tuple[Program, list[Array | None]]:
    """Lower `graph`: parameters live in `params`, output i must end up in `targets[i]`.

    An output that is found in `stay[i]` (a loop carry updated in place) may stay there instead.
    Tokens have no array: None. Returns the program and where each output is.
    """
    lowering = Lowering(graph, params, targets, context, stay or [None] * len(targets))
    lowering.run()
    outputs = lowering.finish()
    return Program(fuse(lowering.items, [a for a in outputs if a is not None])), outputs


class Lowering:
    """The state of lowering one graph or region."""

    def __init__(
        self,
        graph: Graph,
        params: Sequence[Array | None],
        targets: Sequence[Array | None],
        context: Context,
        stay: Sequence[Array | None],
    ) -> None:
        self.graph = graph
        self.context = context
        self.targets = list(targets)
        self.stay = list(stay)
        self.items: list[Any] = []
        self.arrays: dict[Value, Array] = {
            v: a for v, a in zip(graph.params, params, strict=True) if a is not None
        }
        self.users = graph.users()
        self.target_of: dict[Value, Array] = {}
        for value, target, stays in zip(graph.outputs, targets, stay, strict=True):
            if target is not None and value.op is not None and stays is None:
                self.target_of.setdefault(value, target)
        self.outputs = set(graph.outputs)
        self.inlined: dict[Value, int] = {}  # ops inlined into a value that has no array
        self.cost: dict[Value, int] = {}
        self.last_use = {v: i for i, op in enumerate(graph.ops) for v in op.operands}

    def run(self) -> None:
        for position, op in enumerate(self.graph.ops):
            self.position = position
            if op.name == "constant":
                value = op.attrs["value"]
                if value.size > 1 or (value.size == 1 and op.result in self.outputs):
                    self.arrays[op.result] = self.context.constant(value)
                self.inlined[op.result] = self.cost[op.result] = 0
            elif op.name in INLINE:
                self._pointwise(op)
            elif op.name in REDUCTIONS:
                self._reduction(op)
            elif op.name in SCANS:
                self._scan(op)
            else:
                _LOWERINGS[op.name](self, op)

    def finish(self) -> list[Array | None]:
        """Put every output into its target."""
        placed: list[Array | None] = []
        used: set[Array] = set()
        for value, target, stays in zip(self.graph.outputs, self.targets, self.stay, strict=True):
            if not _is_tensor(value):
                placed.append(None)
                continue
            here = self.materialise(value)
            if here is stays and here not in used:
                used.add(here)
                placed.append(here)
                continue
            if target is not None and (here is not target or target in used):
                self._copy(here, target)
                here = target
            used.add(here)
            placed.append(here)
        return placed

    # Materialising values.

    def array_for(self, value: Value) -> Array:
        """New memory for a value: its target if it is an output, else a temporary."""
        target = self.target_of.get(value)
        if target is not None and target.shape == value.shape:
            del self.target_of[value]
            return target
        return Array(value.shape, value.dtype, name=value.name)

    def materialise(self, value: Value) -> Array:
        """The array that holds `value`, filled by a new stage if it was inlined so far."""
        array = self.arrays.get(value)
        if array is None:
            array = self.array_for(value)
            self._store(value, array)
            self.arrays[value] = array
        return array

    def point(self) -> Pointwise:
        return Pointwise(self.arrays, self.context.site)

    def _store(self, value: Value, array: Array) -> None:
        dims = variables(value.shape)
        p = self.point()
        expr = p.at(value, indices(dims))
        self.emit(p, Stage(array, dims, expr, loc=value.op.loc if value.op else None))

    def emit(self, p: Pointwise, stage: Stage) -> None:
        if math.prod(stage.extents[: stage.kept]) == 0 or (
            stage.action in ("store", "update", "scan") and 0 in stage.extents
        ):
            return
        stage.reads += p.reads
        stage.ops += [op.name for op in p.ops]
        stage.cost += p.cost
        self.items.append(stage)

    def _copy(self, source: Array, target: Array) -> None:
        dims = variables(source.shape)
        p = self.point()
        self.emit(p, Stage(target, dims, p.load(source, indices(dims), None), ops=["copy"]))

    def _pointwise(self, op: Op) -> None:
        value = op.result
        operands = [v for v in op.operands if v not in self.arrays]
        self.inlined[value] = 1 + sum(self.inlined.get(v, 0) for v in operands)
        self.cost[value] = op_cost(op) + sum(self.cost.get(v, 0) for v in operands)
        if self._wants_memory(value):
            self.materialise(value)

    def _wants_memory(self, value: Value) -> bool:
        users = self.users[value]
        cost = self.cost[value]
        if value in self.outputs:
            return True
        if self.inlined[value] > MAX_INLINE:
            return True
        if cost >= EXPENSIVE and len(users) > 1:
            return True
        return cost > 0 and any(
            user.name in ("broadcast", "gather") and user.result.tensor.size > value.tensor.size
            for user in users
        )

    # Reductions and scans.

    def _reduction(self, op: Op) -> None:
        source = op.operands[0]
        axes = op.attrs["axes"] if "axes" in op.attrs else (op.attrs["axis"],)
        axes = tuple(sorted(axes))
        kept = [d for d in range(len(source.shape)) if d not in axes]
        array = self.array_for(op.result)
        n = math.prod(source.shape[d] for d in axes)
        rows = math.prod(source.shape[d] for d in kept)
        if n == 0:
            dims = variables(op.result.shape)
            identity = const(IDENTITIES[op.name], op.result.dtype)
            self.emit(self.point(), Stage(array, dims, identity, ops=[op.name], loc=op.loc))
        elif n >= 4 * CHUNK and rows * 8 < n and not op.name.startswith("arg"):
            self._split_reduction(op, source, axes, kept, array, n)
        else:
            outer = [Var(f"i{d}", source.shape[d]) for d in kept]
            inner = [Var(f"r{d}", source.shape[d]) for d in axes]
            by_axis = dict(zip([*kept, *axes], [*outer, *inner], strict=True))
            p = self.point()
            expr = p.at(source, tuple(of_var(by_axis[d]) for d in range(len(source.shape))))
            self._reduce(op, p, array, (*outer, *inner), len(outer), expr)
        self.arrays[op.result] = array

    def _reduce(
        self, op: Op, p: Pointwise, array: Array, dims: tuple[Var, ...], kept: int, expr: Expr
    ) -> None:
        stage = Stage(array, dims, expr, "reduce", op.name, kept, loc=op.loc, ops=[op.name])
        self.emit(p, stage)

    def _split_reduction(
        self,
        op: Op,
        source: Value,
        axes: tuple[int, ...],
        kept: list[int],
        array: Array,
        n: int,
    ) -> None:
        """Reduce chunks to partial results, then those: parallel, and the same for any thread count."""
        rows = [Var(f"i{d}", source.shape[d]) for d in kept]
        chunk = CHUNK
        while n > chunk * 1024:
            chunk *= 2
        chunk = max(CHUNK // max(math.prod(v.extent for v in rows), 1), 64) if rows else chunk
        chunk = min(chunk, n)
        count = -(-n // chunk)
        if count > 1024:
            chunk = -(-n // 1024)
            count = -(-n // chunk)
        c, r = Var("c", count), Var("r", chunk)
        flat = of_var(c) * chunk + of_var(r)
        shape = tuple(source.shape[d] for d in axes)
        where = dict(zip(kept, map(of_var, rows), strict=True))
        at_axes = list(delinearise(flat, shape))
        where.update(zip(axes, at_axes, strict=True))
        p = self.point()
        expr = p.at(source, tuple(where[d] for d in range(len(source.shape))))
        partial = Array((count, *(v.extent for v in rows)), array.dtype, name="partial")
        stage = Stage(
            partial,
            (c, *rows, r),
            expr,
            "reduce",
            op.name,
            1 + len(rows),
            loc=op.loc,
            ops=[op.name],
        )
        if count * chunk != n:
            stage.dynamic = (chunk, n)
        self.emit(p, stage)
        rows2 = variables(array.shape)
        c2 = Var("c", count)
        p = self.point()
        expr = p.load(partial, (of_var(c2), *indices(rows2)), None)
        self._reduce(op, p, array, (*rows2, c2), len(rows2), expr)

    def _scan(self, op: Op) -> None:
        """A running sum (product, maximum, minimum) along one axis, from either end."""
        source, axis = op.operands[0], op.attrs["axis"]
        dims = variables(source.shape)
        where = list(indices(dims))
        if op.attrs["reverse"]:
            where[axis] = -where[axis] + (source.shape[axis] - 1)
        p = self.point()
        expr = p.at(source, tuple(where))
        array = self.array_for(op.result)
        order = (*(v for d, v in enumerate(dims) if d != axis), dims[axis])
        self.emit(
            p,
            Stage(
                array,
                order,
                expr,
                "scan",
                SCANS[op.name],
                len(dims) - 1,
                tuple(where),
                ops=[op.name],
                loc=op.loc,
            ),
        )
        self.arrays[op.result] = array


def variables(shape: tuple[int, ...]) -> tuple[Var, ...]:
    return tuple(Var(f"i{d}", n) for d, n in enumerate(shape))


def indices(dims: Sequence[Var]) -> tuple[Index, ...]:
    return tuple(of_var(v) for v in dims)


IDENTITIES = {"sum": 0, "prod": 1, "any": False, "all": True}


# Ops that write part of an array, or write it in pieces.


def _lower_concat(low: Lowering, op: Op) -> None:
    array = low.array_for(op.result)
    axis, start = op.attrs["axis"], 0
    for operand in op.operands:
        dims = variables(operand.shape)
        p = low.point()
        expr = p.at(operand, indices(dims))
        at = list(indices(dims))
        at[axis] = at[axis] + start
        low.emit(
            p, Stage(array, dims, expr, index=tuple(at), ops=["concat"], loc=op.loc, whole=False)
        )
        start += operand.shape[axis]
    low.arrays[op.result] = array


def _lower_update_slice(low: Lowering, op: Op) -> None:
    base, update = op.operands
    start, step = op.attrs["start"], op.attrs["step"]
    array = _updatable(low, op, base)
    in_place = low.arrays.get(base) is array
    if not in_place:
        if all(s == 1 for s in step):
            for lo, extents in complement(base.shape, start, update.shape):
                _copy_box(low, op, base, array, lo, extents)
        else:
            _copy_box(low, op, base, array, (0,) * len(base.shape), base.shape)
    dims = variables(update.shape)
    p = low.point()
    expr = p.at(update, indices(dims))
    at = tuple(i * s + a for i, s, a in zip(indices(dims), step, start, strict=True))
    stage = Stage(array, dims, expr, index=at, ops=["update_slice"], loc=op.loc, whole=False)
    if in_place or any(s != 1 for s in step):
        stage.reads.append(Access(array, ()))  # comes after what was written there before
    low.emit(p, stage)
    low.arrays[op.result] = array


def _copy_box(
    low: Lowering,
    op: Op,
    source: Value,
    array: Array,
    lo: tuple[int, ...],
    extents: tuple[int, ...],
) -> None:
    dims = variables(extents)
    at = tuple(i + a for i, a in zip(indices(dims), lo, strict=True))
    p = low.point()
    expr = p.at(source, at)
    low.emit(p, Stage(array, dims, expr, index=at, ops=["copy"], loc=op.loc, whole=False))


def complement(
    shape: tuple[int, ...], start: tuple[int, ...], size: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Boxes (low corner, extents) that tile `shape` without the box of `size` at `start`."""
    boxes = []
    for d in range(len(shape)):
        below, above = start[d], shape[d] - start[d] - size[d]
        for lo, extent in ((0, below), (start[d] + size[d], above)):
            box = (*size[:d], extent, *shape[d + 1 :])
            if extent and 0 not in box:
                boxes.append(((*start[:d], lo, *(0 for _ in shape[d + 1 :])), box))
    return boxes


def _lower_dynamic_update_slice(low: Lowering, op: Op) -> None:
    base, update, *starts = op.operands
    array = _updatable(low, op, base)
    if low.arrays.get(base) is not array:
        _copy_box(low, op, base, array, (0,) * len(base.shape), base.shape)
    dims = variables(update.shape)
    p = low.point()
    expr = p.at(update, indices(dims))
    corner = window_starts(p, tuple(starts), base.shape, update.shape)
    at = tuple(i + s for i, s in zip(indices(dims), corner, strict=True))
    stage = Stage(
        array, dims, expr, index=at, ops=["dynamic_update_slice"], loc=op.loc, whole=False
    )
    stage.reads.append(Access(array, ()))
    low.emit(p, stage)
    low.arrays[op.result] = array


def _lower_scatter(low: Lowering, op: Op) -> None:
    base, update, *where = op.operands
    array = _updatable(low, op, base)
    if low.arrays.get(base) is not array:
        _copy_box(low, op, base, array, (0,) * len(base.shape), base.shape)
    dims = variables(update.shape)
    p = low.point()
    expr = p.at(update, indices(dims))
    at = gathered(p, op, base, where, indices(dims), None)
    combine = op.attrs["combine"]
    stage = Stage(
        array,
        dims,
        expr,
        "update",
        combine,
        len(where[0].shape),
        at,
        ops=["scatter"],
        loc=op.loc,
        whole=False,
    )
    stage.reads.append(Access(array, ()))
    low.emit(p, stage)
    low.arrays[op.result] = array


def _updatable(low: Lowering, op: Op, base: Value) -> Array:
    """The array that an update of `base` writes: base's own if nothing reads it any more, else new."""
    here = low.arrays.get(base)
    if here is not None and here.kind in ("temp", "slot") and _dead_after(low, base, op):
        target = low.target_of.get(op.result)
        if target is None:
            return here
    return low.array_for(op.result)


def _dead_after(low: Lowering, base: Value, op: Op) -> bool:
    """Whether no stage after `op` can read base's memory, and op's own update does not read it.

    A user that was inlined reads the memory when its consumers run, so every other user must have
    been materialised already, or be a pure movement whose own users are all done (checked by walking).
    """
    if base in low.outputs or any(
        a is low.arrays[base] and v is not base for v, a in low.arrays.items()
    ):
        return False
    pending = [(u, base) for u in low.users[base] if u is not op]
    seen: set[Op] = set()
    while pending:
        user, _ = pending.pop()
        if user in seen:
            continue
        seen.add(user)
        for result in user.results:
            if result in low.arrays:
                continue
            if result in low.outputs or result not in low.inlined:
                return False
            pending += [(u, result) for u in low.users[result]]
    return op not in seen and sum(v is base for v in op.operands) == 1


# Contractions.


def _lower_dot(low: Lowering, op: Op) -> None:
    a, b = op.operands
    (ac, bc), (ab, bb) = op.attrs["contract"], op.attrs["batch"]
    am = [d for d in range(len(a.shape)) if d not in ac and d not in ab]
    bn = [d for d in range(len(b.shape)) if d not in bc and d not in bb]
    batch = math.prod(a.shape[d] for d in ab)
    m = math.prod(a.shape[d] for d in am)
    n = math.prod(b.shape[d] for d in bn)
    k = math.prod(a.shape[d] for d in ac)
    array = low.array_for(op.result)
    use_blas = low.context.use_blas and op.result.dtype.kind == "f" and array.contiguous
    if use_blas and m > 1 and n > 1 and k > 0 and m * n * k > SMALL_MATMUL and array.size:
        left = _matrix(low, a, list(ab), am, list(ac))
        right = _matrix(low, b, list(bb), list(bc), bn)
        low.items.append(
            Matmul(
                left[0],
                right[0],
                array,
                batch,
                m,
                n,
                k,
                left[1],
                right[1],
                left[2],
                right[2],
                loc=op.loc,
            )
        )
    else:
        _dot_as_reduction(low, op, array, am, bn)
    low.arrays[op.result] = array


def _dot_as_reduction(low: Lowering, op: Op, array: Array, am: list[int], bn: list[int]) -> None:
    a, b = op.operands
    (ac, bc), (ab, bb) = op.attrs["contract"], op.attrs["batch"]
    if any(a.shape[d] == 0 for d in ac):
        dims = variables(array.shape)
        low.emit(low.point(), Stage(array, dims, const(0, array.dtype), ops=["dot"], loc=op.loc))
        return
    kept = variables(array.shape)
    inner = tuple(Var(f"k{d}", a.shape[d]) for d in ac)
    nb, nm = len(ab), len(am)
    at_a: dict[int, Var] = dict(zip([*ab, *am, *ac], [*kept[: nb + nm], *inner], strict=True))
    at_b: dict[int, Var] = dict(
        zip([*bb, *bc, *bn], [*kept[:nb], *inner, *kept[nb + nm :]], strict=True)
    )
    for operand, repeated in ((a, bool(bn)), (b, bool(am))):
        if repeated and operand not in low.arrays and low.cost.get(operand, 0) > 0:
            low.materialise(operand)
    p = low.point()
    x = p.at(a, tuple(of_var(at_a[d]) for d in range(len(a.shape))))
    y = p.at(b, tuple(of_var(at_b[d]) for d in range(len(b.shape))))
    stage = Stage(
        array, (*kept, *inner), x * y, "reduce", "sum", len(kept), loc=op.loc, ops=["dot"], cost=1
    )
    low.emit(p, stage)


def _matrix(
    low: Lowering, value: Value, batch: list[int], rows: list[int], cols: list[int]
) -> tuple[Array, tuple[int, int, int], int]:
    """`value` as a batch of matrices: (array, strides of batch/row/column, offset), copied if needed."""
    order = [*batch, *rows, *cols]
    view = strided_view(low, value)
    if view is not None:
        array, strides, offset = view
        found = [
            _merge([value.shape[d] for d in g], [strides[d] for d in g])
            for g in (batch, rows, cols)
        ]
        r, c = found[1], found[2]
        if None not in found and 1 in (r, c) and min(r, c) >= 1:  # type: ignore[type-var]
            big = math.prod(value.shape[d] for d in (cols if c == 1 else rows))
            if max(r, c) >= big:  # type: ignore[type-var, operator]
                return array, (found[0], r, c), offset  # type: ignore[return-value]
    shape = tuple(value.shape[d] for d in order)
    array = Array(shape, value.dtype, name="packed")
    dims = variables(shape)
    where = dict(zip(order, indices(dims), strict=True))
    p = low.point()
    expr = p.at(value, tuple(where[d] for d in range(len(order))))
    low.emit(p, Stage(array, dims, expr, ops=["pack"], loc=value.op.loc if value.op else None))
    m = math.prod(value.shape[d] for d in rows)
    k = math.prod(value.shape[d] for d in cols)
    return array, (m * k, k, 1), 0


def _merge(sizes: list[int], strides: list[int]) -> int | None:
    """The stride with which several dims can be walked as one; None if they cannot."""
    dims = [(n, s) for n, s in zip(sizes, strides, strict=True) if n != 1]
    if not dims:
        return 1
    for (_, outer), (n, inner) in zip(dims, dims[1:], strict=False):
        if outer != n * inner:
            return None
    return dims[-1][1]


def strided_view(low: Lowering, value: Value) -> tuple[Array, tuple[int, ...], int] | None:
    """`value` as a strided window of an array: (array, strides, offset in elements), or None."""
    if value not in low.arrays and low.cost.get(value, 0) > 0:
        return None
    dims = variables(value.shape)
    p = low.point()
    expr = p.at(value, indices(dims))
    if expr.op != "load" or expr.args:
        return None
    access: Access = expr.attr
    flat = linear(access.index, access.array.strides)
    if any(not isinstance(atom, Var) for atom in flat.terms):
        return None
    return access.array, tuple(flat.coeff(v) for v in dims), flat.const


# Sorting.


def _lower_sort(low: Lowering, op: Op) -> None:
    source, axis = op.operands[0], op.attrs["axis"]
    order = [d for d in range(len(source.shape)) if d != axis] + [axis]
    shape = tuple(source.shape[d] for d in order)
    dims = variables(shape)
    where = dict(zip(order, indices(dims), strict=True))
    p = low.point()
    rows = Array(shape, source.dtype, name="rows")
    scratch = Array(shape[-1:], op.result.dtype, name="scratch")
    expr = p.at(source, tuple(where[d] for d in range(len(order))))
    low.emit(p, Stage(rows, dims, expr, ops=["copy"], loc=op.loc))
    if axis == len(shape) - 1:
        array = low.array_for(op.result)
        low.items.append(Sort(rows, array, scratch, op.name == "argsort", op.loc))
    else:
        ordered = Array(shape, op.result.dtype, name="sorted")
        low.items.append(Sort(rows, ordered, scratch, op.name == "argsort", op.loc))
        array = low.array_for(op.result)
        p = low.point()
        expr = p.load(ordered, indices(dims), None)
        at = tuple(where[d] for d in range(len(order)))
        low.emit(p, Stage(array, dims, expr, index=at, ops=["copy"], loc=op.loc))
    low.arrays[op.result] = array


# Control flow and effects.


def _lower_cond(low: Lowering, op: Op) -> None:
    index, *operands = op.operands
    flag = low.materialise(index)
    arrays = [operand_array(low, v) for v in operands]
    results = [low.array_for(v) if _is_tensor(v) else None for v in op.results]
    branches = [lower(region, arrays, results, low.context)[0] for region in op.regions]
    low.items.append(Branch(flag, branches, op.loc))
    _bind(low, op, results)


def _lower_while(low: Lowering, op: Op) -> None:
    consts = op.attrs["consts"]
    test_region, body_region = op.regions
    const_arrays = [operand_array(low, v) for v in op.operands[:consts]]
    init = [operand_array(low, v) for v in op.operands[consts:]]
    carry: list[Array | None] = []
    fresh: list[Array | None] = []
    for v in op.operands[consts:]:
        tensor = _is_tensor(v)
        carry.append(Array(v.shape, v.dtype, "slot", name="carry") if tensor else None)
        fresh.append(Array(v.shape, v.dtype, "slot", name="fresh") if tensor else None)
    flag = Array((), BOOL, name="flag")
    test, _ = lower(test_region, [*const_arrays, *carry], [flag], low.context)
    kept = _kept_carries(body_region, consts)
    stay = [c if kept[i] else None for i, c in enumerate(carry)]
    body, ends = lower(body_region, [*const_arrays, *carry], fresh, low.context, stay)
    results = [low.array_for(v) if _is_tensor(v) else None for v in op.results]
    carries = [
        Carry(start, c, f, end is not c, result, Array(c.shape, c.dtype, name="spare"))
        for start, c, f, end, result in zip(init, carry, fresh, ends, results, strict=True)
        if start is not None and c is not None and f is not None and result is not None
    ]
    low.items.append(Loop(carries, test, flag, body, op.loc))
    _bind(low, op, results)


def _kept_carries(body: Graph, consts: int) -> list[bool]:
    """Which carries end in their own memory: unchanged, or updated in place by the body."""
    kept = []
    for i, value in enumerate(body.outputs):
        param = body.params[consts + i]
        kept.append(_updates_of(value, param))
    return kept


def _updates_of(value: Value, param: Value) -> bool:
    """Whether `value` is `param`, or `param` after a chain of slice updates and scatters."""
    while value is not param:
        op = value.op
        if op is None or op.name not in ("update_slice", "dynamic_update_slice", "scatter"):
            return False
        value = op.operands[0]
    return True


def _lower_assert(low: Lowering, op: Op) -> None:
    flag, *values, _ = op.operands
    site = low.context.site("assert", op.attrs["message"], op, values)
    low.items.append(Check(low.materialise(flag), site, [low.materialise(v) for v in values]))


def _lower_token(low: Lowering, op: Op) -> None:
    """A token is order, and steps are in order."""


def operand_array(low: Lowering, value: Value) -> Array | None:
    return low.materialise(value) if _is_tensor(value) else None


def _bind(low: Lowering, op: Op, results: Sequence[Array | None]) -> None:
    for value, array in zip(op.results, results, strict=True):
        if array is not None:
            low.arrays[value] = array


def _is_tensor(value: Value) -> bool:
    return hasattr(value.type, "shape")


_LOWERINGS: dict[str, Callable[[Lowering, Op], None]] = {
    "concat": _lower_concat,
    "update_slice": _lower_update_slice,
    "dynamic_update_slice": _lower_dynamic_update_slice,
    "scatter": _lower_scatter,
    "dot": _lower_dot,
    "sort": _lower_sort,
    "argsort": _lower_sort,
    "cond": _lower_cond,
    "while": _lower_while,
    "assert": _lower_assert,
    "create_token": _lower_token,
}
