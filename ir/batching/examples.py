"""Loops over examples: a graph of one example after the other, where that beats all of them at once.

for i in independent(size):             a step of a loop over elements, made for all examples, is a
    out[i] = f(x[i], y)                 pass over memory; for one example it stays in registers
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ..build import Builder
from ..graph import Graph, Op, Value
from ..opdef import OPS
from ..record import record
from ..types import I64, TOKEN, TensorType

MANY = 32  # examples that fill vectors, so that one loop over all of them at once pays

Shape = tuple[int, ...]


@record
class Source:
    """An array of which each example has a part: `follows` are the axes of examples that it has."""

    value: Value
    follows: Shape


def has_loops(graph: Graph) -> bool:
    """Whether a graph has loops, at any depth."""
    return any(op.name in ("while", "scan") for op in graph.walk())


def has_effects(graph: Graph) -> bool:
    """Whether a graph has a thread of effects."""
    return any(op.name == "create_token" for op in graph.ops)


def draws(graph: Graph) -> bool:
    """Whether a graph draws from generators, which go on from example to example."""
    return any(op.name == "draw" for op in graph.walk())


def runs_in_turn(graph: Graph, batched: Sequence[bool], size: int) -> bool:
    """Whether a graph has loops over elements, and one example of `size` after the other is faster: in
    nests of loops, with places that data tell, where examples part, and where there are few."""
    if not computes_and_checks(graph) or not _all_depend(graph, batched):
        return False
    loops = [op for op in graph.ops if op.name in ("while", "scan")]
    inside = [op for loop in loops for op in _within(loop)]
    touching = [op for op in inside if op.name in ("gather", "scatter")]
    if not touching or not all(map(_is_scalar, inside)):
        return False
    nested = any(op.regions and op.name in ("while", "scan") for op in inside)
    if nested or size < MANY or any(map(_is_searched, touching)):
        return True
    return _parting(graph, batched)[1]


def computes_and_checks(graph: Graph) -> bool:
    """Whether a graph has no other effects than that it may raise, and an order token of its own."""
    if any(v.type == TOKEN for v in (*graph.params, *graph.outputs)):
        return False
    return all(op.name == "assert" or not op.definition.effect for op in graph.walk())


def _all_depend(graph: Graph, batched: Sequence[bool]) -> bool:
    """Whether each output depends on what differs from example to example."""
    own = {v for v, flag in zip(graph.params, batched, strict=True) if flag}
    for op in graph.ops:
        if not own.isdisjoint(op.operands):
            own.update(op.results)
    return own.issuperset(graph.outputs)


def _within(loop: Op) -> Iterator[Op]:
    for region in loop.regions:
        yield from region.walk()


def _is_scalar(op: Op) -> bool:
    """Whether an op computes single numbers, or changes one element of an array."""
    if op.regions:
        return op.name in ("while", "scan", "cond")
    if op.name == "scatter":
        return prod(op.operands[1].tensor.shape) == 1
    return all(prod(v.tensor.shape) == 1 for v in op.results if isinstance(v.type, TensorType))


def _is_searched(op: Op) -> bool:
    """Whether the place of an access depends on elements."""
    pending, seen = [*op.operands[2 if op.name == "scatter" else 1 :]], set[Value]()
    while pending:
        value = pending.pop()
        if value in seen or value.op is None:
            continue
        seen.add(value)
        if value.op.name == "gather":
            return True
        pending += value.op.operands
    return False


def _parting(graph: Graph, flags: Sequence[bool], in_loop: bool = False) -> tuple[list[bool], bool]:
    """Which outputs of a graph differ from example to example, and whether loops in it touch other
    places for one example than for another, or take other ways: at once they are masks over all."""
    differing = {v for v, flag in zip(graph.params, flags, strict=True) if flag}
    apart = False
    for op in graph.ops:
        own = [v in differing for v in op.operands]
        out, inside = [any(own)] * len(op.results), False
        if op.name in ("while", "scan"):
            out, inside = _parting_loop(op, own)
        elif op.name == "cond":
            found = [_parting(region, own[1:], in_loop) for region in op.regions]
            out = [own[0] or any(way) for way in zip(*(out for out, _ in found), strict=True)]
            inside = any(inner for _, inner in found) or (own[0] and _gives_arrays(op))
        elif op.name == "gather":  # lanes read from one array as well
            inside = own[0] and any(own[1:])
        elif op.name == "scatter":
            inside = any(own[2:])
        apart = apart or (inside and (in_loop or op.name in ("while", "scan")))
        differing.update(v for v, flag in zip(op.results, out, strict=True) if flag)
    return [v in differing for v in graph.outputs], apart


def _parting_loop(op: Op, flags: list[bool]) -> tuple[list[bool], bool]:
    consts, *tests, body = op.attrs["consts"], *op.regions
    stop = consts + op.attrs.get("carries", len(op.results))
    while True:  # what differs after an iteration differs from the start
        out, apart = _parting(body, flags, True)
        carried = [a or b for a, b in zip(flags[consts:stop], out, strict=False)]
        grown = [*flags[:consts], *carried, *flags[stop:]]
        if grown == flags:
            break
        flags = grown
    if any(_parting(test, flags)[0][0] for test in tests):
        return [True] * len(out), True
    return out, apart


def _gives_arrays(op: Op) -> bool:
    return any(prod(v.tensor.shape) > 1 for v in op.results if isinstance(v.type, TensorType))


def by_example(graph: Graph, batched: Sequence[bool], size: int) -> Graph:
    """`graph` over `size` examples, as `batch_graph` gives it, by a loop over them: all outputs have
    the examples in front."""
    new = Graph(f"{graph.name}_batch")
    sources = []
    for param, flag in zip(graph.params, batched, strict=True):
        type = param.tensor
        whole = new.add_param(type.with_shape((size, *type.shape)) if flag else type, param.name)
        sources.append(Source(whole, (0,) if flag else ()))
    b = Builder(new)
    token = b.op("create_token") if has_effects(graph) else None
    new.outputs = over_examples(b, graph, sources, (size,), token=token)[: len(graph.outputs)]
    return new


def over_examples(
    b: Builder,
    graph: Graph,
    sources: Sequence[Source],
    shape: Shape,
    outputs: Sequence[int] = (),
    token: Value | None = None,
) -> list[Value]:
    """What `graph` gives for the parts of `sources`, for all examples of `shape`: all of it, or only
    these of its outputs. Where it has effects they go on from `token`, and the next one comes last."""
    values = [graph.outputs[k] for k in outputs] or graph.outputs
    outs = [b.zeros(v.tensor.with_shape((*shape, *v.tensor.shape))) for v in values]
    outputs = [*outputs] or [*range(len(values))]
    if token is not None:
        graph, outs = _threaded(graph), [*outs, token]
    if 0 in shape:
        return outs
    return _loop(b, graph, outputs, sources, shape, [], outs)


def _threaded(graph: Graph) -> Graph:
    """`graph` with the token that its effects go on from as last parameter, the next as last output."""
    new = Graph(graph.name)
    b = Builder(new)
    env = {v: new.add_param(v.type, v.name) for v in graph.params}
    first = last = new.add_param(TOKEN)
    for op in graph.ops:
        if op.name == "create_token":
            env[op.result] = first
        else:
            last = next((v for v in b.copy(op, env).results if v.type == TOKEN), last)
    new.outputs = [*(env[v] for v in graph.outputs), last]
    return new


def _loop(
    b: Builder,
    graph: Graph,
    outputs: Sequence[int],
    sources: Sequence[Source],
    shape: Shape,
    positions: Sequence[Value],
    outs: Sequence[Value],
) -> list[Value]:
    """A loop over the next axis of `shape`, which carries `outs`; `positions` are those before it."""
    if len(positions) == len(shape):
        return _example(b, graph, outputs, sources, positions, outs)
    body = Graph("examples")
    inner = Builder(body, b.loc)
    fixed = [s.value for s in sources]
    own = [body.add_param(v.type) for v in (*fixed, *positions)]
    count = body.add_param(TensorType((), I64))
    carried = [body.add_param(v.type) for v in outs]
    within = [Source(v, s.follows) for v, s in zip(own, sources, strict=False)]
    now = [*own[len(fixed) :], count]
    results = _loop(inner, graph, outputs, within, shape, now, carried)
    body.outputs = [inner.add(count, inner.const(1, I64)), *results]
    attrs = {
        "consts": len(own),
        "carries": 1 + len(outs),
        "length": shape[len(positions)],
        "reverse": False,
        "independent": not draws(graph),
    }
    operands = [*fixed, *positions, b.const(0, I64), *outs]
    return list(b.append(OPS["scan"], operands, attrs, [body]).results[1:])


def _example(
    b: Builder,
    graph: Graph,
    outputs: Sequence[int],
    sources: Sequence[Source],
    positions: Sequence[Value],
    outs: Sequence[Value],
) -> list[Value]:
    parts = [_part(b, s.value, [positions[d] for d in s.follows]) for s in sources]
    tokens = outs[len(outputs) :]
    made = b.inline(graph, [*parts, *tokens])
    every = tuple(range(len(positions)))
    results = []
    for out, k in zip(outs, outputs, strict=False):
        results.append(b.scatter(out, made[k], *positions, axes=every, mode="clip", combine="set"))
    return [*results, *made[len(made) - len(tokens) :]]


def _part(b: Builder, x: Value, positions: Sequence[Value]) -> Value:
    if not positions:
        return x
    part: Value = b.gather(x, *positions, axes=tuple(range(len(positions))), mode="clip")
    return part
