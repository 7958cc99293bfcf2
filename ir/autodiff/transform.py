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

An op whose definition has a `forward` rule (structured ops) is replaced by its forward part, which
also gives what its backward part needs: a loop runs once, not twice. All other forward ops and
values are shared with the input graph, as far as they do not read a replaced op (both graphs are
immutable). Each op of the derivative carries the source line of the op that it belongs to.

Tapes are differentiated like floats: the derivative of a tape is a tape of the derivatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..build import Builder
from ..graph import Graph, Op, Value, derived, hand_names_on
from ..opdef import DerivativeError, GraphError
from ..types import TapeType, TensorType, Type, is_inexact
from .attention_pattern import AttentionPattern, find
from .cotangents import total
from .undo import Offers, Trail, Undoing


def is_differentiable(type: Type) -> bool:
    """Whether values of this type carry a derivative: float and complex tensors, and tapes, do."""
    if isinstance(type, TensorType):
        return is_inexact(type.dtype)
    return isinstance(type, TapeType)


def jvp_graph(graph: Graph, wrt: Sequence[int], outputs: Sequence[int] | None = None) -> Graph:
    """Forward mode.

    Takes `graph`'s parameters, then one tangent per parameter in `wrt` (float parameters, each
    once). Gives `graph`'s outputs, then one tangent per float output (or per output in `outputs`).
    """
    new = _extend(graph, "jvp")
    tangents: dict[Value, Value] = {}
    for param in _wrt_params(graph, wrt):
        tangents[param] = new.add_param(param.type, f"d_{param.name}" if param.name else "")
    chosen = [
        v
        for i, v in enumerate(graph.outputs)
        if (is_differentiable(v.type) if outputs is None else i in outputs)
    ]
    useful = _useful(graph, chosen, _varied(graph, tangents))
    b = Builder(new)
    env: dict[Value, Value] = {}
    for op in graph.ops:
        here = op.rebased(env)
        op_tangents = [tangents.get(v) for v in op.operands]
        active = any(v in useful for v in op.results)
        # All None: the path was cut by a rule: stop_gradient, floor, ...
        if not active or all(t is None for t in op_tangents):
            new.ops.append(here)
            continue
        b.loc = derived(op, "jvp") if op.definition.forward is None else op.loc
        if op.definition.forward is None:
            new.ops.append(here)
        before = len(new.ops)
        pushed = _apply(here, "jvp", "forward-mode derivative", b, here, op_tangents)
        if op.definition.forward is not None:
            results, pushed = pushed
            env.update(zip(op.results, results, strict=True))
            hand_names_on(op.results, results, new.ops[before:])
        for result, tangent in zip(op.results, pushed, strict=True):
            if tangent is not None and is_differentiable(result.type):
                _check_type(op, "jvp", tangent, result)
                tangents[result] = tangent
    b.loc = None
    new.outputs = [env.get(v, v) for v in graph.outputs]
    for output in chosen:
        new.outputs.append(tangents[output] if output in tangents else b.zeros(output.type))
    return new


def vjp_graph(graph: Graph, wrt: Sequence[int], outputs: Sequence[int] | None = None) -> Graph:
    """Reverse mode.

    Takes `graph`'s parameters, then one cotangent per float output (or per output in `outputs`; the
    others have the cotangent zero). Gives `graph`'s outputs, then one cotangent per parameter in
    `wrt` (float parameters, each once).
    """
    return vjp_undoing(graph, wrt, outputs, ())[0]


def vjp_undoing(
    graph: Graph, wrt: Sequence[int], outputs: Sequence[int] | None, trails: Sequence[Trail]
) -> tuple[Graph, Offers]:
    """Reverse mode that takes updates back (see `undo`), and what its loops take back by themselves.

    The graph takes, behind the cotangents, the arrays at the ends of `trails`, and gives, behind the
    gradients, those at their beginnings.
    """
    new = _extend(graph, "vjp")
    params = _wrt_params(graph, wrt)
    contributions: dict[Value, list[Value]] = {}
    for i, output in enumerate(graph.outputs):
        if is_differentiable(output.type) if outputs is None else i in outputs:
            seed = new.add_param(output.type, f"d_{output.name}" if output.name else "")
            contributions.setdefault(output, []).append(seed)
    undoing = Undoing(graph, new, trails)
    varied = _varied(graph, params)
    useful = _useful(graph, contributions, varied)
    b = Builder(new)
    env: dict[Value, Value] = {}
    steps: list[tuple[Op, Op, tuple[Any, ...]]] = []  # the op, as it is in `new`, what it saved
    for op in graph.ops:
        here = op.rebased(env)
        saved: tuple[Any, ...] = ()
        needed = [v in useful for v in op.results]
        if op.definition.forward is not None and (any(needed) or undoing.concerns(op)):
            b.loc = op.loc
            wanted = [v in varied for v in op.operands]
            before = len(new.ops)
            undo = undoing.asked(op)
            results, residuals = _apply(
                here, "forward", "reverse-mode derivative", b, here, wanted, needed, *undo
            )
            env.update(zip(op.results, results, strict=True))
            hand_names_on(op.results, results, new.ops[before:])
            saved = (residuals,)
            undoing.offer(op, residuals)
        else:
            undoing.keep(b, op, here)
            new.ops.append(here)
        steps.append((op, here, saved))
    undoing.begin(env)
    for op, here, saved in reversed(steps):
        active = any(v in contributions for v in op.results)
        active = active and any(v in useful for v in op.results)
        if not (active or undoing.concerns(op)):
            continue
        b.loc = derived(op, "grad")
        undoing.take_back(b, op, here)
        if not active and op.definition.forward is None:
            continue
        cotangents: list[Value | None] = []
        for v in op.results:
            own = contributions.pop(v, ()) if active else ()
            cotangents.append(total(b, own, [*contributions.values(), cotangents]))
        attention = find(op) if op.name == "dot" else None
        if attention is not None and _pull_attention(
            b, attention, cotangents[0], env, contributions
        ):
            continue
        wanted = [v in varied for v in op.operands]
        saved += undoing.after(op, [env.get(v, v) for v in op.results])
        seen = undoing.seen(here)
        parts = _apply(seen, "vjp", "reverse-mode derivative", b, seen, cotangents, wanted, *saved)
        undoing.given(op, here, parts)
        for operand, want, part in zip(op.operands, wanted, parts[: len(wanted)], strict=True):
            if want and part is not None:
                _check_type(op, "vjp", part, operand)
                contributions.setdefault(operand, []).append(part)
    new.outputs = [env.get(v, v) for v in graph.outputs]
    for param in params:
        summands = contributions.pop(param, ())
        first_use = summands[-1].op if summands else None
        b.loc = first_use.loc if first_use is not None else None
        summed = total(b, summands, contributions.values())
        new.outputs.append(b.zeros(param.type) if summed is None else summed)
    new.outputs += undoing.beginnings()
    return new, undoing.offers


