"""Complex values become pairs of real ones, so that nothing after this pass knows complex numbers.

    graph f(%z: c64[8]) -> c64[8] {        graph f(%z_re: f32[8], %z_im: f32[8])
      %y = conj %z : c64[8]           ->       -> f32[8], f32[8] {
      return %y                              %y_im = neg %z_im : f32[8]
    }                                        return %z_re, %y_im
                                           }

Among parameters and outputs, in what regions take and give and in records of tapes, a complex value
is its real part followed by its imaginary part. Most ops do the same to both parts; functions are
the formulas of `ir.passes.complex_math`. This is the one pass that changes a graph's signature: compiled
code takes a complex array as two views of its memory.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..build import Builder
from ..graph import Graph, Op, Value
from ..ops.collectives.records import COLLECTIVES
from ..ops.control.callbacks import PythonFunction
from ..ops.folds.reductions import multiply_tree
from ..ops.folds.scans import doubling_products
from ..ops.folds.window_reductions import multiply_taps
from ..ops.libraries.library import LIBRARY_CALL, loop_of
from ..ops.movement.indexing import take_along
from ..ops.term import Term
from ..record import record
from ..types import I64, TensorType, Type, complex_dtype, dtype_name, is_complex, real_dtype
from .complex_math import FUNCTIONS, Z, integer_power
from .complex_order import extremum_index, sorted_order
from .inline_calls import inline_calls
from .rules.rewrite import uniform

Pair = tuple[Value, Value]
Parts = Value | Pair  # what stands for a value


def split_complex(graph: Graph) -> Graph:
    """`graph` without complex values; itself if there are none."""
    if not any(map(_is_complex, graph.all_values())):
        return graph
    return _split(inline_calls(graph))


def split_types(types: Sequence[Type]) -> list[Type]:
    """What stands for values of `types`."""
    return [part for type in types for part in _parts_of(type)]


def _parts_of(type: Type) -> list[Type]:
    if not isinstance(type, TensorType) or not is_complex(type.dtype):
        return [type]
    return [type.with_dtype(real_dtype(type.dtype))] * 2


def _is_complex(value: Value) -> bool:
    return isinstance(value.type, TensorType) and is_complex(value.type.dtype)


def _split(graph: Graph) -> Graph:
    new = Graph(graph.name)
    splitter = Splitter(Builder(new))
    arguments: list[Parts] = []
    for v in graph.params:
        params = [new.add_param(t, v.name) for t in _parts_of(v.type)]
        if len(params) == 2 and v.name:
            params[0].name, params[1].name = f"{v.name}_re", f"{v.name}_im"
        arguments.append(_joined(params))
    new.outputs = _flat(splitter.walk(graph, arguments))
    return new


def _joined(values: Sequence[Value]) -> Parts:
    return values[0] if len(values) == 1 else (values[0], values[1])


def _flat(values: Sequence[Parts]) -> list[Value]:
    return [v for parts in values for v in (parts if isinstance(parts, tuple) else (parts,))]


def _regrouped(values: Sequence[Value], types: Sequence[Type]) -> list[Parts]:
    """The values that stand for results of `types`, in pairs again."""
    remaining = iter(values)
    return [_joined([next(remaining) for _ in _parts_of(t)]) for t in types]


class Splitter:
    """Appends what stands for the ops of a graph to `b`'s graph."""

    def __init__(self, b: Builder) -> None:
        self.b = b

    def walk(self, graph: Graph, arguments: Sequence[Parts]) -> list[Parts]:
        """Append all of `graph`; what stands for its outputs."""
        env: dict[Value, Parts] = dict(zip(graph.params, arguments, strict=True))
        for op in graph.ops:
            operands = [env[v] for v in op.operands]
            with self.b.at(op.loc):
                results = self._one(op, operands)
            for old, new in zip(op.results, results, strict=True):
                if isinstance(new, Value):
                    new.name = new.name or old.name
                env[old] = new
        return [env[v] for v in graph.outputs]

    def _one(self, op: Op, operands: list[Parts]) -> Sequence[Parts]:
        rule = _RULES.get(op.name) or (_library if op.definition.family == "library" else None)
        touched = any(map(_is_complex, (*op.operands, *op.results)))
        if op.regions or (rule is not None and touched):
            parts = (rule or _structured)(self, op, operands)
            return parts if isinstance(parts, list) else [parts]
        if touched and op.name in FUNCTIONS:
            return [self._function(op, operands)]
        if touched:
            linear = op.definition.family == "linear"
            assert linear or op.name in _BOTH, f"{op.name} of complex numbers"
            return [self.both(op, operands)]
        values = [v for v in operands if isinstance(v, Value)]
        return list(self.b.append(op.definition, values, op.attrs).results)

    def _function(self, op: Op, operands: Sequence[Parts]) -> Parts:
        arguments = [Z(*self.terms(v)) for v in operands if isinstance(v, tuple)]
        if op.name == "pow":
            n = uniform(op.operands[1])
            if n is not None and n.imag == 0 and abs(n.real) < 100 and n.real == int(n.real):
                return _values(integer_power(arguments[0], int(n.real)))
        return _values(FUNCTIONS[op.name](*arguments))

    def terms(self, pair: Pair) -> tuple[Term, Term]:
        return Term(self.b, pair[0]), Term(self.b, pair[1])

    def both(self, op: Op, operands: Sequence[Parts]) -> Pair:
        """The op on the real parts, and on the imaginary parts."""

        def part(k: int) -> Value:
            values = [v[k] if isinstance(v, tuple) else v for v in operands]
            made: Value = self.b.op(op.name, *values, **op.attrs)
            return made

        return part(0), part(1)

    def composed(self, op: Op, operands: Sequence[Parts], build: Callable[..., Value]) -> Parts:
        """What `build(b, *operands, **attrs)` makes of simpler complex ops."""
        graph = Graph(op.name)
        params = [graph.add_param(v.type) for v in op.operands]
        graph.outputs = [build(Builder(graph, op.loc), *params, **op.attrs)]
        return self.walk(graph, operands)[0]


