"""Attention that is written out becomes the op that keeps no matrix of scores."""

from __future__ import annotations

from ..attention_pattern import Attention, find, is_causal_bias
from ..build import Builder
from ..graph import Graph, Op, Value
from .dead import eliminate_dead_code
from .regions import map_regions

PLAIN = {"attention": 3, "attention_grad": 6}  # operands besides the bias


def recognise_attention(graph: Graph) -> Graph:
    """Replace what `attention_pattern.find` finds, where nothing else reads what is in between.

    before: s = dot(q, k); e = exp(s - max(s)); y = dot(e / sum(e), v)
    after:  y, _ = attention(q, k, v)

    A bias that only hides what comes later becomes `causal`.
    """
    graph = map_regions(graph, recognise_attention)
    names = {op.name for op in graph.ops}
    if "attention" in names:
        graph = _with_causal(graph)
    return _recognised(graph) if "exp" in names else graph


VIEWS = frozenset(("broadcast", "flip", "reshape", "slice", "transpose"))


def widen_last(graph: Graph) -> Graph:
    """Operands of attention are widened after their views, for kernels that read the bits themselves.

    before: %w = widen %x dtype=f16;  %k = transpose %w;  ... attention %q %k %v
    after:  %t = transpose %x;  %k = widen %t dtype=f16;  ... attention %q %k %v
    """
    graph = map_regions(graph, widen_last)
    if not any(op.name in PLAIN for op in graph.ops):
        return graph
    new = Graph(graph.name)
    new.params = list(graph.params)
    b = Builder(new)
    env: dict[Value, Value] = {}
    for op in graph.ops:
        operands = [env.get(v, v) for v in op.operands]
        if op.name in PLAIN:
            with b.at(op.loc):
                operands = [_widened_last(b, v) for v in operands]
        if all(x is y for x, y in zip(operands, op.operands, strict=True)):
            new.ops.append(op)
            continue
        copy = op.with_operands(operands)
        env.update(zip(op.results, copy.results, strict=True))
        new.ops.append(copy)
    new.outputs = [env.get(v, v) for v in graph.outputs]
    return eliminate_dead_code(new) if env else graph


def _widened_last(b: Builder, value: Value) -> Value:
    views, source = [], value.op
    while source is not None and source.name in VIEWS:
        views.append(source)
        source = source.operands[0].op
    if source is None or source.name != "widen" or not views:
        return value
    bits = source.operands[0]
    for view in reversed(views):
        bits = b.append(view.definition, [bits], view.attrs).results[0]
    return b.append(source.definition, [bits], source.attrs).results[0]


def _with_causal(graph: Graph) -> Graph:
    new = Graph(graph.name)
    new.params = list(graph.params)
    b = Builder(new)
    env: dict[Value, Value] = {}
    for op in graph.ops:
        operands = [env.get(v, v) for v in op.operands]
        plain = PLAIN.get(op.name)
        if plain is not None and len(operands) > plain and is_causal_bias(operands[plain]):
            attrs = op.attrs | {"causal": True}
            with b.at(op.loc):
                found = b.append(op.definition, operands[:plain], attrs)
            env.update(zip(op.results, found.results, strict=True))
        elif env.keys().isdisjoint(op.operands):
            new.ops.append(op)
        else:
            found = op.with_operands(operands)
            env.update(zip(op.results, found.results, strict=True))
            new.ops.append(found)
    new.outputs = [env.get(v, v) for v in graph.outputs]
    return new if env else graph


def _recognised(graph: Graph) -> Graph:
    found = {op: match for op in graph.ops if (match := _alone(graph, op)) is not None}
    if not found:
        return graph
    new = Graph(graph.name)
    new.params = list(graph.params)
    b = Builder(new)
    env: dict[Value, Value] = {}
    for op in graph.ops:
        match = found.get(op)
        if match is not None:
            with b.at(op.loc):
                env[op.result] = b.op("attention", *match.operands(b, env), **match.attrs)[0]
        elif env.keys().isdisjoint(op.operands):
            new.ops.append(op)
        else:
            copy = op.with_operands([env.get(v, v) for v in op.operands])
            env.update(zip(op.results, copy.results, strict=True))
            new.ops.append(copy)
    new.outputs = [env.get(v, v) for v in graph.outputs]
    return new


def _alone(graph: Graph, op: Op) -> Attention | None:
    match = find(op)
    if match is None:
        return None
    outputs, users = set(graph.outputs), graph.users()
    for inner in match.inner:
        for value in inner.results:
            if value in outputs or any(u is not op and u not in match.inner for u in users[value]):
                return None
    return match
