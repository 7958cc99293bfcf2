"""Attention that is written out becomes the op that keeps no matrix of scores."""

from __future__ import annotations

from collections.abc import Sequence

from ..autodiff.attention_pattern import find, is_causal_bias
from ..build import Builder
from ..graph import Graph, Op, Value
from .dead import eliminate_dead_code
from .regions import map_regions, substituted

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
        graph = substituted(graph, _causal)
    return _recognised(graph) if "exp" in names else graph


def widen_last(graph: Graph) -> Graph:
    """Operands of attention are widened after their views, for kernels that read the bits themselves.

    before: %w = widen %x dtype=f16;  %k = transpose %w;  ... attention %q %k %v
    after:  %t = transpose %x;  %k = widen %t dtype=f16;  ... attention %q %k %v
    """
    graph = map_regions(graph, widen_last)

    def last(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
        if op.name not in PLAIN:
            return None
        widened = [_widened_last(b, v) for v in operands]
        same = all(x is y for x, y in zip(widened, operands, strict=True))
        return None if same else b.put(op.with_operands(widened))

    changed = substituted(graph, last)
    return graph if changed is graph else eliminate_dead_code(changed)


def _widened_last(b: Builder, value: Value) -> Value:
    views, source = [], value.op
    while source is not None and source.definition.view:
        views.append(source)
        source = source.operands[0].op
    if source is None or source.name != "widen" or not views:
        return value
    bits = source.operands[0]
    for view in reversed(views):
        bits = b.append(view.definition, [bits], view.attrs).results[0]
    return b.append(source.definition, [bits], source.attrs).results[0]


def _causal(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
    plain = PLAIN.get(op.name)
    if plain is None or len(operands) <= plain or not is_causal_bias(operands[plain]):
        return None
    return b.append(op.definition, operands[:plain], op.attrs | {"causal": True}).results


def _recognised(graph: Graph) -> Graph:
    def written_out(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
        match = find(op.with_operands(operands)) if _stands_alone(graph, op) else None
        return b.op("attention", *match.operands(b, {}), **match.attrs)[:1] if match else None

    return substituted(graph, written_out)


def _stands_alone(graph: Graph, op: Op) -> bool:
    """Whether `op` is the last of an attention of which nothing else reads what is in between."""
    match = find(op)
    if match is None:
        return False
    outputs, users = set(graph.outputs), graph.users()
    for inner in match.inner:
        for value in inner.results:
            if value in outputs or any(u is not op and u not in match.inner for u in users[value]):
                return False
    return True
