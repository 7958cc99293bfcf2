"""Derivatives of graphs: `jvp_graph` (forward mode) and `vjp_graph` (reverse mode).

Both are graph to graph, and drive the `jvp` and `vjp` rules of the op definitions:

    graph f(%x: f32[8]) -> f32[8]          vjp_graph(f, [0]):
      %y = sin %x                    ->    graph f_vjp(%x: f32[8], %d_y: f32[8]) -> f32[8], f32[8]
      return %y                              %y = sin %x
                                             %0 = cos %x
                                             %1 = mul %d_y, %0
                                             return %y, %1

Only *active* ops are differentiated: those on a path of float values from a `wrt` parameter to a
float output. Integers and bools carry no derivative, so a path through them is cut. `None` stands
for a zero derivative all the way, and becomes an array only where an output needs one. What comes
out is a plain graph, so derivatives of derivatives need nothing more.

The forward ops and values are shared with the input graph (both are immutable); each op of the
derivative carries the source line of the op that it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence

from .build import Builder
from .graph import Graph, Op, Value
from .opdef import DerivativeError, GraphError
from .types import TensorType, Type, is_float


def is_differentiable(type: Type) -> bool:
    """Whether values of this type carry a derivative: float tensors do, nothing else."""
    return isinstance(type, TensorType) and is_float(type.dtype)


def jvp_graph(graph: Graph, wrt: Sequence[int]) -> Graph:
    """Forward mode.

    Takes `graph`'s parameters, then one tangent per parameter in `wrt` (float parameters, each
    once). Gives `graph`'s outputs, then one tangent per float output.
    """
    new = _extend(graph, "jvp")
    tangents: dict[Value, Value] = {}
    for param in _wrt_params(graph, wrt):
        tangents[param] = new.add_param(param.type, f"d_{param.name}" if param.name else "")
    active = _active_ops(graph, tangents)
    b = Builder(new)
    for op in graph.ops:
        new.ops.append(op)
        if op not in active:
            continue
        b.loc = op.loc
        for result, tangent in zip(op.results, _apply_jvp(b, op, tangents), strict=True):
            if tangent is not None and is_differentiable(result.type):
                _check_type(op, "jvp", tangent, result)
                tangents[result] = tangent
    b.loc = None
    for output in graph.outputs:
        if is_differentiable(output.type):
            new.outputs.append(tangents[output] if output in tangents else b.zeros(output.tensor))
    return new


def vjp_graph(graph: Graph, wrt: Sequence[int]) -> Graph:
    """Reverse mode.

    Takes `graph`'s parameters, then one cotangent per float output. Gives `graph`'s outputs, then
    one cotangent per parameter in `wrt` (float parameters, each once).
    """
    new = _extend(graph, "vjp")
    new.ops = list(graph.ops)
    params = _wrt_params(graph, wrt)
    contributions: dict[Value, list[Value]] = {}
    for output in graph.outputs:
        if is_differentiable(output.type):
            seed = new.add_param(output.type, f"d_{output.name}" if output.name else "")
            contributions.setdefault(output, []).append(seed)
    varied = _varied(graph, params)
    b = Builder(new)
    for op in reversed(graph.ops):
        if not any(v in contributions for v in op.results):
            continue
        if not any(v in varied for v in op.results):
            continue
        b.loc = op.loc
        cotangents = [_total(b, contributions.pop(v, ())) for v in op.results]
        wanted = [v in varied for v in op.operands]
        parts = _apply_vjp(b, op, cotangents, wanted)
        for operand, want, part in zip(op.operands, wanted, parts, strict=True):
            if want and part is not None:
                _check_type(op, "vjp", part, operand)
                contributions.setdefault(operand, []).append(part)
    for param in params:
        found = contributions.get(param, ())
        first_use = found[-1].op if found else None
        b.loc = first_use.loc if first_use is not None else None
        total = _total(b, found)
        new.outputs.append(b.zeros(param.tensor) if total is None else total)
    return new


def _extend(graph: Graph, suffix: str) -> Graph:
    """A graph with `graph`'s parameters and outputs and no ops yet."""
    new = Graph(f"{graph.name}_{suffix}")
    new.params = list(graph.params)
    new.outputs = list(graph.outputs)
    return new


def _wrt_params(graph: Graph, wrt: Sequence[int]) -> list[Value]:
    params = [graph.params[i] for i in wrt]
    if len(set(params)) != len(params):
        raise GraphError(f"wrt names a parameter twice: {list(wrt)}")
    for param in params:
        if not is_differentiable(param.type):
            name = param.name or f"number {param.index}"
            raise DerivativeError(
                f"cannot differentiate with respect to parameter {name} of type {param.type}; "
                "only float32 and float64 values have derivatives"
            )
    return params


def _varied(graph: Graph, sources: Sequence[Value] | dict[Value, Value]) -> set[Value]:
    """The float values that depend on `sources` through float values only."""
    varied = set(sources)
    for op in graph.ops:
        if any(v in varied for v in op.operands):
            varied.update(v for v in op.results if is_differentiable(v.type))
    return varied


def _active_ops(graph: Graph, sources: Sequence[Value] | dict[Value, Value]) -> set[Op]:
    """The ops on a path of float values from `sources` to a float output."""
    varied = _varied(graph, sources)
    useful = {v for v in graph.outputs if v in varied}
    active = set()
    for op in reversed(graph.ops):
        if any(v in useful for v in op.results):
            active.add(op)
            useful.update(v for v in op.operands if v in varied)
    return active


def _total(b: Builder, contributions: Sequence[Value]) -> Value | None:
    """The sum of all contributions to one cotangent, None if there are none."""
    if not contributions:
        return None
    total = contributions[0]
    for part in contributions[1:]:
        total = b.add(total, part)
    return total


def _apply_jvp(b: Builder, op: Op, tangents: dict[Value, Value]) -> Sequence[Value | None]:
    given = [tangents.get(v) for v in op.operands]
    if all(t is None for t in given):  # the path was cut by a rule: stop_gradient, floor, ...
        return [None] * len(op.results)
    if op.definition.jvp is None:
        raise _failure(op, "has no forward-mode derivative")
    try:
        return op.definition.jvp(b, op, given)
    except DerivativeError as error:
        raise _failure(op, error) from None


def _apply_vjp(
    b: Builder, op: Op, cotangents: list[Value | None], wanted: list[bool]
) -> Sequence[Value | None]:
    if op.definition.vjp is None:
        raise _failure(op, "has no reverse-mode derivative")
    try:
        return op.definition.vjp(b, op, cotangents, wanted)
    except DerivativeError as error:
        raise _failure(op, error) from None


def _failure(op: Op, reason: str | DerivativeError) -> DerivativeError:
    line = f"{op.loc}: " if op.loc else ""
    operands = ", ".join(str(v.type) for v in op.operands)
    error = DerivativeError(f"{line}{op.name}({operands}): {reason}")
    error.op = getattr(reason, "op", None) or op  # the innermost one
    return error


def _check_type(op: Op, rule: str, derivative: Value, primal: Value) -> None:
    if derivative.type != primal.type:
        raise GraphError(
            f"the {rule} rule of {op.name} gave {derivative.type} for a value of type {primal.type}"
            f"{f' (at {op.loc})' if op.loc else ''}; this is a bug in jitney, please report it"
        )
