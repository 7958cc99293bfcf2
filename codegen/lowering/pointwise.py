"""Values as functions of an index: how an op that is not materialised is computed at one point.

`Pointwise.at(value, index, mask)` gives the scalar expression of one element. Elementwise ops expand
through `codegen.math`; movement ops change the index; a materialised value is a load. `mask` is the
condition under which the element is really wanted (inside a pad): loads are guarded by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import reduce
from itertools import product
from operator import and_
from typing import Any

import numpy as np

from ...ir.cost import Cost
from ...ir.graph import Graph, Op, Value
from ...ir.integers.intervals import interval
from ...ir.ops.movement.bounded import most
from ...ir.ops.movement.indexing import out_of_bounds
from ...ir.types import BOOL, I32, I64
from ..loop_ir.index import ZERO, Data, Index, Var, delinearise, linear, variables
from ..loop_ir.index import contiguous_strides as strides_of
from ..loop_ir.kernel import Access, Array, Bound, Demand, indices_of
from ..marks import Marks
from ..math import EXPANSIONS
from ..math.combiners import FOLDS, fold
from ..math.functions import call
from ..scalar import DType, Expr, binary, compare, const, convert, loop, select
from ..sizes import size_of

IndexTuple = tuple[Index, ...]


def load(access: Access, mask: Expr | None) -> Expr:
    """An element, read where `mask` holds."""
    return Expr("load", (mask,) if mask is not None else (), access.array.dtype, access)


def index_value(index: Index) -> Expr:
    """An index as an int64 value."""
    if not index.terms:
        return const(index.const, I64)
    return Expr("index", (), I64, index)


def folded(expr: Expr) -> Expr:
    """Sums, differences and multiples of positions are positions: integers wrap either way. Comparisons
    of positions may be known."""
    if expr.op == "convert" and expr.args[0].op == "const" and expr.args[0].dtype == BOOL:
        return const(int(expr.args[0].attr), expr.dtype) if expr.dtype.kind == "i" else expr
    if expr.op == "select" and expr.args[0].op == "const":
        return expr.args[1] if expr.args[0].attr else expr.args[2]
    compares = expr.op in _HOLDS and expr.dtype == BOOL
    if expr.op in ("min", "max") and expr.dtype == I64:
        return _extreme(expr)
    if not compares and (expr.dtype != I64 or expr.op not in ("add", "sub", "mul")):
        return expr
    if any(a.op not in ("index", "const") or a.dtype != I64 for a in expr.args):
        return expr
    a, b = (as_index(x, 0, 0) for x in expr.args)
    if compares:
        truth = _HOLDS[expr.op](a, b) if all(map(_is_int64, (a, b))) else None
        return expr if truth is None else const(truth, BOOL)
    if expr.op == "add":
        total = a + b
    elif expr.op == "sub":
        total = a - b
    elif a.terms and b.terms:
        return expr
    else:
        total = b * a.const if b.terms else a * b.const
    if any(abs(k) >= 1 << 62 for k in (total.const, *total.terms.values())):
        return expr
    return index_value(total)


def _extreme(expr: Expr) -> Expr:
    """The larger or smaller of two positions, where it is known which."""
    if any(a.op not in ("index", "const") for a in expr.args):
        return expr
    a, b = (as_index(x, 0, 0) for x in expr.args)
    if not (_is_int64(a) and _is_int64(b)):
        return expr
    lesser, greater = expr.args if expr.op == "min" else expr.args[::-1]
    if _less(b, a) is False:
        return lesser
    return greater if _less(a, b) is False else expr


def _is_int64(index: Index) -> bool:
    least, most = index.reach()
    return least >= -(1 << 63) and most < 1 << 63


def _less(a: Index, b: Index) -> bool | None:
    """Whether one position is less than another; None: it depends."""
    least, most = (b - a).reach()
    return True if least > 0 else False if most <= 0 else None


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


_HOLDS: dict[str, Callable[[Index, Index], bool | None]] = {
    "lt": _less,
    "gt": lambda a, b: _less(b, a),
    "ge": lambda a, b: _not(_less(a, b)),
    "le": lambda a, b: _not(_less(b, a)),
}


def as_index(expr: Expr, lo: int, hi: int, within: int | None = None) -> Index:
    """An int64 value as an index known to lie in lo..hi; `within`: see `Data`."""
    if expr.op == "index":
        return expr.attr
    if expr.op == "const" and (within is None or size_of(within) is None):
        return Index(int(expr.attr))
    return Index(0, {Data(expr, lo, hi, loop_variables(expr), within): 1})


def loop_variables(expr: Expr) -> frozenset[Var]:
    """The loop variables that an expression depends on."""
    return frozenset().union(*map(variables, indices_of(expr)))


class Pointwise:
    """Expressions for the elements of values, within one stage.

    `arrays` maps materialised values to their memory. `reads` collects every access that was built,
    which is what fusion looks at. `site` makes an error site for a bounds check; `checked` are indices
    that have been checked by now, each with a size of the axis.
    """

    def __init__(
        self,
        arrays: dict[Value, Array],
        site: Callable[[str, str, Op], int],
        marks: Marks | None = None,
        checked: Collection[tuple[Value, int]] = (),
    ) -> None:
        self.arrays = arrays
        self.site = site
        self.marks = marks
        self.checked = checked
        self.reads: list[Access] = []
        self.ops: dict[Op, None] = {}
        self.memo: dict[tuple[Value, IndexTuple, int], Expr] = {}
        self.loads: dict[tuple[int, IndexTuple, int], Expr] = {}
        self.loops: dict[tuple[Value, IndexTuple, int], list[Expr]] = {}
        self.windows: dict[tuple[int, int, Value, Value], tuple[Expr, Expr]] = {}
        self.masks: list[Expr] = []  # kept alive: memo keys hold their ids
        self.cost = 0

    def at(self, value: Value, index: IndexTuple, mask: Expr | None = None) -> Expr:
        key = (value, index, id(mask))
        expr = self.memo.get(key)
        if expr is None:
            expr = self.memo[key] = self._build(value, index, mask)
            if self.marks is not None and value.op is not None:
                self.marks.tag(expr, value.op.loc)
        return expr

    def _build(self, value: Value, index: IndexTuple, mask: Expr | None) -> Expr:
        array = self.arrays.get(value)
        if array is not None:
            return self.load(array, index, mask)
        op = value.op
        assert op is not None, "a parameter that has no array"
        self.ops[op] = None
        rule = RULES.get(op.name) or FEW.get(op.name)
        if rule is not None:
            return rule(self, op, index, mask)
        if op.name == "optimization_barrier":
            return self.at(op.operands[value.index], index, mask)
        if op.name == "lanes_while":
            return self._lanes(op, index, mask)[value.index]
        self.cost += op.definition.cost.work
        operands = [self.at(v, index, mask) for v in op.operands]
        if op.name == "pow" and op.result.dtype.kind == "i":
            operands[1] = self._natural(op, operands[1], mask)
        if op.definition.cost is Cost.FUNCTION and op.result.dtype.kind == "f":
            return call(op.name, operands)
        return EXPANSIONS[op.name](*operands, **op.attrs)

    def is_below(self, index: Index, count: Value) -> bool:
        """Whether a position is surely below a count."""
        return False

    def interval(self, value: Value) -> tuple[int, int]:
        """The least and the largest element that a value of integers may have."""
        return interval(value)

    def _natural(self, op: Op, exponent: Expr, mask: Expr | None) -> Expr:
        """The exponent of an integer power, demanded not to be negative as NumPy does."""
        if exponent.op == "const" and exponent.attr >= 0:
            return exponent
        site = self.site("value", "Integers to negative integer powers are not allowed.", op)
        args = (exponent, exponent >= 0) if mask is None else (exponent, exponent >= 0, mask)
        return Expr("demanded", args, exponent.dtype, Demand(site))

    def _lanes(self, op: Op, index: IndexTuple, mask: Expr | None) -> list[Expr]:
        """A loop of each element's own: all its results, built together."""
        first = op.results[0], index, id(mask)
        results = self.loops.get(first)
        if results is None:
            count = op.attrs["consts"]
            operands = [self.at(v, index, mask) for v in op.operands]
            self.cost += op.definition.cost.work
            results = self.loops[first] = _scalar_loop(op, operands[:count], operands[count:])
        return results

    def load(self, array: Array, index: IndexTuple, mask: Expr | None) -> Expr:
        if array.size == 0:  # only under a mask that is never true
            return const(0, array.dtype)
        key = (id(array), index, id(mask))
        expr = self.loads.get(key)
        if expr is None:
            access = Access(array, index)
            self.reads.append(access)
            expr = self.loads[key] = load(access, mask)
        return expr


