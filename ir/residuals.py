"""What the backward part of a region needs of its forward part: saved, or computed again.

`vjp_graph` of a region is one graph, which takes the region's parameters and cotangents. `split`
cuts it in two, for regions whose backward part runs later:

    forward(params...)               ->  outputs..., saved...
    backward(free..., saved..., cts...)  ->  the gradients

*Free* parameters are there for the backward part at no cost: loop invariants, and the slices of
arrays that stay. What follows from loop invariants alone is computed again, and then moved out of
both loops (`passes.hoist`). What else the backward part reads of the forward part is computed again
from what is free or saved anyway where that is cheap (arithmetic, comparisons, movement), and saved
where it is not (contractions, reductions, transcendental functions, loops, whatever is taken from a
tape), or where its operands would weigh more than itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .build import Builder
from .graph import Graph, Op, Value
from .record import record
from .types import TensorType, is_linear

# Elementwise ops that cost more than reading their result from memory.
_TRANSCENDENTAL = frozenset(
    "exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
    "arccosh arctanh erf erfinv pow arctan2 hypot logaddexp logaddexp2 gcd lcm nextafter "
    "threefry".split()
)
_CHEAP = ("elementwise", "linear", "source")
_NOT_CHEAP = frozenset((*_TRANSCENDENTAL, "sum", "cumsum"))
_PLAIN = (*_CHEAP, "bilinear", "reduction", "scan")
_PLAIN_OPAQUE = ("sort", "argsort", "scatter")
_LIGHT = 1024  # elements up to which `is_heavy` does not count a transcendental function


def is_cheap(op: Op) -> bool:
    """Whether computing `op` again costs no more than memory for its result."""
    if op.definition.family not in _CHEAP or any(is_linear(v.type) for v in op.results):
        return False
    return op.name not in _NOT_CHEAP


def can_hoist(op: Op) -> bool:
    """Whether `op` may run although the loop around it makes no trip: it neither raises nor loops."""
    if op.regions or op.attrs.get("mode") == "check":
        return False
    if op.definition.family not in _PLAIN and op.name not in _PLAIN_OPAQUE:
        return False
    return not any(is_linear(v.type) for v in op.results)


def is_heavy(op: Op) -> bool:
    """Whether a branch with `op` is worth a tape, rather than being computed twice."""
    if op.name in _TRANSCENDENTAL:
        return any(v.tensor.size > _LIGHT for v in op.results)
    if op.name == "cond":
        return any(is_heavy(inner) for region in op.regions for inner in region.ops)
    if op.definition.effect and len(op.results) == 1:
        return False  # an effect without a value
    return not is_cheap(op) and op.definition.family != "reduction" and op.name != "sum"


@record
class Split:
    """The two parts, and what goes from one to the other beside free parameters."""

    forward: Graph
    backward: Graph
    saved: list[Value]  # of the joint graph


def split(
    joint: Graph,
    params: int,
    outputs: int,
    free: Collection[int],
    invariant: Collection[int] = (),
    *,
    keep: bool = True,
) -> Split:
    """Cut `joint`: `params` and `outputs` of it are the region's own, the others are cotangents.

    `backward` takes the free parameters in increasing order; those in `invariant` are the same for
    all trips. Without `keep`, all is computed again that can be, dear or not.
    """
    own, gradients = joint.outputs[:outputs], joint.outputs[outputs:]
    unknown = _dependent(joint, joint.params[params:], own)
    live = _live(joint.ops, joint.outputs, effects=True)
    late = [op for op in joint.ops if op in live and op in unknown]
    wanted = [v for op in late for v in op.operands] + list(gradients)
    known = set(joint.params[:params])
    known.update(v for op in joint.ops if op not in unknown for v in op.results)
    needed = list(dict.fromkeys(v for v in wanted if v in known))
    at_hand = {joint.params[i] for i in free}
    early = [op for op in joint.ops if op not in unknown]
    saved = _choose(early, needed, at_hand, {joint.params[i] for i in invariant}, keep)
    again = _live(early, needed, stop={*saved, *at_hand})

    forward = Graph(joint.name.removesuffix("_vjp"))
    env = {v: forward.add_param(v.type, v.name) for v in joint.params[:params]}
    kept = _live(early, [*own, *saved], effects=True)
    _copy(forward, [op for op in early if op in kept], env)
    forward.outputs = [env[v] for v in [*own, *saved]]

    backward = Graph(joint.name)
    cts = joint.params[params:]
    sources = [*(joint.params[i] for i in sorted(free)), *saved, *cts]
    env = {v: backward.add_param(v.type, v.name) for v in sources}
    runs = {*late, *again}
    _copy(backward, [op for op in joint.ops if op in runs], env)
    backward.outputs = [env[v] for v in gradients]
    return Split(forward, backward, saved)


def _copy(graph: Graph, ops: Sequence[Op], env: dict[Value, Value]) -> None:
    b = Builder(graph)
    for op in ops:
        kept = {v: env[v] for v in op.results if v in env}  # saved results of an op that runs again
        b.copy(op, env)
        env.update(kept)


def _dependent(graph: Graph, sources: Sequence[Value], own: Sequence[Value]) -> set[Op]:
    """The ops that read `sources`, directly or not; and new tapes that the forward part never sees."""
    values = set(sources)
    found: set[Op] = set()
    for op in graph.ops:
        if any(v in values for v in op.operands):
            found.add(op)
            values.update(op.results)
    users = graph.users()
    for op in graph.ops:
        if op.name == "tape_new" and found.issuperset(users[op.result]) and op.result not in own:
            found.add(op)
    return found


def _live(
    ops: Sequence[Op], ends: Sequence[Value], stop: Collection[Value] = (), effects: bool = False
) -> set[Op]:
    """The ops of `ops` that `ends` depend on, not looking beyond `stop`; with `effects` those, too."""
    values = {v for v in ends if v not in stop}
    found = set()
    for op in reversed(ops):
        if any(v in values for v in op.results) or (effects and op.has_effect):
            found.add(op)
            values.update(v for v in op.operands if v not in stop)
    return found


def _can_run_twice(op: Op) -> bool:
    return not op.has_effect and not any(is_linear(v.type) for v in [*op.operands, *op.results])


def _choose(
    ops: Sequence[Op], needed: Sequence[Value], free: set[Value], still: set[Value], keep: bool
) -> list[Value]:
    """The values to save, so that `needed` follow from them and `free` by cheap ops."""
    still = set(still)
    for op in ops:
        if can_hoist(op) and still.issuperset(op.operands):
            still.update(op.results)

    def again(op: Op) -> bool:
        if keep and not still.issuperset(op.results):
            return is_cheap(op)
        return _can_run_twice(op)

    demanded = set(needed)
    # Whatever is needed and dear is saved, so it weighs nothing in other choices.
    certain = {v for v in needed if v not in free and (v.op is None or not again(v.op))}
    sources: dict[Value, frozenset[Value]] = {v: frozenset() for v in free}
    order: dict[Value, int] = {}
    for op in ops:
        cheap = again(op)
        for v in op.results:
            order[v] = len(order) + 1
            if not cheap:
                sources[v] = frozenset((v,))
                continue
            union = frozenset(s for x in op.operands for s in _sources(x, sources))
            weight = sum(_nbytes(s) for s in union if s not in certain)
            heavier = weight > (1 if v in demanded else 2) * _nbytes(v)
            sources[v] = frozenset((v,)) if heavier and keep else union
    chosen = {s for v in needed for s in _sources(v, sources)}
    return sorted(chosen, key=lambda v: (order.get(v, 0), v.index))


def _sources(v: Value, known: dict[Value, frozenset[Value]]) -> frozenset[Value]:
    return known.get(v) or (frozenset() if v in known else frozenset((v,)))


def _nbytes(v: Value) -> int:
    return v.type.nbytes if isinstance(v.type, TensorType) else 8
