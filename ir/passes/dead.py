"""Dead code elimination, also of what goes in and out of regions."""

from __future__ import annotations

from collections.abc import Sequence

from ..build import Builder
from ..graph import Graph, Op, Value
from ..record import record


def eliminate_dead_code(graph: Graph) -> Graph:
    """Drop ops whose results nothing reads, except those with an effect.

        graph f(%x: f32[8]) -> f32[8] {          graph f(%x: f32[8]) -> f32[8] {
          %y = exp %x : f32[8]                     %z = sin %x : f32[8]
          %z = sin %x : f32[8]              ->     return %z
          return %z                              }
        }

    The bounds check of a gather whose result nobody reads goes with it. Of loops and branches the
    results that nothing reads are dropped, and the operands that are then not needed: a carry
    stays if its last value is read, or if the condition, an effect or another carry depends on it.
    """
    live: set[Value] = set(graph.outputs)
    live_ops: list[tuple[Op, _Trimmed | None]] = []
    for op in reversed(graph.ops):
        if not any(v in live for v in op.results) and not op.has_effect:
            continue
        trimmed = _trim(op, [v in live for v in op.results]) if op.regions else None
        live.update(op.operands if trimmed is None else [op.operands[i] for i in trimmed.operands])
        live_ops.append((op, trimmed))
    live_ops.reverse()
    if len(live_ops) == len(graph.ops) and not any(trimmed for _, trimmed in live_ops):
        return graph
    new = Graph(graph.name)
    new.params = list(graph.params)
    env: dict[Value, Value] = {}
    for op, trimmed in live_ops:
        if trimmed is not None:
            new.ops.append(trimmed.build(op, env))
        else:
            new.ops.append(op.rebased(env))
    new.outputs = [env.get(v, v) for v in graph.outputs]
    return new


@record
class _Trimmed:
    """What is left of an op with regions: positions of its operands and results, new regions."""

    operands: list[int]
    results: list[int]
    attrs: dict[str, int]  # those that change
    regions: tuple[Graph, ...]

    def build(self, op: Op, env: dict[Value, Value]) -> Op:
        operands = tuple([env.get(op.operands[i], op.operands[i]) for i in self.operands])
        new = Op(op.definition, operands, {**op.attrs, **self.attrs}, self.regions, op.loc)
        old = [op.results[i] for i in self.results]
        new.results = tuple([Value(v.type, new, k, v.name) for k, v in enumerate(old)])
        env.update(zip(old, new.results, strict=True))
        return new


def _trim(op: Op, live: Sequence[bool]) -> _Trimmed | None:
    """`op` without its dead results, None if nothing changes."""
    if op.name == "cond":
        trimmed = _trim_cond(op, live)
    elif op.name in ("while", "lanes_while", "scan"):
        trimmed = _trim_loop(op, live)
    else:
        regions = tuple([eliminate_dead_code(region) for region in op.regions])
        trimmed = _Trimmed(list(range(len(op.operands))), list(range(len(op.results))), {}, regions)
    same = len(trimmed.operands) == len(op.operands) and len(trimmed.results) == len(op.results)
    if same and all(a is b for a, b in zip(trimmed.regions, op.regions, strict=True)):
        return None
    return trimmed


def _trim_cond(op: Op, live: Sequence[bool]) -> _Trimmed:
    results = [i for i, flag in enumerate(live) if flag]
    regions = [with_outputs(region, results) for region in op.regions]
    read = set().union(*(params_read(region) for region in regions))
    params = sorted(read)
    return _Trimmed(
        [0, *(i + 1 for i in params)],
        results,
        {},
        tuple([with_params(region, params) for region in regions]),
    )


def _trim_loop(op: Op, live: Sequence[bool]) -> _Trimmed:
    """For `while`, `lanes_while` and `scan`: the body is the last region, and carries come first."""
    *tests, body = op.regions
    consts = op.attrs["consts"]
    carries = op.attrs.get("carries", len(op.results))
    tests = [eliminate_dead_code(test) for test in tests]
    read = set().union(*(params_read(test) for test in tests))
    needed = {i for i, flag in enumerate(live) if flag}
    while True:
        needed |= {i - consts for i in read if consts <= i < consts + carries}
        trimmed = with_outputs(body, sorted(needed))
        now = read | params_read(trimmed)
        if now == read and needed >= {i - consts for i in now if consts <= i < consts + carries}:
            break
        read = now
    results = sorted(needed)
    live_carries = [i for i in results if i < carries]
    params = [
        i
        for i in range(len(body.params))
        if (i - consts in needed if consts <= i < consts + carries else i in read)
    ]
    attrs = {"consts": sum(i < consts for i in params)}
    if "carries" in op.attrs:
        attrs["carries"] = len(live_carries)
    regions = tuple([with_params(region, params) for region in [*tests, trimmed]])
    return _Trimmed(params, results, attrs, regions)


def with_outputs(graph: Graph, outputs: Sequence[int]) -> Graph:
    """`graph` with only some of its outputs, and what they need."""
    if len(outputs) == len(graph.outputs):
        return eliminate_dead_code(graph)
    return eliminate_dead_code(graph.giving(graph.outputs[i] for i in outputs))


def with_params(graph: Graph, params: Sequence[int]) -> Graph:
    """`graph` without the parameters that are not in `params`, none of which is read."""
    if len(params) == len(graph.params):
        return graph
    new = Graph(graph.name)
    env: dict[Value, Value] = {}
    for i in params:
        old = graph.params[i]
        env[old] = new.add_param(old.type, old.name)
    new.outputs = Builder(new).replay(graph, env)
    return new


def params_read(graph: Graph) -> set[int]:
    """Which parameters are operands of ops, or outputs."""
    indices = {v.index for op in graph.ops for v in op.operands if v.op is None}
    return indices | {v.index for v in graph.outputs if v.op is None}