def _pull_attention(
    b: Builder,
    attention: AttentionPattern,
    cotangent: Value | None,
    env: dict[Value, Value],
    contributions: dict[Value, list[Value]],
) -> bool:
    """The cotangents of what a written-out attention is made of, as those of the `attention` op.

    Not if a bias may have a derivative: its rules are those of what was written.
    """
    if cotangent is None or attention.biases:
        return False
    operands = attention.operands(b, env)
    results = b.op("attention", *operands, **attention.attrs)
    parts = b.op(
        "attention_grad", *operands[:3], *results, cotangent, *operands[3:], **attention.attrs
    )
    for part, (value, perm) in zip(parts, (attention.q, attention.k, attention.v), strict=True):
        back = tuple(sorted(range(len(perm)), key=perm.__getitem__))
        contributions.setdefault(value, []).append(b.transpose(part, perm=back))
    return True


def reach(
    graph: Graph, wrt: Iterable[int], outputs: Iterable[int]
) -> tuple[list[bool], list[bool]]:
    """Which parameters of `wrt` and which of `outputs` a path of float values connects.

    Gives one flag per parameter and one per output.
    """
    params = [graph.params[i] for i in wrt]
    varied = _varied(graph, params)
    chosen = [graph.outputs[i] for i in outputs]
    useful = _useful(graph, chosen, varied)
    ends = set(chosen)
    return [v in useful for v in graph.params], [v in ends and v in varied for v in graph.outputs]


def _extend(graph: Graph, suffix: str) -> Graph:
    """A graph with `graph`'s parameters and outputs and no ops yet."""
    new = Graph(f"{graph.name}_{suffix}")
    new.params = list(graph.params)
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
                "only float and complex values have derivatives"
            )
    return params


def _varied(graph: Graph, sources: Sequence[Value] | dict[Value, Value]) -> set[Value]:
    """The float values that depend on `sources` through float values only."""
    varied = set(sources)
    for op in graph.ops:
        if not varied.isdisjoint(op.operands) and _passes(op, varied):
            refuse = _remembering(op)
            if refuse is not None:
                _apply(refuse, "jvp", "derivative", None, refuse, ())
            varied.update(v for v in op.results if is_differentiable(v.type))
    return varied


def _remembering(op: Op) -> Op | None:
    """The op that keeps floats for later ops of its thread of effects: `op`, or one in its regions."""
    if op.definition.remembers:
        types = (v.type for v in (*op.operands, *op.results))
        return op if any(map(is_differentiable, types)) else None
    for region in op.regions:
        for inner in region.ops:
            # Most are neither: loops of derivatives of loops are asked often.
            if inner.regions or inner.definition.remembers:
                found = _remembering(inner)
                if found is not None:
                    return found
    return None


def _passes(op: Op, varied: set[Value]) -> bool:
    """Whether a derivative gets through `op` from `varied`; stop_gradient, floor, ... let none pass."""
    partials = op.definition.extra.get("partials")
    if partials is None or op.definition.extra.get("of_complex") is not None:
        return True
    pairs = zip(op.operands, partials, strict=True)
    return any(v in varied and partial is not None for v, partial in pairs)


def _useful(graph: Graph, ends: Iterable[Value], varied: set[Value]) -> set[Value]:
    """The values of `varied` that one of `ends` depends on through values of `varied` only."""
    useful = {v for v in ends if v in varied}
    for op in reversed(graph.ops):
        if any(v in useful for v in op.results):
            useful.update(v for v in op.operands if v in varied)
    return useful


def _apply(op: Op, rule: str, what: str, *arguments: Any) -> Any:
    """Call a rule of `op`'s definition; `what` names what is missing if there is none."""
    function = getattr(op.definition, rule)
    if function is None:
        raise _failure(op, f"has no {what}")
    try:
        return function(*arguments)
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