def _values(result: Z | Term) -> Parts:
    return result.value if isinstance(result, Term) else (result.re.value, result.im.value)


# Ops that do the same to both parts, beside the linear ones; other operands (indices, conditions) stay
# as they are.
_BOTH = ("add", "sub", "neg", "rint", "select", "stop_gradient", "scatter")

Rule = Callable[[Splitter, Op, list[Parts]], Any]
F = TypeVar("F", bound=Rule)
_RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[F], F]:
    def enter(rule: F) -> F:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return enter


# Sources and conversions


@_rule("constant")
def _constant(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    value = op.attrs["value"]
    return s.b.const(value.real), s.b.const(value.imag)


@_rule("iota")
def _iota(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    re = s.b.iota(**{**op.attrs, "dtype": real_dtype(op.result.dtype)})
    return re, s.b.full_like(re, 0)


@_rule("convert")
def _convert(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    (source,) = operands
    to = op.result.dtype
    part = real_dtype(to)

    def converted(v: Value) -> Value:
        made: Value = v if v.dtype == part else s.b.convert(v, dtype=part)
        return made

    if not isinstance(source, tuple):
        re = converted(source)
        return re, s.b.full_like(re, 0)
    re, im = source
    if is_complex(to):
        return converted(re), converted(im)
    if to.kind == "b":
        truths = (s.b.ne(v, s.b.full_like(v, 0)) for v in source)
        made: Value = s.b.bitwise_or(*truths)
        return made
    if to == np.uint32:  # NumPy's loop goes through int64, which shows beyond its range
        re = s.b.convert(re, dtype=I64)
    return converted(re)


@_rule("complex")
def _complex(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    part = real_dtype(op.result.dtype)
    parts = [v if v.dtype == part else s.b.convert(v, dtype=part) for v in _flat(operands)]
    return _joined(parts)


# Products and contractions


@_rule("prod")
def _prod(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    return s.composed(op, operands, multiply_tree)


@_rule("cumprod")
def _cumprod(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    return s.composed(op, operands, doubling_products)


@_rule("window_prod")
def _window_prod(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    if 0 in op.result.shape:
        empty = s.b.zeros(op.result.tensor.with_dtype(real_dtype(op.result.dtype)))
        return empty, empty
    return s.composed(op, operands, multiply_taps)


@_rule("dot", "conv")
def _bilinear(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    (a, b), (c, d) = operands  # type: ignore[misc]

    def product(x: Value, y: Value) -> Value:
        made: Value = s.b.op(op.name, x, y, **op.attrs)
        return made

    return s.b.sub(product(a, c), product(b, d)), s.b.add(product(a, d), product(b, c))


def _library(s: Splitter, op: Op, operands: list[Parts]) -> list[Parts]:
    """Its loop reads and writes complex numbers as they lie in memory, part by part."""
    pairs = tuple(map(_is_complex, (*op.operands, *op.results)))
    results = tuple(
        v.tensor.with_shape((*v.shape, 2)).with_dtype(real_dtype(v.dtype))
        if _is_complex(v)
        else v.tensor
        for v in op.results
    )
    attrs = {"loop": loop_of(op), "pairs": pairs, "results": results}
    new = s.b.append(LIBRARY_CALL, _flat(operands), attrs)
    return [
        _unstacked(s.b, made) if _is_complex(v) else made
        for v, made in zip(op.results, new.results, strict=True)
    ]


def _unstacked(b: Builder, v: Value) -> Pair:
    *shape, _ = v.shape
    zeros, ones = (0,) * len(shape), (1,) * (len(shape) + 1)
    parts = [b.slice(v, start=(*zeros, k), stop=(*shape, k + 1), step=ones) for k in (0, 1)]
    re, im = (b.reshape(p, shape=tuple(shape)) for p in parts)
    return re, im


# What goes by the order of complex numbers


@_rule("argmax", "argmin")
def _argextremum(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    (pair,) = operands
    assert isinstance(pair, tuple)
    return extremum_index(s.b, pair, op.attrs["axis"], op.name == "argmax")


@_rule("max", "min")
def _extremum(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    (pair,) = operands
    assert isinstance(pair, tuple)
    axes, shape = op.attrs["axes"], op.operands[0].shape
    outer_axes = tuple(d for d in range(len(shape)) if d not in axes)
    outer, n = op.result.tensor.size, int(np.prod([shape[d] for d in axes], dtype=int))
    if not axes or outer == 0:
        return tuple(s.b.reshape(v, shape=op.result.shape) for v in pair)
    re, im = (
        s.b.reshape(s.b.transpose(v, perm=(*outer_axes, *axes)), shape=(outer, n)) for v in pair
    )
    index = extremum_index(s.b, (re, im), 1, op.name == "max")
    row = s.b.iota(shape=(outer,), dtype=I64, axis=0)
    elements = (s.b.gather(v, row, index, axes=(0, 1), mode="clip") for v in (re, im))
    return tuple(s.b.reshape(v, shape=op.result.shape) for v in elements)


@_rule("argsort", "sort")
def _sort(s: Splitter, op: Op, operands: list[Parts]) -> Parts:
    (pair,) = operands
    assert isinstance(pair, tuple)
    axis = op.attrs["axis"]
    if 0 in op.result.shape:
        return s.b.zeros(op.result.type) if op.name == "argsort" else pair
    order = sorted_order(s.b, pair, axis)
    if op.name == "argsort":
        return order
    return take_along(s.b, pair[0], order, axis), take_along(s.b, pair[1], order, axis)


# Structured ops, tapes, effects: a pair counts as two values.


def _count(values: Sequence[Value]) -> int:
    return len(split_types([v.type for v in values]))


def _structured(s: Splitter, op: Op, operands: list[Parts]) -> list[Parts]:
    attrs = dict(op.attrs)
    first = attrs.get("consts", 0)
    if "consts" in attrs:
        attrs["consts"] = _count(op.operands[:first])
    if "carries" in attrs:
        attrs["carries"] = _count(op.operands[first : first + op.attrs["carries"]])
    if "states" in attrs:
        attrs["states"] = _count(_states(op))
    regions = [_split(region) for region in op.regions]
    new = s.b.append(op.definition, _flat(operands), attrs, regions)
    return _regrouped(new.results, [v.type for v in op.results])


_rule("optimization_barrier", "tape_push")(_structured)


def _states(op: Op) -> Sequence[Value]:
    """What the calls of a function by itself change: the last of the operands before a token."""
    operands = [v for v in op.operands if isinstance(v.type, TensorType)]
    return operands[len(operands) - op.attrs["states"] :]


@_rule("recurse")
def _recurse(s: Splitter, op: Op, operands: list[Parts]) -> list[Parts]:
    count = len(op.attrs["dtypes"])
    types = [
        t for t in split_types([v.type for v in op.results[:count]]) if isinstance(t, TensorType)
    ]
    attrs = {
        "label": op.attrs["label"],
        "dtypes": tuple(dtype_name(t.dtype) for t in types),
        "shapes": tuple(t.shape for t in types),
        "states": _count(_states(op)),
    }
    new = s.b.append(op.definition, _flat(operands), attrs)
    return _regrouped(new.results, [v.type for v in op.results])


@_rule("tape_pop")
def _tape_pop(s: Splitter, op: Op, operands: list[Parts]) -> list[Parts]:
    types = tuple(split_types(op.attrs["types"]))
    new = s.b.append(op.definition, _flat(operands), {"types": types})
    return _regrouped(new.results, [v.type for v in op.results])


@_rule("assert")
def _assert(s: Splitter, op: Op, operands: list[Parts]) -> list[Parts]:
    message = (
        _message(op.attrs["message"], operands[1:-1]) if operands[1:-1] else op.attrs["message"]
    )
    attrs = {**op.attrs, "message": message}
    return list(s.b.append(op.definition, _flat(operands), attrs).results)


def _message(text: str, values: Sequence[Parts]) -> str:
    """The format string with two numbers instead of a complex one."""
    starts = np.cumsum([0, *(2 if isinstance(v, tuple) else 1 for v in values)]).tolist()
    out, automatic = "", 0
    for literal, field, spec, conversion in string.Formatter().parse(text):
        out += literal.replace("{", "{{").replace("}", "}}")
        if field is None:
            continue
        number = int(field) if field else automatic
        automatic += 1
        end = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
        if isinstance(values[number], tuple):
            out += f"({{{starts[number]}{end}}}{{{starts[number] + 1}:+}}j)"
        else:
            out += f"{{{starts[number]}{end}}}"
    return out


@record
class _OnParts:
    """A Python function that takes and gives complex arrays as their parts."""

    function: PythonFunction
    operands: tuple[bool, ...]  # which of its operands are complex

    def __call__(self, *parts: Any) -> tuple[Any, ...]:
        remaining = iter(parts)
        results = self.function(
            *(
                _join(next(remaining), next(remaining)) if c else next(remaining)
                for c in self.operands
            )
        )
        return tuple(
            p for a in results for p in ((a.real, a.imag) if a.dtype.kind == "c" else (a,))
        )


def _join(re: Any, im: Any) -> Any:
    out = np.empty(re.shape, complex_dtype(re.dtype))
    out.real, out.imag = re, im
    return out


@_rule("pure_callback", "io_callback")
def _callback(s: Splitter, op: Op, operands: list[Parts]) -> list[Parts]:
    function: PythonFunction = op.attrs["function"]
    flags = tuple(isinstance(v, tuple) for v in operands if not _is_token(v))
    results = tuple(t for t in split_types(function.results) if isinstance(t, TensorType))
    wrapped = PythonFunction(
        _OnParts(function, flags), results, function.name, function.each, function.raises
    )
    new = s.b.append(op.definition, _flat(operands), {"function": wrapped})
    return _regrouped(new.results, [v.type for v in op.results])


@_rule(*(record.name for record in COLLECTIVES.values()))
def _collective(s: Splitter, op: Op, operands: list[Parts]) -> list[Parts]:
    """The parts, one after the other, in order."""
    pair, token = operands
    assert isinstance(pair, tuple) and isinstance(token, Value)
    assert op.attrs.get("kind", "sum") == "sum", "complex numbers have no order"
    re, token = s.b.append(op.definition, [pair[0], token], op.attrs).results
    im, token = s.b.append(op.definition, [pair[1], token], op.attrs).results
    return [(re, im), token]


@_rule("send")
def _send(s: Splitter, op: Op, operands: list[Parts]) -> list[Parts]:
    pair, token = operands
    assert isinstance(pair, tuple) and isinstance(token, Value)
    for part in pair:
        token = s.b.append(op.definition, [part, token], op.attrs).result
    return [token]


@_rule("receive")
def _receive(s: Splitter, op: Op, operands: list[Parts]) -> list[Parts]:
    attrs = {**op.attrs, "dtype": dtype_name(real_dtype(op.results[0].tensor.dtype))}
    re, token = s.b.append(op.definition, _flat(operands), attrs).results
    im, token = s.b.append(op.definition, [token], attrs).results
    return [(re, im), token]


def _is_token(v: Parts) -> bool:
    return isinstance(v, Value) and not isinstance(v.type, TensorType)