# The movement ops: each turns the index of a result into the index of its operand.


def _constant(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    value: np.ndarray[Any, Any] = op.attrs["value"]
    return const(value.reshape(-1)[0].item(), value.dtype)


def _iota(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    return EXPANSIONS["convert"](index_value(index[op.attrs["axis"]]), dtype=op.result.dtype)


def _same(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    return p.at(op.operands[0], index, mask)


def reshaped(index: IndexTuple, shape: tuple[int, ...], source: tuple[int, ...]) -> IndexTuple:
    """The position in `source` of element `index` of its reshape to `shape`."""
    wanted = [n for n in source if n != 1]
    if wanted == [n for n in shape if n != 1]:  # only dims of size 1 come and go
        longer = iter(i for i, n in zip(index, shape, strict=True) if n != 1)
        return tuple(next(longer) if n != 1 else ZERO for n in source)
    return delinearise(linear(index, strides_of(shape)), source)


def _reshape(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    source = op.operands[0]
    return p.at(source, reshaped(index, op.result.shape, source.shape), mask)


def _transpose(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    new: list[Index] = [ZERO] * len(index)
    for out_axis, in_axis in enumerate(op.attrs["perm"]):
        new[in_axis] = index[out_axis]
    return p.at(op.operands[0], tuple(new), mask)


def _broadcast(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    return p.at(op.operands[0], tuple(index[d] for d in op.attrs["dims"]), mask)


def _slice(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    start, step = op.attrs["start"], op.attrs["step"]
    new = tuple(i * s + a for i, a, s in zip(index, start, step, strict=True))
    return p.at(op.operands[0], new, mask)


def _strided(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    new = []
    for at, row in zip(op.attrs["start"], op.attrs["steps"], strict=True):
        for i, step in zip(index, row, strict=True):
            at = i * step + at if step else at
        new.append(at if isinstance(at, Index) else Index(at))
    return p.at(op.operands[0], tuple(new), mask)


def _flip(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    axes, shape = op.attrs["axes"], op.result.shape
    new = tuple(-i + (shape[d] - 1) if d in axes else i for d, i in enumerate(index))
    return p.at(op.operands[0], new, mask)


def _pad(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    """In range: the operand's element, loaded under the mask; elsewhere the padding value."""
    source, filler = op.operands
    low, interior = op.attrs["low"], op.attrs["interior"]
    fill = p.at(filler, (), mask)
    if 0 in source.shape:
        return fill
    inside: Expr | None = None
    new: list[Index] = []
    for i, n, before, gap in zip(index, source.shape, low, interior, strict=True):
        j = i - before
        lo, hi = j.range()
        last = (n - 1) * (gap + 1)
        if hi < 0 or lo > last:
            return fill
        if lo < 0:
            inside = _and(inside, compare("ge", index_value(j), 0))
        if hi > last:
            inside = _and(inside, compare("le", index_value(j), last))
        if gap:
            rest = j % (gap + 1)
            if rest.range()[0] > 0:
                return fill
            inside = _and(inside, compare("eq", index_value(rest), 0))
            j = j // (gap + 1)
        new.append(j)
    if inside is None:
        return p.at(source, tuple(new), mask)
    guard = inside if mask is None else inside & mask
    p.masks.append(guard)
    return select(inside, p.at(source, tuple(new), guard), fill)


def _and(a: Expr | None, b: Expr) -> Expr:
    return b if a is None else a & b


def checked(p: Pointwise, op: Op, k: int, raw: Expr, mask: Expr | None) -> Index:
    """The k-th index of a gather or scatter, which a program computed, negative ones counted from the
    end, checked or clamped."""
    axes = op.attrs["axes"]
    size, clip = op.operands[0].shape[axes[k]], op.attrs["mode"] == "clip"
    wide = EXPANSIONS["convert"](raw, dtype=I64)
    if wide.op == "index":
        lo, hi = wide.attr.reach()
        if lo >= 0 and hi < size:
            return wide.attr
        if lo >= -size and hi < 0:
            return wide.attr + size
        if lo >= -size and hi < size:
            return as_index(select(wide < 0, index_value(wide.attr + size), wide), 0, size - 1)
    if wide.op == "const" and clip:
        return Index(min(max(wide.attr, 0), size - 1))
    if wide.op == "const" and -size <= wide.attr < size:
        return Index(wide.attr % size)
    text = out_of_bounds(op.attrs.get("names", ()), len(axes), k, "{0}", "{1}")
    silent = clip or (op.operands[k - len(axes)], size) in p.checked
    site = 0 if silent else p.site("index", text, op)
    if wide.op == "convert" and fits_int32(wide.args[0].dtype) and size < 2**31:
        wide = convert(wide.args[0], I32)  # twice as many fit a vector
    args = (wide,) if mask is None else (wide, mask)
    bounded = Expr("bounded", args, wide.dtype, Bound(size, site, clip))
    return as_index(convert(bounded, I64), 0, max(size - 1, 0))


def fits_int32(dtype: DType) -> bool:
    """Whether all values of an integer dtype are int32's."""
    return dtype.kind in "iu" and (dtype.itemsize < 4 or dtype == I32)


def _gather(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    source, *indices = op.operands
    return p.at(source, gathered(p, op, source, indices, index, mask), mask)


def gathered(
    p: Pointwise, op: Op, source: Value, indices: list[Value], index: IndexTuple, mask: Expr | None
) -> IndexTuple:
    """The position in `source` that element `index` of a gather reads (or of a scatter writes)."""
    axes = op.attrs["axes"]
    batch = len(indices[0].shape)
    rest = iter(index[batch:])
    at_axis = {
        axis: _position(p, op, k, v, index[:batch], mask)
        for k, (axis, v) in enumerate(zip(axes, indices, strict=True))
    }
    return tuple(at_axis[d] if d in at_axis else next(rest) for d in range(len(source.shape)))


def _position(
    p: Pointwise, op: Op, k: int, v: Value, where: IndexTuple, mask: Expr | None
) -> Index:
    """What the k-th index array, `v`, says at `where`, checked or clamped if it may be out of range."""
    size = op.operands[0].shape[op.attrs["axes"][k]]
    raw = p.at(v, where, mask)
    length = length_of(p, size)
    if length is not size and op.name == "gather":  # it is checked against the length before
        place = binary("max", EXPANSIONS["convert"](raw, dtype=I64), 0)
        return as_index(binary("min", place, length - 1), 0, size - 1, size)
    lo, hi = p.interval(v)
    if raw.op != "index" and lo >= 0 and hi < size:
        return as_index(EXPANSIONS["convert"](raw, dtype=I64), lo, hi)
    return checked(p, op, k, raw, mask)


def window_starts(
    p: Pointwise, starts: tuple[Value, ...], shape: tuple[int, ...], sizes: tuple[int, ...]
) -> IndexTuple:
    """Start positions clamped so that a window of `sizes` fits into `shape`."""
    clamped = []
    for v, n, size in zip(starts, shape, sizes, strict=True):
        room = n - size
        raw = convert(p.at(v, (), None), I64)
        clamped.append(as_index(binary("min", binary("max", raw, 0), room), 0, room))
    return tuple(clamped)


def _dynamic_slice(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    source, *starts = op.operands
    at = window_starts(p, tuple(starts), source.shape, op.attrs["sizes"])
    return p.at(source, tuple(i + s for i, s in zip(index, at, strict=True)), mask)


def length_of(p: Pointwise, n: int) -> Any:
    """How long an axis is: the number of its elements, or a length that the code reads."""
    size = size_of(n)
    if size is None or size.capacity != n or size.array is None:
        return n
    return p.load(size.array, (), None)


def bounded_window(
    p: Pointwise, ends: list[Value], size: int, step: int, k: int
) -> tuple[Expr, Expr]:
    """The start and the count of a bounded window along the k-th of its axes, which has `size`: moved
    and shortened so that the window fits."""
    first, number = ends[k], ends[len(ends) // 2 + k]
    key = (size, step, first, number)
    if key in p.windows:
        return p.windows[key]
    start, count = (p.at(v, (), None) for v in (first, number))
    length = length_of(p, size)
    count = clamped(count, 0, _most(length, step))
    room = folded(folded(clamped(count, 1, length) - 1) * abs(step))
    low = start if step > 0 else folded(start - room)
    if low.op != "const" or low.attr != 0:
        low = folded(binary("min", low, folded(length - 1 - room)))
        low = folded(binary("max", low, 0))
    p.windows[key] = (low if step > 0 else folded(low + room)), count
    return p.windows[key]


def _most(length: Any, step: int) -> Any:
    """How many elements of an axis a window has at most; a length may be a number that is computed."""
    if isinstance(length, int) or abs(step) == 1:
        return most(length, step) if isinstance(length, int) else length
    return EXPANSIONS["floor_divide"](length + (abs(step) - 1), const(abs(step), I64))


def clamped(x: Expr, low: int, high: Any) -> Expr:
    """A position between two numbers."""
    return folded(binary("min", folded(binary("max", x, low)), high))


def _bounded_slice(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    source, *ends = op.operands
    new, inside = list(index), None
    if source.tensor.size == 0:
        return p.at(source, index, mask)
    for k, (axis, step) in enumerate(zip(op.attrs["axes"], op.attrs["steps"], strict=True)):
        start, count = bounded_window(p, ends, source.shape[axis], step, k)
        if not p.is_below(index[axis], ends[len(ends) // 2 + k]):
            inside = _and(inside, folded(compare("lt", index_value(index[axis]), count)))
        n = source.shape[axis]
        # x[:k] starts where x does; a loop over a part of x is none over x.
        whole = index[axis].range()[1] == n - 1
        within = None if step == 1 and start.op == "const" and whole else n
        new[axis] = index[axis] * step + as_index(start, 0, n - 1, within)
    if inside is None or (inside.op == "const" and inside.attr):
        return p.at(source, tuple(new), mask)
    guard = inside if mask is None else inside & mask
    p.masks.append(guard)
    return select(inside, p.at(source, tuple(new), guard), const(0, source.dtype))


def _bounded_update_slice(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    base, update, *ends = op.operands
    new, inside = list(index), None
    if base.tensor.size == 0:
        return p.at(base, index, mask)
    for k, (axis, step) in enumerate(zip(op.attrs["axes"], op.attrs["steps"], strict=True)):
        start, count = bounded_window(p, ends, base.shape[axis], step, k)
        n = base.shape[axis]
        away = index[axis] - as_index(start, 0, n - 1, n)
        away = away if step > 0 else -away
        place = away // abs(step)
        inside = _and(inside, compare("ge", index_value(away), 0))
        inside = _and(inside, compare("lt", index_value(place), count))
        if abs(step) > 1:
            inside = _and(inside, compare("eq", index_value(away % abs(step)), 0))
        new[axis] = place
    if inside is None:
        return p.at(update, index, mask)
    guard = inside if mask is None else inside & mask
    p.masks.append(guard)
    return select(inside, p.at(update, tuple(new), guard), p.at(base, index, mask))


def _require(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    fine = p.at(op.operands[0], index, mask)
    args = (fine, fine) if mask is None else (fine, fine, mask)
    return Expr("demanded", args, BOOL, Demand(p.site("linalg", op.attrs["message"], op)))


def _watched(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    """The value, after telling of elements that are not as they should be."""
    value, *looked = (p.at(v, index, mask) for v in op.operands)
    fine = reduce(and_, [_is_fine(x, op.attrs["kinds"]) for x in looked])
    args = (value, fine) if mask is None else (value, fine, mask)
    return Expr("demanded", args, value.dtype, Demand())


def _is_fine(x: Expr, kinds: str) -> Expr:
    if kinds == "nan":
        return compare("eq", x, x)
    infinity = const(math.inf, x.dtype)
    return compare("ne" if kinds == "inf" else "lt", abs(x), infinity)


RULES: dict[str, Callable[[Pointwise, Op, IndexTuple, Expr | None], Expr]] = {
    "constant": _constant,
    "watched": _watched,
    "require": _require,
    "iota": _iota,
    "stop_gradient": _same,
    "checkpoint_name": _same,
    "materialize": _same,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "flip": _flip,
    "strided": _strided,
    "pad": _pad,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "bounded_slice": _bounded_slice,
    "bounded_update_slice": _bounded_update_slice,
}


def _few(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    """A reduction over few elements, written out."""
    (source,), axes = op.operands, op.attrs["axes"]
    outer = [d for d in range(len(source.shape)) if d not in axes]
    values = []
    for element in product(*(range(source.shape[d]) for d in axes)):
        at = dict(zip([*outer, *axes], [*index, *map(Index, element)], strict=True))
        values.append(p.at(source, tuple(at[d] for d in range(len(source.shape))), mask))
    return fold(op.name, values, op.result.dtype)


FEW = dict.fromkeys(FOLDS, _few)  # where a lowering chose so; see `lower_reductions`


# What moves nothing where there is one element.
_OF_ONE = (
    *("reshape", "broadcast", "transpose"),
    *("stop_gradient", "checkpoint_name", "materialize"),
)


def scalar_graph(graph: Graph, arguments: list[Expr]) -> list[Expr]:
    """A graph of 0-d values as expressions of its arguments."""
    env = dict(zip(graph.params, arguments, strict=True))
    for op in graph.ops:
        if op.name == "constant":
            value = op.attrs["value"]
            results = [const(value.reshape(-1)[0].item(), value.dtype)]
        elif op.name == "lanes_while":
            count = op.attrs["consts"]
            operands = [env[v] for v in op.operands]
            results = _scalar_loop(op, operands[:count], operands[count:])
        elif op.name in _OF_ONE:
            results = [env[op.operands[0]]]
        elif op.name == "optimization_barrier":
            results = [env[v] for v in op.operands]
        else:
            results = [EXPANSIONS[op.name](*(env[v] for v in op.operands), **op.attrs)]
        env.update(zip(op.results, results, strict=True))
    return [env[v] for v in graph.outputs]


def _scalar_loop(op: Op, consts: list[Expr], init: list[Expr]) -> list[Expr]:
    test, body = op.regions
    return loop(
        init,
        lambda *carry: scalar_graph(test, [*consts, *carry])[0],
        lambda *carry: scalar_graph(body, [*consts, *carry]),
    )
