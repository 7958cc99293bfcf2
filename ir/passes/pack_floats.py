"""Floats of 16 and 8 bits become their bits, so that nothing after this pass knows such dtypes.

    graph f(%x: f16[8]) -> f16[8] {        graph f(%x: u16[8]) -> u16[8] {
      %y = exp %x : f16[8]           ->      %0 = widen %x dtype=f16 : f32[8]
      return %y                              %1 = exp %0 : f32[8]
    }                                        %y = narrow %1 dtype=f16 : u16[8]
                                             return %y
                                           }

What only moves elements moves their bits. All other ops compute in float32, and round each result once:
that is what NumPy's loops over float16 do, and those of ml_dtypes. Sums and products of matrices are one
op each, so they are summed in float32. Like `split_complex`, which runs before it, this pass changes a
graph's signature: compiled code takes and gives the memory of the arrays as unsigned integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..build import Builder
from ..graph import Graph, Op, Value
from ..ops.control.callbacks import PythonFunction
from ..record import record
from ..types import F16, F32, F64, I64, TensorType, Type, bits_dtype, dtype_name, is_small
from .attention import recognise_attention
from .dead import eliminate_dead_code
from .inline_calls import inline_calls

Values = list[Value]


def pack_floats(graph: Graph) -> Graph:
    """`graph` without floats of 16 and 8 bits; itself if there are none."""
    if not any(map(_is_small, graph.all_values())):
        return graph
    graph = eliminate_dead_code(inline_calls(graph))
    return _packed(recognise_attention(graph))  # whose intermediate results are not rounded


def _is_small(value: Value) -> bool:
    return isinstance(value.type, TensorType) and is_small(value.type.dtype)


def _stored(type: Type) -> Any:
    """What stands for values of `type`."""
    if not isinstance(type, TensorType) or not is_small(type.dtype):
        return type
    return type.with_dtype(bits_dtype(type.dtype))


def _packed(graph: Graph) -> Graph:
    b = Builder(Graph(graph.name))
    env = {v: b.graph.add_param(_stored(v.type), v.name) for v in graph.params}
    for op in graph.ops:
        with b.at(op.loc):
            results = _replaced(b, op, [env[v] for v in op.operands])
        for old, new in zip(op.results, results, strict=True):
            new.name = new.name or old.name
            env[old] = new
    b.graph.outputs = [env[v] for v in graph.outputs]
    return b.graph


def _replaced(b: Builder, op: Op, operands: Values) -> Sequence[Value]:
    rule = _RULES.get(op.name)
    if op.regions:
        return b.append(op.definition, operands, op.attrs, [_packed(r) for r in op.regions]).results
    if not any(map(_is_small, (*op.operands, *op.results))) and op.name not in _TYPED:
        return b.append(op.definition, operands, op.attrs).results
    if rule is not None:
        return rule(b, op, operands)
    if op.definition.only_moves(op.attrs):
        return b.append(op.definition, operands, op.attrs).results
    wide = [
        widened(b, new, old) if _is_small(old) else new
        for new, old in zip(operands, op.operands, strict=True)
    ]
    results = b.append(op.definition, wide, op.attrs).results
    return [
        b.narrow(new, dtype=old.dtype) if _is_small(old) else new
        for new, old in zip(results, op.results, strict=True)
    ]


def widened(b: Builder, bits: Value, old: Value) -> Value:
    """The float32 values of what `bits` stands for."""
    made: Value = b.widen(bits, dtype=old.dtype)
    return made


Rule = Callable[[Builder, Op, Values], Sequence[Value]]
R = TypeVar("R", bound=Rule)
_RULES: dict[str, Rule] = {}
_TYPED = frozenset(("tape_pop", "pure_callback", "io_callback"))  # types stand in attributes


def _rule(*names: str) -> Callable[[R], R]:
    def enter(rule: R) -> R:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return enter


@_rule("constant")
def _constant(b: Builder, op: Op, operands: Values) -> Values:
    return [b.const(_as_bits(op.attrs["value"]))]


@_rule("iota")
def _iota(b: Builder, op: Op, operands: Values) -> Values:
    dtype = op.result.dtype
    return [b.narrow(b.iota(**{**op.attrs, "dtype": F32}), dtype=dtype)]


@_rule("convert")
def _convert(b: Builder, op: Op, operands: Values) -> Values:
    (value,), (source,), to = operands, op.operands, op.result.dtype
    if source.dtype == to:
        return [value]
    if _is_small(source):
        value = widened(b, value, source)
        if to.kind in "iu":
            return [_to_integer(b, value, source.dtype, to)]
    exact = value.dtype == F64 and to == F16  # NumPy rounds that once; ml_dtypes rounds to float32
    part = value.dtype if exact else F32 if is_small(to) else to
    if value.dtype != part:
        value = b.convert(value, dtype=part)
    return [b.narrow(value, dtype=to) if is_small(to) else value]


def _to_integer(b: Builder, x: Value, small: np.dtype[Any], to: np.dtype[Any]) -> Value:
    """What numbers beyond all integers, and NaN, become: of halves, which NumPy takes through int64 to
    uint32, what C gives; floats of 8 bits saturate, and their NaN is 0, as in ml_dtypes."""
    if small.itemsize == 2:
        if small == F16 and to == np.uint32:
            x = b.convert(x, dtype=I64)
        return b.convert(x, dtype=to)
    integer = b.convert(b.select(b.ne(x, x), b.full_like(x, 0), x), dtype=to)
    for beyond, limit in ((np.inf, np.iinfo(to).max), (-np.inf, np.iinfo(to).min)):
        integer = b.select(b.eq(x, b.full_like(x, beyond)), b.full(x.shape, limit, to), integer)
    return integer


@_rule("bitcast")
def _bitcast(b: Builder, op: Op, operands: Values) -> Values:
    (value,), to = operands, _stored(op.result.type).dtype
    return [value if value.dtype == to else b.bitcast(value, dtype=to)]


@_rule("nextafter")
def _nextafter(b: Builder, op: Op, operands: Values) -> Values:
    """One step in the order of the bits, which is that of the magnitudes."""
    (x, y), (old, _) = operands, op.operands
    dtype = old.dtype
    wide, goal = widened(b, x, old), widened(b, y, old)
    with np.errstate(all="ignore"):
        sign = int(_as_bits(np.array(-0.0).astype(dtype)).item())  # 0 where there is no -0
    smallest = np.array(1, x.dtype)
    zero = b.full_like(wide, 0)
    mask = b.full_like(x, 1 << (8 * dtype.itemsize - 1))
    away = b.ne(b.gt(goal, wide), b.lt(wide, zero))
    one = b.full_like(x, 1)
    stepped = b.select(away, b.add(x, one), b.sub(x, one))
    if not sign:  # below the smallest negative number lies 0, whose bits are not -0's
        stepped = b.select(b.eq(stepped, mask), b.full_like(x, 0), stepped)
    tiny = b.select(b.lt(goal, zero), b.bitwise_or(mask, one), b.full_like(x, smallest))
    moved = b.select(b.eq(wide, zero), tiny, stepped)
    moved = b.select(b.eq(wide, goal), y, moved)
    lost = b.bitwise_or(b.isnan(wide), b.isnan(goal))
    return [b.select(lost, b.narrow(b.add(wide, goal), dtype=dtype), moved)]


@_rule("tape_pop")
def _tape_pop(b: Builder, op: Op, operands: Values) -> Sequence[Value]:
    types = tuple(_stored(t) for t in op.attrs["types"])
    return b.append(op.definition, operands, {"types": types}).results


@_rule("recurse")
def _recurse(b: Builder, op: Op, operands: Values) -> Sequence[Value]:
    count = len(op.attrs["dtypes"])
    dtypes = tuple(dtype_name(_stored(v.tensor).dtype) for v in op.results[:count])
    return b.append(op.definition, operands, {**op.attrs, "dtypes": dtypes}).results


@record
class _OnBits:
    """A Python function of arrays with these dtypes (None: as they come), called with their bits."""

    function: PythonFunction
    dtypes: tuple[np.dtype[Any] | None, ...]

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        pairs = zip(arrays, self.dtypes, strict=True)
        outputs = self.function(*(a if d is None else a.view(d) for a, d in pairs))
        return tuple(_as_bits(a) if is_small(a.dtype) else a for a in outputs)


@_rule("pure_callback", "io_callback")
def _callback(b: Builder, op: Op, operands: Values) -> Sequence[Value]:
    function: PythonFunction = op.attrs["function"]
    tensors = [v for v in op.operands if isinstance(v.type, TensorType)]
    dtypes = tuple(v.dtype if _is_small(v) else None for v in tensors)
    results = tuple(_stored(t) for t in function.results)
    if results != function.results or any(dtypes):
        on_bits = _OnBits(function, dtypes)
        function = PythonFunction(on_bits, results, function.name, function.each, function.raises)
    return b.append(op.definition, operands, {"function": function}).results


@_rule("receive")
def _receive(b: Builder, op: Op, operands: Values) -> Sequence[Value]:
    stored = dtype_name(_stored(op.results[0].type).dtype)
    return b.append(op.definition, operands, {**op.attrs, "dtype": stored}).results


def _as_bits(array: Any) -> np.ndarray[Any, Any]:
    bits: np.ndarray[Any, Any] = np.asarray(array)
    return bits.view(bits_dtype(bits.dtype))
